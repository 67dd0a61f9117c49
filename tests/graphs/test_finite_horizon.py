"""Planning with a horizon, against closed forms and plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from axplore.domains import combination_lock, confusing_chain
from axplore.errors import InvalidInputError
from axplore.graphs.finite_horizon import (
    BonusWeights,
    KnownRows,
    plan_with_horizon,
    resetting_policy_steps,
    truncated_steps,
)
from axplore.mdp import TabularMdp
from axplore.types import RESET_ACTION, FloatArray, IntArray


def coin(probability: float) -> TabularMdp:
    """From s0 the goal is reached with a probability, otherwise nothing happens."""
    return TabularMdp.from_rows(
        {"s0": {"try": {"goal": probability, "s0": 1 - probability}}, "goal": {}}, initial_state="s0"
    )


@pytest.mark.parametrize("horizon", [1, 2, 7, 40])
@pytest.mark.parametrize("probability", [0.2, 0.9])
def test_truncated_steps_of_a_geometric_time_have_their_closed_form(probability: float, horizon: int) -> None:
    policy = np.zeros((horizon, 2), dtype=np.int64)
    expected, missed = truncated_steps(coin(probability), 1, policy)
    miss = (1 - probability) ** horizon
    assert expected == pytest.approx((1 - miss) / probability, rel=1e-12)
    assert missed == pytest.approx(miss, rel=1e-12)


def test_a_resetting_policy_pays_one_step_for_each_miss() -> None:
    # Horizon 1 and probability 1/4: three misses on average, each a step and a RESET, then the step that arrives.
    policy = np.zeros((1, 2), dtype=np.int64)
    assert resetting_policy_steps(coin(0.25), 1, policy) == pytest.approx(3 * 2 + 1, rel=1e-12)


def test_a_policy_that_never_arrives_takes_infinitely_long() -> None:
    policy = np.full((5, 2), RESET_ACTION, dtype=np.int64)
    assert resetting_policy_steps(coin(0.5), 1, policy) == math.inf


def test_the_initial_state_is_no_steps_away() -> None:
    assert resetting_policy_steps(coin(0.5), 0, np.zeros((3, 2), dtype=np.int64)) == 0.0


def test_a_policy_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="shape"):
        truncated_steps(coin(0.5), 1, np.zeros((3, 5), dtype=np.int64))


def rows_towards(mdp: TabularMdp, known: list[int], goal: int) -> KnownRows:
    """The true model of a known set, in the planner's layout; the initial state must be first."""
    column_of = np.full(mdp.n_states, len(known) + 1)
    column_of[known] = np.arange(len(known))
    column_of[goal] = len(known)
    state_pairs, row_offsets, columns, probabilities = [0], [0], [], []
    for state in known:
        for pair in range(mdp.state_pairs[state], mdp.state_pairs[state + 1]):
            entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
            columns += column_of[mdp.successors[entries]].tolist()
            probabilities += mdp.probabilities[entries].tolist()
            row_offsets.append(len(columns))
        state_pairs.append(len(row_offsets) - 1)
    return KnownRows(np.array(state_pairs), np.array(row_offsets), np.array(columns), np.array(probabilities)[None, :])


def no_bonus(rows: KnownRows) -> BonusWeights:
    nothing = np.zeros(len(rows.row_offsets) - 1)
    return BonusWeights(nothing, nothing)


def by_state(policy: IntArray, known: list[int], n_states: int) -> IntArray:
    full = np.full((len(policy), n_states), RESET_ACTION, dtype=np.int64)
    full[:, known] = policy
    return full


@pytest.mark.parametrize(
    ("mdp", "known", "goal"),
    [(confusing_chain(), [0, 1, 2, 3], 5), (combination_lock(), [3, 4, 5], 2), (combination_lock(), [3, 2], 1)],
)
@pytest.mark.parametrize("horizon", [3, 30])
def test_without_a_bonus_the_plan_has_the_time_that_its_policy_takes(
    mdp: TabularMdp, known: list[int], goal: int, horizon: int
) -> None:
    rows = rows_towards(mdp, known, goal)
    plan = plan_with_horizon(rows, no_bonus(rows), horizon)
    expected, _ = truncated_steps(mdp, goal, by_state(plan.policy, known, mdp.n_states))
    assert plan.optimistic_steps == pytest.approx(expected, rel=1e-10)


def induction_in_plain_python(rows: KnownRows, weights: BonusWeights, horizon: int) -> float:
    """The recursion of [DisCo] App. "Algorithmic Configurations", value only."""
    n_known = len(rows.state_pairs) - 1

    def value(step: int, column: int, memo: dict[tuple[int, int], float]) -> float:
        if step == horizon:
            return 0.0
        if column == n_known:
            return float(horizon - step)
        if (step, column) not in memo:
            best = value(step + 1, 0, memo)  # RESET
            pairs = range(rows.state_pairs[column], rows.state_pairs[column + 1]) if column < n_known else range(0)
            for pair in pairs:
                entries = range(rows.row_offsets[pair], rows.row_offsets[pair + 1])
                law = [(rows.probabilities[0, e], value(step + 1, rows.columns[e], memo)) for e in entries]
                mean = sum(p * v for p, v in law)
                variance = sum(p * (v - mean) ** 2 for p, v in law)
                bonus = math.sqrt(variance * weights.variance[pair]) + (horizon - step) * weights.range[pair]
                best = max(best, min(horizon - step - 1, mean + bonus))
            memo[step, column] = best
        return memo[step, column]

    return horizon - value(0, 0, {})


def test_the_compiled_induction_agrees_with_plain_python() -> None:
    generator = np.random.default_rng(3)
    for _ in range(20):
        n_known, n_actions, horizon = (int(x) for x in generator.integers([1, 1, 1], [5, 4, 12]))
        n_pairs = n_known * n_actions
        rows = KnownRows(
            np.arange(0, n_pairs + 1, n_actions),
            np.arange(0, n_pairs * (n_known + 2) + 1, n_known + 2),
            np.tile(np.arange(n_known + 2), n_pairs),
            generator.dirichlet(np.ones(n_known + 2), n_pairs).reshape(1, -1),
        )
        weights = BonusWeights(generator.random(n_pairs), 0.1 * generator.random(n_pairs))
        found = plan_with_horizon(rows, weights, horizon).optimistic_steps
        assert found == pytest.approx(induction_in_plain_python(rows, weights, horizon), abs=1e-9)


def test_a_pair_never_drawn_promises_the_goal_at_once() -> None:
    rows = KnownRows(np.array([0, 1]), np.array([0, 0]), np.zeros(0, dtype=np.int64), np.zeros((1, 0)))
    plan = plan_with_horizon(rows, BonusWeights(np.ones(1), np.ones(1)), horizon=10)
    assert plan.optimistic_steps == 1.0
    assert plan.policy[:-1, 0].tolist() == [0] * 9


def test_each_step_may_have_a_model_of_its_own() -> None:
    # Only the third step can reach the goal.
    models: FloatArray = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    rows = KnownRows(np.array([0, 1]), np.array([0, 2]), np.array([1, 0]), models)
    assert plan_with_horizon(rows, no_bonus(rows), horizon=4).optimistic_steps == 3.0
