"""An engine of one worker, which is the process of the test itself: quick to start, and easy to look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axplore.workers.engines import Reply, Server, replied


class InProcess:
    """An engine with one worker, this process."""

    @property
    def n_workers(self) -> int:
        """One."""
        return 1

    def start(self, make_server: Callable[[], Server]) -> InProcessWorker:
        """Returns a worker that is ready."""
        return InProcessWorker(make_server())

    def wait(self, workers: Sequence[InProcessWorker], seconds: float | None) -> list[InProcessWorker]:  # noqa: ARG002 (as all)
        """Returns the workers that have a reply."""
        return [worker for worker in workers if worker.has_replied]

    def close(self) -> None:
        """Does nothing: there is nothing to release."""


class InProcessWorker:
    """A worker that answers messages at once."""

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
        """Returns the reply to the last message."""
        assert self._reply is not None
        reply, self._reply = self._reply, None
        return reply

    def stop(self) -> None:
        """Closes the server."""
        close = getattr(self._server, "close", None)
        if close is not None:
            close()
