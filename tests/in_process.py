"""An engine of one worker, which is the process of the test itself: quick to start, and easy to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axplore.workers.engines import Reply, Server, replied


class InProcess:
    """An engine of one worker, who is this process."""

    @property
    def n_workers(self) -> int:
        """One."""
        return 1

    def start(self, make_server: Callable[[], Server]) -> InProcessWorker:
        """A worker that is ready."""
        return InProcessWorker(make_server())

    def wait(self, workers: Sequence[InProcessWorker], seconds: float | None) -> list[InProcessWorker]:  # noqa: ARG002 (as all)
        """All who have a reply."""
        return [worker for worker in workers if worker.has_replied]

    def close(self) -> None:
        """Leaves nothing behind."""


class InProcessWorker:
    """Does at once what it is sent."""

    name = "this process"

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reply: Reply | None = Reply()

    @property
    def has_replied(self) -> bool:
        """Whether there is a reply to receive."""
        return self._reply is not None

    def send(self, message: Any) -> None:
        """Does it."""
        self._reply = replied(self._server, message)

    def receive(self) -> Reply:
        """What came of it."""
        assert self._reply is not None
        reply, self._reply = self._reply, None
        return reply

    def stop(self) -> None:
        """Closes what the server holds."""
        close = getattr(self._server, "close", None)
        if close is not None:
            close()
