"""Commands that explore: `explore`, `learn` and `resume`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from axplore.addresses import without_secrets
from axplore.cli.console import (
    ActionNames,
    AllRows,
    AsJson,
    Delta,
    Describe,
    Epsilon,
    Key,
    Radius,
    RunFolder,
    Settings,
    Trust,
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
from axplore.cli.options import options_of
from axplore.errors import DamagedFileError, ExitCode, Interrupted
from axplore.explorers.registry import EXPLORERS
from axplore.labels import readable
from axplore.request import Changes, Request

if TYPE_CHECKING:
    from axplore.atlas import Atlas
    from axplore.atlas.next_draws import NextDraws
    from axplore.explorers.base import Observer, RoundReport
    from axplore.exploring import Ended
    from axplore.report.appearance import Appearance
    from axplore.runs.history import History

DRAWING: Final = ("gym:", "browser:")
"""How the names of worlds begin whose systems draw pictures by themselves."""

RUNS: Final = Path("runs")
"""The default folder of runs."""


@app.command()
@options_of(Request, required=["radius"], explorer=f"One of {', '.join(EXPLORERS)}.")
def explore(
    world: World,
    asked: dict[str, Any],
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="New folder for the run.", show_default="runs/WORLD-1, -2, ..."),
    ] = None,
    settings: Settings = None,
    key: Key = None,
    describe: Describe = None,
    action_names: ActionNames = None,
    doctor: Annotated[
        bool, typer.Option("--doctor/--no-doctor", help="Examine the system briefly before exploring it.")
    ] = True,
    pictures: Annotated[
        bool,
        typer.Option(
            "--pictures/--no-pictures", help="Show pictures of states on the page, of Gymnasium and of a browser."
        ),
    ] = True,
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
    from axplore.exploring import explored

    folder = out or fresh_folder(RUNS, without_secrets(world))
    names = _names(describe, action_names)
    request = Request(world, **asked, world_parameters=parsed(settings, key), doctor=doctor, run=folder, progress=True)
    ended = explored_or_interrupted(
        lambda on_round, on_end: explored(replace(request, on_round=on_round), on_end=on_end)
    )
    look = _look(*ended, names, pictures=pictures and world.startswith(DRAWING))
    name_of = look.state if "describe" in names else None
    raise typer.Exit(_present(*ended, folder, look, name_of, all_rows=all_rows, as_json=as_json))


@app.command()
def learn(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A file: .csv, .jsonl, .ndjson or .parquet.")],
    radius: Radius,
    epsilon: Epsilon = 0.1,
    delta: Delta = 0.1,
    objective: Annotated[str, typer.Option(metavar="[optimal|within-radius]", help="What to prove.")] = "optimal",
    initial: Annotated[
        str | None, typer.Option(help="The initial state.", show_default="where RESET leads, or the first one")
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function that returns the actions of a state.",
            show_default="those played in the log",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="New folder for the atlas.", show_default="runs/LOG-1, -2, ..."),
    ] = None,
    all_rows: AllRows = False,
    as_json: AsJson = False,
) -> None:
    """Learn from a log of transitions: what it proves, what is open, and which actions to play next.

    The columns are state, action and next_state, in the order in which it happened; the action RESET leads to the
    initial state. docs/logs.md says when what is proven holds.

    \b
    Exit codes:
      0  everything is proven
      2  the log is damaged or cannot be read, or an argument is wrong
      3  some states are open
      4  everything is proven, but in doubt: as long as `--actions` is missing, this is the best
    """  # noqa: D301
    from axplore.labels import label_of
    from axplore.learning import from_transitions
    from axplore.runs.history import History
    from axplore.storage import new_folder
    from axplore.worlds.catalogue import function_named

    folder = out or fresh_folder(RUNS, log.stem)
    with new_folder(folder):
        atlas = from_transitions(
            log,
            radius,
            epsilon,
            delta,
            objective=objective,
            initial=None if initial is None else label_of(initial),
            actions=None if actions is None else function_named(actions),
        )
        atlas.save(folder)
    planned = [] if atlas.is_refuted else atlas.next_draws()
    page = write_page(atlas, History(), folder, None)
    if as_json:
        report = None if page is None else str(page)
        listed = [draws.as_json() for draws in planned]
        print_json({**atlas_as_json(atlas), "run": str(folder), "report": report, "next": listed})
    else:
        _print_learned(atlas, planned, folder, page, all_rows=all_rows)
    raise typer.Exit(int(atlas.verdict.exit_code))


def _print_learned(
    atlas: Atlas, planned: Sequence[NextDraws], folder: Path, page: Path | None, *, all_rows: bool
) -> None:
    from axplore.atlas.state_report import headings_of, rows_of, summary_of, title_of

    print_lines(summary_of(atlas))
    print_table(title_of(atlas), headings_of(atlas), rows_of(atlas), all_rows=all_rows)
    if planned:
        rows = [(readable(row.state), readable(row.action), f"{row.draws:,}", row.why) for row in planned]
        print_table("What to play next", ("state", "action", "times", "for"), rows, all_rows=all_rows)
    print_lines([f"The atlas is in {folder}. Check it: axplore verify {folder}"])
    if page is not None:
        print_lines([f"See it: {page}"])


@app.command()
@options_of(
    Changes,
    default="as before",
    objective="New objective.",
    assume="What is assumed from now on; `none` for nothing. All draws are kept.",
    max_steps="Take at most this many steps in the whole run; a limit that has ended the run is removed.",
    max_seconds="Begin no step after this many seconds from now.",
    workers="New number of worker processes; 0 for none.",
    ray="New Ray cluster.",
)
def resume(
    run: RunFolder,
    asked: dict[str, Any],
    world: Annotated[
        str | None,
        typer.Option(metavar="WORLD", help="The same world again, where the run does not keep its whole address."),
    ] = None,
    settings: Settings = None,
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
           failure that δ allows for has occurred; or the bound that the run was asked about does not hold
      2    an argument is wrong, the run is damaged or in use, or a file cannot be written
      3    some states are open, as when the step limit came first; what is proven so far is printed and saved
      4    done, but in doubt: the doctor found something, or steps of the system failed
      130  interrupted by Ctrl-C or SIGTERM; what is proven so far is printed and saved
    """  # noqa: D301
    from axplore.resuming import resumed

    parameters = parsed(settings) if settings else None
    changes = Changes(run, world, world_parameters=parameters, **asked, progress=True)
    ended = with_consent(
        trust,
        lambda trust: explored_or_interrupted(
            lambda on_round, on_end: resumed(replace(changes, trust=trust, on_round=on_round), on_end=on_end)
        ),
    )
    raise typer.Exit(_present(*ended, run, None, all_rows=all_rows, as_json=as_json))


def fresh_folder(runs: Path, world: str) -> Path:
    """Returns the first of `<world>-1`, `<world>-2`, ... that does not exist."""
    name = re.sub(r"[^\w.-]+", "-", world)
    number = 1
    while (runs / f"{name}-{number}").exists():
        number += 1
    return runs / f"{name}-{number}"


def explored_or_interrupted(exploring: Callable[[Observer, Ended], Atlas]) -> tuple[Atlas, History]:
    """Returns the atlas and the history of a run, as they were when it was interrupted if it was."""
    from axplore.records.run import StopReason

    ends: list[tuple[Atlas, History]] = []
    try:
        with interruption() as interrupted:

            def look(report: RoundReport) -> StopReason | None:
                interrupted.waits = report.state.stop is None
                if interrupted.pressed and not interrupted.waits:
                    raise KeyboardInterrupt
                return StopReason.INTERRUPTED if interrupted.pressed else None

            exploring(look, lambda atlas, read: ends.append((atlas, _history(read))))
    except Interrupted:
        if not ends:
            raise
    return ends[-1]


def _history(read: Callable[[], History]) -> History:
    """Returns the history of a run, empty if its log is damaged: the result of the run is valid without it."""
    from axplore.runs.history import History

    try:
        return read()
    except DamagedFileError as error:
        notify(f"axplore: warning: the page of the run is without its history: {error}. The result is not affected.")
        return History()


def _names(describe: str | None, action_names: str | None) -> dict[str, Any]:
    """Returns the functions that name states and actions; imports their modules."""
    from axplore.worlds.catalogue import function_named

    given = {"describe": describe, "action_names": action_names}
    return {name: function_named(function) for name, function in given.items() if function is not None}


def _look(atlas: Atlas, history: History, names: dict[str, Any], *, pictures: bool) -> Appearance:
    """Returns how states and actions look, with pictures if the system can draw any."""
    from axplore.report.appearance import Appearance
    from axplore.report.page import own_pictures

    look = replace(Appearance.of_world(atlas.world), **names)
    if not pictures:
        return look
    try:
        # The command names the world, so there is no other consent to ask for.
        return replace(look, render=own_pictures(atlas, history, trust=True).get)
    except Exception:  # whatever a system may raise that cannot draw; a page needs no pictures
        return look


def _named_rows(atlas: Atlas, name_of: Callable[[Any], str] | None) -> list[tuple[str, ...]]:
    """Returns the rows of the table of states; a function that fails to name them is only a warning."""
    from axplore.atlas.state_report import rows_of

    try:
        return rows_of(atlas, name_of or readable)
    except Exception as error:
        notify(f"axplore: warning: states are shown by their labels: {error or type(error).__name__}.")
        return rows_of(atlas)


def _present(
    atlas: Atlas,
    history: History,
    folder: Path,
    look: Appearance | None,
    name_of: Callable[[Any], str] | None = None,
    *,
    all_rows: bool,
    as_json: bool,
) -> int:
    """Writes the page of a run, prints its atlas and returns the exit code."""
    page = write_page(atlas, history, folder, look)
    if as_json:
        print_json({**atlas_as_json(atlas), "run": str(folder), "report": None if page is None else str(page)})
    else:
        _print_atlas(atlas, folder, page, history.mishaps, _named_rows(atlas, name_of), all_rows=all_rows)
    return int(exit_code_of(atlas))


def exit_code_of(atlas: Atlas) -> ExitCode:
    """Returns what a command that explores exits with: as the verdict says, and 1 if a bound asked about is not met."""
    from axplore.target import Objective

    code = atlas.verdict.exit_code
    if code is not ExitCode.DONE or atlas.objective is not Objective.QUESTION:
        return code
    return ExitCode.REFUTED if atlas.properties[0].holds is False else code


def write_page(atlas: Atlas, history: History, folder: Path, look: Appearance | None) -> Path | None:
    """Writes the page of a run and returns its path.

    Failures are only warnings: the result of the run is valid without its page.
    """
    from axplore.report.page import NAME, write_page

    try:
        return write_page(atlas, history, folder, folder / NAME, look)
    except Exception as error:
        notify(
            f"axplore: warning: the page of the run was not written: {error or type(error).__name__}. The result of "
            f"the run is not affected; `axplore report {folder}` tries again."
        )
        return None


def _print_atlas(
    atlas: Atlas, folder: Path, page: Path | None, mishaps: str, rows: list[tuple[str, ...]], *, all_rows: bool
) -> None:
    from axplore.atlas.state_report import headings_of, summary_of, title_of
    from axplore.report.text import what_next
    from axplore.runs.events import NAME as EVENTS
    from axplore.target import Objective

    print_lines(summary_of(atlas))
    words = ""
    if atlas.objective is not Objective.QUESTION:  # of single states a question says nothing
        print_table(title_of(atlas), headings_of(atlas), rows, all_rows=all_rows)
        words = " What the headings mean: axplore words."
    hints = [f"{said}: {command}" for said, command in what_next(atlas, folder)]
    print_lines([" ".join((f"The run is in {folder}.{words}", *hints))])
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
        "steps_examining": atlas.run.examining,
        "steps_playing": atlas.run.playing,
        "steps_in_all": atlas.run.steps_in_all,
        "rounds": atlas.rounds,
        "stop": atlas.stop.name,
        "proven": atlas.proven,
        "complete": atlas.complete,
        "verdict": atlas.verdict.as_json(),
        "states": [row.as_json() for row in rows if row.in_atlas],
        "frontier": [row.as_json() for row in rows if not row.in_atlas],
        "unseen_lower": atlas.unseen_lower,
    }
