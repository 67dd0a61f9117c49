from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import axplore
from axplore.domains import confusing_chain
from axplore.errors import UnknownNameError
from axplore.truth import controllable_states
from axplore.worlds.catalogue import known_model, named_world
from axplore.worlds.contract import Visit
from axplore.worlds.systems import BEGIN, VIRTUAL_START


def newest(name: str) -> str:
    """The identifier of the newest version of a toy environment, which differs between versions of Gymnasium."""
    versions = [spec for spec in gymnasium.registry.values() if spec.name == name]
    return str(max(versions, key=lambda spec: spec.version or 0).id)


def test_a_domain_is_known() -> None:
    assert known_model("confusing-chain", {}).states == confusing_chain().states


def test_the_truth_about_a_certain_lake_is_by_hand() -> None:
    """On the 4×4 lake without slipping, every cell that is reached around the holes takes its distance."""
    truth = controllable_states(known_model("gym:FrozenLake-v1", {"is_slippery": "false"}), 6)
    assert {state: truth.steps[state] for state in (1, 4, 5, 6, 9, 15)} == {1: 1, 4: 1, 5: 2, 6: 3, 9: 3, 15: 6}
    assert len(truth.states) == 16


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("FrozenLake", {}),
        ("FrozenLake", {"map_name": "8x8"}),
        ("CliffWalking", {}),
        ("CliffWalking", {"is_slippery": True}),
        ("Taxi", {"start": "pinned", "pin": 3}),
        ("Taxi", {"start": "virtual"}),
    ],
)
def test_a_toy_environment_moves_as_its_model_says(name: str, parameters: dict[str, Any]) -> None:
    identifier = f"gym:{newest(name)}"
    world, model = named_world(identifier, 0, parameters), known_model(identifier, parameters)
    assert world.states[0] == model.initial_state
    draws = 2000
    for position, action in enumerate(world.actions_of(0)):
        order = Visit(state=0, action=position, times=draws, policy=np.full(1, -1), max_journey=1)
        (answer,) = world.carry_out([order])
        places = np.flatnonzero(answer.pair_actions[answer.entry_pairs] == position)
        met = {world.states[answer.entry_successors[place]]: answer.entry_counts[place] / draws for place in places}
        row = model.row(model.initial_state, action)
        assert met.keys() <= row.keys()
        # Five deviations of a share of 2,000 draws are at most 0.056: a right row fails once in a million tries.
        assert all(abs(met.get(successor, 0.0) - chance) < 0.056 for successor, chance in row.items())


def test_a_random_start_is_known_behind_the_virtual_one_only() -> None:
    taxi = f"gym:{newest('Taxi')}"
    model = known_model(taxi, {"start": "virtual"})
    row = model.row(VIRTUAL_START, BEGIN)
    assert len(row) == 300
    assert sum(row.values()) == pytest.approx(1)
    with pytest.raises(UnknownNameError, match="is not known"):
        known_model(taxi, {})


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gym:CartPole-v1", {}),
        ("gym:FrozenLake-v1", {"mark_terminal": "true"}),
        ("gym:FrozenLake-v1", {"max_episode_steps": "10"}),
        ("exec:bash examples/random_walk.sh", {}),
        ("nowhere", {}),
    ],
)
def test_what_is_not_known_is_refused(name: str, parameters: dict[str, str]) -> None:
    with pytest.raises(UnknownNameError):
        known_model(name, parameters)


def test_a_fickle_passenger_is_not_in_the_table() -> None:
    with pytest.raises(UnknownNameError, match="is not known"):
        known_model(f"gym:{newest('Taxi')}", {"start": "virtual", "fickle_passenger": "true"})


def test_an_exploration_of_a_lake_is_the_truth() -> None:
    atlas = axplore.explore("gym:FrozenLake-v1", radius=4, epsilon=1)
    truth = controllable_states(known_model("gym:FrozenLake-v1", {}), 4)
    assert set(atlas.states) == set(truth.states)
