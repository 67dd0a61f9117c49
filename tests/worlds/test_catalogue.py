from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import axplore
from axplore import Atlas, StopReason
from axplore.cli import app
from axplore.domains import confusing_chain
from axplore.errors import InvalidInputError, InvalidSettingError, UnknownNameError, WorldError
from axplore.records.findings import FaultKind
from axplore.worlds.catalogue import FORMS, MODULE_FORM, named_world, world_of
from axplore.worlds.contract import Visit
from axplore.worlds.simulated import SimulatedWorld
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.systems import VIRTUAL_START

NOWHERE = np.array([], dtype=np.int64)

MODULE = """
class Lamp:
    actions = ("on", "off")

    def __init__(self, broken=False):
        self.broken = broken

    def reset(self):
        return "dark"

    def step(self, action):
        if self.broken:
            raise RuntimeError("the bulb is gone")
        return {"on": "bright", "off": "dark"}[action]


class Shop:
    lamp = Lamp


def broken():
    return Lamp(broken=True)


def lake():
    import gymnasium
    return gymnasium.make("FrozenLake-v1")


def model():
    from axplore.domains import star
    return star(arms=2)


the_lamp = Lamp()
nothing = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the current folder."""
    name = "lamps_" + re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_a_name_with_a_known_word_before_the_colon_is_a_world_of_that_kind() -> None:
    assert list(named_world("gym:FrozenLake-v1", 0, {}).states) == [0]
    assert set(FORMS) >= {"gym", "exec"}


def test_parameters_are_read_as_json_or_else_as_text() -> None:
    parameters = {"is_slippery": "false", "map_name": "8x8", "start": "virtual"}
    world: Any = named_world("gym:FrozenLake-v1", 0, parameters)
    assert list(world.states) == [VIRTUAL_START]
    world.carry_out([Visit(0, 0, 1, NOWHERE, max_journey=1)])
    # Down from the corner: on the small map that is state 4, and nothing slips.
    world.carry_out([Visit(1, 1, 1, NOWHERE, max_journey=1)])
    assert list(world.states) == [VIRTUAL_START, 0, 8]


@pytest.mark.parametrize("factory", ["Lamp", "Shop.lamp", "the_lamp"])
def test_any_other_word_is_a_module_of_the_users(module: str, factory: str) -> None:
    world = named_world(f"{module}:{factory}", 0, {})
    assert (list(world.states), world.actions_of(0)) == (["dark"], ("on", "off"))
    atlas = axplore.explore(f"{module}:{factory}", 2, 1.0)
    assert set(atlas.states) == {"dark", "bright"}
    assert atlas.world == f"{module}:{factory}"


def test_a_factory_may_make_an_environment_or_a_model(module: str) -> None:
    assert list(named_world(f"{module}:lake", 0, {}).states) == [0]
    assert list(named_world(f"{module}:lake", 0, {"start": "virtual"}).states) == [VIRTUAL_START]
    assert isinstance(named_world(f"{module}:model", 0, {}), SimulatedWorld)
    with pytest.raises(InvalidSettingError, match="start applies only to a system that is stepped"):
        named_world(f"{module}:model", 0, {"start": "virtual"})


def test_what_a_factory_makes_can_run_in_a_process_of_its_own(module: str) -> None:
    world: Any = named_world(f"{module}:broken", 0, {"step_timeout": "20", "max_faults": "0"})
    with pytest.raises(WorldError, match="the bulb is gone"):
        world.carry_out([Visit(0, 0, 1, NOWHERE, max_journey=1)])
    assert [fault.kind for fault in world.faults] == [FaultKind.RAISED]
    world.close()
    with pytest.raises(InvalidSettingError, match="needs a factory"):
        named_world(f"{module}:the_lamp", 0, {"step_timeout": "1"})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gym:", "no world named 'gym:'"),
        ("labyrinth", "no world named 'labyrinth'"),
        ("no_such_module:make", "no module 'no_such_module'"),
        ("os.no_such_part:make", "no module 'os.no_such_part'"),
        ("math:no_such_function", "has no 'no_such_function'"),
    ],
)
def test_names_that_mean_nothing_are_refused(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        named_world(name, 0, {})


def test_a_module_that_fails_is_told_apart_from_one_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "failing_module_of_a_user.py").write_text("import a_package_that_is_not_there")
    with pytest.raises(WorldError, match="a_package_that_is_not_there"):
        named_world("failing_module_of_a_user:make", 0, {})
    (tmp_path / "raising_module_of_a_user.py").write_text("1 / 0")
    with pytest.raises(WorldError, match="ZeroDivisionError"):
        named_world("raising_module_of_a_user:make", 0, {})


def test_a_parameter_that_a_world_does_not_have_is_refused(module: str) -> None:
    with pytest.raises(InvalidSettingError, match="no parameter 'colour'"):
        named_world(f"{module}:Lamp", 0, {"colour": "red"})
    with pytest.raises(InvalidSettingError, match="no parameter 'colour'"):
        named_world("exec:cat", 0, {"colour": "red"})


def test_what_cannot_be_explored_is_refused(module: str) -> None:
    with pytest.raises(InvalidInputError, match="3 cannot be explored"):
        named_world(f"{module}:nothing", 0, {})
    with pytest.raises(WorldError, match="raised instead of making a system: ZeroDivisionError"):
        world_of(lambda: 1 // 0, 0)


def test_worlds_models_environments_and_factories_are_worlds() -> None:
    world = SimulatedWorld(confusing_chain(), 0)
    assert world_of(world, 5) is world
    assert isinstance(world_of(confusing_chain(), 0), SimulatedWorld)
    environment = gymnasium.make("FrozenLake-v1")
    for thing in (environment, lambda: environment):
        assert isinstance(world_of(thing, 0), SteppedWorld)


def test_a_world_that_fails_for_good_leaves_what_was_known_by_then(tmp_path: Path) -> None:
    class Wearing:
        actions = ("on", "off")
        steps = 0

        def reset(self) -> str:
            return "dark"

        def step(self, action: str) -> str:
            Wearing.steps += 1
            if Wearing.steps > 60:
                raise RuntimeError("the bulb is gone")
            return {"on": "bright", "off": "dark"}[action]

    run = tmp_path / "run"
    with pytest.raises(WorldError, match="the bulb is gone") as caught:
        axplore.explore(Wearing(), 4, 0.1, run=run, doctor=False)
    assert str(run) in str(caught.value)
    known: Any = caught.value.atlas
    saved = Atlas.load(run)
    for atlas in (known, saved):
        assert atlas.stop is StopReason.WORLD_FAILED
        assert not atlas.complete
        assert "dark" in atlas.states
        assert 0 < atlas.counts.visits.sum() <= 60
    assert axplore.verify(run).holds


def test_the_kinds_of_worlds_say_whether_they_can_be_used() -> None:
    assert FORMS["gym"].is_available
    assert all(form.pattern.startswith(f"{name}:") for name, form in FORMS.items())


def test_the_command_line_lists_every_kind_of_worlds() -> None:
    listed = CliRunner().invoke(app, ["worlds"]).output
    document = json.loads(CliRunner().invoke(app, ["worlds", "--json"]).output)
    for form in (*FORMS.values(), MODULE_FORM):
        assert form.pattern in listed
        assert document[form.pattern] == {"example": form.example, "available": form.is_available}
