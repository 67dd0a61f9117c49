from __future__ import annotations

import itertools
import json
import math
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import axplore
from axplore import Atlas, TabularMdp
from axplore.atlas.validation import (
    HEADINGS,
    OtherActions,
    Outcome,
    Validation,
    largest_mean,
    log_evidence_of_slowness,
)
from axplore.atlas.verdict import VerdictKind
from axplore.cli import app
from axplore.domains import domain
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from gymnasium_names import TAXI

GRID = {"rows": 3, "columns": 3}


def grid(slip: float) -> TabularMdp:
    return domain("slippery-grid", **GRID, slip=slip)


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    """Of a slippery grid; its bounds are true."""
    atlas = axplore.explore(grid(0.2), radius=4.0, epsilon=0.5)
    truth = axplore.controllable_states(grid(0.2), 4.0)
    assert set(atlas.states) == set(truth.states)
    for state in atlas.states:
        policy = atlas.policy(state)
        steps = policy_steps(grid(0.2), policy, state)
        assert atlas.bounds(state).lower <= steps <= atlas.bounds(state).upper
    return atlas


def policy_steps(model: TabularMdp, policy: Any, goal: Any) -> float:
    """The expected steps of a policy, by a linear solve."""
    states = [state for state in model.states if state != goal]
    matrix = np.eye(len(states))
    for line, state in enumerate(states):
        action = policy(state)
        row = {model.initial_state: 1.0} if action is axplore.RESET else model.row(state, action)
        for successor, probability in row.items():
            if successor != goal:
                matrix[line, states.index(successor)] -= probability
    if goal == model.initial_state:
        return 0.0
    return float(np.linalg.solve(matrix, np.ones(len(states)))[states.index(model.initial_state)])


def test_a_true_atlas_is_contradicted_as_rarely_as_stated(atlas: Atlas) -> None:
    level, repeats = 0.2, 100
    times = sum(
        not atlas.validate(SimulatedWorld(grid(0.2), seed), 40, false_alarm=level).holds for seed in range(repeats)
    )
    assert times <= binom.ppf(1 - 1e-6, repeats, level)


def test_rare_events_that_did_not_show_do_not_contradict_a_true_atlas() -> None:
    """One step in two hundred fails and costs a reset and a way anew: most samples are without."""
    chance, length = 0.005, 3
    rows: dict[Any, dict[str, dict[Any, float]]] = {
        place: {"on": {place + 1: 1 - chance, "ditch": chance}} for place in range(length)
    }
    model = TabularMdp.from_rows({**rows, length: {}, "ditch": {}}, 0)
    atlas = axplore.explore(model, radius=4.0, epsilon=0.05)
    repeats, level = 60, 0.01
    times = sum(not atlas.validate(SimulatedWorld(model, seed), 60, false_alarm=level).holds for seed in range(repeats))
    assert times <= binom.ppf(1 - 1e-6, repeats, level)


def test_the_means_are_those_of_the_policies(atlas: Atlas) -> None:
    """Within five standard errors of the exact expectation."""
    for trial in atlas.validate(SimulatedWorld(grid(0.2), 3), 1000).trials:
        exact = policy_steps(grid(0.2), atlas.policy(trial.goal), trial.goal)
        half = (trial.interval[1] - trial.interval[0]) / 2 / 2.58
        assert abs(trial.mean - exact) <= 5 * half + 1e-12
        assert trial.arrived == trial.episodes == 1000


def test_an_atlas_of_a_less_slippery_world_is_too_fast_a_promise(atlas: Atlas) -> None:
    validation = atlas.validate(SimulatedWorld(grid(0.6), 0), 300)
    assert not validation.holds
    assert {trial.outcome for trial in validation.contradicted} == {Outcome.TOO_SLOW}
    assert "contradicts the atlas" in validation.summary()


def test_an_atlas_of_a_more_slippery_world_is_too_slow_a_promise(atlas: Atlas) -> None:
    validation = atlas.validate(SimulatedWorld(grid(0.0), 0), 300)
    assert {trial.outcome for trial in validation.contradicted} == {Outcome.TOO_FAST}


def test_a_goal_that_is_not_there_is_never_met(atlas: Atlas) -> None:
    walled = domain("slippery-grid", **GRID, slip=0.2, walls=((1, 1),))
    outcomes = {trial.goal: trial.outcome for trial in atlas.validate(SimulatedWorld(walled, 0), 20).trials}
    assert outcomes[1, 1] is Outcome.NEVER_MET
    assert outcomes[0, 0] is Outcome.CONSISTENT


def test_a_world_that_starts_elsewhere_is_refused(atlas: Atlas) -> None:
    elsewhere = domain("slippery-grid", **GRID, slip=0.2, start=(1, 1))
    with pytest.raises(InvalidInputError, match="the atlas starts in"):
        atlas.validate(SimulatedWorld(elsewhere, 0))


LANE: dict[Any, Any] = {"a": {"go": {"b": 1.0}}, "b": {"on": {"c": 1.0}}, "c": {}}
WITH_JUMP: dict[Any, Any] = {**LANE, "a": {"go": {"b": 1.0}, "jump": {"b": 1.0}}}
WITHOUT_ON: dict[Any, Any] = {**LANE, "b": {"off": {"c": 1.0}}}
NOT_TERMINAL: dict[Any, Any] = {**LANE, "c": {"back": {"a": 1.0}}}


@pytest.mark.parametrize(
    ("rows", "state", "added", "missing", "said"),
    [
        (WITH_JUMP, "a", ("jump",), (), "state a also offers jump"),
        (WITHOUT_ON, "b", ("off",), ("on",), "state b also offers off and does not offer on"),
        (NOT_TERMINAL, "c", ("back",), (), "state c also offers back"),
    ],
)
def test_a8_a_world_with_other_actions_than_the_atlas_contradicts_it(
    rows: dict[Any, Any], state: str, added: tuple[str, ...], missing: tuple[str, ...], said: str
) -> None:
    atlas = axplore.explore(TabularMdp.from_rows(LANE, "a"), radius=2, epsilon=1)
    validation = atlas.validate(TabularMdp.from_rows(rows, "a"), 10)
    assert validation.other_actions == (OtherActions(state, added, missing),)
    assert not validation.holds
    assert said in validation.summary()
    assert atlas.validate(TabularMdp.from_rows(LANE, "a"), 10).holds


def test_a8_a_goal_behind_an_action_that_the_world_lacks_is_not_consistent() -> None:
    atlas = axplore.explore(TabularMdp.from_rows(LANE, "a"), radius=2, epsilon=1)
    validation = atlas.validate(TabularMdp.from_rows(WITHOUT_ON, "a"), 10)
    assert [trial.goal for trial in validation.contradicted] == ["c"]


def test_a8_the_command_exits_with_one_where_the_world_has_another_action(tmp_path: Path) -> None:
    run = tmp_path / "run"
    axplore.explore(TabularMdp.from_rows(LANE, "a"), radius=2, epsilon=1, run=run)
    (tmp_path / "lane.py").write_text(
        f"from axplore import TabularMdp\nmore = lambda: TabularMdp.from_rows({WITH_JUMP}, 'a')\n", encoding="utf-8"
    )
    command = ["validate", str(run), "--world", "lane:more", "--json"]
    with chdir(tmp_path):
        result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["holds"] is False
    assert document["other_actions"] == [{"state": "a", "added": ["jump"], "missing": []}]


def test_states_may_be_numbered_and_actions_ordered_in_another_way() -> None:
    rows: dict[Any, Any] = {
        "s": {"l": {"x": 1.0}, "r": {"y": 1.0}},
        "x": {"l": {"s": 1.0}, "r": {"z": 1.0}},
        "y": {"l": {"y": 1.0}, "r": {"y": 1.0}},
        "z": {},
    }
    turned = {state: dict(reversed(options.items())) for state, options in reversed(rows.items())}
    atlas = axplore.explore(TabularMdp.from_rows(rows, "s"), radius=3, epsilon=0.5)
    validation = atlas.validate(TabularMdp.from_rows(turned, "s"), 10)
    assert validation.holds
    assert {trial.goal: trial.mean for trial in validation.trials} == {"s": 0.0, "x": 1.0, "y": 1.0, "z": 2.0}


def test_a_real_system_is_tried_step_by_step() -> None:
    class Coin:
        actions = ("toss",)

        def __init__(self) -> None:
            self.rng = np.random.default_rng(0)

        def reset(self) -> str:
            return "hand"

        def step(self, _action: str) -> str:
            return "heads" if self.rng.random() < 0.5 else "hand"

    atlas = axplore.explore(Coin(), radius=3, epsilon=0.5)
    with SteppedWorld(Coin) as world:
        validation = atlas.validate(world, 200)
    assert validation.holds
    (trial,) = (trial for trial in validation.trials if trial.goal == "heads")
    assert 1.5 < trial.mean < 2.6
    assert validation.steps >= 200


@pytest.mark.parametrize("explorer", ["ucb-explore-experiment", "disco-experiment"])
def test_policies_of_explorers_that_prove_nothing_are_held_to_radius_and_epsilon(explorer: str) -> None:
    atlas = axplore.explore("confusing-chain", radius=4.5, epsilon=0.4, explorer=explorer)
    model = domain("confusing-chain")
    validation = atlas.validate(SimulatedWorld(model, 5), 400)
    for trial in validation.trials[1:]:
        assert trial.promised == (0.0, 4.9)
        exact = axplore.optimal_steps(model, trial.goal, allowed=model.states)
        half = (trial.interval[1] - trial.interval[0]) / 2 / 2.58
        assert trial.mean >= exact - 5 * half - 1e-12


def test_episodes_are_cut_at_the_horizon(atlas: Atlas) -> None:
    (trial,) = atlas.validate(SimulatedWorld(grid(0.2), 0), 50, goals=[(1, 1)], horizon=1).trials
    assert (trial.arrived, trial.mean, trial.horizon) == (0, 1.0, 1)
    assert trial.outcome is Outcome.CONSISTENT  # a cut episode says nothing about being too fast


@pytest.mark.parametrize(("short", "long", "chance"), [(1, 3, 0.5), (0, 10, 0.1), (1, 100, 0.02), (2, 2, 1.0)])
def test_evidence_of_slowness_has_an_expectation_of_at_most_one(short: int, long: int, chance: float) -> None:
    """Exactly, by every sequence of lengths, at the largest mean that the bound allows."""
    n = 8
    upper = (1 - chance) * short + chance * long
    expected = sum(
        math.prod(chance if slow else 1 - chance for slow in slows)
        * math.exp(log_evidence_of_slowness(np.array([long if slow else short for slow in slows]), upper))
        for slows in itertools.product((False, True), repeat=n)
    )
    assert expected <= 1 + 1e-9


def test_evidence_of_slowness_grows_with_slowness() -> None:
    assert log_evidence_of_slowness(np.full(50, 6), 4.0) > 10
    assert log_evidence_of_slowness(np.full(50, 4), 4.0) <= 0
    assert log_evidence_of_slowness(np.array([0, 0]), 0.0) == 0.0
    assert log_evidence_of_slowness(np.array([0, 1]), 0.0) == math.inf


def test_the_largest_mean_leaves_room_for_what_did_not_show() -> None:
    assert largest_mean(np.full(100, 3), 4.0, math.exp(-5)) == pytest.approx(3 + 0.05 * 5)


@pytest.mark.parametrize("settings", [{"episodes": 0}, {"horizon": 0}, {"false_alarm": 1.0}])
def test_settings_that_mean_nothing_are_refused(atlas: Atlas, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        atlas.validate(SimulatedWorld(grid(0.2), 0), **settings)


def test_a_validation_is_a_table(atlas: Atlas) -> None:
    validation: Validation = atlas.validate(SimulatedWorld(grid(0.2), 0), 50)
    assert [len(row) for row in validation.rows()] == [len(HEADINGS)] * len(atlas.states)
    assert str(validation).splitlines()[-1] == validation.summary()
    assert validation.holds


def test_the_command_tries_a_run_and_says_by_its_exit_code_what_it_found(tmp_path: Path, atlas: Atlas) -> None:
    folder = tmp_path / "run"
    atlas.save(folder)

    def command(slip: str) -> tuple[int, Any]:
        settings = [f"--set={name}={value}" for name, value in {**GRID, "slip": slip}.items()]
        arguments = ["validate", str(folder), "--world", "slippery-grid", "--episodes", "200", "--json", *settings]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        return result.exit_code, json.loads(result.stdout)

    code, told = command("0.2")
    assert (code, told["holds"], len(told["goals"])) == (0, True, len(atlas.states))
    code, told = command("0.6")
    assert (code, told["holds"]) == (1, False)
    assert "TOO_SLOW" in {goal["outcome"] for goal in told["goals"]}
    assert [finding["issue"] for finding in told["findings"]] == ["Labels hide something"]


@pytest.mark.parametrize("command", ["validate", "certify"])
def test_a_contradiction_is_kept_in_the_run_if_its_own_world_shows_it(command: str, tmp_path: Path) -> None:
    settings = {"rows": "2", "columns": "3", "slip": "0.02"}
    world = {"radius": 4, "assume": "deterministic", "doctor": False}
    seed = next(  # of a run that has not met a slip
        seed
        for seed in range(20)
        if axplore.explore("slippery-grid", world_parameters=settings, seed=seed, **world).complete  # type: ignore[arg-type]
    )

    def told(run: Path, *arguments: str, **given: str) -> str:
        options = [f"--set={name}={value}" for name, value in {**settings, **given}.items()]
        goal = {"validate": ["--episodes=300"], "certify": ["(1,2)", "--within=9", "--delta=1e-60", "--restarts"]}[
            command
        ]
        result = CliRunner().invoke(app, [command, str(run), *goal, *arguments, *options], catch_exceptions=False)
        return " ".join(result.stdout.split())

    runs = tmp_path / "own", tmp_path / "other"
    for run in runs:
        axplore.explore("slippery-grid", world_parameters=settings, seed=seed, run=run, **world)  # type: ignore[arg-type]
    assert "Contradicted: while the polic" in told(runs[0])
    assert "Contradicted: while the polic" not in told(runs[1], slip="0.3")
    kept, other = map(Atlas.load, runs)
    assert kept.verdict.kind is VerdictKind.CONTRADICTED
    assert other.verdict.kind is VerdictKind.PROVEN
    assert CliRunner().invoke(app, ["verify", str(runs[0])]).exit_code == 1
    assert CliRunner().invoke(app, ["verify", str(runs[1])]).exit_code == 0
    assert axplore.resume(runs[0]).verdict.kind is VerdictKind.CONTRADICTED
    assert axplore.resume(runs[0], assume="none", epsilon=1).verdict.kind is VerdictKind.PROVEN


def test_the_doctors_command_says_by_its_exit_code_what_it_found() -> None:
    def command(*arguments: str) -> tuple[int, Any]:
        result = CliRunner().invoke(app, ["doctor", *arguments, "--json"], catch_exceptions=False)
        return result.exit_code, json.loads(result.output)

    code, told = command("gym:FrozenLake-v1", "--max-steps", "2000")
    assert (code, told["healthy"], told["states"]) == (0, True, 16)
    code, told = command(f"gym:{TAXI}", "--max-steps", "2000")
    assert code == 1
    assert [finding["issue"] for finding in told["findings"]] == ["START_NOT_FIXED"]
