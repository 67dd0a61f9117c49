"""Commands that make many runs: `reproduce`, `coverage`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axplore.cli.console import print_lines, print_table, progress_bar
from axplore.cli.options import Epsilon, Ray, SweepWorkers, app, sweep_workers

if TYPE_CHECKING:
    from axplore.experiments.result_tables import Table


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="table2, table3, fig3, lock, fig-lock or all; or, not among all, certified, limits, or theory, which "
            "takes 10^10 steps.",
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

    After an interruption, the same command resumes with what is in the folder.

    \b
    Examples:
      axplore reproduce lock
      axplore reproduce all --workers 8
      axplore reproduce all --ray auto
    """  # noqa: D301
    from axplore.experiments.reproduce import reproduce as reproduce_paper

    with progress_bar("running experiments") as on_done:
        tables = reproduce_paper(
            what or ["all"], out, runs=runs, workers=sweep_workers(workers, ray), ray=ray, on_done=on_done
        )
    for table in tables:
        _print_results(table)
    print_lines([f"Runs, tables and figures are in {out}."])


@app.command()
def coverage(
    models: Annotated[int, typer.Option(help="Random models for each objective and delta.")] = 2000,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="[optimal|within-radius]", help="Objective; may be repeated.", show_default="both"),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="Probability δ of failure that is allowed; may be repeated.", show_default="0.1 and 0.5"),
    ] = None,
    epsilon: Epsilon = 0.5,
    max_steps: Annotated[int, typer.Option(help="Give up on a model after this many steps.")] = 2_000_000,
    workers: SweepWorkers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for trials and table.")] = Path("results"),
) -> None:
    """Test the guarantee: explore random models, compare with the truth, and count broken promises.

    After an interruption, the same command resumes with what is in the folder.

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
            workers=sweep_workers(workers, ray),
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
