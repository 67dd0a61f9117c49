from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import axplore
from axplore.__main__ import main as start
from axplore.cli import app, main
from axplore.cli.console import MAX_ROWS, interruption, print_table, warnings_shown
from axplore.cli.explore_commands import fresh_folder
from axplore.domains import DOMAINS
from axplore.errors import DamagedFileError, ExitCode
from commands import run
from waiting import PATIENCE

EXACT = {"s0": 0, "s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 4}
"""V* on the chain, restricted to S_L→ with L = 4.5."""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_exploring_the_chain_prints_its_states_with_bounds_that_contain_the_exact_steps() -> None:
    output = run("explore", "confusing-chain", "--radius", "4.5", "--epsilon", "0.1")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│ s" in line]
    assert {row[0] for row in rows} == set(EXACT)
    for state, lower, upper, loss, by_episodes, status, _, _ in rows:
        assert float(by_episodes or upper) >= EXACT[state]
        assert float(lower) <= EXACT[state] <= float(upper)
        assert float(loss) <= 0.1
        assert status == "certified"
    assert "Nothing within the radius is missing" in output
    (steps,) = re.findall(r"([\d,]+) steps taken", output)
    assert int(steps.replace(",", "")) == axplore.Atlas.load("runs/confusing-chain-1").steps
    assert "axplore verify runs/confusing-chain-1" in output


def test_states_are_named_and_labelled_by_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "naming.py").write_text(
        "def key(state): return int(state[1:])\ndef name(label): return f'room {label}'"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    settings = ("--radius", "2", "--epsilon", "1", "--no-doctor", "--max-steps", "2000", "--key", "naming:key")
    output = run("explore", "confusing-chain", *settings, "--describe", "naming:name", "--out", "named")
    assert "room 1 " in output
    assert axplore.Atlas.load("named").states[0] == 0
    assert "room 1" in Path("named/report.html").read_text(encoding="utf-8")


def test_exploring_as_json_holds_what_the_atlas_says() -> None:
    settings = ("--set", "arms=1", "--set", "arm_length=2", "--epsilon", "0.5", "--seed", "4")
    answer = json.loads(run("explore", "star", "--radius", "1", *settings, "--out", "here", "--json"))
    atlas = axplore.Atlas.load("here")
    assert answer["run"] == "here"
    assert [item["state"] for item in answer["states"]] == ["s0", "arm1.1"] == list(atlas.states)
    assert answer["states"][1]["upper"] == atlas.bounds("arm1.1").upper
    assert [item["state"] for item in answer["frontier"]] == ["arm1.2"]
    assert answer["frontier"][0]["upper"] is None
    assert set(answer["frontier"][0]) == set(answer["states"][0])
    assert (answer["complete"], answer["proven"], answer["stop"]) == (True, True, "PROVEN")
    assert (answer["radius"], answer["epsilon"], answer["delta"]) == (1, 0.5, 0.1)
    assert answer["steps"] == atlas.steps


def test_every_run_has_a_fresh_folder() -> None:
    for number in (1, 2):
        output = run("explore", "two-branch", "--radius", "2", "--epsilon", "1")
        assert f"runs/two-branch-{number}" in output
    assert fresh_folder(Path("runs"), "gym:Frozen/Lake v1") == Path("runs/gym-Frozen-Lake-v1-1")


def test_the_step_limit_has_an_exit_code_of_its_own() -> None:
    output = run("explore", "confusing-chain", "--radius", "4.5", "--max-steps", "600", code=3)
    assert "States within the radius may be missing." in output
    assert "the step limit was reached" in output
    assert "the step limit was reached" in run("verify", "runs/confusing-chain-1", code=3)
    assert "REJECTED: 1 of" in run("verify", "--complete", "runs/confusing-chain-1", code=1)


def test_what_was_never_drawn_proves_nothing_and_is_not_verified_as_done() -> None:
    run("explore", "confusing-chain", "--radius", "4.5", "--max-steps", "0", code=3)
    run("verify", "runs/confusing-chain-1", code=3)
    run("verify", "runs/confusing-chain-1", "--complete", code=1)


def test_the_objective_and_the_explorer_can_be_chosen() -> None:
    common = ("explore", "two-branch", "--radius", "2", "--epsilon", "1", "--json")
    assert json.loads(run(*common, "--objective", "within-radius"))["objective"] == "AX_L"
    answer = json.loads(run(*common, "--explorer", "disco-experiment"))
    assert (answer["explorer"], answer["proven"]) == ("disco-experiment", False)
    assert "Not proven" in run(*common[:-1], "--explorer", "ucb-explore-experiment")


def test_the_help_names_every_explorer() -> None:
    from axplore.explorers.registry import DEFAULT_EXPLORER, EXPLORERS

    shown = "".join(run("explore", "--help").split())  # whatever the width of the terminal
    assert all(name in shown.replace("│", "") for name in EXPLORERS)
    assert next(iter(EXPLORERS)) == DEFAULT_EXPLORER


@pytest.mark.parametrize("command", ["explore", "verify"])
def test_the_help_has_an_example_and_the_exit_codes(command: str) -> None:
    output = run(command, "--help")
    assert f"axplore {command} " in output
    assert "Exit codes:" in output


def test_verifying_a_run_prints_a_verdict_per_claim() -> None:
    run("explore", "two-branch", "--radius", "2", "--epsilon", "1", "--out", "run")
    output = run("verify", "run")
    assert "VERIFIED" in output
    assert "FAILED" not in output
    answer = json.loads(run("verify", "run", "--json"))
    assert (answer["run"], answer["holds"], answer["complete"]) == ("run", True, True)
    assert {claim["holds"] for claim in answer["claims"]} == {True}


def test_the_certificate_of_another_run_is_refused() -> None:
    for name, seed in (("run", "0"), ("other", "1")):
        run("explore", "two-branch", "--radius", "2", "--epsilon", "1", "--seed", seed, "--out", name)
    for suffix in ("json", "npz"):
        Path(f"other/certificate.{suffix}").replace(f"run/certificate.{suffix}")
    with pytest.raises(DamagedFileError, match="is of another run"):
        run("verify", "run")


def test_an_interruption_during_the_import_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "axplore.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "axplore.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupting()])
    with pytest.raises(SystemExit, match="130"):
        start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_with_what_is_known(number: signal.Signals) -> None:
    settings = ["--radius", "10", "--epsilon", "0.1", "--set", "rows=10", "--set", "columns=10", "--out", "run"]
    command = [sys.executable, "-m", "axplore", "explore", "slippery-grid", *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("round" in line for line in process.stderr)  # it has begun
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "it was interrupted" in output
    if number == signal.SIGINT:
        assert "Stopping after this round" in errors
    assert axplore.verify("run").holds


def test_a_second_ctrl_c_and_a_first_sigterm_end_within_the_round() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interruption() as interrupted:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.pressed
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


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
        (["explore", "labyrinth", "--radius", "3"], "no world named 'labyrinth'"),
        (["explore", "star", "--radius", "0.5"], "radius is 0.5"),
        (["explore", "star", "--radius", "3", "--explorer", "magellan"], "no explorer named 'magellan'"),
        (["explore", "star", "--radius", "3", "--explorer", "disco-theory"], "states_bound is missing"),
        (["explore", "star", "--radius", "3", "--objective", "best"], "objective is 'best'"),
        (["explore", "star", "--radius", "3", "--max-steps", "-1"], "max_steps is -1"),
        (["explore", "star", "--radius", "3", "--out", "/dev/null/run"], "the folder /dev/null/run cannot be used"),
        (
            ["explore", "confusng-chain", "--radius", "3"],
            "did you mean 'confusing-chain'? (`axplore worlds`",
        ),
        (["explore", "FrozenLake-v1", "--radius", "3"], "did you mean 'gym:FrozenLake-v1'?"),
        (["explore", "star", "--radius", "3", "--explorer", "certifed"], "did you mean 'certified'?"),
        (["verify", "nowhere"], "there is no atlas in nowhere"),
        (["truth", "labyrinth", "--radius", "3"], "no world named 'labyrinth'"),
        (["truth", "star", "--radius", "-1"], "radius is -1.0"),
        (["truth", "star", "--radius", "3", "--set", "arms"], "--set arms: write it as NAME=VALUE"),
        (["truth", "star", "--radius", "3", "--set", "legs=2"], "no parameter of star named 'legs'"),
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


ESCAPE = "\x1b[2J\x1b]0;owned\x07"

HOSTILE_PROGRAM = """
import json, sys
ESCAPE = "\\x1b[2J\\x1b]0;owned\\x07"
place = failures = 0
for line in sys.stdin:
    place = 0 if "reset" in line else min(2, place + 1)
    print(json.dumps({"state": ESCAPE * place + str(place), "actions": [ESCAPE + "go"]}), flush=True)
"""


def test_no_escape_sequence_of_a_program_reaches_the_terminal() -> None:
    Path("program.py").write_text(HOSTILE_PROGRAM)
    world = f"exec:{sys.executable} program.py"
    common = ("--radius", "2", "--epsilon", "1", "--no-doctor", "--out", f"run{ESCAPE}")
    result = CliRunner().invoke(app, ["explore", world, *common], catch_exceptions=False)
    said = [result.output, run("plan", f"run{ESCAPE}"), run("verify", f"run{ESCAPE}")]
    said.append(str(axplore.Atlas.load(f"run{ESCAPE}")))
    for text in said:
        assert r"\x1b[2J" in text
        assert "\x1b" not in text
        assert "\x07" not in text


def test_no_escape_sequence_of_an_error_reaches_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["axplore", "explore", f"maze{ESCAPE}", "--radius", "2"])
    with pytest.raises(SystemExit):
        main()
    assert "\x1b" not in capsys.readouterr().err


def test_of_warnings_that_differ_in_numbers_only_the_first_few_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("axplore")
    with warnings_shown():
        for fault in range(100):
            logger.warning("the system failed; restarting it (fault %d)", fault)
        logger.warning("something else: %s", ESCAPE)
    logger.warning("nobody listens")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "axplore: warning: the system failed; restarting it (fault 0)"
    assert lines[2].endswith("(fault 2) (later warnings like this one are not shown)")
    assert lines[3] == r"axplore: warning: something else: \x1b[2J\x1b]0;owned\x07"
    assert not [line for line in lines[4:] if line.startswith("axplore: ")]


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").strip() == f"axplore {axplore.__version__}"


ROWS = [(f"s{number}", str(number)) for number in range(321)]


def printed(capsys: pytest.CaptureFixture[str], **settings: bool) -> str:
    print_table("Many states", ("state", "steps"), ROWS, **settings)
    return capsys.readouterr().out


def test_a_long_table_is_shortened_on_a_terminal_unless_all_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, all_rows=False).count("│ s") == 321  # not a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    shortened = printed(capsys, all_rows=False)
    assert shortened.count("│ s") == MAX_ROWS
    assert "│ s0 " in shortened
    assert "│ s320 " in shortened
    assert "281 of 321 rows are not shown; --all prints them." in shortened
    assert printed(capsys, all_rows=True).count("│ s") == 321


def test_the_installed_command_helps() -> None:
    result = subprocess.run([sys.executable, "-m", "axplore", "--help"], capture_output=True, text=True, check=True)
    for command in ("explore", "verify", "truth", "worlds"):
        assert f"  {command} " in result.stdout


def test_a_shell_completes_commands_and_worlds() -> None:
    def offered(typed: str) -> list[str]:
        words = {"_AXPLORE_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        command = [sys.executable, "-c", "from axplore.cli import app; app(prog_name='axplore')"]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **words})
        return result.stdout.split()

    assert offered("axplore expl") == ["explore"]
    assert offered("axplore explore ma") == ["maze"]
    assert offered("axplore doctor gy") == ["gym:"]


def test_a_crash_is_not_taken_for_a_refutation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash() -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("axplore.cli.app", crash)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == ExitCode.CRASHED
    assert "ZeroDivisionError: a defect" in capsys.readouterr().err
