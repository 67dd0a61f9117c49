"""No exploration takes more steps of its system than it may, whatever it is asked; and it says what they were for."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axplore
from axplore import StopReason
from axplore.errors import InvalidSettingError
from axplore.explorers.registry import EXPLORERS
from axplore.records.findings import Issue

BUDGETS = [1, 2, 10, 100, 228, 1000]

EXPERIMENTS = [name for name in EXPLORERS if "theory" not in name and name != "directed"]  # which needs a question


class Counted:
    """A corridor in which steps slip back now and then. It counts its calls in a file that other processes share."""

    actions = ("left", "right")

    def __init__(self, log: Path, fails: float = 0.0, hides: bool = False) -> None:
        self._log, self._fails, self._hides = log, fails, hides
        self._generator = random.Random(0)
        self.place = 0

    def _count(self) -> None:
        with self._log.open("a") as log:
            log.write(".")

    def reseed(self, seed: Any) -> None:
        self._generator = random.Random(int(seed.generate_state(1)[0]))

    def reset(self) -> int:
        self._count()
        self.place = 0
        return 0

    def step(self, action: str) -> int:
        self._count()
        if self._generator.random() < self._fails:
            raise RuntimeError("the corridor is closed")
        forward = (action == "right") == (self._generator.random() < 0.8)
        self.place = min(5, max(0, self.place + (1 if forward else -1)))
        return self.place % 3 if self._hides else self.place


def explored(log: Path, limit: int | None, fails: float = 0.0, hides: bool = False, **asked: Any) -> tuple[Any, int]:
    """The atlas, and the calls that the system got."""
    log.write_text("")
    question: dict[str, Any] = {"radius": 3, "epsilon": 1, "max_steps": limit, **asked}
    atlas: Any
    try:
        atlas = axplore.explore(lambda: Counted(log, fails, hides), **question)
    except axplore.errors.WorldError as error:  # too many failures
        atlas = error.atlas
    return atlas, log.stat().st_size


@pytest.mark.parametrize("limit", BUDGETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_explorer_takes_more_steps_than_it_may(tmp_path: Path, name: str, limit: int) -> None:
    for doctor in (True, False):
        atlas, calls = explored(tmp_path / "log", limit, explorer=name, doctor=doctor)
        assert calls == atlas.run.steps_in_all <= limit
        assert atlas.stop is StopReason.STEP_LIMIT or atlas.stop.by_own_rule


ASKED: dict[str, dict[str, Any]] = {
    "within radius": {"objective": "within-radius"},
    "rows only": {"assume": "min-probability=0.1"},
    "deterministic": {"assume": "deterministic"},
    "memory": {"memory": 2, "hides": True},
    "hidden": {"hides": True},
    "failing": {"fails": 0.05},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("limit", BUDGETS)
def test_nothing_that_is_asked_makes_it_take_more(tmp_path: Path, asked: dict[str, Any], limit: int) -> None:
    atlas, calls = explored(tmp_path / "log", limit, **asked)
    assert calls == atlas.run.steps_in_all <= limit


@settings(max_examples=25, deadline=None)
@given(
    limit=st.integers(1, 8000),
    seed=st.integers(0, 50),
    name=st.sampled_from(EXPERIMENTS),
    fails=st.sampled_from([0.0, 0.0, 0.02]),
    doctor=st.booleans(),
)
def test_no_limit_is_exceeded(
    tmp_path_factory: pytest.TempPathFactory, limit: int, seed: int, name: str, fails: float, doctor: bool
) -> None:
    log = tmp_path_factory.mktemp("budget") / "log"
    atlas, calls = explored(log, limit, fails, explorer=name, doctor=doctor, seed=seed, epsilon=2)
    assert calls == atlas.run.steps_in_all <= limit


@pytest.mark.parametrize("limit", [1, 10, 228, 3000])
@pytest.mark.parametrize("fails", [0.0, 0.01])
def test_workers_share_what_is_left(tmp_path: Path, limit: int, fails: float) -> None:
    atlas, calls = explored(tmp_path / "log", limit, fails, workers=2)
    assert atlas.run.steps_in_all <= limit
    assert calls <= limit


@pytest.mark.usefixtures("_only_worker_here")
def test_one_worker_or_two_end_at_the_same_step_of_the_same_exploration() -> None:
    for limit in (300, 2500):
        one, two = (
            axplore.explore("slippery-grid", radius=4, epsilon=1, max_steps=limit, workers=workers)
            for workers in (1, 2)
        )
        assert one.stop is StopReason.STEP_LIMIT
        assert limit // 2 <= one.steps <= limit
        assert repr(one.run) == repr(two.run)
        assert one.counts.counts.tolist() == two.counts.counts.tolist()


def test_a_program_takes_no_more_steps_than_it_may(tmp_path: Path) -> None:
    log, script = tmp_path / "log", tmp_path / "program.py"
    script.write_text(
        "import json, sys\n"
        "place = 0\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        f"    open({str(log)!r}, 'a').write('.')\n"
        "    place = 0 if 'reset' in str(asked) else (place + 1) % 4\n"
        "    print(json.dumps({'state': place, 'actions': ['on']}), flush=True)\n"
    )
    for limit in (1, 7, 50):
        log.write_text("")
        atlas = axplore.explore(f"exec:{sys.executable} {script}", radius=3, epsilon=1, max_steps=limit)
        assert atlas.run.steps_in_all == log.stat().st_size <= limit


def test_resuming_counts_the_steps_of_all_calls_together(tmp_path: Path) -> None:
    log, run = tmp_path / "log", tmp_path / "run"
    log.write_text("")
    world = lambda: Counted(log)  # noqa: E731 (a factory)
    atlas = axplore.explore(world, radius=3, epsilon=1, max_steps=300, run=run)
    assert log.stat().st_size == atlas.run.steps_in_all <= 300
    starts = 0
    for limit in (301, 500, 2000, 20_000):
        before, visits = atlas.run.steps_in_all, atlas.counts.visits.sum()
        atlas = axplore.resume(run, world, max_steps=limit)
        starts += min(5, limit - before - starts)  # RESETs with which a process begins are within the limit, too
        assert log.stat().st_size == atlas.run.steps_in_all + starts <= limit
        assert visits <= atlas.counts.visits.sum() <= atlas.steps
    assert atlas.stop is StopReason.PROVEN
    with pytest.raises(InvalidSettingError, match="no step is left of it to reset the system"):
        axplore.resume(run, world, max_steps=10)


class Shop:
    """A shop of which only the view is seen: the basket, the address and the payment are not."""

    actions = ("add", "back", "address", "pay", "search")

    def __init__(self) -> None:
        self.calls = 0
        self._generator = random.Random(3)

    def reset(self) -> str:
        self.calls += 1
        self._view, self._basket, self._address = "home", 0, False
        return self._view

    def step(self, action: str) -> str:
        self.calls += 1
        if action == "add" and self._view == "item":
            self._basket = min(4, self._basket + 1)
        elif action == "search":
            self._view = "item" if self._generator.random() < 0.7 else "empty"
        elif action == "address" and self._basket:
            self._view, self._address = "address", True
        elif action == "pay" and self._address and self._basket == 4:
            self._view = "paid" if self._generator.random() < 0.9 else "home"
        elif action == "back":
            self._view = "home"
        return self._view


def test_a_round_that_loses_its_way_ends_at_the_limit() -> None:
    for limit in (100, 60_000):
        shop = Shop()
        atlas = axplore.explore(shop, radius=12, epsilon=1, max_steps=limit)
        assert shop.calls == atlas.run.steps_in_all <= limit


def test_what_steps_were_for_is_said(tmp_path: Path) -> None:
    atlas, calls = explored(tmp_path / "log", None, epsilon=2)
    parts = atlas.run
    assert calls == parts.steps + parts.examining + parts.playing
    assert min(parts.steps, parts.examining, parts.playing) > 0
    said = f"{calls:,} steps taken: {parts.steps:,} exploring, {parts.examining:,} examining the system, "
    assert said + f"{parts.playing:,} playing policies." in str(atlas)
    assert axplore.explore("confusing-chain", radius=2, epsilon=1).run.steps_in_words.endswith("steps taken")


def test_a_part_is_set_aside_to_play_policies_and_where_it_is_too_small_that_is_a_doubt(tmp_path: Path) -> None:
    unlimited, _ = explored(tmp_path / "log", None, epsilon=2)
    needed = unlimited.run.steps_in_all
    enough, _ = explored(tmp_path / "log", needed + unlimited.run.playing, epsilon=2)
    assert repr(enough.run) == repr(unlimited.run)  # the limit changes nothing where it does not come
    scarce, _ = explored(tmp_path / "log", needed - unlimited.run.playing + 10, epsilon=2)
    assert scarce.complete
    assert [finding.issue for finding in scarce.findings] == [Issue.NOT_PLAYED]
    assert scarce.verdict.kind.value == "proven under doubt"


class Slow(Counted):
    def step(self, action: str) -> int:
        time.sleep(0.01)
        return super().step(action)


@pytest.mark.parametrize("asked", [{}, {"doctor": False}, {"workers": 2}], ids=["alone", "no doctor", "workers"])
def test_no_step_begins_after_the_time_limit(tmp_path: Path, asked: dict[str, Any]) -> None:
    log = tmp_path / "log"
    log.write_text("")
    seconds = 3.0 if "workers" in asked else 1.0  # by then, workers have started on a busy machine too
    ends = time.time() + seconds
    atlas = axplore.explore(lambda: Slow(log), radius=3, epsilon=0.1, max_seconds=seconds, **asked)
    assert atlas.stop is StopReason.TIME_LIMIT
    assert log.stat().st_mtime < ends + 0.2  # the last step began before
    assert not atlas.complete
    assert "The time limit was reached" in atlas.stop.value


def test_a_run_that_time_ended_resumes_without_that_limit(tmp_path: Path) -> None:
    atlas = axplore.explore("slippery-grid", radius=6, epsilon=0.05, max_seconds=0.3, run=tmp_path / "run")
    assert atlas.stop is StopReason.TIME_LIMIT
    again = axplore.resume(tmp_path / "run", max_steps=atlas.steps + 1000)
    assert (again.stop, again.steps) == (StopReason.STEP_LIMIT, atlas.steps + 1000)


def test_a_limit_without_room_for_a_reset_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="max_steps is 0"):
        axplore.explore(Shop(), radius=3, max_steps=0)
    with pytest.raises(InvalidSettingError, match="max_seconds is 0"):
        axplore.explore(Shop(), radius=3, max_seconds=0)
