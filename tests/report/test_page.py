from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shutil
import zlib
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import structs

import axplore
from altered import altered
from axplore import Atlas, StopReason, explore
from axplore.atlas.state_report import rounded_down, rounded_up
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import verify
from axplore.errors import StorageError
from axplore.records.findings import Finding, Issue, Level
from axplore.records.order import Labels
from axplore.report import nearest_part, write_report
from axplore.report import page as page_module
from axplore.report.appearance import Appearance
from axplore.report.page import SECTIONS, Section, page_of
from axplore.report.page_data import MAX_ROUTE, MAX_SHOWN_STEPS, as_json, packed
from axplore.report.questions import questions_of
from axplore.runs.folder import keep_answer
from axplore.runs.history import History, history_of, moments_of, thousandths
from trees import tree_atlas

HOSTILE = "</script><script>alert(1)</script>&<!--"


def content_of(page: str) -> Any:
    """What the scripts of a page read."""
    (text,) = re.findall(r'id="content">(.*?)</script>', page)
    return json.loads(text)


def unpacked(text: dict[str, str]) -> npt.NDArray[Any]:
    """The array that `packed` was given."""
    content = zlib.decompress(base64.b64decode(text["data"]))
    return np.frombuffer(content, dtype=np.dtype(text["type"]).newbyteorder("<"))


def test_the_report_is_written_beside_the_run_or_where_it_is_asked_for(chain_run: Path, tmp_path: Path) -> None:
    assert write_report(chain_run) == chain_run / "report.html"
    elsewhere = write_report(chain_run, tmp_path / "new" / "page.html")
    assert elsewhere.read_bytes() == (chain_run / "report.html").read_bytes()


def test_a_folder_without_an_atlas_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no atlas"):
        write_report(tmp_path)


def test_an_atlas_that_was_saved_without_a_run_has_a_report(tmp_path: Path) -> None:
    explore("confusing-chain", 4.5, 0.5).save(tmp_path)
    assert "confusing-chain" in write_report(tmp_path).read_text()


def test_the_page_names_no_address_of_any_network(chain_run: Path) -> None:
    page = write_report(chain_run).read_text()
    assert set(re.findall(r"https?://[^\"'\s)]*", page)) == {"http://www.w3.org/2000/svg"}  # a name, never asked for
    assert not re.search(r"@import|url\(|<link(?! rel=\"icon\" href=\"data:,\")", page)


def test_the_browser_is_told_to_run_the_scripts_of_the_page_only(chain_run: Path) -> None:
    page = write_report(chain_run).read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert unescape(policy).startswith(f"default-src 'none'; script-src {allowed};")
    assert "connect-src" not in policy
    assert page.count("<script") == len(scripts) + 1  # and the content, which is no script


def test_rows_of_the_table_are_those_of_the_atlas(chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    page = write_report(chain_run).read_text()
    table = page[page.index('<table id="states">') : page.index("</table>", page.index('<table id="states">'))]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    plain = [[unescape(re.sub(r"<[^>]*>", "", cell)) for cell in row] for row in rows]
    assert [row[:4] for row in plain] == [
        [str(state), rounded_down(b.lower), rounded_up(b.upper), rounded_up(b.regret)]
        for state in atlas.states
        for b in [atlas.bounds(state)]
    ]
    assert [int(row[-1].replace(",", "")) for row in plain] == atlas.found_at.tolist()
    assert [row[-3] for row in plain] == [atlas.describe(state).status.value for state in atlas.states]


def test_every_state_left_out_has_its_reason(chain_run: Path) -> None:
    page = unescape(write_report(chain_run).read_text())
    section = page[page.index('id="frontier-section"') : page.index('id="guarantee-section"')]
    for report in Atlas.load(chain_run).frontier:
        assert report.reason in section


def test_the_guarantee_settings_versions_and_the_way_to_check_them_are_there(chain_run: Path) -> None:
    page = unescape(write_report(chain_run).read_text())
    assert "All this, and every bound, holds at once with a probability of at least 0.9." in page
    assert "S_L→ ⊆ K ⊆ S_{L+ε}→" in page
    assert "AX*: v(π_g) ≤ V*_{S_L→}(s₀→g) + ε" in page
    assert f"axplore verify {chain_run}" in page
    assert f"axplore {axplore.__version__}" in page
    assert "numpy" in page


def test_a_run_that_was_cut_short_does_not_promise_that_nothing_is_missing(tmp_path: Path) -> None:
    atlas = explore("confusing-chain", 4.5, 0.1, max_steps=500, run=tmp_path / "run")
    assert not atlas.complete
    page = unescape(write_report(tmp_path / "run").read_text())
    assert "Unfinished: the step limit was reached" in page
    assert "S_L→ ⊆ K is not established" in page
    assert "nothing is missing" not in page.lower().replace("nothing within", "")


PINNED = Finding(Issue.NOISE_PINNED, "Seen.", "Nothing holds.", "Mend it.", Level.DOUBT)


@pytest.mark.parametrize(
    ("which", "changes", "kind"),
    [
        ("chain", {}, VerdictKind.PROVEN),
        ("chain", {"findings": (PINNED,)}, VerdictKind.PROVEN_UNDER_DOUBT),
        ("chain", {"stop": StopReason.CONTRADICTED}, VerdictKind.CONTRADICTED),
        ("unfinished", {}, VerdictKind.UNFINISHED),
        ("unfinished", {"findings": (PINNED,)}, VerdictKind.UNFINISHED),
        ("estimated", {}, VerdictKind.NOT_PROVEN),
    ],
)
def test_the_page_shows_the_verdict_and_promises_nothing_else(
    which: str, changes: dict[str, Any], kind: VerdictKind, request: pytest.FixtureRequest
) -> None:
    atlas = altered(request.getfixturevalue(which), **changes)
    verdict = atlas.verdict
    assert verdict.kind is kind
    page = unescape(page_of(atlas, History(), Path("run")))
    head, section = page.partition("</header>")[0], page[page.index('id="guarantee-section"') :]
    assert f'<p class="headline {kind.name.lower().replace("_", "-")}">{verdict.headline}</p>' in head
    assert f"<dt>verdict</dt><dd>{kind.value}</dd>" in head
    assert head.count("In doubt:") == len(verdict.doubts)
    for line in verdict.lines:
        assert f"<p>{line}</p>" in section
    promises = atlas.proven and kind is not VerdictKind.CONTRADICTED
    assert ("robability at least 1 − δ" in page) == promises
    assert ("With probability at least 1 − δ" in page) == (promises and not verdict.doubts)
    assert ("If the assumptions hold, then with probability at least 1 − δ" in page) == (
        promises and bool(verdict.doubts)
    )
    assert "probability that all holds" not in page
    assert content_of(page_of(atlas, History(), Path("run")))["proven"] == promises
    assert ("<td>not proven</td>" in page) == (not promises)
    assert ("<td>certified</td>" in page) == promises
    assert ("Later counts refute what was proven before" in page) == (kind is VerdictKind.CONTRADICTED)
    assert ("Its policy arrives within" in page) == promises


def test_an_explorer_without_proof_is_shown_without_promises(tmp_path: Path) -> None:
    explore("confusing-chain", 4.5, 0.8, explorer="disco-experiment", run=tmp_path / "run")
    page = unescape(write_report(tmp_path / "run").read_text())
    assert "Not proven: disco-experiment found 6 states" in page
    assert "axplore verify" not in page


def test_the_page_has_the_bounds_over_steps_and_ends_with_those_of_the_atlas(chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    page = write_report(chain_run).read_text()
    content = content_of(page)
    n, known = len(atlas.states), content["boundKnown"]
    assert (known[-1], content["boundSteps"][-1]) == (n, atlas.steps)
    for name, bounds in (("boundLower", atlas.lower[:n]), ("boundUpper", atlas.upper[:n])):
        values = unpacked(content["arrays"][name])
        assert len(values) == sum(known)
        assert values[-n:] / 1000 == pytest.approx(bounds, abs=0.0021)
    assert (unpacked(content["arrays"]["boundLower"])[-n:] <= 1000 * atlas.lower[:n]).all()
    assert (unpacked(content["arrays"]["boundUpper"])[-n:] >= 1000 * atlas.upper[:n]).all()


def test_the_curve_of_widths_has_a_table_that_says_the_same(chain_run: Path) -> None:
    atlas = Atlas.load(chain_run)
    page = unescape(write_report(chain_run).read_text())
    widths = (atlas.upper - atlas.lower)[1 : len(atlas.states)]
    table = page[page.index('<table id="narrowing">') : page.index("</table>", page.index('<table id="narrowing">'))]
    steps, known, mean, widest = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", table.split("<tr>")[-1])
    assert (steps, known) == (f"{atlas.steps:,}", str(len(atlas.states)))
    assert (float(mean), float(widest)) == pytest.approx((widths.mean(), widths.max()), abs=0.001)
    assert re.search(r'class="curve widest" d="M[^"]+"', page)
    assert "narrowing-none" not in page


def test_a_page_without_bounds_over_steps_says_so(chain_run: Path) -> None:
    page = page_of(Atlas.load(chain_run), History(), chain_run)
    assert "There are no bounds over steps to show.\nThe log of the run has bounds of the initial state only" in page
    assert '<table id="narrowing">' not in page


def test_bounds_of_steps_that_were_lost_give_way_to_those_noted_later() -> None:
    steps = [10, 20, 30, 25, 40, 90]
    events = tuple({"event": "bounds", "steps": taken, "lower": [0.0], "upper": [None]} for taken in steps)
    assert [event["steps"] for event in History(None, events).bounds(50)] == [10, 20, 25, 40]


def test_a_large_atlas_has_the_bounds_of_fewer_moments_with_the_first_and_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("axplore.runs.history.MAX_VALUES", 50)
    atlas = altered(tree_atlas(10), steps=1000)
    events = tuple(
        {"event": "bounds", "steps": taken, "lower": [0.0, 1.0], "upper": [0.0, None if taken < 500 else 2.0]}
        for taken in range(100, 1001, 100)
    )
    moments = moments_of(atlas, History(None, events))
    assert [moment.steps for moment in moments] == [100, 300, 500, 800, 1000]
    assert [moment.widths.tolist() for moment in moments] == [[], [], [1.0], [1.0], [1.0]]
    assert thousandths(moments)["upper"].tolist() == [0, -1, 0, -1, 0, 2000, 0, 2000, 0, 2000]


def test_labels_actions_and_names_from_outside_are_escaped() -> None:
    atlas = tree_atlas(5, 2, (HOSTILE, *(f"{HOSTILE}{number}" for number in range(6))))
    actions = tuple(Labels(f"{HOSTILE}{a}" for a in offered) for offered in atlas.actions)
    atlas = altered(atlas, world=HOSTILE, counts=structs.replace(atlas.counts, actions=actions))
    page = page_of(atlas, History(), Path(HOSTILE))
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<!--" not in page


def test_json_inside_of_a_page_cannot_end_its_element() -> None:
    content = {"labels": [HOSTILE, "\u2028", "\ud800", "&amp;"]}
    text = as_json(content)
    assert not set(text) & set("<>&")
    assert text.isascii()
    assert json.loads(text) == content


@pytest.mark.parametrize(
    "values", [[], [0, -1, 127], [-129, 5], [40_000], [2**40, -3]], ids=["none", "bytes", "words", "more", "large"]
)
def test_packed_arrays_hold_every_number(values: list[int]) -> None:
    assert unpacked(packed(np.array(values, dtype=np.int64))).tolist() == values


def test_policies_beyond_what_a_page_can_hold_are_left_out_from_the_last_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.report.page_data.MAX_CHOICES", 35)
    page = page_of(tree_atlas(10), History(), Path("run"))
    assert content_of(page)["widths"] == [10, 10, 10]


@pytest.mark.parametrize("which", ["chain", "unfinished", "estimated", "stepwise"])
def test_the_page_has_the_answers_of_the_atlas(which: str, request: pytest.FixtureRequest) -> None:
    atlas: Atlas = request.getfixturevalue(which)
    content = content_of(page_of(atlas, History(), Path("run")))
    arrays = {name: unpacked(packed_array) for name, packed_array in content["arrays"].items()}
    unit = content["chanceUnit"]
    assert content["answered"] == len(atlas.states)
    for goal, state in enumerate(atlas.states):
        first, last = arrays["routeOffsets"][goal : goal + 2]
        assert [atlas.states[place] for place in arrays["routes"][first:last]] == list(atlas.path(state).states)
        first, last = arrays["chanceOffsets"][goal : goal + 2]
        chance = atlas.probability(state, int(last - first) - 1)
        assert arrays["estimates"][first:last] / unit == pytest.approx(chance.estimates, abs=1.01 / unit)
        by_mean = markov(atlas, goal, last - first)
        assert (arrays["lowers"][first:last] <= unit * np.maximum(chance.lowers, by_mean)).all()
        if atlas.proven and math.isfinite(atlas.upper[goal]):
            assert (arrays["lowers"][first:last] >= unit * by_mean - 1).all()
        if content["meanSteps"][goal] is not None:
            farther = atlas.probability(state, 2000).estimates
            assert content["meanSteps"][goal] == pytest.approx((1 - farther).sum(), abs=0.01)


def markov(atlas: Atlas, goal: int, length: int) -> npt.NDArray[np.float64]:
    """At least this chance to arrive within 0, 1, ... steps, as the expected steps have a bound."""
    return np.asarray(np.maximum(0, 1 - atlas.upper[goal] / np.arange(1, length + 1)))


def test_answers_beyond_what_takes_little_time_are_left_out_from_the_last_on(monkeypatch: pytest.MonkeyPatch) -> None:
    atlas = tree_atlas(10)
    monkeypatch.setattr("axplore.report.page_data.MAX_FOLLOWED", 3 * (10 + len(atlas.transitions.counts)))
    content = content_of(page_of(atlas, History(), Path("run")))
    assert content["answered"] == len(content["routeLengths"]) == len(content["meanSteps"]) == 3


def test_the_answers_of_many_states_are_bounded_in_size() -> None:
    content = content_of(page_of(tree_atlas(1700, 300), History(), Path("run")))
    assert content["answered"] == 1700
    sizes = {name: len(unpacked(array)) for name, array in content["arrays"].items()}
    assert sizes["routes"] <= 1700 * MAX_ROUTE
    assert sizes["estimates"] == sizes["lowers"] <= 1700 * (MAX_SHOWN_STEPS + 1)


# ------------------------------------------------------------------------------------------------------------ sections


def test_a_section_is_a_template_with_its_script_and_an_entry_of_the_list(
    chain_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(page_module.FOLDER, tmp_path / "report")
    added = tmp_path / "report" / "sections" / "greeting"
    added.mkdir()
    (added / "section.html").write_text("<p>{{ atlas.world }} took {{ atlas.steps }} steps, says {{ '<you>' }}.</p>")
    (added / "section.js").write_text("elements.say(`Hello from ${atlas.labels[0]}`);")
    monkeypatch.setattr(page_module, "FOLDER", tmp_path / "report")
    monkeypatch.setattr(page_module, "SECTIONS", (*SECTIONS, Section("greeting", "greeting", "Greetings")))

    page = write_report(chain_run, tmp_path / "page.html").read_text()

    atlas = Atlas.load(chain_run)
    assert '<a href="#greeting-section">greeting</a>' in page
    assert '<h2 id="greeting-title">Greetings</h2>' in page
    assert f"<p>confusing-chain took {atlas.steps} steps, says &lt;you&gt;.</p>" in page
    assert "<script>elements.say(`Hello from ${atlas.labels[0]}`);</script>" in page


def test_every_section_has_its_folder_and_every_folder_its_section() -> None:
    folders = {path.name for path in (page_module.FOLDER / "sections").iterdir()}
    assert folders == {section.name for section in SECTIONS}
    scripts = {path.stem for path in (page_module.FOLDER / "scripts").iterdir()}
    assert scripts == {*page_module.SCRIPTS, page_module.LAST_SCRIPT}


def test_no_script_can_end_its_element() -> None:
    for path in page_module.FOLDER.rglob("*.js"):
        assert "</script" not in path.read_text().lower()


def test_what_a_claim_survives_is_that_of_the_label_whatever_the_page_calls_it() -> None:
    atlas = explore("slippery-grid", 2, 1, world_parameters={"rows": 2, "columns": 2, "slip": 0.0})
    look = Appearance(describe=lambda cell: f"cell {cell}")
    shown = content_of(page_of(atlas, History(), Path("run"), look=look))
    labels = [*atlas.states, *(report.state for report in atlas.frontier)]
    assert shown["breakEven"] == [str(atlas.break_even(label)) for label in labels]
    assert len(set(shown["breakEven"])) > 1


def test_a_policy_that_was_tested_by_episodes_survives_any_row(tmp_path: Path) -> None:
    key = f"{mostly_position.__module__}:{mostly_position.__name__}"
    atlas = explore(
        "gym:MountainCar-v0", 4, 2, objective="within-radius", doctor=False,
        world_parameters={"key": key, "start": "pinned"},
    )  # fmt: skip
    tested = [place for place, policy in enumerate(atlas.policies) if policy.ndim == 2]
    shown = content_of(page_of(atlas, History(), tmp_path))
    assert [shown["breakEven"][place] for place in tested] == [
        "That its policy arrives within 6 expected steps does not depend on any row."
    ] * len(tested)
    assert tested


def mostly_position(observation: Any) -> tuple[int, int]:
    """A coarse cell of position and velocity."""
    position, velocity = observation
    return round(10 * float(position)), round(100 * float(velocity))


def test_the_page_of_a_question_has_its_bounds_its_policy_and_the_ways_to_fail(tmp_path: Path) -> None:
    rows = {
        "<start>": {"go": {"left": 0.6, "right": 0.4}},
        "left": {"pay": {"thanks": 0.9, "error": 0.1}},
        "right": {"pay": {"thanks": 0.5, "error": 0.5}, "wait": {"right": 1.0}},
        "thanks": {},
        "error": {},
    }
    model = axplore.TabularMdp.from_rows(rows, "<start>")
    axplore.explore(model, 6, 0.5, run=tmp_path / "run", assume="min-probability=0.05", doctor=False)
    assert "questions-section" not in write_report(tmp_path / "run").read_text()
    for text in ('Pmax=? [ !"error" U "thanks" ]', 'Pmin=? [ G<=3 !"error" ]'):
        keep_answer(tmp_path / "run", Atlas.load(tmp_path / "run").check_property(text))
    page = write_report(tmp_path / "run").read_text()
    section = page[page.index('id="questions-section"') :]
    assert "Pmax=? [ !&#34;error&#34; U &#34;thanks&#34; ]" in section
    assert "depends on the number of steps left" in section
    atlas = Atlas.load(tmp_path / "run")
    best, always = questions_of(atlas, history_of(tmp_path / "run"))
    ways = [failure.states for failure in best.failures]
    assert set(ways) == {("<start>", "right", "error"), ("<start>", "left", "error")}
    assert [failure.probability for failure in best.failures] == sorted(
        (f.probability for f in best.failures), reverse=True
    )
    assert best.failures[0].states[1] == "right"
    assert "&lt;start&gt; –[go]→ right –[pay]→ error" in section
    roles = {row.state: (row.role, row.action) for row in best.rows}
    assert roles["thanks"][0] == "goal"
    assert roles["error"][0] == "to avoid"
    assert roles["right"] == ("", "pay")
    assert {row.state: row.role for row in always.rows}["error"] == "to avoid"
    assert [moment[1:] for moment in best.moments] == [(best.bounds.lower, best.bounds.upper)]


def test_the_map_of_a_question_marks_the_goal_and_what_is_to_be_avoided(tmp_path: Path) -> None:
    grid = axplore.domains.slippery_grid(rows=2, columns=3, slip=0.1)
    axplore.explore(grid, 4, 1.5, run=tmp_path, doctor=False)
    keep_answer(tmp_path, Atlas.load(tmp_path).check_property('Pmax=? [ !"(0, 1)" U "(1, 2)" ]'))
    page = write_report(tmp_path).read_text()
    assert page.count('class="goal-cell"') == page.count('class="bad-cell"') == 1
    assert page.count('class="policy-arrow"') >= 3


def test_a_page_of_too_many_states_shows_those_that_are_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {
        "epsilon": 1,
        "assume": "deterministic",
        "world_parameters": {"rows": 30, "columns": 30},
    }
    explore("random-maze", radius=900, run=tmp_path / "run", **settings)
    whole = write_report(tmp_path / "run").read_text()
    monkeypatch.setattr(nearest_part, "MOST_STATES", 200)
    page = write_report(tmp_path / "run").read_text()
    atlas = Atlas.load(tmp_path / "run")
    part = nearest_part.nearest_part(atlas)
    assert len(part.statuses) <= 200 < len(atlas.statuses) == 900
    assert f"The atlas has 900 states, too many for a page. Below are the {len(part)}" in " ".join(page.split())
    assert len(page) < len(whole)
    assert "too many for a page" not in whole
    # It is what exploring with the smaller radius proves.
    alone = explore("random-maze", radius=part.target.radius, **settings)
    assert set(part.states) == set(alone.states)
    assert all(part.bounds(state) == alone.bounds(state) == atlas.bounds(state) for state in part)
    assert part.complete
    assert part.certificate is not None
    assert verify(part.certificate).complete
    assert all(len(part.path(state).states) == len(atlas.path(state).states) for state in part.states[::20])
