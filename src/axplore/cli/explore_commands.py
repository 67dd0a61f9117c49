"""Commands that explore: `explore` and `resume`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from axplore.cli.console import (
    AllRows,
    AsJson,
    Assume,
    Delta,
    Epsilon,
    Key,
    Radius,
    Ray,
    RunFolder,
    Settings,
    StatesBound,
    Trust,
    Workers,
    World,
    app,
    interruption,
    notify,
    parsed,
    print_json,
    print_lines,
    print_table,
    with_consent,
)
from axplore.errors import Interrupted
from axplore.explorers.registry import EXPLORERS

if TYPE_CHECKING:
    from axplore.atlas import Atlas
    from axplore.explorers.base import Observer
    from axplore.report.appearance import Appearance

RUNS: Final = Path("runs")
"""The default folder of runs."""


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
            help="For the certified explorer: near-optimal policies, or cheaper ones within the radius.",
            show_default="optimal, except for certified-within-radius",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated world; the same seed gives the same answer.")] = 0,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps and report what is proven.", show_default="no limit")
    ] = None,
    assume: Assume = None,
    states_bound: StatesBound = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="New folder for the run.", show_default="runs/WORLD-1, -2, ..."),
    ] = None,
    settings: Settings = None,
    key: Key = None,
    doctor: Annotated[
        bool, typer.Option("--doctor/--no-doctor", help="Examine the system briefly before exploring it.")
    ] = True,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Show Gymnasium's own pictures of states on the page.")
    ] = True,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="N|aalpy",
            help="Where labels turn out to hide something, tell situations apart by up to N outputs back, or by an "
            "automaton that AALpy learns.",
            show_default="labels are taken as they are",
        ),
    ] = None,
    workers: Workers = None,
    ray: Ray = None,
    all_rows: AllRows = False,
    as_json: AsJson = False,
) -> None:
    """Explore a world and prove which states can be reached, how, and in how many steps.

    Ctrl-C stops with what is proven so far; pressed again, it stops at once. `axplore resume RUN` continues a run
    however it ended.

    \b
    Examples:
      axplore explore confusing-chain --radius 4.5 --epsilon 0.1
      axplore explore gym:FrozenLake-v1 --radius 8 --epsilon 1 --workers 4
      axplore explore mypackage:make --radius 20 --assume deterministic
    \b
    Exit codes:
      0    everything is proven; or the explorer, which proves nothing, is done
      1    the counts contradict each other or what was assumed: the world changes, the assumption is false, or the
           failure that δ allows for has occurred
      2    an argument is wrong, or a file cannot be written
      3    some states are open, as when the step limit came first; what is proven so far is printed and saved
      4    done, but in doubt: the doctor found something, or steps of the system failed
      130  interrupted by Ctrl-C or SIGTERM; what is proven so far is printed and saved
    """  # noqa: D301
    from axplore.exploring import explore as explore_world

    folder = out or fresh_folder(RUNS, world)
    atlas = _known_in_the_end(
        lambda on_round: explore_world(
            world,
            radius,
            epsilon,
            delta,
            explorer=explorer,
            objective=objective,
            seed=seed,
            max_steps=max_steps,
            run=folder,
            progress=True,
            states_bound=states_bound,
            world_parameters=parsed(settings, key),
            on_round=on_round,
            doctor=doctor,
            workers=workers,
            ray=ray,
            assume=assume,
            memory=int(memory) if memory is not None and memory.isdecimal() else memory,  # type: ignore[arg-type]
        )
    )
    look = _look(atlas, folder) if pictures and world.startswith("gym:") else None
    raise typer.Exit(_present(atlas, folder, look, all_rows=all_rows, as_json=as_json))


@app.command()
def resume(
    run: RunFolder,
    radius: Annotated[float | None, typer.Option(help="New radius L.", show_default="as before")] = None,
    epsilon: Annotated[float | None, typer.Option(help="New precision ε.", show_default="as before")] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="[optimal|within-radius]", help="New objective.", show_default="as before"),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ASSUMPTION",
            help="What is assumed from now on; `none` for nothing. All draws are kept.",
            show_default="as before",
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            help="Stop after this many steps of the whole run and report what is proven.",
            show_default="as before, unless that limit has ended the run",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="New number of worker processes; 0 for none.", show_default="as before"),
    ] = None,
    ray: Annotated[
        str | None, typer.Option(metavar="auto|ADDRESS", help="New Ray cluster.", show_default="as before")
    ] = None,
    trust: Trust = False,
    all_rows: AllRows = False,
    as_json: AsJson = False,
) -> None:
    """Resume a run that was killed or interrupted, or continue one that has ended.

    A simulated world, or a system stepped by workers, ends with the same atlas and certificate as an uninterrupted run.
    A system stepped without workers starts with a RESET. The certified explorer can continue with a new radius, epsilon
    or objective, and keeps all samples.

    \b
    Examples:
      axplore resume runs/confusing-chain-1
      axplore resume runs/confusing-chain-1 --radius 6
      axplore resume runs/machine --assume none    # what was assumed turned out to be false
      axplore resume runs/lake --trust    # its world is gym:FrozenLake-v1, which is not built in
    \b
    Exit codes:
      0    everything is proven; or the explorer, which proves nothing, is done
      1    the counts contradict each other or what was assumed: the world changes, the assumption is false, or the
           failure that δ allows for has occurred
      2    an argument is wrong, the run is damaged or in use, or a file cannot be written
      3    some states are open, as when the step limit came first; what is proven so far is printed and saved
      4    done, but in doubt: the doctor found something, or steps of the system failed
      130  interrupted by Ctrl-C or SIGTERM; what is proven so far is printed and saved
    """  # noqa: D301
    from axplore.resuming import resume as resume_run

    atlas = with_consent(
        trust,
        lambda trust: _known_in_the_end(
            lambda on_round: resume_run(
                run,
                radius=radius,
                epsilon=epsilon,
                objective=objective,
                max_steps=max_steps,
                progress=True,
                on_round=on_round,
                workers=workers,
                ray=ray,
                trust=trust,
                assume=assume,
            )
        ),
    )
    raise typer.Exit(_present(atlas, run, None, all_rows=all_rows, as_json=as_json))


def fresh_folder(runs: Path, world: str) -> Path:
    """Returns the first of `<world>-1`, `<world>-2`, ... that does not exist."""
    name = re.sub(r"[^\w.-]+", "-", world)
    number = 1
    while (runs / f"{name}-{number}").exists():
        number += 1
    return runs / f"{name}-{number}"


def _known_in_the_end(exploring: Callable[[Observer], Atlas]) -> Atlas:
    """Returns the atlas of an exploration, or what it knew when it was interrupted."""
    from axplore.atlas import Atlas
    from axplore.explorers.base import StopReason

    try:
        with interruption() as interrupted:
            return exploring(lambda _: StopReason.INTERRUPTED if interrupted() else None)
    except Interrupted as interrupt:
        if not isinstance(interrupt.atlas, Atlas):
            raise
        return interrupt.atlas


def _look(atlas: Atlas, folder: Path) -> Appearance | None:
    """Returns how the states of a Gymnasium environment look, with its own pictures if it can draw any."""
    from axplore.report.appearance import Appearance
    from axplore.report.page import own_pictures
    from axplore.runs.history import history_of

    try:
        # The command names the world, so there is no other consent to ask for.
        pictures = own_pictures(atlas, history_of(folder), trust=True)
    except Exception:  # whatever an environment may raise that cannot draw; a page needs no pictures
        return None
    return replace(Appearance.of_world(atlas.world), render=pictures.get)


def _present(atlas: Atlas, folder: Path, look: Appearance | None, *, all_rows: bool, as_json: bool) -> int:
    """Writes the page of a run, prints its atlas and returns the exit code."""
    page, mishaps = _write_page(atlas, folder, look)
    if as_json:
        print_json({**atlas_as_json(atlas), "run": str(folder), "report": None if page is None else str(page)})
    else:
        _print_atlas(atlas, folder, page, mishaps, all_rows=all_rows)
    return int(atlas.verdict.exit_code)


def _write_page(atlas: Atlas, folder: Path, look: Appearance | None) -> tuple[Path | None, str]:
    """Writes the page of a run; returns its path, and what the run recovered from.

    Failures are only warnings: the result of the run is valid without its page.
    """
    from axplore.report.page import NAME, write_page
    from axplore.runs.history import history_of

    mishaps = ""
    try:
        history = history_of(folder)
        mishaps = history.mishaps
        return write_page(atlas, history, folder, folder / NAME, look), mishaps
    except Exception as error:
        notify(
            f"axplore: warning: the page of the run was not written: {error or type(error).__name__}. The result of "
            f"the run is not affected; `axplore report {folder}` tries again."
        )
        return None, mishaps


def _print_atlas(atlas: Atlas, folder: Path, page: Path | None, mishaps: str, *, all_rows: bool) -> None:
    from axplore.atlas.state_report import headings_of, legend_of, rows_of, summary_of, title_of
    from axplore.explorers.base import StopReason
    from axplore.runs.events import NAME as EVENTS

    print_table(title_of(atlas), headings_of(atlas), rows_of(atlas), all_rows=all_rows)
    print_lines([*filter(None, [legend_of(atlas)]), *summary_of(atlas)])
    hints = [f"The run is in {folder}."]
    if atlas.proven:
        hints.append(f"Check it: axplore verify {folder}")
    if atlas.stop is StopReason.ASSUMPTION_CONTRADICTED:
        hints.append(f"Keep all draws and assume less: axplore resume {folder} --assume none")
    elif atlas.stop is StopReason.CONTRADICTED:
        hints.append(f"Look for what changes: axplore doctor {shlex.quote(atlas.world)}")
    elif not atlas.stop.by_own_rule:
        hints.append(f"Resume it: axplore resume {folder}")
    print_lines([" ".join(hints)])
    if mishaps:
        print_lines([f"Recovered from: {mishaps}. The details are in {folder / EVENTS}."])
    if page is not None:
        print_lines([f"See it: {page}"])


def atlas_as_json(atlas: Atlas) -> dict[str, Any]:
    """Returns the atlas as JSON values; labels are written as in its file."""
    from axplore.atlas.state_report import state_rows

    rows = state_rows(atlas)
    return {
        "world": atlas.world,
        "explorer": atlas.explorer,
        "objective": None if atlas.objective is None else atlas.objective.value,
        "radius": atlas.target.radius,
        "epsilon": atlas.target.epsilon,
        "delta": atlas.target.delta,
        "steps": atlas.steps,
        "rounds": atlas.rounds,
        "stop": atlas.stop.name,
        "proven": atlas.proven,
        "complete": atlas.complete,
        "verdict": atlas.verdict.as_json(),
        "states": [row.as_json() for row in rows if row.in_atlas],
        "frontier": [row.as_json() for row in rows if not row.in_atlas],
        "unseen_lower": atlas.unseen_lower,
    }
