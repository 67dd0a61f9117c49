"""Pictures of states that the system itself draws, taken on the way to each of them.

A system with a method `render()` that returns a picture of its current state is made again and follows the policies of
the atlas: the shortest first, each until its goal has been met. Gymnasium's environments are made with
`render_mode="rgb_array"`. The number of pictures and the time for them are limited.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore.atlas import Atlas
from axplore.atlas.drawing.states import shown_steps
from axplore.errors import InvalidSettingError
from axplore.types import RESET, Action, Reset, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Examinable, Restarts
from axplore.worlds.playing import PlayedPolicy, player_of

MAX_TAKEN: Final = 60
"""The largest number of pictures that are taken."""

MOST_SECONDS: Final = 5.0
"""The number of seconds after which no other way is begun."""

PATIENCE: Final = 4
"""A way is given up after this many times its expected steps."""

QUIET: Final = {"PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
"""Variables that keep pygame, with which many environments draw, from printing and from opening a window."""

Pictures = dict[State, npt.NDArray[np.uint8]]


def taken_pictures(atlas: Atlas, world_name: str, parameters: Mapping[str, Any]) -> Pictures:
    """Returns pictures of the states of an atlas, by label, as many as the limits allow.

    Args:
        atlas: the atlas, whose policies are followed.
        world_name: the name of its world, which is started again; that runs its code.
        parameters: the parameters of the world.

    Raises:
        InvalidSettingError: the system draws no pictures.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    parameters = {**parameters, "render_mode": "rgb_array"} if world_name.startswith("gym:") else parameters
    with world_for(world_name, 0, parameters) as world:
        examinable = world.examinable
        render = None if examinable is None else examinable.borrow_system()[0].render
        if examinable is None or render is None:
            raise InvalidSettingError(
                f"{world_name} draws no pictures: its systems need a method render() that returns red, green and blue "
                "as bytes, [height, width, 3]"
            )
        return _taken(atlas, examinable, render)


def _taken(atlas: Atlas, world: Examinable, render: Any) -> Pictures:
    order = np.argsort(shown_steps(atlas)[: len(atlas.states)], kind="stable")[:MAX_TAKEN]
    wanted = {atlas.states[index] for index in order.tolist()}
    pictures: Pictures = {}
    deadline = time.monotonic() + MOST_SECONDS

    def look(state: State) -> None:
        if state in wanted and state not in pictures:
            picture = render()
            if picture is not None:
                pictures[state] = np.array(picture)  # a copy: the next step may draw into the same array

    for index in order.tolist():
        goal = atlas.states[index]
        if goal in pictures or time.monotonic() > deadline:
            continue
        policy = atlas.policy(goal).played()

        def choose(state: State, step: int) -> Action | Reset:
            look(state)
            return RESET if time.monotonic() > deadline else policy.choose(state, step)  # noqa: B023

        horizon = int(PATIENCE * (shown_steps(atlas)[index] + 1))
        (episode,) = player_of(world, PlayedPolicy(choose), goal, horizon, Restarts.ALWAYS).play(1)
        if episode.has_arrived:
            look(goal)
    return pictures
