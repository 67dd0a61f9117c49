"""Compiled bounds of the least expected cost of reaching a goal, without RESET (docs/algorithms/questions.md, 4)."""

from __future__ import annotations

from axplore.compilation import compiled, compiled_inline
from axplore.proofs.row_kernels import RegionRows, least_mean_by, least_of_closed, single_factors
from axplore.types import BoolArray, FloatArray, IntArray


@compiled_inline
def _least_cost(
    rows: RegionRows, factors: FloatArray, pair: int, values: FloatArray, shifts: FloatArray, margin: float
) -> float:
    """The cost of a pair and the least mean of values after it, lowered by a margin; what was never seen costs 0.

    Where the support is closed, it is no less than the least value, in exact arithmetic too.
    """
    mean, _, shift = least_mean_by(rows, factors, pair, values, 0.0, -1.0, shifts[pair], -1.0)
    shifts[pair] = shift
    return float(max(rows.costs[pair] + mean - margin, least_of_closed(rows, pair, values)))


@compiled
def raise_costs(
    rows: RegionRows,
    order: IntArray,
    values: FloatArray,
    shifts: FloatArray,
    margin: float,
    tolerance: float,
    most_sweeps: int,
) -> None:
    """Value iteration from below, in place: every iterate is a lower bound of the least cost.

    Args:
        rows: region, counts and costs.
        order: the states whose values are to be found, those near the goal first, [m].
        values: start and result, [n + others]; at the start no more than one sweep makes of them.
        shifts: the best shifts for similar values, [P].
        margin: by how much inequalities are to hold.
        tolerance: the change, as a part of a value, at which to stop.
        most_sweeps: the number of sweeps after which to stop.
    """
    factors = single_factors(rows)
    for _ in range(most_sweeps):
        moved = False
        for state in order:
            best = -1.0
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                cost = _least_cost(rows, factors, pair, values, shifts, margin)
                best = cost if best < 0.0 else min(best, cost)
            if best > values[state]:
                moved |= best - values[state] > tolerance * (1.0 + best)
                values[state] = best
        if not moved:
            return


@compiled
def best_costs(
    rows: RegionRows,
    order: IntArray,
    allowed: BoolArray,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    tolerance: float,
    most: float,
    most_sweeps: int,
) -> float:
    """Value iteration from below of the least worst cost, in place; returns by how much the last sweep missed.

    Args:
        rows: region, counts and costs.
        order: the states whose values are to be found, each of which has a pair that is allowed, [m].
        allowed: the pairs that may be played; nothing but states of bounded cost follows them, [P].
        values: start and result, [n + others]; zero at the start.
        policy: the pair that attains each value, [n].
        shifts: the best shifts for similar values, [P].
        tolerance: the change, as a part of a value, at which to stop.
        most: values beyond it are given up.
        most_sweeps: the number of sweeps after which to stop.
    """
    factors = single_factors(rows)
    missed = 0.0
    for _ in range(most_sweeps):
        missed, moved, greatest = 0.0, False, 0.0
        for state in order:
            greatest = max(greatest, values[state])
        for state in order:
            best = -1.0
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                if not allowed[pair]:
                    continue
                mean, _, shift = least_mean_by(rows, factors, pair, values, greatest, 1.0, shifts[pair], -1.0)
                shifts[pair] = shift
                cost = rows.costs[pair] + greatest - mean
                if best < 0.0 or cost < best:
                    best = cost
                    policy[state] = pair
            missed = max(missed, best - values[state])
            moved |= best - values[state] > tolerance * (1.0 + best)
            values[state] = max(values[state], best)
            greatest = max(greatest, best)
        if greatest > most:
            return greatest
        if not moved:
            break
    return missed
