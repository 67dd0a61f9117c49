"""HTTP with one deadline per request: whatever a server sends, and however slowly, the exchange ends by then.

The time limit of a socket holds for each of its operations, so that a server which sends one byte now and then, or
announces an answer again and again, never exceeds it.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLWantReadError
from typing import Any
from urllib.parse import SplitResult


class TimedExchange:
    """A connection to a server, kept open between requests."""

    def __init__(self, address: SplitResult, timeout: float) -> None:
        """Prepares it; the first request connects.

        Args:
            address: of the server.
            timeout: the seconds that a request may take, from sending to the last byte of the answer. Connecting to
                each of the addresses that a name stands for, and the handshake, may take as long.
        """
        connect = _TimedHttps if address.scheme == "https" else _TimedHttp
        self._connection = connect(address.hostname or "", address.port)
        self._path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        self._timeout = timeout

    def post(self, content: bytes, headers: dict[str, str], most_bytes: int) -> tuple[int, bytes, bool]:
        """Posts a request.

        Returns:
            The status, the body up to one byte more than `most_bytes`, and whether the server said where it ends.

        Raises:
            TimeoutError: the answer was not complete in time.
            OSError, HTTPException: the server cannot be reached, or closed the connection before the answer was
                complete.
        """
        connection = self._connection
        connection.deadline = time.monotonic() + self._timeout
        connection.request("POST", self._path, content, headers)
        response = connection.getresponse()
        has_end = response.chunked or response.length is not None
        return response.status, _body(response, most_bytes), has_end

    @property
    def was_closed(self) -> bool:
        """Whether the server has closed the connection, or broken its order, since the last answer."""
        socket = self._connection.sock
        return socket is not None and not socket.is_silent()

    def close(self) -> None:
        """Closes the connection; a further request opens another."""
        self._connection.close()


def _body(response: HTTPResponse, most_bytes: int) -> bytes:
    body = b""
    while len(body) <= most_bytes and (received := response.read1(65536)):
        body += received
    if len(body) <= most_bytes and response.length:
        raise HTTPException(f"it closed the connection {response.length} bytes before the end of its answer")
    response.close()  # the connection stays open
    return body


class _TimedHttp(HTTPConnection):
    """A connection whose sending and receiving end by a deadline."""

    deadline: float
    sock: Any

    def connect(self) -> None:
        self.timeout = self._left()
        super().connect()
        self.sock = _TimedSocket(self.sock, self._left)

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _TimedHttps(_TimedHttp, HTTPSConnection):
    """The same over TLS."""


class _TimedSocket:
    """A connected socket, as far as `http.client` uses it."""

    def __init__(self, connected: Any, left: Callable[[], float]) -> None:
        self._socket, self._left = connected, left

    def sendall(self, content: bytes) -> None:
        self._socket.settimeout(self._left())
        self._socket.sendall(content)

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._socket, self._left))

    def is_silent(self) -> bool:
        """Whether the connection is open and nothing has come, as it must be between requests."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except (BlockingIOError, SSLWantReadError):
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        self._socket.close()


class _TimedReader(io.RawIOBase):
    """What a socket receives."""

    def __init__(self, socket: Any, left: Callable[[], float]) -> None:
        self._socket, self._left = socket, left
        self._file = socket.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        self._socket.settimeout(self._left())
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()
