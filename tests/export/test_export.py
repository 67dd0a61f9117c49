"""Files for other tools: Storm reads them back, labels survive, and bad requests are refused."""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import axplore
from axplore import Atlas, TabularMdp
from axplore.cli import main
from axplore.errors import AxploreError, InvalidInputError, StorageError, UnknownNameError
from axplore.export import FORMATS, export
from axplore.export.formats import as_csv, policies, quoted, transitions
from axplore.export.model import identifiers, learned
from axplore.labels import label_of
from axplore.statistics.confidence import row_hulls
from commands import run

AWKWARD = [
    'say "hi"',
    "two\nlines",
    "</script><b>",
    "back\\slash",
    "a'b",
    "// no comment",
    "init",
    "é",
    (0, "x"),
    7,
    "=1+1",
    "@sum",
    -3,
    "s 1",
]
"""Labels that would break out of a careless format."""


@pytest.fixture(scope="module")
def chain() -> Atlas:
    return axplore.explore("confusing-chain", radius=4.5, epsilon=0.4)


@pytest.fixture(scope="module")
def lock() -> Atlas:
    return axplore.explore("combination-lock", radius=2.7, epsilon=0.5)


@pytest.fixture(scope="module")
def grid() -> Atlas:
    return axplore.explore("slippery-grid", radius=4, epsilon=0.8, world_parameters={"rows": 3, "columns": 3})


@pytest.fixture(scope="module")
def awkward() -> Atlas:
    """A path through awkward labels, with awkward actions."""
    rows: dict[Any, dict[Any, dict[Any, float]]] = {
        state: {action: {successor: 1.0}}
        for state, action, successor in zip(AWKWARD, reversed(AWKWARD), AWKWARD[1:], strict=False)
    }
    rows[AWKWARD[-1]] = {}
    return axplore.explore(TabularMdp.from_rows(rows, AWKWARD[0]), radius=15, epsilon=4)


# -------------------------------------------------------------------------------------------------- read by Storm


def storm_models(atlas: Atlas, folder: Path) -> dict[str, Any]:
    stormpy = pytest.importorskip("stormpy")
    for name in ("drn", "prism"):
        export(atlas, name, folder / f"model.{name}")
    return {
        "drn": stormpy.build_model_from_drn(str(folder / "model.drn")),
        "prism": stormpy.build_model(stormpy.parse_prism_program(str(folder / "model.prism"))),
    }


def storm_steps(model: Any, formula: str, **mode: Any) -> float:
    import stormpy

    (parsed,) = stormpy.parse_properties(formula)
    environment = {} if mode else {"environment": stormpy.environments.sound()}
    result = stormpy.model_checking(model, parsed, **mode, **environment)
    return float(result.get_value(model.initial_states[0]))


@pytest.mark.parametrize("which", ["chain", "lock", "grid"])
def test_storms_expected_steps_of_the_learned_model_lie_within_our_bounds(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    atlas: Atlas = request.getfixturevalue(which)
    names = dict(zip(learned(atlas).states, learned(atlas).names, strict=True))
    for model in storm_models(atlas, tmp_path).values():
        for goal in atlas.states:
            steps = storm_steps(model, f'R{{"steps"}}min=? [F "{names[goal]}"]')
            assert steps in atlas.bounds(goal)


@pytest.mark.parametrize("which", ["chain", "lock", "grid"])
def test_storms_bounds_over_the_intervals_enclose_ours(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    stormpy = pytest.importorskip("stormpy")
    atlas: Atlas = request.getfixturevalue(which)
    names = dict(zip(learned(atlas).states, learned(atlas).names, strict=True))
    export(atlas, "interval-drn", tmp_path / "region.drn")
    model = stormpy.build_model_from_drn[stormpy.Interval](str(tmp_path / "region.drn"))
    mode = stormpy.UncertaintyResolutionMode
    for goal in atlas.states[1:]:
        bounds, name = atlas.bounds(goal), names[goal]
        worst = storm_steps(model, f'R{{"steps"}}min=? [F "{name}"]', uncertainty_resolution_mode=mode.ROBUST)
        best = storm_steps(
            model, f'R{{"steps"}}min=? [F "{name}" | "unseen"]', uncertainty_resolution_mode=mode.COOPERATIVE
        )
        # The hull is wider than the region. Storm iterates to a relative change of 1e-6, which is no error bound.
        assert best <= bounds.lower * (1 + 1e-3)
        assert bounds.upper <= worst * (1 + 1e-3)


def test_storm_reads_models_with_awkward_labels(awkward: Atlas, tmp_path: Path) -> None:
    names = dict(zip(learned(awkward).states, learned(awkward).names, strict=True))
    assert set(awkward.states) == set(AWKWARD)
    for model in storm_models(awkward, tmp_path).values():
        for place, goal in enumerate(AWKWARD):
            assert storm_steps(model, f'R{{"steps"}}min=? [F "{names[goal]}"]') == pytest.approx(place)


def test_storm_reads_umb(chain: Atlas, tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    pytest.importorskip("umbi")
    export(chain, "umb", tmp_path / "model.umb")
    model = stormpy.build_model_from_umb(str(tmp_path / "model.umb"))
    assert storm_steps(model, 'R{"steps"}min=? [F "s5"]') in chain.bounds("s5")


# ---------------------------------------------------------------------------------------------------- labels survive


def test_names_are_different_identifiers_and_labels_stand_beside_them(awkward: Atlas) -> None:
    names = learned(awkward).names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) for name in names)
    for name in ("drn", "prism"):
        text = FORMATS[name](awkward)
        assert isinstance(text, str)
        comments = re.findall(r"// (\w+) is (.*)", text)
        assert {key: label_of(label) for key, label in comments} == dict(
            zip(names, learned(awkward).states, strict=True)
        )


def test_a_label_that_looks_like_a_made_up_name_keeps_it() -> None:
    assert identifiers(["state_1", "!", "x", "init"], "state") == ["state_1", "state_1_", "x", "s_init"]
    assert identifiers([(0, 3), (0, -3), "x=3, ok=true", "a b", "a-b", "a:c", "é"], "state") == [
        "s_0_3", "s_0_minus_3", "s_x_3_ok_true", "state_3", "state_4", "s_a_c", "state_6",
    ]  # fmt: skip
    assert identifiers(["s_0", 0, "up!"], "state") == ["s_0", "state_1", "s_up"]


@pytest.mark.parametrize("name", ["csv", "policies-csv"])
def test_no_cell_of_a_table_is_a_formula(awkward: Atlas, name: str) -> None:
    text = FORMATS[name](awkward)
    assert isinstance(text, str)
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    suspicious = {cell for cell in cells if cell.startswith(("=", "+", "-", "@"))}
    assert suspicious == {"-3"}  # a number
    assert '"=1+1"' in cells


def test_a_full_width_sign_begins_no_cell() -> None:
    cells = next(csv.reader(io.StringIO(as_csv({"state": ["＝1+1"]}).splitlines()[1])))
    assert cells == ['"\\uff1d1+1"']
    assert label_of(cells[0]) == "＝1+1"


def test_tables_hold_every_label_exactly(awkward: Atlas) -> None:
    text = FORMATS["csv"](awkward)
    assert isinstance(text, str)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    read = {(label_of(row["state"]), label_of(row["action"]), label_of(row["successor"])) for row in rows}
    assert read == {
        (state, action, successor)
        for state, action, successor in zip(AWKWARD, reversed(AWKWARD), AWKWARD[1:], strict=False)
    }


def test_dot_escapes_what_would_end_a_string(awkward: Atlas) -> None:
    assert quoted('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'
    text = FORMATS["dot"](awkward)
    assert isinstance(text, str)
    strings = re.findall(r'"(?:[^"\\\n]|\\.)*"', text)
    rest = re.sub(r'"(?:[^"\\\n]|\\.)*"', "", text)
    assert len(strings) >= 2 * len(AWKWARD) - 1
    assert re.fullmatch(r"[\w\s\[\]={},;>-]*", rest)  # nothing of a label is left outside its string


# ------------------------------------------------------------------------------------------------- what the files hold


def test_transitions_add_up_to_visits_and_frequencies_lie_within_their_bounds(grid: Atlas) -> None:
    columns = transitions(grid)
    sums: dict[tuple[str, str], int] = {}
    for state, action, count in zip(columns["state"], columns["action"], columns["count"], strict=True):
        sums[state, action] = sums.get((state, action), 0) + count
    for place, (state, action) in enumerate(zip(columns["state"], columns["action"], strict=True)):
        assert sums[state, action] == columns["visits"][place]
        assert columns["lower"][place] <= columns["frequency"][place] <= columns["upper"][place]


def test_the_policies_written_are_those_of_the_atlas(chain: Atlas) -> None:
    columns = policies(chain)
    for goal, state, action in zip(columns["goal"], columns["state"], columns["action"], strict=True):
        played = chain.policy(goal)(state)
        assert action == ("RESET" if played is axplore.RESET else played)
    assert len(columns["goal"]) == 6 * 5


def test_the_hull_of_a_ball_is_attained_and_not_left() -> None:
    """Against a search over the boundary: the others share what one successor leaves in proportion to their shares."""
    shares, slack = np.array([0.5, 0.3, 0.2]), 0.05
    low, high, unseen = row_hulls(np.array([0, 3]), shares, np.array([slack]))

    def distance(mass: float, share: float) -> float:
        return float(share * np.log(share / mass) + (1 - share) * np.log((1 - share) / (1 - mass)))

    for place, share in enumerate(shares):
        for end, bracket in ((low[place], (1e-9, share)), (high[place], (share, 1 - 1e-9))):
            found = minimize_scalar(
                lambda mass, s=share: (distance(mass, s) - slack) ** 2, bounds=bracket, method="bounded"
            )
            assert end == pytest.approx(found.x, abs=1e-4)
    assert unseen[0] == pytest.approx(1 - np.exp(-slack))


def test_random_rows_of_a_ball_lie_in_its_hull() -> None:
    generator = np.random.default_rng(3)
    shares, slack = np.array([0.6, 0.4, 0.0]), 0.2
    low, high, unseen = row_hulls(np.array([0, 3]), shares, np.array([slack]))
    inside = 0
    for row in generator.dirichlet(np.ones(4), 20_000):
        if shares[:2] @ np.log(shares[:2] / row[:2]) <= slack:
            inside += 1
            assert (low <= row[:3]).all()
            assert (row[:3] <= high).all()
            assert row[3] <= unseen[0]
    assert inside > 100


# ------------------------------------------------------------------------------------------------------------ refusals


def test_an_unproven_atlas_has_no_region_to_write(tmp_path: Path) -> None:
    estimated = axplore.explore("confusing-chain", radius=4.5, epsilon=0.8, explorer="disco-experiment")
    with pytest.raises(InvalidInputError, match="no confidence region"):
        export(estimated, "interval-drn", tmp_path / "x")
    export(estimated, "drn", tmp_path / "x")
    assert "lower" not in transitions(estimated)


def test_unknown_formats_and_bad_places_are_refused(chain: Atlas, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no format named 'xml' \(there are drn"):
        export(chain, "xml", tmp_path / "x")
    with pytest.raises(StorageError, match="cannot be written"):
        export(chain, "drn", tmp_path / "missing" / "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        export(chain, "drn", tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]  # nothing half-written is left


@pytest.mark.parametrize(("name", "package"), [("parquet", "pyarrow"), ("umb", "umbi")])
def test_a_missing_package_is_named(chain: Atlas, monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AxploreError, match=f"pip install {package}"):
        FORMATS[name](chain)


def test_parquet_holds_the_same_table(chain: Atlas, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export(chain, "parquet", tmp_path / "x.parquet")
    assert parquet.read_table(tmp_path / "x.parquet").to_pydict() == {
        name: list(column) for name, column in transitions(chain).items()
    }


def test_the_command_line_exports_and_plans(
    chain: Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chain.save(tmp_path / "run")
    monkeypatch.chdir(tmp_path)

    def refused(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["axplore", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        return capsys.readouterr().err

    run("export", "run", "--format", "drn", "-o", "x.drn")
    assert (tmp_path / "x.drn").read_text() == FORMATS["drn"](chain)
    assert '"goal": "s5"' in run("plan", "run", "s5", "--json")
    assert "no state of the atlas named 's9'" in refused("plan", "run", "s9")
    refused("export", "nowhere", "--format", "drn", "-o", "y")


def test_the_command_line_knows_all_formats() -> None:
    from axplore.cli.console import EXPORTS

    assert tuple(FORMATS) == EXPORTS


# ------------------------------------------------------------------------------------------- properties, without RESET

SHOP = {
    "start": {"browse": {"basket": 0.9, "start": 0.1}},
    "basket": {"pay": {"thanks": 0.7, "error": 0.2, "start": 0.1}, "wait": {"basket": 1.0}},
    "thanks": {},
    "error": {},
}


@pytest.mark.parametrize("assume", [None, "min-probability=0.05"])
def test_storms_bounds_of_a_property_over_the_intervals_enclose_ours_and_meet_them_where_rows_are_intervals(
    assume: str | None, tmp_path: Path
) -> None:
    stormpy = pytest.importorskip("stormpy")
    atlas = axplore.explore(TabularMdp.from_rows(SHOP, "start"), radius=8, epsilon=0.5, assume=assume, doctor=False)
    export(atlas, "interval-drn", tmp_path / "region.drn", reset=False)
    assert "RESET" not in (tmp_path / "region.drn").read_text()
    model = stormpy.build_model_from_drn[stormpy.Interval](str(tmp_path / "region.drn"))
    modes = stormpy.UncertaintyResolutionMode
    goal, unseen = '"thanks"', '("thanks" | ("unseen" & !"error"))'
    for best in ("max", "min"):
        ours = atlas.check_property(f'P{best}=? [ !"error" U "thanks" ]')
        low, high = (
            storm_steps(model, f'P{best}=? [ !"error" U {reached} ]', uncertainty_resolution_mode=mode)
            for reached, mode in ((goal, modes.MINIMIZE), (unseen, modes.MAXIMIZE))
        )
        assert low <= ours.lower + 1e-5
        assert ours.upper <= high + 1e-5
        assert low > ours.lower - 0.2
    # One row of two outcomes, of which nothing else can come: the region is the interval.
    first = atlas.check_property('Pmax=? [ F<=1 "basket" ]')
    (start,) = (choice for choice in learned(atlas, reset=False).choices[0] if choice.name == "browse")
    (move,) = (move for move in start.moves if learned(atlas).states[move.target] == "basket")
    assert move.low == pytest.approx(first.lower, abs=0.02)
    assert assume is None or start.unseen == 0.0


def test_without_reset_a_state_in_which_nothing_can_be_played_stays_and_is_unseen_if_nothing_was_drawn() -> None:
    atlas = axplore.explore(TabularMdp.from_rows(SHOP, "start"), radius=2, epsilon=0.5, doctor=False)
    model = learned(atlas, reset=False)
    assert all(choice.action is not axplore.RESET for choices in model.choices for choice in choices)
    for index, choices in enumerate(model.choices):
        if not SHOP.get(str(model.states[index])) or index >= model.n_known:
            assert [choice.name for choice in choices] == ["stay"]
        assert model.labels(index).endswith(" unseen") == (index >= model.n_known)
    assert 'label "unseen" = s>=' in str(FORMATS["prism"](atlas, False))
