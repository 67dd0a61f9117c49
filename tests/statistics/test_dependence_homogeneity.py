from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pytest
from scipy.stats import binom

from axplore.errors import InvalidSettingError
from axplore.statistics.dependence import HomogeneityTest, PairBet

ContextRule = Callable[[Sequence[Hashable]], Hashable]

CONTEXTS: dict[str, ContextRule] = {
    "none": lambda _: None,
    "the last successor": lambda past: past[-1] if past else None,
    "whether it repeated itself": lambda past: len(past) >= 2 and past[-1] == past[-2],
    "the place": lambda past: len(past) % 3,
}


def evidence_along(successors: Sequence[Hashable], rule: ContextRule) -> list[float]:
    """E after each draw."""
    bet = PairBet()
    values = []
    for place, successor in enumerate(successors):
        bet.add(rule(successors[:place]), successor)
        values.append(math.exp(bet.log_evidence))
    return values


@pytest.mark.parametrize("rule", CONTEXTS.values(), ids=list(CONTEXTS))
@pytest.mark.parametrize(
    "probabilities", [(0.5, 0.5), (0.1, 0.9), (0.02, 0.98), (1.0,), (0.2, 0.3, 0.5), (0.05, 0.95, 0.0)]
)
def test_evidence_has_an_expectation_of_at_most_one_and_rarely_ever_exceeds_a_level(
    probabilities: tuple[float, ...], rule: ContextRule
) -> None:
    """Exactly, by every sequence there is, also where the context depends on what came before."""
    length = {1: 12, 2: 11, 3: 7}[len(probabilities)]
    expected = np.zeros(length)
    levels = (0.5, 0.2, 0.1, 0.05)
    alarms = dict.fromkeys(levels, 0.0)
    for successors in itertools.product(range(len(probabilities)), repeat=length):
        weight = math.prod(probabilities[successor] for successor in successors)
        if weight == 0:
            continue
        values = evidence_along(successors, rule)
        expected += weight * np.array(values)
        for level in levels:
            alarms[level] += weight * (max(values) >= 1 / level)
    assert (expected <= 1 + 1e-9).all()
    assert all(alarms[level] <= level for level in levels)


def test_evidence_is_predicted_by_likely_divided_by_best_of_one_distribution() -> None:
    """By hand: a new successor, the same again, then another new one in another context."""
    bet = PairBet()
    bet.add("x", "a")  # nothing else was possible: 1
    assert bet.log_evidence == pytest.approx(0.0)
    bet.add("x", "a")  # (1 + 1.5/2) / 2, and the best distribution gives 1
    assert math.exp(bet.log_evidence) == pytest.approx(0.875)
    bet.add("y", "b")  # new: 0.5/3, and the best distribution is given 1 for it
    assert math.exp(bet.log_evidence) == pytest.approx(0.875 * 0.5 / 3)
    bet.add("y", "b")  # (1 + 1.5/4.5) / 2; repeats: a once, b once, 1/4 at best
    assert math.exp(bet.log_evidence) == pytest.approx(0.875 * (0.5 / 3) * (1 + 1 / 3) / 2 * 4)


def test_the_chance_of_any_alarm_among_many_pairs_is_below_the_level() -> None:
    """The successors of 30 pairs on a random walk, with their predecessors as contexts."""
    false_alarm, repeats = 0.2, 300
    alarms = 0
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        test = HomogeneityTest(false_alarm)
        state, last = 0, None
        for move in rng.integers(-1, 2, size=600).tolist():
            successor = (state + move) % 30
            test.add(state, last, successor)
            state, last = successor, state
        alarms += test.alarm is not None
    assert alarms <= binom.ppf(1 - 1e-6, repeats, false_alarm)


@pytest.mark.parametrize("strength", [1.0, 0.9])
def test_a_successor_that_follows_its_context_is_noticed(strength: float) -> None:
    rng = np.random.default_rng(0)
    test = HomogeneityTest(1e-3)
    for _ in range(200):
        context = bool(rng.integers(2))
        test.add("healthy", context, bool(rng.integers(2)))
        test.add("pair", context, context if rng.random() < strength else not context)
    assert test.alarm is not None
    assert test.alarm.pair == "pair"
    assert test.alarm.draws == sum(sum(row.values()) for row in test.alarm.table.values()) <= 200
    assert test.margin > 0


def test_an_alarm_stays_as_it_was_raised() -> None:
    test = HomogeneityTest(0.05)
    for draw in range(100):
        test.add("pair", draw % 2, draw % 2)
    alarm = test.alarm
    assert alarm is not None
    for _ in range(1000):
        test.add("pair", 0, 1)
    assert test.alarm == alarm


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(InvalidSettingError, match="false_alarm"):
        HomogeneityTest(level)
