"""What is promised once everything that was asked for is proven, in one place for all that repeats it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import Final

from axplore.labels import readable
from axplore.properties import Property, parse_property
from axplore.records.properties import PropertyClaim
from axplore.target import Objective
from axplore.types import State

LISTED: Final = 5
"""The largest number of states that are listed for a name."""

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


def goal_promise(goal: str, upper: float, epsilon: float, objective: Objective | None) -> str:
    """Returns what is promised of the one goal that was asked for, as a clause.

    Args:
        goal: the state that is reached, in words.
        upper: the expected steps within which its policy arrives.
        epsilon, objective: what was asked for.
    """
    clause = f"{goal} is reached within {upper_text(upper)} expected steps by its policy"
    if objective is not Objective.OPTIMAL:
        return clause
    return f"{clause}, which loses at most {epsilon:g} against the best one through the states of the atlas"


def goal_beyond(formula: str, n_states: int, radius: float, epsilon: float) -> str:
    """Returns what is promised where no goal is within the radius, as a clause; a formula says which were meant."""
    goal = f"the goal {formula}" if formula else "the goal"
    others = promise(n_states, radius, epsilon, Objective.WITHIN_RADIUS)
    return f"{goal} is not reliably reachable within {radius:g} expected steps: {others}, and it is none of them"


def lower_text(value: float) -> str:
    """Returns a lower bound in a few digits, none of which says more than it does."""
    return _digits(value, ROUND_FLOOR)


def upper_text(value: float) -> str:
    """Returns an upper bound in a few digits, none of which says more than it does."""
    return _digits(value, ROUND_CEILING)


def _digits(value: float, towards: str) -> str:
    """Returns a number with six digits after the point, or seven in all if it is large, rounded to a side."""
    text = f"{value:.6g}"
    if float(text) == value or not math.isfinite(value):
        return text
    if value < 1e6:
        return f"{Decimal(value).quantize(Decimal('1e-6'), rounding=towards).normalize():f}"
    return f"{Context(prec=7, rounding=towards).create_decimal(value):.6e}"


@dataclass(frozen=True)
class PropertyBounds:
    """What is concluded of a property from the initial state, if its claim holds.

    Attributes:
        prop: the property.
        lower, upper: the bounds of its probability, or of its cost, which may be infinite.
        claim: what proves them; None if nothing is claimed.
        order: the labels of the states that were seen, by the index of the claim.
    """

    prop: Property
    lower: float
    upper: float
    claim: PropertyClaim | None = field(default=None, compare=False, repr=False)
    order: Sequence[State] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, claim: PropertyClaim, order: Sequence[State] = ()) -> PropertyBounds:
        """Returns what a claim says of the states with these labels."""
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
        return cls(prop, *prop.of_path(lower, upper), claim, order)

    @property
    def text(self) -> str:
        """The property as it was written."""
        return self.prop.text

    @property
    def in_full(self) -> str:
        """The property as it was written, with what its names stand for."""
        return f"{self.text} (where {self.meaning})" if self.meaning else self.text

    @cached_property
    def meaning(self) -> str:
        """What the text does not say itself: the states of its names, and costs other than 1; empty if nothing."""
        if self.claim is None:
            return ""
        given = {named.name: named.states.tolist() for named in self.claim.names}
        said = [f'"{name}" {_stands_for([self.order[i] for i in given[name]])}' for name in given]
        if self.claim.costs.size and (self.claim.costs != 1.0).any():
            least, most = (f"{cost:.6g}" for cost in (self.claim.costs.min(), self.claim.costs.max()))
            said.append(f"actions cost from {least} to {most}" if least != most else f"every action costs {most}")
        said += [f'no state that was seen is called "{name}"' for name in self.prop.unknown(self.order, given)]
        return "; ".join(said)

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
            return f"at least {lower_text(self.lower)}"
        return f"between {lower_text(self.lower)} and {upper_text(self.upper)}"

    def __str__(self) -> str:
        """The bounds in words, after whether the property holds."""
        if self.prop.comparison is None:
            return self.clause
        return f"{HOLDS[self.holds]}: {self.clause}"


def _stands_for(states: Sequence[State]) -> str:
    """Returns what a name stands for, as a predicate."""
    if not states:
        return "is no state that was seen"
    listed = " or ".join(readable(state) for state in states[:LISTED])  # labels may have commas
    return f"is {listed}" if len(states) <= LISTED else f"is {listed}, or one of {len(states) - LISTED:,} other states"
