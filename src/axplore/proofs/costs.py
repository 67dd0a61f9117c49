"""Bounds of the least expected cost of reaching a goal surely, without anything bad and without RESET.

docs/algorithms/questions.md, section 4, has the proofs. The lower bound needs nothing; the upper one needs rows whose
supports are closed, since what was never seen has no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from axplore.graphs.search import graph_from, hops_from, reversed_graph
from axplore.proofs.bounds import IntervalModel
from axplore.proofs.chance_kernels import NO_PAIR
from axplore.proofs.chances import MARGIN, MOST_SWEEPS
from axplore.proofs.cost_kernels import best_costs, raise_costs
from axplore.proofs.row_kernels import UNKNOWN_SHIFT
from axplore.types import BoolArray, FloatArray, IntArray

MOST_COST: Final = 1e5
"""A lower bound of the cost from where the goal cannot be reached, in units of the greatest cost of a pair."""

TOLERANCE: Final = 1e-8
"""The change, as a part of a value, at which value iteration ends."""

VERIFIED: Final = 1e-12
"""By which part of the greatest value inequalities have to hold, so that a verifier finds the same."""


@dataclass(frozen=True, eq=False)
class CostBounds:
    """Bounds of the least cost from each position, and what attains the upper one.

    Attributes:
        lower: no policy that surely reaches the goal costs less, [n + others].
        upper: the policy costs no more, [n + others]; empty if nothing is proven.
        policy: the pair that it plays in each known state, or NO_PAIR, [n]; empty likewise.
    """

    lower: FloatArray
    upper: FloatArray
    policy: IntArray


class CostQuestion:
    """What reaching a goal costs in a model.

    Attributes:
        model: of all states that were counted.
        reach, avoid: whether each position is the goal, or bad, [n + others].
        costs: of each pair, [P].
    """

    def __init__(self, model: IntervalModel, reach: BoolArray, avoid: BoolArray, costs: FloatArray) -> None:
        self.model, self.reach, self.avoid, self.costs = model, reach, avoid, costs
        self.rows = model.rows._replace(costs=costs, reset_cost=1.0)

    def bounds(self) -> CostBounds:
        """Both bounds."""
        lower, (upper, policy) = self._lower(), self._upper()
        return CostBounds(lower, upper, policy)

    @cached_property
    def is_asked(self) -> BoolArray:
        """Whether the value of each known state is to be found, [n]."""
        n_known = self.model.n_known
        asked: BoolArray = ~(self.reach | self.avoid)[:n_known] & (np.diff(self.rows.state_pairs) > 0)
        return asked

    @cached_property
    def owners(self) -> IntArray:
        """The known state of each pair, [P]."""
        return np.repeat(np.arange(self.model.n_known), np.diff(self.rows.state_pairs))

    @cached_property
    def closed(self) -> BoolArray:
        """Whether nothing but what was seen can follow each pair, [P]."""
        rows = self.rows
        drawn = np.diff(rows.row_offsets) > 0
        closed: BoolArray = drawn & (rows.closed | (rows.slack == 0.0)) & (rows.rest == 0.0)
        return closed

    def _lower(self) -> FloatArray:
        most, asked = MOST_COST * float(self.costs.max(initial=0.0)), self._padded(self.is_asked)
        # A policy that surely arrives is never where the goal is out of reach, so the value there may be any number.
        ends = self.avoid & ~self.reach
        ends[: self.model.n_known] |= ~self.reach[: self.model.n_known] & ~self.is_asked
        values = np.where(ends | self._hopeless(ends), most, 0.0)
        hops = hops_from(self.model.predecessors, np.flatnonzero(self.reach)).astype(np.int64)
        order = np.flatnonzero(asked & (values == 0.0))
        order = order[np.argsort(hops[order], kind="stable")]
        margin = max(MARGIN, VERIFIED * (1.0 + most))
        raise_costs(self.rows, order, values, self._shifts(), margin, TOLERANCE, MOST_SWEEPS)
        # Beyond that the margin would be too small, and no such bound says anything.
        return values if values.max() < 5.0 * most else np.zeros(len(values))

    def _hopeless(self, ends: BoolArray) -> BoolArray:
        """The asked states from which nothing leads to anything but ends, and nothing unseen can, [n + others]."""
        hopeless = self._padded(self.is_asked)
        while True:
            leaves = np.zeros(len(self.owners), dtype=np.bool_)
            leaves[self._entry_pairs[~(hopeless | ends)[self.rows.successors]]] = True
            wrong = self.owners[leaves | ~self.closed]
            if not hopeless[wrong].any():
                return hopeless
            hopeless[wrong] = False

    def _padded(self, known: BoolArray) -> BoolArray:
        """The same for all states that were seen, [n + others]."""
        return np.append(known, np.zeros(len(self.reach) - len(known), dtype=np.bool_))

    @cached_property
    def _entry_pairs(self) -> IntArray:
        return np.repeat(np.arange(len(self.owners)), np.diff(self.rows.row_offsets))

    def _upper(self) -> tuple[FloatArray, IntArray]:
        nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
        inside, allowed = self._sure()
        if self.reach[0]:
            return np.zeros(len(self.reach)), np.full(self.model.n_known, NO_PAIR)
        if not inside[0]:
            return nothing
        least = float(self.costs[allowed].min())
        most = MOST_COST * float(self.costs.max())
        values, policy = np.zeros(len(self.reach)), np.full(self.model.n_known, NO_PAIR)
        order = np.flatnonzero(inside)
        missed = best_costs(self.rows, order, allowed, values, policy, self._shifts(), TOLERANCE, most, MOST_SWEEPS)
        greatest = float(values.max())
        raised = (missed + VERIFIED * (1.0 + 2.0 * greatest)) / least
        if greatest > most or raised > 1.0:
            return nothing
        return values * (1.0 + 2.0 * raised), np.where(inside, policy, NO_PAIR)

    def _sure(self) -> tuple[BoolArray, BoolArray]:
        """The known states from which some policy surely reaches the goal, [n], and the pairs that it may play, [P]."""
        inside = self.is_asked.copy()
        while True:
            bounded = self.reach | self._padded(inside)
            leaves = np.zeros(len(self.owners), dtype=np.bool_)
            leaves[self._entry_pairs[~bounded[self.rows.successors]]] = True
            allowed: BoolArray = self.closed & ~leaves & (self.costs > 0.0) & inside[self.owners]
            entries = allowed[self._entry_pairs]
            sources = self.owners[self._entry_pairs][entries]
            offsets = np.searchsorted(sources, np.arange(len(self.reach) + 1))
            graph = graph_from(offsets, self.rows.successors[entries])
            hops = hops_from(reversed_graph(graph), np.flatnonzero(self.reach))[: len(inside)]
            kept = inside & (hops < len(self.reach))
            if np.array_equal(kept, inside):
                return inside, allowed
            inside = kept

    def _shifts(self) -> FloatArray:
        return np.full(self.model.n_pairs, UNKNOWN_SHIFT)
