"""Planning with a horizon: optimistic backward induction, and the exact value of policies that reset every H steps.

Of a policy with a horizon H, v_H = E[τ ∧ H] is the expected time to the goal, cut at H, and q = P(τ > H) the
probability of missing it. Followed again and again from the initial state, with a RESET after each miss, it takes
v = (v_H + q) / (1 - q) steps ([DisCo] Eq. (proposition_equation_intuition)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from axplore.compilation import compiled
from axplore.errors import InvalidInputError
from axplore.mdp import TabularMdp
from axplore.types import RESET_ACTION, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class KnownRows:
    """The estimated transitions of a known set, as seen on the way to one goal.

    Columns are the indices 0..k-1 in the known set, k for the goal and k + 1 for everything else, which resets.

    Attributes:
        state_pairs: the first pair of each known state, and the end of the last one, [k + 1].
        row_offsets: the first transition of each pair, and the end of the last one, [P + 1].
        columns: where each transition leads, [T].
        probabilities: the estimates, [1, T], or one model for each step of the horizon, [H, T].
    """

    state_pairs: IntArray
    row_offsets: IntArray
    columns: IntArray
    probabilities: FloatArray


@dataclass(frozen=True, eq=False)
class BonusWeights:
    """The optimism for each pair: sqrt(Var[V_{h+1}] · variance) + (H - h) · range.

    Attributes:
        variance: the weight of the variance of the next value, [P].
        range: the weight of the steps that are left, [P].
    """

    variance: FloatArray
    range: FloatArray


@dataclass(frozen=True, eq=False)
class FiniteHorizonPlan:
    """An optimistic policy with a horizon.

    Attributes:
        optimistic_steps: the optimistic E[τ ∧ H] from the initial state, never negative.
        policy: the action to play by step and index in the known set, [H, k]; RESET_ACTION resets.
    """

    optimistic_steps: float
    policy: IntArray


def plan_with_horizon(rows: KnownRows, weights: BonusWeights, horizon: int) -> FiniteHorizonPlan:
    """Optimistic backward induction on a known set whose first state is the initial one.

    Reward 1 is paid for each step at the goal, so the value is H minus the time to the goal, cut at H. RESET is an
    action of every known state; it is known exactly and has no bonus. The value after one step is never more than that
    of standing at the goal. ([DisCo] App. "Algorithmic Configurations", after Azar et al. 2017, Alg. 4.)
    """
    value, policy = _backward_induction(
        rows.state_pairs, rows.row_offsets, rows.columns, rows.probabilities, weights.variance, weights.range, horizon
    )
    return FiniteHorizonPlan(horizon - value, policy)


def truncated_steps(mdp: TabularMdp, goal: int, policy: IntArray) -> tuple[float, float]:
    """v_H = E[τ ∧ H] and q = P(τ > H) from the initial state, exactly.

    Args:
        mdp: the model.
        goal: the number of the goal.
        policy: the index among the state's actions, or RESET_ACTION, by step and state, [H, S].
    """
    if policy.ndim != 2 or policy.shape[1] != mdp.n_states:
        raise InvalidInputError(f"the policy must have the shape [H, {mdp.n_states}], not {list(policy.shape)}")
    alive, missed = _truncated_steps(
        mdp.state_pairs, mdp.row_offsets, mdp.successors, mdp.probabilities, mdp.initial_index, goal, policy
    )
    return float(alive), float(missed)


def resetting_policy_steps(mdp: TabularMdp, goal: int, policy: IntArray) -> float:
    """Returns the expected steps of a policy that starts again every H steps, [H, S]; infinite if it never arrives."""
    truncated, missed = truncated_steps(mdp, goal, policy)
    return math.inf if missed >= 1 else (truncated + missed) / (1 - missed)


@compiled
def _backward_induction(
    state_pairs: IntArray,
    row_offsets: IntArray,
    columns: IntArray,
    probabilities: FloatArray,
    variance_weights: FloatArray,
    range_weights: FloatArray,
    horizon: int,
) -> tuple[float, IntArray]:
    n_known = len(state_pairs) - 1
    goal, outside = n_known, n_known + 1
    after = np.zeros(n_known + 2)
    now = np.zeros(n_known + 2)
    policy = np.full((horizon, n_known), RESET_ACTION, dtype=np.int64)
    for step in range(horizon - 1, -1, -1):
        model = probabilities[step] if len(probabilities) > 1 else probabilities[0]
        now[goal] = horizon - step
        now[outside] = after[0]
        for state in range(n_known):
            best, best_action = after[0], RESET_ACTION
            for pair in range(state_pairs[state], state_pairs[state + 1]):
                mean, square = 0.0, 0.0
                for entry in range(row_offsets[pair], row_offsets[pair + 1]):
                    value = after[columns[entry]]
                    mean += model[entry] * value
                    square += model[entry] * value * value
                variance = max(0.0, square - mean * mean)
                bonus = math.sqrt(variance * variance_weights[pair]) + (horizon - step) * range_weights[pair]
                optimistic = min(after[goal], mean + bonus)
                if optimistic > best:
                    best, best_action = optimistic, pair - state_pairs[state]
            now[state] = best
            policy[step, state] = best_action
        after, now = now, after
    return after[0], policy


@compiled
def _truncated_steps(
    state_pairs: IntArray,
    row_offsets: IntArray,
    successors: IntArray,
    probabilities: FloatArray,
    initial: int,
    goal: int,
    policy: IntArray,
) -> tuple[float, float]:
    n_states = len(state_pairs) - 1
    mass = np.zeros(n_states)
    if initial != goal:
        mass[initial] = 1.0
    expected = 0.0
    for step in range(len(policy)):
        following = np.zeros(n_states)
        for state in range(n_states):
            if mass[state] == 0.0:
                continue
            expected += mass[state]
            action = policy[step, state]
            if action == RESET_ACTION:
                following[initial] += mass[state]
                continue
            pair = state_pairs[state] + action
            for entry in range(row_offsets[pair], row_offsets[pair + 1]):
                following[successors[entry]] += mass[state] * probabilities[entry]
        following[goal] = 0.0
        mass = following
    return expected, mass.sum()
