"""The chance of a policy to arrive within a number of steps: by the frequencies, and bounds over a confidence region.

With h_k(s) the chance to arrive from s within k steps, h_0 is 1 at the goal and 0 elsewhere, and h_{k+1}(s) is the mean
of h_k at the next state; a state outside the known ones resets. Taking the least mean over the region of every row,
with the least of all values for a successor never seen, gives lower bounds, because means are monotone in h_k; the
greatest mean, with 1 for such a successor, which may be the goal, gives upper bounds.
"""

from __future__ import annotations

import numpy as np

from axplore.compilation import compiled
from axplore.mdp import RESET_PAIR, FloatArray, IntArray
from axplore.planning.interval_kernels import Rows, least_mean


@compiled
def arrival_chances(rows: Rows, goal: int, policy: IntArray, n_seen: int, steps: int) -> FloatArray:
    """Lower bound, estimate and upper bound of the chance to arrive within 0, 1, ..., `steps` steps, [steps + 1, 3].

    Args:
        rows: region and counts.
        goal: a position.
        policy: a pair, or RESET_PAIR, for each known state, [n].
        n_seen: how many positions there are, n + others.
        steps: the horizon.
    """
    n_known = len(policy)
    chances = np.zeros((steps + 1, 3))
    now = np.zeros((3, n_seen))
    now[:, goal] = 1.0
    chances[0] = now[:, 0]
    for step in range(1, steps + 1):
        after = np.zeros((3, n_seen))
        for kind in range(3):
            least = now[kind].min()
            for state in range(n_seen):
                pair = policy[state] if state < n_known else RESET_PAIR
                if state == goal:
                    after[kind, state] = 1.0
                elif pair == RESET_PAIR:
                    after[kind, state] = now[kind, 0]
                elif kind == 0:
                    mean, _, _ = least_mean(rows, pair, now[kind], least, -1.0, rows.slack[pair])
                    after[kind, state] = least + mean
                elif kind == 1:
                    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                        after[kind, state] += rows.frequencies[entry] * now[kind, rows.successors[entry]]
                else:
                    mean, _, _ = least_mean(rows, pair, now[kind], 1.0, 1.0, rows.slack[pair])
                    after[kind, state] = 1.0 - mean
        now = after
        chances[step] = np.minimum(np.maximum(now[:, 0], 0.0), 1.0)
    return chances
