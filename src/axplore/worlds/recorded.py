"""A system that was recorded: its states and actions are known, and no order can be carried out any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axplore.errors import UnknownStateError, WorldError
from axplore.records.counts import Counts
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Order, World


class RecordedWorld(World):
    """The world of counts that were read from a file.

    Args:
        counts: what was counted; the state with the index 0 is the initial one.
        steps: the steps that this took.
        offered: returns the actions of a state that was not counted; by default, it has none.
    """

    def __init__(
        self, counts: Counts, steps: int, offered: Callable[[State], tuple[Action, ...] | None] | None = None
    ) -> None:
        self._states = tuple(counts.order)
        self._actions = dict(zip(counts.states.tolist(), counts.actions, strict=True))
        self._steps = steps
        self._offered = offered or (lambda _: ())

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states that were recorded."""
        return self._states

    @property
    def steps(self) -> int:
        """The steps that were recorded."""
        return self._steps

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """Returns the actions of a state."""
        if not 0 <= state < len(self._states):
            raise UnknownStateError(f"there is no state {state}: {len(self._states)} states were recorded")
        return tuple(self._actions[state]) if state in self._actions else self._offered(self._states[state]) or ()

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Refuses every order."""
        if orders:
            raise WorldError("the system was recorded: it cannot be stepped; hand in the system itself")
        return []
