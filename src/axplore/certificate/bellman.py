"""The verifier's own Bellman operators: means of values at the next state, over every model of the region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from axplore.certificate.contents import RESET_ACTION
from axplore.certificate.document import Certificate
from axplore.certificate.region import Region, confidence_region
from axplore.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sweeper:
    """Applies Bellman operators over the region.

    Attributes:
        region: the confidence region.
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        owners: the known state of each pair, [P].
        n_seen: how many states were seen.
    """

    region: Region
    state_pairs: IntArray
    owners: IntArray
    n_seen: int

    @classmethod
    def of(cls, certificate: Certificate) -> Sweeper:
        n_actions = [len(actions) for actions in certificate.actions]
        return cls(
            region=confidence_region(
                certificate.counts, n_actions, certificate.delta, certificate.assumed, certificate.apart
            ),
            state_pairs=certificate.state_pairs,
            owners=np.repeat(np.arange(len(n_actions)), n_actions),
            n_seen=certificate.n_seen,
        )

    def spread(self, vector: FloatArray, goal: int, outside: float) -> FloatArray:
        """The value of every state that was seen: the vector's, 0 for the goal, and `outside`, [n + others]."""
        values = np.full(self.n_seen, outside)
        values[: len(vector)] = vector
        if goal < self.n_seen:
            values[goal] = 0.0
        return values

    def greatest_means(self, vector: FloatArray, goal: int, outside: float, policy: IntArray) -> FloatArray:
        """The greatest mean of values at the next state under a policy, [n]; RESET leads to the initial state.

        A successor never seen may be any state, known or not, so it has the greatest of all values.
        """
        values = self.spread(vector, goal, outside)
        greatest = max(float(values.max()), outside)
        means = greatest - self.region.least_means(greatest - values)
        plays = policy != RESET_ACTION
        result = np.full(len(vector), values[0])
        result[plays] = means[(self.state_pairs[:-1] + policy)[plays]]
        return result

    def least_means(self, vector: FloatArray, goal: int) -> FloatArray:
        """The least mean of step counts at the next state for every pair, [P].

        A successor never seen may be the goal, so it has the value 0. Where the goal was seen nothing better is known:
        its probability has no upper bound other than what the others leave, as that of the unseen.
        """
        return self.region.least_means(self.spread(vector, goal, 1.0 + vector[0]))
