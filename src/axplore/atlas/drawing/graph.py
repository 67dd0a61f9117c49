"""The graph of an atlas: its states, and the transitions between them with the names of their actions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.drawing.layered import LIMITS
from axplore.atlas.drawing.states import labels_of, ways_in
from axplore.atlas.transitions import entry_frequencies
from axplore.labels import readable
from axplore.types import Action, IntArray

MOST_NAMED: Final = 3
"""The largest number of actions named on an edge."""


@dataclass(frozen=True, eq=False)
class Graph:
    """States and what leads from one to another.

    Attributes:
        labels: the names of the states; the first is the initial one.
        parents: the state before each in the tree of short ways, smaller than its own index; 0 of the first, [n].
        members: the number of states that are in the atlas; they come first.
        edges: the name of each edge and the largest probability of its actions, by source and target.
        pictured: the states that have pictures.
        least_width: that of a node, for what is noted below its name.
    """

    labels: Sequence[str]
    parents: IntArray
    members: int
    edges: dict[tuple[int, int], tuple[str, float]]
    pictured: Sequence[int] = ()
    least_width: int = 0

    def as_json(self) -> dict[str, Any]:
        """Returns the graph as the script that lays it out takes it."""
        texts: dict[str, int] = {}
        for text, _ in self.edges.values():
            texts.setdefault(text, len(texts))
        return {
            "labels": list(self.labels),
            "parents": self.parents.tolist(),
            "members": self.members,
            "pictured": list(self.pictured),
            "leastWidth": self.least_width,
            "texts": list(texts),
            "edges": {
                "source": [source for source, _ in self.edges],
                "target": [target for _, target in self.edges],
                "text": [texts[text] for text, _ in self.edges.values()],
                "share": [round(share, 4) for _, share in self.edges.values()],
            },
            "limits": LIMITS,
        }


def graph_of(
    atlas: Atlas,
    labels: Sequence[str] | None = None,
    action_name: Callable[[Action], str] = readable,
    pictured: Sequence[int] = (),
) -> Graph:
    """Returns the graph of an atlas and its frontier.

    Args:
        atlas: the atlas.
        labels: names of all states, by index; by default, their labels.
        action_name: returns the name of an action.
        pictured: the indices of states that have pictures.
    """
    return Graph(
        [readable(label) for label in labels_of(atlas)] if labels is None else labels,
        ways_in(atlas),
        len(atlas.states),
        {pair: (edge_text(shares), max(shares.values())) for pair, shares in _shares(atlas, action_name).items()},
        pictured,
    )


def _shares(atlas: Atlas, action_name: Callable[[Action], str]) -> dict[tuple[int, int], dict[str, float]]:
    """Returns the probabilities of the actions that lead from one state to another, by their names."""
    transitions = atlas.transitions
    sources = np.repeat(np.arange(len(transitions.states)), np.diff(transitions.state_pairs))
    names = [action_name(action) for actions in transitions.actions for action in actions]
    found: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    pairs = transitions.entry_pairs.tolist()
    frequencies = entry_frequencies(transitions).tolist()
    for pair, target, frequency in zip(pairs, transitions.successors.tolist(), frequencies, strict=True):
        found[int(sources[pair]), target][names[pair]] = frequency
    return found


def edge_text(shares: dict[str, float]) -> str:
    """Returns the name of an edge: the actions that lead there, with their probabilities unless these are 1."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    named = [name if share >= 1 else f"{name} {percent(share)}" for name, share in ordered[:MOST_NAMED]]
    more = len(ordered) - MOST_NAMED
    return ", ".join(named) + (f", {more} more" if more > 0 else "")


def percent(share: float) -> str:
    """Returns a probability as a percentage; rounding makes none 0 or 100."""
    if share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %" if share < 0.1 or share > 0.99 else f"{100 * share:.0f} %"
