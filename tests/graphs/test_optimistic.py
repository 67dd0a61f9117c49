from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from axplore.domains import confusing_chain
from axplore.errors import InvalidCostsError, InvalidModelError, InvalidSettingError, NotConvergedError
from axplore.graphs.optimistic import (
    Bonus,
    EmpiricalModel,
    experiment_bonus,
    optimistic_value_iteration,
    theory_bonus,
)
from axplore.graphs.solver import SweepOrder
from axplore.graphs.value_iteration import value_iteration
from axplore.mdp import TabularMdp
from axplore.types import FloatArray

ORDERS: tuple[SweepOrder, SweepOrder] = ("in-place", "synchronous")
BONUSES = st.sampled_from([experiment_bonus, theory_bonus(20, 3, 0.1), lambda p, n: 0.01 + 0.0 * (p + n)])


def no_bonus(empirical: FloatArray, visits: FloatArray) -> FloatArray:
    """Trusts the counts."""
    return 0.0 * (empirical + visits)


def counted(rows: list[list[dict[int, int]]], initial: int = 0) -> EmpiricalModel:
    """A model from the counts of each known state's actions: `rows[state][action][successor]`."""
    actions = [row for state in rows for row in state]
    return EmpiricalModel(
        initial_index=initial,
        state_pairs=np.cumsum([0, *map(len, rows)]),
        row_offsets=np.cumsum([0, *map(len, actions)]),
        successors=np.array([successor for row in actions for successor in row], dtype=np.int64),
        counts=np.array([count for row in actions for count in row.values()], dtype=np.int64),
        visits=np.array([sum(row.values()) for row in actions], dtype=np.int64),
    )


def optimistic_rows(model: EmpiricalModel, goal: int, bonus: Bonus) -> FloatArray:
    """p̃ by its definition, state by state: on K without the goal, and on x in the last column, [P, n + 1]."""
    n_known = model.n_known
    known_and_goal = sorted({*range(n_known), goal})
    rows = np.zeros((model.n_pairs, n_known + 1))
    for pair in range(model.n_pairs):
        visits = float(model.visits[pair])
        entries = range(model.row_offsets[pair], model.row_offsets[pair + 1])
        empirical = {int(model.successors[entry]): float(model.counts[entry]) / max(visits, 1.0) for entry in entries}
        estimates = np.array([empirical.get(state, 0.0) for state in known_and_goal])
        bonuses = bonus(estimates, np.full(len(estimates), visits))
        for state, estimate, width in zip(known_and_goal, estimates, bonuses, strict=True):
            if state != goal:
                rows[pair, state] = max(estimate - width, 0.0)
        rows[pair, n_known] = max(1 - estimates.sum() - bonuses.sum(), 0.0)
    return rows


@dataclass(frozen=True)
class Costs:
    pairs: FloatArray
    resets: FloatArray
    outside: float


def operator(
    model: EmpiricalModel, goal: int, rows: FloatArray, costs: Costs, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """L of the optimistic model on K and x, [n + 1], and what each pair costs, [P]."""
    updated = np.append(costs.resets, costs.outside) + values[model.initial_index]
    pair_values: FloatArray = costs.pairs + rows @ values
    for state in range(model.n_known):
        for pair in range(model.state_pairs[state], model.state_pairs[state + 1]):
            updated[state] = min(updated[state], pair_values[pair])
    if goal < model.n_known:
        updated[goal] = 0.0
    return updated, pair_values


def iterated(model: EmpiricalModel, goal: int, bonus: Bonus, costs: Costs, precision: float) -> FloatArray:
    """VI_SSP to the letter on the optimistic model; u on the known states, [n]."""
    rows = optimistic_rows(model, goal, bonus)
    values = np.zeros(model.n_known + 1)
    while True:
        updated, _ = operator(model, goal, rows, costs, values)
        if np.abs(updated - values).max() <= precision:
            return values[: model.n_known]
        values = updated


@st.composite
def counted_models(draw: st.DrawFn) -> EmpiricalModel:
    """One to four known states, up to three others; some pairs never played, some often."""
    n_known, n_states = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    n_states += n_known
    row = st.lists(st.sampled_from([0, 0, 1, 2, 10, 100, 300]), min_size=n_states, max_size=n_states)
    rows = [
        [
            {successor: count for successor, count in enumerate(draw(row)) if count}
            for _ in range(draw(st.integers(0 if state else 1, 2)))
        ]
        for state in range(n_known)
    ]
    return counted(rows)


def drawn_problem(model: EmpiricalModel, data: st.DataObject) -> tuple[list[int], Costs, float]:
    """All goals, known and outside and never seen; costs; and a precision."""
    costs = Costs(
        data.draw(reference.costs_for(model.n_pairs)),
        data.draw(reference.costs_for(model.n_known)),
        float(data.draw(reference.costs_for(1))[0]),
    )
    goals = list(range(model.n_known + model.n_outside + 1))
    return goals, costs, data.draw(st.sampled_from([1e-6, 1e-3, 0.04]))


# Bonuses.


def test_the_theory_bonus_is_the_papers() -> None:
    logarithm = math.log(2 * 10 * 2 * 100 / 0.05)
    expected = 2 * math.sqrt(0.3 * 0.7 / 100 * logarithm) + 6 * logarithm / 100
    bonus = theory_bonus(states_bound=10, actions=2, delta=0.05)
    assert bonus(np.array([0.3]), np.array([100.0])) == pytest.approx([expected])
    assert bonus(np.array([0.0]), np.array([0.0])) == pytest.approx([6 * math.log(2 * 10 * 2 / 0.05)])


def test_the_experiment_bonus_is_the_papers() -> None:
    estimates, visits = np.array([0.3, 0.0, 0.0]), np.array([100.0, 1.0, 0.0])
    assert experiment_bonus(estimates, visits) == pytest.approx([math.sqrt(0.21 / 100) + 0.01, 1.0, 1.0])


# Closed forms.


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bonus", [experiment_bonus, theory_bonus(5, 1, 0.1)])
def test_what_was_never_played_leads_to_the_goal_at_once(bonus: Bonus, order: SweepOrder) -> None:
    model = counted([[{}], [{0: 10**9}]])
    paths = optimistic_value_iteration(model, [1, 2], bonus, precision=1e-9, order=order)
    assert paths.values[:, 0].tolist() == [1.0, 1.0]
    assert paths.policy[:, 0].tolist() == [0, 0]


def test_a_goal_outside_gets_what_the_others_may_lose() -> None:
    # From s0 the goal was seen 500 times of 1000, another state outside 300 times, s0 itself 200 times.
    model = counted([[{0: 200, 1: 500, 2: 300}]])
    width = 0.02
    stays, other = 0.2 - width, 0.3 - 2 * width  # β(x) sums over K = {s0} and the goal
    expected = (1 + other) / (1 - stays - other)  # V = 1 + stays V + other (1 + V)
    paths = optimistic_value_iteration(model, 1, lambda p, n: width + 0 * (p + n), precision=1e-12)
    assert paths.steps(1) == pytest.approx(expected, rel=1e-10)
    assert expected < (1 + 0.3) / 0.5


def test_the_bonus_of_the_meta_state_counts_known_states_never_seen() -> None:
    model = counted([[{0: 100, 3: 900}], [], []])
    width = 0.1
    outside, stays = 0.9 - 4 * width, 0.1 - width  # s1 and s2 are known and never seen; the goal is the fourth
    expected = (1 + outside) / (1 - stays - outside)
    paths = optimistic_value_iteration(model, 4, lambda p, n: width + 0 * (p + n), precision=1e-12)
    assert paths.steps(4) == pytest.approx(expected, rel=1e-10)


def test_a_known_goal_counts_once_in_the_bonus_of_the_meta_state() -> None:
    model = counted([[{1: 500, 2: 500}], []])
    width = 0.1
    outside = 0.5 - 2 * width
    paths = optimistic_value_iteration(model, 1, lambda p, n: width + 0 * (p + n), precision=1e-12)
    assert paths.steps(1) == pytest.approx((1 + outside) / (1 - outside), rel=1e-10)
    assert paths.values[0, 1] == 0.0


# Against the definition.


@settings(max_examples=100)
@given(counted_models(), BONUSES, st.data())
def test_values_are_those_of_the_definition(model: EmpiricalModel, bonus: Bonus, data: st.DataObject) -> None:
    goals, costs, precision = drawn_problem(model, data)
    synchronous, in_place = (
        optimistic_value_iteration(
            model,
            goals,
            bonus,
            precision=precision,
            costs=costs.pairs,
            reset_costs=costs.resets,
            outside_reset_cost=costs.outside,
            order=order,
        )
        for order in ("synchronous", "in-place")
    )
    for position, goal in enumerate(goals):
        expected = iterated(model, goal, bonus, costs, precision)
        assert synchronous.values[position] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.all(in_place.lower <= synchronous.upper * (1 + 1e-11))
    assert np.all(synchronous.lower <= in_place.upper * (1 + 1e-11))


@settings(max_examples=100)
@given(counted_models(), BONUSES, st.data())
def test_the_residual_is_measured_and_the_policy_greedy(
    model: EmpiricalModel, bonus: Bonus, data: st.DataObject
) -> None:
    goals, costs, precision = drawn_problem(model, data)
    paths = optimistic_value_iteration(
        model,
        goals,
        bonus,
        precision=precision,
        costs=costs.pairs,
        reset_costs=costs.resets,
        outside_reset_cost=costs.outside,
    )
    assert paths.min_cost == min([*costs.pairs, *costs.resets, costs.outside])
    for position, goal in enumerate(goals):
        known = paths.values[position]
        values = np.append(known, costs.outside + known[model.initial_index])
        backed_up, pair_values = operator(model, goal, optimistic_rows(model, goal, bonus), costs, values)
        assert paths.residuals[position] == pytest.approx(float((backed_up - values).max()), abs=1e-11)
        assert paths.residuals[position] <= precision
        resets = costs.resets + known[model.initial_index]
        for state in range(model.n_known):
            pair = int(paths.policy[position, state])
            assert pair == -1 or model.state_pairs[state] <= pair < model.state_pairs[state + 1]
            played = resets[state] if pair == -1 else pair_values[pair]
            assert state == goal or played == pytest.approx(float(backed_up[state]), abs=1e-11)


@settings(max_examples=60)
@given(counted_models(), BONUSES, st.sampled_from(ORDERS))
def test_a_batch_equals_its_goals_one_by_one(model: EmpiricalModel, bonus: Bonus, order: SweepOrder) -> None:
    goals = list(range(model.n_known + model.n_outside + 1))
    batch = optimistic_value_iteration(model, goals, bonus, precision=1e-4, order=order)
    assert batch.goals == tuple(goals)
    for position, goal in enumerate(goals):
        single = optimistic_value_iteration(model, goal, bonus, precision=1e-4, order=order)
        assert batch.values[position] == pytest.approx(single.values[0], rel=1e-13)
        assert np.array_equal(batch.policy[position], single.policy[0])


# Against the known model.


def counts_of(mdp: TabularMdp, known: list[Any], draws: int, seed: int | None) -> tuple[EmpiricalModel, list[Any]]:
    """Counts on a known set: drawn, or exactly as expected without a seed; and the label of each number."""
    generator = np.random.default_rng(seed)
    labels = known + [state for state in mdp.states if state not in known]
    rows: list[list[dict[int, int]]] = []
    for state in known:
        rows.append([])
        for action in mdp.actions_of(state):
            row = mdp.row(state, action)
            shares = np.array(list(row.values()))
            counts = np.rint(draws * shares) if seed is None else generator.multinomial(draws, shares / shares.sum())
            numbers = [labels.index(successor) for successor in row]
            rows[-1].append({n: int(count) for n, count in zip(numbers, counts, strict=True) if count})
    return counted(rows, known.index(mdp.initial_state)), labels


@settings(max_examples=60)
@given(counted_models(), st.sampled_from(ORDERS))
def test_without_a_bonus_the_values_are_those_of_the_estimated_model(model: EmpiricalModel, order: SweepOrder) -> None:
    n_states = model.n_known + model.n_outside
    rows: dict[int, dict[int, dict[int, float]]] = {state: {} for state in range(n_states)}
    for pair, state in enumerate(np.repeat(np.arange(model.n_known), np.diff(model.state_pairs)).tolist()):
        entries = slice(model.row_offsets[pair], model.row_offsets[pair + 1])
        shares = zip(model.successors[entries].tolist(), model.empirical[entries].tolist(), strict=True)
        if model.visits[pair]:
            rows[state][pair] = dict(shares)  # a pair never played leads to x, and so no faster than RESET
    goals = list(range(n_states))
    estimated = value_iteration(TabularMdp.from_rows(rows, 0), goals, precision=1e-9, give_up_above=1000.5)
    paths = optimistic_value_iteration(model, goals, no_bonus, precision=1e-9, order=order, give_up_above=1000.5)
    assert np.array_equal(paths.gave_up, estimated.gave_up)
    solved = estimated.converged
    assert paths.values[solved, 0] == pytest.approx(estimated.values[solved, 0], rel=1e-6)


@settings(max_examples=100)
@given(oracle.tiny_models(), st.integers(1, 200), st.integers(0, 10**6), st.data())
def test_the_optimistic_value_never_exceeds_the_true_one(
    mdp: TabularMdp, draws: int, seed: int, data: st.DataObject
) -> None:
    others = data.draw(st.sets(st.sampled_from(mdp.states))) - {mdp.initial_state}
    known = [mdp.initial_state, *sorted(others, key=mdp.index_of)]
    model, labels = counts_of(mdp, known, draws, seed)
    # The least bonus, the same everywhere, that has the truth inside.
    truth = np.array([mdp.row(s, a).get(y, 0.0) for s in known for a in mdp.actions_of(s) for y in labels])
    truth = truth.reshape(model.n_pairs, len(labels))
    seen = np.zeros_like(truth)
    seen[model.transition_pairs, model.successors] = model.empirical
    width = float(np.abs(truth - seen).max(initial=0.0))
    paths = optimistic_value_iteration(
        model, list(range(len(labels))), lambda p, n: width + 0 * (p + n), precision=1e-7, give_up_above=1e5
    )
    for position, goal in enumerate(labels):
        true_value = oracle.optimal_steps(mdp, goal, known)
        assert paths.values[position, 0] <= true_value * (1 + 1e-9) + 1e-9


def test_the_policy_is_greedy_and_restricted_on_the_known_set() -> None:
    mdp = confusing_chain()
    known = ["s0", "s1", "s2", "s3", "s4", "s5"]
    model, labels = counts_of(mdp, known, 10**7, seed=1)
    paths = optimistic_value_iteration(model, labels.index("s4"), experiment_bonus, precision=1e-4)
    restricted = value_iteration(mdp, "s4", precision=1e-9, allowed=known)
    assert paths.policy[0, :4].tolist() == restricted.policy[0, :4].tolist()
    assert paths.steps(4) == pytest.approx(4.0, abs=0.05)
    assert paths.steps(4) < 4.0


# Limits and bad input.


def test_goals_out_of_reach_are_infinite() -> None:
    model = counted([[{0: 5}], [{2: 5}]])
    paths = optimistic_value_iteration(model, [0, 1, 2, 3], no_bonus, precision=1e-6)
    assert paths.values.tolist() == [[0.0, 1.0], [math.inf, 0.0], [math.inf, math.inf], [math.inf, math.inf]]
    only_resets = counted([[]])
    assert optimistic_value_iteration(only_resets, 1, experiment_bonus, precision=1e-6).steps(1) == math.inf


def test_goals_too_far_are_given_up() -> None:
    model = counted([[{0: 900, 1: 100}, {2: 10**6}]])
    paths = optimistic_value_iteration(model, [1, 2], experiment_bonus, precision=1e-6, give_up_above=4.0)
    assert paths.gave_up.tolist() == [True, False]
    assert paths.steps(1) > 4.0


def test_not_converging_is_an_error() -> None:
    model = counted([[{0: 900, 1: 100}]])
    with pytest.raises(NotConvergedError, match="goal 1: after 3 sweeps"):
        optimistic_value_iteration(model, 1, experiment_bonus, precision=1e-9, max_sweeps=3)


def test_bad_settings_are_refused() -> None:
    model = counted([[{0: 5}, {1: 5}]])
    with pytest.raises(InvalidSettingError, match="goal -1"):
        optimistic_value_iteration(model, -1, experiment_bonus, precision=0.1)
    with pytest.raises(InvalidSettingError, match="precision"):
        optimistic_value_iteration(model, 1, experiment_bonus, precision=0.0)
    with pytest.raises(InvalidSettingError, match="delta"):
        theory_bonus(5, 2, 1.5)
    with pytest.raises(InvalidCostsError, match="known state 0, action 1: the cost is 2"):
        optimistic_value_iteration(model, 1, experiment_bonus, precision=0.1, costs=[1.0, 2.0])
    with pytest.raises(InvalidCostsError, match="known state 0, RESET"):
        optimistic_value_iteration(model, 1, experiment_bonus, precision=0.1, reset_costs=0.0)
    with pytest.raises(InvalidCostsError, match="outside_reset_cost is 0"):
        optimistic_value_iteration(model, 1, experiment_bonus, precision=0.1, outside_reset_cost=0.0)


def test_counts_that_do_not_add_up_are_refused() -> None:
    model = counted([[{0: 5}, {1: 5}]])
    with pytest.raises(InvalidModelError, match="pair 1 was visited 6 times and its counts sum to 5"):
        EmpiricalModel(0, model.state_pairs, model.row_offsets, model.successors, model.counts, np.array([5, 6]))
    with pytest.raises(InvalidModelError, match="initial state is 1"):
        counted([[{0: 5}]], initial=1)
    with pytest.raises(InvalidModelError, match="offsets end at 2 pairs and 2 transitions, but there are 2 and 1"):
        EmpiricalModel(0, model.state_pairs, model.row_offsets, model.successors[:1], model.counts[:1], model.visits)
