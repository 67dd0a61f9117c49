"""Several runs side by side: what they took, and whether they are right where the truth is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from axplore.atlas import Atlas
from axplore.domains import DOMAINS, domain
from axplore.mdp import State, TabularMdp
from axplore.objective import Objective
from axplore.planning.evaluation import RESET_PAIR, policy_steps
from axplore.planning.finite_horizon import resetting_policy_steps
from axplore.report.history import History, history_of
from axplore.truth import ControllableStates, ObjectiveCheck, check_optimal, check_within_radius, controllable_states
from axplore.worlds.orders import RESET_ACTION


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A run among others.

    Attributes:
        folder: of the run.
        atlas: what it found.
        history: how it went.
        truth: of its world and radius, if that is known.
        checks: whether AX_L and AX* hold on the true model; none if it is not known.
    """

    folder: Path
    atlas: Atlas
    history: History
    truth: ControllableStates | None
    checks: Mapping[Objective, ObjectiveCheck]

    @property
    def group(self) -> str:
        """What runs have in common that differ in their seed only."""
        atlas = self.atlas
        objective = "" if atlas.objective is None else f" {atlas.objective.value}"
        return (
            f"{atlas.world}: {atlas.explorer}{objective}, L={atlas.precision.radius:g}, ε={atlas.precision.epsilon:g}"
        )


def compared(folders: Sequence[Path]) -> list[ComparedRun]:
    """The runs in these folders. Truths are computed once for each world and radius."""
    truths: dict[tuple[Any, ...], ControllableStates | None] = {}
    runs = []
    for folder in folders:
        atlas, history = Atlas.load(folder), history_of(folder)
        origin = history.origin
        parameters = {} if origin is None else dict(origin.world_parameters)
        key = (None if origin is None else origin.world_name, str(parameters), atlas.precision.radius)
        if key not in truths:
            truths[key] = _truth(key[0], parameters, atlas.precision.radius)
        truth = truths[key]
        runs.append(ComparedRun(folder, atlas, history, truth, {} if truth is None else _checks(atlas, truth)))
    return runs


def table_of(runs: Sequence[ComparedRun]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows for reading."""
    headings = ("run", "what", "states", "steps", "seconds", "processor", "missing", "AX_L", "AX*")
    rows: list[tuple[str, ...]] = []
    for run in runs:
        atlas, history = run.atlas, run.history
        check = run.checks.get(Objective.OPTIMAL)
        rows.append(
            (
                str(run.folder),
                run.group,
                str(len(atlas.states)),
                f"{atlas.steps:,}" + ("" if atlas.stop.complete else " (cut short)"),
                _shown(history.seconds),
                _shown(history.processor_seconds),
                "unknown" if check is None else str(len(check.missing)),
                _verdict(run.checks.get(Objective.WITHIN_RADIUS)),
                _verdict(check),
            )
        )
    return headings, rows


def as_json(runs: Sequence[ComparedRun]) -> list[dict[str, Any]]:
    """The same for machines."""
    return [
        {
            "run": str(run.folder),
            "world": run.atlas.world,
            "explorer": run.atlas.explorer,
            "radius": run.atlas.precision.radius,
            "epsilon": run.atlas.precision.epsilon,
            "states": len(run.atlas.states),
            "steps": run.atlas.steps,
            "stop": run.atlas.stop.name,
            "seconds": run.history.seconds,
            "processor_seconds": run.history.processor_seconds,
            "missing": None if not run.checks else len(run.checks[Objective.OPTIMAL].missing),
            "objectives": {
                objective.value: {"holds": check.holds, "excess": check.excess if math.isfinite(check.excess) else None}
                for objective, check in run.checks.items()
            },
        }
        for run in runs
    ]


def true_steps(atlas: Atlas, mdp: TabularMdp) -> dict[State, float]:
    """The expected steps of the policy to each state of an atlas, on the model that was explored; exact."""
    planned = mdp.indices_of(atlas.states)
    taken = {}
    for goal, choices in zip(atlas.states, atlas.policies, strict=True):
        policy = np.full((*choices.shape[:-1], mdp.n_states), RESET_ACTION, dtype=np.int64)
        policy[..., planned[: choices.shape[-1]]] = choices
        if policy.ndim == 2:
            taken[goal] = resetting_policy_steps(mdp, mdp.index_of(goal), policy)
        else:
            pairs = np.where(policy == RESET_ACTION, RESET_PAIR, mdp.state_pairs[:-1] + policy)
            taken[goal] = float(policy_steps(mdp, pairs, goal)[mdp.initial_index])
    return taken


def _truth(name: str | None, parameters: Mapping[str, Any], radius: float) -> ControllableStates | None:
    if name is None or name not in DOMAINS:
        return None
    return controllable_states(domain(name, **parameters), radius)


def _checks(atlas: Atlas, truth: ControllableStates) -> dict[Objective, ObjectiveCheck]:
    steps, epsilon = true_steps(atlas, truth.mdp), atlas.precision.epsilon
    checks = [check(truth, steps=steps, epsilon=epsilon) for check in (check_within_radius, check_optimal)]
    return {check.objective: check for check in checks}


def _shown(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.1f}"


def _verdict(check: ObjectiveCheck | None) -> str:
    if check is None:
        return "unknown"
    if check.holds:
        return "holds"
    return "incomplete" if check.missing else f"exceeded by {check.excess:.3g}"
