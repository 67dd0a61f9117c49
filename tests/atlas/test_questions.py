"""What an atlas says of goals before something bad, against the truth of the model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import axplore
from axplore import Assumptions, Atlas, TabularMdp, explore
from axplore.atlas.questions import Leaving
from axplore.errors import InvalidCostsError, InvalidInputError, InvalidSettingError
from axplore.report import write_report
from axplore.runs.folder import open_run
from commands import run

SHOP = {
    "start": {"browse": {"basket": 0.9, "start": 0.1}},
    "basket": {"pay": {"thanks": 0.9, "error": 0.1}, "wait": {"basket": 1.0}},
    "thanks": {"again": {"start": 1.0}},
    "error": {},
}


@pytest.fixture(scope="module")
def shop_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "run"
    explore(TabularMdp.from_rows(SHOP, "start"), radius=5, epsilon=0.02, run=folder)
    return folder


@pytest.fixture(scope="module")
def shop(shop_run: Path) -> Atlas:
    return Atlas.load(shop_run)


@pytest.fixture(scope="module")
def closed() -> Atlas:
    """Supports that few draws close are closed first, so that it is known that waiting leads nowhere else."""
    likely = Assumptions(min_probability=lambda _, action: 0.1 if action in ("browse", "pay") else 0.5)
    return explore(TabularMdp.from_rows(SHOP, "start"), radius=3, epsilon=0.02, assume=likely)


def test_the_best_policy_pays_before_an_error_nine_times_of_ten(shop: Atlas) -> None:
    answer = shop.check("thanks", avoid="error")
    assert 0.9 in answer
    assert answer.lower > 0.65  # an atlas draws what its own claims need, and no more
    assert (answer.policy("start"), answer.policy("basket"), answer.policy("error")) == ("browse", "pay", None)
    assert f"between {math.floor(answer.lower * 1e6) / 1e6:g} and 1" in str(answer)


def test_without_an_assumption_waiting_may_lead_anywhere_and_with_one_it_does_not(shop: Atlas, closed: Atlas) -> None:
    assert shop.check("thanks", avoid="error").upper == 1.0
    answer = closed.check("thanks", avoid="error")
    assert 0.9 in answer
    assert answer.upper < 0.97
    assert str(answer).startswith("The best policy does so")
    assert "If no outcome of an action is rarer than declared, 0.1 at the least" in str(answer)


def test_the_worst_policy_waits_for_ever(shop: Atlas, closed: Atlas) -> None:
    assert shop.check("thanks", best="min").lower == 0.0
    assert closed.check("thanks", best="min").upper == 0.0


def test_a_number_of_steps_counts(shop: Atlas) -> None:
    assert shop.check("thanks", within=1).upper < 0.2
    assert 0.9 * 0.9 in shop.check("thanks", within=2)
    later = shop.check("thanks", within=3)
    assert 0.9 * (0.9 + 0.1 * 0.9) in later
    assert later.upper < 1.0
    assert (later.policy("start", 0), later.policy("basket", 2), later.policy("start", 3)) == ("browse", "pay", None)


def test_sets_functions_and_properties_ask_the_same(shop: Atlas) -> None:
    once = shop.check("thanks", avoid="error")
    for answer in (
        shop.check({"thanks"}, avoid=["error"]),
        shop.check(lambda state: state == "thanks", avoid=lambda state: state == "error"),
        shop.check_property('Pmax=? [ !"error" U "thanks" ]'),
        shop.check_property('Pmax=? [ !"bad" U "good" ]', {"good": {"thanks"}, "bad": {"error"}}),
    ):
        assert (answer.lower, answer.upper) == (once.lower, once.upper)


def test_never_is_the_complement_of_ever(shop: Atlas) -> None:
    ever, never = shop.check("error", best="max"), shop.check_property('Pmin=? [ G !"error" ]')
    assert never.lower == pytest.approx(1 - ever.upper)
    assert never.upper == pytest.approx(1 - ever.lower)


@pytest.mark.parametrize(
    ("asked", "holds"),
    [('Pmax>=0.5 [ F "thanks" ]', True), ('Pmin>=0.5 [ F "thanks" ]', None), ('Pmax<=0.5 [ F "thanks" ]', False)],
)
def test_a_bound_is_decided_or_open(shop: Atlas, asked: str, holds: bool | None) -> None:
    assert shop.check_property(asked).holds is holds


def test_a_goal_that_was_never_seen_is_refused_and_a_function_is_not(shop: Atlas) -> None:
    with pytest.raises(InvalidInputError, match="'nowhere', which was never seen"):
        shop.check("nowhere")
    assert shop.check(lambda state: state == "nowhere", within=1).upper > 0.0


def test_states_that_can_be_left(closed: Atlas) -> None:
    exits = {answer.state: answer for answer in closed.can_be_left()}
    assert exits["basket"].leaving is Leaving.CAN
    assert "pay led to" in str(exits["basket"])
    loops = {"start": {"stay": {"start": 1.0}, "go": {"end": 1.0}, "off": {"out": 1.0}}, "end": {"stay": {"end": 1.0}}}
    loops["out"] = {}
    for assume, leaving in ((None, Leaving.OPEN), ("deterministic", Leaving.CANNOT)):
        atlas = explore(TabularMdp.from_rows(loops, "start"), radius=3, assume=assume)
        found = {answer.state: answer.leaving for answer in atlas.can_be_left()}
        assert found == {"start": Leaving.CAN, "end": leaving, "out": Leaving.CANNOT}


def test_an_explorer_that_proves_nothing_answers_nothing() -> None:
    atlas = axplore.explore("confusing-chain", 4.5, 0.8, explorer="disco-experiment", max_steps=2000)
    with pytest.raises(InvalidInputError, match="nothing is proven"):
        atlas.check("s2")


def test_the_command_says_what_holds(shop_run: Path) -> None:
    assert "The best policy does so" in run("check", shop_run, 'Pmax=? [ !"error" U "thanks" ]')
    answer = json.loads(run("check", shop_run, 'Pmax>=0.5 [ F "thanks" ]', "--json"))
    assert (answer["holds"], answer["exit_code"], answer["proven"]) == (True, 0, True)
    assert "Does not hold" in run("check", shop_run, 'Pmax<=0.5 [ F "thanks" ]', code=1)
    assert "Open" in run("check", shop_run, 'Pmin>=0.5 [ F "thanks" ]', code=3)


def test_an_answer_is_kept_verified_and_asked_again_on_resuming(tmp_path: Path) -> None:
    folder, model, text = tmp_path / "run", TabularMdp.from_rows(SHOP, "start"), 'Pmax=? [ !"error" U "thanks" ]'
    explore(model, radius=5, epsilon=0.3, run=folder, assume="min-probability=0.05", doctor=False)
    first = json.loads(run("check", folder, text, "--json"))
    assert first["kept"]
    run("check", folder, 'Pmax>=0.2 [ F<=4 "thanks" ]')
    assert [bounds.prop.text for bounds in Atlas.load(folder).properties] == [text, 'Pmax>=0.2 [ F<=4 "thanks" ]']
    assert f"{text}: the probability is between" in run("verify", folder)
    later = axplore.resume(folder, model, epsilon=0.05)
    assert later.properties[0].upper - later.properties[0].lower < first["upper"] - first["lower"]
    assert axplore.verify(folder).holds
    assert f"{text} is between" in str(Atlas.load(folder).verdict)


def test_an_answer_is_kept_in_an_atlas_and_in_a_folder_that_is_no_run(shop: Atlas, tmp_path: Path) -> None:
    answer = shop.check(lambda state: state in ("thanks", "error"), within=5)
    kept = shop.keep(answer).keep(shop.check("thanks")).keep(answer)
    assert [bounds.prop.text for bounds in kept.properties] == ['Pmax=? [ F<=5 "goal" ]', 'Pmax=? [ F "thanks" ]']
    kept.save(tmp_path)
    run("check", tmp_path, 'Pmin=? [ F "thanks" ]')
    assert len(Atlas.load(tmp_path).properties) == 3
    assert axplore.verify(tmp_path).holds
    with pytest.raises(InvalidInputError, match="part of an atlas"):
        shop.within(2).keep(answer)


def test_what_is_asked_of_a_run_later_leaves_its_own_answer_proven(tmp_path: Path) -> None:
    folder, text = tmp_path / "run", 'Pmax>=0.5 [ !"error" U<=9 "thanks" ]'
    axplore.check(TabularMdp.from_rows(SHOP, "start"), text, run=folder, doctor=False)
    run("check", folder, 'Pmax>=0.9 [ F<=2 "error" ]', code=1)
    run("check", folder, 'Pmin=? [ F "thanks" ]')  # as open as can be
    run("check", folder, text)
    for _ in range(2):
        assert axplore.verify(folder).complete
        verdict = Atlas.load(folder).verdict
        assert (verdict.exit_code, verdict.headline.split(":")[0]) == (0, "Proven")
        assert 'Pmin=? [ F "thanks" ] is between 0 and 1.' in str(verdict)
        axplore.resume(folder, TabularMdp.from_rows(SHOP, "start"))


def test_what_names_and_costs_stand_for_is_said_wherever_the_property_is(shop: Atlas, tmp_path: Path) -> None:
    """A name may be the label of another state, or stand for one set here and for another there."""
    renamed = TabularMdp.from_rows({"start": {"go": {"goal": 0.5, "other": 0.5}}, "goal": {}, "other": {}}, "start")
    atlas = explore(renamed, radius=3, epsilon=1, doctor=False)
    once, twice = atlas.check({"other"}, within=1), atlas.check({"other", "goal"}, within=1)
    assert "other" in once.text
    named = atlas.check_property('Pmax=? [ F<=1 "goal" ]', {"goal": {"other"}})
    kept = atlas.keep(named).keep(twice).keep(atlas.check_property('Pmax=? [ F "nowhere" ]'))
    said = str(kept.verdict)
    assert 'Pmax=? [ F<=1 "goal" ] (where "goal" is other) is between' in said
    assert 'Pmax=? [ F<=1 "goal" ] (where "goal" is other or goal) is between' in said
    assert '(where no state that was seen is called "nowhere") is between 0 and' in said
    assert str(named).endswith('Here, "goal" is other.')
    assert str(shop.check(lambda state: state == "never")).endswith('Here, "goal" is no state that was seen.')
    assert 'where "goal" is other' in str(axplore.verify(kept))
    kept.save(tmp_path / "atlas")
    page = write_report(tmp_path / "atlas").read_text(encoding="utf-8")
    assert "Here, &#34;goal&#34; is other." in page
    priced = shop.keep(shop.cost("basket", costs=lambda _state, _action: 0.25))
    assert "(where every action costs 0.25) is at least" in str(priced.verdict)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (5, None),
        (None, None),
        ('Pmax=? [ F "x" ]', {"x": "thanks"}),
        ('Pmax=? [ F "x" ]', {"x": [["thanks"]]}),
        ('Pmax=? [ F "x" ]', {5: {"thanks"}}),
        ('Pmax=? [ F "x" ]', "x"),
    ],
)
def test_a_question_that_is_none_is_refused_with_the_name_of_what_is_wrong(shop: Atlas, text: Any, names: Any) -> None:
    with pytest.raises(InvalidSettingError, match=r"text|names"):
        shop.check_property(text, names)


def test_a_run_that_is_in_use_is_asked_and_keeps_nothing(shop_run: Path) -> None:
    with open_run(shop_run):
        assert "The answer is not kept" in run("check", shop_run, 'Pmax=? [ F "error" ]')


def test_a_cost_is_infinite_where_nothing_surely_arrives_and_bounded_where_something_does(closed: Atlas) -> None:
    paid = closed.cost("thanks", avoid="error")
    assert (paid.lower, paid.upper) == (math.inf, math.inf)  # payment may fail
    assert "infinite" in str(paid)
    assert axplore.verify(closed.keep(paid)).holds
    prices = {("start", "browse"): 0.5, ("basket", "pay"): 2.0, ("basket", "wait"): 0.0}
    done = closed.cost({"thanks", "error"}, costs=prices)
    assert 0.5 / 0.9 + 2.0 in done
    assert done.upper < 3.2
    assert (done.policy("start"), done.policy("basket")) == ("browse", "pay")
    assert axplore.verify(closed.keep(done)).holds
    same = closed.check_property('Rmin<=5 [ F "basket" ]')
    assert same.holds is True
    assert 1 / 0.9 in same
    free = closed.cost("basket", costs=lambda _state, _action: 0.0)
    assert (free.lower, free.upper) == (0.0, math.inf)  # what costs nothing may go on for ever
    assert axplore.verify(closed.keep(free)).holds


def test_without_an_assumption_a_cost_has_a_lower_bound_only(shop: Atlas) -> None:
    answer = shop.cost("basket")
    assert answer.lower <= 1 / 0.9 <= answer.upper == math.inf
    assert answer.lower > 1.0
    assert "is at least" in str(answer)
    assert axplore.verify(shop.keep(answer)).holds


@pytest.mark.parametrize("costs", [{("start", "fly"): 1.0}, {("start", "browse"): -1.0}, lambda *_: math.nan, {1: 2.0}])
def test_costs_that_mean_nothing_are_refused(closed: Atlas, costs: object) -> None:
    with pytest.raises(InvalidCostsError, match="costs"):
        closed.cost("thanks", costs=costs)  # type: ignore[arg-type]
