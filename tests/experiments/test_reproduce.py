from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.experiments.paper import CERTIFIED_EXPERIMENTS
from axplore.experiments.reproduce import RUNS_FILE, TARGETS, reproduce
from axplore.experiments.result_tables import certified_table
from axplore.experiments.runner import run_experiments
from axplore.report import figures


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    reproduce(["all"], folder, runs=2)
    return folder


def test_everything_is_written(out: Path) -> None:
    tables = [f"{name}.{kind}" for name in ("table2", "table3", "lock") for kind in ("csv", "json")]
    figures = [f"{name}.{kind}" for name in ("fig3", "fig-lock") for kind in ("png", "svg")]
    assert sorted(path.name for path in out.iterdir()) == sorted([*tables, *figures, RUNS_FILE])


def test_table_two_has_ours_beside_the_published_numbers(out: Path) -> None:
    rows = json.loads((out / "table2.json").read_text())["rows"]
    assert len(rows) == 20
    for row in rows:
        assert row["runs"] == 2
        assert row["ratio"] == pytest.approx(row["mean"] / row["published_mean"], abs=1e-4)
    with (out / "table2.csv").open() as file:
        assert [float(row["mean"]) for row in csv.DictReader(file)] == [row["mean"] for row in rows]


def test_disco_takes_fewer_steps_on_every_row_and_the_gap_grows_as_epsilon_falls(out: Path) -> None:
    rows = json.loads((out / "table2.json").read_text())["rows"]
    mean = {(row["algorithm"], row["epsilon"]): row["mean"] for row in rows if row["reading"] == "default"}
    gaps = [mean["ucb-explore", epsilon] / mean["disco", epsilon] for epsilon in (0.1, 0.2, 0.4, 0.6, 0.8)]
    assert min(gaps) > 1
    assert gaps == sorted(gaps, reverse=True)


def test_disco_is_within_five_percent_of_the_paper_on_the_chain(out: Path) -> None:
    # A run's total varies by less than 2 %, so two runs tell enough.
    rows = json.loads((out / "table2.json").read_text())["rows"]
    ratios = [row["ratio"] for row in rows if (row["algorithm"], row["reading"]) == ("disco", "default")]
    assert len(ratios) == 5
    assert all(abs(ratio - 1) < 0.065 for ratio in ratios)


def test_disco_is_optimal_in_table_three(out: Path) -> None:
    rows = json.loads((out / "table3.json").read_text())["rows"]
    disco = [row for row in rows if row["algorithm"] == "disco"]
    assert len(disco) == 60
    assert all(row["mean"] == pytest.approx(row["published_mean"], abs=1e-4) for row in disco)


def test_called_again_it_takes_the_finished_runs(out: Path) -> None:
    before = (out / "lock.json").read_bytes(), (out / "fig-lock.svg").read_bytes()
    calls: list[tuple[int, int]] = []
    reproduce(["lock", "fig-lock"], out, runs=2, on_done=lambda *call: calls.append(call))
    assert calls == [(6, 6)]
    assert ((out / "lock.json").read_bytes(), (out / "fig-lock.svg").read_bytes()) == before


def test_an_unknown_target_is_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'table9'"):
        reproduce(["table9"], tmp_path)
    assert list(TARGETS) == [
        "table2",
        "table3",
        "fig3",
        "lock",
        "fig-lock",
        "certified",
        "theory",
        "limits",
        "assumptions",
    ]


def test_the_certified_table_tells_steps_and_which_runs_keep_the_promise(tmp_path: Path) -> None:
    quick = [experiment for experiment in CERTIFIED_EXPERIMENTS if experiment.epsilon == 0.8]
    records = run_experiments(quick, tmp_path / RUNS_FILE, runs=2)
    groups = [(e, [record for record in records if record.experiment == e.id]) for e in quick]
    certified, disco = certified_table("certified", "", groups).rows
    assert [certified["explorer"], disco["explorer"]] == ["certified", "disco"]
    assert certified["mean"] < disco["mean"]
    assert certified["runs_that_keep_the_promise"] == disco["runs_that_keep_the_promise"] == 2
    # A policy that takes two steps more than the optimum breaks AX* at epsilon = 0.8.
    worse = [replace(record, hitting_steps=[steps + 2 for steps in record.hitting_steps]) for record in groups[0][1]]
    (row,) = certified_table("certified", "", [(quick[0], worse)]).rows
    assert row["runs_that_keep_the_promise"] == 0


def test_a_missing_matplotlib_is_told_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)
    with pytest.raises(InvalidSettingError, match="axplore\\[report\\]"):
        reproduce(["fig3"], tmp_path, runs=1)
    assert not (tmp_path / RUNS_FILE).exists()
