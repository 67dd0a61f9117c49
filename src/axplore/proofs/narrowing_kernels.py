"""Compiled parts of `narrowing`: which pairs decide the bounds of a probability, and how much each leaves open."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline
from axplore.proofs.chance_kernels import best_chance, greatest_chance, least_chance
from axplore.proofs.row_kernels import RegionRows, single_factors
from axplore.types import FloatArray, IntArray

LEAST_WIDTH: Final = 1e-9
"""Where bounds are closer than this, nothing is left to be decided."""


@compiled_inline
def _gap(
    rows: RegionRows,
    pair: int,
    most: float,
    least: float,
    upper: FloatArray,
    lower: FloatArray,
    width: float,
    above: float,
    below: float,
) -> float:
    """What the slack of a pair adds to the width: now, or once what follows is known if an outcome may be unseen."""
    mean_upper = mean_lower = 0.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        after = rows.successors[entry]
        mean_upper += rows.frequencies[entry] * upper[after]
        mean_lower += rows.frequencies[entry] * lower[after]
    gap = above * max(most - mean_upper, 0.0) + below * max(mean_lower - least, 0.0)
    if rows.prices[pair] < np.inf:  # it falls like one over the draws at a price, and not like one over their root
        gap *= 2.0
    if not rows.closed[pair] and rows.slack[pair] > 0.0:
        gap = max(gap, width * (1.0 - math.exp(-rows.slack[pair])))
    return gap


@compiled_inline
def _decide(
    rows: RegionRows,
    rows_below: RegionRows,
    factors: FloatArray,
    state: int,
    upper: FloatArray,
    lower: FloatArray,
    width: float,
    shifts: FloatArray,
    other_shifts: FloatArray,
    maximise: bool,
    tied: float,
    extremes: FloatArray,
    gaps: FloatArray,
    above: float,
    below: float,
) -> tuple[float, int]:
    """Writes for each pair of a state by how much its action could be the one that decides, and its gap.

    Returns:
        The extreme of all actions, and the number of those that are about as extreme.
    """
    first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
    extreme = np.inf
    for pair in range(first, end):
        most = greatest_chance(rows, factors, pair, upper, shifts, 0.0)
        least = least_chance(rows_below, factors, pair, lower, other_shifts, 0.0)
        extremes[pair] = -most if maximise else least
        gaps[pair] = _gap(rows, pair, most, least, upper, lower, width, above, below)
        extreme = min(extreme, extremes[pair])
    limit = extreme + max(tied * width, LEAST_WIDTH)
    n_tied = 0
    for pair in range(first, end):
        n_tied += extremes[pair] <= limit
    return limit, n_tied


@compiled
def deciding_shares(
    rows: RegionRows,
    rows_below: RegionRows,
    order: IntArray,
    upper: FloatArray,
    lower: FloatArray,
    shifts: FloatArray,
    maximise: bool,
    tied: float,
    shares: FloatArray,
    gaps: FloatArray,
    above: float,
    below: float,
) -> None:
    """Writes which actions decide the bound that is farther from the truth, as shares of each state, and gaps, [P].

    Args:
        rows, rows_below: region and counts, with the prices of the upper bound and of the lower one.
        order: the states that are asked for, [m].
        upper, lower: the bounds, [n + others].
        shifts: the best shifts for similar values, [P].
        maximise: whether the best policy is asked about.
        tied: actions are equally likely to decide a bound if they are no farther apart than this part of the width.
        shares: the share of each pair in its state, [P].
        gaps: what the slack of each pair adds to the width where it is played, [P].
        above, below: how much of the width at the upper and at the lower bound counts.
    """
    factors, other_shifts, extremes = single_factors(rows), shifts.copy(), np.zeros(len(rows.slack))
    for state in order:
        width = upper[state] - lower[state]
        if width <= LEAST_WIDTH:
            continue
        limit, n_tied = _decide(
            rows, rows_below, factors, state, upper, lower, width, shifts, other_shifts, maximise, tied, extremes, gaps,
            above, below,
        )  # fmt: skip
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            shares[pair] = 1.0 / n_tied if extremes[pair] <= limit else 0.0


@compiled
def stage_values(
    rows: RegionRows, order: IntArray, values: FloatArray, shifts: FloatArray, is_upper: bool, maximise: bool
) -> None:
    """Fills in the bounds with 1, 2, ... steps left, [steps + 1, n + others], from those with none."""
    factors = single_factors(rows)
    for left in range(1, len(values)):
        for state in order:
            values[left, state], _ = best_chance(
                rows, factors, state, values[left - 1], shifts, is_upper, maximise, 0.0
            )


@compiled
def stage_weights(
    rows: RegionRows,
    order: IntArray,
    uppers: FloatArray,
    lowers: FloatArray,
    shifts: FloatArray,
    maximise: bool,
    tied: float,
    weights: FloatArray,
    played: FloatArray,
    above: float,
    below: float,
) -> None:
    """Adds up what the slack of each pair adds to the width from the initial state, [P], over all steps.

    Args:
        rows: region and counts.
        order: the states that are asked for, [m].
        uppers, lowers: the bounds by steps left, [steps + 1, n + others].
        shifts: the best shifts for similar values, [P].
        maximise: whether the best policy is asked about.
        tied: actions are equally likely to decide a bound if they are no farther apart than this part of the width.
        weights: the result, [P].
        played: how often each pair is played on the way, [P].
        above, below: how much of the width at the upper and at the lower bound counts.
    """
    factors, other_shifts = single_factors(rows), shifts.copy()
    extremes, gaps = np.zeros(len(rows.slack)), np.zeros(len(rows.slack))
    here, after = np.zeros(uppers.shape[1]), np.zeros(uppers.shape[1])
    here[0] = 1.0
    for left in range(len(uppers) - 1, 0, -1):
        after[:] = 0.0
        for state in order:
            width = uppers[left, state] - lowers[left, state]
            if here[state] <= 0.0 or width <= LEAST_WIDTH:
                continue
            limit, n_tied = _decide(
                rows, rows, factors, state, uppers[left - 1], lowers[left - 1], width, shifts, other_shifts, maximise,
                tied, extremes, gaps, above, below,
            )  # fmt: skip
            mass = here[state] / n_tied
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                if extremes[pair] > limit:
                    continue
                weights[pair] += mass * gaps[pair]
                played[pair] += mass
                for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                    after[rows.successors[entry]] += mass * rows.frequencies[entry]
        here[:] = after
