"""The verifier's own check of lower bounds from which something is deducted (docs/algorithms/certified.md, Theorem 4).

Let the pairs that have shown one successor, in more draws than those after which they join, be *certain*, and W a lower
bound as if they led nowhere else. With k draws of such a pair since it has joined, the probability 1 - exp(-x) of other
successors, and y the one seen, the sum of k x over all of them is at most the budget. Theorem 4 bounds what they take
off W(s0) together by what one of them takes off that has the whole budget, if nobody comes back to that pair for more
than the detours cost:

- its *gain* is budget * W(y) / k, and k is at least the budget;
- the *detour* of a pair is one step plus the mean of W, less W of its state; that of a RESET likewise;
- the gain is at most its own detour (then it is not worth playing), or at most the detours of any way back to it;
- it takes off its gain less the detours on the way to it, its own included.

Two simple facts bound the detours on a way back from y: some pair has to be played in y; and if W is smaller in y, some
detour of the way leads from below the middle between both values to above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError, check_numbers, corrected_lower, margin, proven_lower
from axplore.records.claims import Bound, NearOptimal
from axplore.types import FloatArray, IntArray

ROUNDING: Final = 1e-12
"""The part by which gains are enlarged, far above the rounding of a product and a quotient."""

MOST_SWEEPS: Final = 10_000
"""More sweeps than any way has steps, in every model that is kept whole."""


def require_lower(sweeper: Sweeper, claim: Bound | NearOptimal) -> None:
    """Raises `UnprovenError` unless every policy takes at least the expected steps that a claim says."""
    if not claim.deduction:
        proven_lower(sweeper, claim)
        return
    check_numbers(claim.lower, claim.goal)
    lower = corrected_lower(claim.lower)
    why = UnprovenError("nothing can be deducted: by what is assumed, pairs with one successor share no budget")
    for after, budget in sweeper.region.shared_budgets.items():
        try:
            Deduction(sweeper, claim.goal, lower, after, budget).require(claim.deduction)
        except UnprovenError as error:
            why = error
        else:
            return
    raise why


@dataclass(frozen=True, eq=False)
class Deduction:
    """Checks what is deducted from one lower bound.

    Attributes:
        sweeper: region and counts.
        goal: the index of a state, or of those never seen.
        lower: W in the known states, [n].
        after: the draws after which pairs have joined those that share the budget.
        budget: what these share, in nats.
    """

    sweeper: Sweeper
    goal: int
    lower: FloatArray
    after: int
    budget: float

    def require(self, claimed: float) -> None:
        """Raises `UnprovenError` if more might have to be deducted."""
        short = np.flatnonzero(self._detours < 0.0)
        if len(short):
            self._refuse(int(short[0]), "W does not follow from the other rows")
        matters = self._gains >= self._detours
        for bad, why in (
            (self._repeats < self.budget, "it was drawn too seldom for the shared budget"),
            (self._gains > self._least_back, "it may be worth playing again"),
            (self._gains - self._detours - self._ways[self._owners] > claimed, "it may take off more than is deducted"),
        ):
            if (matters & bad).any():
                self._refuse(int(np.argmax(matters & bad)), why)

    def _refuse(self, pair: int, why: str) -> None:
        state = int(self._owners[pair])
        raise UnprovenError(
            f"the deduction does not follow: of action {pair - int(self.sweeper.state_pairs[state])} in state "
            f"{self.sweeper.counts.order[state]!r}, {why}"
        )

    @property
    def _owners(self) -> IntArray:
        return self.sweeper.owners

    @cached_property
    def _values(self) -> FloatArray:
        """W in every state that was seen, [n + others]."""
        return self.sweeper.spread(self.lower, self.goal, 1.0 + self.lower[0])

    @cached_property
    def _ahead(self) -> IntArray:
        """The first successor of each pair, [P]."""
        counts = self.sweeper.counts
        return np.append(counts.successors, 0)[counts.row_offsets[:-1]]

    @cached_property
    def _repeats(self) -> FloatArray:
        """The draws of each pair since it has joined, [P]; not above 0 for those that have not."""
        return (self.sweeper.region.joining - self.after).astype(np.float64)

    @cached_property
    def _gains(self) -> FloatArray:
        """What each certain pair may gain, [P]; the others gain nothing."""
        spent = self.budget * self._values[self._ahead] * (1.0 + ROUNDING)
        return np.where(self._repeats > 0.0, spent / np.maximum(self._repeats, 1.0), -np.inf)

    @cached_property
    def _detours(self) -> FloatArray:
        """What is lost at least by playing each pair, [P]; infinite in the goal, where nothing is played."""
        least = self.sweeper.least_means(self.lower, self.goal, np.full(len(self.lower), np.inf))
        means = np.where(self._repeats > 0.0, self._values[self._ahead], least)
        detours = 1.0 + means - self.lower[self._owners] - margin(self.lower)
        detours[self._owners == self.goal] = np.inf
        return detours

    @cached_property
    def _resets(self) -> FloatArray:
        """The same of a RESET in each known state, [n]; it is never of use in the initial state."""
        resets: FloatArray = 1.0 + self.lower[0] - self.lower - margin(self.lower)
        resets[0] = np.inf
        if self.goal < len(resets):
            resets[self.goal] = np.inf
        if (resets < 0.0).any():
            raise UnprovenError("a lower bound is more than a step larger than that of the initial state")
        return resets

    @cached_property
    def _edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """From where to where, and by what detour; other states than the known ones reset, and so lead on from s0."""
        counts, n_known = self.sweeper.counts, len(self.lower)
        pairs = np.repeat(np.arange(len(self._owners)), np.diff(counts.row_offsets))
        kept = (counts.successors != self.goal) & np.isfinite(self._detours[pairs])
        heads = counts.successors[kept]
        resetting = np.flatnonzero(np.isfinite(self._resets))
        return (
            np.concatenate((self._owners[pairs[kept]], resetting)),
            np.concatenate((np.where(heads < n_known, heads, 0), np.zeros_like(resetting))),
            np.concatenate((self._detours[pairs[kept]], self._resets[resetting])),
        )

    @cached_property
    def _ways(self) -> FloatArray:
        """What all detours on any way from the initial state to each known state add up to, at least, [n].

        Any numbers will do that are 0 in the initial state and grow along no edge by more than its detour. Those that
        hold if all pairs are certain are lowered until they do.
        """
        tails, heads, detours = self._edges
        ways: FloatArray = np.maximum(self.sweeper.hops + self.lower - self.lower[0], 0.0)
        ways[0] = 0.0
        for _ in range(MOST_SWEEPS):
            allowed = ways[tails] + detours
            if (ways[heads] <= allowed).all():
                return ways
            np.minimum.at(ways, heads, allowed)
        return np.zeros(len(ways))

    @cached_property
    def _least_back(self) -> FloatArray:
        """What the detours on any way back to each pair add up to, its own included, at least, [P]."""
        leaving = np.append(self._resets, np.zeros(len(self._values) - len(self.lower)))
        np.minimum.at(leaving, self._owners, self._detours)
        if self.goal < len(leaving):
            leaving[self.goal] = np.inf
        ahead = self._ahead
        return np.maximum(self._detours + np.where(ahead == self._owners, 0.0, leaving[ahead]), self._least_rises)

    @cached_property
    def _least_rises(self) -> FloatArray:
        """The least detour of a way back that passes the middle between both values of a pair upwards, [P].

        It is 0 for pairs that do not lead to a smaller value. A successor outside resets, and so leads on from s0.
        """
        tails, heads, detours = self._edges
        here = self.lower[self._owners]
        ahead = np.where(self._ahead < len(self.lower), self._values[self._ahead], self.lower[0])
        ahead = np.where(self._ahead == self.goal, 0.0, ahead)
        middle, least = (ahead + here) / 2.0, np.full(len(here), np.inf)
        low, high = self.lower[tails], self.lower[heads]
        for rise in np.flatnonzero((low < high) & (detours < self._gains.max(initial=0.0))):
            passed = (low[rise] < middle) & (middle <= high[rise])
            least[passed] = np.minimum(least[passed], detours[rise])
        return np.where((ahead < middle) & (middle < here), least, 0.0)
