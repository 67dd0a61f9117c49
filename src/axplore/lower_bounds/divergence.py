"""Kullback–Leibler divergences, accurate also where they are tiny."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.types import FloatArray

_SMALL: Final = 0.01
_TERMS: Final = 11
"""Below `_SMALL` the series up to this power is exact to double precision."""


def divergence(probabilities: FloatArray, others: FloatArray) -> float:
    """KL(p ‖ q) of two distributions on the same outcomes; infinite where q misses an outcome of p.

    The sum of p ln(p/q) − p + q has no negative terms, so nothing cancels where p and q are close.
    """
    if np.any((probabilities > 0) & (others <= 0)):
        return math.inf
    seen = probabilities > 0
    ratios = others[seen] / probabilities[seen]
    return float(np.sum(probabilities[seen] * _above_logarithm(ratios - 1.0)) + np.sum(others[~seen]))


def _above_logarithm(excess: FloatArray) -> FloatArray:
    """The difference x − ln(1 + x); by its series near zero, where the difference would cancel."""
    small = np.abs(excess) < _SMALL
    near = np.where(small, excess, 0.0)
    series = sum((-1) ** power * near**power / power for power in range(2, _TERMS))
    return np.where(small, series, excess - np.log1p(excess))


def needed_information(delta: float) -> float:
    """kl(δ, 1 − δ) in nats: what an algorithm that errs with probability δ has to learn against each alternative.

    Nothing has to be learned with δ from 1/2 on: one guess is right often enough.
    """
    if delta >= 0.5:
        return 0.0
    return (1 - 2 * delta) * math.log((1 - delta) / delta)
