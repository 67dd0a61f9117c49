"""The least mean over the rows of a confidence ball, by duality: nothing of the library's own solvers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from axplore.types import FloatArray


def distance(shares: FloatArray, row: FloatArray) -> float:
    """The sum of r log(r / p)."""
    positive = shares > 0
    return float(shares[positive] @ np.log(shares[positive] / row[positive]))


def least_mean(costs: FloatArray, shares: FloatArray, slack: float) -> tuple[float, FloatArray]:
    """Returns a lower bound of the mean of the costs over the rows p in the ball, and a row with little more.

    For every ν >= 0, weak duality gives max over λ of min over p of
    c·p + λ (sum of r log(r / p) - slack) + ν (sum of p - 1) = exp(sum of r log(c + ν) - slack) - ν, attained at
    p = λ r / (c + ν) with λ = exp(sum of r log(c + ν) - slack). That row is moved into the ball, if rounding needs it.
    So the two bound the least mean from both sides, whatever ν the search finds.
    """

    def scale(nu: float) -> float:
        return math.exp(shares @ np.log(costs + nu) - slack)

    solve: Any = minimize_scalar
    tolerance = {"xatol": 1e-12}
    nu = math.exp(solve(lambda log: math.exp(log) - scale(math.exp(log)), bounds=(-60.0, 20.0), options=tolerance).x)
    extreme = scale(nu) * shares / (costs + nu)
    extreme /= max(extreme.sum(), 1.0)
    row, towards = extreme, 0.0
    while distance(shares, row) > slack:  # convex in the row, and 0 at the shares
        towards = max(2 * towards, 1e-12)
        row = (1 - towards) * extreme + towards * shares
    return scale(nu) - nu, row
