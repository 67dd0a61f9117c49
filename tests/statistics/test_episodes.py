"""Tests on episodes: exact expectations, false rejections under optional stopping, and mutants that these catch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from axplore.errors import InvalidSettingError
from axplore.statistics.episodes import (
    LARGEST_FRACTION,
    Bets,
    episodes_needed,
    focused_bets,
    forecast_horizon,
    least_bound,
    level_after,
    line_level,
    log_wealth,
    losses_if_faster,
    losses_if_oftener,
    losses_if_rarer,
    losses_if_slower,
    spread_bets,
)
from axplore.types import FloatArray, IntArray

FALSE_ALARM = 1e-6
"""How likely a test of a frequency may be to fail although the frequency is as promised."""

LEVEL = 0.1
REPEATS, EPISODES = 1000, 300

LAWS: dict[str, list[float]] = {
    "two ways": [0.0, 0.5, 0.0, 0.3, 0.2],
    "mostly misses": [0.0, 0.02, 0.01, 0.0, 0.0, 0.97],
    "hardly a miss": [0.0, 0.0, 0.6, 0.2, 0.1, 0.05, 0.04, 0.005, 0.005],
    "never misses": [0.0, 0.25, 0.5, 0.25, 0.0],
    "geometric": [0.0, *(0.7**k * 0.3 for k in range(20)), 0.7**20],
}
"""Probabilities of 0, 1, ..., H steps, and of a miss."""

ALL_BETS = {"spread": spread_bets(), "focused": focused_bets(0.5), "one": Bets(np.array([0.9]), np.array([1.0]))}


def value_of(law: list[float]) -> float:
    """The expected steps of the policy that restarts after a miss: (m + q) / (1 - q)."""
    horizon = len(law) - 2
    steps = math.fsum(min(k, horizon) * chance for k, chance in enumerate(law))
    return (steps + law[-1]) / (1.0 - law[-1])


def at_the_boundary(law: list[float], direction: str) -> FloatArray:
    """Losses whose expectation under the law is 0: the hardest case of the hypothesis."""
    horizon, chance = len(law) - 2, 1.0 - law[-1]
    return {
        "slower": lambda: losses_if_slower(horizon, value_of(law)),
        "faster": lambda: losses_if_faster(horizon, value_of(law)),
        "rarer": lambda: losses_if_rarer(horizon, chance),
        "oftener": lambda: losses_if_oftener(horizon, chance),
    }[direction]()


def has_boundary(law: str, direction: str) -> bool:
    return LAWS[law][-1] > 0 or direction in ("slower", "faster")


CASES = [case for case in itertools.product(LAWS, ("slower", "faster", "rarer", "oftener")) if has_boundary(*case)]


def paths(law: list[float], losses: FloatArray, bets: Bets, seed: int) -> tuple[IntArray, FloatArray]:
    """Outcomes, and the logarithm of the wealth after every episode, [REPEATS, EPISODES] each."""
    generator = np.random.default_rng(seed)
    outcomes = generator.choice(len(law), (REPEATS, EPISODES), p=np.array(law) / math.fsum(law))
    wealth = np.zeros((REPEATS, EPISODES))
    for fraction, weight in zip(bets.fractions, bets.weights, strict=True):
        wealth += weight * (1.0 - fraction * losses)[outcomes].cumprod(axis=1)
    return outcomes, np.log(wealth)


def n_crossed(law: list[float], losses: FloatArray, bets: Bets, seed: int = 0) -> int:
    """In how many of REPEATS runs the wealth ever reaches 1 / LEVEL: whoever stops at the best moment rejects."""
    return int((paths(law, losses, bets, seed)[1].max(axis=1) >= -math.log(LEVEL)).sum())


MOST = int(binom.isf(FALSE_ALARM, REPEATS, LEVEL))
"""More rejections than this have a probability of at most FALSE_ALARM, if each has at most LEVEL."""


@pytest.mark.parametrize(("law", "direction"), CASES)
def test_the_expected_loss_at_the_boundary_is_zero_and_no_loss_exceeds_one(law: str, direction: str) -> None:
    losses = at_the_boundary(LAWS[law], direction)
    assert losses @ np.array(LAWS[law]) == pytest.approx(0.0, abs=1e-12)
    assert losses.max() <= 1.0


def test_the_boundary_is_the_value_of_the_policy_that_restarts() -> None:
    """The clock made part of the state, and the linear system solved: RESET after a miss costs its step."""
    chances, horizon = [Fraction(0), Fraction(1, 5), Fraction(1, 10), Fraction(2, 5)], 3
    # Of episodes that have not arrived after k steps, this part arrives at the next one.
    left = [Fraction(1) - sum(chances[: k + 1]) for k in range(horizon + 1)]
    # v_k = 1 + (part that goes on) v_{k+1}, and v_H = 1 + v_0: unrolled, v_0 = steps + again v_0.
    steps, again = Fraction(1), Fraction(1)
    for k in reversed(range(horizon)):
        stays = Fraction(left[k + 1], left[k])
        steps, again = 1 + stays * steps, stays * again
    law = [float(chance) for chance in (*chances, left[horizon])]
    assert value_of(law) == pytest.approx(float(steps / (1 - again)))
    assert losses_if_slower(horizon, float(steps / (1 - again))) @ law == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("bets", ALL_BETS)
@pytest.mark.parametrize(("law", "direction"), CASES)
def test_false_rejections_are_rare_at_every_time(law: str, direction: str, bets: str) -> None:
    assert n_crossed(LAWS[law], at_the_boundary(LAWS[law], direction), ALL_BETS[bets]) <= MOST


def test_the_level_is_used() -> None:
    """What never rejects is valid too. At the boundary the wealth is a martingale: a rejection is not too rare."""
    law = LAWS["two ways"]
    assert n_crossed(law, at_the_boundary(law, "slower"), ALL_BETS["focused"]) >= MOST / 6


def without_the_reset(law: list[float]) -> FloatArray:
    losses = at_the_boundary(law, "slower")
    losses[-1] = (len(law) - 2) / (len(law) - 1.0)
    return losses


def with_one_step_off(law: list[float]) -> FloatArray:
    return losses_if_slower(len(law) - 2, value_of(law) + 1.0)


def with_misses_as_arrivals(law: list[float]) -> FloatArray:
    losses = at_the_boundary(law, "slower")
    losses[-1] = losses[-2]
    return losses


@pytest.mark.parametrize("mutant", [without_the_reset, with_one_step_off, with_misses_as_arrivals])
def test_wrong_constants_are_caught(mutant: Callable[[list[float]], FloatArray]) -> None:
    law = LAWS["geometric"] if mutant is with_one_step_off else LAWS["two ways"]
    assert n_crossed(law, mutant(law), ALL_BETS["spread"]) > MOST


def test_weights_above_one_would_be_caught_and_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="more than 1"):
        Bets(np.array([0.5, 0.2]), np.array([0.8, 0.8]))
    with pytest.raises(InvalidSettingError, match="between 0 and 1"):
        Bets(np.array([1.0]), np.array([0.8]))


@pytest.mark.parametrize("chance", [0.2, 0.5, 0.9])
def test_the_expected_wealth_of_bernoulli_episodes_is_one(chance: float) -> None:
    """Summed over all outcomes of ten episodes, each with its binomial probability."""
    for losses in (losses_if_rarer(1, chance), losses_if_oftener(1, chance)):
        wealth = [
            math.exp(log_wealth(losses, np.array([0, arrived, 10 - arrived]), spread_bets())) for arrived in range(11)
        ]
        assert np.asarray(binom.pmf(range(11), 10, chance)) @ wealth == pytest.approx(1.0, abs=1e-9)


def test_one_bet_on_bernoulli_episodes_is_a_likelihood_ratio() -> None:
    """Staking λ against θ < p is the likelihood ratio of θ' = p + λ (1 - p) to p."""
    chance, fraction, arrived, missed = 0.6, 0.5, 37, 9
    other = chance + fraction * (1 - chance)
    ratio = arrived * math.log(other / chance) + missed * math.log((1 - other) / (1 - chance))
    bets = Bets(np.array([fraction]), np.array([1.0]))
    counts = np.array([0, arrived, missed])
    assert log_wealth(losses_if_rarer(1, chance), counts, bets) == pytest.approx(ratio, abs=1e-8)


def test_the_expected_wealth_is_one_over_all_outcomes() -> None:
    law = LAWS["two ways"]
    losses = at_the_boundary(law, "slower")
    total = 0.0
    for outcomes in itertools.product(range(len(law)), repeat=4):
        counts = np.bincount(outcomes, minlength=len(law))
        total += math.prod(law[outcome] for outcome in outcomes) * math.exp(log_wealth(losses, counts, spread_bets()))
    assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_the_counts_of_outcomes_are_all_that_the_wealth_depends_on(law: str) -> None:
    losses = at_the_boundary(LAWS[law], "slower")
    outcomes, wealth = paths(LAWS[law], losses, spread_bets(), 1)
    for run, length in ((0, 1), (1, 17), (2, EPISODES)):
        counts = np.bincount(outcomes[run, :length], minlength=len(losses))
        assert log_wealth(losses, counts, spread_bets()) == pytest.approx(wealth[run, length - 1], abs=1e-7)


@given(st.lists(st.integers(0, 8), min_size=3, max_size=8), st.floats(0.5, 30.0), st.floats(0.001, 0.98))
def test_wealth_is_rounded_down_and_by_little(counts: list[int], bound: float, fraction: float) -> None:
    losses = losses_if_slower(len(counts) - 2, bound)
    bets = Bets(np.array([fraction, fraction / 3]), np.array([0.5, 0.5]))
    exact = Fraction(0)
    for part in map(Fraction, bets.fractions):
        exact += Fraction(1, 2) * math.prod((1 - part * Fraction(z)) ** n for z, n in zip(losses, counts, strict=True))
    assert 0 <= math.log(exact) - log_wealth(losses, np.array(counts), bets) < 1e-9


@given(st.lists(st.integers(0, 50), min_size=4, max_size=10), st.floats(1.0, 20.0), st.floats(0.0, 5.0))
def test_wealth_grows_with_the_bound(counts: list[int], bound: float, more: float) -> None:
    horizon, outcomes = len(counts) - 2, np.array(counts)
    at_bound = log_wealth(losses_if_slower(horizon, bound), outcomes, spread_bets())
    assert log_wealth(losses_if_slower(horizon, bound + more), outcomes, spread_bets()) >= at_bound - 1e-9
    at_bound = log_wealth(losses_if_faster(horizon, bound), outcomes, spread_bets())
    assert log_wealth(losses_if_faster(horizon, bound + more), outcomes, spread_bets()) <= at_bound + 1e-9


def test_the_forecast_of_a_certain_way_cuts_right_behind_it() -> None:
    arrivals = np.zeros(30)
    arrivals[6] = 1.0
    forecast = forecast_horizon(arrivals, 7.0)
    assert (forecast.horizon, forecast.episode_steps) == (6, 7.0)
    assert forecast.growth == pytest.approx(math.log1p(LARGEST_FRACTION / 7))
    assert forecast.steps(5.0) == pytest.approx(5.0 / forecast.growth * 7)
    bets = focused_bets(LARGEST_FRACTION)
    for horizon, is_longer in ((6, False), (8, True)):
        law = np.append(arrivals[: horizon + 1], 0.0)
        needed = episodes_needed(losses_if_slower(horizon, 7.0), np.zeros_like(law, dtype=np.int64), law, bets, 5.0)
        best = (5.0 - math.log(bets.weights[1])) / forecast.growth
        assert needed == pytest.approx(best) if not is_longer else needed > best


def test_the_forecast_of_a_long_way_finds_a_horizon_behind_it() -> None:
    """Of very long horizons not all are tried."""
    for steps in (1001, 1002, 1003):
        arrivals = np.zeros(3000)
        arrivals[steps] = 1.0
        forecast = forecast_horizon(arrivals, steps + 1.0)
        assert steps <= forecast.horizon < steps + 6
        assert forecast.growth > 0.0


def test_the_forecast_sees_what_cannot_be_proven() -> None:
    arrivals = np.zeros(30)
    arrivals[8] = 1.0
    assert forecast_horizon(arrivals, 7.0).steps(5.0) == math.inf


@pytest.mark.parametrize("law", ["two ways", "geometric", "hardly a miss"])
def test_tests_take_about_what_was_forecast(law: str) -> None:
    """With bets around the predicted fraction, the mean number of episodes is near nats / growth."""
    bound = 1.6 * value_of(LAWS[law])
    forecast = forecast_horizon(np.array(LAWS[law][:-1]), bound)
    horizon = forecast.horizon
    cut = [*LAWS[law][: horizon + 1], 1.0 - math.fsum(LAWS[law][: horizon + 1])]
    _, wealth = paths(cut, losses_if_slower(horizon, bound), focused_bets(forecast.fraction), 5)
    reached = wealth >= 6.0
    assert reached.any(axis=1).mean() > 0.99
    assert reached.argmax(axis=1).mean() < 1.35 * 6.0 / forecast.growth + 5


def test_levels_of_lines_sum_to_the_share() -> None:
    assert math.fsum(line_level(0.01, line) for line in range(1, 10_000)) <= 0.01
    assert math.fsum(line_level(0.01, line) for line in range(1, 1000)) == pytest.approx(0.01, rel=0.002)


def test_a_line_passes_on_its_level() -> None:
    """Someone who tests true hypotheses only, two at a time for ever, in two lines, errs with the levels of both."""
    law = LAWS["two ways"]
    wealth = paths(law, at_the_boundary(law, "slower"), spread_bets(), 7)[1].max(axis=1)
    errors = sum(
        first >= -math.log(line_level(0.2, 1)) or second >= -math.log(line_level(0.2, 2))
        for first, second in zip(wealth[::2], wealth[1::2], strict=True)
    )
    assert errors <= binom.isf(FALSE_ALARM, REPEATS // 2, 0.2)


def test_what_is_needed_is_what_is_lacking_by_the_mean_growth() -> None:
    law, bets = np.array([0.0, 0.5, 0.2, 0.3]), Bets(np.array([0.1, 0.5]), np.array([0.5, 0.5]))
    losses, outcomes = losses_if_slower(2, 5.0), np.array([0, 3, 4, 5])
    growth, won = (
        np.log1p(-np.outer(bets.fractions, losses)) @ law,
        np.log1p(-np.outer(bets.fractions, losses)) @ outcomes,
    )
    expected = ((6.0 - math.log(0.5) - won) / growth)[growth > 0].min()
    assert episodes_needed(losses, outcomes, law, bets, 6.0) == pytest.approx(expected)
    assert episodes_needed(losses, 100 * outcomes, law, bets, 6.0) == 0.0
    assert episodes_needed(losses_if_slower(2, 1.5), outcomes, law, bets, 6.0) == math.inf


def test_the_least_bound_is_where_the_wealth_suffices() -> None:
    bets, outcomes = focused_bets(0.6), np.array([0, 60, 20, 4])
    found = least_bound(outcomes, bets, 1.5, 8.0, 5.0)

    def wealth(bound: float) -> float:
        return log_wealth(losses_if_slower(2, bound, 8.0, 1.5), outcomes, bets)

    assert 1.5 < found < 7.0
    assert wealth(found) >= 5.0 > wealth(found * (1.0 - 1e-8))
    assert least_bound(outcomes, bets, 1.5, 8.0, wealth(1.5)) == 1.5
    assert least_bound(outcomes, bets, 1.5, 8.0, wealth(7.0) + 1e-6) == math.inf


def test_losses_of_larger_bounds_are_those_of_the_least_one_moved() -> None:
    """The same bets on Y - B, in parts of H + M - B0, are fair for every B = E[Y] (Eq. 10)."""
    law = np.array([0.0, 0.3, 0.3, 0.4])
    bound = float(law @ np.array([0.0, 1.0, 2.0, 2.0 + 9.0]))
    losses = losses_if_slower(2, bound, 9.0, 2.0)
    assert losses @ law == pytest.approx(0.0, abs=1e-12)
    assert losses.max() <= 1.0
    assert losses * (2.0 + 9.0 - 2.0) == pytest.approx(np.array([0.0, 1.0, 2.0, 11.0]) - bound)
    assert losses_if_slower(2, bound, 9.0, bound) == pytest.approx(losses_if_slower(2, bound, 9.0))
    with pytest.raises(InvalidSettingError, match="bets on bounds"):
        losses_if_slower(2, 1.9, 9.0, 2.0)


def test_a_test_leaves_its_level_unless_it_has_lost() -> None:
    assert level_after(0.01, 3.0) == 0.01
    assert level_after(0.01, math.log(0.25)) == pytest.approx(0.0025)


@pytest.mark.parametrize("horizon_and_bound", [(0, 3.0), (3, 0.0), (3, math.inf), (3, math.nan)])
def test_what_cannot_be_tested_is_refused(horizon_and_bound: tuple[int, float]) -> None:
    with pytest.raises(InvalidSettingError, match="cannot be tested"):
        losses_if_slower(*horizon_and_bound)
    with pytest.raises(InvalidSettingError, match="cannot be tested"):
        losses_if_rarer(3, 1.0)
