"""Near-optimality by a test and a lower bound: what it proves, what the verifier makes of it, and forgeries."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import Certificate, ClaimKind, Verification, conclusions, verify
from axplore.certificate.conclusions import conclusions_of, optimal_by_test
from axplore.certificate.episode_records import EpisodeRecord
from axplore.domains import slippery_grid
from axplore.experiments.coverage import violations_of
from axplore.experiments.coverage_models import Case
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified
from axplore.proofs import tested_optimality
from axplore.proofs.bounds import empirical_path
from axplore.proofs.claims import NearOptimal
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests, new_test
from axplore.proofs.tested_optimality import begun_test, path_to_test
from axplore.target import Target
from axplore.types import Status
from axplore.worlds.simulated import SimulatedWorld

GRID = slippery_grid(4, 4)
TARGET = Target(radius=6.0, epsilon=1.0, delta=0.1)


@cache
def explored() -> Exploration:
    return run(Certified(target=TARGET), SimulatedWorld(GRID, 1))


@cache
def certificate() -> Certificate:
    return certificate_from_exploration(explored())


def one_tested() -> tuple[int, EpisodeRecord]:
    """A known state whose policy is near-optimal by its test."""
    goal, tested = next(iter(optimal_by_test(certificate()).items()))
    return goal, tested.record


def failures(verdict: Verification) -> set[tuple[ClaimKind, int | None]]:
    return {(claim.kind, claim.position) for claim in verdict.failures}


def with_record(record: EpisodeRecord, **changes: object) -> Certificate:
    records = (replace(other, **changes) if other is record else other for other in certificate().episodes)  # type: ignore[arg-type]
    return replace(certificate(), episodes=tuple(records))


def test_policies_are_proven_near_optimal_by_tests_and_all_of_it_is_verified() -> None:
    verdict = verify(certificate())
    assert certificate().complete
    assert not verdict.failures
    goal, record = one_tested()
    assert (ClaimKind.NEAR_OPTIMAL, goal) in {(claim.kind, claim.position) for claim in verdict.claims}
    concluded = conclusions_of(certificate())
    assert concluded.statuses[goal] is Status.CERTIFIED
    assert concluded.upper[goal] <= record.bound
    assert concluded.regret[goal] == concluded.upper[goal] - concluded.lower[goal] <= TARGET.epsilon


def test_the_policies_handed_back_depend_on_no_step_and_are_those_that_were_tested() -> None:
    concluded = conclusions_of(certificate())
    assert all(policy.ndim == 1 for policy in concluded.policies)
    goal, record = one_tested()
    policy = np.full(len(certificate().known), -1)
    policy[: len(record.policy)] = record.policy
    others = np.arange(len(policy)) != goal
    assert (concluded.policies[goal] == policy)[others].all()
    assert all((mine == theirs).all() for mine, theirs in zip(explored().policies, concluded.policies, strict=True))


def test_every_policy_is_within_epsilon_of_the_best_one_in_the_true_model() -> None:
    assert violations_of(explored(), Case(GRID, TARGET.radius)) == []


def test_a_smaller_bound_than_the_outcomes_prove_is_refused() -> None:
    goal, record = one_tested()
    refused = failures(verify(with_record(record, bound=record.bound - 0.2)))
    assert (ClaimKind.NEAR_OPTIMAL, goal) in refused
    assert (ClaimKind.COMPLETE, None) in refused


def test_a_greater_lower_bound_than_the_rows_prove_is_refused() -> None:
    goal, _ = one_tested()
    claims = tuple(
        replace(claim, lower=claim.lower * 1.1) if claim.goal == goal else claim for claim in certificate().at_least
    )
    assert {(ClaimKind.AT_LEAST, goal), (ClaimKind.NEAR_OPTIMAL, goal)} <= failures(
        verify(replace(certificate(), at_least=claims))
    )


def test_without_its_lower_bound_or_with_a_loose_one_a_test_proves_no_policy_near_optimal() -> None:
    goal, _ = one_tested()
    others = tuple(claim for claim in certificate().at_least if claim.goal != goal)
    loose = tuple(
        replace(claim, lower=claim.lower * 0.5) if claim.goal == goal else claim for claim in certificate().at_least
    )
    for claims in (others, loose):
        changed = replace(certificate(), at_least=claims)
        assert goal not in optimal_by_test(changed)
        assert (ClaimKind.COMPLETE, None) in failures(verify(changed))


def with_way(goal: int, **changes: object) -> Certificate:
    """The certificate with another upper bound of a goal."""
    ways = (replace(way, **changes) if way.goal == goal else way for way in certificate().at_most)  # type: ignore[arg-type]
    return replace(certificate(), at_most=tuple(ways))


def test_a_tail_that_no_upper_bound_closes_proves_no_policy_near_optimal() -> None:
    goal, record = one_tested()
    way = next(way for way in certificate().at_most if way.goal == goal)
    elsewhere = way.policy.copy()
    elsewhere[0] = (elsewhere[0] + 1) % 4  # another policy than the one tested, whatever is known of it
    unclosed = (
        replace(certificate(), at_most=tuple(other for other in certificate().at_most if other is not way)),
        replace(certificate(), at_most=(*certificate().at_most, way)),
        with_way(goal, policy=elsewhere),
        with_way(goal, upper=way.upper * 1.5),
        with_record(record, tail=1.0 + record.bound),
    )
    for changed in unclosed:
        assert goal not in optimal_by_test(changed)
        assert (ClaimKind.COMPLETE, None) in failures(verify(changed))


def test_an_upper_bound_smaller_than_the_rows_prove_closes_no_tail() -> None:
    goal, _ = one_tested()
    way = next(way for way in certificate().at_most if way.goal == goal)
    refused = failures(verify(with_way(goal, upper=way.upper * 0.9)))
    assert {(ClaimKind.AT_MOST, goal), (ClaimKind.NEAR_OPTIMAL, goal), (ClaimKind.COMPLETE, None)} <= refused


def test_a_dearer_miss_than_was_staked_on_is_refused() -> None:
    """The tail belongs to what is fixed before the first episode: with a larger one the same outcomes prove less."""
    goal, record = one_tested()
    assert (ClaimKind.NEAR_OPTIMAL, goal) in failures(verify(with_record(record, tail=100.0)))


def test_a_policy_through_states_admitted_later_proves_no_admission() -> None:
    goal, record = one_tested()
    longer = (*record.policy, *[-1] * (goal + 1 - len(record.policy)))
    alone = replace(certificate(), episodes=(replace(record, policy=longer, line=1, turn=1),), reachable=())
    assert goal not in conclusions.tested_goals(alone)


def test_a_policy_that_plays_in_states_that_are_not_known_is_refused() -> None:
    _, record = one_tested()
    policy = (*record.policy, *[0] * (len(certificate().known) + 1 - len(record.policy)))
    assert any("not known" in claim.why for claim in verify(with_record(record, policy=policy)).failures)


def a_proven_test(goal: int, bound: float, tail: float = 20.0) -> EpisodeTest:
    assert explored().evidence is not None
    model = explored().evidence.model  # type: ignore[union-attr]
    path = path_to_test(model, empirical_path(model, goal))
    test = new_test(EpisodeTests(), model, path, bound, 0.01, tail).test
    outcomes = np.zeros_like(test.outcomes)
    outcomes[1] = 10_000
    return replace(test, outcomes=outcomes)


def test_a_test_counts_if_its_bound_is_within_epsilon_of_the_lower_bound() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    estimate = empirical_path(model, goal).steps
    near, far = a_proven_test(goal, estimate + 0.2), a_proven_test(goal, estimate + 1.5)
    claim = NearOptimal(goal, 1.0)
    found = tested_optimality.optimal_by_test(EpisodeTests((far, near)), model, claim)
    assert found is not None
    assert found.test is near
    assert found.path.proven
    assert found.steps <= near.bound
    assert tested_optimality.optimal_by_test(EpisodeTests((far,)), model, claim) is None


def test_a_test_counts_only_if_the_region_closes_its_tail() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    claim, bound = NearOptimal(goal, 1.0), empirical_path(model, goal).steps + 0.05
    for tail, closes in ((1.0 + bound, False), (1.5 + 1.5 * bound, True)):
        tests = EpisodeTests((a_proven_test(goal, bound, tail),))
        assert (tested_optimality.optimal_by_test(tests, model, claim) is not None) is closes


def test_a_begun_test_is_given_up_when_its_bound_no_longer_looks_true() -> None:
    assert explored().evidence is not None
    model, goal = explored().evidence.model, 5  # type: ignore[union-attr]
    estimate = empirical_path(model, goal)
    claim = NearOptimal(goal, 1.0)
    good = new_test(EpisodeTests(), model, estimate, estimate.steps + 0.4, 0.01, estimate.steps + 2.2).test
    assert begun_test(EpisodeTests((good,)), model, claim, 0.01) is not None
    for bound in (estimate.steps + 0.02, estimate.steps - 0.1, estimate.steps + 1.1):
        assert begun_test(EpisodeTests((replace(good, bound=bound),)), model, claim, 0.01) is None
