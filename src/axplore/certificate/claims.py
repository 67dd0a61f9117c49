"""What a certificate is made of: counts, and claims with the vectors that prove them.

States are *positions*: 0..n-1 are the known ones in the order of admission, the initial state is 0, and from n on come
the other states that were seen. The position after the last stands for every state that was never seen.

The *pairs* are the actions of the first known state, then those of the second, and so on. A policy names an action by
its place among the actions of the state, or says RESET_ACTION. Vectors have a number for each known state. Every other
state resets, so its value is one more than that of the initial state; the value of the goal itself is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, TypeAlias

import numpy as np

from axplore.mdp import FloatArray, IntArray

RESET_ACTION: Final = -1
"""How a policy says RESET."""


class Record:
    """A frozen dataclass whose arrays cannot be written to."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Counts(Record):
    """Everything that was drawn, as compressed rows; a row holds successors in the order in which they were first seen.

    Attributes:
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the position that each entry leads to, [E].
        counts: how often it was met, [E].
        first_draws: at which draw of its pair, counted from 1, it was met first, [E].
    """

    row_offsets: IntArray
    successors: IntArray
    counts: IntArray
    first_draws: IntArray


@dataclass(frozen=True, eq=False)
class Reachable(Record):
    """A policy restricted on the states admitted before the goal reaches it within L + ε expected steps.

    Attributes:
        goal: the position of a known state other than the initial one.
        policy: what to play in each known state, [n]; from the goal on it resets.
        upper: a bound of the expected steps of the policy from each known state, [n].
    """

    goal: int
    policy: IntArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class TooFar(Record):
    """Every policy restricted on the known states needs more than L expected steps to the goal.

    Attributes:
        goal: the position of a state that is not known, or the one after the last for all that were never seen.
        lower: a lower bound of the expected steps of every policy from each known state, [n].
    """

    goal: int
    lower: FloatArray


@dataclass(frozen=True, eq=False)
class NearOptimal(Record):
    """A policy needs at most ε expected steps more to the goal than the best policy restricted on the known states.

    Attributes:
        goal: the position of a known state other than the initial one.
        policy: what to play in each known state, [n].
        upper: a bound of the expected steps of the policy from each known state, [n].
        lower: a lower bound of the expected steps of every policy, [n].
        regret: a bound of what the policy loses against the best one, [n].
    """

    goal: int
    policy: IntArray
    upper: FloatArray
    lower: FloatArray
    regret: FloatArray


Claim: TypeAlias = Reachable | TooFar | NearOptimal
