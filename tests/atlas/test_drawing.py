from __future__ import annotations

import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from msgspec import structs

from altered import altered
from axplore import Atlas
from axplore.atlas.drawing import MAX_NAMES, as_svg, ways_in
from axplore.errors import UnknownStateError
from axplore.records.order import Labels
from trees import tree_atlas

mpl.use("agg")
SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))


def test_the_picture_has_a_node_for_each_state_met_and_an_edge_into_each_but_the_first(chain: Atlas) -> None:
    picture = parsed(as_svg(chain))
    titles = [title.text for title in picture.iter(f"{SVG}title")]
    assert titles[:2] == ["s0: certified", "s1: certified"]
    assert len(titles) == len(chain.statuses) == 12
    assert len(list(picture.iter(f"{SVG}line"))) == 11


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
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    plain = len(chain.plot(ax=axes).lines)
    assert plain == 11
    assert {text.get_text() for text in axes.texts} == {f"s{number}" for number in range(12)}
    other = Figure().subplots()
    assert chain.plot("s3", ax=other) is other
    assert len(other.lines) == plain + 1
    assert np.size(other.lines[-1].get_xdata()) == 4  # s0, s1, s2, s3
    with pytest.raises(UnknownStateError, match="s99"):
        chain.plot("s99")


def test_many_states_are_drawn_without_names() -> None:
    from matplotlib.figure import Figure

    assert not tree_atlas(MAX_NAMES + 1).plot(ax=Figure().subplots()).texts
