"""What the map shows of each state: its label, its expected steps, and the state from which it is entered."""

from __future__ import annotations

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.drawing.palette import PAPER, on_ramp
from axplore.atlas.transitions import entry_frequencies, entry_states
from axplore.types import FloatArray, IntArray, State


def shown_steps(atlas: Atlas) -> FloatArray:
    """Returns the expected steps to show for each state: between its bounds, or the lower one if there is no other."""
    bounded = np.isfinite(atlas.upper)
    return np.where(bounded, (atlas.lower + np.where(bounded, atlas.upper, 0)) / 2, atlas.lower)


def labels_of(atlas: Atlas) -> list[State]:
    """Returns the labels of all states, by index."""
    return [*atlas.states, *(atlas.seen[number] for number in atlas.frontier_numbers.tolist())]


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


def fills_of(atlas: Atlas) -> list[str]:
    """Returns the colour of each state: by expected steps in the atlas, none outside."""
    members = len(atlas.states)
    return [*on_ramp(shown_steps(atlas)[:members]), *[PAPER] * (len(atlas.statuses) - members)]
