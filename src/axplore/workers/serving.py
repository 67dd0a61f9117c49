"""What a worker does: it has a world of its own, like that of all others, and carries out batches in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from axplore.errors import TooManyFaultsError, UnfixedStartError
from axplore.mdp import Action, State
from axplore.workers.batches import Quota, part_of
from axplore.workers.engine import TryElsewhereError
from axplore.worlds.faults import Fault
from axplore.worlds.orders import Answer, Order

Key: TypeAlias = tuple[int, int, int]
"""The number of calls before, the place of the order in its call, and of the batch in its order."""


@dataclass(frozen=True, eq=False)
class Request:
    """A batch to carry out.

    Attributes:
        key: of the batch.
        order: what it is a batch of; None if the worker was told with an earlier batch of it.
        quota: what it asks for.
        n_kept: how many states the worker was told before.
        states: those from there on, each with its actions.
        max_faults: how often the system may fail.
        is_final: whether it is not to be tried elsewhere if it fails more often.
    """

    key: Key
    order: Order | None
    quota: Quota
    n_kept: int
    states: tuple[tuple[State, tuple[Action, ...]], ...]
    max_faults: int = 0
    is_final: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a batch.

    Attributes:
        answer: with states numbered as in the request, and then in the order of `discovered`.
        discovered: the states met for the first time, each with its actions.
        faults: how the system failed meanwhile.
    """

    answer: Answer
    discovered: tuple[tuple[State, tuple[Action, ...]], ...]
    faults: tuple[Fault, ...]


class BatchServer:
    """Carries out batches in a world that it makes when the first one comes."""

    def __init__(self, make_replica: Callable[..., Any]) -> None:
        """Makes nothing yet.

        Args:
            make_replica: makes a `Replica`; where a fault is to be no error, it takes `max_faults`.
        """
        self._make_replica = make_replica
        self._world: Any = None
        self._is_patient = False  # whether the world may have faults
        self._states: list[tuple[State, tuple[Action, ...]]] = []
        self._call = -1
        self._orders: dict[int, Order] = {}

    def __call__(self, requests: Sequence[Request]) -> list[Outcome]:
        """Carries out batches, one after the other."""
        return [self.carry_out(request) for request in requests]

    def carry_out(self, request: Request) -> Outcome:
        """Carries out a batch; when the system fails, another worker may do better."""
        order = self._order_of(request)
        del self._states[request.n_kept :]
        self._states += request.states
        try:
            world = self._world_for(request)
            n_states, n_faults = len(self._states), len(getattr(world, "faults", ()))
            answer = world.carry_out_batch(order, *request.key)
        except TooManyFaultsError as error:
            self.close()
            if request.is_final:
                raise
            raise TryElsewhereError(str(error)) from error
        discovered = [
            (label, world.actions_of(n_states + place)) for place, label in enumerate(world.states[n_states:])
        ]
        return Outcome(answer, tuple(discovered), tuple(getattr(world, "faults", ())[n_faults:]))

    def close(self) -> None:
        """Closes the world; the next batch makes another."""
        world, self._world = self._world, None
        with suppress(Exception):
            world.close()

    def _order_of(self, request: Request) -> Order:
        call, place, _ = request.key
        if call != self._call:
            self._call = call
            self._orders.clear()
        if request.order is not None:
            self._orders[place] = request.order
        return part_of(self._orders[place], request.quota)

    def _world_for(self, request: Request) -> Any:
        """The world, with the states that were told."""
        if self._world is not None and self._is_patient == bool(request.max_faults):
            self._world.learn(request.n_kept, request.states)
            return self._world
        self.close()
        self._is_patient = bool(request.max_faults)
        self._world = self._make_replica(max_faults=request.max_faults) if self._is_patient else self._make_replica()
        start, expected = self._world.states[0], self._states[0][0]
        if start != expected:
            raise UnfixedStartError(f"the system starts in {expected!r}, but that of a worker in {start!r}")
        self._world.learn(1, self._states[1:])
        return self._world
