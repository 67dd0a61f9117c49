"""Graph search: what can be reached, how many edges away, and by which edge.

Graphs of numbered nodes are arrays, and searches of them are compiled. `BreadthFirst` searches a graph that a function
describes. Probabilities matter to none of this but by not being zero.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from axplore.compressed import entries_in, offsets_from
from axplore.graphs.rows import read_only
from axplore.mdp import TabularMdp
from axplore.types import RESET_PAIR, BoolArray, IntArray

Hops: TypeAlias = npt.NDArray[np.int32]
"""The number of edges on the shortest way to each node; the number of nodes where no way leads."""


class Graph(NamedTuple):
    """Edges as compressed rows; `graph_from` makes one.

    Attributes:
        offsets: the first edge of each node, and the end of the last one's, [n + 1].
        heads: the node that each edge leads to, [E].
    """

    offsets: IntArray
    heads: IntArray


def graph_from(offsets: IntArray, heads: IntArray) -> Graph:
    """Returns a graph with locked arrays, so that kernels are compiled once and not for open arrays too."""
    return Graph(read_only(offsets), read_only(heads))


def graph_of(mdp: TabularMdp) -> Graph:
    """Returns the graph with an edge from each state to every state that some pair of it leads to; RESET has none."""
    return graph_from(mdp.row_offsets[mdp.state_pairs], mdp.successors)


def policy_graph(row_offsets: IntArray, successors: IntArray, policy: IntArray) -> Graph:
    """Returns the graph of what a policy plays, with a node for each state.

    Args:
        row_offsets: the first successor of each pair, and the end of the last one's, [P + 1].
        successors: of all pairs, one after the other.
        policy: the pair that is played in each state, [n]; RESET_PAIR where no edge begins.
    """
    lengths = np.append(np.diff(row_offsets), 0)[policy]  # RESET_PAIR is the last, which has no successors
    return graph_from(offsets_from(lengths), successors[entries_in(row_offsets, policy[policy != RESET_PAIR])])


def reversed_graph(graph: Graph) -> Graph:
    """Returns the graph with every edge turned round; of parallel edges one is left."""
    from axplore.graphs.search_kernels import reverse

    return graph_from(*reverse(graph))


def reachable(graph: Graph, starts: IntArray) -> BoolArray:
    """Returns which nodes can be reached from any of the starts, these included, [n]."""
    hops = hops_from(graph, starts)
    met: BoolArray = hops < len(hops)
    return met


def hops_from(graph: Graph, starts: IntArray, most: int | None = None) -> Hops:
    """Returns the hops from the nearest of the starts to each node, [n], as far as they are at most `most`."""
    return _searched(graph, starts, most)[0]


def hops_from_each(graph: Graph, starts: IntArray) -> Hops:
    """Returns the hops from each of the starts to each node, [G, n]."""
    from axplore.graphs.search_kernels import search_each

    hops: Hops = search_each(graph, read_only(starts))
    return hops


def near_to_far(graph: Graph, start: int) -> tuple[IntArray, Hops]:
    """Returns all nodes, the nearest to a start first and those that it does not lead to last, [n], and hops, [n]."""
    hops, met = _searched(graph, np.array([start]))
    return np.concatenate((met, np.flatnonzero(hops == len(hops)))), hops


def search_tree(graph: Graph, start: int) -> tuple[Hops, IntArray]:
    """Returns the hops from a start to each node, [n], and the last edge of a shortest way to it, [n].

    The edge is -1 for the start itself and where no way leads.
    """
    from axplore.graphs.search_kernels import last_edges

    hops, met = _searched(graph, np.array([start]))
    return hops, last_edges(graph, hops, met)


def _searched(graph: Graph, starts: IntArray, most: int | None = None) -> tuple[Hops, IntArray]:
    from axplore.graphs.search_kernels import search

    return search(graph, read_only(starts), len(graph.offsets) if most is None else most)


def met_from_start(mdp: TabularMdp) -> BoolArray:
    """Returns the states that some policy meets from the initial state, [S]."""
    return reachable(graph_of(mdp), np.array([mdp.initial_index]))


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
        graph = graph_from(offsets_from(kept)[mdp.row_offsets[mdp.state_pairs]], mdp.successors[kept])
        reaching = reachable(reversed_graph(graph), np.array([goal]))
        if np.array_equal(reaching, inside):
            return inside, staying
        inside = reaching


Node = TypeVar("Node", bound=Hashable)
Label = TypeVar("Label")


class BreadthFirst(Generic[Node, Label]):
    """A search of a graph that a function describes; iterating over it yields the nodes, the nearest first.

    Whoever has found what is looked for stops iterating: no further edges are asked for.
    """

    def __init__(self, start: Node, edges: Callable[[Node], Iterable[tuple[Label, Node]]]) -> None:
        """Prepares the search.

        Args:
            start: the node to begin with.
            edges: gives the edges of a node, each with a label and the node that it leads to.
        """
        self._start = start
        self._edges = edges
        self._before: dict[Node, tuple[Node, Label]] = {}

    def __iter__(self) -> Iterator[Node]:
        self._before.clear()
        waiting = deque([self._start])
        while waiting:
            here = waiting.popleft()
            yield here
            for label, there in self._edges(here):
                if there != self._start and there not in self._before:
                    self._before[there] = here, label
                    waiting.append(there)

    def way_to(self, node: Node) -> list[Label]:
        """Returns the labels along a shortest way from the start to a node that was met."""
        labels = []
        while node != self._start:
            node, label = self._before[node]
            labels.append(label)
        return labels[::-1]
