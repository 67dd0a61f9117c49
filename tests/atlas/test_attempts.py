from __future__ import annotations

import random

import pytest

import axplore
from axplore.atlas.attempts import attempt
from axplore.atlas.verdict import VerdictKind
from axplore.worlds.stepped import SteppedWorld


class Session:
    """`done` takes 10.05 steps from RESET; after a number of steps since RESET, no action leads there any more."""

    actions = ("go", "back")

    def __init__(self, limit: int, seed: int) -> None:
        self._random, self._limit = random.Random(seed), limit

    def reset(self) -> str:
        self._at, self._age = "start", 0
        return self._at

    def step(self, action: str) -> str:
        self._age += 1
        if action == "back":
            self._at = "start"
        elif self._at == "start" and self._random.random() < 0.2:
            self._at = "form"
        elif self._at == "form" and self._age <= self._limit and self._random.random() < 0.2:
            self._at = "done"
        return self._at


def test_few_promises_are_made_without_a_doubt_of_a_session_that_expires() -> None:
    """One is missed where `done` was not met while exploring, and the step limit cuts the attempts."""
    verdicts = [
        axplore.explore(lambda seed=seed: Session(30, seed), radius=13, epsilon=1, seed=seed, max_steps=20_000).verdict
        for seed in range(4)
    ]
    assert sum(verdict.kind is VerdictKind.PROVEN for verdict in verdicts) <= 1
    assert sum(bool(verdict.doubts) for verdict in verdicts) >= 3


def test_a_state_that_was_set_aside_falsely_is_reached_by_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exploring without resets sees only sessions that have expired, and nothing but the attempts can tell."""
    monkeypatch.setattr(SteppedWorld, "vary_ages", lambda _: None)
    expired = axplore.explore(lambda: Session(30, 1), radius=13, epsilon=1, seed=1, max_steps=20_000, doctor=False)
    assert expired.verdict.kind is VerdictKind.PROVEN
    assert "done" not in expired.states
    fresh = SteppedWorld(lambda: Session(10**9, 2), 2)
    fresh.watch_history()
    before = fresh.steps, tuple(fresh.states)
    found = attempt(expired, fresh)
    assert (fresh.steps, tuple(fresh.states)) == before
    assert ("done" not in expired.seen) or "arrived in" in found[0].seen


def test_nothing_is_found_where_what_is_set_aside_is_far() -> None:
    honest = axplore.explore(lambda: Session(10**9, 3), radius=6, epsilon=1, seed=3)
    assert honest.verdict.kind is VerdictKind.PROVEN
    assert attempt(honest, SteppedWorld(lambda: Session(10**9, 4), 4)) == ()


@pytest.mark.parametrize("most", [0, 100, 1_000])
def test_attempts_leave_to_the_policies_what_is_theirs(most: int) -> None:
    honest = axplore.explore(lambda: Session(10**9, 3), radius=7, epsilon=1, seed=3, doctor=False, max_steps=20_000)
    world = SteppedWorld(lambda: Session(10**9, 4), 4)
    before = world.system_steps
    attempt(honest, world, most_steps=most)
    assert before <= world.system_steps <= before + most
