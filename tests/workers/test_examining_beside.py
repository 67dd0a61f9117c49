"""The system is examined in a process of its own while workers explore it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_walk import Walk

import axplore
from axplore.errors import Interrupted
from axplore.explorers.base import RoundReport
from axplore.noticing import Noticed
from axplore.records.findings import Finding, Issue
from axplore.runs.events import read_events
from axplore.workers.examination import Examination
from axplore.worlds.doctor import BRIEF_STEPS
from axplore.worlds.stepped import SteppedWorld

SETTINGS: dict[str, Any] = {"radius": 4, "epsilon": 1.5}
FILES = ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz")


class Pinned(Walk):
    """Every episode begins with the same noise."""

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._seed = seed
        super().reseed(seed)

    def reset(self) -> int:
        self.reseed(getattr(self, "_seed", np.random.SeedSequence(0)))
        return super().reset()


class Deadly(Walk):
    """Ends the process in which it is made second, or later."""

    def __init__(self, home: int) -> None:
        super().__init__()
        if os.getpid() != home:
            os._exit(3)


def issues(findings: tuple[Finding, ...]) -> set[Issue]:
    return {finding.issue for finding in findings}


def test_it_finds_what_is_found_without_workers_and_takes_one_step_more() -> None:
    alone = axplore.explore(Pinned, **SETTINGS, max_steps=8_000)
    beside = axplore.explore(Pinned, **SETTINGS, max_steps=8_000, workers=1)
    assert Issue.NOISE_PINNED in issues(alone.findings)
    assert Issue.NOISE_PINNED in issues(beside.findings)
    honest, honest_beside = (axplore.explore(Walk, **SETTINGS, workers=workers) for workers in (None, 1))
    assert issues(honest_beside.findings) == issues(honest.findings) == set()
    assert honest_beside.run.examining == honest.run.examining + 1


@pytest.mark.parametrize("limit", [100, 3_000])
def test_it_takes_no_more_than_is_left(limit: int) -> None:
    atlas = axplore.explore(Walk, **SETTINGS, workers=1, max_steps=limit)
    assert atlas.steps + atlas.run.examining + atlas.run.playing <= limit


def test_its_steps_are_those_of_its_own_system() -> None:
    world = SteppedWorld(Walk)
    before = world.system_steps
    examination = Examination(world, BRIEF_STEPS + 1, 60.0, 0)
    outcome = examination.result()
    assert outcome is not None
    assert outcome.steps == BRIEF_STEPS + 1
    assert world.system_steps == before


def test_a_process_that_dies_gives_nothing() -> None:
    world = SteppedWorld(partial(Deadly, os.getpid()))
    assert Examination(world, BRIEF_STEPS, 60.0, 0).result() is None


def test_what_cannot_be_examined_beside_is_examined_here(monkeypatch: pytest.MonkeyPatch) -> None:
    here = axplore.explore(Pinned, **SETTINGS)
    monkeypatch.setattr(Examination, "result", lambda _: None)
    beside = axplore.explore(Pinned, **SETTINGS, workers=1)
    assert beside.run.examining == here.run.examining
    assert Issue.NOISE_PINNED in issues(beside.findings)


class KilledError(BaseException):
    """Ends an exploration at once, as a kill does."""


def killed_after(rounds: int) -> Any:
    def kill(report: RoundReport) -> None:
        if report.round > rounds:
            raise KilledError

    return kill


def dies(*_: Any) -> None:
    raise KilledError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    axplore.explore(Walk, **SETTINGS, workers=1, run=folder)
    return folder


@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize("workers", [2, 0])
def test_a_run_that_is_killed_before_its_end_examines_again(
    at_the_end: bool, workers: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "killed"
    on_round = None if at_the_end else killed_after(3)
    with monkeypatch.context() as patched:
        if at_the_end:
            patched.setattr(Noticed, "keep", dies)
        with pytest.raises(KilledError):
            axplore.explore(Walk, **SETTINGS, workers=1, run=killed, on_round=on_round)
    resumed = axplore.resume(killed, Walk, workers=workers)
    events = [event["event"] for event in read_events(killed)]
    assert (events.count("examining"), events.count("examined")) == (1, 1)
    assert resumed.run.examining >= BRIEF_STEPS
    if workers:
        for name in FILES:
            assert (killed / name).read_bytes() == (whole / name).read_bytes()
    axplore.resume(killed, Walk, workers=workers)
    assert [event["event"] for event in read_events(killed)].count("examined") == 1


def test_ctrl_c_ends_it_and_a_run_that_resumes_begins_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Examination.result

    def interrupted(self: Examination) -> Any:
        monkeypatch.setattr(Examination, "result", result)
        signal.raise_signal(signal.SIGINT)
        return result(self)

    monkeypatch.setattr(Examination, "result", interrupted)
    with pytest.raises(Interrupted) as stopped:
        axplore.explore(Walk, **SETTINGS, workers=1, run=tmp_path)
    assert isinstance(stopped.value.atlas, axplore.Atlas)
    assert stopped.value.atlas.run.examining < BRIEF_STEPS
    assert axplore.resume(tmp_path, Walk).run.examining > BRIEF_STEPS
