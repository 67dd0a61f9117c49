from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from axplore.cli import app, main
from axplore.domains import DOMAINS


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_truth_of_the_chain_is_printed_by_layers() -> None:
    output = run("truth", "confusing-chain", "--radius", "4.5")
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in output.splitlines() if "│ s" in line]
    assert cells == [
        ["0", "s0", "0"],
        ["1", "s1", "1"],
        ["2", "s2", "2"],
        ["2", "s5", "4"],
        ["3", "s3", "3"],
        ["4", "s4", "4"],
    ]
    assert "6 states are controllable within 4.5 expected steps" in output


def test_a_state_on_the_boundary_is_marked() -> None:
    output = run("truth", "combination-lock", "--radius", "3")
    (line,) = (line for line in output.splitlines() if "on the boundary" in line)
    assert "s1" in line


def test_json_holds_states_layers_steps_and_boundary() -> None:
    settings = ("--set", "rows=1", "--set", "columns=5", "--set", "slip=1/5")
    answer: dict[str, Any] = json.loads(run("truth", "slippery-grid", "--radius", "2.5", *settings, "--json"))
    assert answer == {
        "world": "slippery-grid",
        "radius": 2.5,
        "states": [[0, 0], [0, 1], [0, 2]],
        "layers": [[[0, 0]], [[0, 1]], [[0, 2]]],
        "steps": [0.0, pytest.approx(1.25), pytest.approx(2.5)],
        "boundary": [[0, 2]],
    }


def test_parameters_may_be_written_with_hyphens() -> None:
    output = run("truth", "confusing-chain", "--radius", "2", "--set", "chain-length=1", "--json")
    assert json.loads(output)["states"] == ["s0", "s1"]


def test_the_worlds_are_listed_with_their_parameters() -> None:
    output = run("worlds")
    for name in DOMAINS:
        assert name in output
    assert "confusing_states=6" in output
    assert json.loads(run("worlds", "--json"))["star"] == {"arms": 8, "arm_length": 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["truth", "maze", "--radius", "3"], "no domain 'maze'"),
        (["truth", "star", "--radius", "-1"], "radius is -1.0"),
        (["truth", "star", "--radius", "3", "--set", "arms"], "--set arms: write it as NAME=VALUE"),
        (["truth", "star", "--radius", "3", "--set", "legs=2"], "star has no parameter 'legs'"),
        (["truth", "star", "--radius", "3", "--set", "arms=two"], "arms is 'two'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["axplore", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("axplore: ")
    assert message in line


def test_the_installed_command_helps() -> None:
    result = subprocess.run([sys.executable, "-m", "axplore", "--help"], capture_output=True, text=True, check=True)
    assert "truth" in result.stdout
    assert "worlds" in result.stdout
