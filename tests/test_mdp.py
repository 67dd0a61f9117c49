from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.errors import InvalidModelError, UnknownActionError, UnknownStateError
from axplore.mdp import TabularMdp
from axplore.types import RESET

ROWS = {
    "dock": {"sail": {"sea": 0.75, "dock": 0.25}},
    "sea": {"sail": {"isle": 1.0}, "drift": {"sea": 0.5, "dock": 0.5}},
    "isle": {},
}
DENSE = np.array(
    [
        [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]],
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)
AVAILABLE = [[True, False], [True, True], [False, False]]


def from_dense(**changes: Any) -> TabularMdp:
    settings: dict[str, Any] = {
        "probabilities": DENSE,
        "initial_state": "dock",
        "states": ["dock", "sea", "isle"],
        "actions": ["sail", "drift"],
        "available": AVAILABLE,
    }
    return TabularMdp.from_arrays(**(settings | changes))


def from_numbers(**changes: Any) -> TabularMdp:
    settings: dict[str, Any] = {
        "states": ["dock", "sea", "isle"],
        "actions": ["sail", "drift"],
        "initial_state": "dock",
        "pair_states": [0, 1, 1],
        "pair_actions": [0, 0, 1],
        "entry_pairs": [2, 2, 1, 0, 0],
        "successors": [1, 0, 2, 0, 1],
        "probabilities": [0.5, 0.5, 1.0, 0.25, 0.75],
    }
    return TabularMdp.from_entries(**(settings | changes))


def rows_of(mdp: TabularMdp) -> dict[Any, Any]:
    return {state: {action: mdp.row(state, action) for action in mdp.actions_of(state)} for state in mdp.states}


def changed(state: str, action: str, row: dict[str, float]) -> dict[Any, Any]:
    return ROWS | {state: ROWS[state] | {action: row}}


def test_a_model_gives_back_the_rows_it_was_built_from() -> None:
    mdp = TabularMdp.from_rows(ROWS, "dock")
    assert rows_of(mdp) == ROWS
    assert (mdp.n_states, mdp.n_pairs, mdp.n_transitions) == (3, 3, 5)
    assert mdp.initial_state == "dock"


def test_all_builders_agree() -> None:
    outcomes = {
        "dock": {"sail": [(0.5, "sea", 0.0, False), (0.25, "dock", 0.0, False), (0.25, "sea", 0.0, False)]},
        "sea": {
            "sail": [(1.0, "isle", 1.0, True)],
            "drift": [(0.5, "sea", 0.0, False), (0.5, "dock", 0.0, False), (0.0, "isle", 0.0, False)],
        },
        "isle": {"sail": [(1.0, "isle", 0.0, True)]},
    }
    rows = TabularMdp.from_rows(ROWS, "dock")
    for other in (from_dense(), from_numbers(), TabularMdp.from_gymnasium(outcomes, "dock")):
        assert other.states == rows.states
        assert other.actions == rows.actions
        assert other.initial_index == rows.initial_index
        for name in ("state_pairs", "pair_actions", "row_offsets", "successors", "probabilities"):
            np.testing.assert_array_equal(getattr(other, name), getattr(rows, name), err_msg=name)


def test_dense_arrays_have_numbers_as_labels_unless_others_are_given() -> None:
    mdp = TabularMdp.from_arrays([[[0.0, 1.0]], [[1.0, 0.0]]])
    assert (mdp.states, mdp.actions, mdp.initial_state) == ((0, 1), (0,), 0)


def test_a_terminal_state_loses_its_rows() -> None:
    mdp = TabularMdp.from_arrays([[[0.0, 1.0]], [[math.nan, 5.0]]], terminal=[1])
    assert mdp.is_terminal(1)
    assert not mdp.is_terminal(0)


def test_the_frozen_lake_ends_in_its_holes_and_its_goal() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    lake = gymnasium.make("FrozenLake-v1").unwrapped
    mdp = TabularMdp.from_gymnasium(lake.P, 0)
    assert [state for state in mdp.states if mdp.is_terminal(state)] == [5, 7, 11, 12, 15]
    assert mdp.row(14, 1) == pytest.approx({13: 1 / 3, 14: 1 / 3, 15: 1 / 3})
    assert mdp.row(0, 0) == pytest.approx({0: 2 / 3, 4: 1 / 3})


def test_a_state_entered_as_terminated_is_terminal_whatever_its_own_rows_say() -> None:
    mdp = TabularMdp.from_gymnasium({0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, False)]}}, 0)
    assert not mdp.is_terminal(1)
    ended = TabularMdp.from_gymnasium({0: {0: [(1.0, 1, 0.0, True)]}, 1: {0: [(1.0, 1, 0.0, False)]}}, 0)
    assert ended.is_terminal(1)


def test_an_outcome_of_probability_zero_ends_nothing() -> None:
    outcomes = {0: {0: [(1.0, 1, 0.0, False), (0.0, 1, 0.0, True)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    assert not TabularMdp.from_gymnasium(outcomes, 0).is_terminal(1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sea": 0.5, "dock": 0.4}, r"state 'sea', action 'drift': the probabilities sum to 0\.9, not to 1"),
        ({}, r"state 'sea', action 'drift': the probabilities sum to 0, not to 1"),
        ({"sea": 1.5, "dock": -0.5}, r"state 'sea', action 'drift': the probability of 'dock' is -0\.5"),
        ({"sea": math.nan, "dock": 1.0}, r"state 'sea', action 'drift': the probability of 'sea' is nan"),
        ({"sea": math.inf}, r"state 'sea', action 'drift': the probability of 'sea' is inf"),
        ({"reef": 1.0}, r"state 'sea', action 'drift': successor 'reef' is not a state"),
    ],
)
def test_a_bad_row_is_refused_with_its_state_and_action(row: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        TabularMdp.from_rows(changed("sea", "drift", row), "dock")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (0.6, r"state 'sea', action 'drift': the probabilities sum to 1\.1"),
        (-0.5, r"state 'sea', action 'drift': the probability of 'dock' is -0\.5"),
        (math.nan, r"state 'sea', action 'drift': the probability of 'dock' is nan"),
    ],
)
def test_a_bad_dense_entry_is_refused_with_its_state_and_action(entry: float, message: str) -> None:
    dense = DENSE.copy()
    dense[1, 1, 0] = entry
    with pytest.raises(InvalidModelError, match=message):
        from_dense(probabilities=dense)


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([(0.5, 1, 0.0, False)], "state 0, action 'a': the probabilities sum to 0.5"),
        ([(1.5, 1, 0.0, False), (-0.5, 1, 0.0, False)], "state 0, action 'a': the probability of 1 is -0.5"),
        ([(math.nan, 1, 0.0, False)], "state 0, action 'a': the probability of 1 is nan"),
        ([(1.0, 2, 0.0, False)], "state 0, action 'a': successor 2 is not a state"),
        ([(1.0, 1)], "state 0, action 'a': an outcome must be"),
        ([(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)], "state 1 is entered both as terminal and as not terminal"),
    ],
)
def test_a_bad_outcome_is_refused_with_its_state_and_action(outcomes: list[Any], message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        TabularMdp.from_gymnasium({0: {"a": outcomes}, 1: {"a": [(1.0, 0, 0.0, False)]}}, 0)


def test_the_first_offending_row_is_the_one_named() -> None:
    rows = changed("sea", "drift", {"sea": 0.1}) | {"isle": {"wait": {"isle": 0.2}}}
    with pytest.raises(InvalidModelError, match="state 'sea', action 'drift'"):
        TabularMdp.from_rows(rows, "dock")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": ["dock", "sea", "dock"]}, "the label 'dock' is carried by states 0 and 2"),
        ({"states": ["dock", "sea"]}, "for 3 states and 2 actions, but 2 labels and 2 names"),
        ({"actions": ["sail", "sail"]}, "action names are not distinct"),
        ({"initial_state": "reef"}, "no initial state 'reef'"),
        ({"terminal": ["reef"]}, "no terminal state 'reef'"),
        ({"probabilities": np.zeros((3, 2))}, r"the shape \[S, A, S\], not \[3, 2\]"),
        ({"probabilities": np.zeros((3, 2, 4))}, r"the shape \[S, A, S\], not \[3, 2, 4\]"),
        ({"available": [[True]]}, r"available must have the shape \[S, A\], not \[1, 1\]"),
    ],
)
def test_dense_arrays_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        from_dense(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": ["dock", "sea", "dock"]}, "the label 'dock' is carried by states 0 and 2"),
        ({"actions": ["sail", "sail"]}, "action names are not distinct"),
        ({"initial_state": "reef"}, "no initial state 'reef'"),
        ({"pair_states": [0, 1, 3]}, r"pair_states\[2\] is 3; it must be a whole number from 0 to 2"),
        ({"pair_actions": [0, 0, -1]}, r"pair_actions\[2\] is -1; it must be a whole number from 0 to 1"),
        ({"entry_pairs": [2, 2, 1, 0, 7]}, r"entry_pairs\[4\] is 7; it must be a whole number from 0 to 2"),
        ({"successors": [1, 0, 9, 0, 1]}, r"successors\[2\] is 9; it must be a whole number from 0 to 2"),
        ({"pair_states": [1, 0, 1]}, "pair_states must be ascending"),
        ({"pair_actions": [0, 1, 1]}, "state 'sea' has two pairs with the action 'drift'"),
        ({"probabilities": [1.0]}, "5 entries with 5 successors and 1 probabilities"),
        ({"pair_actions": [0]}, "3 pair states with 1 actions"),
        ({"probabilities": [0.5, 0.4, 1.0, 0.25, 0.75]}, "state 'sea', action 'drift': the probabilities sum to 0.9"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        from_numbers(**changes)


def test_an_empty_model_is_refused_by_every_builder() -> None:
    nothing: dict[Any, Any] = {"pair_states": [], "pair_actions": [], "entry_pairs": [], "successors": []}
    builders: tuple[Callable[[], TabularMdp], ...] = (
        lambda: TabularMdp.from_rows({}, "dock"),
        lambda: TabularMdp.from_arrays(np.zeros((0, 2, 0))),
        lambda: TabularMdp.from_gymnasium({}, 0),
        lambda: TabularMdp.from_entries([], [], "dock", probabilities=[], **nothing),
    )
    for build in builders:
        with pytest.raises(InvalidModelError, match="no states"):
            build()


def test_a_model_of_one_terminal_state_is_a_model() -> None:
    mdp = TabularMdp.from_rows({"only": {}}, "only")
    assert (mdp.n_states, mdp.n_pairs, mdp.n_transitions) == (1, 0, 0)


def test_an_unknown_initial_state_is_refused_by_name() -> None:
    with pytest.raises(InvalidModelError, match="no initial state 'reef'; the model has 3 states: 'dock'"):
        TabularMdp.from_rows(ROWS, "reef")


def test_unknown_states_and_actions_are_refused_by_name() -> None:
    mdp = TabularMdp.from_rows(ROWS, "dock")
    with pytest.raises(UnknownStateError, match="'reef'"):
        mdp.actions_of("reef")
    with pytest.raises(UnknownActionError, match=r"state 'dock' has no action 'drift'; it has \['sail'\] and RESET"):
        mdp.row("dock", "drift")
    with pytest.raises(UnknownActionError, match="RESET"):
        mdp.pair_of("isle", RESET)


def test_rounding_in_the_callers_sums_is_scaled_away() -> None:
    mdp = TabularMdp.from_rows({"a": {"go": {"a": 0.1 + 2e-10, "b": 0.9}}, "b": {}}, "a")
    assert sum(mdp.row("a", "go").values()) == pytest.approx(1.0, abs=1e-15)


def test_probabilities_of_zero_are_not_stored() -> None:
    mdp = TabularMdp.from_rows({"a": {"go": {"a": 0.0, "b": 1.0}}, "b": {}}, "a")
    assert mdp.row("a", "go") == {"b": 1.0}
    assert mdp.n_transitions == 1


def test_a_model_cannot_be_changed() -> None:
    mdp = TabularMdp.from_rows(ROWS, "dock")
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.initial_index = 1  # type: ignore[misc]
    arrays = ("state_pairs", "pair_actions", "row_offsets", "successors", "probabilities", "pair_states")
    for name in (*arrays, "transition_pairs"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(mdp, name)[0] = 1


def test_a_model_does_not_follow_changes_of_what_it_was_built_from() -> None:
    dense, actions, probabilities = DENSE.copy(), np.array([0, 0, 1]), np.array([0.5, 0.5, 1.0, 0.25, 0.75])
    built = [from_dense(probabilities=dense), from_numbers(pair_actions=actions, probabilities=probabilities)]
    dense[:] = 7
    actions[:] = 7
    probabilities[:] = 7
    assert [rows_of(mdp) for mdp in built] == [ROWS, ROWS]


def test_outside_a_restriction_a_state_only_resets() -> None:
    mdp = TabularMdp.from_rows(ROWS, "dock").restricted_to(["dock"])
    assert rows_of(mdp) == {"dock": ROWS["dock"], "sea": {}, "isle": {}}


def test_the_vicinity_holds_what_restricted_policies_can_meet() -> None:
    mdp = TabularMdp.from_rows(ROWS, "dock")
    assert rows_of(mdp.vicinity_of(["dock"])) == {"dock": ROWS["dock"], "sea": {}}
    assert rows_of(mdp.vicinity_of(["sea"])) == {"dock": {}, "sea": ROWS["sea"], "isle": {}}
    assert rows_of(mdp.vicinity_of([])) == {"dock": {}}
    assert rows_of(mdp.vicinity_of(["sea", "isle", "dock"])) == ROWS


@given(st.data())
def test_the_vicinity_is_the_restriction_without_the_states_it_cannot_meet(data: st.DataObject) -> None:
    n_states = data.draw(st.integers(1, 6))
    weights = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=2 * n_states**2, max_size=2 * n_states**2)), dtype=np.float64
    ).reshape(n_states, 2, n_states)
    sums = weights.sum(axis=2)
    dense = weights / np.maximum(sums, 1)[:, :, None]
    start = data.draw(st.integers(0, n_states - 1))
    allowed = data.draw(st.sets(st.integers(0, n_states - 1)))
    mdp = TabularMdp.from_arrays(dense, start, available=sums > 0)
    restricted = rows_of(mdp.restricted_to(allowed))
    met = {start} | allowed
    for state in allowed:
        met.update(*restricted[state].values())
    vicinity = mdp.vicinity_of(allowed)
    assert rows_of(vicinity) == {state: restricted[state] for state in sorted(met)}
    assert vicinity.initial_state == start
