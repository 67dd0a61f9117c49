from __future__ import annotations

import itertools
import math
import random
from collections.abc import Hashable

import pytest

from axplore.errors import InvalidSettingError
from axplore.statistics.dependence import (
    SPLITS,
    HistoryTest,
    _BatchBet,
    _Splits,
    two_that_differ,
)


@pytest.mark.parametrize("is_ordered", [False, True])
@pytest.mark.parametrize("cuts", [(2, 3, 2), (1, 1, 1, 1, 1, 1, 1), (7,), (4, 3)])
@pytest.mark.parametrize("row", [(0.5, 0.5), (0.9, 0.1), (0.6, 0.3, 0.1)])
def test_the_evidence_against_a_true_independence_has_an_expectation_of_at_most_one(
    cuts: tuple[int, ...], row: tuple[float, ...], is_ordered: bool
) -> None:
    """By enumerating every sequence of draws; the context of a draw is the draw before it, which is its own past."""
    expected = 0.0
    for sequence in itertools.product(range(len(row)), repeat=sum(cuts)):
        bet, place, context = _BatchBet(is_ordered=is_ordered), 0, -1
        for length in cuts:
            batch = []
            for successor in sequence[place : place + length]:
                batch.append((context, successor, 1))
                context = successor
            bet.add(batch)
            place += length
        expected += math.prod(row[successor] for successor in sequence) * math.exp(bet.log_evidence)
    assert expected <= 1 + 1e-9


def test_the_same_holds_after_draws_that_came_before_any_batch() -> None:
    row, expected = (0.7, 0.3), 0.0
    for sequence in itertools.product(range(2), repeat=8):
        bet = _BatchBet()
        before: dict[Hashable, int] = {}
        for successor in sequence[:4]:
            before[successor] = before.get(successor, 0) + 1
        bet.begin_with("before", before)
        bet.add([("after", successor, 1) for successor in sequence[4:]])
        expected += math.prod(row[successor] for successor in sequence) * math.exp(bet.log_evidence)
    assert expected <= 1 + 1e-9


@pytest.mark.parametrize("row", [(0.5, 0.5), (0.9, 0.1), (0.6, 0.3, 0.1)])
def test_the_same_holds_if_they_came_in_several_contexts(row: tuple[float, ...]) -> None:
    expected = 0.0
    for sequence in itertools.product(range(len(row)), repeat=8):
        bet = _BatchBet()
        for context, draws in enumerate((sequence[:3], sequence[3:5], sequence[5:6])):
            counts: dict[Hashable, int] = {successor: draws.count(successor) for successor in dict.fromkeys(draws)}
            bet.begin_with(context, counts)
        bet.add([(0, sequence[6], 1), (2, sequence[7], 1)])
        expected += math.prod(row[successor] for successor in sequence) * math.exp(bet.log_evidence)
    assert expected <= 1 + 1e-9


@pytest.mark.parametrize("n_draws", range(1, 7))
def test_what_is_given_to_draws_before_any_batch_sums_to_a_probability(n_draws: int) -> None:
    """Over the orders in which successors that have no names yet can come: half of it is on one successor."""
    total = 0.0
    for sequence in itertools.product(range(n_draws), repeat=n_draws):
        met = list(dict.fromkeys(sequence))
        if met == sorted(met) == list(range(len(met))):  # named in the order of their first sight
            bet = _BatchBet()
            bet.begin_with("before", {successor: sequence.count(successor) for successor in met})
            total += math.exp(bet._each.log_predicted)
    assert 0.5 - 1e-9 <= total <= 1 + 1e-9


def test_contexts_that_differ_before_any_batch_are_found_at_the_next_draw() -> None:
    test = HistoryTest(1e-3)
    test.begin_with("class", "here", {"on": 90, "stay": 10})
    test.begin_with("class", "there", {"on": 40, "stay": 60})
    test.add([("here", "class", "on", 1)])
    assert test.alarm is not None


def test_the_evidence_of_a_batch_does_not_depend_on_how_it_is_counted() -> None:
    draws = [("a", 0), ("b", 1), ("a", 0), ("a", 1), ("b", 1)]
    one, other = _BatchBet(), _BatchBet()
    for bet in (one, other):
        bet.add([("a", 0, 3), ("b", 1, 2)])
    one.add([(context, successor, 1) for context, successor in draws])
    other.add([("b", 1, 2), ("a", 1, 1), ("a", 0, 2)])
    assert one.log_evidence == pytest.approx(other.log_evidence)
    assert (one.draws, one.table) == (other.draws, other.table)


def test_a_small_dependence_among_many_contexts_is_found() -> None:
    """One of ten contexts brings heads with 0.7 instead of 0.5."""
    rng, test = random.Random(0), HistoryTest(1e-3)
    for _ in range(40):
        drawn = [rng.randrange(10) for _ in range(200)]
        test.add([(c, "pair", rng.random() < (0.7 if c == 0 else 0.5), 1) for c in drawn])
    assert test.alarm is not None
    assert test.alarm.pair == "pair"
    assert 0 in two_that_differ(test.alarm.table)


def draws_until_found(seed: int, is_ordered: bool) -> int:
    """Of nine classes, as of ages after a RESET, the first four succeed with 0.25 and the others with 0.15."""
    rng, test, draws = random.Random(seed), HistoryTest(1e-4, is_ordered=is_ordered), 0
    while test.alarm is None:
        drawn = [rng.randrange(9) for _ in range(40)]
        test.add([(c, "pair", rng.random() < (0.25 if c < 4 else 0.15), 1) for c in drawn])
        draws += 40
    return draws


def test_what_begins_at_some_class_is_found_from_fewer_draws_where_classes_are_ordered() -> None:
    blind, ordered = (sum(draws_until_found(seed, is_ordered) for seed in range(8)) for is_ordered in (False, True))
    assert ordered < 0.85 * blind


@pytest.mark.parametrize("is_ordered", [False, True])
def test_nothing_is_found_where_contexts_are_alike(is_ordered: bool) -> None:
    rng, test = random.Random(1), HistoryTest(1e-3, is_ordered=is_ordered)
    for _ in range(40):
        drawn = [rng.randrange(10) for _ in range(200)]
        test.add([(c, c % 2, rng.random() < 0.3, 1) for c in drawn])
    assert test.alarm is None


def test_a_level_that_is_no_probability_is_refused() -> None:
    with pytest.raises(InvalidSettingError):
        HistoryTest(0.0)


@pytest.mark.parametrize("seed", range(5))
def test_splits_that_share_their_bets_give_what_each_alone_would(seed: int) -> None:
    generator = random.Random(seed)
    shared, apart = _Splits(), _Splits()
    assert len(list(apart.for_classes(range(SPLITS[-1] + 1)))) == len(SPLITS)
    shares: dict[Hashable, float] = {"x": 0.5, "y": 0.25}
    for number in range(12):
        classes = [generator.randrange(number + 3) for _ in range(2)]
        batch: dict[Hashable, dict[Hashable, int]] = {
            context: {"x": generator.randint(1, 4), "y": generator.randint(1, 9)} for context in classes
        }
        for splits in (shared, apart):
            for predictors in splits.for_classes(batch):
                predictors.bet(batch, shares, 0.25)
                for context, counts in batch.items():
                    predictors.count(context, counts)
        assert shared.log_predicted == apart.log_predicted
        if number == 0:
            assert len(list(shared.for_classes([]))) < len(SPLITS)
