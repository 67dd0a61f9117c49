"""The verifier's confidence region, held to closed forms, to its definition, and to the explorer's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from axplore.certificate.contents import Counts
from axplore.certificate.region import (
    confidence_region,
    least_mass,
    log_mixture,
    pair_weights,
    row_slack,
    shared_budget,
)
from axplore.statistics import confidence
from axplore.statistics.counts import CountedRows
from axplore.types import FloatArray

rows_of_counts = st.lists(st.integers(1, 60), min_size=1, max_size=6).filter(lambda row: sum(row) > len(row))
levels = st.floats(1e-6, 0.5)


def counts_of(rows: Sequence[Sequence[int]], first_draws: Sequence[Sequence[int]] | None = None) -> Counts:
    """Counts of one pair after the other; successors are numbered within each row."""
    drawn = first_draws or [range(1, len(row) + 1) for row in rows]
    return Counts(
        row_offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        successors=np.array([place for row in rows for place in range(len(row))], dtype=np.int64),
        counts=np.array(list(itertools.chain(*rows)), dtype=np.int64),
        first_draws=np.array(list(itertools.chain(*drawn)), dtype=np.int64),
    )


def records(n_draws: int) -> Iterator[list[int]]:
    """Every record of so many draws: each is of a successor seen before, or of the next new one."""
    grown: list[list[int]] = [[]]
    for _ in range(n_draws):
        grown = [[*record, kind] for record in grown for kind in range(max(record, default=-1) + 2)]
    yield from grown


def counts_in(record: Sequence[int]) -> list[int]:
    return [record.count(kind) for kind in range(max(record) + 1)]


def divergence(shares: Sequence[float], row: Sequence[float]) -> float:
    return math.fsum(
        share * math.log(share / probability) if probability > 0 else math.inf
        for share, probability in zip(shares, row, strict=True)
        if share > 0
    )


def test_the_weights_of_pairs_are_those_of_the_formula() -> None:
    assert pair_weights([2, 0, 3]) == pytest.approx([4 / 20 / 2] * 2 + [4 / 42 / 3] * 3)


@given(st.lists(st.integers(0, 5), max_size=300))
def test_the_weights_of_pairs_sum_to_at_most_one(n_actions: list[int]) -> None:
    assert math.fsum(pair_weights(n_actions)) <= 1


def test_the_weights_of_all_states_use_the_whole_of_delta() -> None:
    assert math.fsum(pair_weights([1] * 40_000)) == pytest.approx(1, abs=1.1e-4)  # all but 4 / 40,004


def test_the_mixture_of_the_first_draw_is_that_of_one_kind() -> None:
    assert log_mixture([1])[0] == pytest.approx(math.log(1 / 2))


def test_the_mixture_of_two_draws_has_its_closed_form() -> None:
    # One kind, with weight 1/2: certain. Two kinds, with weight 1/6: 2 ways to name them, each draw 1/2, then 1/4.
    assert log_mixture([2])[0] == pytest.approx(math.log(1 / 2))
    assert log_mixture([1, 1])[0] == pytest.approx(math.log(1 / 6 * 2 * 1 / 2 * 1 / 4))


@pytest.mark.parametrize("n_draws", [1, 2, 5, 8])
def test_the_mixture_gives_all_records_together_at_most_one(n_draws: int) -> None:
    total = math.fsum(math.exp(log_mixture(counts_in(record))[0]) for record in records(n_draws))
    assert 0.5 <= total <= 1


def test_a_certain_row_has_the_slack_of_its_level_alone() -> None:
    assert row_slack([101], 0.01) == pytest.approx((math.log(2) + math.log(100)) / 100)


@given(rows_of_counts, levels, st.data())
def test_a_row_that_the_level_does_not_rule_out_lies_in_the_ball(row: list[int], level: float, data: Any) -> None:
    raw = data.draw(st.lists(st.floats(0.01, 1), min_size=len(row) + 1, max_size=len(row) + 1))
    near = [count + 3 * noise for count, noise in zip([*row, 0], raw, strict=True)]
    probabilities = [weight / sum(near) for weight in near][:-1]
    log_truth = sum((count - 1) * math.log(p) for count, p in zip(row, probabilities, strict=True))
    log_truth += sum(math.log(1 - sum(probabilities[:seen])) for seen in range(1, len(row)))
    shares = [(count - 1) / (sum(row) - len(row)) for count in row]
    if log_truth >= log_mixture(row)[0] + math.log(level):
        assert divergence(shares, probabilities) <= row_slack(row, level)


@given(st.floats(1e-3, 1), st.floats(1e-6, 5))
def test_the_least_mass_is_the_root_of_its_equation_from_below(share: float, slack: float) -> None:
    mass, above = least_mass(share, slack), least_mass(share, slack) + 1e-13
    assert divergence([share, 1 - share], [mass, 1 - mass]) >= slack * (1 - 1e-9)
    assert above >= share or divergence([share, 1 - share], [above, 1 - above]) <= slack * (1 + 1e-9)


def test_the_least_mass_of_everything_seen_has_its_closed_form() -> None:
    assert least_mass(1.0, 0.3) == pytest.approx(math.exp(-0.3), rel=1e-12)


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
    counts = counts_of(rows, first_draws)
    own = confidence_region(counts, n_actions, delta)
    visits = np.array([sum(row) for row in rows], dtype=np.int64)
    theirs = confidence.confidence_region(
        CountedRows(
            np.arange(len(n_actions)),
            np.cumsum([0, *n_actions], dtype=np.int64),
            visits,
            counts.row_offsets,
            counts.successors,
            counts.counts,
            counts.first_draws,
        ),
        delta,
    )
    assert own.pairs.tolist() == np.flatnonzero(np.isfinite(theirs.slack)).tolist()
    assert own.slack == pytest.approx(theirs.slack[own.pairs], rel=1e-8)
    repeated = np.isfinite(theirs.slack)[np.repeat(np.arange(len(rows)), np.diff(counts.row_offsets))]
    assert own.shares == pytest.approx(theirs.shares[repeated & (counts.counts > 1)])


def least_mean_by_search(shares: Sequence[float], slack: float, values: Sequence[float]) -> float:
    """The least mean over the ball, by a solver that knows nothing of duality; unseen successors have the value 0."""
    centre, cost = np.array(shares), np.array(values)

    # By the logarithms of the probabilities the ball is a half-space, and everything is convex.
    def mean(logs: FloatArray) -> float:
        return float(np.exp(logs) @ cost)

    def room(logs: FloatArray) -> float:
        return float(slack - centre @ (np.log(centre) - logs))

    def rest(logs: FloatArray) -> float:
        return float(1 - np.exp(logs).sum())

    answer = minimize(
        mean,
        np.log(centre) - slack / 2,
        method="SLSQP",
        bounds=[(-50, 0)] * len(shares),
        constraints=[{"type": "ineq", "fun": rest}, {"type": "ineq", "fun": room}],
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert min(rest(answer.x), room(answer.x)) > -1e-6
    return float(answer.fun)


@given(st.integers(2, 2000), st.floats(0, 9))
def test_the_least_mean_of_a_certain_row_has_its_closed_form(n_draws: int, value: float) -> None:
    region = confidence_region(counts_of([[n_draws]]), [1], 0.1)
    assert region.least_means(np.array([value]))[0] == pytest.approx(value * math.exp(-region.slack[0]), abs=1e-9)


@given(rows_of_counts, st.data())
def test_the_least_mean_is_the_least_over_the_ball(row: list[int], data: Any) -> None:
    values = np.array(data.draw(st.lists(st.floats(0.05, 9), min_size=len(row), max_size=len(row))))
    region = confidence_region(counts_of([row]), [1], 0.1)
    bound = region.least_means(values)[0]
    found = least_mean_by_search(region.shares.tolist(), region.slack[0], values[region.successors].tolist())
    assert found == pytest.approx(bound, rel=1e-4, abs=1e-6)


@given(rows_of_counts, st.data())
def test_no_row_of_the_ball_has_a_smaller_mean(row: list[int], data: Any) -> None:
    numbers = st.lists(st.floats(0, 1), min_size=len(row), max_size=len(row))
    values, noise = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    region = confidence_region(counts_of([row]), [1], 0.1)
    tilted = region.shares * np.exp(data.draw(st.floats(0, 3)) * noise[region.successors])
    candidate = tilted / tilted.sum() * data.draw(st.floats(0.3, 1))
    if divergence(region.shares.tolist(), candidate.tolist()) <= region.slack[0]:
        assert candidate @ values[region.successors] >= region.least_means(values)[0] * (1 - 1e-12) - 1e-12


def test_pairs_that_are_not_known_have_the_least_mean_zero() -> None:
    region = confidence_region(counts_of([[1, 1], [], [50]]), [1, 2], 0.1)
    means = region.least_means(np.array([5.0, 5.0]))
    assert means[:2].tolist() == [0, 0]
    assert means[2] > 4


def test_a_region_without_pairs_has_no_means() -> None:
    assert len(confidence_region(counts_of([]), [0], 0.1).least_means(np.ones(1))) == 0
