"""Surveys: every action near the start once, the nearest first, alike in every world."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from axplore.domains import random_maze, random_sparse, slippery_grid
from axplore.errors import InvalidOrderError
from axplore.mdp import TabularMdp
from axplore.types import Action, State
from axplore.worlds import walkers
from axplore.worlds.contract import Answer, Survey
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.walkers import SurveyedGraph

NOTHING = np.zeros(0, dtype=np.int64)


class ModelSystem:
    """A model with certain steps as a system that is stepped in Python."""

    def __init__(self, mdp: TabularMdp) -> None:
        self._mdp = mdp
        self._state: State = mdp.initial_state

    def reset(self) -> State:
        self._state = self._mdp.initial_state
        return self._state

    def actions(self, state: State) -> tuple[Action, ...]:
        return self._mdp.actions_of(state)

    def step(self, action: Action) -> State:
        (self._state,) = self._mdp.row(self._state, action)
        return self._state


def graph_of(mdp: TabularMdp) -> Mapping[State, Mapping[Action, State]]:
    return {
        state: {action: next(iter(mdp.row(state, action))) for action in mdp.actions_of(state)} for state in mdp.states
    }


def depths_of(mdp: TabularMdp) -> Mapping[State, int]:
    """By breadth-first search on the truth."""
    graph, depths, queue = graph_of(mdp), {mdp.initial_state: 0}, deque([mdp.initial_state])
    while queue:
        here = queue.popleft()
        for after in graph[here].values():
            if after not in depths:
                depths[after] = depths[here] + 1
                queue.append(after)
    return depths


def survey(
    world: SimulatedWorld | SteppedWorld, max_depth: int, plays: int = 10**6, known: Mapping[str, Any] | None = None
) -> Answer:
    before = {"states": NOTHING, "actions": NOTHING, "successors": NOTHING, **(known or {})}
    (answer,) = world.carry_out([Survey(**before, max_depth=max_depth, plays=plays)])
    return answer


MODELS = {
    "grid": slippery_grid(rows=5, columns=6, slip=0),
    "maze": random_maze(rows=8, columns=8, seed=3),
    "large maze": random_maze(rows=20, columns=20, seed=1),
    "tangle": random_sparse(states=400, actions=3, branching=(1, 1), seed=2),
    "walls": slippery_grid(rows=4, columns=4, slip=0, walls=((1, 1), (2, 1)), start=(2, 2)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("max_depth", [0, 3, 100])
def test_every_action_near_the_start_is_played_and_no_other(name: str, max_depth: int) -> None:
    mdp = MODELS[name]
    depths = depths_of(mdp)
    world = SimulatedWorld(mdp, seed=0)
    answer = survey(world, max_depth)
    drawn = {
        (world.states[state], action) for state, action in zip(answer.pair_states, answer.pair_actions, strict=True)
    }
    near = [state for state, depth in depths.items() if depth <= max_depth]
    assert drawn == {(state, action) for state in near for action in range(len(mdp.actions_of(state)))}
    assert answer.completed == len(drawn)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("max_depth", [4, 7, 30])
def test_a_system_that_is_stepped_is_surveyed_in_the_same_way(name: str, max_depth: int) -> None:
    mdp = MODELS[name]
    simulated = SimulatedWorld(mdp, seed=0)
    stepped = SteppedWorld(lambda: ModelSystem(mdp))
    for plays in (7, 5, 10**6):  # the later ones begin where the earlier ones end, and know nothing
        ours, theirs = survey(simulated, max_depth, plays), survey(stepped, max_depth, plays)
        assert ours.steps == theirs.steps
        for field in ("pair_states", "pair_actions", "pair_draws", "entry_successors", "entry_counts"):
            assert np.array_equal(getattr(ours, field), getattr(theirs, field)), field
    assert list(simulated.states) == list(stepped.states)


def test_what_is_named_as_known_is_not_played_again() -> None:
    mdp = MODELS["grid"]
    world = SimulatedWorld(mdp, seed=0)
    first = survey(world, 3)
    known = {"states": first.pair_states, "actions": first.pair_actions, "successors": first.entry_successors}
    assert survey(world, 3, known=known).steps == 0
    assert survey(world, 4, known=known).completed > 0


def test_it_ends_when_an_action_leads_elsewhere_than_before() -> None:
    world = SimulatedWorld(slippery_grid(slip=0.4), seed=0)
    answer = survey(world, 100)
    surprised = np.bincount(answer.entry_pairs).max()
    assert surprised == 2  # one pair with two successors, and no further step after that


@pytest.mark.parametrize(
    "wrong",
    [
        {"states": np.array([5])},
        {"actions": np.array([9])},
        {"successors": np.array([5])},
        {"states": np.array([0, 0]), "actions": np.array([0, 0]), "successors": np.array([0, 0])},
        {"states": np.array([0.5])},
        {"states": np.array([-1])},
    ],
)
def test_a_survey_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    known = {"states": np.array([0]), "actions": np.array([0]), "successors": np.array([0]), **wrong}
    with pytest.raises(InvalidOrderError):
        survey(SimulatedWorld(MODELS["grid"], seed=0), 3, known=known)


class PlainSearch(SurveyedGraph):
    """One search over everything for each action, which is what a survey is defined by."""

    def route_to_unplayed(self, position: int) -> list[int]:
        route = self._searched(position, 10**9, 10**9)
        assert route is not None
        return route


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("max_depth", [5, 9, 100])
def test_what_is_left_out_of_searches_changes_nothing(
    name: str, max_depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mdp = MODELS[name]
    ours = survey(SteppedWorld(lambda: ModelSystem(mdp)), max_depth)
    monkeypatch.setattr(walkers, "SurveyedGraph", PlainSearch)
    plain = survey(SteppedWorld(lambda: ModelSystem(mdp)), max_depth)
    for field in ("steps", "pair_states", "pair_actions", "pair_draws", "entry_successors", "entry_counts"):
        assert np.array_equal(getattr(ours, field), getattr(plain, field)), field


def test_states_are_searched_a_few_times_each_and_not_once_for_each_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near its end, a survey of a tangle finds what is left at the other end of everything."""
    looked_at = {}
    for n_states in (500, 4000):
        mdp = random_sparse(states=n_states, actions=3, branching=(1, 1), seed=2)
        calls: list[int] = []
        with monkeypatch.context() as patched:
            patched.setattr(SurveyedGraph, "_is_open", counting(SurveyedGraph._is_open, calls))
            survey(SteppedWorld(partial(ModelSystem, mdp)), 100)
        looked_at[n_states] = len(calls) / n_states
    assert looked_at[4000] < 1.5 * looked_at[500]  # 2.7 times by one search over everything for each action


def counting(method: Callable[[SurveyedGraph, int], bool], calls: list[int]) -> Callable[[SurveyedGraph, int], bool]:
    def counted(graph: SurveyedGraph, state: int) -> bool:
        calls.append(state)
        return method(graph, state)

    return counted
