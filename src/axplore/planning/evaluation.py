"""The exact value of stationary policies, by one sparse linear solve for each goal.

A policy is an array: the pair to play in each state, -1 for RESET, [S]. `policy_pairs` and `policy_actions` translate
from and to mappings of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidInputError, UnknownActionError
from axplore.mdp import TabularMdp
from axplore.planning.inputs import goal_labels, is_one_goal, pair_costs, state_reset_costs
from axplore.planning.rows import BoolArray, leading_to
from axplore.types import RESET, RESET_PAIR, Action, FloatArray, IntArray, Reset, State

Policy: TypeAlias = Mapping[State, Action | Reset]
"""The action in each state; states that are missing reset."""


def policy_pairs(mdp: TabularMdp, policy: Policy) -> IntArray:
    """Returns a mapping from states to actions or RESET as a policy array, [S]; states that it does not name reset."""
    pairs = np.full(mdp.n_states, RESET_PAIR, dtype=np.int64)
    for state, action in policy.items():
        number = mdp.index_of(state)
        if action is not RESET:
            pairs[number] = mdp.pair_of(state, action)
    return pairs


def policy_actions(mdp: TabularMdp, policy: npt.ArrayLike) -> dict[State, Action | Reset]:
    """Returns a policy array as a mapping from every state to an action or RESET."""
    pairs = _checked_policy(mdp, policy)
    return {
        state: RESET if pair == RESET_PAIR else mdp.actions[mdp.pair_actions[pair]]
        for state, pair in zip(mdp.states, pairs, strict=True)
    }


def policy_steps(
    mdp: TabularMdp,
    policy: npt.ArrayLike,
    goals: State | Sequence[State],
    *,
    costs: npt.ArrayLike | None = None,
    reset_costs: npt.ArrayLike | None = None,
) -> FloatArray:
    """The expected steps (or cost) from each state to a goal, v_π; infinite exactly where the policy is not proper.

    A policy is proper in a state if from there it reaches the goal with probability one: if it cannot get to a state
    from which the goal is out of its reach.

    Args:
        mdp: the model.
        policy: the pair to play in each state, -1 for RESET, [S]; or one such row for each goal, [G, S].
        goals: the label of a goal, or several labels.
        costs: the cost of each pair, [P]; 1 by default.
        reset_costs: the cost of RESET, one number or one for each state, [S]; 1 by default.

    Returns:
        The values, [S] for one goal and [G, S] for several.
    """
    numbers = mdp.indices_of(goal_labels(mdp, goals))
    rows = np.asarray(policy)
    if rows.shape not in {(mdp.n_states,), (len(numbers), mdp.n_states)}:
        raise InvalidInputError(
            f"policy must have the shape [S] = [{mdp.n_states}], or one such row for each of {len(numbers)} goals, "
            f"not {list(rows.shape)}"
        )
    checked_costs, checked_reset_costs = pair_costs(mdp, costs), state_reset_costs(mdp, reset_costs)
    values = [
        evaluate(mdp, _checked_policy(mdp, row), int(goal), checked_costs, checked_reset_costs)
        for row, goal in zip(np.broadcast_to(rows, (len(numbers), mdp.n_states)), numbers, strict=True)
    ]
    return values[0] if is_one_goal(mdp, goals) else np.array(values).reshape(len(numbers), mdp.n_states)


def evaluate(mdp: TabularMdp, policy: IntArray, goal: int, costs: FloatArray, reset_costs: FloatArray) -> FloatArray:
    """`policy_steps` for one goal by number and arguments that are known to be in order."""
    from scipy.sparse import csc_array, identity
    from scipy.sparse.linalg import splu

    sources, successors, probabilities = _edges(mdp, policy, goal)
    proper = _is_proper(sources, successors, goal, mdp.n_states)
    values = np.where(proper, 0.0, np.inf)
    unknown = proper.copy()
    unknown[goal] = False
    states = np.flatnonzero(unknown)
    if not states.size:
        return values
    inner = unknown[sources] & unknown[successors]
    places = np.cumsum(unknown) - 1
    chain = csc_array(
        (probabilities[inner], (places[sources[inner]], places[successors[inner]])), shape=(len(states), len(states))
    )
    # Diagonal pivots are stable, because no row of the chain sums to more than one. They keep the symmetric order,
    # which fills in less.
    factors = splu(
        identity(len(states), format="csc") - chain,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    resets = policy == RESET_PAIR
    values[states] = factors.solve(np.where(resets, reset_costs, np.append(costs, 0.0)[policy])[states])
    return values


def _edges(mdp: TabularMdp, policy: IntArray, goal: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Returns the transitions that a policy plays before it is at the goal: from where, to where, and how likely."""
    playing = np.flatnonzero((policy != RESET_PAIR) & (np.arange(mdp.n_states) != goal))
    resetting = np.flatnonzero((policy == RESET_PAIR) & (np.arange(mdp.n_states) != goal))
    first, end = mdp.row_offsets[policy[playing]], mdp.row_offsets[policy[playing] + 1]
    widths = end - first
    entries = np.repeat(first - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
    return (
        np.concatenate((np.repeat(playing, widths), resetting)),
        np.concatenate((mdp.successors[entries], np.full(len(resetting), mdp.initial_index))),
        np.concatenate((mdp.probabilities[entries], np.ones(len(resetting)))),
    )


def _is_proper(sources: IntArray, successors: IntArray, goal: int, n_states: int) -> BoolArray:
    """From where these edges, none of which leaves the goal, lead to the goal with probability one, [S]."""
    hopeful = leading_to(np.array([goal]), sources, successors, n_states)
    return ~leading_to(np.flatnonzero(~hopeful), sources, successors, n_states)


def _checked_policy(mdp: TabularMdp, policy: npt.ArrayLike) -> IntArray:
    """Returns the policy array, if each of its pairs belongs to its state."""
    pairs = np.asarray(policy)
    if pairs.shape != (mdp.n_states,) or not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidInputError(f"policy must be whole numbers of the shape [S] = [{mdp.n_states}]")
    own = (pairs >= mdp.state_pairs[:-1]) & (pairs < mdp.state_pairs[1:])
    bad = np.flatnonzero(~own & (pairs != RESET_PAIR))
    if bad.size:
        state = mdp.states[bad[0]]
        raise UnknownActionError(
            f"state {state!r}: pair {pairs[bad[0]]} belongs to another state; it has the pairs "
            f"{mdp.state_pairs[bad[0]]} to {mdp.state_pairs[bad[0] + 1] - 1}, and {RESET_PAIR} for RESET"
        )
    return pairs.astype(np.int64)
