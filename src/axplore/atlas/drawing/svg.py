"""The map as SVG without scripts, for notebooks and for pages of several runs. Labels are escaped.

On a page with axplore's colours the map takes these, and elsewhere its own, on a ground of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from axplore.atlas.atlas import Atlas
from axplore.atlas.drawing.layered import Edge, Node, View
from axplore.atlas.drawing.layout import WIDTH, GridLayout, layout_of
from axplore.atlas.drawing.palette import INK, LINE, OUTLINE, PAPER, SOFT, ink_on
from axplore.atlas.drawing.states import fills_of, labels_of, shown_steps
from axplore.errors import printable
from axplore.labels import readable
from axplore.types import Status

RARE: Final = 0.1
"""Edges of a smaller probability are dashed."""

LETTER: Final = 6
"""About the width of a letter of the name of an edge."""

FONT: Final = "font-family:system-ui,sans-serif"
_INK, _SOFT, _LINE = f"var(--ink,{INK})", f"var(--soft,{SOFT})", f"var(--line-strong,{LINE})"
_PAPER, _GROUND = f"var(--paper,{PAPER})", "var(--raised,#f6f8fa)"


Texts = Sequence[tuple[str, str]]
"""A text in one or more versions, each with a name for style sheets."""


class Look(NamedTuple):
    """How a state looks: its colours, its tooltip, notes below its name, and names for style sheets."""

    fill: str
    outline: str
    title: str
    notes: Texts = ()
    is_dashed: bool = False
    css: str = ""
    thickness: float = 1.2


class EdgeLook(NamedTuple):
    """How an edge looks: its colour, its names, names for style sheets, and how thick it is."""

    colour: str
    texts: Texts
    css: str = ""
    thickness: float = 1.4


def as_svg(atlas: Atlas, width: int = 720) -> str:
    """Returns the map as an SVG element with a tooltip for each state."""
    layout, looks = layout_of(atlas), looks_of(atlas)
    said = f"Map of {len(atlas.states)} states"
    if isinstance(layout, GridLayout):
        return grid_svg(layout, looks, said, min(width, 480))
    return graph_svg(layout.view, looks, said, width)


def looks_of(atlas: Atlas) -> list[Look]:
    """Returns how each state looks, by index."""
    names = [readable(label) for label in labels_of(atlas)]
    rows = zip(names, fills_of(atlas), atlas.statuses, shown_steps(atlas).tolist(), strict=True)
    return [
        Look(
            fill,
            OUTLINE[status],
            f"{name}: {status.value}",
            [("", f"{steps:.1f}" if index < len(atlas.states) else status.value)],
            status is not Status.CERTIFIED,
        )
        for index, (name, fill, status, steps) in enumerate(rows)
    ]


def plain_edge(edge: Edge) -> EdgeLook:
    """Returns the look of an edge of which nothing special is to be said."""
    return EdgeLook(_LINE, [("", edge.text)] if edge.text else [])


def graph_svg(
    view: View,
    looks: Sequence[Look],
    said: str,
    width: int = 720,
    edge_look: Callable[[Edge], EdgeLook] = plain_edge,
) -> str:
    """Returns what is shown of a graph as an SVG element.

    Args:
        view: what is shown.
        looks: how each state looks, by index.
        said: what a screen reader says.
        width: the largest width, in pixels.
        edge_look: returns how an edge looks.
    """
    marks = view.marks
    nodes = (_node(node, _marked(looks[node.index], marks.get(node.index, {}))) for node in view.nodes)
    parts = [*_edges(view, edge_look), *nodes, *_clusters(view)]
    return framed((view.width, view.height), parts, said, width)


def framed(size: tuple[float, float], parts: Iterator[str] | Sequence[str], said: str, width: int) -> str:
    """Returns an SVG element around parts, no larger than a number of pixels or its own units."""
    return (
        f'<svg width="{min(width, size[0]):.0f}" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" role="img" '
        f'aria-label="{escape(said)}" style="max-width:100%;height:auto;{FONT}">'
        f'<rect width="100%" height="100%" rx="8" style="fill:{_GROUND}"/>{"".join(parts)}</svg>'
    )


def grid_svg(layout: GridLayout, looks: Sequence[Look], said: str, width: int = 480) -> str:
    """Returns the cells of a grid as an SVG element."""
    return framed((WIDTH, layout.height), _grid(layout, looks), said, width)


def _grid(layout: GridLayout, looks: Sequence[Look]) -> Iterator[str]:
    half = 0.94 * layout.size
    for index, x, y in zip(layout.drawn.tolist(), layout.x.tolist(), layout.y.tolist(), strict=True):
        look = looks[index]
        yield (
            f'<rect x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:.1f}" height="{2 * half:.1f}" '
            f'class="{look.css}" style="fill:{look.fill};stroke:{look.outline};'
            f'stroke-width:{max(3 if index == 0 else 0, look.thickness)}{_dashes(look)}">'
            f"<title>{escape(printable(look.title))}</title></rect>"
        )
    for x1, y1, x2, y2 in layout.wall_lines:
        yield (
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-linecap="round" '
            f'style="stroke:{_INK};stroke-width:{max(1.5, 0.1 * layout.size):.1f}"/>'
        )


def _edges(view: View, edge_look: Callable[[Edge], EdgeLook]) -> Iterator[str]:
    texts = []
    for edge in view.edges:
        look = edge_look(edge)
        dashes = ";stroke-dasharray:5 4" if edge.share < RARE else ""
        corners = " ".join(f"{x} {y}" for x, y in edge.head)
        line = f"fill:none;stroke:{look.colour};stroke-width:{look.thickness}{dashes}"
        yield (
            f'<g class="{look.css}"><path d="{edge.path}" style="{line}"/>'
            f'<polygon points="{corners}" style="fill:{look.colour}"/></g>'
        )
        ink = _SOFT if look.colour == _LINE else look.colour
        texts += [_edge_text(edge.label, text, ink, f"{look.css} {css}") for css, text in look.texts]
    yield from texts


def _edge_text(place: tuple[float, float], text: str, ink: str, css: str) -> str:
    longest = 30  # as the script that lays edges out leaves room for
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    (x, y), width = place, LETTER * len(shown)
    return (
        f'<g class="{css.strip()}"><rect x="{x - width / 2:.1f}" y="{y - 6}" width="{width}" height="12" '
        f'style="fill:{_GROUND}"/><text x="{x}" y="{y + 4}" text-anchor="middle" font-size="11" '
        f'style="fill:{ink}">{escape(printable(shown))}<title>{escape(printable(text))}</title></text></g>'
    )


def _node(node: Node, look: Look) -> str:
    left, top = node.x - node.width / 2, node.y - node.height / 2
    ink = ink_on(look.fill) if look.fill.startswith("#") and look.fill != PAPER else _INK
    fill = look.fill if look.fill != PAPER else _PAPER
    lines = "".join(
        f'<text x="{node.x}" y="{top + 18 + 16 * i:.1f}" font-size="13">{escape(printable(line))}</text>'
        for i, line in enumerate(node.lines)
    )
    notes = "".join(
        f'<text class="{css}" x="{node.x}" y="{top + node.height - 6:.1f}" font-size="10">{escape(note)}</text>'
        for css, note in look.notes
    )
    return (
        f'<g class="{look.css}" text-anchor="middle" style="fill:{ink}"><title>{escape(printable(look.title))}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width}" height="{node.height}" '
        f'rx="{2 if look.is_dashed else 9}" style="fill:{fill};stroke:{look.outline};'
        f'stroke-width:{max(2.5 if node.index == 0 else 0, look.thickness)}{_dashes(look)}"/>{lines}{notes}</g>'
    )


def _marked(look: Look, marks: Mapping[str, str]) -> Look:
    """Returns the look of a state with marks for actions that stay there or lead to the initial state."""
    said = "".join(f"\n{symbol} {text}" for symbol, text in marks.items())
    notes = [(css, " ".join((note, *marks))) for css, note in look.notes]
    return look._replace(notes=notes, title=look.title + said)


def _clusters(view: View) -> Iterator[str]:
    for cluster in view.clusters:
        yield (
            f'<g text-anchor="middle"><rect x="{cluster.x - cluster.width / 2:.1f}" y="{cluster.y - 14:.1f}" '
            f'width="{cluster.width}" height="28" rx="14" style="fill:{_PAPER};stroke:{_SOFT}"/>'
            f'<text x="{cluster.x}" y="{cluster.y + 5}" font-size="13" style="fill:{_INK}">+{cluster.size}</text></g>'
        )


def _dashes(look: Look) -> str:
    return ";stroke-dasharray:5 4" if look.is_dashed else ""
