"""Graphs in layers, placed by dagre: one script, which the page runs in the browser and Python in QuickJS.

`dagre.min.js` is a library of the Cytoscape Consortium under the MIT licence; see `dagre.LICENSE.txt`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

SCRIPTS: Final = (Path(__file__).parent / "dagre.min.js", Path(__file__).parent / "layering.js")
"""In the order in which they are loaded."""

FRAME: Final = (1000, 700)
"""The width and the height of what a graph should fit into."""

LIMITS: Final[dict[str, int]] = {
    "whole": 60,  # graphs of up to this many states are shown whole
    "single": 40,  # of larger ones, this many states at first
    "more": 30,  # and this many more from every cluster that is opened
    "edges": 40,  # all edges are drawn if they are no more than this and
    "edgesPerTenStates": 15,  # this for every ten states; otherwise only those of the short ways
}


LOOP, RETURN = "↻", "↩"
"""The marks of actions that lead from a state to itself, and to the initial one."""

_STRUCTURED_CLONE: Final = "globalThis.structuredClone = (value) => JSON.parse(JSON.stringify(value))"
"""What dagre takes from browsers, for which QuickJS has nothing; dagre copies plain values with it."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle, by its centre."""

    x: float
    y: float
    width: float
    height: float


class Node(Box, frozen=True, kw_only=True):
    """A state: its index, and the lines of its name."""

    index: int
    lines: list[str]


class Cluster(Box, frozen=True, kw_only=True):
    """States that are not shown: behind which one, and how many."""

    anchor: int
    size: int


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """A line between two states, or to a block of them, with its name, its course and its head.

    Attributes:
        share: the largest probability of the actions that lead there.
    """

    source: int
    target: int | None
    text: str
    share: float
    points: list[tuple[float, float]]
    label: tuple[float, float]
    path: str
    head: list[tuple[float, float]]


class Mark(msgspec.Struct, frozen=True):
    """A state with actions that lead back to it, or to the initial state, and their names."""

    source: int
    text: str


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a graph, and where.

    Attributes:
        undrawn: the number of edges between the states shown that are not drawn.
        returns: what leads back to the initial state, where that is not drawn as edges.
        loops: what leads from a state to itself.
    """

    width: float
    height: float
    nodes: list[Node]
    edges: list[Edge]
    clusters: list[Cluster]
    undrawn: int
    returns: list[Mark]
    loops: list[Mark]

    @property
    def marks(self) -> dict[int, dict[str, str]]:
        """The marks of each state, with the names of the actions that they stand for."""
        found: dict[int, dict[str, str]] = {}
        for symbol, marks in ((LOOP, self.loops), (RETURN, self.returns)):
            for mark in marks:
                found.setdefault(mark.source, {})[symbol] = mark.text
        return found


def laid_out(
    graph: dict[str, Any], wanted: Sequence[int] = (), frame: tuple[int, int] = FRAME
) -> tuple[View, dict[str, Any]]:
    """Lays out a graph; returns what is shown, and the same as the page takes it.

    Args:
        graph: the graph as JSON values: see `axplore.atlas.drawing.graph`.
        wanted: indices of states that are shown whatever their place, with those on the way to them.
        frame: what the graph should fit into.
    """
    import quickjs

    context = quickjs.Context()
    context.eval(_STRUCTURED_CLONE)
    for script in _scripts():
        context.eval(script)
    sizes = {"width": frame[0], "height": frame[1]}
    arguments = ", ".join(map(json.dumps, (graph, list(wanted), sizes)))
    text = context.eval(f"JSON.stringify(layering.view({arguments}))")
    return msgspec.json.decode(text, type=View), json.loads(text)


@cache
def _scripts() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in SCRIPTS)
