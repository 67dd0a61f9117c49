"""Vectors of many claims at a time, in arrays that hold only what each has of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import MARGIN
from axplore.certificate.region import spans
from axplore.records.vectors import Vector
from axplore.types import FloatArray, IntArray

NO_KEY: Final = np.iinfo(np.int64).max
"""After those of all claims and states."""


@dataclass(frozen=True, eq=False)
class Places:
    """Claims and states, or claims and pairs, [k] each."""

    claims: IntArray
    items: IntArray

    def __getitem__(self, chosen: Any) -> Places:
        return Places(self.claims[chosen], self.items[chosen])

    def __len__(self) -> int:
        return len(self.items)

    def joined(self, other: Places) -> Places:
        """These and others, ordered by claims if both are."""
        claims, items = np.append(self.claims, other.claims), np.append(self.items, other.items)
        order = np.argsort(claims, kind="stable")
        return Places(claims[order], items[order])

    def spread(self, firsts: IntArray, lengths: IntArray) -> Places:
        """In place of each item the numbers from that of `firsts` on, as many as `lengths` says of the item."""
        own = lengths[self.items]
        return Places(np.repeat(self.claims, own), spans(firsts[self.items], own))

    def named(self, names: IntArray) -> Places:
        """The same with `names` of the items in their place."""
        return Places(self.claims, names[self.items])


@dataclass(frozen=True, eq=False)
class Sparse:
    """One vector of each of some claims, as corrected.

    Attributes:
        goals: of each claim, [c].
        own: the claims and states that have numbers of their own, ascending.
        numbers: these, [m].
        rest: the number of all other known states of each claim, [c], unless there is a base.
        base: the numbers of all other known states, [n]; None if there is no base.
        outside: the number of all states that are not known, [c].
        sweeper: for the number of states.
    """

    goals: IntArray
    own: Places
    numbers: FloatArray
    rest: FloatArray
    base: FloatArray | None
    outside: FloatArray
    sweeper: Sweeper

    @classmethod
    def of(
        cls,
        sweeper: Sweeper,
        goals: IntArray,
        vectors: Sequence[Vector[np.float64]],
        corrected: Callable[[FloatArray, FloatArray], FloatArray],
        factors: FloatArray,
    ) -> Sparse:
        """Vectors corrected by factors, where all have the same base and the same factor, or none has a base."""
        own, base = places([vector.indices for vector in vectors]), vectors[0].base
        sparse = cls(
            goals=goals,
            own=own,
            numbers=corrected(np.concatenate([vector.numbers for vector in vectors]), factors[own.claims]),
            rest=corrected(np.array([vector.rest for vector in vectors]), factors),
            base=None if base is None else corrected(base.whole, factors[:1]),
            outside=np.zeros(len(goals)),
            sweeper=sweeper,
        )
        return replace(sparse, outside=1.0 + sparse.of_start)

    @cached_property
    def of_start(self) -> FloatArray:
        """The number of the initial state, [c]."""
        every = np.arange(len(self.goals))
        return self.at(Places(every, np.zeros_like(every)))

    @cached_property
    def top(self) -> FloatArray:
        """A number that none of a known state exceeds, [c]."""
        top = self.rest.copy() if self.base is None else np.full(len(self.goals), self.base.max())
        np.maximum.at(top, self.own.claims, self.numbers)
        return top

    @cached_property
    def margin(self) -> FloatArray:
        """By how much inequalities must hold, [c]."""
        return MARGIN * (1.0 + self.top)

    @cached_property
    def _keys(self) -> IntArray:
        return np.append(self.own.claims * self.sweeper.n_seen + self.own.items, NO_KEY)

    def shared_at(self, where: Places) -> FloatArray:
        """What known states have if they have no number of their own, [k]."""
        return self.rest[where.claims] if self.base is None else self.base[where.items]

    def at(self, where: Places) -> FloatArray:
        """The numbers of states; 0 for the goal, and for an outcome that may lead anywhere, [k]."""
        keys = where.claims * self.sweeper.n_seen + where.items
        place = np.searchsorted(self._keys, keys)
        is_own, is_known = self._keys[place] == keys, where.items < self.sweeper.n_known
        values = self.outside[where.claims]
        values[is_known] = self.shared_at(where[is_known])
        values[is_own] = self.numbers[place[is_own]]
        values[(where.items == self.goals[where.claims]) | (where.items < 0)] = 0.0
        return values

    def least_means(self, where: Places, enough: FloatArray) -> FloatArray:
        """The least mean at the next state for pairs, [k]; see `Region.least_means`."""
        return self._means(where, enough, self.at)

    def greatest_means(self, where: Places, enough: FloatArray) -> FloatArray:
        """The greatest mean at the next state for pairs, [k]; see `Sweeper.greatest_means`."""
        greatest = np.maximum(self.top, self.outside)

        def to_greatest(states: Places) -> FloatArray:
            return np.where(states.items < 0, 0.0, greatest[states.claims] - self.at(states))

        return greatest[where.claims] - self._means(where, greatest[where.claims] - enough, to_greatest)

    def _means(self, where: Places, enough: FloatArray, values: Callable[[Places], FloatArray]) -> FloatArray:
        part, states = self.sweeper.region.among(where.items)
        claims = np.repeat(where.claims, np.diff(part.supports.row_offsets))
        return part.least_means(values(Places(claims, states)), enough)


def places(items: Sequence[IntArray]) -> Places:
    """The items of each claim."""
    claims = np.repeat(np.arange(len(items)), [len(own) for own in items])
    return Places(claims, np.concatenate([np.zeros(0, dtype=np.int64), *items]))
