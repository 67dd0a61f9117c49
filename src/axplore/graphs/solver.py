"""Shares goals among threads and checks that all are solved."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, TypeAlias

import numpy as np

from axplore.errors import NotConvergedError
from axplore.graphs.rows import ROUNDING, UNFINISHED, Goals, Limits, ModelRows, Solutions
from axplore.types import FloatArray, IntArray, State

SweepOrder: TypeAlias = Literal["in-place", "synchronous"]

MAX_SWEEPS: Final = 1_000_000

_WORTH_A_THREAD: Final = 50_000
"""The transitions, times goals, below which starting threads takes longer than they save."""

_WORTH_SINGLE_PRECISION: Final = 200_000
"""The transitions, times goals, below which there is no time to be saved."""


def solve(
    rows: ModelRows,
    goals: Goals,
    limits: Limits,
    *,
    n_values: int,
    names: Sequence[State],
    order: SweepOrder = "in-place",
    threads: int | None = None,
    start: FloatArray | None = None,
    narrow_sweeps: int = 0,
) -> Solutions:
    """Solves all goals, or raises NotConvergedError.

    Args:
        rows: the model.
        goals: the goals to solve for.
        limits: when a goal is done.
        n_values: the number of values, states and echoes.
        names: the names of the goals in messages, [G].
        order: 'in-place', or 'synchronous' for the paper's iteration to the letter.
        threads: the largest number of threads; all processors by default.
        start: values to begin with instead of 0, for sweeps in place, [G, n]; overwritten.
        narrow_sweeps: the largest number of first sweeps in single precision; there must be no echoes.
    """
    from axplore.graphs.simd import LANES
    from axplore.graphs.sweep_kernels import approach, iterate, iterate_in_place

    goals = goals._replace(echo_cost=float(goals.echo_cost))
    limits = _as_compiled(limits)
    n_goals = len(goals.states)
    outcome = empty_outcome(n_goals, n_values, len(rows.reset_costs))
    if start is not None:
        outcome = outcome._replace(values=start)

    narrow = min(narrow_sweeps, limits.max_sweeps // 2)
    if n_goals * rows.successors.size < _WORTH_SINGLE_PRECISION:
        narrow = 0

    def work(indices: IntArray) -> None:
        if order == "synchronous":
            iterate(rows, goals, limits, indices, outcome)
        else:
            lanes = LANES if len(indices) > 1 else 1
            if narrow:
                approach(rows, goals, limits, indices, narrow, np.empty(0, dtype=np.float32), outcome)
            iterate_in_place(rows, goals, limits, indices, lanes, outcome)

    n_parts = number_of_threads(threads, n_goals, rows.successors.size)
    in_threads(work, [np.arange(first, n_goals, n_parts) for first in range(n_parts)], n_parts)
    _check_converged(outcome, limits, names)
    return outcome


def solve_one(rows: ModelRows, goal: int, limits: Limits, start: FloatArray, name: State) -> Solutions:
    """Solves for one goal from given values, [n], or raises NotConvergedError; `rows` have no echoes."""
    from axplore.graphs.sweep_kernels import iterate_one

    outcome = empty_outcome(1, len(start), len(start))
    iterate_one(rows, goal, _as_compiled(limits), start, outcome)
    _check_converged(outcome, limits, [name])
    return outcome


def _as_compiled(limits: Limits) -> Limits:
    """Kernels are compiled for the types of their arguments: whole numbers would bring another compilation."""
    return Limits(
        float(limits.precision),
        float(limits.min_cost),
        int(limits.max_sweeps),
        float(limits.give_up_above),
        float(limits.patience),
    )


def empty_outcome(n_goals: int, n_values: int, n_states: int) -> Solutions:
    """Returns an outcome in which nothing is solved yet."""
    return Solutions(
        np.zeros((n_goals, n_values)),
        np.full((n_goals, n_states), -1, dtype=np.int64),
        np.zeros(n_goals),
        np.zeros(n_goals, dtype=np.int64),
        np.full(n_goals, UNFINISHED, dtype=np.int64),
    )


def fill_in(outcome: Solutions, indices: IntArray, found: Solutions) -> None:
    """Writes what was found for the goals at these indices."""
    for target, source in zip(outcome, found, strict=True):
        target[indices] = source


def number_of_threads(threads: int | None, n_goals: int, n_transitions: int) -> int:
    """Returns the number of threads for a number of goals: at most `threads`, and 1 if more are not worth starting."""
    if n_goals * n_transitions <= _WORTH_A_THREAD:
        return 1
    return max(1, min(_processors() if threads is None else threads, n_goals))


def in_threads(work: Callable[[IntArray], None], parts: Sequence[IntArray], n_threads: int) -> None:
    """Does the work on each of the parts, in this number of threads."""
    if n_threads == 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, parts))


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _check_converged(outcome: Solutions, limits: Limits, names: Sequence[State]) -> None:
    unfinished = np.flatnonzero(outcome.status == UNFINISHED)
    if not unfinished.size:
        return
    first = unfinished[0]
    change, largest = outcome.residuals[first], outcome.values[first].max()
    stalled = change <= ROUNDING * largest
    raise NotConvergedError(
        f"goal {names[first]!r}: after {outcome.sweeps[first]} sweeps a value still changes by {change:.3g}, "
        f"more than the precision {limits.precision:.3g}; "
        + (f"that is the rounding of values up to {largest:.3g}, " if stalled else "allow more sweeps, or ")
        + "ask for less precision"
    )
