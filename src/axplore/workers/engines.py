"""What runs workers: processes on this machine, or a cluster; and which of them is meant.

An engine starts workers and says who has answered. A worker has one *server*, a function that it makes for itself when
it is started, and answers every message with what the server makes of it. Everything else, such as who does what, and
what becomes of the work of a worker that is lost, is the same for all engines: see `pool`.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import cloudpickle

from axplore.errors import InvalidSettingError

SINGLE_THREADED: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Libraries hear by these how many threads to use: there is a worker for every processor already."""

COMMAND: Final = "AXPLORE_COMMAND"
"""The environment variable by which a worker knows what was called by the process that started it."""


def current_command() -> str:
    """What was called, here or by the process that started this worker."""
    return os.environ.get(COMMAND) or shlex.join(sys.orig_argv)


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

    def stop(self) -> None:
        """Ends it, whatever it is doing."""


class Engine(Protocol):
    """A place where workers work."""

    @property
    def n_workers(self) -> int:
        """How many work at the same time."""

    def start(self, make_server: Callable[[], Server]) -> Worker:
        """A new worker, which has yet to say that it is ready; `make_server` is called where it works."""

    def wait(self, workers: Sequence[Any], seconds: float | None) -> list[Any]:
        """Those of the workers, all started here, that have a reply or are lost; none if the time has passed before."""

    def close(self) -> None:
        """Ends everything that the engine has started."""


def check_n_workers(n_workers: int) -> None:
    """Refuses a number of workers that cannot be started."""
    if isinstance(n_workers, bool) or not isinstance(n_workers, int) or n_workers < 1:
        raise InvalidSettingError(f"workers is {n_workers!r}; it must be a whole number, 1 or more")


def replied(server: Server, message: Any) -> Reply:
    """What a server makes of a message."""
    try:
        return Reply(server(message))
    except Exception as error:
        return Reply(error=error)


class Answering:
    """What a worker elsewhere does: it makes its server from the first message, and answers the others by it."""

    def __init__(self) -> None:
        self._server: Server | None = None
        logging.getLogger(
            "axplore"
        ).disabled = True  # the process that started it hears of everything, and says it once

    def answer(self, message: bytes) -> bytes:
        """The reply to a message, both pickled, by value where it cannot be by name."""
        return _packed(replied(self._served, message))

    def _served(self, message: bytes) -> Any:
        told = cloudpickle.loads(message)
        if self._server is None:
            self._server = told()
            return None
        return self._server(told)


def _packed(reply: Reply) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(reply)
        if reply.error is not None:
            cloudpickle.loads(packed)  # many an exception can be packed, but not unpacked
    except Exception as error:
        what = "the worker's answer" if reply.error is None else f"the worker's {_named(reply.error)}"
        packed = cloudpickle.dumps(Reply(error=RuntimeError(f"{what} cannot be sent: {_named(error)}")))
    return packed


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def has_workers(workers: int | None, ray: str | None) -> bool:
    """Whether these settings, which are those of `engine_from`, ask for workers."""
    return workers != 0 and (workers is not None or ray is not None)


def engine_from(workers: int | None, ray: str | None) -> Engine | None:
    """The engine of these settings, the same on the command line and everywhere; None for no workers.

    Args:
        workers: how many; 0 for none. On Ray, as many as the cluster has processors when not given.
        ray: `auto` for the Ray cluster that this machine is part of, or one of this machine alone if there is none, or
            the address of a cluster. Without it, workers are processes on this machine.
    """
    if not has_workers(workers, ray):
        return None
    if ray is not None:
        from axplore.workers.ray import RayCluster

        return RayCluster(ray, workers)
    from axplore.workers.processes import Processes

    assert workers is not None
    return Processes(workers)


@contextmanager
def engine_for(workers: int | None, ray: str | None) -> Iterator[Engine | None]:
    """The engine that `engine_from` chooses, for as long as it is needed; None to do without."""
    engine = engine_from(workers, ray)
    try:
        yield engine
    finally:
        if engine is not None:
            engine.close()
