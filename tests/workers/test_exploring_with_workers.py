from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from random_walk import IN_HASTE, Walk

import axplore
from axplore.domains import slippery_grid
from axplore.errors import InvalidSettingError
from axplore.explorers.base import RoundReport
from axplore.explorers.certified import Certified
from axplore.records.run import StopReason
from axplore.runs.batch_journal import NAME as BATCHES
from axplore.runs.batch_journal import BatchJournal
from axplore.target import Target
from axplore.workers.batches import cut
from axplore.workers.distributed import DistributedWorld
from axplore.worlds.contract import Visit
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess
from commands import run
from killed_workers import Killer
from waiting import PATIENCE, comes_true

HERE = Path(__file__).parent
FILES = ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz")
FROZEN_LAKE: dict[str, Any] = {"radius": 6.0, "epsilon": 2.0}


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def frozen_lake(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What FrozenLake is explored to by one worker."""
    folder = tmp_path_factory.mktemp("lake") / "run"
    axplore.explore("gym:FrozenLake-v1", **FROZEN_LAKE, workers=1, run=folder)
    return files_of(folder)


def test_frozen_lake_is_the_same_for_any_number_of_workers(frozen_lake: dict[str, bytes], tmp_path: Path) -> None:
    axplore.explore("gym:FrozenLake-v1", **FROZEN_LAKE, workers=3, run=tmp_path / "run")
    assert files_of(tmp_path / "run") == frozen_lake
    assert not (tmp_path / "run" / BATCHES).exists(), "a run that has ended needs no batches any more"


@pytest.mark.parametrize(
    "world",
    [
        slippery_grid(rows=3, columns=3),
        Walk,
        SteppedWorld(Walk, seed=1),
        lambda: gymnasium.make("FrozenLake-v1"),
        "exec:bash examples/random_walk.sh",
        "star",
    ],
    ids=["model", "factory", "world", "environment", "program", "name"],
)
def test_whatever_can_be_made_again_can_have_workers(world: Any) -> None:
    atlas = axplore.explore(world, radius=2, epsilon=1.5, workers=1)
    assert atlas.complete
    assert axplore.verify(atlas).holds


@pytest.mark.parametrize("world", [Walk(), gymnasium.make("FrozenLake-v1")], ids=["system", "environment"])
def test_a_system_that_cannot_be_made_again_is_refused_before_the_first_step(world: Any) -> None:
    with pytest.raises(InvalidSettingError, match="needs a factory"):
        axplore.explore(world, radius=3, workers=2)


def test_rounds_are_large_enough_to_be_shared() -> None:
    """After the first few, whose work is small, every round has batches for a dozen workers."""
    n_batches: list[int] = []

    class Counting(DistributedWorld):
        def carry_out(self, orders: Any) -> Any:
            n_batches.append(sum(len(cut(order)) for order in orders))
            return super().carry_out(orders)

    explorer = Certified(target=Target(radius=4, epsilon=0.25)).for_workers()
    world = Counting(SimulatedWorld(slippery_grid(rows=4, columns=4), 0), InProcess())
    axplore.explore(world, explorer=explorer)
    batches = np.array(n_batches)
    in_large_rounds = batches[batches >= 12].sum()
    assert in_large_rounds / batches.sum() > 0.75


def test_a_run_with_workers_that_is_killed_ends_with_the_same_bytes_and_loses_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed twice within a call, and resumed with another number of workers each time."""
    settings = {"world": "random_walk:SlowWalk", "radius": 4.0, "epsilon": 1.5}
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    program = f"import sys; sys.path.insert(0, {str(HERE)!r}); import axplore; "
    left = kill_within_a_call(
        [sys.executable, "-c", program + f"axplore.explore(**{settings}, workers=2, run={str(folder)!r})"], folder
    )
    left += kill_within_a_call(
        [sys.executable, "-c", program + f"axplore.resume({str(folder)!r}, workers=3, trust=True)"], folder
    )
    assert all(left), "there were batches to lose"
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv(IN_HASTE, "1")
    axplore.resume(folder, workers=1, trust=True)
    axplore.explore(**settings, workers=2, run=whole)  # type: ignore[arg-type]
    assert files_of(folder) == files_of(whole)


def kill_within_a_call(process: list[str], folder: Path) -> list[int]:
    """Kills a process when some batches of a call are done and others are not; says how many bytes of them it left."""
    running = subprocess.Popen(process)
    try:
        file = folder / BATCHES
        assert comes_true(lambda: running.poll() is not None or (file.exists() and file.stat().st_size > 1500))
        assert running.poll() is None, "it was over before it could be killed"
        running.send_signal(signal.SIGKILL)
    finally:
        running.kill()
        running.wait()
    return [file.stat().st_size]


def test_batches_of_a_call_in_progress_are_not_carried_out_again(tmp_path: Path) -> None:
    order = Visit(state=0, action=1, times=100, policy=np.ones(1, dtype=np.int64), max_journey=9)

    class Failing:
        """Fails after so many batches, as if the process had been killed."""

        def __init__(self, file: BatchJournal, n_kept: int) -> None:
            self.file, self.n_kept = file, n_kept

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def keep(self, key: Any, outcome: Any) -> None:
            if not self.n_kept:
                raise KeyboardInterrupt
            self.n_kept -= 1
            self.file.keep(key, outcome)

    def world() -> DistributedWorld:
        return DistributedWorld(SteppedWorld(Walk), InProcess(), batch=10)

    interrupted = world()
    interrupted.keep_batches(lambda: Failing(BatchJournal(tmp_path, "run"), 4))
    with pytest.raises(KeyboardInterrupt):
        interrupted.carry_out([order])
    taken_up, undisturbed = world(), world()
    counting = Failing(BatchJournal(tmp_path, "run"), 100)
    taken_up.keep_batches(lambda: counting)
    answers = taken_up.carry_out([order])
    assert counting.n_kept == 100 - 6, "four of ten batches were found"
    expected = undisturbed.carry_out([order])
    assert [vars(answer)["entry_counts"].tolist() for answer in answers] == [expected[0].entry_counts.tolist()]
    assert taken_up.steps == undisturbed.steps
    other = world()
    fresh = Failing(BatchJournal(tmp_path, "run"), 100)
    other.keep_batches(lambda: fresh)
    other.carry_out([Visit(state=0, action=0, times=100, policy=order.policy, max_journey=9)])
    assert fresh.n_kept == 90, "answers to other orders are of no use"


def test_a_run_can_go_on_with_and_without_workers(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"radius": 3.0, "epsilon": 1.0}
    axplore.explore("slippery-grid", **settings, max_steps=2000, workers=2, run=tmp_path / "with")
    without = axplore.resume(tmp_path / "with", workers=0)
    assert without.complete
    assert axplore.verify(without).holds
    axplore.explore("slippery-grid", **settings, max_steps=2000, run=tmp_path / "without")
    atlas = axplore.resume(tmp_path / "without", workers=2)
    assert atlas.complete
    assert axplore.verify(atlas).holds


def ended_after_5000_steps(report: RoundReport) -> StopReason | None:
    return StopReason.STEP_LIMIT if report.steps >= 5000 else None


def test_resume_has_as_many_workers_as_the_run_had(tmp_path: Path, frozen_lake: dict[str, bytes]) -> None:
    axplore.explore(
        "gym:FrozenLake-v1", **FROZEN_LAKE, on_round=ended_after_5000_steps, workers=2, run=tmp_path / "run"
    )
    axplore.resume(tmp_path / "run", trust=True)
    assert files_of(tmp_path / "run") == frozen_lake


def test_a_run_says_what_happened_to_its_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, killer = tmp_path / "run", Killer(monkeypatch)

    def kill_the_first(_report: Any) -> None:
        """Between two rounds."""
        if len(killer.started) == 1:
            killer.kill()

    axplore.explore(Walk, radius=3, epsilon=1.5, workers=1, run=folder, on_round=kill_the_first)
    (event,) = [event for event in events_of(folder) if event["event"] == "worker"]
    assert event["kind"] == "LOST"
    assert f"process {killer.started[0].pid} was killed by SIGKILL" in event["message"]


def test_the_command_line_takes_workers(tmp_path: Path) -> None:
    setting = ("confusing-chain", "--radius", "2.5", "--epsilon", "0.8")
    told = json.loads(run("explore", *setting, "--workers", "2", "--json", "--out", tmp_path / "run"))
    assert told["steps"] == axplore.explore("confusing-chain", radius=2.5, epsilon=0.8, workers=1).steps
    with pytest.raises(InvalidSettingError, match="workers is -2; it must be a whole number of at least 0"):
        run("explore", "confusing-chain", "--radius", "2.5", "--workers", "-2")


def test_the_example_finds_every_place_and_the_loss(tmp_path: Path) -> None:
    """The file as it is, but for the time that a swing takes."""
    example, swift = Path(__file__).parents[2] / "examples" / "slow_crane.py", tmp_path / "swift_crane.py"
    assert "time.sleep(0.002)" in example.read_text()
    swift.write_text(example.read_text().replace("time.sleep(0.002)", "time.sleep(0)"))
    ran = subprocess.run([sys.executable, swift], check=True, capture_output=True, text=True, timeout=PATIENCE)
    found = [line.split("  ")[0] for line in ran.stdout.splitlines() if "  certified  " in line]
    assert found == ["place 0", "place 1", "place 2", "place 3", "place 4", "lost"]


def test_a_system_that_cannot_be_reseeded_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    class Restless:
        """A walk by noise of its own."""

        actions = Walk.actions

        def __init__(self) -> None:
            self._walk = Walk()
            self.reset, self.step = self._walk.reset, self._walk.step

    axplore.explore(Walk, radius=2, epsilon=1.5, workers=1)
    assert not caplog.text
    axplore.explore(Restless, radius=2, epsilon=1.5)
    assert not caplog.text, "without workers it is as it always is"
    assert axplore.explore(Restless, radius=2, epsilon=1.5, workers=1).complete
    assert "no two runs with workers are alike" in caplog.text
