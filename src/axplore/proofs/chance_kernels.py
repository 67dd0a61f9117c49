"""Compiled bounds of the probability of a goal over a confidence region (docs/algorithms/questions.md).

Values are probabilities by position, as in `row_kernels`, and one place per pair has the best shift of similar values.
A state is *asked* if its value is to be found: it was counted, has actions, and is neither in the goal nor avoided. All
others keep the value that they are given.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline
from axplore.proofs.row_kernels import RegionRows, least_mean_by, least_of_closed, priced_mean, single_factors
from axplore.types import BoolArray, FloatArray, IntArray

NO_PAIR: Final = -1
"""In place of the pair that is played in a state whose value is zero."""

STEP: Final = 4.0
"""An upper bound that is moved ends this many margins above the greatest mean, so that it need not move again."""


@compiled_inline
def greatest_chance(
    rows: RegionRows, factors: FloatArray, pair: int, values: FloatArray, shifts: FloatArray, margin: float
) -> float:
    """The greatest mean of values under a pair, raised by a margin; a state that was never seen has the value 1.

    Where the support is closed, it is no more than the greatest value, in exact arithmetic too: so a loop whose states
    have equal values proves them (Theorem 1).
    """
    mean, _, shift = least_mean_by(rows, factors, pair, values, 1.0, 1.0, shifts[pair], -1.0)
    shifts[pair] = shift
    if rows.prices[pair] < np.inf:
        mean = max(mean, priced_mean(rows, pair, values, 1.0, 1.0))
    most = 1.0
    if rows.closed[pair] or rows.slack[pair] == 0.0:
        most = 0.0
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            most = max(most, values[rows.successors[entry]])
        if rows.rest[pair] > 0.0:
            most = 1.0
    return min(max(1.0 - mean + margin, 0.0), most)


@compiled_inline
def least_chance(
    rows: RegionRows, factors: FloatArray, pair: int, values: FloatArray, shifts: FloatArray, margin: float
) -> float:
    """The least mean of values under a pair, lowered by a margin; a state that was never seen has the value 0.

    Where the support is closed, it is no less than the least value, in exact arithmetic too.
    """
    mean, _, shift = least_mean_by(rows, factors, pair, values, 0.0, -1.0, shifts[pair], -1.0)
    shifts[pair] = shift
    if rows.prices[pair] < np.inf:
        mean = max(mean, priced_mean(rows, pair, values, 0.0, -1.0))
    return min(max(mean - margin, least_of_closed(rows, pair, values)), 1.0)


@compiled_inline
def best_chance(
    rows: RegionRows,
    factors: FloatArray,
    state: int,
    values: FloatArray,
    shifts: FloatArray,
    is_upper: bool,
    maximise: bool,
    margin: float,
) -> tuple[float, int]:
    """The extreme value over the actions of a state, and the pair that attains it."""
    best, attained = -1.0 if maximise else 2.0, NO_PAIR
    for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
        if is_upper:
            value = greatest_chance(rows, factors, pair, values, shifts, margin)
        else:
            value = least_chance(rows, factors, pair, values, shifts, margin)
        if (value > best) if maximise else (value < best):
            best, attained = value, pair
    return best, attained


@compiled
def raise_chances(
    rows: RegionRows,
    order: IntArray,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    is_upper: bool,
    maximise: bool,
    margin: float,
    tolerance: float,
    most_sweeps: int,
) -> float:
    """Value iteration from below, in place; returns the greatest change of the last sweep.

    A value only rises, and a pair replaces that before it only where it does, so that the policy of a lower bound makes
    progress (section 7). Where values are maximised, three of four sweeps follow the policy alone.

    Args:
        rows: region and counts.
        order: the states that are asked for, those near the goal first, [m].
        values: start and result, [n + others]; at the start no more than one sweep makes of them.
        policy: the pair that attains each value, [n], or NO_PAIR.
        shifts: the best shifts for similar values, [P].
        is_upper: whether unseen states count as the goal, and rows are the most favourable ones.
        maximise: over actions; else minimise.
        margin: by how much inequalities are to hold.
        tolerance: the change at which to stop.
        most_sweeps: the number of sweeps after which to stop.
    """
    factors = single_factors(rows)
    change = 0.0
    for sweep in range(most_sweeps):
        change = 0.0
        follows = maximise and sweep % 4 != 0
        for state in order:
            if follows and policy[state] == NO_PAIR:
                continue
            if follows and is_upper:
                value, pair = greatest_chance(rows, factors, policy[state], values, shifts, margin), policy[state]
            elif follows:
                value, pair = least_chance(rows, factors, policy[state], values, shifts, margin), policy[state]
            else:
                value, pair = best_chance(rows, factors, state, values, shifts, is_upper, maximise, margin)
            if value > values[state]:
                change = max(change, value - values[state])
                values[state] = value
                policy[state] = pair
        if change <= tolerance and not follows:
            return change
    return change


@compiled
def lower_chances(
    rows: RegionRows,
    order: IntArray,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    maximise: bool,
    margin: float,
    most_sweeps: int,
) -> bool:
    """Lowers values until they are an upper bound by Theorem 1, in place; returns whether they are.

    Args:
        rows: region and counts.
        order: the states that are asked for, [m].
        values: start and result, [n + others].
        policy: the pair that attains each value, [n].
        shifts: the best shifts for similar values, [P].
        maximise: over actions; else minimise.
        margin: by how much a value has to be above the greatest mean.
        most_sweeps: the number of sweeps after which to give up.
    """
    factors = single_factors(rows)
    for _ in range(most_sweeps):
        is_bound = True
        for state in order:
            value, pair = best_chance(rows, factors, state, values, shifts, True, maximise, margin)
            policy[state] = pair
            if values[state] < value:
                is_bound = False
                values[state] = min(value + STEP * margin, 1.0)
            elif value + STEP * margin < values[state]:
                values[state] = value + STEP * margin
        if is_bound:
            return _is_bound(rows, factors, order, values, shifts, policy, maximise, margin)
    return False


@compiled_inline
def _is_bound(
    rows: RegionRows,
    factors: FloatArray,
    order: IntArray,
    values: FloatArray,
    shifts: FloatArray,
    policy: IntArray,
    maximise: bool,
    margin: float,
) -> bool:
    """Whether values that no longer change satisfy Theorem 1, for every pair of each state or for that of a policy."""
    for state in order:
        first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
        if not maximise:
            first, end = policy[state], policy[state] + 1
        for pair in range(first, end):
            if values[state] < greatest_chance(rows, factors, pair, values, shifts, margin):
                return False
    return True


@compiled
def step_chances(
    rows: RegionRows,
    order: IntArray,
    values: FloatArray,
    steps: int,
    shifts: FloatArray,
    is_upper: bool,
    maximise: bool,
    margin: float,
    policy: IntArray,
) -> None:
    """The bounds of Theorem 3: one sweep from one vector to the next for each step.

    Args:
        rows: region and counts.
        order: the states that are asked for, [m].
        values: those with no steps left, and those of what keeps its value; at the end those with all steps left.
        steps: the number of steps.
        shifts: the best shifts for similar values, [P].
        is_upper: whether unseen states count as the goal, and rows are the most favourable ones.
        maximise: over actions; else minimise.
        margin: by how much inequalities are to hold.
        policy: the pair to play by the number of steps done and state, [steps, n].
    """
    factors = single_factors(rows)
    after = values.copy()
    for left in range(1, steps + 1):
        for state in order:
            value, pair = best_chance(rows, factors, state, values, shifts, is_upper, maximise, margin)
            after[state] = value
            policy[steps - left, state] = pair
        values[:] = after


@compiled
def ranks_under_all(state_pairs: IntArray, row_offsets: IntArray, successors: IntArray, inside: BoolArray) -> IntArray:
    """The rank of each state of a set out of which every action makes progress; -1 for the others.

    A state has a rank once each of its pairs was seen to lead out of the set, or to a state that has one.
    """
    n_pairs = len(row_offsets) - 1
    owners, n_waiting = np.empty(n_pairs, dtype=np.int64), np.zeros(len(inside), dtype=np.int64)
    for state in range(len(state_pairs) - 1):
        for pair in range(state_pairs[state], state_pairs[state + 1]):
            owners[pair] = state
            n_waiting[state] += 1
    offsets = np.zeros(len(inside) + 1, dtype=np.int64)
    for successor in successors:
        offsets[successor + 1] += 1
    offsets = np.cumsum(offsets)
    places, leading = offsets[:-1].copy(), np.empty(len(successors), dtype=np.int64)
    for pair in range(n_pairs):
        for entry in range(row_offsets[pair], row_offsets[pair + 1]):
            leading[places[successors[entry]]] = pair
            places[successors[entry]] += 1
    ranks = np.where(inside, -1, 0)
    progresses = np.zeros(n_pairs, dtype=np.bool_)
    queue, first, end = np.empty(len(inside), dtype=np.int64), 0, 0
    for state in range(len(inside)):
        if not inside[state]:
            queue[end] = state
            end += 1
    while first < end:
        reached = queue[first]
        first += 1
        for place in range(offsets[reached], offsets[reached + 1]):
            pair = leading[place]
            state = owners[pair]
            if progresses[pair] or not inside[state]:
                continue
            progresses[pair] = True
            n_waiting[state] -= 1
            if n_waiting[state] == 0:
                ranks[state] = ranks[reached] + 1
                queue[end] = state
                end += 1
    return np.where(inside, ranks, -1)
