from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from axplore.errors import InvalidSettingError
from axplore.report import figures
from axplore_studies.catalogue import PAPER, REPRODUCED, STUDIES
from axplore_studies.loop import read_records, run_study
from axplore_studies.paper.experiments import CERTIFIED_EXPERIMENTS, CHAIN_EXPERIMENTS
from axplore_studies.paper.runs import PaperRun, run_seed
from axplore_studies.paper.studies import RESULTS, RUNS_FILE
from axplore_studies.paper.tables import certified_table


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and figures of two runs of each experiment, which are among those that are committed."""
    folder = tmp_path_factory.mktemp("results")
    shutil.copy(RESULTS / RUNS_FILE, folder)
    for name in PAPER:
        run_study(STUDIES[name], folder, number=2)
    return folder


def test_everything_is_written(out: Path) -> None:
    tables = [f"{name}.{kind}" for name in ("table2", "table3", "lock") for kind in ("csv", "json")]
    figures = [f"{name}.{kind}" for name in ("fig3", "fig-lock") for kind in ("png", "svg")]
    assert sorted(path.name for path in out.iterdir()) == sorted([*tables, *figures, RUNS_FILE, "commands.jsonl"])


def test_a_run_depends_on_its_seed_alone() -> None:
    experiment = CHAIN_EXPERIMENTS[4]
    assert experiment.epsilon == 0.8
    assert run_seed(experiment, 3) == run_seed(experiment, 3)
    assert run_seed(experiment, 3).steps != run_seed(experiment, 4).steps


def test_tables_and_figures_share_their_runs(out: Path) -> None:
    before = (out / "lock.json").read_bytes(), (out / "fig-lock.svg").read_bytes()
    calls: list[tuple[int, int]] = []
    for name in ("lock", "fig-lock"):
        run_study(STUDIES[name], out, number=2, on_done=lambda *call: calls.append(call))
    assert calls == [(6, 6), (4, 4)]
    assert ((out / "lock.json").read_bytes(), (out / "fig-lock.svg").read_bytes()) == before
    records = [PaperRun(**record) for record in read_records(out / RUNS_FILE)]
    assert [(record.experiment, record.seed) for record in records] == sorted(
        {(record.experiment, record.seed) for record in records}
    )


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


def test_what_can_be_reproduced_is_the_paper_and_what_stands_beside_it() -> None:
    assert PAPER == ("table2", "table3", "fig3", "lock", "fig-lock")
    assert (*PAPER, "limits", "certified", "theory", "assumptions", "questions") == REPRODUCED


def test_the_certified_table_tells_steps_and_which_runs_keep_the_promise() -> None:
    quick = [experiment for experiment in CERTIFIED_EXPERIMENTS if experiment.epsilon == 0.8]
    groups = [(experiment, [run_seed(experiment, seed) for seed in range(2)]) for experiment in quick]
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
        run_study(STUDIES["fig3"], tmp_path, number=1)
    assert not (tmp_path / RUNS_FILE).exists()
