"""A world that steps a real system: anything that can be reset and stepped.

It carries out the same orders as a simulated world, with the same meaning. What a real system adds:

- Its reset must land in one state. That is checked when the world is made and at every reset after it.
- It may fail: raise, hang, die, or give a state that is none. What it was doing then is not counted. Where a factory
  was given, the world makes a new system, which stands in the initial state, and goes on; that counts as one step. The
  journey that was interrupted is neither arrived nor cut: it sets out again; an interrupted episode is run again,
  and its outcome is that it missed the goal.
- It may end an episode by itself after so many steps. Then the world resets before that: on a visit or a tour the
  journey counts as cut, and in an episode it is as if the policy had played RESET.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, NoReturn, TypeAlias

import numpy as np

from axplore.errors import AxploreError, InvalidSettingError, TooManyFaultsError, UnfixedStartError, WorldError
from axplore.types import Action, State
from axplore.worlds.contract import (
    NOWHERE,
    Answer,
    Episodes,
    Fault,
    FaultKind,
    Order,
    Tour,
    Visit,
    World,
    WorldSnapshot,
)
from axplore.worlds.order_checks import check_orders, checked_seed, order_seed
from axplore.worlds.systems import (
    Factory,
    System,
    SystemAdapter,
    SystemFaultError,
    adapter_for,
    is_system,
    with_virtual_start,
)
from axplore.worlds.tally import DiscoveredStates, Tally
from axplore.worlds.tour_progress import TourProgress

START_CHECKS: Final = 5
"""How often a new world is reset to see whether its start is fixed."""

MAX_FAULTS: Final = 100
"""After so many faults a world gives up."""

Start: TypeAlias = Literal["fixed", "virtual"]

_logger = logging.getLogger("axplore")


class _InterruptedJourneyError(Exception):
    """The system failed and was started again: the agent stands in the initial state."""


class SteppedWorld(World):
    """A system as a `World`."""

    def __init__(
        self,
        system: System | Factory,
        seed: int = 0,
        *,
        actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None = None,
        start: Start = "fixed",
        max_episode_steps: int | None = None,
        max_faults: int = MAX_FAULTS,
        start_checks: int = START_CHECKS,
    ) -> None:
        """Resets the system a few times, and leaves the agent in the initial state.

        Args:
            system: what to step (see `systems`), or a function without arguments that makes one. With a function, a
                system that fails is made again.
            seed: of the noise, if the system can be reseeded.
            actions: what can be played: a sequence, or a function of the state just entered. The system's own
                `actions` when not given.
            start: `fixed` refuses a reset that lands in different states; `virtual` puts a state before it, whose one
                action leads to wherever the reset lands.
            max_episode_steps: the step after which the system ends an episode by itself; it is never reached.
            max_faults: after so many faults the world gives up.
            start_checks: how often to reset at first.
        """
        _check_settings(start, max_episode_steps, max_faults, start_checks)
        self._seed = checked_seed(seed)
        self._factory: Factory | None = None if is_system(system) else system  # type: ignore[assignment]
        self._given_actions = actions
        self._virtual = start == "virtual"
        self._max_episode_steps = max_episode_steps
        self._steps_between_resets = math.inf if max_episode_steps is None else max_episode_steps - 1
        self._max_faults = max_faults
        self._faults: list[Fault] = []
        self._steps = self._calls = 0
        self._stream: tuple[int, ...] = ()  # the key of the current order
        self._faults_before = 0
        self._tally = Tally()
        self._discovered = DiscoveredStates()
        self._labels, self._actions = self._discovered.labels, self._discovered.actions
        self._numbers = self._discovered.numbers
        self._position = 0
        self._needs_reset = False
        self._deadline = self._steps_between_resets
        self._begin(system if self._factory is None else self._factory, start_checks)

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by number; the initial state is the first."""
        return self._labels

    @property
    def steps(self) -> int:
        """How many steps were taken so far, RESET included."""
        return self._steps

    @property
    def repeatable(self) -> bool:
        """Whether the noise of the system follows the streams of orders."""
        return self._adapter.can_be_reseeded

    @property
    def max_faults(self) -> int:
        """After so many faults the world gives up."""
        return self._max_faults

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults so far, after each of which the system was started again."""
        return tuple(self._faults)

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """The actions of a discovered state beside RESET; none if it is terminal."""
        return self._discovered.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and answers each; see `World.carry_out`.

        The random stream of an order is its own only if the system can be reseeded.
        """
        check_orders(orders, self._discovered.action_counts())
        call = self._calls
        self._calls += 1
        return [self._answer(order, call, place) for place, order in enumerate(orders)]

    def replica_factory(self) -> Callable[[], SteppedWorld]:
        """Returns a function that makes worlds like this one, in any process, to carry out batches: see `Replica`.

        Their resets are checked like all others, but the start is not tried first.
        """
        if self._factory is None:
            raise InvalidSettingError(
                "workers make systems of their own, and so need a factory: give a function that makes the system"
            )
        return partial(
            SteppedWorld,
            self._factory,
            self._seed,
            actions=self._given_actions,
            start="virtual" if self._virtual else "fixed",
            max_episode_steps=self._max_episode_steps,
            max_faults=0,
            start_checks=1,
        )

    def learn(self, n_kept: int, states: Sequence[tuple[State, tuple[Action, ...]]]) -> None:
        """Numbers these states from `n_kept` on, and forgets any others from there on."""
        self._discovered.forget(n_kept)
        self._discovered.extend(states)

    def carry_out_batch(self, order: Order, key: Sequence[int], max_faults: int = 0) -> Answer:
        """Carries out an order, or a batch of one, after a RESET, which is a step; see `Replica`."""
        self._needs_reset = True
        self._max_faults = len(self._faults) + max_faults
        return self._answer(order, *key)

    @property
    def position(self) -> int:
        """NOWHERE: a system cannot be put into a state."""
        return NOWHERE

    def snapshot(self) -> WorldSnapshot:
        """Returns what was discovered and how far the world has come."""
        return self._discovered.snapshot(self._steps, self._calls)

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Resumes from a snapshot of the same system. The next order begins with a RESET."""
        self._discovered.restore(snapshot)
        self._steps, self._calls = snapshot.steps, snapshot.calls
        self._needs_reset = True

    def lend(self) -> tuple[SystemAdapter, int | None]:
        """The system itself, for an examination, and the step at which it ends an episode, if there is one.

        Steps taken on it are not counted. The next order begins with a RESET.
        """
        self._needs_reset = True
        return self._adapter, self._max_episode_steps

    def close(self) -> None:
        """Closes the system."""
        self._adapter.close()

    def _begin(self, system: Any, start_checks: int) -> None:
        """Starts the system for the first time; one that fails even here is refused."""
        try:
            self._take(self._adapter_for(system if self._factory is None else system()))
            self._adapter.reseed(self._new_seed())
            self._discover(self._adapter.reset())
            for _ in range(start_checks - 1):
                self._check_start(self._adapter.reset())
        except AxploreError:
            raise
        except Exception as error:
            raise WorldError(f"the system cannot be started and reset: {_told(error)}") from error

    def _answer(self, order: Order, *key: int) -> Answer:
        self._stream = key
        self._faults_before = len(self._faults)
        self._adapter.reseed(order_seed(self._seed, *key))
        self._tally = Tally()
        before = self._steps
        if self._needs_reset:
            self._position = self._reset()
        self._needs_reset = True  # until the order is over: nobody knows where an exception leaves the system
        outcomes: list[int] = []
        match order:
            case Visit():
                outcome = self._visit(order)
            case Episodes():
                outcomes = [0] * (int(order.horizon) + 2)
                outcome = self._run(order, outcomes)
            case Tour():
                outcome = self._tour(order)
        self._needs_reset = False
        return self._tally.answer(self._steps - before, *outcome, outcomes)

    def _visit(self, order: Visit) -> tuple[int, int, int, int]:
        play, reset = self._play, self._reset
        staged = order.policy.ndim == 2
        policies: list[list[int]] = order.policy.tolist() if staged else [order.policy.tolist()]
        planned, target, action = order.policy.shape[-1], int(order.state), int(order.action)
        times, max_journey, max_cuts = int(order.times), int(order.max_journey), int(order.max_cuts)
        position = self._position
        completed = cuts = cuts_in_a_row = journey = 0
        while completed < times and cuts_in_a_row < max_cuts:
            try:
                if staged and journey == 0 and (position != 0 or self._steps >= self._deadline):
                    position = reset()
                elif self._steps >= self._deadline or (journey == max_journey and position != target):
                    cuts, cuts_in_a_row, journey = cuts + 1, cuts_in_a_row + 1, 0
                    if position != 0 or not staged:
                        position = reset()
                elif position == target:
                    position = play(position, action)
                    completed += 1
                    journey = cuts_in_a_row = 0
                else:
                    chosen = policies[journey if staged else 0][position] if position < planned else -1
                    journey += 1
                    position = reset() if chosen < 0 else play(position, chosen)
            except _InterruptedJourneyError:
                position = journey = 0
        self._position = position
        return completed, completed, 0, cuts

    def _run(self, order: Episodes, outcomes: list[int]) -> tuple[int, int, int, int]:
        play, reset = self._play, self._reset
        staged = order.policy.ndim == 2
        policies: list[list[int]] = order.policy.tolist() if staged else [order.policy.tolist()]
        planned, goal = order.policy.shape[-1], int(order.goal)
        times, horizon = int(order.times), int(order.horizon)
        position = self._position
        completed = arrivals = travelled = journey = 0
        while completed < times:
            try:
                if journey == 0 and position != 0:
                    position = reset()
                if position == goal or journey == horizon:
                    arrivals += position == goal
                    outcomes[journey if position == goal else -1] += 1
                    travelled += journey
                    completed += 1
                    journey = 0
                    if travelled > completed * order.allowance + order.slack:
                        break
                    continue
                chosen = policies[journey if staged else 0][position] if position < planned else -1
                journey += 1
                position = reset() if chosen < 0 or self._steps >= self._deadline else play(position, chosen)
            except _InterruptedJourneyError:
                outcomes[-1] += 1  # to forget it would favour short episodes: they are interrupted less often
                position = journey = 0
        self._position = position
        return completed, arrivals, travelled, 0

    def _tour(self, order: Tour) -> tuple[int, int, int, int]:
        play, reset = self._play, self._reset
        itinerary = TourProgress(order)
        waiting, actions = itinerary.waiting, itinerary.actions
        policies, planned = itinerary.policies, itinerary.planned
        times, max_journey, max_cuts = itinerary.outstanding, int(order.max_journey), int(order.max_cuts)
        position = self._position
        heading: int | None = None
        cuts = cuts_in_a_row = journey = 0
        while itinerary.outstanding and cuts_in_a_row < max_cuts:
            try:
                target = waiting.get(position)
                if self._steps >= self._deadline or (journey == max_journey and target is None):
                    cuts, cuts_in_a_row, journey, heading = cuts + 1, cuts_in_a_row + 1, 0, None
                    position = reset()
                elif target is not None:
                    chosen = itinerary.next_play(target)
                    successor = play(position, actions[chosen])
                    itinerary.strike_off(chosen, position)
                    position, heading = successor, None
                    journey = cuts_in_a_row = 0
                else:
                    journey += 1
                    if heading is None:
                        heading = itinerary.nearest_from(position)
                    chosen = policies[heading][position] if position < planned else -1
                    position = reset() if chosen < 0 else play(position, chosen)
            except _InterruptedJourneyError:
                position, journey, heading = 0, 0, None
        self._position = position
        completed = times - itinerary.outstanding
        return completed, completed, 0, cuts

    def _play(self, position: int, action: int) -> int:
        """Plays an action, counts the transition and returns the number of the state it led to."""
        self._steps += 1
        try:
            label = self._step(self._actions[position][action])
        except WorldError:  # it said itself that it cannot be explored; a new one could not either
            raise
        except Exception as error:
            self._start_again(error, position, action)
        try:
            successor = self._numbers[label]
        except KeyError:
            try:
                successor = self._discover(label)
            except WorldError:
                raise
            except Exception as error:
                self._start_again(error, position, action)
        except TypeError:
            self._start_again(_unhashable(label), position, action)
        pair = (position, action)
        try:
            self._tally.rows[pair][successor] += 1
        except KeyError:
            self._tally.note_first(pair, successor)
        return successor

    def _reset(self) -> int:
        """Resets the system, and returns the number of the initial state, 0."""
        self._steps += 1
        self._deadline = self._steps + self._steps_between_resets
        try:
            label = self._adapter.reset()
            self._check_start(label)
        except WorldError:
            raise
        except Exception as error:
            with suppress(_InterruptedJourneyError):  # it stands where the reset was to lead
                self._start_again(error, None, None)
        return 0

    def _discover(self, label: State) -> int:
        """Numbers a state that was just entered for the first time."""
        _check_label(label)
        return self._discovered.add(label, self._adapter.actions(label))

    def _check_start(self, label: State) -> None:
        _check_label(label)
        if self._numbers.get(label) != 0:
            raise UnfixedStartError(
                f"resets land in different states, {self._labels[0]!r} and {label!r}, so that RESET is not what every "
                "proof takes it for. Fix the start, or let a virtual state stand before it: start='virtual' "
                "(a Gymnasium environment also takes start='pinned')"
            )

    def _start_again(self, error: Exception, position: int | None, action: int | None) -> NoReturn:
        """Replaces a system that failed; the journey it was on is lost."""
        while True:
            self._note_fault(error, position, action)
            with suppress(Exception):
                self._adapter.close()
            try:
                assert self._factory is not None
                self._take(self._adapter_for(self._factory()))
                self._adapter.reseed(self._new_seed())
                self._check_start(self._adapter.reset())
            except WorldError:
                raise
            except Exception as another:
                error, position, action = another, None, None
                continue
            self._deadline = self._steps + self._steps_between_resets
            raise _InterruptedJourneyError

    def _note_fault(self, error: Exception, position: int | None, action: int | None) -> None:
        """Counts a fault; gives up if there were too many, or if there is no way to start again."""
        kind = error.kind if isinstance(error, SystemFaultError) else FaultKind.RAISED
        label = None if position is None else self._labels[position]
        name = None if position is None or action is None else self._actions[position][action]
        fault = Fault(kind, _told(error), label, name, self._steps)
        self._faults.append(fault)
        if self._factory is None:
            raise WorldError(f"{fault}. Give the world a factory, and it starts the system again") from error
        if len(self._faults) > self._max_faults:
            raise TooManyFaultsError(
                f"{fault}. That is fault {len(self._faults)}; {self._max_faults} are allowed"
            ) from error
        _logger.warning("%s; starting it again (fault %d)", fault, len(self._faults))

    def _adapter_for(self, system: Any) -> SystemAdapter:
        handle = adapter_for(system, self._given_actions)
        return with_virtual_start(handle) if self._virtual else handle

    def _new_seed(self) -> np.random.SeedSequence:
        """Of a stream that no system had before: not that of the order, of which a failed one has used a part."""
        return order_seed(self._seed, *self._stream, len(self._faults) - self._faults_before)

    def _take(self, handle: SystemAdapter) -> None:
        self._adapter = handle
        self._step = handle.step


def _check_settings(start: str, max_episode_steps: int | None, max_faults: int, start_checks: int) -> None:
    if start not in ("fixed", "virtual"):
        raise InvalidSettingError(f"start is {start!r}; it must be 'fixed' or 'virtual'")
    if max_episode_steps is not None and max_episode_steps < 2:
        raise InvalidSettingError(f"max_episode_steps is {max_episode_steps}; it must be 2 or more, or None")
    if max_faults < 0 or start_checks < 1:
        raise InvalidSettingError(
            f"max_faults is {max_faults} and start_checks is {start_checks}; they must be at least 0 and 1"
        )


def _check_label(label: Hashable) -> None:
    """Refuses what cannot name a state."""
    try:
        hash(label)
    except TypeError:
        raise _unhashable(label) from None
    if _has_nan(label):
        raise SystemFaultError(
            FaultKind.INVALID, f"the state {label!r} holds NaN, which equals nothing, not even itself"
        )


def _has_nan(label: object) -> bool:
    if isinstance(label, tuple):
        return any(map(_has_nan, label))
    return bool(label != label)  # noqa: PLR0124 (true of NaN alone)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SystemFaultError | AxploreError) else f"{type(error).__name__}: {error}"


def _unhashable(label: object) -> SystemFaultError:
    hint = "return the state alone" if isinstance(label, tuple) else "turn it into numbers, text or tuples"
    return SystemFaultError(FaultKind.INVALID, f"the state {label!r} cannot be hashed; {hint}")
