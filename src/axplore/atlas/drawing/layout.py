"""Where the states of an atlas are on the map: cells of a grid, or a graph in layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.drawing.graph import Graph, graph_of
from axplore.atlas.drawing.grid import Grid, Wall, grid_of, moves_of, walls_of
from axplore.atlas.drawing.layered import View, laid_out
from axplore.atlas.drawing.states import shown_steps
from axplore.types import FloatArray, IntArray, Status

WIDTH: Final = 1000.0
"""The width of a grid, in units of the map."""

MARGIN: Final = 40.0

MAX_DRAWN: Final = 2500
"""The largest number of cells drawn, so that browsers stay responsive."""


@dataclass(frozen=True, eq=False)
class GridLayout:
    """Cells of a grid.

    Attributes:
        drawn: the indices of the states on the map, [d].
        x, y: the coordinates of their centres, [d].
        size: half the width of a cell.
        height: the height of the map; its width is `WIDTH`.
        cells: the numbers of rows and columns.
        walls: see `walls_of`.
    """

    drawn: IntArray
    x: FloatArray
    y: FloatArray
    size: float
    height: float
    cells: tuple[int, int]
    walls: Sequence[Wall]

    @property
    def wall_lines(self) -> list[tuple[float, float, float, float]]:
        """The walls in units of the map: x and y of both ends."""
        left = WIDTH / 2 - self.cells[1] * self.size
        return [
            (left + 2 * c * self.size, MARGIN + 2 * r * self.size, left + 2 * d * self.size, MARGIN + 2 * q * self.size)
            for r, c, q, d in self.walls
        ]


@dataclass(frozen=True, eq=False)
class GraphLayout:
    """A graph in layers: what is shown of it at first, also as JSON values for the page."""

    graph: Graph
    view: View
    view_json: dict[str, Any] = field(repr=False)


Layout = GridLayout | GraphLayout


def layout_of(atlas: Atlas, graph: Callable[[], Graph] | None = None, wanted: Sequence[int] = ()) -> Layout:
    """Returns the layout of the states of an atlas and of its frontier.

    Args:
        atlas: the atlas.
        graph: returns its graph, if names are to differ from the labels.
        wanted: indices of states that a graph shows whatever their place.
    """
    moves = moves_of(atlas)
    grid = grid_of(moves)
    if grid is not None:
        return grid_layout(grid, _drawn(atlas), walls_of(moves, grid))
    made = graph_of(atlas) if graph is None else graph()
    return GraphLayout(made, *laid_out(made.as_json(), wanted))


def _drawn(atlas: Atlas) -> IntArray:
    """Returns the indices of the states on the map: those of the atlas first, then open ones, and the nearest first."""
    indices = np.arange(len(atlas.statuses))
    if len(indices) <= MAX_DRAWN:
        return indices
    rank = [0 if index < len(atlas.states) else 1 + (atlas.statuses[index] is Status.SET_ASIDE) for index in indices]
    return np.sort(np.lexsort((shown_steps(atlas), np.array(rank)))[:MAX_DRAWN])


def grid_layout(grid: Grid, drawn: IntArray, walls: Sequence[Wall]) -> GridLayout:
    """Returns where the cells of a grid are on the map."""
    cells, rows, columns = grid
    # The cells of a narrow grid are not as wide as the map.
    size = (WIDTH - 2 * MARGIN) / max(columns, rows, 8) / 2
    left = WIDTH / 2 - columns * size
    return GridLayout(
        drawn=drawn,
        x=left + (2 * cells[drawn, 1] + 1) * size,
        y=MARGIN + (2 * cells[drawn, 0] + 1) * size,
        size=size,
        height=2 * MARGIN + 2 * rows * size,
        cells=(rows, columns),
        walls=walls,
    )
