"""A world whose answers are recorded: those of an interrupted run are repeated before the world itself continues."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from axplore.errors import InvalidInputError, InvalidSettingError, OrdersCutError
from axplore.labels import Json
from axplore.records.findings import Fault
from axplore.runs.journal import Call, checksum_of
from axplore.types import Action, State
from axplore.worlds.contract import (
    Answer,
    Incident,
    Order,
    Resumable,
    World,
    WorldSnapshot,
    position_in,
    snapshot_of,
)
from axplore.worlds.orders import DiscoveredStates

_logger = logging.getLogger("axplore")


def _nothing(_: int) -> None:
    """Does nothing, for calls that are not stored anywhere."""


def _answers_of(call: Call) -> list[Answer]:
    """Returns the answers of a call; raises as the world did if a limit cut it."""
    if call.was_cut:
        raise OrdersCutError(call.answers)
    return list(call.answers)


class RecordedWorld(World):
    """A `World` that records the answers of another, and first repeats those that an earlier process got."""

    def __init__(
        self,
        world: World,
        snapshot: WorldSnapshot,
        keep: Callable[[Call], None],
        past: Iterable[Call] = (),
        drop: Callable[[int], None] = _nothing,
    ) -> None:
        """Restores the snapshot, and restores again when there are no more calls to repeat.

        Args:
            world: the world that carries out new orders.
            snapshot: its snapshot before the first of the calls to repeat.
            keep: called with every new call before its answer is returned.
            past: the calls to repeat.
            drop: called with the number of calls that cannot be repeated, because the explorer gives other orders now.
        """
        self._world = world
        self._discovered = DiscoveredStates(zip(snapshot.labels, snapshot.actions, strict=True))
        self._steps, self._calls, self._position = snapshot.steps, snapshot.calls, snapshot.position
        self._labelling = snapshot.labelling
        self._hearsay = set(world.hearsay)
        self._keep = keep
        self._past = deque(past)
        self._drop = drop
        self._repeated = 0  # the steps of repeated calls
        self._last_step: int | None = None
        self._ends = math.inf
        if snapshot_of(world) != snapshot or self._past:
            self._put_in_place()

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by index; the initial state is the first."""
        return self._discovered.labels

    @property
    def steps(self) -> int:
        """The number of steps taken so far, RESET included."""
        return self._steps

    @property
    def steps_by_now(self) -> int:
        """The number of steps, including those of a call in progress as far as known."""
        return self._steps if self._past else max(self._steps, self._world.steps_by_now)

    @property
    def repeatable(self) -> bool:
        """Whether the world is repeatable."""
        return self._world.repeatable

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the world."""
        return self._world.fingerprint

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults of the world in this process."""
        return self._world.faults

    @property
    def incidents(self) -> Sequence[Incident]:
        """The incidents of workers in this process."""
        return self._world.incidents

    @property
    def names(self) -> Mapping[str, Callable[[State], bool]]:
        """The sets of states that the system itself names."""
        return self._world.names

    @property
    def labelling(self) -> Json:
        """How the world labels its states."""
        return self._labelling

    @property
    def repeating(self) -> bool:
        """Whether there are calls left to repeat."""
        return bool(self._past)

    @property
    def hearsay(self) -> Collection[int]:
        """The indices of states that only a log has met, and whose actions only the log tells."""
        return self._hearsay

    def hear(self, states: Collection[int]) -> None:
        """Takes these for `hearsay` until each of them is met."""
        self._hearsay = set(states)
        self._world.hear(states)

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a discovered state beside RESET; none if it is terminal."""
        return self._discovered.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Repeats recorded answers while there are any; after that the world carries out the orders."""
        checksum = checksum_of(orders)
        if self._past and self._past[0].checksum != checksum:
            self._drop_past()
        if self._past:
            call = self._past.popleft()
            self._repeated += call.steps - self._steps
            self._note(call)
            if not self._past:
                self._put_in_place()
            return _answers_of(call)
        return self._carry_out(orders, checksum)

    def limit(self, steps: int | None = None, ends: float = math.inf) -> None:
        """Limits the world, once there are no calls left to repeat: answers are repeated in any case."""
        self._last_step, self._ends = None if steps is None else self._steps + steps, ends
        if not self._past:
            self._limit_world()

    def _limit_world(self) -> None:
        self._world.limit(None if self._last_step is None else max(0, self._last_step - self._steps), self._ends)

    @property
    def is_spent(self) -> bool:
        """Whether a limit leaves no room for a step of the world, and there are no calls to repeat."""
        return not self._past and self._world.is_spent

    @property
    def system_steps(self) -> int:
        """The steps of the system in this process, and those of earlier ones that were repeated."""
        return self._world.system_steps + self._repeated

    def snapshot(self) -> WorldSnapshot:
        """Returns the current snapshot."""
        known = self._discovered.snapshot(self._steps, self._calls, self._position)
        return replace(known, labelling=self._labelling)

    def _carry_out(self, orders: Sequence[Order], checksum: int) -> list[Answer]:
        world, was_cut = self._world, False
        try:
            answers = world.carry_out(orders)
        except OrdersCutError as cut:
            answers, was_cut = cut.answers, True
        met = sorted(self._hearsay.difference(world.hearsay))
        fresh = (*met, *range(len(self._discovered), len(world.states)))
        call = Call(
            checksum=checksum,
            answers=tuple(answers),
            discovered=tuple((world.states[number], tuple(world.actions_of(number))) for number in fresh),
            steps=world.steps,
            position=position_in(world),
            was_cut=was_cut,
        )
        self._keep(call)
        self._note(call)
        return _answers_of(call)

    def _note(self, call: Call) -> None:
        self._discovered.learn(call.discovered)
        self._hearsay.difference_update(self._discovered.numbers[label] for label, _ in call.discovered)
        self._steps, self._position = call.steps, call.position
        self._calls += 1

    def _drop_past(self) -> None:
        """Continues with the world itself, because the recorded answers are to other orders than those given now."""
        n_dropped = len(self._past)
        _logger.warning(
            "the explorer gives other orders than before, perhaps because library versions differ; the answers to its "
            "last %d calls are dropped",
            n_dropped,
        )
        self._past.clear()
        self._drop(n_dropped)
        self._put_in_place()

    def _put_in_place(self) -> None:
        """Restores the world to the state after all known calls."""
        snapshot, world = self.snapshot(), self._world
        if not isinstance(world, Resumable):
            raise InvalidInputError(
                f"{type(world).__name__} cannot resume where it was interrupted: it needs the members of "
                "axplore.worlds.Resumable"
            )
        world.restore(snapshot)
        world.hear(self._hearsay)
        self._limit_world()
        if world.labelling != snapshot.labelling:
            raise InvalidSettingError("the world labels its states otherwise than the one that was explored")
        for number, (label, actions) in enumerate(zip(snapshot.labels, snapshot.actions, strict=True)):
            if tuple(world.actions_of(number)) != actions:
                raise InvalidSettingError(f"the world is not the one that was explored: {label!r} had {actions!r}")
