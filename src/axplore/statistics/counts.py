"""Counts of transitions: sparse, and growing with discovery.

Only the pairs of states that were added are counted. States are numbered as the world numbers them, in the order of
discovery; rows stand in the order in which states were added. A row holds the successors seen so far in the order in
which they were first seen, each with the draw of the pair, counted from 1, at which that happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled
from axplore.errors import InvalidInputError
from axplore.types import IntArray

_PAIR, _SUCCESSOR, _COUNT, _FIRST_DRAW = range(4)
"""Columns of a table of transitions met."""

_NONE: Final = -1
"""Marks a missing index."""


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
        visits: N(s, a), the number of draws from each pair, [P].
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the number of the state that each entry leads to, [E].
        counts: N(s, a, s'), the number of times each entry was met, [E].
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
        for array in fields(self):
            getattr(self, array.name).flags.writeable = False

    @cached_property
    def entry_pairs(self) -> IntArray:
        """The pair of each entry, [E]."""
        return np.repeat(np.arange(len(self.visits)), np.diff(self.row_offsets))


def rows_of(rows: CountedRows, states: IntArray) -> CountedRows:
    """Returns the rows of some of the states, by number, in this order."""
    place_of = {number: place for place, number in enumerate(rows.states.tolist())}
    places = np.array([place_of[number] for number in states.tolist()], dtype=np.int64)
    pairs = entries_in(rows.state_pairs, places)
    entries = entries_in(rows.row_offsets, pairs)
    return CountedRows(
        states=rows.states[places],
        state_pairs=_offsets(np.diff(rows.state_pairs)[places]),
        visits=rows.visits[pairs],
        row_offsets=_offsets(np.diff(rows.row_offsets)[pairs]),
        successors=rows.successors[entries],
        counts=rows.counts[entries],
        first_draws=rows.first_draws[entries],
    )


def entries_in(offsets: IntArray, rows: IntArray) -> IntArray:
    """Returns the entries of some rows, one row after the other; `offsets` has the first entry of each row."""
    lengths = np.diff(offsets)[rows]
    firsts = np.cumsum(lengths) - lengths
    entries: IntArray = np.repeat(offsets[:-1][rows] - firsts, lengths) + np.arange(int(lengths.sum()))
    return entries


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


_NOTHING: Final = CountedRows(*(np.array(values, dtype=np.int64) for values in ([], [0], [], [0], [], [], [])))


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """Counts of the transitions out of added states.

    It is a value: `with_states` and `with_answers` return new counts and leave these as they are. What did not change
    is shared, so that counts cost little more than their newest answers.
    """

    _rows: CountedRows = _NOTHING
    _places: IntArray = field(default_factory=lambda: _places_of(_NOTHING.states))

    @property
    def n_states(self) -> int:
        """The number of added states."""
        return len(self._rows.states)

    @property
    def n_pairs(self) -> int:
        """The number of pairs of the added states."""
        return len(self._rows.visits)

    @property
    def n_entries(self) -> int:
        """The number of different transitions met."""
        return len(self._rows.successors)

    def rows(self) -> CountedRows:
        """Returns everything counted so far."""
        return self._rows

    def with_states(self, n_actions: Mapping[int, int]) -> TransitionCounts:
        """Returns counts to which the draws of these states can be added too.

        Args:
            n_actions: the number of actions of each state, by its number; a state without actions is terminal.
        """
        rows = self._rows
        for number, size in n_actions.items():
            if number < 0 or size < 0:
                raise InvalidInputError(f"state {number} with {size} actions: neither may be negative")
            if number < len(self._places) and self._places[number] != _NONE:
                raise InvalidInputError(f"state {number} was added before")
        sizes = np.array(list(n_actions.values()), dtype=np.int64)
        n_fresh = int(sizes.sum())
        states = np.append(rows.states, list(n_actions)).astype(np.int64)
        rows = replace(
            rows,
            states=states,
            state_pairs=np.append(rows.state_pairs, self.n_pairs + np.cumsum(sizes)),
            visits=np.append(rows.visits, np.zeros(n_fresh, dtype=np.int64)),
            row_offsets=np.append(rows.row_offsets, np.full(n_fresh, self.n_entries)),
        )
        return TransitionCounts(rows, _places_of(states))

    def with_answers(self, answers: Iterable[Transitions]) -> TransitionCounts:
        """Returns the counts with those of these answers, in their order; refuses a state that was not added."""
        drawn = _joined(list(answers))
        pairs = self._pairs_of(drawn.pair_states, drawn.pair_actions)
        _check_transitions(drawn, pairs)
        visits, before = self._rows.visits.copy(), np.empty_like(pairs)
        for first, end in pairwise(drawn.offsets.tolist()):  # a pair may be in several answers, but once in each
            before[first:end] = visits[pairs[first:end]]
            visits[pairs[first:end]] += drawn.pair_draws[first:end]
        first_draws = before[drawn.entry_pairs] + drawn.entry_first_draws
        met = np.column_stack((pairs[drawn.entry_pairs], drawn.entry_successors, drawn.entry_counts, first_draws))
        return TransitionCounts(_merged(self._rows, visits, met), self._places)

    def to_arrays(self) -> dict[str, IntArray]:
        """Returns the arrays of `rows()` by name, for saving."""
        return {array.name: getattr(self._rows, array.name) for array in fields(self._rows)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.ArrayLike]) -> TransitionCounts:
        """Restores what `to_arrays` returned; refuses arrays that contradict each other."""
        names = [array.name for array in fields(CountedRows)]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise InvalidInputError(f"the saved counts are damaged: the array {missing[0]!r} is missing")
        rows = CountedRows(**{name: np.array(arrays[name], np.int64) for name in names})
        _check_rows(rows)
        return cls(rows, _places_of(rows.states))

    def _pairs_of(self, states: IntArray, actions: IntArray) -> IntArray:
        """Returns the pairs of added states with actions of theirs, [m]."""
        places = np.full(len(states), _NONE)
        numbered = (states >= 0) & (states < len(self._places))
        places[numbered] = self._places[states[numbered]]
        if (places == _NONE).any():
            number = states[np.argmax(places == _NONE)]
            raise InvalidInputError(f"a transition out of state {number} cannot be counted: the state was not added")
        state_pairs = self._rows.state_pairs
        pairs: IntArray = state_pairs[places] + actions
        wrong = (actions < 0) | (pairs >= state_pairs[places + 1])
        if wrong.any():
            first = np.argmax(wrong)
            raise InvalidInputError(f"state {states[first]} was added without an action {actions[first]}")
        return pairs


def _places_of(states: IntArray) -> IntArray:
    """Returns the place of each state among the added ones, by its number; `_NONE` for the others."""
    places = np.full(int(states.max(initial=-1)) + 1, _NONE)
    places[states] = np.arange(len(states))
    return places


def _merged(rows: CountedRows, visits: IntArray, met: IntArray) -> CountedRows:
    """Returns the rows with these visits, [P], and with what was met, [e, 4]."""
    counts = rows.counts.copy()
    n_fresh = _merge(rows.row_offsets, rows.successors, counts, met)
    if not n_fresh:  # the rest is shared
        return replace(rows, visits=visits, counts=counts)
    fresh = met[:n_fresh]
    fresh = fresh[np.lexsort((fresh[:, _FIRST_DRAW], fresh[:, _PAIR]))]
    # A transition met for the first time stands behind those of its pair that were met before.
    ends = rows.row_offsets[fresh[:, _PAIR] + 1]
    lengths = np.bincount(fresh[:, _PAIR], minlength=len(visits))
    return replace(
        rows,
        visits=visits,
        row_offsets=rows.row_offsets + np.append(0, np.cumsum(lengths)),
        successors=np.insert(rows.successors, ends, fresh[:, _SUCCESSOR]),
        counts=np.insert(counts, ends, fresh[:, _COUNT]),
        first_draws=np.insert(rows.first_draws, ends, fresh[:, _FIRST_DRAW]),
    )


@compiled
def _merge(row_offsets: IntArray, successors: IntArray, counts: IntArray, met: IntArray) -> int:
    """Adds what was met, [e, 4], to the counts, [E]; transitions without an entry are gathered at the front of `met`.

    Returns:
        How many different transitions these are.
    """
    n_fresh = 0
    newest = np.full(len(row_offsets) - 1, _NONE)  # of the gathered ones of each pair
    older = np.empty(len(met), np.int64)  # the one of the same pair that was gathered before it
    for item in range(len(met)):
        pair, successor = met[item, _PAIR], met[item, _SUCCESSOR]
        entry, end = row_offsets[pair], row_offsets[pair + 1]
        while entry < end and successors[entry] != successor:
            entry += 1
        if entry < end:
            counts[entry] += met[item, _COUNT]
            continue
        same = newest[pair]
        while same != _NONE and met[same, _SUCCESSOR] != successor:
            same = older[same]
        if same != _NONE:
            met[same, _COUNT] += met[item, _COUNT]
            continue
        met[n_fresh] = met[item]
        older[n_fresh] = newest[pair]
        newest[pair] = n_fresh
        n_fresh += 1
    return n_fresh


class _Draws(NamedTuple):
    """The transitions of several answers, one answer after the other; fields as in `Transitions`.

    Attributes:
        offsets: the first pair of each answer, and the end of the last one's, [k + 1].
        entry_pairs: the place of each entry's pair among those of all answers, [e].
    """

    offsets: IntArray
    pair_states: IntArray
    pair_actions: IntArray
    pair_draws: IntArray
    entry_pairs: IntArray
    entry_successors: IntArray
    entry_counts: IntArray
    entry_first_draws: IntArray


def _joined(answers: Sequence[Transitions]) -> _Draws:
    def joined(name: str) -> IntArray:
        return np.concatenate([_NOTHING.states, *(getattr(answer, name) for answer in answers)])

    offsets = _offsets(np.array([len(answer.pair_states) for answer in answers], dtype=np.int64))
    n_entries = np.array([len(answer.entry_pairs) for answer in answers], dtype=np.int64)
    return _Draws(
        offsets,
        joined("pair_states"),
        joined("pair_actions"),
        joined("pair_draws"),
        joined("entry_pairs") + np.repeat(offsets[:-1], n_entries),
        joined("entry_successors"),
        joined("entry_counts"),
        joined("entry_first_draws"),
    )


def _check_transitions(drawn: _Draws, pairs: IntArray) -> None:
    """Refuses an answer that names a pair twice, or whose transitions do not add up to its draws."""
    answers = np.repeat(np.arange(len(drawn.offsets) - 1), np.diff(drawn.offsets))
    if len(np.unique(answers * (pairs.max(initial=0) + 1) + pairs)) != len(pairs):
        raise InvalidInputError("the answer names a pair twice")
    met = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(met, drawn.entry_pairs, drawn.entry_counts)
    if not np.array_equal(met, drawn.pair_draws):
        first = np.argmax(met != drawn.pair_draws)
        raise InvalidInputError(
            f"state {drawn.pair_states[first]}, action {drawn.pair_actions[first]}: "
            f"{drawn.pair_draws[first]} draws, but {met[first]} transitions"
        )


def _check_rows(rows: CountedRows) -> None:
    """Refuses saved arrays that no counting can have led to."""
    n_pairs, n_entries = len(rows.visits), len(rows.successors)
    if (rows.states < 0).any() or len(np.unique(rows.states)) != len(rows.states):
        raise InvalidInputError("the saved counts are damaged: a state was added twice, or has a negative number")
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
