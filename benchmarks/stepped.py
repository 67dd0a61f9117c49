"""Steps per second on FrozenLake: exploring beside a bare Python loop of `env.step`, in one run.

RESET counts as a step on both sides. The runs take turns, and the best of each counts. Seconds are those of the
processor, so that whatever else runs on the machine matters less; where another process takes part, those of the clock.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from axplore.explorers.base import run
from axplore.explorers.registry import preset
from axplore.worlds.contract import Visit
from axplore.worlds.gym import gym_world
from axplore.worlds.program import program_world
from axplore.worlds.stepped import SteppedWorld

IDENTIFIER: Final = "FrozenLake-v1"
BARE_STEPS: Final = 60_000
REPEATS: Final = 3
PROGRAM: Final = Path(__file__).parent.parent / "examples" / "random_walk.sh"


def bare_loop() -> float:
    """What a user would write: random actions, and a reset at the end of an episode."""
    environment = gymnasium.make(IDENTIFIER)
    environment.reset(seed=0)
    actions = random.Random(0).choices(range(4), k=BARE_STEPS)
    steps = 0
    start = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = environment.step(action)
        steps += 1
        if terminated or truncated:
            environment.reset()
            steps += 1
    return steps / (time.process_time() - start)


def vector_loop(number: int) -> float:
    """The same with so many environments stepped at once."""
    environments: Any = SyncVectorEnv(
        [lambda: gymnasium.make(IDENTIFIER)] * number, autoreset_mode=AutoresetMode.DISABLED
    )
    environments.reset(seed=0)
    rounds = BARE_STEPS // 2 // number
    actions = np.random.default_rng(0).integers(0, 4, (rounds, number))
    steps = 0
    start = time.process_time()
    for chosen in actions:
        _, _, terminated, truncated, _ = environments.step(chosen)
        over = terminated | truncated
        steps += number + int(over.sum())
        if over.any():
            environments.reset(options={"reset_mask": over})
    return steps / (time.process_time() - start)


def exploring(epsilon: float, max_steps: int | None) -> float:
    """The certified explorer from the first step to the last, planning included."""
    world = gym_world(IDENTIFIER)
    start = time.process_time()
    run(preset("certified", radius=8, epsilon=epsilon, delta=0.1), world, max_steps=max_steps)
    return world.steps / (time.process_time() - start)


def visiting(make: Callable[[], SteppedWorld], times: int, clock: Callable[[], float]) -> float:
    """One long order: the action 0 in the initial state, and a RESET elsewhere."""
    with make() as world:
        order = Visit(0, 0, times, np.zeros(1, dtype=np.int64), max_journey=100)
        start = clock()
        world.carry_out([order])
        return world.steps / (clock() - start)


def main() -> None:
    rows: dict[str, Callable[[], float]] = {
        "a bare loop of env.step": bare_loop,
        "exploring, radius 8, epsilon 1": partial(exploring, 1.0, None),
        "exploring, radius 8, epsilon 0.3, 500,000 steps": partial(exploring, 0.3, 500_000),
        "one order, no planning": partial(visiting, partial(gym_world, IDENTIFIER), BARE_STEPS, time.process_time),
        "the same in a process of its own, by the clock": partial(
            visiting, partial(gym_world, IDENTIFIER, step_timeout=10.0), 3000, time.perf_counter
        ),
        "a program in bash, by the clock": partial(
            visiting, partial(program_world, ["bash", str(PROGRAM)]), 3000, time.perf_counter
        ),
        "8 environments in a SyncVectorEnv, bare": partial(vector_loop, 8),
        "64 environments in a SyncVectorEnv, bare": partial(vector_loop, 64),
    }
    exploring(1.0, 2000)  # compiles, or loads what is compiled
    best = dict.fromkeys(rows, -math.inf)
    for _ in range(REPEATS):
        for name, measure in rows.items():
            best[name] = max(best[name], measure())
    bare = best["a bare loop of env.step"]
    print(f"{'':50} {'steps/s':>9} {'ratio':>6}   (reference for exploring: 0.6)")
    for name, speed in best.items():
        print(f"{name:50} {speed:9,.0f} {speed / bare:6.2f}")


if __name__ == "__main__":
    main()
