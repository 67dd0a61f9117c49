"""How the doctor walks through a system, what it notes on the way, and how it explains what it found.

The explanation says whether a moment in time, or what came before it, separates the two ways in which a pair behaved.
It only chooses the words of a finding that a test has already made; it raises no alarm of its own.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.labels import shortened
from axplore.statistics.dependence import HomogeneityTest, TimingTest
from axplore.types import Action, IntArray, State
from axplore.worlds.state_labels import checked_actions, plain_state
from axplore.worlds.systems import SYSTEM_ERRORS, SystemAdapter, SystemFaultError

Pair: TypeAlias = tuple[State, Action]

LONG_JOURNEY: Final = 100
"""Steps after which a journey should have met some state twice."""


class Question(Enum):
    """On what else than its pair a successor may depend; the value is how to say it."""

    ORIGIN = "where the agent came from"
    MEMORY = "what the same action in the same state led to before, in the same episode"
    AGE = "how long ago the last reset was"
    REPLAY = "what an earlier episode with the same actions met at the same place"


class Draw(NamedTuple):
    """One step: the pair, what was known before it, and where it led."""

    pair: Pair
    origin: Pair | None
    memory: State | None
    age: int
    successor: State


@dataclass(frozen=True)
class Failure:
    """An action that raised.

    Attributes:
        state, action: what was played, and where.
        age: which step after the reset it was, from 1.
        message: what was raised.
    """

    state: State
    action: Action
    age: int
    message: str


@dataclass(frozen=True)
class Change:
    """A state that offered other actions than before.

    Attributes:
        state: the state.
        age: how many steps after the reset it was entered.
        before: what it had offered; nothing if it was terminal.
        now: what it offers this time.
    """

    state: State
    age: int
    before: tuple[Action, ...]
    now: tuple[Action, ...]


class BrokenSystemError(Exception):
    """The system cannot be reset, or gives what cannot be a state."""


def _is_in(answer: State, known: Container[State]) -> bool:
    try:
        return answer in known
    except TypeError:  # it cannot be hashed
        return False


class Probe:
    """An agent that wanders through a system and asks of every step whether it depended on more than its pair."""

    def __init__(
        self, handle: SystemAdapter, rng: np.random.Generator, false_alarm: float, max_steps: int, seconds: float
    ):
        """Begins before the first reset.

        Args:
            handle: the system.
            rng: for what the agent plays.
            false_alarm: of all tests together.
            max_steps, seconds: when to end; both are soft by one step.
        """
        share = false_alarm / (len(Question) + 1)
        self._adapter, self._rng = handle, rng
        self._max_steps = max_steps
        self._began = time.perf_counter()
        self._ends = self._began + seconds
        self.tests = {question: HomogeneityTest(share) for question in Question}
        self.timing = TimingTest(share)
        self.steps = self.resets = self.age = self.longest = 0
        self.starts: Counter[State] = Counter()
        self.offered: dict[State, tuple[Action, ...]] = {}
        self.worked: Counter[Pair] = Counter()
        self.failures: list[Failure] = []
        self.changes: list[Change] = []
        self.new_at: list[int] = []  # the steps at which states were met first
        self.long_journeys = self.journeys_with_repeats = 0
        self.suspected_limit = 0
        self.replays_followed = self.replays_left = 0  # steps that met what had been foreseen, or did not
        self.draws: list[Draw] = []
        self.state: State = None
        self.actions: tuple[Action, ...] = ()
        self._returns: Counter[Pair] = Counter()  # to the start
        self._excess: defaultdict[int, float] = defaultdict(
            float
        )  # of returns at each age, above what their pairs led to expect
        self._last_pair: Pair | None = None
        self._last_outcomes: dict[Pair, State] = {}  # of this episode
        self._met: set[State] = set()  # in this episode
        self._repeated = False

    @property
    def spent(self) -> bool:
        """Whether it is time to end."""
        return self.steps >= self._max_steps or time.perf_counter() >= self._ends

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self._began

    def reset(self) -> None:
        """Begins an episode."""
        self._close_journey()
        self.steps += 1
        self.resets += 1
        self.age = 0
        self._last_pair = None
        self._last_outcomes = {}
        try:
            state = self._adapter.reset()
        except SYSTEM_ERRORS as error:
            raise BrokenSystemError(f"A reset raised {type(error).__name__}: {error}") from error
        self._enter(state)
        self.starts[state] += 1

    def step(self, action: Action, foreseen: Hashable = None) -> bool:
        """Plays an action and notes what came of it; says whether the system answered.

        Args:
            action: one of `actions`.
            foreseen: what an earlier episode met here, if this one has followed it so far.
        """
        self.steps += 1
        self.age += 1
        pair = (self.state, action)
        try:
            successor = self._adapter.step(action)
        except SYSTEM_ERRORS as error:
            self.failures.append(Failure(self.state, action, self.age, f"{type(error).__name__}: {error}"))
            return False
        origin, memory = self._last_pair, self._last_outcomes.get(pair)
        self._enter(successor)
        self.worked[pair] += 1
        self._ask(pair, origin, memory, foreseen)
        self._time(pair)
        self._last_pair = pair
        self._last_outcomes[pair] = successor
        return True

    def wander(self, length: int) -> list[tuple[Action, State]]:
        """An episode of random actions, so long at most; gives what it played and met."""
        self.reset()
        path: list[tuple[Action, State]] = []
        while self.actions and len(path) < length and not self.spent:
            action = self.actions[self._rng.integers(len(self.actions))]
            if not self.step(action):
                break
            path.append((action, self.state))
        return path

    def replay(self, path: list[tuple[Action, State]]) -> None:
        """An episode with the actions of an earlier one, as long as it meets the same states."""
        self.reset()
        for action, foreseen in path:
            if self.spent or action not in self.actions:
                return
            if not self.step(action, (foreseen,)) or self.state != foreseen:
                return

    def _enter(self, state: State) -> None:
        is_new = not _is_in(state, self.offered)
        try:
            if is_new:
                plain_state(state, "reset" if self.age == 0 else "step")
            actions = checked_actions(state, self._adapter.actions(state))
        except SystemFaultError as error:
            raise BrokenSystemError(f"It answered with what is no state: {error}.") from error
        except SYSTEM_ERRORS as error:
            raise BrokenSystemError(
                f"The state {shortened(state)} cannot be used, {type(error).__name__}: {error}"
            ) from error
        if is_new:
            self.new_at.append(self.steps)
            self.offered[state] = actions
        elif self.offered[state] != actions and set(self.offered[state]) != set(actions):
            self.changes.append(Change(state, self.age, self.offered[state], actions))
        self._repeated |= state in self._met
        self._met.add(state)
        self.state, self.actions = state, actions

    def _ask(self, pair: Pair, origin: Pair | None, memory: State | None, foreseen: Hashable) -> None:
        """Every context was known before the step: the tests hang on that."""
        contexts = {
            Question.ORIGIN: origin,
            Question.MEMORY: memory,
            Question.AGE: self.age.bit_length(),
            Question.REPLAY: foreseen,
        }
        for question, context in contexts.items():
            self.tests[question].add(pair, context, self.state)
        self.draws.append(Draw(pair, origin, memory, self.age, self.state))
        if foreseen is not None:
            self.replays_followed += foreseen == (self.state,)
            self.replays_left += foreseen != (self.state,)

    def _time(self, pair: Pair) -> None:
        start = next(iter(self.starts))
        if pair[0] == start:  # staying there is no return
            return
        returned = self.state == start
        self.timing.add(pair, self.age == self.suspected_limit, returned)
        self._excess[self.age] += returned - (self._returns[pair] + 0.5) / self.worked[pair]
        self._returns[pair] += returned
        if self._excess[self.age] >= self._excess[self.suspected_limit]:
            self.suspected_limit = self.age

    def _close_journey(self) -> None:
        self.longest = max(self.longest, self.age)
        if self.age >= LONG_JOURNEY:
            self.long_journeys += 1
            self.journeys_with_repeats += self._repeated
        self._met = set()
        self._repeated = False


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
