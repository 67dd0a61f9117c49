"""Counts of transitions: sparse, and growing with discovery.

Only the pairs of states that were added are counted. States are numbered as the world numbers them, in the order of
discovery; rows stand in the order in which states were added. A row holds the successors seen so far in the order in
which they were first seen, each with the draw of the pair, counted from 1, at which that happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled
from axplore.errors import InvalidInputError
from axplore.types import IntArray

_PAIR, _SUCCESSOR, _COUNT, _FIRST_DRAW, _OLDER = range(5)
"""Columns of the table of entries. `_OLDER` is the entry of the same pair that was seen before it."""

_NONE: Final = -1
"""No state, or no entry."""


class Transitions(Protocol):
    """Transitions met in a stretch of time: the part of a world's answer that is counted.

    The fields are those of `axplore.worlds.contract.Answer`.
    """

    @property
    def pair_states(self) -> IntArray: ...
    @property
    def pair_actions(self) -> IntArray: ...
    @property
    def pair_draws(self) -> IntArray: ...
    @property
    def entry_pairs(self) -> IntArray: ...
    @property
    def entry_successors(self) -> IntArray: ...
    @property
    def entry_counts(self) -> IntArray: ...
    @property
    def entry_first_draws(self) -> IntArray: ...


@dataclass(frozen=True, eq=False)
class CountedRows:
    """All counts at one moment, as compressed rows; the arrays cannot be written to.

    Attributes:
        states: the number of each added state, in the order of addition, [K].
        state_pairs: the first pair of each added state, and the end of the last one, [K + 1].
        visits: how often each pair was drawn (N(s, a) in the paper), [P].
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the number of the state that each entry leads to, [E].
        counts: how often it was met (N(s, a, s') in the paper), [E].
        first_draws: at which draw of its pair it was met first, ascending within a row, [E].
    """

    states: IntArray
    state_pairs: IntArray
    visits: IntArray
    row_offsets: IntArray
    successors: IntArray
    counts: IntArray
    first_draws: IntArray

    def __post_init__(self) -> None:
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    @property
    def entry_pairs(self) -> IntArray:
        """The pair of each entry, [E]."""
        return np.repeat(np.arange(len(self.visits)), np.diff(self.row_offsets))


class TransitionCounts:
    """Counts of the transitions out of added states. An answer costs what it holds, not what was counted before."""

    def __init__(self) -> None:
        # Arrays have room to spare; the numbers of states, pairs and entries say how much of them is used.
        self._n_states = self._n_pairs = self._n_entries = 0
        self._states = np.empty(0, dtype=np.int64)
        self._state_pairs = np.zeros(1, dtype=np.int64)
        self._places = np.empty(0, dtype=np.int64)  # of each state, by number, among the added ones
        self._visits = np.empty(0, dtype=np.int64)
        self._newest = np.empty(0, dtype=np.int64)  # entry of each pair
        self._entries = np.empty((0, 5), dtype=np.int64)
        self._order = np.empty(0, dtype=np.int64)  # of entries in rows
        self._rows = self._new_rows()
        self._grown = self._changed = False  # since the rows were made

    @property
    def n_states(self) -> int:
        """How many states were added."""
        return self._n_states

    @property
    def n_pairs(self) -> int:
        """How many pairs the added states have."""
        return self._n_pairs

    @property
    def n_entries(self) -> int:
        """How many different transitions were met."""
        return self._n_entries

    def add_state(self, number: int, n_actions: int) -> None:
        """Counts the draws of a state from now on; one without actions is terminal."""
        if number < 0 or n_actions < 0:
            raise InvalidInputError(f"state {number} with {n_actions} actions: neither may be negative")
        self._places = _with_room(self._places, number + 1, _NONE)
        if self._places[number] != _NONE:
            raise InvalidInputError(f"state {number} was added before")
        self._places[number] = self._n_states
        self._states = _with_room(self._states, self._n_states + 1, 0)
        self._states[self._n_states] = number
        self._n_states += 1
        self._n_pairs += n_actions
        self._state_pairs = _with_room(self._state_pairs, self._n_states + 1, 0)
        self._state_pairs[self._n_states] = self._n_pairs
        self._visits = _with_room(self._visits, self._n_pairs, 0)
        self._newest = _with_room(self._newest, self._n_pairs, _NONE)
        self._grown = True

    def add(self, transitions: Transitions) -> None:
        """Adds the transitions of an answer to what was counted before; refuses them if a state was not added."""
        pairs = self._pairs_of(transitions.pair_states, transitions.pair_actions)
        _check_transitions(transitions, pairs)
        entry_pairs = pairs[transitions.entry_pairs]
        first_draws = self._visits[entry_pairs] + transitions.entry_first_draws
        self._visits[pairs] += transitions.pair_draws
        self._merge(entry_pairs, transitions.entry_successors, transitions.entry_counts, first_draws)

    def rows(self) -> CountedRows:
        """Everything counted so far. Rows are laid out anew only if an entry or a state was added meanwhile."""
        if self._grown:
            self._rows = self._new_rows()
        elif self._changed:
            self._rows = replace(self._rows, visits=self._current_visits(), counts=self._current_counts())
        self._grown = self._changed = False
        return self._rows

    def to_arrays(self) -> dict[str, IntArray]:
        """The arrays of `rows()` by name, for saving."""
        rows = self.rows()
        return {field.name: getattr(rows, field.name) for field in fields(rows)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.ArrayLike]) -> TransitionCounts:
        """Restores what `to_arrays` gave; refuses arrays that contradict each other."""
        names = [field.name for field in fields(CountedRows)]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise InvalidInputError(f"the saved counts are damaged: the array {missing[0]!r} is missing")
        rows = CountedRows(**{name: np.array(arrays[name], np.int64) for name in names})
        _check_rows(rows)
        restored = cls()
        for number, n_actions in zip(rows.states.tolist(), np.diff(rows.state_pairs).tolist(), strict=True):
            restored.add_state(number, n_actions)
        restored._visits[: restored._n_pairs] = rows.visits
        restored._merge(rows.entry_pairs, rows.successors, rows.counts, rows.first_draws)
        return restored

    def _pairs_of(self, states: IntArray, actions: IntArray) -> IntArray:
        """The pairs of added states with actions of theirs, [m]."""
        places = np.full(len(states), _NONE)
        numbered = (states >= 0) & (states < len(self._places))
        places[numbered] = self._places[states[numbered]]
        if (places == _NONE).any():
            number = states[np.argmax(places == _NONE)]
            raise InvalidInputError(f"a transition out of state {number} cannot be counted: the state was not added")
        pairs: IntArray = self._state_pairs[places] + actions
        wrong = (actions < 0) | (pairs >= self._state_pairs[places + 1])
        if wrong.any():
            first = np.argmax(wrong)
            raise InvalidInputError(f"state {states[first]} was added without an action {actions[first]}")
        return pairs

    def _merge(self, pairs: IntArray, successors: IntArray, counts: IntArray, first_draws: IntArray) -> None:
        """Adds counted transitions that are all different, [e] each."""
        self._entries = _with_room(self._entries, self._n_entries + len(pairs), 0)
        met = np.column_stack((pairs, successors, counts, first_draws))
        n_entries = _merge(self._entries, self._n_entries, self._newest, met)
        self._changed = True
        self._grown |= n_entries > self._n_entries
        self._n_entries = n_entries

    def _new_rows(self) -> CountedRows:
        entries = self._entries[: self._n_entries]
        self._order = np.lexsort((entries[:, _FIRST_DRAW], entries[:, _PAIR]))
        lengths = np.bincount(entries[:, _PAIR], minlength=self._n_pairs)
        return CountedRows(
            states=self._states[: self._n_states].copy(),
            state_pairs=self._state_pairs[: self._n_states + 1].copy(),
            visits=self._current_visits(),
            row_offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            successors=entries[self._order, _SUCCESSOR],
            counts=self._current_counts(),
            first_draws=entries[self._order, _FIRST_DRAW],
        )

    def _current_visits(self) -> IntArray:
        return self._visits[: self._n_pairs].copy()

    def _current_counts(self) -> IntArray:
        counts: IntArray = self._entries[self._order, _COUNT]
        return counts


def _with_room(array: IntArray, size: int, fill: int) -> IntArray:
    """The array, or a longer copy of it if it has no room for `size` items."""
    if size <= len(array):
        return array
    longer = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, dtype=np.int64)
    longer[: len(array)] = array
    return longer


@compiled
def _merge(entries: IntArray, n_entries: int, newest: IntArray, met: IntArray) -> int:
    """Adds what was met, [e, 4], to the entries; returns how many entries there are then."""
    for item in range(len(met)):
        pair, successor = met[item, _PAIR], met[item, _SUCCESSOR]
        entry = newest[pair]
        while entry != _NONE and entries[entry, _SUCCESSOR] != successor:
            entry = entries[entry, _OLDER]
        if entry != _NONE:
            entries[entry, _COUNT] += met[item, _COUNT]
        else:
            for column in range(_OLDER):
                entries[n_entries, column] = met[item, column]
            entries[n_entries, _OLDER] = newest[pair]
            newest[pair] = n_entries
            n_entries += 1
    return n_entries


def _check_transitions(transitions: Transitions, pairs: IntArray) -> None:
    """Refuses an answer that names a pair twice, or whose transitions do not add up to its draws."""
    if len(np.unique(pairs)) != len(pairs):
        raise InvalidInputError("the answer names a pair twice")
    met = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(met, transitions.entry_pairs, transitions.entry_counts)
    if not np.array_equal(met, transitions.pair_draws):
        first = np.argmax(met != transitions.pair_draws)
        raise InvalidInputError(
            f"state {transitions.pair_states[first]}, action {transitions.pair_actions[first]}: "
            f"{transitions.pair_draws[first]} draws, but {met[first]} transitions"
        )


def _check_rows(rows: CountedRows) -> None:
    """Refuses saved arrays that no counting can have led to."""
    n_pairs, n_entries = len(rows.visits), len(rows.successors)
    for offsets, n_rows, end in ((rows.state_pairs, len(rows.states), n_pairs), (rows.row_offsets, n_pairs, n_entries)):
        if len(offsets) != n_rows + 1 or offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) < 0).any():
            raise InvalidInputError("the saved counts are damaged: their rows do not fit each other")
    if len(rows.counts) != n_entries or len(rows.first_draws) != n_entries:
        raise InvalidInputError("the saved counts are damaged: some entries are incomplete")
    pairs = rows.entry_pairs
    if (rows.counts < 1).any() or not np.array_equal(np.bincount(pairs, rows.counts, n_pairs), rows.visits):
        raise InvalidInputError("the saved counts are damaged: they do not add up to the visits")
    if len(np.unique(np.column_stack((pairs, rows.successors)), axis=0)) != n_entries:
        raise InvalidInputError("the saved counts are damaged: a pair has the same successor twice")
    ascending = (np.diff(rows.first_draws) > 0) | (np.diff(pairs) > 0)
    if not ascending.all() or (rows.first_draws < 1).any() or (rows.first_draws > rows.visits[pairs]).any():
        raise InvalidInputError("the saved counts are damaged: the draws at which successors were first seen cannot be")
