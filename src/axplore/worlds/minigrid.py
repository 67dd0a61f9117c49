"""MiniGrid environments: their whole state, of which the agent sees a part only.

The label is (column, row, direction, carried object, other objects, layout):

- a carried object is (kind, colour), a box (kind, colour, what it holds), and nothing is None;
- other objects, row by row: (column, row, kind, colour), a door (column, row, "door", colour, "open", "closed" or
  "locked");
- walls, goals, lava and the mission, which do not change before the next reset, are summed up in eight hexadecimal
  digits, so that random layouts stay apart.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import Any, Final

from axplore.errors import InvalidInputError
from axplore.types import State

DIRECTIONS: Final = ("right", "down", "left", "up")
PREFIXES: Final = ("MiniGrid-", "BabyAI-")
STATIC: Final = frozenset({"wall", "goal", "lava", "floor"})


def import_if_needed(identifier: str) -> None:
    """Imports MiniGrid, which registers its environments, if the identifier is one of them."""
    if not identifier.startswith(PREFIXES):
        return
    try:
        import minigrid  # noqa: F401
    except ImportError:
        raise InvalidInputError(f"{identifier} needs MiniGrid: pip install 'axplore[minigrid]'") from None


def key_of(environment: Any) -> Any | None:
    """The key of a MiniGrid environment, whose limit on steps is taken off; None of any other environment."""
    package = sys.modules.get("minigrid.minigrid_env")
    grid = environment.unwrapped
    if package is None or not isinstance(grid, package.MiniGridEnv):
        return None
    grid.max_steps = sys.maxsize
    if environment is grid:
        grid.gen_obs = dict  # what the agent would see takes most of the time of a step, and no key needs it
    return lambda _: full_state(grid)


def full_state(grid: Any) -> tuple[State, ...]:
    """The whole state of a MiniGrid environment as a label."""
    moving: list[State] = []
    layout = [grid.mission, f"{grid.width}x{grid.height}"]
    for place, thing in enumerate(grid.grid.grid):
        if thing is None:
            continue
        row, column = divmod(place, grid.grid.width)
        if thing.type in STATIC:
            layout.append(f"{column} {row} {thing.type} {thing.color}")
        else:
            moving.append((column, row, *_object(thing)))
    column, row = map(int, grid.agent_pos)
    carried = None if grid.carrying is None else _object(grid.carrying)
    digest = blake2b("\n".join(layout).encode(), digest_size=4).hexdigest()
    return (column, row, DIRECTIONS[grid.agent_dir], carried, tuple(moving), digest)


def _object(thing: Any) -> tuple[State, ...]:
    match thing.type:
        case "door":
            return ("door", thing.color, "open" if thing.is_open else "locked" if thing.is_locked else "closed")
        case "box":
            return ("box", thing.color, None if thing.contains is None else _object(thing.contains))
        case kind:
            return (kind, thing.color)
