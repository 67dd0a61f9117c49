"""The logarithm of the gamma function and its derivative, for arrays, from Stirling's series.

Arguments are raised by the recurrence to at least `SERIES_FROM`, where the terms of the series that are left out are
below 1e-17.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.types import FloatArray

SERIES_FROM: Final = 15
"""Every argument is raised by this whole number."""

TERMS: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""B_2k / (2k (2k - 1)) for k = 1, 2, ..."""


def log_gamma(x: FloatArray) -> FloatArray:
    """The logarithm of Γ at x > 0."""
    raised = x + SERIES_FROM
    steps = sum((np.log(x + step) for step in range(SERIES_FROM)), np.zeros(x.shape))
    series = sum((term / raised ** (2 * k + 1) for k, term in enumerate(TERMS)), np.zeros(x.shape))
    result: FloatArray = (raised - 0.5) * np.log(raised) - raised + 0.5 * math.log(2 * math.pi) + series - steps
    return result


def digamma(x: FloatArray) -> FloatArray:
    """The derivative of log Γ at x > 0."""
    raised = x + SERIES_FROM
    steps = sum((1.0 / (x + step) for step in range(SERIES_FROM)), np.zeros(x.shape))
    series = sum(((2 * k + 1) * term / raised ** (2 * k + 2) for k, term in enumerate(TERMS)), np.zeros(x.shape))
    result: FloatArray = np.log(raised) - 0.5 / raised - series - steps
    return result
