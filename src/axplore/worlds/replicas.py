"""Worlds that carry out parts of orders for another world, whose numbering of states they take over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from axplore.errors import InvalidSettingError
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Order, World


class Replica(Protocol):
    """A world that is given states and carries out single orders, each after a RESET."""

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states, by number; the initial state is the first."""

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """The actions of a state."""

    def learn(self, n_kept: int, states: Sequence[tuple[State, tuple[Action, ...]]]) -> None:
        """Numbers these states, with their actions, from `n_kept` on, instead of any discovered after the first."""

    def carry_out_batch(self, order: Order, *key: int) -> Answer:
        """Carries out an order, or a batch of one, after a RESET, which is a step; the key is that of its stream."""


def replica_of(world: World) -> Callable[..., Any]:
    """Makes replicas of a world, in any process; refuses a world of which there can be one only."""
    replica = getattr(world, "replica", None)
    if replica is None:
        raise InvalidSettingError(
            f"{type(world).__name__} cannot be worked on side by side: it has no method replica(), which returns a "
            "function that makes worlds like it"
        )
    make: Callable[..., Any] = replica()
    return make
