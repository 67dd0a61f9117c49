"""Compiled trials of lower bounds: what more draws would bring, one trial after the other, until a claim is proven.

This is the loop of `claims` for claims that a lower bound proves, without a return to Python between trials. The
arithmetic is the same, and so are its results. Balls are grown in place, and only those of pairs with more visits than
in the trial before: most trials grow few pairs. Nothing here proves anything.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from axplore.compilation import compiled, compiled_inline, compiled_part
from axplore.proofs.bound_kernels import lower_bound_part
from axplore.proofs.bounds import INNER_SWEEPS_BELOW, LARGEST, MARGIN, MOST_SLACK, ROUNDING, STRICTNESS
from axplore.proofs.row_kernels import RegionRows, grow
from axplore.proofs.sensitivity import lower_gain_part
from axplore.types import BoolArray, FloatArray, IntArray

LEAST_GROWTH, MOST_GROWTH = 1.1, 2.0
"""Between these is the factor by which the visits of the best pair grow in a trial."""

BLIND_GROWTH: Final = 1.3
"""The factor where it is not known how much is lacking to a proof."""

LEVELLING: Final = 0.6
"""Pairs grow by this power of what they bring per step, so that afterwards all that grew bring about as much.

What a draw brings falls like the visits to the power of -1.5 where outcomes are uncertain, and of -2 elsewhere."""

LEAST_TO_GROW: Final = 0.99 * MOST_GROWTH ** (-1.0 / LEVELLING)
"""Pairs that bring less than this part of the best per step do not grow."""

NEAR_BEST: Final = 0.7
"""Of pairs that may bring more than this part of the best per step, ways are sought first."""

TRIALS: Final = 60

FEW_TRIALS: Final = 2
HOPELESS: Final = 2.0
"""After few trials others are given up that at the present pace would take this many times the steps of another proof,
or this many times the trials that there are."""

TRIED, NEEDS_WAYS, GIVEN_UP = 0, 1, 2
"""How trials end: with all that they bring, for want of ways to some states, or without hope."""


class Trials(NamedTuple):
    """Trials of a lower bound towards a goal, and how far they have come.

    Attributes:
        rows: region and counts before any of them.
        before: the visits of each pair, [P].
        closing: the draws after which nothing but what was seen can follow each pair, [P]; infinite if never.
        groups: equal for pairs that share their draws, [P]; empty if none do.
        owners: the known state of each pair, [P].
        goal: the index of a state, or of the unseen.
        steps: more than these are to be proven.
        limit, tolerance, min_cost: of the solver.
        visits: those of the last trial, [P].
        written: those with which balls were written last, [P]; below 0 if they were not.
        grown: the rows with balls as they would be with these visits.
        around: the same with balls around the frequencies, for gains.
        start, shifts, policy: what the solver begins with, and where it ended last, [n + others], [P] and [n].
        worth, seen: what it knows of each pair, [P] and [E].
        gain: what the bound gains by the logarithm of the visits of each pair, [P].
        pace: the number of trials done, what was lacking at first and in the last of them, and whether that one has
            found its gain, but not what grows by it.
    """

    rows: RegionRows
    before: FloatArray
    closing: FloatArray
    groups: IntArray
    owners: IntArray
    goal: int
    steps: float
    limit: float
    tolerance: float
    min_cost: float
    visits: FloatArray
    written: FloatArray
    grown: RegionRows
    around: RegionRows
    start: FloatArray
    shifts: FloatArray
    policy: IntArray
    worth: FloatArray
    seen: FloatArray
    gain: FloatArray
    pace: FloatArray


def with_own_balls(rows: RegionRows) -> RegionRows:
    """The same with balls that may be written to."""
    return rows._replace(**{name: getattr(rows, name).copy() for name in ("shares", "slack", "closed", "rest", "lows")})


@compiled
def tried_below(
    trials: Trials,
    gives_up: bool,
    at_most: float,
    per_draw: FloatArray,
    is_found: BoolArray,
    wanted: BoolArray,
) -> int:
    """Lets visits grow until the claim is proven, and returns how that ended.

    Trials that need ways to some states are continued by another call, once these have been found. Everything else is
    kept, so that it makes no difference which ways are found before.

    Args:
        trials: what is tried; changed.
        gives_up: whether trials without hope are given up.
        at_most: draws that take more steps are not followed to their end.
        per_draw: the steps that a draw of each pair takes where that was found, else at least that many, [P].
        is_found: the states whose pairs have been found, [n].
        wanted: the states to which ways are needed, [n]; written where some are.
    """
    visits, gain, pace = trials.visits, trials.gain, trials.pace
    steps = _steps_of(trials.before, visits, per_draw)
    while pace[0] < TRIALS:
        if pace[3] == 0.0:
            _grow(trials)
            values = np.empty(len(trials.start))
            pace[2] = trials.steps - _least_steps(trials, values)
            if pace[2] < 0.0:
                return TRIED
            if pace[0] == 0.0:
                pace[1] = pace[2]
            if gives_up and pace[0] >= FEW_TRIALS:
                brought = (pace[1] - pace[2]) * HOPELESS
                if steps * pace[2] > brought * at_most or pace[0] * pace[2] > brought * TRIALS:
                    return GIVEN_UP
            _find_gain(trials.around, trials.goal, values, trials.policy, trials.shifts.copy(), trials.groups, gain)
            pace[3] = 1.0
        if _want_ways(visits, gain, trials.owners, per_draw, is_found, wanted):
            return NEEDS_WAYS
        more = _grown_visits(visits, gain, per_draw, pace[2])
        for pair in range(len(visits)):
            visits[pair] = more[pair]
        pace[0], pace[3] = pace[0] + 1.0, 0.0
        steps = _steps_of(trials.before, visits, per_draw)
        if steps > at_most:
            return TRIED
    return TRIED


@compiled_inline
def _grow(trials: Trials) -> None:
    """Writes balls as they would be with these visits, of pairs that have others than before.

    What these pairs were found to be worth is forgotten.
    """
    rows, grown, around = trials.rows, trials.grown, trials.around
    for pair in range(len(trials.visits)):
        visits = trials.visits[pair]
        if visits == trials.written[pair]:
            continue
        trials.written[pair], trials.worth[pair] = visits, -np.inf
        grow(rows, pair, trials.before[pair] / visits, grown.shares, grown.slack, grown.rest, grown.lows)
        grown.closed[pair] = rows.closed[pair] or visits >= trials.closing[pair]
        around.slack[pair], around.rest[pair] = min(grown.slack[pair], MOST_SLACK), 0.0
        around.closed[pair] = grown.closed[pair]
        for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
            around.shares[entry], around.lows[entry] = rows.frequencies[entry], grown.lows[entry]


@compiled_inline
def _steps_of(before: FloatArray, visits: FloatArray, per_draw: FloatArray) -> float:
    """The steps that the draws of a trial take."""
    steps = 0.0
    for pair in range(len(visits)):
        if visits[pair] > before[pair]:
            steps += (visits[pair] - before[pair]) * per_draw[pair]
    return steps


@compiled_inline
def _least_steps(trials: Trials, values: FloatArray) -> float:
    """What the lower bound would decide by; writes its values, [n + others]."""
    for inner in (INNER_SWEEPS_BELOW, 0):
        for state in range(len(values)):
            values[state] = min(trials.start[state], trials.limit) if inner else 0.0
        residual = lower_bound_part(
            trials.grown, trials.goal, values, trials.policy, trials.shifts, trials.worth, trials.seen, inner,
            trials.limit, trials.tolerance,
        )  # fmt: skip
        if residual < np.inf:
            greatest = 0.0
            for state in range(len(values)):
                trials.start[state] = values[state]
                values[state] /= 1.0 + residual / trials.min_cost
                greatest = max(greatest, values[state])
            if greatest > LARGEST:
                return 0.0
            return float(values[0] / (1.0 + STRICTNESS * max(ROUNDING, 10.0 * MARGIN * (1.0 + greatest))))
    values.fill(0.0)
    return 0.0


@compiled_part
def _find_gain(
    around: RegionRows,
    goal: int,
    values: FloatArray,
    policy: IntArray,
    shifts: FloatArray,
    groups: IntArray,
    gain: FloatArray,
) -> None:
    """Writes what the bound gains from each pair, [P], where pairs that share their draws share the gain."""
    gain.fill(0.0)
    start = np.zeros(len(policy))
    start[0] = 1.0
    lower_gain_part(around, goal, values, policy, shifts, start, gain)
    n_groups = 0
    for group in groups:
        n_groups = max(n_groups, group + 1)
    totals, sizes = np.zeros(n_groups), np.zeros(n_groups)
    for pair in range(len(groups)):
        totals[groups[pair]] += gain[pair]
        sizes[groups[pair]] += 1.0
    for pair in range(len(groups)):
        gain[pair] = totals[groups[pair]] / sizes[groups[pair]]


@compiled
def want_ways(
    visits: FloatArray,
    gain: FloatArray,
    owners: IntArray,
    per_draw: FloatArray,
    is_found: BoolArray,
    wanted: BoolArray,
) -> bool:
    """`_want_ways` for calls from Python."""
    return _want_ways(visits, gain, owners, per_draw, is_found, wanted)


@compiled_part
def _want_ways(
    visits: FloatArray,
    gain: FloatArray,
    owners: IntArray,
    per_draw: FloatArray,
    is_found: BoolArray,
    wanted: BoolArray,
) -> bool:
    """Marks states, [n], to which ways have to be found before it is known which visits grow; returns if there are any.

    Most pairs bring so little that they do not grow even if a draw of them takes a single step. Ways are sought to the
    rest alone, to those that may bring most first: what they bring rules out others. Where none brings anything, all
    grow.
    """
    best, is_best_found = 0.0, True
    for pair in range(len(visits)):
        by_step = gain[pair] / (per_draw[pair] * visits[pair])
        if by_step > best:
            best, is_best_found = by_step, is_found[owners[pair]]
    enough = best * (LEAST_TO_GROW if is_best_found else NEAR_BEST)
    any_wanted = False
    for pair in range(len(visits)):
        state = owners[pair]
        if not is_found[state] and (best == 0.0 or gain[pair] / (per_draw[pair] * visits[pair]) > enough):
            wanted[state], any_wanted = True, True
    return any_wanted


@compiled
def grown_visits(visits: FloatArray, gain: FloatArray, per_draw: FloatArray, lacking: float) -> FloatArray:
    """`_grown_visits` for calls from Python."""
    return _grown_visits(visits, gain, per_draw, lacking)


@compiled_part
def _grown_visits(visits: FloatArray, gain: FloatArray, per_draw: FloatArray, lacking: float) -> FloatArray:
    """The visits to try next, [P]: pairs that bring most per step grow most, together enough to close the gap.

    Gains are taken to fall like the root of the visits. Most fall faster, so that this asks for too little rather than
    too much, and the next trial for the rest.
    """
    # In loops, which compile in a third of the time that expressions of arrays take.
    best = 0.0
    for pair in range(len(visits)):
        best = max(best, gain[pair] / (per_draw[pair] * visits[pair]))
    if not best > 0.0:  # no hint
        grown = np.empty(len(visits))
        for pair in range(len(visits)):
            grown[pair] = visits[pair] * LEAST_GROWTH + 0.5
        return grown
    part = np.zeros(len(visits))
    for pair in range(len(visits)):
        by_step = gain[pair] / (per_draw[pair] * visits[pair])
        if by_step > 0.0:
            part[pair] = (by_step / best) ** LEVELLING
    growth = _growth_of_best(part, gain, lacking)
    grown = visits.copy()
    for pair in range(len(visits)):
        if part[pair] * growth > 1.0:
            grown[pair] = visits[pair] * (part[pair] * growth) + 0.5
    return grown


@compiled_inline
def _growth_of_best(part: FloatArray, gain: FloatArray, lacking: float) -> float:
    """The factor by which the visits of the best pair grow, and those of the others by this part of it, [P]."""
    low, high = math.log(LEAST_GROWTH), math.log(MOST_GROWTH)
    if lacking == np.inf:
        low = high = math.log(BLIND_GROWTH)
    for _ in range(8):
        middle = (low + high) / 2
        factor, brought = math.exp(middle), 0.0
        for pair in range(len(part)):
            if part[pair] > 0.0:
                brought += gain[pair] * (1.0 - max(part[pair] * factor, 1.0) ** -0.5)
        if 2.0 * brought < lacking:
            low = middle
        else:
            high = middle
    return math.exp(high)
