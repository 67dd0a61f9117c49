from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from axplore.domains import combination_lock, confusing_chain, random_sparse, slippery_grid, star
from axplore.errors import InvalidCostsError, InvalidSettingError, NotConvergedError, UnknownStateError
from axplore.graphs.solver import SweepOrder
from axplore.graphs.value_iteration import value_iteration
from axplore.mdp import TabularMdp

ORDERS: tuple[SweepOrder, SweepOrder] = ("in-place", "synchronous")
PRECISIONS = st.sampled_from([1e-8, 1e-4, 0.01, 0.2])
ROUNDING = 1e-12

FEW = settings(max_examples=60)


def coin(probability: float) -> TabularMdp:
    """The goal comes with this probability, otherwise nothing happens: 1/p steps."""
    return TabularMdp.from_rows({"s": {"try": {"goal": probability, "s": 1 - probability}}, "goal": {}}, "s")


def at_most(smaller: Any, larger: Any) -> bool:
    """Component-wise, up to rounding."""
    return bool(np.all(np.asarray(smaller) <= np.asarray(larger) * (1 + ROUNDING) + ROUNDING))


# Closed forms.


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("probability", [1.0, 0.5, 0.1])
def test_a_coin_takes_one_over_its_probability(probability: float, order: SweepOrder) -> None:
    paths = value_iteration(coin(probability), "goal", precision=1e-10, order=order)
    assert paths.steps("goal") == pytest.approx(1 / probability, abs=1e-8)
    assert paths.values[0, 1] == 0.0


def test_synchronous_iteration_is_the_papers_to_the_letter() -> None:
    # On the coin u_j = (1 - (1 - p)^j)/p, and u_{j+1} - u_j = (1 - p)^j.
    probability, precision = 0.3, 0.01
    paths = value_iteration(coin(probability), "goal", precision=precision, order="synchronous")
    first = math.ceil(math.log(precision) / math.log(1 - probability))
    assert paths.sweeps.tolist() == [first + 1]
    assert paths.steps("goal") == pytest.approx((1 - (1 - probability) ** first) / probability, rel=1e-13)
    assert paths.residuals[0] == pytest.approx((1 - probability) ** first, rel=1e-12)


def test_a_terminal_state_resets_at_the_cost_of_one_step() -> None:
    # V = 1 + (1 - p)(1 + V).
    mdp = TabularMdp.from_rows({"s": {"try": {"goal": 0.25, "dead": 0.75}}, "dead": {}, "goal": {}}, "s")
    paths = value_iteration(mdp, "goal", precision=1e-12)
    assert paths.values[0] == pytest.approx([7.0, 8.0, 0.0], abs=1e-9)
    assert paths.policy.tolist() == [[0, -1, -1]]


def test_costs_weigh_steps_and_resets() -> None:
    mdp = TabularMdp.from_rows({"s": {"try": {"goal": 0.25, "dead": 0.75}}, "dead": {}, "goal": {}}, "s")
    paths = value_iteration(mdp, "goal", precision=1e-12, costs=[0.5], reset_costs=[1.0, 0.2, 1.0])
    assert paths.values[0] == pytest.approx([2.6, 2.8, 0.0], abs=1e-9)
    assert paths.min_cost == 0.2


def test_reset_is_chosen_where_it_is_the_shorter_way() -> None:
    rows = {"s": {"a": {"goal": 1.0}}, "far": {"a": {"s": 0.1, "far": 0.9}}, "goal": {"a": {"goal": 1.0}}}
    paths = value_iteration(TabularMdp.from_rows(rows, "s"), "goal", precision=1e-9)
    assert paths.policy.tolist() == [[0, -1, -1]]
    assert paths.values[0].tolist() == [1.0, 2.0, 0.0]


@pytest.mark.parametrize("order", ORDERS)
def test_the_chain_has_the_values_of_the_paper(order: SweepOrder) -> None:
    mdp = confusing_chain()
    everything = value_iteration(mdp, mdp.states, precision=1e-10, order=order)
    assert everything.values[:, 0] == pytest.approx([0, 1, 2, 3, 4, 2] + 6 * [11], abs=1e-7)
    known = [f"s{number}" for number in range(6)]
    restricted = value_iteration(mdp, mdp.states, precision=1e-10, allowed=known, order=order)
    assert restricted.values[:, 0] == pytest.approx([0, 1, 2, 3, 4, 4] + 6 * [11], abs=1e-7)


def test_the_lock_has_the_values_of_the_paper() -> None:
    mdp = combination_lock()
    paths = value_iteration(mdp, mdp.states, precision=1e-11, allowed=["s2", "s3", "s4", "s5"])
    steps = {goal: paths.steps(goal) for goal in ("s1", "s2", "s3", "s4", "s5")}
    assert steps == pytest.approx({"s1": 3, "s2": 8 / 3, "s3": 0, "s4": 1, "s5": 2}, abs=1e-9)


def test_the_star_takes_its_distances() -> None:
    mdp = star(arms=3, arm_length=4)
    paths = value_iteration(mdp, mdp.states, precision=1e-9)
    assert sorted(paths.values[:, mdp.initial_index]) == [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]


# Goals that cannot be reached.


@pytest.mark.parametrize("order", ORDERS)
def test_values_are_infinite_exactly_where_no_policy_reaches_the_goal(order: SweepOrder) -> None:
    rows = {
        "start": {"stay": {"start": 1.0}},
        "sure": {"try": {"goal": 0.5, "sure": 0.5}, "leave": {"start": 1.0}},
        "unsure": {"try": {"sure": 0.5, "start": 0.5}},
        "goal": {},
        "slow": {"try": {"goal": 0.125, "slow": 0.875}},
    }
    mdp = TabularMdp.from_rows(rows, "start")
    paths = value_iteration(mdp, ["goal", "start", "unsure"], precision=1e-10, order=order)
    assert paths.values[0] == pytest.approx([math.inf, 2.0, math.inf, 0.0, 8.0], abs=1e-8)
    assert paths.policy[0].tolist() == [-1, 1, -1, -1, 4]
    assert paths.values[1].tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert paths.values[2].tolist() == [math.inf, math.inf, 0.0, math.inf, math.inf]
    assert paths.upper[0, 0] == math.inf
    assert paths.converged.all()


@FEW
@given(oracle.tiny_models(), st.data())
def test_values_at_the_start_agree_with_every_policy_tried(mdp: TabularMdp, data: st.DataObject) -> None:
    goal = data.draw(st.sampled_from(mdp.states))
    allowed = data.draw(st.sets(st.sampled_from(mdp.states)))
    paths = value_iteration(mdp, goal, precision=1e-10, allowed=allowed)
    expected = oracle.optimal_steps(mdp, goal, allowed)
    assert paths.steps(goal) == pytest.approx(expected, rel=1e-7, abs=1e-7)


# Against a linear programme and a model checker.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("longest", [1, 3, 20])
def test_bounds_enclose_the_linear_programme(seed: int, longest: int) -> None:
    mdp = reference.mixed_rows(seed, 40, longest)
    costs = np.random.default_rng(seed).uniform(0.1, 1.0, mdp.n_pairs)
    reset_costs = np.random.default_rng(seed + 1).uniform(0.1, 1.0, mdp.n_states)
    reached = np.flatnonzero(np.isfinite(value_iteration(mdp, mdp.states, precision=0.1).values[:, 0]))
    paths = value_iteration(mdp, reached.tolist(), precision=1e-9, costs=costs, reset_costs=reset_costs)
    for position, goal in enumerate(reached):
        expected = reference.optimal_values(mdp, int(goal), costs, reset_costs)
        assert paths.values[position] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert np.all(paths.lower[position] <= expected * (1 + 1e-8) + 1e-8)
        assert np.all(expected <= paths.upper[position] * (1 + 1e-8) + 1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_values_agree_with_storm(seed: int) -> None:
    pytest.importorskip("stormpy")
    mdp = random_sparse(200, 4, (1, 5), seed)
    goals = np.random.default_rng(seed).choice(200, 3, replace=False)
    paths = value_iteration(mdp, [mdp.states[goal] for goal in goals], precision=1e-11)
    for position, goal in enumerate(goals):
        assert paths.values[position] == pytest.approx(reference.storm_values(mdp, int(goal)), rel=1e-7)


def test_a_grid_agrees_with_storm() -> None:
    pytest.importorskip("stormpy")
    mdp = slippery_grid(rows=12, columns=12, slip=0.4)
    goal = mdp.n_states - 1
    paths = value_iteration(mdp, mdp.states[goal], precision=1e-11)
    assert paths.values[0] == pytest.approx(reference.storm_values(mdp, goal), rel=1e-7)


# Properties.


@FEW
@given(reference.models_with_goals(), PRECISIONS, st.sampled_from(ORDERS), st.data())
def test_the_lemma_holds(
    model: tuple[TabularMdp, int], precision: float, order: SweepOrder, data: st.DataObject
) -> None:
    mdp, goal = model
    costs = data.draw(reference.costs_for(mdp.n_pairs))
    reset_costs = data.draw(reference.costs_for(mdp.n_states))
    paths = value_iteration(
        mdp, mdp.states[goal], precision=precision, costs=costs, reset_costs=reset_costs, order=order
    )
    optimal = reference.optimal_values(mdp, goal, costs, reset_costs)
    lower = paths.values[0]
    assert np.all(lower <= optimal + 1e-7)
    assert paths.min_cost == min([*costs, *reset_costs])
    if precision <= paths.min_cost / 2:
        followed = reference.policy_values(mdp, paths.policy[0], goal, costs, reset_costs)
        assert np.all(optimal <= followed + 1e-7)
        assert at_most(followed, paths.upper[0])
        assert at_most(followed, paths.lemma_bound[0])
        assert paths.lemma_bound[0] == pytest.approx((1 + 2 * precision / paths.min_cost) * lower)
    else:
        assert np.all(np.isinf(paths.lemma_bound[0]))


@FEW
@given(reference.models_with_goals(), PRECISIONS, st.sampled_from(ORDERS))
def test_the_residual_is_measured_and_the_policy_greedy(
    model: tuple[TabularMdp, int], precision: float, order: SweepOrder
) -> None:
    mdp, goal = model
    paths = value_iteration(mdp, mdp.states[goal], precision=precision, order=order)
    backed_up, choices = reference.operator(mdp, goal, paths.values[0])
    assert paths.residuals[0] == pytest.approx(float(np.max(backed_up - paths.values[0])), abs=ROUNDING)
    assert paths.residuals[0] <= precision
    for state, options in enumerate(choices):
        pair = int(paths.policy[0, state])
        cost = {choice: cost for cost, choice in options}[pair]
        assert state == goal or cost == pytest.approx(float(backed_up[state]), abs=ROUNDING)
    assert paths.policy[0, goal] == -1


@FEW
@given(reference.models_with_goals(), PRECISIONS)
def test_both_orders_stay_within_each_others_bounds(model: tuple[TabularMdp, int], precision: float) -> None:
    mdp, goal = model
    in_place, synchronous = (
        value_iteration(mdp, mdp.states[goal], precision=precision, order=order) for order in ORDERS
    )
    assert at_most(in_place.lower, synchronous.upper)
    assert at_most(synchronous.lower, in_place.upper)


@FEW
@given(oracle.tiny_models(), st.data())
def test_values_fall_when_more_states_are_allowed(mdp: TabularMdp, data: st.DataObject) -> None:
    larger = data.draw(st.sets(st.sampled_from(mdp.states)))
    smaller = data.draw(st.sets(st.sampled_from(mdp.states))) & larger
    less = value_iteration(mdp, mdp.states, precision=1e-9, allowed=smaller)
    more = value_iteration(mdp, mdp.states, precision=1e-9, allowed=larger)
    assert at_most(more.lower, less.upper)


@FEW
@given(oracle.tiny_models(), st.data())
def test_allowed_states_mean_the_restricted_model(mdp: TabularMdp, data: st.DataObject) -> None:
    allowed = data.draw(st.sets(st.sampled_from(mdp.states)))
    costs = data.draw(reference.costs_for(mdp.n_pairs))
    kept = [pair for pair in range(mdp.n_pairs) if mdp.states[mdp.pair_states[pair]] in allowed]
    direct = value_iteration(mdp, mdp.states, precision=1e-6, costs=costs, allowed=allowed)
    restricted = value_iteration(mdp.restricted_to(allowed), mdp.states, precision=1e-6, costs=costs[kept])
    assert np.array_equal(direct.values, restricted.values)
    assert np.array_equal(direct.policy, np.array([*kept, -1])[restricted.policy])


# Batches.


@pytest.mark.parametrize("order", ORDERS)
def test_a_batch_agrees_with_its_goals_one_by_one(order: SweepOrder) -> None:
    mdp = random_sparse(60, 3, (1, 6), seed=1)
    goals = [*mdp.states[::3], "s3", "s3"]
    batch = value_iteration(mdp, goals, precision=1e-7, order=order)
    assert batch.values.shape == (len(goals), 60)
    # One goal alone is solved in an order of its own; the lemma leaves both within (1 + 2γ) of the optimal values.
    apart = 2e-7 if order == "in-place" else 1e-13
    for position, goal in enumerate(goals):
        single = value_iteration(mdp, goal, precision=1e-7, order=order)
        assert batch.values[position] == pytest.approx(single.values[0], rel=apart)
        assert np.array_equal(batch.policy[position], single.policy[0])


def test_a_single_goal_takes_a_third_of_the_sweeps_of_a_batch_on_a_grid() -> None:
    mdp = slippery_grid(rows=40, columns=40)
    goal = mdp.states[-1]
    batch, single = (value_iteration(mdp, goals, precision=1e-6) for goals in ([goal, goal], goal))
    assert single.sweeps[0] < batch.sweeps[0] / 3
    assert single.values[0] == pytest.approx(batch.values[0], rel=2e-6)


def test_far_goals_in_groups_have_the_values_and_bounds_of_each_alone() -> None:
    # More goals than share an order of states, some in single precision first, one of them twice.
    mdp = slippery_grid(rows=35, columns=30, slip=0.3)
    goals = [*mdp.states[7::40], mdp.states[7]]
    batch = value_iteration(mdp, goals, precision=1e-7)
    for position, goal in enumerate(goals):
        single = value_iteration(mdp, goal, precision=1e-7)
        assert batch.values[position] == pytest.approx(single.values[0], rel=2e-7)
        assert at_most(batch.lower[position], single.upper[0])
    assert np.all(batch.residuals <= 1e-7)
    for position in (0, 13, 26, 27):  # near and far; the operator in plain Python takes long
        backed_up, choices = reference.operator(mdp, mdp.index_of(goals[position]), batch.values[position])
        assert batch.residuals[position] == pytest.approx(float(np.max(backed_up - batch.values[position])), abs=1e-11)
        costs = [
            {pair: cost for cost, pair in choices[state]}[int(batch.policy[position, state])] for state in range(5)
        ]
        assert costs == pytest.approx(backed_up[:5], abs=1e-11)


def test_far_goals_take_half_of_the_sweeps_of_the_iteration_to_the_letter() -> None:
    mdp = slippery_grid(rows=30, columns=30)
    goals = mdp.states[-100::10]
    in_place, synchronous = (value_iteration(mdp, goals, precision=1e-6, order=order) for order in ORDERS)
    assert np.all(in_place.sweeps < synchronous.sweeps / 2)


def test_far_goals_are_given_up_only_when_they_are_proven_too_far() -> None:
    mdp = slippery_grid(rows=35, columns=30)
    goals = mdp.states[::50]
    optimal = value_iteration(mdp, goals, precision=1e-9).values[:, mdp.initial_index]
    paths = value_iteration(mdp, goals, precision=1e-6, give_up_above=40.0)
    assert np.array_equal(paths.gave_up, optimal > 40.0)
    assert np.all(paths.values[:, mdp.initial_index] <= optimal * (1 + 1e-8))


@pytest.mark.parametrize(
    "mdp", [random_sparse(2000, 4, (3, 5), seed=2), slippery_grid(rows=40, columns=50)], ids=["near", "far"]
)
def test_threads_do_not_change_the_result(mdp: TabularMdp) -> None:
    goals = mdp.states[::50]
    one, three = (value_iteration(mdp, goals, precision=1e-6, threads=threads) for threads in (1, 3))
    assert np.array_equal(one.values, three.values)
    assert np.array_equal(one.policy, three.policy)


def test_goals_may_be_labels_that_are_sequences_themselves() -> None:
    mdp = slippery_grid(rows=3, columns=3)
    cell = mdp.states[4]
    assert isinstance(cell, tuple)
    assert value_iteration(mdp, cell, precision=1e-6).goals == (cell,)
    assert value_iteration(mdp, [cell, mdp.states[0]], precision=1e-6).goals == (cell, mdp.states[0])
    assert value_iteration(mdp, (), precision=1e-6).values.shape == (0, 9)


# Large values, where extrapolation has most to do.


@pytest.mark.parametrize("slip", [0.2, 0.6, 0.74])
def test_extrapolation_keeps_the_bounds_on_slow_grids(slip: float) -> None:
    mdp = slippery_grid(rows=10, columns=10, slip=slip)
    goals = [mdp.states[number] for number in (9, 55, 99)]
    paths = value_iteration(mdp, goals, precision=1e-7)
    for position, number in enumerate((9, 55, 99)):
        expected = reference.policy_values(mdp, paths.policy[position], number)
        assert at_most(paths.lower[position], expected)
        assert at_most(expected, paths.upper[position])
    plain = value_iteration(mdp, goals, precision=1e-7, order="synchronous")
    assert np.all(paths.sweeps < plain.sweeps)


# Giving up, and not converging.


def test_a_goal_is_given_up_only_when_it_is_proven_too_far() -> None:
    mdp = confusing_chain()
    paths = value_iteration(mdp, mdp.states, precision=1e-9, give_up_above=3.5)
    assert paths.gave_up.tolist() == [goal in {"s4", "s6", "s7", "s8", "s9", "s10", "s11"} for goal in mdp.states]
    assert np.array_equal(paths.converged, ~paths.gave_up)
    assert np.all(paths.values[paths.gave_up, 0] > 3.5)
    assert np.all(np.isinf(paths.upper[paths.gave_up]))
    assert np.all(np.isinf(paths.lemma_bound[paths.gave_up]))
    assert paths.values[paths.converged, 0] == pytest.approx([0, 1, 2, 3, 2], abs=1e-7)


def test_extrapolation_gives_up_nothing_that_is_within_reach() -> None:
    # On these models values overshoot the optimum by more than this before they settle.
    for mdp in (random_sparse(1000, 4, (3, 5), seed=3), slippery_grid(rows=15, columns=15, slip=0.7)):
        for goal in mdp.states[1::40]:
            optimal = value_iteration(mdp, goal, precision=1e-9).steps(goal)
            assert value_iteration(mdp, goal, precision=1e-6, give_up_above=1.001 * optimal).converged[0]


@FEW
@given(reference.models_with_goals(), st.floats(0.5, 20.0), st.sampled_from(ORDERS))
def test_what_was_given_up_is_a_lower_bound(model: tuple[TabularMdp, int], threshold: float, order: SweepOrder) -> None:
    mdp, goal = model
    paths = value_iteration(mdp, mdp.states[goal], precision=1e-6, give_up_above=threshold, order=order)
    optimal = reference.optimal_values(mdp, goal)
    assert np.all(paths.values[0] <= optimal + 1e-7)
    if paths.gave_up[0]:
        assert optimal[mdp.initial_index] > threshold - 1e-7
    else:
        assert paths.steps(mdp.states[goal]) <= threshold


@pytest.mark.parametrize("order", ORDERS)
def test_not_converging_is_an_error_that_names_the_goal(order: SweepOrder) -> None:
    mdp = slippery_grid(rows=5, columns=5)
    with pytest.raises(NotConvergedError, match=r"goal \(4, 4\): after 7 sweeps .* precision 1e-09"):
        value_iteration(mdp, [(0, 0), (4, 4)], precision=1e-9, max_sweeps=7, order=order)


def test_a_precision_below_rounding_is_refused_at_once() -> None:
    with pytest.raises(NotConvergedError, match="that is the rounding of values up to 1e\\+08, ask for less"):
        value_iteration(coin(1e-8), "goal", precision=1e-10)


# Bad input.


def test_bad_settings_are_refused() -> None:
    mdp = coin(0.5)
    for precision in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidSettingError, match="precision"):
            value_iteration(mdp, "goal", precision=precision)
    with pytest.raises(InvalidSettingError, match="max_sweeps"):
        value_iteration(mdp, "goal", precision=0.1, max_sweeps=0)
    with pytest.raises(InvalidSettingError, match="order is 'backwards'"):
        value_iteration(mdp, "goal", precision=0.1, order="backwards")  # type: ignore[arg-type]
    with pytest.raises(UnknownStateError, match="'nowhere'"):
        value_iteration(mdp, "nowhere", precision=0.1)
    with pytest.raises(UnknownStateError, match="'nowhere'"):
        value_iteration(mdp, ["goal", "nowhere"], precision=0.1)
    with pytest.raises(UnknownStateError):
        value_iteration(mdp, "goal", precision=0.1, allowed=["nowhere"])
    with pytest.raises(UnknownStateError, match="not among the 1 goals"):
        value_iteration(mdp, "goal", precision=0.1).steps("s")


@pytest.mark.parametrize("cost", [0.0, -0.5, 1.5, math.nan, math.inf])
def test_costs_out_of_range_name_the_state_and_the_action(cost: float) -> None:
    mdp = TabularMdp.from_rows({"a": {"x": {"b": 1.0}, "y": {"a": 1.0}}, "b": {"x": {"a": 1.0}}}, "a")
    with pytest.raises(InvalidCostsError, match=r"state 'a', action 'y': the cost is"):
        value_iteration(mdp, "b", precision=0.1, costs=[0.5, cost, cost])
    with pytest.raises(InvalidCostsError, match=r"state 'b', RESET: the cost is"):
        value_iteration(mdp, "b", precision=0.1, reset_costs=[0.5, cost])


def test_costs_of_another_shape_are_refused() -> None:
    mdp = coin(0.5)
    with pytest.raises(InvalidCostsError, match=r"\[P\] = \[1\], not \[2\]"):
        value_iteration(mdp, "goal", precision=0.1, costs=[1.0, 1.0])
    with pytest.raises(InvalidCostsError, match=r"\[S\] = \[2\], not \[3\]"):
        value_iteration(mdp, "goal", precision=0.1, reset_costs=[1.0, 1.0, 1.0])


def test_results_cannot_be_written_to() -> None:
    paths = value_iteration(coin(0.5), "goal", precision=0.1)
    with pytest.raises(ValueError, match="read-only"):
        paths.values[0, 0] = 0.0
