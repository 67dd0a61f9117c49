from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from axplore.errors import InvalidSettingError
from axplore.statistics.dependence import DOUBT, TimingTest


@pytest.mark.parametrize("chances", [(0.5, 0.1), (0.0, 1.0), (0.02, 0.02), (0.9, 0.5)])
@pytest.mark.parametrize("after_event", [False, True])
def test_evidence_has_an_expectation_of_at_most_one_and_rarely_ever_exceeds_a_level(
    chances: tuple[float, float], after_event: bool
) -> None:
    """Exactly, by every sequence of events of two pairs; the moment is suspected by place or by what came before."""
    length = 11
    expected = np.zeros(length)
    alarms = {0.5: 0.0, 0.1: 0.0, 0.02: 0.0}
    for events in itertools.product((False, True), repeat=length):
        weight = math.prod(
            chances[place % 2] if event else 1 - chances[place % 2] for place, event in enumerate(events)
        )
        if weight == 0:
            continue
        test = TimingTest(0.5)
        values = []
        for place, event in enumerate(events):
            suspected = place > 0 and events[place - 1] if after_event else place % 3 == 2
            test.add(place % 2, suspected, event)
            values.append(math.exp(test.log_evidence))
        expected += weight * np.array(values)
        for level in alarms:
            alarms[level] += weight * (max(values) >= 1 / level)
    assert (expected <= 1 + 1e-9).all()
    assert all(chance <= level for level, chance in alarms.items())


def test_evidence_is_that_of_its_formula() -> None:
    """Two quiet draws of a pair, and then an event at the suspected moment."""
    test = TimingTest(0.5)
    for suspected, event in ((False, False), (False, False), (True, True)):
        test.add("pair", suspected, event)
    jeffreys = quad(lambda p: (1 - p) ** 2 / (math.pi * math.sqrt(p * (1 - p))), 0, 1)[0]
    predicted = (1 - DOUBT) + DOUBT * jeffreys
    assert math.exp(test.log_evidence) == pytest.approx(predicted * 0.5 / ((1 / 3) * (2 / 3) ** 2), rel=1e-6)


def test_an_event_that_always_comes_at_one_moment_from_any_pair_is_noticed() -> None:
    rng = np.random.default_rng(0)
    test = TimingTest(1e-3)
    for _ in range(12):
        for age in range(1, 51):
            test.add(int(rng.integers(20)), age == 50, age == 50)
    assert test.alarmed
    assert (test.timed_events, test.timed_misses) == (12, 0)


def test_an_event_that_belongs_to_a_pair_is_not_put_down_to_the_moment() -> None:
    test = TimingTest(0.5)
    for _ in range(50):
        for age in range(1, 21):
            test.add(age % 10, age == 20, age % 10 == 0)  # the pair 0 causes it, at 10 and at 20
    assert not test.alarmed


def test_a_level_outside_its_range_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="false_alarm"):
        TimingTest(2.0)
