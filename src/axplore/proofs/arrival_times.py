"""When a policy arrives, by the observed frequencies: an estimate of the law of its steps to a goal, no bound."""

from __future__ import annotations

import numpy as np

from axplore.compilation import compiled
from axplore.proofs.bound_kernels import Rows
from axplore.types import RESET_PAIR, FloatArray, IntArray


@compiled
def arrival_times(rows: Rows, goal: int, policy: IntArray, n_seen: int, steps: int) -> FloatArray:
    """The chance to reach the goal for the first time after exactly 0, 1, ..., `steps` steps, [steps + 1].

    Args:
        rows: for their frequencies.
        goal: a position.
        policy: a pair, or RESET_PAIR, for each known state, [n].
        n_seen: how many positions there are, n + others.
        steps: the horizon.
    """
    n_known = len(policy)
    arrivals = np.zeros(steps + 1)
    now = np.zeros(n_seen)
    now[0] = 1.0
    arrivals[0] = now[goal]
    now[goal] = 0.0
    for step in range(1, steps + 1):
        after = np.zeros(n_seen)
        for state in range(n_seen):
            if now[state] == 0.0:
                continue
            pair = policy[state] if state < n_known else RESET_PAIR
            if pair == RESET_PAIR:
                after[0] += now[state]
                continue
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                after[rows.successors[entry]] += now[state] * rows.frequencies[entry]
        arrivals[step] = after[goal]
        after[goal] = 0.0
        now = after
    return arrivals
