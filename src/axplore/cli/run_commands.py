"""Commands about a run that was made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axplore.cli.options import EXPORTS, AsJson, RunFolder, Settings, app, parsed


@app.command()
def verify(
    run: RunFolder,
    as_json: AsJson = False,
) -> None:
    """Check from the counts alone everything that a run says to be certified.

    \b
    Example:
      axplore verify runs/confusing-chain-1
    \b
    Exit codes:
      0  every claim is proven
      1  some claim is not
      2  the run is missing, damaged, or has nothing to verify
    """  # noqa: D301
    from axplore.cli.console import verify_on_console

    raise typer.Exit(verify_on_console(run, as_json=as_json))


@app.command()
def report(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write.", show_default="RUN/report.html")
    ] = None,
) -> None:
    """Write the page of a run: one file that opens offline.

    \b
    Example:
      axplore report runs/confusing-chain-1 -o chain.html
    """  # noqa: D301
    from axplore.cli.console import report_on_console

    raise typer.Exit(report_on_console(run, out))


@app.command()
def watch(
    run: RunFolder,
    port: Annotated[int, typer.Option(help="Port on this machine.", show_default="any that is free")] = 0,
) -> None:
    """Serve the page of a run while it goes on, on this machine only.

    It only reads; the run does not notice when it starts or ends.
    """
    from axplore.cli.console import watch_on_console

    raise typer.Exit(watch_on_console(run, port))


@app.command()
def validate(
    run: RunFolder,
    world: Annotated[
        str | None, typer.Option(metavar="WORLD", help="Where to try it.", show_default="the world of the run")
    ] = None,
    episodes: Annotated[int, typer.Option(help="For each goal.")] = 100,
    horizon: Annotated[
        int | None, typer.Option(help="Steps after which an episode is cut.", show_default="20 times those promised")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the noise; another than the run's, or it is the same noise.")] = 1,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Run the policies of a run on the real system and compare the steps they take with the bounds.

    \b
    Example:
      axplore validate runs/confusing-chain-1 --episodes 1000
    \b
    Exit codes:
      0  nothing contradicts the bounds
      1  something does
      2  the run or the world is missing, or they do not belong together
    """  # noqa: D301
    from axplore.cli.console import validate_on_console

    code = validate_on_console(
        run,
        world,
        as_json=as_json,
        seed=seed,
        world_parameters=parsed(settings),
        episodes=episodes,
        horizon=horizon,
    )
    raise typer.Exit(code)


@app.command()
def plan(
    run: RunFolder,
    goals: Annotated[
        list[str] | None, typer.Argument(metavar="[GOAL]...", help="States of its atlas.", show_default="all")
    ] = None,
    cost: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Costs above 0 and at most 1: CSV with the columns state, action, cost, or JSON with a list of such "
            "objects. What it does not name costs 1. The action RESET, with no state, sets what RESET costs.",
            show_default="every step costs 1",
        ),
    ] = None,
    reset_cost: Annotated[float | None, typer.Option(help="Of RESET.", show_default="the file's, or 1")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan for goals at any costs, from what a run has counted and without its system.

    \b
    Example:
      axplore plan runs/confusing-chain-1 s5 --cost costs.csv
    \b
    Exit codes:
      0  planned
      2  something given is wrong: a goal outside the atlas, costs outside (0, 1], a damaged run
    """  # noqa: D301
    from axplore.cli.queries import plan_on_console

    plan_on_console(run, goals or [], cost, reset_cost, as_json=as_json)


@app.command()
def export(
    run: RunFolder,
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(EXPORTS)}.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.", show_default=False)],
) -> None:
    """Write what a run has learned for model checkers, graphs and tables.

    \b
    Example:
      axplore export runs/confusing-chain-1 --format drn -o chain.drn
    \b
    Exit codes:
      0  written
      2  something given is wrong, or the file cannot be written
    """  # noqa: D301
    from axplore.cli.queries import export_on_console

    export_on_console(run, format_name, out)
