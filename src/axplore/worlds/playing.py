"""Plays one policy on one world, episode by episode.

A system that can be followed outside orders is asked for one episode at a time, and the policy for every step of it:
such a policy may roll dice and remember. Other worlds take orders. There the policy is asked once for each state and
step, as soon as the world shows the state, and the world must have met the goal before an order can name it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from axplore.errors import OrdersCutError
from axplore.types import RESET, RESET_ACTION, Action, IntArray, Reset, State
from axplore.worlds.contract import Answer, Episodes, Examinable, Miss, Restarts, Visit, World
from axplore.worlds.walkers import choice_among

LARGEST_BATCH: Final = 64
"""The most episodes in a call of a world."""

PLAYS: Final = 8
MAX_CUTS: Final = 3
"""Used to lead a world to a goal that it has not shown: the number of times that a pair of the policy is played before
the next one, and the cut journeys in a row after which the next one is tried."""


@dataclass(frozen=True)
class PlayedPolicy:
    """What a policy plays.

    Attributes:
        choose: returns the action, given the label of the state and the number of steps of the episode so far.
        period: the number of steps after which it starts again, if it depends on them.
    """

    choose: Callable[[State, int], Action | Reset]
    period: int = 1


@dataclass(frozen=True, eq=False)
class Episode:
    """An episode that was played.

    Attributes:
        outcome: its steps to the goal, or why there are none.
        answer: what the world answered, with the transitions drawn.
    """

    outcome: int | Miss
    answer: Answer

    @property
    def has_arrived(self) -> bool:
        """Whether it reached the goal."""
        return not isinstance(self.outcome, Miss)

    @property
    def least_steps(self) -> int:
        """The steps to the goal that it takes at least, as far as is known: up to where it was cut."""
        match self.outcome:
            case Miss.LATE:
                return self.answer.travelled
            case Miss.CUT:
                return int(self.answer.pair_draws.sum())
            case Miss.ENDED | Miss.LOST:
                return 0
            case steps:
                return steps


Noticing: TypeAlias = Callable[[Answer], None]
"""Is told what a world answered."""


class Player(ABC):
    """Plays a policy on a world."""

    def __init__(
        self, world: World, policy: PlayedPolicy, goal: State, horizon: int, restarts: Restarts, notice: Noticing
    ) -> None:
        self._world, self._policy, self._goal = world, policy, goal
        self._horizon, self._restarts, self._notice = horizon, restarts, notice
        self._before = world.steps

    @property
    def steps(self) -> int:
        """The steps of the world since the player was made."""
        return self._world.steps - self._before

    @abstractmethod
    def meet(self, max_tries: float = math.inf, max_steps: float = math.inf) -> bool:
        """Plays the policy until the world has shown the goal; returns whether it has.

        Args:
            max_tries: the number of episodes, or of visits to each pair of the policy, after which it gives up.
            max_steps: the steps after which it gives up.
        """

    @abstractmethod
    def play(self, times: int) -> list[Episode]:
        """Plays a number of episodes from RESET. A world that takes orders must have met the goal."""

    @abstractmethod
    def episodes(self, max_steps: float) -> Iterator[Episode]:
        """Yields episodes until the steps are used up, a limit of the world cuts one, or the goal cannot be met."""

    def play_through(self, times: int) -> list[Episode]:
        """Plays a number of episodes; all of them again if one is lost because the world showed a state only then."""
        while True:
            n_shown = len(self._world.states)
            played = self.play(times)
            if len(self._world.states) == n_shown or all(episode.outcome is not Miss.LOST for episode in played):
                return played


def player_of(
    world: World,
    policy: PlayedPolicy,
    goal: State,
    horizon: int,
    restarts: Restarts,
    notice: Noticing = lambda _: None,
) -> Player:
    """Returns what plays a policy on a world.

    Args:
        world: where to play.
        policy: what to play.
        goal: the label of the state to reach.
        horizon: the steps after which an episode ends.
        restarts: whether an episode continues after a RESET before the goal.
        notice: is told every answer of the world, of episodes and of the ways to a goal that it has not shown.
    """
    system = world.examinable
    if system is None:
        return _PlayerByOrders(world, policy, goal, horizon, restarts, notice)
    return _PlayerOfSystem(system, policy, goal, horizon, restarts, notice)


class _PlayerOfSystem(Player):
    """Plays on a system that can be followed: the policy is asked at every step."""

    def __init__(
        self, world: Examinable, policy: PlayedPolicy, goal: State, horizon: int, restarts: Restarts, notice: Noticing
    ) -> None:
        super().__init__(world, policy, goal, horizon, restarts, notice)
        self._system = world

    def meet(self, max_tries: float = math.inf, max_steps: float = math.inf) -> bool:
        tries = 0
        while self._goal not in self._world.states and tries < max_tries and self.steps < max_steps:
            self._episode()
            tries += 1
        return self._goal in self._world.states

    def play(self, times: int) -> list[Episode]:
        return [self._episode() for _ in range(times)]

    def episodes(self, max_steps: float) -> Iterator[Episode]:
        with suppress(OrdersCutError):  # see `World.limit`
            while self.steps < max_steps:
                yield self._episode()

    def _episode(self) -> Episode:
        answer = self._system.run_episode(self._policy.choose, self._goal, self._horizon, self._restarts)
        self._notice(answer)
        return Episode(self._outcome(answer), answer)

    def _outcome(self, answer: Answer) -> int | Miss:
        if answer.arrivals:
            return answer.travelled
        if not answer.completed:
            return Miss.LOST
        if answer.cut_journeys:
            return Miss.CUT
        return Miss.ENDED if answer.travelled < self._horizon else Miss.LATE


class _PlayerByOrders(Player):
    """Plays on a world that takes orders, which indexes states in the order in which it met them."""

    def __init__(
        self, world: World, policy: PlayedPolicy, goal: State, horizon: int, restarts: Restarts, notice: Noticing
    ) -> None:
        super().__init__(world, policy, goal, horizon, restarts, notice)
        self._table: list[list[int]] = []  # the choices by state and step
        self._learn()

    def meet(self, max_tries: float = math.inf, max_steps: float = math.inf) -> bool:
        reached = {0}
        waiting = deque(self._pairs_in(0))  # the least tried ones first
        tries: Counter[tuple[int, int]] = Counter()
        while self._goal not in self._world.states:
            if not waiting or tries[waiting[0]] >= max_tries or self.steps >= max_steps:
                return False
            pair = waiting.popleft()
            waiting.append(pair)
            tries[pair] += 1
            for state in self._visit(*pair):
                if state not in reached:
                    reached.add(state)
                    waiting.extendleft(self._pairs_in(state))
        return True

    def play(self, times: int) -> list[Episode]:
        played: list[Episode] = []
        while len(played) < times:
            played += self._batch(min(LARGEST_BATCH, times - len(played)))
        return played

    def episodes(self, max_steps: float) -> Iterator[Episode]:
        size = 1
        with suppress(OrdersCutError):  # a batch that is cut is left out as a whole
            has_met = self.meet(max_steps=max_steps)
            while has_met and self.steps < max_steps:
                yield from self._batch(size)
                size = min(2 * size, LARGEST_BATCH)

    def _batch(self, size: int) -> list[Episode]:
        """Plays a few episodes in one call."""
        goal, n_planned = list(self._world.states).index(self._goal), len(self._table)
        order = Episodes(goal, 1, self._horizon, self._choices(self._horizon), always_reset=True)
        answers = self._world.carry_out([order] * size)
        for answer in answers:
            self._notice(answer)
        self._learn()
        return [Episode(self._outcome(answer, goal, n_planned), answer) for answer in answers]

    def _outcome(self, answer: Answer, goal: int, n_planned: int) -> int | Miss:
        """Returns the outcome of an episode; it is lost if the world reset where the policy would not have."""
        was_interrupted = int(answer.outcomes.sum()) != 1
        fresh = [number for number in answer.entry_successors.tolist() if number >= n_planned]
        if was_interrupted or any(set(self._table[number]) != {RESET_ACTION} for number in fresh if number != goal):
            return Miss.LOST
        # Every step of an episode is a draw or a RESET, and a world goes on after a RESET.
        n_steps = answer.steps - 1 if answer.cut_journeys else answer.travelled
        if self._restarts is Restarts.NEVER and int(answer.pair_draws.sum()) < n_steps:
            return Miss.ENDED
        if answer.cut_journeys:  # with restarts it should have gone on
            return Miss.LOST if self._restarts is Restarts.ALWAYS else Miss.CUT
        return answer.travelled if answer.arrivals else Miss.LATE

    def _visit(self, state: int, action: int) -> list[int]:
        """Plays a pair of the policy a few times, and returns the states that were reached on the way."""
        journey = self._horizon if self._policy.period == 1 else min(self._horizon, self._policy.period)
        visit = Visit(state, action, PLAYS, self._choices(journey), journey, MAX_CUTS)
        (answer,) = self._world.carry_out([visit])
        self._notice(answer)
        self._learn()
        reached: list[int] = answer.entry_successors.tolist()
        return reached

    def _pairs_in(self, state: int) -> list[tuple[int, int]]:
        """Returns the pairs that the policy plays in a state."""
        return [(state, action) for action in sorted(set(self._table[state]) - {RESET_ACTION})]

    def _learn(self) -> None:
        """Asks the policy about the states that the world has shown since."""
        for number in range(len(self._table), len(self._world.states)):
            label, offered = self._world.states[number], self._world.actions_of(number)
            steps = range(self._policy.period)
            actions = [self._policy.choose(label, step) if offered else RESET for step in steps]
            self._table.append([choice_among(offered, action, label) for action in actions])

    def _choices(self, horizon: int) -> IntArray:
        """Returns the choices by state, [n], or by step and state, [horizon, n], if the policy depends on the step."""
        by_step: IntArray = np.array(self._table, dtype=np.int64).T
        if self._policy.period == 1:
            first: IntArray = by_step[0]
            return first
        repeated: IntArray = np.tile(by_step, (-(-horizon // len(by_step)), 1))[:horizon]
        return repeated
