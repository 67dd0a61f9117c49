"""Compiled graph search; `search` has the functions to call."""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled, compiled_inner
from axplore.graphs.search import Graph, Hops
from axplore.types import IntArray

NO_EDGE: Final = -1


@compiled_inner
def spread(graph: Graph, n_starts: int, n_open: int, most: int, hops: Hops, order: IntArray) -> int:
    """Searches breadth first; writes the hops, and the nodes in the order in which they are met.

    Args:
        graph: the edges.
        n_starts: the number of starts, with which `order` begins and whose hops are 0.
        n_open: the number of nodes that may be entered, in the order of their numbers.
        most: nodes this many hops away lead nowhere further.
        hops: the number of nodes for every other node at first, [n].
        order: room for the nodes that are met, [n].

    Returns:
        The number of nodes met.
    """
    n_met, looked_at = n_starts, 0
    # The part of `order` that was not looked at yet is the queue.
    while looked_at < n_met and hops[order[looked_at]] < most:
        node = order[looked_at]
        looked_at += 1
        for edge in range(graph.offsets[node], graph.offsets[node + 1]):
            head = graph.heads[edge]
            if head < n_open and hops[head] == len(hops):
                hops[head] = hops[node] + 1
                order[n_met] = head
                n_met += 1
    return n_met


@compiled
def search(graph: Graph, starts: IntArray, most: int) -> tuple[Hops, IntArray]:
    """Returns the hops from the nearest of the starts, [n], and the nodes met, the nearest first."""
    n_nodes = len(graph.offsets) - 1
    hops = np.full(n_nodes, n_nodes, dtype=np.int32)
    order = np.empty(n_nodes, np.int64)
    n_starts = 0
    for start in starts:
        if hops[start] == n_nodes:
            hops[start] = 0
            order[n_starts] = start
            n_starts += 1
    n_met = spread(graph, n_starts, n_nodes, most, hops, order)
    return hops, order[:n_met]


@compiled
def search_each(graph: Graph, starts: IntArray) -> Hops:
    """Returns the hops from each of the starts, [G, n]."""
    n_nodes = len(graph.offsets) - 1
    hops = np.full((len(starts), n_nodes), n_nodes, dtype=np.int32)
    order = np.empty(n_nodes, np.int64)
    for index in range(len(starts)):
        hops[index, starts[index]] = 0
        order[0] = starts[index]
        spread(graph, 1, n_nodes, n_nodes, hops[index], order)
    return hops


@compiled
def last_edges(graph: Graph, hops: Hops, order: IntArray) -> IntArray:
    """Returns the edge by which a search that found these hops, in this order, entered each node, [n]; or NO_EDGE."""
    edges = np.full(len(hops), NO_EDGE)
    # The same order and the same first edge as the search took, so that ways are the same in every process.
    for node in order:
        for edge in range(graph.offsets[node], graph.offsets[node + 1]):
            head = graph.heads[edge]
            if edges[head] == NO_EDGE and hops[head] == hops[node] + 1:
                edges[head] = edge
    return edges


@compiled
def reverse(graph: Graph) -> tuple[IntArray, IntArray]:
    """Returns the edges turned round, as offsets and heads; the nodes before each node ascend, each named once."""
    n_nodes = len(graph.offsets) - 1
    # Two passes, one to count and one to fill in. Edges stand together by their tails, so that the tail entered last
    # for a head tells a parallel edge.
    last = np.full(n_nodes, -1)
    offsets = np.zeros(n_nodes + 1, np.int64)
    for tail in range(n_nodes):
        for edge in range(graph.offsets[tail], graph.offsets[tail + 1]):
            head = graph.heads[edge]
            if last[head] != tail:
                last[head] = tail
                offsets[head + 1] += 1
    for node in range(n_nodes):
        offsets[node + 1] += offsets[node]
    filled = offsets[:-1].copy()
    tails = np.empty(offsets[-1], np.int64)
    last[:] = -1
    for tail in range(n_nodes):
        for edge in range(graph.offsets[tail], graph.offsets[tail + 1]):
            head = graph.heads[edge]
            if last[head] != tail:
                last[head] = tail
                tails[filled[head]] = tail
                filled[head] += 1
    return offsets, tails
