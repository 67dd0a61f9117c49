"""What is asked of an explorer: a target (radius, ε, δ) and an objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from axplore.errors import InvalidSettingError


class Objective(Enum):
    """What a set of states with a policy for each has to keep ([DisCo] Def. 5 and App. A).

    In each case the set has to hold S_L→, and each policy may take `epsilon` steps more than the objective's limit.
    """

    WITHIN_RADIUS = "AX_L"
    """The limit is the radius, L."""

    STAGED = "AX'"
    """The limit is the least radius at which the state is controllable, L' = min{l <= L : s in S_l→}."""

    OPTIMAL = "AX*"
    """The limit is the optimum restricted to the controllable states, V*_{S_L→}(s0→s)."""


@dataclass(frozen=True, kw_only=True)
class Target:
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
        check_target(self.radius, self.epsilon, self.delta)


def check_target(radius: float, epsilon: float, delta: float) -> None:
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
