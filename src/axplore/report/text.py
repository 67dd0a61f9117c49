"""The texts of the page: the answer, the guarantee, the settings, and how to check it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from axplore.atlas import Atlas
from axplore.atlas.state_report import REFUTED
from axplore.records.run import StopReason
from axplore.runs.history import History
from axplore.runs.manifest import RunManifest, current_versions
from axplore.target import Objective
from axplore.types import Status

Facts = list[tuple[str, str]]
"""Names with their values."""


def key_facts(atlas: Atlas) -> Facts:
    """Returns the numbers at the top of the page."""
    verdict = ("verdict", atlas.verdict.kind.value)
    steps = ("steps taken", f"{atlas.run.steps_in_all:,}")
    if not atlas.can_be_relied_on:
        return [verdict, ("found", f"{len(atlas.states):,}"), ("frontier", f"{len(atlas.frontier):,}"), steps]
    counts = Counter(atlas.statuses)
    by_status = [(status.value, f"{counts[status]:,}") for status in (Status.CERTIFIED, Status.SET_ASIDE, Status.OPEN)]
    return [verdict, *by_status, steps]


WORDS: Facts = [
    (
        "expected steps",
        "The mean number of steps of a policy, over all its journeys from the initial state. RESET is a step.",
    ),
    (
        "lower, upper",
        "Bounds on the expected steps: every policy takes at least the lower, and the one shown at most the upper.",
    ),
    ("regret", "The expected steps that the best policy could save against the one shown, at most."),
    (
        "radius",
        "The expected steps within which a state counts. It is taken in only through states that count themselves.",
    ),
    ("visits", "The number of times that the actions of a state were tried."),
    ("found at", "The number of steps taken when a state was admitted to the atlas."),
    (
        "by episodes",
        "An upper bound on the expected steps of some policy that episodes from RESET prove, whatever the labels hide.",
    ),
    ("frontier", "The states that were met and are not in the atlas."),
    ("row", "How an action of a state behaves: the distribution of the next state."),
    (
        "break-even",
        "How wrong every row may be, in total variation, before a claim could be false.",
    ),
]
"""What else needs an explanation."""

STATUS_WORDS: Facts = [
    (Status.CERTIFIED.value, "Some policy is proven to reach the state within the radius + ε expected steps."),
    (Status.SET_ASIDE.value, "Every policy through the states of the atlas is proven to take more than the radius."),
    (Status.OPEN.value, "Neither is proven yet."),
]
"""The statuses in general; `meanings` says them of one atlas."""


def meanings(atlas: Atlas) -> Facts:
    """Returns definitions of the statuses; none if nothing is proven. The verdict says what holds."""
    if not atlas.proven or atlas.objective is Objective.QUESTION:
        return []
    radius, epsilon = f"{atlas.target.radius:g}", f"{atlas.target.epsilon:g}"
    regret = (
        "; and its regret, the steps that the best policy through the states of the atlas could save, is at most "
        f"ε = {epsilon}"
        if atlas.objective is Objective.OPTIMAL
        else ""
    )
    return [
        (
            Status.CERTIFIED.value,
            f"Some policy reaches it within the radius {radius} + ε {epsilon} expected steps. The policy shown takes "
            f"at most its upper bound, {_upper_bounds(atlas)}{regret}.",
        ),
        (
            Status.SET_ASIDE.value,
            f"Every policy through the states of the atlas takes, on average, more than the radius of {radius} steps.",
        ),
        (Status.OPEN.value, "Neither is proven yet."),
    ]


def _upper_bounds(atlas: Atlas) -> str:
    """Returns how the upper bounds of certified states compare with the radius and ε."""
    limit = atlas.target.radius + atlas.target.epsilon
    certified = np.array([status is Status.CERTIFIED for status in atlas.statuses])
    if (atlas.upper[certified] <= limit).all():
        return "which is no more than that"
    return "which is more than that where episodes prove it of another policy, the one under “by episodes”"


def guarantee_in_the_papers_terms(atlas: Atlas) -> str:
    """Returns the promise of the verdict in the symbols of the paper; empty if there is none."""
    if not atlas.can_be_relied_on or atlas.objective is Objective.QUESTION:
        return ""
    target, objective = atlas.target, atlas.objective
    condition = "If the assumptions hold, then with" if atlas.verdict.doubts else "With"
    settings = f"L = {target.radius:g}, ε = {target.epsilon:g}, δ = {target.delta:g}"
    if not atlas.complete or atlas.reached_goal is not None:
        best = " and v(π_g) ≤ V*_K(s₀→g) + ε" if objective is Objective.OPTIMAL else ""
        missing = "" if atlas.nothing_missing else " S_L→ ⊆ K is not established."
        return (
            f"{settings}. {condition} probability at least 1 − δ: every certified g in K has v(π_g) ≤ L + ε{best}, "
            f"every state set aside has V*_K(s₀→g) > L, and all bounds hold.{missing}"
        )
    kept = (
        "AX*: v(π_g) ≤ V*_{S_L→}(s₀→g) + ε for every g in K"
        if objective is Objective.OPTIMAL
        else "AX_L: v(π_g) ≤ L + ε for every g in K"
    )
    return (
        f"{settings}. {condition} probability at least 1 − δ: S_L→ ⊆ K ⊆ S_{{L+ε}}→, and {kept}. K are the states of "
        "the atlas, S_L→ the incrementally controllable states, V*_X(s₀→g) the expected steps of the best policy "
        "restricted to X, and v(π_g) those of the policy shown."
    )


def visits_in_words(atlas: Atlas) -> str:
    """Returns a text on how unevenly visits are distributed."""
    visits = np.sort(atlas.transitions.visits)[::-1]
    total, pairs = int(visits.sum()), len(visits)
    if not total:
        return "Nothing was visited."
    tenth = max(1, pairs // 10)
    share = visits[:tenth].sum() / total
    return (
        f"{total:,} visits of {pairs:,} pairs of a state and an action; the most visited tenth ({tenth:,}) received "
        f"{100 * share:.0f} % of them. {atlas.steps - total:,} more steps were resets and steps outside the atlas."
    )


def unseen(atlas: Atlas) -> str:
    """Returns what is known of a state that was never seen."""
    return REFUTED if atlas.is_refuted else atlas.describe(_Unseen()).reason


class _Unseen:
    """A label that no state can have."""


def settings_of(atlas: Atlas, history: History) -> Facts:
    """Returns the world, the explorer, their settings, and versions."""
    facts = [
        ("World", atlas.world),
        ("Explorer", atlas.explorer),
        ("Radius (L)", "none" if atlas.objective is Objective.QUESTION else f"{atlas.target.radius:g}"),
        ("Epsilon (ε)", f"{atlas.target.epsilon:g}"),
        ("Delta (δ)", f"{atlas.target.delta:g}"),
        ("Objective", "its own" if atlas.objective is None else atlas.objective.value),
        ("Steps", f"{atlas.run.steps_in_words}, RESET included"),
        ("Rounds", f"{atlas.rounds:,}"),
        ("Why it ended", atlas.stop.value),
    ]
    manifest = history.manifest
    if manifest is not None:
        parameters = ", ".join(f"{name}={value}" for name, value in manifest.world_parameters.items())
        facts[1:1] = [("Parameters", parameters or "none but the defaults"), ("Seed", str(manifest.request.seed))]
        if manifest.request.has_workers:
            facts.append(("Workers", _workers(manifest)))
        facts += [
            ("Begun", manifest.begun),
            ("Command", manifest.command),
            ("Explored with", _listed(manifest.versions)),
        ]
    if history.seconds is not None:
        facts.append(("Time it ran", f"{history.seconds:,.1f} s"))
    if history.mishaps:
        facts.append(("Recovered from", history.mishaps))
    return [*facts, ("Page made with", _listed(current_versions()))]


def _workers(manifest: RunManifest) -> str:
    if manifest.request.ray is None:
        return f"{manifest.request.workers} on one machine"
    return f"{manifest.request.workers or 'as many as there are processors'}, on the Ray cluster {manifest.request.ray}"


def what_next(atlas: Atlas, folder: Path) -> list[tuple[str, str]]:
    """Returns what can be done with a run: sentences, each with its command."""
    run = shlex.quote(str(folder))
    found = [("Check it", f"axplore verify {run}")] if atlas.proven else []
    if atlas.stop is StopReason.ASSUMPTION_CONTRADICTED:
        found.append(("Keep all draws and assume less", f"axplore resume {run} --assume none"))
    elif atlas.stop is StopReason.CONTRADICTED:
        found.append(("Look for what changes", f"axplore doctor {shlex.quote(atlas.world)}"))
    elif not atlas.stop.by_own_rule:
        found.append(("Resume it", f"axplore resume {run}"))
    return found


def how_to_check(atlas: Atlas, folder: Path) -> Iterator[str]:
    """Yields the commands that check the run."""
    if atlas.proven:
        yield f"axplore verify {shlex.quote(str(folder))}"


def _listed(named: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())
