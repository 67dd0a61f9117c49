"""Everything that the counts prove about each state, in the form that a certificate keeps.

Each statement comes with the vectors that prove it, so that a reader who trusts no solver can check them with one sweep
over the counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from axplore.proofs.bounds import (
    CertainWay,
    GoalValues,
    IntervalModel,
    Regret,
    correction,
    least_steps,
    most_steps,
    states_met,
)
from axplore.proofs.claims import ToOptimise, ToReach, ToSetAside
from axplore.proofs.contradictions import any_contradicted
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests
from axplore.proofs.shared_bounds import SharedBounds
from axplore.proofs.tested_optimality import TestedPolicy, optimal_by_test
from axplore.proofs.travel import actions_of
from axplore.records.claims import Bound, Way
from axplore.records.policies import Policies
from axplore.records.vectors import Vector
from axplore.target import Objective, Target
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray, Status


@dataclass(frozen=True, eq=False)
class KeptRegret:
    """What the policy of an upper bound may lose against the best one, as a certificate has it.

    Attributes:
        upper, lower: the bounds that it follows from.
        first: a bound of the loss from the initial state; infinite if only the gap between them bounds it.
        values: that bound from each known state, [n]; None where the claim does not need it.
    """

    upper: Way
    lower: Bound
    first: float
    values: Vector[np.float64] | None = None

    @property
    def steps(self) -> float:
        """What the policy may lose from the initial state: the better of the two ways to bound it."""
        return min(self.first, float(self.upper.upper[0] - self.lower.lower[0] + self.lower.deduction))

    @cached_property
    def at_most(self) -> float:
        """What is decided by: the same from corrected bounds."""
        steps = self.upper.upper
        if not steps[0]:
            return 0.0
        corrected = self.first + 3.0 * correction(steps) * float(steps[0])
        return min(corrected, most_steps(steps) - bounded_by(self.lower))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is proven, by index: known states first, in the order of admission, then the others that were seen.

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
    reachable: tuple[Way, ...]
    regrets: tuple[KeptRegret, ...]
    lower: tuple[Bound, ...]
    unseen: Bound
    tests: EpisodeTests = field(default_factory=EpisodeTests)

    @property
    def numbers(self) -> IntArray:
        """The world's number of each index, known states first, [n + others]."""
        return self.model.numbers

    @property
    def reach(self) -> float:
        """L + ε."""
        return self.target.radius + self.target.epsilon

    @cached_property
    def most_steps(self) -> tuple[float, ...]:
        """What the upper bounds of `reachable` decide by, [n]."""
        return tuple(most_steps(way.upper) for way in self.reachable)

    @cached_property
    def least_steps(self) -> tuple[float, ...]:
        """What the lower bounds decide by, [n + others]."""
        return tuple(bounded_by(bound) for bound in self.lower)

    @cached_property
    def best_upper(self) -> tuple[Way, ...]:
        """For each known state the policy to use, with its upper bound, [n], as far as the region proves one."""
        paths = [regret.upper for regret in self.regrets] or list(self.reachable)
        for goal, tested in self.optimal_by_test.items():
            paths[goal] = _way(self.model, tested.path)
        return tuple(paths)

    def test_of(self, index: int) -> EpisodeTest | None:
        """The test by episodes that proves a known state to be reachable, if there is one."""
        return self.tests.proof_of(int(self.model.numbers[index]), self.reach, index)

    def test_to_use(self, index: int) -> EpisodeTest | None:
        """The test whose policy is the one to use: where the radius alone matters, and the region proves none in it."""
        return None if self.regrets or self.most_steps[index] <= self.reach else self.test_of(index)

    @cached_property
    def optimal_by_test(self) -> dict[int, TestedPolicy]:
        """The policies that tests by episodes prove near-optimal and the region alone does not, by index."""
        epsilon = self.target.epsilon
        unproven = [goal for goal, regret in enumerate(self.regrets) if regret.at_most > epsilon]
        found = ((goal, optimal_by_test(self.tests, self.model, ToOptimise(goal, epsilon))) for goal in unproven)
        return {goal: tested for goal, tested in found if tested is not None}

    @property
    def policies(self) -> Policies:
        """For each known state what to play on the way to it, [n], or by step, [H, n], if it restarts after H steps."""
        policies, horizons = [path.policy for path in self.best_upper], {}
        for index in range(self.model.n_known):
            test = self.test_to_use(index)
            if test is not None:
                policies[index] = test.policy(self.model.n_known)
                horizons[index] = test.horizon
        return Policies.of(policies, self.model.n_known, horizons)

    @property
    def upper_steps(self) -> FloatArray:
        """A proven upper bound of the steps of each of these policies, [n]."""
        bounds = np.array([way.upper[0] for way in self.best_upper])
        for index in range(self.model.n_known):
            test = self.test_to_use(index)
            bounds[index] = bounds[index] if test is None else test.at_most
        for index, tested in self.optimal_by_test.items():
            bounds[index] = tested.steps
        return bounds

    @property
    def complete(self) -> bool:
        """Whether everything that the objective asks for is proven: no state is open, seen or not."""
        certified = (self.status(goal) is Status.CERTIFIED for goal in range(self.model.n_known))
        return self.nothing_missing and all(certified) and not self.contradicted

    @cached_property
    def contradicted(self) -> bool:
        """Whether the rows contradict what episodes have proven: then neither can be relied on."""
        return any_contradicted(self.tests, self.model)

    @property
    def nothing_missing(self) -> bool:
        """Whether S_L→ ⊆ K is proven: every other state, seen or not, is too far."""
        radius = self.target.radius
        return all(steps > radius for steps in (bounded_by(self.unseen), *self.least_steps[self.model.n_known :]))

    def status(self, index: int) -> Status:
        """Whether a state is proven within reach with a good policy, proven too far, or neither."""
        if index >= self.model.n_known:
            return Status.SET_ASIDE if self.least_steps[index] > self.target.radius else Status.OPEN
        good = self.objective is not Objective.OPTIMAL or self._is_near_optimal(index)
        return Status.CERTIFIED if self.is_reached(index) and good else Status.OPEN

    def _is_near_optimal(self, index: int) -> bool:
        by_region = bool(self.regrets) and self.regrets[index].at_most <= self.target.epsilon
        return by_region or index in self.optimal_by_test

    @property
    def tested(self) -> list[int]:
        """The known states that a test by episodes proves to be reachable."""
        return [index for index in range(1, self.model.n_known) if self.test_of(index) is not None]

    def is_refuted(self, index: int) -> bool:
        """Whether a known state is proven to be out of reach."""
        return self.least_steps[index] > self.reach

    def is_reached(self, index: int) -> bool:
        """Whether a known state is proven to be within reach by states admitted before it."""
        return self.most_steps[index] <= self.reach or self.test_of(index) is not None


def gather_evidence(
    model: IntervalModel, target: Target, objective: Objective, tests: EpisodeTests | None = None
) -> Evidence:
    """Solves every claim once more on the final counts; what tests by episodes have proven stays proven."""
    reach, known, lowers = target.radius + target.epsilon, range(model.n_known), SharedBounds(model)
    reachable = tuple(_kept_reachable(ToReach(goal, reach, goal), model) for goal in known)
    regrets: tuple[KeptRegret, ...] = ()
    if objective is Objective.OPTIMAL:
        regrets = tuple(_kept_regret(ToOptimise(goal, target.epsilon), model, lowers) for goal in known)
    beyond = (ToSetAside(goal, target.radius) for goal in range(len(regrets), len(model.numbers)))
    lower = (regret.lower for regret in regrets)
    return Evidence(
        model=model,
        target=target,
        objective=objective,
        reachable=reachable,
        regrets=regrets,
        lower=(*lower, *(_kept_lower(claim, model, lowers) for claim in beyond)),
        unseen=_bound(model, ToSetAside(model.unseen, target.radius).path(model)),
        tests=tests or EpisodeTests(),
    )


def bounded_by(bound: Bound) -> float:
    """What a lower bound decides by."""
    return least_steps(bound.lower, bound.deduction)


def _way(model: IntervalModel, path: GoalValues) -> Way:
    """An upper bound with all that it says of the known states."""
    return Way(path.goal, Vector.of(actions_of(model, path.policy), RESET_ACTION), _values(model, path))


def _bound(model: IntervalModel, path: GoalValues) -> Bound:
    """A lower bound with all that it says of the known states."""
    return Bound(path.goal, _values(model, path), path.deduction)


def _values(model: IntervalModel, path: GoalValues) -> Vector[np.float64]:
    return Vector.of(path.values[: model.n_known], 1.0 + float(path.values[0]))


def _kept_reachable(claim: ToReach, model: IntervalModel) -> Way:
    if claim.goal == 0:
        start = np.zeros(len(model.numbers)), np.full(model.n_known, RESET_PAIR)
        return _way(model, GoalValues(0, *start, proven=True))
    if not model.is_large:
        return _way(model, claim.path(model))
    found = claim.any_path(model)
    return _along(model, found) if isinstance(found, CertainWay) else _on_its_way(model, found)


def _kept_lower(claim: ToSetAside, model: IntervalModel, lowers: SharedBounds) -> Bound:
    if not model.is_large:
        return _bound(model, claim.path(model))
    inherited = lowers.inherited(claim.goal)
    return Bound(claim.goal, lowers.kept(claim.path(model)) if inherited is None else inherited)


def _on_its_way(model: IntervalModel, path: GoalValues) -> Way:
    """The path, in large models with RESET wherever the policy does not get from the initial state by what was seen.

    There its bound is that of RESET, and elsewhere it stays: no value that it rests on was greater than this.
    """
    if not model.is_large or not path.proven:
        return _way(model, path)
    met = _met(model, path)
    met = met[(met == path.goal) | (path.policy[met] != RESET_PAIR)]
    policy, values = np.full(model.n_known, RESET_PAIR), np.full(model.n_known, 1.0 + path.steps)
    policy[met], values[met] = path.policy[met], path.values[met]
    policy[met[met == path.goal]] = RESET_PAIR
    return _way(model, GoalValues(path.goal, values, policy, proven=True))


def _along(model: IntervalModel, way: CertainWay) -> Way:
    """A way on which each pair has one successor."""
    order, states, values = np.argsort(way.states), way.states, way.bounds
    actions = way.pairs[order] - model.rows.state_pairs[states[order]]
    policy = Vector(model.n_known, states[order], actions, np.int64(RESET_ACTION))
    if way.goal < model.n_known:
        states, values = np.append(states, way.goal), np.append(values, 0.0)
        order = np.argsort(states)
    return Way(way.goal, policy, Vector(model.n_known, states[order], values[order], np.float64(1.0 + way.steps)))


def _met(model: IntervalModel, path: GoalValues) -> IntArray:
    """The known states where a policy gets from the initial state by what was seen, and the goal, ascending."""
    met = states_met(model, path)
    met[path.goal : path.goal + 1] = True  # if it is known
    return np.flatnonzero(met)


def _kept_regret(claim: ToOptimise, model: IntervalModel, lowers: SharedBounds) -> KeptRegret:
    """The regret; in a large model bounds with every number only if it is proven by them, and not by their gap."""
    if not model.is_large:
        regret = claim.regret(model)
        both = _way(model, regret.upper), _bound(model, regret.lower)
        if regret.lower.deduction:
            return KeptRegret(*both, np.inf)
        values = Vector.of(regret.values[: model.n_known], 0.0)
        return KeptRegret(*both, float(values[0]), values)
    quick = lowers.proof_of(claim)
    if quick is not None:
        way, along = quick
        return KeptRegret(_along(model, way), Bound(claim.goal, along), np.inf)
    regret = claim.quick_regret(model, claim.lower(model)) or claim.regret(model)
    upper, first = regret.upper, float(regret.values[0])
    if regret.at_most <= claim.steps < upper.at_most - regret.lower.at_least:
        return KeptRegret(_way(model, upper), _bound(model, regret.lower), first, _on_their_way(model, regret))
    return KeptRegret(_on_its_way(model, upper), Bound(claim.goal, lowers.kept(regret.lower)), first)


def _on_their_way(model: IntervalModel, regret: Regret) -> Vector[np.float64]:
    """What the policy may lose in the states that it meets, and the most in all others, [n].

    The latter is what a state never seen counts for anyway.
    """
    met, values = _met(model, regret.upper), regret.values[: model.n_known]
    kept = np.full(model.n_known, values.max())
    kept[met] = values[met]
    return Vector.of(kept, values.max())
