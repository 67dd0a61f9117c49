"""When a policy arrives: the distribution of the number of steps to its goal."""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled
from axplore.graphs.rows import read_only
from axplore.types import RESET_PAIR, FloatArray, IntArray

NO_LIMIT: Final = 2**62
CERTAIN: Final = 2.0
"""A probability that is never reached."""


def arrival_times(
    row_offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    policy: IntArray,
    *,
    goal: int,
    n_states: int,
    steps: int,
    enough: float = CERTAIN,
    work: int = NO_LIMIT,
) -> FloatArray:
    """Returns the probability of arriving for the first time after exactly 0, 1, ... steps from the state 0.

    Args:
        row_offsets: the first transition of each pair, and the end of the last one, [P + 1].
        successors, probabilities: where each transition leads and how likely it is, [T].
        policy: the pair to play in each of the first states, or RESET_PAIR, [k]; or one for each step of a journey,
            [H, k], which a RESET begins again. All other states reset, and all of them do after the last step.
        goal: where the policy ends.
        n_states: the number of states.
        steps: the number of steps to look ahead.
        enough: stop once the policy has arrived with this probability.
        work: stop once this many transitions were followed.

    Returns:
        The probabilities, [m + 1] with m <= steps.
    """
    by_step = np.ascontiguousarray(np.atleast_2d(policy))
    rows = read_only(row_offsets), read_only(successors), read_only(probabilities)
    n_levels = len(by_step) + 1 if policy.ndim == 2 else 1
    arrivals: FloatArray = _followed(*rows, read_only(by_step), n_levels, goal, n_states, steps, float(enough), work)
    return arrivals


@compiled
def _followed(
    row_offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    policy: IntArray,
    n_levels: int,
    goal: int,
    n_states: int,
    steps: int,
    enough: float,
    work: int,
) -> FloatArray:
    """Follows the policy step by step; see `arrival_times`.

    `mass` is the probability of being in each state at each level, [n_levels, n_states]. A level is a step of the
    journey, or the only one if the policy does not depend on the step.
    """
    horizon, n_playing = policy.shape
    arrivals = np.zeros(steps + 1)
    mass, later = np.zeros((n_levels, n_states)), np.zeros((n_levels, n_states))
    # Most levels of a long journey are empty, and are not looked into.
    is_open, opens = np.zeros(n_levels, np.bool_), np.zeros(n_levels, np.bool_)
    mass[0, 0], is_open[0] = 1.0, True
    arrived = 0.0
    for step in range(steps + 1):
        for level in range(n_levels):
            if is_open[level]:
                arrivals[step] += mass[level, goal]
                mass[level, goal] = 0.0
        arrived += arrivals[step]
        if step == steps or arrived >= enough or work <= 0:
            return arrivals[: step + 1].copy()
        for level in range(n_levels):
            if not is_open[level]:
                continue
            following = level + 1 if n_levels > 1 else 0
            # In the order of states, so that sums are the same whichever states were met first.
            for state in range(n_states):
                chance = mass[level, state]
                if chance == 0.0:
                    continue
                mass[level, state] = 0.0
                pair = policy[level, state] if state < n_playing and level < horizon else RESET_PAIR
                if pair == RESET_PAIR:
                    later[0, 0] += chance
                    opens[0] = True
                    work -= 1
                    continue
                for entry in range(row_offsets[pair], row_offsets[pair + 1]):
                    later[following, successors[entry]] += chance * probabilities[entry]
                    work -= 1
                opens[following] = True
            is_open[level] = False
        mass, later = later, mass
        is_open, opens = opens, is_open
    return arrivals
