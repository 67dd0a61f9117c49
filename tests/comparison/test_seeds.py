from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axplore import Atlas, StopReason
from axplore.comparison import seeds as module
from axplore.comparison.seeds import explore_seeds
from axplore.errors import InvalidSettingError, StorageError, UnknownNameError
from axplore.exploring import explored
from axplore.request import Request
from axplore.runs.events import read_events
from axplore.runs.manifest import load_manifest
from axplore.workers.engines import Engine
from axplore_studies.in_process import InProcess
from killed_workers import Killer

EXPLORERS = ("certified", "disco-experiment")
CHAIN = Request(world="confusing-chain", radius=4.5, epsilon=0.8)
GRID = Request(world="slippery-grid", world_parameters={"rows": 3, "columns": 3}, radius=4, epsilon=1.0)

BRITTLE = """
class Line:
    actions = ("forward", "back")

    def __init__(self):
        self.place = self.taken = 0

    def reset(self):
        self.taken += 1
        self.place = 0
        return 0

    def step(self, action):
        self.taken += 1
        if self.taken > 2300:
            raise RuntimeError("worn out")
        self.place = max(0, min(3, self.place + (1 if action == "forward" else -1)))
        return self.place
"""
"""A system that the certified explorer, after the doctor, knows before it is worn out, and UcbExplore does not."""


@pytest.fixture
def brittle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    (tmp_path / "brittle_line.py").write_text(BRITTLE)
    monkeypatch.syspath_prepend(tmp_path)
    return Request(world="brittle_line:Line", world_parameters={"max_faults": 0}, radius=2, epsilon=1.0)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs that `explore` makes one by one."""
    folder = tmp_path_factory.mktemp("wanted")
    for name in EXPLORERS:
        for seed in range(2):
            explored(replace(CHAIN, explorer=name, seed=seed, run=folder / f"{name}-{seed}"))
    return folder


def results(folder: Path) -> dict[str, bytes]:
    """What the runs in a folder have found, by file."""
    paths = [*folder.glob("*/atlas.*"), *folder.glob("*/certificate.*")]
    assert paths
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def events(folder: Path) -> list[str]:
    return [event["event"] for event in read_events(folder)]


def cut_short(run: Path, **settings: Any) -> None:
    """Begins a run, and ends it soon."""
    stop_early = lambda report: StopReason.INTERRUPTED if report.round > 1 else None  # noqa: E731
    explored(replace(CHAIN, **settings, run=run, on_round=stop_early))
    assert not Atlas.load(run).complete


@contextmanager
def engine_elsewhere(_: int | None, ray: str | None) -> Iterator[Engine]:
    """Stands for a cluster: a worker that is told nothing but its messages."""
    assert ray == "somewhere"
    yield InProcess()


@pytest.fixture
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "engine_for", engine_elsewhere)


@pytest.mark.parametrize("workers", [0, 2])
def test_every_run_is_the_one_that_explore_makes(tmp_path: Path, wanted: Path, workers: int) -> None:
    calls: list[tuple[int, int]] = []
    runs = explore_seeds(CHAIN, EXPLORERS, tmp_path, seeds=2, workers=workers, on_done=lambda *call: calls.append(call))
    assert [(run.explorer, run.request.seed) for run in runs] == [
        (name, seed) for name in EXPLORERS for seed in range(2)
    ]
    assert [run.folder.name for run in runs] == [f"{run.explorer}-{run.request.seed}" for run in runs]
    assert results(tmp_path) == results(wanted)
    assert calls == [(done, 4) for done in range(5)]


def test_ended_runs_are_left_alone_and_others_are_taken_up(tmp_path: Path, wanted: Path) -> None:
    explore_seeds(CHAIN, EXPLORERS, tmp_path, seeds=1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}
    cut_short(tmp_path / "certified-1", seed=1)
    explore_seeds(CHAIN, EXPLORERS, tmp_path, seeds=2)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert "resumed" in events(tmp_path / "certified-1")
    assert results(tmp_path) == results(wanted)


def test_a_run_says_what_was_called_and_not_what_its_worker_is(tmp_path: Path) -> None:
    explore_seeds(CHAIN, ["certified"], tmp_path, seeds=1, workers=1)
    assert load_manifest(tmp_path / "certified-0").command == shlex.join(sys.orig_argv)


def test_killed_workers_change_no_run(
    tmp_path: Path, wanted: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killer = Killer(monkeypatch, 1, 3)
    explore_seeds(CHAIN, EXPLORERS, tmp_path, seeds=2, workers=2, on_done=killer.on_done)
    assert len(killer.started) > 4
    assert "was killed by SIGKILL" in caplog.text
    assert results(tmp_path) == results(wanted)


@pytest.mark.parametrize("left", [("lock",), ("lock", "checkpoint-0.npz", f".checkpoint-0.json.{'a' * 32}")])
def test_what_a_process_left_that_was_killed_as_it_began_is_no_hindrance(
    tmp_path: Path, wanted: Path, left: tuple[str, ...]
) -> None:
    folder = tmp_path / "certified-0"
    folder.mkdir()
    for name in left:
        (folder / name).write_text("9\n")
    explore_seeds(CHAIN, ["certified"], tmp_path, seeds=1)
    assert (folder / "atlas.npz").read_bytes() == (wanted / "certified-0" / "atlas.npz").read_bytes()


def test_a_folder_with_something_else_is_refused_before_anything_is_explored(tmp_path: Path) -> None:
    (tmp_path / "certified-1").mkdir()
    (tmp_path / "certified-1" / "diary.txt").write_text("dear")
    with pytest.raises(StorageError, match="certified-1 is not empty"):
        explore_seeds(CHAIN, ["certified"], tmp_path, seeds=2)
    assert not list(tmp_path.glob("*/run.json"))
    assert (tmp_path / "certified-1" / "diary.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(CHAIN, radius=3.0), "holds another run: the explorer of the run was"),
        (replace(CHAIN, epsilon=0.5), "epsilon=0.8"),
        (replace(CHAIN, world="combination-lock"), "holds another run, of confusing-chain"),
        (replace(CHAIN, max_steps=10), "any number of steps, more than 10"),
    ],
)
def test_runs_of_another_request_are_refused(wanted: Path, other: Request, message: str) -> None:
    before = results(wanted)
    with pytest.raises(InvalidSettingError, match=message):
        explore_seeds(other, ["certified"], wanted, seeds=1)
    assert results(wanted) == before


def test_a_larger_step_limit_goes_on_and_no_limit_goes_to_the_end(tmp_path: Path) -> None:
    steps = []
    for limit in (100, 100, 1000, None):
        explore_seeds(replace(CHAIN, max_steps=limit), ["certified"], tmp_path, seeds=1)
        steps.append(Atlas.load(tmp_path / "certified-0").steps)
    assert steps[:3] == [100, 100, 1000]
    assert events(tmp_path / "certified-0").count("resumed") == 2
    assert Atlas.load(tmp_path / "certified-0").complete


def test_a_limit_of_before_is_lifted_for_an_interrupted_run_too(tmp_path: Path) -> None:
    cut_short(tmp_path / "certified-0", seed=0, max_steps=1000)
    explore_seeds(CHAIN, ["certified"], tmp_path, seeds=1)
    atlas = Atlas.load(tmp_path / "certified-0")
    assert atlas.complete
    assert atlas.steps > 1000


def test_a_run_that_fails_does_not_end_the_others(tmp_path: Path, brittle: Request) -> None:
    out = tmp_path / "out"
    runs = explore_seeds(brittle, ["ucb-explore-experiment", "certified"], out, seeds=2)
    assert [run.failure is None for run in runs] == [False, False, True, True]
    assert runs[0].failure is not None
    assert runs[0].failure.startswith("TooManyFaultsError: ")
    assert "worn out" in runs[0].failure
    assert str(out) not in runs[0].failure
    assert Atlas.load(runs[0].folder).stop is StopReason.WORLD_FAILED
    again = explore_seeds(brittle, ["ucb-explore-experiment"], out, seeds=1)
    assert "resumed" in events(again[0].folder)


def test_a_world_that_cannot_be_made_fails_in_every_run(tmp_path: Path) -> None:
    request = Request(world="exec:/no/such/program", radius=2)
    runs = explore_seeds(request, ["certified"], tmp_path, seeds=2)
    assert all(run.failure is not None for run in runs)
    assert all(run.failure is not None for run in explore_seeds(request, ["certified"], tmp_path, seeds=2))


@pytest.mark.usefixtures("_elsewhere")
def test_runs_made_elsewhere_come_here(tmp_path: Path, wanted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_in: list[Path] = []

    def noting(request: Request) -> Atlas:
        made_in.append(Path(request.run or ""))
        return explored(request)

    monkeypatch.setattr(module, "explored", noting)
    cut_short(tmp_path / "certified-1", seed=1)
    explore_seeds(CHAIN, EXPLORERS, tmp_path, seeds=2, ray="somewhere")
    assert results(tmp_path) == results(wanted)
    assert "resumed" in events(tmp_path / "certified-1")
    assert len(made_in) == 3
    assert all(tmp_path not in folder.parents and not folder.exists() for folder in made_in)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}-{seed}" for name in EXPLORERS for seed in range(2)}


@pytest.mark.usefixtures("_elsewhere")
def test_a_run_that_fails_elsewhere_is_told_here(tmp_path: Path, brittle: Request) -> None:
    out = tmp_path / "out"
    (run,) = explore_seeds(brittle, ["ucb-explore-experiment"], out, seeds=1, ray="somewhere")
    assert run.failure is not None
    assert "worn out" in run.failure
    assert Atlas.load(run.folder).stop is StopReason.WORLD_FAILED
    missing = replace(brittle, world="exec:/no/such/program", world_parameters={})
    (run,) = explore_seeds(missing, ["certified"], out, seeds=1, ray="somewhere")
    assert run.failure is not None
    assert list(run.folder.iterdir()) == []


def test_parameters_of_the_world_are_part_of_the_request(tmp_path: Path) -> None:
    explore_seeds(GRID, ["certified"], tmp_path, seeds=1)
    with pytest.raises(InvalidSettingError, match="'rows': 3"):
        explore_seeds(replace(GRID, world_parameters={"rows": 4}), ["certified"], tmp_path, seeds=1)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"seeds": 0}, InvalidSettingError, "seeds is 0"),
        ({"explorers": []}, InvalidSettingError, "no explorer to compare"),
        ({"explorers": ["certified", "clever"]}, UnknownNameError, "no explorer named 'clever'"),
        ({"request": replace(CHAIN, radius=0.5)}, InvalidSettingError, "radius is 0.5"),
        ({"workers": -1}, InvalidSettingError, "workers is -1"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tmp_path: Path, bad: dict[str, Any], error: type[Exception], message: str
) -> None:
    settings: dict[str, Any] = {"request": CHAIN, "explorers": ["certified"], "out": tmp_path, "seeds": 1} | bad
    with pytest.raises(error, match=message):
        explore_seeds(**settings)
    assert not list(tmp_path.glob("*/run.json"))
