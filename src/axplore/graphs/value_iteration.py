"""Value iteration for stochastic shortest paths, VI_SSP ([DisCo] App. "Computation of Optimal Policy in Known SSP").

The model. A goal is absorbing and free. Every other state has its actions, with costs c in [c_min, 1] (1 when none are
given, so that values count steps), and RESET, which leads to the initial state. The optimal value V* is the only fixed
point of the operator

    Lu(s) = min over actions of c(s, a) + sum over s' of p(s'|s, a) u(s'),    u(goal) = 0,

provided that the goal can be reached. Where it cannot, V* is infinite; that is found by graph search beforehand.

Synchronous. u_0 = 0, u_{j+1} = L u_j, until no value changes by more than the precision γ. The result is u = u_j with
the policy π that is greedy with respect to u ([DisCo] Alg. VI_SSP). Then ([DisCo] Lem. VI_SSP)

    u <= V* <= V^π,   and   V^π <= u / (1 - γ/c_min) <= (1 + 2γ/c_min) u   if γ <= c_min/2.

Its proof uses two facts alone: u <= V*, and Lu <= u + γ.

In place. A sweep G updates the states one after the other, each from the newest values, and needs fewer rounds. G is
monotone and its only fixed point is V*. Let a sweep start from w >= 0 and end in v = Gw, no value rise by more than d,
and none fall by more than r.

1. v <= (1 + r/c_min) V*. Add r to all costs and call that sweep G' and its optimal value V'. Then G'w >= Gw + r >= w,
   so w, G'w, G'G'w, ... rise; they stay below kV' for large k, so they tend to V', and v <= G'w <= V'. The added costs
   are at most r/c_min times the costs, so V' <= (1 + r/c_min) V*.
2. Lv <= v + d. What v(s) was computed from is at least v - d everywhere.

So u = v / (1 + r/c_min) has u <= V* and, costs being at most 1, Lu <= u + d + r/c_min. Sweeping ends when
d + r/c_min <= γ. One synchronous sweep over u then measures the residual max(Lu - u), confirms that it is at most γ,
and gives the greedy policy. Both facts hold, hence the lemma. It does not matter how w came about. So when changes
shrink at a steady rate, what is still to come is added at once, as the geometric series it would be (measured: 3 to 10
times fewer sweeps).

One goal alone. Sweeps start from the distances to the goal along edges (times c_min) and take the nearest states
first, so that a value is computed from nearer ones that are nearly right; and after each sweep the policy that it
chose is swept over alone, which costs one pair for each state (measured: 3 times faster on grids of 10,000 states,
twice as fast on random models).

Several goals. They share sweeps, eight at a time (`simd`), which begin in single precision, sixteen at a time: rounding
does no harm to a w that is swept over in double precision afterwards. Where goals are far from the initial state, a
sweep settles values along edges that lead to states earlier in the order. So goals near each other share an order, the
states nearest to all of them first, and start from the distances (measured on grids of 10,000 states: 57 sweeps instead
of 131).

All of this holds up to rounding, about 1e-16 of the largest value in each backup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, get_args

import numpy as np
import numpy.typing as npt

from axplore.compressed import offsets_from, offsets_of
from axplore.errors import InvalidSettingError, UnknownStateError
from axplore.graphs.inputs import goal_labels, pair_costs, smallest_cost, state_reset_costs
from axplore.graphs.rows import (
    GAVE_UP,
    Goals,
    Limits,
    ModelRows,
    Solutions,
    padded_rows,
    padded_rows_in_order,
)
from axplore.graphs.search import (
    certain_states,
    graph_of,
    hops_from,
    hops_from_each,
    met_from_start,
    near_to_far,
    reversed_graph,
)
from axplore.graphs.solver import (
    MAX_SWEEPS,
    SweepOrder,
    empty_outcome,
    fill_in,
    in_threads,
    number_of_threads,
    solve,
    solve_one,
)
from axplore.mdp import TabularMdp
from axplore.types import BoolArray, FloatArray, IntArray, State

_FAR: Final = 32
"""A batch with a goal this many edges from the initial state is solved in the order of distances."""
_GROUP: Final = 16
"""The largest number of goals that share an order of states."""
_EDGES_IN_A_SWEEP: Final = 4
"""The number of edges along which a sweep settles most values."""


@dataclass(frozen=True, eq=False)
class ShortestPaths:
    """Values and greedy policies for some goals.

    Attributes:
        goals: the goals, [G].
        initial_index: the number of the initial state.
        values: u, at most the optimal value, by goal and state, [G, S]; infinite where a goal cannot be reached.
        policy: the pair to play, by goal and state, [G, S]; -1 for RESET and at the goal.
        residuals: the largest of Lu - u, [G].
        sweeps: the number of sweeps, [G].
        gave_up: which goals were abandoned, [G]; their values are lower bounds, and they have no policy.
        precision: γ of the stopping rule.
        min_cost: c_min, the smallest cost.
    """

    goals: tuple[State, ...]
    initial_index: int
    values: FloatArray
    policy: IntArray
    residuals: FloatArray
    sweeps: IntArray
    gave_up: BoolArray
    precision: float
    min_cost: float

    def __post_init__(self) -> None:
        for array in (self.values, self.policy, self.residuals, self.sweeps, self.gave_up):
            array.flags.writeable = False

    @property
    def converged(self) -> BoolArray:
        """For which goals the stopping rule held, [G]: all that were not abandoned."""
        return ~self.gave_up

    @property
    def lower(self) -> FloatArray:
        """A lower bound on the optimal values, [G, S]."""
        return self.values

    @cached_property
    def upper(self) -> FloatArray:
        """An upper bound on the policy's values, and so on the optimal ones, [G, S]: u / (1 - residual/c_min)."""
        slack = 1.0 - self.residuals / self.min_cost
        bounded = (slack > 0) & self.converged
        upper: FloatArray = np.full(self.values.shape, np.inf)
        upper[bounded] = self.values[bounded] / slack[bounded, None]
        return upper

    @cached_property
    def lemma_bound(self) -> FloatArray:
        """The paper's bound on the policy's values, [G, S]: (1 + 2γ/c_min) u; infinite unless γ <= c_min/2."""
        holds = self.converged & (self.precision <= self.min_cost / 2)
        bound: FloatArray = np.full(self.values.shape, np.inf)
        bound[holds] = (1 + 2 * self.precision / self.min_cost) * self.values[holds]
        return bound

    def index(self, goal: State) -> int:
        """Returns the row of a goal in the arrays."""
        try:
            return self.goals.index(goal)
        except ValueError:
            raise UnknownStateError(f"{goal!r} is not among the {len(self.goals)} goals that were solved") from None

    def steps(self, goal: State) -> float:
        """Returns a value at the initial state, u(s_0): a lower bound on the expected steps (or cost) to a goal."""
        return float(self.values[self.index(goal), self.initial_index])


def value_iteration(
    mdp: TabularMdp,
    goals: State | Sequence[State],
    *,
    precision: float,
    costs: npt.ArrayLike | None = None,
    reset_costs: npt.ArrayLike | None = None,
    allowed: Iterable[State] | None = None,
    max_sweeps: int = MAX_SWEEPS,
    order: SweepOrder = "in-place",
    give_up_above: float = math.inf,
    threads: int | None = None,
) -> ShortestPaths:
    """Values and greedy policies for one goal or several ([DisCo] Alg. VI_SSP).

    Args:
        mdp: the model.
        goals: the label of a goal, or several labels; what is itself a label is one goal.
        precision: γ, the change at which iteration stops.
        costs: the cost of each pair, above 0 and at most 1, [P]; 1 by default.
        reset_costs: the cost of RESET, one number or one for each state, [S]; 1 by default.
        allowed: the set outside which policies reset; all states by default.
        max_sweeps: number of sweeps without convergence after which NotConvergedError is raised.
        order: 'in-place', or 'synchronous' for the paper's iteration to the letter.
        give_up_above: a goal is abandoned once the value of the initial state is proven to exceed this.
        threads: the largest number of threads for several goals; all processors by default.
    """
    check_stopping(precision, max_sweeps, order)
    labels = goal_labels(mdp, goals)
    numbers = mdp.indices_of(labels)
    checked_costs, checked_reset_costs = pair_costs(mdp, costs), state_reset_costs(mdp, reset_costs)
    model, pairs = restricted(mdp, allowed)
    problem = _IterationProblem(model, checked_costs[pairs], checked_reset_costs, precision, max_sweeps, order, threads)
    found = problem.solved(numbers, give_up_above)
    return ShortestPaths(
        goals=labels,
        initial_index=mdp.initial_index,
        values=found.values,
        policy=found.policy if model is mdp else renumbered(found.policy, pairs),
        residuals=found.residuals,
        sweeps=found.sweeps,
        gave_up=found.status == GAVE_UP,
        precision=precision,
        min_cost=problem.min_cost,
    )


def lower_steps(
    mdp: TabularMdp, goals: IntArray, *, outside: BoolArray, precision: float, give_up_above: float
) -> FloatArray:
    """Lower bounds on V*(s0→g) of a larger model of which only a part is given, [G].

    Whoever enters a state outside that part is taken to be at the goal at once. This makes no way to the goal longer,
    so the bounds hold for whatever lies outside.

    Args:
        mdp: the part, and the states to which it leads.
        goals: the indices of the goals, none of them outside.
        outside: which states are not in the part, [S].
        precision: γ, the change at which iteration stops.
        give_up_above: a goal is abandoned once its bound exceeds this.
    """
    inside = ~outside[mdp.successors]
    rows = padded_rows(
        mdp.state_pairs, offsets_from(inside)[mdp.row_offsets],
        mdp.successors[inside], mdp.probabilities[inside],
        np.ones(mdp.n_pairs), np.ones(mdp.n_states), mdp.initial_index,
    )  # fmt: skip
    found = solve(
        rows,
        Goals(goals, np.zeros((len(goals), 0), dtype=np.int64), 1.0),
        Limits(precision, 1.0, MAX_SWEEPS, give_up_above),
        n_values=mdp.n_states,
        names=[mdp.states[goal] for goal in goals],
    )
    return found.values[:, mdp.initial_index].copy()


def check_stopping(precision: float, max_sweeps: int, order: str) -> None:
    """Refuses a stopping rule that cannot hold."""
    if not 0 < precision < math.inf:
        raise InvalidSettingError(f"precision is {precision!r}; it must be a positive number")
    if max_sweeps < 1:
        raise InvalidSettingError(f"max_sweeps is {max_sweeps!r}; it must be at least 1")
    if order not in get_args(SweepOrder):
        raise InvalidSettingError(f"order is {order!r}; it must be one of {', '.join(get_args(SweepOrder))}")


def renumbered(policy: IntArray, pairs: IntArray) -> IntArray:
    """Returns a policy on a part of a model's pairs as one on all of them; -1 stays."""
    whole: IntArray = np.append(pairs, -1)[policy]  # -1 points to the last entry
    return whole


def restricted(mdp: TabularMdp, allowed: Iterable[State] | None) -> tuple[TabularMdp, IntArray]:
    """The model whose states outside `allowed` only reset, and which pairs of the model it has, [P of the result]."""
    if allowed is None:
        return mdp, np.arange(mdp.n_pairs)
    labels = list(allowed)
    keeps = np.zeros(mdp.n_states, dtype=bool)
    keeps[mdp.indices_of(labels)] = True
    return mdp.restricted_to(labels), np.flatnonzero(keeps[mdp.pair_states])


def _near_each_other(distances: npt.NDArray[np.int32]) -> list[IntArray]:
    """Cuts goals into groups of at most `_GROUP` by the distances between them, [G, G]; returns their indices.

    Halves are made by which of the two goals farthest apart is nearer, until they are small enough.
    """
    apart = np.minimum(distances, distances.T)
    groups, waiting = [], [np.arange(len(apart))]
    while waiting:
        group = waiting.pop()
        if len(group) <= _GROUP:
            groups.append(group)
            continue
        within = apart[np.ix_(group, group)]
        one, other = np.unravel_index(within.argmax(), within.shape)
        ranked = group[np.argsort(within[one] - within[other], kind="stable")]
        middle = -(-len(group) // _GROUP) // 2 * _GROUP
        waiting += [ranked[:middle], ranked[middle:]]
    return groups


@dataclass(frozen=True, eq=False)
class _IterationProblem:
    """A model with its costs, and when to stop; fields as the arguments of `value_iteration`."""

    mdp: TabularMdp
    costs: FloatArray
    reset_costs: FloatArray
    precision: float
    max_sweeps: int
    order: SweepOrder
    threads: int | None

    @property
    def min_cost(self) -> float:
        return smallest_cost(self.costs, self.reset_costs)

    def solved(self, goals: IntArray, give_up_above: float) -> Solutions:
        """Returns the outcome for these goals, whether they can be reached or not."""
        if len(goals) == 1 and self.order == "in-place":
            return self._solved_near_to_far(int(goals[0]), give_up_above)
        reached = met_from_start(self.mdp)[goals]
        if reached.all():
            return self._solved_with_reset(goals, give_up_above)
        outcome = empty_outcome(len(goals), self.mdp.n_states, self.mdp.n_states)
        if reached.any():
            fill_in(outcome, np.flatnonzero(reached), self._solved_with_reset(goals[reached], give_up_above))
        for index in np.flatnonzero(~reached):
            self._solve_without_reset(outcome, int(index), int(goals[index]))
        return outcome

    def _solved_with_reset(self, goals: IntArray, give_up_above: float) -> Solutions:
        if self.order == "in-place" and self._farthest(goals) >= _FAR:
            return self._solved_in_groups(goals, give_up_above)
        mdp = self.mdp
        rows = padded_rows(
            mdp.state_pairs, mdp.row_offsets, mdp.successors, mdp.probabilities,
            self.costs, self.reset_costs, mdp.initial_index,
        )  # fmt: skip
        return self._solved(rows, goals, give_up_above, [mdp.states[goal] for goal in goals])

    def _solved_near_to_far(self, goal: int, give_up_above: float) -> Solutions:
        """Solves for one goal from its distances along edges, nearest states first, which takes far fewer sweeps."""
        from axplore.graphs.sweep_kernels import in_order, write_back

        mdp = self.mdp
        outcome = empty_outcome(1, mdp.n_states, mdp.n_states)
        order, distances = near_to_far(reversed_graph(graph_of(mdp)), goal)
        if distances[mdp.initial_index] >= mdp.n_states:
            self._solve_without_reset(outcome, 0, goal)
            return outcome
        rows, pairs = padded_rows_in_order(order, mdp, self.costs, self.reset_costs)
        start = in_order(distances[None], order, mdp.initial_index, self.min_cost)[0]
        found = solve_one(rows, 0, self._limits(give_up_above), start, mdp.states[goal])
        write_back(found, order, pairs, np.array([0]), outcome)
        return outcome

    def _farthest(self, goals: IntArray) -> int:
        """Returns how many edges the farthest of some goals is away from the initial state."""
        return int(hops_from(graph_of(self.mdp), np.array([self.mdp.initial_index]))[goals].max(initial=0))

    def _solved_in_groups(self, goals: IntArray, give_up_above: float) -> Solutions:
        """Solves for goals of which some are far away: those near to each other share an order of the states.

        Sweeps begin from the distances to each goal and take the states nearest to all of them first.
        """
        from axplore.graphs.sweep_kernels import in_order, write_back

        mdp = self.mdp
        distances = hops_from_each(reversed_graph(graph_of(mdp)), goals)
        ways = distances[:, mdp.initial_index]
        outcome = empty_outcome(len(goals), mdp.n_states, mdp.n_states)

        def work(near: IntArray) -> None:
            group = near[np.argsort(-ways[near], kind="stable")]  # those that take longest first
            order = np.argsort(distances[group].sum(axis=0), kind="stable")
            rows, pairs = padded_rows_in_order(order, mdp, self.costs, self.reset_costs)
            # Values are all but settled after this many sweeps; before, their changes say little about what is to come.
            first_sweeps = int(ways[group[0]]) // _EDGES_IN_A_SWEEP
            limits = self._limits(give_up_above)
            found = solve(
                rows,
                Goals(np.argsort(order)[goals[group]], np.zeros((len(group), 0), dtype=np.int64), 1.0),
                limits._replace(patience=max(limits.patience, float(first_sweeps))),
                n_values=mdp.n_states,
                names=[mdp.states[goal] for goal in goals[group]],
                threads=1,
                start=in_order(distances[group], order, mdp.initial_index, self.min_cost),
                narrow_sweeps=first_sweeps,
            )
            write_back(found, order, pairs, group, outcome)

        groups = _near_each_other(distances[:, goals])
        in_threads(work, groups, number_of_threads(self.threads, len(groups), _GROUP * mdp.n_transitions))
        return outcome

    def _solve_without_reset(self, outcome: Solutions, index: int, goal: int) -> None:
        """Solves for a goal that the initial state cannot reach: RESET is of no use, and most values are infinite."""
        mdp = self.mdp
        inside, staying = certain_states(mdp, goal)
        states, pairs = np.flatnonzero(inside), np.flatnonzero(staying)
        kept = staying[mdp.transition_pairs]
        rows = padded_rows(
            offsets_of(np.searchsorted(states, mdp.pair_states[pairs]), len(states)),
            offsets_of(np.searchsorted(pairs, mdp.transition_pairs[kept]), len(pairs)),
            np.searchsorted(states, mdp.successors[kept]),
            mdp.probabilities[kept],
            self.costs[pairs],
            np.full(len(states), np.inf),
            0,
        )  # fmt: skip
        found = self._solved(rows, np.searchsorted(states, [goal]), math.inf, [mdp.states[goal]])
        spread_out = empty_outcome(1, mdp.n_states, mdp.n_states)
        spread_out.values[:] = np.inf
        spread_out.values[:, states] = found.values
        spread_out.policy[:, states] = renumbered(found.policy, pairs)
        fill_in(outcome, np.array([index]), found._replace(values=spread_out.values, policy=spread_out.policy))

    def _solved(self, rows: ModelRows, goals: IntArray, give_up_above: float, names: Sequence[State]) -> Solutions:
        no_echoes = np.zeros((len(goals), 0), dtype=np.int64)
        return solve(
            rows, Goals(goals, no_echoes, 1.0), self._limits(give_up_above),
            n_values=len(rows.reset_costs), names=names, order=self.order, threads=self.threads,
            narrow_sweeps=self.max_sweeps if np.isfinite(rows.reset_costs).all() else 0,
        )  # fmt: skip

    def _limits(self, give_up_above: float) -> Limits:
        return Limits(self.precision, self.min_cost, self.max_sweeps, give_up_above)
