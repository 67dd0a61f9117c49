"""Progress of an exploration for people: one living line on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from axplore.errors import printable
from axplore.explorers.base import Explorer, RoundReport
from axplore.worlds.contract import World

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Watcher: TypeAlias = Callable[[RoundReport], None]

SECONDS_BETWEEN_LINES: Final = 5.0
"""Where nobody watches, a line appears no more often than this,"""

SECONDS_BETWEEN_LOOKS: Final = 0.5
"""and about as often, also when there is no report: so often it is looked whether one is due."""


@contextmanager
def on_standard_error(explorer: Explorer[Any], world: World) -> Iterator[Watcher]:
    """Shows on standard error how an exploration goes; says first if kernels have to be compiled."""
    from rich.console import Console

    from axplore.compilation import NOTICE, is_kept

    has_to_compile = not all(map(is_kept, explorer.kernels))
    if in_notebook():
        with in_cell(NOTICE if has_to_compile else "starting") as watch:
            yield watch
        return
    console = Console(stderr=True)
    if has_to_compile:
        console.print(NOTICE)
    with showing(console, lambda: world.steps_by_now) as watch:
        yield watch


def in_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook, whose output a browser shows."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def in_cell(first: str) -> Iterator[Watcher]:
    """Gives what to call with every report: it renews one line with a bar below the cell of a notebook."""
    from IPython.display import HTML, display

    shown = display(HTML(_as_html(first)), display_id=True)
    line, latest, due = Line(), first, 0.0

    def watch(report: RoundReport) -> None:
        nonlocal latest, due
        latest = line.of(report)
        if time.monotonic() >= due:
            due = time.monotonic() + SECONDS_BETWEEN_LOOKS
            shown.update(HTML(_as_html(latest)))

    try:
        yield watch
    finally:
        shown.update(HTML(f"<code>{escape(latest)}</code>"))


def _as_html(text: str) -> str:
    return f"<progress></progress> <code>{escape(text)}</code>"


@contextmanager
def showing(console: Console, steps: Callable[[], int] = lambda: 0) -> Iterator[Watcher]:
    """Gives what to call with every report. A living line is gone when the exploration is over.

    Args:
        console: where to show it.
        steps: the steps taken by now; between two reports there may be many, where a step takes long.
    """
    board = Board(steps)
    if console.is_terminal:
        with console.status(LivingLine(board), spinner="dots"):
            yield board.take
        return
    lines = PlainLines(lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True))

    def watch(report: RoundReport) -> None:
        board.take(report)
        lines.show(report)

    with _repeating(lambda: lines.show(board.report())):
        yield watch


class Board:
    """The latest report, with the steps taken by the time at which it is looked at."""

    def __init__(self, steps: Callable[[], int]) -> None:
        self._steps = steps
        self._latest = RoundReport(0, 0, 0, 0, "starting")

    def take(self, report: RoundReport) -> None:
        """Takes a new report."""
        self._latest = report

    def report(self) -> RoundReport:
        """The latest report."""
        latest = self._latest
        return replace(latest, steps=max(latest.steps, self._steps()))


class LivingLine:
    """A line that Rich draws again and again."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._line = Line()

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(self._line.of(self._board.report()), no_wrap=True, overflow="ellipsis")


@contextmanager
def _repeating(act: Callable[[], None]) -> Iterator[None]:
    """Does something from time to time until the end of the context."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(SECONDS_BETWEEN_LOOKS):
            act()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class Line:
    """Where an exploration stands, in a line with its speed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: tuple[float, int] | None = None

    def of(self, report: RoundReport) -> str:
        """The line of a report."""
        now = self._clock()
        began, steps_before = self._began = self._began or (now, report.steps)
        seconds = now - began
        speed = f" · {(report.steps - steps_before) / seconds:,.0f} steps/s" if seconds > 0 else ""
        return printable(
            f"round {report.round:,} · known {report.known:,} · frontier {report.frontier:,} · "
            f"{report.steps:,} steps{speed} · {report.activity}"
        )


class PlainLines:
    """Prints the first report, and later ones from time to time."""

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._line = Line(clock)
        self._next = -float("inf")

    def show(self, report: RoundReport) -> None:
        """Prints a report unless one was printed just before."""
        line = self._line.of(report)
        if self._clock() >= self._next:
            self._next = self._clock() + SECONDS_BETWEEN_LINES
            self._say(line)
