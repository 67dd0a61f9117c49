"""Everything that was drawn from a system, in one record for explorers, certificates and atlases."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from axplore.records.codec import Record
from axplore.records.order import Labels
from axplore.types import IntArray


class Counts(Record, frozen=True):
    """The transitions out of the counted states, as compressed rows.

    A *pair* is a counted state with one of its actions: the actions of the first counted state come first, then those
    of the second. A row holds the successors of a pair in the order in which they were first seen.

    All indices of states refer to `order`, so what a row is about can be read from the record alone.

    Attributes:
        order: the labels of the states seen.
        actions: the labels of the actions of each counted state, without RESET, [K].
        states: the index of each counted state, in the order in which states were first counted, [K].
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the index of the state that each entry leads to, [E].
        counts: N(s, a, s'), the number of times that each entry was drawn, [E].
        first_draws: at which draw of its pair, counted from 1, each entry came first, ascending within a row, [E].
    """

    order: Labels
    actions: tuple[Labels, ...]
    states: IntArray
    row_offsets: IntArray
    successors: IntArray
    counts: IntArray
    first_draws: IntArray

    @cached_property
    def state_pairs(self) -> IntArray:
        """The first pair of each counted state, and the end of the last one, [K + 1]."""
        return np.cumsum([0, *map(len, self.actions)], dtype=np.int64)

    @cached_property
    def visits(self) -> IntArray:
        """N(s, a), the number of draws of each pair, [P]."""
        drawn = np.concatenate(([0], np.cumsum(self.counts)))
        return np.diff(drawn[self.row_offsets]).astype(np.int64)

    @cached_property
    def entry_pairs(self) -> IntArray:
        """The pair of each entry, [E]."""
        return np.repeat(np.arange(len(self.row_offsets) - 1), np.diff(self.row_offsets))
