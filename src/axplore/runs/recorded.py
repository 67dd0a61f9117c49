"""A world whose answers are kept: those of an interrupted run come again, and then the world itself goes on."""

from __future__ import annotations

import logging
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

import numpy as np

from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.runs.journal import Call
from axplore.types import Action, State
from axplore.worlds.contract import (
    Answer,
    Fault,
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
    """For calls that need not be dropped from anywhere."""


class RecordedWorld(World):
    """A `World` that keeps what another answers, and first answers as an earlier process was answered."""

    def __init__(
        self,
        world: World,
        snapshot: WorldSnapshot,
        keep: Callable[[Call], None],
        past: Iterable[Call] = (),
        drop: Callable[[int], None] = _nothing,
    ) -> None:
        """Puts the world where the snapshot says, and again when there are no more calls to repeat.

        Args:
            world: what answers.
            snapshot: how far it had come before the first of the calls to repeat.
            keep: called with every call that was not repeated, before the answer is returned.
            past: the calls to repeat.
            drop: called with the number of calls that cannot be repeated, as the explorer orders otherwise than before.
        """
        self._world = world
        self._discovered = DiscoveredStates(zip(snapshot.labels, snapshot.actions, strict=True))
        self._steps, self._calls, self._position = snapshot.steps, snapshot.calls, snapshot.position
        self._keep = keep
        self._past = deque(past)
        self._drop = drop
        if snapshot_of(world) != snapshot or self._past:
            self._put_in_place()

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by number; the initial state is the first."""
        return self._discovered.labels

    @property
    def steps(self) -> int:
        """How many steps were taken so far, RESET included."""
        return self._steps

    @property
    def steps_by_now(self) -> int:
        """With those of the call in progress, as far as the world tells."""
        return self._steps if self._past else max(self._steps, self._world.steps_by_now)

    @property
    def repeatable(self) -> bool:
        """Whether the world is."""
        return self._world.repeatable

    @property
    def fingerprint(self) -> str | None:
        """Of the world."""
        return self._world.fingerprint

    @property
    def faults(self) -> Sequence[Fault]:
        """Of the world, in this process."""
        return self._world.faults

    @property
    def incidents(self) -> Sequence[Incident]:
        """Of the world, in this process."""
        return self._world.incidents

    @property
    def repeating(self) -> bool:
        """Whether the next call was answered before."""
        return bool(self._past)

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """The actions of a discovered state beside RESET; none if it is terminal."""
        return self._discovered.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Answers as before while there are calls to repeat; then the world carries out the orders."""
        checksum = checksum_of(orders)
        if self._past and self._past[0].checksum != checksum:
            self._drop_past()
        if self._past:
            call = self._past.popleft()
            self._note(call)
            if not self._past:
                self._put_in_place()
            return list(call.answers)
        return self._carry_out(orders, checksum)

    def snapshot(self) -> WorldSnapshot:
        """Returns how far the world has come."""
        return self._discovered.snapshot(self._steps, self._calls, self._position)

    def _carry_out(self, orders: Sequence[Order], checksum: int) -> list[Answer]:
        world = self._world
        answers = world.carry_out(orders)
        fresh = range(len(self._discovered), len(world.states))
        call = Call(
            checksum=checksum,
            answers=tuple(answers),
            discovered=tuple((world.states[number], tuple(world.actions_of(number))) for number in fresh),
            steps=world.steps,
            position=position_in(world),
        )
        self._keep(call)
        self._note(call)
        return answers

    def _note(self, call: Call) -> None:
        self._discovered.extend(call.discovered)
        self._steps, self._position = call.steps, call.position
        self._calls += 1

    def _drop_past(self) -> None:
        """Goes on from here with the world itself: the kept answers are to other orders than the explorer gives now."""
        n_dropped = len(self._past)
        _logger.warning(
            "the explorer orders otherwise than before, as other versions of libraries may make it; the answers to its "
            "last %d calls are dropped",
            n_dropped,
        )
        self._past.clear()
        self._drop(n_dropped)
        self._put_in_place()

    def _put_in_place(self) -> None:
        """Puts the world where the calls that are known have led."""
        snapshot, world = self.snapshot(), self._world
        if not isinstance(world, Resumable):
            raise InvalidInputError(
                f"{type(world).__name__} cannot resume where it was interrupted: it needs the members of "
                "axplore.worlds.Resumable"
            )
        world.restore(snapshot)
        for number, (label, actions) in enumerate(zip(snapshot.labels, snapshot.actions, strict=True)):
            if tuple(world.actions_of(number)) != actions:
                raise InvalidSettingError(f"the world is not the one that was explored: {label!r} had {actions!r}")


def checksum_of(orders: Sequence[Order]) -> int:
    """A checksum of everything in the orders."""
    checksum = 0
    for order in orders:
        checksum = zlib.crc32(type(order).__name__.encode(), checksum)
        for field in fields(order):
            value = getattr(order, field.name)
            if isinstance(value, np.ndarray):
                checksum = zlib.crc32(f"{value.shape}".encode(), checksum)
                checksum = zlib.crc32(np.ascontiguousarray(value).tobytes(), checksum)
            else:
                checksum = zlib.crc32(f"{value}".encode(), checksum)
    return checksum
