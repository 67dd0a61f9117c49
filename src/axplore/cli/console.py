"""What all commands share: their common options, how they print, and how they end.

Text may be untrusted: a label, the answer of a program, a name in a file. Everything printed passes through
`printable`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, TypeVar

import typer

from axplore.assumptions import forms
from axplore.errors import ExitCode, InvalidSettingError, UntrustedFileError, printable

DONE, CLAIM_FAILED, ERROR = ExitCode.DONE, ExitCode.REFUTED, ExitCode.FAILED
INTERRUPTED = ExitCode.INTERRUPTED

SHORT: Final = 12
"""A column of a table is short if no line of it has more characters than this."""

MAX_ROWS: Final = 40
"""On a terminal, a table is shortened to this many rows."""

MAX_ALIKE: Final = 3
"""The number of times that warnings are shown that differ only in numbers."""


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines; on a terminal, long ones are wrapped between words."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in lines:
        text = printable(line)
        if console.is_terminal:
            text = textwrap.fill(text, console.width, break_long_words=False, break_on_hyphens=False)
        console.print(Text(text), soft_wrap=True)


def print_json(document: dict[str, Any]) -> None:
    """Prints JSON in ASCII, without wrapping."""
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(json.dumps(document, indent=2, allow_nan=False)), soft_wrap=True)


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, all_rows: bool = True) -> None:
    """Prints a table under its title; on a terminal, a long one is shortened unless all rows are asked for."""
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    is_shortened = console.is_terminal and not all_rows and len(rows) > MAX_ROWS
    shown = [*rows[: MAX_ROWS // 2], *rows[-MAX_ROWS // 2 :]] if is_shortened else rows
    cells = [[printable(cell) for cell in row] for row in (headings, *shown)]
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*cells, strict=True)]
    # Nothing is cut: short columns keep their width, and long ones are folded where the terminal is narrow.
    columns = [
        Column(heading, overflow="fold", no_wrap=width <= SHORT)
        for heading, width in zip(cells[0], widths, strict=True)
    ]
    is_narrow = sum(widths) + 3 * len(widths) + 1 > console.width
    table = Table(*columns, box=box.SIMPLE_HEAD, padding=0) if is_narrow else Table(*columns)
    for number, row in enumerate(cells[1:]):
        if is_shortened and number == MAX_ROWS // 2:
            table.add_row(*("…" for _ in headings))
        table.add_row(*map(Text, row))  # a label may look like markup
    print_lines([title])
    console.print(table)
    if is_shortened:
        print_lines([f"{len(rows) - len(shown):,} of {len(rows):,} rows are not shown; --all prints them."])


def notify(text: str) -> None:
    """Prints a line on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


class WarningHandler(logging.Handler):
    """Prints what axplore logs on standard error; of similar messages, only the first few."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a warning, unless similar ones were printed often enough."""
        message = record.getMessage()
        kind = re.sub(r"\d+", "0", message)
        self._shown[kind] += 1
        if self._shown[kind] <= MAX_ALIKE:
            rest = " (later warnings like this one are not shown)" if self._shown[kind] == MAX_ALIKE else ""
            notify(f"axplore: warning: {message}{rest}")


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Prints what axplore logs until the end of the context."""
    logger, handler = logging.getLogger("axplore"), WarningHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function to call with the finished and the total number; shows both, and the time left, as a bar."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def evidence_bars() -> Iterator[Callable[[float, float], None]]:
    """Gives what to call with the evidence for and against a claim, which is decided at 1; shows both as bars."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = [progress.add_task(f"evidence {side}", total=1.0) for side in ("for", "against")]

        def show(*evidence: float) -> None:
            for task, share in zip(tasks, evidence, strict=True):
                progress.update(task, completed=min(share, 1.0))

        yield show


class Interruption:
    """Whether Ctrl-C was pressed.

    Attributes:
        pressed: whether it was.
        waits: whether a round is to be finished first; after the last one, it interrupts at once.
    """

    def __init__(self) -> None:
        self.pressed, self.waits = False, True

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Hears a signal. Pressed again, or on SIGTERM, it interrupts at once."""
        if self.pressed or not self.waits or number == signal.SIGTERM:
            raise KeyboardInterrupt
        self.pressed = True
        notify("Stopping after this round, and keeping what is proven so far; press Ctrl-C again to stop at once.")


@contextmanager
def interruption() -> Iterator[Interruption]:
    """Yields whether Ctrl-C was pressed, while it no longer ends the process."""
    interrupted = Interruption()
    before = {number: signal.signal(number, interrupted.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


Answer = TypeVar("Answer")


def _completed_world(incomplete: str) -> list[str]:
    """Returns what a shell offers for the name of a world: the built-in ones, and how others begin."""
    from axplore.domains import DOMAINS
    from axplore.worlds.catalogue import FORMS

    return [name for name in (*DOMAINS, *(f"{form}:" for form in FORMS)) if name.startswith(incomplete)]


World = Annotated[
    str,
    typer.Argument(
        metavar="WORLD",
        help="Name of a world, such as gym:FrozenLake-v1; `axplore worlds` lists them.",
        show_default=False,
        autocompletion=_completed_world,
    ),
]
Radius = Annotated[float, typer.Option(help="Radius L, in expected steps.", show_default=False)]
Epsilon = Annotated[float, typer.Option(help="Precision ε, in steps.")]
Delta = Annotated[float, typer.Option(help="Probability δ that the answer may be wrong.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Start the world that the run names, which runs code. Without it, axplore asks on a terminal."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the world; may be repeated.", show_default=False),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ASSUMPTION",
        help=f"What is known of the system: {forms()}; may be repeated.",
        show_default="nothing",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="The function that makes the label of a state of what the system answers: an observation, a JSON value, a "
        "machine, a page.",
        show_default="the answer itself",
    ),
]
Describe = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Names of states for reading: the function gets a label.",
        show_default="the labels",
    ),
]
ActionNames = Annotated[
    str | None,
    typer.Option(metavar="MODULE:FUNCTION", help="The same for actions.", show_default="the labels"),
]
Ray = Annotated[
    str | None,
    typer.Option(metavar="auto|ADDRESS", help="Run the workers on this Ray cluster.", show_default="this machine"),
]
SweepWorkers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of worker processes, each with one run at a time; 0 for none. Results do not depend on it.",
        show_default="one per processor",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AllRows = Annotated[bool, typer.Option("--all", help="Print all rows of long tables.")]

EXPORTS = ("drn", "interval-drn", "prism", "umb", "dot", "csv", "policies-csv", "parquet", "policies-parquet")
"""The formats of `export`."""


def parsed(settings: list[str] | None, key: str | None = None) -> dict[str, str]:
    """Returns the parameters of a world given by `--set`."""
    parameters = {} if key is None else {"key": key}
    for setting in settings or ():
        name, separator, value = setting.partition("=")
        if not separator:
            raise InvalidSettingError(f"--set {setting}: write it as NAME=VALUE")
        parameters[name.replace("-", "_")] = value
    return parameters


def sweep_workers(workers: int | None, ray: str | None) -> int | None:
    """Returns the number of workers for independent runs: by default one per processor, or as the cluster decides."""
    return os.cpu_count() if workers is None and ray is None else workers


app = typer.Typer(
    help="Explore an unknown, resettable, stochastic system and prove what can be reached reliably.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help prints twice as fast
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from axplore import __version__

        typer.echo(f"axplore {__version__}")
        raise typer.Exit


@app.callback()
def prepare(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Prepares every command: what axplore logs is printed while it runs."""
    del version
    context.with_resource(warnings_shown())


def with_consent(trust: bool, start: Callable[[bool], Answer]) -> Answer:
    """Returns what `start` returns, given whether files are trusted; asks on a terminal where that is needed."""
    try:
        return start(trust)
    except UntrustedFileError as refusal:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        if not typer.confirm(f"{printable(str(refusal))}. Start it now?", err=True):
            raise
        return start(True)
