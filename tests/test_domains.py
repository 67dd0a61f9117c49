from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from axplore.domains import (
    DOMAINS,
    combination_lock,
    confusing_chain,
    domain,
    layered,
    random_sparse,
    slippery_grid,
    star,
    two_branch_toy,
)
from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.mdp import TabularMdp

LARGE: dict[str, dict[str, Any]] = {
    "confusing-chain": {"chain_length": 50_000, "confusing_states": 50_000},
    "star": {"arms": 100, "arm_length": 1_000},
    "layered": {"arms": 1_000, "arm_length": 100},
    "slippery-grid": {"rows": 250, "columns": 400},
    "random-sparse": {"states": 100_000},
}


def test_the_chain_is_the_papers() -> None:
    mdp = confusing_chain()
    assert mdp.states == tuple(f"s{number}" for number in range(12))
    assert mdp.initial_state == "s0"
    assert all(len(mdp.actions_of(state)) == 2 for state in mdp.states)
    assert mdp.row("s0", "forward") == {"s1": 1.0}
    assert mdp.row("s0", "skip") == pytest.approx({f"s{number}": 1 / 6 for number in range(6, 12)})
    for number in range(1, 5):
        assert mdp.row(f"s{number}", "forward") == {f"s{number + 1}": 1.0}
        assert mdp.row(f"s{number}", "skip") == pytest.approx({f"s{number}": 2 / 3, "s5": 1 / 3})
    for action in ("forward", "skip"):
        assert mdp.row("s5", action) == {"s0": 1.0}
        assert all(mdp.row(f"s{number}", action) == {"s5": 1.0} for number in range(6, 12))


def test_the_chains_parameters_change_what_they_say() -> None:
    mdp = confusing_chain(chain_length=6, confusing_states=2, skip=3, skip_probability=0.25, forward_probability=0.75)
    assert mdp.n_states == 9
    assert mdp.row("s0", "forward") == pytest.approx({"s0": 0.25, "s1": 0.75})
    assert mdp.row("s0", "skip") == pytest.approx({"s7": 0.5, "s8": 0.5})
    assert mdp.row("s1", "skip") == pytest.approx({"s1": 0.75, "s4": 0.25})
    assert mdp.row("s5", "skip") == pytest.approx({"s5": 0.75, "s6": 0.25})
    assert mdp.row("s5", "forward") == pytest.approx({"s5": 0.25, "s6": 0.75})
    assert mdp.row("s8", "skip") == {"s6": 1.0}


def test_the_shortest_chain_is_its_own_end() -> None:
    mdp = confusing_chain(chain_length=1, confusing_states=1)
    assert mdp.row("s0", "forward") == {"s1": 1.0}
    assert mdp.row("s1", "skip") == {"s0": 1.0}
    assert mdp.row("s2", "skip") == {"s1": 1.0}


def test_the_lock_has_the_probabilities_of_the_papers_figure() -> None:
    mdp = combination_lock()
    assert mdp.initial_state == "s3"
    left = {
        "s0": {"s0": 1},
        "s1": {"s0": 1},
        "s2": {"s1": 2 / 3, "s0": 1 / 3},
        "s3": {"s2": 6 / 11, "s1": 3 / 11, "s0": 2 / 11},
        "s4": {"s3": 12 / 25, "s2": 6 / 25, "s1": 4 / 25, "s0": 3 / 25},
        "s5": {"s4": 60 / 137, "s3": 30 / 137, "s2": 20 / 137, "s1": 15 / 137, "s0": 12 / 137},
    }
    for number, state in enumerate(mdp.states):
        assert mdp.row(state, "left") == pytest.approx(left[str(state)])
        assert mdp.row(state, "right") == {f"s{min(5, number + 1)}": 1.0}


def test_the_lock_starts_at_two_thirds_counted_from_one_or_where_it_is_told() -> None:
    assert combination_lock(9).initial_state == "s5"
    assert combination_lock(2).initial_state == "s0"
    assert combination_lock(6, initial_state=0).initial_state == "s0"


def test_the_star_moves_out_and_in_along_every_arm() -> None:
    mdp = star(arms=3, arm_length=2)
    assert mdp.n_states == 7
    assert mdp.actions_of("s0") == ("arm1", "arm2", "arm3")
    assert mdp.row("s0", "arm3") == {"arm3.1": 1.0}
    assert mdp.actions_of("arm2.1") == ("out", "in")
    assert mdp.row("arm2.1", "out") == {"arm2.2": 1.0}
    assert mdp.row("arm2.1", "in") == {"s0": 1.0}
    assert mdp.actions_of("arm2.2") == ("in",)
    assert mdp.row("arm2.2", "in") == {"arm2.1": 1.0}


def test_arms_of_one_state_only_lead_back() -> None:
    mdp = star(arms=2, arm_length=1)
    assert {state: mdp.actions_of(state) for state in mdp.states} == {
        "s0": ("arm1", "arm2"),
        "arm1.1": ("in",),
        "arm2.1": ("in",),
    }
    assert mdp.row("arm2.1", "in") == {"s0": 1.0}


def test_the_layers_lead_to_one_terminal_end() -> None:
    mdp = layered()
    assert mdp.row("s0", "go") == pytest.approx({f"arm{arm}.1": 1 / 3 for arm in (1, 2, 3)})
    for arm in (1, 2, 3):
        assert mdp.row(f"arm{arm}.1", "go") == {f"arm{arm}.2": 1.0}
        assert mdp.row(f"arm{arm}.2", "go") == {"end": 1.0}
    assert mdp.is_terminal("end")


@pytest.mark.parametrize("length", [1, 2, 5])
def test_both_branches_are_as_likely_and_entered_after_the_expected_time(length: int) -> None:
    mdp = two_branch_toy(length)
    row = mdp.row("s0", "go")
    assert row["x"] == row["y"]
    assert 1 / (1 - row["s0"]) == pytest.approx(length + 1 / 2)
    assert mdp.row("y", "go") == {"x": 1.0}
    assert mdp.is_terminal("x")


def test_a_step_of_the_grid_slips_to_either_side() -> None:
    mdp = slippery_grid(3, 4, slip=0.2)
    assert mdp.states == tuple((row, column) for row in range(3) for column in range(4))
    assert mdp.actions == ("up", "down", "left", "right")
    assert mdp.row((1, 1), "up") == pytest.approx({(0, 1): 0.8, (1, 0): 0.1, (1, 2): 0.1})
    assert mdp.row((1, 1), "down") == pytest.approx({(2, 1): 0.8, (1, 0): 0.1, (1, 2): 0.1})
    assert mdp.row((1, 1), "left") == pytest.approx({(1, 0): 0.8, (0, 1): 0.1, (2, 1): 0.1})
    assert mdp.row((1, 1), "right") == pytest.approx({(1, 2): 0.8, (0, 1): 0.1, (2, 1): 0.1})


def test_the_borders_and_walls_of_the_grid_hold() -> None:
    mdp = slippery_grid(2, 3, slip=0.2, walls=[(0, 1)], start=(1, 2))
    assert mdp.initial_state == (1, 2)
    assert (0, 1) not in mdp.states
    assert mdp.row((0, 0), "up") == {(0, 0): 1.0}
    assert mdp.row((0, 0), "right") == pytest.approx({(0, 0): 0.9, (1, 0): 0.1})
    assert mdp.row((1, 1), "up") == pytest.approx({(1, 1): 0.8, (1, 0): 0.1, (1, 2): 0.1})
    assert mdp.row((1, 2), "down") == pytest.approx({(1, 2): 0.9, (1, 1): 0.1})


def test_a_grid_without_slip_is_certain() -> None:
    mdp = slippery_grid(4, 4, slip=0)
    assert set(mdp.probabilities.tolist()) == {1.0}
    assert mdp.row((2, 2), "left") == {(2, 1): 1.0}


def test_a_maze_is_the_slippery_grid_that_its_drawing_shows() -> None:
    drawn = domain("maze", drawing=".#S/...", slip="0.2")
    grid = slippery_grid(rows=2, columns=3, slip=0.2, walls=[(0, 1)], start=(0, 2))
    assert drawn.states == grid.states
    assert drawn.initial_state == (0, 2)
    np.testing.assert_array_equal(drawn.probabilities, grid.probabilities)
    assert domain("maze").n_states == 32


def test_random_models_have_the_branching_they_are_asked_for() -> None:
    mdp = random_sparse(states=7, actions=3, branching=(2, 7), seed=5)
    widths = np.diff(mdp.row_offsets)
    assert mdp.n_pairs == 21
    assert set(widths.tolist()) == set(range(2, 8))
    assert {len(mdp.row(state, action)) for state in mdp.states for action in mdp.actions} == set(range(2, 8))


def test_every_set_of_successors_is_as_likely_as_the_next() -> None:
    mdp = random_sparse(states=5, actions=4_000, branching=(2, 2), seed=1)
    sets = mdp.successors.reshape(-1, 2)
    counts = np.zeros((5, 5), dtype=int)
    np.add.at(counts, (sets[:, 0], sets[:, 1]), 1)
    found = counts[np.triu_indices(5, k=1)]
    assert found.sum() == mdp.n_pairs  # successors are ascending, so all sets lie in this triangle
    expected = mdp.n_pairs / 10
    statistic = ((found - expected) ** 2 / expected).sum()
    assert statistic < 33.7  # chi-square with 9 degrees of freedom: exceeded once in 10,000


def test_the_seed_decides_the_random_model() -> None:
    first, again, other = (random_sparse(states=20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.successors, again.successors)
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert not np.array_equal(first.probabilities, other.probabilities)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("confusing-chain", "chain_length", 0),
        ("confusing-chain", "chain_length", 2.5),
        ("confusing-chain", "confusing_states", 0),
        ("confusing-chain", "skip", 0),
        ("confusing-chain", "skip_probability", 0.0),
        ("confusing-chain", "skip_probability", float("nan")),
        ("confusing-chain", "forward_probability", 1.5),
        ("combination-lock", "states", 1),
        ("combination-lock", "initial_state", 6),
        ("combination-lock", "initial_state", -1),
        ("star", "arms", 0),
        ("star", "arm_length", 0),
        ("layered", "arms", 0),
        ("layered", "arm_length", 0),
        ("two-branch", "length", 0),
        ("slippery-grid", "rows", 0),
        ("slippery-grid", "columns", -1),
        ("slippery-grid", "slip", -0.1),
        ("slippery-grid", "slip", 1.1),
        ("slippery-grid", "walls", [(6, 0)]),
        ("slippery-grid", "walls", [(0, 0)]),
        ("slippery-grid", "start", (0, 6)),
        ("maze", "drawing", ""),
        ("maze", "drawing", "S.../.."),
        ("maze", "drawing", "..../..S?"),
        ("maze", "drawing", "S..S"),
        ("maze", "slip", 2.0),
        ("random-sparse", "states", 0),
        ("random-sparse", "actions", 0),
        ("random-sparse", "branching", (4, 3)),
        ("random-sparse", "branching", (0, 3)),
        ("random-sparse", "branching", (3, 101)),
        ("random-sparse", "seed", -1),
        ("star", "arms", "many"),
        ("confusing-chain", "skip_probability", "1/0"),
        ("slippery-grid", "start", "1"),
        ("slippery-grid", "walls", "1,2;3"),
    ],
)
def test_a_bad_parameter_is_refused_by_its_name(name: str, parameter: str, value: Any) -> None:
    with pytest.raises(InvalidSettingError, match=parameter):
        domain(name, **{parameter: value})


def test_unknown_names_are_refused_with_what_exists() -> None:
    with pytest.raises(UnknownNameError, match="no world named 'labyrinth'"):
        domain("labyrinth")
    with pytest.raises(UnknownNameError, match="no parameter of star named 'legs'"):
        domain("star", legs=3)


def test_text_is_read_as_the_type_of_the_parameter() -> None:
    text = {"rows": "2", "columns": "3", "slip": "1/5", "walls": "0,1 0,2", "start": "1,2"}
    grid = domain("slippery-grid", **text)
    same = slippery_grid(rows=2, columns=3, slip=0.2, walls=[(0, 1), (0, 2)], start=(1, 2))
    assert grid.states == same.states
    assert grid.initial_state == same.initial_state
    np.testing.assert_allclose(grid.probabilities, same.probabilities)
    assert domain("combination-lock", states="7", initial_state="2").initial_state == "s2"
    assert np.diff(domain("random-sparse", branching="2,2").row_offsets).tolist() == [2] * 400
    assert domain("confusing-chain", forward_probability="0.5").row("s0", "forward") == {"s0": 0.5, "s1": 0.5}


@pytest.mark.parametrize("name", DOMAINS)
def test_every_domain_has_defaults_and_a_type_for_each_parameter_that_text_can_be_read_as(name: str) -> None:
    assert isinstance(domain(name), TabularMdp)


@pytest.mark.parametrize("name", LARGE)
def test_a_hundred_thousand_states_are_built(name: str) -> None:
    mdp = domain(name, **LARGE[name])
    assert 100_000 <= mdp.n_states <= 100_010
    sums = np.add.reduceat(mdp.probabilities, mdp.row_offsets[:-1])
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)
