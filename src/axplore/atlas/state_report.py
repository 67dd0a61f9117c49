"""What is known of a state: bounds, a status, and the reason in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from axplore.target import Target
from axplore.types import State, Status

SHOWN_DIGITS: Final = Decimal("0.001")
"""What bounds are rounded to for reading: a lower one down and an upper one up, so that they stay bounds."""


@dataclass(frozen=True)
class Bounds:
    """Between which numbers of expected steps a goal is reached by policies through the states of the atlas.

    Such a policy resets in every other state. None takes fewer than `lower` steps, and the atlas's own takes at most
    `upper`; so the best one lies between the two as well.

    Attributes:
        lower: at least so many.
        upper: at most so many; infinite if no policy is proven to arrive.
        regret: the most that the atlas's own policy loses against the best one.
        proven: whether all this is proven. If not, `lower` is the explorer's optimistic estimate, and nothing is known
            of the others: they are infinite.
    """

    lower: float
    upper: float
    regret: float
    proven: bool

    def __contains__(self, steps: float) -> bool:
        return self.lower <= steps <= self.upper

    def __str__(self) -> str:
        if not self.proven:
            return f"about {rounded_down(self.lower)} steps, not proven"
        return f"{rounded_down(self.lower)} to {rounded_up(self.upper)} steps"


@dataclass(frozen=True)
class StateReport:
    """What is known of a state.

    Attributes:
        state: its label.
        status: certified, set aside or open.
        bounds: of the steps to it.
        reason: why, in a sentence; of an open state what blocks its proof.
    """

    state: State
    status: Status
    bounds: Bounds
    reason: str

    def __str__(self) -> str:
        return f"{self.state}: {self.status.value}. {self.reason}"


def checked_regret(upper: float, lower: float, regret: float, target: Target) -> float:
    """What a policy is said to lose: the gap between its bounds, or a regret where the gap is too wide.

    A verifier looks at a regret only if it has to, so a smaller number than this would not be checked.
    """
    return upper - lower if upper - lower <= target.epsilon else min(regret, upper - lower)


def reason_for_member(status: Status, bounds: Bounds, target: Target) -> str:
    """Why a state of a proven atlas is certified, or what blocks that."""
    reach = target.radius + target.epsilon
    upper, regret = rounded_up(bounds.upper), rounded_up(bounds.regret)
    if status is Status.CERTIFIED:
        return (
            f"Its policy arrives within {upper} expected steps, and loses at most {regret} against the best one "
            "through the states of the atlas."
        )
    if math.isinf(bounds.upper):
        return f"No policy is proven to arrive in any number of steps; {reach:g} are allowed."
    if bounds.upper > reach:
        return f"Its policy is proven to arrive within {upper} expected steps; {reach:g} are allowed."
    if bounds.regret > target.epsilon:
        return (
            f"Its policy arrives within {upper} expected steps, but may lose {regret} against the best one through the "
            f"states of the atlas; {target.epsilon:g} are allowed."
        )
    return f"No policy through the states admitted before it is proven to arrive within {reach:g} expected steps."


def reason_to_leave_out(status: Status, lower: float, target: Target) -> str:
    """Why a state is not in a proven atlas."""
    if status is Status.SET_ASIDE:
        return (
            f"Every policy through the states of the atlas takes at least {rounded_down(lower)} expected steps; the "
            f"radius is {target.radius:g}."
        )
    reach = target.radius + target.epsilon
    return (
        f"It may be within the radius of {target.radius:g}: that it takes {rounded_down(lower)} expected steps is "
        f"all that is proven, and no policy is proven to arrive within {reach:g}."
    )


def rounded_down(steps: float) -> str:
    """A lower bound for reading."""
    return _rounded(steps, ROUND_FLOOR)


def rounded_up(steps: float) -> str:
    """An upper bound for reading."""
    return _rounded(steps, ROUND_CEILING)


def _rounded(steps: float, direction: str) -> str:
    return str(Decimal(steps).quantize(SHOWN_DIGITS, direction)) if math.isfinite(steps) else "∞"
