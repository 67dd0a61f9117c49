"""How much a bound would gain from more draws, pair by pair.

A bound depends on the counts through the slack of each pair, which falls about like 1 / visits. By the envelope
theorem the derivative of a bound by the logarithm of a pair's visits is the expected number of times its extreme model
plays the pair, times slack times the derivative of the least mean by the slack. These are estimates to choose samples
by; no proof rests on them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.proofs.row_kernels import RegionRows, extreme_row, least_mean, least_mean_near, quick_mean
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray

NEARLY: Final = 0.02
"""Pairs are as good as the best one if their value is at most this part of what the best one might rise above it."""

DOUBLINGS: Final = 5
"""So many times at most the visits of a pair are doubled to see what they would bring."""

LEAST_MET: Final = 1e-6
"""What a state that is met more seldom would bring is not looked at."""

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
    order = _states_ahead(rows, goal, policy, rest, ends, start)
    met = np.zeros(n_known)
    waiting = start.copy()
    for _ in range(2000):
        moved = 0.0
        for state in order:
            mass = waiting[state]
            if mass <= 1e-9:
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


@compiled_part
def _states_ahead(
    rows: RegionRows, goal: int, policy: IntArray, rest: int, ends: IntArray, start: FloatArray
) -> IntArray:
    """The known states but the goal that a policy may meet from these starts, the nearest first.

    In this order most of the mass moves on in a single sweep. The arguments are those of `expected_visits`.
    """
    n_known = len(policy)
    order, is_ahead, n_ahead = np.empty(n_known, np.int64), np.zeros(n_known, np.bool_), 0
    if goal < n_known:
        is_ahead[goal] = True  # where it ends
    for state in range(n_known):
        if start[state] > 0.0:
            n_ahead = _add_state(state, order, is_ahead, n_ahead)
    index = 0
    while index < n_ahead:
        state = order[index]
        index += 1
        pair = policy[state]
        if ends[state]:
            continue
        if pair == RESET_PAIR:
            n_ahead = _add_state(0, order, is_ahead, n_ahead)
            continue
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            successor = rows.successors[entry]
            if successor != goal:
                n_ahead = _add_state(successor if successor < n_known else 0, order, is_ahead, n_ahead)
        if rest != NOWHERE:
            n_ahead = _add_state(rest if rest < n_known else 0, order, is_ahead, n_ahead)
    ahead = np.empty(n_ahead, np.int64)
    for index in range(n_ahead):
        ahead[index] = order[index]
    return ahead


@compiled_inline
def _add_state(state: int, order: IntArray, is_ahead: BoolArray, n_ahead: int) -> int:
    """Adds a state that is not in the order; returns how many there are."""
    if is_ahead[state]:
        return n_ahead
    is_ahead[state] = True
    order[n_ahead] = state
    return n_ahead + 1


@compiled
def upper_gain(
    rows: RegionRows, goal: int, values: FloatArray, policy: IntArray, start: FloatArray, gain: FloatArray
) -> None:
    """Adds what the upper bound of a policy, at these starts, gains from each pair, [P]."""
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    local, nowhere = np.zeros(n_known), np.zeros(n_known, np.int64)
    free = rows.reset_cost + values[0]
    for state in _states_ahead(rows, goal, policy, 0, nowhere, start):
        pair = policy[state]
        if pair != RESET_PAIR:
            _, weight, shift = least_mean(rows, pair, values, free, 1.0, rows.slack[pair])
            extreme_row(rows, pair, values, free, 1.0, weight, shift, row)
            local[state] = rows.slack[pair] * abs(weight)
    met = expected_visits(rows, goal, policy, row, 0, nowhere, start)
    for state in range(n_known):
        if policy[state] != RESET_PAIR:
            gain[policy[state]] += met[state] * local[state]


@compiled
def lower_gain(
    rows: RegionRows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    start: FloatArray,
    gain: FloatArray,
) -> None:
    """`lower_gain_part` for calls from Python."""
    lower_gain_part(rows, goal, values, policy, shifts, start, gain)


@compiled_part
def lower_gain_part(
    rows: RegionRows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    start: FloatArray,
    gain: FloatArray,
) -> None:
    """Adds what the lower bound, at these starts, gains from each pair, [P].

    `shifts` are about the best ones for the values, or unknown, [P]; those of the policy are replaced by the best.
    """
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    means, weights, nowhere = np.zeros(n_known), np.zeros(n_known), np.zeros(n_known, np.int64)
    for state in _states_ahead(rows, goal, policy, NOWHERE, nowhere, start):
        pair = policy[state]
        if pair != RESET_PAIR:
            mean, weight, shift = least_mean_near(rows, pair, values, rows.slack[pair], shifts[pair])
            extreme_row(rows, pair, values, 0.0, -1.0, weight, shift, row)
            means[state], weights[state], shifts[pair] = mean, weight, shift
    met = expected_visits(rows, goal, policy, row, NOWHERE, nowhere, start)
    for state in range(n_known):
        if policy[state] != RESET_PAIR and met[state] > LEAST_MET:
            _share_gain(
                rows, state, values, policy[state], means[state], weights[state], shifts, met[state], RESET_PAIR, gain
            )


@compiled_part
def _share_gain(
    rows: RegionRows,
    state: int,
    values: FloatArray,
    best: int,
    mean: float,
    weight: float,
    shifts: FloatArray,
    mass: float,
    other: int,
    gain: FloatArray,
) -> None:
    """Adds the gain of the best pair of a state, and of those that are as good, each with its part of the mass.

    The lower value of the state rises only if that of all of them does.

    Args:
        rows: region and counts.
        state: the index of a state.
        values: lower values, [n + others].
        best: the pair of least lower value.
        mean, weight: its least mean, and the derivative of that by the slack.
        shifts: the best shift of that pair; of the others about the best ones, or unknown, [P].
        mass: how often the state is met.
        other: a pair that is not compared, or RESET_PAIR.
        gain: the result, [P].
    """
    first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
    of_best = _later_gain(rows, best, values, weight, shifts[best])
    limit = rows.costs[best] + mean + NEARLY * of_best
    locally = np.zeros(end - first)
    locally[best - first] = of_best
    n_as_good = 1
    for pair in range(first, end):
        if pair not in (best, other) and rows.costs[pair] + quick_mean(rows, pair, values, shifts[pair]) <= limit:
            mean, weight, shift = least_mean_near(rows, pair, values, rows.slack[pair], shifts[pair])
            if rows.costs[pair] + mean <= limit:
                locally[pair - first] = _later_gain(rows, pair, values, weight, shift)
                n_as_good += 1
    for pair in range(first, end):
        gain[pair] += mass / n_as_good * locally[pair - first]


@compiled_part
def _later_gain(rows: RegionRows, pair: int, values: FloatArray, weight: float, shift: float) -> float:
    """The most that the least mean of a pair gains from the logarithm of its visits, now or after some more of them.

    A ball may be so large that nothing but the goal is left in it, so that its bound gains nothing from the next draws
    though it may be what blocks a claim. Once more visits gain less, still more of them do not gain more again.

    Args:
        rows: region and counts.
        pair: the pair.
        values: lower values, [n + others].
        weight, shift: the derivative of its least mean by the slack, and the shift.
    """
    slack = rows.slack[pair]
    most = slack * abs(weight)
    for _ in range(DOUBLINGS):
        slack /= 2.0
        _, weight, shift = least_mean_near(rows, pair, values, slack, shift)
        if slack * abs(weight) < most:
            break
        most = slack * abs(weight)
    return float(most)


@compiled
def regret_gain(
    rows: RegionRows,
    goal: int,
    upper: FloatArray,
    upper_policy: IntArray,
    lower: FloatArray,
    lower_policy: IntArray,
    shifts: FloatArray,
    rivals: IntArray,
    local_regret: FloatArray,
    regret: FloatArray,
    gain: FloatArray,
) -> None:
    """Adds what the regret bound at the initial state gains from each pair, [P].

    `shifts` are about the best ones for the lower values, or unknown, [P].

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
            _play_rival(
                rows, goal, state, lower, rivals[state], upper_policy[state], shifts, met[state], row, after, gain
            )
    upper_gain(rows, goal, upper, upper_policy, met, gain)
    lower_gain_part(rows, goal, lower, lower_policy, shifts, after, gain)


@compiled_part
def _play_rival(
    rows: RegionRows,
    goal: int,
    state: int,
    lower: FloatArray,
    rival: int,
    played: int,
    shifts: FloatArray,
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
    mean, weight, shift = least_mean_near(rows, rival, lower, rows.slack[rival], shifts[rival])
    extreme_row(rows, rival, lower, 0.0, -1.0, weight, shift, row)
    shifts[rival] = shift
    _share_gain(rows, state, lower, rival, mean, weight, shifts, mass, played, gain)
    for entry in range(rows.row_offsets[rival], rows.row_offsets[rival + 1]):
        successor = rows.successors[entry]
        if successor != goal:
            after[successor if successor < n_known else 0] += mass * row[entry]
