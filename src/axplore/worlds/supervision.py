"""A system that is watched: every reset must lead to one state, and a system that fails is started again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
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
from axplore.labels import shortened
from axplore.types import Action, State
from axplore.worlds.contract import Fault, FaultKind
from axplore.worlds.orders import order_seed
from axplore.worlds.state_labels import checked_actions, plain_state, with_invalid_state
from axplore.worlds.systems import (
    SYSTEM_ERRORS,
    Factory,
    System,
    SystemAdapter,
    SystemFaultError,
    adapter_for,
    is_system,
    is_worth_a_line,
    with_virtual_start,
)

START_CHECKS: Final = 5
"""The number of resets by which a new world sees whether its start is fixed."""

MAX_FAULTS: Final = 100
"""The number of faults that a world recovers from."""

MAX_IDENTICAL_FAULTS: Final = 3
"""An action that has failed so often in the same state and in the same way, and has never worked there, is broken."""

OnInvalid: TypeAlias = Literal["error", "state"]
"""What becomes of a step whose answer is no state: exploring ends, or it leads to a state of its own."""

_logger = logging.getLogger("axplore")


@dataclass(frozen=True)
class SystemRecipe:
    """How to make a system.

    Attributes:
        source: a system, or a function that makes one.
        actions: what can be played, if the system does not say.
        virtual_start: whether a state stands before its random start.
        on_invalid: what becomes of a step whose answer is no state.
    """

    source: System | Factory
    actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None
    virtual_start: bool
    on_invalid: OnInvalid

    @property
    def is_repeatable(self) -> bool:
        """Whether it makes a new system every time."""
        return not is_system(self.source)

    def make(self) -> SystemAdapter:
        """Makes the system."""
        source: Any = self.source
        adapter = adapter_for(source() if self.is_repeatable else source, self.actions)
        if self.virtual_start:
            adapter = with_virtual_start(adapter)
        return with_invalid_state(adapter) if self.on_invalid == "state" else adapter


class SupervisedSystem:
    """A running system, and its replacement whenever it fails.

    Attributes:
        adapter: the system that is running.
        step: of that system; by itself, because looking it up once less makes every step quicker.
        start: the label of the state that every reset leads to.
        start_actions: the actions of that state.
        faults: the failures so far.
        max_faults: the number of them to recover from.
    """

    __slots__ = (
        "_faults_before", "_key", "_recipe", "_seed", "_times",
        "adapter", "faults", "max_faults", "start", "start_actions", "step",
    )  # fmt: skip

    def __init__(self, recipe: SystemRecipe, seed: int, max_faults: int, start_checks: int) -> None:
        """Starts the system and resets it a few times; a system that fails even here is refused."""
        self._recipe, self._seed = recipe, seed
        self._key: tuple[int, ...] = ()  # of the current order
        self._faults_before = 0
        self._times: Counter[tuple[object, ...]] = Counter()  # how often each fault has happened
        self.max_faults = max_faults
        self.faults: list[Fault] = []
        try:
            self._start()
            answer = self.adapter.reset()
            self.start = plain_state(answer, "reset")
            self.start_actions = checked_actions(self.start, self.adapter.actions(answer))
            for _ in range(start_checks - 1):
                self._check_start(self.adapter.reset())
        except AxploreError:
            raise
        except SYSTEM_ERRORS as error:
            raise WorldError(f"the system cannot be started and reset: {_told(error)}") from error
        if not self.start_actions:
            raise InvalidInputError(
                f"nothing can be explored: the start, {shortened(self.start)}, offers no actions. Is `actions` empty, "
                "or does is_terminal(state) call it terminal?"
            )

    def begin(self, key: tuple[int, ...], steps: int) -> bool:
        """Gives the noise the stream of an order; returns whether the system failed at that and was started again."""
        self._key = key
        self._faults_before = len(self.faults)
        try:
            self.adapter.reseed(order_seed(self._seed, *key))
        except WorldError:
            raise
        except SYSTEM_ERRORS as error:
            self.recover(error, None, None, steps)
            return True
        return False

    def reset(self, steps: int, *, check_actions: bool = False) -> None:
        """Resets the system; one that fails is replaced by another, which stands where the reset was to lead.

        Args:
            steps: the steps of the world, this one included.
            check_actions: whether to see that the start still offers the same actions.
        """
        try:
            answer = self.adapter.reset()
            self._check_start(answer)
            if check_actions:
                self.check_actions(self.start, answer, self.start_actions)
        except WorldError:
            raise
        except SYSTEM_ERRORS as error:
            self.recover(error, None, None, steps)

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
        self, error: BaseException, state: State | None, action: Action | None, steps: int, has_worked: bool = True
    ) -> None:
        """Replaces a system that failed by another, which stands in the initial state.

        Args:
            error: how it failed.
            state, action: what it was doing; None if it was being reset.
            steps: the steps of the world, that one included.
            has_worked: whether the same action has worked in the same state.

        Raises:
            InvalidAnswerError: it answered with what is no state, which no new system would mend.
            WorldError: there were too many faults, or there is no way to make another system.
        """
        while True:
            self._note(error, state, action, steps, has_worked)
            with suppress(*SYSTEM_ERRORS):
                self.adapter.close()
            try:
                self._start()
                self._check_start(self.adapter.reset())
            except WorldError:
                raise
            except SYSTEM_ERRORS as another:
                error, state, action, has_worked = another, None, None, True
                continue
            return

    def _start(self) -> None:
        self.adapter: SystemAdapter = self._recipe.make()
        self.step = self.adapter.step
        # A stream that no system had before: not that of the order, of which a failed one has used a part.
        self.adapter.reseed(order_seed(self._seed, *self._key, len(self.faults) - self._faults_before))

    def _check_start(self, answer: State) -> None:
        if type(answer) is type(self.start) and answer == self.start:
            return
        label = plain_state(answer, "reset")
        if label != self.start:
            raise UnfixedStartError(
                f"resets land in different states, {shortened(self.start)} and {shortened(label)}, so that RESET is "
                "not what every proof takes it for. Fix the start, or let a virtual state stand before it: "
                "start='virtual' (a Gymnasium environment also takes start='pinned')"
            )

    def _note(
        self, error: BaseException, state: State | None, action: Action | None, steps: int, has_worked: bool
    ) -> None:
        """Counts a fault; gives up if it is one that no new system would mend, or if there is none to be had."""
        kind = error.kind if isinstance(error, SystemFaultError) else FaultKind.RAISED
        fault = Fault(kind, _told(error), state, action, steps)
        self.faults.append(fault)
        if kind is FaultKind.INVALID:
            raise InvalidAnswerError(
                f"{fault}. Mend it; or say on_invalid='state', and such answers are counted as a state of their own"
            ) from error
        if not self._recipe.is_repeatable:
            raise WorldError(f"{fault}. Give the world a factory, and it starts the system again") from error
        if len(self.faults) > self.max_faults:
            raise TooManyFaultsError(
                f"{fault}. That is fault {len(self.faults)}; {self.max_faults} are allowed"
            ) from error
        self._times[kind, state, action] += 1
        self._times[kind, state, action, fault.message] += 1
        if not has_worked and self._times[kind, state, action, fault.message] >= MAX_IDENTICAL_FAULTS:
            raise TooManyFaultsError(
                f"{fault}. It has failed {MAX_IDENTICAL_FAULTS} times in the same way, and has never worked: mend it, "
                "or offer the action only where it works"
            ) from error
        n_times = self._times[kind, state, action]
        if is_worth_a_line(n_times):
            often = "" if n_times == 1 else f", the {n_times}. of this kind at this action"
            _logger.warning("%s; starting it again (fault %d%s)", fault, len(self.faults), often)


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, SystemFaultError | AxploreError) else f"{type(error).__name__}: {error}"
