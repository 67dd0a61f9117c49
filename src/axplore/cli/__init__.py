"""The command line: every command is one call of the library.

Commands import what they need when they run, so that `axplore --help` is fast.
"""

from __future__ import annotations

import sys

import typer

from axplore.cli import (
    check_commands,
    compare_commands,
    explore_commands,
    run_commands,
    study_commands,
    world_commands,
)
from axplore.cli.console import app
from axplore.errors import AxploreError, ExitCode

__all__ = [
    "app",
    "check_commands",
    "compare_commands",
    "explore_commands",
    "main",
    "run_commands",
    "study_commands",
    "world_commands",
]


def main() -> None:
    """Runs the command line; an error of axplore is printed as one line, and any other with where it happened."""
    try:
        app()
    except AxploreError as error:
        typer.echo(f"axplore: {error}", err=True)
        sys.exit(ExitCode.FAILED)
    except Exception:  # Python would exit with 1, which says that something was refuted
        sys.excepthook(*sys.exc_info())
        sys.exit(ExitCode.CRASHED)
