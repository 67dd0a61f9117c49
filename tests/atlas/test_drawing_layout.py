from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from altered import altered
from axplore import explore
from axplore.atlas import Atlas
from axplore.atlas.drawing.graph import edge_text, graph_of
from axplore.atlas.drawing.layered import LIMITS, View
from axplore.atlas.drawing.layout import MAX_DRAWN, GraphLayout, GridLayout, layout_of
from axplore.atlas.drawing.states import labels_of, shown_steps
from axplore.atlas.transitions import state_visits
from made_counts import made_counts
from trees import tree_atlas


def moving(moves: Sequence[tuple[int, int]], n_states: int, labels: Sequence[Any] | None = None) -> Atlas:
    """An atlas of states, numbered unless they have labels, with these transitions, one for each action."""
    by_state = [[target for source, target in moves if source == state] for state in range(n_states)]
    rows = [[(target, 1, 1)] for targets in by_state for target in targets]
    counts = made_counts(rows, [len(targets) for targets in by_state], labels=labels or range(n_states))
    return altered(tree_atlas(n_states), policies=(np.full(n_states, -1),) * n_states, counts=counts)


def graph_view(atlas: Atlas) -> View:
    layout = layout_of(atlas)
    assert isinstance(layout, GraphLayout)
    return layout.view


def grid_layout(atlas: Atlas) -> GridLayout:
    layout = layout_of(atlas)
    assert isinstance(layout, GridLayout)
    return layout


def test_pairs_of_whole_numbers_are_rows_and_columns() -> None:
    atlas = explore("slippery-grid", 2.0, 1.0, world_parameters={"rows": 4, "columns": 5, "slip": 0.0})
    layout = grid_layout(atlas)
    cells: Any = labels_of(atlas)
    for (row, column), x, y in zip(cells, layout.x, layout.y, strict=True):
        assert x - layout.x[0] == 2 * layout.size * column
        assert y - layout.y[0] == 2 * layout.size * row


def test_numbers_that_move_as_on_a_lake_are_its_cells() -> None:
    width = 4
    moves = [(s, s + 1) for s in range(12) if s % width < width - 1] + [(s, s + width) for s in range(8)]
    layout = grid_layout(moving([*moves, (5, 0), (7, 7)], 12))  # a hole that leads to the start, a wall
    assert layout.cells == (3, 4)
    assert np.allclose((layout.x - layout.x[0]) / (2 * layout.size), np.arange(12) % width)
    assert np.allclose((layout.y - layout.y[0]) / (2 * layout.size), np.arange(12) // width)


def test_numbers_that_move_otherwise_have_no_grid() -> None:
    line = [(s, s + 1) for s in range(11)]
    graph_view(moving(line, 12))
    graph_view(moving([*line, (0, 4)], 12))  # by one across the ends of rows
    graph_view(moving([(0, 1), (0, 4), (1, 7)], 12))


def test_a_grid_that_would_be_nearly_empty_is_none() -> None:
    labels = ((0, 0), *((1000 * number, 7 * number) for number in range(1, 10)))
    graph_view(tree_atlas(10, labels=labels))


def test_a_graph_is_in_layers_from_the_initial_state_and_nothing_covers_anything() -> None:
    view = graph_view(tree_atlas(40, 10))
    spots = {node.index: node for node in view.nodes}
    assert sorted(spots) == list(range(50))
    along = [(node.x, node.y) for node in (spots[index] for index in range(50))]
    axis = 0 if along[1][0] == along[2][0] else 1
    layers = [{round(along[index][axis], 1) for index in level} for level in (range(1), range(1, 4), range(4, 13))]
    assert [len(layer) for layer in layers] == [1, 1, 1]
    assert sorted(min(layer) for layer in layers) == [min(layer) for layer in layers]
    boxes = np.array([(node.x, node.y, node.width / 2, node.height / 2) for node in view.nodes])
    apart = np.abs(boxes[:, None, :2] - boxes[None, :, :2]) >= boxes[:, None, 2:] + boxes[None, :, 2:]
    assert (apart.any(axis=2) | np.eye(len(boxes), dtype=bool)).all()


def test_edges_have_the_names_and_probabilities_of_their_actions() -> None:
    assert edge_text({"pay": 0.95}) == "pay 95 %"
    assert edge_text({"a": 1.0, "b": 0.995, "c": 0.0003}) == "a, b 99.5 %, c < 0.1 %"
    assert edge_text(dict.fromkeys("abcde", 1.0)) == "a, b, c, 2 more"
    view = graph_view(tree_atlas(4))
    assert {(edge.source, edge.target): edge.text for edge in view.edges} == {
        (0, child): f"to child {child - 1} 90 %" for child in (1, 2, 3)
    }
    assert {mark.source: mark.text for mark in view.loops} == {0: "to child 0 10 %, to child 1 10 %, to child 2 10 %"}


def test_actions_that_lead_to_the_initial_state_are_marks_where_they_are_many() -> None:
    line = [(s, s + 1) for s in range(5)]
    few = graph_view(moving([*line, (2, 0)], 6, list("abcdef")))
    assert (2, 0) in {(edge.source, edge.target) for edge in few.edges}
    assert not few.returns
    many = graph_view(moving([*line, *((s, 0) for s in range(1, 6))], 6, list("abcdef")))
    assert {mark.source for mark in many.returns} == {1, 2, 3, 4, 5}
    assert all(edge.target != 0 for edge in many.edges)


def test_of_a_large_graph_the_first_states_are_shown_and_the_others_are_counted() -> None:
    atlas = tree_atlas(300, 300)
    view = graph_view(atlas)
    assert sorted(node.index for node in view.nodes) == list(range(LIMITS["single"]))
    assert sum(cluster.size for cluster in view.clusters) == 600 - LIMITS["single"]
    wanted = layout_of(atlas, wanted=[599])
    assert isinstance(wanted, GraphLayout)
    parents = graph_of(atlas).parents.tolist()
    shown = {node.index for node in wanted.view.nodes}
    assert {599, parents[599], parents[parents[599]]} <= shown


def test_where_edges_are_many_only_the_short_ways_are_drawn_and_the_others_are_counted() -> None:
    moves = [(s, t) for s in range(20) for t in range(20) if s != t]
    view = graph_view(moving(moves, 20, [f"state {i}" for i in range(20)]))
    assert view.undrawn == len(moves) - 19 - 19  # those from and to the initial state


def test_walls_are_where_no_transition_crosses() -> None:
    # Two rows of two cells; there is no way between the right ones.
    moves = [(0, 1), (1, 0), (0, 2), (2, 0), (2, 3), (3, 2)]
    labels = [(0, 0), (0, 1), (1, 0), (1, 1)]
    walls = grid_layout(moving(moves, 4, labels)).walls
    assert (1, 1, 1, 2) in walls
    assert set(walls) - {(1, 1, 1, 2)} == {(0, 0, 0, 2), (2, 0, 2, 2), (0, 0, 2, 0), (0, 2, 2, 2)}


def test_there_are_no_walls_where_transitions_jump() -> None:
    labels = [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert not grid_layout(moving([(0, 2), (2, 0), (0, 3), (1, 3), (0, 1)], 4, labels)).walls


def test_no_more_cells_are_drawn_than_a_browser_can_take_and_those_of_the_atlas_first() -> None:
    labels = tuple((index // 60, index % 60) for index in range(200 + MAX_DRAWN))
    layout = grid_layout(tree_atlas(200, MAX_DRAWN, labels))
    assert len(layout.drawn) == MAX_DRAWN
    assert set(range(200)) <= set(layout.drawn.tolist())


def test_steps_without_an_upper_bound_are_shown_at_the_lower_one() -> None:
    atlas = tree_atlas(4, 1)
    assert shown_steps(atlas)[4] == atlas.lower[4]
    assert math.isclose(shown_steps(atlas)[1], (atlas.lower[1] + atlas.upper[1]) / 2)


def test_transitions_are_by_place_whatever_order_they_were_counted_in() -> None:
    atlas = explore("confusing-chain", 4.5, 0.5)
    transitions = atlas.transitions
    pair = 0
    for state, actions in zip(atlas.states, atlas.actions, strict=True):
        for action in actions:
            entries = slice(transitions.row_offsets[pair], transitions.row_offsets[pair + 1])
            places = transitions.successors[entries].tolist()
            met = {
                labels_of(atlas)[place]: n
                for place, n in zip(places, transitions.counts[entries].tolist(), strict=True)
            }
            assert met == atlas.successors(state, action)
            assert transitions.visits[pair] == sum(met.values())
            pair += 1
    assert state_visits(transitions).sum() == transitions.visits.sum()
