"""How good the estimates of what is left are: asked all along runs on ten worlds, compared with what it took."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from axplore.explorers.base import Remaining, RoundReport
from axplore.explorers.base import run as run_explorer
from axplore.explorers.registry import preset
from axplore.exploring import world_from
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document

WORLDS: Final[dict[str, tuple[str, float, float, str, dict[str, Any]]]] = {
    "confusing-chain, ε 0.1": ("confusing-chain", 4.5, 0.1, "certified", {}),
    "confusing-chain, ε 0.8": ("confusing-chain", 4.5, 0.8, "certified", {}),
    "combination-lock": ("combination-lock", 4, 0.5, "certified", {}),
    "slippery-grid 4×4": ("slippery-grid", 6, 1, "certified", {"rows": 4, "columns": 4}),
    "slippery-grid 4×4, within radius": ("slippery-grid", 6, 1, "certified-within-radius", {"rows": 4, "columns": 4}),
    "slippery-grid 6×6, no slip": ("slippery-grid", 10, 1, "certified", {"slip": 0.0}),
    "maze": ("maze", 12, 3, "certified", {}),
    "star": ("star", 4, 1, "certified", {}),
    "random-sparse, 30 states": ("random-sparse", 6, 2, "certified-within-radius", {"states": 30, "actions": 3}),
    "FrozenLake": ("gym:FrozenLake-v1", 6, 1, "certified", {}),
}
"""World, radius, ε, explorer and parameters, by name."""

GROWTH: Final = 1.05
"""An estimate is made whenever the steps have grown by this factor."""

JUDGED: Final = (1 / 3, 0.95)
"""Estimates made between these parts of the steps are judged: of the last steps, few are left to estimate."""


def trials() -> list[Trial]:
    """Returns the runs, one on each world."""
    return [Trial({"name": name}, partial(_measured, *settings)) for name, settings in WORLDS.items()]


def _measured(world_name: str, radius: float, epsilon: float, explorer_name: str, parameters: dict[str, Any]) -> Record:
    explorer = preset(explorer_name, radius=radius, epsilon=epsilon, delta=0.1, states_bound=None)
    world, _ = world_from(world_name, 0, parameters)
    estimates: list[tuple[int, Remaining]] = []

    def ask(report: RoundReport) -> None:
        if not estimates or report.steps >= GROWTH * estimates[-1][0]:
            left = explorer.remaining(report.state, seconds=10.0)
            if left is not None:
                estimates.append((report.steps, left))

    run_explorer(explorer, world, observers=[ask])
    total = world.steps
    judged = [(total - steps, left) for steps, left in estimates if JUDGED[0] <= steps / total < JUDGED[1]]
    ratios = np.array([left.steps / actual for actual, left in judged])
    within = np.array([left.fewest <= actual <= left.most for actual, left in judged])
    whole = np.array([(total - actual + left.steps) / total for actual, left in judged])
    return {
        "steps": total,
        "estimates": len(judged),
        "median_ratio": round(float(np.median(ratios)), 2),
        "within_factor_2": round(float(((ratios >= 0.5) & (ratios <= 2)).mean()), 2),
        "in_range": round(float(within.mean()), 2),
        "total_within_factor_2": round(float(((whole >= 0.5) & (whole <= 2)).mean()), 2),
    }


def summary(records: Sequence[Record]) -> Document:
    """Returns what was measured, by the name of the world."""
    return Document(
        STUDY.name, {record["name"]: {key: record[key] for key in record if key != "name"} for record in records}
    )


STUDY: Final = Study("progress", "how good the estimates of what is left are", trials, summary)
