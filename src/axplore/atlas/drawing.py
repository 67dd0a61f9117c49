"""The map of an atlas: its layout, and pictures of it as SVG for notebooks and with Matplotlib for papers.

States stand in a grid if their labels form one, otherwise in rings by expected steps. Labels form a grid if they are
pairs of whole numbers, row and column, or whole numbers between which transitions move as between the numbered cells of
a grid: by one within a row, or by the width of a row. Pictures show the states, and the tree of short routes from the
initial state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.transitions import entry_frequencies, entry_states
from axplore.errors import AxploreError, printable
from axplore.labels import readable
from axplore.records.counts import Counts
from axplore.types import BoolArray, FloatArray, IntArray, State, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH: Final = 1000.0
"""The width of the map, in its own units."""

MAX_DRAWN: Final = 2500
"""The largest number of states drawn, so that browsers stay responsive."""

MAX_EMPTY: Final = 20
"""The largest number of empty cells per state of a grid; a sparser one is not useful."""

BEYOND: Final = 1.45
"""States farther than this multiple of the radius are placed at the rim."""

MARGIN: Final = 40.0
LARGEST, SMALLEST = 20.0, 3.5
"""Limits of half the width of a node in rings."""

SPREAD: Final = 0.22
"""Half the width of a node, relative to the distance between nodes if they were evenly spread."""

PUSHES: Final = 120
"""The number of passes in which overlapping nodes are pushed apart."""


CLUSTERED_FROM: Final = 250
"""With more states in rings than this, those far along the tree of short ways stand in clusters."""

MAX_SINGLE: Final = 80
"""Beside clusters, at most this many states of the atlas stand alone."""

FEWEST_LEVELLED: Final = 20
"""Whole levels of the tree stand alone if they have at least this many states, or else the first of the atlas."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the states are on the map.

    Attributes:
        kind: a grid, or rings around the initial state.
        drawn: the indices of the states on the map, [d].
        x, y: the coordinates of their centres, [d].
        size: half the width of a node.
        height: the height of the map; its width is `WIDTH`.
        rings: the expected steps of each ring and its radius on the map; the last is the radius of the run.
        cells: the numbers of rows and columns of the grid.
    """

    kind: Literal["grid", "rings"]
    drawn: IntArray
    x: FloatArray
    y: FloatArray
    size: float
    height: float
    rings: tuple[tuple[float, float], ...] = ()
    cells: tuple[int, int] = (0, 0)


class _Grid(NamedTuple):
    """The row and column of each state, [n, 2], and the numbers of rows and columns."""

    cells: IntArray
    rows: int
    columns: int


def layout_of(atlas: Atlas) -> Layout:
    """Returns the layout of the states of an atlas and of its frontier."""
    drawn = _drawn(atlas)
    grid = _grid_of(atlas, atlas.transitions)
    return _rings(atlas, drawn) if grid is None else _grid(grid, drawn)


def shown_steps(atlas: Atlas) -> FloatArray:
    """Returns the expected steps to show for each state: between its bounds, or the lower one if there is no other."""
    bounded = np.isfinite(atlas.upper)
    return np.where(bounded, (atlas.lower + np.where(bounded, atlas.upper, 0)) / 2, atlas.lower)


def labels_of(atlas: Atlas) -> list[State]:
    """Returns the labels of all states, by index."""
    return [*atlas.states, *(atlas.seen[number] for number in atlas.frontier_numbers.tolist())]


def clusters_of(atlas: Atlas, layout: Layout) -> IntArray:
    """Returns the index of the state behind which each state stands in a cluster, or -1 if it stands alone, [n].

    A cluster holds what the tree of short ways reaches through one of the first states of the atlas and no other.
    """
    anchors = np.full(len(atlas.statuses), -1, dtype=np.int64)
    if layout.kind == "grid" or len(layout.drawn) <= CLUSTERED_FROM:
        return anchors
    entries = ways_in(atlas)
    single = _single(entries, len(atlas.states))
    for index in np.flatnonzero(~single).tolist():  # parents stand before their children
        parent = entries[index]
        anchors[index] = parent if single[parent] else anchors[parent]
    sizes = np.bincount(anchors[anchors >= 0], minlength=1)
    alone = (anchors >= 0) & (sizes[np.maximum(anchors, 0)] == 1)
    return np.where(alone, -1, anchors)


def _single(entries: IntArray, members: int) -> BoolArray:
    """Returns which states stand alone where states are clustered, [n]; with a state, those on the way to it do too."""
    depths = np.zeros(len(entries), dtype=np.int64)
    for index in range(1, len(entries)):
        depths[index] = depths[entries[index]] + 1
    is_member = np.arange(len(entries)) < members
    up_to = np.cumsum(np.bincount(depths[:members]))
    deepest = int(np.searchsorted(up_to, MAX_SINGLE, side="right")) - 1
    if deepest >= 0 and up_to[deepest] >= FEWEST_LEVELLED:
        return is_member & (depths <= deepest)
    return np.arange(len(entries)) < min(MAX_SINGLE, members)


def _drawn(atlas: Atlas) -> IntArray:
    """Returns the indices of the states on the map: those of the atlas first, then open ones, and the nearest first."""
    indices = np.arange(len(atlas.statuses))
    if len(indices) <= MAX_DRAWN:
        return indices
    rank = [0 if index < len(atlas.states) else 1 + (atlas.statuses[index] is Status.SET_ASIDE) for index in indices]
    return np.sort(np.lexsort((shown_steps(atlas), np.array(rank)))[:MAX_DRAWN])


def _grid_of(atlas: Atlas, transitions: Counts) -> _Grid | None:
    """Returns the grid of the labels; None if they do not form one."""
    labels = labels_of(atlas)
    if all(type(label) is tuple and len(label) == 2 and all(type(part) is int for part in label) for label in labels):
        return _dense(np.array(labels))
    if not all(type(label) is int and 0 <= label < 2**53 for label in labels):
        return None
    numbers = np.array(labels, dtype=np.int64)
    width = _row_width(numbers, transitions)
    return None if width is None else _dense(np.stack((numbers // width, numbers % width), axis=1), width)


def _row_width(numbers: IntArray, transitions: Counts) -> int | None:
    """Returns the width of a row if numbered states move as in a grid; moves to the initial state are ignored."""
    starts = entry_states(transitions)
    moves = (transitions.successors > 0) & (transitions.successors != starts)
    sources, targets = numbers[starts[moves]], numbers[transitions.successors[moves]]
    distances = np.unique(np.abs(targets - sources))
    if len(distances) != 2 or distances[0] != 1:
        return None
    width = int(distances[1])
    aside = np.abs(targets - sources) == 1
    return width if (sources[aside] // width == targets[aside] // width).all() else None


def _dense(cells: IntArray, width: int = 0) -> _Grid | None:
    """Returns the cells, shifted to the first row and column; None if nearly all of the grid would be empty."""
    cells = cells - cells.min(axis=0) * (not width)
    rows, columns = (cells.max(axis=0) + 1).tolist()
    columns = max(columns, width)
    return _Grid(cells, rows, columns) if rows * columns <= MAX_EMPTY * (len(cells) + 5) else None


def _grid(grid: _Grid, drawn: IntArray) -> Layout:
    cells, rows, columns = grid
    # The cells of a narrow grid are not as wide as the map.
    size = (WIDTH - 2 * MARGIN) / max(columns, rows, 8) / 2
    left = WIDTH / 2 - columns * size
    return Layout(
        kind="grid",
        drawn=drawn,
        x=left + (2 * cells[drawn, 1] + 1) * size,
        y=MARGIN + (2 * cells[drawn, 0] + 1) * size,
        size=size,
        height=2 * MARGIN + 2 * rows * size,
        cells=(rows, columns),
    )


def _rings(atlas: Atlas, drawn: IntArray) -> Layout:
    radius = atlas.target.radius
    scale = (WIDTH / 2 - MARGIN) / (BEYOND * radius)
    distances = np.minimum(shown_steps(atlas), BEYOND * radius) * scale
    size = float(np.clip(SPREAD * WIDTH / math.sqrt(len(drawn)), SMALLEST, LARGEST))
    aside = np.array([status is Status.SET_ASIDE for status in atlas.statuses])
    if not atlas.proven:  # nothing is known of the steps to states of the frontier
        aside[len(atlas.states) :] = True
    distances[aside] = np.maximum(distances[aside], radius * scale + 1.5 * size)  # visibly outside
    angles = _angles(ways_in(atlas))
    points = np.stack((distances * np.cos(angles), distances * np.sin(angles)), axis=1)[drawn]
    points = _pushed_apart(points, 2.3 * size)
    height = 2 * (max(radius * scale, np.abs(points[:, 1]).max() + size) + MARGIN)
    marks = [steps for steps in _round_steps(radius) if steps < radius]
    return Layout(
        kind="rings",
        drawn=drawn,
        x=WIDTH / 2 + points[:, 0],
        y=height / 2 + points[:, 1],
        size=size,
        height=float(height),
        rings=tuple((steps, steps * scale) for steps in (*marks, radius)),
    )


def ways_in(atlas: Atlas) -> IntArray:
    """Returns the index from which each state is best entered, among the states admitted before it, [n].

    They are the edges of a tree of short ways around the initial state, whose own entry is 0.
    """
    transitions = atlas.transitions
    sources, targets = entry_states(transitions), transitions.successors
    steps = shown_steps(atlas)[sources] + 1 / entry_frequencies(transitions)
    parents = np.zeros(len(atlas.statuses), dtype=np.int64)
    earlier = np.flatnonzero(sources < targets)
    by_worth = earlier[np.argsort(-steps[earlier], kind="stable")]
    parents[targets[by_worth]] = sources[by_worth]  # the last one written is the best
    return parents


def _angles(parents: IntArray) -> FloatArray:
    """Returns the direction of each state: every one has a sector, divided among its children, [n]."""
    n = len(parents)
    children: list[list[int]] = [[] for _ in range(n)]
    for index in range(1, n):
        children[parents[index]].append(index)
    leaves = np.array([not below for below in children], dtype=np.float64)
    for index in range(n - 1, 0, -1):
        leaves[parents[index]] += leaves[index]
    first, angles = np.zeros(n), np.zeros(n)
    for index in range(n):  # parents come before their children
        share = first[index]
        for child in children[index]:
            first[child] = share
            angles[child] = 2 * math.pi * (share + leaves[child] / 2) / leaves[0]
            share += leaves[child]
    return angles


def _pushed_apart(points: FloatArray, distance: float) -> FloatArray:
    """Pushes points that are nearer than a distance apart, along their rings more than across; the first stays."""
    from scipy.spatial import cKDTree

    points = points + 1e-3 * np.stack((np.cos(np.arange(len(points))), np.sin(np.arange(len(points)))), axis=1)
    for push in range(PUSHES):
        pairs = cKDTree(points).query_pairs(distance, output_type="ndarray")
        if not len(pairs):
            break
        gaps = points[pairs[:, 0]] - points[pairs[:, 1]]
        lengths = np.maximum(np.linalg.norm(gaps, axis=1, keepdims=True), 1e-9)
        pushes = gaps / lengths * np.minimum(distance - lengths, distance / 2) / 3
        total = np.zeros_like(points)
        np.add.at(total, pairs[:, 0], pushes)
        np.add.at(total, pairs[:, 1], -pushes)
        outwards = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
        across = (total * outwards).sum(axis=1, keepdims=True) * outwards
        total -= 0.9 * (1 - push / PUSHES) * across  # along the rings at first
        total[0] = 0
        points = points + total
    return points


def _round_steps(radius: float) -> list[float]:
    """Returns at most six round numbers for rings."""
    step = next(step * 10**power for power in range(12) for step in (1, 2, 5) if radius / (step * 10**power) <= 6)
    return [float(step * i) for i in range(1, math.ceil(radius / step))]


MAX_NAMES: Final = 60
"""The largest number of states that are drawn with their names; in SVG, names are also tooltips."""

LONGEST_NAME: Final = 10
"""The largest number of characters of a name on the map."""

NEAR, FAR = np.array([218, 235, 247]), np.array([8, 81, 156])
"""The colours of the initial state and of the farthest one, as red, green and blue."""

OUTSIDE: Final = {Status.SET_ASIDE: "#d9d9d9", Status.OPEN: "#ffffff", Status.CERTIFIED: "#ffffff"}
"""The colours of states outside the atlas."""

EDGE, ROUTE, OUTLINE = "#9aa5b1", "#d55e00", "#4a5560"


def as_svg(atlas: Atlas, width: int = 420) -> str:
    """Returns the map as an SVG element with a tooltip for each state; labels are escaped."""
    layout, colours = layout_of(atlas), _colours(atlas)
    names = [escape(printable(readable(label))) for label in labels_of(atlas)]
    points = {index: (x, y) for index, x, y in zip(layout.drawn.tolist(), layout.x, layout.y, strict=True)}
    lines = [
        f'<line x1="{points[a][0]:.1f}" y1="{points[a][1]:.1f}" x2="{points[b][0]:.1f}" y2="{points[b][1]:.1f}"/>'
        for a, b in _edges(layout, ways_in(atlas)).tolist()
    ]
    nodes = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.72 * layout.size:.1f}" fill="{colours[index]}"'
        f"{_dashes(atlas.statuses[index])}><title>{names[index]}: {atlas.statuses[index].value}</title></circle>"
        for index, (x, y) in points.items()
    ]
    return (
        f'<svg width="{width}" viewBox="0 0 {WIDTH:.0f} {layout.height:.0f}" role="img" '
        f'aria-label="Map of {len(atlas.states)} states"><g stroke="{EDGE}" stroke-width="2">{"".join(lines)}</g>'
        f'<g stroke="{OUTLINE}" stroke-width="2">{"".join(nodes)}</g></svg>'
    )


def plot(atlas: Atlas, goal: State | None, ax: Axes | None) -> Axes:
    """Draws the map on axes, or on new ones; see `Atlas.plot`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise AxploreError("Matplotlib is not installed; `pip install 'axplore[report]'` installs it") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 6), layout="constrained")
    layout, colours = layout_of(atlas), _colours(atlas)
    x, y = np.full(len(atlas.statuses), np.nan), np.full(len(atlas.statuses), np.nan)
    x[layout.drawn], y[layout.drawn] = layout.x, layout.y
    edges = _edges(layout, ways_in(atlas))
    ax.plot(x[edges.T], y[edges.T], color=EDGE, linewidth=0.8, zorder=1)
    if goal is not None:
        on_the_way = np.array([atlas.indices[state] for state in atlas.path(goal).states])
        ax.plot(x[on_the_way], y[on_the_way], color=ROUTE, linewidth=2.5, zorder=2)
    for status in Status:
        indices = np.array([p for p in layout.drawn.tolist() if atlas.statuses[p] is status], dtype=np.int64)
        style = ":" if status is Status.OPEN else "-"
        size = (0.9 * layout.size) ** 2
        fill = [colours[index] for index in indices]
        ax.scatter(x[indices], y[indices], s=size, c=fill, edgecolors=OUTLINE, linestyle=style, zorder=3)
    if len(layout.drawn) <= MAX_NAMES:
        labels = labels_of(atlas)
        for index in layout.drawn.tolist():
            name = printable(readable(labels[index]))
            ink = "white" if _is_dark(colours[index]) else "black"
            short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
            ax.text(
                x[index], y[index], short, ha="center", va="center", fontsize=7, color=ink, zorder=4, parse_math=False
            )
    ax.set(xlim=(0, WIDTH), ylim=(layout.height, 0), aspect="equal")
    ax.set_axis_off()
    return ax


def _edges(layout: Layout, entries: IntArray) -> IntArray:
    """Returns the edges of the tree of short routes between states that are drawn, as pairs, [m, 2]."""
    indices = layout.drawn[layout.drawn > 0]
    edges: IntArray = np.stack((entries[indices], indices), axis=1)
    return edges[np.isin(edges[:, 0], layout.drawn)]


def _colours(atlas: Atlas) -> list[str]:
    """Returns the colour of each state: by expected steps in the atlas, by status outside."""
    members = len(atlas.states)
    steps: FloatArray = shown_steps(atlas)[:members]
    finite = np.where(np.isfinite(steps), steps, 0.0)
    shares = finite / max(1.0, float(finite.max()))
    mixed = np.rint(NEAR + shares[:, None] * (FAR - NEAR)).astype(int).tolist()
    inside = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed]
    return [*inside, *(OUTSIDE[status] for status in atlas.statuses[members:])]


def _dashes(status: Status) -> str:
    return ' stroke-dasharray="5 4"' if status is Status.OPEN else ""


def _is_dark(colour: str) -> bool:
    return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) < 3 * 128
