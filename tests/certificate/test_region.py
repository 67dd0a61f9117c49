"""The verifier's confidence region, held to closed forms, to its definition, and to the explorer's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import betaln, gammaln, psi

from axplore.certificate.levels import pair_weights
from axplore.certificate.region import (
    Draws,
    confidence_region,
    digamma,
    least_probabilities,
    log_gamma,
    own_wealth,
    shared_budget,
)
from axplore.statistics import confidence
from axplore.types import FloatArray
from balls import least_mean
from made_counts import as_entries, made_counts

rows_of_counts = st.lists(st.integers(1, 60), min_size=1, max_size=6).filter(lambda row: sum(row) > len(row))
levels = st.floats(1e-6, 0.5)


def divergence(shares: Sequence[float], row: Sequence[float]) -> float:
    return math.fsum(
        share * math.log(share / probability) if probability > 0 else math.inf
        for share, probability in zip(shares, row, strict=True)
        if share > 0
    )


def test_the_weights_of_pairs_are_those_of_the_formula() -> None:
    assert pair_weights([2, 0, 3]) == pytest.approx([10 / 110 / 2] * 2 + [10 / 156 / 3] * 3)


@given(st.lists(st.integers(0, 5), max_size=300))
def test_the_weights_of_pairs_sum_to_at_most_one(n_actions: list[int]) -> None:
    assert math.fsum(pair_weights(n_actions)) <= 1


def test_the_weights_of_all_states_use_the_whole_of_delta() -> None:
    assert math.fsum(pair_weights([1] * 40_000)) == pytest.approx(1, abs=2.6e-4)  # all but 10 / 40,010


def drawn(rows: Sequence[Sequence[int]], level: float) -> Draws:
    """Draws of pairs of which each successor came at least twice."""
    lengths = [len(row) for row in rows]
    return Draws(
        totals=np.array([sum(row) for row in rows], dtype=np.float64),
        log_levels=np.full(len(rows), math.log(level)),
        starts=np.cumsum([0, *lengths[:-1]]),
        owners=np.repeat(np.arange(len(rows)), lengths),
        counts=np.array(list(itertools.chain(*rows)), dtype=np.float64),
    )


def wealth(row: Sequence[int], probabilities: Sequence[float]) -> float:
    """What the bets have won, on average over κ, if the successors came one after the other."""
    wealths = []
    for scale in (4, 100, 2500, 62500):
        won, draw = 1.0, 0
        for count, p in zip(row, probabilities, strict=True):
            for earlier in range(count):
                won *= (scale * p + earlier) / ((scale + draw) * p)
                draw += 1
        wealths.append(won)
    return math.fsum(part * wealth for part, wealth in zip((0.375, 0.375, 0.15, 0.1), wealths, strict=True))


rows_of_repeats = st.lists(st.integers(2, 60), min_size=1, max_size=6)


@given(rows_of_repeats, levels, st.data())
def test_a_row_that_the_level_does_not_rule_out_lies_in_every_ball(row: list[int], level: float, data: Any) -> None:
    raw = [data.draw(st.lists(st.floats(0.01, 1), min_size=len(row) + 1, max_size=len(row) + 1)) for _ in range(2)]
    near = [[count + 3 * noise for count, noise in zip([*row, 0], noises, strict=True)] for noises in raw]
    probabilities, point = ([weight / sum(weights) for weight in weights][:-1] for weights in near)
    draws = drawn([row], level)
    if wealth(row, probabilities) <= 1 / level:
        for shares, slack in (draws.balls(np.array(point)), draws.central_balls()):
            assert divergence(shares.tolist(), probabilities) <= slack[0]


@given(rows_of_repeats, st.data())
def test_the_ball_of_a_point_has_its_closed_form(row: list[int], data: Any) -> None:
    raw = data.draw(st.lists(st.floats(0.1, 1), min_size=len(row) + 1, max_size=len(row) + 1))
    point = [weight / sum(raw) for weight in raw][:-1]
    level = min(1 / wealth(row, point), 1.0)
    shares, (slack,) = drawn([row], level).balls(np.array(point))
    if level < 1:  # then the point itself is on the border
        assert slack == pytest.approx(divergence(shares.tolist(), point), abs=1e-7)


@given(st.integers(2, 400), levels)
def test_the_slopes_of_one_successor_do_not_matter(n_draws: int, level: float) -> None:
    shares, (slack,) = drawn([[n_draws]], level).central_balls()
    assert shares.tolist() == [1.0]
    assert wealth([n_draws], [math.exp(-slack)]) >= (1 - 1e-9) / level


def test_the_shared_budget_of_pairs_that_stay_certain_has_its_closed_form() -> None:
    assert shared_budget([[9], [], [4]], [0, 0, 0], [0.2, 0.2, 0.1], 0.02) == pytest.approx(
        -math.log(0.02) - math.log(0.9) - math.log(0.95)
    )


def test_a_surprise_costs_the_shared_budget_its_bet() -> None:
    # Against p = (T - 2) / (T - 1), which gives the record p^(T - 2) (1 - p), the bet on T was 0.1 / (T (T - 1)).
    draw, p = 7, 5 / 6
    bet, truth = 0.1 / (draw * (draw - 1)), p ** (draw - 2) * (1 - p)
    expected = -math.log(0.02) - math.log(0.9) + math.log(truth / bet)
    assert shared_budget([[8, 1]], [draw], [0.2], 0.02) == pytest.approx(expected)
    assert shared_budget([[8, 1]], [2], [0.2], 0.02) == pytest.approx(-math.log(0.02) - math.log(0.9) + math.log(20))


@pytest.mark.parametrize("after", [10, 30])
def test_a_pair_joins_later_budgets_without_its_first_draws(after: int) -> None:
    weights = [0.2, 0.1]
    assert shared_budget([[99, 1], [9]], [after, 0], weights, 0.02, after) == pytest.approx(
        -math.log(0.02) - math.log(0.95)
    )
    # Four draws alike since it joined, and the fifth differs: the best p gives them (4/5)^4 / 5.
    draw, truth = after + 5, (4 / 5) ** 4 / 5
    bet = 0.1 * after / (draw * (draw - 1))
    expected = -math.log(0.02) - math.log(0.9) - math.log(0.95) + math.log(truth / bet)
    assert shared_budget([[99, 1], [9]], [draw, 0], weights, 0.02, after) == pytest.approx(expected)


@st.composite
def drawn_rows(draw: Any) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """Numbers of actions, and for each pair counts and first draws that a record can have."""
    n_actions = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    rows, first_draws = [], []
    for _ in range(sum(n_actions)):
        record = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2]), max_size=80))
        kinds = list(dict.fromkeys(record))
        rows.append([record.count(kind) for kind in kinds])
        first_draws.append([record.index(kind) + 1 for kind in kinds])
    return n_actions, rows, first_draws


@given(drawn_rows(), st.floats(0.01, 0.5))
def test_verifier_and_explorer_find_the_same_region(
    drawn: tuple[list[int], list[list[int]], list[list[int]]], delta: float
) -> None:
    n_actions, rows, first_draws = drawn
    counts = made_counts(as_entries(rows, first_draws), n_actions)
    own = confidence_region(counts, n_actions, delta)
    theirs = confidence.confidence_region(counts, delta)
    assert own.pairs.tolist() == np.flatnonzero(np.isfinite(theirs.slack)).tolist()
    assert own.slack == pytest.approx(theirs.slack[own.pairs], rel=1e-8)
    repeated = np.isfinite(theirs.slack)[np.repeat(np.arange(len(rows)), np.diff(counts.row_offsets))]
    assert own.shares == pytest.approx(theirs.shares[repeated & (counts.counts > 1)], rel=1e-9)


@settings(max_examples=30)
@given(st.integers(2, 10**6), st.integers(0, 10**8), st.floats(-30, -2))
def test_both_sides_find_the_same_least_probability_and_the_bets_beyond_it(
    again: int, others: int, log_level: float
) -> None:
    """Scipy says what a bettor has won there, as a mixture of Beta-binomial laws."""
    (own,) = least_probabilities(np.array([float(again)]), np.array([float(others)]), np.array([log_level]))
    theirs = confidence.safe_low(float(again), float(again + others), log_level)
    assert theirs <= own
    assert own == pytest.approx(theirs, rel=1e-3, abs=1e-11)
    if own > 1e-9:
        won = [
            part
            * math.exp(
                betaln(scale * own + again, scale * (1 - own) + others) - betaln(scale * own, scale * (1 - own))
                - again * math.log(own) - others * math.log1p(-own)
            )
            for scale, part in zip((4, 100, 2500, 62500), (0.1, 0.2, 0.3, 0.4), strict=True)
        ]  # fmt: skip
        assert math.log(math.fsum(won)) == pytest.approx(-log_level, rel=1e-3, abs=1e-4 * math.sqrt(again + others))


@settings(max_examples=20)
@given(st.lists(st.integers(1, 300), min_size=5, max_size=9), st.floats(0.01, 0.5), st.data())
def test_rows_with_many_successors_have_the_same_bounds_on_both_sides(row: list[int], delta: float, data: Any) -> None:
    values = np.array(data.draw(st.lists(st.floats(0, 9), min_size=len(row), max_size=len(row))))
    counts = made_counts(as_entries([row]), [1])
    own, theirs = confidence_region(counts, [1], delta), confidence.confidence_region(counts, delta)
    assert own.supports.floors == pytest.approx(theirs.lows, rel=1e-5, abs=1e-11)
    assert (own.supports.floors >= theirs.lows).all()
    assert own.least_means(values)[0] >= own.supports.floors @ values * (1 - 1e-12)


def test_the_bets_on_one_successor_hardly_ever_rule_out_the_truth_whenever_one_looks() -> None:
    """Someone who looks after every draw, and stops at the first failure, finds one as seldom as the level says."""
    rng, level, failures = np.random.default_rng(7), 0.1, 0
    for truth in (0.02, 0.2, 0.5, 0.9):
        came = np.cumsum(rng.random((150, 400)) < truth, axis=1).astype(np.float64)
        draws = np.tile(np.arange(1.0, 401.0), (150, 1))
        log_wealth = own_wealth(came.ravel(), (draws - came).ravel())(np.full(came.size, math.log(truth)))
        failures += int((log_wealth.reshape(came.shape) >= -math.log(level)).any(axis=1).sum())
    assert 0 < failures <= 600 * level


@given(st.integers(2, 2000), st.floats(0, 9))
def test_the_least_mean_of_a_certain_row_has_its_closed_form(n_draws: int, value: float) -> None:
    region = confidence_region(made_counts(as_entries([[n_draws]])), [1], 0.1)
    assert region.least_means(np.array([value]))[0] == pytest.approx(value * math.exp(-region.slack[0]), abs=1e-9)


@given(rows_of_counts, st.data())
def test_the_least_mean_over_a_ball_lies_between_a_dual_bound_and_a_row_in_the_ball(row: list[int], data: Any) -> None:
    values = np.array(data.draw(st.lists(st.floats(0.05, 1), min_size=len(row), max_size=len(row))))
    region = confidence_region(made_counts(as_entries([row])), [1], 0.1)
    costs = values[region.successors]
    (bound,), extreme = region.draws.least_means(region.shares, region.slack, costs)
    low, attained = least_mean(costs, region.shares, float(region.slack[0]))
    high = attained @ costs
    assert high - low < 1e-7
    assert low - 1e-12 <= bound <= high + 1e-12
    assert extreme @ costs == pytest.approx(bound, rel=1e-9, abs=1e-12)


@given(rows_of_repeats.filter(lambda row: len(row) > 1), st.data())
def test_the_least_mean_is_the_least_over_all_rows_that_the_martingale_accepts(row: list[int], data: Any) -> None:
    """A search for a row with a small mean that the bets do not rule out; the bound must lie below, and not far."""
    values = np.array(data.draw(st.lists(st.floats(0.1, 9), min_size=len(row), max_size=len(row))))
    region = confidence_region(made_counts(as_entries([row])), [1], 0.1)
    limit = -float(region.draws.log_levels[0])
    bound = region.least_means(values)[0]

    def room(logs: FloatArray) -> float:
        return limit - math.log(wealth(row, np.exp(logs).tolist()))

    def mean(logs: FloatArray) -> float:
        return float(np.exp(logs) @ values)

    start = np.log(np.array(row) / sum(row)) - 1e-3
    solve: Any = minimize
    answer = solve(
        mean,
        start,
        method="SLSQP",
        bounds=[(-30, 0)] * len(row),
        constraints=[{"type": "ineq", "fun": room}, {"type": "ineq", "fun": lambda logs: 1 - np.exp(logs).sum()}],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    # The accepted rows are a convex set, by their logarithms, and the start is one of them.
    accepted, towards = answer.x, 0.0
    while room(accepted) < 0 or np.exp(accepted).sum() > 1:
        towards = min(max(2 * towards, 1e-9), 1.0)
        accepted = (1 - towards) * answer.x + towards * start
    assert bound <= mean(accepted)
    if answer.success:
        assert bound >= mean(accepted) * 0.99 - 1e-3


@given(rows_of_counts, st.data())
def test_no_row_of_the_ball_has_a_smaller_mean(row: list[int], data: Any) -> None:
    numbers = st.lists(st.floats(0, 1), min_size=len(row), max_size=len(row))
    values, noise = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    region = confidence_region(made_counts(as_entries([row])), [1], 0.1)
    tilted = region.shares * np.exp(data.draw(st.floats(0, 3)) * noise[region.successors])
    candidate = tilted / tilted.sum() * data.draw(st.floats(0.3, 1))
    if divergence(region.shares.tolist(), candidate.tolist()) <= region.slack[0]:
        mean, _ = region.draws.least_means(region.shares, region.slack, values[region.successors])
        assert candidate @ values[region.successors] >= mean[0] * (1 - 1e-12) - 1e-12


def test_pairs_that_are_not_known_have_the_least_mean_zero() -> None:
    region = confidence_region(made_counts(as_entries([[1, 1], [], [50]])), [1, 2], 0.1)
    means = region.least_means(np.array([5.0, 5.0]))
    assert means[:2].tolist() == [0, 0]
    assert means[2] > 4


def test_a_region_without_pairs_has_no_means() -> None:
    assert len(confidence_region(made_counts(as_entries([])), [0], 0.1).least_means(np.ones(1))) == 0


@given(st.floats(1e-6, 1e12))
def test_the_logarithm_of_gamma_is_that_of_scipy(x: float) -> None:
    assert log_gamma(np.array([x]))[0] == pytest.approx(gammaln(x), rel=1e-14, abs=2e-13)


@given(st.floats(1e-6, 1e12))
def test_digamma_is_that_of_scipy(x: float) -> None:
    assert digamma(np.array([x]))[0] == pytest.approx(psi(x), rel=1e-14, abs=1e-13)
