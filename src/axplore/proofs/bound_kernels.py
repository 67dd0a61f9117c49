"""Compiled shortest paths over a confidence region: lower, upper and regret bounds, for one goal.

Every bound is a vector of values with a residual: by how much its Bellman inequality fails at most. How the vector was
found does not matter (docs/algorithms/certified.md, section 2). `row_kernels` has the backup of a single pair.

Indices of states are those of `row_kernels`. A goal may be any of them, or one more: the *unseen* goal, which has the
index after the last. `values` has an entry for each. Policies hold pairs, or RESET_PAIR. Every pair has a cost, one
where values are to count steps, and so has RESET.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_inner, compiled_part
from axplore.proofs.row_kernels import (
    MANY,
    UNKNOWN_SHIFT,
    RegionRows,
    extreme_row,
    factors_of,
    least_mean_by,
    quick_mean,
    single_factors,
)
from axplore.proofs.sort_kernels import ascending
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray

SAME: Final = 1e-12
"""Values nearer than this are taken as equal when an action is chosen."""

BEYOND_LIMIT: Final = -1.0
"""In place of a residual: no policy stays below the limit."""

MOST_TURNS: Final = 200
"""Policy iteration that takes more improvements is given up: it may go in circles."""

MOST_SWEEPS: Final = 3000
"""Plain value iteration that takes more sweeps is given up; it always gets nearer, but may be slow."""

MOST_REGRET_SWEEPS: Final = 300
LEAST_REGRET_CHANGE: Final = 1e-7
"""Regret is lowered by at most this number of sweeps, and while one of them lowers it by more than this."""

NEGLIGIBLE_REGRET_CHANGE: Final = 1e-10
"""What follows is not looked at again where regret is lowered by no more than this."""

ENOUGH_CHANGE: Final = 0.03
"""A policy is evaluated until values change by this part of what its improvement changed."""

ENOUGH_ORDER: Final = 0.01
"""States are put in the order of their values again while these change by more than this."""

ANY_POLICY: Final[IntArray] = np.zeros(0, dtype=np.int64)
"""In place of a policy to follow."""


@compiled_inline
def spread_values(rows: RegionRows, values: FloatArray, n_known: int, goal: int) -> None:
    """Gives the states outside their value, which resets, and the goal its own."""
    for other in range(n_known, len(values)):
        values[other] = rows.reset_cost + values[0]
    if goal < len(values):
        values[goal] = 0.0


def allowed_pairs(state_pairs: IntArray, n_allowed: int, follow: IntArray) -> IntArray:
    """The pairs that may be played in each known state, [n, 2]: half-open ranges.

    Args:
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        n_allowed: later states only reset.
        follow: the policy to follow, [n], or ANY_POLICY.
    """
    allowed = np.zeros((len(state_pairs) - 1, 2), np.int64)
    if len(follow) == 0:
        allowed[:n_allowed, 0], allowed[:n_allowed, 1] = state_pairs[:n_allowed], state_pairs[1 : n_allowed + 1]
    else:
        states = np.flatnonzero(follow[:n_allowed] != RESET_PAIR)
        allowed[states, 0], allowed[states, 1] = follow[states], follow[states] + 1
    return allowed


@compiled
def met_by(row_offsets: IntArray, successors: IntArray, goal: int, policy: IntArray) -> BoolArray:
    """Which known states a policy meets from the initial one on before it gets to the goal, as far as was seen, [n]."""
    met, ahead = np.zeros(len(policy), np.bool_), np.zeros(len(policy), np.int64)
    met[0], n_ahead = True, 1
    while n_ahead:
        n_ahead -= 1
        state = ahead[n_ahead]
        pair = policy[state]
        if state == goal or pair == RESET_PAIR:
            continue
        for entry in range(row_offsets[pair], row_offsets[pair + 1]):
            successor = successors[entry]
            if successor < len(policy) and not met[successor]:
                met[successor] = True
                ahead[n_ahead] = successor
                n_ahead += 1
    return met


@compiled
def upper_bound(
    rows: RegionRows,
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
        goal: the index of a state.
        allowed: the pairs that may be played, [n, 2]: half-open ranges; RESET always may.
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
    # States that may only reset start anew for certain, and are kept out of the sweeps. The others are swept from the
    # goal outwards, so that one sweep carries values along a whole way.
    keys = values[:n_known].copy()
    for state in range(n_known):
        if allowed[state, 0] < allowed[state, 1]:
            n_playing += 1
        else:
            keys[state], chance[state] = np.inf, 1.0
    by_value = ascending(keys)
    order, resetting = by_value[:n_playing], by_value[n_playing:]
    factors = factors_of(rows, allowed)
    for turn in range(MOST_TURNS if inner else MOST_SWEEPS):
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
            # The policy has changed within the sweep, so the residual of Eq. 12 is computed from scratch: only this
            # proves anything.
            residual = _upper_residual(rows, factors, goal, values, policy, shifts)
            if residual <= tolerance:
                return residual
        sweeps = _sweeps_in(turn, inner)
        if sweeps:
            change = max(rise, fall)
            evaluate(rows, goal, order, policy, row, True, sweeps, change, tolerance, 2.0 * limit, values, chance)
    return np.inf


@compiled_inner
def _sweeps_in(turn: int, inner: int) -> int:
    """Fewer sweeps in later turns: policies and worst rows that are evaluated exactly may go in circles."""
    return inner if turn < 12 else min(inner, 1) if turn < 24 else 0


@compiled_part
def evaluate(
    rows: RegionRows,
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
        goal: the index of a state.
        order: the known states that do not only reset, those near the goal first, [m].
        policy: a pair, or RESET_PAIR, for each known state, [n].
        row: the probabilities, [E].
        rest_resets: whether the rest of a row is followed by RESET; else it is at the goal.
        sweeps: the maximum number of sweeps.
        change_before: by which values changed when the policy was improved; a small part of it is accurate enough.
        tolerance: the residual to reach in the end.
        limit: values are cut at it.
        values: start and result, [n + others]; the callers give states that only reset their value.
        chance: start and result, [n]; 1 for states that only reset.
    """
    start = values[0]
    # This split need not be exact at first: sweeps converge from any start. States that are not in the order reset.
    own = np.full(len(policy), rows.reset_cost)
    for state in order:
        own[state] = values[state] - chance[state] * start
    for _ in range(sweeps):
        change = 0.0
        for state in order:
            if state == goal:
                continue
            steps, again = _evaluated(rows, goal, policy[state], row, rest_resets, own, chance)
            change = max(change, abs(steps - own[state] + (again - chance[state]) * start))
            own[state], chance[state] = steps, again
        # V(s0) = own(s0) + chance(s0) V(s0), solved for V(s0). A sweep of it would close the gap only by the factor
        # chance(s0).
        if goal != 0:
            before, ends = start, 1.0 - chance[0]
            # Nothing ends where the policy goes in circles; `own` may lag behind, and be negative even then.
            start = limit if ends <= 0.0 or own[0] >= ends * limit else max(own[0], 0.0) / ends
            change = max(change, abs(start - before))
        if change <= max(0.3 * tolerance, ENOUGH_CHANGE * change_before):
            break
    for state in order:
        if state != goal:
            values[state] = min(own[state] + chance[state] * start, limit)
    values[0] = 0.0 if goal == 0 else start


@compiled_inline
def _evaluated(
    rows: RegionRows, goal: int, pair: int, row: FloatArray, rest_resets: bool, own: FloatArray, chance: FloatArray
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
        # The initial state and all states outside start anew; the latter pay for a RESET first.
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


@compiled_inline
def _improve_upper(
    rows: RegionRows,
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
        if factors[pair] != MANY:
            # What `least_mean_by` gives for a single successor; most pairs have one, and a call takes longer than this.
            entry = rows.row_offsets[pair]
            value = rows.costs[pair] + free - factors[pair] * max(free - values[rows.successors[entry]], 0.0)
            if value < best - SAME:
                best, choice, row[entry] = value, pair, factors[pair]
            continue
        # The least mean is at most the mean by shares. Where that is at most `enough`, the backup is no better than the
        # best, and `least_mean_by` does not search.
        enough = rows.costs[pair] + free - best + SAME
        mean, weight, shift = least_mean_by(
            rows, factors, pair, values, free, 1.0, shifts[pair], enough if best < np.inf else -1.0
        )
        shifts[pair] = shift
        value = rows.costs[pair] + free - mean
        if value < best - SAME:
            best, choice = value, pair
            extreme_row(rows, pair, values, free, 1.0, weight, shift, row)
    # In the initial state a RESET leads back to itself and never helps.
    if choice == RESET_PAIR or (state > 0 and free < best):
        best, choice = free, RESET_PAIR
    policy[state] = choice
    return best


@compiled_part
def _upper_residual(
    rows: RegionRows, factors: FloatArray, goal: int, values: FloatArray, policy: IntArray, shifts: FloatArray
) -> float:
    """By how much the cost plus the greatest mean under the policy exceeds the values, at most."""
    spread_values(rows, values, len(policy), goal)
    # Eq. 11 needs F to be the greatest value. The residual below is that of the values as they are cut here.
    free = rows.reset_cost + values[0]
    for state in range(len(policy)):  # so that the free value is the greatest
        values[state] = min(values[state], free)
    residual = 0.0
    for state in range(len(policy)):
        pair = policy[state]
        if state != goal and pair != RESET_PAIR:
            mean, _, _ = least_mean_by(rows, factors, pair, values, free, 1.0, shifts[pair], -1.0)
            residual = max(residual, rows.costs[pair] + free - mean - values[state])
        elif state != goal:
            residual = max(residual, free - values[state])
    return residual


@compiled
def lower_bound(
    rows: RegionRows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    inner: int,
    limit: float,
    tolerance: float,
) -> float:
    """`lower_bound_part` for calls from Python, where nothing is known yet of what pairs are worth."""
    worth, seen = np.full(len(shifts), -np.inf), np.zeros(len(rows.shares))
    return lower_bound_part(rows, goal, values, policy, shifts, worth, seen, inner, limit, tolerance)


@compiled_part
def lower_bound_part(
    rows: RegionRows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    worth: FloatArray,
    seen: FloatArray,
    inner: int,
    limit: float,
    tolerance: float,
) -> float:
    """Optimistic value iteration: least over actions and over the region. Returns the residual of the result.

    With residual r and the least cost c, `values / (1 + r/c)` is at most the cost plus the least mean of itself under
    every action, and so bounds the expected cost of every policy from below in every model of the region (Eq. 13).

    Args:
        rows: region and counts.
        goal: the index of a state, or the one after the last for a state that was never seen.
        values: start and result, [n + others]; cut at the limit.
        policy: what attains it, [n].
        shifts: the best shift of each pair for similar values, or UNKNOWN_SHIFT, and for the result, [P].
        worth, seen: what each pair was found to be worth at least, [P], and the values that followed then, [E]. Most
            pairs are never the best of their state, and are ruled out by this.
        inner: sweeps under the current policy and model between two improvements; 0 for plain value iteration.
        limit: values are not followed beyond it.
        tolerance: the residual to reach.
    """
    n_known = len(policy)
    row = np.zeros(len(rows.shares))
    chance = np.zeros(n_known)
    order = ascending(values[:n_known])
    # The start may be anything: what is returned is proven by its residual alone (Eq. 13).
    factors = single_factors(rows)
    for turn in range(MOST_TURNS if inner else MOST_SWEEPS):
        spread_values(rows, values, n_known, goal)
        change = 0.0
        for state in order:
            if state != goal:
                # A cut lowers a value, so that its own inequality holds all the more; the residual checks those of the
                # others.
                value = min(_improve_lower(rows, factors, state, values, policy, row, shifts, worth, seen), limit)
                change = max(change, abs(value - values[state]))
                values[state] = value
        if change <= tolerance:
            return lower_residual(rows, factors, goal, values, policy, shifts, worth, seen)
        if inner:
            if change > ENOUGH_ORDER and turn % 2 == 0:
                order = ascending(values[:n_known])
            evaluate(rows, goal, order, policy, row, False, inner, change, tolerance, limit, values, chance)
    return np.inf


@compiled_inline
def _still_worth(rows: RegionRows, pair: int, values: FloatArray, worth: FloatArray, seen: FloatArray) -> float:
    """What a pair is worth at least: what it was found to be worth, less the most that a successor has fallen since."""
    fall = 0.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        fall = max(fall, seen[entry] - values[rows.successors[entry]])
    return float(worth[pair] - fall)


@compiled_inline
def _note_worth(
    rows: RegionRows, pair: int, values: FloatArray, value: float, worth: FloatArray, seen: FloatArray
) -> None:
    """Writes what a pair was found to be worth at least, and the values that this follows from."""
    worth[pair] = value
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        seen[entry] = values[rows.successors[entry]]


@compiled_inline
def _improve_lower(
    rows: RegionRows,
    factors: FloatArray,
    state: int,
    values: FloatArray,
    policy: IntArray,
    row: FloatArray,
    shifts: FloatArray,
    worth: FloatArray,
    seen: FloatArray,
) -> float:
    """The optimistic value of the best action, which is written to the policy and its extreme row to `row`.

    Any shift bounds a least mean from below (Eq. 10). The one that was best before rules out most actions at once, and
    so does what each was worth, [P], with the values that were `seen` then, [E].
    """
    best, choice = np.inf, RESET_PAIR
    first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
    before = policy[state] if first <= policy[state] < end else first
    for turn in range(end - first):
        pair = before if turn == 0 else first + turn - (first + turn <= before)
        if factors[pair] != MANY:
            entry = rows.row_offsets[pair]
            value = rows.costs[pair] + factors[pair] * max(values[rows.successors[entry]], 0.0)
            if value < best - SAME:
                best, choice, row[entry] = value, pair, factors[pair]
            continue
        if _still_worth(rows, pair, values, worth, seen) >= best:
            continue
        if best < np.inf:
            at_least = rows.costs[pair] + quick_mean(rows, pair, values, shifts[pair])
            if at_least >= best - SAME:
                _note_worth(rows, pair, values, at_least, worth, seen)
                continue
        mean, weight, shift = least_mean_by(rows, factors, pair, values, 0.0, -1.0, shifts[pair], -1.0)
        shifts[pair] = shift
        value = rows.costs[pair] + mean
        _note_worth(rows, pair, values, value, worth, seen)
        if value < best - SAME:
            best, choice = value, pair
            extreme_row(rows, pair, values, 0.0, -1.0, weight, shift, row)
    if choice == RESET_PAIR or (state > 0 and rows.reset_cost + values[0] < best):
        best, choice = rows.reset_cost + values[0], RESET_PAIR
    policy[state] = choice
    return best


@compiled_part
def lower_residual(
    rows: RegionRows,
    factors: FloatArray,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    worth: FloatArray,
    seen: FloatArray,
) -> float:
    """By how much the values exceed the cost plus the least mean of themselves, at most.

    The pair of the policy comes first. Of the others those are left out that are worth no less, by what they were found
    to be worth, [P], and the values that were seen then, [E]; SAME is far above the rounding of these sums.
    """
    spread_values(rows, values, len(policy), goal)
    residual = 0.0
    for state in range(len(policy)):
        if state == goal:
            continue
        # RESET is an action of every state but the initial one, unless that has no other.
        best = rows.reset_cost + values[0] if state > 0 or rows.state_pairs[1] == 0 else np.inf
        first, end = rows.state_pairs[state], rows.state_pairs[state + 1]
        chosen = policy[state] if first <= policy[state] < end else first
        for turn in range(end - first):
            pair = chosen if turn == 0 else first + turn - (first + turn <= chosen)
            if factors[pair] != MANY:
                successor = rows.successors[rows.row_offsets[pair]]
                best = min(best, rows.costs[pair] + factors[pair] * max(values[successor], 0.0))
            elif turn == 0 or _still_worth(rows, pair, values, worth, seen) < best + SAME:
                best = min(best, _lower_backup_below(rows, factors, pair, values, shifts[pair], best))
        residual = max(residual, values[state] - best)
    return residual


@compiled_inline
def _lower_backup_below(
    rows: RegionRows, factors: FloatArray, pair: int, values: FloatArray, shift: float, best: float
) -> float:
    """`lower_backup` begun from a shift; infinite where that shift proves the backup to be no less than the best."""
    if best < np.inf and rows.costs[pair] + quick_mean(rows, pair, values, shift) >= best:
        return np.inf
    mean, _, _ = least_mean_by(rows, factors, pair, values, 0.0, -1.0, shift, -1.0)
    return float(rows.costs[pair] + mean)


@compiled
def local_regrets(
    rows: RegionRows,
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
    `shifts` are about the best ones for the lower values, or unknown, [P]: with them most actions are ruled out.
    """
    n_known = len(policy)
    factors = single_factors(rows)
    for state in range(n_known):
        least, rival = np.inf, RESET_PAIR
        # RESET is a rival, too, where the policy does not play it.
        if policy[state] != RESET_PAIR and state > 0:
            least = rows.reset_cost + lower[0]
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            if pair != policy[state]:
                # W is below the optimum in every model of the region, and so is this below the cost of playing the pair
                # once and the best policy from then on.
                if rows.costs[pair] + quick_mean(rows, pair, lower, shifts[pair]) >= least:
                    continue
                # Not from that shift: where the solver ruled a pair out early, it is far from the best.
                value = _lower_backup_below(rows, factors, pair, lower, UNKNOWN_SHIFT, least)
                if value < least:
                    least, rival = value, pair
        local_regret[state] = max(upper[state] - least, 0.0) if state != goal else 0.0
        rivals[state] = rival


@compiled
def regret_bound(
    rows: RegionRows,
    goal: int,
    upper: FloatArray,
    policy: IntArray,
    local_regret: FloatArray,
    regret: FloatArray,
) -> None:
    """Writes a bound of what the policy loses against the best one, for each state, [n + others] (Eq. 16).

    The fixed point of regret = max(local regret, greatest mean of regret under the policy) is approached from above,
    where every iterate is a bound. States that the policy does not meet keep the greatest local regret, which is what
    mass never seen counts for in any case. The others are swept by the values of the policy, `upper`, from the goal
    outwards, so that one sweep carries what is lost along a whole way. A state is passed over if nothing that follows
    has changed since.
    """
    n_known = len(policy)
    met = met_by(rows.row_offsets, rows.successors, goal, policy)
    # The constant max D satisfies both inequalities of Eq. 16. The operator is monotone, so every later iterate does.
    greatest = _greatest(local_regret)
    regret[:] = greatest
    regret[goal] = 0.0
    shifts = np.full(n_known, UNKNOWN_SHIFT)
    factors = single_factors(rows)
    order = ascending(upper[:n_known])
    changed, looked_at, moment = np.zeros(len(regret), np.int64), np.zeros(n_known, np.int64), 0
    for _ in range(MOST_REGRET_SWEEPS):
        change = 0.0
        for state in order:
            pair = policy[state]
            if state == goal or not met[state] or not _has_changed(rows, pair, changed, looked_at[state]):
                continue
            moment += 1
            looked_at[state] = moment
            value = regret[0]
            if pair != RESET_PAIR:
                # The greatest mean of R is F less the least mean of F - R, with F = max R (Eq. 11).
                mean, _, shift = least_mean_by(rows, factors, pair, regret, greatest, 1.0, shifts[state], -1.0)
                shifts[state] = shift
                value = greatest - mean
            value = max(value, local_regret[state])
            if value < regret[state]:
                if regret[state] - value > NEGLIGIBLE_REGRET_CHANGE:
                    changed[state] = moment
                change = max(change, regret[state] - value)
                regret[state] = value
        for other in range(n_known, len(regret)):
            if other != goal:
                regret[other], changed[other] = regret[0], changed[0]
        if change <= LEAST_REGRET_CHANGE:
            return


@compiled_inline
def _has_changed(rows: RegionRows, pair: int, changed: IntArray, since: int) -> bool:
    """Whether what may follow a pair, or a RESET, has changed since a moment, or at it."""
    if pair == RESET_PAIR:
        return bool(changed[0] >= since)
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        if changed[rows.successors[entry]] >= since:
            return True
    return False


@compiled_inner
def _greatest(values: FloatArray) -> float:
    greatest = -np.inf
    for value in values:
        greatest = max(greatest, value)
    return greatest
