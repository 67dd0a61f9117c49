"""The verifier's own Bellman operators: means of values at the next state, over every model of the region."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.certificate.region import Region, confidence_region
from axplore.records.counts import Counts
from axplore.records.vectors import Vector
from axplore.types import RESET_ACTION, FloatArray, IntArray

if TYPE_CHECKING:
    from axplore.certificate.document import Certificate

WAY_ROUNDING: Final = 1e-12
"""The part by which the bounds along a way are enlarged, far above the rounding of their few terms."""

LARGEST_EXPONENT: Final = 100.0
"""A way is not followed where a factor would be larger than its exponential: no bound is as large as that."""


@dataclass(frozen=True, eq=False)
class Sweeper:
    """Applies Bellman operators over the region.

    Attributes:
        region: the confidence region.
        counts: what it follows from.
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        owners: the known state of each pair, [P].
        n_seen: how many states were seen.
    """

    region: Region
    counts: Counts
    state_pairs: IntArray
    owners: IntArray
    n_seen: int

    @classmethod
    def of(cls, certificate: Certificate) -> Sweeper:
        n_actions = certificate.n_actions.tolist()
        return cls(
            region=confidence_region(
                certificate.counts, n_actions, certificate.delta, certificate.assumed, certificate.retired
            ),
            counts=certificate.counts,
            state_pairs=certificate.state_pairs,
            owners=np.repeat(np.arange(len(n_actions)), n_actions),
            n_seen=certificate.n_seen,
        )

    @cached_property
    def hops(self) -> IntArray:
        """The least number of steps in which each known state was seen to be met, [n]; n where it was not."""
        tails = self.owners[np.repeat(np.arange(len(self.owners)), np.diff(self.counts.row_offsets))]
        n_known = len(self.state_pairs) - 1
        hops = np.full(self.n_seen, n_known)
        hops[0] = 0
        for step in range(n_known):
            ahead = self.counts.successors[hops[tails] == step]
            ahead = ahead[hops[ahead] > step + 1]
            if not ahead.size:
                break
            hops[ahead] = step + 1
        return hops[:n_known]

    @property
    def n_known(self) -> int:
        """How many states are known."""
        return len(self.state_pairs) - 1

    @cached_property
    def leading(self) -> tuple[IntArray, IntArray]:
        """The first of the pairs that lead to each state, and the end of the last, [n + others + 1]; and these pairs.

        An outcome of which it is not known where it leads counts 0 wherever it leads, and stands for no state.
        """
        supports = self.region.supports
        order = np.argsort(supports.successors, kind="stable")
        first = np.searchsorted(supports.successors[order], np.arange(self.n_seen + 1))
        return first, supports.owners[order]

    @cached_property
    def least_masses(self) -> tuple[FloatArray, IntArray]:
        """What the successors seen have of each row at least, ascending, and the pairs in that order, [P] each."""
        masses = self.region.least_means(np.ones(self.n_seen))
        order = np.argsort(masses, kind="stable")
        return masses[order], order

    def spread(self, vector: FloatArray, goal: int, outside: float) -> FloatArray:
        """The value of every state that was seen: the vector's, 0 for the goal, and `outside`, [n + others]."""
        values = np.full(self.n_seen, outside)
        values[: len(vector)] = vector
        if goal < self.n_seen:
            values[goal] = 0.0
        return values

    def greatest_means(
        self, vector: FloatArray, goal: int, outside: float, policy: IntArray, enough: FloatArray
    ) -> FloatArray:
        """The greatest mean of values at the next state under a policy, [n]; RESET leads to the initial state.

        A successor never seen may be any state, known or not, so it has the greatest of all values. Means are bounded
        from above, as sharply as need be: a bound is `enough`, [n], if no smaller one says more.
        """
        values = self.spread(vector, goal, outside)
        greatest = max(float(values.max()), outside)
        plays = policy != RESET_ACTION
        played = (self.state_pairs[:-1] + policy)[plays]
        enough_of_pair = np.full(self.region.n_pairs, -np.inf)
        enough_of_pair[played] = greatest - enough[plays]
        result = np.full(len(vector), values[0])
        result[plays] = greatest - self.region.least_means(greatest - values, enough_of_pair)[played]
        return result

    def least_means(self, vector: FloatArray, goal: int, enough: FloatArray) -> FloatArray:
        """The least mean of step counts at the next state for every pair, [P].

        A successor never seen may be the goal, so it has the value 0. Where the goal was seen nothing better is known:
        its probability has no upper bound other than what the others leave, as that of the unseen. Means are bounded
        from below, as sharply as need be: a bound is `enough`, [n], for a pair of a state if no greater one says more.
        """
        return self.region.least_means(self.spread(vector, goal, 1.0 + vector[0]), enough[self.owners])


def bounds_along_way(
    counts: Counts, state_pairs: IntArray, goal: int, policy: Vector[np.int64], budget: float, after: int = 1
) -> dict[int, float] | None:
    """A bound of the expected steps of a policy from each state of its way, where every action has shown one successor.

    The martingale shared by all such pairs bounds the sum of (draws - after) log(1/p) over them by one budget. Let a
    policy play such pairs from state to state until the goal, m in all, and reset everywhere else, and let the j-th
    pair have k_j draws more than those after which it joined. Then it takes at most, from the i-th state of the way
    counted from 0,

        m - i + max over j >= i of (Y_i + j - i + 1) (exp(budget / k_j) - 1),

    where Y_0 = 1 and Y_i = (i + 1) max over j < i of exp(budget / k_j). docs/algorithms/certified.md, Eqs. 17 and 18.
    From any other state but the goal it takes one step more than from the initial state, which comes first here.
    None if the policy plays along no such way, or along one drawn so seldom that this says nothing.
    """
    way, repeats = _way(counts, state_pairs, goal, policy, after)
    if not way or budget / min(repeats) > LARGEST_EXPONENT:
        return None
    factors = [math.exp(budget / repeat) for repeat in repeats]
    length = len(way)
    bounds = {}
    for index, state in enumerate(way):
        weight = (index + 1) * max(factors[:index], default=1.0)
        worst = max((weight + later - index + 1) * (factors[later] - 1.0) for later in range(index, length))
        bounds[state] = (length - index + worst) * (1.0 + WAY_ROUNDING)
    return bounds


def _way(
    counts: Counts, state_pairs: IntArray, goal: int, policy: Vector[np.int64], after: int
) -> tuple[list[int], list[int]]:
    """The states from the initial one on and the repetitions of their pairs; nothing if another kind is played."""
    states, actions = policy.other_than(RESET_ACTION)
    action_of = dict(zip(states.tolist(), actions.tolist(), strict=True))
    action_of.pop(goal, None)  # nothing is played there
    way: list[int] = []
    repeats: list[int] = []
    state = 0
    while state != goal:
        if state not in action_of:  # it resets there, or was there before
            return [], []
        pair = int(state_pairs[state]) + action_of.pop(state)
        first, end = int(counts.row_offsets[pair]), int(counts.row_offsets[pair + 1])
        if end != first + 1 or counts.counts[first] <= after:
            return [], []
        way.append(state)
        repeats.append(int(counts.counts[first]) - after)
        state = int(counts.successors[first])
    return ([], []) if action_of else (way, repeats)
