"""What an explorer is: a frozen configuration, an explicit state, and three methods.

`start` gives the state before the first round, `advance` does the next piece of work and returns the state after it,
and `finish` turns a state into a result. An explorer owns no loop (see `driver`), does no input or output, and keeps
nothing outside its state, so that a state can be saved between any two calls and taken up again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from axplore.errors import InvalidSettingError
from axplore.explorers.stopping import StopReason
from axplore.worlds.orders import World

if TYPE_CHECKING:
    from axplore.explorers.result import Exploration


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What is asked of an explorer: how far, how exactly, and how surely.

    Attributes:
        radius: L, the expected steps within which a state counts as controllable; at least 1.
        epsilon: ε, the steps by which a policy may miss its bound; positive.
        delta: δ, the probability with which the promise may fail; between 0 and 1.
    """

    radius: float
    epsilon: float
    delta: float = 0.1

    def __post_init__(self) -> None:
        check_precision(self.radius, self.epsilon, self.delta)


def check_precision(radius: float, epsilon: float, delta: float) -> None:
    """Refuses a radius, an epsilon or a delta for which the problem is not defined ([DisCo] Def. 5)."""
    if not (math.isfinite(radius) and radius >= 1):
        raise InvalidSettingError(
            f"radius is {radius}; it must be a number of at least 1, because no other state is nearer than one step"
        )
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InvalidSettingError(
            f"epsilon is {epsilon}; it must be a positive number, because no finite number of steps gives exactness"
        )
    if not 0 < delta < 1:
        raise InvalidSettingError(f"delta is {delta}; it is the probability of failure and must be between 0 and 1")


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplorerState:
    """What every explorer's state holds; each explorer adds its own fields.

    Attributes:
        round: k, the current round, counted from 1.
        known: K, the numbers of the states admitted so far, in order of admission; the initial state is the first.
        found_at: the steps of the world at which each was admitted, [|K|].
        frontier: U, the numbers of the other states discovered so far.
        activity: what was done last, in a few words.
        stop: why there is nothing left to do, or None.
    """

    round: int
    known: tuple[int, ...]
    found_at: tuple[int, ...]
    frontier: tuple[int, ...] = ()
    activity: str = "starting"
    stop: StopReason | None = field(default=None)


StateT = TypeVar("StateT", bound=ExplorerState)


class Explorer(Protocol[StateT]):
    """A way to explore a world. Implementations are frozen dataclasses: their fields are the options."""

    @property
    def precision(self) -> Precision:
        """What is asked of it."""

    def start(self, world: World) -> StateT:
        """The state before the first step."""

    def advance(self, state: StateT, world: World) -> StateT:
        """Does the next piece of work and returns the state after it; `state.stop` must be None."""

    def finish(self, state: StateT, world: World) -> Exploration:
        """The result that a state stands for, whether or not the explorer has stopped by itself."""
