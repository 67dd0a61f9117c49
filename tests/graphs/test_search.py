"""Graph search against plain searches in Python."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from axplore.domains import random_sparse, slippery_grid
from axplore.graphs.search import (
    BreadthFirst,
    Graph,
    certain_states,
    graph_from,
    graph_of,
    hops_from,
    hops_from_each,
    met_from_start,
    near_to_far,
    policy_graph,
    reachable,
    reversed_graph,
    search_tree,
)
from axplore.mdp import TabularMdp
from axplore.types import RESET_PAIR

ROWS = {
    "start": {"a": {"left": 0.5, "right": 0.5}},
    "left": {"a": {"left": 1.0}},
    "right": {"a": {"goal": 0.1, "right": 0.9}, "b": {"left": 1.0}},
    "apart": {"a": {"right": 1.0}},
    "goal": {"a": {"left": 1.0}},
}
MDP = TabularMdp.from_rows(ROWS, "start")
SMALL = graph_from(np.array([0, 1, 2, 2, 3]), np.array([1, 0, 2]))
"""0 and 1 lead to each other, 3 leads to 2."""


def random_graph(seed: int, n_nodes: int = 40, n_edges: int = 70) -> Graph:
    """With loops, parallel edges, and nodes that nothing leads to."""
    generator = np.random.default_rng(seed)
    tails = np.sort(generator.integers(n_nodes, size=n_edges))
    offsets = np.searchsorted(tails, np.arange(n_nodes + 1))
    return graph_from(offsets, generator.integers(n_nodes, size=n_edges))


def heads_of(graph: Graph, node: int) -> list[int]:
    heads: list[int] = graph.heads[graph.offsets[node] : graph.offsets[node + 1]].tolist()
    return heads


def hops_by_rounds(graph: Graph, starts: list[int]) -> list[int]:
    """The hops by letting them sink until nothing changes any more."""
    n_nodes = len(graph.offsets) - 1
    hops = [0 if node in starts else n_nodes for node in range(n_nodes)]
    for _ in range(n_nodes):
        for node in range(n_nodes):
            for head in heads_of(graph, node):
                hops[head] = min(hops[head], hops[node] + 1)
    return hops


def labels(mask: np.ndarray) -> set[object]:
    return {state for state, chosen in zip(MDP.states, mask, strict=True) if chosen}


def test_what_the_start_meets() -> None:
    assert labels(met_from_start(MDP)) == {"start", "left", "right", "goal"}


def test_where_the_goal_is_certain_without_reset() -> None:
    inside, staying = certain_states(MDP, MDP.index_of("goal"))
    assert labels(inside) == {"right", "apart", "goal"}
    assert np.flatnonzero(staying).tolist() == [MDP.pair_of("right", "a"), MDP.pair_of("apart", "a")]


def test_several_starts_reach_what_any_of_them_does() -> None:
    assert reachable(SMALL, np.array([0])).tolist() == [True, True, False, False]
    assert reachable(SMALL, np.array([0, 3, 3])).tolist() == [True, True, True, True]
    assert not reachable(SMALL, np.zeros(0, dtype=np.int64)).any()


def test_edges_turned_round_lead_back() -> None:
    assert reachable(reversed_graph(SMALL), np.array([2])).tolist() == [False, False, True, True]


@pytest.mark.parametrize("seed", range(5))
def test_the_nodes_before_each_node_ascend_and_are_named_once(seed: int) -> None:
    graph = random_graph(seed)
    backwards = reversed_graph(graph)
    for node in range(len(graph.offsets) - 1):
        before = [tail for tail in range(len(graph.offsets) - 1) if node in heads_of(graph, tail)]
        assert heads_of(backwards, node) == before


@pytest.mark.parametrize("seed", range(5))
def test_hops_are_those_of_the_shortest_way(seed: int) -> None:
    graph = random_graph(seed)
    assert hops_from(graph, np.array([3])).tolist() == hops_by_rounds(graph, [3])
    assert hops_from(graph, np.array([3, 17, 3])).tolist() == hops_by_rounds(graph, [3, 17])
    assert hops_from_each(graph, np.array([5, 3])).tolist() == [hops_by_rounds(graph, [start]) for start in (5, 3)]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_search_goes_no_farther_than_it_is_told(most: int) -> None:
    graph = random_graph(1)
    whole = hops_from(graph, np.array([3]))
    assert (whole[whole < 40] > most).any()
    assert hops_from(graph, np.array([3]), most).tolist() == np.where(whole <= most, whole, 40).tolist()


def test_all_nodes_come_once_and_the_nearest_first() -> None:
    graph = reversed_graph(graph_of(slippery_grid(rows=4, columns=5)))
    order, hops = near_to_far(graph, 7)
    assert sorted(order.tolist()) == list(range(20))
    assert order[0] == 7
    assert (np.diff(hops[order]) >= 0).all()
    order, hops = near_to_far(SMALL, 3)
    assert order.tolist() == [3, 2, 0, 1]
    assert hops.tolist() == [4, 4, 1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_last_edges_make_ways_as_short_as_the_hops(seed: int) -> None:
    graph = random_graph(seed)
    hops, edges = search_tree(graph, 3)
    tails = np.repeat(np.arange(40), np.diff(graph.offsets))
    for node in range(40):
        if node == 3 or hops[node] == 40:
            assert edges[node] == -1
        else:
            assert graph.heads[edges[node]] == node
            assert hops[tails[edges[node]]] == hops[node] - 1


def test_a_policy_has_the_edges_of_what_it_plays() -> None:
    mdp = random_sparse(30, 3, (2, 4), seed=1)
    generator = np.random.default_rng(0)
    policy = generator.integers(mdp.state_pairs[:-1], mdp.state_pairs[1:])
    policy[generator.random(30) < 0.3] = RESET_PAIR
    graph = policy_graph(mdp.row_offsets, mdp.successors, policy)
    for state, pair in enumerate(policy.tolist()):
        played = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1]) if pair != RESET_PAIR else slice(0)
        assert heads_of(graph, state) == mdp.successors[played].tolist()


def collatz(number: int) -> Iterator[tuple[str, int]]:
    """Backwards: an endless graph."""
    yield "double", 2 * number
    if number % 6 == 4:
        yield "third", (number - 1) // 3


def test_a_graph_without_end_is_searched_until_the_caller_stops() -> None:
    search = BreadthFirst(1, collatz)
    assert next(number for number in search if number == 3) == 3
    way = search.way_to(3)
    number = 1
    for step in way:
        number = 2 * number if step == "double" else (number - 1) // 3
    assert number == 3
    assert len(way) == 7
    assert search.way_to(1) == []


def test_nodes_come_nearest_first_and_once() -> None:
    edges = {0: [("a", 1), ("b", 2)], 1: [("c", 3), ("d", 0)], 2: [("e", 3), ("f", 2)], 3: []}
    search = BreadthFirst(0, lambda node: edges[node])
    assert list(search) == [0, 1, 2, 3]
    assert search.way_to(3) == ["a", "c"]
    assert list(search) == [0, 1, 2, 3]


def test_long_chains_are_searched() -> None:
    length = 100_000
    graph = graph_from(np.minimum(np.arange(length + 1), length - 1), np.arange(1, length))
    assert hops_from(graph, np.array([0])).tolist() == list(range(length))
