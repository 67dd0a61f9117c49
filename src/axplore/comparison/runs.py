"""Runs side by side: their steps and times, and whether they are correct where the truth is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axplore.atlas import Atlas
from axplore.errors import UnknownNameError
from axplore.mdp import TabularMdp
from axplore.runs.history import History, history_of
from axplore.statistics.summaries import estimate
from axplore.target import Objective
from axplore.truth import (
    ControllableStates,
    ObjectiveCheck,
    check_optimal,
    check_within_radius,
    controllable_states,
    policy_steps_on,
)
from axplore.types import State
from axplore.worlds.catalogue import known_model


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A run in a comparison.

    Attributes:
        folder: the folder of the run.
        atlas: its atlas.
        history: its history.
        truth: the truth about its world and radius, if that is known.
        checks: whether AX_L and AX* hold on the true model; empty if that is not known.
    """

    folder: Path
    atlas: Atlas
    history: History
    truth: ControllableStates | None
    checks: Mapping[Objective, ObjectiveCheck]

    @property
    def traits(self) -> tuple[str, ...]:
        """The world, the explorer, L, ε and δ."""
        atlas, manifest, target = self.atlas, self.history.manifest, self.atlas.target
        parameters = {} if manifest is None else manifest.world_parameters
        told = ", ".join(f"{name}={value}" for name, value in parameters.items())
        objective = "" if atlas.objective is None else f" {atlas.objective.value}"
        by_workers = " with workers" if manifest is not None and manifest.request.has_workers else ""
        return (
            f"{atlas.world} ({told})" if told else atlas.world,
            f"{atlas.explorer}{objective}{by_workers}",
            f"L={target.radius:g}",
            f"ε={target.epsilon:g}",
            f"δ={target.delta:g}",
        )

    @property
    def group(self) -> str:
        """The name shared by runs that differ only in their seed."""
        world, *others = self.traits
        return f"{world}: {', '.join(others)}"


def compared(folders: Sequence[Path]) -> list[ComparedRun]:
    """Returns the runs in these folders. Truths are computed once for each world and radius."""
    truths: dict[tuple[Any, ...], ControllableStates | None] = {}
    runs = []
    for folder in folders:
        atlas, history = Atlas.load(folder), history_of(folder)
        manifest = history.manifest
        parameters = {} if manifest is None else dict(manifest.world_parameters)
        key = (None if manifest is None else manifest.world_name, str(parameters), atlas.target.radius)
        if key not in truths:
            truths[key] = _truth(key[0], parameters, atlas.target.radius)
        truth = truths[key]
        runs.append(ComparedRun(folder, atlas, history, truth, {} if truth is None else _checks(atlas, truth)))
    return runs


def grouped(runs: Sequence[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """Returns the runs of each group, by its name."""
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return groups


def means_of(runs: Sequence[ComparedRun]) -> list[dict[str, Any]]:
    """Returns the states and steps of each group, fewest and most, its mean steps, and how many runs are correct.

    The half-width is that of the 95 % confidence interval, None for a single run. The steps of runs that were cut short
    count as they are, so their mean is too small.
    """
    means = []
    for what, group in grouped(runs).items():
        steps = estimate([run.atlas.steps for run in group])
        means.append(
            {
                "what": what,
                "runs": len(group),
                "states": _fewest_and_most(len(run.atlas.states) for run in group),
                "steps": _fewest_and_most(run.atlas.steps for run in group),
                "mean_steps": steps.mean,
                "half_width": steps.half_width if math.isfinite(steps.half_width) else None,
                "cut_short": sum(not run.atlas.stop.by_own_rule for run in group),
                "right": {
                    objective.value: _number_right(group, objective)
                    for objective in (Objective.WITHIN_RADIUS, Objective.OPTIMAL)
                },
            }
        )
    return means


def _fewest_and_most(numbers: Iterable[int]) -> tuple[int, int]:
    values = list(numbers)
    return min(values), max(values)


def true_steps(atlas: Atlas, mdp: TabularMdp) -> dict[State, float]:
    """Returns the expected steps of the policy to each state of an atlas, on the model that was explored; exact."""
    plans = zip(atlas.states, atlas.policies, strict=True)
    return {goal: policy_steps_on(mdp, atlas.states, policy, goal) for goal, policy in plans}


def _truth(name: str | None, parameters: Mapping[str, Any], radius: float) -> ControllableStates | None:
    if name is None:
        return None
    try:
        model = known_model(name, parameters)
    except UnknownNameError:
        return None
    return controllable_states(model, radius)


def _checks(atlas: Atlas, truth: ControllableStates) -> dict[Objective, ObjectiveCheck]:
    steps, epsilon = true_steps(atlas, truth.mdp), atlas.target.epsilon
    checks = [check(truth, steps=steps, epsilon=epsilon) for check in (check_within_radius, check_optimal)]
    return {check.objective: check for check in checks}


def _number_right(group: Sequence[ComparedRun], objective: Objective) -> int | None:
    """Returns the number of runs that keep an objective on the true model; None if that is not known for all."""
    checks = [run.checks.get(objective) for run in group]
    return None if None in checks else sum(check is not None and check.holds for check in checks)
