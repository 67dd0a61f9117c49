"""Trials in one kernel are those that Python makes one by one, and what a model shares changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import axplore
from axplore.proofs import claims
from axplore.proofs.bounds import IntervalModel, empirical_path, lower_path
from axplore.proofs.claims import ToProve, ToSetAside, cheapest_draws
from axplore.proofs.row_kernels import quick_mean
from axplore.proofs.travel import Travel
from axplore.types import FloatArray
from observed import drawn_counts, expected_counts, explored_model, model_of, random_model


def tried(claim: ToProve, model: IntervalModel, at_most: float = np.inf) -> FloatArray:
    """The draws that trials find from the counts alone."""
    fresh = replace(model, estimates={}, shared={}, starts={}, sharp={})
    return cheapest_draws(claim, fresh, Travel(fresh), at_most).more


@pytest.mark.parametrize("at_most", [np.inf, 100.0])
@pytest.mark.parametrize("seed", range(8))
def test_trials_in_one_kernel_are_those_in_python(seed: int, at_most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(drawn_counts(random_model(seed), (0, 1, 2), 60, seed))
    open_claims = [
        ToSetAside(goal, empirical_path(model, goal).steps - 0.3)
        for goal in range(1, len(model.numbers))
        if np.isfinite(empirical_path(model, goal).steps)
    ]
    open_claims.append(ToSetAside(model.unseen, 6.0))
    in_kernel = [tried(claim, model, at_most) for claim in open_claims]
    monkeypatch.setattr(claims, "_visits_below", claims._visits_tried)
    for claim, draws in zip(open_claims, in_kernel, strict=True):
        # Solvers aim at a residual of 1e-4 in trials, and begin elsewhere.
        assert draws == pytest.approx(tried(claim, model, at_most), rel=0.02, abs=1.0)
    assert any(draws.any() for draws in in_kernel)


def test_trials_continue_when_ways_have_been_found() -> None:
    """Which ways are found first changes no result."""
    model = explored_model("sparse")
    claim = ToSetAside(model.unseen, lower_path(model, model.unseen).steps + 3.0)
    few = tried(claim, model)
    travel = Travel(replace(model, shared={}))
    travel.per_draw_of_all()
    _, is_found = travel.found
    assert is_found.all()
    assert few.tolist() == cheapest_draws(claim, replace(model, starts={}), travel).more.tolist()
    assert few.any()


def test_where_frequencies_stay_what_follows_from_them_is_shared() -> None:
    ring = axplore.TabularMdp.from_rows({state: {"on": {(state + 1) % 3: 1.0}} for state in range(3)}, 0)
    first = model_of(expected_counts(ring, (0, 1, 2), 10))
    assert empirical_path(first, 2).steps == pytest.approx(2.0)
    assert first.frontier_steps.tolist() == []
    more = model_of(expected_counts(ring, (0, 1, 2), 20))
    assert more.estimates is first.estimates
    assert more.shared is first.shared
    assert lower_path(more, 2).steps > lower_path(first, 2).steps
    fewer_states = model_of(expected_counts(ring, (0, 1), 20))
    assert fewer_states.estimates is not first.estimates
    assert not fewer_states.shared


def test_frequencies_that_changed_share_nothing() -> None:
    first, second = (model_of(drawn_counts(random_model(3), (0, 1, 2), 60, seed)) for seed in (0, 1))
    assert first.estimates is not second.estimates
    assert first.shared is not second.shared


@pytest.mark.parametrize("seed", range(5))
def test_a_quick_mean_is_at_most_the_least_mean_at_every_shift(seed: int) -> None:
    model = model_of(drawn_counts(random_model(seed), (0, 1, 2), 60, seed))
    values = np.random.default_rng(seed).uniform(0.0, 5.0, len(model.numbers))
    for pair in range(model.n_pairs):
        likely = float(
            sum(
                model.rows.shares[entry] * values[model.rows.successors[entry]]
                for entry in range(model.rows.row_offsets[pair], model.rows.row_offsets[pair + 1])
            )
        )
        means = [quick_mean(model.rows, pair, values, shift) for shift in (-1.0, 0.0, 1e-3, 0.1, 1.0, 10.0)]
        assert means[0] == 0.0
        assert max(means) <= likely + 1e-12
