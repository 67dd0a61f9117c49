"""Compiled sweeps for shortest paths; `value_iteration` says what they compute and why it is right.

In-place sweeps work on one goal or on `LANES` goals in parallel, [S, 1] or [S, LANES]; in single precision, on
`NARROW_LANES`. A goal that is done leaves its lane to the next one waiting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled, compiled_part
from axplore.graphs.rows import CONVERGED, GAVE_UP, ROUNDING, UNFINISHED, Goals, Index, Limits, ModelRows, Solutions
from axplore.graphs.simd import (
    NARROW_LANES,
    add,
    load,
    maximum,
    minimum,
    multiply_add,
    spread,
    store,
    subtract,
)
from axplore.types import FloatArray, IntArray

# When to extrapolate: these were chosen on random models and grids, and change speed only, never the result's bounds.
_WAIT_GROWTH: Final = 1.25
_STEADY: Final = 0.05
_POLICY_SWEEPS: Final = 8
_NARROW_ROUNDING: Final = 16 * float(np.finfo(np.float32).eps)
"""Changes by less than this part of a value are left to double precision."""

# The rows of the memory that decides about extrapolation, [4, lanes].
_LAST_CHANGE: Final = 0
_LAST_RATIO: Final = 1
_SWEEPS_SINCE: Final = 2
_WAIT: Final = 3


@compiled
def pad(
    offsets: IntArray, successors: IntArray, weights: FloatArray, width: int
) -> tuple[npt.NDArray[Index], npt.NDArray[Index], FloatArray]:
    """Cuts compressed rows into chunks; answers with `pair_chunks`, `successors` and `weights` of `ModelRows`."""
    n_pairs = len(offsets) - 1
    pair_chunks = np.zeros(n_pairs + 1, dtype=Index)
    for pair in range(n_pairs):
        # A pair without transitions has one chunk of padding, so that every pair ends with a chunk.
        pair_chunks[pair + 1] = pair_chunks[pair] + max(1, (offsets[pair + 1] - offsets[pair] + width - 1) // width)
    padded = np.zeros((pair_chunks[n_pairs], width), dtype=Index)
    padded_weights = np.zeros((pair_chunks[n_pairs], width))
    for pair in range(n_pairs):
        for index in range(offsets[pair + 1] - offsets[pair]):
            chunk = pair_chunks[pair] + index // width
            padded[chunk, index % width] = successors[offsets[pair] + index]
            padded_weights[chunk, index % width] = weights[offsets[pair] + index]
    return pair_chunks, padded, padded_weights


@compiled
def pad_in_order(
    order: IntArray,
    state_pairs: IntArray,
    row_offsets: IntArray,
    successors: IntArray,
    weights: FloatArray,
    width: int,
) -> tuple[npt.NDArray[Index], npt.NDArray[Index], npt.NDArray[Index], FloatArray, IntArray]:
    """Cuts the rows of a model into chunks with its states in this order.

    Answers with `state_pairs`, `pair_chunks`, `successors` and `weights` of `ModelRows`, and with the pair that each
    pair was, [P].
    """
    n_states = len(order)
    indices = np.empty(n_states, dtype=Index)
    n_chunks = 0
    for index in range(n_states):
        indices[order[index]] = index
    for pair in range(len(row_offsets) - 1):
        n_chunks += max(1, (row_offsets[pair + 1] - row_offsets[pair] + width - 1) // width)
    new_pairs = np.zeros(n_states + 1, dtype=Index)
    pair_chunks = np.zeros(len(row_offsets), dtype=Index)
    padded = np.zeros((n_chunks, width), dtype=Index)
    padded_weights = np.zeros((n_chunks, width))
    pairs = np.empty(len(row_offsets) - 1, dtype=np.int64)
    n_pairs = 0
    chunk = 0
    for index in range(n_states):
        for pair in range(state_pairs[order[index]], state_pairs[order[index] + 1]):
            column = 0
            for entry in range(row_offsets[pair], row_offsets[pair + 1]):
                if column == width:
                    chunk += 1
                    column = 0
                padded[chunk, column] = indices[successors[entry]]
                padded_weights[chunk, column] = weights[entry]
                column += 1
            chunk += 1
            pairs[n_pairs] = pair
            n_pairs += 1
            pair_chunks[n_pairs] = chunk
        new_pairs[index + 1] = n_pairs
    return new_pairs, pair_chunks, padded, padded_weights, pairs


@compiled
def in_order(distances: npt.NDArray[np.int32], order: IntArray, initial: int, unit: float) -> FloatArray:
    """Lower bounds on values, from distances along edges and from RESET, with the states in this order, [G, S]."""
    n_goals, n_states = distances.shape
    bounds = np.empty((n_goals, n_states))
    for goal in range(n_goals):
        # No state is farther than a RESET and the way from the initial state: u(s) <= 1 + u(s0), in units of the least
        # cost.
        most = distances[goal, initial] + 1
        for index in range(n_states):
            bounds[goal, index] = unit * min(distances[goal, order[index]], most)
    return bounds


@compiled
def write_back(found: Solutions, order: IntArray, pairs: IntArray, indices: IntArray, out: Solutions) -> None:
    """Writes what was found with states and pairs in another order for the goals at these indices."""
    for row in range(len(indices)):
        goal = indices[row]
        for index in range(len(order)):
            out.values[goal, order[index]] = found.values[row, index]
            pair = found.policy[row, index]
            out.policy[goal, order[index]] = pairs[pair] if pair >= 0 else -1
        out.residuals[goal] = found.residuals[row]
        out.sweeps[goal] = found.sweeps[row]
        out.status[goal] = found.status[row]


@compiled_part
def back_up(
    rows: ModelRows, goal: int, values: FloatArray, updated: FloatArray, policy: IntArray
) -> tuple[float, float]:
    """One sweep: `updated` = Lu, `policy` greedy with respect to u, and the largest rise and fall.

    It is synchronous, or in place if `updated` is `values` itself.
    """
    width = rows.successors.shape[1]
    rise = 0.0
    fall = 0.0
    for state in range(len(rows.reset_costs)):
        # RESET is tried first, and an action must be better: of equal choices the policy takes RESET, then the first
        # pair.
        best = rows.reset_costs[state] + values[rows.initial]
        choice = -1
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            cost = rows.costs[pair]
            for chunk in range(rows.pair_chunks[pair], rows.pair_chunks[pair + 1]):
                for index in range(width):
                    cost += rows.weights[chunk, index] * values[rows.successors[chunk, index]]
            if cost < best:
                best = cost
                choice = pair
        if state == goal:
            best = 0.0
            choice = -1
        rise = max(rise, best - values[state])
        fall = max(fall, values[state] - best)
        updated[state] = best
        policy[state] = choice
    return rise, fall


@compiled
def iterate(rows: ModelRows, goals: Goals, limits: Limits, indices: IntArray, out: Solutions) -> None:
    """VI_SSP to the letter for the goals at these indices ([DisCo] Alg. VI_SSP)."""
    for index in indices:
        values = np.zeros(out.values.shape[1])
        updated = np.zeros(out.values.shape[1])
        policy = out.policy[index]
        status = UNFINISHED
        change = np.inf
        sweeps = 0
        # From u = 0 every iterate is a lower bound, and stops where |Lu - u| <= precision, as the paper does.
        while status == UNFINISHED and sweeps < limits.max_sweeps:
            rise, fall = back_up(rows, goals.states[index], values, updated, policy)
            for echo in goals.echoes[index]:
                updated[echo] = goals.echo_cost + values[rows.initial]
                rise = max(rise, updated[echo] - values[echo])
            sweeps += 1
            change = max(rise, fall)
            if values[rows.initial] > limits.give_up_above:
                status = GAVE_UP
                change = np.inf
                policy[:] = -1
            elif change <= limits.precision:
                status = CONVERGED
            else:
                values, updated = updated, values
        out.values[index] = values
        out.residuals[index] = change
        out.sweeps[index] = sweeps
        out.status[index] = status


@compiled
def iterate_one(rows: ModelRows, goal: int, limits: Limits, values: FloatArray, out: Solutions) -> None:
    """In-place iteration for one goal from given values, quick if the states come in the order of their distance to it.

    After each sweep its greedy policy is swept over a few times, for a part of the cost.
    """
    changes = np.zeros(len(values))
    memory = np.array([np.inf, 0.0, 0.0, limits.patience])
    policy = out.policy[0]
    while True:
        rise, fall = back_up(rows, goal, values, values, policy)
        out.sweeps[0] += 1
        # Extrapolation may overshoot. If Lu >= u - fall, then u / (1 + fall / c) is below its own backup, c the least
        # cost, and so a lower bound (docs/algorithms/certified.md, Eq. 13, without a region).
        scale = 1.0 + fall / limits.min_cost
        lower = out.values[0]
        if values[rows.initial] / scale > limits.give_up_above:
            lower[:] = values / scale
            out.residuals[0] = np.inf
            out.status[0] = GAVE_UP
            policy[:] = -1
            return
        if rise + fall / limits.min_cost <= limits.precision:
            lower[:] = values / scale
            # The residual is that of the scaled values, which are the ones returned, with the policy that is greedy for
            # them.
            residual, _ = back_up(rows, goal, lower, changes, policy)
            out.residuals[0] = residual
            if residual <= limits.precision:
                out.status[0] = CONVERGED
                return
        # Sweeps change nothing any more but the last digits, and the precision was not reached: left UNFINISHED.
        if max(rise, fall) <= ROUNDING * values[rows.initial] or out.sweeps[0] >= limits.max_sweeps:
            lower[:] = values / scale
            out.residuals[0] = max(rise, fall)
            return
        # Sweeps of the policy alone cost a part of a full one; the next full sweep corrects whatever they overshoot.
        for _ in range(_POLICY_SWEEPS):
            change = _sweep_policy(rows, goal, values, policy, changes)
            if change <= limits.precision / 4:
                break
            factor = _extrapolation_factor(memory, change)
            if factor > 0.0:
                values[:] = np.maximum(0.0, values + factor * changes)


@compiled_part
def _sweep_policy(rows: ModelRows, goal: int, values: FloatArray, policy: IntArray, changes: FloatArray) -> float:
    """One in-place sweep of a policy; returns the largest change."""
    width = rows.successors.shape[1]
    largest = 0.0
    for state in range(len(rows.reset_costs)):
        pair = policy[state]
        if state == goal:
            cost = 0.0
        elif pair < 0:
            cost = rows.reset_costs[state] + values[rows.initial]
        else:
            cost = rows.costs[pair]
            for chunk in range(rows.pair_chunks[pair], rows.pair_chunks[pair + 1]):
                for index in range(width):
                    cost += rows.weights[chunk, index] * values[rows.successors[chunk, index]]
        changes[state] = cost - values[state]
        largest = max(largest, abs(changes[state]))
        values[state] = cost
    return largest


class Chunks(NamedTuple):
    """Rows for sweeps of many lanes: a state is one run of chunks, which costs fewer jumps than pairs of chunks.

    Attributes:
        state_chunks: the first chunk of each state, and the end of the last one, [n + 1].
        costs: the cost of the pair in its first chunk, 0 in others, [C].
        is_last: whether the chunk is the last one of its pair, [C].
        successors, weights, reset_costs, initial: as in `ModelRows`.
    """

    state_chunks: npt.NDArray[Index]
    costs: FloatArray
    is_last: npt.NDArray[np.bool_]
    successors: npt.NDArray[Index]
    weights: FloatArray
    reset_costs: FloatArray
    initial: int


@compiled_part
def _chunks_of(rows: ModelRows, like: FloatArray) -> Chunks:
    """The rows in chunks, with numbers of the same type as those of an array."""
    n_chunks = len(rows.successors)
    costs = np.zeros(n_chunks, dtype=like.dtype)
    is_last = np.zeros(n_chunks, dtype=np.bool_)
    for pair in range(len(rows.costs)):
        costs[rows.pair_chunks[pair]] = rows.costs[pair]
        is_last[rows.pair_chunks[pair + 1] - 1] = True
    state_chunks = rows.pair_chunks[rows.state_pairs]
    weights = rows.weights.astype(like.dtype)
    reset_costs = rows.reset_costs.astype(like.dtype)
    return Chunks(state_chunks, costs, is_last, rows.successors, weights, reset_costs, rows.initial)


class Lanes(NamedTuple):
    """Goals that are solved in parallel; n_lanes is 1 or `LANES`.

    Attributes:
        values, changes: the value of each state, and its change in the last sweep, [S, n_lanes].
        rise, fall: the largest of these changes upwards and downwards, [1, n_lanes].
        goals: the state of each lane's goal, -1 where it is none, [n_lanes].
        is_goal: whether a state is the goal of some lane, [n].
        indices: the indices of the goals among those to solve, -1 in an idle lane, [n_lanes].
        memory: the data that extrapolation depends on, [4, n_lanes].
        factors: the number of times that the last change is added again, [n_lanes].
    """

    values: FloatArray
    changes: FloatArray
    rise: FloatArray
    fall: FloatArray
    goals: IntArray
    is_goal: npt.NDArray[np.bool_]
    indices: IntArray
    memory: FloatArray
    factors: FloatArray


@compiled
def iterate_in_place(
    rows: ModelRows, goals: Goals, limits: Limits, indices: IntArray, n_lanes: int, out: Solutions
) -> None:
    """In-place value iteration for the goals at these indices, on 1 or `LANES` lanes, from the values in `out`."""
    lanes = _idle_lanes(out.values.shape[1], len(rows.reset_costs), n_lanes, rows.weights)
    chunks = _chunks_of(rows, rows.weights)
    n_started = 0
    while True:
        n_started = _fill(rows, goals, limits, indices, n_started, lanes, out)
        if (lanes.indices < 0).all():
            return
        if n_lanes == 1:
            sweep_one(rows, lanes)
        else:
            sweep_lanes(chunks, lanes)
        for lane in range(n_lanes):
            lanes.factors[lane] = 0.0
            if lanes.indices[lane] < 0:
                continue
            _echo(rows, goals, lanes, lane)
            if _finished(rows, goals, limits, lanes, lane, out):
                lanes.indices[lane] = -1
            else:
                change = max(lanes.rise[0, lane], lanes.fall[0, lane])
                lanes.factors[lane] = _extrapolation_factor(lanes.memory[:, lane], change)
        if lanes.factors.any():
            _extrapolate(rows, goals, lanes)


@compiled
def approach(
    rows: ModelRows,
    goals: Goals,
    limits: Limits,
    indices: IntArray,
    max_sweeps: int,
    like: FloatArray,
    out: Solutions,
) -> None:
    """Brings the values in `out` near the optimal ones, in the precision of `like`: single, for twice as many lanes.

    A goal is left as it is at the precision asked for, where rounding would have a say, or after `max_sweeps`. None of
    this depends on the goals in other lanes, so the result does not depend on the number of threads.
    """
    lanes = _idle_lanes(out.values.shape[1], len(rows.reset_costs), NARROW_LANES, like)
    chunks = _chunks_of(rows, like)
    n_started = 0
    while True:
        n_started = _fill(rows, goals, limits, indices, n_started, lanes, out)
        if (lanes.indices < 0).all():
            return
        sweep_lanes(chunks, lanes)
        for lane in range(NARROW_LANES):
            lanes.factors[lane] = 0.0
            index = lanes.indices[lane]
            if index < 0:
                continue
            out.sweeps[index] += 1
            change = float(max(lanes.rise[0, lane], lanes.fall[0, lane]))
            value = float(lanes.values[rows.initial, lane])
            is_near = change <= max(limits.precision, _NARROW_ROUNDING * value)
            if is_near or value > limits.give_up_above or out.sweeps[index] >= max_sweeps:
                out.values[index] = lanes.values[:, lane]
                lanes.indices[lane] = -1
            else:
                lanes.factors[lane] = _extrapolation_factor(lanes.memory[:, lane], change)
        if lanes.factors.any():
            _extrapolate(rows, goals, lanes)


@compiled_part
def sweep_one(rows: ModelRows, lanes: Lanes) -> None:
    """One in-place sweep for one goal."""
    values = lanes.values[:, 0]
    changes = lanes.changes[:, 0]
    width = rows.successors.shape[1]
    rise = 0.0
    fall = 0.0
    for state in range(len(rows.reset_costs)):
        best = rows.reset_costs[state] + values[rows.initial]
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            cost = rows.costs[pair]
            for chunk in range(rows.pair_chunks[pair], rows.pair_chunks[pair + 1]):
                for index in range(width):
                    cost += rows.weights[chunk, index] * values[rows.successors[chunk, index]]
            best = min(best, cost)
        if state == lanes.goals[0]:
            best = 0.0
        change = best - values[state]
        rise = max(rise, change)
        fall = max(fall, -change)
        changes[state] = change
        values[state] = best
    lanes.rise[0, 0] = rise
    lanes.fall[0, 0] = fall


@compiled_part
def sweep_lanes(chunks: Chunks, lanes: Lanes) -> None:
    """One in-place sweep for as many goals as fit in a vector; loops over rows of common lengths are unrolled."""
    width = chunks.successors.shape[1]
    if width == 3:
        _sweep_lanes(chunks, lanes, (0, 1, 2))
    elif width == 4:
        _sweep_lanes(chunks, lanes, (0, 1, 2, 3))
    elif width == 5:
        _sweep_lanes(chunks, lanes, (0, 1, 2, 3, 4))
    else:
        _sweep_lanes(chunks, lanes, range(width))


@compiled_part
def _sweep_lanes(chunks: Chunks, lanes: Lanes, indices: Iterable[int]) -> None:
    values = lanes.values
    zero = spread(chunks.costs.dtype.type(0))
    rise = zero
    fall = zero
    for state in range(len(chunks.reset_costs)):
        best = add(spread(chunks.reset_costs[state]), load(values, chunks.initial))
        cost = zero
        for chunk in range(chunks.state_chunks[state], chunks.state_chunks[state + 1]):
            cost = add(cost, spread(chunks.costs[chunk]))
            for index in indices:
                successor = load(values, chunks.successors[chunk, index])
                cost = multiply_add(chunks.weights[chunk, index], successor, cost)
            if chunks.is_last[chunk]:
                best = minimum(best, cost)
                cost = zero
        # Which state is a goal differs by lane, so the vector is stored first and single numbers are overwritten after
        # it.
        before = load(values, state)
        store(values, state, best)
        if lanes.is_goal[state]:
            for lane in range(len(lanes.goals)):
                if lanes.goals[lane] == state:
                    values[state, lane] = 0.0
            best = load(values, state)
        change = subtract(best, before)
        store(lanes.changes, state, change)
        rise = maximum(rise, change)
        fall = maximum(fall, subtract(before, best))
    store(lanes.rise, 0, rise)
    store(lanes.fall, 0, fall)


@compiled_part
def _idle_lanes(n_values: int, n_states: int, n_lanes: int, like: FloatArray) -> Lanes:
    """Lanes without goals, with values of the same type as those of an array."""
    return Lanes(
        np.zeros((n_values, n_lanes), dtype=like.dtype),
        np.zeros((n_values, n_lanes), dtype=like.dtype),
        np.zeros((1, n_lanes), dtype=like.dtype),
        np.zeros((1, n_lanes), dtype=like.dtype),
        np.full(n_lanes, -1),
        np.zeros(n_states, dtype=np.bool_),
        np.full(n_lanes, -1),
        np.zeros((4, n_lanes)),
        np.zeros(n_lanes),
    )


@compiled_part
def _fill(
    rows: ModelRows, goals: Goals, limits: Limits, indices: IntArray, n_started: int, lanes: Lanes, out: Solutions
) -> int:
    """Gives idle lanes to the goals that wait; returns how many of the indices have had a lane."""
    for lane in range(len(lanes.indices)):
        if lanes.indices[lane] < 0 and n_started < len(indices):
            index = indices[n_started]
            _start(rows, goals, index, lanes, lane, limits.patience, out.values[index])
            n_started += 1
    return n_started


@compiled
def _start(
    rows: ModelRows, goals: Goals, index: int, lanes: Lanes, lane: int, patience: float, values: FloatArray
) -> None:
    """Gives a lane to the goal at this index, with these values to begin with, [S]."""
    lanes.indices[lane] = index
    lanes.goals[lane] = goals.states[index]
    # Built anew, because another lane may have had the goal that this lane has left.
    lanes.is_goal[:] = False
    for goal in lanes.goals:
        if goal >= 0:
            lanes.is_goal[goal] = True
    lanes.values[:, lane] = values
    lanes.memory[_LAST_CHANGE, lane] = np.inf
    lanes.memory[_LAST_RATIO, lane] = 0.0
    lanes.memory[_SWEEPS_SINCE, lane] = 0.0
    lanes.memory[_WAIT, lane] = patience
    _echo(rows, goals, lanes, lane)


@compiled_part
def _echo(rows: ModelRows, goals: Goals, lanes: Lanes, lane: int) -> None:
    """Brings the echoes of a lane's goal up to date."""
    for echo in goals.echoes[lanes.indices[lane]]:
        lanes.values[echo, lane] = goals.echo_cost + lanes.values[rows.initial, lane]


@compiled_part
def _finished(rows: ModelRows, goals: Goals, limits: Limits, lanes: Lanes, lane: int, out: Solutions) -> bool:
    """Returns whether a lane is done after a sweep; if so, its outcome is written."""
    index = lanes.indices[lane]
    rise = lanes.rise[0, lane]
    fall = lanes.fall[0, lane]
    # As in `iterate_one`: the scaled values are a lower bound, however the sweeps and extrapolation got there.
    scale = 1.0 + fall / limits.min_cost
    lower = out.values[index]
    out.sweeps[index] += 1
    if lanes.values[rows.initial, lane] / scale > limits.give_up_above:
        lower[:] = lanes.values[:, lane] / scale
        out.residuals[index] = np.inf
        out.status[index] = GAVE_UP
        return True
    if rise + fall / limits.min_cost <= limits.precision:
        lower[:] = lanes.values[:, lane] / scale
        # Echoes are one RESET away from the initial state, exactly: scaling them would break their equation.
        for echo in goals.echoes[index]:
            lower[echo] = goals.echo_cost + lower[rows.initial]
        residual, _ = back_up(rows, goals.states[index], lower, np.empty(len(lower)), out.policy[index])
        out.residuals[index] = residual
        if residual <= limits.precision:
            out.status[index] = CONVERGED
            return True
    is_rounding = max(rise, fall) <= ROUNDING * lanes.values[rows.initial, lane]
    if is_rounding or out.sweeps[index] >= limits.max_sweeps:
        lower[:] = lanes.values[:, lane] / scale
        out.residuals[index] = max(rise, fall)
        return True
    return False


@compiled_part
def _extrapolation_factor(memory: FloatArray, change: float) -> float:
    """Returns the number of times the last change is added again; 0 unless changes shrink at a steady rate.

    If each change is the last one times a ratio q, then all that are to come sum to q/(1 - q) times the last one. The
    wait between two tries grows, so that a model on which it does not help is left in peace.
    """
    ratio = change / memory[_LAST_CHANGE]
    steady = ratio < 1.0 and abs(ratio - memory[_LAST_RATIO]) < _STEADY * (1.0 - ratio)
    memory[_LAST_CHANGE] = change
    memory[_LAST_RATIO] = ratio
    memory[_SWEEPS_SINCE] += 1.0
    if not steady or memory[_SWEEPS_SINCE] < memory[_WAIT]:
        return 0.0
    memory[_LAST_CHANGE] = np.inf
    memory[_SWEEPS_SINCE] = 0.0
    memory[_WAIT] *= _WAIT_GROWTH
    return float(ratio / (1.0 - ratio))


@compiled_part
def _extrapolate(rows: ModelRows, goals: Goals, lanes: Lanes) -> None:
    """Adds the last changes again, each lane by its factor; values stay at 0 or above."""
    for state in range(len(rows.reset_costs)):
        for lane in range(len(lanes.factors)):
            further = lanes.values[state, lane] + lanes.factors[lane] * lanes.changes[state, lane]
            lanes.values[state, lane] = max(0.0, further)
    for lane in range(len(lanes.factors)):
        if lanes.indices[lane] >= 0:
            _echo(rows, goals, lanes, lane)
