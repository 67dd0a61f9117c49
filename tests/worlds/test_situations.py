from __future__ import annotations

from dataclasses import replace

import pytest

from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.memory import Memory
from axplore.runs.recorded import RecordedWorld
from axplore.testing import check_world
from axplore.types import Action, State
from axplore.worlds.output_models import OutputModel
from axplore.worlds.situations import SituationWorld, memory_in, with_situations
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.systems import SystemAdapter

# A lamp that shows nothing of its switch: two presses turn it on, a third one turns it off.
LAMP = OutputModel(
    "off",
    {"off": "dark", "armed": "dark", "on": "bright"},
    {"off": {"press": {"armed": 1.0}}, "armed": {"press": {"on": 1.0}}, "on": {"press": {"off": 1.0}}},
)
MEMORY = Memory(
    ("dark", "dark", "bright"),
    ("dark", "dark | after press", "bright"),
    {(0, "press", "dark"): 1, (1, "press", "bright"): 2, (2, "press", "dark"): 0},
)


def lamp() -> SituationWorld:
    return SituationWorld(SteppedWorld(LAMP.system), MEMORY)


def pressed(world: SituationWorld | SteppedWorld, times: int) -> list[State]:
    """The labels met by pressing a number of times."""
    met: list[State] = []

    def press(label: State, _: tuple[Action, ...]) -> Action | None:
        met.append(label)
        return "press" if len(met) <= times else None

    world.walk(press)
    return met


def test_the_states_are_situations_and_those_of_the_world_itself_again_once_it_is_released() -> None:
    bare = SteppedWorld(LAMP.system)
    world = SituationWorld(bare, MEMORY)
    assert pressed(world, 3) == ["dark", "dark | after press", "bright", "dark"]
    world.release()
    assert pressed(bare, 3) == ["dark", "dark", "bright", "dark"]


@pytest.mark.parametrize("make", [lamp, lambda: SituationWorld(SteppedWorld(LAMP.system))])
def test_it_keeps_the_contract_of_worlds_with_and_without_a_memory(make: type[SituationWorld]) -> None:
    assert "resuming" in check_world(make)


def test_a_world_without_a_memory_is_the_one_it_wraps() -> None:
    bare = SteppedWorld(LAMP.system)
    with with_situations(bare, None) as world:
        assert world is bare


def test_a_snapshot_holds_the_memory_and_only_a_world_that_can_follow_it_resumes_from_it() -> None:
    snapshot = lamp().snapshot()
    again = SituationWorld(SteppedWorld(LAMP.system))
    again.restore(snapshot)
    assert again.memory == MEMORY == memory_in(snapshot.labelling)
    assert pressed(again, 2) == ["dark", "dark | after press", "bright"]
    with pytest.raises(InvalidSettingError, match="labels its states otherwise"):
        RecordedWorld(SteppedWorld(LAMP.system), snapshot, lambda _: None)


def test_the_memory_of_another_system_is_refused() -> None:
    other = Memory(("bright", "bright"), ("bright", "bright | after press"), {})
    with pytest.raises(InvalidInputError, match="of another system"):
        SituationWorld(SteppedWorld(LAMP.system), other)


def test_labels_are_situations_after_the_system_failed_and_was_replaced() -> None:
    n_presses = 0

    class Failing:
        actions = ("press",)

        def __init__(self) -> None:
            self.lamp = LAMP.system()

        def reset(self) -> State:
            return self.lamp.reset()

        def step(self, action: Action) -> State:
            nonlocal n_presses
            n_presses += 1
            if n_presses == 2:
                raise RuntimeError("out of order")
            return self.lamp.step(action)

    world = SituationWorld(SteppedWorld(Failing), MEMORY)
    pressed(world, 2)
    assert len(world.faults) == 1
    assert pressed(world, 3) == ["dark", "dark | after press", "bright", "dark"]


def test_a_view_of_situations_sees_their_labels() -> None:
    def loud(adapter: SystemAdapter) -> SystemAdapter:
        return replace(adapter, step=lambda action: f"{adapter.step(action)}!")

    world = lamp()
    world.relabel(loud)
    assert pressed(world, 2) == ["dark", "dark | after press!", "bright!"]
