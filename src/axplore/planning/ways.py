"""Ways along which every pair has shown a single successor: they share one budget of doubt.

The martingale of the pairs with one successor bounds the *sum* of (visits - 1) log(1/p) over all of them. On a way from
the initial state to a goal that only plays such pairs the worst case spends the whole budget in one, not in each
(docs/algorithms/certified.md, Eqs. 17 and 18).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled
from axplore.proofs.bound_kernels import Rows
from axplore.types import RESET_PAIR, FloatArray, IntArray

ROUNDING: Final = 1e-9
"""The part by which the budget and the bounds are enlarged, far above the rounding of the arithmetic."""


@compiled
def certain_way(rows: Rows, goal: int, policy: IntArray) -> IntArray:
    """The known states on the way of a policy to a goal, in order; none if some pair has several successors, [m]."""
    way = np.empty(len(policy), np.int64)
    state, length = 0, 0
    while state != goal:
        if state >= len(policy) or length == len(policy) or policy[state] == RESET_PAIR:
            return way[:0]
        first = rows.row_offsets[policy[state]]
        if rows.row_offsets[policy[state] + 1] != first + 1:
            return way[:0]
        way[length] = state
        length += 1
        state = rows.successors[first]
    return way[:length]


@compiled
def bounds_along(repeats: FloatArray, budget: float) -> FloatArray:
    """Upper bounds of the steps to the goal from each state of a way, [m] (Eq. 18).

    Args:
        repeats: how often the pair of each state was drawn after its first time, above 0, [m].
        budget: what the pairs with one successor share, in nats.
    """
    length = len(repeats)
    excess = np.expm1(budget * (1.0 + ROUNDING) / repeats)
    bounds = np.empty(length)
    before = 1.0
    for state in range(length):
        weight = before if state == 0 else (state + 1.0) * before
        worst = 0.0
        for pair in range(state, length):
            worst = max(worst, (weight + pair - state + 1.0) * excess[pair])
        bounds[state] = (length - state + worst) * (1.0 + ROUNDING)
        before = max(before, 1.0 + excess[state])
    return bounds
