from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import axplore
from axplore.atlas import replays
from axplore.atlas.verdict import VerdictKind
from axplore.explorers.base import RoundReport
from axplore.records.findings import Issue
from axplore.records.run import StopReason
from axplore.records.vectors import Vector, Vectors
from axplore.statistics.dependence import HistoryTest
from axplore.workers import engines
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess
from axplore_studies.systems.shop import Shop, healthy_shop


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
    (finding,) = [finding for finding in changed.findings if finding.issue == Issue.HISTORY_MATTERS]
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
        (finding,) = replays.replay(atlas, world).findings
        assert told in finding.seen


def test_replays_leave_the_world_as_it_was() -> None:
    world = SteppedWorld(Door(10**9))
    atlas = axplore.explore(world, radius=3, epsilon=0.5)
    before = world.snapshot()
    assert atlas.steps == before.steps
    assert replays.replay(atlas, world).findings == ()
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
    (finding,) = [finding for finding in atlas.findings if finding.issue == Issue.HISTORY_MATTERS]
    assert "What action on in state hall leads to depends on what came before" in finding.seen
    assert "after action left in state start: " in finding.seen
    assert "after action right in state start: " in finding.seen


# A system that fails while it is tried hides nothing.


class Trouble:
    """Once begun, every n-th call of a method of a door does something else."""

    def __init__(self, method: str, instead: Callable[[], Any], every: int = 100) -> None:
        self.begun, self._method, self._instead, self._every, self._n = False, method, instead, every, 0

    def answer(self, method: str, label: str) -> Any:
        if not self.begun or method != self._method:
            return label
        self._n += 1
        return label if self._n % self._every else self._instead()


class Frail:
    """A door with trouble."""

    actions = Door.actions

    def __init__(self, door: Door, trouble: Trouble) -> None:
        self._door, self._trouble = door, trouble

    def reset(self) -> Any:
        return self._trouble.answer("reset", self._door.reset())

    def step(self, action: str) -> Any:
        return self._trouble.answer("step", self._door.step(action))


def crash() -> Any:
    raise ValueError("stumbled")


def begins_when_tried(trouble: Trouble, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = replays.replay

    def begin(*arguments: Any) -> Any:
        trouble.begun = True
        return replay(*arguments)

    monkeypatch.setattr(replays, "replay", begin)


@pytest.mark.parametrize("told", ["depends on the way there", "though at most"])
def test_what_is_found_between_faults_counts(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if told == "though at most":
        monkeypatch.setattr(HistoryTest, "add", lambda *_: None)
    door, trouble = Door(10**9), Trouble("step", crash, every=20)
    world = SteppedWorld(lambda: Frail(door, trouble))
    atlas = axplore.explore(world, radius=3, epsilon=0.5, doctor=False)
    door.left, trouble.begun = 0, True
    (finding,) = replays.replay(atlas, world).findings
    assert told in finding.seen
    assert world.faults


def test_what_was_found_before_the_system_broke_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HistoryTest, "add", lambda *_: None)
    door, trouble = Door(10**9), Trouble("step", crash, every=1_500)
    world = SteppedWorld(Frail(door, trouble))
    atlas = axplore.explore(world, radius=3, epsilon=0.5, doctor=False)
    monkeypatch.setattr(replays, "FEWEST_STEPS", 10_000)  # no look at the lengths before it breaks
    door.left, trouble.begun = 0, True
    slow, broken = replays.replay(atlas, world).findings
    assert "though at most" in slow.seen
    assert "ValueError: stumbled" in broken.seen


def test_losing_the_long_episodes_does_not_look_like_arriving_early() -> None:
    class Tired(Door):
        """Fails at the fourth step after a RESET, once it is told to."""

        age, is_tired = 0, False

        def reset(self) -> str:
            self.age = 0
            return super().reset()

        def step(self, action: str) -> str:
            self.age += 1
            if self.is_tired and self.age == 4:
                raise ValueError("tired")
            return super().step(action)

    door = Tired(0)  # opens 3 times in 10
    world = SteppedWorld(lambda: door, max_faults=10**6)
    atlas = axplore.explore(world, radius=5, epsilon=0.5, doctor=False)
    door.is_tired = True
    assert replays.replay(atlas, world).findings == ()
    assert len(world.faults) > 100


@pytest.mark.parametrize(
    ("method", "instead", "issue"),
    [
        ("reset", lambda: "open", Issue.START_NOT_FIXED),
        ("reset", lambda: math.nan, Issue.SYSTEM_FAILS),
        ("step", lambda: math.nan, Issue.SYSTEM_FAILS),
        ("step", lambda: ["open"], Issue.SYSTEM_FAILS),
    ],
)
def test_an_answer_that_breaks_the_contract_while_policies_are_tried_is_a_doubt(
    method: str, instead: Callable[[], Any], issue: Issue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, trouble = Door(10**9), Trouble(method, instead)
    begins_when_tried(trouble, monkeypatch)
    atlas = axplore.explore(lambda: Frail(door, trouble), radius=3, epsilon=0.5, run=tmp_path)
    monkeypatch.undo()
    for told in (atlas, axplore.resume(tmp_path, lambda: Door(10**9), epsilon=0.4)):
        assert issue in [finding.issue for finding in told.findings]
        assert told.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT
        assert axplore.verify(told).exit_code == 4


def test_steps_that_fail_while_policies_are_tried_are_faults_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, trouble = Door(10**9), Trouble("step", crash)
    begins_when_tried(trouble, monkeypatch)
    atlas = axplore.explore(lambda: Frail(door, trouble), radius=3, epsilon=0.5, run=tmp_path)
    monkeypatch.undo()
    for told in (atlas, axplore.resume(tmp_path, lambda: Door(10**9), epsilon=0.4)):
        assert told.findings == ()
        assert sum(fault.count for fault in told.faults if fault.pair is not None) > 10
        assert told.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT


def test_resets_that_fail_while_policies_are_tried_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    door, trouble = Door(10**9), Trouble("reset", crash)
    begins_when_tried(trouble, monkeypatch)
    atlas = axplore.explore(lambda: Frail(door, trouble), radius=3, epsilon=0.5)
    assert {fault.pair for fault in atlas.faults} == {None}
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert atlas.verdict.notes


@pytest.mark.parametrize("is_kept", [True, False])
def test_faults_while_workers_try_policies_count_too(
    is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "engine_from", lambda *_: InProcess())
    trouble = Trouble("step", crash)
    begins_when_tried(trouble, monkeypatch)
    run = tmp_path if is_kept else None
    atlas = axplore.explore(lambda: Frail(Door(10**9), trouble), radius=3, epsilon=0.5, workers=1, run=run)
    assert sum(fault.count for fault in atlas.faults) > 10
    assert atlas.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT


# Every goal is played, and what is assumed is confirmed.


class Tree:
    """Five actions in a row choose a leaf among 32, so that there are more goals than a small budget has episodes."""

    actions = ("left", "right")

    def __init__(self) -> None:
        self._path = ""

    def reset(self) -> str:
        self._path = ""
        return self._path

    def step(self, action: str) -> str:
        self._path += action[0] if len(self._path) < 5 else ""
        return self._path


def test_every_goal_has_an_episode_before_any_has_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "FEWEST_STEPS", 320)
    world = SteppedWorld(Tree())
    atlas = axplore.explore(world, radius=5, assume="deterministic", doctor=False)
    played: list[str] = []
    carry_out = world.carry_out

    def noted(orders: Any) -> Any:
        played.extend(world.states[order.goal] for order in orders if hasattr(order, "goal"))
        return carry_out(orders)

    monkeypatch.setattr(world, "carry_out", noted)
    record = replays.replay(atlas, world, confirm=0).played
    assert len(atlas) == 63
    assert (record.goals, record.played) == (62, 62)
    assert set(played[:62]) == set(atlas.states) - {""}
    assert [len(goal) for goal in played[:62]] == sorted(map(len, played[:62]), reverse=True)
    assert record.episodes == len(played)


def test_a_budget_that_is_too_small_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "FEWEST_STEPS", 60)
    atlas = axplore.explore(Tree, radius=5, assume="deterministic", confirm=0)
    played = atlas.run.played
    assert played is not None
    assert 0 < played.played < played.goals == 62
    assert f"{played.played} of 62 policies were played before this was promised" in str(atlas.verdict)


def test_the_verdict_says_how_large_a_violation_would_have_shown() -> None:
    for confirm, draws, told in ((0.05, 60, "1 in 20"), (0.5, 6, "1 in 2")):
        atlas = axplore.explore(Tree, radius=2, assume="deterministic", confirm=confirm)
        played = atlas.run.played
        assert played is not None
        assert played.confirmed == 6  # the actions of the ways to six states
        assert played.repeats + 1 >= draws
        assert f"more often than {told}" in str(atlas.verdict) or played.repeats + 1 > draws
        assert "it would have shown itself with a probability of 0.95" in str(atlas.verdict)


def test_without_play_the_verdict_says_that_nothing_was_tried() -> None:
    atlas = axplore.explore(Tree, radius=2, assume="deterministic", doctor=False)
    assert atlas.run.played is None
    assert "The policies were not played, so nothing was tried of what is assumed." in atlas.verdict.sentences


def test_a_simulated_world_is_played_and_left_as_it_was() -> None:
    settings: dict[str, Any] = {"radius": 4, "epsilon": 1, "seed": 5}
    plain, played = (axplore.explore("maze", doctor=doctor, **settings) for doctor in (False, True))
    assert played.run.played is not None
    assert played.run.played.played == len(played) - 1
    assert plain.certificate is not None
    assert played.certificate is not None
    assert plain.certificate.digest == played.certificate.digest
    assert plain.steps == played.steps
    world = SimulatedWorld(axplore.domain("maze"), seed=5)
    atlas = axplore.explore(world, radius=4, epsilon=1)
    before = world.snapshot()
    assert before.steps == plain.steps
    replay = replays.replay(atlas, world)
    assert replay.findings == ()
    assert replay.played.episodes == replay.played.goals == len(atlas) - 1  # a model hides nothing: once each
    assert world.snapshot() == before


@pytest.mark.parametrize("seed", range(5))
def test_a_slippery_maze_is_not_promised_to_be_deterministic(seed: int) -> None:
    atlas = axplore.explore("maze", radius=8, assume="deterministic", seed=seed)
    assert atlas.verdict.kind is VerdictKind.CONTRADICTED
    assert atlas.verdict.exit_code == 1


@pytest.mark.parametrize("workers", [None, 1])
def test_a_resumed_run_is_played_like_one_that_was_not_interrupted(workers: int | None, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"radius": 4, "epsilon": 1, "seed": 2, "workers": workers}
    whole = axplore.explore("maze", **settings, run=tmp_path / "whole")

    def halfway(report: RoundReport) -> StopReason | None:
        return StopReason.INTERRUPTED if report.steps > whole.steps / 2 else None

    axplore.explore("maze", **settings, run=tmp_path / "cut", on_round=halfway)
    resumed = axplore.resume(tmp_path / "cut")
    assert resumed.run.played == whole.run.played
    assert resumed.run.played is not None


def test_the_rate_to_confirm_stays_with_the_run_and_can_be_changed(tmp_path: Path) -> None:
    axplore.explore(Tree, radius=2, assume="deterministic", confirm=0.001, run=tmp_path)
    same, less = axplore.resume(tmp_path, Tree), axplore.resume(tmp_path, Tree, confirm=0)
    assert same.run.played is not None
    assert less.run.played is not None
    assert same.run.played.repeats >= 2_995 > less.run.played.repeats


def test_an_interruption_of_play_is_told_and_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(replays._Replays, "found", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        axplore.explore("maze", radius=4, epsilon=1, run=tmp_path)
    monkeypatch.undo()
    assert caught.value.atlas.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT  # type: ignore[attr-defined]
    assert axplore.resume(tmp_path).verdict.kind is VerdictKind.PROVEN


def test_the_shop_that_fails_now_and_then_is_not_promised_to_be_deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.exploring.examined", lambda *_, **__: ())  # play finds it without the doctor
    kinds = [axplore.explore(Shop, radius=8, assume="deterministic", seed=seed).verdict.kind for seed in range(3)]
    assert kinds == [VerdictKind.CONTRADICTED] * 3
    sound = axplore.explore(healthy_shop, radius=8, assume="deterministic")
    assert sound.verdict.kind is VerdictKind.PROVEN


def test_no_policy_of_a_large_atlas_is_made_that_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together take the square of the states."""
    made: list[int] = []
    vector = Vectors.vector

    def noted(self: Vectors, row: int) -> Vector[Any]:
        made.append(row)
        return vector(self, row)

    monkeypatch.setattr(Vectors, "vector", noted)
    settings: dict[str, Any] = {"epsilon": 1, "assume": "deterministic", "confirm": 0}
    atlas = axplore.explore("random-maze", radius=2500, world_parameters={"rows": 50, "columns": 50}, **settings)
    played = atlas.run.played
    assert len(atlas) == 2500
    assert played is not None
    assert played.goals == 2499 > played.played == len(made) > 0


def test_replays_of_a_large_atlas_end_when_their_policies_have_covered_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"epsilon": 1, "assume": "deterministic", "radius": 40}
    settings["world_parameters"] = {"rows": 6, "columns": 6}
    every = axplore.explore("random-maze", **settings).run.played
    monkeypatch.setattr(replays, "MOST_PLANNED", 2_000)
    few = axplore.explore("random-maze", **settings)
    assert every is not None
    assert few.run.played is not None
    assert every.played == every.goals > few.run.played.played > 0
    assert few.verdict.kind is VerdictKind.PROVEN
