"""Near-optimality by a test and a lower bound, as the prover finds it; the verifier's side: test_conclusions.py."""

from __future__ import annotations

from functools import cache

import numpy as np

from axplore.domains import slippery_grid
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified
from axplore.proofs import tested_optimality
from axplore.proofs.bounds import empirical_path
from axplore.proofs.claims import ToOptimise
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests, new_test
from axplore.proofs.tested_optimality import begun_test, path_to_test
from axplore.target import Target
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.coverage_models import CoverageCase
from axplore_studies.promises import violations_of
from edited import edited

GRID = slippery_grid(4, 4)
TARGET = Target(radius=6.0, epsilon=1.0, delta=0.1)


@cache
def explored() -> Exploration:
    return run(Certified(target=TARGET), SimulatedWorld(GRID, 1))


def test_every_policy_is_within_epsilon_of_the_best_one_in_the_true_model() -> None:
    assert violations_of(explored(), CoverageCase(GRID, TARGET.radius)) == []


def a_proven_test(goal: int, bound: float, tail: float = 20.0) -> EpisodeTest:
    assert explored().evidence is not None
    model = explored().evidence.model  # type: ignore[union-attr]
    path = path_to_test(model, empirical_path(model, goal))
    test = new_test(EpisodeTests(), model, path, bound, 0.01, tail).test
    outcomes = np.zeros_like(test.outcomes)
    outcomes[1] = 10_000
    return edited(test, outcomes=outcomes)


def test_a_test_counts_if_its_bound_is_within_epsilon_of_the_lower_bound() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    estimate = empirical_path(model, goal).steps
    near, far = a_proven_test(goal, estimate + 0.2), a_proven_test(goal, estimate + 1.5)
    claim = ToOptimise(goal, 1.0)
    found = tested_optimality.optimal_by_test(EpisodeTests((far, near)), model, claim)
    assert found is not None
    assert found.test is near
    assert found.path.proven
    assert found.steps <= near.bound
    assert tested_optimality.optimal_by_test(EpisodeTests((far,)), model, claim) is None


def test_a_test_counts_only_if_the_region_closes_its_tail() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    claim, bound = ToOptimise(goal, 1.0), empirical_path(model, goal).steps + 0.05
    for tail, closes in ((1.0 + bound, False), (1.5 + 1.5 * bound, True)):
        tests = EpisodeTests((a_proven_test(goal, bound, tail),))
        assert (tested_optimality.optimal_by_test(tests, model, claim) is not None) is closes


def test_a_begun_test_is_continued_while_a_bound_that_serves_is_near() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    estimate = empirical_path(model, goal)
    claim = ToOptimise(goal, 1.0)
    good = new_test(EpisodeTests(), model, estimate, estimate.steps + 0.4, 0.01, estimate.steps + 2.2).test
    assert begun_test(EpisodeTests((good,)), model, claim, 0.01) is not None
    for bound in (estimate.steps + 0.02, estimate.steps - 0.1):  # it may prove a larger bound, too
        plan = begun_test(EpisodeTests((edited(good, bound=bound),)), model, claim, 0.01)
        assert plan is not None
        assert plan.test.bound == bound
    lost = np.zeros_like(good.outcomes)
    lost[-1] = 100
    above, below = estimate.steps + 1.1, estimate.steps - 0.1
    for other in ({"bound": above}, {"bound": below, "tail": 1.0 + below}, {"outcomes": lost}, {"is_over": True}):
        assert begun_test(EpisodeTests((edited(good, **other),)), model, claim, 0.01) is None


def test_a_test_near_a_bound_is_worth_more_than_a_new_one() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    estimate = empirical_path(model, goal)
    anew = new_test(EpisodeTests(), model, estimate, estimate.steps + 0.3, 0.01, estimate.steps + 2.2)
    won = np.zeros_like(anew.test.outcomes)
    won[[2, 3, 6]] = 60, 30, 12
    test = edited(anew.test, outcomes=won)
    assert test.proves_any
    assert test.at_most > estimate.steps + 0.3
    assert test.plan(model, estimate.steps + 0.3).travel < 0.7 * anew.travel
    assert test.plan(model, test.at_most).n_episodes < 0.02 * anew.n_episodes
