"""A run that is resumed with other assumptions, radius, ε or objective claims nothing that is false."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import Assumptions, Atlas, TabularMdp
from axplore.atlas.verdict import VerdictKind
from axplore.domains import GridTies, random_sparse, slippery_grid
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified
from axplore.proofs.claims import ToOptimise, ToProve, ToReach, ToSetAside, with_indices, with_numbers
from axplore.target import Target
from axplore.truth import ACCURACY, check_within_radius, controllable_states, optimal_steps
from axplore.worlds.simulated import SimulatedWorld

DELTA = 1e-4
"""So small that chance explains no false claim."""

TIED = Assumptions(tied=GridTies(rows=3, columns=3).outcome_of)
WITHIN, OPTIMAL = "within-radius", "optimal"
MOMENTS = (30, 300, 3000)
"""The steps after which the first part of a run ends, if it has not ended before."""


def grid(slip: float) -> TabularMdp:
    return slippery_grid(rows=3, columns=3, slip=slip)


CHANGES: list[tuple[str, TabularMdp, dict[str, Any], list[dict[str, Any]]]] = [
    ("certain grid", grid(0.02), {"assume": "deterministic"}, [{"assume": "none"}]),
    ("tied grid", grid(0.1), {"assume": TIED}, [{"assume": "none"}]),
    ("tied, then least", grid(0.1), {"assume": TIED}, [{"assume": "min-probability=0.05"}, {"assume": "none"}]),
    *(
        (f"{name} {seed}", random_sparse(7, 2, (1, 2), seed=seed), first, then)
        for seed in range(2)
        for name, first, then in (
            ("certain", {"assume": "deterministic"}, [{"assume": "none"}]),
            ("certain and farther", {"assume": "deterministic"}, [{"assume": "none", "radius": 4.0}]),
            ("least", {"assume": "min-probability=0.01"}, [{"assume": "none"}]),
            ("both ways", {"assume": "none", "max_steps": 60}, [{"assume": "min-probability=0.01"}, {}]),
            ("farther", {}, [{"radius": 4.0}, {"epsilon": 1.5}]),
            ("better", {}, [{"objective": OPTIMAL}]),
        )
    ),
]


def interrupted(
    folder: Path, model: TabularMdp, first: dict[str, Any], then: list[dict[str, Any]], moment: int
) -> Iterator[Atlas]:
    """The atlas of each part of a run that ends at a moment and is resumed in these ways."""
    settings: dict[str, Any] = {
        "radius": 3.0,
        "epsilon": 2.0,
        "delta": DELTA,
        "objective": WITHIN,
        "max_steps": moment,
    } | first
    yield axplore.explore(model, run=folder, doctor=False, seed=1, **settings)
    for way in then:
        try:
            yield axplore.resume(folder, model, max_steps=6000, **way)
        except InvalidSettingError:  # tests by episodes were begun, or something known is beyond reach
            return


def check_bounds(atlas: Atlas, model: TabularMdp) -> None:
    """Compares every bound with the exact truth."""
    seen = [*atlas.states, *(report.state for report in atlas.frontier)]
    for place, state in enumerate(seen):
        best = optimal_steps(model, state, atlas.states)
        assert atlas.lower[place] <= best + ACCURACY, f"{state!r} takes {best}, not {atlas.lower[place]} or more"
        assert best <= atlas.upper[place] + ACCURACY, f"{state!r} takes {best}, not {atlas.upper[place]} or less"
    unseen = (optimal_steps(model, state, atlas.states) for state in model.states if state not in seen)
    assert atlas.unseen_lower <= min(unseen, default=math.inf) + ACCURACY
    truth = controllable_states(model, atlas.target.radius)
    for place, goal in enumerate(atlas.states):
        policy = atlas.policy(goal)
        if policy.horizon is None and math.isfinite(atlas.upper[place]):
            choices = {goal: {state: policy(state) for state in atlas.states if state != goal}}
            beyond = check_within_radius(truth, choices, epsilon=0.0).excess
            assert beyond + truth.radius <= atlas.upper[place] + ACCURACY, f"the policy to {goal!r} takes longer"
    if atlas.verdict.kind is VerdictKind.PROVEN:
        assert set(truth.states) <= set(atlas.states)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("model", "first", "then"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_no_bound_is_false_after_a_change(
    tmp_path: Path, model: TabularMdp, first: dict[str, Any], then: list[dict[str, Any]], moment: int
) -> None:
    for part, atlas in zip(count(), interrupted(tmp_path / "run", model, first, then, moment), strict=False):
        if part > 0 or first.get("assume") != "deterministic":  # which is false of these models
            check_bounds(atlas, model)
            assert axplore.verify(atlas).holds


def test_what_is_assumed_away_ends_proven(tmp_path: Path) -> None:
    model = grid(0.02)
    *_, last = interrupted(tmp_path / "run", model, {"assume": "deterministic"}, [{"assume": "none"}], 3000)
    assert last.verdict.kind is VerdictKind.PROVEN


def test_evidence_about_another_order_is_refused() -> None:
    model = random_sparse(7, 2, (1, 2), seed=0)
    explored = run(Certified(target=Target(radius=3, epsilon=2, delta=DELTA)), SimulatedWorld(model, 0), max_steps=400)
    assert len(explored.numbers) > 2
    swapped = explored.numbers.copy()
    swapped[1:3] = swapped[2:0:-1]
    with pytest.raises(InvalidInputError, match="another order"):
        Exploration(**vars(explored) | {"numbers": swapped})


def test_claims_follow_their_goals_when_positions_move() -> None:
    before, after = np.array([0, 4, 7]), np.array([0, 4, 5, 7])
    claims: set[ToProve] = {ToReach(1, 5.0, 1), ToOptimise(1, 1.0), ToSetAside(2, 4.0), ToSetAside(3, 4.0)}
    moved: set[ToProve] = {ToReach(1, 5.0, 1), ToOptimise(1, 1.0), ToSetAside(3, 4.0), ToSetAside(4, 4.0)}
    assert with_indices(with_numbers(claims, before), after) == moved
    assert with_indices(with_numbers(claims, before), before) == claims
