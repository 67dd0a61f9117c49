"""The fewest steps to every state of a system whose actions are assumed to have one outcome each.

If every pair that was drawn has one outcome, the draws are a graph, and the expected steps of the best policy to a
state are the length of the shortest way. One record says this for all states, and one look at every edge proves it:

- *lower*: no edge leads from a state to one that is said to be more than a step farther. So every way takes at least
  as many steps as the record says, unless it uses a pair that was never drawn, which may lead anywhere.
- *upper*: every known state is one step farther than the state from which its own pair leads to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from axplore.certificate.contents import RESET_ACTION, Counts, Record
from axplore.errors import InvalidInputError
from axplore.target import Objective
from axplore.types import FloatArray, IntArray, Status

NO_PAIR = -1
"""In place of the pair that leads to the initial state."""


@dataclass(frozen=True, eq=False)
class Distances(Record):
    """How far each state is, and how it is reached.

    Attributes:
        steps: the fewest steps to each state seen, [n + others].
        reached_by: the last pair on a shortest way to each known state; NO_PAIR for the initial one, [n].
    """

    steps: IntArray
    reached_by: IntArray

    def check_shape(self, n_known: int, n_seen: int, n_pairs: int) -> None:
        """Refuses arrays that do not fit the number of states."""
        for name, length in (("steps", n_seen), ("reached_by", n_known)):
            array = getattr(self, name)
            if array.dtype != np.int64 or array.shape != (length,):
                raise InvalidInputError(f"distances.{name} is of shape {array.shape} and type {array.dtype}")
        if self.steps.min() < 0 or self.reached_by.min() < NO_PAIR or self.reached_by.max() >= n_pairs:
            raise InvalidInputError("distances hold a number of steps or a pair that cannot be")


def mistake_in(distances: Distances, counts: Counts, owners: IntArray) -> str | None:
    """The first thing in the distances that does not follow from the counts, in words; None if all of it does.

    Args:
        distances: what is claimed.
        counts: every pair has one outcome at most.
        owners: the known state of each pair, [P].
    """
    steps, n_known = distances.steps, len(distances.reached_by)
    drawn = np.flatnonzero(np.diff(counts.row_offsets))
    leads_to = np.full(len(owners), NO_PAIR)
    leads_to[drawn] = counts.successors[counts.row_offsets[:-1][drawn]]
    if steps[0] != 0 or distances.reached_by[0] != NO_PAIR:
        return "the initial state is not said to take 0 steps"
    nearer = steps[leads_to[drawn]] > steps[owners[drawn]] + 1
    if nearer.any():
        pair = int(drawn[np.argmax(nearer)])
        return f"a way of {steps[owners[pair]] + 1} steps leads to a state that is said to take {steps[leads_to[pair]]}"
    last = distances.reached_by[1:]
    if (last == NO_PAIR).any():
        return "a known state is said to be reached by no action"
    wrong = (leads_to[last] != np.arange(1, n_known)) | (steps[1:n_known] != steps[owners[last]] + 1)
    if wrong.any():
        return f"known state {int(np.argmax(wrong)) + 1} is not reached as claimed"
    return None


class ShortestWays(Sequence[IntArray]):
    """The policy to each known state along a tree of shortest ways, made when it is asked for.

    All of them together take the square of the number of states.
    """

    def __init__(self, reached_by: IntArray, state_pairs: IntArray) -> None:
        self._reached_by = reached_by
        self._state_pairs = state_pairs

    def __len__(self) -> int:
        return len(self._reached_by)

    @overload
    def __getitem__(self, goal: int) -> IntArray: ...
    @overload
    def __getitem__(self, goal: slice) -> list[IntArray]: ...
    def __getitem__(self, goal: int | slice) -> IntArray | list[IntArray]:
        if isinstance(goal, slice):
            return [self[place] for place in range(*goal.indices(len(self)))]
        policy = np.full(len(self), RESET_ACTION, dtype=np.int64)
        pair = self._reached_by[goal]
        for _ in range(len(self)):  # no way is longer, but one that was not verified may have no end
            if pair == NO_PAIR:
                break
            state = self._owners[pair]
            policy[state] = pair - self._state_pairs[state]
            pair = self._reached_by[state]
        policy.flags.writeable = False
        return policy

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShortestWays)
            and np.array_equal(self._reached_by, other._reached_by)
            and np.array_equal(self._state_pairs, other._state_pairs)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _owners(self) -> IntArray:
        return np.repeat(np.arange(len(self)), np.diff(self._state_pairs))


@dataclass(frozen=True, eq=False)
class ExactBounds:
    """What distances say of every state, if they hold.

    Attributes:
        lower, upper: of the steps to each state; upper is infinite for those that are not known, [n + others].
        unseen: no state never seen takes fewer steps; infinite if every pair of the known states was drawn.
    """

    lower: FloatArray
    upper: FloatArray
    unseen: float

    @property
    def regret(self) -> FloatArray:
        """What the shortest way known may lose against the best policy, [n + others]."""
        return self.upper - self.lower

    def statuses(self, n_known: int, radius: float, epsilon: float, objective: Objective) -> tuple[Status, ...]:
        """Of each state."""
        certified = self.upper[:n_known] <= radius + epsilon
        if objective is Objective.OPTIMAL:
            certified &= self.regret[:n_known] <= epsilon
        known = (Status.CERTIFIED if holds else Status.OPEN for holds in certified.tolist())
        beyond = (self.lower[n_known:] > radius).tolist()
        return (*known, *(Status.SET_ASIDE if holds else Status.OPEN for holds in beyond))


def exact_bounds(distances: Distances, counts: Counts, owners: IntArray) -> ExactBounds:
    """The bounds that follow from distances: a pair never drawn may lead anywhere."""
    steps = distances.steps.astype(np.float64)
    undrawn = owners[np.diff(counts.row_offsets) == 0]
    unseen = float(steps[undrawn].min()) + 1.0 if len(undrawn) else math.inf
    lower = np.minimum(steps, unseen)
    lower[0] = 0.0
    upper = steps.copy()
    upper[len(distances.reached_by) :] = math.inf
    return ExactBounds(lower, upper, unseen)
