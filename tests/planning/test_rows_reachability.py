from __future__ import annotations

import numpy as np

from axplore.mdp import TabularMdp
from axplore.planning.rows import certain_states, leading_to, met_from_start, reachable_states

ROWS = {
    "start": {"a": {"left": 0.5, "right": 0.5}},
    "left": {"a": {"left": 1.0}},
    "right": {"a": {"goal": 0.1, "right": 0.9}, "b": {"left": 1.0}},
    "apart": {"a": {"right": 1.0}},
    "goal": {"a": {"left": 1.0}},
}
MDP = TabularMdp.from_rows(ROWS, "start")


def labels(mask: np.ndarray) -> set[object]:
    return {state for state, chosen in zip(MDP.states, mask, strict=True) if chosen}


def test_what_the_start_meets() -> None:
    assert labels(met_from_start(MDP)) == {"start", "left", "right", "goal"}


def test_where_the_goal_is_certain_without_reset() -> None:
    inside, staying = certain_states(MDP, MDP.index_of("goal"))
    assert labels(inside) == {"right", "apart", "goal"}
    assert np.flatnonzero(staying).tolist() == [MDP.pair_of("right", "a"), MDP.pair_of("apart", "a")]


def test_several_starts_and_backward_search() -> None:
    offsets, successors = np.array([0, 1, 2, 2, 3]), np.array([1, 0, 2])
    assert reachable_states(np.array([0]), offsets, successors).tolist() == [True, True, False, False]
    assert reachable_states(np.array([0, 3, 3]), offsets, successors).tolist() == [True, True, True, True]
    assert leading_to(np.array([2]), np.array([0, 1, 3]), successors, 4).tolist() == [False, False, True, True]
