from __future__ import annotations

import math

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from axplore.domains import combination_lock, confusing_chain, random_sparse, slippery_grid
from axplore.errors import NotConvergedError
from axplore.graphs import exact
from axplore.graphs.exact import ACCURACY, optimal_paths
from axplore.graphs.value_iteration import value_iteration
from axplore.mdp import TabularMdp


def coin(probability: float) -> TabularMdp:
    return TabularMdp.from_rows({"s": {"try": {"goal": probability, "s": 1 - probability}}, "goal": {}}, "s")


def test_the_chain_and_the_lock_are_exact() -> None:
    chain = confusing_chain()
    steps = optimal_paths(chain, chain.states).values[:, 0]
    assert steps == pytest.approx([0, 1, 2, 3, 4, 2] + 6 * [11], abs=1e-12)
    lock = combination_lock()
    paths = optimal_paths(lock, lock.states, allowed=["s2", "s3", "s4", "s5"])
    assert [paths.steps(goal) for goal in ("s1", "s2", "s3", "s4", "s5")] == pytest.approx(
        [3, 8 / 3, 0, 1, 2], abs=1e-12
    )


def test_a_coin_is_exact_to_the_last_digits() -> None:
    for probability in (0.5, 0.01, 1e-4):
        paths = optimal_paths(coin(probability), "goal")
        assert paths.steps("goal") == pytest.approx(1 / probability, rel=1e-12)
        assert paths.lower[0, 0] <= 1 / probability <= paths.upper[0, 0]


@settings(max_examples=60)
@given(oracle.tiny_models(), st.data())
def test_bounds_enclose_what_every_policy_tried_gives(mdp: TabularMdp, data: st.DataObject) -> None:
    allowed = data.draw(st.sets(st.sampled_from(mdp.states)))
    paths = optimal_paths(mdp, mdp.states, allowed=allowed)
    for position, goal in enumerate(mdp.states):
        expected = oracle.optimal_steps(mdp, goal, allowed)
        assert paths.steps(goal) == pytest.approx(expected, rel=1e-9)
        assert paths.lower[position, mdp.initial_index] <= expected * (1 + 1e-11)
        assert expected <= paths.upper[position, mdp.initial_index] * (1 + 1e-11)
    finite = np.isfinite(paths.values)
    gaps = paths.upper[finite] - paths.lower[finite]
    assert np.all(gaps <= ACCURACY * np.maximum(1, paths.values[finite]))


@pytest.mark.parametrize("seed", range(3))
def test_values_with_costs_agree_with_the_linear_programme(seed: int) -> None:
    mdp = random_sparse(50, 3, (1, 6), seed)
    generator = np.random.default_rng(seed)
    costs, reset_costs = generator.uniform(0.05, 1, mdp.n_pairs), generator.uniform(0.05, 1, mdp.n_states)
    paths = optimal_paths(mdp, "s7", costs=costs, reset_costs=reset_costs)
    assert paths.values[0] == pytest.approx(reference.optimal_values(mdp, 7, costs, reset_costs), rel=1e-7)
    followed = reference.policy_values(mdp, paths.policy[0], 7, costs, reset_costs)
    assert paths.values[0] == pytest.approx(followed, rel=1e-11)


@pytest.mark.parametrize("slip", [0.3, 0.8])
def test_policy_iteration_and_value_iteration_alone_agree(slip: float, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = slippery_grid(rows=12, columns=12, slip=slip)
    goals = [(0, 11), (11, 11), (5, 6)]
    solved = optimal_paths(mdp, goals)
    monkeypatch.setattr(exact, "LARGEST_SOLVE", 0)
    iterated = optimal_paths(mdp, goals)
    assert not np.array_equal(solved.values, iterated.values)
    for one, other in ((solved, iterated), (iterated, solved)):
        assert np.all(one.lower <= other.upper)
        assert np.all(other.values <= one.upper * (1 + ACCURACY))


def test_policy_iteration_improves_a_policy_that_is_not_optimal() -> None:
    mdp = slippery_grid(rows=6, columns=6)
    goal = mdp.index_of((5, 5))
    problem = exact._ExactProblem(mdp, np.ones(mdp.n_pairs), np.ones(mdp.n_states))
    rough = value_iteration(mdp, (5, 5), precision=0.45).policy[0]
    values, policy = problem.improved(rough, goal)
    assert values == pytest.approx(reference.optimal_values(mdp, goal), rel=1e-8)
    assert reference.policy_values(mdp, policy, goal) == pytest.approx(values, rel=1e-11)


def test_policy_iteration_ends_where_rounding_looks_like_an_improvement(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_sparse(1000, 4, (3, 5), seed=3)
    # Without slack at all, the residual of the solve itself looks like an improvement, for ever.
    for slack in (exact._IMPROVEMENT, 0):
        monkeypatch.setattr(exact, "_IMPROVEMENT", slack)
        paths = optimal_paths(mdp, ["s41", "s121"])
        assert np.all(paths.upper - paths.lower <= 1e-11 * paths.values)


def test_unreachable_goals_are_infinite() -> None:
    rows = {"start": {}, "sure": {"try": {"goal": 0.5, "sure": 0.5}}, "goal": {}}
    paths = optimal_paths(TabularMdp.from_rows(rows, "start"), "goal")
    assert paths.values[0] == pytest.approx([math.inf, 2.0, 0.0])
    assert paths.lower[0, 0] == math.inf


def test_values_beyond_double_precision_are_refused() -> None:
    with pytest.raises(NotConvergedError, match="values as large as 1e\\+07 are out of reach of double precision"):
        optimal_paths(coin(1e-7), "goal")


def test_large_values_are_exact_too() -> None:
    paths = optimal_paths(coin(1e-5), "goal")
    assert paths.steps("goal") == pytest.approx(1e5, rel=1e-9)


def test_bounds_that_are_too_far_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "LARGEST_SOLVE", 0)
    monkeypatch.setattr(exact, "_ITERATION_SHARE", 1000)
    with pytest.raises(NotConvergedError, match=r"goal \(3, 3\): the bounds are .* apart"):
        optimal_paths(slippery_grid(rows=4, columns=4), (3, 3))
