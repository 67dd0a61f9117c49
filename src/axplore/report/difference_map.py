"""One map of two runs: every state at one place, with what was lost, gained, or became slower or faster.

It has no scripts. Parts that only one run has carry the class `only-old` or `only-new`, and texts that differ stand in
versions for both, the old and the new run, of which the style sheet shows the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from axplore.atlas import Atlas
from axplore.atlas.difference import ChangeKind, Difference
from axplore.atlas.drawing.graph import Graph, graph_of, percent
from axplore.atlas.drawing.grid import Moves, grid_of, moves_of, walls_of
from axplore.atlas.drawing.layered import Edge, laid_out
from axplore.atlas.drawing.layout import grid_layout
from axplore.atlas.drawing.palette import PAPER
from axplore.atlas.drawing.states import fills_of, labels_of, shown_steps, ways_in
from axplore.atlas.drawing.svg import EdgeLook, Look, Texts, graph_svg, grid_svg, plain_edge
from axplore.labels import readable
from axplore.types import IntArray, State

MOST_WANTED: Final = 60
"""At most this many states that differ are shown for that, whatever their place."""

LEAST_WIDTH: Final = 120
"""Of a node, in which a note such as "slower: 12.1 → 15.3" has room."""

BOTH, OLD, NEW = "in-both", "in-old", "in-new"
"""The versions of a text."""

OUTLINES: Final = {
    ChangeKind.LOST: "var(--fail,#cf222e)",
    ChangeKind.GAINED: "var(--gain,#1a7f37)",
    ChangeKind.SLOWER: "var(--way,#d55e00)",
    ChangeKind.FASTER: "var(--certified,#0072b2)",
    ChangeKind.SAME: "var(--soft,#59636e)",
}

Edges = dict[tuple[int, int], tuple[str, float]]


class DifferenceMap:
    """The states and transitions of two atlases, by one index: those of the old first, then those only of the new."""

    def __init__(self, difference: Difference) -> None:
        self._difference = difference
        old, new = difference.old, difference.new
        members = dict.fromkeys((*old.states, *new.states))
        self._seen = set(labels_of(old)), set(labels_of(new))
        others = dict.fromkeys((*labels_of(old), *labels_of(new)))
        self.labels: list[State] = [*members, *(label for label in others if label not in members)]
        self._members = len(members)
        self._index = {label: index for index, label in enumerate(self.labels)}
        self._old_edges, self._new_edges = self._edges(old), self._edges(new)
        self._changed = self._changed_edges()

    def as_svg(self) -> str:
        """Returns the map as an SVG element."""
        said = "One map of both runs: " + self._difference.summary[0]
        grid = grid_of(self._moves())
        if grid is not None:
            layout = grid_layout(grid, np.arange(len(self.labels)), walls_of(self._moves(), grid))
            return grid_svg(layout, self._looks(), said, 640)
        view, _ = laid_out(self._graph().as_json(), self._wanted(), (1200, 700))
        return graph_svg(view, self._looks(), said, 1200, self._edge_look)

    def _moves(self) -> Moves:
        """Returns the transitions of both runs; where only one has a state, what it says of it."""
        pairs, known = set(), set()
        for atlas in (self._difference.old, self._difference.new):
            moves = moves_of(atlas)
            pairs |= {(self._at(moves, source), self._at(moves, target)) for source, target in moves.pairs}
            known |= {self._at(moves, index) for index in range(moves.members) if index not in moves.only_resets}
        return Moves(self.labels, self._members, frozenset(pairs), frozenset(set(range(len(self.labels))) - known))

    def _at(self, moves: Moves, index: int) -> int:
        return self._index[moves.labels[index]]

    def _edges(self, atlas: Atlas) -> Edges:
        labels = labels_of(atlas)
        return {
            (self._index[labels[source]], self._index[labels[target]]): edge
            for (source, target), edge in graph_of(atlas).edges.items()
        }

    def _graph(self) -> Graph:
        edges = {**self._old_edges, **self._new_edges}
        edges |= {pair: (self._changed[pair], edges[pair][1]) for pair in self._changed if pair in edges}
        names = [readable(label) for label in self.labels]
        return Graph(names, self._parents(), self._members, edges, least_width=LEAST_WIDTH)

    def _parents(self) -> IntArray:
        """Returns the state before each in the tree of short ways: of the old run where it has the state."""
        parents = np.zeros(len(self.labels), dtype=np.int64)
        for atlas in (self._difference.new, self._difference.old):
            labels = labels_of(atlas)
            for index, parent in enumerate(ways_in(atlas).tolist()):
                here, before = self._index[labels[index]], self._index[labels[parent]]
                if before < here:
                    parents[here] = before
        return parents

    def _changed_edges(self) -> dict[tuple[int, int], str]:
        """Returns the outcomes of actions that behave differently, each with its probabilities in both runs."""
        found: dict[tuple[int, int], str] = {}
        for row in self._difference.rows:
            drawn = sum(row.old.values()), sum(row.new.values())
            for target in {**row.old, **row.new}:
                shares = [
                    percent(counts.get(target, 0) / total) if counts.get(target) else "never"
                    for counts, total in zip((row.old, row.new), drawn, strict=True)
                ]
                if target in self._index and row.state in self._index:
                    text = f"{readable(row.action)} {shares[0]} → {shares[1]}"
                    found[self._index[row.state], self._index[target]] = text
        return found

    def _wanted(self) -> list[int]:
        differing = [change.state for change in self._difference.differing]
        changed = [self.labels[index] for pair in self._changed for index in pair]
        wanted = dict.fromkeys(self._index[label] for label in (*changed, *differing) if label in self._index)
        return list(wanted)[:MOST_WANTED]

    def _looks(self) -> list[Look]:
        kinds = {change.state: change.kind for change in self._difference.changes}
        fills, notes = self._fills(), self._notes()
        return [
            self._look(index, kinds.get(label, ChangeKind.SAME), fills[index], notes[index])
            for index, label in enumerate(self.labels)
        ]

    def _look(self, index: int, kind: ChangeKind, fill: str, notes: Texts) -> Look:
        is_member, differs = index < self._members, kind is not ChangeKind.SAME
        css = {ChangeKind.LOST: "lost only-old", ChangeKind.GAINED: "gained only-new"}.get(kind, kind.value)
        if not is_member:
            label = self.labels[index]
            css = "only-old" if label not in self._seen[1] else "only-new" if label not in self._seen[0] else ""
        title = readable(self.labels[index]) + (f": {kind.value}" if is_member else ": outside both atlases")
        thickness = 3.5 if differs else 1.2
        return Look(fill, OUTLINES[kind], title, notes, kind is ChangeKind.LOST or not is_member, css, thickness)

    def _fills(self) -> list[str]:
        """Returns the colour of each state: that of the new run, or of the old one for a state that is lost."""
        colours: dict[State, str] = {}
        for atlas in (self._difference.old, self._difference.new):
            fills = fills_of(atlas)
            colours |= {label: fills[index] for index, label in enumerate(labels_of(atlas)) if fills[index] != PAPER}
        return [colours.get(label, PAPER) for label in self.labels]

    def _notes(self) -> list[Texts]:
        steps = [
            dict(zip(atlas.states, shown_steps(atlas).tolist(), strict=False))
            for atlas in (self._difference.old, self._difference.new)
        ]
        kinds = {change.state: change.kind for change in self._difference.changes}
        return [_note(kinds.get(label), steps[0].get(label), steps[1].get(label)) for label in self.labels]

    def _edge_look(self, edge: Edge) -> EdgeLook:
        pair = (edge.source, edge.target)
        if edge.target is None:
            return plain_edge(edge)
        before, now = self._old_edges.get((edge.source, edge.target)), self._new_edges.get((edge.source, edge.target))
        css = "only-old" if now is None else "only-new" if before is None else ""
        texts: list[tuple[str, str]] = [(BOTH, edge.text)]
        texts += [(OLD, before[0])] if before is not None else []
        texts += [(NEW, now[0])] if now is not None else []
        if pair in self._changed:
            return EdgeLook(OUTLINES[ChangeKind.SLOWER], texts, f"{css} changed", 2.6)
        if not css:
            return plain_edge(edge)._replace(texts=texts)
        return EdgeLook(OUTLINES[ChangeKind.LOST if css == "only-old" else ChangeKind.GAINED], texts, css, 1.8)


def _note(kind: ChangeKind | None, before: float | None, now: float | None) -> Texts:
    texts = ["" if steps is None else f"{steps:.1f}" for steps in (before, now)]
    if kind is None:
        return [("", "")]
    if kind is ChangeKind.SAME:
        return [(BOTH, texts[1]), (OLD, texts[0]), (NEW, texts[1])]
    named: Sequence[tuple[str, str]] = {
        ChangeKind.LOST: [(BOTH, f"lost, {texts[0]}"), (OLD, texts[0])],
        ChangeKind.GAINED: [(BOTH, f"gained, {texts[1]}"), (NEW, texts[1])],
    }.get(kind, [(BOTH, f"{kind.value}: {texts[0]} → {texts[1]}"), (OLD, texts[0]), (NEW, texts[1])])
    return named
