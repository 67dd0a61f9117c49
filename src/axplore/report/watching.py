"""Serves the page of a run in progress, on this machine only.

The watcher only reads the files of the run: it takes no lock and writes nothing, so it may begin, end or fail at any
time without affecting the run.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from axplore.errors import AxploreError, StorageError
from axplore.explorers.base import Remaining, RoundReport
from axplore.report.charts import MAX_POINTS
from axplore.report.page import page_of, rendered
from axplore.report.progress import BAR, Line, duration, share_done
from axplore.runs.folder import ATLAS, atlas_now, has_ended, version_of
from axplore.runs.history import History, history_of
from axplore.runs.manifest import NAME as MANIFEST
from axplore.storage import LOCK

HOST: Final = "127.0.0.1"

SECONDS_TO_ASK: Final = 5.0
"""Seconds after which an idle connection is closed."""

ROUNDS_OF_SPEED: Final = 20
"""The number of logged rounds over which the speed is measured."""

LONG_AGO: Final = 120
"""Seconds without an event after which a run may no longer be in progress."""

MAX_CONNECTIONS: Final = 32
"""The largest number of open connections."""


class Watched:
    """A run folder, and the page that was last made from it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._version = ""
        self._page = ""

    def page(self) -> str:
        """Returns the page, made anew after a new checkpoint or the end of the run; a waiting page if there is none."""
        with self._lock:
            version = version_of(self._folder)
            if version and version == self._version:
                return self._page
            try:
                history = history_of(self._folder)
                live = {"version": version, **self._progress(history)}
                self._page = page_of(atlas_now(self._folder), history, self._folder, live)
                self._version = version
            except (AxploreError, OSError) as error:
                # The files may be being replaced; the last page is better than none.
                return self._page or rendered("templates/waiting.html", reason=str(error))
            return self._page

    def news(self) -> dict[str, Any]:
        """Returns the version of the current page, and how far along the run is."""
        try:
            history = history_of(self._folder)
            return {"version": version_of(self._folder), **self._progress(history)}
        except (AxploreError, OSError) as error:
            return {"version": self._version, "message": f"The run cannot be read at the moment: {error}"}

    def _progress(self, history: History) -> dict[str, Any]:
        """Returns a message, the part that is done, if that is known, and the curves: states over steps."""
        if has_ended(self._folder):
            return {"message": "The run has ended.", "share": 1.0}
        if not history.events:
            return {"message": "The run is beginning."}
        before = 0 if history.manifest is None else history.manifest.steps_before
        last, share = "", None
        if history.rounds:
            report = _report_of(history, before)
            share, last = share_done(report), f"{Line().of(report).lstrip(BAR)}. "
        return {"message": f"In progress: {last}{_age(history)}", "share": share, "curves": _curves(history, before)}


def _report_of(history: History, before: int) -> RoundReport:
    """Returns the last round that was logged, with the speed since an earlier one."""
    last, earlier = history.rounds[-1], history.rounds[max(0, len(history.rounds) - ROUNDS_OF_SPEED)]
    seconds = (datetime.fromisoformat(last["time"]) - datetime.fromisoformat(earlier["time"])).total_seconds()
    left = next((event["remaining"] for event in reversed(history.rounds) if "remaining" in event), None)
    return RoundReport(
        last["round"],
        last["known"],
        last["frontier"],
        last["steps"] - before,
        last.get("activity", ""),
        remaining=None if left is None else Remaining(**left),
        speed=(last["steps"] - earlier["steps"]) / seconds if seconds > 0 else None,
    )


def _age(history: History) -> str:
    age = datetime.now(UTC) - datetime.fromisoformat(history.events[-1]["time"])
    seconds = max(0, round(age.total_seconds()))
    if seconds > LONG_AGO:
        return f"No news for {duration(seconds)}: it may have been stopped, and resumes with `axplore resume`."
    return f"Last update {seconds} s ago; the map shows the last checkpoint."


def _curves(history: History, before: int) -> dict[str, list[int]]:
    """Returns the states known and met over steps, at no more moments than a chart shows."""
    rounds = history.rounds
    chosen = rounds[:: -(-len(rounds) // MAX_POINTS)] if rounds else []
    if rounds and chosen[-1] is not rounds[-1]:
        chosen = [*chosen, rounds[-1]]
    return {
        "steps": [event["steps"] - before for event in chosen],
        "known": [event["known"] for event in chosen],
        "met": [event["known"] + event["frontier"] for event in chosen],
    }


class WatchServer(ThreadingHTTPServer):
    """Serves one run on the loopback address; it only answers GET.

    Idle connections are closed after some seconds, and if there are too many, the oldest are closed.
    """

    daemon_threads = True
    request_queue_size = MAX_CONNECTIONS  # a client that finds the queue full waits for a second, then longer

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Opens the port.

        Args:
            folder: the folder of the run; it may be empty, if the run is about to begin.
            port: the port; 0 for any free one.
        """
        _check_run(folder)
        self.watched = Watched(folder)
        self._connections: deque[Any] = deque()
        self._connections_lock = threading.Lock()
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise StorageError(f"port {port} cannot be used: {error}; omit --port to use any free one") from None

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers a request in a thread of its own; closes the oldest connection if there are too many."""
        with self._connections_lock:
            self._connections.append(request)
            oldest = self._connections.popleft() if len(self._connections) > MAX_CONNECTIONS else None
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # its thread then reads the end and finishes
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Ends a connection that was answered or closed."""
        with self._connections_lock, suppress(ValueError):
            self._connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores readers that went away."""


def _check_run(folder: Path) -> None:
    """Refuses a folder that does not exist, or holds something other than a run."""
    if not folder.is_dir():
        raise StorageError(f"there is no folder {folder} to watch; start the run first, or check the name")
    names = {path.name for path in folder.iterdir()}
    if names and not names & {MANIFEST, ATLAS, LOCK}:
        raise StorageError(f"{folder} holds no run to watch; give the folder of a run")


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer
    timeout = SECONDS_TO_ASK

    def do_GET(self) -> None:
        """Answers requests for the page and its updates."""
        port = self.server.server_port
        # A request under another host name may come from a foreign page (DNS rebinding).
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/":
            self._answer(self.server.watched.page(), "text/html")
        elif self.path == "/news":
            self._answer(json.dumps(self.server.watched.news()), "application/json")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, text: str, kind: str) -> None:
        body = text.encode("utf-8")
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""
