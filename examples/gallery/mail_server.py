"""An SMTP server (aiosmtpd) on this machine, seen through its response codes.

    axplore explore examples.gallery.mail_server:MailServer --radius 5 --epsilon 1 --memory 6

The label is the code that the server answered last. 250 says that all is well, and not whether a sender or a recipient
has been named: what came before tells.
"""

from __future__ import annotations

import smtplib
import socket

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink

HOST = "127.0.0.1"
MESSAGE = "354"
"""The code after which the server takes everything for the text of a message."""

COMMANDS = {
    "EHLO": "EHLO localhost",
    "MAIL": "MAIL FROM:<alice@example.org>",
    "RCPT": "RCPT TO:<bob@example.org>",
    "DATA": "DATA",
    "RSET": "RSET",
    "NOOP": "NOOP",
}
TEXT = "Hello.\r\n.\r\n"


class MailServer:
    """A server of its own, and one connection to it; RESET connects anew."""

    def __init__(self) -> None:
        with socket.create_server((HOST, 0)) as free:
            self._port = free.getsockname()[1]
        self._server = Controller(Sink(), hostname=HOST, port=self._port, server_hostname="localhost", ready_timeout=30)
        self._server.start()
        self._connection: smtplib.SMTP | None = None

    def actions(self, code: str) -> tuple[str, ...]:
        """Returns what can be sent after a code."""
        return ("text",) if code == MESSAGE else tuple(COMMANDS)

    def reset(self) -> str:
        """Connects anew, and returns the code of the greeting."""
        self._hang_up()
        self._connection = smtplib.SMTP(local_hostname="localhost", timeout=30)  # looks up no name
        return str(self._connection.connect(HOST, self._port)[0])

    def step(self, action: str) -> str:
        """Sends a command, and returns the code of the answer."""
        assert self._connection is not None
        self._connection.send(f"{COMMANDS[action]}\r\n" if action in COMMANDS else TEXT)
        return str(self._connection.getreply()[0])

    def close(self) -> None:
        """Hangs up, and stops the server."""
        self._hang_up()
        self._server.stop()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
