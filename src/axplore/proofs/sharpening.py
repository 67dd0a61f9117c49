"""Balls that are sharp for one goal: tangents taken where its bound is attained.

The region of a row is convex, and each of its tangents gives a ball that holds it (`axplore.statistics.centred`). A
ball that suits all directions is loose in most of them. For the values of one goal the extreme row is about known
beforehand, from the values by the observed frequencies, and the tangent there is nearly exact. Whichever tangent is
taken, the bound is proven: all of them follow from one martingale. docs/algorithms/certified.md, Eqs. 4 and 5.

Ways along which every pair has shown a single successor are sharper still: the martingale of these pairs bounds the
*sum* of (visits - 1) log(1/p) over all of them, so that the worst case spends the whole budget in one pair of the way,
not in each (Eqs. 17 and 18).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.proofs.row_kernels import UNKNOWN_SHIFT, RegionRows, extreme_row, least_mean, least_mean_from
from axplore.statistics.centred import tangent_ball
from axplore.types import RESET_PAIR, FloatArray, IntArray

MARGIN: Final = 1e-6
"""The part by which these slacks are enlarged, so that whoever takes tangents at a better point finds no less."""

ROUNDS: Final = 2
"""How often the point of a tangent is improved."""

WAY_ROUNDING: Final = 1e-9
"""The part by which the budget and the bounds of a way are enlarged, far above the rounding of the arithmetic."""


@compiled
def sharp_for_upper(
    rows: RegionRows, counts: FloatArray, log_levels: FloatArray, goal: int, values: FloatArray, policy: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Shares, [E], and slacks, [P], that are sharp for upper bounds where a policy plays.

    Args:
        rows: the balls to begin with; their arrays stay as they are.
        counts: of each entry, [E].
        log_levels: the logarithm of the level of each pair, [P].
        goal: the index of a state.
        values: about the values of the policy, [n + others].
        policy: a pair, or RESET_PAIR, for each known state, [n].
    """
    sharp = _copied(rows)
    row = np.zeros(len(rows.shares))
    free = rows.reset_cost + values[0]
    for state in range(len(policy)):
        pair = policy[state]
        if state != goal and pair != RESET_PAIR and _may_be_sharper(rows, pair):
            found = least_mean_from(rows, pair, values, free, 1.0, rows.slack[pair], UNKNOWN_SHIFT, -1.0)
            _sharpen(sharp, counts, log_levels, pair, values, free, 1.0, found, row)
    return sharp.shares, sharp.slack


@compiled
def sharp_for_lower(
    rows: RegionRows, counts: FloatArray, log_levels: FloatArray, goal: int, values: FloatArray, n_known: int
) -> tuple[FloatArray, FloatArray]:
    """The same for lower bounds, of all actions that might be the best; `values` are about those of the best policy."""
    sharp = _copied(rows)
    row = np.zeros(len(rows.shares))
    for state in range(n_known):
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            if state != goal and _may_be_sharper(rows, pair):
                found = least_mean_from(rows, pair, values, 0.0, -1.0, rows.slack[pair], UNKNOWN_SHIFT, -1.0)
                if rows.costs[pair] + found[0] <= values[state]:
                    _sharpen(sharp, counts, log_levels, pair, values, 0.0, -1.0, found, row)
    return sharp.shares, sharp.slack


@compiled_part
def sharpened_pair(
    rows: RegionRows, counts: FloatArray, log_levels: FloatArray, pair: int, values: FloatArray, row: FloatArray
) -> None:
    """Replaces the ball of a pair, in place, by one that is sharp for lower bounds about these values, if there is one.

    `row` has room for the probabilities of all entries, [E].
    """
    if _may_be_sharper(rows, pair):
        found = least_mean(rows, pair, values, 0.0, -1.0, rows.slack[pair])
        _sharpen(rows, counts, log_levels, pair, values, 0.0, -1.0, found, row)


@compiled_inline
def _may_be_sharper(rows: RegionRows, pair: int) -> bool:
    """Whether a pair has several successors, and a ball: with one, the ball is exact."""
    return bool(rows.row_offsets[pair + 1] > rows.row_offsets[pair] + 1 and rows.slack[pair] < np.inf)


@compiled_part
def _copied(rows: RegionRows) -> RegionRows:
    return _with_balls(rows, rows.shares.copy(), rows.slack.copy())


@compiled_part
def _with_balls(rows: RegionRows, shares: FloatArray, slack: FloatArray) -> RegionRows:
    return RegionRows(
        rows.state_pairs, rows.row_offsets, rows.successors, shares, slack, rows.frequencies, rows.costs,
        rows.reset_cost, rows.closed, rows.floors, rows.rest, rows.wide, rows.lows, rows.prices, rows.joint_shares,
    )  # fmt: skip


@compiled_part
def _sharpen(
    rows: RegionRows,
    counts: FloatArray,
    log_levels: FloatArray,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    found: tuple[float, float, float],
    row: FloatArray,
) -> None:
    """Replaces the ball of a pair by one with a greater least mean of sign * (free - value), if there is one.

    `found` is that of the ball as it is, with its derivative and shift.
    """
    first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
    mean, weight, shift = found
    before = np.empty(end - first)
    for _ in range(ROUNDS):
        if mean <= 0.0:
            return
        extreme_row(rows, pair, values, free, sign, weight, shift, row)
        for entry in range(first, end):
            if row[entry] <= 0.0:  # it has no share: any probability will do
                row[entry] = rows.frequencies[entry]
        for entry in range(first, end):
            before[entry - first] = rows.shares[entry]
        slack = tangent_ball(counts[first:end], log_levels[pair], row[first:end], rows.shares[first:end])
        slack *= 1.0 + MARGIN
        new_mean, weight, shift = least_mean_from(rows, pair, values, free, sign, slack, shift, -1.0)
        if new_mean <= mean:
            for entry in range(first, end):
                rows.shares[entry] = before[entry - first]
            return
        mean = new_mean
        rows.slack[pair] = slack


@compiled
def certain_way(rows: RegionRows, goal: int, policy: IntArray) -> IntArray:
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
def certain_ways(rows: RegionRows, n_seen: int) -> tuple[IntArray, IntArray]:
    """The state and the pair before each state on a shortest way over pairs with one successor, [n + others] each.

    Both are -1 where there is no such way.
    """
    n_known = len(rows.state_pairs) - 1
    before, pairs = np.full(n_seen, -1), np.full(n_seen, -1)
    order, n_met, looked_at = np.zeros(n_seen, np.int64), 1, 0
    while looked_at < n_met:
        state = order[looked_at]
        looked_at += 1
        if state >= n_known:
            continue
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            first = rows.row_offsets[pair]
            successor = rows.successors[first] if rows.row_offsets[pair + 1] == first + 1 else 0
            if successor > 0 and before[successor] == -1:
                before[successor], pairs[successor] = state, pair
                order[n_met] = successor
                n_met += 1
    return before, pairs


@compiled
def bounds_along(repeats: FloatArray, budget: float) -> FloatArray:
    """Upper bounds of the steps to the goal from each state of a way, [m] (Eq. 18).

    Args:
        repeats: how often the pair of each state was drawn after its first time, above 0, [m].
        budget: what the pairs with one successor share, in nats.
    """
    length = len(repeats)
    excess, bounds = np.empty(length), np.empty(length)
    for state in range(length):
        excess[state] = math.expm1(budget * (1.0 + WAY_ROUNDING) / repeats[state])
    before = 1.0
    for state in range(length):
        weight = before if state == 0 else (state + 1.0) * before
        worst = 0.0
        for pair in range(state, length):
            worst = max(worst, (weight + pair - state + 1.0) * excess[pair])
        bounds[state] = (length - state + worst) * (1.0 + WAY_ROUNDING)
        before = max(before, 1.0 + excess[state])
    return bounds
