"""Progress of an exploration for people: one living line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

    from axplore.explorers.driver import RoundReport

Watcher: TypeAlias = "Callable[[RoundReport], None]"

SECONDS_BETWEEN_LINES: Final = 5.0
"""Where nobody watches, a line appears no more often than this."""


@contextmanager
def showing(console: Console) -> Iterator[Watcher]:
    """Gives what to call with every report. A living line is gone when the exploration is over."""
    if console.is_terminal:
        from rich.text import Text

        with console.status("starting", spinner="dots") as status:
            line = Line()
            yield lambda report: status.update(Text(line.of(report)))
    else:
        yield PlainLines(lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True)).show


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
        return (
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
