"""Steps on worlds that are hard for the certified explorer: long ways, many slips and rows with many successors.

    python benchmarks/hard_worlds.py [WORLD ...] [--max-steps N] [--json FILE]

WORLD is a part of a name below. A run that has not ended by itself after N steps is shown as such. Steps depend on the
seed alone; seconds are processor time, planning included.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from axplore.domains import slippery_grid
from axplore.explorers.base import StopReason, run
from axplore.explorers.certified import Certified
from axplore.target import Target
from axplore.worlds.catalogue import named_world
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld
from ladder import fan

MAX_STEPS: Final = 20_000_000


@dataclass(frozen=True)
class Case:
    """What to explore: a world by its seed, the radius, and the number of seeds."""

    made: Callable[[int], World]
    radius: float
    seeds: int


CASES: Final = {
    "FrozenLake": Case(lambda seed: named_world("gym:FrozenLake-v1", seed, {}), 8.0, 10),
    "slippery grid 20×20, slip 0.1": Case(lambda seed: SimulatedWorld(slippery_grid(20, 20, slip=0.1), seed), 15.0, 3),
    "uniform fan of 20": Case(lambda seed: SimulatedWorld(fan(20), seed), 40.0, 3),
    "uniform fan of 100": Case(lambda seed: SimulatedWorld(fan(100), seed), 200.0, 1),
}


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    world: str
    seed: int
    steps: int
    states: int
    proven: bool
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help="parts of names; all when not given")
    parser.add_argument("--max-steps", type=int, default=MAX_STEPS)
    parser.add_argument("--json", type=Path, help="also write the runs to this file")
    given = parser.parse_args()
    runs: list[dict[str, Any]] = []
    print("| world | L | seed | steps | states | ended | seconds |\n|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if given.worlds and not any(part in name for part in given.worlds):
            continue
        for seed in range(case.seeds):
            outcome = explored(name, case, seed, given.max_steps)
            ended = "proven" if outcome.proven else "no"
            cells = (name, f"{case.radius:g}", seed, f"{outcome.steps:,}", outcome.states, ended, outcome.seconds)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            runs.append(asdict(outcome))
            if given.json:
                given.json.write_text(json.dumps(runs, indent=1) + "\n")


def explored(name: str, case: Case, seed: int, max_steps: int) -> Outcome:
    """Explores a world with ε = 1 and δ = 0.1."""
    world = case.made(seed)
    began = time.process_time()
    found = run(Certified(target=Target(radius=case.radius, epsilon=1.0, delta=0.1)), world, max_steps=max_steps)
    world.close()
    seconds = round(time.process_time() - began, 1)
    return Outcome(name, seed, found.steps, len(found.states), found.stop is StopReason.PROVEN, seconds)


if __name__ == "__main__":
    main()
