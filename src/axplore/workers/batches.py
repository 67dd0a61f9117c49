"""Orders cut into batches: small orders of the same kind that can be carried out side by side.

How an order is cut depends on nothing but the order. A batch begins with a RESET, so a large one wastes less and a
small one lets more workers take part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np

from axplore.errors import TooManyFaultsError, UnfixedStartError
from axplore.types import Action, IntArray, State
from axplore.workers.engines import TryElsewhereError
from axplore.worlds.contract import Answer, Episodes, Fault, Order, Replica, Tour, Visit

BATCH: Final = 25
"""A batch has at most so many visits, plays or episodes,"""

MAX_BATCHES: Final = 256
"""unless an order would have more batches than this."""

WAVE: Final = 8
"""Of episodes that may end early, so many batches are carried out before it is seen whether they do."""

BATCHES_OF_TOUR: Final = 8
LEAST_BATCH: Final = 5
"""A tour is the only order of its round, so it has at least so many batches if each of them has so many plays."""

Quota: TypeAlias = int | IntArray
"""What a batch asks for: how many visits or episodes, or how many plays of each pair of a tour, [m]."""


def cut(order: Order, size: int = BATCH) -> list[Quota]:
    """What each batch of an order asks for; together they ask for what the order does."""
    if isinstance(order, Tour):
        n_plays = int(order.times.sum())
        shared = max(LEAST_BATCH, -(-n_plays // BATCHES_OF_TOUR))
        return _dealt(order.times, _n_batches(n_plays, min(size, shared)))
    n_batches = _n_batches(order.times, size)
    return [order.times * (batch + 1) // n_batches - order.times * batch // n_batches for batch in range(n_batches)]


def part_of(order: Order, quota: Quota) -> Order:
    """A batch of an order."""
    if isinstance(order, Episodes):
        # Whether they end early is for all batches together to say: see `wave_after`.
        return replace(order, times=int(quota), allowance=math.inf, slack=math.inf)
    if isinstance(order, Visit):
        return replace(order, times=int(quota))
    times = np.asarray(quota)
    wanted = times > 0
    part = replace(order, states=order.states[wanted], actions=order.actions[wanted], times=times[wanted])
    # The targets of a part may first appear in another order: each keeps its own row.
    rows = np.argmax(order.targets[None, :] == part.targets[:, None], axis=1)
    return replace(part, policies=order.policies[rows], distances=order.distances[rows])


def wave_after(order: Order, answers: Sequence[Answer], n_batches: int) -> range:
    """The batches of an order to carry out next, given the answers to the first ones; none if it is over.

    Episodes that may end early do so after a batch. All others go out at once.
    """
    begin = len(answers)
    if not isinstance(order, Episodes) or math.isinf(order.allowance + order.slack):
        return range(begin, n_batches)
    return range(begin, min(begin + WAVE, n_batches) if n_counted(order, answers) == begin else begin)


def n_counted(order: Order, answers: Sequence[Answer]) -> int:
    """How many of the answers to the first batches count as done: those after which an order has ended do not.

    What they met counts in any case.
    """
    if isinstance(order, Episodes):
        totals = accumulate(answer.travelled - answer.completed * order.allowance for answer in answers)
        for place, excess in enumerate(totals):
            if excess > order.slack:
                return place + 1
    return len(answers)


def _n_batches(total: int, size: int) -> int:
    return min(-(-total // size), MAX_BATCHES)


def _dealt(times: IntArray, n_batches: int) -> list[Quota]:
    """Plays, dealt out to batches in turn: each has about the same part of every pair."""
    ends = np.cumsum(times)
    begins = ends - times
    return [_count_below(ends, batch, n_batches) - _count_below(begins, batch, n_batches) for batch in range(n_batches)]


def _count_below(limits: IntArray, batch: int, n_batches: int) -> IntArray:
    """How many of the plays before each limit go to a batch."""
    return (limits + n_batches - 1 - batch) // n_batches


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
        repeatable: whether another attempt would draw the same. If not, draws must not be dropped for another attempt:
            which ones are dropped may depend on where they led.
    """

    key: Key
    order: Order | None
    quota: Quota
    n_kept: int
    states: tuple[tuple[State, tuple[Action, ...]], ...]
    max_faults: int = 0
    is_final: bool = False
    repeatable: bool = True


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

    def __init__(self, make_replica: Callable[[], Replica]) -> None:
        """Makes nothing yet.

        Args:
            make_replica: makes what carries out the batches.
        """
        self._make_replica = make_replica
        self._replica: Replica | None = None
        self._states: list[tuple[State, tuple[Action, ...]]] = []
        self._call = -1
        self._orders: dict[int, Order] = {}
        self._has_drawn = False  # whether draws of other batches would be dropped with this one

    def __call__(self, requests: Sequence[Request]) -> list[Outcome]:
        """Carries out batches, one after the other."""
        outcomes: list[Outcome] = []
        for request in requests:
            self._has_drawn = bool(outcomes)
            outcomes.append(self.carry_out(request))
        return outcomes

    def carry_out(self, request: Request) -> Outcome:
        """Carries out a batch; when the system fails, another worker may do better."""
        order = self._order_of(request)
        del self._states[request.n_kept :]
        self._states += request.states
        try:
            replica = self._replica_for(request)
            n_states, n_faults = len(self._states), len(replica.faults)
            answer = replica.carry_out_batch(order, request.key, request.max_faults)
        except TooManyFaultsError as error:
            self.close()
            if request.is_final or (not request.repeatable and (self._has_drawn or error.n_draws)):
                raise
            raise TryElsewhereError(str(error)) from error
        discovered = [
            (label, replica.actions_of(n_states + index)) for index, label in enumerate(replica.states[n_states:])
        ]
        return Outcome(answer, tuple(discovered), tuple(replica.faults[n_faults:]))

    def close(self) -> None:
        """Closes the replica; the next batch makes another."""
        replica, self._replica = self._replica, None
        if replica is not None:
            with suppress(Exception):
                replica.close()

    def _order_of(self, request: Request) -> Order:
        call, place, _ = request.key
        if call != self._call:
            self._call = call
            self._orders.clear()
        if request.order is not None:
            self._orders[place] = request.order
        return part_of(self._orders[place], request.quota)

    def _replica_for(self, request: Request) -> Replica:
        """The replica, with the states that were told."""
        if self._replica is not None:
            self._replica.learn(request.n_kept, request.states)
            return self._replica
        self._replica = replica = self._make_replica()
        start, expected = replica.states[0], self._states[0][0]
        if start != expected:
            raise UnfixedStartError(f"the system starts in {expected!r}, but that of a worker in {start!r}")
        replica.learn(1, self._states[1:])
        return replica
