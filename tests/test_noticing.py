from __future__ import annotations

import os
import pkgutil
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import axplore
from axplore.atlas import Atlas
from axplore.atlas.verdict import NOT_TRIED, VerdictKind
from axplore.cli.console import interruption
from axplore.errors import Interrupted
from axplore.records.findings import Issue
from axplore.runs.folder import atlas_now
from axplore.runs.recording import RunRecorder


class Door:
    """`push` opens the door with a chance that changes for good after a number of steps, which no label shows."""

    actions = ("push", "wait")

    def __init__(self, patience: int = 10**9, seed: int = 0) -> None:
        self._random, self._state, self._left = random.Random(seed), "closed", patience

    def reset(self) -> str:
        self._state = "closed"
        return self._state

    def step(self, action: str) -> str:
        self._left -= 1
        if action == "push" and self._random.random() < (0.9 if self._left > 0 else 0.3):
            self._state = "open"
        return self._state


class TwoRooms:
    """Label `hall` hides by which door it was entered, and `on` tells, unless the system is told to hide nothing."""

    actions = ("left", "right", "on")
    chances = (0.9, 0.3)

    def __init__(self) -> None:
        self._random, self._state, self._chance = random.Random(1), "start", 0.0

    def reset(self) -> str:
        self._state = "start"
        return self._state

    def step(self, action: str) -> str:
        if self._state == "start" and action != "on":
            self._state, self._chance = "hall", self.chances[action == "right"]
        elif self._state == "hall" and action == "on":
            self._state = "goal" if self._random.random() < self._chance else "pit"
        return self._state


class OneRoom(TwoRooms):
    chances = (0.6, 0.6)


class KilledError(BaseException):
    """Ends an exploration at once, as a kill does."""


TARGET: dict[str, Any] = {"radius": 3, "epsilon": 0.5}


def changing_door() -> Door:
    """A door that changes after everything is proven, and before it is promised."""
    honest = axplore.explore(Door(), **TARGET)
    return Door(honest.steps + 2_100)


class InterruptedDoor(Door):
    """Hears Ctrl-C after a number of steps."""

    def step(self, action: str) -> str:
        if self._left == 1:
            raise KeyboardInterrupt
        return super().step(action)


def assert_not_played(atlas: Atlas) -> None:
    assert atlas.complete
    assert [finding.issue for finding in atlas.findings] == [Issue.NOT_PLAYED]
    assert (atlas.verdict.kind, atlas.verdict.exit_code) == (VerdictKind.PROVEN_UNDER_DOUBT, 4)


@pytest.mark.parametrize("in_run", [False, True])
def test_ctrl_c_while_policies_are_played_keeps_the_atlas_and_says_so(tmp_path: Path, in_run: bool) -> None:
    honest = axplore.explore(Door(), **TARGET)
    with pytest.raises(Interrupted) as interrupted:
        axplore.explore(InterruptedDoor(honest.steps + 2_100), **TARGET, run=tmp_path if in_run else None)
    atlas = interrupted.value.atlas
    assert isinstance(atlas, Atlas)
    assert_not_played(atlas)
    assert atlas.states == honest.states
    if in_run:
        assert_not_played(Atlas.load(tmp_path))
        assert axplore.resume(tmp_path, Door()).verdict.kind is VerdictKind.PROVEN


@pytest.mark.parametrize(
    "moment",
    [
        "axplore.explorers.certified.Certified.finish",
        "axplore.exploring.atlas_of",
        "axplore.runs.recording.RunRecorder.end",
    ],
)
def test_ctrl_c_at_any_moment_after_the_last_round_keeps_the_atlas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    owner, name = moment.rsplit(".", 1)
    place = pkgutil.resolve_name(owner)
    real, n_calls = getattr(place, name), 0

    def interrupted(*arguments: Any, **options: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(place, name, interrupted)
    with pytest.raises(Interrupted) as interruption:
        axplore.explore(Door(), **TARGET, run=tmp_path)
    assert interruption.value.atlas.complete  # type: ignore[attr-defined]
    assert Atlas.load(tmp_path).complete


def test_ctrl_c_after_the_last_round_does_not_wait() -> None:
    with interruption() as interrupted:
        interrupted.waits = False
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def assert_in_doubt(atlas: Atlas, run: Path) -> None:
    kept = Atlas.load(run)
    assert kept.certificate is not None
    for findings in (atlas.findings, kept.findings, kept.certificate.findings):
        assert Issue.HISTORY_MATTERS in [finding.issue for finding in findings]
    assert atlas.verdict.kind is not VerdictKind.PROVEN
    assert not atlas.complete or axplore.verify(run).exit_code == atlas.verdict.exit_code == 4


def test_a_doubt_outlives_every_resumption(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert_in_doubt(axplore.explore(changing_door(), **TARGET, run=run), run)
    changes: list[dict[str, Any]] = [
        {},
        {"epsilon": 0.4},
        {"radius": 4},
        {"assume": "min-probability=0.05"},
        {"assume": "none", "radius": 2},
        {"objective": "within-radius"},
        {"max_steps": 10**6},
    ]
    for change in changes:
        assert_in_doubt(axplore.resume(run, Door(), **change), run)


def test_a_doubt_outlives_a_kill_between_the_replays_and_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any, **__: Any) -> None:
        raise KilledError

    door = changing_door()
    monkeypatch.setattr(RunRecorder, "end", kill)
    with pytest.raises(KilledError):
        axplore.explore(door, **TARGET, run=tmp_path)
    monkeypatch.undo()
    assert Issue.HISTORY_MATTERS in [finding.issue for finding in atlas_now(tmp_path).findings]
    assert_in_doubt(axplore.resume(tmp_path, Door()), tmp_path)


@pytest.mark.parametrize("end", [KilledError, KeyboardInterrupt])
def test_a_doubt_is_kept_as_soon_as_the_test_that_runs_along_finds_it(tmp_path: Path, end: type[BaseException]) -> None:
    def end_after_the_finding(_: Any) -> None:
        if '"event": "finding"' in (tmp_path / "events.jsonl").read_text():
            raise end

    with pytest.raises(end):
        axplore.explore(TwoRooms, radius=4, epsilon=0.1, run=tmp_path, on_round=end_after_the_finding)
    assert Issue.HISTORY_MATTERS in [finding.issue for finding in atlas_now(tmp_path).findings]
    for epsilon in (0.5, 0.4):
        assert_in_doubt(axplore.resume(tmp_path, OneRoom, epsilon=epsilon), tmp_path)


def test_verdict_and_certificate_say_what_was_examined_and_what_was_not() -> None:
    atlas = axplore.explore(Door(), **TARGET)
    assert atlas.certificate is not None
    examined = atlas.certificate.examined
    assert examined is not None
    assert examined.before == atlas.run.examining >= 2_000
    assert examined.watched + examined.resets == atlas.run.steps + atlas.run.playing
    assert 0 < examined.oldest <= examined.watched
    assert str(examined) in atlas.verdict.sentences
    assert str(examined) in str(axplore.verify(atlas))
    quick = axplore.explore(Door(), **TARGET, doctor=False)
    assert quick.certificate is not None
    assert quick.certificate.examined is not None
    assert quick.certificate.examined.before < 10
    assert NOT_TRIED in quick.verdict.sentences
    model = axplore.explore("maze", radius=2, epsilon=1)
    assert model.certificate is not None
    assert model.certificate.examined is None
    assert not any("examined" in sentence for sentence in model.verdict.sentences)
