"""A world that changes over time."""

from __future__ import annotations

from collections.abc import Sequence

from axplore.mdp import TabularMdp
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Order, World
from axplore.worlds.simulated import SimulatedWorld


class TurningWorld(World):
    """A world that breaks its contract: after so many calls its probabilities are those of another model."""

    def __init__(self, first: TabularMdp, then: TabularMdp, calls: int) -> None:
        self._world = SimulatedWorld(first, 0)
        self._then = then
        self._calls = calls

    @property
    def states(self) -> Sequence[State]:
        return self._world.states

    @property
    def steps(self) -> int:
        return self._world.steps

    def actions_of(self, state: int) -> tuple[Action, ...]:
        return self._world.actions_of(state)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        self._calls -= 1
        if self._calls == 0:
            snapshot = self._world.snapshot()
            self._world = SimulatedWorld(self._then, 0)
            self._world.restore(snapshot)
        return self._world.carry_out(orders)
