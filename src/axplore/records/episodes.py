"""Tests of policies by episodes: what was fixed before the first of them, and what came of them."""

from __future__ import annotations

from axplore.records.codec import Record


class EpisodeRecord(Record, frozen=True, eq=True):
    """A test of whether a policy that restarts after `horizon` steps reaches a goal within `bound` expected steps.

    Attributes:
        goal: the index of a known state other than the initial one.
        policy: what to play in each of the first m known states: the index of an action, or RESET_ACTION. Every
            other state resets.
        horizon: the steps after which an episode without the goal ends, and the policy restarts.
        bound: of the expected steps of the policy that restarts.
        tail: the steps that a miss is counted to take beyond the horizon, at least 1 + `bound`.
        line, turn: whose level the test uses, and its index within its line, each counted from 1.
        fractions: the parts λ of the wealth that were staked on each episode, [b].
        weights: the parts of the first wealth that staked them, [b].
        outcomes: how many episodes took k = 0, ..., horizon steps, and how many missed, [horizon + 2].
    """

    goal: int
    policy: tuple[int, ...]
    horizon: int
    bound: float
    tail: float
    line: int
    turn: int
    fractions: tuple[float, ...]
    weights: tuple[float, ...]
    outcomes: tuple[int, ...]

    @property
    def plays_before_goal(self) -> bool:
        """Whether the policy is restricted to states admitted before the goal, as the order of admission needs it."""
        return len(self.policy) <= self.goal

    @property
    def n_episodes(self) -> int:
        """How many episodes there were."""
        return sum(self.outcomes)

    @property
    def n_arrivals(self) -> int:
        """How many of them reached the goal."""
        return sum(self.outcomes[:-1])
