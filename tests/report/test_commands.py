from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from axplore import Atlas
from axplore.cli import app


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def test_exploring_ends_by_naming_the_report(tmp_path: Path) -> None:
    said = run("explore", "confusing-chain", "--radius", "2", "--epsilon", "1", "--out", tmp_path / "run")
    assert said.splitlines()[-1] == f"See it: {tmp_path / 'run' / 'report.html'}"
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!doctype html>")


def test_exploring_as_json_names_the_report_too(tmp_path: Path) -> None:
    said = run("explore", "confusing-chain", "--radius", "2", "--epsilon", "1", "--out", tmp_path / "run", "--json")
    assert json.loads(said)["report"] == str(tmp_path / "run" / "report.html")


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


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another signal there")
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
        with urlopen(address, timeout=60) as answer:
            assert "The run has ended." in answer.read().decode()
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(timeout=60) == 0
