"""Workers that are killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from axplore.workers.engines import Server
from axplore.workers.processes import Processes, ProcessWorker


class Killer:
    """Starts workers as `Processes` does, and kills all running ones when a number of tasks are done.

    Attributes:
        started: all workers started so far.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *moments: int) -> None:
        self.started: list[ProcessWorker] = []
        self._moments = moments
        started = self.started

        class Watched(Processes):
            def start(self, make_server: Callable[[], Server]) -> ProcessWorker:
                started.append(super().start(make_server))
                return started[-1]

        monkeypatch.setattr("axplore.workers.processes.Processes", Watched)

    def on_done(self, done: int, _: int) -> None:
        """To be called with the number of tasks done: one has just answered, the others are at work."""
        if done in self._moments:
            self.kill()

    def kill(self) -> None:
        """Kills all who are running."""
        for worker in self.started:
            if worker.is_running:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
