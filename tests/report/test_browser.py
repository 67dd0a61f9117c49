from __future__ import annotations

import math
import shutil
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from altered import altered
from axplore import Atlas, explore
from axplore.atlas.drawing.layered import FRAME, LIMITS
from axplore.atlas.drawing.layout import GraphLayout, layout_of
from axplore.atlas.state_report import rounded_down, rounded_up
from axplore.report import page as page_module
from axplore.report import write_report
from axplore.report.page import SECTIONS, Section, page_of
from axplore.runs.history import History
from axplore.types import Status
from browsing import Browser
from commands import run
from made_counts import made_counts
from trees import tree_atlas

HOSTILE = "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>&amp;\"'</title>"


def choose(browser: Browser, place: int) -> None:
    browser.run(
        "document.getElementById(`state-${arguments[0]}`).dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        place,
    )


def star_atlas(leaves: int) -> Atlas:
    """An atlas of a state with many others around it, of which some are behind one more."""
    tree = tree_atlas(leaves)
    rows = [[(leaf, 1, 1)] for leaf in range(1, leaves)]
    labels = [f"state {number}" for number in range(leaves)]
    counts = made_counts(rows, [leaves - 1] + [0] * (leaves - 1), labels=labels)
    policies = tuple(np.array([max(0, leaf - 1), *[-1] * (leaves - 1)]) for leaf in range(leaves))
    return altered(tree, policies=policies, counts=counts)


def leaking_atlas() -> Atlas:
    """An atlas of two states, and an action that leads out of it once in ten times."""
    tree = tree_atlas(2, 1)
    counts = made_counts([[(1, 9, 1), (2, 1, 2)]], [1, 0], labels=["state 0", "state 1", "outside"])
    return altered(tree, counts=counts)


def test_the_page_loads_without_any_request_and_without_complaints(browser: Browser, chain_run: Path) -> None:
    page = write_report(chain_run)

    browser.open(page)

    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
    assert browser.complaints() == []


def test_a_click_on_a_goal_shows_the_numbers_of_the_atlas(browser: Browser, chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    browser.open(write_report(chain_run))

    for place, state in enumerate(atlas.states[1:], start=1):
        choose(browser, place)
        bounds = atlas.bounds(state)
        assert browser.text("#panel-title") == f"Route to {state}"
        assert (
            browser.text("#panel-steps") == f"{rounded_down(bounds.lower)} to {rounded_up(bounds.upper)} expected steps"
        )
        assert browser.text("#panel-reason") == atlas.describe(state).reason


def test_a_click_on_a_goal_shows_its_bounds_over_steps(browser: Browser, chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    browser.open(write_report(chain_run))
    charts = 0

    for place, state in enumerate(atlas.states[1:], start=1):
        choose(browser, place)
        bounds = atlas.bounds(state)
        if browser.count("#bounds-once"):  # nothing to draw
            assert browser.text("#bounds-once").startswith(f"They were logged once, at step {atlas.steps:,}: ")
            continue
        charts += 1
        cells = browser.run(
            "return [...document.querySelectorAll('#bounds-table tr:last-child > *')].map((c) => c.textContent)"
        )
        steps, lower, upper = cells[-3:]
        assert steps == f"{atlas.steps:,}"
        assert (float(lower), float(upper)) == pytest.approx((bounds.lower, bounds.upper), abs=0.0021)
        path = browser.run("return document.querySelector('#bounds-chart .band').getAttribute('d')")
        assert path.endswith("Z")
        assert "NaN" not in path
    assert charts


def test_a_click_on_a_goal_shows_its_policy(browser: Browser, chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    browser.open(write_report(chain_run))

    for place, state in enumerate(atlas.states[1:], start=1):
        choose(browser, place)
        route = atlas.path(state)
        steps = zip(route.states, route.actions, strict=False)
        shown = browser.texts("#route li")
        assert [text.partition(",")[0] for text in shown] == [f"in {at} play {action}" for at, action in steps]
        on_route = list(zip(route.states, route.states[1:], strict=False))
        assert browser.count("#map .edge.way:not(.other):not(.fail)") == len(on_route)
        for action in route.actions:
            assert any(text.startswith(str(action)) for text in browser.texts("#map .edge.way .edge-name"))


def test_the_chance_to_arrive_is_that_of_the_atlas(browser: Browser, chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    browser.open(write_report(chain_run))
    choose(browser, 5)

    for steps in (0, 1, 2, 3, 5, 8, 13, 16):
        browser.slide("chance-steps", steps)
        arrival = atlas.probability(atlas.states[5], steps)
        estimate, _, proven = browser.text("#chance").partition(";")
        assert estimate == f"{_percent(arrival.estimate)} by the observed frequencies"
        assert proven == f" at least {_percent(math.floor(1000 * arrival.lower) / 1000)} proven"


def test_beyond_its_curve_the_chance_to_arrive_is_not_that_at_its_end(browser: Browser) -> None:
    atlas = explore("random-maze", 400, 1, world_parameters={"rows": 8, "columns": 8}, assume="deterministic")
    place = int(np.argmax(atlas.upper[: len(atlas)]))
    browser.open_text(page_of(atlas, History(), Path("run")))
    choose(browser, place)
    steps = int(atlas.upper[place])
    for n, said in ((steps - 1, "0 %"), (steps, "100 %"), (2 * steps, "100 %"), (9 * steps, "100 %")):
        browser.slide("chance-steps", n)
        assert browser.text("#chance") == f"{said} by the observed frequencies; at least {said} proven"
    slow = tree_atlas(13)
    browser.open_text(page_of(slow, History(), Path("run")))
    choose(browser, 12)
    browser.slide("chance-steps", 5000)
    least = math.floor(1000 * (1 - slow.upper[12] / 5001)) / 10
    assert browser.text("#chance") == f"more than 99.9 % by the observed frequencies; at least {least:g} % proven"


def test_a_state_that_episodes_certify_counts_as_within_the_radius(browser: Browser) -> None:
    atlas = explore("gym:FrozenLake-v1", 8, 2, max_steps=100_000, seed=24)
    above = [state for state in atlas.states if atlas.bounds(state).upper > 10]
    assert above, "the upper bound of the policy shown is above, and episodes prove another one"
    browser.open_text(page_of(atlas, History(), Path("run")))
    assert browser.text("#within").startswith(f"Within 10.0 expected steps: {len(atlas)} states by upper bounds")
    assert "more than that where episodes prove it of another policy" in browser.run("return document.body.textContent")


def test_a_policy_that_depends_on_the_step_has_the_chances_of_the_atlas(browser: Browser, tmp_path: Path) -> None:
    atlas = explore(
        "confusing-chain", 3.0, 1.0, explorer="ucb-explore-experiment", max_steps=20_000, run=tmp_path / "run"
    )
    place = max(range(len(atlas.states)), key=lambda place: float(atlas.lower[place]))
    assert atlas.policy(atlas.states[place]).horizon is not None
    browser.open(write_report(tmp_path / "run"))
    choose(browser, place)

    for steps in (1, 3, 6, 30):
        browser.slide("chance-steps", steps)
        expected = atlas.probability(atlas.states[place], steps).estimate
        assert browser.text("#chance") == f"{_percent(expected)} by the observed frequencies"


def test_a_state_left_out_says_why(browser: Browser, chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    browser.open(write_report(chain_run))

    choose(browser, len(atlas.states))

    assert browser.text("#panel-title") == str(atlas.frontier[0].state)
    assert browser.text("#panel-reason") == atlas.frontier[0].reason
    assert browser.count("#map .edge.way") == 0


def test_search_finds_a_state_and_says_when_there_is_none(browser: Browser, chain_run: Path) -> None:
    browser.open(write_report(chain_run))

    browser.find("#search").send_keys("S5", Keys.ENTER)
    assert browser.text("#panel-title") == "Route to s5"

    browser.find("#search").send_keys(" nowhere", Keys.ENTER)
    assert browser.run("return document.getElementById('status').textContent") == "There is no state S5 nowhere."


def test_the_slider_of_the_radius_fades_what_is_farther(browser: Browser) -> None:
    atlas = tree_atlas(40, 10)
    browser.open_text(page_of(atlas, History(), Path("run")))
    assert browser.count("#map .node.beyond") == 0

    browser.slide("radius", 2.0)

    assert browser.count("#map .node.beyond") == int((atlas.lower > 2.0).sum())
    within = int((atlas.upper <= 2.0).sum())
    beyond = int((atlas.lower > 2.0).sum())
    assert browser.text("#within") == (
        f"Within 2.0 expected steps: {within} states by upper bounds of policies, {50 - within - beyond} "
        f"undecided, {beyond} beyond by lower bounds."
    )


def test_the_slider_of_the_discovery_shows_what_was_known_by_then(browser: Browser) -> None:
    browser.open_text(page_of(tree_atlas(40, 10), History(), Path("run")))

    browser.slide("replay", 13)

    assert browser.count("#map .node:not(.pending)") == 13
    assert browser.count("#map .node.unmet") == 50 - 13
    assert browser.text("#replay-value") == "13 of 40, at step 120"


def test_colours_follow_what_is_chosen(browser: Browser) -> None:
    browser.open_text(page_of(tree_atlas(40, 10), History(), Path("run")))
    colours = (
        "return [...document.querySelectorAll('#map .node:not(.frontier) .shape')].map((shape) => shape.style.fill)"
    )
    seen = set()
    for choice in ("steps", "width", "visits", "status"):
        browser.run(
            "const list = document.getElementById('colour'); list.value = arguments[0];"
            "list.dispatchEvent(new Event('change'))",
            choice,
        )
        seen.add(tuple(browser.run(colours)))
    assert len(seen) == 4


def test_statuses_differ_in_shape_and_not_in_colour_only(browser: Browser) -> None:
    statuses = [Status.CERTIFIED] * 30 + [Status.OPEN] * 10 + [Status.SET_ASIDE] * 5 + [Status.OPEN] * 5
    atlas = altered(tree_atlas(40, 10), statuses=tuple(statuses))
    browser.open_text(page_of(atlas, History(), Path("run")))
    outline = "return document.querySelector(arguments[0]).getAttribute('d')"
    shapes = {browser.run(outline, f"#map .node.{name} .shape") for name in ("certified", "open", "set-aside")}
    assert len(shapes) == 3


def test_states_that_only_reset_are_marked(browser: Browser, chain_run: Path, tmp_path: Path) -> None:
    marked = "return [...document.querySelectorAll('#map .node .terminal')].map((mark) => mark.parentNode.id)"
    explore("gym:FrozenLake-v1", 2.0, 1.0, world_parameters={"is_slippery": False}, run=tmp_path / "run")
    browser.open(write_report(tmp_path / "run"))
    (place,) = [place for place, state in enumerate(Atlas.load(tmp_path / "run").states) if state == 5]  # a hole
    assert browser.run(marked) == [f"state-{place}"]
    assert "double outline: only resets" in browser.text("#legend")
    browser.open(write_report(chain_run))
    assert browser.run(marked) == []
    assert "only resets" not in browser.text("#legend")


def test_the_map_is_used_by_keys_alone(browser: Browser, tmp_path: Path) -> None:
    explore("slippery-grid", 3.0, 1.0, world_parameters={"rows": 3, "columns": 3, "slip": 0.0}, run=tmp_path / "run")
    browser.open(write_report(tmp_path / "run"))
    focused = "return document.activeElement.querySelector('title').textContent.split(':')[0]"

    browser.run("document.querySelector('.node[tabindex=\"0\"]').focus()")
    browser.driver.switch_to.active_element.send_keys(Keys.HOME)
    assert browser.run(focused) == "(0, 0)"
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert browser.run(focused) == "(0, 1)"
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert browser.run(focused) == "(1, 1)"
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.text("#panel-title") == "Route to (1, 1)"
    assert browser.run("return document.activeElement.id") == "panel"
    assert browser.run("return document.getElementById('status').textContent").startswith("(1, 1): certified")
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert browser.text("#panel-title") == "Choose a state"


def test_everything_that_can_be_used_has_a_name(browser: Browser, chain_run: Path) -> None:
    browser.open(write_report(chain_run))
    choose(browser, 5)
    tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    roles = {"button", "combobox", "slider", "searchbox", "spinbutton", "link", "region", "img"}
    nodes = [node for node in tree["nodes"] if not node["ignored"] and node["role"]["value"] in roles]
    nameless = [node for node in nodes if not node.get("name", {}).get("value")]
    assert len(nodes) > 20
    assert nameless == []


def test_tables_are_sorted_by_a_click(browser: Browser) -> None:
    atlas = tree_atlas(40)
    browser.open_text(page_of(atlas, History(), Path("run")))
    heading = "#states thead th:last-child"

    browser.find(f"{heading} button").click()
    browser.find(f"{heading} button").click()

    assert browser.find(heading).get_attribute("aria-sort") == "descending"
    found = [int(text.replace(",", "")) for text in browser.texts("#states tbody td:last-child")]
    assert found == sorted(atlas.found_at.tolist(), reverse=True)


def test_a_label_with_tags_shows_as_text(browser: Browser) -> None:
    labels = ("start", HOSTILE, *(f"state {number}" for number in range(2, 13)))
    browser.open_text(page_of(tree_atlas(10, 3, labels), History(), Path("run")))
    choose(browser, 1)

    assert browser.text("#panel-title") == f"Route to {HOSTILE}"
    assert HOSTILE in browser.texts("#states button.goal")
    assert browser.run("return window.hacked") is None
    assert browser.complaints() == []


@pytest.mark.parametrize(("members", "frontier"), [(250, 50), (1700, 300)])
def test_of_many_states_the_first_are_shown_and_any_is_found(browser: Browser, members: int, frontier: int) -> None:
    atlas = tree_atlas(members, frontier)
    browser.open_text(page_of(atlas, History(), Path("run")))
    assert browser.count("#map .node") == LIMITS["single"]
    hidden = sum(int(text.removeprefix("+")) for text in browser.texts("#map .cluster text"))
    assert hidden == members + frontier - LIMITS["single"]

    browser.find("#search").send_keys(f"state {members - 1}", Keys.ENTER)
    browser.slide("replay", members // 2)
    browser.slide("radius", 3)

    assert browser.text("#panel-title") == f"Route to state {members - 1}"
    assert browser.count(f"#state-{members - 1}.chosen") == 1
    assert browser.count("#map .node.pending") == 1, "the last state is not known by then"
    assert browser.complaints() == []


def test_a_page_is_readable_in_the_dark_and_on_paper(browser: Browser, chain_run: Path) -> None:
    browser.open(write_report(chain_run))
    colours = "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    try:
        for media, features in (("screen", [{"name": "prefers-color-scheme", "value": "dark"}]), ("print", [])):
            browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
            background, ink = (_luminance(colour) for colour in browser.run(colours))
            assert (max(background, ink) + 0.05) / (min(background, ink) + 0.05) > 7
            assert (background < ink) == (media == "screen")
        assert browser.run("return getComputedStyle(document.querySelector('.controls')).display") == "none"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_status_of_a_chosen_state_can_be_read(browser: Browser, scheme: str) -> None:
    atlas = tree_atlas(10, 4)
    statuses = (*[Status.CERTIFIED] * 10, *[Status.SET_ASIDE] * 2, *[Status.OPEN] * 2)
    browser.open_text(page_of(altered(atlas, statuses=statuses), History(), Path("run")))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    colours = (
        "const ink = getComputedStyle(document.querySelector('#panel .badge')).color;"
        "return [getComputedStyle(document.getElementById('panel')).backgroundColor, ink]"
    )
    try:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
        for place in (1, 10, 12):
            choose(browser, place)
            background, ink = (_luminance(colour) for colour in browser.run(colours))
            assert (max(background, ink) + 0.05) / (min(background, ink) + 0.05) >= 4.5
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_a_section_that_is_added_runs_its_script(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(page_module.FOLDER, tmp_path / "report")
    added = tmp_path / "report" / "sections" / "greeting"
    added.mkdir()
    (added / "section.html").write_text('<p id="greeting"></p>')
    (added / "section.js").write_text(
        "selection.onChange((place) => { elements.byId('greeting').textContent = `Hello, ${atlas.labels[place]}`; });"
    )
    monkeypatch.setattr(page_module, "FOLDER", tmp_path / "report")
    monkeypatch.setattr(page_module, "SECTIONS", (Section("greeting", "greeting", "Greetings"), *SECTIONS))
    browser.open_text(page_of(tree_atlas(10), History(), Path("run")))
    choose(browser, 3)
    assert browser.text("#greeting") == "Hello, state 3"
    assert browser.complaints() == []


def test_what_was_chosen_is_kept_in_the_address(browser: Browser, chain_run: Path) -> None:
    browser.open(write_report(chain_run), "state=s4&colour=visits")
    assert browser.text("#panel-title") == "Route to s4"
    assert browser.find("#colour").get_attribute("value") == "visits"


def _percent(part: float) -> str:
    if 0 < part < 0.001:
        return "less than 0.1 %"
    if 0.999 < part < 1:
        return "more than 99.9 %"
    return f"{round(100 * part + 1e-12, 1):g} %"


def _luminance(colour: str) -> float:
    channels = np.array([int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]) / 255
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_page_opens_with_the_tree_of_short_ways_and_the_way_to_the_farthest_state(
    browser: Browser, chain_run: Path
) -> None:
    browser.open(write_report(chain_run))
    layout = layout_of(Atlas.load(chain_run))
    assert isinstance(layout, GraphLayout)
    assert browser.count("#map .layer-tree .edge") == len(layout.view.edges) > 5
    assert browser.text("#panel-title") in ("Route to s4", "Route to s5")
    assert browser.count(".node.chosen") == 1
    assert browser.run("return location.hash") == "", "nobody has asked for it"
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert browser.count(".node.chosen") == 0


def test_cells_of_a_grid_are_joined_along_the_tree_of_short_ways(browser: Browser) -> None:
    atlas = explore("random-maze", 30, 1, world_parameters={"rows": 5, "columns": 5}, assume="deterministic")
    browser.open_text(page_of(atlas, History(), Path("run")))
    assert browser.count("#map .branch") == len(atlas) - 1
    colours = (
        "return [...document.querySelectorAll('#map .branch')].map((line) => [line.style.stroke, line.dataset.index])"
    )
    for stroke, index in browser.run(colours):
        shape = f"return document.querySelector('#state-{index} .shape').style.fill"
        assert stroke == browser.run(shape)


@pytest.mark.parametrize("width", [1400, 390])
def test_no_page_is_wider_than_the_screen(browser: Browser, chain_run: Path, tmp_path: Path, width: int) -> None:
    run("compare", chain_run, "--page", tmp_path / "compared.html")
    run("diff", chain_run, chain_run, "--page", tmp_path / "changes.html")
    with browser.screen(width, 844):
        for page in (write_report(chain_run), tmp_path / "compared.html", tmp_path / "changes.html"):
            browser.open(page)
            assert browser.run("return document.documentElement.scrollWidth") <= width
            assert browser.complaints() == []


def test_a_click_on_a_cluster_shows_more_of_the_states_behind_it(browser: Browser) -> None:
    browser.open_text(page_of(tree_atlas(300, 330), History(), Path("run")))
    size = int(browser.text('.cluster[data-anchor="13"] text').removeprefix("+"))
    before = browser.count("#map .node")
    browser.run("document.querySelector('.cluster[data-anchor=\"13\"]').dispatchEvent(new Event('click'))")
    assert browser.count("#map .node") == before + 3  # its children
    assert browser.count('.cluster[data-anchor="13"]') == 0
    clusters = browser.run(
        "return [40, 41, 42].map((anchor) => +document.querySelector(`.cluster[data-anchor='${anchor}'] text`)"
        ".textContent)"
    )
    assert sum(clusters) == size - 3
    assert browser.run("return document.activeElement.id") == "state-40"
    assert browser.complaints() == []


def test_leaves_behind_one_state_stand_in_a_block_and_more_of_them_come_with_a_click(browser: Browser) -> None:
    browser.open_text(page_of(star_atlas(200), History(), Path("run")))
    assert browser.count("#map .block") == 1
    assert browser.text("#map .cluster text") == f"+{200 - LIMITS['single']}"
    browser.run("document.querySelector('.cluster').dispatchEvent(new Event('click'))")
    assert browser.text("#map .cluster text") == f"+{200 - LIMITS['single'] - LIMITS['more']}"
    spots = browser.run("return [...canvas.spots.values()].map(({ x, y, width, height }) => [x, y, width, height])")
    assert not [pair for pair in combinations(spots, 2) if _overlap(*pair)]


def _said(browser: Browser) -> str:
    return str(browser.run("return document.getElementById('status').textContent"))


def _overlap(a: list[float], b: list[float]) -> bool:
    return abs(a[0] - b[0]) < (a[2] + b[2]) / 2 and abs(a[1] - b[1]) < (a[3] + b[3]) / 2


def test_the_map_is_made_larger_moved_and_whole_again(browser: Browser) -> None:
    browser.open_text(page_of(tree_atlas(40, 10), History(), Path("run")))
    whole = browser.run("canvas.zoom(1e9); return document.getElementById('map').getAttribute('viewBox')")
    browser.find("#zoom-in").click()
    larger = browser.run("return document.getElementById('map').getAttribute('viewBox')")
    assert float(larger.split()[2]) == pytest.approx(0.7 * float(whole.split()[2]))
    browser.find("#zoom-fit").click()
    assert browser.run("return document.getElementById('map').getAttribute('viewBox')") == whole


def test_the_discovery_plays_by_itself(browser: Browser) -> None:
    browser.open_text(page_of(tree_atlas(4), History(), Path("run")))
    browser.slide("replay", 2)
    browser.find("#play").click()
    assert browser.text("#play") == "pause"
    browser.wait(lambda: browser.text("#replay-value").startswith("4 of 4"))
    browser.wait(lambda: browser.text("#play") == "play")


def test_the_map_is_saved_as_a_picture_of_its_own(browser: Browser) -> None:
    browser.open_text(page_of(tree_atlas(13), History(), Path("run")))
    picture = ET.fromstring(browser.run("return saving.svgText(canvas.map)"))
    texts = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"state {number}" for number in range(13)} <= texts
    assert "var(" not in ET.tostring(picture, encoding="unicode")
    png = browser.driver.execute_async_script(
        "const done = arguments[0];"
        "saving.png(canvas.map).then(async (blob) => done([blob.type, (await createImageBitmap(blob)).width]))"
    )
    assert png[0] == "image/png"
    assert png[1] == 2 * int(picture.get("width", "0"))
    for name in ("svg", "png"):
        browser.find(f"#save-{name}").click()
        browser.wait(lambda name=name: _said(browser) == f"Saved map.{name}.")  # type: ignore[misc]
    assert browser.complaints() == []


def test_outcomes_of_a_policy_that_leave_the_atlas_are_told_apart(browser: Browser) -> None:
    browser.open_text(page_of(leaking_atlas(), History(), Path("run")), "state=state 1")
    assert browser.texts("#map .edge.fail .edge-name") == ["a0 10 %"]
    assert browser.texts("#map .edge.way:not(.fail) .edge-name") == ["a0 90 %"]


def test_walls_stand_where_no_transition_crossed(browser: Browser) -> None:
    atlas = explore("random-maze", 30, 1, world_parameters={"rows": 4, "columns": 4}, assume="deterministic")
    browser.open_text(page_of(atlas, History(), Path("run")))
    route = atlas.path(atlas.states[browser.run("return selection.chosen")]).states
    line = browser.run("return document.querySelector('#map .route:not(.casing)').getAttribute('d')")
    assert line.count("L") == len(route) - 1
    assert browser.count("#map .wall") > 4


def test_the_page_and_python_lay_a_graph_out_alike(browser: Browser) -> None:
    atlas = tree_atlas(40, 10)
    layout = layout_of(atlas)
    assert isinstance(layout, GraphLayout)
    browser.open_text(page_of(atlas, History(), Path("run")))
    own = "labels: atlas.labels, parents: atlas.content.waysIn, members: atlas.content.members"
    data = f"{{ ...atlas.content.graph, {own} }}"
    width, height = FRAME
    again = browser.run(f"return layering.view({data}, [], {{ width: {width}, height: {height} }})")
    assert again == layout.view_json


def test_names_and_pictures_stand_on_the_page(browser: Browser, chain_run: Path, tmp_path: Path) -> None:
    page = write_report(
        chain_run,
        tmp_path / "page.html",
        describe=lambda state: f"room {state[1:]}",
        action_names={"forward": "walk"},
        render=lambda _: np.full((200, 100, 3), 200, dtype=np.uint8),
    )
    browser.open(page, "state=room 2")
    assert browser.text("#panel-title") == "Route to room 2"
    assert "in room 0 play walk" in browser.text("#route")
    assert browser.run("return document.querySelector('.picture').naturalHeight") == 100  # every second pixel
    assert not browser.complaints()
