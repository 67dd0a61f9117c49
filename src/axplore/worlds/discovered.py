"""The states that a world has discovered, by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from axplore.errors import InvalidSettingError, UnknownStateError
from axplore.mdp import Action, IntArray, State


class Discovered:
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

    def restore(self, states: Iterable[tuple[State, tuple[Action, ...]]]) -> None:
        """Has these states instead; refuses those of another system, which starts elsewhere."""
        states = list(states)
        if not states or states[0][0] != self.labels[0]:
            raise InvalidSettingError(f"the snapshot is of another system: this one starts in {self.labels[0]!r}")
        self.forget(0)
        self.extend(states)

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
