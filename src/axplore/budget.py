"""What an exploration may take in all: steps of its system, and time; examining, exploring and playing share both."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from axplore.worlds.contract import World

EXAMINED_PART: Final = 5
"""An examination may take one in this many of the steps that are left."""

FEWEST_TO_PLAY: Final = 4_000
PLAYED_PART: Final = 6
MOST_PLAYED_PART: Final = 3
"""What is set aside to play policies before anything is promised: this many steps, or one in this many, where that is
more; but never more than one in the last number. Otherwise a proof could come too late to be tried."""


@dataclass
class Budget:
    """The limits of an exploration, and what it has taken of them beside exploring.

    Attributes:
        max_steps: the most steps of the system; None for no limit.
        ends: the moment after which no step begins, by the clock of `time.monotonic`.
        examining: the steps of examinations and of the RESETs that checked the start.
        playing: the steps of playing policies before anything is promised.
        in_vain: the steps of processes that resume, and of workers, that no exploration counts: to start, and for what
            was repeated.
        reserved: the steps that are set aside for an examination under way.
    """

    max_steps: int | None = None
    ends: float = math.inf
    examining: int = 0
    playing: int = 0
    in_vain: int = 0
    reserved: int = 0

    def left(self, exploring: int) -> int | None:
        """Returns the steps that are left after this many steps of exploring; None if there is no limit."""
        if self.max_steps is None:
            return None
        taken = self.examining + self.playing + self.in_vain + self.reserved + exploring
        return max(0, self.max_steps - taken)

    def to_examine(self, exploring: int, most: int) -> int:
        """Returns the steps that an examination may take, at most a given number."""
        left = self.left(exploring)
        return most if left is None else min(most, -(-left // EXAMINED_PART))

    def to_explore(self, *, plays: bool) -> int | None:
        """Returns the steps that exploring may take in all; None if there is no limit.

        Args:
            plays: whether policies are played afterwards, for which a part is set aside.
        """
        left = self.left(0)
        if left is None or not plays:
            return left
        return left - min(max(FEWEST_TO_PLAY, left // PLAYED_PART), left // MOST_PLAYED_PART)

    @property
    def seconds_left(self) -> float:
        """The seconds that are left; infinite if there is no limit."""
        return self.ends - time.monotonic()

    @contextmanager
    def counted(self, purpose: Literal["examining", "playing"], system: World, exploring: int) -> Iterator[None]:
        """Counts the steps that a system takes meanwhile, and lets it take no more than are left.

        Args:
            purpose: what for.
            system: the system.
            exploring: the steps of exploring so far.
        """
        before = system.system_steps
        system.limit(self.left(exploring), self.ends)
        try:
            yield
        finally:
            system.limit()
            setattr(self, purpose, getattr(self, purpose) + system.system_steps - before)


def moment_after(seconds: float | None) -> float:
    """Returns the moment a number of seconds from now, by the clock of `time.monotonic`; never without a number."""
    return math.inf if seconds is None else time.monotonic() + seconds
