from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from axplore.errors import InvalidSettingError
from axplore.experiments import runner
from axplore.experiments.paper import CHAIN_EXPERIMENTS, Experiment
from axplore.experiments.runner import RunRecord, run_experiments, run_seed, sort_file
from killed_workers import Killer

SMALL = [experiment for experiment in CHAIN_EXPERIMENTS if experiment.epsilon == 0.8]


def test_a_run_depends_on_its_seed_alone() -> None:
    assert run_seed(SMALL[0], 3) == run_seed(SMALL[0], 3)
    assert run_seed(SMALL[0], 3).steps != run_seed(SMALL[0], 4).steps


def timeless(path: Path) -> list[dict[str, object]]:
    """The lines of a file of runs without the processor time, which no two runs share."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line.pop("seconds") > 0 for line in lines)
    return lines


def test_the_number_of_workers_changes_no_number(tmp_path: Path) -> None:
    one = run_experiments(SMALL, tmp_path / "one.jsonl", runs=2)
    two = run_experiments(SMALL, tmp_path / "two.jsonl", runs=2, workers=2)
    assert one == two
    sort_file(tmp_path / "one.jsonl")
    sort_file(tmp_path / "two.jsonl")
    assert timeless(tmp_path / "one.jsonl") == timeless(tmp_path / "two.jsonl")


def test_after_an_interruption_only_the_missing_runs_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    wanted = run_experiments(SMALL[:1], path, runs=4)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2][:40])  # cut in the middle of a line
    made: list[int] = []

    def counting(experiment: Experiment, seed: int) -> RunRecord:
        made.append(seed)
        return run_seed(experiment, seed)

    monkeypatch.setattr(runner, "run_seed", counting)
    assert run_experiments(SMALL[:1], path, runs=4) == wanted
    assert made == [2, 3]
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1, 2, 3]


def test_runs_of_other_settings_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    record = run_experiments(SMALL[:1], path, runs=1)[0]
    path.write_text(json.dumps(asdict(replace(record, settings={"epsilon": 7}, steps=-1))) + "\n")
    assert run_experiments(SMALL[:1], path, runs=1) == [record]


def test_the_hook_counts_finished_runs(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    run_experiments(SMALL[:1], tmp_path / "runs.jsonl", runs=2, on_done=lambda *call: calls.append(call))
    assert calls == [(0, 2), (1, 2), (2, 2)]


def test_workers_killed_in_the_middle_change_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killer = Killer(monkeypatch, 1, 3)
    wanted = run_experiments(SMALL, tmp_path / "wanted.jsonl", runs=2)
    path = tmp_path / "runs.jsonl"
    assert run_experiments(SMALL, path, runs=2, workers=2, on_done=killer.on_done) == wanted
    assert len(killer.started) > 4
    assert "was killed by SIGKILL" in caplog.text
    assert len(path.read_text().splitlines()) == len(wanted)


@pytest.mark.parametrize(
    ("bad", "message"), [({"runs": 0}, "must be at least one"), ({"workers": -1}, "workers is -1")]
)
def test_no_runs_and_fewer_than_no_workers_are_refused(tmp_path: Path, bad: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        run_experiments(SMALL[:1], tmp_path / "runs.jsonl", **bad)  # type: ignore[arg-type]
