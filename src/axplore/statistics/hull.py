"""The interval hull of a confidence region: between which numbers each transition probability lies.

In the ball sum over y of r(y) log(r(y)/p(y)) <= slack, the total mass m of successors with the total share a satisfies
a log(a/m) + (1 - a) log((1 - a)/(1 - m)) <= slack (docs/algorithms/certified.md, Eq. 6). So `least_mass(a, slack)` is
the least probability of a successor with the share a; the greatest is one less the least mass of all the others; and
what was never seen has at most one less the least mass of everything seen.
"""

from __future__ import annotations

import numpy as np

from axplore.compilation import compiled
from axplore.mdp import FloatArray, IntArray
from axplore.statistics.confidence import least_mass


@compiled
def row_hulls(
    row_offsets: IntArray, shares: FloatArray, slack: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The least and the greatest probability of each entry, [E] each, and the greatest of the mass never seen, [P]."""
    low = np.zeros(len(shares))
    high = np.ones(len(shares))
    unseen = np.ones(len(slack))
    for pair in range(len(slack)):
        if slack[pair] == np.inf:
            continue
        for entry in range(row_offsets[pair], row_offsets[pair + 1]):
            share = min(shares[entry], 1.0)
            low[entry] = least_mass(share, slack[pair])
            high[entry] = 1.0 - least_mass(1.0 - share, slack[pair])
        unseen[pair] = 1.0 - least_mass(1.0, slack[pair])
    return low, high, unseen
