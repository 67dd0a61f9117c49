"""Which engine is meant."""

from __future__ import annotations

from axplore.workers.engine import Engine


def engine_from(workers: int | None, ray: str | None) -> Engine | None:
    """The engine of these settings, the same on the command line and everywhere; None for no workers.

    Args:
        workers: how many; 0 for none. On Ray, as many as the cluster has processors when not given.
        ray: `auto` for the Ray cluster that this machine is part of, or one of this machine alone if there is none, or
            the address of a cluster. Without it, workers are processes on this machine.
    """
    if ray is not None and workers != 0:
        from axplore.workers.ray import RayCluster

        return RayCluster(ray, workers)
    if workers:
        from axplore.workers.processes import Processes

        return Processes(workers)
    return None
