"""Compiled estimates: the steps to goals if the observed frequencies were the probabilities. No proof rests on them.

Indices, goals, values and policies are those of `bound_kernels`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_inner, compiled_part
from axplore.graphs.search import Graph
from axplore.graphs.search_kernels import spread
from axplore.proofs.bound_kernels import SAME, evaluate
from axplore.proofs.row_kernels import NEGLIGIBLE, RegionRows
from axplore.proofs.sort_kernels import keep_distinct
from axplore.types import RESET_PAIR, FloatArray, IntArray

ESTIMATE_CHANGE: Final = 1e-7
"""Estimates are improved until no value changes by more than this, unless less accuracy will do."""

MOST_IMPROVEMENTS: Final = 1000
"""An estimate that takes more improvements of its policy is given up."""

SWEEPS_BETWEEN: Final = 10
"""The number of sweeps under a policy before it is improved again."""

MOST_COST: Final = 1e12
"""Estimates are cut here."""

UNKNOWN_VALUE: Final = -1.0

MANY_PAIRS: Final = 8
"""A state with more pairs than this number for each state that leads to a goal is not asked for each of them."""


@compiled_part
def _leading_to(predecessors: Graph, goal: int, n_allowed: int) -> IntArray:
    """The first `n_allowed` known states from which some pairs may lead to the goal, the nearest first."""
    n_seen = len(predecessors.offsets) - 1
    order = np.empty(n_allowed + 1, np.int64)
    if goal >= n_seen:  # no pair was seen to lead to the unseen
        return order[:0]
    hops = np.full(n_seen, n_seen, dtype=np.int32)
    hops[goal], order[0] = 0, goal
    return order[1 : spread(predecessors, 1, n_allowed, n_seen, hops, order)]


@compiled
def empirical_values(
    rows: RegionRows,
    predecessors: Graph,
    leading: Graph,
    goal: int,
    n_allowed: int,
    values: FloatArray,
    policy: IntArray,
    limit: float,
    accuracy: float,
) -> bool:
    """The least costs if the frequencies were the probabilities; returns whether that of the start is within the limit.

    A pair that was never drawn is left out. Policies are improved and evaluated in turn, from a first one that goes
    nearer to the goal whenever it can.

    Args:
        rows: counts.
        predecessors: the edges that were seen, turned round.
        leading: the pairs that lead to each state, ascending.
        goal: the index of a state, or the one after the last for a state that was never seen.
        n_allowed: later states only reset.
        values: the result, [n + others].
        policy: what attains it, [n].
        limit: of the value of the initial state.
        accuracy: values are improved until none changes by more than this.
    """
    policy.fill(RESET_PAIR)
    values.fill(UNKNOWN_VALUE)
    found, _ = _values_near(rows, predecessors, leading, goal, n_allowed, values, policy, limit, accuracy)
    for state in range(len(values)):
        if values[state] == UNKNOWN_VALUE:
            values[state] = rows.reset_cost + values[0]
    return found


@compiled_part
def _values_near(
    rows: RegionRows,
    predecessors: Graph,
    leading: Graph,
    goal: int,
    n_allowed: int,
    values: FloatArray,
    policy: IntArray,
    limit: float,
    accuracy: float,
) -> tuple[bool, IntArray]:
    """`empirical_values` for the states that may lead to the goal, the goal, and those that follow them alone.

    Returns the indices of all of these, too. Before, all values are unknown, and the policy resets everywhere.
    """
    n_known = len(policy)
    order = _leading_to(predecessors, goal, n_allowed)
    if goal < len(values):
        values[goal] = 0.0
    first, pairs = _useful_pairs(rows, leading, goal, order)
    # In the order of hops every state has a successor whose value is known, so that the first policy arrives with
    # probability 1.
    is_exact = True
    for index, state in enumerate(order):
        values[state], policy[state] = _going_nearer(rows, pairs[first[index] : first[index + 1]], values)
        is_exact &= rows.row_offsets[policy[state] + 1] == rows.row_offsets[policy[state]] + 1
    # No way to the goal was seen: every policy would go on for ever.
    if goal != 0 and values[0] == UNKNOWN_VALUE:
        return False, _joined(order, order[:0], goal)
    chance = np.full(n_known, 1.0)
    for state in order:
        chance[state] = 0.0
    if goal < n_known:
        chance[goal] = 0.0
    change = 0.0
    resetting = _following(rows, pairs, values)
    _reset(rows, resetting, values)
    near = _joined(order, resetting, goal)
    for turn in range(MOST_IMPROVEMENTS):
        if turn > 0 or not is_exact:  # on ways without chance the values of the first policy are known already
            evaluate(
                rows,
                goal,
                order,
                policy,
                rows.frequencies,
                False,
                SWEEPS_BETWEEN,
                change,
                accuracy,
                MOST_COST,
                values,
                chance,
            )
        _reset(rows, resetting, values)
        change = 0.0
        for index, state in enumerate(order):
            value, policy[state] = _best_by_frequency(rows, state, pairs[first[index] : first[index + 1]], values)
            change = max(change, abs(value - values[state]))
            values[state] = value
        if change <= accuracy:
            _reset(rows, resetting, values)
            return bool(values[0] <= limit), near
    return False, near


@compiled_part
def _useful_pairs(rows: RegionRows, leading: Graph, goal: int, order: IntArray) -> tuple[IntArray, IntArray]:
    """The pairs to choose from in each state of the order, one after the other, and where those of each begin.

    All others lead to states alone that reset, so that none is better than a RESET. A state may have thousands of
    them, and they are passed over where that is quicker than to look at each.
    """
    first, n_pairs = np.zeros(len(order) + 1, np.int64), 0
    for state in order:
        n_pairs += rows.state_pairs[state + 1] - rows.state_pairs[state]
    pairs, n_pairs = np.empty(n_pairs, np.int64), 0
    for index, state in enumerate(order):
        own, end, before = rows.state_pairs[state], rows.state_pairs[state + 1], n_pairs
        if end - own > MANY_PAIRS * (len(order) + 1):
            for place in range(-1, len(order)):
                n_pairs = _add_leading(leading, goal if place < 0 else order[place], own, end, pairs, n_pairs)
            n_pairs = keep_distinct(pairs, before, n_pairs) if n_pairs < len(pairs) else before
        if n_pairs == before:  # none was left out, or there was no room for what leads to many of these states
            for pair in range(own, end):
                pairs[n_pairs] = pair
                n_pairs += 1
        first[index + 1] = n_pairs
    return first, pairs[:n_pairs]


@compiled_inner
def _add_leading(leading: Graph, successor: int, first: int, end: int, pairs: IntArray, n_pairs: int) -> int:
    """Adds those of a range of pairs that lead to a state, as far as there is room; returns how many there are."""
    low, high = leading.offsets[successor], leading.offsets[successor + 1]
    last = high
    while low < high:
        middle = (low + high) // 2
        if leading.heads[middle] < first:
            low = middle + 1
        else:
            high = middle
    while low < last and leading.heads[low] < end and n_pairs < len(pairs):
        pairs[n_pairs] = leading.heads[low]
        n_pairs, low = n_pairs + 1, low + 1
    return n_pairs


@compiled_part
def _following(rows: RegionRows, pairs: IntArray, values: FloatArray) -> IntArray:
    """The states of unknown value that some of these pairs leads to; their values are overwritten."""
    following, n_found = np.empty(len(values), np.int64), 0
    for pair in pairs:
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            successor = rows.successors[entry]
            if values[successor] == UNKNOWN_VALUE:
                values[successor] = 0.0
                following[n_found] = successor
                n_found += 1
    return following[:n_found]


@compiled_part
def _joined(states: IntArray, others: IntArray, last: int) -> IntArray:
    """All of them in one array."""
    joined, n_states = np.empty(len(states) + len(others) + 1, np.int64), len(states)
    for place in range(n_states):
        joined[place] = states[place]
    for place in range(len(others)):
        joined[n_states + place] = others[place]
    joined[n_states + len(others)] = last
    return joined


@compiled_inline
def _reset(rows: RegionRows, states: IntArray, values: FloatArray) -> None:
    """Gives states that only reset their value."""
    for state in states:
        values[state] = rows.reset_cost + values[0]


@compiled
def estimated_steps(rows: RegionRows, predecessors: Graph, leading: Graph, n_seen: int, limit: float) -> FloatArray:
    """The empirical value of the initial state for each other state seen, [others]; infinite beyond the limit."""
    n_known = len(rows.state_pairs) - 1
    values, policy = np.full(n_seen, UNKNOWN_VALUE), np.full(n_known, RESET_PAIR)
    steps = np.full(n_seen - n_known, np.inf)
    for index in range(len(steps)):
        found, near = _values_near(
            rows, predecessors, leading, n_known + index, n_known, values, policy, limit, ESTIMATE_CHANGE
        )
        if found:
            steps[index] = values[0]
        for state in near:
            values[state] = UNKNOWN_VALUE
            if state < n_known:
                policy[state] = RESET_PAIR
    return steps


@compiled_inline
def _going_nearer(rows: RegionRows, pairs: IntArray, values: FloatArray) -> tuple[float, int]:
    """The best of these pairs if outcomes of unknown value led back to the state, and its value."""
    best, choice = np.inf, RESET_PAIR
    for pair in pairs:
        value, known = rows.costs[pair], 0.0
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            if values[rows.successors[entry]] != UNKNOWN_VALUE:
                value += rows.frequencies[entry] * values[rows.successors[entry]]
                known += rows.frequencies[entry]
        # v = cost + known part + (1 - known) v, solved for v: where the value is unknown, the pair is tried again.
        if known > 0.0 and value < best * known - SAME:
            best, choice = value / known, pair
    return best, choice


@compiled_inline
def _best_by_frequency(rows: RegionRows, state: int, pairs: IntArray, values: FloatArray) -> tuple[float, int]:
    """The least value of one of these pairs, or of RESET, by the frequencies, and the choice that has it."""
    best, choice = np.inf, RESET_PAIR
    for pair in pairs:
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
def least_upper_bounds(rows: RegionRows, graph: Graph) -> FloatArray:
    """What no upper bound of the steps to each state falls below, [n + others]; infinite if none leads there.

    Whatever is known of all other pairs, a journey takes at least as many steps as the shortest way that was seen, and
    in some model of the region its last pair leads to the goal as often as was observed; a single successor, only with
    the least probability of its ball, and the journey starts anew otherwise.
    """
    n_seen = len(graph.offsets) - 1
    hops, order = np.full(n_seen, n_seen, dtype=np.int32), np.zeros(n_seen, np.int64)
    hops[0] = 0
    n_met = spread(graph, 1, n_seen, n_seen, hops, order)
    only_single, likeliest, nearest = np.full(n_seen, np.inf), np.zeros(n_seen), np.full(n_seen, np.inf)
    has_other = np.zeros(n_seen, np.bool_)
    for state in order[:n_met]:
        if state >= len(rows.state_pairs) - 1:
            continue
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            first, end = rows.row_offsets[pair], rows.row_offsets[pair + 1]
            is_plain = not rows.closed[pair] and rows.floors[pair] == 0.0 and rows.rest[pair] == 0.0
            for entry in range(first, end):
                after = rows.successors[entry]
                chance = rows.frequencies[entry] if is_plain else 1.0
                if is_plain and end == first + 1:
                    chance = math.exp(-rows.slack[pair])
                    if chance > 0.0:
                        # V = k + 1 + (1 - q) (1 + V), with k hops before the pair: a failure costs a RESET and all of
                        # it again.
                        only_single[after] = min(only_single[after], (hops[state] + 2.0 - chance) / chance)
                else:
                    has_other[after] = True
                nearest[after] = min(nearest[after], hops[state])
                likeliest[after] = max(likeliest[after], chance)
    # Where a pair has other outcomes, one attempt after the other may be made without starting anew.
    least = only_single
    for state in range(n_seen):
        if has_other[state]:
            least[state] = nearest[state] + 1.0 / max(likeliest[state], NEGLIGIBLE)
    least[0] = 0.0
    return least
