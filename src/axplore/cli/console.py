"""The commands for people and scripts: progress, tables, JSON, exit codes."""

from __future__ import annotations

import json
import math
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from axplore.atlas import Atlas, StateReport
from axplore.atlas.table import headings_of, rows_of, summary_of, title_of
from axplore.errors import InvalidInputError
from axplore.explorers.base import RoundReport, StopReason
from axplore.labels import encode_label

if TYPE_CHECKING:
    from axplore.experiments.comparison import ComparedRun, FailedRun

RUNS: Final = Path("runs")
"""Where runs go that no other place was given for."""

DONE, CLAIM_FAILED, STOPPED_BY_LIMIT, INTERRUPTED = 0, 1, 3, 130
"""Exit codes; 2 is for errors."""

SHORT: Final = 12
"""A column of a table is short if it has at most so many letters."""

EXIT_CODES: Final = {
    StopReason.CONTRADICTED: CLAIM_FAILED,
    StopReason.STEP_LIMIT: STOPPED_BY_LIMIT,
    StopReason.INTERRUPTED: INTERRUPTED,
}


def explore_on_console(world: str, out: Path | None, *, as_json: bool, **settings: Any) -> int:
    """Explores, prints the atlas and gives the exit code.

    Args:
        world: a name, as `explore` takes it.
        out: the folder of the run; a new one in `RUNS` when not given.
        as_json: print JSON instead of a table.
        settings: of `explore`.
    """
    from axplore.exploring import explore

    folder = out or fresh_folder(RUNS, world)
    with interruption() as interrupted:
        atlas = explore(world, run=folder, progress=True, on_round=_ends_if(interrupted), **settings)
    return _told(atlas, folder, as_json=as_json)


def resume_on_console(folder: Path, *, as_json: bool, **settings: Any) -> int:
    """Takes up a run, prints the atlas and gives the exit code.

    Args:
        folder: of the run.
        as_json: print JSON instead of a table.
        settings: of `resume`.
    """
    from axplore.exploring import resume

    with interruption() as interrupted:
        atlas = resume(folder, progress=True, on_round=_ends_if(interrupted), **settings)
    return _told(atlas, folder, as_json=as_json)


def _ends_if(interrupted: Callable[[], bool]) -> Callable[[RoundReport], StopReason | None]:
    return lambda _: StopReason.INTERRUPTED if interrupted() else None


def _told(atlas: Atlas, folder: Path, *, as_json: bool) -> int:
    """Writes the report of a run, prints its atlas and gives the exit code."""
    from axplore.report import write_report
    from axplore.runs.events import NAME as EVENTS
    from axplore.runs.history import history_of

    report = write_report(folder)
    if as_json:
        print_json({**atlas_as_json(atlas), "run": str(folder), "report": str(report)})
    else:
        _print_atlas(atlas, folder)
        mishaps = history_of(folder).mishaps
        if mishaps:
            print_lines([f"What went wrong was made good: {mishaps}. It is all in {folder / EVENTS}."])
        print_lines([f"See it: {report}"])
    return EXIT_CODES.get(atlas.stop, DONE)


def report_on_console(folder: Path, out: Path | None) -> int:
    """Writes the report of a run and names it."""
    from axplore.report import write_report

    print_lines([str(write_report(folder, out))])
    return DONE


def watch_on_console(folder: Path, port: int) -> int:
    """Serves the page of a run until Ctrl-C."""
    from axplore.report.watching import WatchServer

    with WatchServer(folder, port) as server:
        print_lines([f"Watching {folder} at {server.address} on this machine only. Ctrl-C ends it, and not the run."])
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return DONE


def compare_on_console(
    folders: Sequence[Path],
    sweep: Mapping[str, Any] | None,
    figures: Path | None,
    *,
    as_json: bool,
) -> int:
    """Prints runs side by side, and draws figures of them if a folder is given; gives the exit code.

    Args:
        folders: of runs.
        sweep: runs to make first, and to compare as well: arguments of `explore_seeds`.
        figures: where to draw them.
        as_json: print JSON instead of tables.
    """
    from axplore.experiments.comparison import FailedRun, compared

    made, failed = list(folders), []
    if sweep is not None:
        from axplore.cli.study_console import progress_bar
        from axplore.experiments.seeds import explore_seeds

        try:
            with progress_bar("exploring") as on_done:
                runs = explore_seeds(**sweep, on_done=on_done)
        except KeyboardInterrupt:
            Console(stderr=True).print("Interrupted; the same command goes on.", highlight=False)
            return INTERRUPTED
        made += [run.folder for run in runs if run.failure is None]
        failed = [FailedRun(run.folder, run.explorer, run.failure) for run in runs if run.failure is not None]
    _print_comparison(compared(made), failed, figures, as_json=as_json)
    return CLAIM_FAILED if failed else DONE


def _print_comparison(
    runs: Sequence[ComparedRun], failed: Sequence[FailedRun], figures: Path | None, *, as_json: bool
) -> None:
    from axplore.experiments.comparison import as_json as runs_as_json
    from axplore.experiments.comparison import common_traits, grouped, means_of, means_table, table_of

    drawn: list[Path] = []
    if figures is not None and runs:
        from axplore.experiments.comparison_figures import write_figures

        drawn = write_figures(runs, figures)
    if as_json:
        failures = [{"run": str(run.folder), "what": run.what, "why": run.why} for run in failed]
        print_json(
            {
                "runs": runs_as_json(runs),
                "means": means_of(runs),
                "failed": failures,
                "figures": [str(path) for path in drawn],
            }
        )
        return
    common = common_traits(runs)
    print_table(f"Runs compared: {common}" if common else "Runs compared", *table_of(runs, failed))
    if len(grouped(runs)) < len(runs):
        print_table("Means over seeds", *means_table(runs))
    print_lines(
        [
            "seconds: from start to end; processor: of computing. missing: controllable states that were not found. "
            "AX_L, AX*: whether the answer keeps the objective on the true model, where that is known: on the built-in "
            "worlds and Gymnasium's toy environments. ±: 95 % confidence interval of the mean."
        ]
    )
    if failed:
        print_lines([f"Failed runs: {len(failed)}. They have no part in the means; the same command tries them again."])
    if drawn:
        print_lines([f"Figures are in {figures}."])


def verify_on_console(folder: Path, *, as_json: bool) -> int:
    """Verifies a run, prints the verdict and gives the exit code."""
    from axplore.atlas.verification import verify

    verdict = verify(folder)
    if as_json:
        claims = [
            {"kind": claim.kind.value, "subject": claim.subject, "holds": claim.holds, "why": claim.why}
            for claim in verdict.claims
        ]
        print_json({"run": str(folder), "holds": verdict.holds, "complete": verdict.complete, "claims": claims})
    else:
        print_lines(str(verdict).splitlines())
    return DONE if verdict.holds else CLAIM_FAILED


def doctor_on_console(world: str, *, as_json: bool, seed: int, world_parameters: Any, **settings: Any) -> int:
    """Examines a world, prints what was found and gives the exit code.

    Args:
        world: a name, as `explore` takes it.
        as_json: print JSON instead of text.
        seed: of the noise and of the examination.
        world_parameters: of the world.
        settings: of `examine`.
    """
    from axplore.errors import UnfixedStartError
    from axplore.exploring import world_from
    from axplore.worlds.diagnosis import Diagnosis, Finding, Issue
    from axplore.worlds.doctor import FALSE_ALARM, examine_world
    from axplore.worlds.stepped import SteppedWorld

    try:
        system, _ = world_from(world, seed, world_parameters)
        if not isinstance(system, SteppedWorld):
            raise InvalidInputError(f"{world} is a known model that is simulated: there is nothing to examine")
        with system:
            diagnosis = examine_world(system, seed=seed, **settings)
    except UnfixedStartError as error:  # a world refuses it before it can be examined
        seen = str(error).partition(", so that")[0].capitalize()
        finding = Finding(Issue.START_NOT_FIXED, f"{seen}.")
        diagnosis = Diagnosis((finding,), 0, 0, 0, 0.0, 0, FALSE_ALARM)
    if as_json:
        print_json({"world": world, **diagnosis.as_json()})
    else:
        print_lines(str(diagnosis).splitlines())
    return DONE if diagnosis.healthy else CLAIM_FAILED


def validate_on_console(
    folder: Path, world: str | None, *, as_json: bool, seed: int, world_parameters: Any, **settings: Any
) -> int:
    """Tries the policies of a run on a world, prints how they compare with the bounds and gives the exit code.

    Args:
        folder: of the run.
        world: a name, as `explore` takes it; the one that the atlas names when not given.
        as_json: print JSON instead of a table.
        seed: of the noise.
        world_parameters: of the world.
        settings: of `Atlas.validate`.
    """
    from axplore.atlas.validation import HEADINGS, validation_as_json
    from axplore.exploring import world_from

    atlas = Atlas.load(folder)
    system, name = world_from(world or atlas.world, seed, world_parameters)
    with ExitStack() as closing:
        if hasattr(system, "close"):
            closing.callback(system.close)
        validation = atlas.validate(system, **settings)
    if as_json:
        print_json({"run": str(folder), "world": name, **validation_as_json(validation)})
    else:
        print_table(f"{folder} tried on {name}", HEADINGS, validation.rows())
        print_lines([validation.summary()])
    return DONE if validation.holds else CLAIM_FAILED


def fresh_folder(runs: Path, world: str) -> Path:
    """The first of `<world>-1`, `<world>-2`, ... that does not exist."""
    name = re.sub(r"[^\w.-]+", "-", world)
    number = 1
    while (runs / f"{name}-{number}").exists():
        number += 1
    return runs / f"{name}-{number}"


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether Ctrl-C was pressed. Pressed again, it interrupts at once."""
    pressed = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        Console(stderr=True).print("Ending with what is known; Ctrl-C again ends at once.", highlight=False)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def atlas_as_json(atlas: Atlas) -> dict[str, Any]:
    """What the atlas says, for machines; labels are written as in its file."""
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
        "states": [
            {**_standing_as_json(atlas.status(state)), "found_at": found_at}
            for state, found_at in zip(atlas.states, atlas.found_at.tolist(), strict=True)
        ],
        "left_out": [_standing_as_json(standing) for standing in atlas.left_out],
        "unseen_lower": atlas.unseen_lower,
    }


def print_json(document: dict[str, Any]) -> None:
    """Prints JSON as it is, however wide the terminal."""
    print_lines([json.dumps(document, indent=2, allow_nan=False)])


def print_table(title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Prints a table under its title."""
    cells = zip(headings, *rows, strict=True)
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in cells]
    # Nothing is cut: short columns keep their width, and long ones are folded where the terminal is narrow.
    columns = [
        Column(heading, overflow="fold", no_wrap=width <= SHORT)
        for heading, width in zip(headings, widths, strict=True)
    ]
    console = Console()
    is_narrow = sum(widths) + 3 * len(widths) + 1 > console.width
    table = Table(*columns, box=box.SIMPLE_HEAD, padding=0) if is_narrow else Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))  # a label may look like markup
    print_lines([title])
    console.print(table)


def print_lines(lines: Sequence[str]) -> None:
    """Prints lines as they are."""
    for line in lines:
        Console().print(Text(line), soft_wrap=True)


def _print_atlas(atlas: Atlas, folder: Path) -> None:
    print_table(title_of(atlas), headings_of(atlas), rows_of(atlas))
    print_lines(summary_of(atlas))
    hints = [f"The run is in {folder}."]
    if atlas.proven:
        hints.append(f"Check it: axplore verify {folder}")
    if atlas.stop is StopReason.CONTRADICTED:
        hints.append(f"Look for what changes: axplore doctor {shlex.quote(atlas.world)}")
    elif not atlas.stop.complete:
        hints.append(f"Go on: axplore resume {folder}")
    print_lines([" ".join(hints)])


def _standing_as_json(standing: StateReport) -> dict[str, Any]:
    bounds = standing.bounds
    return {
        "state": encode_label(standing.state),
        "status": standing.status.value,
        "lower": _finite(bounds.lower),
        "upper": _finite(bounds.upper),
        "regret": _finite(bounds.regret),
        "reason": standing.reason,
    }


def _finite(steps: float) -> float | None:
    return steps if math.isfinite(steps) else None
