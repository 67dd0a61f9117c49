"""What the counts prove about the transition probabilities, at every time at once.

For each pair the explorer keeps one test martingale for every row that might be the true one: what bets centred at that
row have won (`axplore.statistics.centred`). By Ville's inequality the one of the true row reaches 1/level at any time
with probability at most `level`, so the rows for which it stays below form a confidence region that holds at all times,
whatever the rule by which pairs are sampled. The number of states is not needed: what the bets win on a successor never
seen before does not depend on it, and the mass that was never seen is part of the region.
`docs/algorithms/certified.md` has the proof; equation numbers below are its own.

In the form in which planning uses it, the region of a pair is a ball: with r the *shares* of its successors,

    sum over successors y of r(y) log(r(y) / p(y))  <=  slack,

where p is the unknown row, whose entries for the successors seen sum to at most one.

Pairs that have shown one successor only have a second bound. One martingale is shared by all of them, so that it needs
no division of the error among pairs: in a deterministic world it makes the slack several times smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.compressed import entries_in
from axplore.records.counts import Counts
from axplore.statistics.centred import central_ball, least_probability
from axplore.statistics.counts import counted_indices, rows_of
from axplore.statistics.given_rows import CLOSING_PART, GivenRows, Pooled, nothing_given
from axplore.types import BoolArray, FloatArray, IntArray

SHARED_PART: Final = 0.2
"""The part of delta that goes to the martingale shared by the pairs with one successor."""

JOINING: Final = ((1, 0.75), (10, 0.15), (30, 0.1))
"""After how many draws alike a pair joins each of the shared martingales, and the part of theirs that this one has.

A pair that shows another outcome before it joins costs nothing: the later ones serve where few pairs are uncertain."""

EPISODE_PART: Final = 0.2
"""The part of delta that is left to tests by episodes (docs/algorithms/episodes.md); the pairs share the rest."""

PAIRS_PART: Final = 1.0 - SHARED_PART - EPISODE_PART
"""The part of delta that the pairs share, whatever is assumed: closing takes from the shared one."""

ADMISSION_SCALE: Final = 10
"""The first states admitted, of this number, have about equal levels; later levels fall like 1 / position squared."""

OWN_PART: Final = 0.1
"""The part of the level of a pair for the bets on each of its successors alone (Eq. 21)."""

WIDE: Final = 5
"""These bets are looked at where a pair has shown this many successors or more; with fewer, the ball is as sharp."""

LOW_ROUNDING, LOW_PER_DRAW = 1e-7, 3e-12
"""Least probabilities are lowered by these parts of themselves: they follow from sums in which much cancels out.

The second is for each draw, divided by the root of the repeats, by which a root becomes steeper."""

NEAR: Final = 8
"""A ball is copied from one of this number of pairs before it that has the same row, as tied pairs do."""

ROUNDING, ROUNDING_PER_DRAW = 1e-9, 1e-13
"""Slacks are enlarged by this part of themselves and by this much, far above the rounding of the arithmetic below.

The second covers logarithms of factorials, whose rounding is a part of themselves and so grows with the draws."""


@dataclass(frozen=True)
class SharedBudget:
    """What pairs with one successor share: the sum of (visits - after) log(1/p) over those with more visits (Eq. 8).

    Attributes:
        after: the number of draws after which a pair has joined.
        nats: what the sum is at most.
    """

    after: int
    nats: float


@dataclass(frozen=True, eq=False)
class ConfidenceRegion:
    """Transition probabilities that the counts do not rule out.

    Attributes:
        shares: of each entry in its row, summing to one in a row with finite slack, [E].
        slack: how far the row of each pair may be from its shares; infinite where too little was drawn, [P].
        shared_budgets: what pairs with one successor share; none where something is assumed that closes supports.
        closed: whether no other successor than those seen is possible, [P].
        floors: the least probability of each successor seen, [P].
        closing: the draws after which the support of each pair is closed, infinite if never, [P].
        log_levels: the logarithm of the level of each pair, from which sharper balls can be had, [P].
        weights: the part of the error that each pair may use, [P].
        pooled: the rows that this is the region of, where pairs are tied; None if they are the rows that were counted.
        lows: the least probability of each entry of a wide row by its own bets, 0 elsewhere, [E].
    """

    shares: FloatArray
    slack: FloatArray
    shared_budgets: tuple[SharedBudget, ...]
    closed: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    floors: FloatArray = field(default_factory=lambda: np.zeros(0))
    closing: FloatArray = field(default_factory=lambda: np.zeros(0))
    log_levels: FloatArray | None = None
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    pooled: Pooled | None = None
    lows: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.lows) < len(self.shares):
            object.__setattr__(self, "lows", np.zeros(len(self.shares)))
        if len(self.closed) < len(self.slack):  # nothing is assumed
            object.__setattr__(self, "closed", np.zeros(len(self.slack), dtype=np.bool_))
            object.__setattr__(self, "floors", np.zeros(len(self.slack)))
            object.__setattr__(self, "closing", np.full(len(self.slack), np.inf))


def confidence_region(
    rows: Counts,
    delta: float,
    given: GivenRows | None = None,
    ranks: IntArray | None = None,
    spent: Sequence[float] = (0.0,) * len(JOINING),
) -> ConfidenceRegion:
    """The region that holds the true transition probabilities at all times with probability at least 1 - delta.

    Args:
        rows: what was counted.
        delta: δ.
        given: what is assumed of each pair; nothing when not given. Pairs of which something is assumed take no part
            in the martingale that the others share.
        ranks: of the states in the order in which they were first counted, from 1 on, [K]; their places in the rows
            when not given.
        spent: what states that are not among the rows have taken of each of the shared martingales, in nats.
    """
    surprises = pair_weights(rows, ranks)
    given = nothing_given(rows, surprises) if given is None else given
    rows, weights = given.rows, given.weights
    shared_part = SHARED_PART - (CLOSING_PART if given.closes_by_chance else 0.0)
    budgets = tuple(
        SharedBudget(after, nats + shared_budget(rows, np.where(given.is_given, 0.0, surprises), level, after))
        for (after, part), nats in zip(JOINING, spent, strict=True)
        for level in [shared_part * part * delta]
    )
    log_levels = np.log(PAIRS_PART * (1.0 - OWN_PART) * delta * weights)
    shares, slack = _remembered.balls_of(rows, log_levels)
    _tighten_by(budgets, rows, given.is_given, slack)
    n_successors = np.diff(rows.row_offsets)
    settled = (given.most_outcomes == 1.0) & (n_successors == 1)
    slack[settled] = 0.0
    shares[rows.row_offsets[:-1][settled]] = 1.0
    is_full = (n_successors >= given.most_outcomes) & (n_successors > 0)
    closed = ((rows.visits >= given.closing) | is_full) & ~settled
    if given.pooled is not None or given.closes:
        budgets = ()  # pairs that take no part in them may be on the way
    lows = _own_lows(rows, np.log(PAIRS_PART * OWN_PART * delta * weights))
    return ConfidenceRegion(
        shares, slack, budgets, closed, given.floors, given.closing, log_levels, weights, given.pooled, lows
    )


def _own_lows(rows: Counts, log_levels: FloatArray) -> FloatArray:
    """The least probability of each entry of a wide row by its own bets, 0 elsewhere, [E] (Eq. 21).

    Draws of tied pairs have no common order, so that it is not known after how many an outcome came first.
    """
    lows = np.zeros(len(rows.counts))
    lengths = np.diff(rows.row_offsets)
    if len(lengths) and lengths.max() >= WIDE:
        log_parts = np.log(_falling(np.arange(1.0, lengths.max() + 1.0)))
        _find_lows(rows.row_offsets, rows.counts, rows.first_draws, rows.visits, log_levels, log_parts, lows)
    return lows


def part_of(region: ConfidenceRegion, rows: Counts, states: IntArray) -> tuple[Counts, ConfidenceRegion]:
    """Some of the counted states, by index and in this order, and their part of a region, which belongs to all."""
    if np.array_equal(rows.states, states):
        return rows, region
    pairs = entries_in(rows.state_pairs, counted_indices(rows)[states])
    of_region = rows if region.pooled is None else region.pooled.rows
    entries = entries_in(of_region.row_offsets, pairs)
    part = replace(
        region,
        shares=region.shares[entries],
        lows=region.lows[entries],
        slack=region.slack[pairs],
        closed=region.closed[pairs],
        floors=region.floors[pairs],
        closing=region.closing[pairs],
        weights=region.weights[pairs],
        log_levels=None if region.log_levels is None else region.log_levels[pairs],
        pooled=None if region.pooled is None else region.pooled.of_states(states, pairs),
    )
    return rows_of(rows, states), part


def pair_weights(rows: Counts, ranks: IntArray | None = None) -> FloatArray:
    """The part of the error that each pair may use, summing to at most one over any number of pairs, [P] (Eq. 2)."""
    n_actions = np.diff(rows.state_pairs)
    position = (np.arange(1, len(n_actions) + 1) if ranks is None else ranks).astype(np.float64)
    return np.repeat(_falling(position) / np.maximum(n_actions, 1), n_actions)


def unit_weights(groups: IntArray) -> FloatArray:
    """The part of the error that each pair may use, [P]; the pairs of a group use theirs together.

    Classes, and pairs that are not tied, are numbered in the order of their first pairs, which is that in which states
    were first counted. A number has to be fixed before the first draw of the class. The class of a pair is not known
    before its own first draw, so that a pair that was never drawn counts as if it were not tied: numbers only fall.
    """
    _, first, of_pair = np.unique(groups, return_index=True, return_inverse=True)
    number = np.empty(len(first))
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    return _falling(number)[of_pair]


def _falling(number: FloatArray) -> FloatArray:
    """The part of the i-th of 1, 2, ..., m / ((i + m)(i + m - 1)); these sum to one (Eq. 2)."""
    return ADMISSION_SCALE / ((number + ADMISSION_SCALE) * (number + ADMISSION_SCALE - 1))


def shared_budget(rows: Counts, weights: FloatArray, level: float, after: int = 1) -> float:
    """The bound on the sum over pairs with one successor of (visits - after) log(1 / p), in nats (Eq. 8).

    A pair that has joined has paid for the chance that it is not deterministic. One that then showed a second
    successor, at its draw T, has paid for that surprise once, and no longer takes part.
    """
    novelty_probability = weights / 2
    budget = math.log(1.0 / level)
    n_successors = np.diff(rows.row_offsets)
    second_draws = np.append(rows.first_draws, 0)[np.minimum(rows.row_offsets[:-1] + 1, len(rows.first_draws))]
    broken = (n_successors >= 2) & (weights > 0) & (second_draws > after)
    budget -= float(np.log1p(-novelty_probability[(n_successors == 1) | broken]).sum())
    draw = second_draws[broken].astype(np.float64)
    alike = draw - 1 - after
    likeliest = np.where(alike > 0, alike * np.log((alike + 1) / np.maximum(alike, 1)), 0.0) + np.log(alike + 1)
    surprises = np.log(draw * (draw - 1) / (after * novelty_probability[broken])) - likeliest
    return budget + float(surprises.sum())


def _tighten_by(budgets: tuple[SharedBudget, ...], rows: Counts, is_given: BoolArray, slack: FloatArray) -> None:
    """Replaces the slacks of pairs with one successor by what the budgets leave each of them, where that is less."""
    joins = (np.diff(rows.row_offsets) == 1) & ~is_given
    for budget in budgets:
        joined = np.flatnonzero(joins & (rows.visits > budget.after))
        left = budget.nats / (rows.visits[joined] - budget.after) * (1.0 + ROUNDING) + ROUNDING_PER_DRAW
        slack[joined] = np.minimum(slack[joined], left)


@compiled
def least_mass(share: float, slack: float) -> float:
    """The least total probability of successors with this total share in the ball (the root of Eq. 6)."""
    low, high = 0.0, share
    while high - low > 1e-12 * share:
        mass = (low + high) / 2
        distance = share * math.log(share / mass)
        if share < 1.0:
            distance += (1.0 - share) * math.log((1.0 - share) / (1.0 - mass))
        if distance > slack:
            low = mass
        else:
            high = mass
    return low


class _Balls:
    """The balls found last. Few rows change from one round to the next, and a ball depends on its row alone."""

    def __init__(self) -> None:
        none = np.zeros(0)
        self._last = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), none, none, none

    def balls_of(self, rows: Counts, log_levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Returns shares, [E], and slacks, [P]: the same as if no balls had been found before."""
        shares, slack = np.zeros(len(rows.counts)), np.full(len(rows.visits), np.inf)
        offsets, counts = np.array(rows.row_offsets), np.array(rows.counts)
        _find_balls(offsets, counts, log_levels, *self._last, shares, slack)
        self._last = offsets, counts, log_levels, shares.copy(), slack.copy()
        return shares, slack


_remembered: Final = _Balls()


@compiled
def _find_balls(
    row_offsets: IntArray,
    counts: IntArray,
    log_levels: FloatArray,
    old_offsets: IntArray,
    old_counts: IntArray,
    old_levels: FloatArray,
    old_shares: FloatArray,
    old_slack: FloatArray,
    shares: FloatArray,
    slack: FloatArray,
) -> None:
    for pair in range(len(slack)):
        first, end = row_offsets[pair], row_offsets[pair + 1]
        if first == end:
            continue
        if pair < len(old_slack) and log_levels[pair] == old_levels[pair]:
            before = old_offsets[pair]
            if _are_same(counts, first, end, old_counts, before, old_offsets[pair + 1]):
                slack[pair] = old_slack[pair]
                for entry in range(first, end):
                    shares[entry] = old_shares[before + entry - first]
                continue
        found = False
        for other in range(pair - 1, max(pair - NEAR, 0) - 1, -1):
            before = row_offsets[other]
            if log_levels[other] == log_levels[pair] and _are_same(
                counts, first, end, counts, before, row_offsets[other + 1]
            ):
                slack[pair], found = slack[other], True
                for entry in range(first, end):
                    shares[entry] = shares[before + entry - first]
                break
        if not found:
            slack[pair] = central_ball(counts[first:end].astype(np.float64), log_levels[pair], shares[first:end])
            slack[pair] = slack[pair] * (1.0 + ROUNDING) + ROUNDING_PER_DRAW


@compiled_inline
def _are_same(numbers: IntArray, first: int, end: int, others: IntArray, before: int, last: int) -> bool:
    """Whether two ranges have the same numbers."""
    length, n_same = end - first, 0
    if length == last - before:
        while n_same < length and numbers[first + n_same] == others[before + n_same]:
            n_same += 1
    return n_same == length


@compiled
def _find_lows(
    row_offsets: IntArray,
    counts: IntArray,
    first_draws: IntArray,
    visits: IntArray,
    log_levels: FloatArray,
    log_parts: FloatArray,
    lows: FloatArray,
) -> None:
    for pair in range(len(visits)):
        first, end = row_offsets[pair], row_offsets[pair + 1]
        if end - first < WIDE or first_draws[first] == 0:
            continue
        for entry in range(first, end):
            log_level = log_levels[pair] + log_parts[entry - first]
            lows[entry] = safe_low(counts[entry] - 1.0, float(visits[pair] - first_draws[entry]), log_level)


@compiled_part
def safe_low(repeats: float, draws: float, log_level: float) -> float:
    """`least_probability` on the safe side of rounding."""
    part = LOW_ROUNDING + LOW_PER_DRAW * draws / math.sqrt(max(repeats, 1.0))
    return least_probability(repeats, draws, log_level) * max(1.0 - part, 0.0)


@compiled
def row_hulls(
    row_offsets: IntArray, shares: FloatArray, slack: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The least and the greatest probability of each entry, [E] each, and the greatest of the mass never seen, [P]."""
    low = np.zeros(len(shares))
    high = np.full(len(shares), 1.0)
    unseen = np.full(len(slack), 1.0)
    for pair in range(len(slack)):
        if slack[pair] == np.inf:
            continue
        for entry in range(row_offsets[pair], row_offsets[pair + 1]):
            share = min(shares[entry], 1.0)
            low[entry] = least_mass(share, slack[pair])
            high[entry] = 1.0 - least_mass(1.0 - share, slack[pair])
        seen = shares[row_offsets[pair] : row_offsets[pair + 1]].sum()
        unseen[pair] = 1.0 - least_mass(seen if seen < 1.0 - 1e-9 else 1.0, slack[pair])
    return low, high, unseen
