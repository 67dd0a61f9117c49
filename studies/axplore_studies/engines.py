"""Explores one lake on every engine, with and without losses, and compares the bytes of the atlases.

The world is FrozenLake at radius 8, with a pause at every step so that there is time to kill somebody. Ten workers of
two processes are killed at random moments, and of a Ray cluster of three nodes on this machine one node is lost.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium

import axplore
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import Engine
from axplore.workers.processes import Processes
from axplore.worlds.gym import gym_world
from axplore_studies.in_process import InProcess
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document

LAKE: Final[Mapping[str, Any]] = {"radius": 8.0, "epsilon": 1.0, "explorer": "certified"}
KILLS: Final = 10
PAUSE: Final = 1e-5


class Paused(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes a moment for every step."""

    def step(self, action: Any) -> Any:
        time.sleep(PAUSE)
        return super().step(action)


def lake() -> Any:
    """Returns FrozenLake with pauses."""
    return Paused(gymnasium.make("FrozenLake-v1"))


def explored(engine: Engine) -> Record:
    """Explores on an engine, and returns what came of it."""
    began = time.monotonic()
    with DistributedWorld(gym_world(lake), engine) as world, tempfile.TemporaryDirectory() as folder:
        atlas = axplore.explore(world, **LAKE)
        atlas.save(folder)
        digest = hashlib.sha256()
        for file in sorted(Path(folder).iterdir()):
            digest.update(file.read_bytes())
        return {
            "sha256": digest.hexdigest(),
            "states": len(atlas.states),
            "steps": atlas.steps,
            "seconds": round(time.monotonic() - began, 1),
            "incidents": dict(Counter(incident.kind.name for incident in world.incidents)),
        }


@contextmanager
def meanwhile(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Does something in another thread until the end of the context."""
    is_over = threading.Event()
    thread = threading.Thread(target=act, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def in_this_process() -> Record:
    """Explores in this process."""
    return explored(InProcess())


def on_processes(workers: int) -> Record:
    """Explores on a number of processes."""
    return explored(Processes(workers))


def with_kills() -> Record:
    """Explores on two processes, of which ten are killed, one after the other."""
    engine, moments = Processes(2), random.Random(0)
    killed: list[int] = []

    def kill(is_over: threading.Event) -> None:
        while len(killed) < KILLS and not is_over.wait(moments.uniform(0.2, 0.6)):
            with suppress(ProcessLookupError, IndexError):
                victim = moments.choice(engine.pids)
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

    with meanwhile(kill):
        outcome = explored(engine)
    return {**outcome, "kills": len(killed)}


def on_three_nodes() -> Record:
    """Explores on a Ray cluster of three nodes, two with a processor each, of which one is lost after a while."""
    from ray.cluster_utils import Cluster

    from axplore.workers.ray import RayCluster

    cluster: Any = Cluster()
    try:
        cluster.add_node(num_cpus=0, include_dashboard=False)
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()

        def lose(is_over: threading.Event) -> None:
            if not is_over.wait(8.0):  # by then both are at work
                cluster.remove_node(nodes[0], allow_graceful=False)

        with meanwhile(lose):
            return explored(RayCluster(cluster.address, None))
    finally:
        cluster.shutdown()


def on_local_ray() -> Record:
    """Explores on a Ray cluster of this machine alone."""
    from axplore.workers.ray import RayCluster

    return explored(RayCluster("auto", 2))


ENGINES: Final[Mapping[str, Callable[[], Record]]] = {
    "this process": in_this_process,
    **{f"{workers} processes": partial(on_processes, workers) for workers in (1, 2, 4)},
    "2 processes, ten killed": with_kills,
    "Ray on this machine, 2 workers": on_local_ray,
    "Ray on three nodes, one lost": on_three_nodes,
}


def trials() -> list[Trial]:
    """Returns the explorations, one on each engine."""
    return [Trial({"engine": name}, partial(_explored_on, name)) for name in ENGINES]


def _explored_on(name: str) -> Record:
    # Ray's sockets need a short path; here it meets no other cluster.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as place:
        os.environ["RAY_TMPDIR"] = place
        return ENGINES[name]()


def summary(records: Sequence[Record]) -> Document:
    """Returns what came of each exploration; it holds if all atlases are the same, byte for byte."""
    outcomes = {record["engine"]: {key: record[key] for key in record if key != "engine"} for record in records}
    same = len({outcome["sha256"] for outcome in outcomes.values()}) == 1
    return Document(STUDY.name, {"same": same, "outcomes": outcomes}, holds=same)


STUDY: Final = Study(
    "engines", "whether the atlas is the same on every engine, with losses too", trials, summary, one_at_a_time=True
)
