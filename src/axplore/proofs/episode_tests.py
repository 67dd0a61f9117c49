"""The tests by episodes that the certified explorer has begun, and what they would take.

A test is of one policy towards one goal, fixed when it begins; only its outcomes change. Tests stand in lines, and a
line has room for a new test only after all its earlier ones were proven: see docs/algorithms/episodes.md. All values
here are immutable; a method that changes something returns a new value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
    EpisodeForecast,
    focused_bets,
    forecast_growth,
    forecast_horizon,
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
        bound: of the expected steps.
        tail: the expected steps that an episode which missed is taken to need beyond the horizon, at least 1 + `bound`,
            as if it restarted. Where the policy needs no more from anywhere, it need not restart at all.
        line, turn: whose level it has, and its index within its line, each counted from 1.
        level: the probability with which it may err.
        bets: the fractions of the wealth that are staked.
        outcomes: how many episodes took 0, 1, ..., `horizon` steps, and how many missed, [horizon + 2].
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

    def __post_init__(self) -> None:
        if self.states.ndim != 1 or self.states.shape != self.actions.shape or (np.diff(self.states) <= 0).any():
            raise InvalidInputError("the policy of a test by episodes does not say once for each state what it plays")
        if self.outcomes.shape != (self.horizon + 2,) or self.bets.weights.ndim != 1:
            raise InvalidInputError("a test by episodes has no outcome for each number of steps up to its horizon")

    @classmethod
    def of(cls, record: EpisodeRecord, goal: int, plays: Mapping[int, int], share: float) -> EpisodeTest:
        """The test that a certificate keeps, of a goal by number, as a policy of other known states may have it.

        Args:
            record: the test.
            goal: the number of its goal.
            plays: what its policy plays in each state in which it does not reset.
            share: the probability with which all tests together may err.
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
            level=line_level(share, record.line),
            bets=Bets(np.array(record.fractions), np.array(record.weights)),
            outcomes=np.array(record.outcomes, dtype=np.int64),
        )

    def record(self, goal: int) -> EpisodeRecord:
        """The test as a certificate keeps it, with the index of the goal in place of its number."""
        return EpisodeRecord(
            goal=goal,
            states=tuple(self.states.tolist()),
            actions=tuple(self.actions.tolist()),
            horizon=self.horizon,
            bound=self.bound,
            tail=self.tail,
            line=self.line,
            turn=self.turn,
            fractions=tuple(self.bets.fractions.tolist()),
            weights=tuple(self.bets.weights.tolist()),
            outcomes=tuple(self.outcomes.tolist()),
        )

    @cached_property
    def lacking(self) -> float:
        """The evidence that is missing for a proof, in nats; 0 or less once it is proven."""
        wealth = log_wealth(losses_if_slower(self.horizon, self.bound, self.tail), self.outcomes, self.bets)
        return -math.log(self.level) - wealth

    @property
    def proven(self) -> bool:
        """Whether the outcomes prove the bound."""
        return self.lacking <= 0

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

    def forecast(self, model: IntervalModel) -> EpisodeForecast:
        """How the wealth would grow by the frequencies."""
        goal = int(np.flatnonzero(model.numbers == self.goal)[0])
        arrivals = arrivals_by_frequency(model, goal, self.pairs(model), self.horizon)
        return forecast_growth(arrivals, self.bound, self.horizon, self.tail)

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
    def _by_goal(self) -> dict[int, list[EpisodeTest]]:
        """The tests of each goal, in the same order."""
        tests: dict[int, list[EpisodeTest]] = {}
        for test in self.begun:
            tests.setdefault(test.goal, []).append(test)
        return tests

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        """The place of each test, by its line and turn."""
        return {(test.line, test.turn): place for place, test in enumerate(self.begun)}

    @cached_property
    def _last_of_lines(self) -> dict[int, int]:
        """The place of the newest test of each line; only that may be undecided."""
        return {test.line: place for place, test in enumerate(self.begun)}

    @cached_property
    def _undecided_below(self) -> int:
        """A line: no line before it has room for a new test."""
        return self.spent + 1

    @property
    def goals(self) -> list[int]:
        """The goals of which there are tests, by their numbers."""
        return list(self._by_goal)

    def proof_of(self, goal: int, steps: float, n_allowed: int | None = None) -> EpisodeTest | None:
        """A test that proves a goal, by its number, to be reached within `steps` expected steps.

        Args:
            goal: a number.
            steps: the most expected steps.
            n_allowed: the number of known states in which the policy may play; all when not given.
        """
        for test in self._by_goal.get(goal, ()):
            allowed = n_allowed is None or test.plays_within(n_allowed)
            if allowed and test.bound <= steps and test.proven:
                return test
        return None

    def proven_of(self, goal: int) -> list[EpisodeTest]:
        """The tests of a goal, by its number, that are proven, the least bound first."""
        return sorted((test for test in self._by_goal.get(goal, ()) if test.proven), key=lambda test: test.bound)

    def open_of(self, goal: int) -> list[EpisodeTest]:
        """The tests of a goal that are not decided."""
        return [test for test in self._by_goal.get(goal, ()) if not test.proven]

    @cached_property
    def line_for_next(self) -> tuple[int, int]:
        """The first line with room for a new test, and which turn of that line it would be."""
        last = self._last_of_lines
        every = range(self._undecided_below, self.spent + len(last) + 2)
        line = next(line for line in every if line not in last or self.begun[last[line]].proven)
        return line, self.begun[last[line]].turn + 1 if line in last else 1

    def given_up(self) -> EpisodeTests:
        """No tests, with all lines that were ever begun spent: what they proved is forgotten, and costs its level."""
        return EpisodeTests(spent=max([self.spent, *(test.line for test in self.begun)]))

    def with_test(self, test: EpisodeTest) -> EpisodeTests:
        """The tests with this one in the place of the one with its line and turn, or as the newest."""
        place = self._places.get((test.line, test.turn))
        if place is not None:
            after = replace(self, begun=(*self.begun[:place], test, *self.begun[place + 1 :]))
            own = [test if (old.line, old.turn) == (test.line, test.turn) else old for old in self._by_goal[test.goal]]
            vars(after).update(_places=self._places, _last_of_lines=self._last_of_lines)
        else:
            after = replace(self, begun=(*self.begun, test))
            own, place = [*self._by_goal.get(test.goal, ()), test], len(self.begun)
            vars(after)["_places"] = {**self._places, (test.line, test.turn): place}
            vars(after)["_last_of_lines"] = {**self._last_of_lines, test.line: place}
        # What follows from the tests is carried over: with thousands of them, finding it anew takes most of a round.
        full = self.line_for_next[0] if "line_for_next" in vars(self) else self._undecided_below
        vars(after)["_undecided_below"] = min(full, test.line)
        vars(after)["_by_goal"] = {**self._by_goal, test.goal: own}
        return after


@dataclass(frozen=True, eq=False)
class EpisodePlan:
    """A test to begin or to continue.

    Attributes:
        test: the test.
        forecast: how its wealth would grow by the frequencies.
    """

    test: EpisodeTest
    forecast: EpisodeForecast

    @property
    def travel(self) -> float:
        """The steps that its proof would take."""
        return self.forecast.steps(self.test.lacking)

    @property
    def n_episodes(self) -> float:
        """The episodes that its proof would take."""
        return self.test.lacking / self.forecast.growth

    def times(self, budget: float) -> int:
        """Returns the number of episodes to run next within a limit on steps."""
        return max(1, math.ceil(min(self.n_episodes, budget / self.forecast.episode_steps)))


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
    number = int(model.numbers[path.goal])
    plans = [EpisodePlan(test, test.forecast(model)) for test in tests.open_of(number) if test.bound <= bound]
    plans.append(new_test(tests, model, path, bound, share, tail))
    plans = [plan for plan in plans if plan.forecast.growth > 0]
    return min(plans, key=lambda plan: plan.travel, default=None)


def new_test(
    tests: EpisodeTests, model: IntervalModel, path: GoalValues, bound: float, share: float, tail: float | None = None
) -> EpisodePlan:
    """A test to begin, of the policy of a path; the other arguments are those of `cheapest_test` and `EpisodeTest`."""
    tail = 1.0 + bound if tail is None else tail
    longest = math.ceil(min(LONGEST * bound + 10, LONGEST_HORIZON))
    forecast = forecast_horizon(arrivals_by_frequency(model, path.goal, path.policy, longest), bound, tail)
    line, turn = tests.line_for_next
    policy = along(model, path).policy if model.is_large else path.policy
    states = np.flatnonzero(policy != RESET_PAIR)
    test = EpisodeTest(
        goal=int(model.numbers[path.goal]),
        states=states,
        actions=policy[states] - model.rows.state_pairs[states],
        horizon=forecast.horizon,
        bound=bound,
        tail=tail,
        line=line,
        turn=turn,
        level=line_level(share, line),
        bets=focused_bets(max(forecast.fraction, 1e-6)),
        outcomes=np.zeros(forecast.horizon + 2, dtype=np.int64),
    )
    return EpisodePlan(test, forecast)


def arrivals_by_frequency(model: IntervalModel, goal: int, policy: IntArray, steps: int) -> FloatArray:
    """The chance to arrive after exactly 0, 1, ..., `steps` steps if frequencies were probabilities, [steps + 1]."""
    rows = model.rows.row_offsets, model.rows.successors, model.rows.frequencies
    return arrival_times(*rows, policy, goal=goal, n_states=len(model.numbers), steps=steps)
