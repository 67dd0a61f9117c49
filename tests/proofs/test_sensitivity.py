"""What bounds gain from more draws, against differences of the bounds themselves.

Gains take the balls to be around the frequencies, so the bounds are compared on such balls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from axplore.mdp import TabularMdp
from axplore.proofs.bounds import (
    IntervalModel,
    gain_of_lower,
    gain_of_regret,
    gain_of_upper,
    lower_path,
    regret_path,
    upper_path,
)
from axplore.proofs.sensitivity import LEAST_MET, NOWHERE, expected_visits
from axplore.statistics.centred import central_ball
from axplore.types import FloatArray
from observed import drawn_counts, made_up_model, model_of, random_model

STEP = 1e-3
SITUATIONS = [(seed, visits) for seed in range(8) for visits in (30, 300)]


def exactly(model: IntervalModel, slack: FloatArray) -> IntervalModel:
    """The same frequencies with other slacks and no sharper balls, solved to the last digits."""
    return replace(model, rows=model.rows._replace(slack=slack), tolerance=1e-11, estimates={}, counts=None)


def observed_model(seed: int, visits: int) -> IntervalModel:
    counts = drawn_counts(random_model(seed), (0, 1, 2), visits, seed)
    model = model_of(counts, limit=200.0)
    around_frequencies = replace(model, rows=model.rows._replace(shares=model.rows.frequencies))
    # Those of the rows by themselves, and no two are equal: where two actions tie, a bound has no slope.
    assert model.log_levels is not None
    rows = np.split(counts.counts.astype(np.float64), counts.row_offsets[1:-1])
    slack = [central_ball(row, level, row.copy()) for row, level in zip(rows, model.log_levels, strict=True)]
    return exactly(around_frequencies, np.array(slack) * (1 + 0.01 * np.arange(model.n_pairs)))


def differences(model: IntervalModel, bound: Callable[[IntervalModel, int], float], goal: int) -> FloatArray:
    """The derivative of a bound by the logarithm of the slack of each pair, [P]."""
    slopes = []
    for pair in range(model.n_pairs):
        less, more = model.rows.slack.copy(), model.rows.slack.copy()
        less[pair] *= 1 - STEP
        more[pair] *= 1 + STEP
        slopes.append((bound(exactly(model, more), goal) - bound(exactly(model, less), goal)) / (2 * STEP))
    return np.array(slopes)


def by_state(model: IntervalModel, gain: FloatArray) -> FloatArray:
    """The gains of the pairs of each known state together, [n]: pairs that nearly tie share theirs."""
    owners = np.repeat(np.arange(model.n_known), np.diff(model.rows.state_pairs))
    return np.bincount(owners, gain, minlength=model.n_known).astype(np.float64)


@pytest.mark.parametrize(("seed", "visits"), SITUATIONS)
def test_the_gain_of_an_upper_bound_is_its_slope(seed: int, visits: int) -> None:
    model = observed_model(seed, visits)
    for goal in range(1, len(model.numbers)):
        path = upper_path(model, goal)
        if path.proven:
            slopes = differences(model, lambda *other: upper_path(*other).steps, goal)
            assert gain_of_upper(model, path) == pytest.approx(slopes, rel=1e-3, abs=1e-4 * slopes.max())


@pytest.mark.parametrize(("seed", "visits"), [*SITUATIONS, *((seed, 10_000) for seed in (0, 1, 3))])
def test_the_gain_of_a_lower_bound_is_its_slope_or_what_it_will_be(seed: int, visits: int) -> None:
    """Where rows are known badly, a slope may be small now and larger after some more draws."""
    model = observed_model(seed, visits)
    for goal in range(1, len(model.numbers) + 1):
        path = lower_path(model, goal)
        if path.steps < 0.9 * model.limit:
            slopes = by_state(model, -differences(model, lambda *other: lower_path(*other).steps, goal))
            gains = by_state(model, gain_of_lower(model, path))
            assert (gains >= 0.999 * slopes - 1e-4 * slopes.max() - LEAST_MET).all()
            if visits == 10_000:
                assert gains == pytest.approx(slopes, rel=0.01, abs=1e-3 * slopes.max() + 1e-9)


@pytest.mark.parametrize(("seed", "visits"), SITUATIONS)
def test_the_gain_of_a_regret_is_its_slope_to_a_few_percent(seed: int, visits: int) -> None:
    model = observed_model(seed, visits)

    def regret_of(other: IntervalModel, goal: int) -> float:
        return float(regret_path(other, upper_path(other, goal), lower_path(other, goal)).values[0])

    for goal in range(1, len(model.numbers)):
        upper = upper_path(model, goal)
        regret = regret_path(model, upper, lower_path(model, goal))
        if upper.proven and regret.values[0] > 1e-3:
            slopes = by_state(model, differences(model, regret_of, goal))
            assert by_state(model, gain_of_regret(model, regret)) == pytest.approx(
                slopes, rel=0.05, abs=0.05 * slopes.max()
            )


def test_the_situations_above_have_gains() -> None:
    gains = {"upper": 0, "lower": 0, "regret": 0}
    for seed, visits in SITUATIONS:
        model = observed_model(seed, visits)
        for goal in range(1, len(model.numbers)):
            upper, lower = upper_path(model, goal), lower_path(model, goal)
            gains["lower"] += bool(gain_of_lower(model, lower).any())
            if upper.proven:
                gains["upper"] += bool(gain_of_upper(model, upper).any())
                gains["regret"] += bool(gain_of_regret(model, regret_path(model, upper, lower)).any())
    assert min(gains.values()) >= 20


def test_a_pair_that_no_extreme_model_plays_gains_nothing() -> None:
    mdp = TabularMdp.from_rows({"s": {"sure": {"g": 1.0}, "stay": {"s": 1.0}}, "t": {"back": {"s": 1.0}}, "g": {}}, "s")
    model = model_of(drawn_counts(mdp, [0, 1], 100, seed=0))
    goal = model.numbers.tolist().index(2)
    gain = gain_of_upper(model, upper_path(model, goal))
    assert gain[0] > 0
    assert gain[1:].tolist() == [0.0, 0.0]


def test_expected_visits_are_those_of_the_geometric_series() -> None:
    # From 0: half stays, a quarter goes on to 1, the rest is lost; 1 resets; the goal is not met.
    rows = made_up_model([[{0: 0.5, 1: 0.5}], [{0: 1.0}]], slack=1.0).rows
    row = np.array([0.5, 0.25, 1.0])
    start, policy = np.array([1.0, 0.0]), np.array([0, 1])
    nowhere = expected_visits(rows, 2, policy, row, NOWHERE, np.zeros(2, dtype=np.int64), start)
    assert nowhere == pytest.approx([4.0, 1.0], abs=1e-5)  # m0 = 1 + m0 / 2 + m1, m1 = m0 / 4
    ending = expected_visits(rows, 2, policy, row, NOWHERE, np.array([0, 1]), start)
    assert ending == pytest.approx([2.0, 0.5], abs=1e-5)
    kept = expected_visits(rows, 2, policy, row, 1, np.array([0, 1]), start)
    assert kept == pytest.approx([2.0, 1.0], abs=1e-5)


def test_actions_that_are_as_good_share_their_gain() -> None:
    # The lower bound of s rises only if all three actions are drawn.
    mdp = TabularMdp.from_rows({"s": {action: {"s": 1.0} for action in "abc"}, "g": {}}, "s")
    model = model_of(drawn_counts(mdp, [0], 100, seed=0))
    gain = gain_of_lower(model, lower_path(model, model.unseen))
    assert gain[0] > 0
    assert gain == pytest.approx(np.full(3, gain[0]))
