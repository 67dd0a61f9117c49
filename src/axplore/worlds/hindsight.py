"""Watches, while a system is explored, whether what follows a pair depends on anything else than the pair.

Four circumstances are asked about: the pair played before, how often the pair itself was played in a row just before,
the age (the steps since the last RESET), and how often the pair was drawn before, which tells early draws from late
ones. A system that is stuck in secret shows by the second: one that moves with a probability of 0.7 hardly stays where
it is 20 times in a row, and one such run tells more than all others, in which nothing was wrong.

Every step is recorded as two numbers, and they are counted a batch at a time, so that watching costs little. The test
of each is `axplore.statistics.dependence.HistoryTest`: on a system whose labels say all that matters any of them ever
alarms with a probability of at most `FALSE_ALARM`, however long it watches and whatever is explored.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.records.findings import Examined
from axplore.statistics.dependence import Dependence, HistoryTest
from axplore.types import IntArray
from axplore.worlds.walkers import INTERRUPTED

FALSE_ALARM: Final = 3e-4

FIRST_BATCH: Final = 512
LARGEST_BATCH: Final = 2**16
"""Steps between two looks; batches grow from one to the other, so that little is lost while successors are new."""

NO_STEP: Final = -3
"""Stands in place of an action where the agent was put into a state in another way than by a step."""

AFTER_RESET: Final = -1
"""The context of a pair that was played first after a RESET."""

_ACTION_BITS: Final = 20
"""A pair is one number: the index of the state, and that of the action in the last bits."""


MOST_CUTS: Final = 16
"""Of what is recorded between two looks, this many transitions that are new end a batch."""

EARLY_DRAWS: Final = 16
"""The first period of a pair has this many draws; each later one as many as all before it."""


SHORT_RUN: Final = 8
"""Runs of a pair that are shorter than this are one class, so that little is staked where nothing is wrong."""


class Circumstance(Enum):
    """What the successors of a pair may depend on; the value is the end of a sentence about it."""

    ORIGIN = "what came before"
    RUN = "how often it was played in a row just before"
    AGE = "how long ago the last RESET was"
    PERIOD = "how long the system has been explored"


@dataclass(frozen=True)
class Alarm:
    """What a test found, and what it asked about."""

    circumstance: Circumstance
    dependence: Dependence


class WatchedHistory:
    """Records steps, and asks of every pair whether its successors depend on what else was known before them.

    Attributes:
        steps: for each step since the last look the action and the index of the state it led to.
        tests: what has been asked so far.
        examined: how much the tests have seen.
        alarm: the first alarm, and of several at once the clearest; None if there was none. The contexts of its table
            are what `pair_of` reads, or the numbers of classes of runs, ages or periods.
    """

    def __init__(self, false_alarm: float = FALSE_ALARM) -> None:
        self.tests = {
            circumstance: HistoryTest(
                false_alarm / len(Circumstance), is_ordered=circumstance is not Circumstance.ORIGIN
            )
            for circumstance in Circumstance
        }
        self.alarm: Alarm | None = None
        self.examined = Examined()
        self.steps = array("q")
        self._age = 0  # before the first of the steps
        self._draws: dict[int, int] = {}  # of each pair before them
        self._met: set[tuple[int, ...]] = set()  # transitions
        self._capacity = FIRST_BATCH
        self._position = 0  # before the first of the steps
        self._pair = AFTER_RESET  # played before them,
        self._run = 0  # this many times in a row
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
        """Hands what was recorded to the tests, and begins anew."""
        if not self.steps:
            return
        recorded: IntArray = np.frombuffer(self.steps, dtype=np.int64).reshape(-1, 2)
        begin = 0
        for end in [*self._first_sights(recorded), len(recorded)]:
            if end > begin:
                self._hand_over(recorded[begin:end])
                begin = end
        self.steps = array("q")
        self._capacity = min(2 * self._capacity, LARGEST_BATCH)
        if self.alarm is None:
            self.alarm = next(iter(self.alarms), None)

    def _first_sights(self, recorded: IntArray) -> list[int]:
        """Returns the places after the first few transitions that were never met before, in ascending order.

        A batch ends there, because successors that are new in one count against the bets, and help from the next one
        on. Whether it ends is known at each step, so that the tests stay what they are.
        """
        positions = np.maximum(np.concatenate(([self._position], recorded[:-1, 1])), 0)
        places = np.flatnonzero((recorded >= 0).all(axis=1))
        triples = np.column_stack((positions, recorded))[places]
        distinct, first = np.unique(triples, axis=0, return_index=True)
        fresh = [
            int(places[place]) + 1
            for triple, place in zip(map(tuple, distinct.tolist()), first.tolist(), strict=True)
            if triple not in self._met
        ]
        self._met.update(map(tuple, distinct.tolist()))
        return sorted(fresh)[:MOST_CUTS]

    def _hand_over(self, recorded: IntArray) -> None:
        """Hands a batch to the tests."""
        actions, results = recorded[:, 0], recorded[:, 1]
        positions = np.concatenate(([self._position], results[:-1]))
        positions[positions == INTERRUPTED] = 0  # the new system stands in the initial state
        is_draw = (actions >= 0) & (results >= 0)
        pairs = (positions << _ACTION_BITS) | np.maximum(actions, 0)
        own = np.where(is_draw, pairs, AFTER_RESET)
        before = np.concatenate(([self._pair], own[:-1]))
        runs = _since(own != before, self._run)
        ages = _since(~is_draw, self._age + 1)
        drawn = pairs[is_draw]
        self.examined = Examined(
            watched=self.examined.watched + len(drawn),
            resets=self.examined.resets + len(is_draw) - len(drawn),
            oldest=max(self.examined.oldest, int(ages.max())),
        )
        contexts = {
            Circumstance.ORIGIN: before[is_draw],
            Circumstance.RUN: dyadic_class(runs[is_draw] // SHORT_RUN),
            Circumstance.AGE: dyadic_class(ages[is_draw]),
            Circumstance.PERIOD: dyadic_class(self._draws_before(drawn) // EARLY_DRAWS),
        }
        for circumstance, known_before in contexts.items():
            draws = _counted(known_before, drawn, results[is_draw])
            self.tests[circumstance].add((*triple, times) for triple, times in draws.items())
        self._position, self._age = max(int(results[-1]), 0), int(ages[-1])
        self._pair, self._run = int(own[-1]), int(runs[-1]) + 1

    def _draws_before(self, pairs: IntArray) -> IntArray:
        """Returns how often the pair of each draw was drawn before it, [n], and counts these draws too."""
        before = np.empty(len(pairs), dtype=np.int64)
        order = np.argsort(pairs, kind="stable")
        distinct, first, times = np.unique(pairs[order], return_index=True, return_counts=True)
        for pair, place, count in zip(distinct.tolist(), first.tolist(), times.tolist(), strict=True):
            drawn = self._draws.get(pair, 0)
            before[order[place : place + count]] = drawn + np.arange(count)
            self._draws[pair] = drawn + count
        return before

    @property
    def alarms(self) -> list[Alarm]:
        """What each test that alarmed has found, the clearest first."""
        found = [Alarm(asked, test.alarm) for asked, test in self.tests.items() if test.alarm is not None]
        return sorted(found, key=lambda alarm: -alarm.dependence.log_evidence)


def dyadic_class(numbers: IntArray) -> IntArray:
    """Returns the class of each number, [n]: 0 of 0, and k of those from 2^(k - 1) to 2^k - 1."""
    classes: IntArray = np.frexp(numbers)[1].astype(np.int64)
    return classes


def pair_of(number: int) -> tuple[int, int] | None:
    """Returns the index of the state and that of the action of a pair; None for the beginning after a RESET."""
    return None if number == AFTER_RESET else (number >> _ACTION_BITS, number & ((1 << _ACTION_BITS) - 1))


def _since(begins_anew: npt.NDArray[np.bool_], before: int) -> IntArray:
    """Returns how many of the recorded steps ago each count began anew, [n].

    Args:
        begins_anew: where it begins anew, at 0, [n].
        before: the count at the first step, if it does not begin there.
    """
    places = np.arange(len(begins_anew))
    since: IntArray = places - np.maximum.accumulate(np.where(begins_anew, places, -before))
    return since


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
