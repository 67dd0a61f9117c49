"""`reproduce` for people: a progress bar while it runs, and the tables when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from axplore.experiments.reproduce import reproduce
from axplore.experiments.tables import Table


def reproduce_on_console(names: Sequence[str], out: Path, *, runs: int | None, jobs: int | None) -> None:
    """Calls `reproduce` with a progress bar and prints its tables; arguments as there."""
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("running experiments", total=None)
        tables = reproduce(
            names,
            out,
            runs=runs,
            jobs=jobs,
            on_done=lambda done, total: progress.update(task, completed=done, total=total),
        )
    for table in tables:
        _print(table, console)
    console.print(f"Runs, tables and figures are in {out}.", highlight=False)


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
