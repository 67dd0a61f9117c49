"""What draws of several pairs prove together, checked by itself (Theorem 5 of docs/algorithms/questions.md).

Someone who has seen b_y draws of each successor y of a row, and bets on the further ones with the frequencies so far,
has at the end the wealth

    Γ(b + ν) / Γ(b + ν + d)  ·  product over y of Γ(b_y + d_y) / Γ(b_y)  ·  product over y of (1 / p_y)^d_y

after d_y draws of each, b and d being the sums, if p is the true row. A successor that was new then has won at least
what was staked on that, ν; from its second time on it counts like the others. A draw of one row does not move the
wealth of another. So the product over rows that were named before is one martingale, and one level serves all (Ville).

The logarithm of the wealth of a row is linear in log(1 / p): a weight G times KL(r || p), less a cost. So the sum of
G KL(r || p) over the named rows is below a budget. Whoever departs from r pays c = μ G / N for each nat at each play.
With at most N plays expected, no more than μ times the budget is paid in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError
from axplore.certificate.kinds.episodes import level_of
from axplore.certificate.levels import EPISODES
from axplore.certificate.property_proofs import MARGIN, Asked, PropertyProof
from axplore.certificate.region import ROUNDING, SERIES, TINY, log_gamma
from axplore.records.counts import Counts
from axplore.records.properties import JointBound, JointDraws, PropertyClaim
from axplore.types import BoolArray, FloatArray, IntArray

NOVELTY: Final = 0.02
"""ν, which is staked on a successor that was never seen, in draws."""

MOST_PRICE: Final = 1e4
"""No price is higher: what follows from a lower one is true as well."""

LEAST_PLAYS: Final = 1e-9
"""A pair that is played less often counts as played this often."""

PLAYS_MARGIN: Final = 1e-12
"""By how much an inequality between expected plays must hold, as a part of the greatest."""

BISECTIONS: Final = 60


@dataclass(frozen=True, eq=False)
class JointBall:
    """The ball of the named rows.

    Attributes:
        pairs: the named pairs, [m].
        entries: their entries, [e].
        owners: the index of the named pair of each entry, [e].
        shares: r, of each entry, [e].
        weights: G, of each named pair, rounded down, [m].
        budget: of the sum of G KL(r || p), rounded up.
    """

    pairs: IntArray
    entries: IntArray
    owners: IntArray
    shares: FloatArray
    weights: FloatArray
    budget: float

    @classmethod
    def of(cls, joint: JointDraws, counts: Counts, delta: float) -> JointBall:
        """Returns what the draws since the pairs were named prove; raises UnprovenError if there were no such draws."""
        entries, owners = entries_of(joint.pairs, counts)
        before = joint.before.astype(np.float64)
        totals = np.bincount(owners, before, minlength=len(joint.pairs)).astype(np.float64)
        was_seen = counts.first_draws[entries] <= totals[owners]
        drawn = counts.counts[entries] - before
        if (drawn < 0).any() or not np.array_equal(was_seen, before > 0.0):
            raise UnprovenError("the draws before the pairs were named are none that these rows can have had")
        again = np.where(was_seen, drawn, np.maximum(drawn - 1.0, 0.0))
        weights = np.bincount(owners, again, minlength=len(joint.pairs)).astype(np.float64)
        shares = again / np.maximum(weights, 1.0)[owners]
        cost, sizes = 0.0, 1.0
        for term in _terms(owners, before, drawn, totals, again, shares):
            cost += math.fsum(term)
            sizes += float(np.abs(term).sum()) + SERIES * len(term)
        budget = cost - math.log(level_of(joint.line, EPISODES * delta)) + ROUNDING * sizes
        return cls(joint.pairs, entries, owners, shares, weights, budget)

    def prices(self, bound: JointBound) -> FloatArray:
        """c, of each named pair, [m]; 0 where the plays have no bound."""
        per_play = bound.price * self.weights / np.maximum(bound.most_plays, LEAST_PLAYS)
        return np.where(bound.most_plays >= 0.0, np.minimum(per_play, MOST_PRICE), 0.0)

    def least_means(self, values: FloatArray, bases: FloatArray, prices: FloatArray) -> FloatArray:
        """A lower bound of the mean of values >= 0, what departing from the shares costs included, [m].

        For every τ from 0 up to c, with t = c - τ > 0 and z the values less their base,

            sum of p z + c KL(r || p)  >=  c (1 + sum of r log((z + t) / c)) - t
                                        =  τ + c sum of r log(1 + (z - τ) / c),

        because p (z + t) + c r log(r / p) is least at p = c r / (z + t). It is greatest where the mean of c / (z + t)
        is 1. Where a row has no price, nothing follows.

        Args:
            values: at each entry, [e]. What was never seen has the value 0.
            bases: what every outcome of a row has at least, [m]: above 0 only where nothing unseen can follow.
            prices: c, [m].
        """
        distances = values - bases[self.owners]
        has_price = (prices > 0.0) & (self.weights > 0.0)
        price = np.where(has_price, prices, 1.0)
        low = np.zeros(len(price))
        high = np.minimum(np.bincount(self.owners, self.shares * distances, minlength=len(price)), price)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            shifted = np.maximum(distances - middle[self.owners] + price[self.owners], TINY)
            inverse = np.bincount(self.owners, self.shares / shifted, minlength=len(price)) * price
            low, high = np.where(inverse < 1.0, middle, low), np.where(inverse < 1.0, high, middle)
        terms = np.where(
            self.shares > 0.0, self.shares * np.log1p((distances - low[self.owners]) / price[self.owners]), 0.0
        )
        means = low + price * np.bincount(self.owners, terms, minlength=len(price)) + bases
        return np.where(has_price, means, 0.0)


def entries_of(pairs: IntArray, counts: Counts) -> tuple[IntArray, IntArray]:
    """The entries of some pairs, ascending, and the index among them of the pair of each, [e] both."""
    entries = np.flatnonzero(np.isin(counts.entry_pairs, pairs))
    return entries, np.searchsorted(pairs, counts.entry_pairs[entries])


def _terms(
    owners: IntArray, before: FloatArray, drawn: FloatArray, totals: FloatArray, again: FloatArray, shares: FloatArray
) -> list[FloatArray]:
    """The terms whose sum is what the rows cost together."""
    draws = np.bincount(owners, drawn, minlength=len(totals))
    old, fresh = before > 0.0, (before == 0.0) & (drawn > 0.0)
    repeated = again > 0.0
    return [
        log_gamma(totals + draws + NOVELTY), -log_gamma(totals + NOVELTY),
        -log_gamma(before[old] + drawn[old]), log_gamma(before[old]),
        -log_gamma(drawn[fresh]), np.full(int(fresh.sum()), -math.log(NOVELTY)),
        again[repeated] * np.log(shares[repeated]),
    ]  # fmt: skip


def check_joint(claim: PropertyClaim, joint: JointDraws, proof: PropertyProof, delta: float) -> None:
    """Raises `UnprovenError` if a bound does not follow from the joint draws."""
    ball = JointBall.of(joint, proof.sweeper.counts, delta)
    lower, upper = float(claim.lower[0]), float(claim.upper[0])
    for bound, is_upper in ((claim.joint_lower, False), (claim.joint_upper, True)):
        if bound is None:
            continue
        JointProof(bound, is_upper, ball, proof.asked, proof.sweeper).check()
        if not lower <= bound.bound <= upper:
            raise UnprovenError(f"the bound {bound.bound:.6g} by joint draws contradicts those of the region")


@dataclass(frozen=True, eq=False)
class JointProof:
    """The check of the bound of one side.

    Attributes:
        bound: what is claimed.
        is_upper: whether it is the upper bound.
        ball: what the joint draws prove.
        asked: what is asked.
        sweeper: the region.
    """

    bound: JointBound
    is_upper: bool
    ball: JointBall
    asked: Asked
    sweeper: Sweeper

    def check(self) -> None:
        """Raises `UnprovenError` if the bound does not follow."""
        self._check_plays()
        values = self._rows.spread(self.bound.values, is_upper=self.is_upper)
        distances = 1.0 - values if self.is_upper else values
        of_owners = distances[self.sweeper.owners]
        holds = self._least_of_closed(distances) >= of_owners
        needed = np.full(self.sweeper.region.n_pairs, -np.inf)
        needed[self._pairs] = of_owners[self._pairs] + MARGIN
        holds |= self.sweeper.region.least_means(distances, needed) >= needed
        holds[self.ball.pairs] |= self._priced(distances) >= needed[self.ball.pairs]
        side = "upper bound by joint draws" if self.is_upper else "lower bound by joint draws"
        self._rows.require(side, self.bound.values, self._pairs[~holds[self._pairs]])
        if not self.is_upper:
            self._rows.check_ranks(self._positive, self._pairs)
        cost = self.bound.price * self.ball.budget * (1.0 + ROUNDING)
        proven = float(values[0]) + cost + MARGIN if self.is_upper else float(values[0]) - cost - MARGIN
        if not (self.bound.bound >= min(proven, 1.0) if self.is_upper else self.bound.bound <= max(proven, 0.0)):
            raise UnprovenError(f"joint draws prove a bound of {proven:.6g}, not of {self.bound.bound:.6g}")

    @cached_property
    def _rows(self) -> PropertyProof:
        """The checks of a claim, about the policy and the ranks of this bound."""
        claim = PropertyClaim(
            text="", names=(), costs=np.zeros(0), lower=np.zeros(0), upper=np.zeros(0),
            policy=self.bound.policy, ranks=self.bound.ranks,
        )  # fmt: skip
        return PropertyProof(claim, self.asked, self.sweeper)

    @cached_property
    def _positive(self) -> BoolArray:
        """The states in which the process goes on, [n]."""
        return self.asked.inside if self.is_upper else self.asked.inside & (self.bound.values > 0.0)

    @cached_property
    def _pairs(self) -> IntArray:
        """The pairs that may be played there: those of every policy, or of the one that the bound is of."""
        if self.asked.prop.maximise != self.is_upper:
            side = "upper bound by joint draws" if self.is_upper else "lower bound by joint draws"
            return self._rows.played(side, self._positive)
        return np.flatnonzero(self._positive[self.sweeper.owners])

    def _least_of_closed(self, distances: FloatArray) -> FloatArray:
        """The least distance of what was seen after each pair after which nothing else can be; 0 for others, [P]."""
        return self._rows.least_of_closed(distances)

    def _priced(self, distances: FloatArray) -> FloatArray:
        """The least means of the named pairs where departing costs its price, [m]."""
        bases = self._least_of_closed(distances)[self.ball.pairs]
        successors = self.sweeper.counts.successors[self.ball.entries]
        return self.ball.least_means(distances[successors], bases, self.ball.prices(self.bound))

    def _check_plays(self) -> None:
        """The plays of each named pair are no more than is claimed, until the question is decided.

        Nor are plays counted after an outcome that a pair has not shown: there a bound takes the worst, and ends.
        """
        region, bound = self.sweeper.region, self.bound
        shown = replace(region, supports=replace(region.supports, closed=np.ones(region.n_pairs, dtype=np.bool_)))
        has_outcomes = np.bincount(region.supports.owners, minlength=region.n_pairs) > 0
        for index in np.flatnonzero(bound.most_plays >= 0.0):
            plays = np.zeros(self.sweeper.n_seen)
            plays[: len(self._positive)] = bound.plays[index]
            greatest = float(plays.max())
            own = np.zeros(region.n_pairs)
            own[self.ball.pairs[index]] = 1.0
            most = plays[self.sweeper.owners] - own
            needed = np.full(region.n_pairs, -np.inf)
            needed[self._pairs] = greatest - most[self._pairs] + PLAYS_MARGIN * (1.0 + greatest)
            means = shown.least_means(greatest - plays, needed)
            # Without any play from the successors on there is no mean to be rounded.
            holds = (means >= needed) | (~self._leads(plays, has_outcomes) & (most >= 0.0))
            if not holds[self._pairs].all() or bound.most_plays[index] < plays[0]:
                state = int(self.sweeper.owners[self.ball.pairs[index]])
                label = self.sweeper.counts.order[state]
                raise UnprovenError(
                    f"the expected plays of an action of state {label!r} are not bounded by what is claimed"
                )

    def _leads(self, plays: FloatArray, has_outcomes: BoolArray) -> BoolArray:
        """Whether each pair was seen to lead to a state from which plays are expected, [P]."""
        supports = self.sweeper.region.supports
        most = np.zeros(len(has_outcomes))
        np.maximum.at(most, supports.owners, np.append(plays, float(plays.max()))[supports.successors])
        return has_outcomes & (most > 0.0)
