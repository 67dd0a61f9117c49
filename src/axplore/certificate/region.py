"""The verifier's own account of what the counts prove about the transition probabilities.

It is written from the formulas of docs/algorithms/certified.md, apart from the explorer's statistics and planning, in
plain Python and NumPy. For each pair with n draws, n_y of them of the successor y:

- A bettor who gives y the probability (κ p_y + n_y) / (κ + t) at the draw after the first t has, if p is the true row,
  a wealth that is a martingale. The average of such wealths for several κ reaches 1/level with probability `level` at
  most (Ville).
- The logarithm of that average is convex in u_y = log(1/p_y), so it is above its tangent at any point. This puts p into

      sum over y of r_y log(r_y / p_y)  <=  slack,         the p_y of the seen successors sum to at most one,

  where r is the slope of the tangent, made to sum to one. Every point gives such a ball, and p lies in all of them.
- From the first sight of a successor on, one more bettor asks only whether it comes again. In pairs with many
  successors this says more of each than the ball does: a least probability.
- Pairs that showed a single successor share one more martingale, which bounds all of them at once.

Rounding errors enlarge the slack here; they never shrink it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.certificate.assumptions.given import Given, given_rows
from axplore.certificate.levels import CLOSING, JOINING, OWN, PAIRS, SHARED, pair_weights, weight_of
from axplore.records.assumed import UNTIED, Assumed
from axplore.records.counts import Counts
from axplore.records.retired import NEVER_DRAWN, ONE_SUCCESSOR, RetiredStates
from axplore.types import FloatArray, IntArray

SCALES: Final = np.array([[4.0], [100.0], [2500.0], [62500.0]])
"""The values of κ, in a column."""

PARTS: Final = np.array([[0.375], [0.375], [0.15], [0.1]])
"""The part of each in the average."""

OWN_PARTS: Final = np.array([[0.1], [0.2], [0.3], [0.4]])
"""The part of each where a bettor asks of one successor only whether it comes again."""

WIDE: Final = 5
"""The number of successors from which on these bettors are asked."""

NEARLY_CERTAIN: Final = 1e-12
"""What the logarithm of a probability lacks to that of 1, at least."""

LEAST_LOGARITHM: Final = -690.0
"""Of a probability that is larger than 0."""

CENTRAL_ROUNDS: Final = 2
"""How often the point of a tangent that suits all directions is improved."""

SHARP_ROUNDS: Final = 100
"""How often, at most, the point of a tangent is moved to where the mean is least."""

SETTLED: Final = 1e-11
"""A mean of distances up to 1 that grows by less than this is not improved further."""

BISECTIONS: Final = 60
"""How often the interval of a least probability is halved, in logarithms."""

HALVINGS: Final = 10
NEWTON_STEPS: Final = 4
"""How often the interval of shifts is halved, and how often the shift is then improved."""

LOG_SHIFTS: Final = 35.0
"""Shifts are sought between exp(-35) and exp(35) times the largest distance."""

NEGLIGIBLE: Final = 1e-100
"""Values are not measured in units as small as this."""

TINY: Final = 1e-300
"""In place of zero as a divisor."""

NO_BALL: Final = -1
"""In place of the index of the ball of a pair of which nothing is known by its draws."""

ROUNDING: Final = 1e-14
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""

SERIES_FROM: Final = 15
"""Arguments of the gamma function are raised by this: what its series leaves out is below 1e-17 from here on."""

STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""Stirling's series: B_2k / (2k (2k - 1)) for k = 1, 2, ..."""

SERIES: Final = 100.0
"""More than the sizes of the terms that a logarithm of the gamma function is summed from beside itself."""


@dataclass(frozen=True, eq=False)
class Draws:
    """What was drawn of some pairs, without the successors that were drawn once: these have no part in any ball.

    Attributes:
        totals: how often each pair was drawn, [B].
        log_levels: the logarithm of the level of each pair, [B].
        starts: the first entry of each pair, [B].
        owners: of each entry, the index of its pair among them, [E'].
        counts: of each entry, at least 2, [E'].
    """

    totals: FloatArray
    log_levels: FloatArray
    starts: IntArray
    owners: IntArray
    counts: FloatArray

    def of(self, chosen: IntArray) -> tuple[Draws, IntArray]:
        """The same of some of the pairs, by their indices, which may repeat, and the indices of their entries."""
        lengths = np.diff(self.starts, append=len(self.owners))[chosen]
        entries, owners = spans(self.starts[chosen], lengths), np.repeat(np.arange(len(chosen)), lengths)
        starts = np.cumsum(lengths) - lengths
        return Draws(self.totals[chosen], self.log_levels[chosen], starts, owners, self.counts[entries]), entries

    @cached_property
    def common_terms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What is the same at all points in the logarithm of each wealth, term by term, [scales, B] or [scales, 1]."""
        return log_gamma(SCALES), -log_gamma(SCALES + self.totals), self.totals * np.log(SCALES)

    def balls(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares, [E'], and slacks, [B], of the tangents at points, [E'], which are probabilities above 0."""
        mass = SCALES * points
        own_terms = (log_gamma(mass + self.counts), -log_gamma(mass + 1.0), (1.0 - self.counts) * np.log(mass))
        sizes = self.sums(SERIES + np.abs(own_terms).sum(axis=0)) + sum(map(np.abs, self.common_terms)) + SERIES
        wealths = self.sums(own_terms[0] + own_terms[1] + own_terms[2]) + sum(self.common_terms) - ROUNDING * sizes
        slopes = self.counts - 1.0 - mass * (digamma(mass + self.counts) - digamma(mass + 1.0))
        top = wealths.max(axis=0)
        parts = np.exp(wealths - top) * PARTS
        log_wealth = top + np.log(parts.sum(axis=0))
        slope = np.maximum((parts[:, self.owners] * slopes).sum(axis=0), 0.0) / parts.sum(axis=0)[self.owners]
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
        """The sum of items, [..., E'], for each pair, [..., B]."""
        totals: FloatArray = np.add.reduceat(items, self.starts, axis=-1)
        return totals

    def least_means(
        self, shares: FloatArray, slack: FloatArray, distances: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A lower bound, over balls, of the mean of distances, [E'], each at most 1; and the rows that attain it.

        A successor that was never seen has the distance 0. For every shift t > 0, by the inequality of the weighted
        arithmetic and geometric means,

            mean of z  >=  exp(sum of r log(z + t) - slack) - t  =  t (exp(sum of r log(1 + z / t) - slack) - 1).

        The shift is sought where the slope of this concave function changes its sign, by halving and then by Newton's
        method; the bound holds for whatever shift is found.
        """
        middle, reach = np.zeros(len(slack)), LOG_SHIFTS
        for _ in range(HALVINGS):
            reach /= 2
            shifted = distances + np.exp(middle)[self.owners]
            middle = middle + np.copysign(reach, self._slope(shares, slack, shifted, self.sums(shares / shifted)))
        low, high = middle - reach, middle + reach
        for _ in range(NEWTON_STEPS):
            shift = np.exp(middle)
            shifted = distances + shift[self.owners]
            terms = shares / shifted
            inverse = self.sums(terms)
            slope = self._slope(shares, slack, shifted, inverse)
            curvature = shift * (inverse - self.sums(terms / shifted) / inverse)
            middle = np.minimum(np.maximum(middle - slope / np.minimum(curvature, -TINY), low), high)
        shift = np.exp(middle)
        exponent = self.sums(shares * np.log1p(distances / shift[self.owners])) - slack
        row = shares * (np.exp(exponent) * shift)[self.owners] / (distances + shift[self.owners])
        return np.maximum(shift * np.expm1(exponent), 0.0), row

    def _slope(self, shares: FloatArray, slack: FloatArray, shifted: FloatArray, inverse: FloatArray) -> FloatArray:
        """A function with the sign of the slope, at shifted distances and the mean of their inverses, [B]."""
        slope: FloatArray = np.log(inverse) + self.sums(shares * np.log(shifted)) - slack
        return slope


@dataclass(frozen=True, eq=False)
class Supports:
    """What is assumed of the successors of each pair: which ones there are, and how likely each is at least.

    Attributes:
        closed: whether nothing but what was seen can follow a pair, [P].
        floors: the least probability of each entry, [E].
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the index that each entry leads to, [E].
    """

    closed: npt.NDArray[np.bool_]
    floors: FloatArray
    row_offsets: IntArray
    successors: IntArray

    @cached_property
    def owners(self) -> IntArray:
        """The pair of each entry, [E]."""
        return np.repeat(np.arange(len(self.closed)), np.diff(self.row_offsets))

    def among(self, pairs: IntArray) -> tuple[Supports, IntArray]:
        """The same of some pairs, in which each entry leads to a state of its own, and the state that was, [E']."""
        lengths = np.diff(self.row_offsets)[pairs]
        entries, row_offsets = spans(self.row_offsets[pairs], lengths), np.append(0, np.cumsum(lengths))
        part = Supports(self.closed[pairs], self.floors[entries], row_offsets, np.arange(len(entries)))
        return part, self.successors[entries]

    def least_means(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A lower bound of the mean of values >= 0 at the next state by floors alone, and the least value, [P] each.

        The least value is that of the successors seen where the support is closed, and 0 elsewhere. What floors leave
        of a row has at least that value.
        """
        n_pairs = len(self.closed)
        if not self.closed.any() and not self.floors.any():  # then nothing is assumed
            return np.zeros(n_pairs), np.zeros(n_pairs)
        least = np.full(n_pairs, np.inf)
        np.minimum.at(least, self.owners, values[self.successors])
        base = np.where(self.closed & np.isfinite(least), least, 0.0)
        kept = np.bincount(self.owners, self.floors, minlength=n_pairs)
        totals = np.bincount(self.owners, self.floors * values[self.successors], minlength=n_pairs)
        rounding = ROUNDING * (1.0 + np.bincount(self.owners, minlength=n_pairs))
        return totals * (1.0 - rounding) + np.maximum(1.0 - kept - rounding, 0.0) * base, base


@dataclass(frozen=True, eq=False)
class Region:
    """The balls of the pairs whose slack is finite, without the successors that have no share.

    Attributes:
        n_pairs: how many pairs there are in all.
        pairs: those with a finite slack, [B].
        draws: what was drawn of them.
        shares: of each entry, positive and summing to one for each pair, [E'].
        slack: of each of them, [B].
        entries: which of the entries of all pairs each of their entries is, [E'].
        supports: of all pairs, where something is assumed of them.
        shared_budgets: what pairs with one successor share, in nats, by the draws after which they have joined; none
            where supports may close.
        several: which of them have sharper balls: those with several successors, [B].
        joining: how often each pair with one successor that joins them was drawn, 0 for the others, [P].
    """

    n_pairs: int
    pairs: IntArray
    draws: Draws
    shares: FloatArray
    slack: FloatArray
    entries: IntArray
    supports: Supports
    shared_budgets: dict[int, float]
    several: npt.NDArray[np.bool_]
    joining: IntArray

    @cached_property
    def successors(self) -> IntArray:
        """The index that each entry leads to, [E']."""
        return self.supports.successors[self.entries]

    @cached_property
    def _ball_of_pair(self) -> IntArray:
        """The index of each pair among those with a finite slack, or NO_BALL, [P]."""
        balls = np.full(self.n_pairs, NO_BALL)
        balls[self.pairs] = np.arange(len(self.pairs))
        return balls

    def among(self, pairs: IntArray) -> tuple[Region, IntArray]:
        """The region of some pairs, one after the other, in which each entry leads to a state of its own.

        So one pair may stand there several times, with other values of its successors each time. Returns also which
        state each of these states stands for, [E''].
        """
        supports, states = self.supports.among(pairs)
        balls = self._ball_of_pair[pairs]
        with_ball = np.flatnonzero(balls != NO_BALL)
        balls = balls[with_ball]
        draws, own = self.draws.of(balls)
        shift = supports.row_offsets[with_ball] - self.supports.row_offsets[pairs[with_ball]]
        part = Region(
            n_pairs=len(pairs),
            pairs=with_ball,
            draws=draws,
            shares=self.shares[own],
            slack=self.slack[balls],
            entries=self.entries[own] + shift[draws.owners],
            supports=supports,
            shared_budgets=self.shared_budgets,
            several=self.several[balls],
            joining=self.joining[pairs],
        )
        return part, states

    def least_means(self, values: FloatArray, enough: FloatArray | float = np.inf) -> FloatArray:
        """A lower bound, over the region, of the mean of values >= 0 at the next state, [P].

        A successor that was never seen has the value 0. Beside the balls that suit all directions, tangents are taken
        where the mean is least by the balls before; the greatest of all these lower bounds counts. They approach the
        least mean of the row's own region, and no further tangent is taken once a bound is enough.

        Args:
            values: of each state, [n + others].
            enough: a bound that is as good as any greater one, for each pair, [P], or for all.
        """
        values = np.append(values, 0.0)  # the last entry is that of UNKNOWN: an outcome may lead to any state
        result, base = self.supports.least_means(values)
        if not len(self.pairs):
            return result
        draws = self.draws
        base = base[self.pairs]
        distances = values[self.successors] - base[draws.owners]
        largest = np.maximum.reduceat(distances, draws.starts)
        unit = np.where(largest > NEGLIGIBLE, largest, 1.0)
        distances = distances / unit[draws.owners]
        best, row = self._by_central_balls(distances)
        wanted = (np.broadcast_to(enough, self.n_pairs)[self.pairs] - base) / unit + SETTLED
        moving = np.flatnonzero(self.several & (best < wanted))
        for _ in range(SHARP_ROUNDS):
            if not moving.size:
                break
            some, entries = draws.of(moving)
            mean, row[entries] = some.least_means(*some.balls(row[entries]), distances[entries])
            gained = mean - best[moving]
            best[moving] = np.maximum(best[moving], mean)
            moving = moving[(gained > SETTLED) & (best[moving] < wanted[moving])]
        result[self.pairs] = np.maximum(result[self.pairs], base + unit * best)
        return result

    def _by_central_balls(self, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`Draws.least_means` over the balls that suit all directions.

        Where one successor has all of the share, its least probability is exp(-slack): the shift 0 gives the bound.
        """
        row = np.exp(-self.slack)[self.draws.owners]
        best: FloatArray = (row * distances)[self.draws.starts]
        indices, draws, entries = self._shared
        if len(indices):
            best[indices], row[entries] = draws.least_means(
                self.shares[entries], self.slack[indices], distances[entries]
            )
        return best, row

    @cached_property
    def _shared(self) -> tuple[IntArray, Draws, IntArray]:
        """The indices of the balls with several shares, what was drawn of their pairs, and where their entries are."""
        indices = np.flatnonzero(np.bincount(self.draws.owners, minlength=len(self.pairs)) > 1)
        return indices, *self.draws.of(indices)


def spans(firsts: IntArray, lengths: IntArray) -> IntArray:
    """The numbers from each of `firsts` on, as many as its length says, one after the other."""
    ends = np.cumsum(lengths)
    numbers: IntArray = np.arange(lengths.sum()) + np.repeat(firsts - (ends - lengths), lengths)
    return numbers


def confidence_region(
    counts: Counts,
    n_actions: Sequence[int],
    delta: float,
    assumed: Assumed | None = None,
    retired: RetiredStates | None = None,
) -> Region:
    """The region that holds the true transition probabilities at all times with probability at least 1 - δ.

    Args:
        counts: what was drawn; every row must be one that draws can give.
        n_actions: of each known state, in the order of admission, [n].
        delta: δ.
        assumed: what is assumed of each pair. One draw settles a pair that has one outcome.
        retired: states that were counted and are not known.
    """
    given = given_rows(counts, n_actions, delta, assumed, retired)
    counts, weights = given.drawn.pooled, given.drawn.weights
    rows = [
        counts.counts[first:end].tolist()
        for first, end in zip(counts.row_offsets[:-1], counts.row_offsets[1:], strict=True)
    ]
    second_draws = [
        int(counts.first_draws[first + 1]) if len(row) > 1 else 0
        for first, row in zip(counts.row_offsets[:-1], rows, strict=True)
    ]
    shared = (SHARED - CLOSING if given.closes_by_chance else SHARED) * delta
    surprises = pair_weights(n_actions, None if retired is None else retired.ranks.tolist())
    joining = [[] if is_given else row for row, is_given in zip(rows, given.is_given, strict=True)]
    seconds = [draw if row else 0 for row, draw in zip(joining, second_draws, strict=True)]
    budgets = {after: shared_budget(joining, seconds, surprises, shared * part, after) for after, part in JOINING}
    if retired is not None:
        budgets = {after: budget + spent_by_retired(retired)[after] for after, budget in budgets.items()}
    lows = _own_lows(counts, given, OWN * PAIRS * delta)
    supports, single = _supports(counts, given, lows), np.array(given.most) == 1.0
    lengths = np.diff(counts.row_offsets)
    rows_of_entries = np.repeat(np.arange(len(rows)), lengths)
    settled = (single & (lengths == 1))[rows_of_entries]  # one draw is enough there, elsewhere no first one counts
    kept = settled | ((counts.counts > 1) & ~single[rows_of_entries])
    pairs, starts, owners = np.unique(rows_of_entries[kept], return_index=True, return_inverse=True)
    draws = Draws(
        totals=np.array([sum(rows[pair]) for pair in pairs], dtype=np.float64),
        log_levels=np.array([math.log((1.0 - OWN) * PAIRS * delta * weights[pair]) for pair in pairs]),
        starts=starts,
        owners=owners,
        counts=np.maximum(counts.counts[kept], 2).astype(np.float64),  # fewer only where the ball is another one
    )
    shares, slack = draws.central_balls() if len(pairs) else (np.zeros(0), np.zeros(0))
    for index, pair in enumerate(pairs):
        if single[pair]:
            slack[index] = 0.0
        elif len(rows[pair]) == 1 and not given.is_given[pair]:
            left = [budget / (rows[pair][0] - after) for after, budget in budgets.items() if rows[pair][0] > after]
            slack[index] = min(slack[index], *left)
    is_tied = any(kind != UNTIED for kind in given.drawn.classes)
    return Region(
        n_pairs=len(rows),
        pairs=pairs,
        draws=draws,
        shares=shares,
        slack=slack,
        entries=np.flatnonzero(kept),
        supports=supports,
        shared_budgets={} if given.closes or is_tied else budgets,
        several=np.array([len(rows[pair]) > 1 for pair in pairs], dtype=bool),
        joining=np.array([row[0] if len(row) == 1 else 0 for row in joining], dtype=np.int64),
    )


def _supports(counts: Counts, given: Given, lows: FloatArray) -> Supports:
    """Which successors there can be, given what is assumed, and how likely each is by that and by its own bets, [E]."""
    lengths = np.diff(counts.row_offsets)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    visits = np.bincount(owners, counts.counts, minlength=len(lengths))
    no_room = (lengths > 0) & (lengths >= np.array(given.most))
    floors = np.maximum(np.array(given.floors)[owners], lows)
    return Supports(no_room | (visits >= np.array(given.closing)), floors, counts.row_offsets, counts.successors)


def _own_lows(counts: Counts, given: Given, part: float) -> FloatArray:
    """The least probability of each entry of a pair with many successors by its own bets, and 0 elsewhere, [E].

    Args:
        counts: what was drawn.
        given: what is assumed; draws of tied pairs have no common order, so that none is known to be the first.
        part: that of δ which all these bets together may use, as a probability.
    """
    lengths = np.diff(counts.row_offsets)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    visits = np.bincount(owners, counts.counts, minlength=len(lengths))
    untied = np.array([kind == UNTIED for kind in given.drawn.classes], dtype=bool)
    asked = np.flatnonzero((untied & (lengths >= WIDE))[owners] & (counts.counts > 2))
    lows = np.zeros(len(owners))
    if not len(asked):
        return lows
    numbers = 1 + np.arange(len(owners)) - counts.row_offsets[owners]
    weights = [given.drawn.weights[owners[entry]] * weight_of(int(numbers[entry])) for entry in asked]
    again = (counts.counts[asked] - 1).astype(np.float64)
    others = visits[owners[asked]] - counts.first_draws[asked] - again
    lows[asked] = least_probabilities(again, others, np.log(part * np.array(weights)))
    return lows


def least_probabilities(again: FloatArray, others: FloatArray, log_levels: FloatArray) -> FloatArray:
    """The least probability that each bettor leaves possible, rounded down, [m].

    The logarithm of his wealth is convex in the probability. So where it is beyond the limit at one probability and not
    at a larger one, it is beyond the limit at all smaller ones.

    Args:
        again: how often the successor came after its first sight, at least 2, [m].
        others: how often another one came since then, [m].
        log_levels: the logarithm of the level of each bettor, [m].
    """
    wealth = own_wealth(again, others)
    low, high = np.full(len(again), LEAST_LOGARITHM), np.minimum(np.log(again / (again + others)), -NEARLY_CERTAIN)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        beyond = wealth(middle) + log_levels >= 0.0
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    # Without a probability that is not beyond the limit nothing follows, and nothing should be claimed.
    sound = (wealth(high) + log_levels < 0.0) & (wealth(low) + log_levels >= 0.0)
    return np.where(sound, np.exp(low), 0.0)


def own_wealth(again: FloatArray, others: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The logarithm of the wealth against probabilities, given by their logarithms, rounded down, [m].

    With (κ p + n) / (κ + t) as the bet on "again" after n of t draws, and the rest on "another".
    """
    totals = again + others
    common = _rounded_down(log_gamma(SCALES), -log_gamma(SCALES + totals), totals * np.log(SCALES))

    def wealth_against(logarithms: FloatArray) -> FloatArray:
        mass = SCALES * np.exp(logarithms)
        rest = -SCALES * np.expm1(logarithms)
        # One call for all, because these arrays are small.
        gammas = log_gamma(np.stack((mass + again, mass + 1.0, rest + others, rest + 1.0)))
        wealth = common + _rounded_down(
            gammas[0], -gammas[1], (1.0 - again) * np.log(mass),
            gammas[2], -gammas[3], np.log(rest) - others * np.log(rest),
        )  # fmt: skip
        top = wealth.max(axis=0)
        result: FloatArray = top + np.log((np.exp(wealth - top) * OWN_PARTS).sum(axis=0)) - ROUNDING
        return result

    return wealth_against


def _rounded_down(*terms: FloatArray) -> FloatArray:
    """The sum of terms, less what rounding may have added to it."""
    total = np.zeros(np.broadcast_shapes(*(term.shape for term in terms)))
    for term in terms:
        total += term - ROUNDING * (SERIES + np.abs(term))
    return total


def spent_by_retired(retired: RetiredStates) -> dict[int, float]:
    """What the pairs of states that are not known have taken of each of the shared martingales, in nats."""
    weights = pair_weights(retired.n_actions.tolist(), retired.other_ranks.tolist())
    seconds = retired.second_draws.tolist()
    rows = [[] if second == NEVER_DRAWN else [1, 1] if second > ONE_SUCCESSOR else [1] for second in seconds]
    draws = [max(second, 0) for second in seconds]
    return {after: shared_budget(rows, draws, weights, 1.0, after) for after, _ in JOINING}


def shared_budget(
    rows: Sequence[Sequence[int]], second_draws: Sequence[int], weights: Sequence[float], level: float, after: int = 1
) -> float:
    """A bound of the sum, over pairs with one successor, of (draws - after) log(1 / p), where p is its probability.

    Each pair whose first draws were alike, this number of them, bets 1 - w/2 that it has one successor only. One that
    shows another later, at its draw T, falls back on the bet w/2 times after / (T (T - 1)) on just that draw, against
    the most that any p could have given to it.
    """
    terms = [-math.log(level)]
    for row, draw, weight in zip(rows, second_draws, weights, strict=True):
        if len(row) == 1 or draw > after:
            terms.append(-math.log1p(-weight / 2))
        if draw > after:
            alike = draw - 1 - after
            terms += [math.log(draw * (draw - 1) / (after * (weight / 2))), -math.log(alike + 1)]
            if alike:
                terms.append(-alike * math.log((alike + 1) / alike))
    return math.fsum(terms) + ROUNDING * math.fsum(map(abs, terms))


def log_gamma(x: FloatArray) -> FloatArray:
    """Returns the logarithm of Γ at x > 0, from Stirling's series."""
    raised = x + SERIES_FROM
    # The product of x, ..., x + n - 1 for odd n, far from overflow, two factors at a time:
    # (x + k) (x + n - 1 - k) = x (x + n - 1) + k (n - 1 - k).
    outer = x * (x + (SERIES_FROM - 1))
    product = outer * (x + (SERIES_FROM - 1) // 2)
    for step in range(1, SERIES_FROM // 2):
        product *= outer + step * (SERIES_FROM - 1 - step)
    series = _power_series(STIRLING, 1.0 / (raised * raised)) / raised
    result: FloatArray = (
        (raised - 0.5) * np.log(raised) - raised + 0.5 * math.log(2 * math.pi) + series - np.log(product)
    )
    return result


def digamma(x: FloatArray) -> FloatArray:
    """Returns the derivative of log Γ at x > 0."""
    raised = x + SERIES_FROM
    steps = np.zeros(x.shape)
    for step in range(SERIES_FROM):
        steps += 1.0 / (x + step)
    inverse = 1.0 / (raised * raised)
    series = _power_series([(2 * k + 1) * term for k, term in enumerate(STIRLING)], inverse) * inverse
    result: FloatArray = np.log(raised) - 0.5 / raised - series - steps
    return result


def _power_series(coefficients: Sequence[float], x: FloatArray) -> FloatArray:
    """Returns the sum of coefficients times 1, x, x², ... by Horner's rule."""
    total = np.zeros(x.shape)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total
