"""Compressed rows: the entries of all rows, one row after the other, with the offset of each row."""

from __future__ import annotations

import numpy as np

from axplore.types import BoolArray, IntArray


def offsets_from(lengths: IntArray | BoolArray) -> IntArray:
    """Returns the first entry of each row from the lengths of the rows, and the end of the last one, [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def offsets_of(sorted_rows: IntArray, n_rows: int) -> IntArray:
    """Returns the same for entries of which the rows are given, sorted, [n_rows + 1]."""
    return offsets_from(np.bincount(sorted_rows, minlength=n_rows))


def entries_in(offsets: IntArray, rows: IntArray) -> IntArray:
    """Returns the entries of some rows, one row after the other."""
    lengths = offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(lengths)
    entries: IntArray = np.repeat(offsets[rows] - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)
    return entries


def without(numbers: IntArray, others: IntArray) -> IntArray:
    """Returns the numbers that are none of the others, each once and ascending; all are from 0 on and not large."""
    is_left = np.zeros(max(numbers.max(initial=-1), others.max(initial=-1)) + 1, dtype=np.bool_)
    is_left[numbers] = True
    is_left[others] = False
    return np.flatnonzero(is_left)
