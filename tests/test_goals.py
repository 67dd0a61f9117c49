"""One goal in place of a map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import axplore
from axplore import Atlas, TabularMdp, explore
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import verify as verify_certificate
from axplore.domains import slippery_grid
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.goals import ALL, Goal, goal_from
from axplore.records.properties import NamedStates
from axplore.truth import optimal_steps
from commands import run

GRID = slippery_grid(rows=3, columns=3, slip=0.1)
GOAL = (1, 1)
SETTINGS: dict[str, Any] = {"radius": 4, "epsilon": 1, "doctor": False}


@pytest.fixture(scope="module")
def everything() -> Atlas:
    return explore(GRID, **SETTINGS)


@pytest.mark.parametrize("objective", ["within-radius", "optimal"])
def test_one_goal_is_proven_in_fewer_steps_than_everything(objective: str, everything: Atlas) -> None:
    atlas = explore(GRID, goal=GOAL, objective=objective, **SETTINGS)
    assert (atlas.verdict.kind, atlas.goals, atlas.reached_goal) == (VerdictKind.PROVEN, (GOAL,), GOAL)
    assert atlas.steps < everything.steps
    bounds = atlas.bounds(GOAL)
    best = optimal_steps(GRID, GOAL, list(atlas.states))
    assert bounds.lower <= best <= bounds.upper <= 5
    assert objective == "within-radius" or bounds.regret <= 1
    assert axplore.verify(atlas).complete
    assert "(1, 1) is reached within" in atlas.verdict.headline
    assert "Nothing else was asked for" in str(atlas.verdict)
    assert "no other within" not in str(atlas.verdict)


@pytest.mark.parametrize(
    "goal",
    [
        GOAL,
        "(1,1)",
        {GOAL},
        [GOAL, (9, 9)],
        '"(1, 1)"',
        '"[1,1]" | "(9,9)"',
        lambda state: state == GOAL,
        Goal('"(1, 1)"'),
    ],
)
def test_a_goal_is_written_in_many_ways(goal: Any) -> None:
    atlas = explore(GRID, goal=goal, **SETTINGS)
    assert atlas.reached_goal == GOAL
    assert axplore.verify(atlas).complete


@pytest.mark.parametrize(
    ("given", "text"),
    [("everything", ""), ("s5", '"s5"'), ("x>=3 & ok=true", "x>=3 & ok=true"), (("a", 1), "\"('a', 1)\""), (7, '"7"')],
)
def test_a_goal_is_kept_as_a_formula(given: Any, text: str) -> None:
    goal = goal_from(given)
    assert goal.text == text
    assert goal == ALL or isinstance(given, str) or goal.includes(given)


@pytest.mark.parametrize(
    ("given", "why"),
    [('"a" |', "cannot stand|too early"), ('<=3 "a"', "no number of steps"), ([], "goal is"), ({"x": 1}, "goal")],
)
def test_a_goal_that_means_nothing_is_refused(given: Any, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        goal_from(given)


def test_a_goal_that_is_too_far_or_does_not_exist_is_proven_to_be() -> None:
    for goal in ((2, 2), "nowhere"):
        atlas = explore(GRID, radius=2, epsilon=0.5, goal=goal, doctor=False)
        assert (atlas.verdict.kind, atlas.reached_goal) == (VerdictKind.PROVEN, None)
        said = f"the goal {goal_from(goal).text} is not reliably reachable within 2 expected steps"
        assert said in atlas.verdict.headline
        assert said in str(axplore.verify(atlas))
        assert axplore.verify(atlas).complete


def test_the_initial_state_is_reached_at_once() -> None:
    atlas = explore(GRID, goal=(0, 0), **SETTINGS)
    assert atlas.complete
    assert atlas.steps < 100


def test_a_run_resumes_towards_its_goal_another_one_and_everything(tmp_path: Path, everything: Atlas) -> None:
    explore(GRID, goal="(2,1)", run=tmp_path / "run", max_steps=300, **SETTINGS)
    cut = Atlas.load(tmp_path / "run")
    assert (cut.complete, cut.goals is not None) == (False, True)
    assert "goal" in cut.verdict.headline
    same = axplore.resume(tmp_path / "run", GRID, max_steps=100_000)
    assert same.reached_goal == (2, 1)
    other = axplore.resume(tmp_path / "run", GRID, goal=(0, 2))
    assert other.reached_goal == (0, 2)
    assert other.steps >= same.steps
    whole = axplore.resume(tmp_path / "run", GRID, goal="everything", objective="optimal")
    assert (whole.goals, whole.complete) == (None, True)
    assert set(everything.states) == set(whole.states)
    assert axplore.verify(tmp_path / "run").complete


def test_a_function_is_asked_for_again_on_resuming(tmp_path: Path) -> None:
    explore(GRID, goal=lambda state: state == (2, 1), run=tmp_path / "run", max_steps=300, **SETTINGS)
    with pytest.raises(InvalidSettingError, match="goal"):
        axplore.resume(tmp_path / "run", GRID, max_steps=100_000)
    assert axplore.resume(tmp_path / "run", GRID, goal=(2, 1), max_steps=100_000).reached_goal == (2, 1)


@pytest.mark.usefixtures("_only_worker_here")
def test_one_worker_and_two_find_the_same() -> None:
    one, two = (explore(GRID, goal=GOAL, workers=workers, **SETTINGS) for workers in (1, 2))
    assert one.certificate is not None
    assert two.certificate is not None
    assert one.certificate.digest == two.certificate.digest
    assert one.reached_goal == GOAL


def test_where_every_action_has_one_outcome_the_way_is_exact() -> None:
    grid = slippery_grid(rows=9, columns=9, slip=0.0)
    atlas = explore(
        grid, radius=12, epsilon=0.5, goal=(2, 2), assume="deterministic", objective="optimal", doctor=False
    )
    assert (atlas.reached_goal, atlas.bounds((2, 2)).lower, atlas.bounds((2, 2)).upper) == ((2, 2), 4.0, 4.0)
    assert axplore.verify(atlas).complete


def test_a_forged_goal_is_refused_or_not_complete() -> None:
    certificate = explore(GRID, goal=(0, 1), **SETTINGS).certificate
    assert certificate is not None
    assert certificate.goal is not None
    others = [index for index in range(1, certificate.n_seen) if index != certificate.goal.states[0]]
    for states in ([], [others[0]], [*certificate.goal.states.tolist(), certificate.n_seen]):
        with pytest.raises(InvalidInputError):
            structs.replace(certificate, goal=NamedStates(certificate.goal.name, np.array(states, dtype=np.int64)))
    with pytest.raises(InvalidInputError):
        structs.replace(certificate, goal=NamedStates('"(2, 2)"', certificate.goal.states))
    far = list(range(len(certificate.known), certificate.n_seen))
    forged = structs.replace(certificate, goal=NamedStates("", np.array(far, dtype=np.int64)))
    assert not verify_certificate(forged).holds
    assert not verify_certificate(structs.replace(certificate, goal=None)).holds


def test_other_explorers_make_maps() -> None:
    with pytest.raises(InvalidSettingError, match="makes a map of everything"):
        explore(GRID, 3, 1, goal=GOAL, explorer="disco-experiment")


def test_the_command_takes_a_goal(tmp_path: Path) -> None:
    world = ("slippery-grid", "--set", "rows=3", "--set", "columns=3", "--radius", "4", "--epsilon", "1")
    shown = run("explore", *world, "--goal", "(1,1)", "--out", tmp_path / "run")
    assert "Proven: (1, 1) is reached within" in shown
    assert "what was asked of the goal is answered" in run("verify", tmp_path / "run", "--complete")


def test_fields_of_states_are_goals() -> None:
    rows: dict[str, Any] = {f"x={x}, ok=true": {"on": {f"x={x + 1}, ok=true": 1.0}} for x in range(4)}
    rows["x=4, ok=true"] = {}
    atlas = explore(TabularMdp.from_rows(rows, "x=0, ok=true"), radius=6, goal="x>=3 & ok=true", assume="deterministic")
    assert atlas.reached_goal == "x=3, ok=true"
