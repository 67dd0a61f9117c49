"""What assumptions say of rows: when a support is closed, and which draws contradict them."""

from __future__ import annotations

import numpy as np
import pytest

from axplore.assumptions.applied import contradicted_pairs, given_rows, region_given
from axplore.assumptions.min_probability import MinProbability, log_rarity
from axplore.certificate.region import confidence_region
from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.statistics.centred import central_ball
from axplore.statistics.confidence import EPISODE_PART, JOINING, OWN_PART, PAIRS_PART, SHARED_PART
from axplore.statistics.given_rows import CLOSING_PART
from axplore.types import FloatArray
from made_counts import made_counts


def rows_of(*rows: dict[int, tuple[int, int]]) -> Counts:
    """One state with these pairs: each successor with its count and its first draw."""
    return made_counts([[(successor, *met) for successor, met in row.items()] for row in rows], [len(rows)])


def assumed(single: list[float], least: list[float]) -> Assumed:
    """What is declared; nothing of a kind that says nothing of any pair."""
    numbers = {"deterministic": np.array(single, dtype=np.float64), "min-probability": np.array(least)}
    return Assumed({name: declared for name, declared in numbers.items() if declared.any()})


@pytest.mark.parametrize("least", [0.5, 1 / 3, 0.33, 0.15, 0.01])
@pytest.mark.parametrize("level", [0.1, 1e-4])
def test_a_support_is_closed_once_a_missed_outcome_is_as_unlikely_as_the_level_says(least: float, level: float) -> None:
    (draws,) = MinProbability().closing_draws(np.array([least]), np.array([level]))
    kinds = int(1 / least + 1e-9)
    assert kinds * (1 - least) ** draws <= level
    assert kinds * (1 - least) ** (draws - 1) > level * (1 - 1e-6)


def test_without_a_least_probability_no_support_is_closed() -> None:
    assert MinProbability().closing_draws(np.array([0.0]), np.array([0.1])) == [np.inf]
    assert MinProbability().closing_draws(np.array([1.0]), np.array([0.1])) == [1.0]


def test_a_support_without_room_for_another_outcome_is_closed_at_once() -> None:
    least = np.array([1 / 3, 1 / 3, 0.33, 0.26, 0.25, 0.0])
    n_successors = np.array([3, 2, 3, 3, 3, 3])
    no_room = n_successors >= MinProbability().most_outcomes(least)
    assert no_room.tolist() == [True, False, True, True, False, False]


def test_thirds_are_no_contradiction_and_four_of_them_are() -> None:
    three = {1: (1, 1), 2: (1, 2), 3: (1, 3)}
    four = {**three, 4: (1, 4)}
    rows = rows_of(three, four)
    found = contradicted_pairs(rows, 0.1, assumed([0, 0], [1 / 3, 1 / 3]))
    assert found.tolist() == [1]


def test_a_second_outcome_of_a_single_pair_and_a_late_one_of_a_closed_pair_are_contradictions() -> None:
    claims = assumed([1, 0, 0], [0.0, 0.2, 0.2])
    closed = int(given_rows(rows_of({}, {}, {}), 0.1, claims).closing[1])
    late = {1: (closed, 1), 2: (closed // 4, closed + 1)}
    in_time = {1: (closed, 1), 2: (closed // 4, closed)}
    rows = rows_of({1: (1, 1), 2: (1, 2)}, late, in_time)
    assert contradicted_pairs(rows, 0.1, claims).tolist() == [0, 1]


def test_a_single_pair_is_known_after_one_draw_and_takes_no_part_in_the_shared_martingale() -> None:
    rows = rows_of({1: (1, 1)}, {1: (50, 1)})
    free = region_given(rows, 0.1)
    region = region_given(rows, 0.1, assumed([1, 0], [0.0, 0.0]))
    assert free.slack[0] == np.inf
    assert (region.slack[0], region.shares[0]) == (0.0, 1.0)
    for mine, theirs in zip(region.shared_budgets, free.shared_budgets, strict=False):
        assert mine.nats < theirs.nats


def test_a_row_has_one_ball_with_its_whole_level_before_its_support_closes_and_after() -> None:
    """One martingale gives both, so that nothing is divided between them; closing adds that nothing is unseen."""
    counted, delta, least = {1: (7, 1), 2: (5, 2)}, 0.1, 0.3
    level = PAIRS_PART * (1 - OWN_PART) * delta * (10 / (11 * 10))
    open_row = region_given(rows_of(counted), delta, assumed([0], [least]))
    closed_row = region_given(rows_of(counted), delta, assumed([0], [0.4]))
    assert (open_row.closed.tolist(), closed_row.closed.tolist()) == ([False], [True])
    assert open_row.slack[0] == pytest.approx(central_ball(np.array([7.0, 5.0]), np.log(level), np.zeros(2)), rel=1e-8)
    assert closed_row.slack[0] == open_row.slack[0]


def test_the_parts_of_delta_sum_to_one_whatever_is_assumed() -> None:
    """The part for closing is taken off that of the shared martingale, which is known by its budget."""
    rows = rows_of({1: (50, 1)})
    free, closing = (region_given(rows, 0.1, Assumed(numbers)) for numbers in ({}, {"min-probability": np.zeros(1)}))
    assert pytest.approx(1.0) == PAIRS_PART + SHARED_PART + EPISODE_PART
    assert closing.log_levels == free.log_levels
    theirs = confidence_region(rows, [1], 0.1, Assumed({"min-probability": np.zeros(1)}))
    budget = float(theirs.slack[0]) * 49
    assert sum(part for _, part in JOINING) == pytest.approx(1.0)
    free_budget = free.shared_budgets[0].nats
    assert budget == pytest.approx(free_budget + np.log(SHARED_PART / (SHARED_PART - CLOSING_PART)), rel=1e-6)
    assert budget == pytest.approx(float(closing.slack[0]) * 49, rel=1e-6)


def test_nothing_assumed_changes_nothing() -> None:
    rows = rows_of({1: (30, 1), 2: (11, 2)}, {1: (50, 1)})
    plain, same = region_given(rows, 0.1), region_given(rows, 0.1, Assumed({}))
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
        region = region_given(rows_of(counted), 0.5, assumed([0], [least]))
        assert region.closed.all()
        truth: FloatArray = np.array([row[kind] for kind in order])
        outside += float((region.shares * np.log(region.shares / truth)).sum()) > region.slack[0]
    assert outside <= 300 * 0.5  # the level is far smaller: a pair has a part of δ only


def test_levels_go_by_what_was_declared_and_not_by_what_was_met_first() -> None:
    """A function that says nothing of early pairs must not leave them the part of δ that later ones close with.

    The level of a pair is the same before and after a pair with a least probability is counted, so its part and the
    parts of the shared martingale and of closings never add up to more than δ.
    """
    early, later = {1: (7, 1), 2: (5, 2)}, {1: (40, 1), 2: (30, 2)}
    kind = "min-probability"
    before = region_given(rows_of(early, {}), 0.1, Assumed({kind: np.array([0.0, 0.0])}))
    after = region_given(rows_of(early, later), 0.1, Assumed({kind: np.array([0.0, 0.3])}))
    assert before.slack[0] == after.slack[0]
    level = PAIRS_PART * (1 - OWN_PART) * 0.1 * after.weights[0]
    assert before.slack[0] == pytest.approx(central_ball(np.array([7.0, 5.0]), np.log(level), np.zeros(2)), rel=1e-8)


def test_explorer_and_verifier_divide_delta_alike_where_a_kind_says_nothing_yet() -> None:
    rows = rows_of({1: (7, 1), 2: (5, 2)}, {1: (40, 1), 2: (30, 2)})
    for numbers in ([0.0, 0.0], [0.0, 0.3], [0.3, 0.3]):
        said = Assumed({"min-probability": np.array(numbers)})
        theirs = confidence_region(rows, [2], 0.1, said)
        assert theirs.slack == pytest.approx(region_given(rows, 0.1, said).slack, rel=1e-8)
