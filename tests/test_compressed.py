from __future__ import annotations

import numpy as np

from axplore.compressed import entries_in, offsets_from, offsets_of, without

NOTHING = np.zeros(0, dtype=np.int64)


def test_offsets_begin_where_rows_do_and_end_with_the_last() -> None:
    assert offsets_from(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert offsets_from(NOTHING).tolist() == [0]
    assert offsets_from(np.array([True, False, True])).tolist() == [0, 1, 1, 2]
    assert offsets_of(np.array([0, 0, 2, 2, 2]), 4).tolist() == [0, 2, 2, 5, 5]
    assert offsets_of(NOTHING, 2).tolist() == [0, 0, 0]


def test_entries_come_row_by_row_in_the_order_asked_for() -> None:
    offsets = np.array([0, 2, 2, 5])
    assert entries_in(offsets, np.array([2, 0])).tolist() == [2, 3, 4, 0, 1]
    assert entries_in(offsets, np.array([1, 0, 0])).tolist() == [0, 1, 0, 1]
    assert entries_in(offsets, NOTHING).tolist() == []


def test_numbers_without_others_come_once_and_ascending() -> None:
    assert without(np.array([7, 2, 2, 9, 0]), np.array([2, 11])).tolist() == [0, 7, 9]
    assert without(NOTHING, np.array([3])).tolist() == []
    assert without(np.array([3]), NOTHING).tolist() == [3]
    assert without(NOTHING, NOTHING).tolist() == []
