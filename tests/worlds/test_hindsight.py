from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from axplore.types import RESET_ACTION
from axplore.worlds.contract import Answer, Visit
from axplore.worlds.hindsight import AFTER_RESET, WatchedHistory, pair_of
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
    pair = pair_of(int(str(alarm.pair)))
    assert pair is not None
    assert world.states[pair[0]] == 1
    assert {pair_of(int(str(context))) for context in alarm.table} >= {(0, 0), (0, 1)}


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


def test_what_is_handed_to_the_test_are_the_triples_of_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a plain loop, with resets, failures and orders that begin elsewhere, in batches of any length."""
    rng, history = random.Random(5), WatchedHistory()
    handed: Counter[tuple[int, int, int]] = Counter()

    def add(draws: list[tuple[int, int, int, int]]) -> None:
        for context, pair, successor, times in draws:
            handed[context, pair, successor] += times

    monkeypatch.setattr(history.test, "add", add)
    expected: Counter[tuple[int, int, int]] = Counter()
    position, before = 0, AFTER_RESET
    for _ in range(3000):
        if rng.random() < 0.01:
            history.break_off()
            position, before = rng.randrange(3), AFTER_RESET
        history.begin(position)
        action = rng.choice((0, 1, RESET_ACTION))
        result = 0 if action == RESET_ACTION else rng.choice((0, 1, 2, INTERRUPTED))
        history.steps.extend((action, result))
        if action == RESET_ACTION or result == INTERRUPTED:
            before, position = AFTER_RESET, 0
        else:
            pair = (position << 20) | action
            expected[before, pair, result] += 1
            before, position = pair, result
    history.look()
    assert handed == expected
