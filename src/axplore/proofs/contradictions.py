"""Tests by episodes that the rows contradict.

A test needs no rows, and so it proves the same where labels hide something. But every draw of its episodes is counted
in the rows too, and where these prove that its policy takes longer, or cannot have arrived as it did, the counts
contradict each other: either the failure that δ allows for has occurred, or the labels hide something, and then nothing
that rests on rows can be relied on. The verifier refuses such a record, by rules and code of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from axplore.compressed import entries_in, offsets_from
from axplore.proofs.bounds import GoalValues, IntervalModel, lower_path
from axplore.proofs.episode_tests import EpisodeTest, arrivals_by_frequency
from axplore.proofs.ways import model_along
from axplore.types import RESET_PAIR, IntArray

Array = TypeVar("Array", bound=npt.NDArray[Any])

STRICTNESS: Final = 1e-5
"""A bound this close to what the rows prove is contradicted: solvers may stop short of the verifier's by less."""


def any_contradicted(tests: Iterable[EpisodeTest], model: IntervalModel) -> bool:
    """Whether the rows contradict a proven test of a state that they have met."""
    return any(is_contradicted(test, model) for test in tests if test.proves_any and test.goal in model.numbers)


def is_contradicted(test: EpisodeTest, model: IntervalModel) -> bool:
    """Whether the rows prove that a policy takes longer than its test says, or did not arrive as its episodes did."""
    goal, policy = int(np.flatnonzero(model.numbers == test.goal)[0]), test.pairs(model)
    if model.is_large:  # a policy meets few of the states
        way = model_along(model, GoalValues(goal, np.zeros(len(model.numbers)), policy, proven=False))
        if way is not None:
            model, goal, policy = way.model, way.path.goal, way.path.policy
    return _arrived_otherwise(test, model, goal, policy) or (
        least_steps_of(policy, goal, model) * (1.0 + STRICTNESS) > test.at_most
    )


def _arrived_otherwise(test: EpisodeTest, model: IntervalModel, goal: int, policy: IntArray) -> bool:
    """Whether the draws of a policy led to the goal less often than its episodes, or after other numbers of steps."""
    pairs = policy[policy != RESET_PAIR]
    entries = entries_in(model.rows.row_offsets, pairs)
    entered = model.times_met[entries[model.rows.successors[entries] == goal]].sum()
    taken = np.flatnonzero(test.outcomes[:-1])
    by_frequency = arrivals_by_frequency(model, goal, policy, test.horizon)
    return bool(entered < test.outcomes[:-1].sum() or (by_frequency[taken] == 0.0).any())


def least_steps_of(policy: IntArray, goal: int, model: IntervalModel) -> float:
    """A lower bound, over the region, of the expected steps of a policy that may also RESET whenever it likes.

    The policy that restarts after a horizon is one of these.

    Args:
        policy: the pair to play in each known state, or RESET_PAIR, [n].
        goal: the index of a state.
        model: counts and region.
    """
    return lower_path(only(policy, model), goal).steps


def only(policy: IntArray, model: IntervalModel) -> IntervalModel:
    """The model in which each known state has no action but that of a policy, and RESET."""
    rows, plays = model.rows, policy != RESET_PAIR
    pairs = policy[plays]
    entries = entries_in(rows.row_offsets, pairs)
    part = rows._replace(
        state_pairs=_as_before(rows.state_pairs, offsets_from(plays)),
        row_offsets=_as_before(rows.row_offsets, offsets_from(np.diff(rows.row_offsets)[pairs])),
        successors=_as_before(rows.successors, rows.successors[entries]),
        shares=_as_before(rows.shares, rows.shares[entries]),
        frequencies=_as_before(rows.frequencies, rows.frequencies[entries]),
        slack=_as_before(rows.slack, rows.slack[pairs]),
        costs=_as_before(rows.costs, rows.costs[pairs]),
        closed=_as_before(rows.closed, rows.closed[pairs]),
        floors=_as_before(rows.floors, rows.floors[pairs]),
        rest=_as_before(rows.rest, rows.rest[pairs]),
        wide=_as_before(rows.wide, rows.wide[pairs]),
        lows=_as_before(rows.lows, rows.lows[entries]),
    )
    # Without counts no ball is sharpened for the goal: the verifier compares with the balls that suit all directions.
    return IntervalModel(part, model.visits[pairs], model.numbers, model.n_known, model.limit)


def _as_before(whole: Array, part: Array) -> Array:
    """The part of an array, locked if the whole is: a kernel would be compiled once more for the other kind."""
    part.flags.writeable = whole.flags.writeable
    return part
