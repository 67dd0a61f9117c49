"""Supervision of a system: every reset must lead to the same state, and a system that fails is restarted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from axplore.errors import (
    AxploreError,
    InvalidAnswerError,
    InvalidInputError,
    TooManyFaultsError,
    UnfixedStartError,
    WorldError,
)
from axplore.labels import clipped, shortened
from axplore.records.findings import Fault, FaultKind
from axplore.records.order import Labels
from axplore.types import Action, State
from axplore.worlds.orders import LARGEST, order_seed
from axplore.worlds.state_labels import check_same_kind, checked_actions, plain_state, with_invalid_state
from axplore.worlds.systems import (
    SYSTEM_ERRORS,
    Factory,
    System,
    SystemAdapter,
    SystemFaultError,
    View,
    adapter_for,
    is_system,
    is_worth_a_line,
    with_virtual_start,
)

START_CHECKS: Final = 5
"""The number of resets with which a new world checks that its start is fixed."""

_most_checks: ContextVar[int] = ContextVar("most_checks", default=LARGEST)


@contextmanager
def few_start_checks(max_steps: int | None) -> Iterator[None]:
    """Lets worlds that are made meanwhile reset their system at most this many times, and in any case once."""
    token = _most_checks.set(LARGEST if max_steps is None else max(1, max_steps))
    try:
        yield
    finally:
        _most_checks.reset(token)


MAX_FAULTS: Final = 100
"""The number of faults that a world recovers from."""

MAX_IDENTICAL_FAULTS: Final = 3
"""The number of identical failures after which an action that has never worked in a state is considered broken."""

OnInvalid: TypeAlias = Literal["error", "state"]
"""What to do with an answer that is not a state: end the exploration, or count it as a state of its own."""

_logger = logging.getLogger("axplore")


@dataclass(frozen=True)
class SystemRecipe:
    """How to make a system.

    Attributes:
        source: a system, or a function that makes one.
        actions: the available actions, if the system does not say.
        virtual_start: whether a virtual start precedes its random start.
        on_invalid: what to do with an answer that is not a state.
    """

    source: System | Factory
    actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None
    virtual_start: bool
    on_invalid: OnInvalid

    @property
    def is_repeatable(self) -> bool:
        """Whether it can make a new system every time."""
        return not is_system(self.source)

    def make(self) -> SystemAdapter:
        """Makes the system."""
        source: Any = self.source
        adapter = adapter_for(source() if self.is_repeatable else source, self.actions)
        if self.virtual_start:
            adapter = with_virtual_start(adapter)
        return with_invalid_state(adapter) if self.on_invalid == "state" else adapter


class SupervisedSystem:
    """A running system that is replaced whenever it fails.

    Attributes:
        adapter: the system that is running.
        step: the method of that system, kept here to save a lookup at every step.
        start: the label of the state that every reset leads to.
        start_actions: the actions of that state.
        start_resets: the number of resets with which the start was checked.
        is_down: whether it failed and there was no room to start another: see `restart`.
        faults: the faults so far.
        max_faults: the number of faults to recover from.
    """

    __slots__ = (
        "_bare", "_faults_before", "_key", "_recipe", "_seed", "_times", "_view",
        "adapter", "faults", "is_down", "max_faults", "start", "start_actions", "start_resets", "step",
    )  # fmt: skip

    def __init__(self, recipe: SystemRecipe, seed: int, max_faults: int, start_checks: int) -> None:
        """Starts the system and resets it a few times; refuses a system that fails already here."""
        self._recipe, self._seed = recipe, seed
        self._key: tuple[int, ...] = ()  # the key of the current order
        self._faults_before = 0
        self._times: Counter[tuple[object, ...]] = Counter()  # the number of times that each fault has happened
        self.max_faults = max_faults
        self._view: View | None = None
        self.faults: list[Fault] = []
        self.is_down = False
        self.start_resets = min(start_checks, _most_checks.get())
        try:
            self._start()
            answer = self.adapter.reset()
            self.start = plain_state(answer, "reset")
            self.start_actions = checked_actions(self.start, self.adapter.actions(answer))
            for _ in range(self.start_resets - 1):
                self._check_start(self.adapter.reset())
        except AxploreError:
            raise
        except SYSTEM_ERRORS as error:
            raise WorldError(f"the system cannot be started and reset: {_describe(error)}") from error
        if not self.start_actions:
            raise InvalidInputError(
                f"nothing can be explored: the start, {shortened(self.start)}, offers no actions. Is `actions` empty, "
                "or does is_terminal(state) call it terminal?"
            )

    def begin(self, key: tuple[int, ...], steps: int, room: int) -> int:
        """Gives the noise the stream of an order, and starts another system if there is none or this one fails.

        Args:
            key: the key of the order.
            steps: the steps of the world.
            room: the number of resets that are possible.

        Returns:
            The number of resets with which another system was started; the last stands in the initial state.
        """
        self._key = key
        self._faults_before = len(self.faults)
        if self.is_down:
            return self._restart(steps, room)
        if not self.adapter.can_be_reseeded:
            return 0
        try:
            self.adapter.reseed(order_seed(self._seed, *key))
        except WorldError:
            raise
        except SYSTEM_ERRORS as error:
            return self.recover(error, None, None, steps, room)
        return 0

    def relabel(self, view: View | None) -> None:
        """Sees the system through a view from the next RESET on; without one, as it is."""
        self._view = view
        self._adapt()

    def reset(self, steps: int, room: int, *, check_actions: bool = False) -> int:
        """Resets the system; one that fails is replaced by another, which then stands in the initial state.

        Args:
            steps: the steps of the world, including this one.
            room: the number of further resets that are possible.
            check_actions: whether to see that the start still offers the same actions.

        Returns:
            The number of further resets that it took.
        """
        try:
            answer = self.adapter.reset()
            self._check_start(answer)
            if check_actions:
                self.check_actions(self.start, answer, self.start_actions)
        except WorldError:
            raise
        except SYSTEM_ERRORS as error:
            return self.recover(error, None, None, steps, room)
        return 0

    def check_actions(self, state: State, answer: State, before: tuple[Action, ...]) -> None:
        """Refuses a state just entered that offers other actions than it did before, in whatever order.

        Args:
            state: the state.
            answer: the same as the system gave it.
            before: the actions that it offered when it was first entered.
        """
        now = tuple(self.adapter.actions(answer))
        if now != before and set(checked_actions(state, now)) != set(before):
            raise WorldError(
                f"state {shortened(state)} has the actions {list(before)} at one time and {list(now)} at another, so "
                "that what is proven of the one would say nothing of the other: let the states tell the two apart"
            )

    def recover(
        self,
        error: BaseException,
        state: State | None,
        action: Action | None,
        steps: int,
        room: int,
        has_worked: bool = True,
    ) -> int:
        """Replaces a system that failed by another, which stands in the initial state; or leaves it down.

        Args:
            error: how it failed.
            state, action: the pair that was being played; None if it was being reset.
            steps: the steps of the world, including that one.
            room: the number of resets that are possible; if they do not suffice, the system is down.
            has_worked: whether the same action has worked in the same state.

        Returns:
            The number of resets that it took.

        Raises:
            InvalidAnswerError: its answer was not a state, which a new system would not change.
            WorldError: there were too many faults, or another system cannot be made.
        """
        self._note(error, state, action, steps, has_worked)
        with suppress(*SYSTEM_ERRORS):
            self.adapter.close()
        return self._restart(steps, room)

    def _restart(self, steps: int, room: int) -> int:
        """Starts another system, which stands in the initial state; returns the number of resets that it took."""
        self.is_down = True
        for n_resets in range(1, room + 1):
            try:
                self._start()
                self._check_start(self.adapter.reset())
            except WorldError:
                raise
            except SYSTEM_ERRORS as error:
                self._note(error, None, None, steps, has_worked=True)
                with suppress(*SYSTEM_ERRORS):
                    self.adapter.close()
                continue
            self.is_down = False
            return n_resets
        return max(0, room)

    def _start(self) -> None:
        self._bare = self._recipe.make()
        self._adapt()
        # A stream of its own: the failed system has used a part of the stream of the order.
        self.adapter.reseed(order_seed(self._seed, *self._key, len(self.faults) - self._faults_before))

    def _adapt(self) -> None:
        """Puts the view, if there is one, between the system and the world."""
        bare = self._bare
        self.adapter: SystemAdapter = bare if self._view is None else self._view(bare)
        self.step = self.adapter.step

    def _check_start(self, answer: State) -> None:
        if type(answer) is type(self.start) and answer == self.start:
            check_same_kind(self.start, answer)
            return
        label = plain_state(answer, "reset")
        if label == self.start:
            check_same_kind(self.start, label)
        else:
            raise UnfixedStartError(
                f"resets land in different states, {shortened(self.start)} and {shortened(label)}, so RESET is "
                "not what every proof assumes. Fix the start, or put a virtual state before it: "
                "start='virtual' (a Gymnasium environment also takes start='pinned')"
            )

    def _note(
        self, error: BaseException, state: State | None, action: Action | None, steps: int, has_worked: bool
    ) -> None:
        """Records a fault; raises if a new system would not help, or cannot be made."""
        kind = error.kind if isinstance(error, SystemFaultError) else FaultKind.RAISED
        is_unplayed = kind is FaultKind.CLOSED or (state is None and action is None)
        pair = None if is_unplayed else Labels([state, action])
        fault = Fault(kind, _describe(error), pair, steps)
        self.faults.append(fault)
        if kind is FaultKind.INVALID:
            raise InvalidAnswerError(
                f"{fault}. Fix it, or set on_invalid='state' to count such answers as a state of their own"
            ) from error
        if not self._recipe.is_repeatable:
            raise WorldError(f"{fault}. Give the world a factory, so that it can restart the system") from error
        if len(self.faults) > self.max_faults:
            raise TooManyFaultsError(
                f"{fault}. That is fault {len(self.faults)}; {self.max_faults} are allowed"
            ) from error
        self._times[kind, state, action] += 1
        self._times[kind, state, action, fault.message] += 1
        if not has_worked and self._times[kind, state, action, fault.message] >= MAX_IDENTICAL_FAULTS:
            raise TooManyFaultsError(
                f"{fault}. It has failed {MAX_IDENTICAL_FAULTS} times in the same way, and has never worked: fix it, "
                "or offer the action only where it works"
            ) from error
        n_times = self._times[kind, state, action]
        if is_worth_a_line(n_times):
            often = "" if n_times == 1 else f", number {n_times} of this kind at this action"
            _logger.warning("%s; restarting it (fault %d%s)", fault, len(self.faults), often)


def _describe(error: BaseException) -> str:
    """Returns what a failure says of itself, cut to a length that can be shown."""
    return clipped(
        str(error) if isinstance(error, SystemFaultError | AxploreError) else f"{type(error).__name__}: {error}"
    )
