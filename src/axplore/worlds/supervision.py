"""A system that is watched: every reset must lead to one state, and a system that fails is started again."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from contextlib import suppress
from typing import Final

from axplore.errors import AxploreError, TooManyFaultsError, UnfixedStartError, WorldError
from axplore.types import Action, State
from axplore.worlds.contract import Fault, FaultKind
from axplore.worlds.order_checks import order_seed
from axplore.worlds.systems import SystemAdapter, SystemFaultError, SystemRecipe

START_CHECKS: Final = 5
"""The number of resets by which a new world sees whether its start is fixed."""

MAX_FAULTS: Final = 100
"""The number of faults that a world recovers from."""

_logger = logging.getLogger("axplore")


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
        "_faults_before", "_key", "_recipe", "_seed", "adapter", "faults", "max_faults", "start", "start_actions",
        "step",
    )  # fmt: skip

    def __init__(self, recipe: SystemRecipe, seed: int, max_faults: int, start_checks: int) -> None:
        """Starts the system and resets it a few times; a system that fails even here is refused."""
        self._recipe, self._seed = recipe, seed
        self._key: tuple[int, ...] = ()  # of the current order
        self._faults_before = 0
        self.max_faults = max_faults
        self.faults: list[Fault] = []
        try:
            self._start()
            self.start: State = self.adapter.reset()
            check_label(self.start)
            self.start_actions = self.adapter.actions(self.start)
            for _ in range(start_checks - 1):
                self._check_start(self.adapter.reset())
        except AxploreError:
            raise
        except Exception as error:
            raise WorldError(f"the system cannot be started and reset: {_told(error)}") from error

    def begin(self, key: tuple[int, ...], steps: int) -> bool:
        """Gives the noise the stream of an order; returns whether the system failed at that and was started again."""
        self._key = key
        self._faults_before = len(self.faults)
        try:
            self.adapter.reseed(order_seed(self._seed, *key))
        except WorldError:
            raise
        except Exception as error:
            self.recover(error, None, None, steps)
            return True
        return False

    def reset(self, steps: int) -> None:
        """Resets the system; one that fails is replaced by another, which stands where the reset was to lead.

        Args:
            steps: the steps of the world, this one included.
        """
        try:
            self._check_start(self.adapter.reset())
        except WorldError:
            raise
        except Exception as error:
            self.recover(error, None, None, steps)

    def recover(self, error: Exception, state: State | None, action: Action | None, steps: int) -> None:
        """Replaces a system that failed by another, which stands in the initial state.

        Args:
            error: how it failed.
            state, action: what it was doing; None if it was being reset.
            steps: the steps of the world, that one included.

        Raises:
            WorldError: there were too many faults, or there is no way to make another system.
        """
        while True:
            self._note(error, state, action, steps)
            with suppress(Exception):
                self.adapter.close()
            try:
                self._start()
                self._check_start(self.adapter.reset())
            except WorldError:
                raise
            except Exception as another:
                error, state, action = another, None, None
                continue
            return

    def _start(self) -> None:
        self.adapter: SystemAdapter = self._recipe.make()
        self.step = self.adapter.step
        # A stream that no system had before: not that of the order, of which a failed one has used a part.
        self.adapter.reseed(order_seed(self._seed, *self._key, len(self.faults) - self._faults_before))

    def _check_start(self, label: State) -> None:
        check_label(label)
        if label != self.start:
            raise UnfixedStartError(
                f"resets land in different states, {self.start!r} and {label!r}, so that RESET is not what every "
                "proof takes it for. Fix the start, or let a virtual state stand before it: start='virtual' "
                "(a Gymnasium environment also takes start='pinned')"
            )

    def _note(self, error: Exception, state: State | None, action: Action | None, steps: int) -> None:
        """Counts a fault; gives up if there were too many, or if there is no way to start again."""
        kind = error.kind if isinstance(error, SystemFaultError) else FaultKind.RAISED
        fault = Fault(kind, _told(error), state, action, steps)
        self.faults.append(fault)
        if not self._recipe.is_repeatable:
            raise WorldError(f"{fault}. Give the world a factory, and it starts the system again") from error
        if len(self.faults) > self.max_faults:
            raise TooManyFaultsError(
                f"{fault}. That is fault {len(self.faults)}; {self.max_faults} are allowed"
            ) from error
        _logger.warning("%s; starting it again (fault %d)", fault, len(self.faults))


def check_label(label: Hashable) -> None:
    """Refuses what cannot name a state."""
    try:
        hash(label)
    except TypeError:
        hint = "return the state alone" if isinstance(label, tuple) else "turn it into numbers, text or tuples"
        raise SystemFaultError(FaultKind.INVALID, f"the state {label!r} cannot be hashed; {hint}") from None
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
