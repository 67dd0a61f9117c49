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
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

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
_ACTION_MASK: Final = (1 << _ACTION_BITS) - 1
"""A pair is one number: the index of the state, and that of the action in the last bits."""


MOST_CUTS: Final = 16
"""Of what is recorded between two looks, this many transitions that are new end a batch."""

EARLY_DRAWS: Final = 16
"""The first period of a pair has this many draws; each later one as many as all before it."""


MOST_IN_TABLE: Final = 16
"""Numbers up to this many times as many as there are of them are told apart by a table, larger ones by sorting."""

MOST_SORTED_BY_DIGITS: Final = 2**16
"""NumPy sorts numbers below this one by their digits, which takes a tenth of the time."""

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


class StepRecorder:
    """Records steps as `WatchedHistory` does and tests nothing: they are handed to one in another process."""

    room: Final = LARGEST_BATCH

    def __init__(self) -> None:
        self.steps = array("q")
        self._is_broken = True

    def break_off(self) -> None:
        """Says that the agent was reset without a step that is recorded."""
        self._is_broken = True

    def begin(self, position: int) -> None:
        """Begins to record steps from a state."""
        if self._is_broken:
            self.steps.extend((NO_STEP, position))
            self._is_broken = False

    def look(self) -> None:
        """Keeps what was recorded until `take` is called."""

    def take(self) -> bytes:
        """Returns what was recorded since it was last taken, for `WatchedHistory.add`."""
        recorded, self.steps, self._is_broken = self.steps.tobytes(), array("q"), True
        return recorded


class _Draws(NamedTuple):
    """Draws among recorded steps.

    Attributes:
        kinds: the transitions that differ, each a pair and a successor, ascending.
        first: the place of the first draw of each of them.
        places: which of them each draw is, [n].
        origins: the pairs that were played before one of the draws, and AFTER_RESET, ascending.
        classes: by circumstance, the class of each draw, [n]; for `ORIGIN` the place among the origins.
    """

    kinds: list[tuple[int, int]]
    first: IntArray
    places: IntArray
    origins: IntArray
    classes: dict[Circumstance, IntArray]


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
        self._met: set[tuple[int, int]] = set()  # transitions
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

    def add(self, recorded: IntArray) -> None:
        """Adds steps that a `StepRecorder` has recorded after a RESET, in the states of this one."""
        self.steps.frombytes(np.ascontiguousarray(recorded, dtype=np.int64).tobytes())
        self.break_off()
        if self.room <= 0:
            self.look()

    def look(self) -> None:
        """Hands what was recorded to the tests, and begins anew."""
        if not self.steps:
            return
        draws = self._draws_in(np.frombuffer(self.steps, dtype=np.int64).reshape(-1, 2))
        begin = 0
        for end in [*self._first_sights(draws), len(draws.places)]:
            if end > begin:
                self._hand_over(draws, slice(begin, end))
                begin = end
        self.steps = array("q")
        self._capacity = min(2 * self._capacity, LARGEST_BATCH)
        if self.alarm is None:
            self.alarm = next(iter(self.alarms), None)

    def _draws_in(self, recorded: IntArray) -> _Draws:
        """Returns the draws among the steps, with what was known before each, and moves on to the end of the steps."""
        actions, results = recorded[:, 0], recorded[:, 1]
        positions = np.concatenate(([self._position], results[:-1]))
        positions[positions == INTERRUPTED] = 0  # the new system stands in the initial state
        is_draw = (actions >= 0) & (results >= 0)
        pairs = (positions << _ACTION_BITS) | np.maximum(actions, 0)
        own = np.where(is_draw, pairs, AFTER_RESET)
        before = np.concatenate(([self._pair], own[:-1]))
        runs = _since(own != before, self._run)
        ages = _since(~is_draw, self._age + 1)
        drawn, led = pairs[is_draw], results[is_draw]
        self.examined = Examined(
            watched=self.examined.watched + len(drawn),
            resets=self.examined.resets + len(is_draw) - len(drawn),
            oldest=max(self.examined.oldest, int(ages.max())),
        )
        self._position, self._age = max(int(results[-1]), 0), int(ages[-1])
        self._pair, self._run = int(own[-1]), int(runs[-1]) + 1
        distinct, pair_places = _distinct_pairs(drawn)
        width = int(led.max(initial=0)) + 1
        kinds, places, first = told_apart(pair_places * width + led)
        origins, origin_places = _distinct_pairs(before[is_draw])
        return _Draws(
            kinds=list(zip(distinct[kinds // width].tolist(), (kinds % width).tolist(), strict=True)),
            first=first,
            places=places,
            origins=origins,
            classes={
                Circumstance.ORIGIN: origin_places,
                Circumstance.RUN: dyadic_class(runs[is_draw] // SHORT_RUN),
                Circumstance.AGE: dyadic_class(ages[is_draw]),
                Circumstance.PERIOD: dyadic_class(self._draws_before(drawn, pair_places, distinct) // EARLY_DRAWS),
            },
        )

    def _first_sights(self, draws: _Draws) -> list[int]:
        """Returns the places after the first few transitions that were never met before, in ascending order.

        A batch ends there, because successors that are new in one count against the bets, and help from the next one
        on. Whether it ends is known at each step, so that the tests stay what they are.
        """
        places = zip(draws.kinds, draws.first.tolist(), strict=True)
        fresh = sorted(place + 1 for kind, place in places if kind not in self._met)
        self._met.update(draws.kinds)
        return fresh[:MOST_CUTS]

    def _hand_over(self, draws: _Draws, batch: slice) -> None:
        """Hands a batch to the tests."""
        for circumstance, classes in draws.classes.items():
            codes, places, _ = told_apart(classes[batch] * len(draws.kinds) + draws.places[batch])
            times = np.bincount(places)
            contexts, kinds = np.divmod(codes, len(draws.kinds))
            if circumstance is Circumstance.ORIGIN:
                contexts = draws.origins[contexts]
            counted = zip(contexts.tolist(), kinds.tolist(), times.tolist(), strict=True)
            self.tests[circumstance].add((context, *draws.kinds[kind], number) for context, kind, number in counted)

    def _draws_before(self, pairs: IntArray, places: IntArray, distinct: IntArray) -> IntArray:
        """Returns how often the pair of each draw was drawn before it, [n], and counts these draws too.

        Args:
            pairs: of each draw, [n].
            places: where each of them stands among those that differ, [n].
            distinct: the pairs that differ, ascending.
        """
        before = np.empty(len(pairs), dtype=np.int64)
        order = np.argsort(
            places.astype(np.uint16) if len(distinct) <= MOST_SORTED_BY_DIGITS else places, kind="stable"
        )
        times = np.bincount(places, minlength=len(distinct)).tolist()
        place = 0
        for pair, count in zip(distinct.tolist(), times, strict=True):
            drawn = self._draws.get(pair, 0)
            before[order[place : place + count]] = np.arange(drawn, drawn + count)
            self._draws[pair] = drawn + count
            place += count
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
    return None if number == AFTER_RESET else (number >> _ACTION_BITS, number & _ACTION_MASK)


def _distinct_pairs(pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Returns the pairs that differ, ascending, AFTER_RESET included, and where each pair stands among them."""
    actions = np.where(pairs == AFTER_RESET, 0, pairs & _ACTION_MASK)
    close_together = (pairs >> _ACTION_BITS) * (actions.max(initial=0) + 1) + actions
    _, places, first = told_apart(close_together)
    return pairs[first], places


def told_apart(numbers: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Returns the numbers that differ, ascending, where each number stands among them, and the first place of each.

    As `np.unique` does, but without sorting where a table of all numbers up to the largest is not large.
    """
    least, most = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if most - least > MOST_IN_TABLE * len(numbers):
        distinct, first, places = np.unique(numbers, return_index=True, return_inverse=True)
        return distinct, places, first
    numbers = numbers - least
    table = np.full(most - least + 1, -1, dtype=np.int64)
    table[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of equal indices the last assignment counts
    distinct = np.flatnonzero(table >= 0)
    first = table[distinct]
    table[distinct] = np.arange(len(distinct))
    return distinct + least, table[numbers], first


def _since(begins_anew: npt.NDArray[np.bool_], before: int) -> IntArray:
    """Returns how many of the recorded steps ago each count began anew, [n].

    Args:
        begins_anew: where it begins anew, at 0, [n].
        before: the count at the first step, if it does not begin there.
    """
    places = np.arange(len(begins_anew))
    since: IntArray = places - np.maximum.accumulate(np.where(begins_anew, places, -before))
    return since


class WatchesHistory:
    """What a world says of the tests of its history, if they are asked."""

    _history: WatchedHistory | None = None

    def watch_history(self) -> None:
        """Tests from now on whether what follows a pair depends on more than the pair."""
        self._history = self._history or WatchedHistory()

    @property
    def has_alarmed(self) -> bool:
        """Whether a test of the history has found something by its last look."""
        return self._history is not None and self._history.alarm is not None

    @property
    def history_alarm(self) -> Alarm | None:
        """What the tests of the history have found first; None if nothing, or if they are not asked."""
        if self._history is None:
            return None
        self._history.look()
        return self._history.alarm

    @property
    def other_alarms(self) -> Sequence[Alarm]:
        """What each of the tests of the history that alarmed has found so far."""
        return () if self._history is None else self._history.alarms

    @property
    def examined(self) -> Examined:
        """How much the tests of the history have seen."""
        if self._history is None:
            return Examined()
        self._history.look()
        return self._history.examined
