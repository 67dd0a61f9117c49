"""The results in docs/ are those that this code gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from axplore.experiments.paper import CHAIN_EXPERIMENTS, LOCK_EXPERIMENTS, THEORY_EXPERIMENT, Experiment
from axplore.experiments.reproduce import RUNS_FILE
from axplore.experiments.runner import read_records, run_seed

RESULTS = Path(__file__).parents[2] / "docs" / "results"
QUICK = [experiment for experiment in (*CHAIN_EXPERIMENTS, *LOCK_EXPERIMENTS) if experiment.epsilon >= 0.2]


def rows_of(table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{table}.json").read_text())["rows"]
    return rows


@pytest.mark.parametrize("experiment", QUICK, ids=lambda experiment: experiment.id)
def test_a_committed_run_can_be_repeated(experiment: Experiment) -> None:
    committed = {
        record.seed: record for record in read_records(RESULTS / RUNS_FILE, {experiment.id: experiment.settings})
    }
    assert len(committed) == experiment.runs
    assert run_seed(experiment, 7) == committed[7]


def test_every_committed_disco_mean_on_the_chain_is_within_five_percent_of_the_paper() -> None:
    rows = [row for row in rows_of("table2") if (row["algorithm"], row["reading"]) == ("disco", "default")]
    assert len(rows) == 5
    for row in rows:
        assert abs(row["ratio"] - 1) < 0.05
        assert row["runs_that_found_all"] == row["runs"] == 50


def test_the_replanned_reading_of_the_lock_is_within_twenty_percent_of_the_paper() -> None:
    (row,) = [row for row in rows_of("lock") if (row["algorithm"], row["reading"]) == ("disco", "replanned")]
    assert abs(row["ratio"] - 1) < 0.2


def test_the_committed_run_of_the_theory_kept_its_promise() -> None:
    (record,) = read_records(RESULTS / RUNS_FILE, {THEORY_EXPERIMENT.id: THEORY_EXPERIMENT.settings})
    assert record.steps > 10**10
    rows = rows_of("theory")
    assert {row["state"] for row in rows} >= {f"s{i}" for i in range(6)}
    assert all(row["run_keeps_promise"] for row in rows)


def test_the_page_on_progress_quotes_the_committed_study() -> None:
    study = json.loads((RESULTS / "progress.json").read_text(encoding="utf-8"))
    page = (RESULTS.parent / "progress.md").read_text(encoding="utf-8")
    assert len(study) == 10
    for name, row in study.items():
        shares = f"{100 * row['within_factor_2']:.0f} % | {100 * row['in_range']:.0f} %"
        assert f"| {name} | {row['steps']:,} | {row['median_ratio']:.2f} | {shares} |" in page
    good = sum(row["within_factor_2"] >= 0.8 for row in study.values())
    assert f"On {good} of ten worlds at least 80 %" in page
