"""What is asked of an explorer: a target (radius, ε, δ) and an objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Final

from axplore.arguments import Check, real, whole


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

    QUESTION = "question"
    """No set is asked for: properties are answered up to `epsilon`, whatever the distance of states; see NO_RADIUS."""


NO_RADIUS: Final = 1e12
"""The radius where none is asked for: the largest there is."""


VALUE_LIMIT_FACTOR: Final = 3
VALUE_LIMIT_MARGIN: Final = 20
"""Values are computed up to this factor of L + ε, and a number of steps that matters where L + ε is small."""


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

    @property
    def reach(self) -> float:
        """L + ε, within which a state that was found is reached."""
        return self.radius + self.epsilon

    @property
    def value_limit(self) -> float:
        """The number of steps beyond which a value decides nothing, with room for what is bounded on the way.

        Bounds are computed up to here. A tighter limit would cut values that others are computed from, and a wider
        one would take sweeps for states that are too far in any case.
        """
        return VALUE_LIMIT_FACTOR * self.reach + VALUE_LIMIT_MARGIN

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "radius": real(
            least=1, most=NO_RADIUS, wanted="a number from 1 to 1e12, because no other state is nearer than one step"
        ),
        "epsilon": real(
            least=1e-12, most=1e12, wanted="a number from 1e-12 to 1e12, because no number of steps gives exactness"
        ),
        "delta": real(
            least=1e-100,
            most=math.nextafter(1, 0),
            wanted="between 0 and 1, because it is a probability of failure, and at least 1e-100",
        ),
    }
)
"""For which L, ε and δ the problem is defined ([DisCo] Def. 5), and floats can hold what follows from them."""


STATES_BOUND: Final = whole(least=1, most=10**15)
"""Checks S, an upper bound on the number of states, which the constants of the paper's theorems contain."""


def confidence_text(delta: float) -> str:
    """1 - δ for reading, never rounded up."""
    text = f"{1 - delta:g}"
    return text if Decimal(text) + Decimal(repr(float(delta))) <= 1 else f"1 - {delta!r}"
