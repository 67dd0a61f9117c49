"""The command `compare`: runs side by side, and explorers over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from axplore.cli.console import (
    CLAIM_FAILED,
    DONE,
    INTERRUPTED,
    AsJson,
    Ray,
    Settings,
    SweepWorkers,
    app,
    notify,
    parsed,
    print_json,
    print_lines,
    print_table,
    progress_bar,
    sweep_workers,
)
from axplore.cli.options import options_of
from axplore.errors import InvalidSettingError
from axplore.explorers.registry import EXPLORERS
from axplore.request import Request

if TYPE_CHECKING:
    from axplore.atlas import Atlas
    from axplore.comparison.runs import ComparedRun
    from axplore.comparison.seeds import SeedRun
    from axplore.truth import ObjectiveCheck


HeadedRows: TypeAlias = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings and rows."""

LEGEND: Final = (
    "seconds: elapsed time; processor: computing time. missing: controllable states that were not found. AX_L, AX*: "
    "whether the answer keeps the objective on the true model, where that is known (built-in worlds and Gymnasium's "
    "toy environments). ±: 95 % confidence interval of the mean."
)
"""What the headings of both tables mean."""


@app.command()
@options_of(Request, without=["explorer", "seed", "workers", "ray", "memory"], radius="Radius L; needed with --world.")
def compare(
    asked: dict[str, Any],
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Folders of runs.", show_default=False)
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(
            metavar="WORLD", help="Explore this world first, with every explorer and seed.", show_default="no"
        ),
    ] = None,
    explorer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(EXPLORERS)}; may be repeated.", show_default=False),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Seeds 0 to N-1.", show_default="20")] = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the runs, as DIR/NAME-SEED.", show_default=False)
    ] = None,
    workers: SweepWorkers = None,
    ray: Ray = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for figures as PNG, SVG and PDF.", show_default="no figures"),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts and tables, too.", show_default="none")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: steps, time, and correctness where the truth is known.

    With --world, the runs are made first: one for each explorer and seed, several at a time, each as `axplore explore`
    would make it without workers. After an interruption, the same command makes the missing runs.

    \b
    Examples:
      axplore compare runs/confusing-chain-1 runs/confusing-chain-2 --page compared.html
      axplore compare --world gym:FrozenLake-v1 --radius 4 --epsilon 1 --explorer certified \\
        --explorer disco-experiment --seeds 20 --out runs/lake
    \b
    Exit codes:
      0    compared
      1    some run failed; the others are compared
      2    an argument is wrong, or a run is missing or damaged
      130  interrupted
    """  # noqa: D301
    from axplore.comparison.runs import compared

    request = _request(world, asked, parsed(settings))
    made: list[SeedRun] = []
    if request is None:
        if any(option is not None for option in (explorer, out, seeds, workers, ray)):
            raise InvalidSettingError("options of an exploration need --world; without it, give only folders of runs")
        if not runs:
            raise InvalidSettingError("there is nothing to compare: give folders of runs, or a --world to explore")
    else:
        try:
            made = _explored(request, explorer, out, 20 if seeds is None else seeds, workers, ray)
        except KeyboardInterrupt:
            notify("Interrupted; the same command resumes it.")
            raise typer.Exit(INTERRUPTED) from None
    failed = [run for run in made if run.failure is not None]
    chosen = compared([*(runs or ()), *(run.folder for run in made if run.failure is None)])
    drawn = [] if figures is None or not chosen else _drawn(chosen, figures)
    if page is not None:
        _write_page(page, chosen, failed)
    if as_json:
        print_json(comparison_as_json(chosen, failed, drawn))
    else:
        _print_comparison(chosen, failed, drawn)
        if page is not None:
            print_lines([f"See it: {page}"])
    raise typer.Exit(CLAIM_FAILED if failed else DONE)


def _request(world: str | None, asked: dict[str, Any], parameters: dict[str, str]) -> Request | None:
    """Returns what is to be explored; None if nothing is."""
    if world is None:
        if asked or parameters:
            raise InvalidSettingError("options of an exploration need --world; without it, give only folders of runs")
        return None
    if "radius" not in asked:
        raise InvalidSettingError("--world needs --radius as well")
    return Request(world, **asked, world_parameters=parameters)


def _explored(
    request: Request,
    explorers: Sequence[str] | None,
    out: Path | None,
    seeds: int,
    workers: int | None,
    ray: str | None,
) -> list[SeedRun]:
    """Makes the runs of a request, and shows a progress bar."""
    from axplore.comparison.seeds import explore_seeds

    if not explorers:
        raise InvalidSettingError("--world needs --explorer as well")
    if out is None:
        raise InvalidSettingError("--world needs --out as well")
    with progress_bar("exploring") as on_done:
        return explore_seeds(
            request, explorers, out, seeds=seeds, workers=sweep_workers(workers, ray), ray=ray, on_done=on_done
        )


def _drawn(runs: Sequence[ComparedRun], folder: Path) -> list[Path]:
    from axplore.comparison.runs import grouped
    from axplore.report.figures import write_figures

    return write_figures({name: [run.atlas for run in group] for name, group in grouped(runs).items()}, folder)


def _write_page(path: Path, runs: Sequence[ComparedRun], failed: Sequence[SeedRun]) -> None:
    from axplore.report.side_by_side import TextTable, write_comparison_page

    groups: dict[str, list[Atlas]] = {}
    for run in runs:
        groups.setdefault(_named(run, _differing(runs)), []).append(run.atlas)
    write_comparison_page(
        path,
        common=common_traits(runs),
        groups=groups,
        means=TextTable(*means_table(runs)),
        runs=TextTable(*runs_table(runs, failed), {str(run.folder): run.folder for run in runs}),
        legend=LEGEND,
        failed=len(failed),
    )


def comparison_as_json(
    runs: Sequence[ComparedRun], failed: Sequence[SeedRun], drawn: Sequence[Path] = ()
) -> dict[str, Any]:
    """Returns a comparison of runs as JSON values."""
    from axplore.comparison.runs import means_of

    return {
        "runs": [_run_as_json(run) for run in runs],
        "means": means_of(runs),
        "failed": [{"run": str(run.folder), "explorer": run.explorer, "why": run.failure} for run in failed],
        "figures": [str(path) for path in drawn],
    }


def _run_as_json(run: ComparedRun) -> dict[str, Any]:
    from axplore.labels import finite
    from axplore.target import Objective

    atlas, history = run.atlas, run.history
    return {
        "run": str(run.folder),
        "seed": None if history.manifest is None else history.manifest.request.seed,
        "world": atlas.world,
        "explorer": atlas.explorer,
        "radius": atlas.target.radius,
        "epsilon": atlas.target.epsilon,
        "states": len(atlas.states),
        "steps": atlas.steps,
        "stop": atlas.stop.name,
        "seconds": history.seconds,
        "processor_seconds": history.processor_seconds,
        "missing": len(run.checks[Objective.OPTIMAL].missing) if run.checks else None,
        "objectives": {
            objective.value: {"holds": check.holds, "excess": finite(check.excess)}
            for objective, check in run.checks.items()
        },
    }


def _print_comparison(runs: Sequence[ComparedRun], failed: Sequence[SeedRun], drawn: Sequence[Path]) -> None:
    from axplore.comparison.runs import grouped

    common = common_traits(runs)
    print_table(f"Runs compared: {common}" if common else "Runs compared", *runs_table(runs, failed))
    if len(grouped(runs)) < len(runs):
        print_table("Means over seeds", *means_table(runs))
    print_lines([LEGEND])
    if failed:
        print_lines([f"Failed runs: {len(failed)}. They are left out of the means; the same command tries them again."])
    if drawn:
        print_lines([f"Figures are in {drawn[0].parent}."])


def common_traits(runs: Sequence[ComparedRun]) -> str:
    """Returns what all runs have in common, apart from the explorer."""
    differing = _differing(runs)
    return ", ".join(trait for index, trait in enumerate(runs[0].traits) if index not in differing) if runs else ""


def runs_table(runs: Sequence[ComparedRun], failed: Sequence[SeedRun] = ()) -> HeadedRows:
    """Returns a row for each run, without what all runs have in common; those of failed runs say why."""
    from axplore.target import Objective

    headings = ("run", "what", "states", "steps", "seconds", "processor", "missing", "AX_L", "AX*")
    rows: list[tuple[str, ...]] = []
    differing = _differing(runs)
    for run in runs:
        atlas, history = run.atlas, run.history
        check = run.checks.get(Objective.OPTIMAL)
        rows.append(
            (
                str(run.folder),
                _named(run, differing),
                str(len(atlas.states)),
                f"{atlas.steps:,}" + ("" if atlas.stop.by_own_rule else " (cut short)"),
                _shown(history.seconds),
                _shown(history.processor_seconds),
                "unknown" if check is None else str(len(check.missing)),
                _verdict(run.checks.get(Objective.WITHIN_RADIUS)),
                _verdict(check),
            )
        )
    nothing = ("–",) * (len(headings) - 3)
    rows += [(str(run.folder), f"{run.explorer}: {run.failure}", "failed", *nothing) for run in failed]
    return headings, rows


def means_table(runs: Sequence[ComparedRun]) -> HeadedRows:
    """Returns the states and steps of each group with their spread, and how many of its runs are correct."""
    from axplore.comparison.runs import means_of

    rows, differing = [], _differing(runs)
    names = {run.group: _named(run, differing) for run in runs}
    for row in means_of(runs):
        right = ("unknown" if number is None else f"{number} of {row['runs']}" for number in row["right"].values())
        spread = "" if row["half_width"] is None else f" ± {row['half_width']:,.0f}"
        cells = (names[row["what"]], str(row["runs"]), _range(row["states"]), f"{row['mean_steps']:,.0f}{spread}")
        rows.append((*cells, _range(row["steps"]), str(row["cut_short"]), *right))
    return ("what", "runs", "states", "mean steps", "fewest to most", "cut short", "AX_L", "AX*"), rows


def _range(numbers: tuple[int, int]) -> str:
    fewest, most = numbers
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def _differing(runs: Sequence[ComparedRun]) -> list[int]:
    """Returns the indices of the traits in which runs differ, always including the explorer."""
    columns = zip(*(run.traits for run in runs), strict=True)
    return [index for index, values in enumerate(columns) if index == 1 or len({*values}) > 1]


def _named(run: ComparedRun, differing: Sequence[int]) -> str:
    return ", ".join(run.traits[index] for index in differing)


def _shown(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.1f}"


def _verdict(check: ObjectiveCheck | None) -> str:
    if check is None:
        return "unknown"
    if check.holds:
        return "holds"
    return "incomplete" if check.missing else f"exceeded by {check.excess:.3g}"
