"""What can be watched while it is played: a system in this process, and one that workers step.

The tests that run along ask about every step in its order (`axplore.worlds.hindsight`). Workers record the steps of
batches where that is asked for, and whoever shares the system out among them hands what they recorded to the tests, in
the order of the batches. So neither what is played nor what is found depends on the number of workers.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from axplore.types import IntArray
from axplore.worlds.contract import Answer, Order, Watched, World


@runtime_checkable
class RecordsSteps(Protocol):
    """A replica that can record every step of the batches that it carries out."""

    def record_steps(self, *, is_wanted: bool) -> None:
        """Records from now on every step of batches, or none."""

    def recorded_steps(self) -> bytes:
        """Returns the steps that were recorded since this was last asked; see `StepRecorder`."""


class SharedWorld(Watched):
    """A world whose system workers step; it is `Watched` where their steps can be recorded."""

    @property
    @abstractmethod
    def can_be_watched(self) -> bool:
        """Whether workers can record their steps."""

    @property
    @abstractmethod
    def busy_seconds(self) -> float:
        """The time that all batches have taken by now, each where it was carried out."""

    @property
    @abstractmethod
    def seconds_of_step(self) -> float:
        """The mean time of a step by now; 0 if none was taken."""

    @property
    @abstractmethod
    def recorded(self) -> Sequence[IntArray]:
        """The steps of each order of the last call of `carry_out_watched`.

        Each is an action and the state that it led to, [m, 2]; see `axplore.worlds.hindsight.StepRecorder`.
        """

    @abstractmethod
    def carry_out_watched(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders as `carry_out` does, and hands their steps to the tests of the history."""

    @abstractmethod
    def affordable(self, steps: int, most: int) -> int:
        """Returns how many batches of at most this many steps can be carried out at once; at least one.

        Args:
            steps: the steps that each takes at most.
            most: the number of batches that is not exceeded.
        """


class Patience:
    """The time that playing may take: that of the system, wherever it is stepped, and a moment that is not passed."""

    def __init__(self, world: World, seconds: float, most_seconds: float = math.inf) -> None:
        """Begins now.

        Args:
            world: what is played. Of one that workers step, what they take counts, not how many there are.
            seconds: the time of the system.
            most_seconds: the time by the clock.
        """
        self._world = world
        self._last = self._taken + seconds
        self._ends = time.monotonic() + most_seconds

    @property
    def _taken(self) -> float:
        return self._world.busy_seconds if isinstance(self._world, SharedWorld) else time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self._taken >= self._last or time.monotonic() >= self._ends

    @property
    def steps_left(self) -> float:
        """About how many steps there is time for, where workers take them; infinite if that is not known."""
        seconds = self._world.seconds_of_step if isinstance(self._world, SharedWorld) else 0.0
        return (self._last - self._taken) / seconds if seconds else math.inf
