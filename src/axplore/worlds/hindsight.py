"""Watches, while a system is explored, whether what follows a pair depends on the pair before it.

Every step is recorded as two numbers, and they are counted a batch at a time, so that watching costs little. The test
is `axplore.statistics.dependence.HistoryTest`: on a system whose labels say all that matters it ever alarms with
a probability of at most `FALSE_ALARM`, however long it watches and whatever is explored.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Final

import numpy as np

from axplore.statistics.dependence import Dependence, HistoryTest
from axplore.types import IntArray
from axplore.worlds.walkers import INTERRUPTED

FALSE_ALARM: Final = 5e-4

FIRST_BATCH: Final = 512
LARGEST_BATCH: Final = 2**16
"""Steps between two looks; batches grow from one to the other, so that little is lost while successors are new."""

NO_STEP: Final = -3
"""Stands in place of an action where the agent was put into a state in another way than by a step."""

AFTER_RESET: Final = -1
"""The context of a pair that was played first after a RESET."""

_ACTION_BITS: Final = 20
"""A pair is one number: the index of the state, and that of the action in the last bits."""


class WatchedHistory:
    """Records steps, and asks of every pair whether its successors depend on the pair before it.

    Attributes:
        steps: for each step since the last look the action and the index of the state it led to.
        test: what has been asked so far.
    """

    def __init__(self, false_alarm: float = FALSE_ALARM) -> None:
        self.test = HistoryTest(false_alarm)
        self.steps = array("q")
        self._capacity = FIRST_BATCH
        self._position = 0  # before the first of the steps
        self._pair = AFTER_RESET  # played before them
        self._is_broken = True

    @property
    def room(self) -> int:
        """The number of steps that may be recorded before `look` is due."""
        return self._capacity - len(self.steps) // 2

    def break_off(self) -> None:
        """Says that the agent was reset, or put elsewhere, without a step that is recorded."""
        self._is_broken = True

    def begin(self, position: int) -> None:
        """Begins to record steps from a state."""
        if self._is_broken:
            self.steps.extend((NO_STEP, position))
            self._is_broken = False
        if self.room <= 0:
            self.look()

    def look(self) -> None:
        """Hands what was recorded to the test, and begins the next batch."""
        if not self.steps:
            return
        recorded: IntArray = np.frombuffer(self.steps, dtype=np.int64).reshape(-1, 2)
        actions, results = recorded[:, 0], recorded[:, 1]
        positions = np.concatenate(([self._position], results[:-1]))
        positions[positions == INTERRUPTED] = 0  # the new system stands in the initial state
        is_draw = (actions >= 0) & (results >= 0)
        pairs = (positions << _ACTION_BITS) | np.maximum(actions, 0)
        own = np.where(is_draw, pairs, AFTER_RESET)
        before = np.concatenate(([self._pair], own[:-1]))
        draws = _counted(before[is_draw], pairs[is_draw], results[is_draw])
        self._position, self._pair = max(int(results[-1]), 0), int(own[-1])
        self.test.add((context, pair, successor, times) for (context, pair, successor), times in draws.items())
        self.steps = array("q")
        self._capacity = min(2 * self._capacity, LARGEST_BATCH)

    @property
    def alarm(self) -> Dependence | None:
        """The first alarm, of which pairs and contexts are what `pair_of` reads; None if there was none."""
        return self.test.alarm


def pair_of(number: int) -> tuple[int, int] | None:
    """Returns the index of the state and that of the action of a pair; None for the beginning after a RESET."""
    return None if number == AFTER_RESET else (number >> _ACTION_BITS, number & ((1 << _ACTION_BITS) - 1))


def _counted(before: IntArray, pairs: IntArray, successors: IntArray) -> Counter[tuple[int, int, int]]:
    """Returns how often each triple came."""
    if not len(pairs):
        return Counter()
    contexts, context_places = np.unique(before, return_inverse=True)
    distinct, pair_places = np.unique(pairs, return_inverse=True)
    width = int(successors.max()) + 1
    codes = (context_places * len(distinct) + pair_places) * width + successors
    kinds, times = np.unique(codes, return_counts=True)
    places, led = np.divmod(kinds, width)
    first, second = np.divmod(places, len(distinct))
    triples = zip(contexts[first].tolist(), distinct[second].tolist(), led.tolist(), strict=True)
    return Counter(dict(zip(triples, times.tolist(), strict=True)))
