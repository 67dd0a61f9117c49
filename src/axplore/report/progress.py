"""Progress of an exploration for people: one living line on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from axplore.errors import printable
from axplore.explorers.base import STARTING, Explorer, Observer, Remaining, RoundReport
from axplore.records.run import StopReason
from axplore.worlds.contract import World

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Watcher: TypeAlias = Callable[[RoundReport], None]

SECONDS_BETWEEN_LINES: Final = 5.0
"""The seconds between two plain lines."""

SECONDS_BETWEEN_LOOKS: Final = 0.5
"""The seconds between checks whether a line is due, while there is no report."""


SECONDS_OF_SPEED: Final = 20.0
"""The number of seconds over which speeds are averaged."""

SECONDS_BEFORE_ESTIMATES: Final = 3.0
SECONDS_BETWEEN_ESTIMATES: Final = 5.0
PART_FOR_ESTIMATES: Final = 0.05
"""Remaining steps are estimated not before, not more often, and with at most this share of the time."""

MOST_SECONDS: Final = 2.0
"""An estimate takes at most about this many seconds."""

LONGEST_WAIT: Final = 60.0
"""The next estimate follows after at most this many seconds, even if it takes a larger share of the time."""

BAR: Final = "█░ "
"""What a bar is made of."""

BAR_WIDTH: Final = 12

MOST_DONE: Final = 0.99
"""Only what has ended is done: estimates may be too low."""

_logger = logging.getLogger("axplore")


@contextmanager
def on_standard_error(world: World) -> Iterator[Watcher]:
    """Shows progress on standard error, also that of compilation on first use."""
    from rich.console import Console

    from axplore.compilation import compiling

    if in_notebook():
        with in_cell(compiling) as watch:
            yield watch
        return
    with showing(Console(stderr=True), lambda: world.steps_by_now, compiling) as watch:
        yield watch


def in_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook, whose output a browser shows."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def in_cell(compiling: Callable[[], str | None] = lambda: None) -> Iterator[Watcher]:
    """Gives what to call with every report: it renews one line with a bar below the cell of a notebook."""
    from IPython.display import HTML, display

    shown = display(HTML(_as_html(STARTING)), display_id=True)
    line, latest, due = Line(), STARTING, 0.0

    def watch(report: RoundReport) -> None:
        nonlocal latest, due
        latest = line.of(report)
        if time.monotonic() >= due:
            due = time.monotonic() + SECONDS_BETWEEN_LOOKS
            shown.update(HTML(_as_html(latest, share_done(report))))

    def show_compilation() -> None:
        if (words := compiling()) is not None:
            shown.update(HTML(_as_html(words)))

    try:
        with _repeating(show_compilation):
            yield watch
    finally:
        shown.update(HTML(f"<code>{escape(latest)}</code>"))


def _as_html(text: str, share: float | None = None) -> str:
    part = "" if share is None else f' value="{share:.3f}" max="1"'
    return f"<progress{part}></progress> <code>{escape(text)}</code>"


@contextmanager
def showing(
    console: Console, steps: Callable[[], int] = lambda: 0, compiling: Callable[[], str | None] = lambda: None
) -> Iterator[Watcher]:
    """Yields a function to call with every report. On a terminal the line is removed at the end.

    Args:
        console: the console to show progress on.
        steps: returns the steps taken so far, which may grow for long between two reports.
        compiling: returns what is being compiled, which is then shown as the activity; None if nothing is.
    """
    board = Board(steps, compiling)
    if console.is_terminal:
        with console.status(LivingLine(board), spinner="dots"):
            yield board.take
        return
    lines = PlainLines(lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True))

    def watch(report: RoundReport) -> None:
        board.take(report)
        lines.show(board.report())

    with _repeating(lambda: lines.show(board.report())):
        yield watch


class Board:
    """The latest report, with the steps taken by the time it is read, and what is being compiled."""

    def __init__(self, steps: Callable[[], int], compiling: Callable[[], str | None]) -> None:
        self._steps = steps
        self._compiling = compiling
        self._latest = RoundReport(0, 0, 0, 0, STARTING)

    def take(self, report: RoundReport) -> None:
        """Stores a new report."""
        self._latest = report

    def report(self) -> RoundReport:
        """Returns the latest report, with current steps."""
        latest = self._latest
        activity = self._compiling() or latest.activity
        return replace(latest, steps=max(latest.steps, self._steps()), activity=activity)


class LivingLine:
    """A line that Rich redraws continually."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._line = Line()

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(self._line.of(self._board.report()), no_wrap=True, overflow="ellipsis")


@contextmanager
def _repeating(act: Callable[[], None]) -> Iterator[None]:
    """Calls a function from time to time until the end of the context."""
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
    """Formats the progress of an exploration as a line, with its speed and what is left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def of(self, report: RoundReport) -> str:
        """Returns the line of a report."""
        now = self._clock()
        while len(self._seen) > 1 and self._seen[1][0] <= now - SECONDS_OF_SPEED:
            self._seen.popleft()
        if not self._seen or now > self._seen[-1][0]:
            self._seen.append((now, report.steps, report.known))
        began, steps_before, known_before = self._seen[0]
        seconds = now - began
        speed, states = "", ""
        if seconds > 0:
            report = replace(report, speed=(report.steps - steps_before) / seconds)
            speed = f" · {report.speed:,.0f} steps/s"
            states = f" · {60 * (report.known - known_before) / seconds:,.1f} states/min"
        left = left_in_words(report)
        counted = "" if left else f" · {report.steps:,} steps"
        return printable(
            f"{left}known {report.known:,} · frontier {report.frontier:,}{counted}{speed} · {report.activity} · "
            f"round {report.round:,}{states}"
        )


def left_in_words(report: RoundReport) -> str:
    """Returns a bar of the steps taken of those expected, with their range, and the time left; empty if unknown."""
    expected = report.expected_steps
    if expected is None or report.remaining is None:
        return ""
    about, fewest, most = expected
    share = share_done(report) or 0.0
    filled = math.floor(BAR_WIDTH * share)
    times = report.seconds_left
    time_left = "" if times is None else f" · {duration(times[0])} left ({duration(times[1])} to {duration(times[2])})"
    at_least = "at least " if report.remaining.may_grow else ""
    bar = BAR[0] * filled + BAR[1] * (BAR_WIDTH - filled)
    return (
        f"{bar} {math.floor(100 * share)} % · {report.steps:,} of {at_least}about "
        f"{rounded(about)} steps ({rounded(fewest)} to {rounded(most)}){time_left} · "
    )


def share_done(report: RoundReport) -> float | None:
    """Returns the steps taken as a part of those expected, never all of them; None if nothing is expected."""
    expected = report.expected_steps
    return None if expected is None else min(MOST_DONE, report.steps / max(1.0, expected[0]))


def duration(seconds: float) -> str:
    """Returns a time for reading, in one unit."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def rounded(steps: float) -> str:
    """Returns an estimate with two digits that mean something."""
    return f"{float(f'{steps:.2g}'):,.0f}"


class Pace:
    """Asks an explorer from time to time what is left, and passes every report on with the answer.

    It takes no more than a small part of the time, and nothing in the first seconds.
    """

    def __init__(
        self, explorer: Explorer[Any], observers: Sequence[Observer], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._explorer = explorer
        self._observers = observers
        self._clock = clock
        self._began = clock()
        self._due = self._began + SECONDS_BEFORE_ESTIMATES
        self._asked = False
        self._latest: Remaining | None = None
        self._before = (clock(), 0)
        self._speed: float | None = None

    def __call__(self, report: RoundReport) -> StopReason | None:
        """Passes a report on to all observers; returns the first reason to stop."""
        began = self._clock()
        if began >= self._due and report.state is not None and report.state.stop is None:
            seconds = min(MOST_SECONDS, PART_FOR_ESTIMATES * (began - self._began))
            found = self._explorer.remaining(report.state, seconds)
            self._latest = self._latest if found is None else replace(found, taken=report.steps)
            (moment, steps), self._before = self._before, (began, report.steps)
            self._speed = (report.steps - steps) / (began - moment) if steps and began > moment else None
            wait = (self._clock() - began) / PART_FOR_ESTIMATES
            # The first estimate may have had to compile.
            self._due = began + (min(wait, LONGEST_WAIT) if self._asked else 0) + SECONDS_BETWEEN_ESTIMATES
            self._asked = True
            report = replace(report, remaining=self._latest, speed=self._speed)
            if self._latest is not None:
                _logger.info("%s%s states known", left_in_words(report), f"{report.known:,}")
        report = replace(report, remaining=self._latest, speed=self._speed)
        reasons = [observer(report) for observer in self._observers]
        return next((reason for reason in reasons if reason is not None), None)


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
