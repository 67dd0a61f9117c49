"""What assumptions say of rows: when a support is closed, and which draws contradict them."""

from __future__ import annotations

import numpy as np
import pytest

from axplore.statistics.assumed_rows import (
    AssumedRows,
    closing_draws,
    contradicted_pairs,
    has_no_room,
    log_rarity,
    nothing_assumed,
)
from axplore.statistics.confidence import confidence_region
from axplore.statistics.counts import CountedRows
from axplore.types import FloatArray


def rows_of(*rows: dict[int, tuple[int, int]]) -> CountedRows:
    """One state with these pairs: each successor with its count and its first draw."""
    lengths = [len(row) for row in rows]
    entries = [(successor, *met) for row in rows for successor, met in row.items()]
    successors, counts, first_draws = np.array(entries, dtype=np.int64).reshape(-1, 3).T.copy()
    return CountedRows(
        states=np.array([0]),
        state_pairs=np.array([0, len(rows)]),
        visits=np.array([sum(count for count, _ in row.values()) for row in rows]),
        row_offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        successors=successors,
        counts=counts,
        first_draws=first_draws,
    )


def assumed(single: list[int], least: list[float]) -> AssumedRows:
    return AssumedRows(np.array(single), np.array(least))


@pytest.mark.parametrize("least", [0.5, 1 / 3, 0.33, 0.15, 0.01])
@pytest.mark.parametrize("level", [0.1, 1e-4])
def test_a_support_is_closed_once_a_missed_outcome_is_as_unlikely_as_the_level_says(least: float, level: float) -> None:
    (draws,) = closing_draws(np.array([least]), np.array([level]))
    kinds = int(1 / least + 1e-9)
    assert kinds * (1 - least) ** draws <= level
    assert kinds * (1 - least) ** (draws - 1) > level * (1 - 1e-6)


def test_without_a_least_probability_no_support_is_closed() -> None:
    assert closing_draws(np.array([0.0]), np.array([0.1])) == [np.inf]
    assert closing_draws(np.array([1.0]), np.array([0.1])) == [1.0]


def test_a_support_without_room_for_another_outcome_is_closed_at_once() -> None:
    least = np.array([1 / 3, 1 / 3, 0.33, 0.26, 0.25, 0.0])
    n_successors = np.array([3, 2, 3, 3, 3, 3])
    assert has_no_room(least, n_successors).tolist() == [True, False, True, True, False, False]


def test_thirds_are_no_contradiction_and_four_of_them_are() -> None:
    three = {1: (1, 1), 2: (1, 2), 3: (1, 3)}
    four = {**three, 4: (1, 4)}
    rows = rows_of(three, four)
    found = contradicted_pairs(rows, assumed([0, 0], [1 / 3, 1 / 3]), np.array([100.0, 100.0]))
    assert found.tolist() == [1]


def test_a_second_outcome_of_a_single_pair_and_a_late_one_of_a_closed_pair_are_contradictions() -> None:
    rows = rows_of({1: (1, 1), 2: (1, 2)}, {1: (40, 1), 2: (1, 41)}, {1: (30, 1), 2: (11, 2)})
    claims = assumed([1, 0, 0], [0.0, 0.2, 0.2])
    assert contradicted_pairs(rows, claims, np.array([np.inf, 40.0, 40.0])).tolist() == [0, 1]


def test_a_single_pair_is_known_after_one_draw_and_takes_no_part_in_the_shared_martingale() -> None:
    rows = rows_of({1: (1, 1)}, {1: (50, 1)})
    free = confidence_region(rows, 0.1)
    region = confidence_region(rows, 0.1, assumed([1, 0], [0.0, 0.0]))
    assert free.slack[0] == np.inf
    assert (region.slack[0], region.shares[0]) == (0.0, 1.0)
    assert region.shared_budget < free.shared_budget


def test_nothing_assumed_changes_nothing() -> None:
    rows = rows_of({1: (30, 1), 2: (11, 2)}, {1: (50, 1)})
    plain, same = confidence_region(rows, 0.1), confidence_region(rows, 0.1, nothing_assumed(2))
    assert np.array_equal(plain.slack, same.slack)
    assert np.array_equal(plain.shares, same.shares)


def test_outcomes_as_likely_as_assumed_are_hardly_ever_taken_for_rarer() -> None:
    rng, alarms = np.random.default_rng(5), 0
    for _ in range(400):
        came = np.cumsum(rng.random(500) < 0.2, dtype=np.int64)
        draws = np.arange(1, 501)
        rarity = log_rarity(came, draws, np.full(500, 0.2))
        alarms += bool((rarity >= np.log(1 / 0.1)).any())
    assert alarms <= 400 * 0.1
    assert log_rarity(np.array([20]), np.array([200]), np.array([0.2]))[0] > np.log(80)
    assert log_rarity(np.array([60]), np.array([200]), np.array([0.2]))[0] == 0.0


@pytest.mark.parametrize("row", [[0.4, 0.6], [0.2, 0.3, 0.5]])
def test_a_closed_row_is_in_its_ball_as_often_as_the_level_says(row: list[float]) -> None:
    least, rng, outside = 0.15, np.random.default_rng(3), 0
    for _ in range(300):
        draws = rng.choice(len(row), size=200, p=row)
        kinds, first = np.unique(draws, return_index=True)
        order = kinds[np.argsort(first)]
        counted = {int(kind): (int((draws == kind).sum()), int(first[kinds == kind][0]) + 1) for kind in order}
        region = confidence_region(rows_of(counted), 0.5, assumed([0], [least]))
        assert region.closed.all()
        truth: FloatArray = np.array([row[kind] for kind in order])
        outside += float((region.shares * np.log(region.shares / truth)).sum()) > region.slack[0]
    assert outside <= 300 * 0.5  # the level is far smaller: a pair has a part of δ only
