"""Policies are played, and what is set aside is attempted, by workers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_walk import LoggedWalk, Walk

import axplore
import axplore.domains
from axplore.atlas import attempts, replays
from axplore.atlas.attempts import NEVER_SEEN, attempt
from axplore.atlas.verdict import VerdictKind
from axplore.errors import OrdersCutError
from axplore.records.findings import Issue
from axplore.types import IntArray
from axplore.workers import engines
from axplore.workers.distributed import DistributedWorld
from axplore.workers.processes import Processes
from axplore.worlds.contract import NO_GOAL, Episodes, Order, Trials, Visit
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.watched import Patience
from axplore_studies.in_process import InProcess

RIGHT = np.ones(6, dtype=np.int64)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are this process."""
    monkeypatch.setattr(engines, "engine_from", lambda workers, _: InProcess() if workers else None)


@pytest.fixture
def shared() -> Iterator[DistributedWorld]:
    LoggedWalk.log.clear()
    with DistributedWorld(SteppedWorld(LoggedWalk, start_checks=1), InProcess()) as world:
        world.restore(replace(world.snapshot(), labels=tuple(range(6)), actions=(Walk.actions,) * 6))
        world.watch_history()
        yield world


def orders() -> list[Order]:
    policy: IntArray = RIGHT
    return [
        Episodes(5, 1, 30, policy),
        Episodes(NO_GOAL, 7, 9, policy),
        Trials(1, 6, np.array([[0, 1, 1, 0, 1, 1]] * 6)),
        Visit(2, 0, 60, policy, max_journey=40),
    ]


def test_every_step_of_workers_is_recorded(shared: DistributedWorld) -> None:
    before = len(LoggedWalk.log)
    answers = shared.carry_out_watched(orders())
    logged = Counter(entry for entry in LoggedWalk.log[before:] if entry is not None)
    recorded: Counter[Any] = Counter()
    for answer, steps in zip(answers, shared.recorded, strict=True):
        positions = steps[:-1, 1].tolist()
        draws = Counter(
            (shared.states[here], Walk.actions[action], shared.states[after])
            for here, (action, after) in zip(positions, steps[1:].tolist(), strict=True)
            if action >= 0
        )
        recorded += draws
        counted = {
            (shared.states[state], Walk.actions[action], shared.states[after]): times
            for state, action, after, times in answer.transitions()
        }
        assert draws == counted
    assert recorded == logged


def test_the_tests_of_the_history_see_what_is_played_watched_and_nothing_else(shared: DistributedWorld) -> None:
    before = shared.examined
    shared.carry_out(orders())
    assert shared.examined == before
    n_logged = len(LoggedWalk.log)
    shared.carry_out_watched(orders())
    draws = sum(entry is not None for entry in LoggedWalk.log[n_logged:])
    assert shared.examined.watched - before.watched == draws


def test_a_call_that_has_the_number_of_an_earlier_one_has_its_own_orders(shared: DistributedWorld) -> None:
    before = shared.snapshot()
    shared.carry_out([Episodes(5, 30, 30, RIGHT)])
    shared.restore(before)
    (answer,) = shared.carry_out([Episodes(NO_GOAL, 30, 4, 0 * RIGHT)])
    assert set(answer.pair_actions.tolist()) == {0}
    shared.restore(before)
    assert shared.snapshot() == before


def test_workers_forget_states_that_are_forgotten() -> None:
    """States that were met after a snapshot have other numbers when they are met again in another order."""
    to_goal = np.ones(1, dtype=np.int64)

    class Fork(Walk):
        actions = ("left", "right")

        def step(self, action: str) -> int:
            self.state = (10 if action == "left" else 20) + (self.state >= 10)
            return self.state

    with DistributedWorld(SteppedWorld(Fork, start_checks=1), InProcess()) as world:
        before = world.snapshot()
        world.carry_out([Visit(0, 0, 3, to_goal, max_journey=1), Visit(0, 1, 3, to_goal, max_journey=1)])
        assert world.states == [0, 10, 20]
        (server,) = [slot.worker for slot in world._pool._slots]
        world.restore(before)
        assert world.states == [0]
        world.carry_out([Visit(0, 1, 3, to_goal, max_journey=1), Visit(0, 0, 3, to_goal, max_journey=1)])
        assert world.states == [0, 20, 10]
        (answer,) = world.carry_out([Trials(6, 2, np.array([[1, 0, 0], [1, 0, 0]]))])
        met = {(world.states[state], world.states[after]) for state, _, after, _ in answer.transitions()}
        assert met == {(0, 20), (20, 11)}
        assert [slot.worker for slot in world._pool._slots] == [server]


def test_nothing_that_is_watched_is_stored(shared: DistributedWorld) -> None:
    class Refusing:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"asked to {name}")

    shared.keep_batches(Refusing)
    shared.carry_out_watched(orders())
    with pytest.raises(AssertionError, match="asked to begin"):
        shared.carry_out(orders())


def test_as_many_batches_as_can_be_afforded_are_not_cut(shared: DistributedWorld) -> None:
    assert shared.affordable(10**6, 64) == 64
    for limit in (200, 1_000, 10_000):
        shared.limit(limit)
        n_batches = shared.affordable(32, 64)
        assert n_batches <= max(1, limit // 64)
        shared.carry_out([Episodes(5, 1, 30, RIGHT)] * n_batches)
    shared.limit(10)
    with pytest.raises(OrdersCutError):
        shared.carry_out([Episodes(5, 1, 30, 0 * RIGHT)])


def test_only_what_can_be_recorded_is_watched() -> None:
    with DistributedWorld(SimulatedWorld(axplore.domains.slippery_grid(rows=2, columns=2), 0), InProcess()) as world:
        assert not world.can_be_watched
        world.carry_out_watched([Episodes(NO_GOAL, 1, 3, np.zeros(1, dtype=np.int64))])
        assert world.examined.watched == 0
        assert world.history_alarm is None


def test_patience_is_that_of_all_workers_together(shared: DistributedWorld) -> None:
    patience = Patience(shared, 1e9)
    assert patience.steps_left == math.inf
    shared.carry_out(orders())
    assert patience.steps_left == pytest.approx((1e9 - shared.busy_seconds) / shared.seconds_of_step)
    assert not patience.is_over
    assert Patience(shared, 1e9, 0.0).is_over
    impatient = Patience(shared, 1e-9)
    shared.carry_out(orders())
    assert impatient.is_over


# What is played and what is found is the same for any number of workers.


@pytest.mark.usefixtures("_only_worker_here")
@pytest.mark.parametrize("limit", [None, 20_000])
def test_what_is_played_does_not_depend_on_the_number_of_workers(limit: int | None) -> None:
    settings: dict[str, Any] = {"radius": 5, "epsilon": 0.5, "max_steps": limit}
    one, three = (axplore.explore(Walk, **settings, workers=number) for number in (1, 3))
    assert one.run.played is not None
    assert one.run.played.steps >= replays.FEWEST_STEPS
    for name in ("played", "playing", "examining", "steps", "rounds"):
        assert getattr(one.run, name) == getattr(three.run, name)
    assert one.verdict.kind is VerdictKind.PROVEN
    if limit is not None:
        assert one.run.examining + one.run.playing + one.steps <= limit


class TwoDoors:
    """Label `hall` hides by which door it was entered, and whether `on` leads to the goal depends on it."""

    actions = ("left", "right", "on")

    def __init__(self) -> None:
        self._state, self._door = "start", ""
        self.reseed(np.random.SeedSequence(0))

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._random = random.Random(int(seed.generate_state(1)[0]))

    def reset(self) -> str:
        self._state = "start"
        return self._state

    def step(self, action: str) -> str:
        if self._state == "start" and action != "on":
            self._state, self._door = "hall", action
        elif self._state == "hall" and action == "on":
            self._state = "goal" if self._random.random() < (0.9 if self._door == "left" else 0.3) else "pit"
        return self._state


@pytest.mark.usefixtures("in_process")
def test_a_history_that_matters_is_found_by_what_workers_play() -> None:
    atlas = axplore.explore(TwoDoors, radius=4, epsilon=0.5, workers=1)
    found = [finding for finding in atlas.findings if finding.issue == Issue.HISTORY_MATTERS]
    assert "on" in found[0].seen
    assert atlas.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT


class Session:
    """`done` takes 10.05 steps from RESET; after a number of steps since RESET, no action leads there any more."""

    actions = ("go", "back")

    def __init__(self, limit: int, chance: float = 0.2) -> None:
        self._limit, self._chance = limit, chance
        self.reseed(np.random.SeedSequence(0))

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._random = random.Random(int(seed.generate_state(1)[0]))

    def reset(self) -> str:
        self._at, self._age = "start", 0
        return self._at

    def step(self, action: str) -> str:
        self._age += 1
        if action == "back":
            self._at = "start"
        elif self._at == "start" and self._random.random() < self._chance:
            self._at = "form"
        elif self._at == "form" and self._age <= self._limit and self._random.random() < self._chance:
            self._at = "done"
        return self._at


def know(world: DistributedWorld, atlas: axplore.Atlas) -> None:
    """Lets a world know the states of an atlas, as if it had explored them."""
    actions = (Session.actions,) * len(atlas.seen)
    world.restore(replace(world.snapshot(), labels=tuple(atlas.seen), actions=actions))


def test_a_state_that_was_set_aside_falsely_is_reached_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SteppedWorld, "vary_ages", lambda _: None)
    expired = axplore.explore(lambda: Session(30), radius=13, epsilon=1, seed=5, max_steps=20_000, doctor=False)
    assert expired.verdict.kind is VerdictKind.PROVEN
    assert "done" in expired.seen
    assert "done" not in expired.states
    with DistributedWorld(SteppedWorld(lambda: Session(10**9), 2), InProcess()) as fresh:
        know(fresh, expired)
        fresh.watch_history()
        (finding,) = attempt(expired, fresh)
        assert "arrived in" in finding.seen


@pytest.mark.parametrize("most", [0, 100, 1_000])
def test_attempts_of_workers_find_nothing_where_nothing_is_and_leave_the_rest(most: int) -> None:
    honest = axplore.explore(lambda: Session(10**9), radius=6, epsilon=1, seed=3, doctor=False)
    with DistributedWorld(SteppedWorld(lambda: Session(10**9), 4), InProcess()) as world:
        know(world, honest)
        first = world.steps
        steps: list[int] = []
        carried_out = world.carry_out_watched

        def counting(orders: Any) -> Any:
            answers = carried_out(orders)
            steps.append(world.steps - first)
            return answers

        world.carry_out_watched = counting  # type: ignore[method-assign]
        assert attempt(honest, world, most_steps=most) == ()
        assert max(steps, default=0) <= most
        assert bool(steps) == (most > 0)


def test_an_episode_has_the_outcome_that_it_has_without_workers() -> None:
    """Without noise, every attempt has one outcome: a goal that is met, one that is not, and a state never seen."""
    numbers: dict[Any, int] = {"start": 0, "form": 1}
    cases: list[tuple[Any, dict[Any, Any]]] = [
        ("form", {"start": "go"}),
        ("form", {"start": "back"}),
        (NEVER_SEEN, {"start": "go", "form": "go"}),
        (NEVER_SEEN, {"start": "go"}),
    ]
    for label, choices in cases:
        local = SteppedWorld(lambda: Session(10**9, 1.0), start_checks=1)
        local.learn(1, [("form", Session.actions)])
        alone, together = (
            attempts._Goal(label, 4.0, dict(choices), frozenset(numbers) if label is NEVER_SEEN else frozenset())
            for _ in range(2)
        )
        with DistributedWorld(local, InProcess()) as shared:
            for _ in range(5):
                begun = together.begin(shared, numbers)
                (answer,) = shared.carry_out_watched([begun.order])
                together.end(begun, answer, shared.recorded[0], numbers)
                alone.play(local)
        assert together.outcomes.tolist() == alone.outcomes.tolist()
        assert (together.steps, together.long_steps) == (alone.steps, alone.long_steps)


def test_killed_workers_change_nothing_of_what_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "FEWEST_STEPS", 1_000)
    monkeypatch.setattr(attempts, "FEWEST_STEPS", 200)
    played = DistributedWorld.carry_out_watched

    def losing(self: DistributedWorld, orders: Any) -> Any:
        engine = self._engine
        assert isinstance(engine, Processes)
        for worker in engine._started[:1]:
            worker._process.end()
        return played(self, orders)

    monkeypatch.setattr(DistributedWorld, "carry_out_watched", losing)
    killed = axplore.explore(Walk, radius=5, epsilon=0.5, workers=2)
    monkeypatch.setattr(DistributedWorld, "carry_out_watched", played)
    again = axplore.explore(Walk, radius=5, epsilon=0.5, workers=2)
    assert killed.run.played == again.run.played
    assert killed.steps == again.steps
