"""Compiled arithmetic of one pair: the least mean of distances over the region of its row.

Bounds need one thing of a pair: the least mean, over the region of its row, of distances z >= 0 from a *free* value.
The free value is what a successor that was never seen may have: the worst there is for an upper bound, the best for a
lower one. With r the shares and `slack` the radius of the ball, duality gives for every shift t >= 0

    least mean of z  >=  exp(sum of r log(z + t) - slack) - t                                             (Eq. 10)

with equality at the best shift (docs/algorithms/certified.md). So an inexact shift costs sharpness, never truth.

States are given by index: 0..n-1 are the known ones in the order of admission, the initial state is 0, and from n on
come the other states that were seen; these reset.

What solvers ask of a pair is copied into each of them, whatever LLVM thinks of its length: a call would hand over the
hundred numbers that describe the rows, and take several times as long as the arithmetic.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.compressed import entries_in, offsets_from
from axplore.types import FloatArray, IntArray

NEWTON_STEPS: Final = 40
NEWTON_ACCURACY: Final = 1e-6
"""The error of a shift, as a part of the slack. A bound loses its square, since it is greatest at the best shift."""

LEAST_MOVE: Final = 1e-10
"""Newton's method ends when a step moves the shift by no more than this part of it."""

LEAST_SHIFT: Final = 1e-60
"""No shift is smaller: its square is a number, and a bound loses no more than this by it."""

UNKNOWN_SHIFT: Final = -1.0

MANY: Final = -1.0
"""In place of the least probability of a single successor."""

NEGLIGIBLE: Final = 1e-100
"""Distances up to this count as none: their squares might be zero."""


class RegionRows(NamedTuple):
    """The region and the counts in the form that kernels read.

    Attributes:
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the index that each entry leads to, [E].
        shares, slack: the ball around each row, [E] and [P].
        frequencies: how often each entry was met, as a part of the visits, and not below what is assumed, [E].
        costs: of each pair, [P]; ones where values count steps.
        reset_cost: of RESET, in every state.
        closed: whether nothing but these successors can follow each pair, [P].
        floors: the least probability of each of the successors of each pair, [P].
        rest: the share of outcomes of which it is not known where they lead, [P]; it is missing among the shares of the
            entries. Their distance is 0.
        wide: whether each pair has so many successors that each has bets of its own, [P].
        lows: the least probability of each entry by these bets, [E]; 0 where there are none.
        prices: what a nat of distance from the joint shares costs in a pair, [P]; infinite where there is no price.
        joint_shares: the shares of a ball that pairs have in common, [E] (Theorem 5 of docs/algorithms/questions.md).
    """

    state_pairs: IntArray
    row_offsets: IntArray
    successors: IntArray
    shares: FloatArray
    slack: FloatArray
    frequencies: FloatArray
    costs: FloatArray
    reset_cost: float
    closed: npt.NDArray[np.bool_]
    floors: FloatArray
    rest: FloatArray
    wide: npt.NDArray[np.bool_]
    lows: FloatArray
    prices: FloatArray
    joint_shares: FloatArray


OF_PAIRS: Final = ("slack", "costs", "closed", "floors", "rest", "wide", "prices")
OF_ENTRIES: Final = ("successors", "shares", "frequencies", "lows", "joint_shares")
"""The arrays of `RegionRows` that have a number for each pair, and for each entry."""


def rows_of_pairs(rows: RegionRows, pairs: IntArray, state_pairs: IntArray) -> RegionRows:
    """Returns the rows of some pairs, in this order, which are now those of the states that `state_pairs` says."""
    entries = entries_in(rows.row_offsets, pairs)
    return rows._replace(
        state_pairs=state_pairs,
        row_offsets=offsets_from(np.diff(rows.row_offsets)[pairs]),
        **{name: getattr(rows, name)[pairs] for name in OF_PAIRS},
        **{name: getattr(rows, name)[entries] for name in OF_ENTRIES},
    )


@compiled
def grown_balls(rows: RegionRows, growth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Shares, slacks, rest and lows as they would be if the visits of each pair had grown; the arguments of `grow`."""
    shares, slack, rest, lows = rows.shares.copy(), rows.slack.copy(), rows.rest.copy(), rows.lows.copy()
    for pair in range(len(growth)):
        grow(rows, pair, growth[pair], shares, slack, rest, lows)
    return shares, slack, rest, lows


@compiled_inline
def grow(
    rows: RegionRows,
    pair: int,
    growth: float,
    shares: FloatArray,
    slack: FloatArray,
    rest: FloatArray,
    lows: FloatArray,
) -> None:
    """Writes the ball of a pair as it would be if its visits had grown by a factor, whose inverse is given.

    An estimate, to first order: the slack falls like 1 / visits (Eq. 5), and shares approach frequencies alike; the
    bets on one successor alone, like the root.
    """
    slack[pair] = (rows.slack[pair] if rows.slack[pair] < np.inf else 1.0) * growth
    rest[pair] = rows.rest[pair] * growth
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        frequency = rows.frequencies[entry]
        shares[entry] = frequency + (rows.shares[entry] - frequency) * growth
        if rows.wide[pair]:
            lows[entry] = frequency + (rows.lows[entry] - frequency) * math.sqrt(growth)


@compiled_part
def least_mean(
    rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float, slack: float
) -> tuple[float, float, float]:
    """The least mean of z = sign * (free - value) over the ball, its derivative by the slack, and the shift.

    A value beyond the free one counts as the free one, so that z >= 0; the derivative is given without its minus sign.

    Where the support is closed, no mass is free: it may move to the successor of least z only, which is taken off
    beforehand. Where each successor has a least probability, the mean is also at least that of a row that gives each
    just that, and what is left to the one of least z. If this is the larger bound, minus the derivative is returned.
    """
    return least_mean_from(rows, pair, values, free, sign, slack, UNKNOWN_SHIFT, -1.0)


@compiled_inline
def least_mean_from(
    rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float, slack: float, guess: float, enough: float
) -> tuple[float, float, float]:
    """`least_mean`, begun from a shift that was best for similar values, if there is one.

    The mean by shares is never less than the least mean. Where it is at most `enough`, it is returned in its place,
    without any search.
    """
    if slack == 0.0:  # the row is known
        return _known_mean(rows, pair, values, free, sign), 0.0, 0.0
    if not rows.closed[pair] and not _has_floors(rows, pair):
        return _ball_mean(rows, pair, values, free, sign, slack, guess, enough, 0.0)
    # Both bounds hold, so the larger one does. The sign of the weight tells `extreme_row` which one it was.
    base, floor_mean, lacking = _floor_mean(rows, pair, values, free, sign)
    mean, weight, shift = _ball_mean(rows, pair, values, free, sign, slack, guess, enough, base)
    if mean >= floor_mean:
        return mean, weight, shift
    if rows.wide[pair] and slack < np.inf:  # what lacks to the frequencies falls like the root of the slack
        weight = lacking / (2.0 * slack)
    return floor_mean, -weight, shift


@compiled_inline
def _has_floors(rows: RegionRows, pair: int) -> bool:
    """Whether successors of a pair have a least probability of their own, assumed or by their bets."""
    return bool(rows.floors[pair] > 0.0 or rows.wide[pair])


@compiled_inline
def _floor(rows: RegionRows, pair: int, entry: int) -> float:
    """The least probability of an entry by itself."""
    return float(max(rows.floors[pair], rows.lows[entry]))


@compiled
def single_factors(rows: RegionRows) -> FloatArray:
    """The least probability of the only successor of a pair, [P]; MANY for a pair that has several, or another ball.

    Solvers look at each pair many times, and for most pairs this is all that they need to know of its ball.
    """
    factors = np.empty(len(rows.slack))
    for pair in range(len(factors)):
        factors[pair] = _single_factor(rows, pair)
    return factors


@compiled_part
def factors_of(rows: RegionRows, allowed: IntArray) -> FloatArray:
    """The same for the pairs that are allowed, [n, 2], and MANY for all others, [P]."""
    factors = np.full(len(rows.slack), MANY)
    for state in range(len(allowed)):
        for pair in range(allowed[state, 0], allowed[state, 1]):
            factors[pair] = _single_factor(rows, pair)
    return factors


@compiled_inline
def _single_factor(rows: RegionRows, pair: int) -> float:
    first = rows.row_offsets[pair]
    # With a single successor, Eq. 10 is z exp(-slack) - t (1 - exp(-slack)), which is greatest at the shift t = 0.
    has_one = rows.row_offsets[pair + 1] == first + 1 and rows.shares[first] > 0.0 and rows.rest[pair] == 0.0
    is_plain = not rows.closed[pair] and not _has_floors(rows, pair) and 0.0 < rows.slack[pair] < np.inf
    return math.exp(-rows.slack[pair]) if has_one and is_plain else MANY


@compiled_inline
def least_mean_by(
    rows: RegionRows,
    factors: FloatArray,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    guess: float,
    enough: float,
) -> tuple[float, float, float]:
    """`least_mean_from` with what `single_factors` has found, which gives the same numbers."""
    if factors[pair] == MANY:
        return least_mean_from(rows, pair, values, free, sign, rows.slack[pair], guess, enough)
    distance = _distance(rows, rows.row_offsets[pair], values, free, sign)
    mean = distance * factors[pair] if distance > enough else distance
    return mean, mean, 0.0


@compiled_inline
def lower_backup(rows: RegionRows, pair: int, values: FloatArray) -> tuple[float, float, float]:
    """The cost plus the least mean of the values under a pair, its derivative and the shift.

    The free value is that of the goal, zero. Where the goal is among the successors seen, no other could gain more.
    """
    mean, weight, shift = least_mean(rows, pair, values, 0.0, -1.0, rows.slack[pair])
    return rows.costs[pair] + mean, weight, shift


@compiled_part
def least_mean_near(
    rows: RegionRows, pair: int, values: FloatArray, slack: float, shift: float
) -> tuple[float, float, float]:
    """The least mean of the values over a ball with a slack, begun from a shift that was best for similar ones."""
    return least_mean_from(rows, pair, values, 0.0, -1.0, slack, shift, -1.0)


@compiled_inline
def quick_mean(rows: RegionRows, pair: int, values: FloatArray, shift: float) -> float:
    """What a shift proves of the least mean of the values, without a search; nothing if there is none."""
    if shift <= 0.0 or rows.slack[pair] == np.inf:
        return 0.0
    # Outcomes of which it is not known where they lead have distance 0, and add their share times ln t (Eq. 19).
    log_mean = rows.rest[pair] * math.log(shift)
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        share = rows.shares[entry]
        if share > 0.0:
            log_mean += share * math.log(values[rows.successors[entry]] + shift)
    return math.exp(log_mean - rows.slack[pair]) - shift


@compiled_inline
def _ball_mean(
    rows: RegionRows,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    slack: float,
    guess: float,
    enough: float,
    base: float,
) -> tuple[float, float, float]:
    """The least mean over the ball; mass may move to anything as far as `base`."""
    # Nothing is known of the row: all of its mass may be where the distance is least.
    if slack == np.inf:
        return base, 0.0, 0.0
    first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
    rest = rows.rest[pair]
    # The least probability of a single successor is exp(-slack).
    if end == first + 1 and rows.shares[first] > 0.0 and rest == 0.0:
        distance = _distance(rows, first, values, free, sign) - base
        weight = distance * math.exp(-slack) if base + distance > enough else distance
        return base + weight, weight, 0.0
    mean, square, least, most = 0.0, 0.0, np.inf, 0.0
    for entry in range(first, end):
        share = rows.shares[entry]
        if share > 0.0:
            distance = _distance(rows, entry, values, free, sign) - base
            mean += share * distance
            square += share * distance * distance
            least = min(least, distance)
            most = max(most, distance)
    if rest > 0.0:
        least = 0.0
    # The least mean is at most the mean by shares, and a caller has no use for a sharper number here.
    if base + mean <= enough:
        return base + mean, 0.0, guess
    if most <= NEGLIGIBLE:
        return base, 0.0, 0.0
    # Eq. 10 is concave in the shift, with the slope exp(log_mean - slack) inverse_mean - 1. Where that is not positive
    # at 0, the best shift is 0.
    if least > NEGLIGIBLE and guess <= 0.0:
        log_mean, inverse_mean, _ = _means(rows, pair, values, free, sign, base, 0.0)
        if log_mean + math.log(inverse_mean) <= slack:
            weight = math.exp(log_mean - slack)
            return base + weight, weight, 0.0
    start = guess
    if start <= 0.0:
        # The best shift is the root of log_mean + log(inverse_mean) = slack, which falls in the shift. Far from the
        # distances the left side is about variance / (2 (mean + shift)^2), which gives the first guess.
        variance = max(square - mean * mean, 0.0)
        start = max(math.sqrt(variance / (2.0 * slack)) - mean, 1e-3 * most) if slack > 0.0 else 1e9 * most
    may_be_none = guess > 0.0 and least > NEGLIGIBLE
    shift, log_mean = _best_shift(rows, pair, values, free, sign, slack, start, may_be_none, base)
    weight = math.exp(log_mean - slack)
    # An inexact shift may give less than 0, and no mean of distances is less.
    return base + max(weight - shift, 0.0), weight, shift


@compiled_inline
def _best_shift(
    rows: RegionRows,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    slack: float,
    start: float,
    may_be_none: bool,
    base: float,
) -> tuple[float, float]:
    """The root of log_mean + log(inverse_mean) = slack by Newton's method, or 0 if there may be none; and log_mean.

    Where nearly all of the share has distance 0, the root is too small for its square to be a number. Every shift gives
    a bound, so none is sought below LEAST_SHIFT.
    """
    shift = start
    for step in range(NEWTON_STEPS):
        log_mean, inverse_mean, square_mean = _means(rows, pair, values, free, sign, base, shift)
        # The logarithm of exp(log_mean - slack) inverse_mean, which is 1 where the slope of Eq. 10 vanishes.
        error = log_mean + math.log(inverse_mean) - slack
        slope = inverse_mean - square_mean / inverse_mean
        if abs(error) <= NEWTON_ACCURACY * slack or slope >= 0.0 or step == NEWTON_STEPS - 1:
            break
        better = shift - error / slope
        # The step left the half-line: the best shift is 0, or so small that it is approached by quartering.
        if better <= 0.0:
            if may_be_none:
                log_at_none, inverse_at_none, _ = _means(rows, pair, values, free, sign, base, 0.0)
                if log_at_none + math.log(inverse_at_none) <= slack:
                    return 0.0, log_at_none
            better = max(shift / 4.0, LEAST_SHIFT)
        if abs(better - shift) <= LEAST_MOVE * shift:
            break
        shift = better
    return shift, log_mean


@compiled_inline
def priced_mean(rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float) -> float:
    """The least of the mean of z = sign * (free - value) and of what the distance from the joint shares costs.

    With r the joint shares and c the price, every row p and every shift t > 0 have, by the least value of each term,

        sum of p z + c KL(r || p)  >=  c (1 + sum of r log((z + t) / c)) - t                               (Theorem 5)

    and it is greatest where the mean of 1 / (z + t) is 1 / c. Where the support is closed, the least z is taken off
    beforehand, as in `least_mean`.
    """
    price, first, end = rows.prices[pair], rows.row_offsets[pair], rows.row_offsets[pair + 1]
    base = np.inf if rows.closed[pair] else 0.0
    if rows.closed[pair]:
        for entry in range(first, end):
            base = min(base, _distance(rows, entry, values, free, sign))
    mean, nearest = 0.0, 0.0
    for entry in range(first, end):
        distance = _distance(rows, entry, values, free, sign) - base
        mean += rows.joint_shares[entry] * distance
        if distance <= 0.0:
            nearest += rows.joint_shares[entry]
    # The mean of 1 / (z + t) is at least 1 / (mean of z + t), and at least what the nearest alone have: the root is
    # not less, and Newton's method rises to it, because the function is convex and falls.
    shift = max(price - mean, nearest * price, LEAST_SHIFT)
    for _ in range(NEWTON_STEPS):
        inverse, square = 0.0, 0.0
        for entry in range(first, end):
            share = rows.joint_shares[entry]
            if share > 0.0:
                distance = _distance(rows, entry, values, free, sign) - base + shift
                inverse += share / distance
                square += share / (distance * distance)
        move = (inverse - 1.0 / price) / square
        if move <= LEAST_MOVE * shift:
            break
        shift += move
    taken, total = price - shift, 0.0  # with these the large terms cancel beforehand
    for entry in range(first, end):
        share = rows.joint_shares[entry]
        if share > 0.0:
            total += share * math.log1p((_distance(rows, entry, values, free, sign) - base - taken) / price)
    return float(base + taken + price * total)


@compiled_inline
def _known_mean(rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float) -> float:
    """The mean of the distances where the shares are the probabilities."""
    mean = 0.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        mean += rows.shares[entry] * _distance(rows, entry, values, free, sign)
    return mean


@compiled_inline
def _distance(rows: RegionRows, entry: int, values: FloatArray, free: float, sign: float) -> float:
    """How far the value of a successor is from the free one; 0 if it is beyond."""
    return float(max(sign * (free - values[rows.successors[entry]]), 0.0))


@compiled_inline
def _floor_mean(
    rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float
) -> tuple[float, float, float]:
    """The least distance that mass may move to, 0 unless the support is closed; and the least mean by floors alone.

    Third, what that mean lacks to the mean by frequencies.
    """
    least, total, kept, by_frequency = np.inf, 0.0, 0.0, 0.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        distance = _distance(rows, entry, values, free, sign)
        floor = _floor(rows, pair, entry)
        least = min(least, distance)
        total += floor * distance
        kept += floor
        by_frequency += rows.frequencies[entry] * distance
    base = least if rows.closed[pair] and least < np.inf else 0.0
    # Each successor keeps its floor, and what is left of the mass goes where the distance is least.
    mean = total + max(1.0 - kept, 0.0) * base
    return base, mean, max(by_frequency - mean, 0.0)


@compiled_inline
def _means(
    rows: RegionRows, pair: int, values: FloatArray, free: float, sign: float, base: float, shift: float
) -> tuple[float, float, float]:
    """The means, by shares, of log(d), 1 / d and 1 / d^2, where d = z - base + shift."""
    log_mean, inverse_mean, square_mean = 0.0, 0.0, 0.0
    rest = rows.rest[pair]
    if rest > 0.0:
        log_mean, inverse_mean, square_mean = rest * math.log(shift), rest / shift, rest / (shift * shift)
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        share = rows.shares[entry]
        if share > 0.0:
            distance = _distance(rows, entry, values, free, sign) - base + shift  # in this order: shifts may be tiny
            log_mean += share * math.log(distance)
            inverse_mean += share / distance
            square_mean += share / (distance * distance)
    return log_mean, inverse_mean, square_mean


@compiled_inline
def extreme_row(
    rows: RegionRows,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    weight: float,
    shift: float,
    row: FloatArray,
) -> None:
    """Writes the probabilities, [E], at which a least mean with this derivative and shift is attained."""
    first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
    if rows.slack[pair] == 0.0:
        for entry in range(first, end):
            row[entry] = rows.shares[entry]
        return
    base, nearest, least = 0.0, first, np.inf
    if rows.closed[pair]:
        for entry in range(first, end):
            distance = _distance(rows, entry, values, free, sign)
            if distance < least:
                base = least = distance
                nearest = entry
    total = 0.0
    for entry in range(first, end):
        distance = _distance(rows, entry, values, free, sign) - base + shift
        # Where Eq. 9 is an equality: p_y proportional to r_y / (z_y + t). What is missing to 1 is free, or at the
        # nearest.
        row[entry] = rows.shares[entry] * weight / distance if distance > 0.0 and rows.shares[entry] > 0.0 else 0.0
        # The floors gave the larger bound: see `least_mean_from`.
        if weight < 0.0 or (weight == 0.0 and _has_floors(rows, pair)):
            row[entry] = _floor(rows, pair, entry)
        total += row[entry]
    if rows.closed[pair] and end > first:
        row[nearest] += max(1.0 - total, 0.0)


@compiled_inline
def least_of_closed(rows: RegionRows, pair: int, values: FloatArray) -> float:
    """The least value of what was seen after a pair, if nothing else can follow it; 0 if something may."""
    first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
    if not (rows.closed[pair] or rows.slack[pair] == 0.0) or rows.rest[pair] > 0.0 or end == first:
        return 0.0
    least = values[rows.successors[first]]
    for entry in range(first + 1, end):
        least = min(least, values[rows.successors[entry]])
    return float(least)
