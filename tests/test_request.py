from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import axplore
from axplore.arguments import whole
from axplore.cli.options import options_of
from axplore.errors import InvalidSettingError
from axplore.request import Changes, Request, asks, kept_settings, setting, setting_of
from axplore.runs.manifest import load_manifest
from commands import run


@pytest.mark.parametrize("kind", [Request, Changes])
def test_every_setting_says_what_it_is(kind: Any) -> None:
    assert all(setting_of(declared).help.endswith(".") for declared in fields(kind))


def test_explore_and_resume_take_the_settings_as_parameters_and_describe_them() -> None:
    for function, kind in ((axplore.explore, Request), (axplore.resume, Changes)):
        names = [declared.name for declared in fields(kind)]
        assert sorted(inspect.signature(function).parameters) == sorted(names)
        assert all(f"\n    {name}: " in (function.__doc__ or "") for name in names)


def test_an_unknown_setting_is_refused_by_the_name_of_the_function() -> None:
    with pytest.raises(TypeError, match=r"explore\(\) got an unexpected keyword argument 'radios'"):
        axplore.explore("maze", radios=3)  # type: ignore[call-arg]


def test_a_setting_outside_its_range_is_refused_before_anything_is_done() -> None:
    with pytest.raises(InvalidSettingError, match="max_steps is -1"):
        Request("maze", radius=3, max_steps=-1)


def test_every_option_is_shown_by_the_command_line() -> None:
    for command, kind in (("explore", Request), ("resume", Changes)):
        shown = run(command, "--help")
        for declared in fields(kind):
            if setting_of(declared).option is not None:
                assert f"--{declared.name.replace('_', '-')}" in shown


def test_a_manifest_keeps_what_resuming_needs(tmp_path: Path) -> None:
    axplore.explore("confusing-chain", 4.5, 0.8, seed=3, explorer="disco-experiment", max_steps=200, run=tmp_path)
    manifest = load_manifest(tmp_path)
    assert manifest.settings == kept_settings(manifest.request)
    assert manifest.request.seed == 3


@dataclass(frozen=True, kw_only=True)
class ToyRequest(Request):
    """A request with one more setting: what CONTRIBUTING.md describes takes no other change."""

    patience: int = field(
        default=1, metadata=setting("How long to wait.", whole(least=1), kept=True, option=int, metavar="SECONDS")
    )


def test_a_new_setting_is_a_checked_parameter_an_option_and_part_of_the_manifest() -> None:
    @asks(ToyRequest)
    def explore(request: ToyRequest) -> int:
        """Explores.

        {settings}
        """
        return request.patience

    assert explore("maze", patience=3) == 3
    assert "patience: How long to wait." in (explore.__doc__ or "")
    with pytest.raises(InvalidSettingError, match="patience is 0"):
        explore("maze", patience=0)
    assert kept_settings(ToyRequest("maze", patience=3))["patience"] == 3
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @options_of(ToyRequest, required=["radius"])
    def command(world: str, asked: dict[str, Any]) -> None:
        print(world, ToyRequest(world, **asked).patience)

    assert "--patience SECONDS" in CliRunner().invoke(app, ["--help"], terminal_width=200).output
    assert CliRunner().invoke(app, ["maze", "--radius=2", "--patience=7"]).output == "maze 7\n"
    assert CliRunner().invoke(app, ["maze"]).exit_code == 2
