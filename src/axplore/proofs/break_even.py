"""How wrong every row may be before a claim no longer follows.

The counts prove that the row p of a pair lies in a ball. Aliasing and drift mean that the row at work is another one,
p', whose total variation from some p of the ball is at most η. For distances z >= 0 from a free value that such a row
may reach,

    least mean of z under p'  =  max over t >= 0 of  (least mean over the ball of min(z, t))  -  η t,

because the worst p' takes η off the largest distances, and the minimax theorem exchanges p with t. Every t gives a
lower bound of it. The t tried are the distances of the successors that were seen, among which is the best one if the
ball is a point. So what is found here errs on the safe side: a claim survives at least as much as is said.

RESET is known exactly and is not disturbed. docs/verdicts.md tells how to read the figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_part
from axplore.proofs.bound_kernels import spread_values
from axplore.proofs.bounds import IntervalModel, correction
from axplore.proofs.row_kernels import RegionRows, least_mean
from axplore.types import RESET_PAIR, FloatArray, IntArray

HALVINGS: Final = 16
"""The break-even is found to about 0.0015 %."""

MOST_SWEEPS: Final = 20_000
TOLERANCE: Final = 1e-9


def surviving_error(holds: Callable[[float], bool]) -> float | None:
    """Returns the largest η, by halving, at which a claim that holds only of small ones holds; None if of none."""
    if not holds(0.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def reaches(model: IntervalModel, goal: int, policy: IntArray, bound: float, error: float) -> bool:
    """Whether a policy takes at most `bound` expected steps to a goal though every row is wrong by up to `error`.

    Args:
        model: counts and region.
        goal: the index of a state.
        policy: the pair to play in each known state, or RESET_PAIR, [n].
        bound: of the expected steps.
        error: η, the total variation.
    """
    values = np.zeros(len(model.numbers))
    residual = _upper(model.rows_for(goal, 1.0), goal, policy, error, values, bound)
    if residual >= 1.0:
        return False
    return float(values[0]) / (1.0 - residual) * (1.0 + correction(values)) <= bound


def stays_beyond(model: IntervalModel, goal: int, bound: float, error: float) -> bool:
    """Whether every policy takes more than `bound` expected steps to a goal though rows are wrong by up to `error`."""
    values = np.zeros(len(model.numbers))
    _lower(model.rows_for(goal, -1.0), goal, error, values, model.n_known, bound * (1.0 + 1e-6))
    return float(values[0]) / (1.0 + correction(values)) > bound


def robust_steps(model: IntervalModel, goal: int, policy: IntArray, error: float) -> float:
    """Returns the most expected steps of a policy though every row is wrong by up to `error`; may be infinite."""
    values = np.zeros(len(model.numbers))
    residual = _upper(model.rows_for(goal, 1.0), goal, policy, error, values, math.inf)
    return float(values[0]) / (1.0 - residual) if residual < 1.0 else math.inf


def stays_within(model: IntervalModel, goal: int, policy: IntArray, most: float, error: float) -> bool:
    """Whether a policy takes at most `most` expected steps from every state, though rows are wrong by up to `error`."""
    values = np.zeros(len(model.numbers))
    rows = model.rows_for(goal, 1.0)
    residual = _upper(rows, goal, policy, error, values, most)
    if residual >= 1.0:
        return False
    return float(_worst_value(rows, values, model.n_known)) / (1.0 - residual) * (1.0 + correction(values)) <= most


def optimistic_steps(model: IntervalModel, goal: int, error: float) -> float:
    """Returns the fewest expected steps of any policy if every row may be wrong by up to `error`."""
    values = np.zeros(len(model.numbers))
    _lower(model.rows_for(goal, -1.0), goal, error, values, model.n_known, math.inf)
    return float(values[0])


@compiled_part
def _least_mean_within(
    rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float, error: float, clipped: FloatArray
) -> float:
    """The least mean of z = sign * (free - value) over the ball, widened by a total variation."""
    best = 0.0
    first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
    for chosen in range(first, end):
        distance = sign * (free - values[rows.successors[chosen]])
        if distance <= 0.0 or rows.shares[chosen] <= 0.0:
            continue
        for entry in range(first, end):
            successor = rows.successors[entry]
            own = sign * (free - values[successor])
            clipped[successor] = free - sign * min(own, distance)
        mean, _, _ = least_mean(rows, pair, clipped, free, sign, rows.slack[pair])
        best = max(best, mean - error * distance)
    return best


@compiled
def _worst_value(rows: RegionRows, values: FloatArray, n_known: int) -> float:
    """The greatest value of a state, one that only resets included."""
    worst = rows.reset_cost + values[0]
    for state in range(n_known):
        worst = max(worst, values[state])
    return float(worst)


@compiled
def _backed_up(
    rows: RegionRows, pair: int, values: FloatArray, free: float, error: float, clipped: FloatArray
) -> float:
    """The cost of a pair, or of RESET, plus the greatest mean of the values that follow."""
    if pair == RESET_PAIR:
        return float(rows.reset_cost + values[0])
    return float(rows.costs[pair] + free - _least_mean_within(rows, pair, values, free, 1.0, error, clipped))


@compiled
def _upper(rows: RegionRows, goal: int, policy: IntArray, error: float, values: FloatArray, bound: float) -> float:
    """Robust evaluation of a policy from below; returns the residual, or infinity beyond the bound."""
    n_known = len(policy)
    clipped = np.zeros(len(values))
    for _ in range(MOST_SWEEPS):
        spread_values(rows, values, n_known, goal)
        # A row that is wrong may lead to the worst state there is, one that was never seen included.
        free = _worst_value(rows, values, n_known)
        change = 0.0
        for state in range(n_known):
            if state == goal:
                continue
            value = _backed_up(rows, policy[state], values, free, error, clipped)
            change = max(change, value - values[state])
            values[state] = max(values[state], value)
        if values[0] > bound or values[0] > 1e12:
            return np.inf
        if change <= TOLERANCE:
            return _residual(rows, goal, policy, error, values, clipped)
    return np.inf


@compiled_part
def _residual(
    rows: RegionRows, goal: int, policy: IntArray, error: float, values: FloatArray, clipped: FloatArray
) -> float:
    """By how much one more sweep would exceed the values, at most."""
    spread_values(rows, values, len(policy), goal)
    free = _worst_value(rows, values, len(policy))
    residual = 0.0
    for state in range(len(policy)):
        if state == goal:
            continue
        value = _backed_up(rows, policy[state], values, free, error, clipped)
        residual = max(residual, value - values[state])
    return residual


@compiled
def _lower(rows: RegionRows, goal: int, error: float, values: FloatArray, n_known: int, bound: float) -> None:
    """Optimistic value iteration from zero, whose every iterate is a lower bound, until it stands or is enough."""
    clipped = np.zeros(len(values))
    for _ in range(MOST_SWEEPS):
        spread_values(rows, values, n_known, goal)
        change = 0.0
        for state in range(n_known):
            if state == goal:
                continue
            best = rows.reset_cost + values[0] if state > 0 else np.inf
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                mean = _least_mean_within(rows, pair, values, 0.0, -1.0, error, clipped)
                best = min(best, rows.costs[pair] + mean)
            best = min(best, 1e12)  # a start without any action
            change = max(change, best - values[state])
            values[state] = max(values[state], best)
        if values[0] > bound or change <= TOLERANCE:
            return
