"""The law of the steps to a goal, against powers of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from axplore.domains import random_sparse
from axplore.graphs.arrivals import arrival_times
from axplore.types import RESET_PAIR, FloatArray, IntArray

MDP = random_sparse(12, 3, (2, 4), seed=4)
STEPS = 30


def some_policy(seed: int) -> IntArray:
    generator = np.random.default_rng(seed)
    policy: IntArray = generator.integers(MDP.state_pairs[:-1], MDP.state_pairs[1:])
    policy[generator.random(MDP.n_states) < 0.2] = RESET_PAIR
    return policy


def matrix_of(policy: IntArray) -> FloatArray:
    """The chain of a policy, [S, S]; states without an entry reset."""
    matrix = np.zeros((MDP.n_states, MDP.n_states))
    for state in range(MDP.n_states):
        pair = policy[state] if state < len(policy) else RESET_PAIR
        if pair == RESET_PAIR:
            matrix[state, 0] = 1.0
        else:
            entries = slice(MDP.row_offsets[pair], MDP.row_offsets[pair + 1])
            matrix[state, MDP.successors[entries]] = MDP.probabilities[entries]
    return matrix


def arrivals(policy: IntArray, goal: int, **limits: float) -> FloatArray:
    return arrival_times(
        MDP.row_offsets, MDP.successors, MDP.probabilities, policy, goal=goal, n_states=MDP.n_states, steps=STEPS,
        **limits,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_playing", [5, 12])
def test_arrivals_are_those_of_the_powers_of_the_chain(seed: int, n_playing: int) -> None:
    policy, goal = some_policy(seed)[:n_playing], 3 + seed
    mass, expected = np.eye(MDP.n_states)[0], [0.0]
    for _ in range(STEPS):
        mass = mass @ matrix_of(policy)
        expected.append(mass[goal])
        mass[goal] = 0.0
    assert arrivals(policy, goal) == pytest.approx(expected)


def test_whoever_begins_at_the_goal_arrives_at_once() -> None:
    assert arrivals(some_policy(0), 0).tolist() == [1.0] + [0.0] * STEPS


def test_a_policy_by_step_begins_again_after_a_reset_and_after_its_last_step() -> None:
    by_step, goal = np.array([some_policy(seed) for seed in range(3)]), 5
    nodes = np.zeros((4, MDP.n_states))
    nodes[0, 0] = 1.0
    expected = [0.0]
    for _ in range(STEPS):
        following = np.zeros_like(nodes)
        for step in range(4):
            for state in range(MDP.n_states):
                pair = by_step[step, state] if step < 3 else RESET_PAIR
                if pair == RESET_PAIR:
                    following[0, 0] += nodes[step, state]
                else:
                    following[step + 1] += nodes[step, state] * matrix_of(by_step[step])[state]
        expected.append(following[:, goal].sum())
        following[:, goal] = 0.0
        nodes = following
    assert arrivals(by_step, goal) == pytest.approx(expected)
    assert sum(expected) > 0.1


def test_following_ends_at_its_limits() -> None:
    policy, goal = some_policy(1), 4
    whole = arrivals(policy, goal)
    sure = arrivals(policy, goal, enough=0.2)
    assert sure.tolist() == whole[: len(sure)].tolist()
    assert sure[:-1].sum() < 0.2 <= sure.sum()
    few = arrivals(policy, goal, work=20)
    assert few.tolist() == whole[: len(few)].tolist()
    assert 2 <= len(few) < 20
