"""How the doctor walks through a system, what it records on the way, and how it explains what it found.

The explanation says whether a step after the reset, or what happened before it, separates the two ways in which a pair
behaved. It only chooses the words of a finding that a test has already made; it raises no alarm itself.
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

from axplore.labels import clipped, shortened
from axplore.statistics.dependence import HomogeneityTest, TimingTest
from axplore.types import Action, IntArray, State
from axplore.worlds.state_labels import checked_actions, plain_state
from axplore.worlds.systems import SYSTEM_ERRORS, SystemAdapter, SystemFaultError

Pair: TypeAlias = tuple[State, Action]

LONG_JOURNEY: Final = 100
"""Number of steps after which a journey should have met some state twice."""


class Question(Enum):
    """What a successor may depend on besides its pair; the value describes it in a finding."""

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
        state, action: the pair that was played.
        age: the number of steps since the reset, including this one.
        message: the error.
    """

    state: State
    action: Action
    age: int
    message: str


@dataclass(frozen=True)
class Change:
    """A state that offered different actions than before.

    Attributes:
        state: the state.
        age: the number of steps since the reset.
        before: the actions it had offered; none if it was terminal.
        now: the actions it offers this time.
    """

    state: State
    age: int
    before: tuple[Action, ...]
    now: tuple[Action, ...]


class LimitReachedError(Exception):
    """Raised in place of a step that a limit leaves no room for."""


class BrokenSystemError(Exception):
    """Raised if the system cannot be reset, or gives an answer that cannot be a state."""


def _is_in(answer: State, known: Container[State]) -> bool:
    try:
        return answer in known
    except TypeError:  # not hashable
        return False


class Probe:
    """An agent that walks through a system and tests at every step whether it depends on more than its pair."""

    def __init__(
        self, handle: SystemAdapter, rng: np.random.Generator, false_alarm: float, max_steps: int, seconds: float
    ):
        """Prepares the walk, without resetting yet.

        Args:
            handle: the system.
            rng: the source of the actions played.
            false_alarm: the probability of a false alarm of all tests together.
            max_steps, seconds: the limits. No step begins after either.
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
        self.new_at: list[int] = []  # the steps at which states were first met
        self.long_journeys = self.journeys_with_repeats = 0
        self.suspected_limit = 0
        self.replays_followed = self.replays_left = 0  # steps that met what was foreseen, and those that did not
        self.draws: list[Draw] = []
        self.state: State = None
        self.actions: tuple[Action, ...] = ()
        self._returns: Counter[Pair] = Counter()  # to the start
        self._excess: defaultdict[int, float] = defaultdict(
            float
        )  # returns at each age beyond what their pairs lead to expect
        self._last_pair: Pair | None = None
        self._last_outcomes: dict[Pair, State] = {}  # of this episode
        self._met: set[State] = set()  # in this episode
        self._repeated = False

    @property
    def spent(self) -> bool:
        """Whether a limit is reached."""
        return self.steps >= self._max_steps or time.perf_counter() >= self._ends

    def _stay_within_limits(self) -> None:
        if self.spent:
            raise LimitReachedError

    @property
    def seconds(self) -> float:
        """The seconds since the beginning."""
        return time.perf_counter() - self._began

    def reset(self) -> None:
        """Begins an episode."""
        self._close_journey()
        self._stay_within_limits()
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
        """Plays an action and records the outcome; returns whether the system answered.

        Args:
            action: one of `actions`.
            foreseen: the state that an earlier episode met here, if this one has followed it so far.
        """
        self._stay_within_limits()
        self.steps += 1
        self.age += 1
        pair = (self.state, action)
        try:
            successor = self._adapter.step(action)
        except SYSTEM_ERRORS as error:
            self.failures.append(Failure(self.state, action, self.age, clipped(f"{type(error).__name__}: {error}")))
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
        """Runs an episode of at most `length` random actions; returns the actions and the states met."""
        self.reset()
        path: list[tuple[Action, State]] = []
        while self.actions and len(path) < length and not self.spent:
            action = self.actions[self._rng.integers(len(self.actions))]
            if not self.step(action):
                break
            path.append((action, self.state))
        return path

    def replay(self, path: list[tuple[Action, State]]) -> None:
        """Repeats the actions of an earlier episode for as long as the same states are met."""
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
            actions = tuple(self._adapter.actions(state))
            if is_new or actions != self.offered[state]:
                actions = checked_actions(state, actions)
        except SystemFaultError as error:
            raise BrokenSystemError(f"Its answer is not a state: {error}.") from error
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
        """Passes a step to the tests. They rely on every context being known before the step."""
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
        if pair[0] == start:  # staying there is not a return
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
"""Number of steps tried first; those around the best one are tried next."""

WINDOW: Final = 8
"""The change must show within this share of the step before and after it."""


def change_point(draws: Sequence[Draw]) -> int | None:
    """Returns the step after a reset from which on pairs lead elsewhere; None if that does not explain everything.

    If a hidden variable changes in the course of an episode, some step explains part of it. But then little changes
    right at that step, or what the agent did before explains more on either side of it.
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
    """Returns the gain in log-likelihood if each pair has one distribution per context; all arrays are [n].

    The Bayesian information criterion is subtracted for the additional parameters.
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
    """Returns an index for each combination, [n]."""
    return first * (int(second.max(initial=0)) + 1) + second


def _counts(values: IntArray) -> IntArray:
    return np.unique(values, return_counts=True)[1]


def _sum_x_log_x(counts: IntArray) -> float:
    return float((counts * np.log(counts)).sum())
