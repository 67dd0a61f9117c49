"""Everything that the counts prove about each state, in the form that a certificate keeps.

Each statement comes with the vectors that prove it, so that a reader who trusts no solver can check them with one sweep
over the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from axplore.certificate.contents import KeptPolicies, Sparse, without_rest
from axplore.proofs.bound_kernels import states_met
from axplore.proofs.bounds import GoalValues, IntervalModel, Regret
from axplore.proofs.claims import NearOptimal, Reachable, TooFar
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests
from axplore.proofs.shared_bounds import MOST_WHOLE, NO_PLACES, SharedBounds
from axplore.proofs.tested_optimality import TestedPolicy, optimal_by_test
from axplore.proofs.travel import actions_of, kept_actions_of
from axplore.target import Objective, Target
from axplore.types import RESET_PAIR, FloatArray, IntArray, Status


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is proven, by position: known states first, in the order of admission, then the others that were seen.

    Attributes:
        model: the counts and the confidence region that everything follows from.
        target: L, ε and δ.
        objective: what was asked for.
        reachable: for each known state a policy restricted to those admitted before it, and its upper bound, [n].
        regrets: for each known state the final policy, its bounds and its regret, [n]; empty for AX_L.
        lower: for each state seen, a lower bound of the steps of every policy, [n + others].
        unseen: the same for a state never seen.
        tests: of policies by episodes.
    """

    model: IntervalModel
    target: Target
    objective: Objective
    reachable: tuple[GoalValues, ...]
    regrets: tuple[Regret, ...]
    lower: tuple[GoalValues, ...]
    unseen: GoalValues
    tests: EpisodeTests = field(default_factory=EpisodeTests)

    @property
    def reach(self) -> float:
        """L + ε."""
        return self.target.radius + self.target.epsilon

    @property
    def best_upper(self) -> tuple[GoalValues, ...]:
        """For each known state the policy to use, with its upper bound, [n], as far as the region proves one."""
        paths = tuple(regret.upper for regret in self.regrets) or self.reachable
        tested = self.optimal_by_test
        return tuple(tested[goal].path if goal in tested else path for goal, path in enumerate(paths))

    def test_of(self, position: int) -> EpisodeTest | None:
        """The test by episodes that proves a known state to be reachable, if there is one."""
        return self.tests.proof_of(int(self.model.numbers[position]), self.reach, position)

    def test_to_use(self, position: int) -> EpisodeTest | None:
        """The test whose policy is the one to use: where the radius alone matters, and the region proves none in it."""
        return None if self.regrets or self.reachable[position].at_most <= self.reach else self.test_of(position)

    @cached_property
    def optimal_by_test(self) -> dict[int, TestedPolicy]:
        """The policies that tests by episodes prove near-optimal and the region alone does not, by position."""
        epsilon = self.target.epsilon
        unproven = [goal for goal, regret in enumerate(self.regrets) if regret.at_most > epsilon]
        found = ((goal, optimal_by_test(self.tests, self.model, NearOptimal(goal, epsilon))) for goal in unproven)
        return {goal: tested for goal, tested in found if tested is not None}

    @property
    def policies(self) -> Sequence[IntArray]:
        """For each known state what to play on the way to it, [n], or by step, [H, m], if it restarts after H steps."""
        tests = [self.test_to_use(position) for position in range(self.model.n_known)]
        policies = (
            self.kept_actions(path) if test is None else test.policy_by_step
            for path, test in zip(self.best_upper, tests, strict=True)
        )
        kept = KeptPolicies(policies)
        return tuple(kept) if self.model.n_known <= MOST_WHOLE else kept

    @property
    def upper_steps(self) -> FloatArray:
        """A proven upper bound of the steps of each of these policies, [n]."""
        bounds = np.array([path.steps for path in self.best_upper])
        for position in range(self.model.n_known):
            test = self.test_to_use(position)
            bounds[position] = bounds[position] if test is None else test.bound
        for position, tested in self.optimal_by_test.items():
            bounds[position] = tested.steps
        return bounds

    @property
    def complete(self) -> bool:
        """Whether everything that the objective asks for is proven: no state is open, seen or not."""
        return self.nothing_missing and all(self.status(goal) is Status.CERTIFIED for goal in range(self.model.n_known))

    @property
    def nothing_missing(self) -> bool:
        """Whether S_L→ ⊆ K is proven: every other state, seen or not, is too far."""
        radius = self.target.radius
        others = self.lower[self.model.n_known :]
        return self.unseen.at_least > radius and all(path.at_least > radius for path in others)

    def status(self, position: int) -> Status:
        """Whether a state is proven within reach with a good policy, proven too far, or neither."""
        if position >= self.model.n_known:
            return Status.SET_ASIDE if self.lower[position].at_least > self.target.radius else Status.OPEN
        reached = self.reachable[position].at_most <= self.reach or self.test_of(position) is not None
        optimal = not self.regrets or self.regrets[position].at_most <= self.target.epsilon
        optimal = optimal or position in self.optimal_by_test
        return Status.CERTIFIED if reached and optimal else Status.OPEN

    def actions(self, policy: IntArray) -> IntArray:
        """A policy of pairs as one of positions among the actions of each known state, [n]."""
        return actions_of(self.model, policy)

    def kept_actions(self, path: GoalValues) -> IntArray | Sparse:
        """The same of the policy of a path, as it is kept."""
        return kept_actions_of(self.model, path.kept("policy"))


def gather_evidence(
    model: IntervalModel, target: Target, objective: Objective, tests: EpisodeTests | None = None
) -> Evidence:
    """Solves every claim once more on the final counts; what tests by episodes have proven stays proven."""
    reach = target.radius + target.epsilon
    known = range(model.n_known)
    start = GoalValues(0, np.zeros(len(model.numbers)), np.full(model.n_known, -1), proven=True)
    is_large = model.n_known > MOST_WHOLE
    lowers = SharedBounds(model)
    claims = (Reachable(goal, reach, goal) for goal in known)
    reachable = tuple(
        start if claim.goal == 0 else _on_its_way(model, claim.any_path(model) if is_large else claim.path(model))
        for claim in claims
    )
    regrets: tuple[Regret, ...] = ()
    if objective is Objective.OPTIMAL:
        optimal = (NearOptimal(goal, target.epsilon) for goal in known)
        regrets = tuple(_kept_regret(claim, model, lowers) if is_large else claim.regret(model) for claim in optimal)
    too_far = (TooFar(goal, target.radius).path(model) for goal in range(len(regrets), len(model.numbers)))
    lower = (regret.lower for regret in regrets)
    return Evidence(
        model=model,
        target=target,
        objective=objective,
        reachable=reachable,
        regrets=regrets,
        lower=(*lower, *(lowers.kept(path) if is_large else path for path in too_far)),
        unseen=TooFar(model.unseen, target.radius).path(model),
        tests=tests or EpisodeTests(),
    )


def _on_its_way(model: IntervalModel, path: GoalValues) -> GoalValues:
    """The path, in large models with RESET wherever the policy does not get from the initial state by what was seen.

    There its bound is that of RESET, and elsewhere it stays: no value that it rests on was greater than this.
    """
    if model.n_known <= MOST_WHOLE:
        return path
    if not path.proven:
        return _without_reset(path, path.steps)
    places = _met(model, path)
    places = places[(places == path.goal) | (path.policy[np.minimum(places, model.n_known - 1)] != RESET_PAIR)]
    played = places[(places < model.n_known) & (places != path.goal)]
    values = Sparse(len(model.numbers), 1.0 + path.steps, places, path.values[places])
    policy = Sparse(model.n_known, RESET_PAIR, played, path.policy[played])
    return GoalValues(path.goal, values, policy, proven=True)


def _met(model: IntervalModel, path: GoalValues) -> IntArray:
    """The goal, and the known states where a policy gets from the initial state by what was seen, ascending."""
    places: IntArray = np.flatnonzero(states_met(model.rows, path.goal, path.policy))
    return np.union1d(places, path.goal)


def _without_reset(path: GoalValues, rest: float) -> GoalValues:
    """The path without the number that its values have in most states, and without RESET."""
    values, policy = without_rest(path.values, rest), without_rest(path.policy, RESET_PAIR)
    return GoalValues(path.goal, values, policy, proven=path.proven)


def _kept_regret(claim: NearOptimal, model: IntervalModel, lowers: SharedBounds) -> Regret:
    """The regret in a large model: bounds with every number only if it is proven by them, and not by their gap."""
    quick = lowers.proof_of(claim)
    if quick is not None:
        way, along = quick
        return Regret(_on_its_way(model, way), along, np.zeros(0), NO_PLACES, np.full(1, np.inf))
    regret = claim.quick_regret(model, claim.lower(model)) or claim.regret(model)
    upper, lower = regret.upper, regret.lower
    if regret.at_most <= claim.steps < upper.at_most - lower.at_least:
        upper, lower = (_without_reset(path, 1.0 + path.steps) for path in (upper, lower))
        return Regret(upper, lower, np.zeros(0), NO_PLACES, _on_their_way(model, regret))
    return Regret(_on_its_way(model, upper), lowers.kept(lower), np.zeros(0), NO_PLACES, regret.values[:1].copy())


def _on_their_way(model: IntervalModel, regret: Regret) -> Sparse:
    """What the policy may lose in the states that it meets, and the most in all others, [n].

    The latter is what a state never seen counts for anyway.
    """
    places, values = _met(model, regret.upper), regret.values[: model.n_known]
    places = places[places < model.n_known]
    return Sparse(model.n_known, float(values.max()), places, values[places])
