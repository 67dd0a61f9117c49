"""Commands that make many runs, or look at many: `compare`, `reproduce`, `coverage`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axplore.cli.console import (
    CLAIM_FAILED,
    DONE,
    INTERRUPTED,
    notify,
    print_json,
    print_lines,
    print_table,
    progress_bar,
)
from axplore.cli.options import EXPLORERS, AsJson, Epsilon, Ray, Settings, StatesBound, SweepWorkers, app, parsed
from axplore.errors import InvalidSettingError

if TYPE_CHECKING:
    from axplore.experiments.comparison import ComparedRun, FailedRun
    from axplore.experiments.result_tables import Table
    from axplore.experiments.seeds import Question, SeedRun


@app.command()
def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Folders of runs.", show_default=False)
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(
            metavar="WORLD", help="Explore this world first, with every explorer and seed.", show_default="no"
        ),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Expected steps within which a state counts (L).", show_default=False)
    ] = None,
    explorer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Of {', '.join(EXPLORERS)}; may be repeated.", show_default=False),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Seeds 0 to N-1.", show_default="20")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Steps by which a policy may miss its bound (ε).", show_default="0.1")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability with which the answer may be wrong (δ).", show_default="0.1")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="End each run after so many steps.", show_default="no limit")
    ] = None,
    states_bound: StatesBound = None,
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
    as_json: AsJson = False,
) -> None:
    """Print runs side by side: steps, time, and whether they are right where the truth is known.

    With --world, the runs are made first: one of each explorer with each seed, several at a time, each as `axplore
    explore` would make it without workers. The same command goes on after an interruption, and makes what is missing.

    \b
    Examples:
      axplore compare runs/confusing-chain-1 runs/confusing-chain-2 --figures figures
      axplore compare --world gym:FrozenLake-v1 --radius 4 --epsilon 1 --explorer certified \\
        --explorer disco-experiment --seeds 20 --out runs/lake
    \b
    Exit codes:
      0    compared
      1    some run failed; the others are compared
      2    something given is wrong, or a run is missing or damaged
      130  interrupted
    """  # noqa: D301
    from axplore.experiments.comparison import FailedRun, compared

    asked: dict[str, Any] = {
        "radius": radius,
        "epsilon": epsilon,
        "delta": delta,
        "max_steps": max_steps,
        "states_bound": states_bound,
        "world_parameters": parsed(settings) or None,
    }
    question = _question(world, {name: value for name, value in asked.items() if value is not None})
    made: list[SeedRun] = []
    if question is None:
        if any(option is not None for option in (explorer, out, seeds, workers, ray)):
            raise InvalidSettingError("what is to be explored is missing: give a --world, or folders of runs alone")
        if not runs:
            raise InvalidSettingError("there is nothing to compare: give folders of runs, or a --world to explore")
    else:
        try:
            made = _explored(question, explorer, out, 20 if seeds is None else seeds, workers, ray)
        except KeyboardInterrupt:
            notify("Interrupted; the same command resumes it.")
            raise typer.Exit(INTERRUPTED) from None
    failed = [FailedRun(run.folder, run.explorer, run.failure) for run in made if run.failure is not None]
    chosen = compared([*(runs or ()), *(run.folder for run in made if run.failure is None)])
    drawn = [] if figures is None or not chosen else _drawn(chosen, figures)
    if as_json:
        print_json(_comparison_as_json(chosen, failed, drawn))
    else:
        _print_comparison(chosen, failed, drawn)
    raise typer.Exit(CLAIM_FAILED if failed else DONE)


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="table2, table3, fig3, lock, fig-lock or all; or theory, which takes 10^10 steps, not among all.",
            show_default="all",
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs per row.", show_default="the paper's: 50 on the chain, 20 on the lock")
    ] = None,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for runs, tables and figures.")] = Path("results"),
) -> None:
    """Run the paper's experiments and print our numbers beside the published ones.

    Called again after an interruption, it goes on with what is in the folder.

    \b
    Examples:
      axplore reproduce lock
      axplore reproduce all --workers 8
      axplore reproduce all --ray auto
    """  # noqa: D301
    from axplore.experiments.reproduce import reproduce as reproduce_paper

    with progress_bar("running experiments") as on_done:
        tables = reproduce_paper(
            what or ["all"], out, runs=runs, workers=_sweep_workers(workers, ray), ray=ray, on_done=on_done
        )
    for table in tables:
        _print_results(table)
    print_lines([f"Runs, tables and figures are in {out}."])


@app.command()
def coverage(
    models: Annotated[int, typer.Option(help="Random models for each objective and delta.")] = 2000,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="[optimal|within-radius]", help="What is promised; may be repeated.", show_default="both"),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="Probability of failure that is allowed (δ); may be repeated.", show_default="0.1 and 0.5"),
    ] = None,
    epsilon: Epsilon = 0.5,
    max_steps: Annotated[int, typer.Option(help="Give a model up after so many steps, and say so.")] = 2_000_000,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for trials and table.")] = Path("results"),
) -> None:
    """Test the guarantee: explore random models, compare with the truth, and count broken promises.

    Called again after an interruption, it goes on with what is in the folder.

    \b
    Example:
      axplore coverage --models 100 --delta 0.1 --workers 8
    """  # noqa: D301
    from axplore.experiments.coverage import DELTAS, OBJECTIVES, promise_tables
    from axplore.experiments.coverage import coverage as coverage_of

    with progress_bar("exploring models") as on_done:
        records = coverage_of(
            out,
            models=models,
            objectives=objective or tuple(OBJECTIVES),
            deltas=delta or DELTAS,
            epsilon=epsilon,
            max_steps=max_steps,
            workers=_sweep_workers(workers, ray),
            ray=ray,
            on_done=on_done,
        )
    for table in promise_tables(records):
        _print_results(table)
    print_lines(
        [
            "95 %: confidence interval of the probability to break a promise. outside: the true model left the "
            "confidence region, which δ allows. given up: the step limit came first.",
            f"Trials and table are in {out}.",
        ]
    )


def _question(world: str | None, asked: dict[str, Any]) -> Question | None:
    """What is to be explored; None if nothing is."""
    if world is None:
        if asked:
            raise InvalidSettingError("what is to be explored is missing: give a --world, or folders of runs alone")
        return None
    if "radius" not in asked:
        raise InvalidSettingError("a --world to explore needs --radius as well")
    from axplore.experiments.seeds import Question

    return Question(world=world, **asked)


def _explored(
    question: Question,
    explorers: Sequence[str] | None,
    out: Path | None,
    seeds: int,
    workers: int | None,
    ray: str | None,
) -> list[SeedRun]:
    """The runs of a question, made while a progress bar is shown."""
    from axplore.experiments.seeds import explore_seeds

    if not explorers:
        raise InvalidSettingError("a --world to explore needs --explorer as well")
    if out is None:
        raise InvalidSettingError("a --world to explore needs --out as well")
    with progress_bar("exploring") as on_done:
        return explore_seeds(
            question, explorers, out, seeds=seeds, workers=_sweep_workers(workers, ray), ray=ray, on_done=on_done
        )


def _sweep_workers(workers: int | None, ray: str | None) -> int | None:
    """Of runs that have nothing to do with each other, each processor makes one; a cluster has its own number."""
    return os.cpu_count() if workers is None and ray is None else workers


def _drawn(runs: Sequence[ComparedRun], folder: Path) -> list[Path]:
    from axplore.experiments.comparison_figures import write_figures

    return write_figures(runs, folder)


def _comparison_as_json(
    runs: Sequence[ComparedRun], failed: Sequence[FailedRun], drawn: Sequence[Path]
) -> dict[str, Any]:
    from axplore.experiments.comparison import as_json, means_of

    return {
        "runs": as_json(runs),
        "means": means_of(runs),
        "failed": [{"run": str(run.folder), "what": run.what, "why": run.why} for run in failed],
        "figures": [str(path) for path in drawn],
    }


def _print_comparison(runs: Sequence[ComparedRun], failed: Sequence[FailedRun], drawn: Sequence[Path]) -> None:
    from axplore.experiments.comparison import common_traits, grouped, means_table, table_of

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
        print_lines([f"Figures are in {drawn[0].parent}."])


def _print_results(table: Table) -> None:
    lines = table.lines or table.rows
    headings = [name.replace("_", " ") for name in lines[0]]
    print_table(table.title, headings, [[_in_words(value) for value in row.values()] for row in lines])


def _in_words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
