from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from altered import altered
from axplore import explore
from axplore.atlas import Atlas
from axplore.atlas.drawing import MAX_DRAWN, MAX_SINGLE, WIDTH, clusters_of, labels_of, layout_of, shown_steps
from axplore.atlas.transitions import state_visits
from axplore.types import Status
from made_counts import made_counts
from trees import tree_atlas


def moving(moves: Sequence[tuple[int, int]], n_states: int, labels: Sequence[str] | None = None) -> Atlas:
    """An atlas of states, numbered unless they have labels, with these transitions, one for each action."""
    by_state = [[target for source, target in moves if source == state] for state in range(n_states)]
    rows = [[(target, 1, 1)] for targets in by_state for target in targets]
    counts = made_counts(rows, [len(targets) for targets in by_state], labels=labels or range(n_states))
    return altered(tree_atlas(n_states), policies=(np.full(n_states, -1),) * n_states, counts=counts)


def test_pairs_of_whole_numbers_are_rows_and_columns() -> None:
    atlas = explore("slippery-grid", 2.0, 1.0, world_parameters={"rows": 4, "columns": 5, "slip": 0.0})
    layout = layout_of(atlas)
    assert layout.kind == "grid"
    cells: Any = labels_of(atlas)
    for (row, column), x, y in zip(cells, layout.x, layout.y, strict=True):
        assert x - layout.x[0] == 2 * layout.size * column
        assert y - layout.y[0] == 2 * layout.size * row


def test_numbers_that_move_as_on_a_lake_are_its_cells() -> None:
    width = 4
    moves = [(s, s + 1) for s in range(12) if s % width < width - 1] + [(s, s + width) for s in range(8)]
    layout = layout_of(moving([*moves, (5, 0), (7, 7)], 12))  # a hole that leads to the start, a wall
    assert layout.kind == "grid"
    assert layout.cells == (3, 4)
    assert np.allclose((layout.x - layout.x[0]) / (2 * layout.size), np.arange(12) % width)
    assert np.allclose((layout.y - layout.y[0]) / (2 * layout.size), np.arange(12) // width)


def test_numbers_that_move_otherwise_have_no_grid() -> None:
    line = [(s, s + 1) for s in range(11)]
    assert layout_of(moving(line, 12)).kind == "rings"
    assert layout_of(moving([*line, (0, 4)], 12)).kind == "rings"  # by one across the ends of rows
    assert layout_of(moving([(0, 1), (0, 4), (1, 7)], 12)).kind == "rings"


def test_a_grid_that_would_be_nearly_empty_is_none() -> None:
    labels = ((0, 0), *((1000 * number, 7 * number) for number in range(1, 10)))
    assert layout_of(tree_atlas(10, labels=labels)).kind == "rings"


def test_rings_are_at_the_expected_steps() -> None:
    atlas = tree_atlas(13)
    layout = layout_of(atlas)
    scale = layout.rings[-1][1] / layout.rings[-1][0]
    distances = np.hypot(layout.x - WIDTH / 2, layout.y - layout.height / 2)
    assert layout.rings[-1][0] == atlas.target.radius
    assert np.allclose(distances, shown_steps(atlas) * scale, atol=0.1)


def test_nodes_of_a_readable_map_do_not_cover_each_other() -> None:
    layout = layout_of(tree_atlas(250, 50))
    points = np.stack((layout.x, layout.y), axis=1)
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(len(points))
    assert gaps.min() > layout.size  # no middle under another node


def test_states_set_aside_stand_outside_of_the_radius() -> None:
    atlas = tree_atlas(30, 20)
    layout = layout_of(atlas)
    aside = np.array([status is Status.SET_ASIDE for status in atlas.statuses])
    distances = np.hypot(layout.x - WIDTH / 2, layout.y - layout.height / 2)
    assert distances[aside].min() > layout.rings[-1][1]


def test_no_more_states_are_drawn_than_a_browser_can_take_and_those_of_the_atlas_first() -> None:
    layout = layout_of(tree_atlas(200, MAX_DRAWN))
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


def test_clusters_begin_behind_whole_levels_of_the_tree() -> None:
    atlas = tree_atlas(300, 300)
    anchors = clusters_of(atlas, layout_of(atlas))
    alone = np.flatnonzero(anchors < 0)
    assert alone.tolist() == list(range(1 + 3 + 9 + 27))  # a level more would be 121 states, too many to stand alone
    assert set(anchors[anchors >= 0]) == set(range(1 + 3 + 9, 1 + 3 + 9 + 27))


def test_clusters_begin_behind_the_first_states_where_a_level_is_too_large() -> None:
    # 100 states stand around the initial one, and behind each of them two more.
    star = [(0, child) for child in range(1, 101)]
    behind = [(i, i + 100) for i in range(1, 201)]
    atlas = moving(star + behind, 301, [f"state {i}" for i in range(301)])
    anchors = clusters_of(atlas, layout_of(atlas))
    assert (anchors[:MAX_SINGLE] < 0).all()
    assert set(anchors[MAX_SINGLE:101]) == {0}
    assert anchors[101] == 1
