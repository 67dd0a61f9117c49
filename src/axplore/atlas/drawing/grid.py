"""States as cells of a grid, and the walls between them.

Labels form a grid if they are pairs of whole numbers, row and column, or whole numbers between which transitions move
as between the numbered cells of a grid: by one within a row, or by the width of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.drawing.states import labels_of
from axplore.atlas.transitions import entry_states
from axplore.types import IntArray, State

MAX_EMPTY: Final = 20
"""The largest number of empty cells per state of a grid; a sparser one is not useful."""

WALKED: Final = 0.9
"""The least part of the transitions that lead to a neighbouring cell, where walls mean something."""

Wall = tuple[int, int, int, int]
"""A line between two corners of cells: row and column of each, in cells from the top left corner."""


class Grid(NamedTuple):
    """The row and column of each state, [n, 2], and the numbers of rows and columns."""

    cells: IntArray
    rows: int
    columns: int


class Moves(NamedTuple):
    """What is drawn of a system: its labels by index, which transitions were met, and where nothing more is known.

    Attributes:
        labels: the labels, by index.
        members: the number of states of the atlas, which come first.
        pairs: the source and the target of each transition.
        only_resets: the states in which nothing but RESET can be played.
    """

    labels: Sequence[State]
    members: int
    pairs: frozenset[tuple[int, int]]
    only_resets: frozenset[int]


def moves_of(atlas: Atlas) -> Moves:
    """Returns what a grid shows of an atlas."""
    transitions = atlas.transitions
    pairs = zip(entry_states(transitions).tolist(), transitions.successors.tolist(), strict=True)
    only_resets = np.flatnonzero(np.diff(transitions.state_pairs) == 0)
    return Moves(labels_of(atlas), len(atlas.states), frozenset(pairs), frozenset(only_resets.tolist()))


def grid_of(moves: Moves) -> Grid | None:
    """Returns the grid of the labels; None if they do not form one."""
    labels = moves.labels
    if all(type(label) is tuple and len(label) == 2 and all(type(part) is int for part in label) for label in labels):
        return _dense(np.array(labels))
    if not all(type(label) is int and 0 <= label < 2**53 for label in labels):
        return None
    numbers = np.array(labels, dtype=np.int64)
    width = _row_width(numbers, moves)
    return None if width is None else _dense(np.stack((numbers // width, numbers % width), axis=1), width)


def _steps(moves: Moves) -> IntArray:
    """Returns the transitions that lead elsewhere, except to the initial state, [m, 2]."""
    pairs = [pair for pair in moves.pairs if pair[1] > 0 and pair[0] != pair[1]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _row_width(numbers: IntArray, moves: Moves) -> int | None:
    """Returns the width of a row if numbered states move as in a grid; moves to the initial state are ignored."""
    pairs = np.array([pair for pair in moves.pairs if pair[1] > 0 and pair[0] != pair[1]], dtype=np.int64).reshape(
        -1, 2
    )
    sources, targets = numbers[pairs[:, 0]], numbers[pairs[:, 1]]
    distances = np.unique(np.abs(targets - sources))
    if len(distances) != 2 or distances[0] != 1:
        return None
    width = int(distances[1])
    aside = np.abs(targets - sources) == 1
    return width if (sources[aside] // width == targets[aside] // width).all() else None


def _dense(cells: IntArray, width: int = 0) -> Grid | None:
    """Returns the cells, shifted to the first row and column; None if nearly all of the grid would be empty."""
    cells = cells - cells.min(axis=0) * (not width)
    rows, columns = (cells.max(axis=0) + 1).tolist()
    columns = max(columns, width)
    return Grid(cells, rows, columns) if rows * columns <= MAX_EMPTY * (len(cells) + 5) else None


def walls_of(moves: Moves, grid: Grid) -> list[Wall]:
    """Returns the walls: sides of cells of the atlas across which no transition was met, either way.

    A side towards a state of the frontier, or of a state that only resets, is none: too little is known there. There
    are no walls at all where transitions often lead farther than to the next cell.
    """
    if not _is_walked(moves, grid):
        return []
    index_of = {(row, column): index for index, (row, column) in enumerate(grid.cells.tolist())}

    def is_closed(here: tuple[int, int], there: tuple[int, int]) -> bool:
        a, b = index_of.get(here), index_of.get(there)
        known = [index for index in (a, b) if index is not None]
        if not known or any(index >= moves.members or index in moves.only_resets for index in known):
            return False
        return a is None or b is None or ((a, b) not in moves.pairs and (b, a) not in moves.pairs)

    return list(_joined(wall for wall, here, there in _sides(grid) if is_closed(here, there)))


def _is_walked(moves: Moves, grid: Grid) -> bool:
    """Returns whether transitions nearly always lead to a neighbouring cell, nowhere, or to the initial state."""
    pairs = np.array([pair for pair in moves.pairs if pair[1] > 0 and pair[0] != pair[1]], dtype=np.int64).reshape(
        -1, 2
    )
    gaps = np.abs(grid.cells[pairs[:, 0]] - grid.cells[pairs[:, 1]]).max(axis=1)
    return bool(len(gaps)) and float((gaps <= 1).mean()) >= WALKED


def _sides(grid: Grid) -> Iterator[tuple[Wall, tuple[int, int], tuple[int, int]]]:
    """Yields every side between two cells, or at the border, with these cells; along its rows, then its columns."""
    for row in range(grid.rows + 1):
        for column in range(grid.columns):
            yield (row, column, row, column + 1), (row - 1, column), (row, column)
    for column in range(grid.columns + 1):
        for row in range(grid.rows):
            yield (row, column, row + 1, column), (row, column - 1), (row, column)


def _joined(walls: Iterator[Wall]) -> Iterator[Wall]:
    """Joins walls that continue each other."""
    last: Wall | None = None
    for wall in walls:
        is_level = wall[0] == wall[2]
        if last is not None and last[2:] == wall[:2] and (last[0] == last[2]) == is_level:
            last = (*last[:2], *wall[2:])
            continue
        if last is not None:
            yield last
        last = wall
    if last is not None:
        yield last
