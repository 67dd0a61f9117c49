from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import axplore
from axplore import Atlas, Objective, StopReason, TabularMdp
from axplore.errors import (
    AxploreError,
    InvalidInputError,
    InvalidLabelError,
    InvalidSettingError,
    StorageError,
    UnknownNameError,
)
from axplore.explorers.base import Remaining, RoundReport
from axplore.explorers.certified import Certified
from axplore.explorers.registry import EXPLORERS, preset
from axplore.report.progress import (
    MOST_DONE,
    SECONDS_BEFORE_ESTIMATES,
    SECONDS_BETWEEN_LINES,
    SECONDS_OF_SPEED,
    Board,
    Line,
    Pace,
    PlainLines,
    left_in_words,
    share_done,
    showing,
)
from axplore.runs.events import read_events
from axplore.target import Target
from axplore.worlds.simulated import SimulatedWorld
from waiting import comes_true

CHAIN = axplore.domain("confusing-chain")


@dataclass(frozen=True)
class Place:
    """A label that no file can hold."""

    name: str


def same(atlas: Atlas, other: Atlas) -> bool:
    """Whether two atlases have the same states, steps, bounds and policies."""
    return (
        (atlas.states, atlas.steps) == (other.states, other.steps)
        and np.array_equal(atlas.lower, other.lower)
        and np.array_equal(atlas.upper, other.upper)
        and all(map(np.array_equal, atlas.policies, other.policies))
    )


def test_a_name_a_model_and_a_world_are_the_same_world() -> None:
    by_name = axplore.explore("confusing-chain", 2, 0.5, seed=3)
    assert same(by_name, axplore.explore(CHAIN, 2, 0.5, seed=3))
    assert same(by_name, axplore.explore(SimulatedWorld(CHAIN, 3), 2, 0.5))
    assert by_name.world == "confusing-chain"


def test_parameters_of_a_named_world_are_set() -> None:
    atlas = axplore.explore("star", 2, 0.5, world_parameters={"arms": 3, "arm_length": "1"})
    assert set(atlas.states) == {"s0", "arm1.1", "arm2.1", "arm3.1"}


def test_the_certified_explorer_is_the_default_with_epsilon_and_delta_of_a_tenth() -> None:
    atlas = axplore.explore("two-branch", 3)
    assert (atlas.explorer, atlas.objective) == ("certified", Objective.OPTIMAL)
    assert (atlas.target.epsilon, atlas.target.delta) == (0.1, 0.1)
    assert atlas.certificate is not None


def test_a_configuration_explores_as_the_preset_with_its_settings() -> None:
    configured = Certified(target=Target(radius=2.0, epsilon=0.5))
    atlas = axplore.explore(CHAIN, explorer=configured)
    assert same(atlas, axplore.explore(CHAIN, 2.0, 0.5))
    assert atlas.explorer == "Certified"
    assert same(atlas, axplore.explore(CHAIN, 2.0, explorer=configured))


def test_another_seed_gives_another_run_and_the_same_seed_the_same() -> None:
    first, again, other = (axplore.explore(CHAIN, 2, 0.5, seed=seed) for seed in (0, 0, 1))
    assert same(first, again)
    assert not same(first, other)
    assert first.states == other.states


def test_the_cheaper_objective_takes_fewer_steps() -> None:
    optimal = axplore.explore(CHAIN, 4.5)
    cheaper = axplore.explore(CHAIN, 4.5, objective="within-radius")
    assert cheaper.objective is Objective.WITHIN_RADIUS
    assert set(cheaper.states) == set(optimal.states)
    assert cheaper.steps < optimal.steps
    assert same(cheaper, axplore.explore(CHAIN, 4.5, objective=Objective.WITHIN_RADIUS))
    assert same(cheaper, axplore.explore(CHAIN, 4.5, explorer="certified-within-radius"))


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_preset_explores(name: str) -> None:
    mdp = TabularMdp.from_rows({"here": {"go": {"there": 1.0}}, "there": {}}, "here")
    states_bound = 2 if "theory" in name else None
    limit = 10_000 if "theory" in name else None
    if name == "directed":
        with pytest.raises(InvalidSettingError, match="needs a question"):
            axplore.explore(mdp, 1.5, 1, explorer=name)
        return
    atlas = axplore.explore(mdp, 1.5, 1, explorer=name, states_bound=states_bound, max_steps=limit)
    assert atlas.explorer == name
    assert "here" in atlas.states
    if limit is None:
        assert atlas.states == ("here", "there")


BAD_SETTINGS: list[tuple[dict[str, Any], type[AxploreError], str]] = [
    ({"radius": None}, InvalidSettingError, "radius is missing"),
    ({"radius": 0.5}, InvalidSettingError, "radius is 0.5"),
    ({"epsilon": 0}, InvalidSettingError, "epsilon is 0"),
    ({"delta": 1}, InvalidSettingError, "delta is 1"),
    ({"explorer": "magellan"}, UnknownNameError, "no explorer named 'magellan'"),
    ({"explorer": None}, InvalidInputError, "explorer is None; it must be a configuration"),
    ({"explorer": "disco-theory"}, InvalidSettingError, "states_bound is missing"),
    ({"explorer": Certified(target=Target(radius=3, epsilon=0.1))}, InvalidSettingError, "configured for 3"),
    (
        {"explorer": preset("certified", radius=4.5, epsilon=0.1), "states_bound": 9},
        InvalidSettingError,
        "states_bound applies only to a preset",
    ),
    ({"objective": "fastest"}, InvalidSettingError, "objective is 'fastest'"),
    ({"objective": Objective.STAGED}, InvalidSettingError, "must be one of optimal, within-radius"),
    ({"objective": "optimal", "explorer": "disco-experiment"}, InvalidSettingError, "has one objective only"),
    ({"seed": -1}, InvalidSettingError, "seed is -1"),
    ({"max_steps": -1}, InvalidSettingError, "max_steps is -1"),
    ({"world": "atlantis"}, UnknownNameError, "no world named 'atlantis'"),
    ({"world": 7}, InvalidInputError, "7 cannot be explored"),
    ({"world": CHAIN, "world_parameters": {"skip": 2}}, InvalidSettingError, "world_parameters"),
    ({"world_parameters": {"legs": 2}}, UnknownNameError, "no parameter of confusing-chain named 'legs'"),
]


@pytest.mark.parametrize(("settings", "error", "reason"), BAD_SETTINGS)
def test_bad_input_is_refused_with_the_reason_before_the_first_step(
    settings: dict[str, Any], error: type[AxploreError], reason: str, tmp_path: Path
) -> None:
    reports: list[RoundReport] = []
    good = {"world": "confusing-chain", "radius": 4.5, "run": tmp_path / "run"}
    with pytest.raises(error, match=reason):
        axplore.explore(**{**good, **settings}, on_round=reports.append)
    assert reports == []
    assert not (tmp_path / "run").exists()


def test_a_run_leaves_its_atlas_and_certificate_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "chain"
    atlas = axplore.explore(CHAIN, 2, 0.5, run=folder)
    assert same(Atlas.load(folder), atlas)
    assert axplore.verify(folder).complete


def test_a_folder_that_holds_anything_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("draft")
    with pytest.raises(StorageError, match="not empty"):
        axplore.explore(CHAIN, 2, 0.5, run=tmp_path)
    with pytest.raises(StorageError, match="cannot be used"):
        axplore.explore(CHAIN, 2, 0.5, run=tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "draft"


def test_a_label_that_no_file_can_hold_is_refused_when_it_is_met(tmp_path: Path) -> None:
    mdp = TabularMdp.from_rows({"here": {"go": {Place("there"): 1.0}}, Place("there"): {}}, "here")
    reports: list[RoundReport] = []
    with pytest.raises(InvalidLabelError, match="Place"):
        axplore.explore(mdp, 2, 0.5, run=tmp_path, on_round=reports.append)
    assert len(reports) == 1  # the start, before anything was met
    assert Place("there") in axplore.explore(mdp, 2, 0.5).states


def test_the_step_limit_counts_the_steps_of_this_exploration() -> None:
    world = SimulatedWorld(CHAIN, 0)
    axplore.explore(world, 2, 0.5)
    used = world.steps
    atlas = axplore.explore(world, 4.5, max_steps=500)
    assert atlas.stop is StopReason.STEP_LIMIT
    assert 500 <= atlas.steps == world.steps - used
    assert atlas.found_at[0] == 0


def test_a_reason_from_the_hook_ends_the_exploration_with_what_is_known() -> None:
    atlas = axplore.explore(CHAIN, 4.5, on_round=lambda report: StopReason.INTERRUPTED if report.steps > 1000 else None)
    assert atlas.stop is StopReason.INTERRUPTED
    assert not atlas.complete
    assert axplore.verify(atlas).holds


# Progress.


def report(steps: int, activity: str = "proving states too far (3 left)") -> RoundReport:
    return RoundReport(round=12, known=4, frontier=6, steps=steps, activity=activity)


def test_a_line_says_where_the_exploration_stands_and_how_fast_it_goes() -> None:
    times = iter([10.0, 12.0])
    line = Line(lambda: next(times))
    assert line.of(report(1_000, "starting")) == "known 4 · frontier 6 · 1,000 steps · starting · round 12"
    assert line.of(report(5_000)) == (
        "known 4 · frontier 6 · 5,000 steps · 2,000 steps/s · proving states too far (3 left) · round 12 · "
        "0.0 states/min"
    )


def test_a_line_tells_the_present_speed_and_not_that_of_long_ago() -> None:
    times = iter([0.0, 100.0, 100.0 + SECONDS_OF_SPEED])
    line = Line(lambda: next(times))
    line.of(report(0))
    line.of(report(1_000_000))
    assert " · 100 steps/s · " in line.of(report(1_000_000 + int(100 * SECONDS_OF_SPEED)))


def test_a_line_begins_with_what_is_left_and_how_sure_that_is() -> None:
    left = Remaining(settled=30, claims=40, steps=12_345, fewest=6_000, most=24_000, taken=1_000)
    text = left_in_words(replace(report(1_000), remaining=left, speed=100.0))
    assert text == "░░░░░░░░░░░░ 7 % · 1,000 of about 13,000 steps (7,000 to 25,000) · 2 min left (60 s to 4 min) · "
    growing = replace(left, may_grow=True)
    assert "of at least about 13,000 steps" in left_in_words(replace(report(1_000), remaining=growing))


def test_a_bar_shows_the_steps_taken_of_those_expected_and_is_never_full_before_the_end() -> None:
    left = Remaining(settled=39, claims=40, steps=3_000, fewest=1_000, most=9_000, taken=1_000)
    halfway = replace(report(2_000), remaining=left, speed=100.0)
    assert left_in_words(halfway).startswith(
        "██████░░░░░░ 50 % · 2,000 of about 4,000 steps (2,000 to 10,000) · 20 s left (0 s"
    )
    late = replace(report(5_000), remaining=left)
    assert share_done(late) == MOST_DONE
    assert left_in_words(late).startswith("███████████░ 99 % · 5,000 of about 5,000 steps (5,000 to 10,000) · ")
    assert share_done(report(1_000)) is None


def test_estimates_are_rare_and_every_report_has_the_latest(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Any] = []
    seen: list[RoundReport] = []
    now = 0.0

    class Foreseeing(Certified):
        def remaining(self, state: Any, seconds: float) -> Remaining:
            asked.append((state, seconds))
            return Remaining(len(asked), 10, 100.0, 50.0, 200.0)

    explorer = Foreseeing(target=Target(radius=2, epsilon=1))
    state = explorer.start(SimulatedWorld(CHAIN, 0))
    pace = Pace(explorer, [seen.append, lambda _: StopReason.INTERRUPTED], lambda: now)
    with caplog.at_level(logging.INFO, "axplore"):
        for now in (0.0, SECONDS_BEFORE_ESTIMATES, SECONDS_BEFORE_ESTIMATES + 1, 1000.0):
            assert pace(replace(report(int(100 * now)), state=state)) is StopReason.INTERRUPTED
    assert len(asked) == 2
    assert [None if told.remaining is None else told.remaining.settled for told in seen] == [None, 1, 1, 2]
    assert seen[-1].speed == pytest.approx(100)
    assert len(caplog.records) == 2
    assert "300 of about 400 steps (350 to 500)" in caplog.records[0].getMessage()
    assert [None if told.remaining is None else told.remaining.taken for told in seen] == [None, 300, 300, 100_000]


def test_what_is_left_is_in_the_log_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.report.progress.SECONDS_BEFORE_ESTIMATES", 0.0)
    monkeypatch.setattr("axplore.report.progress.SECONDS_BETWEEN_ESTIMATES", 0.0)
    axplore.explore(CHAIN, 4.5, 0.5, run=tmp_path / "run")
    told = [event["remaining"] for event in read_events(tmp_path / "run") if "remaining" in event]
    assert told
    assert all(0 <= left["settled"] <= left["claims"] and left["fewest"] <= left["most"] for left in told)


def test_plain_lines_come_from_time_to_time() -> None:
    now = 0.0
    said: list[str] = []
    lines = PlainLines(said.append, lambda: now)
    for seconds in (0.0, 1.0, SECONDS_BETWEEN_LINES - 0.1, SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_LINES + 1):
        now = seconds
        lines.show(report(int(10 * seconds)))
    assert len(said) == 2


def test_progress_is_shown_on_standard_error_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    axplore.explore(CHAIN, 2, 0.5, progress=True)
    output = capsys.readouterr()
    assert output.out == ""
    assert "known 1 · frontier 0 · 0 steps · starting · round 1" in output.err.splitlines()


def test_the_steps_of_an_order_in_progress_are_shown_too() -> None:
    screen = StringIO()
    now = 1_000
    with showing(Console(file=screen, force_terminal=True, width=120), lambda: now) as watch:
        watch(report(1_000))
        now = 7_500
        assert comes_true(lambda: "7,500 steps" in screen.getvalue())


def test_while_kernels_are_compiled_the_lines_say_so() -> None:
    screen, compiling = StringIO(), "compiling: 2 of at most 3 functions"
    with showing(Console(file=screen, width=120), compiling=lambda: compiling) as watch:
        watch(report(0))
    assert screen.getvalue().rstrip().endswith("· compiling: 2 of at most 3 functions · round 12")
    board = Board(lambda: 0, lambda: None)
    board.take(report(100))
    assert board.report().activity == report(100).activity


def test_plain_lines_come_without_reports_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.report.progress.SECONDS_BETWEEN_LINES", 0.01)
    monkeypatch.setattr("axplore.report.progress.SECONDS_BETWEEN_LOOKS", 0.001)
    screen = StringIO()
    now = 1_000
    with showing(Console(file=screen, width=120), lambda: now) as watch:
        watch(report(1_000))
        now = 7_500
        assert comes_true(lambda: "7,500 steps" in screen.getvalue())
    told = screen.getvalue()
    time.sleep(0.05)
    assert screen.getvalue() == told, "nothing is said after the end"


def test_on_a_terminal_one_line_lives_and_is_gone_at_the_end() -> None:
    screen = StringIO()
    with showing(Console(file=screen, force_terminal=True, width=120)) as watch:
        watch(report(1_000))
    _, line, after = screen.getvalue().rpartition("known 4")
    assert line
    assert "\x1b[2K" in after  # the line is erased
