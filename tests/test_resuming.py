"""Runs that are interrupted anywhere end, once they are resumed, as if nothing had happened."""

from __future__ import annotations

import errno
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore import Atlas, Objective, StopReason, TabularMdp, storage
from axplore.domains import confusing_chain
from axplore.errors import DamagedFileError, InvalidInputError, InvalidSettingError, StorageError, WorldError
from axplore.explorers.base import RoundReport
from axplore.explorers.certified import Certified, CertifiedState
from axplore.explorers.ucb_explore import UcbExplore, UcbExploreState, ucb_explore_experiment
from axplore.runs import recording
from axplore.runs.checkpoints import VERSION
from axplore.runs.events import read_events
from axplore.runs.manifest import described, explorer_from_description, load_manifest
from axplore.storage import Lock, read_document, write_document
from axplore.target import Target
from axplore.worlds.contract import Answer, Order, World
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.kills import RESULTS
from made_counts import same_counts

CHAIN = "confusing-chain"


class CutShortError(Exception):
    """Stands for a kill."""


def cut_after(n_reports: int) -> Callable[[RoundReport], StopReason | None]:
    """A hook that ends everything at its so-manieth call."""
    left = n_reports

    def hook(_: RoundReport) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CutShortError

    return hook


def cut_at_round(last: int) -> Callable[[RoundReport], StopReason | None]:
    """A hook that ends everything at a round."""

    def hook(report: RoundReport) -> None:
        if report.round >= last:
            raise CutShortError

    return hook


def cut_short(folder: Path, n_reports: int, *arguments: Any, **settings: Any) -> None:
    """Explores in a folder, and is cut short after so many reports."""
    settings |= {"run": folder, "on_round": cut_after(n_reports)}
    with pytest.raises(CutShortError):
        axplore.explore(*arguments, **settings)


def content(folder: Path) -> dict[str, bytes]:
    """The atlas and the certificate, if there is one, byte by byte."""
    return {name: (folder / name).read_bytes() for name in RESULTS if (folder / name).exists()}


@pytest.fixture
def _checkpoints_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(recording, "PART_FOR_CHECKPOINTS", 1e9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the chain that was never cut short."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    axplore.explore(CHAIN, 3, 0.1, run=folder)
    return folder


# Interrupted and resumed.


@pytest.mark.parametrize("n_reports", [0, 1, 2, 7, 30])
def test_a_run_cut_short_ends_with_the_same_bytes(n_reports: int, whole: Path, tmp_path: Path) -> None:
    cut_short(tmp_path, n_reports, CHAIN, 3, 0.1)
    assert content(tmp_path) == {}
    atlas = axplore.resume(tmp_path)
    assert content(tmp_path) == content(whole)
    assert atlas.stop is StopReason.PROVEN


@pytest.mark.parametrize("often", [False, True])
def test_a_run_cut_short_again_and_again_ends_with_the_same_bytes(
    often: bool, whole: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if often:
        request.getfixturevalue("_checkpoints_often")
    cut_short(tmp_path, 3, CHAIN, 3, 0.1)
    n_cuts = 1
    while True:
        try:
            axplore.resume(tmp_path, on_round=cut_at_round(5 * n_cuts))
        except CutShortError:
            n_cuts += 1
        else:
            break
    assert n_cuts > 5
    assert content(tmp_path) == content(whole)


@pytest.mark.usefixtures("_checkpoints_often")
@pytest.mark.parametrize(
    ("name", "n_reports"),
    [
        ("certified-within-radius", 6),
        ("disco-experiment", 9),
        ("ucb-explore-experiment", 3),
        ("ucb-explore-staged-experiment", 4),
    ],
)
def test_every_explorer_is_taken_up_to_the_same_bytes(name: str, n_reports: int, tmp_path: Path) -> None:
    axplore.explore(CHAIN, 2.0, 1.0, explorer=name, seed=5, run=tmp_path / "whole")
    cut_short(tmp_path / "cut", n_reports, CHAIN, 2.0, 1.0, explorer=name, seed=5)
    axplore.resume(tmp_path / "cut")
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


@dataclass(frozen=True, kw_only=True)
class Unhurried(UcbExplore):
    """An explorer that takes seven pieces of work for one."""

    def advance(self, state: UcbExploreState, world: World) -> UcbExploreState:
        for _ in range(7):
            if state.stop is None:
                state = super().advance(state, world)
        return state


def test_a_piece_of_work_of_many_calls_is_taken_up_in_its_middle(tmp_path: Path) -> None:
    own = Unhurried(**vars(ucb_explore_experiment(Target(radius=2.0, epsilon=1.0))))
    mdp = axplore.domain(CHAIN)
    axplore.explore(mdp, explorer=own, run=tmp_path / "whole")

    class Breaking(SimulatedWorld):
        def carry_out(self, orders: Any) -> Any:
            if self._calls == 5:
                raise CutShortError
            return super().carry_out(orders)

    reports: list[RoundReport] = []
    with pytest.raises(CutShortError):
        axplore.explore(Breaking(mdp, 0), explorer=own, run=tmp_path / "cut", on_round=reports.append)
    assert len(reports) == 1  # the first piece of work was not over
    axplore.resume(tmp_path / "cut", mdp, explorer=own)
    mine, its = Atlas.load(tmp_path / "cut"), Atlas.load(tmp_path / "whole")
    assert (mine.steps, mine.states) == (its.steps, its.states)
    assert same_counts(mine.counts, its.counts)


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnState(CertifiedState):
    """A state of somebody else's."""


@dataclass(frozen=True, kw_only=True)
class OwnExplorer(Certified):
    """An explorer of somebody else's."""

    state_types = (OwnState, *Certified.state_types[1:])

    def start(self, world: World) -> OwnState:
        return OwnState(**vars(super().start(world)))


@dataclass(frozen=True, kw_only=True)
class UndeclaredExplorer(Certified):
    """An explorer that does not say what its states are."""

    def start(self, world: World) -> OwnState:
        return OwnState(**vars(super().start(world)))


def test_an_explorer_with_states_that_it_does_not_declare_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    own = UndeclaredExplorer(target=Target(radius=2.0, epsilon=0.5))
    with pytest.raises(InvalidInputError, match="holds a OwnState, which its state_types do not declare"):
        axplore.explore(CHAIN, explorer=own, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("_checkpoints_often")
def test_an_explorer_that_no_file_holds_is_handed_in_again(tmp_path: Path) -> None:
    own = OwnExplorer(target=Target(radius=2.0, epsilon=0.5))
    axplore.explore(CHAIN, explorer=own, run=tmp_path / "whole")
    cut_short(tmp_path / "cut", 9, CHAIN, explorer=own)
    with pytest.raises(InvalidSettingError, match="pass the explorer"):
        axplore.resume(tmp_path / "cut")
    with pytest.raises(InvalidSettingError, match=r"growth=0\.5"):
        axplore.resume(tmp_path / "cut", explorer=replace(own, growth=0.5))
    axplore.resume(tmp_path / "cut", explorer=own)
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_a_configuration_of_the_certified_explorer_is_kept_with_the_run(tmp_path: Path) -> None:
    configured = Certified(target=Target(radius=2, epsilon=0.5, delta=0.2), growth=0.1, filled=0.5)
    axplore.explore(CHAIN, explorer=configured, run=tmp_path / "whole")
    cut_short(tmp_path / "cut", 9, CHAIN, explorer=configured)
    assert axplore.resume(tmp_path / "cut").target.delta == 0.2
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


KILLED_AS_IT_WRITES = """
import os, pathlib, signal, sys
import axplore
from axplore.runs import recording
recording.SECONDS_BETWEEN_CHECKPOINTS, recording.PART_FOR_CHECKPOINTS = 0.0, 1e9
put_in_place, left = pathlib.Path.replace, int(sys.argv[1])
def replace(path, target):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return put_in_place(path, target)
pathlib.Path.replace = replace
"""


def test_a_run_killed_as_it_writes_ends_with_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    """Killed as it explores and again as it resumes; the study `kills` does it at random moments."""
    folder = tmp_path / "run"
    for n_files, call in (
        (8, f"axplore.explore({CHAIN!r}, 3, 0.1, run=sys.argv[2])"),
        (3, "axplore.resume(sys.argv[2])"),
    ):
        command = [sys.executable, "-c", KILLED_AS_IT_WRITES + call, str(n_files), str(folder)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert content(folder) == {}
    axplore.resume(folder)
    assert content(folder) == content(whole)


def test_taking_up_a_run_that_is_done_changes_nothing(whole: Path) -> None:
    before = content(whole)
    atlas = axplore.resume(whole)
    assert content(whole) == before
    assert atlas.stop is StopReason.PROVEN


def test_an_interrupted_run_keeps_what_is_known_and_can_be_taken_up(whole: Path, tmp_path: Path) -> None:
    atlas = axplore.explore(
        CHAIN, 3, 0.1, run=tmp_path, on_round=lambda report: StopReason.INTERRUPTED if report.round > 20 else None
    )
    assert atlas.stop is StopReason.INTERRUPTED
    assert axplore.verify(tmp_path).holds
    axplore.resume(tmp_path)
    assert content(tmp_path) == content(whole)


# Step limits.


def test_a_limit_that_has_ended_the_run_is_lifted_and_one_that_has_not_stays(tmp_path: Path) -> None:
    limited, cut = tmp_path / "limited", tmp_path / "cut"
    assert axplore.explore(CHAIN, 3, 0.1, max_steps=1000, run=limited).stop is StopReason.STEP_LIMIT
    cut_short(cut, 7, CHAIN, 3, 0.1, max_steps=1000)
    assert axplore.resume(cut).stop is StopReason.STEP_LIMIT
    assert content(cut) == content(limited)
    # Its last order was cut, so it goes another way than the one that was not; nothing is lost or counted twice.
    before, after = axplore.Atlas.load(limited), axplore.resume(limited)
    assert (before.steps, after.stop) == (1000, StopReason.PROVEN)
    assert before.counts.visits.sum() < after.counts.visits.sum() <= after.steps


def test_a_new_limit_counts_the_steps_of_the_whole_run(tmp_path: Path) -> None:
    cut_short(tmp_path, 7, CHAIN, 3, 0.1)
    first = axplore.resume(tmp_path, max_steps=1000)
    assert first.stop is StopReason.STEP_LIMIT
    assert first.steps == 1000
    same = axplore.resume(tmp_path, max_steps=500)
    assert (same.steps, same.stop) == (first.steps, StopReason.STEP_LIMIT)
    with pytest.raises(InvalidSettingError, match="max_steps is -1"):
        axplore.resume(tmp_path, max_steps=-1)


def test_steps_before_the_run_do_not_count(tmp_path: Path) -> None:
    world = SimulatedWorld(axplore.domain(CHAIN), 0)
    axplore.explore(world, 2, 0.5)
    again = SimulatedWorld(axplore.domain(CHAIN), 0)
    again.restore(world.snapshot())
    whole = axplore.explore(again, 3, 0.1, run=tmp_path / "whole")
    cut_short(tmp_path / "cut", 9, world, 3, 0.1)
    resumed = axplore.resume(tmp_path / "cut", SimulatedWorld(axplore.domain(CHAIN), 0))
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert resumed.steps == whole.steps
    assert resumed.found_at[0] == 0


# Worlds.


def test_a_world_that_was_handed_in_is_handed_in_again(tmp_path: Path) -> None:
    mdp = axplore.domain("star", arms=2, arm_length=3)
    axplore.explore(mdp, 2.0, 0.5, seed=3, run=tmp_path / "whole")
    cut_short(tmp_path / "cut", 9, mdp, 2.0, 0.5, seed=3)
    with pytest.raises(InvalidSettingError, match="passed as an object"):
        axplore.resume(tmp_path / "cut")
    other = TabularMdp.from_rows({"here": {"go": {"there": 1.0}}, "there": {}}, "here")
    for wrong in (other, "star", SimulatedWorld(mdp, 4)):
        with pytest.raises(InvalidSettingError, match="another world"):
            axplore.resume(tmp_path / "cut", wrong)
    axplore.resume(tmp_path / "cut", mdp)
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_parameters_and_seed_of_a_named_world_are_kept(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"world_parameters": {"arms": 2, "arm_length": "3"}, "seed": 8}
    axplore.explore("star", 2.0, 0.5, **settings, run=tmp_path / "whole")
    cut_short(tmp_path / "cut", 9, "star", 2.0, 0.5, **settings)
    axplore.resume(tmp_path / "cut")
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


class Corridor:
    """A system of five places in a row; a step forward succeeds four times in five, by a generator of its own."""

    actions = ("forward", "back")
    resets = 0

    def __init__(self, seed: int = 1) -> None:
        self._generator = np.random.default_rng(seed)
        self._place = 0

    def reset(self) -> str:
        Corridor.resets += 1
        self._place = 0
        return "place 0"

    def step(self, action: str) -> str:
        if action == "back":
            self._place = max(self._place - 1, 0)
        elif self._generator.random() < 0.8:
            self._place = min(self._place + 1, 4)
        return f"place {self._place}"


def test_a_stepped_system_goes_on_with_a_reset_and_keeps_every_answer(tmp_path: Path) -> None:
    cut_short(tmp_path, 12, Corridor(), 3.0, 0.3)
    reports: list[RoundReport] = []
    repeated = axplore.resume(
        tmp_path, Corridor(2), on_round=lambda _: StopReason.STEP_LIMIT
    )  # before anything is done
    Corridor.resets = 0
    atlas = axplore.resume(tmp_path, Corridor(2), on_round=reports.append)
    assert atlas.stop is StopReason.PROVEN
    assert axplore.verify(tmp_path).complete
    assert set(atlas.states) == {"place 0", "place 1", "place 2"}
    assert atlas.steps > reports[12].steps > 0 == repeated.steps
    # Every step is a draw of a known state or a reset; those of the first process are among them.
    assert atlas.counts.visits.sum() <= atlas.steps
    assert Corridor.resets >= 1 + 5  # the checks of a new world, and the first order


class Failing(Corridor):
    """Fails for good after so many steps."""

    left = 100

    def step(self, action: str) -> str:
        Failing.left -= 1
        if Failing.left < 0:
            raise OSError("the cable is out")
        return super().step(action)


def test_after_a_failure_of_the_world_the_run_can_be_taken_up(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="the cable is out"):
        axplore.explore(Failing(), 3.0, 0.3, run=tmp_path, doctor=False)
    known = Atlas.load(tmp_path)
    assert known.stop is StopReason.WORLD_FAILED
    atlas = axplore.resume(tmp_path, Corridor(3))
    assert atlas.stop is StopReason.PROVEN
    assert atlas.steps > known.steps > 0
    events = [event["event"] for event in read_events(tmp_path)]
    assert events.count("fault") == 1


class Interrupting(SimulatedWorld):
    """Hears Ctrl-C in the middle of a call."""

    left = 30

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        Interrupting.left -= 1
        answers = super().carry_out(orders)
        if not Interrupting.left:
            raise KeyboardInterrupt
        return answers


def test_after_ctrl_c_the_run_holds_the_atlas_of_the_interrupt_and_ends_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    whole = axplore.explore(SimulatedWorld(confusing_chain(), 0), 4.5, 0.5)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        axplore.explore(Interrupting(confusing_chain(), 0), 4.5, 0.5, run=tmp_path)
    known = Atlas.load(tmp_path)
    assert known.stop is StopReason.INTERRUPTED
    assert known.steps == interrupt.value.atlas.steps > 0  # type: ignore[attr-defined]
    assert axplore.verify(tmp_path).holds
    atlas = axplore.resume(tmp_path, SimulatedWorld(confusing_chain(), 0))
    assert (atlas.steps, atlas.rounds) == (whole.steps, whole.rounds)


def test_another_system_is_refused(tmp_path: Path) -> None:
    class Elsewhere(Corridor):
        def reset(self) -> str:
            return "elsewhere"

    cut_short(tmp_path, 9, Corridor(), 3.0, 0.3)
    with pytest.raises(InvalidSettingError, match="another system"):
        axplore.resume(tmp_path, SteppedWorld(Elsewhere()))


# Changing one's mind.


def test_a_larger_radius_uses_what_was_sampled_and_verifies(tmp_path: Path) -> None:
    more = from_the_start = 0
    for seed in range(4):
        first = axplore.explore(CHAIN, 3.0, 0.5, seed=seed, run=tmp_path / str(seed))
        second = axplore.resume(tmp_path / str(seed), radius=4.5)
        anew = axplore.explore(CHAIN, 4.5, 0.5, seed=seed)
        more += second.steps - first.steps
        from_the_start += anew.steps
        assert set(second.states) == set(anew.states)
        assert second.states[: len(first.states)] == first.states
        assert second.target.radius == 4.5
        verdict = axplore.verify(tmp_path / str(seed))
        assert verdict.holds
        assert verdict.complete
    assert more < from_the_start


def test_a_changed_mind_is_kept_when_the_run_is_cut_short(tmp_path: Path) -> None:
    for folder in (tmp_path / "whole", tmp_path / "cut"):
        axplore.explore(CHAIN, 3.0, 0.1, run=folder)
    axplore.resume(tmp_path / "whole", radius=4.5, epsilon=0.2)
    with pytest.raises(CutShortError):
        axplore.resume(tmp_path / "cut", radius=4.5, epsilon=0.2, on_round=cut_after(3))
    assert Atlas.load(tmp_path / "cut").target.radius == 3.0  # until there is another
    axplore.resume(tmp_path / "cut")
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_a_run_that_was_cut_short_can_change_its_mind_and_loses_no_sample(tmp_path: Path) -> None:
    cut_short(tmp_path, 30, CHAIN, 3.0, 0.1)
    steps: list[int] = []
    axplore.resume(tmp_path, radius=4.5, on_round=lambda report: steps.append(report.steps))
    (began,) = (event for event in read_events(tmp_path) if event["event"] == "resumed")
    assert steps[0] == began["steps"] > 500
    assert axplore.verify(tmp_path).complete


@pytest.mark.parametrize("change", [{"epsilon": 0.15}, {"epsilon": 0.05}, {"objective": "optimal"}, {"radius": 2.7}])
def test_other_changes_verify_too(change: dict[str, Any], tmp_path: Path) -> None:
    first = axplore.explore(CHAIN, 2.6, 0.2, objective="within-radius", run=tmp_path)
    atlas = axplore.resume(tmp_path, **change)
    assert atlas.steps >= first.steps
    assert atlas.states == first.states == ("s0", "s1", "s2")
    assert axplore.verify(tmp_path).complete
    assert (atlas.objective is Objective.OPTIMAL) == ("objective" in change)


def test_a_smaller_radius_that_would_take_back_a_state_is_refused_and_the_run_stays(tmp_path: Path) -> None:
    axplore.explore(CHAIN, 4.5, 0.1, run=tmp_path)
    before = content(tmp_path)
    with pytest.raises(InvalidSettingError, match=r"'s4' was admitted.*atlas\.within"):
        axplore.resume(tmp_path, radius=3)
    assert content(tmp_path) == before
    assert axplore.resume(tmp_path).target.radius == 4.5
    assert content(tmp_path) == before


@pytest.mark.usefixtures("_checkpoints_often")
def test_a_state_that_turns_out_to_be_beyond_a_smaller_epsilon_ends_the_run(tmp_path: Path) -> None:
    """It takes 2.3 steps: within 2 + 1, but not within 2 + 0.1, which is not proven at first."""
    chance = 1 / 2.3
    mdp = TabularMdp.from_rows({"here": {"go": {"there": chance, "here": 1 - chance}}, "there": {}}, "here")
    first = axplore.explore(mdp, 2.0, 1.0, objective="within-radius", run=tmp_path)
    assert first.states == ("here", "there")
    reports: list[RoundReport] = []
    with pytest.raises(InvalidSettingError, match=r"'there' was admitted before and takes at least 2\.1"):
        axplore.resume(tmp_path, mdp, epsilon=0.1, max_steps=10_000_000, on_round=reports.append)
    assert len(reports) > 1
    assert axplore.resume(tmp_path, mdp, epsilon=1.0).complete


def test_only_the_certified_explorer_changes_its_mind(tmp_path: Path) -> None:
    axplore.explore(CHAIN, 2.0, 1.0, explorer="disco-experiment", run=tmp_path)
    with pytest.raises(InvalidSettingError, match="DisCo cannot resume with another radius"):
        axplore.resume(tmp_path, radius=3.0)
    with pytest.raises(InvalidSettingError, match="one objective only"):
        axplore.resume(tmp_path, objective="optimal")
    assert axplore.resume(tmp_path, radius=2.0).target.radius == 2.0


@pytest.mark.parametrize("change", [{"radius": 0.5}, {"epsilon": -1}, {"objective": "best"}])
def test_a_change_out_of_range_is_refused(change: dict[str, Any], whole: Path) -> None:
    with pytest.raises(InvalidSettingError):
        axplore.resume(whole, **change)


# What can go wrong with the folder.


def test_a_run_in_use_is_refused(tmp_path: Path) -> None:
    refused: list[str] = []

    def meddle(_: RoundReport) -> None:
        with pytest.raises(StorageError) as error:
            axplore.resume(tmp_path)
        refused.append(str(error.value))

    axplore.explore(CHAIN, 2, 1.0, run=tmp_path, on_round=meddle)
    assert f"is in use by process {os.getpid()}" in refused[0]
    axplore.resume(tmp_path)


def test_a_lock_is_free_once_its_owner_is_gone(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        Lock(tmp_path)
        os._exit(0)  # without closing anything, as a kill
    os.waitpid(child, 0)
    Lock(tmp_path).close()


def test_a_folder_that_is_no_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"there is no run in .*: it holds no run\.json"):
        axplore.resume(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="there is no run in"):
        axplore.resume(tmp_path)
    assert list(tmp_path.iterdir()) == []


DAMAGES: list[tuple[str, Callable[[bytes], bytes | None], str]] = [
    ("run.json", lambda old: old[: len(old) // 2], "run.json cannot be read as JSON"),
    ("run.json", lambda old: old.replace(b'"seed": 0', b'"seed": 1'), "run.json does not fit its digest"),
    ("checkpoint-0.json", lambda _: None, "it has no checkpoint"),
    ("checkpoint-0.json", lambda old: old[:50], "checkpoint-0.json cannot be read as JSON"),
    ("checkpoint-0.json", lambda old: old.replace(b'"calls": 0', b'"calls": 1'), "do not fit their digest"),
    ("checkpoint-0.npz", lambda _: None, "checkpoint-0.npz cannot be read"),
    ("checkpoint-0.npz", lambda old: old[:-9], "checkpoint-0.npz cannot be read"),
    ("journal-0", lambda old: old[:300] + b"?" + old[301:], "journal-0 is damaged at byte"),
    ("journal-0", lambda old: old.replace(b'"version":3', b'"version":9'), "journal-0 has version 9 of its format"),
]


@pytest.mark.parametrize(("name", "damage", "reason"), DAMAGES)
def test_damage_is_refused_with_the_name_of_the_file(
    name: str, damage: Callable[[bytes], bytes | None], reason: str, tmp_path: Path
) -> None:
    cut_short(tmp_path, 20, CHAIN, 3, 0.1)
    damaged = damage((tmp_path / name).read_bytes())
    assert damaged != (tmp_path / name).read_bytes()
    if damaged is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(damaged)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name not in ("lock", "events.jsonl")}
    with pytest.raises(DamagedFileError, match=reason):
        axplore.resume(tmp_path)
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_without_its_journal_a_run_goes_on_from_the_checkpoint(whole: Path, tmp_path: Path) -> None:
    cut_short(tmp_path, 20, CHAIN, 3, 0.1)
    (tmp_path / "journal-0").unlink()
    axplore.resume(tmp_path)
    assert content(tmp_path) == content(whole)


def test_other_versions_of_the_formats_are_refused(tmp_path: Path) -> None:
    cut_short(tmp_path / "run", 5, CHAIN, 3, 0.1)
    run = read_document(tmp_path / "run" / "run.json", "axplore run", 5)
    write_document(tmp_path / "run" / "run.json", {**run, "version": 1})
    with pytest.raises(DamagedFileError, match=r"run\.json has version 1 of its format; this axplore reads version 5"):
        axplore.resume(tmp_path / "run")
    write_document(tmp_path / "run" / "run.json", run)
    body, arrays = storage.read_sealed(tmp_path / "run", "checkpoint-0", "axplore checkpoint", VERSION)
    storage.write_sealed(tmp_path / "run", "checkpoint-0", {**body, "version": 1}, arrays)
    with pytest.raises(DamagedFileError, match=r"checkpoint-0\.json has version 1 of its format"):
        axplore.resume(tmp_path / "run")
    storage.write_sealed(tmp_path / "run", "checkpoint-0", {**body, "run": "another"}, arrays)
    with pytest.raises(DamagedFileError, match=r"checkpoint-0\.json is not of this run"):
        axplore.resume(tmp_path / "run")


def test_what_a_kill_left_half_done_is_cleared_away(whole: Path, tmp_path: Path) -> None:
    cut_short(tmp_path, 20, CHAIN, 3, 0.1)
    (tmp_path / f".checkpoint-1.json.{'0f' * 16}").write_bytes(b"{")
    (tmp_path / "checkpoint-1.npz").write_bytes(b"half")
    with (tmp_path / "events.jsonl").open("ab") as events:
        events.write(b'{"time": "20')
    (tmp_path / "notes.txt").write_text("mine")
    axplore.resume(tmp_path)
    assert content(tmp_path) == content(whole)
    assert not list(tmp_path.glob(".*"))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert [event["event"] for event in read_events(tmp_path)][-1] == "ended"


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """As if the disk were full, for every file of more bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("part", [0.4, 0.6, 0.75, 0.85])
def test_on_a_full_disk_the_run_ends_with_an_error_and_can_be_taken_up_later(
    part: float, whole: Path, tmp_path: Path
) -> None:
    size = int(part * max(path.stat().st_size for path in whole.iterdir()))
    with no_file_larger_than(size), pytest.raises(StorageError, match=os.strerror(errno.EFBIG)):
        axplore.explore(CHAIN, 3, 0.1, run=tmp_path)
    assert not list(tmp_path.glob(".*"))
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())
    with no_file_larger_than(size), pytest.raises(StorageError, match=os.strerror(errno.EFBIG)):
        axplore.resume(tmp_path)
    axplore.resume(tmp_path)
    assert content(tmp_path) == content(whole)


def test_a_disk_too_full_to_begin_leaves_no_run(tmp_path: Path) -> None:
    with no_file_larger_than(100), pytest.raises(StorageError, match="cannot be written"):
        axplore.explore(CHAIN, 3, 0.1, run=tmp_path)
    assert not (tmp_path / "run.json").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the superuser")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    cut_short(tmp_path, 5, CHAIN, 3, 0.1)
    (tmp_path / "lock").unlink()
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot be locked"):
        axplore.resume(tmp_path)


# The log.


def test_the_log_tells_what_happened(tmp_path: Path) -> None:
    cut_short(tmp_path, 20, CHAIN, 3, 0.1)
    axplore.resume(tmp_path, max_steps=1200)
    axplore.resume(tmp_path, epsilon=0.2)
    events = list(read_events(tmp_path))
    rare = [event for event in events if event["event"] not in ("round", "bounds")]
    told = [event["event"] for event in rare]
    assert told == ["began", "failed", "resumed", "ended", "resumed", "ended"]
    began, failed, first, limited, second, ended = rare
    assert began["command"] == shlex.join(sys.orig_argv)
    assert began["versions"]["numpy"] == np.__version__
    assert "CutShortError" in failed["error"]
    assert (first["max_steps"], second["max_steps"]) == (1200, None)
    assert (first["explorer"]["target"]["epsilon"], second["explorer"]["target"]["epsilon"]) == (0.1, 0.2)
    assert (limited["stop"], ended["stop"]) == ("STEP_LIMIT", "PROVEN")
    admitted = [state for event in events for state in event.get("admitted", ())]
    assert admitted == ["s1", "s2", "s3"]
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_a_damaged_line_of_the_log_is_refused_when_read(tmp_path: Path) -> None:
    axplore.explore(CHAIN, 2, 1.0, run=tmp_path)
    log = tmp_path / "events.jsonl"
    log.write_text("?" + log.read_text())
    with pytest.raises(DamagedFileError, match=r"events\.jsonl is damaged in line 1"):
        list(read_events(tmp_path))
    with pytest.raises(DamagedFileError, match=r"events\.jsonl cannot be read"):
        list(read_events(tmp_path / "nowhere"))


@pytest.mark.usefixtures("_checkpoints_often")
def test_only_the_last_checkpoint_and_its_journal_are_kept(tmp_path: Path) -> None:
    axplore.explore(CHAIN, 4.5, 0.1, run=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    (number,) = (name.removeprefix("journal-") for name in names if name.startswith("journal-"))
    assert int(number) > 20
    assert names == sorted(
        [*RESULTS, "run.json", "events.jsonl", "ended.json", "lock", f"journal-{number}"]
        + [f"checkpoint-{number}.{suffix}" for suffix in ("json", "npz")]
    )


def test_the_atlas_of_a_run_that_was_cut_short_is_missed_with_advice(tmp_path: Path) -> None:
    cut_short(tmp_path, 5, CHAIN, 3, 0.1)
    with pytest.raises(StorageError, match=f"no atlas in {tmp_path}.*axplore resume {tmp_path}"):
        Atlas.load(tmp_path)


def test_a_run_of_a_version_with_fewer_options_can_be_taken_up(tmp_path: Path) -> None:
    axplore.explore("star", radius=2, epsilon=1, run=tmp_path / "run")
    explorer = Certified(target=Target(radius=2, epsilon=1))
    description = {name: value for name, value in described(explorer).items() if name != "fill_orders"}
    assert explorer_from_description(load_manifest(tmp_path / "run"), description, None) == explorer
    with pytest.raises(InvalidSettingError, match="growth"):
        explorer_from_description(load_manifest(tmp_path / "run"), description, replace(explorer, growth=0.5))
