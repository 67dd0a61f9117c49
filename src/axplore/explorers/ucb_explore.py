"""UcbExplore (Lim and Auer 2012), as far as [DisCo] App. "The UcbExplore Algorithm" describes it.

It alternates state discovery with rounds of policy evaluation, and its policies have a horizon: they reset every H
steps. Its promise is AX_L: every policy arrives within L + ε expected steps. The original text is not at hand; what is
reconstructed here and not in [DisCo] says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    Outlook,
    Probe,
    StopReason,
    action_bound,
    check_attainable,
    estimates_of,
    exploration_of,
    frontier_of,
    policy_by_number,
    with_known,
)
from axplore.explorers.ucb_rules import (
    ORIGINAL_ACCURACY_DIVISOR,
    DiscoveryRule,
    EpisodesRule,
    HorizonBonus,
    Problem,
    StageModels,
    bernstein_bonus,
    experiment_discovery,
    experiment_episodes,
    hoeffding_bonus,
    theory_discovery,
    theory_episodes,
)
from axplore.planning.finite_horizon import FiniteHorizonPlan, KnownRows, plan_with_horizon
from axplore.proofs.bounds import empirical_path
from axplore.statistics.counts import CountedRows, TransitionCounts
from axplore.target import Target
from axplore.types import RESET_ACTION, FloatArray, IntArray
from axplore.worlds.contract import Episodes, Visit, World
from axplore.worlds.simulation_kernels import visit

MAX_MISSES: Final = 10_000
"""Number of consecutive misses of its goal after which an evaluated policy is given up."""
MAX_HORIZON: Final = 10**7
"""A policy has a choice for each step of the horizon and each known state, all of which are held in memory."""
MAX_SAMPLES_TO_DEAL: Final = 10**9
"""NumPy deals out fewer samples than this."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UcbExploreState(ExplorerState):
    """Where UcbExplore stands.

    Attributes:
        counts: N, of the pairs of known states.
        policies: π_s of each known state, by step and position in `known`, [H, m].
        optimistic_steps: the optimistic H-step time of each when it was admitted.
        undiscovered: whether the newest known state still waits for its state discovery.
        failures: how many rounds have failed.
    """

    counts: TransitionCounts
    policies: tuple[IntArray, ...]
    optimistic_steps: tuple[float, ...]
    undiscovered: bool = True
    failures: int = 0


@dataclass(frozen=True, kw_only=True)
class UcbExplore(Explorer[UcbExploreState]):
    """UcbExplore for AX_L. The presets `ucb-explore-theory` and `ucb-explore-experiment` set every option.

    Attributes:
        target: L, ε and δ.
        episodes: λ, how many episodes a round has at most.
        discovery: b, how often each action of a new state is played.
        bonus: how optimistic the planning is.
        stage_models: one model, or one for each step of the horizon.
        accuracy_divisor: what ε/L is divided by.
        states_bound: S, an upper bound on the number of states; the theory's rules need it.
        actions_bound: A, the most actions that any state has beside RESET; of the known states when not given.
    """

    state_types = (UcbExploreState,)
    kernels = (visit,)

    target: Target
    episodes: EpisodesRule
    discovery: DiscoveryRule
    bonus: HorizonBonus
    stage_models: StageModels
    accuracy_divisor: float
    states_bound: int | None = None
    actions_bound: int | None = None

    def __post_init__(self) -> None:
        if not self.accuracy_divisor > 0:
            raise InvalidSettingError(f"accuracy_divisor is {self.accuracy_divisor}; it must be positive")
        # What needs S, or asks for more than any run can do, says so here, before the first step.
        check_attainable("steps in the horizon", self.horizon, self.target, most=MAX_HORIZON)
        problem = self._problem(n_known=1, n_actions=1)
        check_attainable("episodes in a round", self.episodes(problem), self.target)
        check_attainable("plays of each action", self.discovery(problem), self.target)
        self.bonus(np.zeros(1, dtype=np.int64), problem)

    @property
    def accuracy(self) -> float:
        """The relative accuracy e: ε/L by the divisor ([DisCo] App. "Algorithmic Configurations")."""
        return self.target.epsilon / self.target.radius / self.accuracy_divisor

    @property
    def horizon(self) -> int:
        """H = ⌈L + L/e⌉ ([DisCo] App. "Outline of the Algorithm")."""
        return math.ceil(self.target.radius + self.target.radius / self.accuracy)

    def forecast(self, probe: Probe) -> Outlook:
        """Returns the steps of λ episodes for each state that the probe found, each with the way there and a RESET."""
        model = probe.model
        n_actions = int(np.diff(model.rows.state_pairs).max(initial=1))
        reach = self.target.radius + self.target.epsilon
        total, n_known = 0.0, 1
        for goal in range(1, model.n_known):
            way = empirical_path(model, goal).steps
            if way <= reach:
                total += self.episodes(self._problem(n_known, n_actions)) * (way + 1)
                n_known += 1
        return Outlook(total, "episodes of the states found", needs_states_bound=self.episodes is theory_episodes)

    def start(self, world: World) -> UcbExploreState:
        """K = {s_0}, which waits for its state discovery."""
        counts = with_known(TransitionCounts(), [0], world)
        return UcbExploreState(
            round=1, known=(0,), found_at=(world.steps,), counts=counts,
            policies=(np.full((self.horizon, 1), RESET_ACTION, dtype=np.int64),), optimistic_steps=(0.0,),
        )  # fmt: skip

    def advance(self, state: UcbExploreState, world: World) -> UcbExploreState:
        """State discovery of a new state, or a round of policy evaluation."""
        if state.undiscovered:
            return self._discover(state, world)
        if not state.frontier:
            return replace(state, stop=StopReason.NO_CANDIDATES, activity="nothing left to evaluate")
        problem = self._problem_of(state)
        goal, plan = self._closest(state, problem)
        if plan.optimistic_steps > self.target.radius:
            return replace(state, stop=StopReason.ALL_TOO_FAR, activity="every candidate is too far")
        state, succeeded = self._evaluate(state, world, goal, plan, problem)
        if not succeeded:
            return replace(
                state, round=state.round + 1, failures=state.failures + 1, activity=f"failed to reach state {goal}"
            )
        return self._admit(state, world, goal, plan)

    def finish(self, state: UcbExploreState, world: World) -> Exploration:
        """The policies as they were when their rounds succeeded: UcbExplore has no consolidation."""
        return exploration_of(
            self,
            # Episodes may have met states since the last discovery: no candidates, but seen all the same.
            replace(state, frontier=frontier_of(state.counts)),
            world,
            counts=state.counts,
            policies=state.policies,
            optimistic_steps=np.array(state.optimistic_steps),
        )

    def _discover(self, state: UcbExploreState, world: World) -> UcbExploreState:
        """Plays each action of the newest known state b times; unseen next states join the frontier."""
        newest, policy = state.known[-1], policy_by_number(state.policies[-1], state.known)
        visits = self.discovery(self._problem_of(state))
        orders = [
            Visit(newest, action, times=visits, policy=policy, max_journey=self.horizon, max_cuts=MAX_MISSES)
            for action in range(len(world.actions_of(newest)))
        ]
        answers = world.carry_out(orders)
        counts = state.counts.with_answers(answers)
        state = replace(
            state,
            counts=counts,
            frontier=frontier_of(counts),
            undiscovered=False,
            activity=f"discovered from state {newest}",
        )
        if any(answer.completed < visits for answer in answers):
            return state.failed(
                f"{MAX_MISSES} episodes in a row did not reach {world.states[newest]!r}, whose policy had passed its "
                "evaluation; check that the world does not change over time"
            )
        return state

    def _closest(self, state: UcbExploreState, problem: Problem) -> tuple[int, FiniteHorizonPlan]:
        """The candidate with the least optimistic time, and the plan for it."""
        rows = state.counts.rows()
        weights = self.bonus(rows.visits, problem)
        probabilities = self._probabilities(rows, problem.horizon, state.round)
        plans = [
            (goal, plan_with_horizon(_known_rows(rows, probabilities, goal), weights, problem.horizon))
            for goal in state.frontier
        ]
        return min(plans, key=lambda goal_and_plan: goal_and_plan[1].optimistic_steps)

    def _probabilities(self, rows: CountedRows, horizon: int, round_: int) -> FloatArray:
        """The estimates of each transition, [1, T] or [H, T]."""
        if self.stage_models is StageModels.STATIONARY:
            return estimates_of(rows)[None, :]
        return _dealt_into_buckets(rows, horizon, np.random.default_rng(round_))

    def _evaluate(
        self, state: UcbExploreState, world: World, goal: int, plan: FiniteHorizonPlan, problem: Problem
    ) -> tuple[UcbExploreState, bool]:
        """Runs at most λ episodes and returns the state with their counts, and whether the round succeeded.

        It fails once the episodes have taken e·L·λ steps more than L each.

        Reconstructed: [DisCo] says that a check follows each episode, not which. A mean of (1 + O(e)) L is told from a
        longer one in λ ~ 1/e³ episodes by Bernstein's inequality, and a failed round costs at least e·L·λ of regret.
        """
        episodes = self.episodes(problem)
        order = Episodes(
            goal=goal,
            times=episodes,
            horizon=problem.horizon,
            policy=policy_by_number(plan.policy, state.known),
            allowance=self.target.radius,
            slack=problem.accuracy * self.target.radius * episodes,
        )
        (answer,) = world.carry_out([order])
        counted = replace(state, counts=state.counts.with_answers([answer]))
        return counted, answer.travelled <= answer.completed * order.allowance + order.slack

    def _admit(self, state: UcbExploreState, world: World, goal: int, plan: FiniteHorizonPlan) -> UcbExploreState:
        return replace(
            state,
            counts=with_known(state.counts, [goal], world),
            round=state.round + 1,
            known=(*state.known, goal),
            found_at=(*state.found_at, world.steps),
            frontier=tuple(number for number in state.frontier if number != goal),
            policies=(*state.policies, plan.policy),
            optimistic_steps=(*state.optimistic_steps, plan.optimistic_steps),
            undiscovered=True,
            activity=f"admitted state {goal}",
        )

    def _problem_of(self, state: UcbExploreState) -> Problem:
        return self._problem(len(state.known), action_bound(self.actions_bound, state.counts.rows()))

    def _problem(self, n_known: int, n_actions: int) -> Problem:
        return Problem(self.target, self.accuracy, self.horizon, n_known, n_actions, self.states_bound)


def _known_rows(rows: CountedRows, probabilities: FloatArray, goal: int) -> KnownRows:
    """The known set as seen on the way to a goal outside it."""
    n_known = len(rows.states)
    column_of = np.full(max(goal, *rows.states.tolist(), *rows.successors.tolist()) + 1, n_known + 1)
    column_of[rows.states] = np.arange(n_known)
    column_of[goal] = n_known
    return KnownRows(rows.state_pairs, rows.row_offsets, column_of[rows.successors], probabilities)


def _dealt_into_buckets(rows: CountedRows, buckets: int, generator: np.random.Generator) -> FloatArray:
    """Deals the samples of each pair into equal buckets, at random, and estimates a model from each, [buckets, T].

    The samples of a pair are exchangeable, so this has the same distribution as dealing them out in turn. A bucket
    without samples has a row of zeros: its pair is judged by its bonus alone.
    """
    if rows.visits.max(initial=0) >= MAX_SAMPLES_TO_DEAL:
        raise InvalidSettingError(
            f"a pair has {rows.visits.max()} samples, too many to deal into buckets; use StageModels.STATIONARY"
        )
    shares = np.zeros((buckets, len(rows.counts)))
    for pair in range(len(rows.visits)):
        row = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
        size = int(rows.visits[pair]) // buckets
        left = rows.counts[row].copy()
        for bucket in range(buckets if size else 0):
            drawn = generator.multivariate_hypergeometric(left, size, method="marginals")
            left -= drawn
            shares[bucket, row] = drawn / size
    return shares


def ucb_explore_theory(target: Target, states_bound: int | None = None) -> UcbExplore:
    """UcbExplore with constants, logarithms, Hoeffding bonuses and bucketed samples; it needs S."""
    return UcbExplore(
        target=target,
        episodes=theory_episodes,
        discovery=theory_discovery,
        bonus=hoeffding_bonus,
        stage_models=StageModels.BUCKETED,
        accuracy_divisor=ORIGINAL_ACCURACY_DIVISOR,
        states_bound=states_bound,
    )


def ucb_explore_experiment(target: Target, states_bound: int | None = None) -> UcbExplore:
    """UcbExplore-Bernstein ([DisCo] App. "Algorithmic Configurations"); it carries no guarantee."""
    return UcbExplore(
        target=target,
        episodes=experiment_episodes,
        discovery=experiment_discovery,
        bonus=bernstein_bonus,
        stage_models=StageModels.STATIONARY,
        accuracy_divisor=1.0,
        states_bound=states_bound,
    )
