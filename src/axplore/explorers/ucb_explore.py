"""UcbExplore (Lim and Auer 2012), as far as [DisCo] App. "The UcbExplore Algorithm" describes it.

It alternates state discovery with rounds of policy evaluation, and its policies have a horizon: they reset every H
steps. Its promise is AX_L: every policy arrives within L + ε expected steps. The original text is not at hand; what is
reconstructed here and not in [DisCo] says so.

Configurations differ in their rules: how many episodes, how much discovery, and how optimistic. The theory's rules have
the constants and logarithms that [DisCo] prints; the experiment's have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    ForecastProbe,
    Outlook,
    action_bound,
    check_attainable,
    drawn,
    estimates_of,
    exploration_of,
    first_counts,
    frontier_of,
    policy_by_number,
    required_states_bound,
    with_drawn,
    with_known,
)
from axplore.graphs.finite_horizon import BonusWeights, FiniteHorizonPlan, KnownRows, plan_with_horizon
from axplore.proofs.bounds import empirical_path
from axplore.records.counts import Counts
from axplore.records.run import StopReason
from axplore.target import Target
from axplore.types import RESET_ACTION, FloatArray, IntArray
from axplore.worlds.contract import Episodes, Visit, World

EPISODES_FACTOR: Final = 6
"""Before (L/ε)³ in λ ([DisCo] App. "Outline of the Algorithm")."""
EPISODES_LOG_FACTOR: Final = 16
"""Before |K|²/δ in the logarithm of λ ([DisCo] App. "Outline of the Algorithm")."""
DISCOVERY_LOG_FACTOR: Final = 3
"""Before ALS/δ in b ([DisCo] Lem. (high_prob_visit))."""
ORIGINAL_ACCURACY_DIVISOR: Final = 8.0
"""The original divides ε' = ε/L by 8 ([DisCo] App. "Algorithmic Configurations")."""
EXPERIMENT_EPISODES_CONSTANT: Final = 3.0
"""c in c/ε'³ episodes. [DisCo] says only that constants are removed; 1 gives 0.55 to 0.6 of the published totals, 3
comes near them. It was fitted after the fact and validates nothing."""


@dataclass(frozen=True)
class Problem:
    """The setting that the rules below depend on.

    Attributes:
        target: L, ε and δ.
        accuracy: e, the relative accuracy: ε/L, divided by the configuration's divisor.
        horizon: H = ⌈(1 + 1/e) L⌉.
        n_known: |K|.
        n_actions: A, the most actions that any state has beside RESET.
        states_bound: S, an upper bound on the number of states, if one is known.
    """

    target: Target
    accuracy: float
    horizon: int
    n_known: int
    n_actions: int
    states_bound: int | None


EpisodesRule: TypeAlias = Callable[[Problem], int]
"""λ, how many episodes a round has at most."""
DiscoveryRule: TypeAlias = Callable[[Problem], int]
"""b, how often each action of a new state is played."""
HorizonBonus: TypeAlias = Callable[[IntArray, Problem], BonusWeights]
"""Returns the optimism for pairs with these visits, [P]."""


def theory_episodes(problem: Problem) -> int:
    """⌈6/e³ log(16 |K|²/δ)⌉ ([DisCo] App. "Outline of the Algorithm")."""
    logarithm = math.log(EPISODES_LOG_FACTOR * problem.n_known**2 / problem.target.delta)
    return math.ceil(EPISODES_FACTOR / problem.accuracy**3 * logarithm)


def experiment_episodes(problem: Problem, constant: float = EXPERIMENT_EPISODES_CONSTANT) -> int:
    """⌈c/e³⌉: λ without constants and logarithms, but for c. Bind another c with `functools.partial`."""
    return math.ceil(constant / problem.accuracy**3)


def lock_episodes(problem: Problem) -> int:
    """⌈log(|K|²)/e³⌉ ([DisCo] App. "Combination Lock"); with a single known state the logarithm is taken as 1.

    Reconstructed: for |K| = 1 the printed number is 0, and a round without episodes would admit anything.
    """
    logarithm = math.log(problem.n_known**2) if problem.n_known > 1 else 1.0
    return math.ceil(logarithm / problem.accuracy**3)


def theory_discovery(problem: Problem) -> int:
    """⌈L log(3ALS/δ)⌉ ([DisCo] Lem. (high_prob_visit))."""
    radius, states = problem.target.radius, required_states_bound(problem.states_bound)
    inside = DISCOVERY_LOG_FACTOR * problem.n_actions * radius * states / problem.target.delta
    return math.ceil(radius * math.log(inside))


def experiment_discovery(problem: Problem) -> int:
    """⌈L⌉: the same without constants and logarithms ([DisCo] App. "Algorithmic Configurations")."""
    return math.ceil(problem.target.radius)


def hoeffding_bonus(visits: IntArray, problem: Problem) -> BonusWeights:
    """(H - h) sqrt(log(2SAHN/δ) / (2N/H)), with the visits split into H buckets.

    Reconstructed: [DisCo] says that the original uses Hoeffding bonuses on N/H samples; the logarithm is that of
    [DisCo] Eq. (bonuses) with a factor H for the steps of the horizon.
    """
    states = required_states_bound(problem.states_bound)
    draws = np.maximum(1, visits)
    logarithm = np.log(float(2 * states * problem.n_actions * problem.horizon) * draws / problem.target.delta)
    bucket = np.maximum(1, visits // problem.horizon)
    return BonusWeights(variance=np.zeros(len(visits)), range=np.sqrt(logarithm / (2 * bucket)))


def bernstein_bonus(visits: IntArray, problem: Problem) -> BonusWeights:
    """sqrt(Var[V_{h+1}] / (N/H ∨ 1)) + (H - h)/(N/H ∨ 1) ([DisCo] App. "Algorithmic Configurations")."""
    return _bernstein(visits / problem.horizon)


def lock_bernstein_bonus(visits: IntArray, problem: Problem) -> BonusWeights:  # noqa: ARG001 (one type for all)
    """As `bernstein_bonus`, with N in the place of N/H ([DisCo] App. "Combination Lock")."""
    return _bernstein(visits.astype(np.float64))


def _bernstein(samples: FloatArray) -> BonusWeights:
    inverse = 1 / np.maximum(1.0, samples)
    return BonusWeights(variance=inverse, range=inverse)


class StageModels(Enum):
    """How the transitions of a pair are estimated."""

    STATIONARY = "one model from all samples"
    BUCKETED = "the samples are dealt into H buckets, one model for each step of the horizon"


MAX_MISSES: Final = 10_000
"""Number of consecutive misses of its goal after which an evaluated policy is given up."""
MAX_HORIZON: Final = 10**7
"""A policy has a choice for each step of the horizon and each known state, all of which are held in memory."""
MAX_SAMPLES_TO_DEAL: Final = 10**9
"""NumPy deals out fewer samples than this."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UcbExploreState(ExplorerState):
    """The state of UcbExplore.

    Attributes:
        counts: N, of the pairs of known states.
        policies: π_s of each known state, by step and index in `known`, [H, m].
        optimistic_steps: the optimistic H-step time of each when it was admitted.
        undiscovered: whether the newest known state still waits for its state discovery.
        failures: the number of rounds that have failed.
    """

    counts: Counts
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
        accuracy_divisor: the divisor of ε/L.
        states_bound: S, an upper bound on the number of states; the theory's rules need it.
        actions_bound: A, the most actions that any state has beside RESET; by default, of the known states.
    """

    state_types = (UcbExploreState,)

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

    def forecast(self, probe: ForecastProbe) -> Outlook:
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
        counts = first_counts(world)
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
        if succeeded is None:
            return replace(state, activity=f"cut on the way to state {goal}")
        if not succeeded:
            return replace(
                state, round=state.round + 1, failures=state.failures + 1, activity=f"failed to reach state {goal}"
            )
        return self._admit(state, world, goal, plan)

    def finish(self, state: UcbExploreState, world: World) -> Exploration:
        """Returns the policies of the rounds that succeeded: UcbExplore has no consolidation."""
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
        answers, was_cut = drawn(orders, world)
        counts = with_drawn(state.counts, answers, world)
        state = replace(
            state,
            counts=counts,
            frontier=frontier_of(counts),
            undiscovered=was_cut,  # then it begins again
            activity=f"discovered from state {newest}",
        )
        if not was_cut and any(answer.completed < visits for answer in answers):
            return state.failed(
                f"{MAX_MISSES} episodes in a row did not reach {world.states[newest]!r}, whose policy had passed its "
                "evaluation; check that the world does not change over time"
            )
        return state

    def _closest(self, state: UcbExploreState, problem: Problem) -> tuple[int, FiniteHorizonPlan]:
        """Returns the candidate with the least optimistic time, and the plan for it."""
        rows = state.counts
        weights = self.bonus(rows.visits, problem)
        probabilities = self._probabilities(rows, problem.horizon, state.round)
        plans = [
            (goal, plan_with_horizon(_known_rows(rows, probabilities, goal), weights, problem.horizon))
            for goal in state.frontier
        ]
        return min(plans, key=lambda goal_and_plan: goal_and_plan[1].optimistic_steps)

    def _probabilities(self, rows: Counts, horizon: int, round_: int) -> FloatArray:
        """Returns the estimates of each transition, [1, T] or [H, T]."""
        if self.stage_models is StageModels.STATIONARY:
            return estimates_of(rows)[None, :]
        return _dealt_into_buckets(rows, horizon, np.random.default_rng(round_))

    def _evaluate(
        self, state: UcbExploreState, world: World, goal: int, plan: FiniteHorizonPlan, problem: Problem
    ) -> tuple[UcbExploreState, bool | None]:
        """Runs at most λ episodes and returns the state with their counts, and whether the round succeeded.

        A round that a limit cuts neither succeeds nor fails (None): it begins again.

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
        (answer,), was_cut = drawn([order], world)
        counted = replace(state, counts=with_drawn(state.counts, [answer], world))
        return counted, None if was_cut else answer.travelled <= answer.completed * order.allowance + order.slack

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
        return self._problem(len(state.known), action_bound(self.actions_bound, state.counts))

    def _problem(self, n_known: int, n_actions: int) -> Problem:
        return Problem(self.target, self.accuracy, self.horizon, n_known, n_actions, self.states_bound)


def _known_rows(rows: Counts, probabilities: FloatArray, goal: int) -> KnownRows:
    """Returns the known set as seen on the way to a goal outside it."""
    n_known = len(rows.states)
    column_of = np.full(max(goal, *rows.states.tolist(), *rows.successors.tolist()) + 1, n_known + 1)
    column_of[rows.states] = np.arange(n_known)
    column_of[goal] = n_known
    return KnownRows(rows.state_pairs, rows.row_offsets, column_of[rows.successors], probabilities)


def _dealt_into_buckets(rows: Counts, buckets: int, generator: np.random.Generator) -> FloatArray:
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
