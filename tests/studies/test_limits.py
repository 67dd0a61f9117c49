from __future__ import annotations

import json
from pathlib import Path

import pytest

from axplore.errors import DamagedFileError, InvalidSettingError
from axplore_studies import limits
from axplore_studies.limits import LimitedWorld, with_limits
from axplore_studies.loop import read_records, run_study
from axplore_studies.outputs import Table
from commands import run

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_table_has_the_limit_and_its_record_what_it_rests_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WORLDS", (LimitedWorld("combination-lock", 2.7, 0.2),))
    monkeypatch.setattr(limits, "ROUNDS", 2)
    run_study(limits.STUDY, tmp_path)
    (row,) = json.loads((tmp_path / "limits.json").read_text())["rows"]
    (record,) = read_records(tmp_path / "limits.jsonl")
    assert 1000 < row["limit"] < 1800
    assert row["alternatives"] == len(record["alternatives"]) > 0


def table() -> Table:
    row = {"domain": "combination-lock", "radius": 2.7, "epsilon": 0.2, "mean": 20_000.0}
    return Table("certified", "", [row, {**row, "epsilon": 0.9}], [{"steps": "20,000"}, {"steps": "20,000"}])


def test_limits_are_added_where_they_are_known(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    assert with_limits(table(), path) == table()
    row = {"domain": "combination-lock", "radius": 2.7, "epsilon": 0.2, "limit": 1000.0}
    path.write_text(json.dumps({"rows": [row]}))
    added = with_limits(table(), path)
    assert [(row["limit"], row["ratio"]) for row in added.rows] == [(1000.0, 20.0), (None, None)]
    assert added.lines == [
        {"steps": "20,000", "limit": "1,000", "ratio": "20.0"},
        {"steps": "20,000", "limit": None, "ratio": None},
    ]
    path.write_text("{}")
    with pytest.raises(DamagedFileError, match=r"limits\.json is not a table of limits"):
        with_limits(table(), path)


def test_no_committed_mean_is_below_its_limit() -> None:
    rows = json.loads((RESULTS / "certified.json").read_text())["rows"]
    compared = with_limits(Table("certified", "", rows), RESULTS / "limits.json").rows
    ratios = [row["ratio"] for row in compared if row["ratio"] is not None]
    assert len(ratios) >= 14
    assert min(ratios) > 1


def test_the_command_prints_the_bound_and_what_it_rests_on() -> None:
    output = run("truth", "two-branch", "--radius", "4", "--set", "length=1", "--lower-bound", "--epsilon", "0.5")
    assert "No algorithm that is correct with probability 0.9 takes fewer than" in output
    assert "leaves" in output


def test_the_command_gives_json() -> None:
    settings = (
        "--radius",
        "4",
        "--epsilon",
        "0.5",
        "--delta",
        "0.01",
        "--objective",
        "within-radius",
        "--seconds",
        "20",
    )
    answer = json.loads(run("truth", "two-branch", *settings, "--lower-bound", "--json"))["lower_bound"]
    assert (answer["epsilon"], answer["delta"], answer["objective"]) == (0.5, 0.01, "within-radius")
    assert answer["steps"] > 1
    assert answer["alternatives"][0]["changes"][0]["divergence"] > 0
    assert {one["action"] for one in answer["allocation"]} <= {"go", "RESET"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lower-bound"], "--lower-bound needs --epsilon"),
        (["--epsilon", "0.1"], "--epsilon needs --lower-bound"),
        (["--lower-bound", "--epsilon", "0"], "epsilon is 0.0"),
        (["--lower-bound", "--epsilon", "0.1", "--delta", "2"], "delta is 2.0"),
        (["--lower-bound", "--epsilon", "0.1", "--objective", "best"], "objective is 'best'"),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        run("truth", "two-branch", "--radius", "4", *options)
