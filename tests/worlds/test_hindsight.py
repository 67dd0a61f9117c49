from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from axplore.types import RESET_ACTION
from axplore.worlds.contract import Answer, Restarts, Visit
from axplore.worlds.hindsight import (
    AFTER_RESET,
    EARLY_DRAWS,
    SHORT_RUN,
    Circumstance,
    WatchedHistory,
    pair_of,
    told_apart,
)
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.walkers import INTERRUPTED


class Corridor:
    """Label 1 hides from which side it was entered; going on leads to where the agent has not come from."""

    actions = ("a", "b")

    def __init__(self, hides: bool) -> None:
        self._hides, self._random, self._state = hides, random.Random(3), 0
        self._came_by = ""

    def reset(self) -> int:
        self._state = 0
        return 0

    def step(self, action: str) -> int:
        if self._state == 0:
            self._state, self._came_by = 1, action
        elif self._state == 1:
            chance = (0.8 if self._came_by == "a" else 0.2) if self._hides else 0.5
            self._state = 2 if self._random.random() < chance else 3
        else:
            self._state = 0
        return self._state


def explored(hides: bool, watched: bool = True) -> tuple[SteppedWorld, list[Answer]]:
    world = SteppedWorld(Corridor(hides))
    if watched:
        world.watch_history()
    answers = []
    for turn in range(60):
        order = Visit(0, turn % 2, 30, np.zeros(len(world.states), dtype=np.int64), 50)
        answers += world.carry_out([order])
    return world, answers


def test_a_label_that_hides_where_the_agent_came_from_is_found() -> None:
    world, _ = explored(hides=True)
    alarm = world.history_alarm
    assert alarm is not None
    assert alarm.circumstance is Circumstance.ORIGIN
    pair = pair_of(int(str(alarm.dependence.pair)))
    assert pair is not None
    assert world.states[pair[0]] == 1
    assert {pair_of(int(str(context))) for context in alarm.dependence.table} >= {(0, 0), (0, 1)}


def test_nothing_is_found_where_nothing_is_hidden() -> None:
    world, _ = explored(hides=False)
    assert world.history_alarm is None


def test_watching_changes_no_answer() -> None:
    _, watched = explored(hides=True)
    _, unwatched = explored(hides=True, watched=False)
    for one, other in zip(watched, unwatched, strict=True):
        assert one.steps == other.steps
        np.testing.assert_array_equal(one.entry_counts, other.entry_counts)


def test_an_unwatched_world_has_no_alarm() -> None:
    world, _ = explored(hides=True, watched=False)
    assert world.history_alarm is None


def test_what_is_handed_to_the_tests_is_what_a_plain_loop_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With resets, failures and orders that begin elsewhere, in batches of any length."""
    rng, history = random.Random(5), WatchedHistory()
    handed: dict[Circumstance, Counter[tuple[int, int, int]]] = {asked: Counter() for asked in Circumstance}

    def adding(asked: Circumstance) -> Callable[[Iterable[tuple[int, int, int, int]]], None]:
        def add(draws: Iterable[tuple[int, int, int, int]]) -> None:
            for context, pair, successor, times in draws:
                handed[asked][context, pair, successor] += times

        return add

    for asked in Circumstance:
        monkeypatch.setattr(history.tests[asked], "add", adding(asked))
    expected: dict[Circumstance, Counter[tuple[int, int, int]]] = {asked: Counter() for asked in Circumstance}
    drawn: Counter[int] = Counter()
    position, before, age, run = 0, AFTER_RESET, 0, 0
    for _ in range(3000):
        if rng.random() < 0.01:
            history.break_off()
            position, before, age = rng.randrange(3), AFTER_RESET, 0
        history.begin(position)
        action = rng.choice((0, 1, 0, 1, 0, 1, RESET_ACTION))
        result = 0 if action == RESET_ACTION else rng.choice((0, 1, 2, 0, 1, 2, INTERRUPTED))
        history.steps.extend((action, result))
        if action == RESET_ACTION or result == INTERRUPTED:
            before, position, age = AFTER_RESET, 0, 0
        else:
            pair, age = (position << 20) | action, age + 1
            run = run + 1 if pair == before else 0
            expected[Circumstance.RUN][(run // SHORT_RUN).bit_length(), pair, result] += 1
            expected[Circumstance.ORIGIN][before, pair, result] += 1
            expected[Circumstance.AGE][age.bit_length(), pair, result] += 1
            expected[Circumstance.PERIOD][(drawn[pair] // EARLY_DRAWS).bit_length(), pair, result] += 1
            drawn[pair] += 1
            before, position = pair, result
    history.look()
    assert handed == expected


class Expiring:
    """`go` leads on with 0.3 in the first steps after a RESET, and never later."""

    actions = ("go",)

    def __init__(self, limit: int, rate: float = 0.0) -> None:
        self._random, self._limit, self._rate, self._steps = random.Random(7), limit, rate, 0

    def reset(self) -> int:
        self._age = 0
        return 0

    def step(self, _action: str) -> int:
        self._age, self._steps = self._age + 1, self._steps + 1
        chance = max(0.1, 0.5 - self._rate * self._steps) if self._age <= self._limit else 0.0
        return int(self._random.random() < chance)


class Trapping:
    """`go` leads from one state to the other with 0.5 until, once in its life, it is stuck until the next RESET."""

    actions = ("go",)

    def __init__(self, stuck_at: int | None) -> None:
        self._random, self._stuck_at, self._steps = random.Random(7), stuck_at, 0

    def reset(self) -> int:
        self._state, self._is_stuck = 0, False
        return 0

    def step(self, _action: str) -> int:
        self._steps += 1
        self._is_stuck = self._is_stuck or self._steps == self._stuck_at
        self._state ^= self._random.random() < 0.5 and not self._is_stuck
        return int(self._state)


def played(system: Trapping) -> SteppedWorld:
    world = SteppedWorld(system)
    world.watch_history()
    for _ in range(50):
        world.run_episode(lambda _state, _step: "go", "never seen", 100, Restarts.CHOSEN)
    return world


def test_one_run_of_a_system_that_is_stuck_is_enough() -> None:
    alarm = played(Trapping(stuck_at=2510)).history_alarm
    assert alarm is not None
    assert alarm.circumstance is Circumstance.RUN
    (stuck,) = alarm.dependence.table[2].items()  # 16 to 31 times in a row
    assert stuck[1] == 16


def test_long_runs_of_chance_are_no_alarm() -> None:
    assert played(Trapping(stuck_at=None)).history_alarm is None


def visited(system: Expiring, visits: int) -> SteppedWorld:
    world = SteppedWorld(system)
    world.watch_history()
    world.vary_ages()
    for _ in range(visits // 100):
        world.carry_out([Visit(0, 0, 100, np.zeros(len(world.states), dtype=np.int64), 50)])
    return world


def test_what_expires_after_a_reset_is_found_by_the_age() -> None:
    """Nothing but resets at random ages shows it: the start looks the same all along."""
    alarm = visited(Expiring(40), 3000).history_alarm
    assert alarm is not None
    assert alarm.circumstance is Circumstance.AGE


def test_a_slow_drift_is_found_by_the_period() -> None:
    alarm = visited(Expiring(10**9, rate=2e-5), 10_000).history_alarm
    assert alarm is not None
    assert alarm.circumstance is Circumstance.PERIOD


def test_nothing_is_found_where_neither_age_nor_time_matters() -> None:
    assert visited(Expiring(10**9), 10_000).history_alarm is None


@pytest.mark.parametrize("largest", [3, 10**12])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_numbers_are_told_apart_with_a_table_and_by_sorting_alike(largest: int, size: int) -> None:
    numbers = np.random.default_rng(size).integers(AFTER_RESET, largest, size)
    values, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    for found, expected in zip(told_apart(numbers), (values, places, first), strict=True):
        np.testing.assert_array_equal(found, expected)
