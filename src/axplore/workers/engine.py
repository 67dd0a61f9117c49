"""What runs workers: this process, other processes, or a cluster.

An engine hires workers and says who has answered. A worker has one *server*, a function that it makes for itself when
it is hired, and answers every message with what the server makes of it. Everything else, such as who does what, and
what becomes of the work of somebody who is lost, is the same for all engines: see `crew`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Server: TypeAlias = Callable[[Any], Any]
"""Answers messages, one after the other."""


class WorkerLostError(Exception):
    """The worker, or the machine it was on, is gone."""


class TryElsewhereError(Exception):
    """Raised by a server that could not do something that another may be able to do."""


@dataclass(frozen=True)
class Reply:
    """What a worker answers.

    Attributes:
        value: what its server returned; None from a new worker that is ready.
        error: what it raised instead.
    """

    value: Any = None
    error: BaseException | None = None


class Worker(Protocol):
    """Somebody who answers messages, one at a time. The first reply, to no message, says that the server is made."""

    @property
    def name(self) -> str:
        """What to call it, as "process 4711"."""

    def send(self, message: Any) -> None:
        """Gives it something to do; there must be no reply outstanding."""

    def receive(self) -> Reply:
        """The reply that `Engine.wait` has announced; raises WorkerLostError if there is none to come."""

    def dismiss(self) -> None:
        """Ends it, whatever it is doing."""


class Engine(Protocol):
    """A place where workers work."""

    @property
    def n_workers(self) -> int:
        """How many work at the same time."""

    def hire(self, make_server: Callable[[], Server]) -> Worker:
        """A new worker, which has yet to say that it is ready; `make_server` is called where it works."""

    def wait(self, workers: Sequence[Any], seconds: float | None) -> list[Any]:
        """Those of the workers, all hired here, that have a reply or are lost; none if the time has passed before."""

    def close(self) -> None:
        """Ends everything that the engine has started."""


def replied(server: Server, message: Any) -> Reply:
    """What a server makes of a message."""
    try:
        return Reply(server(message))
    except Exception as error:
        return Reply(error=error)
