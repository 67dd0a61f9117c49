"""Tests of policies by episodes: what was fixed before the first of them, and what came of them."""

from __future__ import annotations

import math

import numpy as np

from axplore.records.codec import Record
from axplore.records.vectors import Vector
from axplore.types import RESET_ACTION


class EpisodeRecord(Record, frozen=True, eq=True):
    """A test of how many steps a policy that restarts after `horizon` steps takes to a goal.

    Attributes:
        goal: the index of a state other than the initial one; a known one if a bound is proven.
        states: the indices of the known states in which the policy plays; every other state resets, ascending, [m].
        actions: what it plays there, [m].
        horizon: the steps after which an episode without the goal ends, and the policy restarts.
        bound: the least bound of the expected steps of the policy that restarts, which the test may prove.
        at_most: the bound that it proves; None if none, and it is here for what it left of the level of its line.
        tail: the steps that a miss is counted to take beyond the horizon, at least 1 more than any bound.
        line, turn: whose level the test uses, and its index within its line, each counted from 1.
        fractions: the parts λ of the wealth that were staked on each episode, [b].
        weights: the parts of the first wealth that staked them, [b].
        outcomes: how many episodes took k = 0, ..., horizon steps, and how many missed, [horizon + 2].
    """

    goal: int
    states: tuple[int, ...]
    actions: tuple[int, ...]
    horizon: int
    bound: float
    at_most: float | None
    tail: float
    line: int
    turn: int
    fractions: tuple[float, ...]
    weights: tuple[float, ...]
    outcomes: tuple[int, ...]

    @property
    def steps(self) -> float:
        """The bound that it proves; infinite if none."""
        return math.inf if self.at_most is None else self.at_most

    @property
    def plays_before_goal(self) -> bool:
        """Whether the policy is restricted to states admitted before the goal, as the order of admission needs it."""
        return not self.states or self.states[-1] < self.goal

    def policy(self, n_known: int) -> Vector[np.int64]:
        """The policy for all known states."""
        plays = [(state, action) for state, action in zip(self.states, self.actions, strict=True) if state < n_known]
        states, actions = np.array(plays, dtype=np.int64).reshape(-1, 2).T.copy()
        return Vector(n_known, states, actions, np.int64(RESET_ACTION))

    @property
    def n_episodes(self) -> int:
        """How many episodes there were."""
        return sum(self.outcomes)

    @property
    def n_arrivals(self) -> int:
        """How many of them reached the goal."""
        return sum(self.outcomes[:-1])
