"""Compiled shortest paths over a confidence region: lower, upper and regret, for one goal.

All three need one thing of a pair: the least mean, over the region of its row, of distances z >= 0 from a *free*
value. The free value is what a successor that was never seen may have: the worst there is for an upper bound, the best
for a lower one. With r the shares and `slack` the radius of the ball, duality gives for every shift >= 0

    least mean of z  >=  exp(sum of r log(z + shift) - slack) - shift                                     (Eq. 10)

with equality at the best shift (docs/algorithms/certified.md). So an inexact shift costs sharpness, never truth.

States are positions: 0..n-1 are the known ones in the order of admission, the initial state is 0, and from n on come
the other states that were seen; these reset. A goal may be any of them, or one more: the *unseen* goal, which has the
position after the last. `values` has a place for each. Policies hold pairs, or RESET_PAIR. Every pair has a cost, one
where values are to count steps, and so has RESET.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled, compiled_inner
from axplore.types import RESET_PAIR, FloatArray, IntArray

NO_LIMIT: Final = np.inf
NEWTON_STEPS: Final = 40
NEWTON_ACCURACY: Final = 1e-6
"""The error of a shift, as a part of the slack. A bound loses its square, since it is greatest at the best shift."""

SAME: Final = 1e-12
"""Values nearer than this are taken as equal when an action is chosen."""

UNKNOWN_SHIFT: Final = -1.0

MANY: Final = -1.0
"""In place of the least probability of a single successor."""

BEYOND_LIMIT: Final = -1.0
"""In place of a residual: no policy stays below the limit."""

ENOUGH_CHANGE: Final = 0.03
"""A policy is evaluated until values change by this part of what its improvement changed."""

ENOUGH_ORDER: Final = 0.01
"""States are put in the order of their values again while these change by more than this."""

ESTIMATE_CHANGE: Final = 1e-7
"""Estimates are improved until no value changes by more than this."""

MOST_COST: Final = 1e12
"""Estimates are cut here."""

UNKNOWN_VALUE: Final = -1.0

NOT_MET: Final = -1

NEGLIGIBLE: Final = 1e-100
"""Distances up to this count as none: their squares might be zero."""


ANY_POLICY: Final[IntArray] = np.zeros(0, dtype=np.int64)
"""In place of a policy to follow."""


class Rows(NamedTuple):
    """The region and the counts in the form that kernels read.

    Attributes:
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the position that each entry leads to, [E].
        shares, slack: the ball around each row, [E] and [P].
        frequencies: how often each entry was met, as a part of the visits, [E].
        costs: of each pair, [P]; ones where values count steps.
        reset_cost: of RESET, in every state.
        closed: whether nothing but these successors can follow each pair, [P].
        floors: the least probability of each of the successors of each pair, [P].
        rest: the share of outcomes of which it is not known where they lead, [P]; it is missing among the shares of the
            entries. Their distance is 0.
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


@compiled_inner
def least_mean(
    rows: Rows, pair: int, values: FloatArray, free: float, sign: float, slack: float
) -> tuple[float, float, float]:
    """The least mean of z = sign * (free - value) over the ball, its derivative by the slack, and the shift.

    A value beyond the free one counts as the free one, so that z >= 0; the derivative is given without its minus sign.

    Where the support is closed, no mass is free: it may move to the successor of least z only, which is taken off
    beforehand. Where each successor has a floor, the mean is also at least that of a row that gives each its floor, and
    what is left to the one of least z. If this is the larger bound, minus the derivative is returned.
    """
    return _least_mean_from(rows, pair, values, free, sign, slack, UNKNOWN_SHIFT, -1.0)


@compiled_inner
def _least_mean_from(
    rows: Rows, pair: int, values: FloatArray, free: float, sign: float, slack: float, guess: float, enough: float
) -> tuple[float, float, float]:
    """`least_mean`, begun from a shift that was best for similar values, if there is one.

    The mean by shares is never less than the least mean. Where it is at most `enough`, it is returned in its place,
    without any search.
    """
    if slack == 0.0:  # the row is known
        return _known_mean(rows, pair, values, free, sign), 0.0, 0.0
    if not rows.closed[pair] and rows.floors[pair] == 0.0:
        return _ball_mean(rows, pair, values, free, sign, slack, guess, enough, 0.0)
    base, floor_mean = _floor_mean(rows, pair, values, free, sign)
    mean, weight, shift = _ball_mean(rows, pair, values, free, sign, slack, guess, enough, base)
    return (mean, weight, shift) if mean >= floor_mean else (floor_mean, -weight, shift)


@compiled
def single_factors(rows: Rows) -> FloatArray:
    """The least probability of the only successor of a pair, [P]; MANY for a pair that has several, or another ball.

    Solvers look at each pair many times, and for most pairs this is all that they need to know of its ball.
    """
    factors = np.empty(len(rows.slack))
    for pair in range(len(factors)):
        factors[pair] = _single_factor(rows, pair)
    return factors


@compiled
def _factors_of(rows: Rows, allowed: IntArray) -> FloatArray:
    """The same for the pairs that are allowed, [n, 2], and MANY for all others, [P]."""
    factors = np.full(len(rows.slack), MANY)
    for state in range(len(allowed)):
        for pair in range(allowed[state, 0], allowed[state, 1]):
            factors[pair] = _single_factor(rows, pair)
    return factors


@compiled_inner
def _single_factor(rows: Rows, pair: int) -> float:
    first = rows.row_offsets[pair]
    has_one = rows.row_offsets[pair + 1] == first + 1 and rows.shares[first] > 0.0 and rows.rest[pair] == 0.0
    is_plain = not rows.closed[pair] and rows.floors[pair] == 0.0 and 0.0 < rows.slack[pair] < np.inf
    return math.exp(-rows.slack[pair]) if has_one and is_plain else MANY


@compiled_inner
def _least_mean_by(
    rows: Rows,
    factors: FloatArray,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    guess: float,
    enough: float,
) -> tuple[float, float, float]:
    """`_least_mean_from` with what `single_factors` has found, which gives the same numbers."""
    if factors[pair] == MANY:
        return _least_mean_from(rows, pair, values, free, sign, rows.slack[pair], guess, enough)
    distance = _distance(rows, rows.row_offsets[pair], values, free, sign)
    mean = distance * factors[pair] if distance > enough else distance
    return mean, mean, 0.0


@compiled_inner
def _ball_mean(
    rows: Rows,
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
    if base + mean <= enough:
        return base + mean, 0.0, guess
    if most <= NEGLIGIBLE:
        return base, 0.0, 0.0
    if least > NEGLIGIBLE and guess <= 0.0:
        log_mean, inverse_mean, _ = _means(rows, pair, values, free, sign, -base)
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
    return base + max(weight - shift, 0.0), weight, shift


@compiled_inner
def _best_shift(
    rows: Rows,
    pair: int,
    values: FloatArray,
    free: float,
    sign: float,
    slack: float,
    start: float,
    may_be_none: bool,
    base: float,
) -> tuple[float, float]:
    """The root of log_mean + log(inverse_mean) = slack by Newton's method, or 0 if there may be none; and log_mean."""
    shift = start
    for step in range(NEWTON_STEPS):
        log_mean, inverse_mean, square_mean = _means(rows, pair, values, free, sign, shift - base)
        error = log_mean + math.log(inverse_mean) - slack
        slope = inverse_mean - square_mean / inverse_mean
        if abs(error) <= NEWTON_ACCURACY * slack or slope >= 0.0 or step == NEWTON_STEPS - 1:
            break
        better = shift - error / slope
        if better <= 0.0:
            if may_be_none:
                log_at_none, inverse_at_none, _ = _means(rows, pair, values, free, sign, -base)
                if log_at_none + math.log(inverse_at_none) <= slack:
                    return 0.0, log_at_none
            better = shift / 4.0
        if abs(better - shift) <= 1e-10 * shift:
            break
        shift = better
    return shift, log_mean


@compiled_inner
def _known_mean(rows: Rows, pair: int, values: FloatArray, free: float, sign: float) -> float:
    """The mean of the distances where the shares are the probabilities."""
    mean = 0.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        mean += rows.shares[entry] * _distance(rows, entry, values, free, sign)
    return mean


@compiled_inner
def _distance(rows: Rows, entry: int, values: FloatArray, free: float, sign: float) -> float:
    """How far the value of a successor is from the free one; 0 if it is beyond."""
    return float(max(sign * (free - values[rows.successors[entry]]), 0.0))


@compiled_inner
def _floor_mean(rows: Rows, pair: int, values: FloatArray, free: float, sign: float) -> tuple[float, float]:
    """The least distance that mass may move to, 0 unless the support is closed; and the least mean by floors alone."""
    least, total, kinds = np.inf, 0.0, 0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        distance = _distance(rows, entry, values, free, sign)
        least = min(least, distance)
        total += distance
        kinds += 1
    base = least if rows.closed[pair] and kinds > 0 else 0.0
    floor = rows.floors[pair]
    return base, floor * total + max(1.0 - kinds * floor, 0.0) * base


@compiled_inner
def _means(
    rows: Rows, pair: int, values: FloatArray, free: float, sign: float, shift: float
) -> tuple[float, float, float]:
    """The means, by shares, of log(z + shift), 1 / (z + shift) and 1 / (z + shift)^2."""
    log_mean, inverse_mean, square_mean = 0.0, 0.0, 0.0
    rest = rows.rest[pair]
    if rest > 0.0:
        log_mean, inverse_mean, square_mean = rest * math.log(shift), rest / shift, rest / (shift * shift)
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        share = rows.shares[entry]
        if share > 0.0:
            distance = _distance(rows, entry, values, free, sign) + shift
            if distance <= 0.0:
                return -np.inf, np.inf, np.inf
            log_mean += share * math.log(distance)
            inverse_mean += share / distance
            square_mean += share / (distance * distance)
    return log_mean, inverse_mean, square_mean


@compiled_inner
def extreme_row(
    rows: Rows, pair: int, values: FloatArray, free: float, sign: float, weight: float, shift: float, row: FloatArray
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
        row[entry] = rows.shares[entry] * weight / distance if distance > 0.0 and rows.shares[entry] > 0.0 else 0.0
        if weight < 0.0 or (weight == 0.0 and rows.floors[pair] > 0.0):
            row[entry] = rows.floors[pair]
        total += row[entry]
    if rows.closed[pair] and end > first:
        row[nearest] += max(1.0 - total, 0.0)


@compiled_inner
def spread_values(rows: Rows, values: FloatArray, n_known: int, goal: int) -> None:
    """Gives the states outside their value, which resets, and the goal its own."""
    values[n_known:] = rows.reset_cost + values[0]
    if goal < len(values):
        values[goal] = 0.0


@compiled_inner
def _in_turn(place: int, n_known: int, turn: int) -> int:
    """The state at a place of a sweep: every other one goes backwards.

    States stand in the order of admission, so values flow forwards from near goals and backwards from far ones.
    """
    return place if turn % 2 else n_known - 1 - place


class Predecessors(NamedTuple):
    """The known states from which a pair was seen to lead to each position.

    Attributes:
        offsets: the first of each position, and the end of the last one, [n + others + 1].
        states: once for each entry, [E].
    """

    offsets: IntArray
    states: IntArray


@compiled
def predecessors_of(rows: Rows, n_seen: int) -> Predecessors:
    offsets = np.zeros(n_seen + 2, np.int64)
    for successor in rows.successors:
        offsets[successor + 2] += 1
    offsets = np.cumsum(offsets)
    states = np.empty(len(rows.successors), np.int64)
    for state in range(len(rows.state_pairs) - 1):
        first, end = rows.row_offsets[rows.state_pairs[state]], rows.row_offsets[rows.state_pairs[state + 1]]
        for successor in rows.successors[first:end]:
            states[offsets[successor + 1]] = state
            offsets[successor + 1] += 1
    return Predecessors(offsets[:-1], states)


@compiled
def _leading_to(predecessors: Predecessors, goal: int, n_allowed: int, n_known: int) -> IntArray:
    """The first `n_allowed` known states from which some pairs may lead to the goal, the nearest first."""
    order = np.empty(n_allowed, np.int64)
    is_met = np.zeros(n_known + 1, np.bool_)
    is_met[min(goal, n_known)] = True
    n_met, here, looked_at = 0, goal, 0
    while True:
        for state in predecessors.states[predecessors.offsets[here] : predecessors.offsets[here + 1]]:
            if state < n_allowed and not is_met[state]:
                is_met[state] = True
                order[n_met] = state
                n_met += 1
        if looked_at == n_met:
            return order[:n_met]
        here = order[looked_at]
        looked_at += 1


@compiled
def empirical_values(
    rows: Rows,
    predecessors: Predecessors,
    goal: int,
    n_allowed: int,
    values: FloatArray,
    policy: IntArray,
    limit: float,
) -> bool:
    """The least costs if the frequencies were the probabilities; returns whether that of the start is within the limit.

    A pair that was never drawn is left out. Policies are improved and evaluated in turn, from a first one that goes
    nearer to the goal whenever it can.

    Args:
        rows: counts.
        predecessors: from which states each position was met.
        goal: a position.
        n_allowed: later states only reset.
        values: the result, [n + others].
        policy: what attains it, [n].
        limit: of the value of the initial state.
    """
    n_known = len(policy)
    order = _leading_to(predecessors, goal, n_allowed, n_known)
    policy[:] = RESET_PAIR
    values[:] = UNKNOWN_VALUE
    if goal < len(values):
        values[goal] = 0.0
    for state in order:
        values[state], policy[state] = _going_nearer(rows, state, values)
    if goal != 0 and values[0] == UNKNOWN_VALUE:
        return False
    chance = np.ones(n_known)
    chance[order] = 0.0
    resetting = np.flatnonzero(values[:n_known] == UNKNOWN_VALUE)
    change = 0.0
    for _ in range(1000):
        values[resetting] = rows.reset_cost + values[0]
        _evaluate(
            rows, goal, order, policy, rows.frequencies, False, 10, change, ESTIMATE_CHANGE, MOST_COST, values, chance
        )
        change = 0.0
        for state in order:
            value, policy[state] = _best_by_frequency(rows, state, values)
            change = max(change, abs(value - values[state]))
            values[state] = value
        if change <= ESTIMATE_CHANGE:
            values[resetting] = rows.reset_cost + values[0]
            spread_values(rows, values, n_known, goal)
            return bool(values[0] <= limit)
    return False


@compiled
def estimated_steps(rows: Rows, predecessors: Predecessors, n_seen: int, limit: float) -> FloatArray:
    """The empirical value of the initial state for each other state seen, [others]; infinite beyond the limit."""
    n_known = len(rows.state_pairs) - 1
    values, policy = np.empty(n_seen), np.empty(n_known, np.int64)
    steps = np.full(n_seen - n_known, np.inf)
    for place in range(len(steps)):
        if empirical_values(rows, predecessors, n_known + place, n_known, values, policy, limit):
            steps[place] = values[0]
    return steps


@compiled
def least_upper_bounds(rows: Rows, n_seen: int) -> FloatArray:
    """What no upper bound of the steps to each position falls below, [n + others]; infinite if none leads there.

    Whatever is known of all other pairs, a journey takes at least as many steps as the shortest way that was seen, and
    in some model of the region its last pair leads to the goal as often as was observed; a single successor, only with
    the least probability of its ball, and the journey starts anew otherwise.
    """
    n_known = len(rows.state_pairs) - 1
    only_single, likeliest, nearest = np.full(n_seen, np.inf), np.zeros(n_seen), np.full(n_seen, np.inf)
    has_other = np.zeros(n_seen, np.bool_)
    hops = np.full(n_seen, NOT_MET)
    queue = np.empty(n_known, np.int64)
    queue[0], hops[0], n_queued, looked_at = 0, 0, 1, 0
    while looked_at < n_queued:
        state = queue[looked_at]
        looked_at += 1
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
            is_plain = not rows.closed[pair] and rows.floors[pair] == 0.0 and rows.rest[pair] == 0.0
            for entry in range(first, end):
                after = rows.successors[entry]
                if hops[after] == NOT_MET:
                    hops[after] = hops[state] + 1
                    if after < n_known:
                        queue[n_queued] = after
                        n_queued += 1
                chance = rows.frequencies[entry] if is_plain else 1.0
                if is_plain and end == first + 1:
                    chance = math.exp(-rows.slack[pair])
                    if chance > 0.0:
                        only_single[after] = min(only_single[after], (hops[state] + 2.0 - chance) / chance)
                else:
                    has_other[after] = True
                nearest[after] = min(nearest[after], hops[state])
                likeliest[after] = max(likeliest[after], chance)
    # Where a pair has other outcomes, one attempt after the other may be made without starting anew.
    least = np.where(has_other, nearest + 1.0 / np.maximum(likeliest, NEGLIGIBLE), only_single)
    least[0] = 0.0
    return least


@compiled_inner
def _going_nearer(rows: Rows, state: int, values: FloatArray) -> tuple[float, int]:
    """The best pair if outcomes of unknown value led back to the state, and its value."""
    best, choice = np.inf, RESET_PAIR
    for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
        value, known = rows.costs[pair], 0.0
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            if values[rows.successors[entry]] != UNKNOWN_VALUE:
                value += rows.frequencies[entry] * values[rows.successors[entry]]
                known += rows.frequencies[entry]
        if known > 0.0 and value < best * known - SAME:
            best, choice = value / known, pair
    return best, choice


@compiled_inner
def _best_by_frequency(rows: Rows, state: int, values: FloatArray) -> tuple[float, int]:
    """The least value of a pair, or of RESET, if frequencies were probabilities, and the choice that has it."""
    best, choice = np.inf, RESET_PAIR
    for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
        first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
        if first == end:
            continue
        value = rows.costs[pair]
        for entry in range(first, end):
            value += rows.frequencies[entry] * values[rows.successors[entry]]
        if value < best - SAME:
            best, choice = value, pair
    if choice == RESET_PAIR or (state > 0 and rows.reset_cost + values[0] < best - SAME):
        best, choice = rows.reset_cost + values[0], RESET_PAIR
    return best, choice


@compiled
def grown_balls(
    row_offsets: IntArray, shares: FloatArray, slack: FloatArray, frequencies: FloatArray, growth: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shares, [E], and slacks, [P], if the visits of each pair had grown by a factor, whose inverse is given, [P]."""
    new_shares, new_slack = np.empty_like(shares), np.empty_like(slack)
    for pair in range(len(slack)):
        new_slack[pair] = (slack[pair] if slack[pair] < np.inf else 1.0) * growth[pair]
        for entry in range(row_offsets[pair], row_offsets[pair + 1]):
            new_shares[entry] = frequencies[entry] + (shares[entry] - frequencies[entry]) * growth[pair]
    return new_shares, new_slack


@compiled
def allowed_pairs(state_pairs: IntArray, n_allowed: int, follow: IntArray) -> IntArray:
    """The pairs that may be played in each known state, [n, 2]: from, and up to but without.

    Args:
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        n_allowed: later states only reset.
        follow: the policy to follow, [n], or ANY_POLICY.
    """
    allowed = np.zeros((len(state_pairs) - 1, 2), np.int64)
    for state in range(n_allowed):
        if len(follow) == 0:
            allowed[state, 0], allowed[state, 1] = state_pairs[state], state_pairs[state + 1]
        elif follow[state] != RESET_PAIR:
            allowed[state, 0], allowed[state, 1] = follow[state], follow[state] + 1
    return allowed


@compiled
def states_met(rows: Rows, goal: int, policy: IntArray) -> npt.NDArray[np.bool_]:
    """Whether a policy leads from the initial state to each known one, as far as was seen, [n]; it ends at the goal."""
    n_known = len(policy)
    queue, is_met = np.zeros(n_known, np.int64), np.zeros(n_known, np.bool_)
    is_met[0], n_met, looked_at = True, 1, 0
    while looked_at < n_met:
        state = queue[looked_at]
        looked_at += 1
        pair = policy[state]
        if state == goal or pair == RESET_PAIR:
            continue
        for after in rows.successors[rows.row_offsets[pair] : rows.row_offsets[pair + 1]]:
            if after < n_known and not is_met[after]:
                is_met[after] = True
                queue[n_met] = after
                n_met += 1
    return is_met


@compiled
def upper_bound(
    rows: Rows,
    goal: int,
    allowed: IntArray,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    inner: int,
    limit: float,
    tolerance: float,
) -> float:
    """Robust value iteration: least over actions, greatest over the region. Returns the residual of the result.

    With residual r < c, the least cost, `values / (1 - r/c)` is at least the cost plus the greatest mean of itself
    under `policy`, and so bounds the expected cost of that policy from above in every model of the region (Eq. 12). An
    infinite residual means that nothing was proven, BEYOND_LIMIT that no policy stays below the limit.

    Args:
        rows: region and counts.
        goal: a position.
        allowed: the pairs that may be played, [n, 2]: from, and up to but without; RESET always may.
        values: start and result, [n + others]; for plain value iteration the start must be below the result.
        policy: what attains it, [n].
        shifts: the best shift of each pair for similar values, or UNKNOWN_SHIFT, and for the result, [P].
        inner: sweeps under the current policy and model between two improvements; 0 for plain value iteration.
        limit: give up when the value of the initial state gets there.
        tolerance: the residual to reach.
    """
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    chance, n_playing = np.zeros(n_known), 0
    keys = values[:n_known].copy()
    for state in range(n_known):
        if allowed[state, 0] < allowed[state, 1]:
            n_playing += 1
        else:
            keys[state], chance[state] = np.inf, 1.0
    by_value = np.argsort(keys)
    order, resetting = by_value[:n_playing], by_value[n_playing:]
    factors = _factors_of(rows, allowed)
    for turn in range(200 if inner else 3000):
        for state in resetting:
            values[state] = rows.reset_cost + values[0]
        spread_values(rows, values, n_known, goal)
        rise, fall = 0.0, 0.0
        for state in order:
            if state != goal:
                value = _improve_upper(rows, factors, state, allowed, values, policy, row, shifts)
                rise = max(rise, value - values[state])
                fall = max(fall, values[state] - value)
                values[state] = value
        if values[0] >= limit and fall <= tolerance:
            return BEYOND_LIMIT  # the operator is monotone: from values that it raises it goes up to its fixed point
        if max(rise, fall) <= tolerance:  # both: sweeps under an early policy may have gone too high
            residual = _upper_residual(rows, factors, goal, values, policy, shifts)
            if residual <= tolerance:
                return residual
        sweeps = _sweeps_in(turn, inner)
        if sweeps:
            change = max(rise, fall)
            _evaluate(rows, goal, order, policy, row, True, sweeps, change, tolerance, 2.0 * limit, values, chance)
    return np.inf


@compiled_inner
def _sweeps_in(turn: int, inner: int) -> int:
    """Fewer sweeps in later turns: policies and worst rows that are evaluated exactly may go in circles."""
    return inner if turn < 12 else min(inner, 1) if turn < 24 else 0


@compiled
def _evaluate(
    rows: Rows,
    goal: int,
    order: IntArray,
    policy: IntArray,
    row: FloatArray,
    rest_resets: bool,
    sweeps: int,
    change_before: float,
    tolerance: float,
    limit: float,
    values: FloatArray,
    chance: FloatArray,
) -> None:
    """Sweeps under a fixed policy and the probabilities in `row` towards the values of this policy.

    The value of a state is `own` + `chance` times that of the initial state, where `chance` is how likely the journey
    starts anew before it gets to the goal. Since both are swept, each in the order of the distance from the goal, the
    value of the initial state follows from its own equation, however often the journey starts anew.

    Args:
        rows: region and counts.
        goal: a position.
        order: the known states, those near the goal first, [n].
        policy: a pair, or RESET_PAIR, for each known state, [n].
        row: the probabilities, [E].
        rest_resets: whether the rest of a row is followed by RESET; else it is at the goal.
        sweeps: at most so many.
        change_before: by which values changed when the policy was improved; a small part of it is accurate enough.
        tolerance: the residual to reach in the end.
        limit: values are cut at it.
        values: start and result, [n + others].
        chance: start and result, [n].
    """
    n_known = len(policy)
    start = values[0]
    own = values[:n_known] - chance * start
    for _ in range(sweeps):
        change = 0.0
        for state in order:
            if state == goal:
                continue
            steps, again = _evaluated(rows, goal, policy[state], row, rest_resets, own, chance)
            change = max(change, abs(steps - own[state] + (again - chance[state]) * start))
            own[state], chance[state] = steps, again
        if goal != 0:
            before, ends = start, 1.0 - chance[0]
            start = own[0] / ends if own[0] < ends * limit else limit
            change = max(change, abs(start - before))
        if change <= max(0.3 * tolerance, ENOUGH_CHANGE * change_before):
            break
    for state in range(n_known):
        if state != goal:
            values[state] = min(own[state] + chance[state] * start, limit)
    spread_values(rows, values, n_known, goal)


@compiled_inner
def _evaluated(
    rows: Rows, goal: int, pair: int, row: FloatArray, rest_resets: bool, own: FloatArray, chance: FloatArray
) -> tuple[float, float]:
    """The steps and the chance to start anew of a state in which a pair is played, or RESET."""
    if pair == RESET_PAIR:
        return rows.reset_cost, 1.0
    steps, again, rest = rows.costs[pair], 0.0, 1.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        successor, probability = rows.successors[entry], row[entry]
        rest -= probability
        if successor == goal:
            continue
        if 0 < successor < len(own):
            steps += probability * own[successor]
            again += probability * chance[successor]
        else:
            steps += probability * (rows.reset_cost if successor > 0 else 0.0)
            again += probability
    if rest_resets and rest > 0.0:
        steps += rest * rows.reset_cost
        again += rest
    return steps, again


@compiled_inner
def _improve_upper(
    rows: Rows,
    factors: FloatArray,
    state: int,
    allowed: IntArray,
    values: FloatArray,
    policy: IntArray,
    row: FloatArray,
    shifts: FloatArray,
) -> float:
    """The robust value of the best action, which is written to the policy and its extreme row to `row`.

    The action that was best before comes first: most of the others need only a look at their plain mean then.
    """
    free = rows.reset_cost + values[0]
    best, choice = np.inf, RESET_PAIR
    first, end = allowed[state, 0], allowed[state, 1]
    before = policy[state] if first <= policy[state] < end else first
    for turn in range(end - first):
        pair = before if turn == 0 else first + turn - (first + turn <= before)
        enough = rows.costs[pair] + free - best + SAME
        mean, weight, shift = _least_mean_by(
            rows, factors, pair, values, free, 1.0, shifts[pair], enough if best < np.inf else -1.0
        )
        shifts[pair] = shift
        value = rows.costs[pair] + free - mean
        if value < best - SAME:
            best, choice = value, pair
            extreme_row(rows, pair, values, free, 1.0, weight, shift, row)
    if choice == RESET_PAIR or (state > 0 and free < best):
        best, choice = free, RESET_PAIR
    policy[state] = choice
    return best


@compiled_inner
def _upper_residual(
    rows: Rows, factors: FloatArray, goal: int, values: FloatArray, policy: IntArray, shifts: FloatArray
) -> float:
    """By how much the cost plus the greatest mean under the policy exceeds the values, at most."""
    spread_values(rows, values, len(policy), goal)
    free = rows.reset_cost + values[0]
    for state in range(len(policy)):  # so that the free value is the greatest
        values[state] = min(values[state], free)
    residual = 0.0
    for state in range(len(policy)):
        pair = policy[state]
        if state != goal and pair != RESET_PAIR:
            mean, _, _ = _least_mean_by(rows, factors, pair, values, free, 1.0, shifts[pair], -1.0)
            residual = max(residual, rows.costs[pair] + free - mean - values[state])
        elif state != goal:
            residual = max(residual, free - values[state])
    return residual


@compiled
def lower_bound(
    rows: Rows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    inner: int,
    limit: float,
    tolerance: float,
) -> float:
    """Optimistic value iteration: least over actions and over the region. Returns the residual of the result.

    With residual r and the least cost c, `values / (1 + r/c)` is at most the cost plus the least mean of itself under
    every action, and so bounds the expected cost of every policy from below in every model of the region (Eq. 13).

    Args:
        rows: region and counts.
        goal: a position, or the one after the last for a state that was never seen.
        values: start and result, [n + others]; cut at the limit.
        policy: what attains it, [n].
        shifts: the best shift of each pair for similar values, or UNKNOWN_SHIFT, and for the result, [P].
        inner: sweeps under the current policy and model between two improvements; 0 for plain value iteration.
        limit: values are not followed beyond it.
        tolerance: the residual to reach.
    """
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    chance = np.zeros(n_known)
    order = np.argsort(values[:n_known])
    factors = single_factors(rows)
    for turn in range(200 if inner else 3000):
        spread_values(rows, values, n_known, goal)
        change = 0.0
        for state in order:
            if state != goal:
                value = min(_improve_lower(rows, factors, state, values, policy, row, shifts), limit)
                change = max(change, abs(value - values[state]))
                values[state] = value
        if change <= tolerance:
            return lower_residual(rows, factors, goal, values, n_known, shifts)
        if inner:
            if change > ENOUGH_ORDER and turn % 2 == 0:
                order = np.argsort(values[:n_known])
            _evaluate(rows, goal, order, policy, row, False, inner, change, tolerance, limit, values, chance)
    return np.inf


@compiled_inner
def lower_backup(rows: Rows, pair: int, values: FloatArray) -> tuple[float, float, float]:
    """The cost plus the least mean of the values under a pair, its derivative and the shift.

    The free value is that of the goal, zero. Where the goal is among the successors seen, no other could gain more.
    """
    mean, weight, shift = least_mean(rows, pair, values, 0.0, -1.0, rows.slack[pair])
    return rows.costs[pair] + mean, weight, shift


@compiled_inner
def _improve_lower(
    rows: Rows,
    factors: FloatArray,
    state: int,
    values: FloatArray,
    policy: IntArray,
    row: FloatArray,
    shifts: FloatArray,
) -> float:
    """The optimistic value of the best action, which is written to the policy and its extreme row to `row`.

    Any shift bounds a least mean from below (Eq. 10). The one that was best before rules out most actions at once.
    """
    best, choice = np.inf, RESET_PAIR
    first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
    before = policy[state] if first <= policy[state] < end else first
    for turn in range(end - first):
        pair = before if turn == 0 else first + turn - (first + turn <= before)
        if best < np.inf and rows.costs[pair] + _quick_mean(rows, pair, values, shifts[pair]) >= best - SAME:
            continue
        mean, weight, shift = _least_mean_by(rows, factors, pair, values, 0.0, -1.0, shifts[pair], -1.0)
        shifts[pair] = shift
        value = rows.costs[pair] + mean
        if value < best - SAME:
            best, choice = value, pair
            extreme_row(rows, pair, values, 0.0, -1.0, weight, shift, row)
    if choice == RESET_PAIR or (state > 0 and rows.reset_cost + values[0] < best):
        best, choice = rows.reset_cost + values[0], RESET_PAIR
    policy[state] = choice
    return best


@compiled_inner
def _quick_mean(rows: Rows, pair: int, values: FloatArray, shift: float) -> float:
    """What a shift proves of the least mean of the values, without a search; nothing if there is none."""
    if shift <= 0.0 or rows.slack[pair] == np.inf:
        return 0.0
    log_mean = rows.rest[pair] * math.log(shift)
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        share = rows.shares[entry]
        if share > 0.0:
            log_mean += share * math.log(values[rows.successors[entry]] + shift)
    return math.exp(log_mean - rows.slack[pair]) - shift


@compiled_inner
def lower_residual(
    rows: Rows, factors: FloatArray, goal: int, values: FloatArray, n_known: int, shifts: FloatArray
) -> float:
    """By how much the values exceed the cost plus the least mean of themselves, at most."""
    spread_values(rows, values, n_known, goal)
    residual = 0.0
    for state in range(n_known):
        if state != goal:
            best = rows.reset_cost + values[0] if state > 0 or rows.state_pairs[1] == 0 else np.inf
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                best = min(best, _lower_backup_below(rows, factors, pair, values, shifts[pair], best))
            residual = max(residual, values[state] - best)
    return residual


@compiled_inner
def _lower_backup_below(
    rows: Rows, factors: FloatArray, pair: int, values: FloatArray, shift: float, best: float
) -> float:
    """`lower_backup` begun from a shift; infinite where that shift proves the backup to be no less than the best."""
    if best < np.inf and rows.costs[pair] + _quick_mean(rows, pair, values, shift) >= best:
        return np.inf
    mean, _, _ = _least_mean_by(rows, factors, pair, values, 0.0, -1.0, shift, -1.0)
    return float(rows.costs[pair] + mean)


@compiled
def local_regrets(
    rows: Rows,
    goal: int,
    upper: FloatArray,
    lower: FloatArray,
    policy: IntArray,
    rivals: IntArray,
    local_regret: FloatArray,
    shifts: FloatArray,
) -> None:
    """Writes, for each state, how much the policy can lose there if another action is the best, [n] (Eq. 15).

    This is the upper value less the least lower value of the other actions, or zero. `rivals` names that action.
    `shifts` are the best ones for the lower values, or unknown, [P].
    """
    n_known = len(policy)
    factors = single_factors(rows)
    for state in range(n_known):
        least, rival = np.inf, RESET_PAIR
        if policy[state] != RESET_PAIR and state > 0:
            least = rows.reset_cost + lower[0]
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            if pair != policy[state]:
                value = _lower_backup_below(rows, factors, pair, lower, shifts[pair], least)
                if value < least:
                    least, rival = value, pair
        local_regret[state] = max(upper[state] - least, 0.0) if state != goal else 0.0
        rivals[state] = rival


@compiled
def regret_bound(rows: Rows, goal: int, policy: IntArray, local_regret: FloatArray, regret: FloatArray) -> None:
    """Writes a bound of what the policy loses against the best one, for each position, [n + others] (Eq. 16).

    The fixed point of regret = max(doubt, greatest mean of regret under the policy) is approached from above, where
    every iterate is a bound.
    """
    n_known = len(policy)
    greatest = local_regret.max()
    regret[:] = greatest
    regret[goal] = 0.0
    shifts = np.full(n_known, UNKNOWN_SHIFT)
    factors = single_factors(rows)
    for turn in range(300):
        change = 0.0
        greatest = regret.max()
        for place in range(n_known):
            state = _in_turn(place, n_known, turn)
            if state == goal:
                continue
            pair = policy[state]
            value = regret[0]
            if pair != RESET_PAIR:
                mean, _, shift = _least_mean_by(rows, factors, pair, regret, greatest, 1.0, shifts[state], -1.0)
                shifts[state] = shift
                value = greatest - mean
            value = max(value, local_regret[state])
            if value < regret[state]:
                change = max(change, regret[state] - value)
                regret[state] = value
        for other in range(n_known, len(regret)):
            if other != goal:
                regret[other] = regret[0]
        if change <= 1e-7:
            return
