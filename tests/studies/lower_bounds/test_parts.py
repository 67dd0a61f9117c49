"""The parts of the bound: divergences, the least changes of rows, common policies, the linear programme."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from axplore.domains import random_sparse
from axplore.mdp import TabularMdp
from axplore_studies.lower_bounds import UNSEEN, ModelQuestion
from axplore_studies.lower_bounds.alternatives import (
    AlternativeKind,
    ForcedModel,
    changed_model,
    divergences,
    has_common_policy,
)
from axplore_studies.lower_bounds.kernels import change_costs, multiplier_of
from axplore_studies.lower_bounds.programme import divergence, needed_information, solve
from oracle import policies, policy_steps


def test_a_tiny_divergence_keeps_its_digits() -> None:
    shift = 1e-7
    exact = float(Fraction(shift) ** 2 * 2)  # the next term vanishes, by symmetry
    assert divergence(np.array([0.5, 0.5]), np.array([0.5 + shift, 0.5 - shift])) == pytest.approx(exact, rel=1e-8)
    assert divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf
    assert divergence(np.array([1.0, 0.0]), np.array([0.75, 0.25])) == pytest.approx(math.log(4 / 3))


def test_the_needed_information_is_that_of_a_coin() -> None:
    assert needed_information(0.1) == pytest.approx(0.8 * math.log(9))
    assert needed_information(0.5) == needed_information(0.9) == 0


def test_the_least_change_of_a_row_with_two_successors_is_forced() -> None:
    # The mean of (0, 4) is to be 3 instead of 2: 1/4 and 3/4, where a leak would be dearer.
    row, gaps = np.array([0.5, 0.5]), np.array([0.0, 4.0]) - 3.0
    x = multiplier_of(-1.0, row, gaps, 1 / (4.2 - 3))
    assert row / (1 - x * gaps) == pytest.approx([0.25, 0.75])
    x = multiplier_of(1.0, row, np.array([0.0, 4.0]) - 1.0, 1 / 1)
    assert row / (1 + x * (np.array([0.0, 4.0]) - 1.0)) == pytest.approx([0.75, 0.25])


def test_a_certain_row_can_only_leak() -> None:
    x = multiplier_of(-1.0, np.array([1.0]), np.array([2.0]) - 3.0, 1 / (10 - 3))
    assert 1 / (1 + x) == pytest.approx((10 - 3) / (10 - 2))  # the rest is at 10


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_gradient_is_that_of_the_cost(sign: float) -> None:
    mdp = random_sparse(states=5, actions=2, branching=(2, 4), seed=3)
    generator = np.random.default_rng(0)
    values = np.append(generator.uniform(2.0, 5.0, 5), 6.0)
    pairs = np.arange(mdp.n_pairs)
    visits = generator.uniform(1.0, 9.0, mdp.n_pairs)

    def cost(at: np.ndarray, gradient: np.ndarray) -> float:
        scratch = np.empty(len(pairs)), np.empty(len(pairs))
        return change_costs(
            sign, at, pairs, mdp.pair_states, mdp.row_offsets, mdp.successors, mdp.probabilities, visits, 6.0,
            gradient, *scratch,
        )  # fmt: skip

    gradient = np.zeros(6)
    assert cost(values, gradient) > 0
    for state in range(5):
        step = np.zeros(6)
        step[state] = 1e-6
        slope = (cost(values + step, np.zeros(6)) - cost(values - step, np.zeros(6))) / 2e-6
        assert gradient[state] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_common_policies_are_found_exactly_where_enumeration_finds_them() -> None:
    generator = np.random.default_rng(1)
    outcomes = set()
    for seed in range(12):
        mdp = random_sparse(states=4, actions=2, branching=(2, 4), seed=seed)
        other = random_sparse(states=4, actions=2, branching=(2, 4), seed=seed + 100)
        goal = mdp.states[1 + seed % 3]
        taken = [
            (policy_steps(mdp, policy, goal), policy_steps(other, policy, goal)) for policy in policies(mdp, mdp.states)
        ]
        here, there = (min(column) + generator.uniform(0.0, 1.5) for column in zip(*taken, strict=True))
        expected = any(first <= here and second <= there for first, second in taken)
        first, second = ForcedModel.of(mdp), ForcedModel.of(other)
        found = has_common_policy((first, here), (second, there), mdp.index_of(goal), first.all_rows)
        assert found == expected
        outcomes.add(expected)
    assert outcomes == {True, False}


def test_a_changed_model_has_the_changed_row_and_the_unseen_state() -> None:
    mdp = TabularMdp.from_rows({"s0": {"go": {"s1": 1.0}}, "s1": {"back": {"s0": 1.0}}}, "s0")
    model = changed_model(mdp, {0: np.array([0.0, 0.5, 0.5])})
    assert model.row("s0", "go") == {"s1": 0.5, UNSEEN: 0.5}
    assert model.is_terminal(UNSEEN)
    assert divergences(mdp, model, [0]) == pytest.approx([math.log(2), 0.0])


def test_a_claim_that_does_not_hold_is_refused() -> None:
    mdp = TabularMdp.from_rows({"s0": {"go": {"s1": 1.0}}, "s1": {}}, "s0")
    question = ModelQuestion(mdp, 2.0, 0.5)
    assert not question.separates(mdp, AlternativeKind.LEAVES, "s1")
    assert not question.separates(mdp, AlternativeKind.ENTERS, "s1")
    assert not question.separates(mdp, AlternativeKind.OTHER_WAY, "s1")
    leaking = changed_model(mdp, {0: np.array([0.0, 0.5, 0.5])})
    assert question.separates(leaking, AlternativeKind.LEAVES, "s1")  # 3 steps
    assert not question.separates(leaking, AlternativeKind.ENTERS, UNSEEN)  # 3 steps too
    nearer = changed_model(mdp, {0: np.array([0.0, 0.3, 0.7])})
    assert question.separates(nearer, AlternativeKind.ENTERS, UNSEEN)


def test_the_programme_proves_the_cost_of_a_known_allocation() -> None:
    mdp = TabularMdp.from_rows({"s0": {"go": {"far": 1.0}}, "far": {"on": {"s0": 1.0}}}, "s0")
    solution = solve(mdp, [np.array([0.0, 0.25])], 1.0)
    assert solution.visits == pytest.approx([4.0, 4.0])  # four times there, each of which takes a step to go
    assert solution.steps == pytest.approx(8.0, rel=1e-8)
    assert solution.steps <= 8.0
    assert solution.shares == pytest.approx([8.0])


def test_the_first_visit_of_the_initial_state_is_free() -> None:
    mdp = TabularMdp.from_rows({"s0": {"go": {"end": 1.0}}, "end": {}}, "s0")
    assert solve(mdp, [np.array([0.5])], 1.0).steps == pytest.approx(3.0, rel=1e-8)  # go, RESET, go
    assert solve(mdp, [], 1.0).steps == 0
