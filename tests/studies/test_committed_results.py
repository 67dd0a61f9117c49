"""The results in docs/ are those that this code gives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axplore_studies.catalogue import STUDIES
from axplore_studies.loop import Record, read_records, records_of
from axplore_studies.paper.experiments import CHAIN_EXPERIMENTS, LOCK_EXPERIMENTS, THEORY_EXPERIMENT, Experiment
from axplore_studies.paper.runs import PaperRun, run_seed
from axplore_studies.paper.studies import RUNS_FILE

RESULTS = Path(__file__).parents[2] / "docs" / "results"
QUICK = [experiment for experiment in (*CHAIN_EXPERIMENTS, *LOCK_EXPERIMENTS) if experiment.epsilon >= 0.2]


def rows_of(table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{table}.json").read_text())["rows"]
    return rows


def unmade() -> Record:
    raise AssertionError("this trial is not among the committed records")


@pytest.mark.parametrize("name", ["table2", "table3", "lock", "theory", "certified", "limits", "coverage"])
def test_the_committed_table_is_that_of_the_committed_records(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    copy = tmp_path / study.records_name
    copy.write_bytes((RESULTS / study.records_name).read_bytes())
    trials = [replace(trial, work=unmade) for trial in study.planned()]
    study.summary(records_of(trials, copy)).save(tmp_path)
    for kind in ("csv", "json"):
        assert (tmp_path / f"{name}.{kind}").read_bytes() == (RESULTS / f"{name}.{kind}").read_bytes()


def committed_runs(experiment: Experiment) -> dict[int, PaperRun]:
    records = [record for record in read_records(RESULTS / RUNS_FILE) if record["experiment"] == experiment.id]
    assert all(record["settings"] == experiment.settings for record in records)
    return {record["seed"]: PaperRun(**record) for record in records}


@pytest.mark.parametrize("experiment", QUICK, ids=lambda experiment: experiment.id)
def test_a_committed_run_can_be_repeated(experiment: Experiment) -> None:
    committed = committed_runs(experiment)
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
    (record,) = committed_runs(THEORY_EXPERIMENT).values()
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


def test_the_page_on_attacks_quotes_the_committed_studies() -> None:
    page = (RESULTS / "attacks.md").read_text(encoding="utf-8")
    families = [row for row in rows_of("border") if row["kind"] == "all"]
    assert len(families) > 10
    for row in families:
        shown = (
            f"| {row['family']} | {row['systems']:,} | {row['a_bound_is_false']:,} | **{row['proven_and_false']}** | "
        )
        assert f"{shown}{row['doubted']:,} | {row['without_doctor_proven_and_false']} |" in page
    forged = rows_of("forgeries")[-1]
    assert f"{forged['forgeries']:,} forgeries whose digests fit" in page
    assert (forged["read_and_false"], forged["crashed"]) == (0, 0)
    for name in ("kills", "kills-with-workers", "kills-changing", "kills-changing-with-workers"):
        killed = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        assert killed["same"] == killed["runs"]
        assert f"`{name}`: {killed['runs']} runs, {killed['kills']} kills" in page
