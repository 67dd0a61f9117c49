"""Tests by episodes that the rows contradict: nothing is admitted or called proven by them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import axplore
from axplore.atlas.construction import certificate_from_exploration
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import Certificate, verify
from axplore.certificate.bellman import Sweeper
from axplore.certificate.kinds import episodes
from axplore.domains import slippery_grid
from axplore.explorers.base import Exploration
from axplore.explorers.certified import Certified, CertifiedState
from axplore.proofs.bounds import IntervalModel
from axplore.proofs.contradictions import is_contradicted, least_steps_of, only
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests
from axplore.records.episodes import EpisodeRecord
from axplore.records.run import StopReason
from axplore.target import Objective, Target
from axplore.types import RESET_PAIR
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.systems.border import drawn

EXPLORER = Certified(target=Target(radius=6.0, epsilon=1.0), objective=Objective.WITHIN_RADIUS)


@cache
def last_rounds() -> tuple[CertifiedState, CertifiedState, SimulatedWorld]:
    """The state before the last admission by a test, the state before the end, and the world."""
    world = SimulatedWorld(slippery_grid(4, 4), 3)
    state = EXPLORER.start(world)
    admitting = state
    while (following := EXPLORER.advance(state, world)).stop is None:
        newest = following.known[-1]
        if len(following.known) > len(state.known) and following.tests.proof_of(newest, EXPLORER.reach):
            admitting = state
        state = following
    assert following.stop is StopReason.PROVEN
    return admitting, state, world


def finished() -> tuple[Exploration, IntervalModel, Certificate]:
    _, state, world = last_rounds()
    found = EXPLORER.finish(EXPLORER.advance(state, world), world)
    return found, EXPLORER.model(state), certificate_from_exploration(found)


def proven_tests(state: CertifiedState) -> list[EpisodeTest]:
    return [test for test in state.tests if test.proves_any]


def too_quick(test: EpisodeTest, model: IntervalModel) -> EpisodeTest:
    """The test with a bound a little below what the rows prove its policy to take, and outcomes that prove it."""
    goal = int(np.flatnonzero(model.numbers == test.goal)[0])
    bound = least_steps_of(test.pairs(model), goal, model) * 0.999
    soonest = int(np.flatnonzero(test.outcomes[:-1])[0])
    outcomes = np.zeros_like(test.outcomes)
    outcomes[soonest] = test.outcomes[:-1].sum()
    return replace(test, bound=bound, tail=1.0 + bound, level=0.5, outcomes=outcomes)


def with_tests(state: CertifiedState, changed: EpisodeTest) -> CertifiedState:
    return replace(state, tests=state.tests.with_test(changed))


def test_no_bound_that_the_verifier_computes_is_greater() -> None:
    """It sweeps a hundred times from below, in code of its own: the limit of its bounds is that of the solver."""
    found, model, certificate = finished()
    records = certificate.of(EpisodeRecord)
    sweeper = Sweeper.of(certificate)
    assert found.evidence is not None
    tests = {(test.line, test.turn): test for test in found.evidence.tests}
    assert len(records) >= 5
    for record in records:
        test = tests[record.line, record.turn]
        (by_verifier,) = episodes.least_steps([record], sweeper)
        by_prover = least_steps_of(test.pairs(model), record.goal, model)
        assert by_verifier <= by_prover * (1 + 1e-6)
        assert by_prover == pytest.approx(by_verifier, rel=1e-2)


def test_the_policy_is_bounded_and_not_the_best_one() -> None:
    """Where every row is known, the bound is the value of the policy; a linear solve gives it."""
    _, model, _ = finished()
    _, state, _ = last_rounds()
    test = max(proven_tests(state), key=lambda test: test.bound)
    goal = int(np.flatnonzero(model.numbers == test.goal)[0])
    policy = test.pairs(model)
    exact = replace(
        model, rows=model.rows._replace(shares=model.rows.frequencies, slack=np.zeros(model.n_pairs)), starts={}
    )
    n_states = len(model.numbers)
    matrix, steps = np.eye(n_states), np.ones(n_states)
    for index in range(n_states):
        pair = policy[index] if index < model.n_known else RESET_PAIR
        if index == goal:
            steps[index] = 0.0
        elif pair == RESET_PAIR:
            matrix[index, 0] -= 1.0
        else:
            row = slice(*model.rows.row_offsets[pair : pair + 2])
            np.subtract.at(matrix[index], model.rows.successors[row], model.rows.frequencies[row])
    value = np.linalg.solve(matrix, steps)[0]
    better = least_steps_of(policy, goal, exact)  # it may RESET too, where that is better
    assert better <= value * (1 + 1e-6)
    assert better == pytest.approx(value, rel=0.05)


def test_each_state_keeps_the_action_of_the_policy_alone() -> None:
    _, model, _ = finished()
    _, state, _ = last_rounds()
    policy = proven_tests(state)[-1].pairs(model)
    part = only(policy, model)
    assert np.diff(part.rows.state_pairs).tolist() == (policy != RESET_PAIR).astype(int).tolist()
    for index, pair in enumerate(policy[policy != RESET_PAIR].tolist()):
        before, now = (slice(*rows.row_offsets[i : i + 2]) for rows, i in ((model.rows, pair), (part.rows, index)))
        assert part.rows.successors[now].tolist() == model.rows.successors[before].tolist()
        assert part.rows.shares[now].tolist() == model.rows.shares[before].tolist()
        assert part.rows.slack[index] == model.rows.slack[pair]


def test_tests_of_a_system_that_hides_nothing_are_not_contradicted() -> None:
    _, state, _ = last_rounds()
    model = EXPLORER.model(state)
    assert len(proven_tests(state)) >= 5
    assert not any(is_contradicted(test, model) for test in proven_tests(state))


def test_arrivals_that_the_draws_cannot_hold_are_contradicted() -> None:
    _, state, _ = last_rounds()
    model, test = EXPLORER.model(state), proven_tests(state)[-1]
    more = test.outcomes.copy()
    more[np.flatnonzero(more)[0]] += 10**6
    assert is_contradicted(replace(test, outcomes=more), model)
    at_once = np.zeros_like(test.outcomes)
    at_once[1] = 1  # the goal is two steps away at least
    assert not test.outcomes[1]
    assert is_contradicted(replace(test, outcomes=at_once), model)
    assert not is_contradicted(replace(test, outcomes=np.roll(at_once, -2)), model)  # a miss


def test_nothing_is_admitted_by_a_test_that_the_rows_contradict() -> None:
    state, _, world = last_rounds()
    model = EXPLORER.model(state)
    test = next(test for test in proven_tests(state) if test.goal not in state.known)
    forged = with_tests(state, too_quick(test, model))
    assert forged.tests.proof_of(test.goal, EXPLORER.reach) is not None
    after = EXPLORER.advance(forged, world)
    assert after.stop is StopReason.CONTRADICTED
    assert after.known == state.known


def test_an_end_is_not_called_proven_where_the_rows_contradict_a_test() -> None:
    _, state, world = last_rounds()
    forged = with_tests(state, too_quick(proven_tests(state)[-1], EXPLORER.model(state)))
    assert EXPLORER.advance(forged, world).stop is StopReason.CONTRADICTED
    found = EXPLORER.finish(replace(forged, stop=StopReason.STEP_LIMIT), world)
    assert found.stop is StopReason.CONTRADICTED
    assert found.evidence is not None
    assert not found.evidence.complete


def test_a_test_that_is_open_contradicts_nothing() -> None:
    _, state, world = last_rounds()
    impossible = replace(proven_tests(state)[-1], line=99, level=1e-300, bound=1.0)
    assert not impossible.proves_any
    tests = EpisodeTests((*state.tests, impossible))
    assert EXPLORER.advance(replace(state, tests=tests), world).stop is StopReason.PROVEN


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("after a middle limit: no way to the goal", 10),
        ("after a long limit: no way to the goal", 4),
    ],
)
def test_where_labels_hide_something_what_is_not_called_contradicted_verifies(kind: str, number: int) -> None:
    """Each of these has a test that is true, and rows that prove the opposite."""
    border = drawn(kind, number)
    system = border.system(number)
    atlas = axplore.explore(
        lambda: system,
        border.radius,
        1.0,
        seed=number,
        max_steps=20_000,
        objective=("optimal", "within-radius")[number % 2],
        doctor=False,
    )
    assert atlas.certificate is not None
    assert atlas.tests
    assert atlas.verdict.kind is VerdictKind.CONTRADICTED
    assert any("by the rows" in failure.why for failure in verify(atlas.certificate).failures)
