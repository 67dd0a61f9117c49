from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axplore.cli import app
from axplore.errors import InvalidSettingError, UnknownNameError
from axplore_studies import command
from axplore_studies.catalogue import STUDIES
from axplore_studies.command import app as studies
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document


def test_the_command_prints_the_table_and_writes_its_files(tmp_path: Path) -> None:
    out = tmp_path / "results"
    arguments = ["reproduce", "lock", "--runs", "2", "--workers", "0", "--out", str(out)]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "30,117 ± 2,087" in result.output
    assert sorted(path.name for path in out.iterdir()) == ["commands.jsonl", "lock.csv", "lock.json", "runs.jsonl"]


def test_the_list_names_every_study() -> None:
    result = CliRunner().invoke(studies, [], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert all(name in result.output for name in STUDIES)


def noted(holds: bool) -> Study:
    trial = Trial({"number": 0}, partial(dict, value=1))
    return Study("noted", "", lambda: [trial], lambda _: Document("noted", {"value": 1}, holds=holds))


@pytest.mark.parametrize("holds", [True, False])
def test_a_study_is_shown_and_its_exit_code_says_whether_what_it_checks_is_true(
    holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "STUDIES", {"noted": noted(holds)})
    first = CliRunner().invoke(studies, ["noted", "--workers", "0", "--out", str(tmp_path)])
    assert '"value": 1' in first.output
    assert "are in" not in first.stderr
    assert first.exit_code == (0 if holds else 1)
    again = CliRunner().invoke(studies, ["all", "--workers", "0", "--out", str(tmp_path)])
    assert "noted: 1 of 1 trials are in" in again.stderr
    anew = CliRunner().invoke(studies, ["noted", "--again", "--workers", "0", "--out", str(tmp_path)])
    assert "are in" not in anew.stderr


def test_an_interruption_says_that_the_command_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> Record:
        raise KeyboardInterrupt

    study = Study("cut", "", lambda: [Trial({}, interrupted)], lambda _: Document("cut", 0))
    monkeypatch.setattr(command, "STUDIES", {"cut": study})
    result = CliRunner().invoke(studies, ["cut", "--workers", "0", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "the same command resumes it" in result.stderr


def test_an_unknown_study_is_named_before_any_is_made(tmp_path: Path) -> None:
    error = CliRunner().invoke(studies, ["lock", "table9", "--out", str(tmp_path)]).exception
    assert isinstance(error, UnknownNameError)
    assert "'table9'" in str(error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [["reproduce", "lock"], ["truth", "star", "--radius", "4", "--epsilon", "1", "--lower-bound"]],
    ids=lambda arguments: arguments[0],
)
def test_without_the_studies_commands_say_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "axplore_studies"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "axplore_studies", None)
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, InvalidSettingError)
    assert str(error).startswith(f"axplore {arguments[0]}")
    assert "pip install -e ." in str(error)
