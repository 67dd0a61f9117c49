"""Compares every draw that is made beside the exploration with what an atlas assumes, and with what its counts show.

Policies are played before anything is promised, by `validate` and by `certify`. None of these draws is counted, and
each of them can show that a promise is false:

- One that contradicts what is assumed of its pair refutes the promise: a second outcome of an action that is assumed to
  have one, an outcome where no other was left, one that is rarer than assumed, an outcome of a tied pair that leads to
  two states (`axplore.assumptions.pairs.AssumedPair` is asked about each).
- Rows that differ from those that were counted, or between ways, cast doubt on it, and so do pairs of one class that
  differ. Both are tests that are valid at any time, with `FALSE_ALARM` together.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.assumptions import NOTHING, Assumptions
from axplore.assumptions.applied import is_single
from axplore.assumptions.pairs import AssumedPair, counted_pair, is_everywhere, other_pair
from axplore.assumptions.registry import pair_kinds
from axplore.labels import readable
from axplore.records.findings import Finding, Issue, Level
from axplore.statistics.counts import NONE, counted_indices
from axplore.statistics.dependence import Dependence, HistoryTest, two_that_differ
from axplore.types import Action, State
from axplore.worlds.contract import Answer, World
from axplore.worlds.diagnosis import assumption_finding, finding_of

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas
    from axplore.records.assumed import Ties
    from axplore.records.counts import Counts
    from axplore.statistics.confidence import ConfidenceRegion

_logger = logging.getLogger("axplore")

FALSE_ALARM: Final = 2.5e-4
"""The probability with which the tests alarm although all draws come from the rows that were counted."""

EXPLORING: Final = "exploring"
"""The context of what was counted before."""

WALKS: Final = "walks"
"""The context of random walks from RESET."""

UNTIED: Final = -1


@dataclass
class _Pair:
    """A pair of the world, and everything that it led to.

    Attributes:
        state, action: its labels.
        number: of the pair in the counts of the atlas; None if it was not counted.
        assumed: what is assumed of it.
        outcomes: how often it led to each state, while exploring and since.
    """

    state: State
    action: Action
    number: int | None
    assumed: AssumedPair
    outcomes: Counter[Hashable] = field(default_factory=Counter)

    @property
    def label(self) -> tuple[State, Action]:
        return self.state, self.action

    def __str__(self) -> str:
        return f"action {readable(self.action)} in state {readable(self.state)}"


class DrawChecks:
    """Draws of a world beside the exploration, compared with the atlas of it as they come."""

    def __init__(
        self,
        atlas: Atlas,
        world: World,
        during: str,
        assume: Assumptions = NOTHING,
        false_alarm: float = FALSE_ALARM,
    ) -> None:
        """Begins with everything that was counted while exploring.

        Args:
            atlas: the atlas, with proven bounds.
            world: whose draws come.
            during: what is being done, for the words: "while ...".
            assume: what is assumed, with the functions that no file holds, as far as they are at hand.
            false_alarm: the probability with which tests may alarm although nothing is wrong.
        """
        self._atlas, self._world, self._during, self._assume = atlas, world, during, assume
        tied = None if atlas.assumed is None else atlas.assumed.ties
        level = false_alarm if tied is None else false_alarm / 2
        self._rows = HistoryTest(level)
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._numbers = _PairNumbers(atlas.counts)
        self._region = _region_if_needed(atlas)
        counts, assumed = atlas.counts, atlas.assumed
        n_pairs = len(counts.visits)
        self._everywhere = assumed is not None and is_everywhere(assumed)
        single = np.zeros(n_pairs, dtype=np.bool_) if assumed is None else is_single(assumed, n_pairs)
        for number in np.flatnonzero((counts.visits > 0) & ~single).tolist():
            self._rows.begin_with(self._numbers.label_of(number), EXPLORING, _counted(atlas, number))
        self._ties = None if tied is None else _TiedDraws(atlas, tied, self._numbers, assume, level)
        self._batch: list[tuple[Hashable, Hashable, Hashable, int]] = []  # what the test of rows was not yet told

    def add(
        self, context: Hashable, draws: Iterable[tuple[int, int, int, int]], *, more: bool = False
    ) -> Finding | None:
        """Adds draws that were made in one context, and returns the first that contradicts the atlas, if any does.

        Args:
            context: the index of the goal whose policy was played, or `WALKS`.
            draws: state, action, next state and times, by the indices of the world.
            more: whether more draws in the same context follow. Rows are then tested with these, unless one of the
                draws was the first of its kind: what is new in a batch tells something from the next one on.
        """
        for state, action, successor, times in draws:
            pair, label = self._pair(state, action), self._world.states[successor]
            more = more and label in pair.outcomes
            pair.outcomes[label] += times
            contradiction = pair.assumed.contradicted_by(pair.outcomes)
            if contradiction is not None:
                return self._contradicted(pair, label, *contradiction)
            if self._ties is not None:
                refuted = self._ties.add(pair, label, times)
                if refuted is not None:
                    return self._contradicted(pair, label, *refuted)
            if not pair.assumed.single:
                self._batch.append((context, pair.label, label, times))
        if more:
            return None
        batch, self._batch = self._batch, []
        self._rows.add(batch)
        if self._rows.alarm is not None:
            return self._dependence(self._rows.alarm)
        return None if self._ties is None else self._ties.look()

    def noticing(self, goal: State, findings: list[Finding]) -> Callable[[Answer], None]:
        """Returns a function that adds the draws of every answer on the way to a goal; the first finding is kept.

        Args:
            goal: a state of the atlas.
            findings: what was found so far, to which it is added.
        """
        index = self._atlas.index_of(goal)

        def notice(answer: Answer) -> None:
            finding = None if findings else self.add(index, answer.transitions())
            if finding is not None:
                _logger.warning("%s", finding)
                findings.append(finding)

        return notice

    def is_assumed(self, state: int, action: int) -> bool:
        """Returns whether anything is assumed of a pair, by the indices of the world."""
        pair = self._pair(state, action)
        return pair.assumed != AssumedPair() or (self._ties is not None and self._ties.is_tied(pair))

    def times(self, state: int, action: int) -> int:
        """Returns how often a pair was drawn, while exploring and since."""
        return self._pair(state, action).outcomes.total()

    def _pair(self, state: int, action: int) -> _Pair:
        """Returns a pair of the world with what was counted of it before."""
        pair = self._pairs.get((state, action))
        if pair is None:
            label, played = self._world.states[state], self._world.actions_of(state)[action]
            number = self._numbers.get(label, played)
            pair = self._pairs[state, action] = _Pair(label, played, number, self._assumed_of(label, played, number))
            if number is not None:
                pair.outcomes.update(_counted(self._atlas, number))
        return pair

    def _assumed_of(self, state: State, action: Action, number: int | None) -> AssumedPair:
        assumed = self._atlas.assumed
        if assumed is None:
            return AssumedPair()
        if number is None:  # of a state that was not admitted
            return other_pair(assumed, self._assume, state, action)
        pair = counted_pair(assumed, number, everywhere=self._everywhere)
        if pair.single or not pair.said or self._region is None:
            return pair
        if self._region.pooled is not None and self._region.pooled.tied[number]:
            return pair  # draws of a class have no common order
        support = frozenset(_counted(self._atlas, number)) if self._region.closed[number] else None
        return replace(pair, support=support, weight=float(self._region.weights[number]))

    def _contradicted(self, pair: _Pair, successor: State, assumption: str, assumed: str) -> Finding:
        others = [readable(state) for state, _ in pair.outcomes.most_common() if state != successor][:3]
        before = f", and otherwise to {' and '.join(others)}" if others else ""
        seen = f"While {self._during}, {pair} led to {readable(successor)}{before}, though {assumed}."
        return assumption_finding(assumption, seen)

    def _dependence(self, alarm: Dependence) -> Finding:
        def describe(context: Hashable) -> str:
            if context == EXPLORING:
                return "in the log and while exploring" if self._atlas.run.logged else "while exploring"
            if context == WALKS:
                return "on short walks from RESET"
            assert isinstance(context, int)
            return f"on the way to {readable(self._atlas.states[context])}"

        contexts = two_that_differ(alarm.table)
        rows = "; ".join(f"{describe(context)}: {_row_text(alarm, context)}" for context in contexts)
        whose = _label_text(alarm.pair)
        if self._atlas.run.logged and EXPLORING in contexts:
            return finding_of(Issue.LOG_DIFFERS, f"What {whose} leads to is another than before ({rows}).")
        return finding_of(Issue.HISTORY_MATTERS, f"What {whose} leads to depends on the way there ({rows}).")


class _TiedDraws:
    """Draws of pairs that are assumed to share a law."""

    def __init__(self, atlas: Atlas, tied: Ties, numbers: _PairNumbers, assume: Assumptions, level: float) -> None:
        self._outcome_of = assume.get("tied")
        self._test = HistoryTest(level)
        self._classes: dict[tuple[State, Action], Hashable] = {}
        self._named: dict[tuple[State, Action, State], Hashable] = {}
        self._leads_to: dict[tuple[State, Action, Hashable], State] = {}
        self._batch: list[tuple[Hashable, Hashable, Hashable, int]] = []
        self._predicted: set[tuple[State, Action, Hashable]] = set()
        pairs = [numbers.label_of(number) for number in range(len(atlas.counts.visits))]
        counts, names = atlas.counts, tuple(map(_class_and_name, tied.names))
        for number, pair in enumerate(pairs):
            row: dict[Hashable, int] = {}
            for entry in range(*counts.row_offsets[number : number + 2].tolist()):
                outcome = int(tied.outcomes[entry])
                if outcome != UNTIED:
                    kind, name = names[outcome]
                    successor = atlas.seen[counts.successors[entry]]
                    self._classes[pair], self._named[*pair, successor] = kind, name
                    self._leads_to[*pair, name] = successor
                    row[name] = int(counts.counts[entry])
            if row:
                self._test.begin_with(self._classes[pair], pair, row)
        for number, outcome, successor in tied.predicted.tolist():
            named = *pairs[number], names[outcome][1]
            self._leads_to.setdefault(named, atlas.seen[successor])
            self._named.setdefault((*pairs[number], atlas.seen[successor]), names[outcome][1])
            self._predicted.add(named)

    def is_tied(self, pair: _Pair) -> bool:
        """Returns whether a pair is known to share its law."""
        return pair.label in self._classes

    def add(self, pair: _Pair, successor: State, times: int) -> tuple[str, str] | None:
        """Adds a draw, and returns the assumption that it contradicts, and what is assumed, if it contradicts one."""
        kind, name = self._classes.get(pair.label), self._named.get((*pair.label, successor))
        if name is None:
            given = None if self._outcome_of is None else self._outcome_of(*pair.label, successor)
            if given is None:
                is_refuted = self._outcome_of is not None and kind is not None
                return ("tied", f"its class is {readable(kind)}, and this has none") if is_refuted else None
            other, name = given
            if self._classes.setdefault(pair.label, other) != other:
                return "tied", f"its class is {readable(kind)}, and this is one of {readable(other)}"
            kind = other
            led = self._leads_to.setdefault((*pair.label, name), successor)
            if led != successor:
                assumption = "leads-to" if (*pair.label, name) in self._predicted else "tied"
                return assumption, f"the outcome {readable(name)} is assumed to lead to {readable(led)} there"
            self._named[*pair.label, successor] = name
        self._batch.append((pair.label, kind, name, times))
        return None

    def look(self) -> Finding | None:
        """Returns what the draws since the last look say of the classes; None if nothing."""
        batch, self._batch = self._batch, []
        self._test.add(batch)
        alarm = self._test.alarm
        if alarm is None:
            return None
        rows = [f"{_label_text(pair)}: {_row_text(alarm, pair)}" for pair in two_that_differ(alarm.table)]
        seen = f"The actions of class {readable(alarm.pair)} do not share one law ({'; '.join(rows)})."
        return assumption_finding("tied", seen, Level.DOUBT)


class _PairNumbers:
    """The numbers of counted pairs by their labels, and the reverse; no pair is held, since there may be millions."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._counted = counted_indices(counts)

    def get(self, state: State, action: Action) -> int | None:
        """Returns the number of a pair; None if it was not counted."""
        number = self._counts.order.indices.get(state)
        counted = NONE if number is None else int(self._counted[number])
        if counted == NONE or action not in self._counts.actions[counted]:
            return None
        return int(self._counts.state_pairs[counted]) + self._counts.actions[counted].indices[action]

    def label_of(self, number: int) -> tuple[State, Action]:
        """Returns the labels of a pair."""
        counts = self._counts
        counted = int(np.searchsorted(counts.state_pairs, number, side="right")) - 1
        return counts.order[int(counts.states[counted])], counts.actions[counted][
            number - int(counts.state_pairs[counted])
        ]


def _counted(atlas: Atlas, number: int) -> dict[Hashable, int]:
    """Returns how often a counted pair led to each state, in the order in which they were first met."""
    rows = atlas.counts
    entries = slice(*rows.row_offsets[number : number + 2].tolist())
    met = zip(rows.successors[entries].tolist(), rows.counts[entries].tolist(), strict=True)
    return {atlas.seen[successor]: times for successor, times in met}


def _region_if_needed(atlas: Atlas) -> ConfidenceRegion | None:
    """Returns the confidence region of all counts if supports may be closed; None if not."""
    if atlas.assumed is None or not any(kind.closes and kind.is_in(atlas.assumed) for kind in pair_kinds()):
        return None
    from axplore.atlas.learned_model import region_of

    return region_of(atlas)


def _label_text(pair: Any) -> str:
    state, action = pair
    return f"action {readable(action)} in state {readable(state)}"


def _row_text(alarm: Dependence, context: Hashable) -> str:
    row = sorted(alarm.table[context].items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{readable(state)} {times} times" for state, times in row)


def _class_and_name(named: Hashable) -> tuple[Hashable, Hashable]:
    """Returns the class of an outcome and its own name."""
    assert isinstance(named, tuple)
    kind, name = named
    return kind, name
