"""Means over runs, with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from axplore.errors import InvalidInputError
from axplore.types import FloatArray

CONFIDENCE = 0.95


class MeanEstimate(NamedTuple):
    """A mean with the half-width of its 95 % confidence interval."""

    mean: float
    half_width: float


def estimate(samples: Sequence[float]) -> MeanEstimate:
    """The mean and the half-width of its 95 % confidence interval by Student's t; infinite for a single sample."""
    values = np.asarray(samples, dtype=np.float64)
    if not values.size:
        raise InvalidInputError("there are no samples to take a mean of")
    return MeanEstimate(float(values.mean()), float(half_widths(values[:, None])[0]))


def half_widths(samples: FloatArray) -> FloatArray:
    """Returns the half-width of the 95 % confidence interval of each column's mean, [runs, n] -> [n]."""
    from scipy.special import stdtrit  # takes a quarter of a second

    runs = len(samples)
    if runs < 2:
        return np.full(samples.shape[1], math.inf)
    quantile = float(stdtrit(runs - 1, 0.5 + CONFIDENCE / 2))
    widths: FloatArray = quantile * samples.std(axis=0, ddof=1) / math.sqrt(runs)
    return widths


def proportion_interval(number: int, total: int) -> tuple[float, float]:
    """Returns the exact 95 % confidence interval of a probability (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    if not 0 <= number <= total or total < 1:
        raise InvalidInputError(f"{number} of {total} is not a proportion")
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(number, total - number + 1, tail)) if number > 0 else 0.0
    high = float(betaincinv(number + 1, total - number, 1 - tail)) if number < total else 1.0
    return low, high


def proportions(found_at: Sequence[Sequence[int]], total: int, grid: FloatArray) -> FloatArray:
    """Returns the proportion of `total` states that each run had found by each time, [runs, len(grid)].

    Args:
        found_at: for each run, the times at which the states that count were found.
        total: the number of states to find.
        grid: times, [n].
    """
    return np.array([np.searchsorted(np.sort(times), grid, side="right") / total for times in found_at])
