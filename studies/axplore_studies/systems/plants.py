"""Small random models whose states are all seen, of several shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from axplore_studies.systems.hidden_model import Row, Rules


@dataclass(frozen=True)
class Plant:
    """A model whose states are all seen; the first is the start.

    Attributes:
        rows: the row of each state and action; a state without actions is terminal.
        forward: the action that leads away from the start.
        goal: a state that takes long to reach.
    """

    rows: Mapping[str, Mapping[str, Row]]
    forward: str
    goal: str

    @property
    def start(self) -> str:
        """The start."""
        return next(iter(self.rows))

    @property
    def actions(self) -> tuple[str, ...]:
        """All actions."""
        return tuple(dict.fromkeys(action for row in self.rows.values() for action in row))

    def offers(self, state: str) -> tuple[str, ...]:
        """Returns the actions of a state."""
        return tuple(self.rows[state])

    def row(self, state: str, action: str) -> Row:
        """Returns the row of a state and an action."""
        return self.rows[state][action]

    @property
    def farthest(self) -> float:
        """The least expected steps to the state that takes most."""
        return max(self.steps_to(state) for state in self.rows)

    def steps_to(self, goal: str) -> float:
        """Returns the least expected steps to a state."""
        return plain(self).model().least_steps(goal, self.rows, sweeps=5000)

    def slowed(self, factor: float, action: str | None = None) -> Plant:
        """Returns the plant in which an action works less often, by a factor, and stays otherwise."""
        rows = {
            state: {
                name: row if name != (action or self.forward) else mixed(row, {state: 1.0}, factor)
                for name, row in by_action.items()
            }
            for state, by_action in self.rows.items()
        }
        return replace(self, rows=rows)


def mixed(row: Row, other: Row, weight: float) -> Row:
    """Returns a row that is the first with a weight, and the other otherwise."""
    return {
        after: weight * row.get(after, 0.0) + (1 - weight) * other.get(after, 0.0)
        for after in dict.fromkeys([*row, *other])
        if weight * row.get(after, 0.0) + (1 - weight) * other.get(after, 0.0) > 0.0
    }


def forms(rng: np.random.Generator) -> Plant:
    """A series of forms: a step forward works now and then, a step back leads to the start."""
    size, works = int(rng.integers(3, 5)), float(rng.uniform(0.2, 0.6))
    names = [f"form {place}" for place in range(size)]
    rows = {
        name: {
            "go": mixed({names[min(place + 1, size - 1)]: 1.0}, {name: 1.0}, works),
            "back": {names[0]: 1.0},
        }
        for place, name in enumerate(names)
    }
    return Plant(rows, "go", names[-1])


def line(rng: np.random.Generator) -> Plant:
    """A line on which steps slip."""
    size, slip = int(rng.integers(4, 6)), float(rng.uniform(0.05, 0.3))
    names = [f"place {place}" for place in range(size)]
    rows = {
        name: {
            "on": mixed({names[min(place + 1, size - 1)]: 1.0}, {name: 1.0}, 1 - slip),
            "off": mixed({names[max(place - 1, 0)]: 1.0}, {name: 1.0}, 1 - slip),
        }
        for place, name in enumerate(names)
    }
    return Plant(rows, "on", names[-1])


def ring(rng: np.random.Generator) -> Plant:
    """A ring on which steps slip."""
    size, slip = int(rng.integers(5, 7)), float(rng.uniform(0.05, 0.3))
    names = [f"stop {place}" for place in range(size)]
    rows = {
        name: {
            "right": mixed({names[(place + 1) % size]: 1.0}, {name: 1.0}, 1 - slip),
            "left": mixed({names[(place - 1) % size]: 1.0}, {name: 1.0}, 1 - slip),
        }
        for place, name in enumerate(names)
    }
    return Plant(rows, "right", names[size // 2])


def grid(rng: np.random.Generator) -> Plant:
    """Two rows of cells; a step goes astray now and then."""
    columns, slip = int(rng.integers(2, 4)), float(rng.uniform(0.05, 0.25))
    cells = [(row, column) for row in range(2) for column in range(columns)]

    def name(row: int, column: int) -> str:
        return f"cell {min(row, 1)}.{min(column, columns - 1)}"

    rows = {
        name(*cell): {
            "east": mixed({name(cell[0], cell[1] + 1): 1.0}, {name(1 - cell[0], cell[1]): 1.0}, 1 - slip),
            "across": mixed({name(1 - cell[0], cell[1]): 1.0}, {name(*cell): 1.0}, 1 - slip),
        }
        for cell in cells
    }
    return Plant(rows, "east", name(1, columns - 1))


def hub(rng: np.random.Generator) -> Plant:
    """Rooms around a hub; doors stick, and rooms only lead back."""
    doors = [f"door {number}" for number in range(int(rng.integers(2, 4)))]
    opens = rng.uniform(0.25, 0.8, size=len(doors)).tolist()
    rooms = [f"room {number}" for number in range(len(doors))]
    rows: dict[str, dict[str, Row]] = {
        "hub": {
            door: mixed({room: 1.0}, {"hub": 1.0}, chance)
            for door, room, chance in zip(doors, rooms, opens, strict=True)
        }
    }
    rows |= {room: {doors[0]: {"hub": 1.0}} for room in rooms}
    return Plant(rows, doors[-1], rooms[-1])


def tree(rng: np.random.Generator) -> Plant:
    """A tree whose leaves are terminal; a turn goes wrong now and then."""
    wrong = float(rng.uniform(0.05, 0.35))
    rows: dict[str, dict[str, Row]] = {}
    for place in range(1, 4):
        left, right = f"node {2 * place}", f"node {2 * place + 1}"
        rows[f"node {place}"] = {
            "left": mixed({left: 1.0}, {right: 1.0}, 1 - wrong),
            "right": mixed({right: 1.0}, {left: 1.0}, 1 - wrong),
        }
    rows |= {f"node {place}": {} for place in range(4, 8)}
    return Plant(rows, "right", "node 7")


def sparse(rng: np.random.Generator) -> Plant:
    """Random rows with two or three successors each, along a way that all states are on."""
    size = int(rng.integers(4, 6))
    names = [f"node {place}" for place in range(size)]
    rows: dict[str, dict[str, Row]] = {}
    for place, name in enumerate(names):
        shares = rng.dirichlet([1.5, 1.0])
        ahead, astray = names[(place + 1) % size], names[int(rng.integers(size))]
        rows[name] = {
            "a": mixed({ahead: 1.0}, {astray: 1.0}, 0.3 + 0.6 * float(shares[0])),
            "b": mixed({names[int(rng.integers(size))]: 1.0}, {name: 1.0}, float(rng.uniform(0.3, 0.9))),
        }
    return Plant(rows, "a", names[-1])


PLANTS: Final[tuple[Callable[[np.random.Generator], Plant], ...]] = (forms, line, ring, grid, hub, tree, sparse)
WITH_RETURNS: Final = (forms, line, ring, grid, hub, sparse)
"""Plants without terminal states, in which one can stay for ever."""


def plain(plant: Plant) -> Rules:
    """Returns a plant as it is."""
    return Rules(plant.start, plant.actions, plant.row, lambda state: state, offers=plant.offers)
