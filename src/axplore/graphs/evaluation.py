"""The exact value of stationary policies, by one sparse linear solve for each goal.

A policy is an array: the pair to play in each state, -1 for RESET, [S]. `policy_pairs` and `policy_actions` translate
from and to mappings of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.compressed import entries_in, offsets_from
from axplore.errors import InvalidInputError, UnknownActionError
from axplore.graphs.inputs import goal_labels, is_one_goal, pair_costs, state_reset_costs
from axplore.graphs.search import Graph, graph_from, reachable, reversed_graph
from axplore.mdp import TabularMdp
from axplore.types import RESET, RESET_PAIR, Action, BoolArray, FloatArray, IntArray, Reset, State

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
    chain = chain_of(mdp.row_offsets, mdp.successors, mdp.probabilities, policy, goal, mdp.initial_index)
    return expected_costs(chain, np.where(policy == RESET_PAIR, reset_costs, np.append(costs, 0.0)[policy]), goal)


class Chain(NamedTuple):
    """The transitions that a policy plays before it is at its goal.

    Attributes:
        graph: from where they lead where; none from the goal.
        probabilities: of each edge, [E].
    """

    graph: Graph
    probabilities: FloatArray


def chain_of(
    row_offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    policy: IntArray,
    goal: int,
    initial: int = 0,
) -> Chain:
    """Returns the chain of a policy.

    Args:
        row_offsets: the first transition of each pair, and the end of the last one, [P + 1].
        successors, probabilities: where each transition leads and how likely it is, [T].
        policy: the pair to play in each state, or RESET_PAIR, [n].
        goal: the state where the policy ends.
        initial: the state that RESET leads to.
    """
    ends = np.arange(len(policy)) == goal
    resets = (policy == RESET_PAIR) & ~ends
    lengths = np.append(np.diff(row_offsets), 1)[policy]  # RESET_PAIR is the last, which has one transition
    lengths[goal] = 0
    offsets = offsets_from(lengths)
    played = np.ones(offsets[-1], dtype=bool)
    played[offsets[:-1][resets]] = False
    entries = entries_in(row_offsets, policy[~resets & ~ends])
    heads, chances = np.full(len(played), initial), np.ones(len(played))
    heads[played], chances[played] = successors[entries], probabilities[entries]
    return Chain(graph_from(offsets, heads), chances)


def expected_costs(chain: Chain, costs: FloatArray, goal: int) -> FloatArray:
    """Returns the expected cost from each state to the goal, [n]; infinite exactly where it is not reached for certain.

    Args:
        chain: the transitions.
        costs: of one step from each state, [n].
        goal: the state where the chain ends.
    """
    from scipy.sparse import csc_array, identity
    from scipy.sparse.linalg import splu

    (offsets, heads), n_states = chain.graph, len(costs)
    proper = _is_proper(chain.graph, goal)
    values = np.where(proper, 0.0, np.inf)
    unknown = proper.copy()
    unknown[goal] = False
    states = np.flatnonzero(unknown)
    if not states.size:
        return values
    sources = np.repeat(np.arange(n_states), np.diff(offsets))
    inner = unknown[sources] & unknown[heads]
    indices = np.cumsum(unknown) - 1
    matrix = csc_array(
        (chain.probabilities[inner], (indices[sources[inner]], indices[heads[inner]])), shape=(len(states), len(states))
    )
    # Diagonal pivots are stable, because no row of the chain sums to more than one. They keep the symmetric order,
    # which fills in less.
    factors = splu(
        identity(len(states), format="csc") - matrix,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    values[states] = factors.solve(costs[states])
    return values


def _is_proper(graph: Graph, goal: int) -> BoolArray:
    """From where edges, none of which leaves the goal, lead to the goal with probability one, [n].

    That is where no state can be met from which there is no way to the goal.
    """
    backwards = reversed_graph(graph)
    hopeful = reachable(backwards, np.array([goal]))
    return ~reachable(backwards, np.flatnonzero(~hopeful))


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
