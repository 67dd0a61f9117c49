from __future__ import annotations

import math

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from axplore.domains import confusing_chain, random_sparse, slippery_grid
from axplore.errors import InvalidCostsError, InvalidInputError, UnknownActionError, UnknownStateError
from axplore.graphs.evaluation import policy_actions, policy_pairs, policy_steps
from axplore.graphs.value_iteration import value_iteration
from axplore.mdp import TabularMdp
from axplore.types import RESET, FloatArray, IntArray


def drawn_policy(mdp: TabularMdp, data: st.DataObject) -> IntArray:
    """Some policy, as pairs."""
    choices = [st.integers(first, end - 1) for first, end in zip(mdp.state_pairs, mdp.state_pairs[1:], strict=False)]
    return np.array(
        [data.draw(st.just(-1) | own if first < end else st.just(-1)) for own, first, end in
         zip(choices, mdp.state_pairs[:-1], mdp.state_pairs[1:], strict=True)]
    )  # fmt: skip


def chain_of(mdp: TabularMdp, policy: IntArray, goal: int) -> FloatArray:
    """The transition matrix of a policy, absorbed at the goal, [S, S]."""
    chain = np.zeros((mdp.n_states, mdp.n_states))
    chain[:, mdp.initial_index] = 1.0
    chain[policy >= 0] = reference.dense_rows(mdp)[policy[policy >= 0]]
    chain[goal] = np.eye(mdp.n_states)[goal]
    return chain


# Closed forms.


def test_the_policies_of_the_chain_take_the_steps_of_the_paper() -> None:
    mdp = confusing_chain()
    forward = {state: mdp.actions_of(state)[0] for state in mdp.states if mdp.actions_of(state)}
    values = policy_steps(mdp, policy_pairs(mdp, forward), "s5")
    assert values[mdp.initial_index] == pytest.approx(5.0)


def test_a_policy_that_always_resets_reaches_nothing_but_the_start() -> None:
    mdp = confusing_chain()
    resets = policy_pairs(mdp, {})
    assert np.isinf(policy_steps(mdp, resets, "s1")).tolist() == [state != "s1" for state in mdp.states]
    assert policy_steps(mdp, resets, "s0").tolist() == [0.0] + 11 * [1.0]


def test_a_state_is_infinite_if_it_may_end_up_where_the_goal_is_out_of_reach() -> None:
    rows = {
        "s": {"risk": {"goal": 0.5, "trap": 0.5}, "safe": {"goal": 0.5, "s": 0.5}},
        "trap": {"stay": {"trap": 1.0}},
        "before": {"go": {"s": 1.0}},
        "goal": {"back": {"trap": 1.0}},
    }
    mdp = TabularMdp.from_rows(rows, "s")
    risky = policy_steps(mdp, policy_pairs(mdp, {"s": "risk", "trap": "stay", "before": "go", "goal": "back"}), "goal")
    assert risky.tolist() == [math.inf, math.inf, math.inf, 0.0]
    safe = policy_steps(mdp, policy_pairs(mdp, {"s": "safe", "trap": "stay", "before": "go", "goal": "back"}), "goal")
    assert safe == pytest.approx([2.0, math.inf, 3.0, 0.0])
    escaped = policy_steps(mdp, policy_pairs(mdp, {"s": "risk", "before": "go"}), "goal")
    assert escaped == pytest.approx([3.0, 4.0, 4.0, 0.0])


def test_costs_weigh_what_is_played() -> None:
    rows = {"s": {"try": {"goal": 0.5, "dead": 0.5}, "other": {"s": 1.0}}, "dead": {}, "goal": {}}
    mdp = TabularMdp.from_rows(rows, "s")
    values = policy_steps(mdp, [0, -1, -1], "goal", costs=[0.5, 1.0], reset_costs=0.25)
    assert values == pytest.approx([1.25, 1.5, 0.0])


# Against dense algebra.


@settings(max_examples=100)
@given(oracle.tiny_models(max_states=5), st.data())
def test_values_are_infinite_exactly_where_the_policy_is_not_proper(mdp: TabularMdp, data: st.DataObject) -> None:
    goal = data.draw(st.integers(0, mdp.n_states - 1))
    policy = drawn_policy(mdp, data)
    chain = chain_of(mdp, policy, goal)
    # In so many steps, what can be absorbed at all is absorbed but for a negligible rest.
    absorbed = np.linalg.matrix_power(chain, 2**20)[:, goal]
    values = policy_steps(mdp, policy, mdp.states[goal])
    assert np.isfinite(values).tolist() == (absorbed > 1 - 1e-9).tolist()
    proper = np.isfinite(values)
    inner = proper & (np.arange(mdp.n_states) != goal)
    expected = np.linalg.solve(np.eye(int(inner.sum())) - chain[np.ix_(inner, inner)], np.ones(int(inner.sum())))
    assert values[inner] == pytest.approx(expected, rel=1e-9)
    assert values[goal] == 0.0


@settings(max_examples=50)
@given(oracle.tiny_models(), st.data())
def test_values_at_the_start_agree_with_the_oracle(mdp: TabularMdp, data: st.DataObject) -> None:
    goal = data.draw(st.sampled_from(mdp.states))
    policy = drawn_policy(mdp, data)
    expected = oracle.policy_steps(mdp, policy_actions(mdp, policy), goal)
    assert policy_steps(mdp, policy, goal)[mdp.initial_index] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "mdp", [random_sparse(300, 3, (1, 5), seed=4), slippery_grid(rows=15, columns=20, slip=0.5)], ids=["random", "grid"]
)
def test_larger_models_agree_with_dense_algebra(mdp: TabularMdp) -> None:
    goals = [mdp.states[number] for number in (7, 123, 299)]
    paths = value_iteration(mdp, goals, precision=1e-6)
    values = policy_steps(mdp, paths.policy, goals)
    assert values.shape == (3, 300)
    for position, goal in enumerate(goals):
        expected = reference.policy_values(mdp, paths.policy[position], mdp.index_of(goal))
        assert values[position] == pytest.approx(expected, rel=1e-10)
        assert policy_steps(mdp, paths.policy[position], goal) == pytest.approx(expected, rel=1e-10)


# Mappings and arrays.


@settings(max_examples=50)
@given(oracle.tiny_models(), st.data())
def test_mappings_and_arrays_translate_into_each_other(mdp: TabularMdp, data: st.DataObject) -> None:
    policy = drawn_policy(mdp, data)
    mapping = policy_actions(mdp, policy)
    assert list(mapping) == list(mdp.states)
    assert np.array_equal(policy_pairs(mdp, mapping), policy)
    named = {state: action for state, action in mapping.items() if action is not RESET}
    assert np.array_equal(policy_pairs(mdp, named), policy)


def test_one_policy_serves_several_goals() -> None:
    mdp = slippery_grid(rows=3, columns=3)
    policy = value_iteration(mdp, (2, 2), precision=1e-6).policy[0]
    both = policy_steps(mdp, policy, [(2, 2), (0, 0)])
    assert both[0] == pytest.approx(policy_steps(mdp, policy, (2, 2)))
    assert both[1] == pytest.approx(policy_steps(mdp, policy, (0, 0)))


def test_what_is_no_policy_is_refused() -> None:
    mdp = confusing_chain()
    with pytest.raises(UnknownActionError, match="state 's0': pair 5 belongs to another state"):
        policy_steps(mdp, np.full(12, 5), "s1")
    with pytest.raises(InvalidInputError, match=r"\[S\] = \[12\]"):
        policy_steps(mdp, [-1, -1], "s1")
    with pytest.raises(InvalidInputError, match="whole numbers"):
        policy_steps(mdp, np.full(12, -1.0), "s1")
    with pytest.raises(UnknownActionError):
        policy_pairs(mdp, {"s0": "no such action"})
    with pytest.raises(UnknownStateError):
        policy_pairs(mdp, {"nowhere": RESET})
    with pytest.raises(InvalidCostsError, match="'s0', RESET"):
        policy_steps(mdp, np.full(12, -1), "s1", reset_costs=2.0)
