"""The protocol of workers and engines, processes on this machine or a cluster; and the choice of an engine.

An engine starts workers and reports which have answered. A worker makes one *server*, a function, when it is started,
and answers every message with the result of that function. Everything else, such as who does which task and what
happens to the tasks of lost workers, is the same for all engines: see `pool`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import cloudpickle

from axplore.errors import InvalidSettingError

SINGLE_THREADED: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that limit the threads of libraries: there is a worker for every processor already."""

Server: TypeAlias = Callable[[Any], Any]
"""Answers messages, one after the other."""


class WorkerLostError(Exception):
    """Raised when a worker, or the machine it was on, is gone."""


class TryElsewhereError(Exception):
    """Raised by a server that could not do a task that another may be able to do.

    Attributes:
        steps: the steps that its system has taken over it.
    """

    def __init__(self, message: str = "", steps: int = 0) -> None:
        super().__init__(message, steps)
        self.steps = steps

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Reply:
    """The reply of a worker.

    Attributes:
        value: the value that its server returned; None from a new worker that is ready.
        error: the error that it raised instead.
    """

    value: Any = None
    error: BaseException | None = None


class Worker(Protocol):
    """A worker that answers one message at a time. Its first reply, to no message, says that the server is made."""

    @property
    def name(self) -> str:
        """The name of the worker, such as "process 4711"."""

    def send(self, message: Any) -> None:
        """Sends a message; no reply may be outstanding."""

    def receive(self) -> Reply:
        """Returns the reply that `Engine.wait` announced; raises WorkerLostError if the worker is lost."""

    def stop(self) -> None:
        """Ends the worker, whatever it is doing."""


class Engine(Protocol):
    """Starts workers and waits for their replies."""

    @property
    def n_workers(self) -> int:
        """The number of workers that work at the same time."""

    def start(self, make_server: Callable[[], Server]) -> Worker:
        """Starts a worker, which will report that it is ready; `make_server` is called in the worker."""

    def wait(self, workers: Sequence[Any], seconds: float | None) -> list[Any]:
        """Returns those of the workers that have a reply or are lost; none if the time is up before."""

    def close(self) -> None:
        """Ends everything that the engine started."""


def check_n_workers(n_workers: int) -> None:
    """Refuses a number of workers that cannot be started."""
    if isinstance(n_workers, bool) or not isinstance(n_workers, int) or n_workers < 1:
        raise InvalidSettingError(f"workers is {n_workers!r}; it must be a whole number, 1 or more")


def replied(server: Server, message: Any) -> Reply:
    """Returns the reply of a server to a message."""
    try:
        return Reply(server(message))
    except Exception as error:
        return Reply(error=error)


class Answering:
    """The loop of a remote worker: it makes its server from the first message, and answers the others with it."""

    def __init__(self) -> None:
        self._server: Server | None = None
        logging.getLogger("axplore").disabled = True  # the starting process hears of everything, and reports it once

    def answer(self, message: bytes) -> bytes:
        """Returns the reply to a message, both pickled with cloudpickle."""
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
            cloudpickle.loads(packed)  # some exceptions can be pickled, but not unpickled
    except Exception as error:
        what = "the worker's answer" if reply.error is None else f"the worker's {_named(reply.error)}"
        packed = cloudpickle.dumps(Reply(error=RuntimeError(f"{what} cannot be sent: {_named(error)}")))
    return packed


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def has_workers(workers: int | None, ray: str | None) -> bool:
    """Returns whether these settings ask for workers; see `engine_from`."""
    return workers != 0 and (workers is not None or ray is not None)


def engine_from(workers: int | None, ray: str | None) -> Engine | None:
    """Returns the engine for these settings; None for no workers.

    Args:
        workers: the number of workers; 0 for none. On Ray, by default, the number of processors of the cluster.
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
    """Context manager for the engine that `engine_from` returns; None for no workers."""
    engine = engine_from(workers, ray)
    try:
        yield engine
    finally:
        if engine is not None:
            engine.close()
