"""Labels from what a Gymnasium environment shows: plain values that are the same in every process.

| space                      | label                                                        |
|----------------------------|--------------------------------------------------------------|
| Discrete                   | the number                                                   |
| MultiDiscrete, MultiBinary | a tuple of numbers, nested arrays flattened row by row       |
| Box of at most 64 numbers  | the same; numbers of a float box are floats, exactly as shown |
| Text                       | the text                                                     |
| Tuple, Sequence            | a tuple of labels                                            |
| Dict                       | a tuple of (name, label), sorted by name                     |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from gymnasium import spaces

from axplore.errors import InvalidInputError
from axplore.mdp import State

LARGEST_BOX: Final = 64
"""A box of more numbers, an image say, hardly ever shows the same twice."""

Key: TypeAlias = Callable[[Any], State]
"""Turns an observation into the label of its state."""


def key_of(space: spaces.Space[Any]) -> Key:
    """The key for observations of a space; refuses a space that has none."""
    match space:
        case spaces.Discrete():
            return int
        case spaces.Text():
            return str
        case spaces.MultiDiscrete() | spaces.MultiBinary() | spaces.Box() if _is_small(space):
            return _flattened
        case spaces.Tuple():
            keys = tuple(map(key_of, space.spaces))
            return lambda observation: tuple(key(part) for key, part in zip(keys, observation, strict=True))
        case spaces.Sequence():
            each = key_of(space.feature_space)
            return lambda observation: tuple(map(each, observation))
        case spaces.Dict():
            named = tuple((name, key_of(space.spaces[name])) for name in sorted(space.spaces))
            return lambda observation: tuple((name, key(observation[name])) for name, key in named)
    raise InvalidInputError(
        f"there is no label for observations of {space}; give a function key=... that turns an observation into "
        "numbers, text or tuples of these"
    )


def _is_small(space: spaces.Space[Any]) -> bool:
    return not isinstance(space, spaces.Box) or int(np.prod(space.shape)) <= LARGEST_BOX


def _flattened(observation: Any) -> State:
    return tuple(np.asarray(observation).ravel().tolist())
