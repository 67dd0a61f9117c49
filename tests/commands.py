"""Commands, called as on the command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from axplore.cli import app


def run(*arguments: str | Path, code: int = 0) -> str:
    """What a command prints on standard output; it must end with this exit code."""
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout
