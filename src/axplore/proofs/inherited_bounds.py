"""Lower bounds towards many goals that are those of the unseen except near the goal: only what changes is solved for.

Let B be a lower bound towards a state never seen, so that B <= 1 + least mean of B under every action. Towards another
goal the same inequalities are to hold with the value 0 there, and B fails them only in states that may lead to the goal
soon. A bound W <= B is found by lowering the values of these to what their actions allow, and then those of the states
that may lead to them, until nothing changes by more than a tolerance. It is the greatest bound below B.

Where the initial state is lowered too, the states outside, which reset, have to be lowered with it, and with them all
states that lead there. But with B every c B is a bound, for 0 <= c <= 1, since c B <= c + least mean of c B. So W is
sought below c B, where c (1 + B(s0)) = 1 + W(s0): then every value that is not lowered still follows. W(s0) is found by
repeating this from above.

The result is a bound by its inequalities alone. It is as good as the best one if the states that the most favourable
policy and model meet from the initial state on were all lowered: their values then depend on each other only.
docs/algorithms/certified.md, section 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.graphs.search import Graph
from axplore.proofs.bound_kernels import SAME, spread_values
from axplore.proofs.bounds import GoalValues, IntervalModel, lower_path
from axplore.proofs.row_kernels import MANY, UNKNOWN_SHIFT, RegionRows, least_mean_by, quick_mean, single_factors
from axplore.proofs.sharpening import sharp_for_lower, sharpened_pair
from axplore.types import RESET_PAIR, FloatArray, IntArray

MOST_LOWERED: Final = 0.5
"""Where more than this part of the states would be lowered, a solver is quicker."""

MOST_LOOKS: Final = 20
"""The number of times that each state may be looked at, on average over all states."""

MOST_ROUNDS: Final = 12
"""How often the value of the initial state is looked for, at most."""

SLIGHTLY: Final = 1e-3
"""More than the part by which values miss those of the best action."""

NOT_FOUND: Final[FloatArray] = np.zeros(0)


class InheritedBounds:
    """Lower bounds of one model that follow from that of the unseen."""

    def __init__(self, model: IntervalModel) -> None:
        self._model = model
        self.unseen, self.rows = _bound_of_unseen(model)
        self._factors = single_factors(self.rows)

    def towards(self, goal: int) -> tuple[GoalValues, RegionRows] | None:
        """Returns a lower bound and the balls by which it holds; None if a solver should look for a greater one."""
        model = self._model
        if not 0 < goal < len(model.numbers) or model.counts is None or model.log_levels is None:
            return None
        rows = self.rows._replace(shares=self.rows.shares.copy(), slack=self.rows.slack.copy())
        values = _inherited(
            rows, self._factors, model.predecessors, goal, self.unseen.values, model.counts, model.log_levels,
            model.n_known, model.residual, model.min_cost,
        )  # fmt: skip
        if not len(values):
            return None
        return GoalValues(goal, values, np.full(model.n_known, RESET_PAIR), proven=True), rows

    def scale(self, path: GoalValues) -> float:
        """Returns by what the bound of the unseen may be multiplied so that it says no more of the states outside."""
        reset_cost = self._model.rows.reset_cost
        return (reset_cost + path.steps) / (reset_cost + self.unseen.steps)


def _bound_of_unseen(model: IntervalModel) -> tuple[GoalValues, RegionRows]:
    """The bound, and balls that were sharpened for it twice: those of all other goals rest on them."""
    path, rows = lower_path(model, model.unseen), model.rows_for(model.unseen, -1.0)
    if model.counts is None or model.log_levels is None or not model.has_several:
        return path, rows
    about = path.values * (1.0 + SLIGHTLY)  # so that the best action of each state is among those that may be the best
    shares, slack = sharp_for_lower(rows, model.counts, model.log_levels, model.unseen, about, model.n_known)
    rows = rows._replace(shares=shares, slack=slack)
    again = replace(model, sharp={(model.unseen, -1.0, model.n_known): rows})
    return lower_path(again, model.unseen, path.values), rows


@compiled
def _inherited(
    rows: RegionRows,
    factors: FloatArray,
    predecessors: Graph,
    goal: int,
    base: FloatArray,
    counts: FloatArray,
    log_levels: FloatArray,
    n_known: int,
    tolerance: float,
    min_cost: float,
) -> FloatArray:
    """Returns a lower bound, [n + others], or nothing if none as great as the best was found; changes `rows`."""
    start, steps, is_sharp = base[0], base[0], False
    values, choice = np.empty(len(base)), np.empty(n_known, np.int64)
    for _ in range(MOST_ROUNDS):
        # Not below `scale` times the base, which is a bound where the states outside have the value of `start`.
        scale = (rows.reset_cost + steps) / (rows.reset_cost + start)
        values[:] = scale * base
        values[n_known:] = rows.reset_cost + steps
        values[goal] = 0.0
        is_done = _lower_near(rows, factors, predecessors, goal, values, choice, tolerance)
        if not is_done:
            if steps - values[0] <= tolerance:
                return NOT_FOUND
            steps = values[0]  # not as low as it gets, but those that depend on it are lowered by the scale
            continue
        if choice[0] == NOT_LOWERED and scale == 1.0:
            break
        if not is_sharp:
            _sharpen_lowered(rows, counts, log_levels, goal, values, choice)
            is_sharp = True
            continue
        if steps - values[0] <= tolerance:
            break
        steps = values[0]
    else:
        return NOT_FOUND
    if choice[0] == NOT_LOWERED and scale < 1.0:
        return NOT_FOUND
    if choice[0] != NOT_LOWERED and not _is_closed(rows, goal, choice):
        return NOT_FOUND
    residual = tolerance + max(steps - values[0], 0.0)
    for state in range(n_known):
        values[state] /= 1.0 + residual / min_cost
    spread_values(rows, values, n_known, goal)
    return values


NOT_LOWERED: Final = -2
"""In place of the pair of a state whose value is that of the base."""


@compiled_part
def _lower_near(
    rows: RegionRows,
    factors: FloatArray,
    predecessors: Graph,
    goal: int,
    values: FloatArray,
    choice: IntArray,
    tolerance: float,
) -> bool:
    """Lowers the values of states that do not follow, from the goal backwards; returns whether they were few.

    `choice` is the pair by which each state was lowered, or RESET_PAIR, or NOT_LOWERED, [n].
    """
    n_known = len(choice)
    free = values[n_known] if len(values) > n_known else np.inf
    if goal == n_known:
        free = values[n_known + 1] if len(values) > n_known + 1 else np.inf
    choice.fill(NOT_LOWERED)
    shifts = np.full(len(rows.slack), UNKNOWN_SHIFT)
    queue, is_queued = np.empty(n_known, np.int64), np.zeros(n_known, np.bool_)
    first, n_queued, n_lowered = 0, 0, 0
    changed = goal
    looks = 0
    while True:
        for edge in range(predecessors.offsets[changed], predecessors.offsets[changed + 1]):
            state = predecessors.heads[edge]
            if state != goal and not is_queued[state]:
                is_queued[state] = True
                queue[(first + n_queued) % n_known] = state
                n_queued += 1
        changed = -1
        while n_queued and changed < 0:
            state = queue[first]
            first, n_queued, is_queued[state] = (first + 1) % n_known, n_queued - 1, False
            looks += 1
            value, pair = _least_backup(rows, factors, state, values, free, shifts)
            if value < values[state] - tolerance:
                if choice[state] == NOT_LOWERED:
                    n_lowered += 1
                values[state], choice[state], changed = value, pair, state
        if changed < 0:
            return True
        if n_lowered > MOST_LOWERED * n_known or looks > MOST_LOOKS * n_known:
            return False


@compiled_inline
def _least_backup(
    rows: RegionRows, factors: FloatArray, state: int, values: FloatArray, free: float, shifts: FloatArray
) -> tuple[float, int]:
    """The cost plus the least mean of the values, of the best pair or RESET, and which that is."""
    best, choice = (free, RESET_PAIR) if state > 0 or rows.state_pairs[1] == 0 else (np.inf, RESET_PAIR)
    for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
        if factors[pair] != MANY:
            value = rows.costs[pair] + factors[pair] * max(values[rows.successors[rows.row_offsets[pair]]], 0.0)
        elif best < np.inf and rows.costs[pair] + quick_mean(rows, pair, values, shifts[pair]) >= best - SAME:
            continue
        else:
            mean, _, shift = least_mean_by(rows, factors, pair, values, 0.0, -1.0, shifts[pair], -1.0)
            shifts[pair] = shift
            value = rows.costs[pair] + mean
        if value < best:
            best, choice = value, pair
    return best, choice


@compiled_part
def _sharpen_lowered(
    rows: RegionRows, counts: FloatArray, log_levels: FloatArray, goal: int, values: FloatArray, choice: IntArray
) -> None:
    """Replaces the balls of the states that were lowered by ones that are sharp for these values."""
    row = np.zeros(len(rows.shares))
    for state in range(len(choice)):
        if choice[state] != NOT_LOWERED and state != goal:
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                sharpened_pair(rows, counts, log_levels, pair, values, row)


@compiled_part
def _is_closed(rows: RegionRows, goal: int, choice: IntArray) -> bool:
    """Whether only lowered states are met from the initial one on, before the goal and the states outside."""
    ahead, is_met = np.zeros(len(choice), np.int64), np.zeros(len(choice), np.bool_)
    is_met[0], n_ahead = True, 1
    while n_ahead:
        n_ahead -= 1
        state = ahead[n_ahead]
        if choice[state] == NOT_LOWERED:
            return False
        pair = choice[state]
        first, end = (0, 0) if pair == RESET_PAIR else (rows.row_offsets[pair], rows.row_offsets[pair + 1])
        for entry in range(first, end):
            after = rows.successors[entry]
            if rows.shares[entry] > 0.0 and after != goal and after < len(choice) and not is_met[after]:
                is_met[after] = True
                ahead[n_ahead] = after
                n_ahead += 1
    return True
