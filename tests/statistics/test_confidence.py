"""The confidence region: how often it fails, exactly and by simulation, and mutants that the same tests catch."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit
from scipy.special import psi
from scipy.stats import binom

from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.statistics import centred, confidence
from axplore.statistics.centred import PARTS, SCALES, central_ball, digamma, log_wealth, tangent_ball
from axplore.statistics.confidence import (
    ROUNDING,
    ROUNDING_PER_DRAW,
    confidence_region,
    least_mass,
    pair_weights,
    shared_budget,
)
from axplore.types import FloatArray, IntArray
from balls import distance, least_mean
from made_counts import as_entries, made_counts

FALSE_ALARM = 1e-6
"""How likely a test of a frequency may be to fail although the frequency is as promised, or to pass if it is not."""

ROWS = {
    "certain": [1.0],
    "one in three": [1 / 3, 2 / 3],
    "slippery": [0.8, 0.1, 0.1],
    "uniform": [1 / 6] * 6,
    "heavy tail": [0.5**k for k in (1, 2, 3, 4, 5, 6, 7, 8, 9, 9)],
    "rare successor": [0.995, 0.005],
}
"""Rows of which every kind has its own way to fail."""


def integers(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def counted_rows(rows: Sequence[Sequence[int]], first_draws: Sequence[Sequence[int]] | None = None) -> Counts:
    """One state for each row of counts; unless told, all successors are first seen in the first draws."""
    return made_counts(as_entries(rows, first_draws))


def slack_of(counts: Sequence[int], level: float) -> float:
    return central_ball(floats(counts), math.log(level), np.zeros(len(counts)))


def floats(values: Sequence[float]) -> FloatArray:
    return np.array(values, dtype=np.float64)


# -------------------------------------------------------------------------------------------- the martingale, exactly


def exact_wealth(pattern: Sequence[int], row: Sequence[Fraction]) -> Fraction:
    """What the bets of Eq. 3 win on a sequence of draws if the row is tested, bet by bet."""
    wealths = []
    for scale in SCALES:
        wealth, met = Fraction(1), [0] * len(row)
        for draw, symbol in enumerate(pattern):
            wealth *= (Fraction(scale) * row[symbol] + met[symbol]) / (Fraction(scale) + draw) / row[symbol]
            met[symbol] += 1
        wealths.append(wealth)
    return sum((Fraction(part) * wealth for part, wealth in zip(PARTS, wealths, strict=True)), Fraction(0))


def wealth_of(module: ModuleType, pattern: Sequence[int], row: Sequence[Fraction]) -> float:
    """The same by the module, in the order of first sight."""
    seen = list(dict.fromkeys(pattern))
    counts, point = [pattern.count(symbol) for symbol in seen], [float(row[symbol]) for symbol in seen]
    return math.exp(min(module.log_wealth(floats(counts), floats(point), np.zeros(len(seen))), 100.0))


A_ROW = (Fraction(1, 2), Fraction(3, 8), Fraction(1, 8))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_the_martingale_is_what_its_bets_win_in_exact_arithmetic(pattern: list[int]) -> None:
    assert wealth_of(centred, pattern, A_ROW) == pytest.approx(float(exact_wealth(pattern, A_ROW)), rel=1e-9)


def mean_wealth(module: ModuleType, length: int) -> float:
    """The expected wealth after so many draws of the row that is tested."""
    sequences = itertools.product(range(len(A_ROW)), repeat=length)
    return math.fsum(
        wealth_of(module, sequence, A_ROW) * float(math.prod(A_ROW[symbol] for symbol in sequence))
        for sequence in sequences
    )


@pytest.mark.parametrize("length", range(1, 8))
def test_the_wealth_against_the_true_row_stays_one_on_average(length: int) -> None:
    assert mean_wealth(centred, length) == pytest.approx(1, abs=1e-10)


@given(st.floats(1e-3, 1e9))
def test_digamma_is_that_of_scipy(x: float) -> None:
    assert digamma(x) == pytest.approx(psi(x), rel=1e-14, abs=1e-14)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=5), st.data())
def test_slopes_are_the_derivatives_of_the_martingale(counts: list[int], data: st.DataObject) -> None:
    row = floats(data.draw(rows_of_probabilities(len(counts))))
    slopes, scratch = np.zeros(len(counts)), np.zeros(len(counts))
    log_wealth(floats(counts), row, slopes)
    for entry in range(len(counts)):
        step = np.zeros(len(counts))
        step[entry] = 1e-5
        rise = log_wealth(floats(counts), row * np.exp(-step), scratch) - log_wealth(
            floats(counts), row * np.exp(step), scratch
        )
        assert slopes[entry] == pytest.approx(rise / 2e-5, rel=1e-4, abs=1e-4)


# ------------------------------------------------------------------------------------------------ the ball of one row


def rows_of_probabilities(width: int) -> st.SearchStrategy[list[float]]:
    """Probabilities of the successors seen, leaving some for the others."""
    weights = st.lists(st.integers(1, 50), min_size=width + 1, max_size=width + 1)
    return weights.map(lambda drawn: [weight / sum(drawn) for weight in drawn[:width]])


@given(
    st.data(),
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.sampled_from([0.9, 0.3, 0.01, 1e-6]),
    st.booleans(),
)
def test_a_row_that_the_martingale_accepts_is_in_every_ball(
    data: st.DataObject, counts: list[int], level: float, central: bool
) -> None:
    row, point = (floats(data.draw(rows_of_probabilities(len(counts)))) for _ in range(2))
    shares = np.zeros(len(row))
    if central:
        slack = central_ball(floats(counts), math.log(level), shares)
    else:
        slack = tangent_ball(floats(counts), math.log(level), point, shares)
    if log_wealth(floats(counts), row, np.zeros(len(row))) + math.log(level) <= 0:
        assert distance(shares, row) <= slack * (1 + ROUNDING) + 1e-12


def test_a_tangent_is_exact_at_its_point() -> None:
    # Where the martingale is 1/level at the point itself, the point lies on the border of the ball.
    counts, point = floats([40, 25, 12]), floats([0.3, 0.45, 0.2])
    level, shares = math.exp(-log_wealth(counts, point, np.zeros(3))), np.zeros(3)
    slack = tangent_ball(counts, math.log(level), point, shares)
    assert slack == pytest.approx(distance(shares, point), rel=1e-12)


@pytest.mark.parametrize("parts", [(1,), (7, 2, 1), (1, 1), (100, 1)])
@pytest.mark.parametrize("size", [10**3, 10**5, 10**7, 10**9, 10**11])
def test_rounding_never_makes_a_slack_too_small(size: int, parts: tuple[int, ...]) -> None:
    counts = [size * part for part in parts]
    total = sum(counts)
    point = [Fraction(count, total) * Fraction(999, 1000) for count in counts]
    with localcontext() as context:
        context.prec = 50
        exact = float(exact_log_wealth(counts, point) / total)
    found = log_wealth(floats(counts), floats([float(part) for part in point]), np.zeros(len(counts))) / total
    assert found == pytest.approx(exact, rel=ROUNDING / 10, abs=ROUNDING_PER_DRAW / 2)


def exact_log_wealth(counts: Sequence[int], point: Sequence[Fraction]) -> Decimal:
    """The logarithm of the martingale to 30 digits or more."""
    logs = []
    for scale, part in zip(map(Fraction, SCALES), PARTS, strict=True):
        log = exact_log_gamma(scale) - exact_log_gamma(scale + sum(counts)) + sum(counts) * exact_log(scale)
        for count, probability in zip(counts, point, strict=True):
            mass = scale * probability
            log += exact_log_gamma(mass + count) - exact_log_gamma(mass + 1) - (count - 1) * exact_log(mass)
        logs.append(log + Decimal(part).ln())
    return max(logs) + sum(((log - max(logs)).exp() for log in logs), Decimal(0)).ln()


def exact_log(number: Fraction) -> Decimal:
    return (Decimal(number.numerator) / Decimal(number.denominator)).ln()


def test_slack_falls_with_draws_and_rises_with_confidence() -> None:
    for counts in ([5], [3, 2], [8, 1, 1], [4, 4, 4]):
        tenfold = [10 * count for count in counts]
        assert slack_of(tenfold, 0.1) < slack_of(counts, 0.1) < slack_of(counts, 0.01)


def test_draws_without_a_repetition_prove_nothing() -> None:
    assert slack_of([1], 0.1) == slack_of([1, 1, 1], 0.1) == math.inf


@pytest.mark.parametrize("n_draws", [10, 100, 10_000])
def test_the_ball_of_a_row_with_one_successor_ends_where_the_martingale_does(n_draws: int) -> None:
    slack = slack_of([n_draws], 0.05)
    end = log_wealth(floats([n_draws]), floats([math.exp(-slack)]), np.zeros(1))
    assert math.log(1 / 0.05) <= end <= math.log(1 / 0.05) + 0.1


def test_more_successors_cost_little_more() -> None:
    # With a mixture that is not centred two more successors cost about log(n); here it is log(1 + n / κ).
    draws = 2000
    certain, slippery = slack_of([draws], 1e-3) * draws, slack_of([1600, 200, 200], 1e-3) * draws
    assert certain == pytest.approx(-math.log(1e-3) + 1.2, abs=0.7)
    assert slippery < certain + 6.5


def exact_log_gamma(number: Fraction) -> Decimal:
    """To 40 digits: Stirling's series with its first nine terms, beyond 40."""
    shift, argument = Decimal(0), Decimal(number.numerator) / Decimal(number.denominator)
    while argument < 40:
        shift -= argument.ln()
        argument += 1
    pi = Decimal("3.14159265358979323846264338327950288419716939937511")
    bernoulli = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400)]
    series = sum(
        (Decimal(top) / Decimal(bottom) / argument ** (2 * place + 1) for place, (top, bottom) in enumerate(bernoulli)),
        Decimal(0),
    )
    return (argument - Decimal("0.5")) * argument.ln() - argument + (2 * pi).ln() / 2 + series + shift


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=4), st.integers(1, 2), st.floats(1e-3, 2.0))
@example([0.96875, 0.7890625, 0.34375], 2, 0.96875)
def test_the_least_mass_lies_between_a_dual_bound_and_a_row_in_the_ball(
    weights: list[float], inside: int, slack: float
) -> None:
    shares = np.array(weights) / sum(weights)
    low, row = least_mean((np.arange(len(shares)) < inside).astype(np.float64), shares, slack)
    high = row[:inside].sum()
    assert high - low < 1e-7
    assert low - 1e-12 <= least_mass(float(shares[:inside].sum()), slack) <= high + 1e-12


def test_the_least_mass_has_its_closed_forms() -> None:
    assert least_mass(1.0, 0.7) == pytest.approx(math.exp(-0.7), rel=1e-9)
    assert least_mass(0.3, 0.0) == pytest.approx(0.3, rel=1e-6)
    # KL(1/2 || m) = log(1 / (2 sqrt(m (1 - m)))), which is log 2 where m (1 - m) = 1/16.
    assert least_mass(0.5, math.log(2)) == pytest.approx((1 - math.sqrt(3) / 2) / 2, rel=1e-9)


# ----------------------------------------------------------------- how often the truth leaves the region, at any time


@njit
def _probability_to_leave(slack_of_row: Any, first: float, log_level: float, n_draws: int) -> float:
    """The exact probability that the row (p, 1 - p) whose first draw has probability p ever leaves its ball."""
    left = 0.0
    inside, reached = np.zeros(n_draws), np.zeros(n_draws)  # by how often the second successor was met
    inside[0] = first
    counts, shares = np.zeros(2), np.zeros(2)
    for n in range(2, n_draws + 1):
        for others in range(n):
            reached[others] = inside[others] * first + (inside[others - 1] * (1.0 - first) if others > 0 else 0.0)
            counts[0], counts[1] = n - others, others
            seen = 2 if others > 0 else 1
            slack = slack_of_row(counts[:seen], log_level, shares[:seen])
            distance = 0.0
            for entry in range(seen):
                if shares[entry] > 0.0:
                    distance += shares[entry] * math.log(shares[entry] / (first if entry == 0 else 1.0 - first))
            if distance > slack:
                left += reached[others]
                reached[others] = 0.0
        inside, reached = reached, inside
    return left


def probability_to_leave(module: ModuleType, success: float, level: float, n_draws: int = 150) -> float:
    """The exact probability that a row of two successors ever leaves its ball: a recursion over counts."""
    log_level = math.log(level)
    return float(sum(_probability_to_leave(module.central_ball, p, log_level, n_draws) for p in (success, 1 - success)))


@njit
def _runs_that_leave(slack_of_row: Any, row: FloatArray, log_level: float, n_draws: int, n_runs: int, seed: int) -> int:
    """How many of so many simulated runs leave the ball; looked at after each of 40 draws, then at every 40th part."""
    np.random.seed(seed)
    counts, shares = np.zeros(len(row)), np.zeros(len(row))
    order, place = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
    left = 0
    for _ in range(n_runs):
        for entry in range(len(row)):
            counts[entry], place[entry] = 0.0, -1
        seen, next_look = 0, 2
        for draw in range(1, n_draws + 1):
            successor, cumulative, drawn = 0, row[0], np.random.random()
            while cumulative <= drawn and successor < len(row) - 1:
                successor += 1
                cumulative += row[successor]
            if place[successor] < 0:
                place[successor], order[seen] = seen, successor
                seen += 1
            counts[place[successor]] += 1
            if draw < next_look:
                continue
            next_look = max(draw + 1, draw * 41 // 40)
            distance = 0.0
            slack = slack_of_row(counts[:seen], log_level, shares[:seen])
            for entry in range(seen):
                if shares[entry] > 0.0:
                    distance += shares[entry] * math.log(shares[entry] / row[order[entry]])
            if distance > slack:
                left += 1
                break
    return left


def repeats_to_tell(level: float, alternative: float) -> tuple[int, int]:
    """How many runs tell a frequency of at most `level` from `alternative`, and how many of them may fail."""
    repeats = 50
    while True:
        allowed = int(binom.isf(FALSE_ALARM, repeats, level))
        if binom.cdf(allowed, repeats, alternative) <= FALSE_ALARM:
            return repeats, allowed
        repeats += max(10, repeats // 20)


@pytest.mark.parametrize("success", [0.5, 1 / 3, 0.1, 0.02, 0.002])
@pytest.mark.parametrize("level", [0.5, 0.2, 0.02])
def test_a_row_of_two_successors_leaves_its_ball_at_most_at_the_level_exactly(success: float, level: float) -> None:
    assert probability_to_leave(centred, success, level) <= level


def fails_too_often(module: ModuleType, row: Sequence[float], level: float) -> bool:
    """Whether an exact binomial test refutes that the row leaves its ball at most at the level."""
    repeats, allowed = repeats_to_tell(level, 2 * level)
    left = _runs_that_leave(module.central_ball, np.array(row), math.log(level), 1500, repeats, seed=1)
    return bool(left > allowed)


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_leaves_its_ball_at_most_at_the_level(kind: str) -> None:
    assert not fails_too_often(centred, ROWS[kind], level=0.2)


def mutant(tmp_path: Path, old: str, new: str, of: ModuleType = confidence) -> ModuleType:
    """The module with one place of its source changed."""
    source = Path(str(of.__file__)).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{old!r} is not one place of the source"
    path = tmp_path / "confidence_mutant.py"
    path.write_text(source.replace(old, new), encoding="utf-8")
    specification = importlib.util.spec_from_file_location("confidence_mutant", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module  # dataclasses look their module up while it is made
    specification.loader.exec_module(module)
    return module


ROW_MUTANTS = {
    "the growth of the bets": ("- math.lgamma(scale + draws) ", ""),
    "the parts of the average": (" + math.log(part)", ""),
    "that first draws win nothing": ("- math.lgamma(mass + 1.0)", "- math.lgamma(mass)"),
    "the level": ("(log_level + log_martingale)", "log_martingale"),
    "the distance of the point": ("distance - (log_level", "0.0 - (log_level"),
}
"""What is dropped, by what it is: each leaves a region that fails too often."""


@pytest.mark.parametrize("dropped", ROW_MUTANTS)
def test_a_ball_without_one_of_its_terms_is_caught(dropped: str, tmp_path: Path) -> None:
    module = mutant(tmp_path, *ROW_MUTANTS[dropped], of=centred)
    level = 0.02
    assert (
        abs(mean_wealth(module, 6) - 1) > 1e-6
        or probability_to_leave(module, 1 / 3, level) > level
        or fails_too_often(module, ROWS["slippery"], level=0.2)
    )


# ---------------------------------------------------------------------------------- the division among pairs, jointly


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_the_weights_of_a_state_do_not_depend_on_its_number_of_actions(n_actions: list[int]) -> None:
    rows = made_counts([[]] * sum(n_actions), n_actions)
    weights = pair_weights(rows)
    parts = np.split(weights, rows.state_pairs[1:-1])
    alone = pair_weights(counted_rows([[]] * len(n_actions)))
    for part, n, whole in zip(parts, n_actions, alone, strict=True):
        assert part == pytest.approx(np.full(n, whole / max(n, 1)))


def test_the_weights_sum_to_at_most_one_for_any_number_of_states() -> None:
    sums = np.cumsum(pair_weights(counted_rows([[]] * 100_000)))
    assert np.all(sums < 1)
    assert sums[-1] == pytest.approx(1 - 10 / 100_010, abs=1e-12)  # the telescoping sum


def drawn_in_turn(n: int, broken_at: IntArray) -> Counts:
    """The counts of pairs after n draws of each, whose second successor came once, at a draw of each pair."""
    broken = broken_at <= n
    row_offsets = np.append(0, np.cumsum(1 + broken))
    firsts, seconds = row_offsets[:-1], row_offsets[:-1][broken] + 1
    counts, first_draws, successors = (np.full(row_offsets[-1], number) for number in (1, 1, 0))
    counts[firsts] = n - broken
    first_draws[seconds] = broken_at[broken]
    successors[seconds] = 1
    states = np.arange(len(broken_at))
    actions = (Labels(["a0"]),) * len(states)
    return Counts(Labels(states.tolist()), actions, states, row_offsets, successors, counts, first_draws)


def leaves_shared_budget(
    module: ModuleType,
    repeat_probabilities: FloatArray,
    n_draws: int,
    level: float,
    generator: np.random.Generator,
    after: int,
) -> bool:
    """Whether the pairs that are still certain ever exceed what the shared martingale leaves them, at any draw.

    Pairs are drawn in turn. What they add up to grows with every draw until one shows a second successor, so it is
    enough to look before each such draw and at the end.
    """
    certain = repeat_probabilities >= 1
    broken_at = 1 + generator.geometric(np.where(certain, 0.5, 1 - repeat_probabilities)).astype(np.int64)
    broken_at[certain] = n_draws + 1
    weights = pair_weights(drawn_in_turn(1, broken_at))
    for n in sorted({*broken_at[broken_at <= n_draws].tolist(), n_draws + 1}):
        budget = module.shared_budget(drawn_in_turn(n - 1, broken_at), weights, level, after)
        if (max(n - 1 - after, 0) * np.log(1 / repeat_probabilities[broken_at >= n])).sum() > budget:
            return True
    return False


SHARED_ROWS = {
    "twenty pairs that seldom surprise": np.full(20, 0.9995),
    "forty pairs that surprise soon": np.full(40, 0.8),
    "surprises among certain pairs": np.array([1.0, 0.9, 1.0, 0.99, 1.0, 0.999, 1.0, 0.97]),
    "one pair": np.array([0.99]),
}


def shared_budget_fails_too_often(module: ModuleType, kind: str, after: int) -> bool:
    level = 0.3
    repeats, allowed = repeats_to_tell(level, 1.5 * level)
    generator = np.random.default_rng(3)
    rows = SHARED_ROWS[kind]
    failures = sum(leaves_shared_budget(module, rows, 1000, level, generator, after) for _ in range(repeats))
    return failures > allowed


AFTERS = [after for after, _ in confidence.JOINING]


@pytest.mark.parametrize("after", AFTERS)
@pytest.mark.parametrize("kind", SHARED_ROWS)
def test_certain_pairs_exceed_their_shared_budget_at_most_at_the_level(kind: str, after: int) -> None:
    assert not shared_budget_fails_too_often(confidence, kind, after)


def expected_evidence(module: ModuleType, repeat_probability: float, n_draws: int, after: int = 1) -> float:
    """What the shared martingale of one pair is worth after so many draws, in expectation; exact."""

    def budget(n: int, broken_at: int) -> float:
        rows = drawn_in_turn(n, np.array([broken_at]))
        return float(module.shared_budget(rows, pair_weights(rows), level=1.0, after=after))

    broken_at = np.arange(2, n_draws + 1)
    chances = repeat_probability ** (broken_at - 2) * (1 - repeat_probability)
    surprised = np.array([math.exp(-budget(int(draw), int(draw))) for draw in broken_at])
    joined = repeat_probability ** (after - 1)
    return float(chances @ surprised) + joined * math.exp(-budget(n_draws, n_draws + 1))


@pytest.mark.parametrize("after", AFTERS)
@pytest.mark.parametrize("repeat_probability", [0.0, 0.3, 0.7, 0.9, 0.99, 0.999, 1.0])
def test_the_shared_martingale_of_a_pair_is_worth_at_most_one(repeat_probability: float, after: int) -> None:
    assert 0.8 < expected_evidence(confidence, repeat_probability, 300, after) <= 1.0 + 1e-12


def test_a_pair_that_surprises_before_it_joins_costs_nothing() -> None:
    early, late = (counted_rows([[40, 1], [41]], [[1, draw], [1]]) for draw in (10, 11))
    weights = pair_weights(early)
    alone = -math.log(0.02) - math.log1p(-weights[1] / 2)
    assert shared_budget(early, weights, 0.02, after=10) == pytest.approx(alone)
    # The bet on draw 11 was 10 / (11 * 10) of its half weight, against 1 - p <= 1.
    surprise = math.log(11 / (weights[0] / 2)) - math.log1p(-weights[0] / 2)
    assert shared_budget(late, weights, 0.02, after=10) == pytest.approx(alone + surprise)


SHARED_MUTANTS = {
    "the level": ("budget = math.log(1.0 / level)", "budget = 0.0"),
    "the price of surprises": ("return budget + float(surprises.sum())", "return budget"),
    "the draw of a surprise": ("np.log(draw * (draw - 1) / (after *", "np.log(draw / (after *"),
    "when a pair joins": ("(second_draws > after)", "(second_draws > after + 3)"),
}


@pytest.mark.parametrize("changed", SHARED_MUTANTS)
def test_a_shared_budget_that_is_too_small_is_caught(changed: str, tmp_path: Path) -> None:
    module = mutant(tmp_path, *SHARED_MUTANTS[changed])
    assert any(expected_evidence(module, 0.9, 300, after) > 1 + 1e-12 for after in AFTERS) or any(
        shared_budget_fails_too_often(module, kind, after) for kind in SHARED_ROWS for after in AFTERS
    )


def region_fails(module: ModuleType, delta: float, generator: np.random.Generator) -> bool:
    """Whether any of many pairs is outside the region at any of some times; the pairs have one state each."""
    kinds = [ROWS["rare successor"], ROWS["one in three"], [0.9, 0.1], ROWS["slippery"]] * 3
    drawn = [generator.choice(len(row), size=400, p=row) for row in kinds]
    for n in (2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 90, 160, 250, 400):
        order = [list(dict.fromkeys(draws[:n].tolist())) for draws in drawn]
        counts = [[int((draws[:n] == y).sum()) for y in seen] for draws, seen in zip(drawn, order, strict=True)]
        first = [[int(np.argmax(draws == y)) + 1 for y in seen] for draws, seen in zip(drawn, order, strict=True)]
        rows = counted_rows(counts, first)
        region = module.confidence_region(rows, delta)
        for pair, (row, seen) in enumerate(zip(kinds, order, strict=True)):
            shares = region.shares[rows.row_offsets[pair] : rows.row_offsets[pair + 1]]
            if region.slack[pair] < math.inf and distance(shares, np.array(row)[seen]) > region.slack[pair]:
                return True
    return False


def region_fails_too_often(module: ModuleType) -> bool:
    delta = 0.5
    repeats, allowed = repeats_to_tell(delta, 0.75)
    generator = np.random.default_rng(5)
    return sum(region_fails(module, delta, generator) for _ in range(repeats)) > allowed


def test_any_of_many_pairs_is_outside_the_region_at_most_with_probability_delta() -> None:
    assert not region_fails_too_often(confidence)


def test_a_region_whose_level_is_not_divided_among_pairs_is_caught(tmp_path: Path) -> None:
    changed = mutant(
        tmp_path, "np.log(PAIRS_PART * (1.0 - OWN_PART) * delta * weights)", "np.log(np.full(len(weights), delta))"
    )
    assert region_fails_too_often(changed)


def test_a_pair_never_drawn_has_no_shares_and_no_limit() -> None:
    region = confidence_region(counted_rows([[], [5, 1]]), 0.1)
    assert region.slack[0] == math.inf
    assert region.shares.tolist() == [1.0, 0.0]


def test_the_region_enlarges_slacks_by_more_than_rounding() -> None:
    rows = counted_rows([[70, 30]])
    level = confidence.PAIRS_PART * (1 - confidence.OWN_PART) * 0.1 * float(pair_weights(rows)[0])
    (slack,) = confidence_region(rows, 0.1).slack
    assert slack >= slack_of([70, 30], level) * (1 + ROUNDING) + ROUNDING_PER_DRAW
    assert slack == pytest.approx(slack_of([70, 30], level), rel=1e-8)


def test_certain_pairs_get_the_better_of_their_two_slacks() -> None:
    rows = counted_rows([[1000]] * 50)
    region = confidence_region(rows, 0.1)
    weights = pair_weights(rows)
    parts = dict(confidence.JOINING)
    budgets = [shared_budget(rows, weights, confidence.SHARED_PART * parts[after] * 0.1, after) for after in parts]
    assert [(budget.after, budget.nats) for budget in region.shared_budgets] == list(zip(parts, budgets, strict=True))
    assert region.slack == pytest.approx(np.full(50, budgets[0] / 999), rel=1e-6)
    own = slack_of([1000], 0.1 * confidence.PAIRS_PART * (1 - confidence.OWN_PART) * float(weights[49]))
    assert region.slack[49] < own / 2


def test_balls_found_before_are_those_found_anew() -> None:
    """Whatever rows were asked for before: some that changed, that are longer or fewer, or have other levels."""
    generator, remembering = np.random.default_rng(0), confidence._Balls()
    counts = [generator.integers(1, 40, size=generator.integers(0, 4)).tolist() for _ in range(12)]
    for turn in range(30):
        changed = int(generator.integers(len(counts)))
        counts[changed] = generator.integers(1, 40, size=generator.integers(0, 5)).tolist()
        if turn % 7 == 3:
            counts.append([turn, 5])
        rows, delta = counted_rows(counts if turn % 5 else counts[:4]), 0.1 if turn % 11 else 0.2
        log_levels = np.log(delta * pair_weights(rows))
        if turn % 3 == 0:  # as of tied pairs
            log_levels[:] = np.log(0.01)
        shares, slack = remembering.balls_of(rows, log_levels)
        anew = confidence._Balls().balls_of(rows, log_levels)
        assert shares.tolist() == anew[0].tolist()
        assert slack.tolist() == anew[1].tolist()
        for pair in np.flatnonzero(rows.visits > 0):
            entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
            own = np.zeros(entries.stop - entries.start)
            ball = central_ball(rows.counts[entries].astype(np.float64), log_levels[pair], own)
            assert slack[pair] == ball * (1.0 + ROUNDING) + ROUNDING_PER_DRAW
            assert shares[entries].tolist() == own.tolist()
