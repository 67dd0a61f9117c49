"""What is promised once everything that was asked for is proven, in one place for all that repeats it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from axplore.properties import Property, parse_property
from axplore.records.properties import PropertyClaim
from axplore.target import Objective

HOLDS: Final = {True: "holds", False: "does not hold", None: "is open"}
"""Whether a bound is met, in words."""


def promise(n_states: int, radius: float, epsilon: float, objective: Objective | None) -> str:
    """Returns the promise as a clause."""
    subject = "the initial state is" if n_states == 1 else f"{n_states:,} states are"
    clause = f"{subject} reliably reachable within {radius + epsilon:g} expected steps, and no other within {radius:g}"
    if objective is not Objective.OPTIMAL:
        return clause
    steps = "1 step" if epsilon == 1 else f"{epsilon:g} steps"
    return f"{clause}; each policy is within {steps} of the best one through these states"


def goal_promise(
    goal: str | None, upper: float, n_states: int, radius: float, epsilon: float, objective: Objective | None
) -> str:
    """Returns what is promised of the one goal that was asked for, as a clause.

    Args:
        goal: the state that is reached, in words; None if no goal is within the radius.
        upper: the expected steps within which its policy arrives.
        n_states: the number of known states.
        radius, epsilon, objective: what was asked for.
    """
    if goal is None:
        others = promise(n_states, radius, epsilon, Objective.WITHIN_RADIUS)
        return f"the goal is not reliably reachable within {radius:g} expected steps: {others}, and it is none of them"
    clause = f"{goal} is reached within {_digits(upper, math.ceil)} expected steps by its policy"
    if objective is not Objective.OPTIMAL:
        return clause
    return f"{clause}, which loses at most {epsilon:g} against the best one through the states of the atlas"


def _digits(value: float, rounded: Callable[[float], int]) -> str:
    """Returns a number with six digits after the point, rounded to a side."""
    text = f"{value:.6g}"
    return text if float(text) == value or value >= 1e6 else f"{rounded(value * 1e6) / 1e6:.10g}"


@dataclass(frozen=True)
class PropertyBounds:
    """What is concluded of a property from the initial state, if its claim holds.

    Attributes:
        prop: the property.
        lower, upper: the bounds of its probability, or of its cost, which may be infinite.
    """

    prop: Property
    lower: float
    upper: float

    @classmethod
    def of(cls, claim: PropertyClaim) -> PropertyBounds:
        """Returns what a claim says."""
        prop = parse_property(claim.text)
        lower, upper = float(claim.lower[0]), float(claim.upper[0]) if len(claim.upper) else math.inf
        if claim.witness is not None and prop.maximise:
            lower = max(lower, claim.witness.bound)
        elif claim.witness is not None:
            upper = min(upper, claim.witness.bound)
        if claim.joint_lower is not None:
            lower = max(lower, claim.joint_lower.bound)
        if claim.joint_upper is not None:
            upper = min(upper, claim.joint_upper.bound)
        return cls(prop, *prop.of_path(lower, upper))

    @property
    def text(self) -> str:
        """The property as it was written."""
        return self.prop.text

    @property
    def holds(self) -> bool | None:
        """Whether the bound of the property is met; None if that is open, or if it has none."""
        return self.prop.holds(self.lower, self.upper)

    def is_settled(self, precision: float) -> bool:
        """Returns whether the bound is decided or, if there is none, whether the value is known to a precision."""
        return self.holds is not None if self.prop.comparison is not None else self.upper - self.lower <= precision

    @property
    def clause(self) -> str:
        """The bounds in words, as a clause."""
        what = "least expected cost" if self.prop.of_cost else "probability"
        return f"the {what} is {self.interval}"

    @property
    def interval(self) -> str:
        """The bounds in words, rounded away from each other."""
        if math.isinf(self.lower):
            return "infinite"
        if math.isinf(self.upper):
            return f"at least {_digits(self.lower, math.floor)}"
        return f"between {_digits(self.lower, math.floor)} and {_digits(self.upper, math.ceil)}"

    def __str__(self) -> str:
        """The bounds in words, after whether the property holds."""
        if self.prop.comparison is None:
            return self.clause
        return f"{HOLDS[self.holds]}: {self.clause}"
