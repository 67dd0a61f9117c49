"""Whatever a public function is called with, it works or raises an `AxploreError`; a refused call writes nothing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import axplore
from axplore import Atlas, AxploreError, StopReason, TabularMdp
from axplore.errors import InvalidSettingError
from axplore.explorers.registry import EXPLORERS, preset
from axplore.export import export
from axplore.forecast import forecast
from axplore.report import write_report
from axplore.worlds import gym_world

NUMBERS = [0, 1, 2, -1, 0.5, 3.0, math.nan, math.inf, -math.inf, 1e12, 1e300, 5e-324, 10**400, -(10**400), 2**63, 2j]
NUMPY = [np.float32(2), np.float64(0.5), np.int64(1), np.bool_(True), np.str_("x"), np.nan, np.ones(1), np.array(1)]
TEXTS = ["2", "x", "", "\0", "\ud800", "a" * 5000, b"x", Path("nowhere")]
COLLECTIONS = [(), [], {}, {"a": 1}, [1, 2], (0, 1), {(0, 1): 2}, {1: {2: 3}}, {"s0"}, range(3), np.array(["a"])]
OBJECTS = [None, True, Fraction(1, 3), object(), StopReason.STEP_LIMIT, RuntimeError("x"), axplore]
FUNCTIONS = [print, lambda *_: None, lambda *_: "text"]
RAISING = [len, int, TabularMdp]
"""Functions that raise an error of their own when they are called with what axplore calls functions with."""

ODD: list[Any] = [*NUMBERS, *NUMPY, *TEXTS, *COLLECTIONS, *OBJECTS, *FUNCTIONS]

ODD_WORLDS = [
    *(
        "two-branch",
        "nowhere",
        "gym:",
        "gym:Nowhere-v0",
        "gym:FrozenLake-v1",
        "exec:",
        "exec:'",
        "exec:/nonexistent/it",
    ),
    *("storm:nowhere.prism", "no_such_module:factory", "math:pi", "json:nothing", ":", "::"),
]
ODD_EXPLORERS = ["certified", "disco-experiment", "ucb-explore-experiment", "disco-theory", "certified-within-radius"]


@dataclass(frozen=True)
class Call:
    """A public function with arguments that are in order."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


def call(function: Callable[..., Any], /, **arguments: Any) -> Call:
    return Call(function, arguments)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Call]:
    """Calls of the public functions; those that write do so below the working folder."""
    kept = tmp_path_factory.mktemp("kept")
    world = axplore.domain("two-branch", length=1)
    atlas = axplore.explore(world, radius=5, epsilon=0.9)
    atlas.save(kept / "atlas")
    axplore.explore("two-branch", radius=2, epsilon=1, max_steps=30, run=kept / "run")
    return {
        **exploring_calls(kept / "run"),
        **atlas_calls(atlas, world, kept / "atlas"),
        **truth_calls(world),
        **model_calls(),
    }


def exploring_calls(run: Path) -> dict[str, Call]:
    settings = {"radius": 2.0, "epsilon": 1.0, "delta": 0.1, "seed": 1, "states_bound": 5, "world_parameters": None}
    common = {
        "explorer": None,
        "objective": None,
        "max_steps": 30,
        "progress": False,
        "on_round": None,
        "workers": None,
        "ray": None,
    }
    explore = common | settings | {"world": "two-branch", "run": None, "doctor": False, "explorer": "certified"}
    return {
        "explore": Call(axplore.explore, explore),
        "explore into a folder": call(axplore.explore, **explore | {"run": "folder/run"}),
        "resume": call(axplore.resume, **common, run=run, world=None, radius=None, epsilon=None),
        "forecast": call(forecast, **settings, world="two-branch", explorers=["certified"], probe_steps=10),
    }


def atlas_calls(atlas: Atlas, world: TabularMdp, folder: Path) -> dict[str, Call]:
    validate = {"world": world, "episodes": 3, "goals": ["y"], "horizon": 20, "false_alarm": 0.1, "seed": 0}
    return {
        "verify": call(axplore.verify, subject=folder),
        "load": call(Atlas.load, folder=folder),
        "save": call(atlas.save, folder="saved"),
        "plan": call(atlas.plan, goal="y", costs=None, reset_cost=1.0),
        "plans": call(atlas.plans, goals=["y"], costs={("s0", "go"): 0.5}, reset_cost=1.0),
        "within": call(atlas.within, radius=2),
        "probability": call(atlas.probability, goal="y", steps=3),
        "path": call(atlas.path, goal="y"),
        "bounds": call(atlas.bounds, goal="y"),
        "policy": call(atlas.policy, goal="y"),
        "describe": call(atlas.describe, state="y"),
        "why_not": call(atlas.why_not, state="y"),
        "break_even": call(atlas.break_even, state="y"),
        "successors": call(atlas.successors, state="s0", action="go"),
        "call a policy": call(atlas.policy("y"), state="s0", step=None),
        "run a policy": call(atlas.policy("y").run, world=world, times=2, max_steps=20, seed=0),
        "validate": Call(atlas.validate, validate),
        "certify": call(
            axplore.certify,
            policy=atlas,
            world=world,
            goal="y",
            within=5,
            chance=None,
            steps=9,
            delta=0.1,
            max_steps=50,
            seed=0,
            on_progress=None,
        ),
        "write_report": call(write_report, folder=folder, out="page.html"),
        "export": call(export, atlas=atlas, format_name="drn", path="model.drn"),
    }


def truth_calls(world: TabularMdp) -> dict[str, Call]:
    check = {"truth": axplore.controllable_states(world, 3), "epsilon": 0.5, "steps": {"x": 2.0}}
    return {
        "optimal_steps": call(axplore.optimal_steps, mdp=world, goal="x", allowed=["s0"]),
        "l_controllable": call(axplore.l_controllable, mdp=world, radius=2),
        "controllable_states": call(axplore.controllable_states, mdp=world, radius=2),
        "check_within_radius": Call(axplore.check_within_radius, check),
        "check_staged": Call(axplore.check_staged, check),
        "check_optimal": call(axplore.check_optimal, **check | {"steps": None, "policies": {"x": {"s0": "go"}}}),
    }


def model_calls() -> dict[str, Call]:
    chain = {"name": "confusing-chain", "chain_length": 2, "confusing_states": 2, "skip": 1, "skip_probability": 0.5}
    grid = {"name": "slippery-grid", "rows": 2, "columns": 2, "slip": 0.1, "walls": [(1, 1)], "start": (0, 0)}
    pairs = {"pair_states": [0], "pair_actions": [0], "entry_pairs": [0], "successors": [1], "probabilities": [1.0]}
    outcome = (1.0, 0, 0.0, False)
    return {
        "two-branch": call(axplore.domain, name="two-branch", length=2),
        "chain": Call(axplore.domain, chain),
        "grid": Call(axplore.domain, grid),
        "random": call(axplore.domain, name="random-sparse", states=4, actions=2, branching=(1, 2), seed=0),
        "star": call(axplore.domain, name="star", arms=2, arm_length=2),
        "layered": call(axplore.domain, name="layered", arms=2, arm_length=2),
        "lock": call(axplore.domain, name="combination-lock", states=3, initial_state=1),
        "rows": call(TabularMdp.from_rows, rows={"s": {"a": {"t": 1.0}}, "t": {}}, initial_state="s"),
        "row": call(lambda row: TabularMdp.from_rows({"s": row}, "s"), row={"a": {"s": 1.0}}),
        "probability of a row": call(lambda p: TabularMdp.from_rows({"s": {"a": {"s": p}}}, "s"), p=1.0),
        "arrays": Call(
            TabularMdp.from_arrays,
            {
                "probabilities": [[[1.0]]],
                "initial_state": 0,
                "states": [0],
                "actions": ["a"],
                "terminal": (),
                "available": None,
            },
        ),
        "gymnasium": call(TabularMdp.from_gymnasium, transitions={0: {0: [outcome]}}, initial_state=0),
        "outcome": call(lambda outcome: TabularMdp.from_gymnasium({0: {0: [outcome]}}, 0), outcome=outcome),
        "entries": call(TabularMdp.from_entries, **pairs, states=["s", "t"], actions=["a"], initial_state="s"),
    }


def odd_values(argument: str) -> list[Any]:
    if argument in ("on_round", "on_progress", "policy", "costs"):
        return ODD
    return [*ODD, *RAISING, *{"world": ODD_WORLDS, "explorer": ODD_EXPLORERS}.get(argument, [])]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_call_works_or_raises_an_axplore_error_and_then_leaves_nothing_behind(
    calls: dict[str, Call], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(sorted(calls)))
    arguments = calls[name].arguments
    chosen = data.draw(st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=2, unique=True))
    odd = {argument: data.draw(st.sampled_from(odd_values(argument))) for argument in chosen}
    folder, before = tmp_path_factory.mktemp("call"), Path.cwd()
    os.chdir(folder)
    try:
        calls[name].function(**{**arguments, **odd})
    except AxploreError:
        if "on_round" not in odd:  # what it returns is seen only when the run has begun
            assert not list(folder.rglob("*")), f"{name} left files behind with {odd}"
    except Exception as error:
        raise AssertionError(f"{name} with {odd} raised {type(error).__name__}: {error}") from error
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    "setting",
    [
        {"radius": "2"},
        {"radius": 10**400},
        {"epsilon": 5e-324},
        {"delta": "x"},
        {"delta": 5e-324},
        {"max_steps": "3"},
        {"max_steps": 1e6},
        {"seed": -1},
        {"seed": 1.5},
        {"world_parameters": 5},
        {"on_round": 3},
        {"progress": "yes"},
        {"workers": "2"},
        {"ray": 5},
        {"states_bound": 10**400},
    ],
)
def test_a_wrong_argument_of_explore_is_refused_by_name_before_anything_is_written(
    setting: dict[str, Any], tmp_path: Path
) -> None:
    (name,) = setting
    with pytest.raises(InvalidSettingError, match=f"^{name} is "):
        axplore.explore("two-branch", **{"radius": 2, "run": tmp_path / "run", **setting})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"^run is 5; it must be a path"):
        axplore.explore("two-branch", radius=2, run=5)  # type: ignore[arg-type]


def test_a_hook_that_returns_text_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"^what on_round returned is 'stop'; it must be "):
        axplore.explore("two-branch", radius=2, on_round=lambda _: "stop")  # type: ignore[arg-type, return-value]


def test_a_label_that_no_file_holds_leaves_no_folder_behind(tmp_path: Path) -> None:
    world = TabularMdp.from_rows({Fraction(1, 2): {}}, Fraction(1, 2))
    with pytest.raises(AxploreError):
        axplore.explore(world, radius=2, run=tmp_path / "runs" / "one")
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_that_was_there_stays_when_a_run_cannot_begin(tmp_path: Path) -> None:
    world = TabularMdp.from_rows({Fraction(1, 2): {}}, Fraction(1, 2))
    with pytest.raises(AxploreError):
        axplore.explore(world, radius=2, run=tmp_path)
    assert tmp_path.is_dir()
    assert not list(tmp_path.iterdir())


def test_numpy_scalars_are_welcome_everywhere(tmp_path: Path) -> None:
    one, five, run = np.int64(1), np.float32(5), tmp_path / "run"
    given: dict[str, Any] = {"epsilon": np.float64(0.9), "delta": np.float16(0.1), "max_steps": np.int32(10**6)}
    parameters: Any = {"length": one}
    explore: Any = axplore.explore
    atlas = explore("two-branch", five, **given, seed=one, world_parameters=parameters, run=run)
    assert axplore.verify(run).holds
    assert atlas.within(five).probability("y", np.int64(3)).upper <= 1
    assert type(json.loads((run / "run.json").read_text())["settings"]["seed"]) is int
    resume: Any = axplore.resume
    assert resume(run, radius=np.float32(6)).target.radius == 6


@pytest.mark.parametrize("name", EXPLORERS)
@pytest.mark.parametrize(
    "target", [{"radius": 1e12, "epsilon": 1e-12}, {"radius": 1e9, "epsilon": 0.1}, {"radius": 1e300}]
)
def test_a_target_beyond_what_an_explorer_can_compute_is_refused_before_the_first_step(
    name: str, target: dict[str, float]
) -> None:
    if name.startswith(("certified", "directed")) and target["radius"] < 1e300:
        return  # it needs no constants that grow with the radius
    with pytest.raises(InvalidSettingError, match="radius"):
        preset(name, states_bound=10, **{"epsilon": 1.0, **target})


def test_a_model_that_would_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="random-sparse would have about 40,000,000,000 transitions"):
        axplore.domain("random-sparse", states=10**8, actions=100, branching=(1, 4))


def test_a_policy_runs_in_whatever_can_be_explored() -> None:
    import gymnasium

    dry: dict[str, Any] = {"is_slippery": False}
    atlas = axplore.explore("gym:FrozenLake-v1", radius=2, epsilon=1, world_parameters=dry)
    policy = atlas.policy(atlas.states[-1])
    environment = gymnasium.make("FrozenLake-v1", **dry)
    for world in (
        environment,
        gym_world("FrozenLake-v1", **dry),
        lambda: gymnasium.make("FrozenLake-v1", **dry),
    ):
        assert policy.run(world, times=3).arrivals == 3
        assert atlas.validate(world, episodes=3).holds
        assert set(axplore.explore(world, radius=2, epsilon=1).states) == set(atlas.states)
    assert policy.run("gym:FrozenLake-v1", times=3, world_parameters=dry).arrivals == 3
    assert atlas.validate("gym:FrozenLake-v1", episodes=3, world_parameters=dry).holds
    with pytest.raises(InvalidSettingError, match="world_parameters are for a world given by its name"):
        atlas.validate(environment, world_parameters=dry)


def test_a_system_that_was_handed_in_is_not_closed_and_one_made_for_a_call_is() -> None:
    closed = []

    class Lamp:
        actions = ("on", "off")

        def reset(self) -> str:
            return "dark"

        def step(self, action: str) -> str:
            return "bright" if action == "on" else "dark"

        def close(self) -> None:
            closed.append(self)

    lamp = Lamp()
    atlas = axplore.explore(lamp, radius=2, epsilon=1)
    assert atlas.validate(lamp, episodes=2).holds
    assert atlas.policy("bright").run(lamp).arrivals == 1
    assert closed == []
    assert atlas.policy("bright").run(Lamp).arrivals == 1
    assert closed


def test_a_system_that_changes_the_working_directory_does_not_move_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wandering:
        actions = ("on", "off")
        n_steps = 0

        def reset(self) -> str:
            return "dark"

        def step(self, action: str) -> str:
            self.n_steps += 1
            if self.n_steps == 20:
                os.chdir(elsewhere)
            return "bright" if action == "on" else "dark"

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    atlas = axplore.explore(Wandering(), radius=2, epsilon=0.5, run="lamp")
    assert axplore.verify(tmp_path / "lamp").exit_code == atlas.verdict.exit_code == 0
    assert not list(elsewhere.iterdir())
    monkeypatch.chdir(tmp_path)
    axplore.resume("lamp", Wandering(), epsilon=0.3)
    assert axplore.verify(tmp_path / "lamp").exit_code == 0
    assert not list(elsewhere.iterdir())
