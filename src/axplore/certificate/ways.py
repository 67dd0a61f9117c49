"""Upper bounds along a way on which every action has shown one successor only.

The martingale shared by all such pairs bounds the sum of (draws - 1) log(1/p) over them by one budget. Let a policy
play such pairs from state to state until the goal, m in all, and reset everywhere else, and let the j-th pair have k_j
draws after its first. Then it takes from the i-th state of the way, counted from 0, at most

    m - i + max over j >= i of (Y_i + j - i + 1) (exp(budget / k_j) - 1),

where Y_0 = 1 and Y_i = (i + 1) max over j < i of exp(budget / k_j). docs/algorithms/certified.md, Eqs. 17 and 18.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.certificate.contents import RESET_ACTION, Counts
from axplore.types import FloatArray, IntArray

ROUNDING: Final = 1e-12
"""The part by which bounds are enlarged, far above the rounding of their few terms."""


def bounds_along_way(
    counts: Counts, state_pairs: IntArray, goal: int, policy: IntArray, budget: float
) -> FloatArray | None:
    """A bound of the expected steps of the policy from each known state, [n]; None if it plays along no such way."""
    way, repeats = _way(counts, state_pairs, goal, policy)
    if not way:
        return None
    factors = [math.exp(budget / repeat) for repeat in repeats]
    length = len(way)
    bounds = np.zeros(len(policy))
    for place, state in enumerate(way):
        weight = (place + 1) * max(factors[:place], default=1.0)
        worst = max((weight + later - place + 1) * (factors[later] - 1.0) for later in range(place, length))
        bounds[state] = (length - place + worst) * (1.0 + ROUNDING)
    elsewhere = np.setdiff1d(np.arange(len(policy)), [*way, goal])
    bounds[elsewhere] = 1.0 + bounds[way[0]]
    return bounds


def _way(counts: Counts, state_pairs: IntArray, goal: int, policy: IntArray) -> tuple[list[int], list[int]]:
    """The states from the initial one on and the repetitions of their pairs; nothing if another kind is played."""
    way: list[int] = []
    repeats: list[int] = []
    state = 0
    while state != goal:
        if state >= len(policy) or state in way or policy[state] == RESET_ACTION:
            return [], []
        pair = int(state_pairs[state] + policy[state])
        first, end = int(counts.row_offsets[pair]), int(counts.row_offsets[pair + 1])
        if end != first + 1 or counts.counts[first] < 2:
            return [], []
        way.append(state)
        repeats.append(int(counts.counts[first]) - 1)
        state = int(counts.successors[first])
    elsewhere = np.setdiff1d(np.arange(len(policy)), [*way, goal])
    return (way, repeats) if (policy[elsewhere] == RESET_ACTION).all() else ([], [])
