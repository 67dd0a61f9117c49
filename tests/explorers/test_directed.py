"""The directed explorer samples what decides a question, and its bounds hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.assumptions import Assumptions
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.base import run
from axplore.explorers.directed import Directed
from axplore.mdp import TabularMdp
from axplore.records.run import StopReason
from axplore.target import NO_RADIUS, Target
from axplore.testing import check_explorer
from axplore.worlds.simulated import SimulatedWorld

# One way is likely to fail at once, the other one may be tried again: x = 0.45 + 0.5 (0.6 + 0.4 x).
ROWS: dict[str, dict[str, dict[str, float]]] = {
    "start": {"a": {"left": 0.5, "right": 0.5}, "b": {"bad": 0.8, "start": 0.2}},
    "left": {"go": {"goal": 0.9, "bad": 0.1}},
    "right": {"go": {"goal": 0.6, "start": 0.4}},
    "bad": {"stay": {"bad": 1.0}},
    "goal": {},
}
BEST, WORST = 0.75 / 0.8, 0.0
MODEL = TabularMdp.from_rows(ROWS, "start")
ASKED = 'Pmax=? [ !"bad" U "goal" ]'


def directed(question: str = ASKED, precision: float = 0.1, **options: Any) -> Directed:
    return Directed(target=Target(radius=NO_RADIUS, epsilon=precision, delta=0.1), question=question, **options)


def test_it_keeps_the_contract_of_explorers() -> None:
    check_explorer(directed())


@pytest.mark.parametrize(
    ("question", "value", "assume"),
    [
        (ASKED, BEST, {"min_probability": 0.05}),
        ('Pmin=? [ !"bad" U "goal" ]', WORST, {}),
        ('Pmin=? [ F "bad" | "goal" ]', 1.0, {"min_probability": 0.05}),
        ('Pmax=? [ F<=2 "goal" ]', 0.75, {}),
        ('Pmax=? [ G !"bad" ]', BEST, {"min_probability": 0.05}),
        ('Pmin=? [ G<=3 !"bad" ]', 1 - 0.992, {}),
    ],
)
def test_it_stops_when_the_bounds_are_close_enough_and_they_hold(
    question: str, value: float, assume: dict[str, Any]
) -> None:
    atlas = axplore.check(MODEL, question, precision=0.1, assume=Assumptions(**assume)).atlas
    (bounds,) = atlas.properties
    assert bounds.lower <= value <= bounds.upper <= bounds.lower + 0.1
    assert atlas.verdict.kind.name == "PROVEN"
    assert atlas.explorer == "directed"
    assert axplore.verify(atlas).holds


@pytest.mark.parametrize(("bound", "holds"), [("Pmax>=0.8", True), ("Pmax>=0.99", False), ("Pmax<0.99", True)])
def test_a_bound_is_decided_before_the_value_is_known(bound: str, holds: bool) -> None:
    found = axplore.check(MODEL, f'{bound} [ !"bad" U "goal" ]', precision=0.001, max_steps=10**6)
    assert found.holds is holds
    assert found.atlas.stop is StopReason.PROVEN
    assert found.upper - found.lower > 0.001


def test_a_bound_that_is_the_value_itself_is_left_open_once_the_precision_is_reached() -> None:
    found = axplore.check(MODEL, 'Pmax>=0.75 [ F<=2 "goal" ]', precision=0.1)
    assert found.holds is None
    assert found.atlas.stop is StopReason.NARROW_ENOUGH
    assert found.atlas.verdict.kind.name == "UNFINISHED"


def test_sets_and_functions_ask_the_same_as_a_text() -> None:
    by_text = axplore.check(MODEL, ASKED, precision=0.2, max_steps=10**6)
    by_sets = axplore.check(MODEL, reach={"goal"}, avoid="bad", precision=0.2, max_steps=10**6)
    by_function = axplore.check(MODEL, reach=lambda state: state == "goal", avoid=["bad"], precision=0.2)
    for other in (by_sets, by_function):
        assert (other.lower, other.upper, other.atlas.steps) == (by_text.lower, by_text.upper, by_text.atlas.steps)
    assert by_text.policy("start") == "a"


def test_what_is_no_question_is_refused_before_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot stand here"):
        axplore.check(MODEL, "Pmax=? [ nonsense ]")
    with pytest.raises(InvalidSettingError, match="either a question"):
        axplore.check(MODEL)
    with pytest.raises(InvalidSettingError, match="no setting 'radius'"):
        axplore.check(MODEL, ASKED, radius=3)
    with pytest.raises(InvalidSettingError, match="function, which no run can keep"):
        axplore.check(MODEL, reach=lambda _: True, run=tmp_path / "run")
    with pytest.raises(InvalidInputError, match="costs are planned"):
        axplore.check(MODEL, 'Rmin=? [ F "goal" ]')
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"reach": [["goal"]]}, "reach"),
        ({"reach": "goal", "avoid": {"bad": 1}}, "avoid"),
        ({"reach": "goal", "within": -1}, "within"),
        ({"reach": "goal", "within": True}, "within"),
        ({"reach": "goal", "goal": "goal"}, "'goal'"),
        ({"reach": "goal", "begin_with": []}, "'begin_with'"),
    ],
)
def test_an_argument_that_means_nothing_is_refused_by_its_name(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidSettingError, match=wrong):
        axplore.check(MODEL, **given)


def test_a_run_that_is_resumed_ends_as_one_that_was_not_interrupted(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"precision": 0.05, "seed": 3, "assume": Assumptions(min_probability=0.05)}
    whole = axplore.check(MODEL, reach={"goal"}, avoid={"bad"}, run=tmp_path / "whole", **settings)
    part = axplore.check(
        MODEL, reach={"goal"}, avoid={"bad"}, run=tmp_path / "part", max_steps=whole.atlas.steps // 2, **settings
    )
    assert part.atlas.stop is StopReason.STEP_LIMIT
    assert part.upper - part.lower > 0.05
    resumed = axplore.resume(tmp_path / "part", MODEL)
    (bounds,) = resumed.properties
    assert bounds.upper - bounds.lower <= 0.05
    assert bounds.lower <= BEST <= bounds.upper
    assert axplore.verify(tmp_path / "part").holds
    assert axplore.check(MODEL, reach={"goal"}, avoid={"bad"}, run=tmp_path / "again", **settings).lower == whole.lower


def test_a_run_resumes_to_another_precision_and_to_nothing_else(tmp_path: Path) -> None:
    axplore.check(MODEL, ASKED.replace("U", "U<=9"), precision=0.3, run=tmp_path)
    sharper = axplore.resume(tmp_path, MODEL, epsilon=0.1)
    (bounds,) = sharper.properties
    assert bounds.upper - bounds.lower <= 0.1
    assert axplore.verify(sharper).complete
    coarser = axplore.resume(tmp_path, MODEL, epsilon=0.2)
    assert (coarser.steps, axplore.verify(coarser).complete) == (sharper.steps, True)
    changes: tuple[dict[str, Any], ...] = ({"radius": 5}, {"objective": "optimal"}, {"goal": "goal"})
    for change in changes:
        with pytest.raises(InvalidSettingError, match="a question has no"):
            axplore.resume(tmp_path, MODEL, **change)
    for width in (2.0, 1e-9):
        with pytest.raises(InvalidSettingError, match="epsilon"):
            axplore.resume(tmp_path, MODEL, epsilon=width)


@pytest.mark.usefixtures("_only_worker_here")
def test_workers_give_the_same_answer_whatever_their_number() -> None:
    answers = [axplore.check(MODEL, ASKED, precision=0.2, workers=n, max_steps=10**6) for n in (1, 2)]
    assert (answers[0].lower, answers[0].upper) == (answers[1].lower, answers[1].upper)
    assert answers[0].lower <= BEST <= answers[0].upper


class Stepped:
    """The model as a system that is stepped."""

    def __init__(self) -> None:
        self._state, self._noise = "start", np.random.default_rng(0)

    def reset(self) -> str:
        self._state = "start"
        return self._state

    def actions(self, state: str) -> list[str]:
        return list(ROWS[state])

    def step(self, action: str) -> str:
        row = ROWS[self._state][action]
        self._state = str(self._noise.choice(list(row), p=list(row.values())))
        return self._state

    def reseed(self, seed: Any) -> None:
        self._noise = np.random.default_rng(seed)


def test_a_system_that_is_stepped_is_asked_in_the_same_way() -> None:
    found = axplore.check(Stepped, 'P>=0.6 [ F "bad" | "goal" ]', assume="min-probability=0.05", max_steps=50_000)
    assert found.holds is True
    assert found.proven


def test_an_assumption_that_is_false_is_contradicted() -> None:
    found = axplore.check(MODEL, ASKED, precision=0.01, assume="min-probability=0.3", max_steps=10**6)
    assert found.atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
    assert not found.proven


def test_labels_without_end_are_noticed() -> None:
    class Endless(Stepped):
        count = 0

        def step(self, action: str) -> str:  # noqa: ARG002
            Endless.count += 1
            return f"new {Endless.count}"

        def actions(self, state: str) -> list[str]:
            return ["go"] if state == "start" else []

    found = axplore.check(Endless(), 'Pmax=? [ F "never" ]', doctor=False, max_steps=50_000)
    assert found.atlas.stop is StopReason.ENDLESS_LABELS


def test_it_takes_far_fewer_steps_than_sampling_everything_alike() -> None:
    """A long detour that decides nothing is not looked at."""
    rows = {**ROWS, "start": {**ROWS["start"], "away": {"d0": 1.0}}}
    rows |= {f"d{n}": {"on": {f"d{n + 1}": 0.5, "bad": 0.5}} for n in range(30)} | {"d30": {"on": {"bad": 1.0}}}
    explorer = replace(directed(precision=0.05), assume=Assumptions(min_probability=0.05))
    found = run(explorer, SimulatedWorld(TabularMdp.from_rows(rows, "start"), 0))
    deep = [index for index, state in enumerate(found.states) if str(state).startswith("d")]
    visits = np.bincount(
        np.repeat(np.arange(len(found.states)), np.diff(found.counts.state_pairs)), found.counts.visits
    )
    assert visits[deep].sum() < 0.2 * visits.sum()


def test_waiting_in_a_loop_takes_few_steps() -> None:
    rows = {
        "start": {"go": {"loop": 0.5, "other": 0.5}},
        "loop": {"on": {"other": 1.0}},
        "other": {"back": {"loop": 0.9, "other": 0.1}},
    }
    mdp = TabularMdp.from_rows({**rows, "goal": {}}, "start")
    found = axplore.check(mdp, 'Pmin=? [ F "goal" ]', precision=0.05, assume="min-probability=0.05")
    assert (found.lower, found.upper) == (0.0, 0.0)
    assert found.atlas.steps < 5000
