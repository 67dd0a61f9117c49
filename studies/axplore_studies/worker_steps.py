"""What workers cost in steps: the same explorations without and with them, on the same seeds.

With workers every batch begins with a RESET and rounds are larger. Neither the number of workers nor their engine
changes a draw, so that this process stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from axplore.domains import domain
from axplore.explorers.base import run
from axplore.explorers.registry import preset
from axplore.types import FloatArray
from axplore.workers.distributed import DistributedWorld
from axplore.worlds.catalogue import named_world
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.in_process import InProcess
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table


@dataclass(frozen=True)
class WorkerCase:
    """What to explore, and how."""

    world: str
    radius: float
    epsilon: float
    explorer: str = "certified"
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The world with its parameters, as text."""
        return " ".join([self.world, *(f"{name}={value}" for name, value in self.parameters.items())])

    def made(self, seed: int) -> World:
        """Returns the world."""
        if ":" in self.world:
            return named_world(self.world, seed, self.parameters)
        return SimulatedWorld(domain(self.world, **self.parameters), seed)


CASES: Final = (
    WorkerCase("confusing-chain", 4.5, 0.1),
    WorkerCase("confusing-chain", 4.5, 0.8),
    WorkerCase("combination-lock", 2.7, 0.2),
    WorkerCase("slippery-grid", 6.0, 1.0, parameters={"rows": 4, "columns": 4}),
    WorkerCase("slippery-grid", 8.0, 1.0, parameters={"rows": 6, "columns": 6}),
    WorkerCase("slippery-grid", 20.0, 1.0, parameters={"rows": 10, "columns": 10, "slip": 0.0}),
    WorkerCase("gym:FrozenLake-v1", 8.0, 1.0),
    WorkerCase("confusing-chain", 4.5, 0.4, "disco-experiment"),
    WorkerCase("confusing-chain", 4.5, 0.4, "ucb-explore-experiment"),
)


def trials(runs: int = 20) -> list[Trial]:
    """Returns the explorations without and with workers."""
    return [
        Trial({**_setting(case), "seed": seed, "workers": has_workers}, partial(_explored, case, seed, has_workers))
        for case in CASES
        for seed in range(runs)
        for has_workers in (False, True)
    ]


def _setting(case: WorkerCase) -> dict[str, Any]:
    return {"world": case.place, "radius": case.radius, "epsilon": case.epsilon, "explorer": case.explorer}


def _explored(case: WorkerCase, seed: int, has_workers: bool) -> Record:
    explorer = preset(case.explorer, radius=case.radius, epsilon=case.epsilon, delta=0.1)
    world = case.made(seed)
    if has_workers:
        explorer, world = explorer.for_workers(), DistributedWorld(world, InProcess())
    steps = run(explorer, world).steps
    world.close()
    return {"steps": steps}


def summary(records: Sequence[Record]) -> Table:
    """Returns the mean steps without and with workers, and their ratio."""
    rows, lines = [], []
    for setting in map(_setting, CASES):
        steps: dict[bool, list[int]] = {False: [], True: []}
        for record in records:
            if setting.items() <= record.items():
                steps[record["workers"]].append(record["steps"])
        without, shared = np.array(steps[False], dtype=float), np.array(steps[True], dtype=float)
        ratio, spread = shared.mean() / without.mean(), half_width(shared, without)
        rows.append(
            {
                **setting,
                "runs": len(without),
                "without": round(float(without.mean()), 1),
                "with": round(float(shared.mean()), 1),
                "ratio": round(float(ratio), 3),
                "half_width": round(spread, 3) if math.isfinite(spread) else None,
            }
        )
        lines.append(
            {
                **setting,
                "without": f"{without.mean():,.0f}",
                "with": f"{shared.mean():,.0f}",
                "ratio": f"{ratio:.2f} ± {spread:.2f}",
            }
        )
    return Table(STUDY.name, "Steps without and with workers, with 95 % confidence intervals of the ratio", rows, lines)


def half_width(numerator: FloatArray, denominator: FloatArray) -> float:
    """Returns half the width of a 95 % interval of the ratio of two means, as if both were normal."""
    if len(numerator) < 2:
        return math.nan
    relative = [values.std(ddof=1) / values.mean() / len(values) ** 0.5 for values in (numerator, denominator)]
    return float(1.96 * np.hypot(*relative) * numerator.mean() / denominator.mean())


STUDY: Final = Study(
    "worker-steps",
    "what workers cost in steps",
    trials,
    summary,
    counted="explorations of each world without and with workers",
)
