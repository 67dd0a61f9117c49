"""What the policies of an exploration are worth on the true model."""

from __future__ import annotations

import numpy as np

from axplore.explorers.result import Exploration
from axplore.mdp import RESET_ACTION, RESET_PAIR, IntArray, State, TabularMdp
from axplore.planning.evaluation import policy_steps
from axplore.planning.finite_horizon import resetting_policy_steps


def policy_steps_of(exploration: Exploration, mdp: TabularMdp, goal: State) -> float:
    """The expected steps of the policy to a state found, on the model that was explored; exact."""
    policy = policy_on(exploration, mdp, goal)
    if policy.ndim == 2:
        return resetting_policy_steps(mdp, mdp.index_of(goal), policy)
    pairs = np.where(policy == RESET_ACTION, RESET_PAIR, mdp.state_pairs[:-1] + policy)
    return float(policy_steps(mdp, pairs, goal)[mdp.initial_index])


def policy_on(exploration: Exploration, mdp: TabularMdp, goal: State) -> IntArray:
    """The policy to a state found by the model's numbers, [S] or [H, S]; elsewhere it resets."""
    policy = exploration.policy(goal)
    planned = mdp.indices_of(exploration.states[: policy.shape[-1]])
    on_model = np.full((*policy.shape[:-1], mdp.n_states), RESET_ACTION, dtype=np.int64)
    on_model[..., planned] = policy
    return on_model
