"""Parallel work: engines that run workers, and a world whose orders they carry out.

The names below are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from axplore.lazy import lazy_names

if TYPE_CHECKING:
    from axplore.workers.distributed import DistributedWorld
    from axplore.workers.engines import Engine, Worker, engine_for
    from axplore.workers.pool import WorkerPool, results_of
    from axplore.workers.processes import Processes
    from axplore.workers.ray import RayCluster

__all__ = [
    "DistributedWorld",
    "Engine",
    "Processes",
    "RayCluster",
    "Worker",
    "WorkerPool",
    "engine_for",
    "results_of",
]

_HOMES: Final = {
    "axplore.workers.distributed": ("DistributedWorld",),
    "axplore.workers.pool": ("WorkerPool", "results_of"),
    "axplore.workers.processes": ("Processes",),
    "axplore.workers.ray": ("RayCluster",),
    "axplore.workers.engines": ("Engine", "Worker", "engine_for"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
