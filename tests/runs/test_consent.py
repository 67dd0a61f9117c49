"""No command, module or cluster that a file names is used before somebody consents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import axplore
from axplore.cli.console import with_consent
from axplore.errors import UnknownNameError, UntrustedFileError
from axplore.storage import digest_of
from axplore.worlds.catalogue import known_model

PROGRAM = """
import pathlib, sys
pathlib.Path("started").touch()
from axplore.domains import two_branch_toy
def make():
    return two_branch_toy(1)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run whose world is a module beside it; the file `started` shows that the module was imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("stranger", None)
    (tmp_path / "stranger.py").write_text(PROGRAM)
    axplore.explore("stranger:make", radius=3, epsilon=0.9, max_steps=20, run=tmp_path / "run")
    forget(tmp_path)
    return tmp_path / "run"


def forget(folder: Path) -> None:
    sys.modules.pop("stranger", None)
    (folder / "started").unlink()


def edited(run: Path, **changes: Any) -> None:
    """Changes how a run began, and makes the digest fit, as a stranger would."""
    path = run / "run.json"
    body = {**json.loads(path.read_text()), **changes}
    del body["digest"]
    path.write_text(json.dumps({**body, "digest": digest_of(body, {})}))


def files_of(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def test_resuming_starts_no_world_that_a_file_names_without_consent(run: Path) -> None:
    before = files_of(run)
    with pytest.raises(UntrustedFileError, match=r"names the world 'stranger:make'.*--trust .*trust=True"):
        axplore.resume(run)
    assert not Path("started").exists()
    assert files_of(run) == before


def test_consent_starts_it(run: Path) -> None:
    assert axplore.resume(run, trust=True).steps >= 20
    assert Path("started").exists()


def test_who_names_the_world_consents_to_it(run: Path) -> None:
    assert axplore.resume(run, "stranger:make").steps >= 20


@pytest.mark.parametrize("name", ["exec:touch started", "gym:stranger:Lake-v0", "storm:model.prism", "stranger:make"])
def test_no_kind_of_world_that_is_not_built_in_is_started(run: Path, name: str) -> None:
    edited(run, world_name=name)
    with pytest.raises(UntrustedFileError):
        axplore.resume(run)
    assert not Path("started").exists()


def test_a_cluster_that_a_file_names_is_not_used_without_consent(run: Path) -> None:
    edited(run, world_name="two-branch", ray="ray://203.0.113.1:10001")
    with pytest.raises(UntrustedFileError, match=r"the Ray cluster 'ray://203\.0\.113\.1:10001'"):
        axplore.resume(run)


def test_a_built_in_world_needs_no_consent(tmp_path: Path) -> None:
    axplore.explore("two-branch", radius=3, epsilon=0.9, max_steps=20, run=tmp_path)
    assert axplore.resume(tmp_path).complete


@pytest.mark.usefixtures("run")
def test_the_truth_about_a_strangers_environment_is_not_looked_up_by_importing_it() -> None:
    with pytest.raises(UnknownNameError):
        known_model("gym:stranger:Lake-v0", {})
    assert not Path("started").exists()
    assert known_model("gym:FrozenLake-v1", {"render_mode": "human"}).n_states == 16


@pytest.mark.parametrize("command", ["resume", "validate"])
def test_a_command_without_a_terminal_asks_for_the_flag(command: str, run: Path) -> None:
    from typer.testing import CliRunner

    from axplore.cli import app

    told = CliRunner().invoke(app, [command, str(run)])
    assert isinstance(told.exception, UntrustedFileError)
    assert not Path("started").exists()
    assert CliRunner().invoke(app, [command, str(run), "--trust"]).exit_code in (0, 1, 3, 4)
    assert Path("started").exists()


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_it_is_asked_once(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return answer

    def start(trust: bool) -> str:
        if not trust:
            raise UntrustedFileError("it names \x1b[2J")
        return "started"

    monkeypatch.setattr(typer, "confirm", confirm)
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True, raising=False)
    if answer:
        assert with_consent(False, start) == "started"
    else:
        with pytest.raises(UntrustedFileError):
            with_consent(False, start)
    assert asked == ["it names \\x1b[2J. Start it now?"]
