"""DisCo, *Discover and Control*: [DisCo] Alg. 1.

It samples every pair of the known set until its model of the set is accurate enough, admits the candidate to which the
optimistic model has the shortest way, and begins again; when none is within the radius it plans once more for every
known state. Its promise is AX*: every policy is ε-optimal among those restricted to S_L→.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    ForecastProbe,
    Outlook,
    action_bound,
    drawn,
    estimates_of,
    exploration_of,
    first_counts,
    frontier_of,
    policy_by_number,
    with_drawn,
    with_known,
)
from axplore.explorers.disco_rules import (
    Allocation,
    BonusRule,
    JourneyLimit,
    JourneyPolicies,
    Spreads,
    effective_horizon,
    exact_allocation,
    per_pair_allocation,
    proof_bonus,
    rollout_bound,
    simulation_bonus,
)
from axplore.graphs.optimistic import EmpiricalModel, optimistic_value_iteration
from axplore.graphs.solver import SweepOrder
from axplore.proofs.bounds import IntervalModel, empirical_path
from axplore.proofs.sensitivity import expected_visits
from axplore.records.counts import Counts
from axplore.records.run import StopReason
from axplore.target import Target
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray
from axplore.worlds.contract import Visit, World

PRECISION_DIVISOR: Final = 6
"""Value iteration stops at ε/(6L) ([DisCo] Alg. 1, steps 3 and 5)."""
TIE_BREAK: Final = 1e-12
"""An action counts as this much less than a step, so that among equals it goes before RESET: it can teach something."""


@dataclass(frozen=True, eq=False)
class GoalPlan:
    """An optimistic way to a goal.

    Attributes:
        goal: the number of the goal.
        optimistic_steps: ũ(s_0), the optimistic steps from the initial state.
        policy: the action to play by index in the known set, [|K|]; RESET_ACTION resets.
    """

    goal: int
    optimistic_steps: float
    policy: IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class DiscoState(ExplorerState):
    """The state of DisCo.

    Attributes:
        counts: N_k, of the pairs of known states.
        policies: π_s of each known state by index in `known`, [m]; states from m on reset.
    """

    counts: Counts
    policies: tuple[IntArray, ...]


@dataclass(frozen=True, kw_only=True)
class DisCo(Explorer[DiscoState]):
    """DisCo. The presets `disco-theory` and `disco-experiment` set every option.

    Attributes:
        target: L, ε and δ; an ε above 1 counts as 1 ([DisCo] Alg. 1, line 2).
        allocation: φ, the visits that each pair needs.
        bonus: β, how far the model may be off.
        journey_limit: after how many steps a journey is cut.
        journey_policies: which policies lead to the known states.
        sweeps: how value iteration goes: "synchronous" to the letter of [DisCo] Alg. VI_SSP, or "in-place", which takes
            fewer sweeps and breaks ties within the precision otherwise.
        batch_growth: a pair is asked for at most this part of its visits more before the allocation is evaluated again,
            so that the allocation follows the estimates. [DisCo] leaves it open.
        max_batch: nor for more visits than this, so that a step limit is noticed.
        states_bound: S, an upper bound on the number of states; the theory's allocation and bonus need it.
        actions_bound: A, the most actions that any state has beside RESET; by default, of the known states.
    """

    state_types = (DiscoState,)

    target: Target
    allocation: Allocation
    bonus: BonusRule
    journey_limit: JourneyLimit
    journey_policies: JourneyPolicies = JourneyPolicies.AS_ADMITTED
    sweeps: SweepOrder = "synchronous"
    batch_growth: float = 0.05
    max_batch: int = 10_000_000
    states_bound: int | None = None
    actions_bound: int | None = None

    def __post_init__(self) -> None:
        if not self.batch_growth > 0 or self.max_batch < 1:
            raise InvalidSettingError(
                f"batch_growth is {self.batch_growth} and max_batch is {self.max_batch}; both must be positive"
            )
        # An allocation or a bonus that needs S, or asks for more than any run can do, says so before the first step.
        most = np.ones(1)
        self.allocation(Spreads(most, most, 1, 1, self.states_bound), self.capped_target)
        self.bonus(self.capped_target, self.states_bound, 1)

    @cached_property  # it is asked for in every round, and a target checks its values
    def capped_target(self) -> Target:
        """L, min(ε, 1) and δ ([DisCo] Alg. 1, line 2)."""
        return replace(self.target, epsilon=min(self.target.epsilon, 1.0))

    def forecast(self, probe: ForecastProbe) -> Outlook:
        """Returns the steps of as many visits as the allocation asks for, on the states that the probe found.

        Pairs are visited in order of admission; each visit costs the way back, and what is met on the way counts.
        """
        model = probe.model
        required = self.allocation(self._spreads(probe.counts), self.capped_target).astype(np.float64)
        visits, steps = np.zeros(model.n_pairs), 0.0
        for pair in range(model.n_pairs):
            missing = max(required[pair] - visits[pair], 0.0)
            if missing:
                met, per_visit = _round_trip(model, pair)
                times = missing / max(met[pair], 1.0)
                visits += times * met
                steps += times * per_visit
        note = f"{required.max(initial=0.0):.2g} visits of a pair at most"
        return Outlook(steps, note, needs_states_bound=self.allocation is exact_allocation)

    def start(self, world: World) -> DiscoState:
        """K = {s_0}, U = {} ([DisCo] Alg. 1, line 1)."""
        stay = np.full(1, RESET_ACTION, dtype=np.int64)
        counts = first_counts(world)
        return DiscoState(round=1, known=(0,), found_at=(world.steps,), counts=counts, policies=(stay,))

    def advance(self, state: DiscoState, world: World) -> DiscoState:
        """Makes one pass over the pairs that lack visits or, when none does, takes steps 2 to 4 ([DisCo] Alg. 1)."""
        # Step 1: sample collection on K.
        missing = self._missing_visits(state)
        if missing.any():
            return self._collect(state, world, missing)
        # Step 2: restriction of the candidate states.
        candidates = self._candidates(state)
        if not candidates:
            return replace(state, stop=StopReason.NO_CANDIDATES, activity="no candidates are left")
        # Step 3: computation of the optimistic policies on K.
        closest = min(self._plans(state, candidates), key=lambda plan: plan.optimistic_steps)
        if closest.optimistic_steps > self.target.radius:
            return replace(state, stop=StopReason.ALL_TOO_FAR, activity="every candidate is too far")
        # Step 4: state transfer from U to K.
        return self._transfer(state, world, closest)

    def finish(self, state: DiscoState, world: World) -> Exploration:
        """Step 5: policy consolidation on the final set."""
        plans = self._plans(state, state.known)
        return exploration_of(
            self,
            state,
            world,
            counts=state.counts,
            policies=tuple(plan.policy for plan in plans),
            optimistic_steps=np.array([plan.optimistic_steps for plan in plans]),
        )

    def _missing_visits(self, state: DiscoState) -> IntArray:
        """n_k - N_k(s, a) where it is positive, else 0, [P]."""
        rows = state.counts
        required = self.allocation(self._spreads(rows), self.capped_target)
        missing: IntArray = np.maximum(0, required - rows.visits)
        return missing

    def _spreads(self, rows: Counts) -> Spreads:
        within_known, with_goal = spreads_of(rows)
        n_actions = action_bound(self.actions_bound, rows)
        return Spreads(within_known, with_goal, len(rows.states), n_actions, self.states_bound)

    def _collect(self, state: DiscoState, world: World, missing: IntArray) -> DiscoState:
        """Visits each pair that lacks visits, in order of admission; all transitions met on the way count."""
        rows = state.counts
        batch = np.minimum(np.ceil(self.batch_growth * np.maximum(1, rows.visits)), self.max_batch).astype(np.int64)
        times = np.minimum(missing, batch)
        max_journey = self.journey_limit(self.capped_target, int((rows.visits + missing).sum()))
        owners = np.repeat(np.arange(len(state.known)), np.diff(rows.state_pairs))
        indices = set(owners[times > 0].tolist())
        policies = {index: policy_by_number(state.policies[index], state.known) for index in indices}
        orders = [
            Visit(
                state=state.known[index],
                action=int(pair - rows.state_pairs[index]),
                times=int(times[pair]),
                policy=policies[index],
                max_journey=max_journey,
            )
            for pair, index in enumerate(owners)
            if times[pair]
        ]
        answers, was_cut = drawn(orders, world)
        counts = with_drawn(state.counts, answers, world)
        met_new = len(counts.counts) > len(state.counts.counts)
        frontier = frontier_of(counts) if met_new else state.frontier
        state = replace(state, counts=counts, frontier=frontier, activity="collecting samples")
        for order, answer in zip(orders, answers, strict=True):
            if not answer.completed and not was_cut:
                return state.failed(
                    f"no journey to {world.states[order.state]!r} arrives any more: {answer.cut_journeys} in a row "
                    "were cut; check that the world does not change over time"
                )
        return state

    def _candidates(self, state: DiscoState) -> tuple[int, ...]:
        """W_k: the states of U reached from some pair with an estimated probability of at least (1 - ε/2)/L."""
        rows = state.counts
        likely = estimates_of(rows) >= (1 - self.capped_target.epsilon / 2) / self.target.radius
        return tuple(np.setdiff1d(rows.successors[likely], state.known).tolist())

    def _plans(self, state: DiscoState, goals: tuple[int, ...]) -> list[GoalPlan]:
        """OVI_SSP for each goal, at precision ε/(6L)."""
        rows = state.counts
        model, indices = _empirical_model(rows, goals)
        target = self.capped_target
        bonus = self.bonus(target, self.states_bound, action_bound(self.actions_bound, rows))
        accuracy = target.epsilon / (PRECISION_DIVISOR * target.radius)
        costs = np.full(model.n_pairs, 1 - TIE_BREAK)
        paths = optimistic_value_iteration(model, indices, bonus, precision=accuracy, costs=costs, order=self.sweeps)
        actions = np.where(paths.policy < 0, RESET_ACTION, paths.policy - rows.state_pairs[:-1])
        return [
            GoalPlan(goal, float(paths.values[index, model.initial_index]), actions[index])
            for index, goal in enumerate(goals)
        ]

    def _transfer(self, state: DiscoState, world: World, closest: GoalPlan) -> DiscoState:
        admitted = replace(
            state,
            counts=with_known(state.counts, [closest.goal], world),
            round=state.round + 1,
            known=(*state.known, closest.goal),
            found_at=(*state.found_at, world.steps),
            frontier=tuple(number for number in state.frontier if number != closest.goal),
            policies=(*state.policies, closest.policy),
            activity=f"admitted state {closest.goal}",
        )
        if self.journey_policies is JourneyPolicies.AS_ADMITTED:
            return admitted
        # Differs from [DisCo] Alg. 1: every known state gets a policy for the larger set.
        plans = self._plans(admitted, admitted.known)
        return replace(admitted, policies=tuple(plan.policy for plan in plans))


def _empirical_model(rows: Counts, goals: tuple[int, ...]) -> tuple[EmpiricalModel, IntArray]:
    """Returns the counts as the planner wants them, known states first, and the goals' numbers there, [G]."""
    outside = np.setdiff1d(np.concatenate((rows.successors, goals)), rows.states)
    numbers = np.concatenate((rows.states, outside)).astype(np.int64)
    index_of = np.empty(numbers.max() + 1, dtype=np.int64)
    index_of[numbers] = np.arange(len(numbers))
    model = EmpiricalModel(
        initial_index=0,
        state_pairs=rows.state_pairs,
        row_offsets=rows.row_offsets,
        successors=index_of[rows.successors],
        counts=rows.counts,
        visits=rows.visits,
    )
    return model, index_of[list(goals)]


def spreads_of(rows: Counts) -> tuple[FloatArray, FloatArray]:
    """The two spreads of each pair, [P] and [P]: within the known set, and with the worst goal; see `Spreads`."""
    n_pairs = len(rows.visits)
    pairs = rows.entry_pairs
    estimates = estimates_of(rows)
    is_known = np.zeros(max(rows.states.max(initial=0), rows.successors.max(initial=0)) + 1, dtype=bool)
    is_known[rows.states] = True
    known = is_known[rows.successors]
    within_known = _sums(pairs[known], _deviation(estimates[known]), n_pairs)
    outside = _sums(pairs[~known], estimates[~known], n_pairs)
    # The goal may be no successor of the pair, so that everything outside is the meta-state; or one of those outside.
    rest = _deviation(outside)
    goal, goal_pairs = estimates[~known], pairs[~known]
    np.maximum.at(rest, goal_pairs, _deviation(goal) + _deviation(outside[goal_pairs] - goal))
    return within_known, within_known + rest


def _sums(pairs: IntArray, values: FloatArray, n_pairs: int) -> FloatArray:
    sums = np.zeros(n_pairs)
    np.add.at(sums, pairs, values)
    return sums


def _deviation(probability: FloatArray) -> FloatArray:
    """sqrt(p (1 - p)); rounding may have left p a little outside [0, 1]."""
    inside = np.clip(probability, 0.0, 1.0)
    deviation: FloatArray = np.sqrt(inside * (1 - inside))
    return deviation


def _round_trip(model: IntervalModel, pair: int) -> tuple[FloatArray, float]:
    """The expected plays of each pair, [P], and steps, of one visit: the pair itself and the way back to its state."""
    rows = model.rows
    state = int(np.searchsorted(rows.state_pairs, pair, side="right")) - 1
    path = empirical_path(model, state)
    played = np.zeros(model.n_pairs)
    played[pair] = 1.0
    start = np.zeros(model.n_known)
    steps = 1.0
    for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
        successor, frequency = int(rows.successors[entry]), float(rows.frequencies[entry])
        outside = successor >= model.n_known
        start[0 if outside else successor] += frequency
        steps += frequency * float(path.values[successor])
    ends = np.zeros(model.n_known, dtype=np.int64)
    met = expected_visits(rows, state, path.policy, rows.frequencies, 0, ends, start)
    for index, times in enumerate(met.tolist()):
        if index != state and path.policy[index] != RESET_PAIR:
            played[path.policy[index]] += times
    return played, steps


def disco_theory(target: Target, states_bound: int | None = None) -> DisCo:
    """DisCo with every constant and logarithm of the proofs ([DisCo] App. "Proof of Theorem 1"); it needs S."""
    return DisCo(
        target=target,
        allocation=exact_allocation,
        bonus=proof_bonus,
        journey_limit=rollout_bound,
        states_bound=states_bound,
    )


def disco_experiment(target: Target, states_bound: int | None = None) -> DisCo:
    """DisCo as in the paper's simulations ([DisCo] App. "Algorithmic Configurations"); it carries no guarantee."""
    return DisCo(
        target=target,
        allocation=per_pair_allocation,
        bonus=simulation_bonus,
        journey_limit=effective_horizon,
        states_bound=states_bound,
    )
