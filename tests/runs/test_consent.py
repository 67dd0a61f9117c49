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
from axplore.errors import DamagedFileError, InvalidSettingError, UnknownNameError, UntrustedFileError
from axplore.report.page import write_report
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
    body = json.loads(path.read_text())
    body |= {name: body["settings"] | value if name == "settings" else value for name, value in changes.items()}
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


STRANGE_KEY = """
import pathlib
pathlib.Path("started").touch()
def key(observation):
    return int(observation)
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a Gymnasium environment, and beside it a module that its parameters can name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("stranger", None)
    (tmp_path / "stranger.py").write_text(STRANGE_KEY)
    parameters = {"is_slippery": "false", "start": "fixed"}
    axplore.explore(LAKE, radius=2, epsilon=1, max_steps=20, run=tmp_path / "run", world_parameters=parameters)
    return tmp_path / "run"


LAKE = "gym:FrozenLake-v1"
KEYED = {"key": "stranger:key"}


@pytest.mark.parametrize(
    "parameters", [KEYED, {"key": '"stranger:key"'}, {"desc": '["SF", "FG"]'}, {"own": '{"import": 1}'}]
)
def test_who_names_the_world_does_not_consent_to_code_in_its_parameters(lake: Path, parameters: dict[str, str]) -> None:
    edited(lake, world_parameters=parameters)
    before = files_of(lake)
    with pytest.raises(UntrustedFileError, match=r"the parameter (key|desc|own)=.*world_parameters"):
        axplore.resume(lake, LAKE)
    assert not Path("started").exists()
    assert files_of(lake) == before


def test_a_key_in_the_run_of_a_built_in_world_needs_consent(lake: Path, tmp_path: Path) -> None:
    run = tmp_path / "built-in"
    axplore.explore("confusing-chain", radius=2, epsilon=1, max_steps=20, run=run)
    edited(run, world_parameters=KEYED)
    for world in (None, "confusing-chain"):
        with pytest.raises(UntrustedFileError, match=r"the parameter key='stranger:key'"):
            axplore.resume(run, world)
    assert not Path("started").exists()
    assert lake.exists()


def test_parameters_that_name_no_code_need_no_consent(lake: Path) -> None:
    assert axplore.resume(lake, LAKE).steps >= 20


def test_who_repeats_the_parameters_consents_to_them(lake: Path) -> None:
    edited(lake, world_parameters=KEYED)
    with pytest.raises(InvalidSettingError, match="with the parameters"):
        axplore.resume(lake, LAKE, world_parameters={"key": "other:key"})
    assert not Path("started").exists()
    axplore.resume(lake, LAKE, world_parameters=KEYED, max_steps=30)
    assert Path("started").exists()


def test_trust_covers_the_parameters(lake: Path) -> None:
    edited(lake, world_parameters=KEYED)
    axplore.resume(lake, LAKE, trust=True, max_steps=30)
    assert Path("started").exists()


def test_an_explorer_of_another_package_is_not_imported_without_consent(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import EntryPoint

    from axplore import plugins

    entry = EntryPoint("strange", "stranger:make", plugins.EXPLORERS)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == plugins.EXPLORERS else [])
    edited(run, world_name="two-branch", explorer="strange")
    with pytest.raises(UntrustedFileError, match="the explorer 'strange' of another package"):
        axplore.resume(run)
    assert not Path("started").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"steps_before": "a"},
        {"steps_before": 10**400},
        {"world_parameters": [1]},
        {"world_name": 5},
        {"versions": 5},
        {"settings": {"seed": True}},
        {"settings": {"seed": -1}},
        {"settings": {"workers": "3"}},
        {"settings": {"memory": "all"}},
        {"explorer": ["certified"]},
        {"settings": {"more": 1}},
        {"more": 1},
    ],
)
def test_how_a_run_began_is_read_by_its_types(run: Path, change: dict[str, Any]) -> None:
    edited(run, **change)
    for use in (axplore.resume, write_report):
        with pytest.raises(DamagedFileError, match=r"run\.json is damaged"):
            use(run)


def test_a_cluster_that_a_file_names_is_not_used_without_consent(run: Path) -> None:
    edited(run, world_name="two-branch", settings={"ray": "ray://203.0.113.1:10001"})
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
