"""Optimistic value iteration, OVI_SSP ([DisCo] App. "Computation of the Optimistic Policies").

From counts of the transitions out of a known set K, find the shortest way to a goal that the counts do not rule out,
restricted to K. The model has the states K, the goal g and one state x for everything else that was seen. Outside K
there is RESET alone, so x leads back to the initial state, at cost 1 (the paper's definition prints 0 and means 1).

A bonus β(s, a, y) says how far p̂(y|s, a) may be from the truth. The optimistic model takes every probability at the
low end and gives what is left to the goal ([DisCo] Def. (ssp.mdp.onKk.optimistic)):

    p̃(y|s, a) = max(p̂(y|s, a) - β(s, a, y), 0)   for y in K without g, and for y = x,
    p̂(x|s, a) = 1 - sum of p̂ over K and g,   β(s, a, x) = sum of β over K and g, never seen ones included,
    p̃(g|s, a) = 1 - the sum of all others.

How all goals share one model. On K, p̃ does not depend on the goal, except that g itself has the value 0. The mass of
x does, but only in pairs from which a goal outside K was seen. Such a pair has the mass for a goal never seen there,
and a correction at an entry of its own for each state seen outside. That entry is an *echo*: it carries the value of x
if this state is the goal, and 0 if not. So one matrix serves all goals, and a batch of them costs no more than on a
known model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.compressed import offsets_from, offsets_of
from axplore.errors import InvalidCostsError, InvalidModelError, InvalidSettingError
from axplore.graphs.inputs import checked_costs, checked_reset_costs, smallest_cost
from axplore.graphs.rows import (
    CONVERGED,
    GAVE_UP,
    Goals,
    Limits,
    Solutions,
    padded_rows,
)
from axplore.graphs.search import graph_from, reachable
from axplore.graphs.solver import MAX_SWEEPS, SweepOrder, empty_outcome, fill_in, solve
from axplore.graphs.value_iteration import ShortestPaths, check_stopping
from axplore.types import BoolArray, FloatArray, IntArray

Bonus: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""β, given estimates p̂ and the visits N of their pairs: how far each estimate may be off. All three have one shape."""

_DEVIATION_FACTOR: Final = 2
"""Before the deviation in β ([DisCo] Eq. (bonuses))."""
_LOGARITHM_FACTOR: Final = 6
"""Before the logarithm in β ([DisCo] Eq. (bonuses))."""
_PAIR_FACTOR: Final = 2
"""Before S A N in the logarithm of β ([DisCo] Eq. (bonuses))."""
_NO_MASS: Final = 1e-12
"""The largest mass that rounding may leave in place of zero."""


def theory_bonus(states_bound: int, actions: int, delta: float) -> Bonus:
    """β of the proofs, by the empirical Bernstein inequality ([DisCo] Eq. (bonuses)).

    With N⁺ = max(1, N) and ℓ = log(2 S A N⁺/δ), it is 2 sqrt(p̂ (1 - p̂) ℓ/N⁺) + 6 ℓ/N⁺.

    Args:
        states_bound: S, an upper bound on the number of states.
        actions: A, the number of actions.
        delta: δ, the probability of failure.
    """
    if states_bound < 1 or actions < 1 or not 0 < delta < 1:
        raise InvalidSettingError(
            f"states_bound is {states_bound}, actions is {actions} and delta is {delta}; "
            "the first two must be at least 1 and delta between 0 and 1"
        )

    def bonus(empirical: FloatArray, visits: FloatArray) -> FloatArray:
        at_least_one = np.maximum(1.0, visits)
        logarithm = np.log(_PAIR_FACTOR * states_bound * actions * at_least_one / delta)
        variance = empirical * (1 - empirical)
        deviation = _DEVIATION_FACTOR * np.sqrt(variance / at_least_one * logarithm)
        answer: FloatArray = deviation + _LOGARITHM_FACTOR * logarithm / at_least_one
        return answer

    return bonus


def experiment_bonus(empirical: FloatArray, visits: FloatArray) -> FloatArray:
    """β of the simulations, without constants and logarithms ([DisCo] App. "Algorithmic Configurations").

    It is sqrt(p̂ (1 - p̂)/N⁺) + 1/N⁺ with N⁺ = max(1, N), and carries no guarantee.
    """
    at_least_one = np.maximum(1.0, visits)
    answer: FloatArray = np.sqrt(empirical * (1 - empirical) / at_least_one) + 1 / at_least_one
    return answer


def optimistic_value_iteration(
    model: EmpiricalModel,
    goals: int | Sequence[int] | IntArray,
    bonus: Bonus,
    *,
    precision: float,
    costs: npt.ArrayLike | None = None,
    reset_costs: npt.ArrayLike | None = None,
    outside_reset_cost: float = 1.0,
    max_sweeps: int = MAX_SWEEPS,
    order: SweepOrder = "in-place",
    give_up_above: float = math.inf,
    threads: int | None = None,
) -> ShortestPaths:
    """Optimistic values and policies restricted to the known set, for one goal or several ([DisCo] Alg. OVI_SSP).

    Args:
        model: the counts.
        goals: the number of a goal in the model, or several: known states below n, others from n on.
        bonus: β.
        precision: γ, the change at which iteration stops; ε/(6L) in [DisCo] Alg. 1.
        costs: the cost of each pair, above 0 and at most 1, [P]; 1 by default.
        reset_costs: the cost of RESET, one number or one for each known state, [n]; 1 by default.
        outside_reset_cost: the cost of RESET outside the known set.
        max_sweeps: number of sweeps without convergence after which NotConvergedError is raised.
        order: 'in-place', or 'synchronous' for the paper's iteration to the letter.
        give_up_above: a goal is abandoned once the value of the initial state is proven to exceed this.
        threads: the largest number of threads for several goals; all processors by default.

    Returns:
        Values and policies on the known states, [G, n]. The bounds speak of the optimistic model. Where that leads to a
        goal from nowhere within reach of the initial state, all values are infinite.
    """
    check_stopping(precision, max_sweeps, order)
    numbers = np.atleast_1d(np.asarray(goals, dtype=np.int64))
    if (numbers < 0).any():
        raise InvalidSettingError(f"goal {numbers.min()} does not exist; states are numbered from 0")
    if not 0 < outside_reset_cost <= 1:
        raise InvalidCostsError(f"outside_reset_cost is {outside_reset_cost:g}; it must be above 0 and at most 1")
    pair_costs = checked_costs(costs, model.n_pairs, model.pair_name)
    state_costs = checked_reset_costs(reset_costs, model.n_known, lambda state: f"known state {state}, RESET")
    min_cost = min(smallest_cost(pair_costs, state_costs), outside_reset_cost)
    limits = Limits(precision, min_cost, max_sweeps, give_up_above)
    found = empty_outcome(len(numbers), model.n_known, model.n_known)
    is_outside = numbers >= model.n_known
    for rows_for in (_rows_for_known_goals, _rows_for_outside_goals):
        indices = np.flatnonzero(is_outside == (rows_for is _rows_for_outside_goals))
        if indices.size:
            problem = _OptimisticProblem(
                model, rows_for(model, bonus), pair_costs, state_costs, outside_reset_cost, limits
            )
            fill_in(found, indices, problem.solved(numbers[indices], order, threads))
    return ShortestPaths(
        goals=tuple(numbers.tolist()),
        initial_index=model.initial_index,
        values=found.values,
        policy=found.policy,
        residuals=found.residuals,
        sweeps=found.sweeps,
        gave_up=found.status == GAVE_UP,
        precision=precision,
        min_cost=min_cost,
    )


@dataclass(frozen=True, eq=False)
class _OptimisticRows:
    """p̃ for all goals of one kind, as compressed rows.

    Attributes:
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        columns: a known state below n, x at n, the echo of the state n + j at n + 1 + j, [E].
        weights: p̃, or the correction of the mass of x in an echo, [E].
        left: the mass left to a goal that the pair was never seen to lead to, [P].
    """

    row_offsets: IntArray
    columns: IntArray
    weights: FloatArray
    left: FloatArray

    @staticmethod
    def of(pairs: IntArray, columns: IntArray, weights: FloatArray, left: FloatArray) -> _OptimisticRows:
        """Sorts entries by pair and drops those without weight."""
        kept = np.flatnonzero(weights)
        kept = kept[np.argsort(pairs[kept], kind="stable")]
        return _OptimisticRows(offsets_of(pairs[kept], len(left)), columns[kept], weights[kept], left)


@dataclass(frozen=True, eq=False)
class _Bounds:
    """The optimistic model that the bonus makes from the counts; K is the known set.

    Attributes:
        bonus: β(s, a, y) of each transition seen, [T].
        bonus_unseen: β(s, a, y) of a state y never seen from the pair, [P].
        bonus_known: the sum of β(s, a, y) over all y in K, [P].
        outside: 1 minus the sum of p̂ over K, [P]; all of it where a pair was never played.
        is_known: whether a transition leads into K, [T].
        low: p̃ = max(p̂ - β, 0) of each transition into K, [T of K].
        low_sum: the sum of these, [P].
    """

    bonus: FloatArray
    bonus_unseen: FloatArray
    bonus_known: FloatArray
    outside: FloatArray
    is_known: BoolArray
    low: FloatArray
    low_sum: FloatArray

    @staticmethod
    def of(model: EmpiricalModel, bonus: Bonus) -> _Bounds:
        pairs, visits = model.transition_pairs, model.visits.astype(np.float64)
        is_known = model.successors < model.n_known
        into_known, n_pairs = pairs[is_known], model.n_pairs
        seen, unseen = bonus(model.empirical, visits[pairs]), bonus(np.zeros(n_pairs), visits)
        never_seen = model.n_known - np.bincount(into_known, minlength=n_pairs)
        low: FloatArray = np.maximum(model.empirical[is_known] - seen[is_known], 0.0)
        outside = np.bincount(pairs[~is_known], model.empirical[~is_known], minlength=n_pairs)
        return _Bounds(
            bonus=seen,
            bonus_unseen=unseen,
            bonus_known=np.bincount(into_known, seen[is_known], minlength=n_pairs) + never_seen * unseen,
            outside=np.where(visits > 0, outside, 1.0),
            is_known=is_known,
            low=low,
            low_sum=np.bincount(into_known, low, minlength=n_pairs).astype(np.float64),
        )


def _rows_for_known_goals(model: EmpiricalModel, bonus: Bonus) -> _OptimisticRows:
    bounds = _Bounds.of(model, bonus)
    mass = np.maximum(bounds.outside - bounds.bonus_known, 0.0)
    return _OptimisticRows.of(
        np.concatenate((model.transition_pairs[bounds.is_known], np.arange(model.n_pairs))),
        np.concatenate((model.successors[bounds.is_known], np.full(model.n_pairs, model.n_known))),
        np.concatenate((bounds.low, mass)),
        1.0 - bounds.low_sum - mass,
    )


def _rows_for_outside_goals(model: EmpiricalModel, bonus: Bonus) -> _OptimisticRows:
    bounds = _Bounds.of(model, bonus)
    pairs = model.transition_pairs[~bounds.is_known]
    # The bonus of the goal counts towards that of x: the one for a state never seen, or its own where it was seen.
    room = bounds.outside - bounds.bonus_known
    mass = np.maximum(room - bounds.bonus_unseen, 0.0)
    own = np.maximum(room[pairs] - (model.empirical + bounds.bonus)[~bounds.is_known], 0.0)
    return _OptimisticRows.of(
        np.concatenate((model.transition_pairs[bounds.is_known], np.arange(model.n_pairs), pairs)),
        np.concatenate(
            (
                model.successors[bounds.is_known],
                np.full(model.n_pairs, model.n_known),
                model.successors[~bounds.is_known] + 1,
            )
        ),
        np.concatenate((bounds.low, mass, own - mass[pairs])),
        1.0 - bounds.low_sum - mass,
    )


@dataclass(frozen=True, eq=False)
class _OptimisticProblem:
    """An optimistic model with its costs, and when to stop."""

    model: EmpiricalModel
    optimistic: _OptimisticRows
    costs: FloatArray
    reset_costs: FloatArray
    outside_reset_cost: float
    limits: Limits

    def solved(self, goals: IntArray, order: SweepOrder, threads: int | None) -> Solutions:
        """Returns the outcome for these goals, all known or all outside, on the known states."""
        model, n_known = self.model, self.model.n_known
        outcome = empty_outcome(len(goals), n_known, n_known)
        self._fill_unreachable(outcome, goals)
        indices = np.flatnonzero(self._is_reachable(goals))
        if not indices.size:
            return outcome
        rows = padded_rows(
            model.state_pairs, self.optimistic.row_offsets, self.optimistic.columns, self.optimistic.weights,
            self.costs, self.reset_costs, model.initial_index,
        )  # fmt: skip
        reachable = goals[indices]
        # A goal outside echoes x at its own entry too, unless it was never seen and has none.
        has_entry = (reachable >= n_known) & (reachable < n_known + model.n_outside)
        echoes = np.stack((np.full(len(reachable), n_known), np.where(has_entry, reachable + 1, n_known)), axis=1)
        found = solve(
            rows,
            Goals(np.where(reachable < n_known, reachable, -1), echoes, self.outside_reset_cost),
            self.limits,
            n_values=n_known + 1 + model.n_outside,
            names=reachable.tolist(),
            order=order,
            threads=threads,
        )
        fill_in(outcome, indices, found._replace(values=found.values[:, :n_known]))
        return outcome

    def _is_reachable(self, goals: IntArray) -> BoolArray:
        """Returns whether the optimistic model leads from the initial state to each goal, [G]."""
        model, rows, n_known = self.model, self.optimistic, self.model.n_known
        ends = rows.row_offsets[model.state_pairs]
        within = rows.columns < n_known
        graph = graph_from(offsets_from(within)[ends], rows.columns[within])
        met = reachable(graph, np.array([model.initial_index]))
        playable = np.repeat(met, np.diff(model.state_pairs))
        if (rows.left[playable] > _NO_MASS).any():
            return np.ones(len(goals), dtype=bool)
        entry_pairs = np.repeat(np.arange(model.n_pairs), np.diff(rows.row_offsets))
        corrected = rows.columns[playable[entry_pairs] & (rows.weights < -_NO_MASS)] - 1
        return np.isin(goals, np.concatenate((np.flatnonzero(met), corrected)))

    def _fill_unreachable(self, outcome: Solutions, goals: IntArray) -> None:
        """Writes infinite values for all goals; those that can be reached are overwritten."""
        outcome.values[:] = np.inf
        outcome.status[:] = CONVERGED
        known = np.flatnonzero(goals < self.model.n_known)
        outcome.values[known, goals[known]] = 0.0


@dataclass(frozen=True, eq=False)
class EmpiricalModel:
    """Counts of the transitions out of a known set K, in compressed rows as those of `TabularMdp`.

    The n known states are numbered 0..n-1. A state that was seen, but is not known, is n + j for some j.

    Attributes:
        initial_index: the number of the initial state, which is known.
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        row_offsets: the first transition of each pair, and the end of the last one, [P + 1].
        successors: the state that each transition leads to, different ones within a pair, [T].
        counts: N(s, a, s'), the number of times it was seen, [T].
        visits: N(s, a), the number of times each pair was played: the sum of its counts, [P].
    """

    initial_index: int
    state_pairs: IntArray
    row_offsets: IntArray
    successors: IntArray
    counts: IntArray
    visits: IntArray

    def __post_init__(self) -> None:
        if not 0 <= self.initial_index < self.n_known:
            raise InvalidModelError(
                f"the initial state is {self.initial_index}; it must be one of 0..{self.n_known - 1}"
            )
        if self.state_pairs[-1] != self.n_pairs or self.row_offsets[-1] != len(self.successors):
            raise InvalidModelError(
                f"offsets end at {self.state_pairs[-1]} pairs and {self.row_offsets[-1]} transitions, "
                f"but there are {self.n_pairs} and {len(self.successors)}"
            )
        sums = np.bincount(self.transition_pairs, self.counts, minlength=self.n_pairs)
        off = np.flatnonzero(sums != self.visits)
        if off.size or (self.counts < 0).any() or (self.successors < 0).any():
            pair = off[0] if off.size else 0
            raise InvalidModelError(
                f"pair {pair} was visited {self.visits[pair]} times and its counts sum to {sums[pair]:g}; "
                "they must be equal, and counts and successors at least 0"
            )

    @property
    def n_known(self) -> int:
        return len(self.state_pairs) - 1

    @property
    def n_pairs(self) -> int:
        return len(self.visits)

    @cached_property
    def n_outside(self) -> int:
        """The number of indices from n on that are in use."""
        return max(0, int(self.successors.max(initial=-1)) + 1 - self.n_known)

    @cached_property
    def transition_pairs(self) -> IntArray:
        """The pair of each transition, [T]."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.row_offsets))

    @cached_property
    def empirical(self) -> FloatArray:
        """The share of each transition among the visits of its pair, p̂(s'|s, a), [T]."""
        empirical: FloatArray = self.counts / np.maximum(1, self.visits)[self.transition_pairs]
        return empirical

    def pair_name(self, pair: int) -> str:
        """Returns the name of a pair in messages."""
        state = int(np.searchsorted(self.state_pairs, pair, side="right")) - 1
        return f"known state {state}, action {pair - self.state_pairs[state]}"
