"""Commands that explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axplore.cli.options import (
    EXPLORERS,
    AsJson,
    Delta,
    Epsilon,
    Radius,
    Ray,
    RunFolder,
    Settings,
    StatesBound,
    Workers,
    World,
    app,
    parsed,
)


@app.command()
def explore(
    world: World,
    radius: Radius,
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    explorer: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(EXPLORERS)}.")] = "certified",
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="[optimal|within-radius]",
            help="Of the certified explorer: policies as good as the best, or within the radius, which is cheaper.",
            show_default="optimal, but for certified-within-radius",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulated world; the same seed gives the same answer.")] = 0,
    max_steps: Annotated[
        int | None, typer.Option(help="End after so many steps with what is known.", show_default="no limit")
    ] = None,
    states_bound: StatesBound = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="New folder for the run.", show_default="runs/WORLD-1, -2, ..."),
    ] = None,
    settings: Settings = None,
    doctor: Annotated[
        bool, typer.Option("--doctor/--no-doctor", help="Examine a system briefly before exploring it.")
    ] = True,
    workers: Workers = None,
    ray: Ray = None,
    as_json: AsJson = False,
) -> None:
    """Explore a world: what can be reached, in how many steps, and how surely.

    Ctrl-C ends with what is known so far; pressed again, at once. However it ends, `axplore resume RUN` goes on.

    \b
    Examples:
      axplore explore confusing-chain --radius 4.5 --epsilon 0.1
      axplore explore gym:FrozenLake-v1 --radius 8 --epsilon 1 --workers 4
    \b
    Exit codes:
      0    the explorer is done
      1    the counts contradict each other: the world changes, or delta has come up
      2    something given is wrong, or a file cannot be written
      3    the step limit came first; what is known is printed and kept
      130  interrupted; what is known is printed and kept, unless it was at once
    """  # noqa: D301
    from axplore.cli.console import explore_on_console

    code = explore_on_console(
        world,
        out,
        as_json=as_json,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        explorer=explorer,
        objective=objective,
        seed=seed,
        max_steps=max_steps,
        states_bound=states_bound,
        world_parameters=parsed(settings),
        doctor=doctor,
        workers=workers,
        ray=ray,
    )
    raise typer.Exit(code)


@app.command()
def resume(
    run: RunFolder,
    radius: Annotated[
        float | None, typer.Option(help="Another radius from now on (L).", show_default="as before")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Another precision from now on (ε).", show_default="as before")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="[optimal|within-radius]", help="Another objective from now on.", show_default="as before"
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            help="End after so many steps of the whole run with what is known.",
            show_default="as before, unless that limit has ended the run",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many processes from now on; 0 for none.", show_default="as before"),
    ] = None,
    ray: Annotated[
        str | None, typer.Option(metavar="auto|ADDRESS", help="Another Ray cluster.", show_default="as before")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was killed, interrupted or has ended.

    A simulated world, or one that workers step, ends with the same atlas and certificate as if nothing had happened. A
    system that is stepped without workers begins with a RESET. The certified explorer can go on with another radius,
    epsilon or objective, and keeps what it has sampled.

    \b
    Examples:
      axplore resume runs/confusing-chain-1
      axplore resume runs/confusing-chain-1 --radius 6
    \b
    Exit codes:
      0    the explorer is done
      1    the counts contradict each other: the world changes, or delta has come up
      2    something given is wrong, the run is damaged or in use, or a file cannot be written
      3    the step limit came first; what is known is printed and kept
      130  interrupted; what is known is printed and kept, unless it was at once
    """  # noqa: D301
    from axplore.cli.console import resume_on_console

    code = resume_on_console(
        run,
        as_json=as_json,
        radius=radius,
        epsilon=epsilon,
        objective=objective,
        max_steps=max_steps,
        workers=workers,
        ray=ray,
    )
    raise typer.Exit(code)
