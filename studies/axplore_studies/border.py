"""Counts how often a false bound is called proven without a doubt, on systems at the border of what is assumed.

Every kind of `systems.border` is explored several times, each time with other parameters, with the doctor and without.
Each bound is then compared with the truth, which linear equations on the hidden model give:

- an *upper bound* is false if the promised policy takes longer in truth, from RESET;
- a *lower bound*, also the one of states set aside or never seen, speaks of every policy that resets outside the
  states of the atlas. It is false if one of them takes less: a search among policies of labels, restarted after any
  number of steps or not, looks for one where a policy that saw everything could take less. It may miss one, so false
  lower bounds are counted from below;
- where something survives RESET, what counts is the average over journeys in the long run, from what the system hides
  when the promise is made; of a system that changes, how it works then; of one that changes periodically, the average
  over a period.

A bound is *grossly* false if it misses the truth by more than 5 %.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import axplore
from axplore import Atlas
from axplore.atlas.verdict import VerdictKind
from axplore.errors import AxploreError
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table
from axplore_studies.systems.border import HEALTHY, KINDS, drawn, labels_of
from axplore_studies.systems.hidden_model import HiddenModel, best_label_policy

EPSILON: Final = 1.0
MAX_STEPS: Final = 20_000
GROSS: Final = 0.05
ACCURACY: Final = 1e-6
REFUSED: Final = "REFUSED"
"""In place of a verdict: the system was not explored at all."""

HORIZON: Final = 8
"""Policies that refute lower bounds restart after at most this many times the bound."""


def trials(seeds: int = 20, healthy: int = 80) -> list[Trial]:
    """Returns the explorations.

    Args:
        seeds: systems of each kind that breaks an assumption.
        healthy: systems of each kind that breaks none.
    """
    return [
        Trial({"kind": name, "number": number, "doctor": doctor}, partial(explored, name, number, doctor))
        for name, kind in KINDS.items()
        for number in range(healthy if kind.is_healthy else seeds)
        for doctor in (True, False)
    ]


def explored(kind: str, number: int, doctor: bool) -> Record:
    """Explores a system and returns what was promised, what of it is false, and what was doubted."""
    began = time.process_time()
    border = drawn(kind, number)
    system = border.system(number)
    settings: dict[str, Any] = {"objective": ("optimal", "within-radius")[number % 2], "doctor": doctor}
    failure = ""
    try:
        # A function, so that a step that fails is recovered from; the system stays the same.
        atlas = axplore.explore(lambda: system, border.radius, EPSILON, seed=number, max_steps=MAX_STEPS, **settings)
    except AxploreError as error:  # also before exploring, where the doctor or the first resets meet what cannot be
        failure, known = type(error).__name__, getattr(error, "atlas", None)
        if not isinstance(known, Atlas):
            return {"verdict": REFUSED, "failure": failure, "doubted": True, "issues": [], "false": [], "gross": 0}
        atlas = known
    false = list(false_bounds(atlas, border.models_after(system.plays, system.hidden)))
    return {
        "verdict": atlas.verdict.kind.name,
        "failure": failure,
        "doubted": bool(atlas.verdict.doubts),
        "issues": sorted({finding.issue.name for finding in atlas.findings if finding.is_doubt}),
        "false": [
            [what, str(goal), bound, truth if math.isfinite(truth) else None] for what, goal, bound, truth in false
        ],
        "gross": int(sum(_is_gross(bound, truth) for _, _, bound, truth in false)),
        "by_episodes": len(atlas.tests),
        "steps": atlas.steps,
        "plays": system.plays,
        "seconds": round(time.process_time() - began, 3),
    }


def _is_gross(bound: float, truth: float) -> bool:
    return abs(truth - bound) > GROSS * min(truth, bound)


def false_bounds(atlas: Atlas, models: Sequence[HiddenModel]) -> Iterator[tuple[str, Any, float, float]]:
    """Yields each false bound: which it is, of which state, the bound and the truth.

    Args:
        atlas: what was found of a system.
        models: how the system works when this is promised, in each phase of it.
    """
    if not atlas.proven:
        return
    for place, goal in enumerate(atlas.states):
        upper = float(atlas.upper[place])
        if place and math.isfinite(upper):
            truth = _mean([promised_steps(model, atlas, goal) for model in models])
            if truth > upper * (1 + ACCURACY):
                yield "upper", goal, upper, truth
    for goal in atlas.states[1:]:
        proof = atlas.by_episodes(goal)
        if proof is not None:
            truth = _mean([model.restarted_steps(proof.policy, proof.state, proof.horizon) for model in models])
            if truth > proof.within * (1 + ACCURACY):
                yield "episodes", proof.state, proof.within, truth
    lower = dict(zip(atlas.seen, atlas.lower.tolist(), strict=False))  # one met last may have none
    for goal in labels_of(models[0]):
        bound = lower.get(goal, atlas.unseen_lower)
        if goal != atlas.states[0]:
            truth = _mean([least_known(model, atlas, goal, bound) for model in models])
            if truth < bound * (1 - ACCURACY):
                yield "lower", goal, bound, truth


def promised_steps(model: HiddenModel, atlas: Atlas, goal: Any) -> float:
    """Returns what the policy to a state takes in truth."""
    policy = atlas.policy(goal)
    if policy.horizon is None:
        return model.policy_steps(policy, goal)
    return model.restarted_steps(policy, goal, policy.horizon)


def least_known(model: HiddenModel, atlas: Atlas, goal: Any, bound: float) -> float:
    """Returns the steps of a policy that refutes a lower bound; infinite if none is known."""
    if bound <= 0.0 or model.least_steps(goal, atlas.states) >= bound * (1 - ACCURACY):
        return math.inf
    horizon = HORIZON * math.ceil(min(bound, 40.0))
    return best_label_policy(model, goal, atlas.states, bound * (1 - GROSS), horizon)[0]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def summary(records: Sequence[Record]) -> Table:
    """Returns what became of each kind, each family and all."""
    rows = []
    families: dict[str, list[str]] = {}
    for name, kind in KINDS.items():
        families.setdefault(kind.family, []).append(name)
    for family, names in families.items():
        rows += [_row(family, name, [run for run in records if run["kind"] == name]) for name in names]
        rows.append(_row(family, "all", [run for run in records if run["kind"] in names]))
    faulty = [run for run in records if KINDS[run["kind"]].family != HEALTHY]
    rows.append(_row("all that break an assumption", "all", faulty))
    lines = [{key: value for key, value in row.items() if key != "kind"} for row in rows if row["kind"] == "all"]
    return Table(STUDY.name, "False bounds that are called proven, by kinds of systems", rows, lines)


def is_false_promise(run: Record) -> bool:
    """Returns whether something false is called proven and nothing is doubted."""
    return bool(run["false"]) and run["verdict"] == VerdictKind.PROVEN.name


def _row(family: str, name: str, runs: Sequence[Record]) -> dict[str, Any]:
    on, off = ([run for run in runs if run["doctor"] is doctor] for doctor in (True, False))
    return {
        "family": family,
        "kind": name,
        "systems": len(on),
        "a_bound_is_false": sum(bool(run["false"]) for run in on),
        "proven_and_false": sum(is_false_promise(run) for run in on),
        "of_them_gross": sum(is_false_promise(run) and run["gross"] > 0 for run in on),
        "unfinished_and_false": sum(
            bool(run["false"]) and run["verdict"] == "UNFINISHED" and not run["doubted"] for run in on
        ),
        "doubted": sum(bool(run["doubted"]) for run in on),
        "refused": sum(run["verdict"] == REFUSED for run in on),
        "without_doctor_proven_and_false": sum(is_false_promise(run) for run in off),
        "without_doctor_gross": sum(is_false_promise(run) and run["gross"] > 0 for run in off),
    }


STUDY: Final = Study(
    "border",
    "how often a false bound is called proven, on systems that break assumptions",
    trials,
    summary,
    counted="systems of each kind",
)
