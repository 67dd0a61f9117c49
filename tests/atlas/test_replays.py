from __future__ import annotations

import random

import pytest

import axplore
from axplore.atlas import replays
from axplore.atlas.verdict import VerdictKind
from axplore.statistics.dependence import HistoryTest
from axplore.worlds.stepped import SteppedWorld


class Door:
    """`push` opens the door with a chance that changes for good after so many steps, which no label shows."""

    actions = ("push", "wait")

    def __init__(self, patience: int, seed: int = 0) -> None:
        self._random, self._state, self.left = random.Random(seed), "closed", patience

    def reset(self) -> str:
        self._state = "closed"
        return self._state

    def step(self, action: str) -> str:
        self.left -= 1
        if action == "push" and self._random.random() < (0.9 if self.left > 0 else 0.3):
            self._state = "open"
        return self._state


def test_a_system_that_keeps_its_promise_is_promised_without_doubt() -> None:
    atlas = axplore.explore(Door(10**9), radius=3, epsilon=0.5)
    assert atlas.findings == ()
    assert atlas.verdict.kind is VerdictKind.PROVEN


def test_a_promise_that_its_own_policy_breaks_comes_with_doubt(caplog: pytest.LogCaptureFixture) -> None:
    honest = axplore.explore(Door(10**9), radius=3, epsilon=0.5)
    changed = axplore.explore(Door(honest.steps + 2_100), radius=3, epsilon=0.5)
    (finding,) = [finding for finding in changed.findings if finding.issue == "HISTORY_MATTERS"]
    assert "closed" in finding.seen or "open" in finding.seen
    assert changed.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT
    assert changed.verdict.exit_code == 4
    assert "Labels hide something" in caplog.text
    assert axplore.verify(changed).exit_code == 4


def test_lengths_beyond_the_bounds_are_found_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HistoryTest, "add", lambda *_: None)
    for before, after, told in ((10**9, 0, "though at most"), (0, 10**9, "though at least")):
        door = Door(before)
        world = SteppedWorld(door)
        atlas = axplore.explore(world, radius=5, epsilon=0.5, doctor=False)
        door.left = after
        finding = replays.replay(atlas, world)
        assert finding is not None
        assert told in finding.seen


def test_replays_leave_the_world_as_it_was() -> None:
    world = SteppedWorld(Door(10**9))
    atlas = axplore.explore(world, radius=3, epsilon=0.5)
    before = world.snapshot()
    assert atlas.steps == before.steps
    assert replays.replay(atlas, world) is None
    assert world.snapshot() == before


def test_without_the_doctor_nothing_is_looked_for() -> None:
    honest = axplore.explore(Door(10**9), radius=3, epsilon=0.5, doctor=False)
    assert axplore.explore(Door(honest.steps + 1), radius=3, epsilon=0.5, doctor=False).findings == ()


def test_a_history_that_matters_is_told_with_the_two_histories() -> None:
    class TwoDoors:
        """Label `hall` hides by which door it was entered, and whether `on` leads to the goal depends on it."""

        actions = ("left", "right", "on")

        def __init__(self) -> None:
            self._random, self._state, self._door = random.Random(1), "start", ""

        def reset(self) -> str:
            self._state = "start"
            return self._state

        def step(self, action: str) -> str:
            if self._state == "start" and action != "on":
                self._state, self._door = "hall", action
            elif self._state == "hall" and action == "on":
                self._state = "goal" if self._random.random() < (0.9 if self._door == "left" else 0.3) else "pit"
            return self._state

    world = SteppedWorld(TwoDoors())
    atlas = axplore.explore(world, radius=4, epsilon=0.5)
    (finding,) = [finding for finding in atlas.findings if finding.issue == "HISTORY_MATTERS"]
    assert "What action on in state hall leads to depends on what came before" in finding.seen
    assert "after action left in state start: " in finding.seen
    assert "after action right in state start: " in finding.seen
