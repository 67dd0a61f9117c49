from __future__ import annotations

import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from msgspec import structs

from altered import altered
from axplore import Atlas, explore
from axplore.atlas.drawing import as_svg
from axplore.atlas.drawing.layout import GraphLayout, layout_of
from axplore.atlas.drawing.palette import RAMP, on_ramp
from axplore.atlas.drawing.states import ways_in
from axplore.errors import UnknownStateError
from axplore.records.order import Labels
from trees import tree_atlas

mpl.use("agg")
SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))


def test_the_picture_has_a_node_for_each_state_met_and_edges_named_by_their_actions(chain: Atlas) -> None:
    picture = parsed(as_svg(chain))
    titles = [title.text or "" for title in picture.iter(f"{SVG}title")]
    states = [f"s{number}" for number in range(12)]
    assert all(any(title.startswith(f"{state}: ") for title in titles) for state in states)
    layout = layout_of(chain)
    assert isinstance(layout, GraphLayout)
    assert len(list(picture.iter(f"{SVG}path"))) == len(layout.view.edges) > 5
    texts = {text.text for text in picture.iter(f"{SVG}text")}
    assert set(states) <= texts
    assert {edge.text for edge in layout.view.edges} <= texts


def test_colours_go_from_the_nearest_to_the_farthest() -> None:
    colours = on_ramp(np.array([0.0, 3.0, 6.0, np.inf]))
    assert (colours[0], colours[2]) == (RAMP[0], RAMP[-1])
    assert colours[1] == RAMP[3]


def test_short_ways_lead_from_states_admitted_before(chain: Atlas) -> None:
    entries = ways_in(chain)
    assert entries[0] == 0
    assert all(entry < min(place, len(chain)) for place, entry in enumerate(entries.tolist()) if place)
    named = {chain.states[place]: chain.states[entries[place]] for place in range(1, 5)}
    assert named == {"s1": "s0", "s2": "s1", "s3": "s2", "s4": "s3"}


def test_what_a_notebook_shows_has_every_state_and_the_verdict_and_no_label_becomes_markup(chain: Atlas) -> None:
    order = Labels(("<script>alert(1)</script>", *chain.seen[1:]))
    evil = altered(chain, counts=structs.replace(chain.counts, order=order))
    shown = evil._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "Nothing within the radius is missing" in shown
    assert all(f"<td>{state}</td>" in shown for state in chain.states[1:])


def test_a_notebook_shows_the_first_and_the_last_rows_of_a_long_table() -> None:
    shown = tree_atlas(100)._repr_html_()
    assert shown.count("<tr>") == 22
    assert "80 more states" in shown


def test_a_plot_draws_on_the_axes_that_it_is_given_and_marks_the_way_to_a_goal(chain: Atlas) -> None:
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    chain.plot(ax=axes)
    names = {text.get_text() for text in axes.texts}
    assert {f"s{number}" for number in range(12)} <= names
    layout = layout_of(chain)
    assert isinstance(layout, GraphLayout)
    assert {edge.text for edge in layout.view.edges} <= names
    other = Figure().subplots()
    assert chain.plot("s3", ax=other) is other
    marked = [patch for patch in other.patches if to_hex(patch.get_facecolor()) == "#d55e00"]
    assert len(marked) == 3  # s0 to s1, to s2, to s3
    with pytest.raises(UnknownStateError, match="s99"):
        chain.plot("s99")


def test_a_grid_is_plotted_with_its_walls_and_the_way_as_one_line() -> None:
    from matplotlib.figure import Figure

    atlas = explore("slippery-grid", 3.0, 1.0, world_parameters={"rows": 3, "columns": 3, "slip": 0.0})
    axes = Figure().subplots()
    atlas.plot((1, 1), ax=axes)
    assert {text.get_text() for text in axes.texts} >= {"(0, 0)", "(1, 1)"}
    assert np.size(axes.lines[-1].get_xdata()) == 3


def test_of_many_states_the_first_are_plotted_and_the_others_counted() -> None:
    from matplotlib.figure import Figure

    texts = {text.get_text() for text in tree_atlas(100).plot(ax=Figure().subplots()).texts}
    assert "state 39" in texts
    assert "state 41" not in texts
    assert "+3" in texts
