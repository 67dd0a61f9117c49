from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from axplore import Atlas
from axplore.cli import app
from axplore.errors import DamagedFileError, InvalidInputError
from commands import run
from waiting import PATIENCE


def test_exploring_ends_by_naming_the_report(tmp_path: Path) -> None:
    said = run("explore", "confusing-chain", "--radius", "2", "--epsilon", "1", "--out", tmp_path / "run")
    assert said.splitlines()[-1] == f"See it: {tmp_path / 'run' / 'report.html'}"
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!doctype html>")


def test_exploring_as_json_names_the_report_too(tmp_path: Path) -> None:
    said = run("explore", "confusing-chain", "--radius", "2", "--epsilon", "1", "--out", tmp_path / "run", "--json")
    assert json.loads(said)["report"] == str(tmp_path / "run" / "report.html")


def test_a_page_that_cannot_be_written_leaves_the_result_and_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("no page today")

    monkeypatch.setattr("axplore.report.page.page_of", fail)
    command = ["explore", "confusing-chain", "--radius", "2", "--epsilon", "1", "--out", str(tmp_path / "run")]
    for arguments in (command, ["resume", str(tmp_path / "run")]):
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        assert "s2" in result.stdout
        assert "See it" not in result.stdout
        assert "the page of the run was not written: no page today" in result.stderr
    result = CliRunner().invoke(app, ["resume", str(tmp_path / "run"), "--json"], catch_exceptions=False)
    assert json.loads(result.stdout)["report"] is None


def test_a_log_that_was_changed_is_an_error_in_a_line_and_does_not_keep_a_run_from_being_resumed(
    chain_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(chain_run, tmp_path / "run")
    log = tmp_path / "run" / "events.jsonl"
    log.write_text(log.read_text().replace('"known"', '"unknown"'))
    with pytest.raises(DamagedFileError, match=r"events.jsonl is damaged in line 2: known is None"):
        run("report", tmp_path / "run")
    result = CliRunner().invoke(app, ["resume", str(tmp_path / "run")], catch_exceptions=False)
    assert result.exit_code == 0
    assert "the page of the run is without its history" in result.stderr
    assert "damaged in line 2" in result.stderr
    assert "confusing-chain" in (tmp_path / "run" / "report.html").read_text()


def test_the_report_of_a_run_is_written_where_it_is_asked_for(chain_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("report", chain_run, "-o", page).strip() == str(page)
    assert "confusing-chain" in page.read_text()


def test_runs_are_compared_for_machines(chain_run: Path, tmp_path: Path) -> None:
    document = json.loads(run("compare", chain_run, chain_run, "--figures", tmp_path, "--json"))
    atlas = Atlas.load(chain_run)
    for compared in document["runs"]:
        assert compared["steps"] == atlas.steps
        assert compared["missing"] == 0
        assert compared["objectives"]["AX*"]["holds"]
    assert all(Path(path).is_file() for path in document["figures"])
    assert len(document["figures"]) == 9


def test_runs_are_compared_for_people(chain_run: Path) -> None:
    said = run("compare", chain_run)
    assert "holds" in said
    assert f"{Atlas.load(chain_run).steps:,}" in said


SWEEP = ("--world", "confusing-chain", "--radius", "2", "--epsilon", "1", "--explorer", "certified")


def test_explorers_are_compared_over_seeds(tmp_path: Path) -> None:
    command = ("compare", *SWEEP, "--explorer", "disco-experiment", "--seeds", "2", "--out", tmp_path, "--json")
    document = json.loads(run(*command, "--workers", "2"))
    assert [(each["explorer"], each["seed"]) for each in document["runs"]] == [
        ("certified", 0), ("certified", 1), ("disco-experiment", 0), ("disco-experiment", 1),
    ]  # fmt: skip
    assert [each["steps"] for each in document["runs"]] == [Atlas.load(each["run"]).steps for each in document["runs"]]
    assert [mean["runs"] for mean in document["means"]] == [2, 2]
    assert document["failed"] == []
    # The same command finds all of it done, whoever did it.
    assert json.loads(run(*command, "--workers", "0")) == document


def test_a_comparison_over_seeds_for_people_ends_with_means(tmp_path: Path, chain_run: Path) -> None:
    said = run("compare", chain_run, *SWEEP, "--seeds", "2", "--workers", "0", "--out", tmp_path / "sweep")
    assert "Means over seeds" in said
    assert "2 of 2" in said
    assert f"{Atlas.load(chain_run).steps:,}" in said
    assert "built-in worlds" in said


def test_a_run_that_fails_is_reported_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    command = (
        "compare",
        "--world",
        "exec:/no/such/program",
        "--radius",
        "2",
        "--explorer",
        "certified",
        "--seeds",
        "1",
    )
    said = run(*command, "--workers", "0", "--out", tmp_path, "--figures", tmp_path / "figures", code=1)
    assert "failed" in said
    assert "/no/such/program" in said
    assert "Failed runs: 1." in said
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to compare"),
        (("--seeds", "3"), "need --world"),
        (("--set", "arms=1"), "need --world"),
        (("--world", "star", "--radius", "2", "--explorer", "certified"), "needs --out as well"),
        (("--world", "star", "--explorer", "certified", "--out", "x"), "needs --radius as well"),
        (("--world", "star", "--radius", "2", "--out", "x"), "needs --explorer as well"),
        (("--world", "comet", "--radius", "2", "--explorer", "certified", "--out", "x", "--workers", "0"), "comet"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        run("compare", *arguments)


def test_an_interrupted_comparison_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("axplore.comparison.seeds.explored", interrupt)
    command = list(map(str, ("compare", *SWEEP, "--seeds", "1", "--workers", "0", "--out", tmp_path)))
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 130
    assert "the same command resumes it" in result.stderr


def test_watching_says_where_and_ends_with_an_interruption(chain_run: Path) -> None:
    # A shell lets what it starts in the background ignore interruptions; here they have to be heard.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import axplore.cli as c; c.app()"
    )
    command = [sys.executable, "-c", program, "watch", str(chain_run)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watcher:
        assert watcher.stdout is not None
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", watcher.stdout.readline())
        with urlopen(address, timeout=PATIENCE) as answer:
            assert "The run has ended." in answer.read().decode()
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(timeout=PATIENCE) == 0
