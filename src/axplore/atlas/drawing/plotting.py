"""The map with Matplotlib, for papers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.drawing.layered import View
from axplore.atlas.drawing.layout import WIDTH, GridLayout, layout_of
from axplore.atlas.drawing.palette import INK, LINE, PAPER, RAMP, SOFT, WAY, ink_on
from axplore.atlas.drawing.states import shown_steps
from axplore.atlas.drawing.svg import RARE, Look, looks_of
from axplore.errors import AxploreError, printable
from axplore.labels import readable
from axplore.types import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

NAMED: Final = 150
"""The largest number of cells that are drawn with their names."""

UNITS_PER_INCH: Final = 90.0
GRID_INCHES: Final = 6.5
"""The size of a new figure: of a graph by its own size, between 3 and 14 inches; of a grid, its width."""


def plot(atlas: Atlas, goal: State | None, ax: Axes | None) -> Axes:
    """Draws the map on axes, or on new ones; see `Atlas.plot`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise AxploreError("Matplotlib is not installed; `pip install 'axplore[report]'` installs it") from None
    route = [] if goal is None else [atlas.indices[state] for state in atlas.path(goal).states]
    layout, looks = layout_of(atlas, wanted=route), looks_of(atlas)
    width, height = (
        (WIDTH, layout.height) if isinstance(layout, GridLayout) else (layout.view.width, layout.view.height)
    )
    if ax is None:
        inches = GRID_INCHES if isinstance(layout, GridLayout) else max(3.0, min(14.0, width / UNITS_PER_INCH))
        scale = inches / width
        _, ax = plt.subplots(figsize=(scale * width, max(2.0, scale * height)), layout="constrained")
    if isinstance(layout, GridLayout):
        _grid(ax, layout, looks, route, atlas)
    else:
        _graph(ax, layout.view, looks, route)
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    ax.set_axis_off()
    _colour_bar(ax, atlas)
    return ax


def _colour_bar(ax: Axes, atlas: Atlas) -> None:
    """Adds the scale of the colours, if they differ."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    steps = shown_steps(atlas)[: len(atlas.states)]
    finite = steps[np.isfinite(steps)]
    if ax.figure is None or finite.size < 2 or finite.max() <= finite.min():
        return
    colours = LinearSegmentedColormap.from_list("steps", RAMP)
    scale = ScalarMappable(Normalize(float(finite.min()), float(finite.max())), colours)
    ax.figure.colorbar(scale, ax=ax, shrink=0.6, label="expected steps")


def _grid(ax: Axes, layout: GridLayout, looks: list[Look], route: list[int], atlas: Atlas) -> None:
    from matplotlib.patches import Rectangle

    half = 0.94 * layout.size
    spots = dict(zip(layout.drawn.tolist(), zip(layout.x.tolist(), layout.y.tolist(), strict=True), strict=True))
    for index, (x, y) in spots.items():
        look = looks[index]
        style = ":" if look.is_dashed else "-"
        ax.add_patch(
            Rectangle((x - half, y - half), 2 * half, 2 * half, fc=look.fill, ec=look.outline, ls=style, lw=0.8)
        )
    for x1, y1, x2, y2 in layout.wall_lines:
        ax.plot((x1, x2), (y1, y2), color=INK, linewidth=1.8, solid_capstyle="round")
    way = [spots[index] for index in route if index in spots]
    if way:
        ax.plot(*zip(*way, strict=True), color=WAY, linewidth=2.5, marker="o", markersize=3)
    if len(spots) <= NAMED:
        states = [*atlas.states, *(report.state for report in atlas.frontier)]
        for index, (x, y) in spots.items():
            name = printable(readable(states[index]))
            ax.text(x, y, name, ha="center", va="center", fontsize=6, color=ink_on(looks[index].fill), parse_math=False)


def _graph(ax: Axes, view: View, looks: list[Look], route: list[int]) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon

    on_route = set(pairwise(route))
    for edge in view.edges:
        is_on = (edge.source, edge.target) in on_route
        colour, order = (WAY, 2) if is_on else (LINE, 1)
        style = "--" if edge.share < RARE else "-"
        line = PathPatch(_course(edge.points), fill=False, ec=colour, lw=2.2 if is_on else 0.9, ls=style, zorder=order)
        ax.add_patch(line)
        ax.add_patch(Polygon(edge.head, fc=colour, ec="none", zorder=order))
        if edge.text:
            ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.4}
            words: dict[str, Any] = {"fontsize": 5.5, "bbox": ground, "zorder": 3, "parse_math": False}
            ink = WAY if is_on else SOFT
            ax.text(*edge.label, printable(edge.text), ha="center", va="center", color=ink, **words)
    for node in view.nodes:
        look = looks[node.index]
        outline: dict[str, Any] = {
            "ec": WAY if node.index in route else look.outline,
            "ls": ":" if look.is_dashed else "-",
        }
        corner = (node.x - node.width / 2 + 4, node.y - node.height / 2 + 4)
        box = FancyBboxPatch(
            corner, node.width - 8, node.height - 8, boxstyle="round,pad=4", fc=look.fill, lw=1.0, zorder=4, **outline
        )
        ax.add_patch(box)
        name = printable("\n".join(node.lines))
        ink = ink_on(look.fill)
        ax.text(node.x, node.y, name, ha="center", va="center", fontsize=7, color=ink, zorder=5, parse_math=False)
    for cluster in view.clusters:
        ax.text(cluster.x, cluster.y, f"+{cluster.size}", ha="center", va="center", fontsize=7, color=SOFT, zorder=5)


def _course(points: list[tuple[float, float]]) -> Path:
    """Returns the line through points that the page draws too: rounded at each of them."""
    from matplotlib.path import Path

    at = np.array(points)
    middles = (at[:-1] + at[1:]) / 2
    vertices, codes = [at[0], middles[0]], [Path.MOVETO, Path.LINETO]
    for corner, middle in zip(at[1:-1], middles[1:], strict=True):
        vertices += [corner, middle]
        codes += [Path.CURVE3, Path.CURVE3]
    return Path([*vertices, at[-1]], [*codes, Path.LINETO])
