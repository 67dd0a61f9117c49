"""What the page says in words: the answer, the guarantee, the settings, and how to check it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from axplore.atlas import Atlas
from axplore.runs.history import History
from axplore.runs.manifest import RunManifest, current_versions
from axplore.target import Objective
from axplore.types import Status

Facts = list[tuple[str, str]]
"""Names with their values."""


def headline_of(atlas: Atlas) -> str:
    """The verdict in a sentence."""
    return atlas.verdict.headline


def key_facts(atlas: Atlas) -> Facts:
    """The numbers that stand at the top."""
    certified = sum(status is Status.CERTIFIED for status in atlas.statuses)
    aside = sum(status is Status.SET_ASIDE for status in atlas.statuses)
    undecided = len(atlas.statuses) - certified - aside
    facts = [("steps taken", f"{atlas.steps:,}")]
    if atlas.proven:
        sure = f"at least {1 - atlas.target.delta:.4g}"
        return [
            ("certified", f"{certified:,}"),
            ("set aside", f"{aside:,}"),
            ("open", f"{undecided:,}"),
            *facts,
            ("probability that all holds", sure),
        ]
    return [
        ("found", f"{len(atlas.states):,}"),
        ("left out", f"{len(atlas.left_out):,}"),
        *facts,
        ("proven", "nothing"),
    ]


def guarantee_in_plain_words(atlas: Atlas) -> list[str]:
    """What can be relied on, a sentence or two each."""
    if not atlas.proven:
        return [
            f"The explorer {atlas.explorer} leaves no certificate: nothing on this page is proven, and the steps are "
            "its own optimistic estimates. Explore with `certified` for bounds that anybody can check."
        ]
    radius, epsilon = f"{atlas.target.radius:g}", f"{atlas.target.epsilon:g}"
    return [
        f"With a probability of at least {1 - atlas.target.delta:.4g}, everything below is true at once.",
        "Certified: on average, the policy shown for a state arrives within the steps given as its upper bound."
        + _optimality(atlas),
        f"Set aside: no policy through the states of the atlas arrives within {radius} expected steps on average.",
        _missing(atlas),
        "It rests on three assumptions: RESET leads to one and the same state; a state and an action determine the "
        "distribution of the next state; and states are told apart by their labels.",
        f"The precision asked for was ε = {epsilon}: a certified state may take up to {epsilon} steps more than the "
        "radius.",
    ]


def guarantee_in_the_papers_terms(atlas: Atlas) -> list[str]:
    """The same with the paper's symbols; none if nothing is proven."""
    if not atlas.proven:
        return []
    target, objective = atlas.target, atlas.objective
    settings = f"L = {target.radius:g}, ε = {target.epsilon:g}, δ = {target.delta:g}"
    if not atlas.nothing_missing:
        return [
            f"{settings}. With probability at least 1 − δ: every certified g in K has v(π_g) ≤ L + ε"
            + (" and v(π_g) ≤ V*_K(s₀→g) + ε" if objective is Objective.OPTIMAL else "")
            + ", every state set aside has V*_K(s₀→g) > L, and all bounds hold. S_L→ ⊆ K is not established.",
        ]
    kept = (
        "AX*: v(π_g) ≤ V*_{S_L→}(s₀→g) + ε for every g in K"
        if objective is Objective.OPTIMAL
        else "AX_L: v(π_g) ≤ L + ε for every g in K"
    )
    return [
        f"{settings}. With probability at least 1 − δ: S_L→ ⊆ K ⊆ S_{{L+ε}}→, and {kept}. K are the states of the "
        "atlas, S_L→ the incrementally controllable states, V*_X(s₀→g) the expected steps of the best policy "
        "restricted to X, and v(π_g) those of the policy shown."
    ]


def visits_in_words(atlas: Atlas) -> str:
    """Returns how unevenly the samples are spread."""
    visits = np.sort(atlas.transitions.visits)[::-1]
    total, pairs = int(visits.sum()), len(visits)
    if not total:
        return "Nothing was visited."
    tenth = max(1, pairs // 10)
    share = visits[:tenth].sum() / total
    return (
        f"{total:,} visits of {pairs:,} pairs of a state and an action; the tenth visited most often ({tenth:,}) took "
        f"{100 * share:.0f} % of them. {atlas.steps - total:,} more steps were resets and steps outside the atlas."
    )


def unseen(atlas: Atlas) -> str:
    """Returns what is known of a state that was never seen."""
    return atlas.status(_Unseen()).reason


class _Unseen:
    """A label that no state has."""


def settings_of(atlas: Atlas, history: History) -> Facts:
    """What was explored, by what, with what."""
    facts = [
        ("World", atlas.world),
        ("Explorer", atlas.explorer),
        ("Radius (L)", f"{atlas.target.radius:g}"),
        ("Epsilon (ε)", f"{atlas.target.epsilon:g}"),
        ("Delta (δ)", f"{atlas.target.delta:g}"),
        ("Objective", "its own" if atlas.objective is None else atlas.objective.value),
        ("Steps", f"{atlas.steps:,}, RESET included"),
        ("Rounds", f"{atlas.rounds:,}"),
        ("Why it ended", atlas.stop.value),
    ]
    manifest = history.manifest
    if manifest is not None:
        parameters = ", ".join(f"{name}={value}" for name, value in manifest.world_parameters.items())
        facts[1:1] = [("Parameters", parameters or "none but the defaults"), ("Seed", str(manifest.seed))]
        if manifest.has_workers:
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
    if manifest.ray is None:
        return f"{manifest.workers} on one machine"
    return f"{manifest.workers or 'as many as there are processors'}, on the Ray cluster {manifest.ray}"


def how_to_check(atlas: Atlas, folder: Path) -> Iterator[str]:
    """Commands that check the page, or say why there are none."""
    if atlas.proven:
        yield f"axplore verify {shlex.quote(str(folder))}"


def _optimality(atlas: Atlas) -> str:
    if atlas.objective is not Objective.OPTIMAL:
        return ""
    return " Its regret is how many steps the best policy through the states of the atlas could save."


def _missing(atlas: Atlas) -> str:
    if atlas.nothing_missing:
        return "Nothing within the radius is missing: neither a state that was seen nor one that never was."
    return "The run is not complete: open states, and states never seen, may be within the radius."


def _listed(named: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())
