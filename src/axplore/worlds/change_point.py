"""Says whether a moment explains that the same pair leads elsewhere at different times, or what came before it.

This only chooses the words of a finding that a test has made already; it raises no alarm of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.types import IntArray
from axplore.worlds.probing import Draw

MOMENTS: Final = 200
"""So many moments are tried first, and then those around the best one."""

WINDOW: Final = 8
"""A change must show within this share of its moment before and after it."""


def change_point(draws: Sequence[Draw]) -> int | None:
    """The step after a reset from which on pairs lead elsewhere, if that is all there is to explain; else None.

    Where something is hidden that changes in the course of an episode, a moment explains a part of it. But then
    little changes right at the moment, or there is more to explain on both sides of it, by what the agent did before.
    """
    pairs = _numbered(draw.pair for draw in draws)
    successors = _numbered(draw.successor for draw in draws)
    ages = np.array([draw.age for draw in draws], dtype=np.int64)
    moments = np.unique(ages)[1:]
    if not moments.size:
        return None

    def by_moment(moment: int) -> float:
        return explained(pairs, ages >= moment, successors)

    stride = -(-len(moments) // MOMENTS)
    best = max(moments[::stride].tolist(), key=by_moment)
    best = max(moments[np.abs(moments - best) <= stride].tolist(), key=by_moment)
    if by_moment(best) <= 0:
        return None
    around = np.abs(ages - best) <= max(2, best // WINDOW)
    if explained(pairs[around], ages[around] >= best, successors[around]) <= 0:
        return None
    for side in (ages < best, ages >= best):
        for history in ((draw.origin for draw in draws), (draw.memory for draw in draws)):
            if explained(pairs[side], _numbered(history)[side], successors[side]) > 0:
                return None
    return int(best)


def explained(pairs: IntArray, contexts: npt.NDArray[np.generic], successors: IntArray) -> float:
    """How much likelier draws are, as a logarithm, if each pair has a distribution for each context, all [n].

    Less what the additional numbers would gain by chance (Bayesian information criterion).
    """
    contextual = _joined(pairs, contexts.astype(np.int64))
    together, apart = _counts(_joined(pairs, successors)), _counts(_joined(contextual, successors))
    of_pair, of_context = _counts(pairs), _counts(contextual)
    gain = _sum_x_log_x(apart) - _sum_x_log_x(of_context) - _sum_x_log_x(together) + _sum_x_log_x(of_pair)
    more_numbers = (len(apart) - len(of_context)) - (len(together) - len(of_pair))
    return gain - 0.5 * max(0, more_numbers) * float(np.log(max(1, len(pairs))))


def _numbered(values: Iterable[Hashable]) -> IntArray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _joined(first: IntArray, second: IntArray) -> IntArray:
    """A number for each combination, [n]."""
    return first * (int(second.max(initial=0)) + 1) + second


def _counts(values: IntArray) -> IntArray:
    return np.unique(values, return_counts=True)[1]


def _sum_x_log_x(counts: IntArray) -> float:
    return float((counts * np.log(counts)).sum())
