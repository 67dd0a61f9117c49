"""Balls around rows from martingales that are centred at the row itself.

The test of a row p bets, at every draw, on a mixture of p and what was seen so far: with n_y draws of y among the t
before, on y with probability (κ p_y + n_y) / (κ + t). This is the prediction of a Dirichlet prior of mean p and weight
κ. Since the bet is centred at the row that is tested, it costs about half a logarithm of 1 + n/κ for each further
successor, not of n; and what it wins on a new successor does not depend on p, so that nothing need be known of those
never seen.

With u_y = log(1/p_y) the logarithm of the martingale is convex in u, so it lies above each of its tangents, and where
the martingale is below 1/level every tangent says: sum of r_y log(r_y / p_y) <= slack. That is the ball that planning
uses. A tangent may be taken at any point; it is sharp for rows near that point.

In rows with many successors these half logarithms add up, and no single probability is known well. Beside them, one bet
for each successor, from its first sight on, asks only whether it comes again: `least_probability`. Equation numbers are
those of docs/algorithms/certified.md.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.compilation import compiled_inner, compiled_part
from axplore.types import FloatArray

SCALES: Final = (4.0, 100.0, 2500.0, 62500.0)
"""κ of the martingales that are averaged (Eq. 3); sharp for some 5 to 100 times as many draws."""

PARTS: Final = (0.375, 0.375, 0.15, 0.1)
"""The part of each in the average."""

OWN_PARTS: Final = (0.1, 0.2, 0.3, 0.4)
"""The part of each in the bets on one successor alone: rows with many successors take many draws."""

CENTRAL_ROUNDS: Final = 2
"""How often the point of the tangent of a central ball is improved, from a guess of two nats for each successor."""

NEWTON_STEPS: Final = 20
NEWTON_ACCURACY: Final = 1e-9
"""A least probability is not improved by less than this part of itself."""

SERIES_FROM: Final = 10.0
"""The asymptotic series of the digamma function is exact to 1e-16 from here on."""


@compiled_part
def digamma(x: float) -> float:
    """The derivative of log gamma at x > 0."""
    result = 0.0
    while x < SERIES_FROM:
        result -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    series = square * (1 / 252 - square * (1 / 240 - square * (1 / 132 - square * (691 / 32760 - square / 12))))
    return result + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - series))


@compiled_part
def _log_of_scale(scale: float, draws: float, part: float) -> float:
    """What a wealth has by its κ, its part and the number of draws alone, as a logarithm."""
    return math.lgamma(scale) - math.lgamma(scale + draws) + draws * math.log(scale) + math.log(part)


@compiled_part
def log_wealth(counts: FloatArray, point: FloatArray, slopes: FloatArray) -> float:
    """The logarithm of the martingale of a row (Eq. 3); writes its derivatives by log(1 / probability), [j].

    Args:
        counts: how often each successor was drawn, at least 1, [j].
        point: the probability, above 0, of each successor in the row, [j]; they sum to at most one.
        slopes: the derivatives, [j]; 0 for a successor that was drawn once.
    """
    draws = counts.sum()
    values = np.empty(len(SCALES))
    for place, scale in enumerate(SCALES):
        value = _log_of_scale(scale, draws, PARTS[place])
        for entry in range(len(counts)):
            mass = scale * point[entry]
            value += (
                math.lgamma(mass + counts[entry]) - math.lgamma(mass + 1.0) - (counts[entry] - 1.0) * math.log(mass)
            )
        values[place] = value
    greatest, total = _parts_of(values)
    for entry in range(len(counts)):
        slopes[entry] = 0.0
        for place, scale in enumerate(SCALES):
            if counts[entry] > 1.0:
                mass = scale * point[entry]
                slope = counts[entry] - 1.0 - mass * (digamma(mass + counts[entry]) - digamma(mass + 1.0))
                slopes[entry] += values[place] / total * max(slope, 0.0)
    return greatest + math.log(total)


@compiled_inner
def _parts_of(logarithms: FloatArray) -> tuple[float, float]:
    """Turns logarithms into parts of the greatest of their numbers; returns its logarithm, and the sum of the parts."""
    greatest, total = -np.inf, 0.0
    for logarithm in logarithms:
        greatest = max(greatest, logarithm)
    for place in range(len(logarithms)):
        logarithms[place] = math.exp(logarithms[place] - greatest)
        total += logarithms[place]
    return greatest, total


@compiled_part
def tangent_ball(counts: FloatArray, log_level: float, point: FloatArray, shares: FloatArray) -> float:
    """Writes the shares, [j], and returns the slack of the ball that the tangent at a point gives (Eqs. 4 and 5).

    Args:
        counts: how often each successor was drawn, at least 1, [j].
        log_level: the logarithm of the level of the row.
        point: a probability, above 0, of each successor, [j]; they sum to at most one.
        shares: the result, [j].
    """
    log_martingale = log_wealth(counts, point, shares)
    weight = shares.sum()
    if weight <= 0.0:
        return np.inf
    distance = 0.0
    for entry in range(len(counts)):
        shares[entry] /= weight
        if shares[entry] > 0.0:
            distance += shares[entry] * math.log(shares[entry] / point[entry])
    return float(max(distance - (log_level + log_martingale) / weight, 0.0))


@compiled_part
def central_ball(counts: FloatArray, log_level: float, shares: FloatArray) -> float:
    """Writes the shares, [j], and returns the slack of a ball that is good for all directions.

    Its tangent is taken where all frequencies have shrunk by the same factor and the martingale is about to reach
    1/level: this bounds what may be left for successors never seen.
    """
    draws, repeated = 0.0, 0
    for count in counts:
        draws += count
        repeated += count > 1.0
    if repeated == 0:
        return np.inf
    slack = (2.0 * repeated - log_level) / draws
    point = np.empty(len(counts))
    for _ in range(CENTRAL_ROUNDS):
        for entry in range(len(counts)):
            point[entry] = counts[entry] / draws * math.exp(-slack)
        slack = tangent_ball(counts, log_level, point, shares)
    return float(slack)


@compiled_part
def least_probability(repeats: float, draws: float, log_level: float) -> float:
    """The least probability of a successor that its own bets leave possible, from Eq. 21; 0 if there is none.

    The logarithm of the wealth is convex in the logarithm of the probability, and beyond the limit left of the root.
    From a point there each step of Newton's method stays left of the root, so that every one is a lower bound.

    Args:
        repeats: how often the successor came after its first time.
        draws: all draws after its first time.
        log_level: the logarithm of the level of these bets.
    """
    if repeats < 2.0:  # the first of them says nothing either
        return 0.0
    frequency = repeats / draws
    logarithm = math.log(frequency) - math.sqrt(2.0 * (4.0 - log_level) / repeats)
    excess, slope = _binary_excess(repeats, draws, logarithm, log_level)
    while excess < 0.0:
        logarithm -= 1.0
        excess, slope = _binary_excess(repeats, draws, logarithm, log_level)
    for _ in range(NEWTON_STEPS):
        if slope >= 0.0:
            return 0.0  # it never falls below the limit: the draws speak against every probability
        step = -excess / slope
        excess, slope = _binary_excess(repeats, draws, logarithm + step, log_level)
        if excess < 0.0:  # by rounding
            break
        logarithm += step
        if step <= NEWTON_ACCURACY:
            break
    return math.exp(logarithm)


@compiled_part
def _binary_excess(repeats: float, draws: float, logarithm: float, log_level: float) -> tuple[float, float]:
    """By how much the logarithm of the wealth against a probability exceeds its limit, and its derivative.

    The probability is given by its logarithm, by which the derivative is.
    """
    probability = math.exp(logarithm)
    values, slopes = np.empty(len(SCALES)), np.empty(len(SCALES))
    misses = draws - repeats
    for place, scale in enumerate(SCALES):
        mass, rest = scale * probability, scale * (1.0 - probability)
        values[place] = (
            _log_of_scale(scale, draws, OWN_PARTS[place])
            + math.lgamma(mass + repeats) - math.lgamma(mass) - repeats * math.log(mass)
            + math.lgamma(rest + misses) - math.lgamma(rest) - misses * math.log(rest)
        )  # fmt: skip
        slopes[place] = mass * (digamma(mass + repeats) - digamma(mass)) - repeats
        slopes[place] -= mass * (digamma(rest + misses) - digamma(rest)) - misses * probability / (1.0 - probability)
    greatest, total = _parts_of(values)
    slope = 0.0
    for place in range(len(values)):
        slope += values[place] * slopes[place]
    return greatest + math.log(total) + log_level, slope / total
