"""Lower bounds towards many goals in little memory: each is kept as what differs from a vector that they share.

A lower bound may be lowered anywhere as long as its Bellman inequalities hold, and the value of the initial state is
all that is concluded from it. So the numbers of another bound, the *base*, will do in most states, and only those are
kept that the value of the initial state needs. The inequalities of all other states are those of the base.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.graphs.search import Graph
from axplore.proofs.bound_kernels import spread_values
from axplore.proofs.bounds import (
    MARGIN,
    CertainWay,
    GoalValues,
    IntervalModel,
    empirical_path,
    least_steps,
    quick_way,
    way_along,
)
from axplore.proofs.claims import ToOptimise, ToProve, ToSetAside
from axplore.proofs.inherited_bounds import InheritedBounds
from axplore.proofs.row_kernels import MANY, RegionRows, lower_backup, single_factors
from axplore.records.vectors import Vector
from axplore.types import FloatArray, IntArray

MOST_KEPT: Final = 0.25
"""A bound of which more than this part would have to be kept becomes the base of later ones."""

LEAST_LACK: Final = 1e-3
LACK_STEP: Final = 1.25
"""What bases of inherited bounds lack to that of the unseen, as a part of it: the least, and from one to the next."""

NO_VALUES: Final[FloatArray] = np.zeros(0)


class SharedBounds:
    """Keeps lower bounds of one model. Goals that follow each other should be near each other."""

    def __init__(self, model: IntervalModel) -> None:
        self._model = model
        self._base: Vector[np.float64] | None = None
        self._scratch: tuple[FloatArray, float] | None = None
        self._scaled: dict[float, Vector[np.float64]] = {}
        self._factors = single_factors(model.rows)  # also with balls for one goal: pairs with one successor have none

    @cached_property
    def _inherited(self) -> InheritedBounds:
        return InheritedBounds(self._model)

    def inherited(self, goal: int) -> Vector[np.float64] | None:
        """Returns a lower bound that follows from that of the unseen, [n]; None if a solver should look for it.

        Its base is that of the unseen times a number: the greatest of few with which the states outside are no farther.
        """
        found = self._inherited.towards(goal)
        if found is None:
            return None
        path, rows = found
        base = self._scaled_base(self._inherited.scale(path))
        margin = MARGIN * (1.0 + float(path.values.max()))
        lowered = _lowered(rows, self._factors, self._model.predecessors, goal, path.values, base.numbers, margin)
        return Vector.of(lowered, 1.0 + path.steps, base)

    def sets_aside(self, claim: ToSetAside) -> bool:
        """Whether a claim is proven by an inherited bound, which takes less time than to solve for one."""
        if not self._inherited.unseen.at_least > claim.steps:
            return False
        found = self._inherited.towards(claim.goal)
        return found is not None and found[0].at_least > claim.steps

    def _scaled_base(self, scale: float) -> Vector[np.float64]:
        lack = 1.0 - scale
        if lack > 0.0:
            power = max(0, math.ceil(math.log(lack / LEAST_LACK) / math.log(LACK_STEP)))
            lack = min(LEAST_LACK * LACK_STEP**power, 1.0)
        if lack not in self._scaled:
            whole = (1.0 - lack) * self._inherited.unseen.values[: self._model.n_known]
            self._scaled[lack] = Vector.complete(whole)
        return self._scaled[lack]

    def along(self, way: CertainWay) -> Vector[np.float64] | None:
        """Returns the greatest lower bound that a way to a goal allows, if valid together with the base; else None.

        On the way each pair has one successor, and is as likely to lead elsewhere as the region allows.
        """
        if self._base is None:
            return None
        model, base = self._model, self._base
        if self._scratch is None:
            self._scratch = np.append(base.numbers, np.zeros(len(model.frontier))), float(base.numbers.max())
        values = _along(
            model.rows, self._factors, model.owners, model.leading, way.goal, way.states, way.pairs, base.numbers,
            *self._scratch, MARGIN,
        )  # fmt: skip
        if not len(values):
            return None
        states = way.states
        if way.goal < model.n_known:
            states, values = np.append(states, way.goal), np.append(values, 0.0)
        order = np.argsort(states)
        order = order[values[order] != base.numbers[states[order]]]
        return Vector(model.n_known, states[order], values[order], np.float64(1.0 + values[0]), base)

    def kept(self, path: GoalValues) -> Vector[np.float64]:
        """Returns a lower bound with the same steps, for the known states only, [n]."""
        model, whole = self._model, path.values
        own = whole[: model.n_known]
        if path.goal == 0:  # no base for others, of which all are more in the initial state, whatever leads on there
            return Vector.of(own, 1.0 + path.steps)
        if self._base is None:
            self._base = Vector.complete(own.copy())
        rows, margin = model.rows_for(path.goal, -1.0), MARGIN * (1.0 + float(whole.max()))
        lowered = _lowered(rows, self._factors, model.predecessors, path.goal, whole, self._base.numbers, margin)
        if min(self._n_differing(lowered), _n_not_reset(own)) > MOST_KEPT * model.n_known:
            lowered = own.copy()
            self._base, self._scratch = Vector.complete(lowered), None
        return self._fewest(lowered if self._n_differing(lowered) < _n_not_reset(own) else own)

    def _n_differing(self, values: FloatArray) -> int:
        assert self._base is not None
        return int(np.count_nonzero(values != self._base.numbers))

    def _fewest(self, values: FloatArray) -> Vector[np.float64]:
        """Returns values, [n], as what differs from the base, or from RESET if that is less."""
        by_base = self._n_differing(values) < _n_not_reset(values)
        return Vector.of(values, 1.0 + float(values[0]), self._base if by_base else None)

    def proof_of(self, claim: ToOptimise) -> tuple[CertainWay, Vector[np.float64]] | None:
        """The bounds of a way to the goal, if their gap proves its policy near-optimal; found quickly, if it does."""
        for find in (quick_way, _best_way):
            way = find(self._model, claim.goal)
            lower = None if way is None else self.along(way)
            if way is not None and lower is not None and way.at_most - least_steps(lower) <= claim.steps:
                return way, lower
        return None


def _best_way(model: IntervalModel, goal: int) -> CertainWay | None:
    return way_along(model, empirical_path(model, goal))


def _n_not_reset(values: FloatArray) -> int:
    """The number of values that are not those of a RESET."""
    return int(np.count_nonzero(values != 1.0 + values[0]))


class ProvenClaims:
    """The claims that a model proves: `claim in proven`. In large models most are proven by the bounds of others."""

    def __init__(self, model: IntervalModel) -> None:
        self._model = model
        self._lowers = SharedBounds(model) if model.is_large else None

    def __contains__(self, claim: ToProve) -> bool:
        if self._lowers is not None and isinstance(claim, ToSetAside) and self._lowers.sets_aside(claim):
            return True
        if self._lowers is None or not isinstance(claim, ToOptimise):
            return claim.is_proven(self._model)
        if self._lowers.proof_of(claim) is not None:
            return True
        is_proven = claim.is_proven(self._model)
        if is_proven:
            self._lowers.kept(claim.lower(self._model))
        return is_proven


@compiled
def _along(
    rows: RegionRows,
    factors: FloatArray,
    owners: IntArray,
    leading: Graph,
    goal: int,
    way: IntArray,
    pairs: IntArray,
    base: FloatArray,
    values: FloatArray,
    largest: float,
    margin: float,
) -> FloatArray:
    """Returns values on a way that are a lower bound with those of the base elsewhere, [m]; nothing if there are none.

    Those of the base, of which none is greater than `largest`, stand in `values`, [n + others], before and after.
    """
    n_known, on_way = len(base), np.empty(len(way))
    value = 0.0
    for index in range(len(way) - 1, -1, -1):
        if factors[pairs[index]] == MANY:
            return NO_VALUES
        value = rows.costs[pairs[index]] + factors[pairs[index]] * value
        on_way[index] = value
    if len(way) == 0 or value < base[0]:
        return NO_VALUES
    for index in range(len(way)):
        values[way[index]] = on_way[index]
    spread_values(rows, values, n_known, goal)
    margin *= 1.0 + max(largest, rows.reset_cost + value)
    is_bound = _is_bound_with(rows, factors, owners, leading, goal, way, base, values, margin)
    for state in way:
        values[state] = base[state]
    if goal < n_known:
        values[goal] = base[goal]
    return on_way if is_bound else NO_VALUES


@compiled_part
def _is_bound_with(
    rows: RegionRows,
    factors: FloatArray,
    owners: IntArray,
    leading: Graph,
    goal: int,
    way: IntArray,
    base: FloatArray,
    values: FloatArray,
    margin: float,
) -> bool:
    """Whether values that differ from those of the base on a way only are a lower bound.

    The base is one. So only the pairs of states with a greater value have to be looked at, and those that lead to
    states with a smaller one.
    """
    for index in range(len(way) + 1):
        state = way[index] if index < len(way) else goal
        if state < len(base) and values[state] > base[state]:
            if values[state] > rows.reset_cost + values[0]:
                return False
            for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                if not _allows(rows, factors, pair, values[state], values, margin):
                    return False
        elif state >= len(base) or values[state] < base[state]:
            for entry in range(leading.offsets[state], leading.offsets[state + 1]):
                pair = leading.heads[entry]
                owner = owners[pair]
                if owner != goal and not _allows(rows, factors, pair, values[owner], values, margin):
                    return False
    return True


@compiled_inline
def _allows(rows: RegionRows, factors: FloatArray, pair: int, value: float, values: FloatArray, margin: float) -> bool:
    """Whether a value is at most what a pair of its state allows."""
    if factors[pair] == MANY:
        allowed = lower_backup(rows, pair, values)[0]
    else:
        allowed = rows.costs[pair] + factors[pair] * values[rows.successors[rows.row_offsets[pair]]]
    return allowed >= value - margin


@compiled
def _lowered(
    rows: RegionRows,
    factors: FloatArray,
    predecessors: Graph,
    goal: int,
    lower: FloatArray,
    base: FloatArray,
    margin: float,
) -> FloatArray:
    """Returns a bound that is as large as `lower` in the initial state, and as `base` wherever that is enough, [n].

    Every value begins as the less of both. Where an inequality fails, the values that it rests on are raised to those
    of `lower`, for which it holds. Raising them spoils no inequality but their own.
    """
    n_known, n_ahead = len(base), 1
    values = lower.copy()
    for state in range(1, n_known):
        values[state] = min(lower[state], base[state])
    spread_values(rows, values, n_known, goal)
    ahead, is_ahead = np.zeros(2 * n_known, np.int64), np.zeros(n_known, np.bool_)
    is_ahead[0] = True
    for successor in range(len(values)):
        # The others reset. What is lowered below the base may spoil the inequalities of what leads there.
        if values[successor] < (base[successor] if successor < n_known else rows.reset_cost + base[0]):
            for entry in range(predecessors.offsets[successor], predecessors.offsets[successor + 1]):
                state = predecessors.heads[entry]
                if not is_ahead[state]:
                    is_ahead[state] = True
                    ahead[n_ahead] = state
                    n_ahead += 1
    while n_ahead:
        n_ahead -= 1
        state = ahead[n_ahead]
        if state == goal or values[state] <= 0.0:
            continue
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            if _allows(rows, factors, pair, values[state], values, margin):
                continue
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                successor = rows.successors[entry]
                if successor < n_known and values[successor] < lower[successor]:
                    values[successor] = lower[successor]
                    ahead[n_ahead] = successor
                    n_ahead += 1
    return values[:n_known]
