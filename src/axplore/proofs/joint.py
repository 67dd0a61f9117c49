"""Bounds of a probability from a ball that several rows have in common: their errors add in quadrature.

Row by row, every row may be at its worst at once. A *joint test* names pairs before their draws, and from then on one
martingale serves all of them, so that whoever departs from the frequencies in one row has less left for the others.
Theorem 5 of docs/algorithms/questions.md turns this into a bound: departing costs a price in each pair, which is such
that all plays of the pair together cost no more than the ball allows for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from axplore.compressed import entries_in, offsets_from
from axplore.proofs.chances import Asked, Chance
from axplore.proofs.play_kernels import raise_plays, settle_plays
from axplore.proofs.property_claims import choices_in
from axplore.records.counts import Counts
from axplore.records.properties import NO_BOUND, JointBound, JointDraws
from axplore.statistics.confidence import EPISODE_PART
from axplore.statistics.episodes import line_level
from axplore.statistics.joint import joint_ball
from axplore.types import RESET_PAIR, FloatArray, IntArray

ROUNDING: Final = 1e-6
"""The part by which a ball is enlarged, far above the rounding of its arithmetic, so that a verifier finds the same."""

ROUNDING_PER_DRAW: Final = 1e-11
"""The same for each draw, for logarithms of factorials."""

MOST_PRICE: Final = 1e4
"""No price is higher: less is lost by that than by rounding."""

MOST_PLAYS: Final = 1e4
"""A pair that may be played more often than this has no price."""

PLAYS_TOLERANCE, MOST_SWEEPS, MOST_SETTLING = 1e-3, 3000, 300
RAISED: Final = (1e-2, 0.1)
"""By what parts of themselves values are raised to bound the plays of a pair, the first that succeeds."""

STEP: Final = math.sqrt(2.0)
"""The factor by which prices are tried."""

MOST_STEPS: Final = 24
"""No more prices are tried on a side."""

CLEARLY: Final = 0.8
"""Pairs are named if that makes bounds narrower by this factor at least."""

OUTDATED: Final = 1.5
"""Plays are bounded anew when there are this many times the steps."""

FIRST_PART: Final = 8.0
"""The first price is that of a budget that is this part of the width."""

LEAST_PLAYS: Final = 1e-9
"""A pair that is played less often counts as played this often."""

UNSOUGHT: Final = -1.0
"""In place of a price that is to be sought."""

NOT_PLAYED: Final = -1
"""In place of the index of a pair that a policy does not play."""


@dataclass(frozen=True, eq=False)
class Side:
    """What the bound of one side rests on beside the draws; its parts are found now and then, and hold from then on.

    Attributes:
        price: of a nat, per play; 0 if none makes the bound better, and UNSOUGHT until it was sought.
        steps: those of the world when the plays were bounded; 0 if they never were.
        n_known, n_shown: the number of counted states, and of outcomes that pairs had shown then. The process ends
            where there are others, so that with more of them a pair may be played more often.
        plays: a bound of the expected plays of each pair, [m]; infinite if there is none.
        policy: the pair in each known state that the plays are those of, or RESET_PAIR, [n]; empty for any policy.
    """

    price: float = UNSOUGHT
    steps: int = 0
    n_known: int = 0
    n_shown: int = 0
    plays: FloatArray = field(default_factory=lambda: np.zeros(0))
    policy: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def fits(self, n_named: int, counts: Counts) -> bool:
        """Whether it can be of this number of pairs of what was counted."""
        n_known, policy = len(self.policy), self.policy
        if n_known > len(counts.states) or len(self.plays) not in (0, n_named) or not (self.plays >= 0.0).all():
            return False
        first, end = counts.state_pairs[:n_known], counts.state_pairs[1 : n_known + 1]
        return self.price >= UNSOUGHT and bool(((policy == RESET_PAIR) | ((policy >= first) & (policy < end))).all())


@dataclass(frozen=True, eq=False)
class JointTest:
    """Pairs that were named before their draws; everything is fixed at the beginning, but for the sides.

    Attributes:
        line: whose level it has, counted from 1.
        steps: those of the world at the beginning.
        pairs: the pairs, by their index among those that are counted, which never changes, [m].
        offsets: the first of the successors of each pair at the beginning, and the end of the last one, [m + 1].
        before: how often each of them had been drawn, [e].
        below, above: what the lower bound and the upper bound rest on.
    """

    line: int
    steps: int
    pairs: IntArray
    offsets: IntArray
    before: IntArray
    below: Side = field(default_factory=Side)
    above: Side = field(default_factory=Side)

    @classmethod
    def of(cls, counts: Counts, pairs: IntArray, line: int, steps: int) -> JointTest:
        """Names pairs, by index, ascending."""
        offsets = offsets_from(np.diff(counts.row_offsets)[pairs])
        return cls(line, steps, pairs, offsets, counts.counts[entries_in(counts.row_offsets, pairs)])

    def fits(self, counts: Counts) -> bool:
        """Whether these pairs can have been named before some of these draws."""
        n_pairs, n_named, lengths = len(counts.row_offsets) - 1, len(self.pairs), np.diff(self.offsets)
        if self.line < 1 or not n_named or not 0 <= self.pairs[0] <= self.pairs[-1] < n_pairs:
            return False
        if (np.diff(self.pairs) <= 0).any() or len(lengths) != n_named or len(self.before) != self.offsets[-1]:
            return False
        if (lengths < 0).any() or self.offsets[0] != 0 or (lengths > np.diff(counts.row_offsets)[self.pairs]).any():
            return False
        drawn = counts.counts[self.entries_before(counts)]
        if not ((self.before > 0) & (self.before <= drawn)).all():
            return False
        return self.below.fits(n_named, counts) and self.above.fits(n_named, counts)

    def entries_before(self, counts: Counts) -> IntArray:
        """The entries that the named pairs had at the beginning: rows only grow at their ends."""
        starts = np.repeat(counts.row_offsets[self.pairs] - self.offsets[:-1], np.diff(self.offsets))
        entries: IntArray = starts + np.arange(len(self.before))
        return entries

    def without_sides(self) -> JointTest:
        """The same test, of which nothing is known but what was named and drawn."""
        return replace(self, below=Side(), above=Side())

    def without_prices(self) -> JointTest:
        """The same test, whose prices are to be found anew."""
        return replace(self, below=replace(self.below, price=UNSOUGHT), above=replace(self.above, price=UNSOUGHT))


@dataclass(frozen=True, eq=False)
class JointBall:
    """The ball of named rows: the sum of weight times KL(shares || row) is below the budget.

    Attributes:
        pairs: the named pairs, [m].
        entries: the entries of these pairs by their index among all, [e].
        before: how often each was drawn before they were named, 0 for what was not seen then, [e].
        shares: of each, [e].
        weights: of each pair, [m].
        budget: in nats.
    """

    pairs: IntArray
    entries: IntArray
    before: IntArray
    shares: FloatArray
    weights: FloatArray
    budget: float

    @classmethod
    def of(cls, test: JointTest, counts: Counts, delta: float) -> JointBall:
        """The ball after all draws."""
        offsets = offsets_from(np.diff(counts.row_offsets)[test.pairs])
        entries = entries_in(counts.row_offsets, test.pairs)
        before = np.zeros(len(entries), dtype=np.int64)
        before[np.isin(entries, test.entries_before(counts))] = test.before
        drawn = (counts.counts[entries] - before).astype(np.float64)
        shares, weights = np.zeros(len(entries)), np.zeros(len(test.pairs))
        nats = joint_ball(offsets, before.astype(np.float64), drawn, shares, weights)
        nats -= math.log(line_level(EPISODE_PART * delta, test.line))
        budget = nats + ROUNDING * (1.0 + abs(nats)) + ROUNDING_PER_DRAW * float(drawn.sum())
        return cls(test.pairs, entries, before, shares, weights * (1.0 - ROUNDING), budget)


class JointBounds:
    """What a joint test proves of both sides of a question.

    Args:
        asked: the question.
        low, high: its bounds by the region alone.
        test: the named pairs.
        ball: what their draws prove.
        steps: those of the world.
        anew: whether plays are bounded by the region as it is, as a certificate needs it; else that is done now and
            then.
    """

    def __init__(
        self,
        asked: Asked,
        low: Chance,
        high: Chance,
        test: JointTest,
        ball: JointBall,
        steps: int,
        *,
        anew: bool = False,
    ) -> None:
        self._asked, self._test, self._steps, self._anew = asked, test, steps, anew
        self._width, self.ball = high.value - low.value, ball
        self._below = self._improved(test.below, low, is_upper=False)
        self._above = self._improved(test.above, high, is_upper=True)

    @property
    def test(self) -> JointTest:
        """The test with what its sides rest on now."""
        return replace(self._test, below=self._below.side, above=self._above.side)

    @property
    def lower(self) -> float:
        """A lower bound from the initial state."""
        return self._below.bound

    @property
    def upper(self) -> float:
        """An upper bound from the initial state."""
        return self._above.bound

    @property
    def below(self) -> tuple[Asked, Chance]:
        """What the lower bound says by itself: the question with its prices, and the values."""
        return self.priced(self._asked, self._below.side), self._below.chance

    @property
    def above(self) -> tuple[Asked, Chance]:
        """The same of the upper bound."""
        return self.priced(self._asked, self._above.side), self._above.chance

    def draws_record(self) -> JointDraws:
        """The draws as a certificate keeps them."""
        return JointDraws(line=self._test.line, pairs=self.ball.pairs, before=self.ball.before)

    def bound_record(self, *, is_upper: bool) -> JointBound:
        """The bound of a side as a certificate keeps it; plays must have been bounded anew."""
        found = self._above if is_upper else self._below
        n_known = self._asked.model.n_known
        values = np.where(self._asked.is_asked, found.chance.values, self._asked.question.reach)[:n_known]
        policy = found.side.policy
        return JointBound(
            bound=found.bound,
            price=found.side.price,
            values=values.astype(np.float64),
            most_plays=np.where(np.isfinite(found.side.plays), found.side.plays, NO_BOUND),
            plays=np.where(np.isfinite(found.plays), found.plays, 0.0)[:, :n_known],
            policy=choices_in(self._asked.model, policy) if len(policy) else policy,
            ranks=found.chance.ranks,
        )

    def _improved(self, side: Side, chance: Chance, *, is_upper: bool) -> _Found:
        """The best bound of a side, over prices."""
        is_fixed = self._asked.question.maximise != is_upper  # then any policy proves it
        plays, is_renewed = np.zeros((0, 0)), False
        n_known, n_shown = self._asked.model.n_known, len(self._asked.rows.successors)
        is_old = self._steps >= OUTDATED * side.steps or (n_known, n_shown) != (side.n_known, side.n_shown)
        if self._anew or is_old or len(side.plays) != len(self.ball.pairs):
            policy = chance.policy if is_fixed else np.zeros(0, dtype=np.int64)
            side = replace(side, policy=policy, steps=self._steps, n_known=n_known, n_shown=n_shown)
            plays = self._bounded_plays(side)
            side, is_renewed = replace(side, plays=plays[:, 0]), True
        search = _Search(self, side, chance, plays, is_upper)
        if is_renewed or side.price == UNSOUGHT:
            return search.best(max(self._width, ROUNDING) / (FIRST_PART * self.ball.budget))
        # The best price falls with the draws; where there was none, it is sought with new plays only.
        return search.better(search.at(side.price), search.at(side.price / STEP)) if side.price else search.none

    def playing(self, side: Side) -> Asked:
        """The question of all policies, or of the one that a side is about."""
        return self._asked.following(side.policy) if len(side.policy) else self._asked

    def priced(self, asked: Asked, side: Side) -> Asked:
        """A question with the prices of a side: of a nat in each named pair, by how often it may be played."""
        rows, ball = self._asked.rows, self.ball
        prices, shares = np.full(len(rows.prices), np.inf), np.zeros(len(rows.joint_shares))
        is_priced = np.isfinite(side.plays) & (ball.weights > 0.0) & (side.price > 0.0)
        per_play = side.price * ball.weights / np.maximum(side.plays, LEAST_PLAYS)
        prices[ball.pairs[is_priced]] = np.minimum(per_play, MOST_PRICE)[is_priced]
        shares[ball.entries] = ball.shares
        return asked.with_prices(prices, shares)

    def _bounded_plays(self, side: Side) -> FloatArray:
        """A bound of the expected plays of each named pair from each state, [m, n + others]; infinite if none."""
        asked = self.playing(side)
        indices = np.full(len(self._asked.rows.slack), NOT_PLAYED)
        indices[asked.pairs] = np.arange(len(asked.pairs))
        return np.array([self._plays_of(asked, int(pair)) for pair in indices[self.ball.pairs]])

    @staticmethod
    def _plays_of(asked: Asked, pair: int) -> FloatArray:
        """A bound of the expected plays of one pair from each state, [n + others]."""
        plays = np.zeros(len(asked.is_asked))
        if pair == NOT_PLAYED:
            return plays
        rows, order = asked.rows, asked.order
        if not raise_plays(rows, order, pair, plays, PLAYS_TOLERANCE, MOST_PLAYS, MOST_SWEEPS):
            return np.full(len(plays), np.inf)
        for part in RAISED:
            raised = plays * (1.0 + part)
            if settle_plays(rows, order, pair, raised, MOST_SETTLING):
                return raised
        return np.full(len(plays), np.inf)


@dataclass(frozen=True, eq=False)
class _Found:
    """A bound of a side, what it rests on, and the plays from each state if they were bounded now."""

    side: Side
    chance: Chance
    bound: float
    plays: FloatArray


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the price with which the bound of a side is best."""

    bounds: JointBounds
    side: Side
    alone: Chance
    plays: FloatArray
    is_upper: bool

    def at(self, price: float) -> _Found:
        """The bound at a price, or that of the region alone if it is better."""
        side = replace(self.side, price=price)
        asked = self.bounds.priced(self.bounds.playing(side), side)
        chance = asked.upper() if self.is_upper else asked.lower()
        cost = price * self.bounds.ball.budget
        bound = float(np.clip(chance.value + (cost if self.is_upper else -cost), 0.0, 1.0))
        if (bound >= self.alone.value) if self.is_upper else (bound <= self.alone.value):
            return self.none
        return _Found(side, chance, bound, self.plays)

    @property
    def none(self) -> _Found:
        """The bound of the region alone."""
        return _Found(replace(self.side, price=0.0), self.alone, self.alone.value, self.plays)

    def better(self, one: _Found, other: _Found) -> _Found:
        """The better of two bounds; the first if they are equal."""
        return other if (other.bound < one.bound if self.is_upper else other.bound > one.bound) else one

    def best(self, first: float) -> _Found:
        """The best bound over prices, from a first one upwards or downwards for as long as it becomes better."""
        start = best = self.at(first)
        for step in (STEP, 1.0 / STEP):
            for power in range(1, MOST_STEPS):
                other = self.at(first * step**power)
                if self.better(best, other) is best:
                    break
                best = other
            if best is not start:
                break
        return best
