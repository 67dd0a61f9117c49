from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.types import FloatArray, IntArray
from axplore.worlds.simulation_kernels import alias_tables, choose, next_word

# The first outputs of the authors' xoshiro256++ from the state (1, 2, 3, 4).
REFERENCE_WORDS = [
    41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205,
    9973669472204895162, 14011001112246962877, 12406186145184390807, 15849039046786891736, 10450023813501588000,
]  # fmt: skip

weights = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=12)


def compressed(rows: list[list[float]]) -> tuple[IntArray, FloatArray]:
    row_offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return row_offsets, np.concatenate([np.array(row) / np.sum(row) for row in rows])


def test_the_stream_is_xoshiro256_plus_plus() -> None:
    state = (np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4))
    words = []
    for _ in REFERENCE_WORDS:
        word, *rest = next_word(*state)
        state = tuple(np.uint64(part) for part in rest)  # type: ignore[assignment]
        words.append(int(word))
    assert words == REFERENCE_WORDS


@given(rows=st.lists(weights, min_size=1, max_size=4))
def test_the_columns_of_alias_tables_add_up_to_the_probabilities(rows: list[list[float]]) -> None:
    row_offsets, probabilities = compressed(rows)
    thresholds, aliases = alias_tables(row_offsets, probabilities)
    assert ((thresholds >= 0) & (thresholds <= 1)).all()
    for first, end in pairwise(row_offsets):
        shares = thresholds[first:end].copy()
        assert ((aliases[first:end] >= first) & (aliases[first:end] < end)).all()
        np.add.at(shares, aliases[first:end].astype(np.int64) - first, 1 - thresholds[first:end])
        np.testing.assert_allclose(shares / (end - first), probabilities[first:end], rtol=0, atol=1e-15)


@pytest.mark.parametrize("width", [1, 2, 3, 6, 7, 2**20 - 1, 2**20, 2**20 + 1])
def test_the_smallest_and_the_largest_word_choose_the_ends_of_the_row(width: int) -> None:
    thresholds = np.ones(width + 5)
    aliases = np.zeros(width + 5, dtype=np.uint64)
    chosen = [
        int(choose(np.uint64(5), np.uint64(width), np.uint64(word), thresholds, aliases)) for word in (0, 2**64 - 1)
    ]
    assert chosen == [5, 5 + width - 1]


def test_a_column_is_split_at_its_threshold() -> None:
    thresholds = np.array([0.25, 1.0])
    aliases = np.array([1, 1], dtype=np.uint64)

    def chosen(share: float) -> int:
        word = np.uint64(int(share * 2**64))
        return int(choose(np.uint64(0), np.uint64(2), word, thresholds, aliases))

    assert [chosen(share) for share in (0.0, 0.124, 0.125, 0.499, 0.5, 0.999)] == [0, 0, 1, 1, 1, 1]
