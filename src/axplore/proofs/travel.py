"""How the certified explorer travels: shortest paths by the observed frequencies, and tours along them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.graphs.search import Graph
from axplore.proofs.bounds import GoalValues, IntervalModel, empirical_path
from axplore.proofs.estimate_kernels import UNKNOWN_VALUE, empirical_values
from axplore.proofs.row_kernels import NEGLIGIBLE, RegionRows
from axplore.proofs.trial_kernels import want_ways
from axplore.records.vectors import Vector, Vectors
from axplore.target import Target
from axplore.types import RESET_ACTION, RESET_PAIR, BoolArray, FloatArray, IntArray
from axplore.worlds.contract import Tour

ACCURACY: Final = 0.01
"""The steps by which ways may be improved further: what draws cost has to be known roughly."""

NEAR: Final = 256
"""In models with more known states, ways back are sought among so many states that are the nearest."""

NOWHERE: Final = -1
"""In place of a state that is not left."""

MOST_SWEEPS: Final = 100
"""Ways among these are improved at most so often."""

MOST_IN_ARRAYS: Final = 2**21
"""The policies of a tour are arrays if they have at most this many numbers, 16 MB; else only what differs is kept."""


class Travel:
    """The steps that one more draw of each pair takes, the way back to its state included, by the frequencies.

    They are found when they are asked for: what is planned concerns few pairs of a large model.
    """

    def __init__(self, model: IntervalModel) -> None:
        self._model = model
        nothing = np.ones(model.n_pairs), np.zeros(model.n_known, dtype=np.bool_)
        found: tuple[FloatArray, BoolArray] = model.shared.setdefault("travel", nothing)
        self._per_draw, self._is_found = found

    @property
    def found(self) -> tuple[FloatArray, BoolArray]:
        """The steps for a draw of each pair, [P], at least one, and of which states those of the pairs are found, [n].

        Both change when more are found.
        """
        return self._per_draw, self._is_found

    def for_growth(self, visits: FloatArray, gain: FloatArray) -> FloatArray:
        """The steps for a draw of each pair whose visits would grow, and at least one for the others, [P].

        Args:
            visits: of each pair, [P].
            gain: what a claim gains by the logarithm of the visits of each pair, [P].
        """
        wanted = np.zeros(self._model.n_known, dtype=np.bool_)
        while want_ways(visits, gain, self._model.owners, self._per_draw, self._is_found, wanted):
            self.find(wanted)
            wanted[:] = False
        return self._per_draw

    def find(self, wanted: BoolArray) -> None:
        """Finds the steps for a draw of the pairs of some states, [n], of which none were found."""
        states, model = np.flatnonzero(wanted), self._model
        if model.n_known > NEAR:
            _find_near_travel(model.rows, model.predecessors, model.limit, states, self._from_start, self._per_draw)
        else:
            _find_travel(
                model.rows, model.predecessors, model.leading, len(model.numbers), model.limit, states, self._per_draw
            )
        self._is_found[states] = True

    def per_draw_of_all(self) -> FloatArray:
        """The steps for a draw of every pair, [P]."""
        return self._found(np.arange(self._model.n_pairs))

    def steps(self, draws: FloatArray) -> float:
        """The steps that draws, [P], take in all."""
        drawn = np.flatnonzero(draws > 0.0)
        # Of few pairs as a rule; a product of long arrays would depend on the number of processors.
        return float((draws[drawn] * self._found(drawn)[drawn]).sum())

    def along(self, pairs: IntArray) -> TravelAlong:
        """The same for some of the pairs."""
        return TravelAlong(self._found(pairs)[pairs])

    def _found(self, pairs: IntArray) -> FloatArray:
        """The steps for a draw of every pair, [P], of which those of these pairs have been found."""
        wanted = np.zeros(self._model.n_known, dtype=np.bool_)
        wanted[self._model.owners[pairs]] = True
        wanted &= ~self._is_found
        if wanted.any():
            self.find(wanted)
        return self._per_draw

    @cached_property
    def _from_start(self) -> FloatArray:
        """About the steps from the initial state to each known state, [n]: hops, as much longer as to the frontier."""
        model = self._model
        hops = model.hops.astype(np.float64)
        is_far = np.isfinite(model.frontier_steps) & (hops[model.n_known :] > 0)
        longer = model.frontier_steps[is_far] / hops[model.n_known :][is_far]
        return hops[: model.n_known] * (float(np.median(longer)) if len(longer) else 1.0)


@dataclass(frozen=True, eq=False)
class TravelAlong:
    """What `Travel` says of some pairs, in the model of a way: the steps that a draw of each takes, [m]."""

    steps_per_draw: FloatArray

    def for_growth(self, visits: FloatArray, gain: FloatArray) -> FloatArray:  # noqa: ARG002
        """The steps for a draw of each pair, [m]."""
        return self.steps_per_draw

    def steps(self, draws: FloatArray) -> float:
        """The steps that draws, [m], take in all."""
        return float((draws * self.steps_per_draw).sum())


@compiled
def _find_travel(
    rows: RegionRows,
    predecessors: Graph,
    leading: Graph,
    n_seen: int,
    limit: float,
    states: IntArray,
    per_draw: FloatArray,
) -> None:
    n_known = len(rows.state_pairs) - 1
    policy = np.empty(n_known, np.int64)
    values = np.empty(n_seen)
    for state in states:
        if not empirical_values(rows, predecessors, leading, state, n_known, values, policy, 10.0 * limit, ACCURACY):
            values[:] = limit
        for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                per_draw[pair] += rows.frequencies[entry] * min(values[rows.successors[entry]], limit)


@compiled
def _find_near_travel(
    rows: RegionRows,
    predecessors: Graph,
    limit: float,
    states: IntArray,
    from_start: FloatArray,
    per_draw: FloatArray,
) -> None:
    """The same for a large model: ways back lead through states near by, and others are about as far as the farthest.

    `from_start` has about the steps from the initial state to each known state, which what resets takes, [n].
    """
    n_known = len(rows.state_pairs) - 1
    values, order = np.full(n_known, UNKNOWN_VALUE), np.empty(NEAR, np.int64)
    for target in states:
        n_near = _find_nearest(predecessors, target, values, order)
        beyond = values[order[n_near - 1]] + 1.0
        for _ in range(MOST_SWEEPS):
            change = 0.0
            after_reset = rows.reset_cost + (values[0] if values[0] != UNKNOWN_VALUE else from_start[target])
            for place in range(1, n_near):
                state = order[place]
                best = after_reset if state > 0 else np.inf
                for pair in range(rows.state_pairs[state], rows.state_pairs[state + 1]):
                    best = min(best, _way_over(rows, pair, state, values, beyond, after_reset))
                if best < np.inf:
                    change = max(change, abs(best - values[state]))
                    values[state] = best
            if change <= ACCURACY:
                break
        after_reset = rows.reset_cost + (values[0] if values[0] != UNKNOWN_VALUE else from_start[target])
        for pair in range(rows.state_pairs[target], rows.state_pairs[target + 1]):
            per_draw[pair] = min(_way_over(rows, pair, NOWHERE, values, beyond, after_reset), 1.0 + limit)
        for place in range(n_near):
            values[order[place]] = UNKNOWN_VALUE


@compiled_part
def _find_nearest(predecessors: Graph, target: int, values: FloatArray, order: IntArray) -> int:
    """Writes states from which some way leads to a target, the nearest first, and their hops; returns how many."""
    order[0], values[target], n_near, looked_at = target, 0.0, 1, 0
    while looked_at < n_near:
        state = order[looked_at]
        looked_at += 1
        for edge in range(predecessors.offsets[state], predecessors.offsets[state + 1]):
            before = predecessors.heads[edge]
            if n_near < len(order) and values[before] == UNKNOWN_VALUE:
                values[before] = values[state] + 1.0
                order[n_near] = before
                n_near += 1
    return n_near


@compiled_inline
def _way_over(rows: RegionRows, pair: int, state: int, values: FloatArray, beyond: float, after_reset: float) -> float:
    """The steps of a way that begins with a pair, again and again for as long as that stays in the state."""
    steps, leaves = rows.costs[pair], 1.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        successor = rows.successors[entry]
        if successor == state:
            leaves -= rows.frequencies[entry]
        elif successor >= len(values):
            steps += rows.frequencies[entry] * after_reset
        elif values[successor] == UNKNOWN_VALUE:
            steps += rows.frequencies[entry] * min(beyond, after_reset)
        else:
            steps += rows.frequencies[entry] * values[successor]
    return steps / leaves if leaves > NEGLIGIBLE else np.inf


def actions_of(model: IntervalModel, policy: IntArray) -> IntArray:
    """A policy of pairs as one of indices among the actions of each known state, [n]."""
    return _among_actions(policy, model.rows.state_pairs[:-1])


def kept_actions_of(model: IntervalModel, policy: Vector[np.int64]) -> Vector[np.int64]:
    """The same of a policy that is kept without the states where it resets."""
    actions = _among_actions(policy.numbers, model.rows.state_pairs[policy.indices])
    return Vector(policy.length, policy.indices, actions, policy.rest)


def _among_actions(pairs: IntArray, first_pairs: IntArray) -> IntArray:
    return np.where(pairs == RESET_PAIR, RESET_ACTION, pairs - first_pairs)


def tour_of(model: IntervalModel, draws: IntArray, target: Target) -> Tour:
    """Returns the order to draw each pair a number of further times, [P]."""
    pairs = np.flatnonzero(draws > 0)
    indices = model.owners[pairs]
    targets = np.unique(indices)
    policies, distances = _ways(model, targets)
    return Tour(
        states=model.numbers[indices],
        actions=pairs - model.rows.state_pairs[indices],
        times=draws[pairs],
        policies=policies,
        distances=distances,
        max_journey=journey_limit(target),
    )


def _ways(model: IntervalModel, targets: IntArray) -> tuple[IntArray | Vectors, FloatArray | Vectors]:
    """The policies and the distances to some of the known states, for a tour."""
    known = model.numbers[: model.n_known]
    n_states = int(known.max()) + 1

    def way_to(target: int) -> tuple[IntArray, FloatArray]:
        path = empirical_path(model, target)
        policy, distances = np.full(n_states, RESET_ACTION, dtype=np.int64), np.full(n_states, 1.0 + path.steps)
        policy[known] = actions_of(model, path.policy)
        distances[known] = path.values[: model.n_known]
        return policy, distances

    if len(targets) * n_states <= MOST_IN_ARRAYS:
        policies, distances = zip(*map(way_to, targets.tolist()), strict=True)
        return np.array(policies), np.array(distances)
    ways = [_kept_way(model, empirical_path(model, target), n_states) for target in targets.tolist()]
    kept_policies, kept_distances = zip(*ways, strict=True)
    return Vectors.of(kept_policies, n_states, np.int64), Vectors.of(kept_distances, n_states, np.float64)


def _kept_way(model: IntervalModel, path: GoalValues, n_states: int) -> tuple[Vector[np.int64], Vector[np.float64]]:
    """Returns a way, by number, with what differs from most states: these play the same, or are as far as by RESET."""
    plays = np.flatnonzero(path.policy != RESET_PAIR)
    actions = path.policy[plays] - model.rows.state_pairs[plays]
    policy = _by_number(model.numbers[plays], actions, n_states, RESET_ACTION)
    if 2 * len(plays) > n_states:
        policy = Vector.of(policy.whole, int(np.bincount(policy.whole - RESET_ACTION).argmax()) + RESET_ACTION)
    distances, after_reset = path.values[: model.n_known], 1.0 + path.steps
    near = np.flatnonzero(distances != after_reset)
    return policy, _by_number(model.numbers[near], distances[near], n_states, after_reset)


def _by_number(states: IntArray, numbers: npt.NDArray[Any], length: int, rest: float) -> Vector[Any]:
    """Returns numbers of states, and another one of all others."""
    order = np.argsort(states)
    return Vector(length, states[order], numbers[order], numbers.dtype.type(rest))


def journey_limit(target: Target) -> int:
    """Returns the steps after which a journey is cut: resetting then costs at most ε ([DisCo] Lem. (log_dependency_H)).

    Differs from [DisCo], whose `effective_horizon` is a rule of DisCo: L + 1 is rounded up, and ε counts as 1 at most.
    """
    reach = target.radius + 1
    return 4 * math.ceil(reach) * math.ceil(math.log(4 * reach / min(target.epsilon, 1.0)))
