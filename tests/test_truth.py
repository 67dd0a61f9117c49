from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from axplore.domains import (
    combination_lock,
    confusing_chain,
    layered,
    random_sparse,
    slippery_grid,
    star,
    two_branch_toy,
)
from axplore.errors import InvalidSettingError, UnknownActionError, UnknownStateError
from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.truth import (
    check_optimal,
    check_staged,
    check_within_radius,
    controllable_states,
    l_controllable,
    optimal_steps,
)
from axplore.types import RESET

ACCURACY = 1e-9
RADII = st.floats(1.0, 12.0)


def close(value: float) -> Any:
    return pytest.approx(value, rel=0, abs=ACCURACY)


def renumbered(mdp: TabularMdp, order: list[int]) -> TabularMdp:
    """The same model with its states in another order."""
    rows = {
        mdp.states[number]: {
            action: mdp.row(mdp.states[number], action) for action in mdp.actions_of(mdp.states[number])
        }
        for number in order
    }
    return TabularMdp.from_rows(rows, mdp.initial_state)


# Closed forms of the paper's domains.


def test_the_chain_within_four_and_a_half_steps() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    assert truth.layers == (("s0",), ("s1",), ("s2", "s5"), ("s3",), ("s4",))
    assert truth.states == ("s0", "s1", "s2", "s5", "s3", "s4")
    expected = {"s0": 0, "s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 4}
    assert truth.steps == {state: close(value) for state, value in expected.items()}
    assert truth.boundary == ()


def test_the_chain_within_eleven_steps_brings_all_states_in() -> None:
    truth = controllable_states(confusing_chain(), 11)
    assert set(truth.states) == {f"s{number}" for number in range(12)}
    assert truth.steps["s5"] == close(2)
    confusing = [f"s{number}" for number in range(6, 12)]
    assert all(truth.steps[state] == close(11) for state in confusing)
    assert set(truth.boundary) == set(confusing)


def test_the_confusing_states_are_eleven_steps_away_at_every_radius() -> None:
    mdp = confusing_chain()
    within = controllable_states(mdp, 4.5).states
    for number in range(6, 12):
        assert optimal_steps(mdp, f"s{number}", allowed=within) == close(11)


def test_the_end_of_the_chain_is_near_only_through_the_confusing_states() -> None:
    mdp = confusing_chain()
    assert optimal_steps(mdp, "s5") == close(2)
    assert optimal_steps(mdp, "s5", allowed=["s0", "s1"]) == close(4)
    assert "s5" in l_controllable(mdp, 2)
    assert "s5" not in controllable_states(mdp, 2).states


def test_the_lock_within_two_point_seven_steps() -> None:
    truth = controllable_states(combination_lock(), 2.7)
    assert set(truth.states) == {"s2", "s3", "s4", "s5"}
    expected = {"s3": 0, "s2": 8 / 3, "s4": 1, "s5": 2}
    assert truth.steps == {state: close(value) for state, value in expected.items()}
    assert truth.boundary == ()
    assert optimal_steps(combination_lock(), "s1", allowed=truth.states) == close(3)


def test_the_lock_at_exactly_three_steps_holds_all_six_with_one_on_the_boundary() -> None:
    truth = controllable_states(combination_lock(), 3)
    assert set(truth.states) == {f"s{number}" for number in range(6)}
    assert truth.boundary == ("s1",)
    below = controllable_states(combination_lock(), 3 - 1e-6)
    assert set(below.states) == {"s2", "s3", "s4", "s5"}


def test_the_lock_has_the_hitting_times_of_the_papers_caption() -> None:
    mdp = combination_lock()
    steps = [round(optimal_steps(mdp, f"s{number}"), 2) for number in range(6)]
    assert steps == [2.18, 1.91, 1.64, 0, 1, 2]


def test_the_star_is_controllable_up_to_its_distance() -> None:
    truth = controllable_states(star(), 3)
    assert len(truth.states) == 25
    assert [len(layer) for layer in truth.layers] == [1, 8, 8, 8]
    for number, layer in enumerate(truth.layers):
        assert all(truth.steps[state] == close(number) for state in layer)
    assert set(truth.boundary) == set(truth.layers[3])
    assert set(l_controllable(star(), 3)) == set(truth.states)


def test_a_radius_that_rounding_lowered_still_holds_what_it_should() -> None:
    lowered = 3 - 1e-10
    assert len(controllable_states(star(), lowered).states) == 25
    assert len(l_controllable(star(), lowered)) == 25
    assert len(controllable_states(star(), 3 - 1e-8).states) == 17
    assert len(l_controllable(star(), 3 - 1e-8)) == 17


def test_the_layered_end_is_controllable_but_not_incrementally() -> None:
    mdp = layered()
    assert controllable_states(mdp, 3).states == ("s0",)
    assert l_controllable(mdp, 3) == ("s0", "end")
    assert optimal_steps(mdp, "end") == close(3)
    assert optimal_steps(mdp, "arm1.1") == close(5)
    assert optimal_steps(mdp, "arm1.2") == close(6)


@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_one_more_allowed_state_saves_the_length_and_one_step(length: int) -> None:
    mdp = two_branch_toy(length)
    assert optimal_steps(mdp, "x", allowed=["s0", "x"]) == close(2 * length + 2)
    assert optimal_steps(mdp, "x", allowed=["s0", "x", "y"]) == close(length + 1)


def test_a_grid_without_slip_is_controllable_up_to_its_distance() -> None:
    truth = controllable_states(slippery_grid(9, 9, slip=0), 5)
    assert truth.steps == {(row, column): close(row + column) for row in range(6) for column in range(6 - row)}


def test_a_slipping_corridor_takes_a_geometric_time_per_cell() -> None:
    mdp = slippery_grid(1, 30, slip=0.2)
    assert optimal_steps(mdp, (0, 8)) == close(10)
    truth = controllable_states(mdp, 10)
    assert truth.steps == {(0, column): close(column / 0.8) for column in range(9)}
    assert truth.boundary == ((0, 8),)


def test_a_state_that_cannot_be_reached_is_infinitely_far() -> None:
    mdp = TabularMdp.from_rows({"a": {"stay": {"a": 1.0}}, "b": {}}, "a")
    assert optimal_steps(mdp, "b") == math.inf
    assert optimal_steps(mdp, "a") == 0
    assert controllable_states(mdp, 1e6).states == ("a",)
    assert l_controllable(mdp, 1e6) == ("a",)
    chain = confusing_chain()
    assert optimal_steps(chain, "s2", allowed=["s0"]) == math.inf


def test_a_rare_successor_takes_the_inverse_of_its_probability() -> None:
    mdp = TabularMdp.from_rows({"a": {"try": {"b": 1e-4, "a": 1 - 1e-4}}, "b": {}}, "a")
    assert optimal_steps(mdp, "b") == pytest.approx(1e4, rel=1e-11)
    assert controllable_states(mdp, 9_999).states == ("a",)
    assert controllable_states(mdp, 10_001).states == ("a", "b")


# An independent implementation on tiny models.


@settings(max_examples=150)
@given(oracle.tiny_models(), st.data())
def test_optimal_steps_are_those_of_the_best_of_all_policies(mdp: TabularMdp, data: st.DataObject) -> None:
    allowed = data.draw(st.sets(st.sampled_from(mdp.states)))
    for goal in mdp.states:
        assert optimal_steps(mdp, goal, allowed) == close(oracle.optimal_steps(mdp, goal, allowed))


@settings(max_examples=150)
@given(oracle.tiny_models(), st.data())
def test_the_controllable_states_are_those_of_brute_force(mdp: TabularMdp, data: st.DataObject) -> None:
    brute = oracle.Truth(mdp)
    radius = data.draw(RADII | st.sampled_from(brute.finite_values()))
    truth = controllable_states(mdp, radius)
    assert [set(layer) for layer in truth.layers] == brute.layers(radius)
    assert set(truth.boundary) == brute.boundary(radius)
    values = brute.values[brute.controllable(radius)]
    assert truth.steps == {state: close(values[state]) for state in truth.states}
    assert set(l_controllable(mdp, radius)) == brute.l_controllable(radius)


@settings(max_examples=100)
@given(oracle.tiny_models(), RADII)
def test_admission_radii_are_those_of_brute_force(mdp: TabularMdp, radius: float) -> None:
    brute = oracle.Truth(mdp)
    truth = controllable_states(mdp, radius)
    assert truth.admission_radii == {state: close(brute.admission_radius(state)) for state in truth.states}


# Properties.


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.data())
def test_more_allowed_states_never_lengthen_a_path(seed: int, data: st.DataObject) -> None:
    mdp = random_sparse(states=8, actions=2, branching=(1, 3), seed=seed)
    smaller = data.draw(st.sets(st.sampled_from(mdp.states)))
    larger = smaller | data.draw(st.sets(st.sampled_from(mdp.states)))
    for goal in mdp.states:
        assert optimal_steps(mdp, goal, larger) <= optimal_steps(mdp, goal, smaller) + ACCURACY


@pytest.mark.parametrize(
    ("mdp", "radius"),
    [
        (slippery_grid(14, 14, slip=0.3), 3.5),  # decided by a part of the model
        (slippery_grid(14, 14, slip=0.0, start=(7, 7)), 4.0),  # many states exactly at the radius
        (slippery_grid(12, 12, slip=0.7), 6.0),
        (random_sparse(400, 3, (2, 4), seed=2), 5.0),
        (layered(6, 3), 5.0),
    ],
)
def test_the_l_controllable_states_of_larger_models_are_those_within_the_radius(mdp: TabularMdp, radius: float) -> None:
    within = [state for state in mdp.states if optimal_steps(mdp, state) <= radius + ACCURACY]
    assert list(l_controllable(mdp, radius)) == within
    assert 1 < len(within) < mdp.n_states


@settings(max_examples=100)
@given(st.integers(0, 2**32), RADII, RADII)
def test_the_controllable_states_grow_with_the_radius_within_the_l_controllable(
    seed: int, one: float, other: float
) -> None:
    mdp = random_sparse(states=20, actions=2, branching=(1, 4), seed=seed)
    smaller, larger = (set(controllable_states(mdp, radius).states) for radius in sorted((one, other)))
    assert smaller <= larger
    assert larger <= set(l_controllable(mdp, max(one, other)))


@settings(max_examples=100)
@given(st.integers(0, 2**32), RADII, st.permutations(range(15)))
def test_the_numbering_of_states_does_not_matter(seed: int, radius: float, order: list[int]) -> None:
    mdp = random_sparse(states=15, actions=2, branching=(1, 4), seed=seed)
    first, second = controllable_states(mdp, radius), controllable_states(renumbered(mdp, order), radius)
    assert [set(layer) for layer in first.layers] == [set(layer) for layer in second.layers]
    assert first.steps == {state: close(value) for state, value in second.steps.items()}
    assert set(first.boundary) == set(second.boundary)


@settings(max_examples=50)
@given(st.integers(0, 2**32), RADII)
def test_a_state_joins_at_its_admission_radius_and_not_before(seed: int, radius: float) -> None:
    mdp = random_sparse(states=12, actions=2, branching=(1, 4), seed=seed)
    truth = controllable_states(mdp, radius)
    for state, admission in truth.admission_radii.items():
        assert admission <= radius + ACCURACY
        assert state in controllable_states(mdp, admission + 1e-7).states
        if state != mdp.initial_state:
            assert state not in controllable_states(mdp, admission - 1e-7).states
        assert truth.steps[state] <= admission + ACCURACY


@settings(max_examples=50)
@given(st.integers(0, 2**32), RADII)
def test_the_set_is_closed_and_every_state_of_it_is_within_the_radius(seed: int, radius: float) -> None:
    mdp = random_sparse(states=15, actions=2, branching=(1, 4), seed=seed)
    truth = controllable_states(mdp, radius)
    for state in mdp.states:
        value = optimal_steps(mdp, state, allowed=truth.states)
        assert (value <= radius + ACCURACY) == (state in truth.states)
        assert truth.steps.get(state, value) == close(value)


# The objectives.


FORWARD = {f"s{number}": "forward" for number in range(5)}
SKIPPING = {"s0": "forward", "s1": "skip"}
BEST = {"s0": {}, "s1": FORWARD, "s2": FORWARD, "s3": FORWARD, "s4": FORWARD, "s5": SKIPPING}


def test_the_best_policies_meet_every_objective_exactly() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    for check, objective in (
        (check_within_radius, Objective.WITHIN_RADIUS),
        (check_staged, Objective.STAGED),
        (check_optimal, Objective.OPTIMAL),
    ):
        result = check(truth, BEST, epsilon=0.0)
        assert result.holds
        assert result.objective is objective
        assert result.missing == ()
    assert check_optimal(truth, BEST, epsilon=0.1).excess == close(-0.1)


def test_the_worst_state_is_named_with_its_excess() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    slow = BEST | {"s5": FORWARD}
    for check in (check_within_radius, check_staged, check_optimal):
        result = check(truth, slow, epsilon=0.1)
        assert not result.holds
        assert result.worst_state == "s5"
    assert check_within_radius(truth, slow, epsilon=0.1).excess == close(5 - 4.5 - 0.1)
    assert check_optimal(truth, slow, epsilon=0.1).excess == close(5 - 4 - 0.1)
    assert check_staged(truth, slow, epsilon=0.1).excess == close(5 - 4 - 0.1)
    assert check_within_radius(truth, slow, epsilon=0.5).holds


def test_the_objectives_differ_where_a_late_state_opens_a_shorter_path() -> None:
    # At radius 12 the end of the chain is two steps away; it joined at radius 4, and 12 steps are within the radius.
    truth = controllable_states(confusing_chain(), 12)
    steps = dict(truth.steps) | {"s5": 4.0}
    assert check_within_radius(truth, steps=steps, epsilon=0.0).holds
    assert check_staged(truth, steps=steps, epsilon=0.0).holds
    result = check_optimal(truth, steps=steps, epsilon=0.0)
    assert not result.holds
    assert (result.worst_state, result.excess) == ("s5", close(2.0))
    assert not check_staged(truth, steps=steps | {"s5": 4.5}, epsilon=0.0).holds


def test_missing_states_break_every_objective() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    partial = {state: policy for state, policy in BEST.items() if state not in ("s3", "s5")}
    for check in (check_within_radius, check_staged, check_optimal):
        result = check(truth, partial, epsilon=1.0)
        assert not result.holds
        assert result.missing == ("s5", "s3")
        assert result.excess <= 0


def test_a_policy_that_never_arrives_exceeds_without_end() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    result = check_optimal(truth, BEST | {"s4": {"s0": RESET}}, epsilon=1.0)
    assert (result.holds, result.worst_state, result.excess) == (False, "s4", math.inf)


def test_states_beyond_the_controllable_are_measured_too() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    beyond: Mapping[Any, Any] = BEST | {"s7": {"s0": "skip"}}
    assert check_within_radius(truth, beyond, epsilon=1.0).excess == close(11 - 4.5 - 1)
    assert check_staged(truth, beyond, epsilon=1.0).excess == close(11 - 4.5 - 1)
    optimal = check_optimal(truth, beyond, epsilon=1.0)
    assert optimal.holds
    assert optimal.excess == close(-1)


@settings(max_examples=100)
@given(oracle.tiny_models(), RADII, st.floats(0, 2), st.data())
def test_checks_measure_policies_like_brute_force(
    mdp: TabularMdp, radius: float, epsilon: float, data: st.DataObject
) -> None:
    brute = oracle.Truth(mdp)
    members = brute.controllable(radius)
    policies = {goal: data.draw(st.sampled_from(list(oracle.policies(mdp, mdp.states)))) for goal in members}
    steps = {goal: oracle.policy_steps(mdp, policy, goal) for goal, policy in policies.items()}
    truth = controllable_states(mdp, radius)
    for check, limits in (
        (check_within_radius, dict.fromkeys(members, radius)),
        (check_staged, {state: brute.admission_radius(state) for state in members}),
        (check_optimal, brute.values[members]),
    ):
        excess = max(steps[state] - limits[state] - epsilon for state in members)
        result = check(truth, policies, epsilon=epsilon)
        assert result.excess == close(excess)
        assert result.holds == (excess <= ACCURACY)
        assert check(truth, steps=steps, epsilon=epsilon).excess == close(excess)


# What is refused.


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf])
def test_a_radius_outside_its_range_is_refused(radius: float) -> None:
    for function in (controllable_states, l_controllable):
        with pytest.raises(InvalidSettingError, match="radius"):
            function(confusing_chain(), radius)


def test_unknown_states_and_actions_are_refused_by_name() -> None:
    mdp = confusing_chain()
    truth = controllable_states(mdp, 4.5)
    with pytest.raises(UnknownStateError, match="'t1'"):
        optimal_steps(mdp, "t1")
    with pytest.raises(UnknownStateError, match="'t1'"):
        optimal_steps(mdp, "s1", allowed=["s0", "t1"])
    with pytest.raises(UnknownStateError, match="'t1'"):
        check_optimal(truth, BEST | {"t1": {}}, epsilon=0.1)
    with pytest.raises(UnknownActionError, match="state 's0' has no action 'fly'"):
        check_optimal(truth, BEST | {"s1": {"s0": "fly"}}, epsilon=0.1)


def test_a_check_needs_policies_or_steps_and_an_epsilon() -> None:
    truth = controllable_states(confusing_chain(), 4.5)
    with pytest.raises(InvalidSettingError, match="policies or steps"):
        check_optimal(truth, epsilon=0.1)
    with pytest.raises(InvalidSettingError, match="policies or steps"):
        check_optimal(truth, BEST, steps=truth.steps, epsilon=0.1)
    with pytest.raises(InvalidSettingError, match="epsilon"):
        check_optimal(truth, BEST, epsilon=-0.1)
    with pytest.raises(InvalidSettingError, match="steps"):
        check_optimal(truth, steps=dict(truth.steps) | {"s1": math.nan}, epsilon=0.1)


def test_the_size_of_the_model_beyond_the_vicinity_does_not_matter() -> None:
    near, far = (controllable_states(slippery_grid(size, size), 6) for size in (12, 300))
    assert near.layers == far.layers
    assert near.steps == {state: close(value) for state, value in far.steps.items()}
