"""What follows from the claims of a certificate: near-optimality by a test and a lower bound, and its forgeries."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from explored import certificate_of

from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import AtLeast, AtMost, Certificate, NearOptimal, Verification, verify
from axplore.certificate.bounds import ROUNDING
from axplore.certificate.conclusions import conclusions_of
from axplore.certificate.kinds.tested_optimality import optimal_by_test
from axplore.domains import slippery_grid
from axplore.explorers.base import Exploration, run
from axplore.explorers.certified import Certified
from axplore.records.episodes import EpisodeRecord
from axplore.records.vectors import Vector
from axplore.target import Target
from axplore.types import Status
from axplore.worlds.simulated import SimulatedWorld
from edited import edited
from tested_policies import with_play

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


def failures(verdict: Verification) -> set[tuple[str, int | None]]:
    return {(claim.kind, claim.index) for claim in verdict.failures}


def with_record(record: EpisodeRecord, **changes: object) -> Certificate:
    records = (edited(other, **changes) if other is record else other for other in certificate().of(EpisodeRecord))
    return edited(certificate(), episodes=tuple(records))


def test_policies_are_proven_near_optimal_by_tests_and_all_of_it_is_verified() -> None:
    verdict = verify(certificate())
    assert certificate().complete
    assert not verdict.failures
    goal, record = one_tested()
    assert ("near-optimal", goal) in {(claim.kind, claim.index) for claim in verdict.claims}
    concluded = conclusions_of(certificate())
    assert concluded.statuses[goal] is Status.CERTIFIED
    assert concluded.upper[goal] <= record.steps
    assert concluded.regret[goal] == concluded.upper[goal] - concluded.lower[goal] <= TARGET.epsilon


def test_the_policies_handed_back_depend_on_no_step_and_are_those_that_were_tested() -> None:
    concluded = conclusions_of(certificate())
    assert all(policy.ndim == 1 for policy in concluded.policies)
    goal, record = one_tested()
    policy = record.policy(len(certificate().known)).whole
    others = np.arange(len(policy)) != goal
    assert (concluded.policies[goal] == policy)[others].all()
    assert all((mine == theirs).all() for mine, theirs in zip(explored().policies, concluded.policies, strict=True))


def test_a_smaller_bound_than_the_outcomes_prove_is_refused() -> None:
    goal, record = one_tested()
    refused = failures(verify(with_record(record, bound=record.bound - 0.2, at_most=record.bound - 0.2)))
    assert ("near-optimal", goal) in refused
    assert ("complete", None) in refused


def test_a_greater_lower_bound_than_the_rows_prove_is_refused() -> None:
    goal, _ = one_tested()
    claims = tuple(
        edited(claim, lower=Vector.complete(claim.lower.whole * 1.1)) if claim.goal == goal else claim
        for claim in certificate().of(AtLeast)
    )
    assert {("at least", goal), ("near-optimal", goal)} <= failures(verify(edited(certificate(), at_least=claims)))


def test_without_its_lower_bound_or_with_a_loose_one_a_test_proves_no_policy_near_optimal() -> None:
    goal, _ = one_tested()
    others = tuple(claim for claim in certificate().of(AtLeast) if claim.goal != goal)
    loose = tuple(
        edited(claim, lower=Vector.complete(claim.lower.whole * 0.5)) if claim.goal == goal else claim
        for claim in certificate().of(AtLeast)
    )
    for claims in (others, loose):
        changed = edited(certificate(), at_least=claims)
        assert goal not in optimal_by_test(changed)
        assert ("complete", None) in failures(verify(changed))


def with_way(goal: int, **arrays: Any) -> Certificate:
    """The certificate with another upper bound of a goal."""
    changes = {name: Vector.complete(array) for name, array in arrays.items()}
    ways = (edited(way, **changes) if way.goal == goal else way for way in certificate().of(AtMost))
    return edited(certificate(), at_most=tuple(ways))


def test_a_tail_that_no_upper_bound_closes_proves_no_policy_near_optimal() -> None:
    goal, record = one_tested()
    way = next(way for way in certificate().of(AtMost) if way.goal == goal)
    elsewhere = way.policy.whole.copy()
    elsewhere[0] = (elsewhere[0] + 1) % 4  # another policy than the one tested, whatever is known of it
    unclosed = (
        edited(certificate(), at_most=tuple(other for other in certificate().of(AtMost) if other is not way)),
        edited(certificate(), at_most=(*certificate().of(AtMost), way)),
        with_way(goal, policy=elsewhere),
        with_way(goal, upper=way.upper.whole * 1.5),
        with_record(record, tail=1.0 + record.bound),
    )
    for changed in unclosed:
        assert goal not in optimal_by_test(changed)
        assert ("complete", None) in failures(verify(changed))


@pytest.mark.parametrize(("beyond_the_tail", "closes"), [(-1e-3, True), (1e-3, False)])
@pytest.mark.parametrize("where", ["after a reset", "in a known state"])
def test_a_tail_is_closed_if_from_no_state_more_steps_are_needed(
    where: str, beyond_the_tail: float, closes: bool
) -> None:
    """A state that is not known resets, and a known one may be farther than the initial one: neither stands for all."""
    goal, record = one_tested()
    upper = np.full(len(certificate().known), 1.0)
    if where == "after a reset":
        upper[0] = record.tail + beyond_the_tail - 1.0
    else:
        upper[next(state for state in (1, 2) if state != goal)] = record.tail + beyond_the_tail
    assert (goal in optimal_by_test(with_way(goal, upper=upper))) is closes


@pytest.mark.parametrize(("beyond_the_gap", "proves"), [(1e-6, True), (-1e-6, False)])
def test_a_policy_is_near_optimal_by_a_test_if_the_gap_of_the_bounds_is_epsilon(
    beyond_the_gap: float, proves: bool
) -> None:
    goal, tested = next(iter(optimal_by_test(certificate()).items()))
    gap = tested.record.steps - tested.lower
    changed = edited(certificate(), epsilon=gap + beyond_the_gap)
    assert (goal in optimal_by_test(changed)) is proves


def test_an_upper_bound_smaller_than_the_rows_prove_closes_no_tail() -> None:
    goal, _ = one_tested()
    way = next(way for way in certificate().of(AtMost) if way.goal == goal)
    refused = failures(verify(with_way(goal, upper=way.upper.whole * 0.9)))
    assert {("at most", goal), ("near-optimal", goal), ("complete", None)} <= refused


def test_a_dearer_miss_than_was_staked_on_is_refused() -> None:
    """The tail belongs to what is fixed before the first episode: with a larger one the same outcomes prove less."""
    goal, record = one_tested()
    assert ("near-optimal", goal) in failures(verify(with_record(record, tail=100.0)))


def test_a_policy_through_states_admitted_later_proves_no_admission() -> None:
    goal, record = one_tested()
    later = edited(record, **with_play(record, goal, 0), line=1, turn=1)
    alone = edited(certificate(), episodes=(later,), reachable=())
    assert conclusions_of(alone).statuses[goal] is Status.OPEN
    assert any(repr(alone.known[goal]) in part and "reachable" in part for part in conclusions_of(alone).open_parts)


def test_a_policy_that_plays_in_states_that_are_not_known_is_refused() -> None:
    _, record = one_tested()
    beyond = with_play(record, len(certificate().known), 0)
    assert any("not known" in claim.why for claim in verify(with_record(record, **beyond)).failures)


@pytest.mark.parametrize("setting", ["chain", "lock"])
def test_a_policy_loses_the_gap_of_its_bounds_where_that_is_within_epsilon_and_its_regret_elsewhere(
    setting: str,
) -> None:
    given = certificate_of(setting)
    concluded = conclusions_of(given)
    gaps = concluded.upper - concluded.lower
    within = [claim.goal for claim in given.of(NearOptimal) if gaps[claim.goal] <= given.epsilon]
    beyond = [claim.goal for claim in given.of(NearOptimal) if gaps[claim.goal] > given.epsilon]
    assert within
    assert beyond
    # No other state is nearer than a step, which a lower bound of one, corrected, does not say.
    assert concluded.regret[within] == pytest.approx(gaps[within], abs=10 * ROUNDING)
    assert (concluded.regret[beyond] <= given.epsilon).all()
