"""How much a bound would gain from more draws, pair by pair.

A bound depends on the counts through the slack of each pair, which falls about like 1 / visits. By the envelope
theorem the derivative of a bound by the logarithm of a pair's visits is the expected number of times its extreme model
plays the pair, times slack times the derivative of the least mean by the slack. These are estimates to choose samples
by; no proof rests on them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_part
from axplore.proofs.row_kernels import RegionRows, extreme_row, least_mean, lower_backup
from axplore.types import RESET_PAIR, FloatArray, IntArray

NEARLY: Final = 0.02
"""Pairs are as good as the best one if their value is at most this part of what the best one might rise above it."""

DOUBLINGS: Final = 6
"""So many times the visits of a pair are doubled to see what they would bring."""

NOWHERE = -1
"""Where the mass goes that a bound gives to successors never seen, if that ends the journey."""


@compiled
def expected_visits(
    rows: RegionRows, goal: int, policy: IntArray, row: FloatArray, rest: int, ends: IntArray, start: FloatArray
) -> FloatArray:
    """How often each known state is met before the goal, from a distribution of starts, [n].

    Args:
        rows: for the layout of the rows.
        goal: the index of a state.
        policy: a pair for each known state, [n].
        row: the probabilities of the entries of those pairs, [E].
        rest: the index to which the rest of each row goes, or NOWHERE.
        ends: 1 for the states where the journey ends, [n].
        start: how often each state is started from, [n].
    """
    n_known = len(policy)
    met = np.zeros(n_known)
    waiting = start.copy()
    for _ in range(2000):
        moved = 0.0
        for state in range(n_known):
            mass = waiting[state]
            if mass <= 1e-9 or state == goal:
                continue
            waiting[state] = 0.0
            met[state] += mass
            moved += mass
            if ends[state]:
                continue
            pair = policy[state]
            if pair == RESET_PAIR:
                waiting[0] += mass
                continue
            left = 1.0
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                left -= row[entry]
                successor = rows.successors[entry]
                if successor != goal:
                    waiting[successor if successor < n_known else 0] += mass * row[entry]
            if rest != NOWHERE and left > 0.0:
                waiting[rest if rest < n_known else 0] += mass * left
        if moved <= 1e-6:
            break
    return met


@compiled
def upper_gain(
    rows: RegionRows, goal: int, values: FloatArray, policy: IntArray, start: FloatArray, gain: FloatArray
) -> None:
    """Adds what the upper bound of a policy, at these starts, gains from each pair, [P]."""
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    local = np.zeros(n_known)
    free = rows.reset_cost + values[0]
    for state in range(n_known):
        pair = policy[state]
        if state != goal and pair != RESET_PAIR:
            _, weight, shift = least_mean(rows, pair, values, free, 1.0, rows.slack[pair])
            extreme_row(rows, pair, values, free, 1.0, weight, shift, row)
            local[state] = rows.slack[pair] * abs(weight)
    met = expected_visits(rows, goal, policy, row, 0, np.zeros(n_known, np.int64), start)
    for state in range(n_known):
        if policy[state] != RESET_PAIR:
            gain[policy[state]] += met[state] * local[state]


@compiled
def lower_gain(
    rows: RegionRows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    start: FloatArray,
    gain: FloatArray,
) -> None:
    """Adds what the lower bound, at these starts, gains from each pair, [P]."""
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    for state in range(n_known):
        pair = policy[state]
        if state != goal and pair != RESET_PAIR:
            _, weight, shift = lower_backup(rows, pair, values)
            extreme_row(rows, pair, values, 0.0, -1.0, weight, shift, row)
    met = expected_visits(rows, goal, policy, row, NOWHERE, np.zeros(n_known, np.int64), start)
    for state in range(n_known):
        if policy[state] != RESET_PAIR and met[state] > 0.0:
            _share_gain(rows, state, values, policy[state], met[state], RESET_PAIR, gain)


@compiled_part
def _share_gain(
    rows: RegionRows, state: int, values: FloatArray, best: int, mass: float, other: int, gain: FloatArray
) -> None:
    """Adds the gain of the best pair of a state, and of those that are as good, each with its part of the mass.

    The lower value of the state rises only if that of all of them does.

    Args:
        rows: region and counts.
        state: the index of a state.
        values: lower values, [n + others].
        best: the pair of least lower value.
        mass: how often the state is met.
        other: a pair that is not compared, or RESET_PAIR.
        gain: the result, [P].
    """
    first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
    least, _, _ = lower_backup(rows, best, values)
    of_best = _later_gain(rows, best, values)
    limit = least + NEARLY * of_best
    locally = np.zeros(end - first)
    locally[best - first] = of_best
    n_as_good = 1
    for pair in range(first, end):
        if pair not in (best, other) and lower_backup(rows, pair, values)[0] <= limit:
            locally[pair - first] = _later_gain(rows, pair, values)
            n_as_good += 1
    for pair in range(first, end):
        gain[pair] += mass / n_as_good * locally[pair - first]


@compiled_part
def _later_gain(rows: RegionRows, pair: int, values: FloatArray) -> float:
    """The most that the least mean of a pair gains from the logarithm of its visits, now or after some more of them.

    A ball may be so large that nothing but the goal is left in it, so that its bound gains nothing from the next draws
    though it may be what blocks a claim.
    """
    most, slack = 0.0, rows.slack[pair]
    for _ in range(DOUBLINGS):
        _, weight, _ = least_mean(rows, pair, values, 0.0, -1.0, slack)
        most = max(most, slack * abs(weight))
        slack /= 2.0
    return most


@compiled
def regret_gain(
    rows: RegionRows,
    goal: int,
    upper: FloatArray,
    upper_policy: IntArray,
    lower: FloatArray,
    lower_policy: IntArray,
    rivals: IntArray,
    local_regret: FloatArray,
    regret: FloatArray,
    gain: FloatArray,
) -> None:
    """Adds what the regret bound at the initial state gains from each pair, [P].

    The regret is the doubt at the states where it is decided, weighted by the chance to get there; that chance falls
    with draws on the way, and each doubt with draws that lower the upper value or raise that of the rival.
    """
    n_known = len(upper_policy)
    row = np.zeros(len(rows.shares))
    local = np.zeros(n_known)
    decided = np.zeros(n_known, np.int64)
    worst = 0  # where the greatest regret is decided; others may share it without deciding it
    for state in range(1, len(local_regret)):
        if local_regret[state] > local_regret[worst]:
            worst = state
    for state in range(n_known):
        pair = upper_policy[state]
        if local_regret[state] > 0.0 and local_regret[state] >= regret[state] - 1e-6:
            decided[state] = 1
        elif state != goal and pair != RESET_PAIR:
            _, weight, shift = least_mean(rows, pair, regret, regret[worst], 1.0, rows.slack[pair])
            extreme_row(rows, pair, regret, regret[worst], 1.0, weight, shift, row)
            local[state] = rows.slack[pair] * abs(weight)
    start = np.zeros(n_known)
    start[0] = 1.0
    met = expected_visits(rows, goal, upper_policy, row, worst, decided, start)
    after = np.zeros(n_known)
    for state in range(n_known):
        if not decided[state]:
            if upper_policy[state] != RESET_PAIR:
                gain[upper_policy[state]] += met[state] * local[state]
            met[state] = 0.0
        elif met[state] > 0.0:
            _play_rival(rows, goal, state, lower, rivals[state], upper_policy[state], met[state], row, after, gain)
    upper_gain(rows, goal, upper, upper_policy, met, gain)
    lower_gain(rows, goal, lower, lower_policy, after, gain)


@compiled_part
def _play_rival(
    rows: RegionRows,
    goal: int,
    state: int,
    lower: FloatArray,
    rival: int,
    played: int,
    mass: float,
    row: FloatArray,
    after: FloatArray,
    gain: FloatArray,
) -> None:
    """Adds the gain of the rival pair itself, and where its optimistic model goes from there."""
    n_known = len(after)
    if rival == RESET_PAIR:
        after[0] += mass
        return
    _, weight, shift = lower_backup(rows, rival, lower)
    extreme_row(rows, rival, lower, 0.0, -1.0, weight, shift, row)
    _share_gain(rows, state, lower, rival, mass, played, gain)
    for entry in range(rows.row_offsets[rival], rows.row_offsets[rival + 1]):
        successor = rows.successors[entry]
        if successor != goal:
            after[successor if successor < n_known else 0] += mass * row[entry]
