"""Compiled bounds of how often a pair is played before a question is decided, over a confidence region."""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline
from axplore.proofs.row_kernels import UNKNOWN_SHIFT, RegionRows, least_mean_by, single_factors
from axplore.types import FloatArray, IntArray

MARGIN: Final = 1e-9
"""By how much inequalities hold, as a part of the greatest value."""


@compiled
def raise_plays(
    rows: RegionRows, order: IntArray, counted: int, plays: FloatArray, tolerance: float, most: float, most_sweeps: int
) -> bool:
    """Value iteration from below for the greatest expected number of plays of a pair, in place.

    Args:
        rows: region and counts, of the pairs that may be played.
        order: the states in which the question is open, [m]; everywhere else nothing is played any more.
        counted: the pair whose plays are counted.
        plays: start and result, [n + others].
        tolerance: the change at which to stop, as a part of the greatest value.
        most: a value at which to give up.
        most_sweeps: the number of sweeps after which to give up.

    Returns:
        Whether it has come to a stop.
    """
    factors, shifts = single_factors(rows), np.full(len(rows.slack), UNKNOWN_SHIFT)
    for _ in range(most_sweeps):
        change = 0.0
        for state in order:
            value = _most_plays(rows, factors, state, counted, plays, shifts)
            change = max(change, value - plays[state])
            plays[state] = max(plays[state], value)
        top = plays.max()
        if change <= tolerance * top:
            return True
        if top > most:
            return False
    return False


@compiled
def settle_plays(rows: RegionRows, order: IntArray, counted: int, plays: FloatArray, most_sweeps: int) -> bool:
    """Moves values until they are at least what one step makes of them, in place; returns whether they are.

    The arguments are those of `raise_plays`.
    """
    factors, shifts = single_factors(rows), np.full(len(rows.slack), UNKNOWN_SHIFT)
    for _ in range(most_sweeps):
        is_bound, top = True, plays.max()
        for state in order:
            value = _most_plays(rows, factors, state, counted, plays, shifts)
            if value > 0.0:
                value += MARGIN * top
            if plays[state] < value:
                is_bound = False
                plays[state] = value + MARGIN * top
        if is_bound:
            return True
    return False


@compiled_inline
def _most_plays(
    rows: RegionRows,
    factors: FloatArray,
    state: int,
    counted: int,
    plays: FloatArray,
    shifts: FloatArray,
) -> float:
    """The greatest expected plays from a state, if these are the plays from its successors.

    In a state that was never seen nothing is played any more, so nothing is gained by leading there.
    """
    most = 0.0
    for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
        greatest = 0.0
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            greatest = max(greatest, plays[rows.successors[entry]])
        value = 0.0
        if greatest > 0.0:
            mean, _, shift = least_mean_by(rows, factors, pair, plays, greatest, 1.0, shifts[pair], -1.0)
            shifts[pair] = shift
            value = greatest - mean
        most = max(most, value + (1.0 if pair == counted else 0.0))
    return most
