"""Options that several commands have."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from axplore.cli.console import warnings_shown
from axplore.errors import InvalidSettingError, UntrustedFileError, printable

Answer = TypeVar("Answer")

World = Annotated[
    str,
    typer.Argument(
        metavar="WORLD",
        help="Name of a world, such as gym:FrozenLake-v1; `axplore worlds` lists them.",
        show_default=False,
    ),
]
Radius = Annotated[float, typer.Option(help="Radius L, in expected steps.", show_default=False)]
Epsilon = Annotated[float, typer.Option(help="Precision ε, in steps.")]
Delta = Annotated[float, typer.Option(help="Probability δ that the answer may be wrong.")]
StatesBound = Annotated[
    int | None,
    typer.Option(help="Upper bound on the number of states; only the theory explorers need it.", show_default=False),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Start the world that the run names, though that runs code; a terminal asks otherwise."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the world; may be repeated.", show_default=False),
]
Workers = Annotated[int | None, typer.Option(metavar="N", help="Number of worker processes.", show_default="none")]
Ray = Annotated[
    str | None,
    typer.Option(metavar="auto|ADDRESS", help="Run the workers on this Ray cluster.", show_default="this machine"),
]
SweepWorkers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of worker processes, each with one run at a time; 0 for none. Results do not depend on it.",
        show_default="one per processor",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AllRows = Annotated[bool, typer.Option("--all", help="Print all rows of long tables.")]

EXPORTS = ("drn", "interval-drn", "prism", "umb", "dot", "csv", "policies-csv", "parquet", "policies-parquet")
"""The names of the formats."""


def parsed(settings: list[str] | None) -> dict[str, str]:
    """The parameters of a world, as `--set` gives them."""
    parameters = {}
    for setting in settings or ():
        name, separator, value = setting.partition("=")
        if not separator:
            raise InvalidSettingError(f"--set {setting}: write it as NAME=VALUE")
        parameters[name.replace("-", "_")] = value
    return parameters


def sweep_workers(workers: int | None, ray: str | None) -> int | None:
    """Of runs that have nothing to do with each other, each processor makes one; a cluster has its own number."""
    return os.cpu_count() if workers is None and ray is None else workers


app = typer.Typer(
    help="Explores an unknown, resettable, stochastic system and proves what can be reliably reached.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is printed twice as fast
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from axplore import __version__

        typer.echo(f"axplore {__version__}")
        raise typer.Exit


@app.callback()
def prepare(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Prepares every command: what axplore logs is printed while it runs."""
    del version
    context.with_resource(warnings_shown())


def with_consent(trust: bool, start: Callable[[bool], Answer]) -> Answer:
    """Returns what `start` returns, given whether files are trusted; asks on a terminal where that is needed."""
    try:
        return start(trust)
    except UntrustedFileError as refusal:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        if not typer.confirm(f"{printable(str(refusal))}. Start it now?", err=True):
            raise
        return start(True)
