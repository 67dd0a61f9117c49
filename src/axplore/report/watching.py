"""A run in progress as a page, served on this machine only.

The watcher reads the run's files and nothing else: it takes no lock and writes nothing, so it may begin before the run,
end, or fail, and the run does not notice.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from axplore.errors import AxploreError, StorageError
from axplore.report.page import page_of, rendered
from axplore.runs.history import History, history_of
from axplore.runs.live_atlas import atlas_now, has_ended, version_of

HOST: Final = "127.0.0.1"


class Watched:
    """A run folder, and the page that was last made of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._version = ""
        self._page = ""

    def page(self) -> str:
        """The page; made anew only if the run has a new checkpoint or has ended. A page to wait on if there is none."""
        with self._lock:
            version = version_of(self._folder)
            if version and version == self._version:
                return self._page
            try:
                history = history_of(self._folder)
                live = {"version": version, "message": self._message(history)}
                self._page = page_of(atlas_now(self._folder), history, self._folder, live)
                self._version = version
            except (AxploreError, OSError) as error:
                # The files may just be replaced by newer ones; what was seen last is better than nothing.
                return self._page or rendered("templates/waiting.html", reason=str(error))
            return self._page

    def news(self) -> dict[str, str]:
        """The version of the page that could be had, and where the run stands."""
        try:
            return {"version": version_of(self._folder), "message": self._message(history_of(self._folder))}
        except (AxploreError, OSError) as error:
            return {"version": self._version, "message": f"The run cannot be read just now: {error}"}

    def _message(self, history: History) -> str:
        rounds, before = history.rounds, 0 if history.manifest is None else history.manifest.steps_before
        stand = ""
        if rounds:
            last = rounds[-1]
            stand = f" Round {last['round']:,}, {last['known']:,} states known, {last['steps'] - before:,} steps."
        if has_ended(self._folder):
            return "The run has ended."
        if not history.events:
            return "The run is beginning."
        age = datetime.now(UTC) - datetime.fromisoformat(history.events[-1]["time"])
        seconds = max(0, round(age.total_seconds()))
        return f"In progress.{stand} The last news is {seconds} s old; the map is of the last checkpoint."


class WatchServer(ThreadingHTTPServer):
    """Serves one run on the loopback address; it answers GET only."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Opens the port.

        Args:
            folder: of the run, which may not exist yet.
            port: 0 for any that is free.
        """
        self.watched = Watched(folder)
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise StorageError(f"port {port} cannot be used: {error}; leave it out for one that is free") from None

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer

    def do_GET(self) -> None:
        """Answers the page and its news."""
        port = self.server.server_port
        # Another name for this machine may be a foreign page that wants to read along.
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
        """Says nothing."""
