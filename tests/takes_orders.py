"""A world of which nothing but orders is known, as that of workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axplore.worlds.contract import Answer, Order, World
from axplore.worlds.playing import LARGEST_BATCH


class TakesOrders(World):
    """Another world, without all that it can do besides."""

    def __init__(self, inner: World) -> None:
        self._inner = inner

    @property
    def states(self) -> Sequence[Any]:
        return self._inner.states

    @property
    def steps(self) -> int:
        return self._inner.steps

    def actions_of(self, state: int) -> tuple[Any, ...]:
        return self._inner.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        assert len(orders) <= LARGEST_BATCH
        return self._inner.carry_out(orders)
