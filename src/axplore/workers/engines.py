"""Which engine is meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from axplore.workers.worker import Engine


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
