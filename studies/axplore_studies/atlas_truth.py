"""What an atlas of a known model says that is false."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from axplore import Atlas, TabularMdp
from axplore.atlas.verdict import VerdictKind
from axplore.properties import Property, StateSet
from axplore.records.properties import PropertyClaim
from axplore.target import Objective
from axplore.truth import ACCURACY, check_within_radius, controllable_states, optimal_steps

MOST_SWEEPS: Final = 20_000
"""The sweeps after which value iteration without a number of steps ends."""


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
    yield from _false_properties(atlas, model)
    is_map = atlas.objective is not Objective.QUESTION and atlas.reached_goal is None
    if is_map and atlas.verdict.kind is VerdictKind.PROVEN and not set(truth.states) <= set(atlas.states):
        yield "a state within the radius is missing"


def _false_properties(atlas: Atlas, model: TabularMdp) -> Iterator[str]:
    claims = atlas.certificate.of(PropertyClaim) if atlas.certificate is not None else ()
    for bounds, claim in zip(atlas.properties, claims, strict=True):
        names = {named.name: [atlas.seen[index] for index in named.states.tolist()] for named in claim.names}
        price = dict(zip(_pairs(atlas), claim.costs.tolist(), strict=False))
        true = true_value(model, bounds.prop, names, price)
        if not bounds.lower - ACCURACY <= true <= bounds.upper + ACCURACY:
            yield f"{bounds.prop.text} is {true:g}, not {bounds.interval}"


def _pairs(atlas: Atlas) -> list[tuple[Any, Any]]:
    """Returns every counted state with each of its actions."""
    counts = atlas.counts
    offered = zip(counts.states.tolist(), counts.actions, strict=True)
    return [(counts.order[state], action) for state, actions in offered for action in actions]


def true_value(
    model: TabularMdp,
    prop: Property,
    names: Mapping[str, StateSet] | None = None,
    costs: Mapping[tuple[Any, Any], float] | None = None,
) -> float:
    """Returns the value of a property from the initial state, by value iteration in plain Python.

    Args:
        model: the model.
        prop: the property.
        names: what names in it stand for.
        costs: of pairs, for a property of a cost; missing ones cost 1.
    """
    if prop.of_cost:
        return _true_cost(model, prop, names or {}, costs or {})
    value = _true_chances(model, prop, names or {})[model.initial_state]
    return 1.0 - value if prop.negated else value


def _true_cost(
    model: TabularMdp, prop: Property, names: Mapping[str, StateSet], costs: Mapping[tuple[Any, Any], float]
) -> float:
    surely = _true_chances(model, replace(prop, maximise=True), names)
    reach, _ = prop.masks(model.states, names)
    values = {state: 0.0 if chance > 1.0 - ACCURACY else math.inf for state, chance in surely.items()}
    for _ in range(MOST_SWEEPS):
        before = dict(values)
        for state, is_goal in zip(model.states, reach, strict=True):
            if not is_goal and math.isfinite(values[state]):
                values[state] = min(
                    costs.get((state, action), 1.0) + sum(p * before[y] for y, p in model.row(state, action).items())
                    for action in model.actions_of(state)
                )
        if values == before:
            break
    return values[model.initial_state]


def _true_chances(model: TabularMdp, prop: Property, names: Mapping[str, StateSet]) -> dict[Any, float]:
    reach, avoid = prop.masks(model.states, names)
    best = max if prop.maximise else min
    values = dict(zip(model.states, map(float, reach), strict=True))
    for _ in range(MOST_SWEEPS if prop.within is None else prop.within):
        before = dict(values)
        for state, is_goal, is_bad in zip(model.states, reach, avoid, strict=True):
            if not (is_goal or is_bad):
                rows = (model.row(state, action) for action in model.actions_of(state))
                values[state] = best((sum(p * before[y] for y, p in row.items()) for row in rows), default=0.0)
        if values == before:
            break
    return values


def _best(model: TabularMdp, state: Any, known: list[Any]) -> float:
    return float(optimal_steps(model, state, known)) if state in model.states else math.inf
