"""Counting transitions, while states are discovered.

Only the pairs of states that were added are counted. The order of states is that of discovery; rows stand in the order
in which states were added. Counts are values: each function returns new ones, which share what did not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

import numpy as np
from msgspec import structs

from axplore.compressed import entries_in, offsets_from
from axplore.errors import InvalidInputError
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.types import Action, IntArray

PAIR, SUCCESSOR, COUNT, FIRST_DRAW = range(4)
"""Columns of a table of transitions met."""

NONE: Final = -1
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


def no_counts(order: Labels) -> Counts:
    """Returns counts to which states of this order can be added."""
    nothing = np.zeros(0, dtype=np.int64)
    return Counts(order, (), nothing, np.zeros(1, dtype=np.int64), nothing, nothing, nothing)


def with_order(counts: Counts, order: Labels) -> Counts:
    """Returns the counts with an order in which more states may follow; refuses one that begins otherwise."""
    if len(order) == len(counts.order) and order == counts.order:
        return counts
    if order[: len(counts.order)] != counts.order:
        raise InvalidInputError("states have changed their order since they were counted")
    return structs.replace(counts, order=order)


def with_states(counts: Counts, actions: Mapping[int, Iterable[Action]]) -> Counts:
    """Returns counts to which the draws of these states can be added too.

    Args:
        counts: the counts so far.
        actions: the actions of each state, by its index; a state without actions is terminal.
    """
    counted = counted_indices(counts)
    for state in actions:
        if not 0 <= state < len(counts.order):
            raise InvalidInputError(f"there is no state {state}: {len(counts.order)} states were met")
        if counted[state] != NONE:
            raise InvalidInputError(f"state {state} was added before")
    added = tuple(map(Labels.shared, actions.values()))
    n_fresh = sum(map(len, added))
    return structs.replace(
        counts,
        actions=(*counts.actions, *added),
        states=np.append(counts.states, list(actions)).astype(np.int64),
        row_offsets=np.append(counts.row_offsets, np.full(n_fresh, len(counts.successors))),
    )


def with_answers(counts: Counts, answers: Iterable[Transitions], order: Labels) -> Counts:
    """Returns the counts with those of these answers, in their order; refuses a state that was not added.

    Args:
        counts: the counts so far.
        answers: what was drawn.
        order: the labels of the states met so far, which the answers refer to.
    """
    counts = with_order(counts, order)
    drawn = _joined(list(answers))
    pairs = _pairs_of(counts, drawn.pair_states, drawn.pair_actions)
    _check_transitions(drawn, pairs, len(order))
    visits, before = counts.visits.copy(), np.empty_like(pairs)
    for first, end in pairwise(drawn.offsets.tolist()):  # a pair may be in several answers, but once in each
        before[first:end] = visits[pairs[first:end]]
        visits[pairs[first:end]] += drawn.pair_draws[first:end]
    first_draws = before[drawn.entry_pairs] + drawn.entry_first_draws
    met = np.column_stack((pairs[drawn.entry_pairs], drawn.entry_successors, drawn.entry_counts, first_draws))
    return _merged(counts, met)


def rows_of(counts: Counts, states: IntArray) -> Counts:
    """Returns the rows of some of the counted states, by index, in this order."""
    if np.array_equal(counts.states, states):
        return counts
    chosen = counted_indices(counts)[states]
    if (chosen == NONE).any():
        raise InvalidInputError(f"state {states[np.argmin(chosen)]} was not counted")
    pairs = entries_in(counts.state_pairs, chosen)
    entries = entries_in(counts.row_offsets, pairs)
    return structs.replace(
        counts,
        actions=tuple(counts.actions[index] for index in chosen.tolist()),
        states=counts.states[chosen],
        row_offsets=offsets_from(np.diff(counts.row_offsets)[pairs]),
        successors=counts.successors[entries],
        counts=counts.counts[entries],
        first_draws=counts.first_draws[entries],
    )


def in_order(counts: Counts, chosen: IntArray) -> Counts:
    """Returns the same counts with another order of states, which is that of these indices.

    Raises:
        InvalidInputError: a state that was counted or met is none of these, or one of them is named twice.
    """
    indices = np.full(len(counts.order), NONE)
    indices[chosen] = np.arange(len(chosen))
    states, successors = indices[counts.states], indices[counts.successors]
    if (states == NONE).any() or (successors == NONE).any() or (indices != NONE).sum() != len(chosen):
        raise InvalidInputError("the new order of states lacks one that was counted or met, or names one twice")
    order = Labels(counts.order[index] for index in chosen.tolist())
    return structs.replace(counts, order=order, states=states, successors=successors)


def counted_indices(counts: Counts) -> IntArray:
    """Returns the index of each state among the counted ones; -1 for the others, [S]."""
    indices = np.full(len(counts.order), NONE)
    indices[counts.states] = np.arange(len(counts.states))
    return indices


def _pairs_of(counts: Counts, states: IntArray, actions: IntArray) -> IntArray:
    """Returns the pairs of counted states with actions of theirs, [m]."""
    indices = np.full(len(states), NONE)
    met = (states >= 0) & (states < len(counts.order))
    indices[met] = counted_indices(counts)[states[met]]
    if (indices == NONE).any():
        state = states[np.argmin(indices)]
        raise InvalidInputError(f"a transition out of state {state} cannot be counted: the state was not added")
    pairs: IntArray = counts.state_pairs[indices] + actions
    wrong = (actions < 0) | (pairs >= counts.state_pairs[indices + 1])
    if wrong.any():
        first = np.argmax(wrong)
        raise InvalidInputError(f"state {states[first]} was added without an action {actions[first]}")
    return pairs


def _merged(rows: Counts, met: IntArray) -> Counts:
    """Returns the rows with what was met, [e, 4]."""
    from axplore.statistics.count_kernels import merge

    counts = rows.counts.copy()
    n_fresh = merge(rows.row_offsets, rows.successors, counts, met)
    if not n_fresh:  # the rest is shared
        return structs.replace(rows, counts=counts)
    fresh = met[:n_fresh]
    fresh = fresh[np.lexsort((fresh[:, FIRST_DRAW], fresh[:, PAIR]))]
    # A transition met for the first time stands behind those of its pair that were met before.
    ends = rows.row_offsets[fresh[:, PAIR] + 1]
    lengths = np.bincount(fresh[:, PAIR], minlength=len(rows.row_offsets) - 1)
    return structs.replace(
        rows,
        row_offsets=rows.row_offsets + np.append(0, np.cumsum(lengths)),
        successors=np.insert(rows.successors, ends, fresh[:, SUCCESSOR]),
        counts=np.insert(counts, ends, fresh[:, COUNT]),
        first_draws=np.insert(rows.first_draws, ends, fresh[:, FIRST_DRAW]),
    )


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
        return np.concatenate([np.zeros(0, np.int64), *(getattr(answer, name) for answer in answers)])

    offsets = offsets_from(np.array([len(answer.pair_states) for answer in answers], dtype=np.int64))
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


def _check_transitions(drawn: _Draws, pairs: IntArray, n_states: int) -> None:
    """Refuses an answer that names a pair twice, or whose transitions do not add up to its draws."""
    unknown = (drawn.entry_successors < 0) | (drawn.entry_successors >= n_states)
    if unknown.any():
        successor = drawn.entry_successors[np.argmax(unknown)]
        raise InvalidInputError(f"a transition leads to state {successor}, but {n_states} states were met")
    answers = np.repeat(np.arange(len(drawn.offsets) - 1), np.diff(drawn.offsets))
    if not np.diff(np.sort(answers * (pairs.max(initial=0) + 1) + pairs)).all():
        raise InvalidInputError("the answer names a pair twice")
    met = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(met, drawn.entry_pairs, drawn.entry_counts)
    if not np.array_equal(met, drawn.pair_draws):
        first = np.argmax(met != drawn.pair_draws)
        raise InvalidInputError(
            f"state {drawn.pair_states[first]}, action {drawn.pair_actions[first]}: "
            f"{drawn.pair_draws[first]} draws, but {met[first]} transitions"
        )


def check_counts(counts: Counts) -> None:
    """Refuses saved counts that no counting can have led to."""
    n_states, n_entries = len(counts.order), len(counts.successors)
    indices = np.concatenate((counts.states, counts.successors))
    if (indices < 0).any() or (indices >= n_states).any():
        raise InvalidInputError(f"the saved counts are damaged: an index is none of the {n_states} states met")
    if len(np.unique(counts.states)) != len(counts.states) or len(counts.actions) != len(counts.states):
        raise InvalidInputError("the saved counts are damaged: a state was added twice, or without its actions")
    offsets, n_pairs = counts.row_offsets, int(counts.state_pairs[-1])
    if len(offsets) != n_pairs + 1 or offsets[0] != 0 or offsets[-1] != n_entries or (np.diff(offsets) < 0).any():
        raise InvalidInputError("the saved counts are damaged: their rows do not fit each other")
    if len(counts.counts) != n_entries or len(counts.first_draws) != n_entries or (counts.counts < 1).any():
        raise InvalidInputError("the saved counts are damaged: some entries are incomplete")
    pairs = counts.entry_pairs
    if len(np.unique(np.column_stack((pairs, counts.successors)), axis=0)) != n_entries:
        raise InvalidInputError("the saved counts are damaged: a pair has the same successor twice")
    ascending = (np.diff(counts.first_draws) > 0) | (np.diff(pairs) > 0)
    first_draws = counts.first_draws
    if not ascending.all() or (first_draws < 1).any() or (first_draws > counts.visits[pairs]).any():
        raise InvalidInputError("the saved counts are damaged: successors were first seen at impossible draws")
