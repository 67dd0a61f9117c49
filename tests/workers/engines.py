"""Explores one lake on every engine, with and without losses, and compares the bytes of the atlases.

    python tests/workers/engines.py [--out FILE]

The world is FrozenLake at radius 8, with a pause at every step so that there is time to kill somebody. Ten workers of
two processes are killed at random moments, and of a Ray cluster of three nodes on this machine one node is lost.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

import axplore
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import Engine
from axplore.workers.processes import Processes
from axplore.worlds.gym import gym_world
from in_process import InProcess

LAKE: dict[str, Any] = {"radius": 8.0, "epsilon": 1.0, "explorer": "certified"}
KILLS = 10
PAUSE = 1e-5


class Paused(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes a moment for every step."""

    def step(self, action: Any) -> Any:
        time.sleep(PAUSE)
        return super().step(action)


def lake() -> Any:
    """FrozenLake with pauses."""
    return Paused(gymnasium.make("FrozenLake-v1"))


def explored(engine: Engine) -> dict[str, Any]:
    """What came of an exploration."""
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
    """Has something done in another thread until the end of the context."""
    is_over = threading.Event()
    thread = threading.Thread(target=act, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def on_processes(workers: int) -> dict[str, Any]:
    """So many processes."""
    return explored(Processes(workers))


def with_kills() -> dict[str, Any]:
    """Two processes, of which ten are killed, one after the other."""
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


def on_three_nodes() -> dict[str, Any]:
    """A Ray cluster of three nodes, two with a processor each, of which one is lost after a while."""
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


def on_local_ray() -> dict[str, Any]:
    """A Ray cluster of this machine alone."""
    from axplore.workers.ray import RayCluster

    return explored(RayCluster("auto", 2))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, help="a file for the outcomes, as JSON")
    out = arguments.parse_args().out
    trials: dict[str, Callable[[], dict[str, Any]]] = {
        "this process": lambda: explored(InProcess()),
        **{f"{workers} processes": partial(on_processes, workers) for workers in (1, 2, 4)},
        "2 processes, ten killed": with_kills,
        "Ray on this machine, 2 workers": on_local_ray,
        "Ray on three nodes, one lost": on_three_nodes,
    }
    with ExitStack() as closing:
        # Ray's sockets need a short path; here it meets no other cluster.
        os.environ["RAY_TMPDIR"] = closing.enter_context(
            tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True)
        )
        outcomes = {}
        for name, trial in trials.items():
            outcomes[name] = trial()
            print(name, outcomes[name], flush=True)
    same = len({outcome["sha256"] for outcome in outcomes.values()}) == 1
    print("All atlases are the same, byte for byte." if same else "The atlases differ.")
    if out is not None:
        command = f"python tests/workers/engines.py --out {out}"
        out.write_text(json.dumps({"command": command, "same": same, "outcomes": outcomes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
