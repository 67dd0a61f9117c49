from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import axplore
from axplore.cli import main
from axplore_studies.kills import RESULTS
from commands import run
from waiting import PATIENCE

GRID = ("slippery-grid", "--radius", "10", "--epsilon", "0.1", "--set", "rows=10", "--set", "columns=10")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def same_bytes(*folders: str) -> bool:
    first, *others = ([(Path(folder) / name).read_bytes() for name in RESULTS] for folder in folders)
    return all(other == first for other in others)


def test_a_run_that_reached_its_limit_goes_on_to_the_end() -> None:
    chain = ("explore", "confusing-chain", "--radius", "3")
    assert "Resume it: axplore resume cut" in run(*chain, "--out", "cut", "--max-steps", "500", code=3)
    assert "Resume it" in run("resume", "cut", "--max-steps", "1000", code=3)
    output = run("resume", "cut")
    assert "certified" in output
    assert "Resume it" not in output
    run("verify", "cut")


def test_a_finished_run_goes_on_with_another_radius() -> None:
    run("explore", "confusing-chain", "--radius", "3", "--out", "run")
    answer = json.loads(run("resume", "run", "--radius", "4.5", "--epsilon", "0.2", "--json"))
    assert (answer["radius"], answer["epsilon"], answer["complete"]) == (4.5, 0.2, True)
    assert {state["state"] for state in answer["states"]} == {"s0", "s1", "s2", "s3", "s4", "s5"}
    assert answer["run"] == "run"
    run("verify", "run")


def test_after_an_interruption_from_the_keyboard_the_run_goes_on() -> None:
    command = [sys.executable, "-m", "axplore", "explore", *GRID, "--out", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("round" in line for line in process.stderr)  # it has begun
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Resume it: axplore resume run" in output
    steps = axplore.Atlas.load("run").steps
    run("resume", "run", "--max-steps", str(steps + 1), code=3)
    assert axplore.Atlas.load("run").steps > steps
    assert axplore.verify("run").holds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: it holds no run.json"),
        (["run", "--radius", "1"], "was admitted before"),
        (["run", "--epsilon", "0"], "epsilon is 0"),
        (["run", "--objective", "best"], "objective is 'best'"),
        (["run", "--max-steps", "-1"], "max_steps is -1"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    axplore.explore("confusing-chain", 3, 0.1, run="run")
    monkeypatch.setattr(sys, "argv", ["axplore", "resume", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("axplore: ")
    assert message in line


def test_the_answer_to_a_question_has_one_exit_code_however_often_its_run_is_resumed() -> None:
    """The chain may be left by bad luck at any step, so the worst policy does not surely stay."""
    asked = ("check", "confusing-chain", 'P>=0.9 [ G<=5 "s0" ]', "--out", "run")
    run(*asked, "--max-steps", "1", code=3)
    output = run("resume", "run", code=1)
    assert "does not hold" in output
    assert "What the headings mean" not in output  # a table of steps to states would say nothing
    assert json.loads(run("resume", "run", "--json", code=1))["complete"]


def test_of_counts_that_contradict_an_assumption_nothing_is_answered() -> None:
    run("explore", "slippery-grid", "--radius", "4", "--assume", "deterministic", "--out", "run", code=1)
    assert "Nothing can be said" in run("check", "run", 'Pmax=? [ F "(1, 1)" ]', code=1)
