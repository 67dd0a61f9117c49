from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msgspec.structs import replace

from axplore.records.vectors import NO_BASE, Vector, Vectors

numbers = st.sampled_from([-1.0, 0.0, 1.0, np.inf])
stacks = st.tuples(st.integers(0, 4), st.integers(0, 7)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=numbers)
)


def kept(array: npt.NDArray[Any]) -> Vectors:
    """The rows of an array, the even ones as what differs from the first."""
    base = Vector.of(array[0], 0.0) if len(array) else None
    vectors = [Vector.of(row, 1.0, None if place % 2 else base) for place, row in enumerate(array)]
    return Vectors.of(vectors, array.shape[1], np.float64)


@given(stacks)
def test_vectors_are_read_like_the_array_that_they_were_made_of(array: npt.NDArray[Any]) -> None:
    vectors, n_rows = kept(array), len(array)
    assert vectors.is_consistent
    assert vectors.dtype == np.float64
    for row in range(n_rows):
        vector = vectors.vector(row)
        assert vectors[row].tolist() == vector.whole.tolist() == array[row].tolist()
        assert [vectors[row, state] for state in range(vector.length)] == array[row].tolist()
        hidden = array[0].max(initial=-5.0) if vector.base is not None else -5.0  # by numbers in place of the base's
        assert vector.max(initial=-5.0) == max(array[row].max(initial=-5.0), hidden)
        states, numbers = vector.other_than(1.0)
        assert states.tolist() == np.flatnonzero(array[row] != 1.0).tolist()
        assert numbers.tolist() == array[row][states].tolist()
        assert vector.shape == array[row].shape
        assert not vector.whole.flags.writeable
    for state in range(array.shape[1]):
        assert vectors[:n_rows, state].tolist() == array[:, state].tolist()


@given(stacks, st.lists(st.integers(0, 3)))
def test_some_of_the_rows_are_read_like_some_rows_of_the_array(array: npt.NDArray[Any], chosen: list[int]) -> None:
    rows = np.array([row for row in chosen if row < len(array)], dtype=np.int64)
    for vectors in (kept(array), Vectors.of([Vector.of(row, 1.0) for row in array], array.shape[1], np.float64)):
        part = vectors.take(rows)
        assert part.is_consistent
        assert [part[place].tolist() for place in range(len(rows))] == array[rows].tolist()
        assert [row.tolist() for row in vectors[: len(array)]] == array.tolist()


def test_vectors_that_share_a_base_still_share_it_after_they_were_stacked() -> None:
    base = Vector.complete(np.arange(9.0))
    changed = base.whole.copy()
    changed[3] = 7.0
    vectors = Vectors.of([Vector.of(changed, 0.0, base), base, Vector.of(base.whole, 0.0, base)], 9, np.float64)
    assert vectors.sizes.tolist() == [1, 9, 0]
    first, second, third = map(vectors.vector, range(3))
    assert first.base is second is third.base
    again = Vectors.of([first, second, third], 9, np.float64)
    assert again == vectors
    assert (again != vectors) is False
    assert vectors.take(np.array([0, 1])) != vectors


def test_bases_that_are_no_vectors_themselves_follow_in_rows_of_their_own() -> None:
    base = Vector.complete(np.arange(9.0))
    vectors = Vectors.of([Vector.of(base.whole, 0.0, base)] * 2, 9, np.float64)
    assert vectors.base.tolist() == [2, 2, NO_BASE]
    assert vectors.sizes.tolist() == [0, 0, 9]


def test_a_tree_takes_one_number_for_each_state() -> None:
    parents = np.array([NO_BASE, 0, 0, 1, 3])
    ways = Vectors(5, np.array([7, 8, 9, 6]), np.array([0, 1, 1, 1, 1]), parents[1:], np.full(5, -1), parents)
    assert [way.tolist() for way in ways] == [
        [-1, -1, -1, -1, -1],
        [7, -1, -1, -1, -1],
        [8, -1, -1, -1, -1],
        [7, 9, -1, -1, -1],
        [7, 9, -1, 6, -1],
    ]


def test_bases_that_go_round_in_circles_come_to_an_end() -> None:
    circle = Vectors(3, np.array([5, 6]), np.array([1, 1]), np.array([0, 1]), np.zeros(2, np.int64), np.array([1, 0]))
    assert not circle.is_consistent
    assert circle[0].tolist() == [5, 6, 0]


def test_a_vector_is_kept_whole_where_less_would_not_save_much() -> None:
    array = np.array([1.0, 1.0, 1.0, 2.0, 3.0])
    assert Vector.of(array, 1.0).indices.tolist() == [3, 4]
    assert Vector.of(array, 2.0).whole is array


@pytest.mark.parametrize(
    "change",
    [
        {"length": -1},
        {"length": 3},
        {"numbers": np.zeros(3)},
        {"numbers": np.zeros((4, 1))},
        {"sizes": np.array([2, 2])},
        {"sizes": np.array([-1, 5])},
        {"sizes": np.array([2**62, 2**62, 2**62, 2**62])},
        {"indices": np.array([3, 1])},
        {"indices": np.array([1, 1])},
        {"indices": np.array([-1, 1])},
        {"indices": np.array([1, 9])},
        {"indices": np.array([1])},
        {"rest": np.zeros(1)},
        {"rest": np.zeros(2, dtype=np.int64)},
        {"base": np.array([2, NO_BASE])},
        {"base": np.array([-2, NO_BASE])},
        {"base": np.array([0, NO_BASE])},
        {"base": np.array([NO_BASE, 0])},
    ],
)
def test_arrays_that_describe_no_vectors_are_found_out(change: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "length": 4,
        "numbers": np.arange(6.0),
        "sizes": np.array([2, 4]),
        "indices": np.array([1, 3]),
        "rest": np.zeros(2),
        "base": np.array([1, NO_BASE]),
    }
    assert Vectors(**fields).is_consistent
    assert not replace(Vectors(**fields), **change).is_consistent
