"""The verifier's own account of what the counts prove about the transition probabilities.

It is written from the formulas of docs/algorithms/certified.md, apart from the explorer's statistics and planning, in
plain Python and NumPy. For each pair with n draws of j different successors, in the order of first sight:

- The draws, each recorded as "the i-th successor so far" or "a new one", have under a fixed mixture of Dirichlet models
  a probability Q of at least exp(log_mixture). By Ville's inequality, with probability 1 - level, the true probability
  of the record is at all times at least Q times the level.
- That true probability is the product of p(y)^(n_y - 1) over successors y, and of 1 - p(all before y) for each that
  came new. With k = n - j repeats and r_y = (n_y - 1) / k this puts the row p into the ball

      sum over y of r_y log(r_y / p_y)  <=  slack,         the p_y of the seen successors sum to at most one.

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

from axplore.certificate.assumed import NEVER_DRAWN, ONE_SUCCESSOR, TOLERANCE, Apart, Assumed
from axplore.certificate.contents import Counts
from axplore.types import FloatArray, IntArray

SHARED: Final = 0.2
"""The part of δ for the martingale shared by the pairs with one successor."""

EPISODES: Final = 0.1
"""The part of δ for tests by episodes, see `episodes`; each pair has its part of the rest."""

CLOSING: Final = 0.15
"""The part of δ for closed supports, in place of that for episodes, where outcomes have a least probability."""

SCALE: Final = 4
"""m in the weight m / ((i + m)(i + m - 1)) of the i-th known state; these weights sum to one."""

REFINEMENTS: Final = 2
HALVINGS: Final = 50
LOG_SHIFTS: Final = 35.0
"""Shifts are sought between exp(-35) and exp(35) times the largest distance."""

ROUNDING: Final = 1e-14
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""


@dataclass(frozen=True, eq=False)
class Supports:
    """What is assumed of the successors of each pair: which ones there are, and how likely each is at least.

    Attributes:
        closed: whether nothing but what was seen can follow a pair, [P].
        floors: the least probability of each successor seen, [P].
        owners: the pair of each entry, [E].
        successors: the position that it leads to, [E].
    """

    closed: npt.NDArray[np.bool_]
    floors: FloatArray
    owners: IntArray
    successors: IntArray

    def least_means(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A lower bound of the mean of values >= 0 at the next state by floors alone, and the least value, [P] each.

        The least value is that of the successors seen where the support is closed, and 0 elsewhere. What floors leave
        of a row has at least that value.
        """
        n_pairs = len(self.closed)
        least = np.full(n_pairs, np.inf)
        np.minimum.at(least, self.owners, values[self.successors])
        base = np.where(self.closed & np.isfinite(least), least, 0.0)
        totals = np.bincount(self.owners, values[self.successors], minlength=n_pairs)
        kinds = np.bincount(self.owners, minlength=n_pairs)
        rest = np.maximum(1.0 - kinds * self.floors - ROUNDING, 0.0)
        return self.floors * totals * (1.0 - ROUNDING) + rest * base, base


@dataclass(frozen=True, eq=False)
class Region:
    """The balls of the pairs whose slack is finite, without the successors that have no share.

    Attributes:
        n_pairs: how many pairs there are in all.
        pairs: those with a finite slack, [B].
        slack: of each of them, [B].
        starts: the first entry of each of them, [B].
        owners: of each entry, the place of its pair among them, [E'].
        shares: of each entry, positive and summing to one for each pair, [E'].
        successors: the position that each entry leads to, [E'].
        supports: of all pairs, where something is assumed of them.
    """

    n_pairs: int
    pairs: IntArray
    slack: FloatArray
    starts: IntArray
    owners: IntArray
    shares: FloatArray
    successors: IntArray
    supports: Supports

    def least_means(self, values: FloatArray) -> FloatArray:
        """A lower bound, over the region, of the mean of values >= 0 at the next state, [P].

        A successor that was never seen has the value 0. For every shift t > 0, by the inequality of the weighted
        arithmetic and geometric means,

            mean of z  >=  exp(sum of r log(z + t) - slack) - t  =  t (exp(sum of r log(1 + z / t) - slack) - 1).

        The shift is sought by halving, where the slope of this concave function changes its sign; the bound holds for
        whatever shift is found.

        Args:
            values: of each position, [n + others].
        """
        result, base = self.supports.least_means(values)
        if not len(self.pairs):
            return result
        base = base[self.pairs]
        distances = values[self.successors] - base[self.owners]
        largest = np.maximum.reduceat(distances, self.starts)
        unit = np.where(largest > 0, largest, 1.0)
        distances = distances / unit[self.owners]
        low, high = np.full(len(self.pairs), -LOG_SHIFTS), np.full(len(self.pairs), LOG_SHIFTS)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            shifted = distances + np.exp(middle)[self.owners]
            slope = np.log(self._mean(1.0 / shifted)) + self._mean(np.log(shifted)) - self.slack
            low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
        shift = np.exp((low + high) / 2)
        bound = shift * np.expm1(self._mean(np.log1p(distances / shift[self.owners])) - self.slack)
        result[self.pairs] = np.maximum(result[self.pairs], base + unit * np.maximum(bound, 0.0))
        return result

    def _mean(self, items: FloatArray) -> FloatArray:
        """The mean of items, [E'], by shares, for each pair, [B]."""
        means: FloatArray = np.add.reduceat(self.shares * items, self.starts)
        return means


def confidence_region(
    counts: Counts, n_actions: Sequence[int], delta: float, assumed: Assumed | None = None, apart: Apart | None = None
) -> Region:
    """The region that holds the true transition probabilities at all times with probability at least 1 - δ.

    Args:
        counts: what was drawn; every row must be one that draws can give.
        n_actions: of each known state, in the order of admission, [n].
        delta: δ.
        assumed: what is assumed of each pair. One draw settles a pair that has one outcome.
        apart: states that were counted and are not known.
    """
    weights = pair_weights(n_actions, None if apart is None else apart.ranks.tolist())
    rows = [
        counts.counts[first:end].tolist()
        for first, end in zip(counts.row_offsets[:-1], counts.row_offsets[1:], strict=True)
    ]
    second_draws = [
        int(counts.first_draws[first + 1]) if len(row) > 1 else 0
        for first, row in zip(counts.row_offsets[:-1], rows, strict=True)
    ]
    single = [False] * len(rows) if assumed is None else (assumed.single == 1).tolist()
    least = np.zeros(len(rows)) if assumed is None else assumed.least
    taking_part = [not (settled or floor) for settled, floor in zip(single, least.tolist(), strict=True)]
    budget = shared_budget(
        [row if shares else [] for row, shares in zip(rows, taking_part, strict=True)],
        [draw if shares else 0 for draw, shares in zip(second_draws, taking_part, strict=True)],
        weights,
        SHARED * delta,
    )
    if apart is not None:
        budget += spent_apart(apart)
    supports = _supports(counts, n_actions, delta, assumed, apart)
    slack = np.full(len(rows), np.inf)
    for pair, row in enumerate(rows):
        if single[pair]:
            slack[pair] = 0.0 if len(row) == 1 else np.inf
        elif row and supports.closed[pair]:
            slack[pair] = closed_slack(row, (1.0 - SHARED - CLOSING) * delta * weights[pair])
        elif sum(row) > len(row):
            part = 1.0 - SHARED - (CLOSING if least.any() else EPISODES)
            slack[pair] = row_slack(row, part * delta * weights[pair])
            if len(row) == 1 and taking_part[pair]:
                slack[pair] = min(slack[pair], budget / (row[0] - 1))
    owners = np.repeat(np.arange(len(rows)), np.diff(counts.row_offsets))
    settled = np.array(single, dtype=np.bool_)[owners]
    whole = settled | supports.closed[owners]  # every draw counts there, and elsewhere all but the first of each kind
    weight = np.where(whole, counts.counts, counts.counts - 1)
    kept = np.isfinite(slack)[owners] & (weight > 0)
    totals = np.bincount(owners, weight, minlength=len(rows))
    pairs, starts, places = np.unique(owners[kept], return_index=True, return_inverse=True)
    return Region(
        n_pairs=len(rows),
        pairs=pairs,
        slack=slack[pairs],
        starts=starts,
        owners=places,
        shares=weight[kept] / totals[owners[kept]],
        successors=counts.successors[kept],
        supports=supports,
    )


def _supports(
    counts: Counts, n_actions: Sequence[int], delta: float, assumed: Assumed | None, apart: Apart | None
) -> Supports:
    """Which successors there can be, given what is assumed."""
    lengths = np.diff(counts.row_offsets)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    if assumed is None:
        return Supports(np.zeros(len(lengths), dtype=np.bool_), np.zeros(len(lengths)), owners, counts.successors)
    visits = np.bincount(owners, counts.counts, minlength=len(lengths))
    no_room = (assumed.least > 0.0) & (lengths > 0) & ((lengths + 1) * assumed.least > 1.0 + TOLERANCE)
    closed = no_room | (visits >= np.array(closing_draws(n_actions, delta, assumed, apart)))
    return Supports(closed, assumed.least, owners, counts.successors)


def closing_draws(n_actions: Sequence[int], delta: float, assumed: Assumed, apart: Apart | None = None) -> list[float]:
    """After how many draws no outcome of a pair is left unseen, [P]; infinite where no least probability is assumed.

    One that has the probability p or more is missed n times with probability (1 - p)^n, and there are 1 / p of them.
    """
    draws = []
    weights = pair_weights(n_actions, None if apart is None else apart.ranks.tolist())
    for least, weight in zip(assumed.least.tolist(), weights, strict=True):
        if least >= 1.0:
            draws.append(1.0)
        elif least > 0.0:
            kinds = math.floor(1.0 / least + TOLERANCE)
            draws.append(math.ceil(math.log(kinds / (CLOSING * delta * weight)) / -math.log1p(-least)))
        else:
            draws.append(math.inf)
    return draws


def spent_apart(apart: Apart) -> float:
    """What the pairs of states that are not known have taken of the shared martingale, in nats."""
    weights = pair_weights(apart.n_actions.tolist(), apart.other_ranks.tolist())
    seconds = apart.second_draws.tolist()
    rows = [[] if second == NEVER_DRAWN else [1, 1] if second > ONE_SUCCESSOR else [1] for second in seconds]
    return shared_budget(rows, [max(second, 0) for second in seconds], weights, 1.0)


def pair_weights(n_actions: Sequence[int], ranks: Sequence[int] | None = None) -> list[float]:
    """The part of δ that each pair may use; over any number of states they sum to at most one.

    Args:
        n_actions: of each state.
        ranks: of each state, all different; its position, from 1 on, when not given.
    """
    weights = []
    for position, actions in zip(ranks or range(1, len(n_actions) + 1), n_actions, strict=True):
        of_state = SCALE / ((position + SCALE) * (position + SCALE - 1))
        weights += [of_state / actions for _ in range(actions)]
    return weights


def log_mixture(counts: Sequence[int]) -> tuple[float, float]:
    """A lower bound of the log probability of a row under the mixture, and an allowance for its rounding.

    The mixture gives j kinds of successors the weight 1 / (j (j + 1)) and each of their rows the density of
    Dirichlet(1/2, ..., 1/2); the j! ways to name the kinds give the same record.
    """
    kinds, total = len(counts), sum(counts)
    terms = [math.lgamma(kinds + 1), -math.log(kinds * (kinds + 1))]
    terms += [math.lgamma(kinds / 2), -math.lgamma(total + kinds / 2), -kinds * math.lgamma(0.5)]
    terms += [math.lgamma(count + 0.5) for count in counts]
    return math.fsum(terms), ROUNDING * math.fsum(map(abs, terms))


def row_slack(counts: Sequence[int], level: float) -> float:
    """The radius of the ball of a row with at least one repeat."""
    kinds = len(counts)
    repeats = sum(counts) - kinds
    shares = [(count - 1) / repeats for count in counts]
    mixture, allowance = log_mixture(counts)
    entropy = math.fsum((count - 1) * math.log(share) for count, share in zip(counts, shares, strict=True) if share > 0)
    distance = -mixture - math.log(level) + entropy + allowance - ROUNDING * entropy
    slack = max(distance / repeats, 0.0)
    for _ in range(REFINEMENTS):
        # That a new successor came says that those before it had not all the mass: at least their least mass in the
        # ball was not what was drawn.
        newness = math.fsum(math.log1p(-least_mass(min(sum(shares[:seen]), 1.0), slack)) for seen in range(1, kinds))
        slack = max((distance + newness) / repeats, 0.0)
    return slack


def closed_slack(counts: Sequence[int], level: float) -> float:
    """The radius of the ball around the frequencies of a row whose successors have all been seen."""
    kinds, total = len(counts), sum(counts)
    terms = [-math.log(level), -math.lgamma(kinds / 2), math.lgamma(total + kinds / 2), kinds * math.lgamma(0.5)]
    terms += [-math.lgamma(count + 0.5) for count in counts]
    terms += [count * math.log(count / total) for count in counts]
    return max((math.fsum(terms) + ROUNDING * math.fsum(map(abs, terms))) / total, 0.0)


def least_mass(share: float, slack: float) -> float:
    """A lower bound of the total probability, in the ball, of successors with this total share."""
    low, high = 0.0, share
    for _ in range(HALVINGS):
        mass = (low + high) / 2
        if mass in (low, high):
            break
        distance = share * math.log(share / mass)
        if share < 1.0:
            distance += (1.0 - share) * (math.log1p(-share) - math.log1p(-mass))
        low, high = (mass, high) if distance > slack else (low, mass)
    return low


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
