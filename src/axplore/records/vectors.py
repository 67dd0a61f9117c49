"""Numbers over states, kept as those that differ from what all other states have.

A policy, or a bound of its steps, has a number for each state. There is one for each goal, so all numbers together
would take the square of the number of states. But most of them are equal: to one number, such as RESET, or to those of
another vector. A `Vector` keeps the others. `Vectors` are many of them in few arrays, which is also their shape in
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Generic, TypeVar, final

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from axplore.records.codec import Record
from axplore.types import IntArray

NO_BASE: Final = -1
"""In place of the row of a base, of a vector that has none."""

Number = TypeVar("Number", bound=np.generic)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Vector(Generic[Number]):
    """A number for each of the states 0, 1, ..., `length` - 1.

    Attributes:
        length: the number of states.
        indices: the states that have a number of their own, ascending, [m].
        numbers: their numbers, [m].
        rest: the number of all other states, unless there is a base.
        base: the vector that has the numbers of all other states; it has no base itself.
    """

    length: int
    indices: IntArray
    numbers: npt.NDArray[Number]
    rest: Any
    base: Vector[Number] | None = None

    @classmethod
    def complete(cls, array: npt.NDArray[Number]) -> Vector[Number]:
        """Returns an array as a vector in which each state has a number of its own."""
        return cls(len(array), _every_index(len(array)), array, array.dtype.type(0))

    @classmethod
    def of(cls, array: npt.NDArray[Number], rest: float, base: Vector[Number] | None = None) -> Vector[Number]:
        """Returns an array as what differs from a number, or from a base; complete if that would not save much."""
        indices = np.flatnonzero(array != (rest if base is None else base.whole))
        if 2 * len(indices) >= len(array):
            return cls.complete(array)
        return cls(len(array), indices, array[indices], array.dtype.type(rest), base)

    @property
    def whole(self) -> npt.NDArray[Number]:
        """The vector as an array, which cannot be written to, [length]."""
        array = self.numbers
        if len(self.indices) < self.length:
            array = np.empty(self.length, dtype=self.numbers.dtype)
            array[:] = self.rest if self.base is None else self.base.whole
            array[self.indices] = self.numbers
        array.flags.writeable = False
        return array

    @property
    def shape(self) -> tuple[int]:
        """The shape of the whole vector."""
        return (self.length,)

    @property
    def dtype(self) -> np.dtype[Number]:
        """The type of its numbers."""
        return self.numbers.dtype

    def __getitem__(self, state: int) -> Any:
        found = int(np.searchsorted(self.indices, state))
        if found < len(self.indices) and self.indices[found] == state:
            return self.numbers[found]
        return self.rest if self.base is None else self.base[state]

    def max(self, initial: float = -np.inf) -> float:
        """Returns the greatest number, or `initial` if that is greater.

        All numbers of a base count, those included that the vector has others for: then this is the same in all that
        have a base, and none has to look through it.
        """
        of_others = self.rest if len(self.indices) < self.length else initial
        if self.base is not None:
            of_others = _greatest(self.base)
        return float(np.maximum(of_others, self.numbers.max(initial=initial)))

    def other_than(self, number: float) -> tuple[IntArray, npt.NDArray[Number]]:
        """Returns the states that have another number, ascending, and what they have, [m] each."""
        states, numbers, others = self.indices, self.numbers, self if self.base is None else self.base
        others_have_it = others.rest == number and (others is self or not len(others.indices))
        if len(states) < self.length and not others_have_it:
            states, numbers = _every_index(self.length), self.whole
        differs = numbers != number
        return (states, numbers) if differs.all() else (states[differs], numbers[differs])


class Vectors(Record, frozen=True):
    """Vectors over the same states, one in each row, read like an array: `[row]`, `[row, state]`, `[:, state]`.

    The base of a row may have a base itself, and so on: so a tree of shortest ways takes one number for each state.

    Attributes:
        length: the number of states.
        numbers: of all rows, one after the other, [N].
        sizes: how many numbers each row has, [c]; one with `length` numbers is complete.
        indices: the states of these numbers, of all rows that are not complete, [M].
        rest: the number of all other states of each row, unless it has a base, [c].
        base: the row that has the numbers of all other states, or NO_BASE, [c].
    """

    length: Annotated[int, Meta(ge=0, le=2**53)]
    numbers: npt.NDArray[Any]
    sizes: IntArray
    indices: IntArray
    rest: npt.NDArray[Any]
    base: IntArray

    @classmethod
    def of(cls, vectors: Sequence[Vector[Any]], length: int, dtype: type[np.generic]) -> Vectors:
        """Returns vectors as rows. Bases that are not among them follow in rows of their own."""
        rows = list(vectors)
        row_of = {id(vector): row for row, vector in enumerate(rows)}
        base = np.full(len(rows), NO_BASE, dtype=np.int64)
        for row, vector in enumerate(vectors):
            if vector.base is not None:
                base[row] = row_of.setdefault(id(vector.base), len(rows))
                if base[row] == len(rows):
                    rows.append(vector.base)
        kept = [vector.indices for vector in rows if len(vector.indices) < vector.length]
        return cls(
            length=length,
            numbers=np.concatenate([np.zeros(0, dtype), *(vector.numbers for vector in rows)]),
            sizes=np.array([len(vector.indices) for vector in rows], dtype=np.int64),
            indices=np.concatenate([np.zeros(0, np.int64), *kept]),
            rest=np.array([vector.rest for vector in rows], dtype=dtype),
            base=np.append(base, np.full(len(rows) - len(base), NO_BASE)),
        )

    @property
    def is_consistent(self) -> bool:
        """Whether the arrays describe vectors, of which no base has a base."""
        sizes, base, n_rows = self.sizes, self.base, len(self.sizes)
        if not (self.length >= 0 and self.numbers.ndim == sizes.ndim == self.indices.ndim == 1):
            return False
        if not sizes.dtype == self.indices.dtype == base.dtype == np.int64:
            return False
        if not (self.rest.shape == base.shape == (n_rows,) and self.rest.dtype == self.numbers.dtype):
            return False
        most = min(self.length, len(self.numbers))
        if not bool(((sizes >= 0) & (sizes <= most)).all()) or sizes.sum() != len(self.numbers):
            return False
        return self._has_possible_indices and self._has_possible_bases

    @property
    def _has_possible_indices(self) -> bool:
        first = self._first_index[:-1][(self.sizes > 0) & ~self._is_complete]
        if self._first_index[-1] != len(self.indices):
            return False
        ascends = np.diff(self.indices, prepend=-1) > 0
        ascends[first] = True
        return bool((ascends & (self.indices >= 0) & (self.indices < self.length)).all())

    @property
    def _has_possible_bases(self) -> bool:
        has_base = self.base != NO_BASE
        in_range = bool(((self.base >= NO_BASE) & (self.base < len(self.sizes))).all())
        return in_range and not (has_base & self._is_complete).any() and not has_base[self.base[has_base]].any()

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array that it is read like."""
        return len(self.sizes), self.length

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return self.numbers.dtype

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        row, state = index if isinstance(index, tuple) else (index, None)
        if isinstance(row, slice):
            return self._column(state)[row]
        vector = self.vector(range(len(self))[row])
        return vector.whole if state is None else vector[state]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vectors) and all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in self.__struct_fields__
        )

    def __ne__(self, other: object) -> bool:  # that of msgspec compares identities
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def vector(self, row: int) -> Vector[Any]:
        """Returns the vector of a row; those with the same base share it."""
        chain = self._chain(row)
        if len(chain) == 1:
            return self._without_base(row)
        rows = np.array(chain[:-1])
        indices = self.indices[self._entries(self._first_index, rows)]
        numbers = self.numbers[self._entries(self._first_number, rows)]
        if len(rows) > 1:
            indices, nearest = np.unique(indices, return_index=True)
            numbers = numbers[nearest]
        return Vector(self.length, indices, numbers, self.rest[row], self._without_base(chain[-1]))

    def take(self, rows: IntArray) -> Vectors:
        """Returns some of the rows."""
        if self._has_bases:
            return Vectors.of([self.vector(row) for row in rows.tolist()], self.length, self.dtype.type)
        numbers = self.numbers[self._entries(self._first_number, rows)]
        indices = self.indices[self._entries(self._first_index, rows[~self._is_complete[rows]])]
        return Vectors(self.length, numbers, self.sizes[rows], indices, self.rest[rows], self.base[rows])

    def compressed(self) -> tuple[npt.NDArray[Any], IntArray, IntArray, npt.NDArray[Any]]:
        """Returns the rest, the first entry of each row and the end of the last, the states and the numbers, no bases.

        Rows that are complete have all states.
        """
        indices = self.indices
        if self._is_complete.any():
            indices = np.concatenate([np.zeros(0, np.int64), *(self._part(row).indices for row in range(len(self)))])
        return self.rest, self._first_number, indices, self.numbers

    @cached_property
    def _has_bases(self) -> bool:
        return bool((self.base != NO_BASE).any())

    @cached_property
    def _is_base(self) -> npt.NDArray[np.bool_]:
        is_base = np.zeros(len(self), dtype=np.bool_)
        is_base[self.base[self.base != NO_BASE]] = True
        return is_base

    @cached_property
    def _bases(self) -> dict[int, Vector[Any]]:
        """The bases that were asked for."""
        return {}

    @cached_property
    def _is_complete(self) -> npt.NDArray[np.bool_]:
        is_complete: npt.NDArray[np.bool_] = self.sizes == self.length
        return is_complete

    @cached_property
    def _first_number(self) -> IntArray:
        return np.cumsum(np.append(0, self.sizes), dtype=np.int64)

    @cached_property
    def _first_index(self) -> IntArray:
        return np.cumsum(np.append(0, np.where(self._is_complete, 0, self.sizes)), dtype=np.int64)

    def _part(self, row: int) -> Vector[Any]:
        """Returns the numbers of a row, without its base."""
        numbers = self.numbers[self._first_number[row] : self._first_number[row + 1]]
        if self._is_complete[row]:
            return Vector.complete(numbers)
        indices = self.indices[self._first_index[row] : self._first_index[row + 1]]
        return Vector(self.length, indices, numbers, self.rest[row])

    def _without_base(self, row: int) -> Vector[Any]:
        """Returns the vector of a row that has no base; always the same one if others have it as theirs."""
        if not self._is_base[row]:
            return self._part(row)
        if row not in self._bases:
            self._bases[row] = self._part(row)
        return self._bases[row]

    def _entries(self, first: IntArray, rows: IntArray) -> IntArray:
        """Returns where the entries of rows are in an array in which those of each row begin at `first`."""
        lengths = self.sizes[rows]
        entries: IntArray = np.arange(lengths.sum()) + np.repeat(first[rows] - (np.cumsum(lengths) - lengths), lengths)
        return entries

    def _chain(self, row: int) -> list[int]:
        """Returns a row, its base, the base of that, and so on."""
        chain, bases = [row], self._bases_of_rows
        # What was not verified may have no end.
        while (row := bases[row]) != NO_BASE and len(chain) <= len(bases):
            chain.append(row)
        return chain

    @cached_property
    def _bases_of_rows(self) -> list[int]:
        """The base of each row; a list, because a way may have as many rows as there are states."""
        bases: list[int] = self.base.tolist()
        return bases

    def _column(self, state: int) -> npt.NDArray[Any]:
        """Returns the number of a state in each row, [c]."""
        if self._has_bases:
            return np.array([self.vector(row)[state] for row in range(len(self))], dtype=self.dtype)
        column = self.rest.copy()
        column[self._is_complete] = self.numbers[self._first_number[:-1][self._is_complete] + state]
        entries = np.flatnonzero(self.indices == state)
        rows = np.searchsorted(self._first_index, entries, side="right") - 1
        column[rows] = self.numbers[self._first_number[rows] + entries - self._first_index[rows]]
        return column


@lru_cache(maxsize=64)
def _greatest(base: Vector[Any]) -> float:
    """The greatest number of a base, which many vectors share."""
    return base.max()


@lru_cache(maxsize=4)
def _every_index(length: int) -> IntArray:
    indices = np.arange(length)
    indices.flags.writeable = False
    return indices
