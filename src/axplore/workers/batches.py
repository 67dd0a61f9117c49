"""Orders cut into batches: small orders of the same kind that can be carried out side by side.

How an order is cut depends on nothing but the order. A batch begins with a RESET, so a large one wastes less and a
small one lets more workers take part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np

from axplore.mdp import IntArray
from axplore.worlds.orders import Answer, Episodes, Order, Tour, Visit

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
