"""Workers beside one worker, in one run: the speed of exploring, and what a batch costs beside its steps.

    python benchmarks/workers.py [--quick] [--no-ray] [--whole]

The world is a slippery walk of six cells whose step takes a given time: it sleeps, as a system that waits for something
does, or it computes, as a simulator does. Times begin when all workers are ready. `--whole` measures all of `explore`
instead, from the call to the atlas, with a step and a RESET that wait 20 ms: without workers, and with four.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from axplore import explore
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.target import Target
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import Engine, engine_from
from axplore.worlds.contract import Visit
from axplore.worlds.stepped import SteppedWorld

LAST: Final = 5
STAY: Final = 0.3
WHOLE_WORKERS: Final = 4


class Walk:
    """Goes left or right, or stays now and then; a step takes so many seconds, and a RESET none or as many."""

    actions = ("left", "right")

    def __init__(self, seconds: float, computes: bool, resets_slowly: bool = False) -> None:
        self._seconds, self._computes, self._resets_slowly = seconds, computes, resets_slowly
        self._noise = np.random.default_rng(0)
        self._state = 0

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the noise a new stream."""
        self._noise = np.random.default_rng(seed)

    def reset(self) -> int:
        """Goes to the first cell."""
        if self._resets_slowly:
            time.sleep(self._seconds)
        self._state = 0
        return 0

    def step(self, action: str) -> int:
        """Takes its time, and goes."""
        if self._computes:
            end = time.perf_counter() + self._seconds
            while time.perf_counter() < end:
                pass
        elif self._seconds:
            time.sleep(self._seconds)
        if self._noise.random() >= STAY:
            self._state = min(max(self._state + (1 if action == "right" else -1), 0), LAST)
        return self._state


@dataclass(frozen=True)
class Speed:
    """Steps per second: of one large order, and of a whole exploration."""

    order: float
    exploration: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="coarse and short, to see that everything runs")
    arguments.add_argument("--no-ray", action="store_true", help="processes only")
    arguments.add_argument("--whole", action="store_true", help="all of explore, 20 ms a step: four minutes")
    chosen = arguments.parse_args()
    has_ray = not chosen.no_ray and importlib.util.find_spec("ray") is not None
    if chosen.whole:
        compare_whole([None, "auto"] if has_ray else [None], 0.001 if chosen.quick else 0.02)
        return
    epsilon = 2.0 if chosen.quick else 0.35
    speed_of(1, None, partial(Walk, 0.0, False), 2.0)  # compiles what is to be compiled
    compare("processes, 1 ms of waiting", (1, 2, 4), None, 0.001, False, epsilon)
    compare("processes, 1 ms of computing", (1, 2), None, 0.001, True, epsilon)
    measure_overhead("one process", engine_from(1, None))
    if has_ray:
        compare("Ray, 5 ms of waiting", (1, 4), "auto", 0.005, False, max(epsilon, 0.7))
        measure_overhead("one worker on Ray", engine_from(1, "auto"))


def compare_whole(engines: list[str | None], seconds: float) -> None:
    """All of `explore`: the first row is without workers, and the others are compared with a quarter of its time."""
    whole(0.0, None, None)  # compiles what is to be compiled
    alone, steps = whole(seconds, None, None)
    print(f"without workers       {alone:7.1f} s, {steps:,} steps exploring")
    for ray in engines:
        taken, steps = whole(seconds, WHOLE_WORKERS, ray)
        ratio = taken / (alone / WHOLE_WORKERS)
        print(f"{WHOLE_WORKERS} {'processes' if ray is None else 'workers on Ray':18} {taken:7.1f} s, {steps:,} steps "
              f"exploring: {ratio:.2f} times a quarter")  # fmt: skip


def whole(seconds: float, workers: int | None, ray: str | None) -> tuple[float, int]:
    """Seconds from the call to the atlas, and the steps of the exploration."""
    began = time.perf_counter()
    atlas = explore(partial(Walk, seconds, False, True), radius=5, epsilon=0.3, workers=workers, ray=ray)
    return time.perf_counter() - began, atlas.steps


def compare(
    title: str, numbers: tuple[int, ...], ray: str | None, seconds: float, computes: bool, epsilon: float
) -> None:
    print(title)
    first: Speed | None = None
    for workers in numbers:
        speed = speed_of(workers, ray, partial(Walk, seconds, computes), epsilon)
        first = first or speed
        print(
            f"  {workers} workers: one order {speed.order:8,.0f} steps/s ({speed.order / first.order:.2f} times), "
            f"exploring {speed.exploration:8,.0f} steps/s ({speed.exploration / first.exploration:.2f} times)"
        )


def speed_of(workers: int, ray: str | None, factory: partial[Walk], epsilon: float) -> Speed:
    engine = engine_from(workers, ray)
    assert engine is not None
    with DistributedWorld(SteppedWorld(factory), engine) as world:
        carry_out(world, 50 * workers)  # until all are ready
        order = timed(world, partial(carry_out, world, 2000))
        return Speed(order, timed(world, partial(explore_with, world, epsilon)))


def explore_with(world: DistributedWorld, epsilon: float) -> None:
    run(Certified(target=Target(radius=4, epsilon=epsilon)).for_workers(), world)


def timed(world: DistributedWorld, work: Callable[[], object]) -> float:
    """Steps per second of some work."""
    steps, began = world.steps, time.perf_counter()
    work()
    return (world.steps - steps) / (time.perf_counter() - began)


def carry_out(world: DistributedWorld, times: int) -> None:
    world.carry_out([Visit(state=0, action=0, times=times, policy=np.zeros(1, dtype=np.int64), max_journey=9)])


def measure_overhead(title: str, engine: Engine | None) -> None:
    """What a batch of one step takes, beside its reset and its step."""
    assert engine is not None
    batches = 500
    with DistributedWorld(SteppedWorld(partial(Walk, 0.0, False)), engine, batch=1) as world:
        carry_out(world, 10)
        began = time.perf_counter()
        carry_out(world, batches)
        print(f"{title}: {1e3 * (time.perf_counter() - began) / batches:.2f} ms a batch")


if __name__ == "__main__":
    main()
