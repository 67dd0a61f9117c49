from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from axplore.errors import InvalidSettingError, WorldError
from axplore.records.findings import FaultKind
from axplore.worlds.child_process import isolated
from axplore.worlds.contract import Visit
from axplore.worlds.stepped import SteppedWorld
from waiting import HANGS, PATIENCE

NOWHERE = np.array([], dtype=np.int64)


class Counter:
    """Counts up to three, which is terminal; noise decides whether a step counts."""

    actions = ("up", "fail", "hang", "die", "list")

    def __init__(self) -> None:
        self.value = 0
        self._noise = np.random.default_rng(0)

    def reset(self) -> int:
        self.value = 0
        return self.value

    def step(self, action: str) -> Any:
        print("this is not an answer")
        match action:
            case "fail":
                raise RuntimeError("no")
            case "hang":
                time.sleep(100)
            case "die":
                os._exit(1)
            case "list":
                return [1]
        self.value += int(self._noise.integers(2))
        return self.value

    def is_terminal(self, state: Any) -> bool:
        return bool(state == 3)

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._noise = np.random.default_rng(seed)


def test_a_system_in_another_process_gives_the_same_answers() -> None:
    answers = []
    for system in (Counter, isolated(Counter, PATIENCE)):
        with SteppedWorld(system, seed=4) as world:
            (answer,) = world.carry_out([Visit(0, 0, 40, NOWHERE, max_journey=9)])
            answers.append((answer.entry_counts.tolist(), answer.entry_successors.tolist(), list(world.states)))
            assert world.actions_of(1) == Counter.actions
    assert answers[0] == answers[1]


def test_what_only_exists_here_can_be_run_there() -> None:
    offset = 7

    class Local(Counter):
        def reset(self) -> int:
            return super().reset() + offset

    with SteppedWorld(isolated(lambda: Local(), PATIENCE)) as world:  # noqa: PLW0108 (a function of no module)
        assert list(world.states) == [7]


def test_a_terminal_state_only_resets_there_too() -> None:
    with SteppedWorld(isolated(Counter, PATIENCE), actions=("up",)) as world:
        for number in range(3):
            world.carry_out([Visit(number, 0, 4, np.zeros(number, dtype=np.int64), max_journey=50)])
        assert [world.actions_of(number) for number in (0, 3)] == [("up",), ()]


@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        ("fail", FaultKind.RAISED, "RuntimeError: no"),
        ("hang", FaultKind.TIMED_OUT, "no answer within"),
        ("die", FaultKind.DIED, "exit status 1"),
        ("list", FaultKind.INVALID, "cannot be hashed"),
    ],
)
def test_it_may_fail_in_every_way(action: str, kind: FaultKind, message: str) -> None:
    with SteppedWorld(isolated(Counter, HANGS if action == "hang" else PATIENCE), max_faults=0) as world:
        order = Visit(0, Counter.actions.index(action), 1, NOWHERE, max_journey=1)
        with pytest.raises(WorldError, match=message):
            world.carry_out([order])
        assert [fault.kind for fault in world.faults] == [kind]


def test_a_factory_that_fails_there_is_refused_with_what_it_said() -> None:
    def broken() -> Any:
        raise RuntimeError("no licence")

    with pytest.raises(WorldError, match="no licence"):
        SteppedWorld(isolated(broken, PATIENCE))


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_that_is_none_is_refused(timeout: float) -> None:
    make: Callable[[], Any] = Counter
    with pytest.raises(InvalidSettingError, match="step_timeout"):
        isolated(make, timeout)
