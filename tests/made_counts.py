"""Counts made by hand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from axplore.records.counts import Counts
from axplore.records.order import Labels

Entry: TypeAlias = tuple[int, int, int]
"""A successor, how often it was drawn, and at which draw of its pair first."""


def made_counts(
    rows: Sequence[Sequence[Entry]],
    n_actions: Sequence[int] | None = None,
    *,
    states: Sequence[int] | None = None,
    labels: Sequence[Hashable] | None = None,
) -> Counts:
    """The counts of these rows, one for each pair.

    Args:
        rows: the entries of each pair.
        n_actions: the number of actions of each counted state; one for each row by default.
        states: the counted states; the first ones by default.
        labels: those of all states; by default they are numbers, as many as occur.
    """
    sizes = [1] * len(rows) if n_actions is None else n_actions
    counted = list(range(len(sizes))) if states is None else list(states)
    entries = np.array([entry for row in rows for entry in row], dtype=np.int64).reshape(-1, 3)
    successors, counts, first_draws = (np.ascontiguousarray(column) for column in entries.T)
    n_seen = max((-1, *counted, *successors.tolist())) + 1
    return Counts(
        order=_numbers(n_seen) if labels is None else Labels(labels),
        actions=tuple(map(_actions, sizes)),
        states=np.array(counted, dtype=np.int64),
        row_offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        successors=successors,
        counts=counts,
        first_draws=first_draws,
    )


@cache
def _numbers(n_states: int) -> Labels:
    return Labels(range(n_states))


@cache
def _actions(size: int) -> Labels:
    return Labels(f"a{action}" for action in range(size))


def as_entries(rows: Sequence[Sequence[int]], first_draws: Sequence[Sequence[int]] | None = None) -> list[list[Entry]]:
    """Rows of counts as entries: successors are 0, 1, ..., by default all first seen in the first draws."""
    drawn = [range(1, len(row) + 1) for row in rows] if first_draws is None else first_draws
    return [[*zip(range(len(row)), row, first, strict=True)] for row, first in zip(rows, drawn, strict=True)]


def same_counts(one: Counts, other: Counts) -> bool:
    """Whether two records of counts hold the same."""
    arrays = ("states", "row_offsets", "successors", "counts", "first_draws")
    return (one.order, one.actions) == (other.order, other.actions) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )
