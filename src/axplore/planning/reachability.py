"""Which states can be met, by graph search alone: probabilities matter only by not being zero."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axplore.mdp import TabularMdp
from axplore.planning.rows import offsets_of, read_only
from axplore.types import IntArray

BoolArray = npt.NDArray[np.bool_]


def reachable_states(starts: IntArray, offsets: IntArray, successors: IntArray) -> BoolArray:
    """What can be met from any of `starts` in a graph of compressed rows, [n]; the starts are met.

    Args:
        starts: where to begin.
        offsets: the first successor of each node, and the end of the last one's, [n + 1].
        successors: all nodes' successors, one after the other.
    """
    from axplore.planning.sweep_kernels import search

    met: BoolArray = search(read_only(starts), read_only(offsets), read_only(successors))
    return met


def met_from_start(mdp: TabularMdp) -> BoolArray:
    """The states that some policy meets from the initial state, [S]."""
    return reachable_states(np.array([mdp.initial_index]), mdp.row_offsets[mdp.state_pairs], mdp.successors)


def certain_states(mdp: TabularMdp, goal: int) -> tuple[BoolArray, BoolArray]:
    """From where some policy without RESET reaches a goal with probability one, [S], and which pairs stay there, [P].

    It is the largest set in which the goal can be reached from every state by pairs that never leave the set.
    """
    pair_states, transition_pairs = mdp.pair_states, mdp.transition_pairs
    inside = np.ones(mdp.n_states, dtype=bool)
    while True:
        leaving = np.bincount(transition_pairs, ~inside[mdp.successors], minlength=mdp.n_pairs) > 0
        staying = ~leaving & inside[pair_states] & (pair_states != goal)
        kept = staying[transition_pairs]
        back = _reversed_edges(mdp.successors[kept], pair_states[transition_pairs[kept]], mdp.n_states)
        reaching = reachable_states(np.array([goal]), *back)
        if np.array_equal(reaching, inside):
            return inside, staying
        inside = reaching


def leading_to(targets: IntArray, sources: IntArray, successors: IntArray, n_nodes: int) -> BoolArray:
    """From where some of `targets` can be reached along the edges sources → successors, [n]; the targets count."""
    return reachable_states(targets, *_reversed_edges(successors, sources, n_nodes))


def _reversed_edges(heads: IntArray, tails: IntArray, n_nodes: int) -> tuple[IntArray, IntArray]:
    """Compressed rows of the graph with an edge head → tail for each of these."""
    order = np.argsort(heads, kind="stable")
    return offsets_of(heads, n_nodes), tails[order]
