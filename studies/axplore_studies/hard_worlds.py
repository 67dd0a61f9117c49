"""Steps on worlds that are hard for the certified explorer: long ways, many slips and rows with many successors.

Steps depend on the seed alone; seconds are processor time, planning included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from axplore import TabularMdp
from axplore.domains import slippery_grid
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.records.run import StopReason
from axplore.target import Target
from axplore.worlds.catalogue import named_world
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document

MAX_STEPS: Final = 200_000_000


@dataclass(frozen=True)
class HardWorld:
    """What to explore: a world by its seed, the radius, and the number of seeds."""

    made: Callable[[int], World]
    radius: float
    seeds: int


def fan(width: int) -> TabularMdp:
    """Returns a model of one action with equally likely outcomes, from each of which only RESET leads on."""
    outcomes = range(1, width + 1)
    return TabularMdp.from_rows(
        {0: {"spin": dict.fromkeys(outcomes, 1 / width)}} | {state: {} for state in outcomes}, 0
    )


CASES: Final = {
    "FrozenLake": HardWorld(lambda seed: named_world("gym:FrozenLake-v1", seed, {}), 8.0, 10),
    "slippery grid 20×20, slip 0.1": HardWorld(
        lambda seed: SimulatedWorld(slippery_grid(20, 20, slip=0.1), seed), 15.0, 3
    ),
    "uniform fan of 20": HardWorld(lambda seed: SimulatedWorld(fan(20), seed), 40.0, 3),
    "uniform fan of 100": HardWorld(lambda seed: SimulatedWorld(fan(100), seed), 200.0, 1),
}


def trials(max_steps: int = MAX_STEPS) -> list[Trial]:
    """Returns the explorations; those that have not ended by themselves after a number of steps are given up."""
    return [
        Trial(
            {"world": name, "seed": seed, "max_steps": max_steps},
            partial(_explored, name, seed, max_steps),
            weight=case.radius,
        )
        for name, case in CASES.items()
        for seed in range(case.seeds)
    ]


def _explored(name: str, seed: int, max_steps: int) -> Record:
    """Explores a world with ε = 1 and δ = 0.1."""
    case = CASES[name]
    world = case.made(seed)
    began = time.process_time()
    found = run(Certified(target=Target(radius=case.radius, epsilon=1.0, delta=0.1)), world, max_steps=max_steps)
    world.close()
    return {
        "steps": found.steps,
        "states": len(found.states),
        "proven": found.stop is StopReason.PROVEN,
        "seconds": round(time.process_time() - began, 1),
    }


def summary(records: Sequence[Record]) -> Document:
    """Returns the explorations."""
    return Document(STUDY.name, [{key: run[key] for key in run if key != "max_steps"} for run in records])


STUDY: Final = Study("hard-worlds", "steps on worlds that are hard for the certified explorer", trials, summary)
