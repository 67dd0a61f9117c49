from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections import deque
from typing import Any

import gymnasium
import numpy as np
import pytest

import axplore
from axplore.errors import UnfixedStartError
from axplore.worlds.contract import Visit
from axplore.worlds.gym import full_state, gym_world

pytest.importorskip("minigrid")

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)


def distances_in_an_empty_room(size: int) -> dict[tuple[int, int, str], int]:
    """Steps from the upper left corner, facing right, to each place and direction; nothing is done at the goal."""
    ways = {"right": (1, 0), "down": (0, 1), "left": (-1, 0), "up": (0, -1)}
    names = list(ways)
    start = (1, 1, "right")
    found = {start: 0}
    ahead = deque([start])
    while ahead:
        column, row, facing = here = ahead.popleft()
        if (column, row) == (size - 2, size - 2):
            continue
        turn = names.index(facing)
        moved = (column + ways[facing][0], row + ways[facing][1])
        inside = all(1 <= place <= size - 2 for place in moved)
        for after in (
            (column, row, names[turn - 1]),
            (column, row, names[(turn + 1) % 4]),
            (*moved, facing) if inside else here,
        ):
            if after not in found:
                found[after] = found[here] + 1
                ahead.append(after)
    return found


def distances_by_copying(environment: Any, radius: int) -> dict[Any, int]:
    """Steps to each state, found on copies of the environment."""
    found = {full_state(environment): 0}
    ahead = deque([environment])
    while ahead:
        here = ahead.popleft()
        steps = found[full_state(here)]
        for action in range(7) if steps < radius else ():
            there = copy.deepcopy(here)
            _, _, terminated, _, _ = there.step(action)
            if full_state(there) not in found:
                found[full_state(there)] = steps + 1
                if not terminated:
                    ahead.append(there)
    return found


def test_an_empty_room_is_explored_as_it_is_built() -> None:
    atlas = axplore.explore("gym:MiniGrid-Empty-5x5-v0", 4, 1.0)
    distances = distances_in_an_empty_room(5)
    states: Any = atlas.states
    assert {state[:3] for state in states} == {place for place, steps in distances.items() if steps <= 4}
    for state in states:
        bounds = atlas.bounds(state)
        assert bounds.lower - 1e-9 <= distances[state[:3]] <= bounds.upper + 1e-9


def test_the_room_with_a_key_and_a_door_is_explored_as_it_is_built() -> None:
    pin = 1
    environment: Any = gymnasium.make("MiniGrid-DoorKey-5x5-v0").unwrapped
    environment.reset(seed=pin)
    atlas = axplore.explore(
        "gym:MiniGrid-DoorKey-5x5-v0", 5, 1.0, world_parameters={"start": "pinned", "pin": str(pin)}
    )
    distances = distances_by_copying(environment, 6)
    near = {state for state, steps in distances.items() if steps <= 5}
    assert any(state[3] == ("key", "yellow") for state in near)
    assert near <= set(atlas.states) <= set(distances)
    for state in near if set(atlas.states) == near else ():
        assert atlas.bounds(state).lower - 1e-9 <= distances[state] <= atlas.bounds(state).upper + 1e-9


def test_a_random_layout_is_refused_unless_the_start_is_pinned() -> None:
    with pytest.raises(UnfixedStartError):
        gym_world("MiniGrid-DoorKey-5x5-v0", start_checks=30)
    assert len(gym_world("MiniGrid-DoorKey-5x5-v0", start="pinned").states) == 1


def test_carrying_a_key_opening_a_door_and_what_a_box_holds_are_parts_of_the_state() -> None:
    from minigrid.core.world_object import Ball, Box, Door, Key

    ball: Any = Ball
    environment: Any = gymnasium.make("MiniGrid-Empty-6x6-v0").unwrapped
    environment.reset(seed=0)
    environment.grid.set(2, 1, Key("blue"))
    environment.grid.set(1, 2, Door("blue", is_locked=True))
    environment.grid.set(4, 1, Box("grey", contains=ball("red")))
    key, door, box = (2, 1, "key", "blue"), (1, 2, "door", "blue", "locked"), (4, 1, "box", "grey", ("ball", "red"))
    assert full_state(environment)[:5] == (1, 1, "right", None, (key, box, door))
    environment.step(PICK_UP)
    assert full_state(environment)[3:5] == (("key", "blue"), (box, door))
    environment.step(RIGHT)
    environment.step(TOGGLE)
    assert full_state(environment)[2:5] == ("down", ("key", "blue"), (box, (*door[:4], "open")))
    environment.step(TOGGLE)
    assert full_state(environment)[4] == (box, (*door[:4], "closed"))


def test_layouts_that_differ_have_different_states() -> None:
    environment: Any = gymnasium.make("MiniGrid-Empty-6x6-v0").unwrapped
    environment.reset(seed=0)
    before = full_state(environment)
    environment.grid.set(3, 3, None)
    assert full_state(environment) == before
    environment.grid.vert_wall(3, 1, 2)
    assert full_state(environment) != before


def test_there_is_no_limit_on_steps_and_nothing_is_drawn() -> None:
    world = gym_world("MiniGrid-Empty-5x5-v0", max_steps=10)
    (answer,) = world.carry_out([Visit(0, DONE, 300, np.array([], dtype=np.int64), max_journey=1)])
    assert (answer.completed, answer.steps) == (300, 300)


def test_wrappers_are_kept() -> None:
    from minigrid.wrappers import StochasticActionWrapper

    wrapper: Any = StochasticActionWrapper
    environment = wrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"), prob=0.5, random_action=LEFT)
    world = gym_world(environment)
    (answer,) = world.carry_out([Visit(0, RIGHT, 200, np.array([], dtype=np.int64), max_journey=1)])
    states: Any = world.states
    facing = {states[number][2] for number in answer.entry_successors}
    assert facing == {"down", "up"}


def test_labels_are_the_same_in_every_process() -> None:
    code = (
        "from axplore.worlds.gym import gym_world\n"
        "print(gym_world('MiniGrid-DoorKey-5x5-v0', start='pinned').states[0])"
    )
    labels = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for seed in ("1", "2")
    }
    assert labels == {str(gym_world("MiniGrid-DoorKey-5x5-v0", start="pinned").states[0])}
