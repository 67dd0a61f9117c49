"""Counts transitions one by one, and makes an answer of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from axplore.errors import InvalidSettingError, UnknownStateError
from axplore.types import Action, IntArray, State
from axplore.worlds.contract import NOWHERE, Answer, WorldSnapshot


class Tally:
    """The transitions met while an order is carried out.

    Attributes:
        rows: {pair: {successor: how often it was met}}, both in the order in which they were first met. Whoever steps
            adds to a count that is there by himself, which is quicker, and calls `note_first` for one that is not.
    """

    __slots__ = ("_firsts", "rows")

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], dict[int, int]] = {}
        self._firsts: list[tuple[tuple[int, int], int, int]] = []

    def note_first(self, pair: tuple[int, int], successor: int) -> None:
        """Counts a transition that was not met before, of a pair (state, action)."""
        row = self.rows.setdefault(pair, {})
        row[successor] = 1
        self._firsts.append((pair, successor, sum(row.values())))

    def add(self, answer: Answer, numbers: IntArray) -> None:
        """Counts what another answer holds, as if it had happened after everything here.

        Args:
            answer: what to add.
            numbers: the number here of each state there, [n].
        """
        states = numbers[answer.pair_states].tolist()
        pairs = list(zip(states, answer.pair_actions.tolist(), strict=True))
        rows = [self.rows.setdefault(pair, {}) for pair in pairs]
        before = [sum(row.values()) for row in rows]
        for place, successor, count, first in zip(
            answer.entry_pairs.tolist(),
            numbers[answer.entry_successors].tolist(),
            answer.entry_counts.tolist(),
            answer.entry_first_draws.tolist(),
            strict=True,
        ):
            row = rows[place]
            if successor not in row:
                self._firsts.append((pairs[place], successor, before[place] + first))
            row[successor] = row.get(successor, 0) + count

    def answer(
        self,
        steps: int,
        completed: int,
        arrivals: int,
        travelled: int,
        cut_journeys: int,
        outcomes: Sequence[int] = (),
    ) -> Answer:
        """The answer to an order that is over."""
        places = {pair: place for place, pair in enumerate(self.rows)}
        return Answer(
            steps=steps,
            completed=completed,
            arrivals=arrivals,
            travelled=travelled,
            cut_journeys=cut_journeys,
            pair_states=_array([state for state, _ in self.rows]),
            pair_actions=_array([action for _, action in self.rows]),
            pair_draws=_array([sum(row.values()) for row in self.rows.values()]),
            entry_pairs=_array([places[pair] for pair, _, _ in self._firsts]),
            entry_successors=_array([successor for _, successor, _ in self._firsts]),
            entry_counts=_array([self.rows[pair][successor] for pair, successor, _ in self._firsts]),
            entry_first_draws=_array([first for _, _, first in self._firsts]),
            outcomes=_array(outcomes),
        )


def _array(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


class DiscoveredStates:
    """States with their actions, numbered in the order in which they were added.

    Attributes:
        labels: of the states, by number.
        actions: of each.
        numbers: of the labels. All three stay the same objects, so that whoever looks often can keep hold of them.
    """

    __slots__ = ("actions", "labels", "numbers")

    def __init__(self, states: Iterable[tuple[State, tuple[Action, ...]]] = ()) -> None:
        self.labels: Final[list[State]] = []
        self.actions: Final[list[tuple[Action, ...]]] = []
        self.numbers: Final[dict[State, int]] = {}
        self.extend(states)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: State, actions: tuple[Action, ...]) -> int:
        """Numbers another state."""
        number = self.numbers[label] = len(self.labels)
        self.labels.append(label)
        self.actions.append(actions)
        return number

    def extend(self, states: Iterable[tuple[State, tuple[Action, ...]]]) -> None:
        """Numbers other states."""
        for label, actions in states:
            self.add(label, actions)

    def forget(self, n_kept: int) -> None:
        """Forgets all states but the first so many."""
        for label in self.labels[n_kept:]:
            del self.numbers[label]
        del self.labels[n_kept:], self.actions[n_kept:]

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Replaces the states by those of a snapshot; refuses one of another system, which starts elsewhere."""
        if snapshot.labels[:1] != (self.labels[0],):
            raise InvalidSettingError(f"the snapshot is of another system: this one starts in {self.labels[0]!r}")
        self.forget(0)
        self.extend(zip(snapshot.labels, snapshot.actions, strict=True))

    def snapshot(self, steps: int, calls: int, position: int = NOWHERE) -> WorldSnapshot:
        """Returns the snapshot of a world with these states."""
        return WorldSnapshot(tuple(self.labels), tuple(self.actions), steps, calls, position)

    def since(self, n_first: int) -> tuple[tuple[State, tuple[Action, ...]], ...]:
        """The states after the first so many, each with its actions."""
        return tuple(zip(self.labels[n_first:], self.actions[n_first:], strict=True))

    def actions_of(self, number: int) -> tuple[Action, ...]:
        """The actions of a state; refuses a number that none has."""
        if not 0 <= number < len(self.labels):
            raise UnknownStateError(f"no state {number!r}; the discovered states are 0 to {len(self.labels) - 1}")
        return self.actions[number]

    def action_counts(self) -> IntArray:
        """How many actions each state has, [n]."""
        return np.array([len(actions) for actions in self.actions], dtype=np.int64)
