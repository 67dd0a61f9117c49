"""The tests by episodes that the certified explorer has begun, and what they would take.

A test is of one policy towards one goal, fixed when it begins; only its outcomes change. Tests stand in lines, in which
one begins when the one before it has ended, with the level that this one leaves: see docs/algorithms/episodes.md. All
values here are immutable; a method that changes something returns a new value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from axplore.errors import InvalidInputError
from axplore.graphs.arrivals import arrival_times
from axplore.proofs.bounds import GoalValues, IntervalModel, along
from axplore.records.episodes import EpisodeRecord
from axplore.records.vectors import Vector
from axplore.statistics.episodes import (
    Bets,
    episodes_needed,
    focused_bets,
    forecast_horizon,
    least_bound,
    level_after,
    line_level,
    log_wealth,
    losses_if_slower,
)
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray
from axplore.worlds.contract import Answer, Episodes

LONGEST: Final = 4.0
"""Horizons are sought up to this multiple of the bound, and a little more."""

LONGEST_HORIZON: Final = 4000
"""No episode of a test is longer, however large the bound: a test keeps a count for each number of steps."""


@dataclass(frozen=True, eq=False)
class EpisodeTest:
    """Whether a policy that restarts after `horizon` steps reaches a goal within `bound` expected steps.

    Attributes:
        goal: the number of the goal.
        states: the indices of the known states in which the policy plays, ascending; every other state resets, [m].
        actions: what it plays there, an index among the actions of the state, [m].
        horizon: the steps after which an episode is cut.
        bound: the least bound of the expected steps that it may prove.
        tail: the expected steps that an episode which missed is taken to need beyond the horizon, at least 1 + `bound`,
            as if it restarted. Where the policy needs no more from anywhere, it need not restart at all.
        line, turn: whose level it has, and its index within its line, each counted from 1.
        level: the probability with which it may err: what the tests before it have left of that of its line.
        bets: the fractions of the wealth that are staked.
        outcomes: how many episodes took 0, 1, ..., `horizon` steps, and how many missed, [horizon + 2].
        is_over: whether it has ended before it proved all that it may.
    """

    goal: int
    states: IntArray
    actions: IntArray
    horizon: int
    bound: float
    tail: float
    line: int
    turn: int
    level: float
    bets: Bets
    outcomes: IntArray
    is_over: bool = False

    def __post_init__(self) -> None:
        if self.states.ndim != 1 or self.states.shape != self.actions.shape or (np.diff(self.states) <= 0).any():
            raise InvalidInputError("the policy of a test by episodes does not say once for each state what it plays")
        if self.outcomes.shape != (self.horizon + 2,) or self.bets.weights.ndim != 1:
            raise InvalidInputError("a test by episodes has no outcome for each number of steps up to its horizon")

    @classmethod
    def of(cls, record: EpisodeRecord, goal: int, plays: Mapping[int, int], level: float) -> EpisodeTest:
        """The test that a certificate keeps, of a goal by number, as a policy of other known states may have it.

        Args:
            record: the test.
            goal: the number of its goal.
            plays: what its policy plays in each state in which it does not reset.
            level: the probability with which it may err.
        """
        return cls(
            goal=goal,
            states=np.array(sorted(plays), dtype=np.int64),
            actions=np.array([plays[state] for state in sorted(plays)], dtype=np.int64),
            horizon=record.horizon,
            bound=record.bound,
            tail=record.tail,
            line=record.line,
            turn=record.turn,
            level=level,
            bets=Bets(np.array(record.fractions), np.array(record.weights)),
            outcomes=np.array(record.outcomes, dtype=np.int64),
            is_over=True,
        )

    def record(self, goal: int, is_known: bool = True) -> EpisodeRecord:
        """The test as a certificate keeps it, with the index of the goal in place of its number.

        Of a goal that is not known it claims nothing.
        """
        return EpisodeRecord(
            goal=goal,
            states=tuple(self.states.tolist()),
            actions=tuple(self.actions.tolist()),
            horizon=self.horizon,
            bound=self.bound,
            at_most=self.at_most if is_known and self.proves_any else None,
            tail=self.tail,
            line=self.line,
            turn=self.turn,
            fractions=tuple(self.bets.fractions.tolist()),
            weights=tuple(self.bets.weights.tolist()),
            outcomes=tuple(self.outcomes.tolist()),
        )

    @property
    def _nats(self) -> float:
        """The evidence that a proof needs."""
        return -math.log(self.level)

    @property
    def largest_bound(self) -> float:
        """The largest bound that it may prove: a miss is not counted as more than a restart takes with larger ones."""
        return max(self.bound, self.tail - 1.0)

    def _losses(self, bound: float) -> FloatArray:
        return losses_if_slower(self.horizon, bound, self.tail, self.bound)

    def _wealth(self, bound: float) -> float:
        """The logarithm of the wealth that was won against more than this number of steps."""
        return log_wealth(self._losses(bound), self.outcomes, self.bets)

    def proves(self, bound: float) -> bool:
        """Whether the outcomes prove that the policy takes at most this number of expected steps."""
        if bound < self.bound:
            return False
        return self._proves_least or self._wealth(min(bound, self.largest_bound)) >= self._nats

    @cached_property
    def _proves_least(self) -> bool:
        """Whether they prove the least bound, and so every other: the wealth grows with the bound."""
        return self._wealth(self.bound) >= self._nats

    @cached_property
    def at_most(self) -> float:
        """The least bound that the outcomes prove; infinite if they prove none."""
        return least_bound(self.outcomes, self.bets, self.bound, self.tail, self._nats)

    @property
    def proves_any(self) -> bool:
        """Whether they prove any."""
        return self.at_most < math.inf

    @cached_property
    def is_open(self) -> bool:
        """Whether more episodes may prove more."""
        return not self.is_over and not self._proves_least

    @cached_property
    def level_after(self) -> float:
        """What it leaves of its level to the test after it, as it stands."""
        return level_after(self.level, self._wealth(self.bound))

    def plays_within(self, n_known: int) -> bool:
        """Whether the policy plays in some of the first known states only."""
        return not len(self.states) or int(self.states[-1]) < n_known

    def policy(self, n_known: int) -> Vector[np.int64]:
        """The policy for all known states."""
        return Vector(n_known, self.states, self.actions, np.int64(RESET_ACTION))

    def pairs(self, model: IntervalModel) -> IntArray:
        """The policy as pairs, or RESET_PAIR, for all known states of a model, [n]."""
        pairs = np.full(model.n_known, RESET_PAIR)
        pairs[self.states] = model.rows.state_pairs[self.states] + self.actions
        return pairs

    def plan(self, model: IntervalModel, bound: float) -> EpisodePlan:
        """What would prove a bound, if frequencies were probabilities."""
        goal = int(np.flatnonzero(model.numbers == self.goal)[0])
        return self._plan(arrivals_by_frequency(model, goal, self.pairs(model), self.horizon), bound)

    def _plan(self, arrivals: FloatArray, bound: float) -> EpisodePlan:
        missed = max(1.0 - float(arrivals.sum()), 0.0)
        losses, law = self._losses(min(bound, self.largest_bound)), np.append(arrivals, missed)
        needed = episodes_needed(losses, self.outcomes, law, self.bets, self._nats)
        steps = 1.0 + missed * self.horizon + float(arrivals @ np.arange(self.horizon + 1))
        return EpisodePlan(self, needed, steps)

    def order(self, known: Sequence[int], times: int) -> Episodes:
        """Returns an order for more episodes, in a world in which the known states have these numbers.

        Each starts with a RESET, so that they are independent of each other even where labels hide something.
        """
        policy = np.full(max(known) + 1, RESET_ACTION, dtype=np.int64)
        policy[np.array(known, dtype=np.int64)[self.states]] = self.actions
        return Episodes(self.goal, times, self.horizon, policy, always_reset=True)

    def after(self, answer: Answer) -> EpisodeTest:
        """The test with the outcomes of more episodes."""
        return replace(self, outcomes=self.outcomes + answer.outcomes)


@dataclass(frozen=True, eq=False)
class EpisodeTests:
    """All tests begun so far, in the order in which they began.

    Attributes:
        begun: the tests.
        spent: the number of lines, the first ones, that tests keep which were given up and forgotten.
    """

    begun: tuple[EpisodeTest, ...] = ()
    spent: int = 0

    def __iter__(self) -> Iterator[EpisodeTest]:
        return iter(self.begun)

    @cached_property
    def _by_goal(self) -> dict[int, list[int]]:
        """The places of the tests of each goal, in the same order."""
        places: dict[int, list[int]] = {}
        for place, test in enumerate(self.begun):
            places.setdefault(test.goal, []).append(place)
        return places

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        """The place of each test, by its line and turn."""
        return {(test.line, test.turn): place for place, test in enumerate(self.begun)}

    @cached_property
    def _last_of_lines(self) -> dict[int, int]:
        """The place of the newest test of each line; only that may be open."""
        return {test.line: place for place, test in enumerate(self.begun)}

    @property
    def goals(self) -> list[int]:
        """The goals of which there are tests, by their numbers."""
        return list(self._by_goal)

    def of(self, goal: int) -> list[EpisodeTest]:
        """The tests of a goal, by its number."""
        return [self.begun[place] for place in self._by_goal.get(goal, ())]

    def proof_of(self, goal: int, steps: float, n_allowed: int | None = None) -> EpisodeTest | None:
        """A test that proves a goal, by its number, to be reached within `steps` expected steps.

        Args:
            goal: a number.
            steps: the most expected steps.
            n_allowed: the number of known states in which the policy may play; all when not given.
        """
        for test in self.of(goal):
            if (n_allowed is None or test.plays_within(n_allowed)) and test.proves(steps):
                return test
        return None

    def proven_of(self, goal: int) -> list[EpisodeTest]:
        """The tests of a goal, by its number, that prove a bound, the least bound first."""
        return sorted((test for test in self.of(goal) if test.proves_any), key=lambda test: test.at_most)

    def open_of(self, goal: int) -> list[EpisodeTest]:
        """The tests of a goal that more episodes may decide."""
        return [test for test in self.of(goal) if test.is_open]

    def next_place(self, goal: int, share: float) -> tuple[int, int, float]:
        """Line, turn and level of the next test of a goal: where the level is largest.

        In the lines that it may stand in, the last test is over, or of the same goal, and then it ends with it.

        Args:
            goal: a number.
            share: the probability with which all tests together may err.
        """
        line = self.spent + len(self._last_of_lines) + 1
        found = [(line_level(share, line), -line, 1)]
        for line, place in self._last_of_lines.items():
            last = self.begun[place]
            if last.goal == goal or not last.is_open:
                found.append((last.level_after, -line, last.turn + 1))
        level, line, turn = max(found)
        return -line, turn, level

    def given_up(self) -> EpisodeTests:
        """No tests, with all lines that were ever begun spent: what they proved is forgotten, and costs its level."""
        return EpisodeTests(spent=max([self.spent, *(test.line for test in self.begun)]))

    def ended(self, goals: Iterable[int]) -> EpisodeTests:
        """The tests, of which those of these goals, by their numbers, are over."""
        tests = self
        for goal in goals:
            for test in self.open_of(goal):
                tests = tests._with(replace(test, is_over=True))
        return tests

    def with_test(self, test: EpisodeTest) -> EpisodeTests:
        """The tests with this one in the place of the one with its line and turn; as the newest, it ends its goal's."""
        tests = self if (test.line, test.turn) in self._places else self.ended([test.goal])
        return tests._with(test)

    def _with(self, test: EpisodeTest) -> EpisodeTests:
        place = self._places.get((test.line, test.turn))
        if place is not None:
            after = replace(self, begun=(*self.begun[:place], test, *self.begun[place + 1 :]))
            vars(after).update(_by_goal=self._by_goal, _places=self._places, _last_of_lines=self._last_of_lines)
            return after
        # What follows from the tests is carried over: with thousands of them, finding it anew takes most of a round.
        place = len(self.begun)
        after = replace(self, begun=(*self.begun, test))
        vars(after)["_by_goal"] = {**self._by_goal, test.goal: [*self._by_goal.get(test.goal, ()), place]}
        vars(after)["_places"] = {**self._places, (test.line, test.turn): place}
        vars(after)["_last_of_lines"] = {**self._last_of_lines, test.line: place}
        return after


def levels_of(records: Sequence[EpisodeRecord], share: float) -> list[float]:
    """The level with which each test of a certificate began.

    Args:
        records: with those of each line all that were before them.
        share: the probability with which all tests together may err.
    """
    levels, left = [0.0] * len(records), dict[int, float]()
    for place in sorted(range(len(records)), key=lambda place: (records[place].line, records[place].turn)):
        record = records[place]
        levels[place] = left.get(record.line, line_level(share, record.line))
        test = EpisodeTest.of(record, record.goal, {}, levels[place])
        left[record.line] = test.level_after
    return levels


@dataclass(frozen=True, eq=False)
class EpisodePlan:
    """A test to begin or to continue.

    Attributes:
        test: the test.
        n_episodes: the episodes that a proof would take; infinite if none would do.
        episode_steps: the expected steps of an episode, the RESET before it included.
    """

    test: EpisodeTest
    n_episodes: float
    episode_steps: float

    @property
    def travel(self) -> float:
        """The steps that a proof would take."""
        return self.n_episodes * self.episode_steps

    def times(self, budget: float) -> int:
        """Returns the number of episodes to run next within a limit on steps."""
        return max(1, math.ceil(min(self.n_episodes, budget / self.episode_steps)))


def cheapest_test(
    tests: EpisodeTests, model: IntervalModel, path: GoalValues, bound: float, share: float, tail: float | None = None
) -> EpisodePlan | None:
    """The test that would prove a bound for a goal soonest: one that is open, or a new one; None if none would.

    Args:
        tests: those begun so far.
        model: for its frequencies.
        path: with the policy to test towards the goal.
        bound: of the expected steps.
        share: the probability with which all tests together may err.
        tail: that of a new test, as in `EpisodeTest`; 1 + `bound` when not given.
    """
    begun = tests.open_of(int(model.numbers[path.goal]))
    plans = [test.plan(model, bound) for test in begun if test.bound <= bound]
    plans.append(new_test(tests, model, path, bound, share, tail))
    plans = [plan for plan in plans if plan.n_episodes < math.inf]
    return min(plans, key=lambda plan: plan.travel, default=None)


def new_test(
    tests: EpisodeTests, model: IntervalModel, path: GoalValues, bound: float, share: float, tail: float | None = None
) -> EpisodePlan:
    """A test to begin, of the policy of a path; the other arguments are those of `cheapest_test` and `EpisodeTest`."""
    tail = 1.0 + bound if tail is None else tail
    longest = math.ceil(min(LONGEST * bound + 10, LONGEST_HORIZON))
    arrivals = arrivals_by_frequency(model, path.goal, path.policy, longest)
    forecast = forecast_horizon(arrivals, bound, tail)
    goal = int(model.numbers[path.goal])
    line, turn, level = tests.next_place(goal, share)
    policy = along(model, path).policy if model.is_large else path.policy
    states = np.flatnonzero(policy != RESET_PAIR)
    test = EpisodeTest(
        goal=goal,
        states=states,
        actions=policy[states] - model.rows.state_pairs[states],
        horizon=forecast.horizon,
        bound=bound,
        tail=tail,
        line=line,
        turn=turn,
        level=level,
        bets=focused_bets(max(forecast.fraction, 1e-6)),
        outcomes=np.zeros(forecast.horizon + 2, dtype=np.int64),
    )
    return test._plan(arrivals[: forecast.horizon + 1], bound)


def arrivals_by_frequency(model: IntervalModel, goal: int, policy: IntArray, steps: int) -> FloatArray:
    """The chance to arrive after exactly 0, 1, ..., `steps` steps if frequencies were probabilities, [steps + 1]."""
    rows = model.rows.row_offsets, model.rows.successors, model.rows.frequencies
    return arrival_times(*rows, policy, goal=goal, n_states=len(model.numbers), steps=steps)
