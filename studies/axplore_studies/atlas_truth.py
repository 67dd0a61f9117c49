"""What an atlas of a known model says that is false."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from axplore import Atlas, TabularMdp
from axplore.atlas.verdict import VerdictKind
from axplore.truth import ACCURACY, check_within_radius, controllable_states, optimal_steps


def false_claims(atlas: Atlas, model: TabularMdp) -> Iterator[str]:
    """Yields everything that is false, in words; states that the model does not have cannot be reached."""
    seen = [*atlas.states, *(report.state for report in atlas.frontier)]
    known = [state for state in atlas.states if state in model.states]
    for place, state in enumerate(seen):
        best = _best(model, state, known)
        if atlas.lower[place] > best + ACCURACY:
            yield f"{state!r} takes {best:g} steps, less than {atlas.lower[place]:g}"
        if best > atlas.upper[place] + ACCURACY:
            yield f"{state!r} takes {best:g} steps, more than {atlas.upper[place]:g}"
    unseen = min((_best(model, state, known) for state in model.states if state not in seen), default=math.inf)
    if atlas.unseen_lower > unseen + ACCURACY:
        yield f"a state never seen takes {unseen:g} steps, less than {atlas.unseen_lower:g}"
    truth = controllable_states(model, atlas.target.radius)
    for place, goal in enumerate(atlas.states):
        if goal in model.states and math.isfinite(atlas.upper[place]):
            policy = atlas.policy(goal)
            if policy.horizon is None:
                choices = {goal: {state: policy(state) for state in known if state != goal}}
                taken = truth.radius + check_within_radius(truth, choices, epsilon=0.0).excess
                if taken > max(atlas.upper[place], truth.radius) + ACCURACY:
                    yield f"the policy to {goal!r} takes {taken:g} steps, more than {atlas.upper[place]:g}"
    if atlas.verdict.kind is VerdictKind.PROVEN and not set(truth.states) <= set(atlas.states):
        yield "a state within the radius is missing"


def _best(model: TabularMdp, state: Any, known: list[Any]) -> float:
    return float(optimal_steps(model, state, known)) if state in model.states else math.inf
