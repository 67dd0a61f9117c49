"""Optimal values to nine digits, with bounds that prove it.

Value iteration finds a policy that is all but optimal. Policy iteration (Howard) takes it from there: solve for the
value of the policy, take what is greedy with respect to it, until nothing improves. Models too large for a sparse solve
keep the result of value iteration, which is precise enough by itself.

Either way the bounds come from one synchronous sweep over the final v, and trust nothing else. Let L be the operator of
`value_iteration`, and π the policy, with its own operator L_π.

- If v <= Lv + r, then v / (1 + r/c_min) <= V*: see there, 1.
- If L_π v <= v + r and r < c_min, then V^π <= v / (1 - r/c_min): that is the proof of [DisCo] Lem. VI_SSP.

What rounding may have hidden in the sweep is added to both r.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.errors import NotConvergedError
from axplore.graphs.evaluation import evaluate
from axplore.graphs.inputs import goal_labels, pair_costs, smallest_cost, state_reset_costs
from axplore.graphs.value_iteration import renumbered, restricted, value_iteration
from axplore.mdp import TabularMdp
from axplore.types import RESET_PAIR, FloatArray, IntArray, State

ACCURACY: Final = 1e-9
"""The largest gap between the bounds, relative to values above 1."""

LARGEST_SOLVE: Final = 4000
"""States up to which policies are evaluated by a sparse solve: random models of this size take a third of a second."""

_ITERATION_SHARE: Final = 1 / 2
"""The part of the accuracy that value iteration may use up, where it has the last word."""
_PRECISION_BEFORE_SOLVES: Final = 1e-6
"""The precision of value iteration where policy iteration follows; its policy is proper, and all but optimal."""

_IMPROVEMENT: Final = 4
"""The least improvement of a policy that counts, relative to the rounding of a sweep."""


@dataclass(frozen=True, eq=False)
class OptimalPaths:
    """Optimal values and policies for some goals; `upper` exceeds `lower` by at most `ACCURACY`, relatively above 1.

    Attributes:
        goals: the goals, [G].
        initial_index: the number of the initial state.
        values: by goal and state, [G, S]; infinite where a goal cannot be reached.
        lower: proven lower bounds on the optimal values, [G, S].
        upper: proven upper bounds on the policies' values, [G, S].
        policy: the pair to play, by goal and state, [G, S]; -1 for RESET and at the goal.
    """

    goals: tuple[State, ...]
    initial_index: int
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    policy: IntArray

    def __post_init__(self) -> None:
        for array in (self.values, self.lower, self.upper, self.policy):
            array.flags.writeable = False

    def steps(self, goal: State) -> float:
        """Returns the optimal expected steps (or cost) from the initial state to a goal."""
        return float(self.values[self.goals.index(goal), self.initial_index])


def optimal_paths(
    mdp: TabularMdp,
    goals: State | Sequence[State],
    *,
    costs: npt.ArrayLike | None = None,
    reset_costs: npt.ArrayLike | None = None,
    allowed: Iterable[State] | None = None,
    threads: int | None = None,
) -> OptimalPaths:
    """Optimal values and policies for one goal or several; raises NotConvergedError where it cannot prove them.

    Args:
        mdp: the model.
        goals: the label of a goal, or several labels; what is itself a label is one goal.
        costs: the cost of each pair, above 0 and at most 1, [P]; 1 by default.
        reset_costs: the cost of RESET, one number or one for each state, [S]; 1 by default.
        allowed: the set outside which policies reset; all states by default.
        threads: the largest number of threads for several goals; all processors by default.
    """
    labels = goal_labels(mdp, goals)
    model, pairs = restricted(mdp, allowed)
    problem = _ExactProblem(model, pair_costs(mdp, costs)[pairs], state_reset_costs(mdp, reset_costs))
    solves = mdp.n_states <= LARGEST_SOLVE
    paths = value_iteration(
        model,
        labels,
        precision=problem.min_cost * (_PRECISION_BEFORE_SOLVES if solves else ACCURACY * _ITERATION_SHARE),
        costs=problem.costs,
        reset_costs=problem.reset_costs,
        threads=threads,
    )
    values, policy = paths.values.copy(), paths.policy.copy()
    lower, upper = np.empty_like(values), np.empty_like(values)
    for index, goal in enumerate(mdp.indices_of(labels)):
        if solves:
            values[index], policy[index] = problem.improved(policy[index], int(goal))
        lower[index], upper[index] = problem.bounds(values[index], policy[index], int(goal))
        _check_accuracy(labels[index], values[index], lower[index], upper[index])
    return OptimalPaths(labels, mdp.initial_index, values, lower, upper, renumbered(policy, pairs))


@dataclass(frozen=True, eq=False)
class _ExactProblem:
    """A model with its costs."""

    mdp: TabularMdp
    costs: FloatArray
    reset_costs: FloatArray

    @property
    def min_cost(self) -> float:
        return smallest_cost(self.costs, self.reset_costs)

    def improved(self, policy: IntArray, goal: int) -> tuple[FloatArray, IntArray]:
        """Returns the value of an optimal policy, and the policy, from one that is all but optimal (Howard)."""
        last_total = np.inf
        while True:
            values = evaluate(self.mdp, policy, goal, self.costs, self.reset_costs)
            best, greedy = self._backed_up(values, goal)
            better = np.isfinite(best) & (best < values - _IMPROVEMENT * self._rounding(values))
            total = values[np.isfinite(values)].sum()
            # Where rounding looks like an improvement, the total no longer falls; without this it might never end.
            if not better.any() or total >= last_total:
                return values, policy
            policy, last_total = np.where(better, greedy, policy), total

    def bounds(self, values: FloatArray, policy: IntArray, goal: int) -> tuple[FloatArray, FloatArray]:
        """Returns a lower bound on the optimal values and an upper bound on the policy's, [S] and [S]."""
        best, _ = self._backed_up(values, goal)
        played = self._backed_up_by(policy, values, goal)
        rounding = self._rounding(values)
        finite = np.isfinite(values)
        fall = max(0.0, float((values[finite] - best[finite]).max())) + rounding
        rise = max(0.0, float((played[finite] - values[finite]).max())) + rounding
        lower = values / (1 + fall / self.min_cost)
        upper = values / (1 - rise / self.min_cost) if rise < self.min_cost else np.full_like(values, np.inf)
        return lower, upper

    def _backed_up(self, values: FloatArray, goal: int) -> tuple[FloatArray, IntArray]:
        """One synchronous sweep: Lv, and the policy that is greedy with respect to v, [S] and [S]."""
        mdp = self.mdp
        pair_values = self._pair_values(values)
        best = self.reset_costs + values[mdp.initial_index]
        np.minimum.at(best, mdp.pair_states, pair_values)
        policy = np.full(mdp.n_states, RESET_PAIR, dtype=np.int64)
        attained = np.flatnonzero(pair_values == best[mdp.pair_states])
        policy[mdp.pair_states[attained]] = attained
        best[goal], policy[goal] = 0.0, RESET_PAIR
        return best, policy

    def _backed_up_by(self, policy: IntArray, values: FloatArray, goal: int) -> FloatArray:
        """One synchronous sweep that plays a policy: L_π v, [S]."""
        played = np.append(self._pair_values(values), 0.0)[policy]
        backed_up = np.where(policy == RESET_PAIR, self.reset_costs + values[self.mdp.initial_index], played)
        backed_up[goal] = 0.0
        return backed_up

    def _pair_values(self, values: FloatArray) -> FloatArray:
        """Cost and expected value of the successor, of each pair, [P]."""
        entries = self.mdp.probabilities * values[self.mdp.successors]
        expected = np.bincount(self.mdp.transition_pairs, entries, minlength=self.mdp.n_pairs)
        pair_values: FloatArray = self.costs + expected
        return pair_values

    def _rounding(self, values: FloatArray) -> float:
        """Returns the most that rounding can change in a sweep: half a unit in the last place for each operation."""
        longest = int(np.diff(self.mdp.row_offsets).max(initial=0))
        largest = float(values[np.isfinite(values)].max())
        return (longest + 2) * float(np.finfo(np.float64).eps) * largest


def _check_accuracy(goal: State, values: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    finite = np.isfinite(values)
    gaps = (upper[finite] - lower[finite]) / np.maximum(1.0, values[finite])
    if not gaps.max() <= ACCURACY:
        raise NotConvergedError(
            f"goal {goal!r}: the bounds are {gaps.max():.3g} apart, relative to the value, more than {ACCURACY:g}; "
            f"values as large as {values[finite].max():.3g} are out of reach of double precision"
        )
