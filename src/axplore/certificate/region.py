"""The verifier's own account of what the counts prove about the transition probabilities.

It is written from the formulas of docs/algorithms/certified.md, apart from the explorer's statistics and planning, in
plain Python and NumPy. For each pair with n draws, n_y of them of the successor y:

- A bettor who gives y the probability (κ p_y + n_y) / (κ + t) at the draw after the first t has, if p is the true row,
  a wealth that is a martingale. The average of such wealths for several κ reaches 1/level with probability `level` at
  most (Ville).
- The logarithm of that average is convex in u_y = log(1/p_y), so it is above its tangent at any point. This puts p into

      sum over y of r_y log(r_y / p_y)  <=  slack,         the p_y of the seen successors sum to at most one,

  where r is the slope of the tangent, made to sum to one. Every point gives such a ball, and p lies in all of them.
- Pairs that showed a single successor share one more martingale, which bounds all of them at once.

Rounding errors enlarge the slack here; they never shrink it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.certificate.contents import Counts
from axplore.certificate.special import digamma, log_gamma
from axplore.types import FloatArray, IntArray

SHARED: Final = 0.2
"""The part of δ for the martingale shared by the pairs with one successor; each pair has its part of the rest."""

SCALE: Final = 10
"""m in the weight m / ((i + m)(i + m - 1)) of the i-th known state; these weights sum to one."""

SCALES: Final = (4.0, 100.0, 2500.0)
"""The values of κ."""

CENTRAL_ROUNDS: Final = 2
"""How often the point of a tangent that suits all directions is improved."""

SHARP_ROUNDS: Final = 4
"""How often the point of a tangent is moved to where the mean is least."""

HALVINGS: Final = 50
LOG_SHIFTS: Final = 35.0
"""Shifts are sought between exp(-35) and exp(35) times the largest distance."""

ROUNDING: Final = 1e-14
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""

SERIES: Final = 100.0
"""More than the sizes of the terms that a logarithm of the gamma function is summed from beside itself."""


@dataclass(frozen=True, eq=False)
class Draws:
    """What was drawn of some pairs, without the successors that were drawn once: these have no part in any ball.

    Attributes:
        totals: how often each pair was drawn, [B].
        log_levels: the logarithm of the level of each pair, [B].
        starts: the first entry of each pair, [B].
        owners: of each entry, the place of its pair among them, [E'].
        counts: of each entry, at least 2, [E'].
    """

    totals: FloatArray
    log_levels: FloatArray
    starts: IntArray
    owners: IntArray
    counts: FloatArray

    def balls(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares, [E'], and slacks, [B], of the tangents at points, [E'], which are probabilities above 0."""
        wealths, slopes, allowances = [], [], []
        for scale in SCALES:
            mass = scale * points
            terms = (log_gamma(mass + self.counts), -log_gamma(mass + 1.0), (1.0 - self.counts) * np.log(mass))
            common = (
                np.full(len(self.totals), math.lgamma(scale)),
                -log_gamma(scale + self.totals),
                self.totals * math.log(scale),
            )
            wealths.append(self.sums(terms[0] + terms[1] + terms[2]) + common[0] + common[1] + common[2])
            sizes = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2]) + SERIES
            allowances.append(self.sums(sizes) + sum(map(np.abs, common)) + SERIES)
            slopes.append(self.counts - 1.0 - mass * (digamma(mass + self.counts) - digamma(mass + 1.0)))
        top = np.max(wealths, axis=0)
        parts = np.exp(np.array(wealths) - top) / len(SCALES)
        log_wealth = top + np.log(parts.sum(axis=0)) - ROUNDING * np.max(allowances, axis=0)
        slope = np.maximum((parts[:, self.owners] * np.array(slopes)).sum(axis=0), 0.0) / parts.sum(axis=0)[self.owners]
        weight = self.sums(slope)
        shares = slope / weight[self.owners]
        distance = self.sums(shares * np.log(shares / points))
        return shares, np.maximum(distance - (self.log_levels + log_wealth) / weight, 0.0)

    def central_balls(self) -> tuple[FloatArray, FloatArray]:
        """Shares and slacks of tangents where all frequencies have shrunk alike: what is left may be unseen."""
        kinds = np.bincount(self.owners)
        slack = (2.0 * kinds - self.log_levels) / self.totals
        for _ in range(CENTRAL_ROUNDS):
            shares, slack = self.balls(self.counts / self.totals[self.owners] * np.exp(-slack)[self.owners])
        return shares, slack

    def sums(self, items: FloatArray) -> FloatArray:
        """The sum of items, [E'], for each pair, [B]."""
        totals: FloatArray = np.add.reduceat(items, self.starts)
        return totals

    def least_means(
        self, shares: FloatArray, slack: FloatArray, distances: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A lower bound, over balls, of the mean of distances, [E'], each at most 1; and the rows that attain it.

        A successor that was never seen has the distance 0. For every shift t > 0, by the inequality of the weighted
        arithmetic and geometric means,

            mean of z  >=  exp(sum of r log(z + t) - slack) - t  =  t (exp(sum of r log(1 + z / t) - slack) - 1).

        The shift is sought by halving, where the slope of this concave function changes its sign; the bound holds for
        whatever shift is found.
        """
        low, high = np.full(len(slack), -LOG_SHIFTS), np.full(len(slack), LOG_SHIFTS)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            shifted = distances + np.exp(middle)[self.owners]
            slope = np.log(self.sums(shares / shifted)) + self.sums(shares * np.log(shifted)) - slack
            low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
        shift = np.exp((low + high) / 2)
        exponent = self.sums(shares * np.log1p(distances / shift[self.owners])) - slack
        row = shares * (np.exp(exponent) * shift)[self.owners] / (distances + shift[self.owners])
        return np.maximum(shift * np.expm1(exponent), 0.0), row


@dataclass(frozen=True, eq=False)
class Region:
    """The balls of the pairs whose slack is finite, without the successors that have no share.

    Attributes:
        n_pairs: how many pairs there are in all.
        pairs: those with a finite slack, [B].
        draws: what was drawn of them.
        shares: of each entry, positive and summing to one for each pair, [E'].
        slack: of each of them, [B].
        successors: the position that each entry leads to, [E'].
        shared_budget: what the pairs with one successor share, in nats.
        several: which of them have shown more than one successor, [B]; of the others the ball is exact.
    """

    n_pairs: int
    pairs: IntArray
    draws: Draws
    shares: FloatArray
    slack: FloatArray
    successors: IntArray
    shared_budget: float
    several: npt.NDArray[np.bool_]

    def least_means(self, values: FloatArray) -> FloatArray:
        """A lower bound, over the region, of the mean of values >= 0 at the next state, [P].

        A successor that was never seen has the value 0. Beside the balls that suit all directions, tangents are taken
        where the mean is least by the balls before; the greatest of all these lower bounds counts.

        Args:
            values: of each position, [n + others].
        """
        result = np.zeros(self.n_pairs)
        if not len(self.pairs):
            return result
        draws = self.draws
        distances = values[self.successors]
        largest = np.maximum.reduceat(distances, draws.starts)
        unit = np.where(largest > 0, largest, 1.0)
        distances = distances / unit[draws.owners]
        best, row = draws.least_means(self.shares, self.slack, distances)
        for _ in range(SHARP_ROUNDS if self.several.any() else 0):
            mean, row = draws.least_means(*draws.balls(row), distances)
            best = np.where(self.several, np.maximum(best, mean), best)
        result[self.pairs] = unit * best
        return result


def confidence_region(counts: Counts, n_actions: Sequence[int], delta: float) -> Region:
    """The region that holds the true transition probabilities at all times with probability at least 1 - δ.

    Args:
        counts: what was drawn; every row must be one that draws can give.
        n_actions: of each known state, in the order of admission, [n].
        delta: δ.
    """
    weights = pair_weights(n_actions)
    rows = [
        counts.counts[first:end].tolist()
        for first, end in zip(counts.row_offsets[:-1], counts.row_offsets[1:], strict=True)
    ]
    second_draws = [
        int(counts.first_draws[first + 1]) if len(row) > 1 else 0
        for first, row in zip(counts.row_offsets[:-1], rows, strict=True)
    ]
    budget = shared_budget(rows, second_draws, weights, SHARED * delta)
    kept = counts.counts > 1
    rows_of_entries = np.repeat(np.arange(len(rows)), np.diff(counts.row_offsets))[kept]
    pairs, starts, owners = np.unique(rows_of_entries, return_index=True, return_inverse=True)
    draws = Draws(
        totals=np.array([sum(rows[pair]) for pair in pairs], dtype=np.float64),
        log_levels=np.array([math.log((1.0 - SHARED) * delta * weights[pair]) for pair in pairs]),
        starts=starts,
        owners=owners,
        counts=counts.counts[kept].astype(np.float64),
    )
    shares, slack = draws.central_balls() if len(pairs) else (np.zeros(0), np.zeros(0))
    for place, pair in enumerate(pairs):
        if len(rows[pair]) == 1:
            slack[place] = min(slack[place], budget / (rows[pair][0] - 1))
    return Region(
        n_pairs=len(rows),
        pairs=pairs,
        draws=draws,
        shares=shares,
        slack=slack,
        successors=counts.successors[kept],
        shared_budget=budget,
        several=np.array([len(rows[pair]) > 1 for pair in pairs], dtype=bool),
    )


def pair_weights(n_actions: Sequence[int]) -> list[float]:
    """The part of δ that each pair may use; over any number of states they sum to at most one."""
    weights = []
    for position, actions in enumerate(n_actions, start=1):
        of_state = SCALE / ((position + SCALE) * (position + SCALE - 1))
        weights += [of_state / actions for _ in range(actions)]
    return weights


def shared_budget(
    rows: Sequence[Sequence[int]], second_draws: Sequence[int], weights: Sequence[float], level: float
) -> float:
    """A bound of the sum, over pairs with one successor, of (draws - 1) log(1 / p), where p is its probability.

    Each drawn pair bets 1 - w/2 that it has one successor only. One that shows another, at its draw T, falls back on
    the bet w/2 times 1 / (T (T - 1)) on just that draw, against the most that any p could have given to it.
    """
    terms = [-math.log(level)]
    for row, draw, weight in zip(rows, second_draws, weights, strict=True):
        if row:
            terms.append(-math.log1p(-weight / 2))
        if len(row) > 1:
            terms.append(math.log(draw / (weight / 2)))
        if draw > 2:
            terms.append(-(draw - 2) * math.log((draw - 1) / (draw - 2)))
    return math.fsum(terms) + ROUNDING * math.fsum(map(abs, terms))
