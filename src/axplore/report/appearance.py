"""How states and actions look on the page: names in place of labels, and pictures of states.

All of it is for reading. Files, bounds and certificates go by the labels.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.arguments import refusal
from axplore.labels import readable
from axplore.types import Action, State

Names: TypeAlias = Mapping[Any, str] | Callable[[Any], str] | None
"""A name for each label: a table, in which labels that are missing keep their own, or a function."""

Render: TypeAlias = Callable[[State], npt.NDArray[np.uint8] | None]
"""Returns the picture of a state: red, green and blue from 0 to 255, [height, width, 3]; None if there is none."""

MAX_SIDE: Final = 160
"""Pictures are made smaller until neither side has more pixels than this."""

MAX_PICTURES: Final = 300
"""In an atlas of more states than this, only the first have pictures."""

MAX_BYTES: Final = 2_000_000
"""Pictures that do not fit into this many bytes are left out."""

ACTIONS_OF_GYMNASIUM: Final[Mapping[str, tuple[str, ...]]] = {
    "gym:FrozenLake": ("left", "down", "right", "up"),
    "gym:CliffWalking": ("up", "right", "down", "left"),
    "gym:Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
    "gym:Blackjack": ("stick", "hit"),
    "gym:MiniGrid": ("left", "right", "forward", "pick up", "drop", "toggle", "done"),
    "gym:CartPole": ("push left", "push right"),
    "gym:MountainCar": ("push left", "none", "push right"),
    "gym:Acrobot": ("torque -1", "none", "torque +1"),
}
"""The actions of environments whose numbers say nothing, by how the names of the worlds begin."""


def _taxi(label: State) -> str:
    """Returns the name of a state of Taxi: the cell of the taxi, where the passenger is, and the destination."""
    if type(label) is not int or not 0 <= label < 500:
        return readable(label)
    rest, target = divmod(label, 4)
    rest, passenger = divmod(rest, 5)
    stands = ("R", "G", "Y", "B", "taxi")
    return f"{divmod(rest, 5)} {stands[passenger]}→{stands[target]}, {label}"


def _blackjack(label: State) -> str:
    """Returns the name of a state of Blackjack: the sum, the dealer's card, and whether an ace counts as 11."""
    if not (isinstance(label, tuple) and len(label) == 3):
        return readable(label)
    total, dealer, ace = label
    return f"{total}{' with an ace' if ace else ''} against {dealer}"


def _minigrid(label: State) -> str:
    """Returns the name of a state of MiniGrid: cell, direction, what is carried, and the other objects."""
    match label:
        case (int(column), int(row), str(direction), carried, tuple(objects), str()):
            parts = [f"({column}, {row}) {direction}"]
            parts += [] if carried is None else [f"carrying {_in_words(carried)}"]
            parts += [f"{_in_words(rest)} at ({x}, {y})" for x, y, *rest in objects]
            return ", ".join(parts)
    return readable(label)


def _in_words(thing: Any) -> str:
    """Returns an object of MiniGrid in words; a box may hold another object."""
    return " ".join(_in_words(part) if isinstance(part, tuple) else str(part) for part in thing if part is not None)


STATES_OF_GYMNASIUM: Final[Mapping[str, Callable[[State], str]]] = {
    "gym:Taxi": _taxi,
    "gym:Blackjack": _blackjack,
    "gym:MiniGrid": _minigrid,
}
"""Names of states whose labels are hard to read, by how the names of the worlds begin."""


@dataclass(frozen=True)
class Appearance:
    """How an atlas is shown.

    Attributes:
        describe: names of states.
        action_names: names of actions.
        render: pictures of states; None for none.
    """

    describe: Names = None
    action_names: Names = None
    render: Render | None = None

    @classmethod
    def of_world(cls, world: str) -> Appearance:
        """Returns what is known of a named world: names for Gymnasium's environments whose labels are numbers."""
        actions = [dict(enumerate(names)) for name, names in ACTIONS_OF_GYMNASIUM.items() if world.startswith(name)]
        states = [describe for name, describe in STATES_OF_GYMNASIUM.items() if world.startswith(name)]
        return cls(next(iter(states), None), next(iter(actions), None))

    def state(self, label: State) -> str:
        """Returns the name of a state."""
        return _named(self.describe, "describe", label)

    def action(self, label: Action) -> str:
        """Returns the name of an action."""
        return _named(self.action_names, "action_names", label)

    def pictures(self, states: tuple[State, ...]) -> list[str]:
        """Returns the pictures of states as addresses of PNG data, empty where there is none; [] without `render`."""
        if self.render is None:
            return []
        addresses, size = [], 0
        for frame in map(self.render, states[:MAX_PICTURES]):
            address = "" if frame is None else _as_png_address(frame)
            size += len(address)
            if size > MAX_BYTES:
                break
            addresses.append(address)
        return addresses


def _named(names: Names, argument: str, label: Any) -> str:
    if names is None:
        return readable(label)
    name = names(label) if callable(names) else names.get(label, readable(label))
    if not isinstance(name, str):
        raise refusal(f"what {argument} returned", name, "text")
    return name


def _as_png_address(frame: Any) -> str:
    """Returns a frame as the address of a small PNG."""
    pixels = np.asarray(frame)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or 0 in pixels.shape:
        raise refusal("what render returned", frame, "an array of bytes, [height, width, 3]")
    stride = -(-max(pixels.shape[:2]) // MAX_SIDE)
    small = np.ascontiguousarray(pixels[::stride, ::stride])
    height, width = small.shape[:2]
    # Each line begins with the number of its filter, 0 for none.
    lines = np.hstack((np.zeros((height, 1), dtype=np.uint8), small.reshape(height, 3 * width)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    chunks = (struct.pack(">I", len(data)) + kind + data + _checksum(kind + data) for kind, data in parts)
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode("ascii")


def _checksum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
