"""What the policies of an exploration are worth on the true model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axplore.explorers.result import Exploration
from axplore.mdp import RESET_ACTION, RESET_PAIR, IntArray, State, TabularMdp
from axplore.planning.evaluation import policy_steps
from axplore.planning.finite_horizon import resetting_policy_steps


def policy_steps_of(exploration: Exploration, mdp: TabularMdp, goal: State) -> float:
    """The expected steps of the policy to a state found, on the model that was explored; exact."""
    return policy_steps_on(mdp, exploration.states, exploration.policy(goal), goal)


def policy_steps_on(mdp: TabularMdp, states: Sequence[State], policy: IntArray, goal: State) -> float:
    """The expected steps of a policy on a model, exact; it is for the first m of these states, [m] or [H, m]."""
    on_model = np.full((*policy.shape[:-1], mdp.n_states), RESET_ACTION, dtype=np.int64)
    on_model[..., mdp.indices_of(states[: policy.shape[-1]])] = policy
    if policy.ndim == 2:
        return resetting_policy_steps(mdp, mdp.index_of(goal), on_model)
    pairs = np.where(on_model == RESET_ACTION, RESET_PAIR, mdp.state_pairs[:-1] + on_model)
    return float(policy_steps(mdp, pairs, goal)[mdp.initial_index])
