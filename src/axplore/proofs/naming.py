"""Which pairs to name, so that their draws count together: those that narrow the bounds of a question most."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.compressed import entries_in
from axplore.proofs.chances import Asked, Chance
from axplore.proofs.joint import CLEARLY, JointBall, JointBounds, JointTest
from axplore.records.counts import Counts
from axplore.statistics.confidence import EPISODE_PART
from axplore.statistics.episodes import line_level
from axplore.types import FloatArray, IntArray

MOST_NUMBERS, LEAST_PAIRS = 40_000, 4
"""The plays of each named pair are bounded in every known state; there are no more such numbers, or few pairs."""

SIZES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The numbers of pairs that are tried."""

LEAST_COST: Final = 0.1
"""A pair with one successor costs less, in nats; none counts as cheaper."""

LEAST_PART: Final = 5e-3
"""A pair that has a smaller part in the width is not named."""

LATER: Final = 6.0
"""Pairs are named with a view to this many times as many draws as there were."""


def pairs_to_name(
    asked: Asked, low: Chance, high: Chance, weights: FloatArray, counts: Counts, line: int, delta: float
) -> IntArray:
    """The pairs whose common ball would narrow the bounds most, ascending; none if it would not narrow them clearly.

    Sets of several sizes are tried as if all draws so far had come after they were named. In which order pairs are
    added is an estimate, to first order: rows add the squares of what they add alone with all of their nats.

    Args:
        asked: the question.
        low, high: its bounds by the region.
        weights: what the slack of each pair adds to the width, [P].
        counts: all draws.
        line: whose level a new test has.
        delta: δ.
    """
    rows, visits = asked.rows, counts.visits.astype(np.float64)
    drawn, n_others = visits > 1.0, np.diff(rows.row_offsets) - 1
    nats = np.maximum(np.multiply(rows.slack, visits, out=np.full(len(visits), np.inf), where=drawn), 1.0)
    costs = 0.5 * n_others * (1.0 + math.log1p(LATER))
    may_be = np.flatnonzero((weights > LEAST_PART * weights.sum()) & np.isfinite(nats))
    merits = weights[may_be] ** 2 / (nats * np.maximum(costs, LEAST_COST))[may_be]
    most = min(max(MOST_NUMBERS // asked.model.n_known, LEAST_PAIRS), SIZES[-1])
    pairs = may_be[np.argsort(-merits, kind="stable")][:most]
    best, narrowest = 0, CLEARLY * (high.value - low.value)
    places = np.argsort(pairs)
    test = JointTest.of(counts, pairs[places], line, 0)
    for size in (size for size in SIZES if size <= len(pairs)):
        ball = _foreseen(asked, test, visits, np.where(places < size, costs[pairs[places]], np.inf), delta)
        bounds = JointBounds(asked, low, high, test, ball, 1)
        test = bounds.test.without_prices()
        if bounds.upper - bounds.lower < narrowest:
            best, narrowest = size, bounds.upper - bounds.lower
    return np.sort(pairs[:best])


def _foreseen(asked: Asked, test: JointTest, visits: FloatArray, costs: FloatArray, delta: float) -> JointBall:
    """The ball of the pairs of finite cost, [m], if all draws so far had come after these were named."""
    is_named = np.isfinite(costs)
    entries = entries_in(asked.rows.row_offsets, test.pairs)
    budget = float(costs[is_named].sum()) - math.log(line_level(EPISODE_PART * delta, test.line))
    weights = np.where(is_named, visits[test.pairs], 0.0)
    return JointBall(test.pairs, entries, test.before, asked.rows.frequencies[entries], weights, budget)
