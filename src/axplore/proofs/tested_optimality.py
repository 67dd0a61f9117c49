"""Near-optimality by a test: episodes bound the steps of a policy, and the region those of every other.

A test by episodes proves that its policy takes at most B expected steps, at a cost that does not grow with the number
of rows on the way. If the region proves that no policy takes fewer than B - ε, the tested policy loses at most ε. Only
this lower bound rests on rows, and a loose upper bound that closes the *tail*: what the policy needs after the horizon
of the episodes, so that it need not restart there. docs/algorithms/certified.md, Theorem 3. What is planned here are
estimates to choose by; no proof rests on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from axplore.proofs.bounds import GoalValues, IntervalModel, correction, empirical_path, upper_path
from axplore.proofs.claims import Draws, ToOptimise, ToSetAside, cheapest_draws
from axplore.proofs.episode_tests import EpisodePlan, EpisodeTest, EpisodeTests, new_test
from axplore.proofs.sensitivity import expected_visits
from axplore.proofs.travel import Travel

TEST_PARTS: Final = (0.3, 0.45, 0.6)
"""The parts of ε by which a bound to test may exceed the estimate; the lower bound has the rest."""

MIDDLE_PART: Final = 0.45
PATIENCE: Final = 1.5
"""A begun test is continued if a bound in the middle takes at most this many times the steps of a new one."""

ROOM: Final = 1.15
"""The tail of a new test has this much room over the present upper bound, which later draws may raise."""

LONGEST_TAIL: Final = 1.25
"""The tail of a new test is at most this many times its bound; where the upper bound is larger, it has to fall."""


@dataclass(frozen=True, eq=False)
class TestedPolicy:
    """A policy that a test proves near-optimal.

    Attributes:
        test: which proves its expected steps, if it needs at most `test.tail` steps from wherever it may stand.
        path: the policy, and the upper bound of the region that proves this.
    """

    __test__ = False  # for pytest

    test: EpisodeTest
    path: GoalValues

    @property
    def steps(self) -> float:
        """A proven upper bound of its expected steps."""
        return min(self.test.at_most, self.path.steps)


@dataclass(frozen=True, eq=False)
class WayByTest:
    """What would prove a policy near-optimal by a test.

    Attributes:
        travel: the steps that it would take in all.
        plan: the test to begin or to continue; None if it is proven already.
        draws: what would prove the lower bound, after the test.
    """

    travel: float
    plan: EpisodePlan | None
    draws: Draws


def optimal_by_test(tests: EpisodeTests, model: IntervalModel, claim: ToOptimise) -> TestedPolicy | None:
    """Returns the policy that a test proves near-optimal; None if there is none."""
    proven = tests.proven_of(int(model.numbers[claim.goal]))
    if not proven:
        return None
    lower = ToSetAside(claim.goal, 0.0).path(model).at_least
    return next((tested for tested in _closed(proven, model) if lower > tested.test.at_most - claim.steps), None)


def _closed(proven: list[EpisodeTest], model: IntervalModel) -> list[TestedPolicy]:
    """Of these tests those whose tail the region closes."""
    paths = [(test, _closing_path(test, model)) for test in proven]
    return [TestedPolicy(test, path) for test, path in paths if path is not None]


def _closing_path(test: EpisodeTest, model: IntervalModel) -> GoalValues | None:
    """The upper bound that closes the tail of a test; None if the region proves none for its policy."""
    goal = int(np.flatnonzero(model.numbers == test.goal)[0])
    policy = test.pairs(model)
    as_tested = GoalValues(goal, empirical_path(model, goal).values, policy, proven=False)
    path = upper_path(model, goal, follow=as_tested, at_most=test.tail - 1.0)
    differs = path.policy != policy  # it resets where the region knows too little of what was tested
    differs[goal] = False
    if differs.any() or not path.proven:
        return None
    worst = max(1.0 + path.steps, float(path.values.max())) * (1.0 + correction(path.values))
    return replace(path, policy=policy) if worst <= test.tail else None


def begun_test(tests: EpisodeTests, model: IntervalModel, claim: ToOptimise, share: float) -> EpisodePlan | None:
    """A test of the goal that was begun, and what a bound in the middle takes, if that is worth its while; else None.

    Estimates move, and a test may prove any bound above the least one. So it is continued until that bound is proven,
    as long as this takes at most `PATIENCE` times the steps of a new test.
    """
    begun = tests.open_of(int(model.numbers[claim.goal]))
    if not begun:
        return None
    estimate = empirical_path(model, claim.goal)
    path, bound = path_to_test(model, estimate), estimate.steps + MIDDLE_PART * claim.steps
    anew = new_test(tests, model, path, bound, share, tail_for(path, bound))
    for test in begun:
        at_most = max(bound, test.bound)
        if test.proves(at_most) or at_most > test.largest_bound or estimate.steps <= at_most - claim.steps:
            continue
        plan = test.plan(model, at_most)
        if plan.travel <= PATIENCE * anew.travel:
            return plan
    return None


def way_by_test(
    tests: EpisodeTests,
    model: IntervalModel,
    claim: ToOptimise,
    travel: Travel,
    share: float,
    at_most: float,
) -> WayByTest | None:
    """The cheapest way to prove a claim by a test; None if there is none that takes at most `at_most` steps.

    Args:
        tests: those begun so far.
        model: counts and region.
        claim: what to prove.
        travel: the steps that one more draw of each pair takes.
        share: the probability with which all tests together may err.
        at_most: ways that take more steps are of no interest.
    """
    estimate, number = empirical_path(model, claim.goal), int(model.numbers[claim.goal])
    best: WayByTest | None = None
    for tested in _closed(tests.proven_of(number), model)[:1]:
        needed = ToSetAside(claim.goal, tested.test.at_most - claim.steps)
        if estimate.steps > needed.steps:
            draws = cheapest_draws(needed, model, travel, at_most)
            best = WayByTest(draws.travel, None, draws)
    if not np.isfinite(estimate.steps):
        return None
    for plan, bound in _plans(tests, model, estimate, claim.steps, share):
        limit = at_most if best is None else min(at_most, best.travel)
        if plan.travel < limit:
            later = _after(plan, model, claim.goal)
            needed = ToSetAside(claim.goal, bound - claim.steps)
            draws = cheapest_draws(needed, later, travel, limit - plan.travel)
            if plan.travel + draws.travel < limit:
                best = WayByTest(plan.travel + draws.travel, plan, draws)
    return best if best is not None and best.travel < at_most else None


def _plans(
    tests: EpisodeTests, model: IntervalModel, estimate: GoalValues, epsilon: float, share: float
) -> Iterator[tuple[EpisodePlan, float]]:
    """Yields tests to begin or to continue, each with the bound that it is to prove, which leaves the rest of ε."""
    path, begun = path_to_test(model, estimate), tests.open_of(int(model.numbers[estimate.goal]))
    for part in TEST_PARTS:
        bound = estimate.steps + part * epsilon
        yield new_test(tests, model, path, bound, share, tail_for(path, bound)), bound
        for test in begun:
            if test.bound <= bound <= test.largest_bound and not test.proves(bound):
                yield test.plan(model, bound), bound


def path_to_test(model: IntervalModel, estimate: GoalValues) -> GoalValues:
    """Returns what looks best, with RESET where the region prefers it: a policy whose tail the region can close."""
    path = upper_path(model, estimate.goal, follow=estimate)
    return path if path.proven else estimate


def tail_for(path: GoalValues, bound: float) -> float:
    """Returns the tail for a new test of a path, so that the region closes it by the time it is proven."""
    most = ROOM * path.at_most if path.proven else np.inf
    return 1.0 + max(bound, min(most, LONGEST_TAIL * bound))


def _after(plan: EpisodePlan, model: IntervalModel, goal: int) -> IntervalModel:
    """The model after the episodes of a test, whose draws count as all others, if the frequencies stay."""
    pairs = plan.test.pairs(model)
    rows, plays = model.rows, pairs >= 0
    met = expected_visits(
        rows, goal, pairs, rows.frequencies, 0, np.zeros(model.n_known, dtype=np.int64), model.start()
    )
    visits = model.visits.astype(np.float64)
    visits[pairs[plays]] += met[plays] * plan.n_episodes
    return replace(model.with_visits(visits), visits=visits.astype(np.int64))
