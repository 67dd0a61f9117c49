"""Batches of orders: small orders of the same kind that can be carried out in parallel.

How an order is cut depends only on the order. A batch begins with a RESET, so large ones waste less and small ones let
more workers take part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.errors import OrdersCutError, TooManyFaultsError, UnfixedStartError
from axplore.records.findings import Fault
from axplore.records.vectors import Vectors
from axplore.types import Action, IntArray, State
from axplore.workers.engines import TryElsewhereError
from axplore.worlds.contract import Answer, Episodes, Order, Replica, Survey, Tour, Trials, Visit
from axplore.worlds.orders import no_answer
from axplore.worlds.watched import RecordsSteps

BATCH: Final = 25
"""The largest number of visits, plays or episodes of a batch, unless there would be more than `MAX_BATCHES`."""

MAX_BATCHES: Final = 256
"""The largest number of batches of an order."""

WAVE: Final = 8
"""The number of batches of episodes that are carried out before checking whether they end early."""

BATCHES_OF_TOUR: Final = 8
LEAST_BATCH: Final = 5
"""A tour is the only order of its round, so it has at least this many batches, of at least this many plays each."""

BATCHES_OF_EPISODES: Final = 16
"""Episodes are often the only order of their round, too. They begin with a RESET anyway, so that small batches cost
nothing: there are at least this many, or as many as episodes, unless they may end early."""

LEAST_STEPS: Final = 3
"""The fewest steps for which a batch is worth its while: to start the system, a RESET and a step."""

Quota: TypeAlias = int | IntArray
"""The size of a batch: the number of visits or episodes, or of plays of each pair of a tour, [m]."""


def cut(order: Order, size: int = BATCH) -> list[Quota]:
    """Returns the quotas of the batches of an order, which add up to the order."""
    if isinstance(order, Tour):
        n_plays = int(order.times.sum())
        shared = max(LEAST_BATCH, -(-n_plays // BATCHES_OF_TOUR))
        return _dealt(order.times, _n_batches(n_plays, min(size, shared)))
    if isinstance(order, Survey):  # what to play next depends on all plays before
        return [order.plays] if order.plays else []
    if isinstance(order, Episodes) and not _may_end_early(order):
        size = min(size, max(1, -(-order.times // BATCHES_OF_EPISODES)))
    n_batches = _n_batches(order.times, size)
    return [order.times * (batch + 1) // n_batches - order.times * batch // n_batches for batch in range(n_batches)]


def part_of(order: Order, quota: Quota) -> Order:
    """Returns a batch of an order."""
    if isinstance(order, Episodes):
        # Whether episodes end early depends on all batches together: see `wave_after`.
        return replace(order, times=int(quota), allowance=math.inf, slack=math.inf)
    if isinstance(order, Visit):
        return replace(order, times=int(quota))
    if isinstance(order, Trials):
        return replace(order, times=int(quota), most_steps=max(1, order.most_steps * int(quota) // order.times))
    if isinstance(order, Survey):
        return replace(order, plays=int(quota))
    times = np.asarray(quota)
    wanted = times > 0
    part = replace(order, states=order.states[wanted], actions=order.actions[wanted], times=times[wanted])
    # Targets of a part may first appear in another order, so each keeps its own row.
    rows = np.argmax(order.targets[None, :] == part.targets[:, None], axis=1)
    return replace(part, policies=_rows(order.policies, rows), distances=_rows(order.distances, rows))


def _rows(numbers: npt.NDArray[Any] | Vectors, targets: IntArray) -> npt.NDArray[Any] | Vectors:
    return numbers.take(targets) if isinstance(numbers, Vectors) else numbers[targets]


def wave_after(order: Order, answers: Sequence[Answer], n_batches: int) -> range:
    """Returns the batches of an order to carry out next, given the answers to the first ones; none if it is over.

    Episodes that may end early do so after a batch. Batches of other orders are all carried out at once.
    """
    begin = len(answers)
    if not isinstance(order, Episodes) or not _may_end_early(order):
        return range(begin, n_batches)
    return range(begin, min(begin + WAVE, n_batches) if n_counted(order, answers) == begin else begin)


def _may_end_early(order: Episodes) -> bool:
    return not math.isinf(order.allowance + order.slack)


def n_counted(order: Order, answers: Sequence[Answer]) -> int:
    """Returns the number of answers that count as completed: those after the end of an order do not.

    The transitions that they met count in any case.
    """
    if isinstance(order, Episodes):
        totals = accumulate(answer.travelled - answer.completed * order.allowance for answer in answers)
        for index, excess in enumerate(totals):
            if excess > order.slack:
                return index + 1
    return len(answers)


def _n_batches(total: int, size: int) -> int:
    return min(-(-total // size), MAX_BATCHES)


def _dealt(times: IntArray, n_batches: int) -> list[Quota]:
    """Deals plays out to batches in turn, so that each has about the same share of every pair."""
    ends = np.cumsum(times)
    begins = ends - times
    return [_count_below(ends, batch, n_batches) - _count_below(begins, batch, n_batches) for batch in range(n_batches)]


def _count_below(limits: IntArray, batch: int, n_batches: int) -> IntArray:
    """Returns the number of plays before each limit that belong to a batch."""
    return (limits + n_batches - 1 - batch) // n_batches


Key: TypeAlias = tuple[int, int, int]
"""The number of earlier calls, the index of the order in its call, and the index of the batch in its order."""


@dataclass(frozen=True, eq=False)
class BatchRequest:
    """A batch to carry out.

    Attributes:
        key: the key of the batch.
        order: the order; None if the worker has it from an earlier batch.
        quota: the size of the batch.
        n_kept: the number of states that the worker knows already.
        states: the states after those, each with its actions.
        max_faults: the number of failures of the system to recover from.
        is_final: whether it must not be tried elsewhere if the system fails more often.
        repeatable: whether another attempt would draw the same. If not, draws must not be dropped in favour of another
            attempt, because which ones are dropped may depend on where they led.
        max_steps: the most steps of the system, that of starting it included; None for no limit.
        seconds: the time after which no step begins.
        is_recorded: whether its steps are to be recorded.
    """

    key: Key
    order: Order | None
    quota: Quota
    n_kept: int
    states: tuple[tuple[State, tuple[Action, ...]], ...]
    max_faults: int = 0
    is_final: bool = False
    repeatable: bool = True
    max_steps: int | None = None
    seconds: float = math.inf
    is_recorded: bool = False


@dataclass(frozen=True, eq=False)
class BatchOutcome:
    """The outcome of a batch.

    Attributes:
        answer: the answer; states are indexed as in the request, followed by those in `discovered`.
        discovered: the states met for the first time, each with its actions.
        faults: the failures of the system.
        was_cut: whether a limit ended it early.
        recorded: its steps, if they were to be recorded; see `axplore.worlds.hindsight.StepRecorder`.
        seconds: the time that it took.
    """

    answer: Answer
    discovered: tuple[tuple[State, tuple[Action, ...]], ...]
    faults: tuple[Fault, ...]
    was_cut: bool = False
    recorded: bytes = b""
    seconds: float = 0.0


class BatchServer:
    """Carries out batches in a replica that it makes for the first one."""

    def __init__(self, make_replica: Callable[[], Replica]) -> None:
        """Prepares the server, without making the replica yet.

        Args:
            make_replica: makes the replica that carries out the batches.
        """
        self._make_replica = make_replica
        self._replica: Replica | None = None
        self._states: list[tuple[State, tuple[Action, ...]]] = []
        self._n_known = 0  # how many of them the replica was told
        self._call = -1
        self._orders: dict[int, Order] = {}
        self._steps_of_others = 0  # of batches that would be dropped with this one

    def __call__(self, requests: Sequence[BatchRequest]) -> list[BatchOutcome]:
        """Carries out batches one after the other."""
        # All are taken in before the first is carried out: later requests refer to them even if that one fails.
        for request in requests:
            self._take_in(request)
        outcomes: list[BatchOutcome] = []
        for request in requests:
            self._steps_of_others = sum(outcome.answer.steps + 1 for outcome in outcomes)
            outcomes.append(self.carry_out(request))
        return outcomes

    def carry_out(self, request: BatchRequest) -> BatchOutcome:
        """Carries out a batch; raises `TryElsewhereError` if the system fails and another worker may succeed."""
        order = part_of(self._orders[request.key[1]], request.quota)
        if request.max_steps is not None and request.max_steps < LEAST_STEPS:
            return BatchOutcome(no_answer(order), (), (), was_cut=True)
        began = time.monotonic()
        replica = self._updated_replica()
        if isinstance(replica, RecordsSteps):
            replica.record_steps(is_wanted=request.is_recorded)
        # One step is left for a system that has to be started.
        replica.limit(
            None if request.max_steps is None else request.max_steps - 1,
            time.monotonic() + request.seconds if math.isfinite(request.seconds) else math.inf,
        )
        n_states, n_faults, n_steps = len(self._states), len(replica.faults), replica.system_steps
        was_cut = False
        try:
            answer = replica.carry_out_batch(order, request.key, request.max_faults)
        except OrdersCutError as cut:
            (answer,), was_cut = cut.answers, True
        except TooManyFaultsError as error:
            taken = replica.system_steps - n_steps + 1
            self.close()
            if request.is_final or (not request.repeatable and (self._steps_of_others or error.n_draws)):
                raise
            raise TryElsewhereError(str(error), self._steps_of_others + taken) from error
        discovered = [
            (label, replica.actions_of(n_states + index)) for index, label in enumerate(replica.states[n_states:])
        ]
        return BatchOutcome(
            answer,
            tuple(discovered),
            tuple(replica.faults[n_faults:]),
            was_cut,
            replica.recorded_steps() if isinstance(replica, RecordsSteps) else b"",
            time.monotonic() - began,
        )

    def close(self) -> None:
        """Closes the replica; the next batch makes another."""
        replica, self._replica = self._replica, None
        if replica is not None:
            with suppress(Exception):
                replica.close()

    def _take_in(self, request: BatchRequest) -> None:
        """Keeps the order and the states that come with a request."""
        call, index, _ = request.key
        if call != self._call:
            self._call = call
            self._orders.clear()
        if request.order is not None:
            self._orders[index] = request.order
        del self._states[request.n_kept :]
        self._n_known = min(self._n_known, request.n_kept)
        self._states += request.states

    def _updated_replica(self) -> Replica:
        """Returns the replica, which knows the states that the worker was told and no others."""
        n_known = self._n_known
        if self._replica is None:
            self._replica, n_known = self._make_replica(), 1
            start, expected = self._replica.states[0], self._states[0][0]
            if start != expected:
                raise UnfixedStartError(f"the system starts in {expected!r}, but that of a worker in {start!r}")
        self._replica.learn(n_known, self._states[n_known:])
        self._n_known = len(self._states)
        return self._replica
