"""`reproduce` and `coverage` for people: a progress bar while they run, and the tables when they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from axplore.experiments.coverage import coverage, promise_tables
from axplore.experiments.reproduce import reproduce
from axplore.experiments.result_tables import Table


def reproduce_on_console(names: Sequence[str], out: Path, **settings: Any) -> None:
    """Calls `reproduce` with a progress bar and prints its tables; arguments as there."""
    console = Console()
    with progress_bar("running experiments") as on_done:
        tables = reproduce(names, out, on_done=on_done, **settings)
    for table in tables:
        _print(table, console)
    console.print(f"Runs, tables and figures are in {out}.", highlight=False)


def coverage_on_console(out: Path, **settings: Any) -> None:
    """Calls `coverage` with a progress bar and prints its tables; arguments as there."""
    console = Console()
    with progress_bar("exploring models") as on_done:
        records = coverage(out, on_done=on_done, **settings)
    for table in promise_tables(records):
        _print(table, console)
    console.print(
        "95 %: confidence interval of the probability to break a promise. outside: the true model left the confidence "
        "region, which δ allows. given up: the step limit came first.",
        highlight=False,
    )
    console.print(f"Trials and table are in {out}.", highlight=False)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error; to be called with the finished and the total number."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print(table: Table, console: Console) -> None:
    lines = table.lines or table.rows
    printed = RichTable(*(name.replace("_", " ") for name in lines[0]), title=table.title)
    for row in lines:
        printed.add_row(*(_in_words(value) for value in row.values()))
    console.print(printed)


def _in_words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
