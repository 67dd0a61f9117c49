"""What the vectors of a property prove, checked with one sweep over the region, or with one for each step.

docs/algorithms/questions.md has the theorems. Nothing of a sweep may err to the wrong side:

- an inequality about a mean has to hold by a margin, which is far above the rounding of a sweep;
- where nothing but what was seen can follow a pair, a mean lies between the least and the greatest value of what was
  seen. That is compared without any rounding, so waiting in a loop costs no margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError
from axplore.certificate.bounds import margin as margin_of
from axplore.properties import Property, parse_property
from axplore.records.properties import NO_CHOICE, PropertyClaim
from axplore.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from axplore.certificate.document import Certificate

MARGIN: Final = 1e-13
"""By how much an inequality between probabilities must hold."""

MOST_COST: Final = 1e5
"""The cost from bad states that are not known, in units of the greatest cost of a pair: any number would do."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What a property asks of the states of a certificate.

    Attributes:
        prop: the property.
        reach, avoid: whether each state that was seen is the goal, or bad, [n + others].
        inside: whether the value of each known state is to be found, [n]: it has actions, and is neither.
    """

    prop: Property
    reach: BoolArray
    avoid: BoolArray
    inside: BoolArray

    @classmethod
    def of(cls, claim: PropertyClaim, certificate: Certificate) -> Asked:
        """Returns what the text of a claim asks; raises InvalidInputError if it asks nothing of these states."""
        prop, order = parse_property(claim.text), certificate.counts.order
        names = {named.name: frozenset(order[state] for state in named.states.tolist()) for named in claim.names}
        reach, avoid = prop.masks(order, names)
        n_known = len(certificate.known)
        return cls(prop, reach, avoid, ~(reach | avoid)[:n_known] & (certificate.n_actions > 0))


@dataclass(frozen=True, eq=False)
class PropertyProof:
    """The check of one claim.

    Attributes:
        claim: what is claimed.
        asked: what it is about.
        sweeper: the region, and what it follows from.
    """

    claim: PropertyClaim
    asked: Asked
    sweeper: Sweeper

    def check(self) -> None:
        """Raises `UnprovenError` if a bound does not follow."""
        if self.asked.prop.of_cost:
            self._check_lower_cost()
            self._check_upper_cost()
        elif self.asked.prop.within is not None:
            self._check_steps(is_upper=False)
            self._check_steps(is_upper=True)
        else:
            self._check_lower()
            self._check_upper()

    # Probabilities ----------------------------------------------------------------------------------------------------

    def _check_upper(self) -> None:
        """Theorem 1."""
        upper = self.claim.upper
        values = self.spread(upper, is_upper=True)
        pairs = self._all_pairs if self.asked.prop.maximise else self.played("upper bound")
        above = upper[self.sweeper.owners]
        holds = self._greatest_of_closed(values) <= above
        least = np.full(self.sweeper.region.n_pairs, -np.inf)
        least[pairs] = 1.0 - above[pairs] + MARGIN
        holds |= self.sweeper.region.least_means(1.0 - values, least) >= least
        self.require("upper bound", upper, pairs[~holds[pairs]])

    def _check_lower(self) -> None:
        """Theorem 2."""
        lower = self.claim.lower
        values = self.spread(lower, is_upper=False)
        positive = self.asked.inside & (lower > 0.0)
        pairs = self._all_pairs if not self.asked.prop.maximise else self.played("lower bound", positive)
        pairs = pairs[positive[self.sweeper.owners[pairs]]]
        below = lower[self.sweeper.owners]
        holds = self.least_of_closed(values) >= below
        needed = np.full(self.sweeper.region.n_pairs, -np.inf)
        needed[pairs] = below[pairs] + MARGIN
        holds |= self.sweeper.region.least_means(values, needed) >= needed
        self.require("lower bound", lower, pairs[~holds[pairs]])
        self.check_ranks(positive, pairs)

    def check_ranks(self, positive: BoolArray, pairs: IntArray) -> None:
        """Every pair that carries the bound was seen to lead out of the states of positive value, or down in rank."""
        ranks = self.claim.ranks
        if ((ranks >= 0) != positive).any():
            raise UnprovenError("a state of positive probability has no rank, or another state has one")
        supports = self.sweeper.region.supports
        inside = np.zeros(self.sweeper.n_seen + 1, dtype=np.bool_)
        inside[: len(positive)] = positive
        rank_of = np.full(self.sweeper.n_seen + 1, NO_CHOICE)
        rank_of[: len(ranks)] = ranks
        owner_ranks = ranks[self.sweeper.owners][supports.owners]
        descends = ~inside[supports.successors] | (rank_of[supports.successors] < owner_ranks)
        descends &= supports.successors >= 0  # an outcome that leads nobody knows where leads nowhere by proof
        progresses = np.zeros(self.sweeper.region.n_pairs, dtype=np.bool_)
        progresses[supports.owners[descends]] = True
        stuck = pairs[~progresses[pairs]]
        if len(stuck):
            state = int(self.sweeper.owners[stuck[0]])
            raise UnprovenError(f"no seen transition makes progress from state {self.sweeper.counts.order[state]!r}")

    def _check_steps(self, *, is_upper: bool) -> None:
        """Theorem 3: the bounds are computed anew, step by step."""
        steps = self.asked.prop.within
        assert steps is not None
        claimed = self.claim.upper if is_upper else self.claim.lower
        n_known, region = len(claimed), self.sweeper.region
        fixed = self.spread(claimed, is_upper=is_upper)
        values = self.asked.reach.astype(np.float64)  # of a state that was seen it is known whether it is the goal
        best = np.maximum if self.asked.prop.maximise else np.minimum
        for _ in range(steps):
            if is_upper:
                means = 1.0 - region.least_means(1.0 - values, -np.inf) + MARGIN
                means = np.minimum(means, self._greatest_of_closed(values))
            else:
                means = np.maximum(region.least_means(values, -np.inf) - MARGIN, self.least_of_closed(values))
            after = np.full(n_known, 0.0 if self.asked.prop.maximise else 1.0)
            best.at(after, self.sweeper.owners, means)
            before, values = values, fixed.copy()
            values[:n_known][self.asked.inside] = np.clip(after, 0.0, 1.0)[self.asked.inside]
            if np.array_equal(before, values):  # so it stays
                break
        wrong = values[:n_known] > claimed if is_upper else values[:n_known] < claimed
        if wrong.any():
            state = int(np.argmax(wrong))
            raise UnprovenError(
                f"the {'upper' if is_upper else 'lower'} bound {claimed[state]:.6g} in state "
                f"{self.sweeper.counts.order[state]!r} does not follow: {steps} sweeps give {values[state]:.6g}"
            )

    def spread(self, vector: FloatArray, *, is_upper: bool) -> FloatArray:
        """The value of every state that was seen, [n + others].

        Where nothing is asked, the value is known, and the vector has to say it: 1 in the goal, 0 in what is bad and in
        states without actions. Of states that are not known the worst is taken.
        """
        n_known, reach, avoid = len(vector), self.asked.reach, self.asked.avoid
        values = np.where(reach, 1.0, np.where(avoid, 0.0, float(is_upper)))
        values[:n_known] = np.where(self.asked.inside, vector, reach[:n_known])
        if not np.array_equal(values[:n_known], vector):
            raise UnprovenError("a state of which nothing is asked has another probability than 0 or 1")
        return values

    # Costs ------------------------------------------------------------------------------------------------------------

    def _check_lower_cost(self) -> None:
        """Section 4: no policy that surely reaches the goal, and nothing bad, costs less."""
        lower = self.claim.lower
        n_known = len(lower)
        if (lower[self.asked.reach[:n_known]] != 0.0).any():
            raise UnprovenError("the cost in the goal itself is not 0")
        # What is bad or has no actions has no part in a policy that surely arrives, so its value may be any number.
        dead = MOST_COST * float(self.claim.costs.max(initial=0.0))
        values = np.append(lower, np.where(self.asked.avoid[n_known:], dead, 0.0))
        below = np.maximum(lower[self.sweeper.owners] + margin_of(lower) - self.claim.costs, 0.0)
        holds = self.sweeper.region.least_means(values, below) >= below
        holds |= self.least_of_closed(values) >= lower[self.sweeper.owners]
        pairs = self._all_pairs
        self.require("lower bound", lower, pairs[~holds[pairs]])

    def _check_upper_cost(self) -> None:
        """Section 4: the policy stays in states whose costs are bounded until it is in the goal."""
        upper, costs = self.claim.upper, self.claim.costs
        if not len(upper):
            return
        stays = self.asked.inside & (self.claim.policy != NO_CHOICE)
        if (upper[~stays] != 0.0).any():
            raise UnprovenError("a state in which the policy plays nothing has an upper bound")
        if not (stays[0] or self.asked.reach[0]):
            raise UnprovenError("the policy plays nothing in the initial state")
        pairs = self.played("upper bound", stays)
        if (costs[pairs] <= 0.0).any():
            raise UnprovenError("an action that the policy plays costs nothing, so it may play it for ever")
        bounded = np.zeros(self.sweeper.n_seen + 1, dtype=np.bool_)  # the last: an outcome leads nobody knows where
        bounded[:-1] = self.asked.reach
        bounded[: len(stays)] |= stays
        supports = self.sweeper.region.supports
        leaves = np.zeros(self.sweeper.region.n_pairs, dtype=np.bool_)
        leaves[supports.owners[~bounded[supports.successors]]] = True
        if (leaves | ~self._closed)[pairs].any():
            raise UnprovenError("the policy may leave the states in which its cost is bounded")
        values = np.zeros(self.sweeper.n_seen)
        values[: len(stays)] = np.where(stays, upper, 0.0)
        greatest = float(values.max())
        most = np.maximum(upper[self.sweeper.owners] - costs - margin_of(upper), 0.0)
        least = np.full(self.sweeper.region.n_pairs, -np.inf)
        least[pairs] = greatest - most[pairs]
        holds = self.sweeper.region.least_means(greatest - values, least) >= least
        holds &= upper[self.sweeper.owners] >= costs + margin_of(upper)
        self.require("upper bound", upper, pairs[~holds[pairs]])

    # Pairs ------------------------------------------------------------------------------------------------------------

    @cached_property
    def _all_pairs(self) -> IntArray:
        """The pairs of the states whose values are asked for."""
        return np.flatnonzero(self.asked.inside[self.sweeper.owners])

    def played(self, bound: str, states: BoolArray | None = None) -> IntArray:
        """The pairs that the policy plays in some of the states whose values are asked for."""
        chosen = np.flatnonzero(self.asked.inside if states is None else states)
        if (self.claim.policy[chosen] == NO_CHOICE).any():
            raise UnprovenError(f"the policy of the {bound} plays nothing in a state where it has to")
        pairs: IntArray = self.sweeper.state_pairs[chosen] + self.claim.policy[chosen]
        return pairs

    def _greatest_of_closed(self, values: FloatArray) -> FloatArray:
        """The greatest value of what was seen after each pair after which nothing else can be; 1 for others, [P]."""
        supports = self.sweeper.region.supports
        greatest = np.zeros(self.sweeper.region.n_pairs)
        np.maximum.at(greatest, supports.owners, np.append(values, 1.0)[supports.successors])
        return np.where(self._closed, greatest, 1.0)

    def least_of_closed(self, values: FloatArray) -> FloatArray:
        """The least value of what was seen after each pair after which nothing else can be; 0 for others, [P]."""
        supports = self.sweeper.region.supports
        least = np.full(self.sweeper.region.n_pairs, np.inf)
        np.minimum.at(least, supports.owners, np.append(values, 0.0)[supports.successors])
        return np.where(self._closed, least, 0.0)

    @cached_property
    def _closed(self) -> BoolArray:
        """Whether something was seen after each pair, and nothing else can be, [P]."""
        supports = self.sweeper.region.supports
        closed: BoolArray = supports.closed & (np.bincount(supports.owners, minlength=len(supports.closed)) > 0)
        return closed

    def require(self, bound: str, vector: FloatArray, wrong: IntArray) -> None:
        """Refuses a vector of which the inequality of some pair does not hold."""
        if len(wrong):
            pair = int(wrong[0])
            state = int(self.sweeper.owners[pair])
            action = self.sweeper.counts.actions[state][pair - int(self.sweeper.state_pairs[state])]
            raise UnprovenError(
                f"the {bound} {vector[state]:.6g} in state {self.sweeper.counts.order[state]!r} does not follow after "
                f"the action {action!r}"
            )
