"""Evidence that two samples have different laws, beside the products of what a predictor gives draw by draw."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np
import pytest

from axplore.statistics import dependence
from axplore.statistics.dependence import (
    HistoryTest,
    log_difference,
    log_evidence_of_drop,
    log_evidence_of_shares,
    log_evidence_of_two,
)


def given(counts: Mapping[Hashable, int], kinds: int) -> float:
    """What Jeffreys' predictor gives to draws that come one kind after the other."""
    product, drawn = 1.0, 0
    for times in counts.values():
        for again in range(times):
            product *= (again + 0.5) / (drawn + kinds / 2)
            drawn += 1
    return product


def explained(*counts: int) -> float:
    """What the likeliest law gives to them."""
    return math.prod((times / sum(counts)) ** times for times in counts if times)


@pytest.mark.parametrize(
    ("first", "second"),
    [({"a": 5}, {"b": 4}), ({"a": 3, "b": 2}, {"b": 4, "c": 1}), ({"a": 1}, {"a": 6}), ({"a": 2, "b": 2}, {"a": 2})],
)
def test_of_successors_without_names(first: dict[Hashable, int], second: dict[Hashable, int]) -> None:
    kinds = [*{**first, **second}]
    m = len(kinds)
    named = math.factorial(m) / (m * (m + 1))  # the orders of names, and how likely it is that there are so many
    repeats = [first.get(kind, 0) + second.get(kind, 0) - 1 for kind in kinds]
    expected = named * given(first, m) * given(second, m) / explained(*repeats)
    assert log_evidence_of_two(first, second) == pytest.approx(math.log(expected))


@pytest.mark.parametrize(("first", "second"), [((5, 0), (0, 4)), ((9, 1), (3, 7)), ((2, 2), (2, 2))])
def test_of_shares(first: tuple[int, int], second: tuple[int, int]) -> None:
    both = [given({"hits": hits, "misses": misses}, 2) for hits, misses in (first, second)]
    expected = math.log(math.prod(both) / explained(first[0] + second[0], first[1] + second[1]))
    assert log_evidence_of_shares(first, second) == pytest.approx(expected)
    is_drop = second[0] / sum(second) < first[0] / sum(first)
    assert log_evidence_of_drop(first, second) == (pytest.approx(expected) if is_drop else -math.inf)
    assert log_evidence_of_drop(second, first) == -math.inf


def test_of_one_law_against_two() -> None:
    one: dict[Hashable, int] = {"a": 3, "b": 2}
    other: dict[Hashable, int] = {"b": 4, "c": 1}
    joint: dict[Hashable, int] = {"a": 3, "b": 6, "c": 1}
    expected = given(one, 3) * given(other, 3) / given(joint, 3)
    assert log_difference(one, other) == pytest.approx(math.log(expected))


@pytest.mark.parametrize(("part", "alarms"), [(1 + 1e-9, True), (1 - 1e-9, False)])
def test_the_first_pair_alarms_with_twice_the_evidence_of_the_level(part: float, alarms: bool) -> None:
    """The r-th pair needs r (r + 1) / α."""
    draws = [("here", "pair", "on", 1), ("there", "pair", "off", 1)]
    patient = HistoryTest(1e-300)
    for _ in range(9):
        patient.add(draws)
    evidence = patient._bets["pair"].log_evidence
    assert evidence > 1
    test = HistoryTest(2 * math.exp(-evidence) * part)
    for _ in range(9):
        test.add(draws)
    assert (test.alarm is not None) == alarms


@pytest.mark.parametrize("seed", range(20))
def test_a_bet_that_is_made_later_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bet is not made before a pair shows a second successor; then it is made on everything so far."""
    random = np.random.default_rng(seed)
    late, early = HistoryTest(1e-3, is_ordered=True), HistoryTest(1e-3, is_ordered=True)
    for _ in range(60):
        draws = [
            (
                int(random.integers(9)),
                pair,
                int(random.random() < (0.02, 0.3, 0.0)[pair % 3]),
                int(random.integers(1, 4)),
            )
            for pair in random.integers(100, size=5).tolist()
        ]
        late.add(draws)
        with monkeypatch.context() as patched:
            patched.setattr(dependence, "MOST_WAITING", 0)
            early.add(draws)
    assert 0 < len(late._bets) < len(early._bets)
    for pair, bet in late._bets.items():
        assert bet.log_evidence == early._bets[pair].log_evidence
        assert late._threshold(pair) == early._threshold(pair)
    assert all(early._bets[pair].log_evidence < 1e-9 for pair in late._waiting)
    assert (late.alarm is None) == (early.alarm is None)
