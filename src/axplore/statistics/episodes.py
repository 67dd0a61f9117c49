"""Tests on independent episodes of one fixed policy: how long it takes, and how often it arrives in time.

An episode starts with RESET, plays the policy, and ends at the goal or after H steps, the *horizon*. All that is kept
of it is its *outcome*: the number k of steps to the goal, or that it missed. A hypothesis gives every outcome a *loss*
z of at most 1 whose expectation is at least 0 if the hypothesis is true. Someone who starts with the wealth 1 and
stakes the fraction λ in (0, 1) of it on each episode has

    ∏ over episodes of (1 - λ z),

a nonnegative supermartingale under the hypothesis, and so has a mixture over several λ chosen beforehand. By Ville's
inequality it ever reaches 1 / level with probability at most `level`; then the hypothesis is rejected. The wealth
depends on how often each outcome came and not on the order, so these counts are a sufficient record: whoever has them
as they were at a moment can compute the wealth of that moment. Nothing is assumed of the system but that episodes are
independent and alike. docs/algorithms/episodes.md has the proofs; equation numbers below are its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_part
from axplore.errors import InvalidSettingError
from axplore.types import FloatArray, IntArray

LARGEST_FRACTION: Final = 0.98
"""No larger part of the wealth is staked: a loss of 1 leaves something, and certain gains grow almost as fast."""

SPREAD: Final = 20
"""The number of fractions where nothing is known, each smaller than the one before by the square root of 2."""

FOCUS: Final = ((0.5, 0.2), (1.0, 0.6), (1.7, 0.2))
"""Where the best fraction was predicted: its multiples that are staked, and their parts of the wealth."""

MOST_HORIZONS: Final = 500
"""The number of horizons tried where there are more: each takes time that grows with its length."""

PRECISION: Final = 1e-9
"""A bound that outcomes prove is found to this part of itself."""

ROUNDING: Final = 1e-11
"""Wealth is lowered by this part of the sum of the sizes of all logarithms, far above the rounding of that sum."""


@dataclass(frozen=True, eq=False)
class Bets:
    """Fractions of the wealth to stake on each episode, chosen before the first of them.

    Attributes:
        fractions: the λ, each between 0 and 1, [b].
        weights: the part of the first wealth that stakes each of them, summing to at most 1, [b].
    """

    fractions: FloatArray
    weights: FloatArray

    def __post_init__(self) -> None:
        if self.fractions.shape != self.weights.shape or not len(self.weights):
            raise InvalidSettingError("bets need one weight for each fraction")
        if not ((self.fractions > 0) & (self.fractions < 1)).all() or not (self.weights > 0).all():
            raise InvalidSettingError("the fractions of bets must be between 0 and 1, and their weights positive")
        if math.fsum(self.weights) > 1:
            raise InvalidSettingError(f"the weights of bets sum to {math.fsum(self.weights)}, more than 1")
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False


def spread_bets() -> Bets:
    """Bets for when nothing is known of the outcomes: from 0.98 down to about 0.001."""
    places = np.arange(SPREAD, dtype=np.float64)
    weights = 1.0 / (places + 3.0)
    return Bets(LARGEST_FRACTION * 0.5 ** (places / 2), _normalised(weights))


def focused_bets(fraction: float) -> Bets:
    """Bets around a fraction that was predicted to be best."""
    multiples, weights = (np.array(column) for column in zip(*FOCUS, strict=True))
    return Bets(np.minimum(fraction * multiples, LARGEST_FRACTION), _normalised(weights))


def _normalised(weights: FloatArray) -> FloatArray:
    """The weights with a sum that is 1 but for rounding, and not above it."""
    return weights / (math.fsum(weights) * (1.0 + 1e-12))


def losses_if_slower(horizon: int, bound: float, tail: float | None = None, least: float | None = None) -> FloatArray:
    """Losses for the hypothesis that the policy, restarted after every miss, takes more than `bound` steps (Eq. 3).

    An episode of k steps loses (k - bound) / (horizon + tail - least), and one that misses loses as if it had taken
    horizon + tail steps, which is at most 1, [horizon + 2].

    Args:
        horizon: H.
        bound: B.
        tail: M, the steps that a miss is taken to cost beyond the horizon, at least those of a restart (Eq. 9);
            1 + bound, which are these, when not given.
        least: the least bound on which there are the same bets, which no loss may exceed (Eq. 10); this one when not
            given.
    """
    _check(horizon, bound)
    beyond, above = _beyond(bound, tail), 0.0 if least is None else bound - least
    if not 0.0 <= above < bound:
        raise InvalidSettingError(f"bets on bounds from {least} steps on cannot be on a bound of {bound} steps")
    losses = (np.arange(horizon + 2, dtype=np.float64) - bound) / (horizon + beyond + above)
    losses[-1] = (horizon + beyond) / (horizon + beyond + above)
    return losses


def _beyond(bound: float, tail: float | None) -> float:
    """By how much the tail exceeds the bound."""
    if tail is None:
        return 1.0
    if not 1.0 + bound <= tail < math.inf:
        raise InvalidSettingError(f"a tail of {tail} steps is less than a restart takes, with a bound of {bound} steps")
    return tail - bound


def losses_if_faster(horizon: int, bound: float) -> FloatArray:
    """Losses for the opposite hypothesis, that it takes at most `bound` steps (Eq. 5).

    An episode of k steps loses 1 - k / bound, and one that misses gains (horizon + 1) / bound, [horizon + 2].
    """
    _check(horizon, bound)
    losses = 1.0 - np.arange(horizon + 2, dtype=np.float64) / bound
    losses[-1] = -(horizon + 1.0) / bound
    return losses


def losses_if_rarer(horizon: int, chance: float) -> FloatArray:
    """Losses for the hypothesis that the chance to arrive within the horizon is below `chance` (Eq. 6).

    An episode that arrives gains 1 / chance - 1, and one that misses loses 1, [horizon + 2].
    """
    _check_chance(chance)
    losses = np.full(horizon + 2, 1.0 - 1.0 / chance)
    losses[-1] = 1.0
    return losses


def losses_if_oftener(horizon: int, chance: float) -> FloatArray:
    """Losses for the hypothesis that the chance to arrive within the horizon is at least `chance` (Eq. 7).

    An episode that arrives loses 1, and one that misses gains chance / (1 - chance), [horizon + 2].
    """
    _check_chance(chance)
    losses = np.ones(horizon + 2)
    losses[-1] = -chance / (1.0 - chance)
    return losses


def log_wealth(losses: FloatArray, outcomes: IntArray, bets: Bets) -> float:
    """A lower bound, by rounding only, of the logarithm of the wealth after these outcomes.

    Args:
        losses: of each outcome, at most 1, [m].
        outcomes: how often each came, [m].
        bets: the fractions staked.
    """
    return float(_log_wealth(losses, outcomes, bets.fractions, np.log(bets.weights)))


@dataclass(frozen=True)
class EpisodeForecast:
    """What a test is expected to take, if an estimate of the law of the outcomes is right.

    Attributes:
        horizon: the steps after which an episode should be cut.
        fraction: the λ whose wealth grows fastest.
        growth: of the logarithm of that wealth, in nats an episode.
        episode_steps: the expected steps of an episode, the RESET before it included.
    """

    horizon: int
    fraction: float
    growth: float
    episode_steps: float

    def steps(self, nats: float) -> float:
        """Returns the mean number of steps that it takes to gain this many nats."""
        return nats / self.growth * self.episode_steps if self.growth > 0 else math.inf


def least_bound(outcomes: IntArray, bets: Bets, least: float, tail: float, nats: float) -> float:
    """The least bound that outcomes prove at the level exp(-nats); infinite if they prove none below `tail` - 1.

    Args:
        outcomes: how often each came, [horizon + 2].
        bets: the fractions staked.
        least: the least bound that may be proven, fixed before the first episode (Eq. 10).
        tail: the steps that a miss is taken to cost beyond the horizon.
        nats: the evidence that a proof needs.
    """
    horizon = len(outcomes) - 2

    def is_proven(bound: float) -> bool:
        return log_wealth(losses_if_slower(horizon, bound, tail, least), outcomes, bets) >= nats

    if is_proven(least):
        return least
    low, high = least, tail - 1.0
    if not high > low or not is_proven(high):
        return math.inf
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_proven(middle) else (middle, high)
    return high


def episodes_needed(
    losses: FloatArray, outcomes: IntArray, probabilities: FloatArray, bets: Bets, nats: float
) -> float:
    """How many more episodes bring this evidence, if an estimate of their law is right; infinite if none do.

    Each fraction is taken for itself: the one that gets there first counts.

    Args:
        losses: of each outcome, at most 1, [m].
        outcomes: how often each came, [m].
        probabilities: the estimated probability of each, [m].
        bets: the fractions staked.
        nats: the evidence that a proof needs.
    """
    return float(_episodes_needed(losses, outcomes, probabilities, bets.fractions, np.log(bets.weights), nats))


def forecast_horizon(arrivals: FloatArray, bound: float, tail: float | None = None) -> EpisodeForecast:
    """The horizon, and the fraction with it, that prove `bound` in the fewest steps.

    Args:
        arrivals: the estimated probability to reach the goal after exactly k steps, for k = 0, ..., m; the horizon is
            at most m and at least 1, [m + 1].
        bound: of the expected steps.
        tail: the steps that a miss is taken to cost beyond the horizon, as in `losses_if_slower`.
    """
    return EpisodeForecast(*_best_horizon(arrivals, bound, _beyond(bound, tail), len(arrivals) - 1))


@compiled
def _log_wealth(losses: FloatArray, outcomes: IntArray, fractions: FloatArray, log_weights: FloatArray) -> float:
    logarithms, largest, parts = np.empty(len(fractions)), -np.inf, 0.0
    for bet in range(len(fractions)):
        total = log_weights[bet]
        size = -log_weights[bet]
        for outcome in range(len(outcomes)):
            if outcomes[outcome] > 0:
                term = outcomes[outcome] * math.log1p(-fractions[bet] * losses[outcome])
                total += term
                size += abs(term)
        logarithms[bet] = total - ROUNDING * (1.0 + size)
        largest = max(largest, logarithms[bet])
    for logarithm in logarithms:
        parts += math.exp(logarithm - largest)
    return largest + math.log(parts) - ROUNDING


@compiled
def _episodes_needed(
    losses: FloatArray,
    outcomes: IntArray,
    probabilities: FloatArray,
    fractions: FloatArray,
    log_weights: FloatArray,
    nats: float,
) -> float:
    fewest = np.inf
    for bet in range(len(fractions)):
        lacking, growth = nats - log_weights[bet], 0.0
        for outcome in range(len(losses)):
            logarithm = math.log1p(-fractions[bet] * losses[outcome])
            lacking -= outcomes[outcome] * logarithm
            growth += probabilities[outcome] * logarithm
        if lacking <= 0.0:
            return 0.0
        if growth > 0.0:
            fewest = min(fewest, lacking / growth)
    return fewest


@compiled_part
def _best_fraction(losses: FloatArray, probabilities: FloatArray) -> tuple[float, float]:
    """The fraction with the greatest expected logarithm of 1 - λ z, which is concave in it, and that logarithm."""
    low, high = 0.0, LARGEST_FRACTION
    for _ in range(30):
        middle = (low + high) / 2
        slope = 0.0
        for outcome in range(len(losses)):
            slope -= probabilities[outcome] * losses[outcome] / (1.0 - middle * losses[outcome])
        if slope > 0.0:
            low = middle
        else:
            high = middle
    fraction = (low + high) / 2
    growth = 0.0
    for outcome in range(len(losses)):
        growth += probabilities[outcome] * math.log1p(-fraction * losses[outcome])
    return fraction, growth


@compiled
def _best_horizon(arrivals: FloatArray, bound: float, beyond: float, longest: int) -> tuple[int, float, float, float]:
    chosen, fraction, growth, episode_steps = longest, 0.0, 0.0, 0.0
    stride = 1 + (longest - 1) // MOST_HORIZONS
    for horizon in range(1, longest + 1, stride):
        losses, probabilities = np.empty(horizon + 2), np.empty(horizon + 2)
        if horizon > 1 and arrivals[horizon - stride + 1 : horizon + 1].sum() == 0.0:  # the one before misses as often
            continue
        arrived, taken = 0.0, 0.0
        for step in range(horizon + 1):
            losses[step] = (step - bound) / (horizon + beyond)
            probabilities[step] = arrivals[step]
            arrived += arrivals[step]
            taken += arrivals[step] * step
        losses[horizon + 1], probabilities[horizon + 1] = 1.0, max(1.0 - arrived, 0.0)
        steps = 1.0 + probabilities[horizon + 1] * horizon + taken
        candidate, gained = _best_fraction(losses, probabilities)
        if horizon == 1 or gained * episode_steps > growth * steps:
            chosen, fraction, growth, episode_steps = horizon, candidate, gained, steps
    return chosen, fraction, growth, episode_steps


def _check(horizon: int, bound: float) -> None:
    if horizon < 1 or not (math.isfinite(bound) and bound > 0):
        raise InvalidSettingError(f"a horizon of {horizon} and a bound of {bound} steps cannot be tested")


def _check_chance(chance: float) -> None:
    if not 0 < chance < 1:
        raise InvalidSettingError(f"a chance of {chance} cannot be tested; it must be between 0 and 1")


def line_level(share: float, line: int) -> float:
    """The level of a line of tests, counted from 1: share / (line (line + 1)), which sums to the share (Eq. 8)."""
    return share / (line * (line + 1.0))


def level_after(level: float, log_wealth: float) -> float:
    """What a test leaves of its level to the next one of its line (Eq. 11).

    Args:
        level: with which it began.
        log_wealth: the logarithm of what it has won against the least bound that it may prove, at its end.
    """
    return level * math.exp(min(0.0, log_wealth))
