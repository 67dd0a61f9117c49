"""Bounds of the probability of reaching a goal before something bad, over a confidence region.

`Question` says what is asked of an `IntervalModel`; all its counted states are known ones here. `lower_chance` and
`upper_chance` return vectors that prove their bounds by Theorems 1 and 2 of docs/algorithms/questions.md, or by
Theorem 3 where a number of steps is given. RESET has no part in any of this.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from axplore.compressed import entries_in, offsets_from
from axplore.graphs.search import hops_from, policy_graph, reversed_graph
from axplore.proofs.bounds import IntervalModel
from axplore.proofs.chance_kernels import NO_PAIR, lower_chances, raise_chances, ranks_under_all, step_chances
from axplore.proofs.row_kernels import UNKNOWN_SHIFT, rows_of_pairs
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray

TOLERANCE: Final = 1e-7
"""The change of a sweep at which value iteration ends: a bound is that much less sharp at the least."""

MARGIN: Final = 1e-10
"""By how much an upper bound has to satisfy its inequalities, so that a verifier finds the same."""

RAISED: Final = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
"""By how much iterates from below are raised to become upper bounds, the first that succeeds; loops need nothing."""

MOST_SWEEPS: Final = 20_000
MOST_LOWERING: Final = 300
"""The sweeps after which value iteration, or a trial to prove an upper bound, is given up."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked: the probability of entering `reach` before `avoid`, from the initial state.

    Attributes:
        reach: whether each position is in the goal, [n + others].
        avoid: whether each position is to be avoided, [n + others]; one that is in the goal too counts as the goal.
        within: the number of steps, or None for any.
        maximise: whether the best policy is asked about; else the worst.
    """

    reach: BoolArray
    avoid: BoolArray
    within: int | None = None
    maximise: bool = True


@dataclass(frozen=True, eq=False)
class Chance:
    """A bound of a probability, and what proves it.

    Attributes:
        values: the bound from each position, [n + others].
        policy: the pair to play in each known state, or NO_PAIR, [n]; by the number of steps done, [within, n], if that
            matters.
        ranks: for a lower bound, the number of seen transitions out of the states of positive value, [n]; else empty.
    """

    values: FloatArray
    policy: IntArray
    ranks: IntArray

    @property
    def value(self) -> float:
        """From the initial state."""
        return float(self.values[0])


class Asked:
    """A question of a model, with what both bounds need."""

    def __init__(self, model: IntervalModel, question: Question) -> None:
        self.model, self.question = model, question
        self.rows = model.rows._replace(costs=np.ones(model.n_pairs), reset_cost=1.0)
        self.pairs: IntArray = np.arange(model.n_pairs)
        """The pairs that may be played, by their index in the model; rows and policies are those of these pairs."""

    def following(self, policy: IntArray) -> Asked:
        """The same question of one policy: a pair for each known state, or NO_PAIR where the bound is not sought."""
        asked = copy(self)
        plays = (policy >= 0) & self.is_asked[: self.model.n_known]
        asked.pairs = self.pairs[policy[plays]]
        asked.rows = rows_of_pairs(self.rows, policy[plays], offsets_from(plays))
        for name in ("is_asked", "order"):
            asked.__dict__.pop(name, None)
        return asked

    def with_prices(self, prices: FloatArray, shares: FloatArray) -> Asked:
        """The same question where departing from joint shares has a price (Theorem 5).

        Args:
            prices: of each pair of the model, infinite where there is none, [P].
            shares: of each of its entries, [E].
        """
        asked = copy(self)
        entries = entries_in(self.model.rows.row_offsets, self.pairs)
        asked.rows = self.rows._replace(prices=prices[self.pairs], joint_shares=shares[entries])
        return asked

    @cached_property
    def is_asked(self) -> BoolArray:
        """Whether the value of each position is to be found, [n + others]."""
        asked = ~(self.question.reach | self.question.avoid)
        asked[self.model.n_known :] = False
        asked[: self.model.n_known] &= np.diff(self.rows.state_pairs) > 0
        return asked

    @cached_property
    def hops(self) -> IntArray:
        """The fewest seen transitions to the goal from each position; the number of positions where there is no way."""
        return hops_from(self.model.predecessors, np.flatnonzero(self.question.reach)).astype(np.int64)

    @cached_property
    def order(self) -> IntArray:
        """The positions whose values are to be found, those near the goal first, [m]."""
        asked = np.flatnonzero(self.is_asked)
        ordered: IntArray = asked[np.argsort(self.hops[asked], kind="stable")]
        return ordered

    def lower(self) -> Chance:
        """A lower bound of the probability, from every position."""
        if self.question.within is not None:
            return self._stepwise(is_upper=False)
        values = self.question.reach.astype(np.float64)
        policy, shifts = self._nothing(), self._shifts()
        near = self.order[self.hops[self.order] < len(values)]  # others have no seen way to the goal
        raise_chances(
            self.rows, near, values, policy, shifts, False, self.question.maximise, MARGIN, TOLERANCE, MOST_SWEEPS
        )
        ranks = self._ranks(values, policy)
        values[: self.model.n_known][(ranks < 0) & ~self.question.reach[: self.model.n_known]] = 0.0
        return Chance(values, policy, ranks)

    def upper(self) -> Chance:
        """An upper bound of the probability, from every position; 1 where nothing better could be shown."""
        if self.question.within is not None:
            return self._stepwise(is_upper=True)
        below, shifts = self.outside(), self._shifts()
        maximise, policy = self.question.maximise, self._nothing()
        raise_chances(self.rows, self.order, below, policy, shifts, True, maximise, MARGIN, TOLERANCE, MOST_SWEEPS)
        for raised in RAISED:
            values = below.copy()
            # What cannot reach the goal keeps the value 0: raised, a loop would prove its own value.
            lifted = np.where(below[self.order] > 0.0, below[self.order] + raised, 0.0)
            values[self.order] = np.minimum(lifted, 1.0)
            if lower_chances(self.rows, self.order, values, policy, shifts, maximise, MARGIN, MOST_LOWERING):
                return Chance(values, policy, np.zeros(0, dtype=np.int64))
        values = np.where(self.is_asked, 1.0, below)
        return Chance(values, policy, np.zeros(0, dtype=np.int64))

    def _stepwise(self, *, is_upper: bool) -> Chance:
        """The bounds of Theorem 3."""
        steps = self.question.within
        assert steps is not None
        policy = np.full((steps, self.model.n_known), NO_PAIR)
        values = self.question.reach.astype(np.float64)
        left = policy
        if is_upper and steps:
            self._step(values, is_upper, policy[-1:])
            # From here on, what was not counted may be as near to the goal as can be.
            values, left = np.where(self.is_asked, values, self.outside()), policy[:-1]
        self._step(values, is_upper, left)
        return Chance(values, policy, np.zeros(0, dtype=np.int64))

    def _step(self, values: FloatArray, is_upper: bool, policy: IntArray) -> None:
        """One sweep of Theorem 3 for each row of the policy, in place."""
        maximise = self.question.maximise
        step_chances(self.rows, self.order, values, len(policy), self._shifts(), is_upper, maximise, MARGIN, policy)

    def outside(self) -> FloatArray:
        """The upper bounds of everything that is not asked for, and 0 elsewhere, [n + others]."""
        values = self.question.reach.astype(np.float64)
        n_known = self.model.n_known
        values[n_known:] = np.where(self.question.avoid[n_known:] & ~self.question.reach[n_known:], 0.0, 1.0)
        return values

    def _nothing(self) -> IntArray:
        return np.full(self.model.n_known, NO_PAIR)

    def _shifts(self) -> FloatArray:
        return np.full(self.model.n_pairs, UNKNOWN_SHIFT)

    def _ranks(self, values: FloatArray, policy: IntArray) -> IntArray:
        """The fewest seen transitions out of the states of positive value, under the policy or under every action, [n].

        It is -1 where there is no such way, and in states of value 0.
        """
        n_known = self.model.n_known
        inside = self.is_asked & (values > 0.0)
        if self.question.maximise:
            played = np.full(len(values), RESET_PAIR)
            played[:n_known] = np.where(inside[:n_known], policy, RESET_PAIR)
            graph = policy_graph(self.rows.row_offsets, self.rows.successors, played)
            hops = hops_from(reversed_graph(graph), np.flatnonzero(~inside))[:n_known].astype(np.int64)
            return np.where(inside[:n_known] & (hops < len(values)), hops, -1)
        return ranks_under_all(self.rows.state_pairs, self.rows.row_offsets, self.rows.successors, inside)[:n_known]
