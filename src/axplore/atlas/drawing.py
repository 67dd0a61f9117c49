"""The map of an atlas as a picture: SVG for notebooks, and Matplotlib for papers.

Both use the layout of the page: the states, and the tree of short routes from the initial state.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.layout import WIDTH, Layout, labels_of, layout_of, shown_steps, ways_in
from axplore.errors import AxploreError, printable
from axplore.labels import readable
from axplore.types import FloatArray, IntArray, State, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    points = {place: (x, y) for place, x, y in zip(layout.drawn.tolist(), layout.x, layout.y, strict=True)}
    lines = [
        f'<line x1="{points[a][0]:.1f}" y1="{points[a][1]:.1f}" x2="{points[b][0]:.1f}" y2="{points[b][1]:.1f}"/>'
        for a, b in _edges(layout, ways_in(atlas)).tolist()
    ]
    nodes = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.72 * layout.size:.1f}" fill="{colours[place]}"'
        f"{_dashes(atlas.statuses[place])}><title>{names[place]}: {atlas.statuses[place].value}</title></circle>"
        for place, (x, y) in points.items()
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
        on_the_way = np.array([atlas.places[state] for state in atlas.path(goal).states])
        ax.plot(x[on_the_way], y[on_the_way], color=ROUTE, linewidth=2.5, zorder=2)
    for status in Status:
        places = np.array([p for p in layout.drawn.tolist() if atlas.statuses[p] is status], dtype=np.int64)
        style = ":" if status is Status.OPEN else "-"
        size = (0.9 * layout.size) ** 2
        fill = [colours[place] for place in places]
        ax.scatter(x[places], y[places], s=size, c=fill, edgecolors=OUTLINE, linestyle=style, zorder=3)
    if len(layout.drawn) <= MAX_NAMES:
        labels = labels_of(atlas)
        for place in layout.drawn.tolist():
            name = printable(readable(labels[place]))
            ink = "white" if _is_dark(colours[place]) else "black"
            short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
            ax.text(
                x[place], y[place], short, ha="center", va="center", fontsize=7, color=ink, zorder=4, parse_math=False
            )
    ax.set(xlim=(0, WIDTH), ylim=(layout.height, 0), aspect="equal")
    ax.set_axis_off()
    return ax


def _edges(layout: Layout, entries: IntArray) -> IntArray:
    """Returns the edges of the tree of short routes between places that are drawn, as pairs, [m, 2]."""
    places = layout.drawn[layout.drawn > 0]
    edges: IntArray = np.stack((entries[places], places), axis=1)
    return edges[np.isin(edges[:, 0], layout.drawn)]


def _colours(atlas: Atlas) -> list[str]:
    """Returns the colour of each place: by expected steps in the atlas, by status outside."""
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
