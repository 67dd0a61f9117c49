"""What workers cost in steps: the same explorations without and with them, on the same seeds.

    python benchmarks/worker_steps.py [--runs N]

With workers every batch begins with a RESET and rounds are larger. The number of workers makes no difference, so
that one stands for all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from axplore.domains import domain
from axplore.explorers.base import run
from axplore.explorers.registry import preset
from axplore.workers.distributed import DistributedWorld
from axplore.workers.processes import Processes
from axplore.worlds.catalogue import named_world
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld


@dataclass(frozen=True)
class Case:
    """What to explore, and how."""

    world: str
    radius: float
    epsilon: float
    explorer: str = "certified"
    parameters: dict[str, Any] = field(default_factory=dict)

    def made(self, seed: int) -> World:
        """The world."""
        if ":" in self.world:
            return named_world(self.world, seed, self.parameters)
        return SimulatedWorld(domain(self.world, **self.parameters), seed)


CASES = (
    Case("confusing-chain", 4.5, 0.1),
    Case("confusing-chain", 4.5, 0.8),
    Case("combination-lock", 2.7, 0.2),
    Case("slippery-grid", 6.0, 1.0, parameters={"rows": 4, "columns": 4}),
    Case("slippery-grid", 8.0, 1.0, parameters={"rows": 6, "columns": 6}),
    Case("slippery-grid", 20.0, 1.0, parameters={"rows": 10, "columns": 10, "slip": 0.0}),
    Case("gym:FrozenLake-v1", 8.0, 1.0),
    Case("confusing-chain", 4.5, 0.4, "disco-experiment"),
    Case("confusing-chain", 4.5, 0.4, "ucb-explore-experiment"),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=5)
    runs = arguments.parse_args().runs
    print("| world | L | ε | explorer | without | with | ratio |\n|---|---|---|---|---|---|---|")
    for case in CASES:
        without = np.array([steps_of(case, seed, alone) for seed in range(runs)])
        shared = np.array([steps_of(case, seed, with_workers) for seed in range(runs)])
        settings = " ".join(f"{name}={value}" for name, value in case.parameters.items())
        ratio = f"{shared.mean() / without.mean():.2f} ± {half_width(shared, without):.2f}"
        cells = (f"{case.world} {settings}".strip(), f"{case.radius:g}", f"{case.epsilon:g}", case.explorer)
        print(f"| {' | '.join(cells)} | {without.mean():,.0f} | {shared.mean():,.0f} | {ratio} |", flush=True)


def alone(world: World, explorer: Any) -> tuple[World, Any]:
    return world, explorer


def with_workers(world: World, explorer: Any) -> tuple[World, Any]:
    return DistributedWorld(world, Processes(1)), explorer.for_workers()


def steps_of(case: Case, seed: int, mode: Callable[[World, Any], tuple[World, Any]]) -> int:
    explorer = preset(case.explorer, radius=case.radius, epsilon=case.epsilon, delta=0.1)
    world, explorer = mode(case.made(seed), explorer)
    steps = run(explorer, world).steps
    world.close()
    return steps


def half_width(numerator: np.ndarray[Any, Any], denominator: np.ndarray[Any, Any]) -> float:
    """Of a 95 % interval of the ratio of two means, as if both were normal."""
    relative = [values.std(ddof=1) / values.mean() / len(values) ** 0.5 for values in (numerator, denominator)]
    return float(1.96 * np.hypot(*relative) * numerator.mean() / denominator.mean())


if __name__ == "__main__":
    main()
