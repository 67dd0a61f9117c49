"""A world whose states are situations: what a system shows, together with what came before it.

`SituationWorld` wraps a world whose system can be followed step by step, and shows that system through a `Memory`: the
labels are those of situations, and everything else stays as it is. Nothing outside the wrapper knows of memories: its
`labelling` is kept with snapshots as it is, and `memory_in` reads it where an atlas says what its labels mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from axplore.errors import InvalidInputError
from axplore.labels import Json, shortened
from axplore.memory import Memory
from axplore.records.findings import Examined, Fault
from axplore.types import Action, Reset, State
from axplore.worlds.contract import NOWHERE, Answer, Examinable, Order, Restarts, World, WorldSnapshot
from axplore.worlds.state_labels import plain_state
from axplore.worlds.systems import SystemAdapter, View


class SituationWorld(Examinable):
    """A world with the situations of a memory for states; without a memory, the world as it is.

    Attributes:
        memory: what tells situations apart; None if the answers of the system are the states.
    """

    def __init__(self, world: Examinable, memory: Memory | None = None) -> None:
        self._world = world
        self.memory: Memory | None = None
        self._labelling: Json = None
        self._view: View | None = None
        if memory is not None:
            self.remember(memory)

    def remember(self, memory: Memory | None) -> None:
        """Takes the situations of a memory for states, or without one the answers of the system.

        All states but the initial one are forgotten, and the test of the history begins anew. The next order begins
        with a RESET.
        """
        start = self._world.states[0]
        if memory is not None and memory.labels[0] != start:
            raise InvalidInputError(
                f"the memory is of another system: this one starts in {shortened(start)}, and there it is "
                f"{shortened(memory.labels[0])}"
            )
        self._world.relabel(partial(_seen, memory, self._view))
        self.memory = memory
        self._labelling = None if memory is None else memory.as_json()

    def relabel(self, view: View | None) -> None:
        """Sees the situations through a view; see `Examinable.relabel`."""
        self._view = view
        self.remember(self.memory)

    def release(self) -> None:
        """Gives the world its own labels again."""
        if self.memory is not None:
            self.remember(None)

    @property
    def labelling(self) -> Json:
        """The memory as JSON; None without one."""
        return self._labelling

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        """An output that stands for several situations names all of them."""
        situations = {} if self.memory is None else self.memory.names
        return {**self._world.names, **{name: labels.__contains__ for name, labels in situations.items()}}

    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot, with the memory."""
        return replace(self._world.snapshot(), labelling=self._labelling)

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot of the same system, with the memory that it had."""
        memory = memory_in(snapshot.labelling)
        if memory != self.memory:
            self.remember(memory)
        self._world.restore(replace(snapshot, labelling=None))

    # What follows does not depend on labels: the world itself does it.

    @property
    def states(self) -> Sequence[State]:
        return self._world.states

    @property
    def steps(self) -> int:
        return self._world.steps

    @property
    def steps_by_now(self) -> int:
        return self._world.steps_by_now

    @property
    def repeatable(self) -> bool:
        return self._world.repeatable

    @property
    def fingerprint(self) -> str | None:
        return self._world.fingerprint

    @property
    def faults(self) -> Sequence[Fault]:
        return self._world.faults

    @property
    def position(self) -> int:
        """NOWHERE: a system cannot be put into a state."""
        return NOWHERE

    @property
    def has_alarmed(self) -> bool:
        return self._world.has_alarmed

    @property
    def history_alarm(self) -> Any:
        return self._world.history_alarm

    @property
    def other_alarms(self) -> Sequence[Any]:
        return self._world.other_alarms

    @property
    def examined(self) -> Examined:
        return self._world.examined

    def actions_of(self, state: int) -> tuple[Action, ...]:
        return self._world.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        return self._world.carry_out(orders)

    def vary_ages(self) -> None:
        self._world.vary_ages()

    def watch_history(self) -> None:
        self._world.watch_history()

    def walk(self, choose: Callable[[State, tuple[Action, ...]], Action | None]) -> None:
        self._world.walk(choose)

    def run_episode(
        self, choose: Callable[[State, int], Action | Reset], goal: State, horizon: int, restarts: Restarts
    ) -> Answer:
        return self._world.run_episode(choose, goal, horizon, restarts)

    def borrow_system(self) -> tuple[Any, int | None]:
        return self._world.borrow_system()

    def note_borrowed(self, steps: int) -> None:
        self._world.note_borrowed(steps)

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:
        self._world.limit(steps, ends)

    @property
    def is_spent(self) -> bool:
        return self._world.is_spent

    @property
    def system_steps(self) -> int:
        return self._world.system_steps

    def close(self) -> None:
        self._world.close()


@contextmanager
def with_situations(world: World, memory: Memory | None) -> Iterator[World]:
    """The world with the situations of a memory for states, until the end; the world itself without a memory."""
    if memory is None:
        yield world
        return
    system = world.examinable
    if system is None:
        raise InvalidInputError(
            "the labels tell situations apart by what came before, which only a system that is stepped can show: give "
            "the system that was explored"
        )
    situations = SituationWorld(system, memory)
    try:
        yield situations
    finally:
        situations.release()


def memory_in(labelling: Json) -> Memory | None:
    """Returns the memory that a world or a snapshot of it labels states by; None if there is none."""
    return None if labelling is None else Memory.from_json(labelling)


def _seen(memory: Memory | None, view: View | None, adapter: SystemAdapter) -> SystemAdapter:
    """Returns the system with the labels of a memory, if there is one, and those of a view of these."""
    followed = adapter if memory is None else _followed(adapter, memory)
    return followed if view is None else view(followed)


def _followed(adapter: SystemAdapter, memory: Memory) -> SystemAdapter:
    """Returns the same system with the situations of a memory as its states; its own answers are their outputs."""
    follower = memory.follower()
    output: State = memory.outputs[0]

    def reset() -> State:
        nonlocal output
        output = adapter.reset()
        return follower.reset(plain_state(output, "reset"))

    def step(action: Action) -> State:
        nonlocal output
        output = adapter.step(action)
        try:
            return follower.step(action, output)
        except TypeError:  # not hashable, so it is not a state
            return output

    def actions_of(_: State) -> tuple[Action, ...]:
        return adapter.actions(output)

    return replace(adapter, reset=reset, step=step, actions=actions_of)
