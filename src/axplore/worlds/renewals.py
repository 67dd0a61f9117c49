"""At which ages an agent that explores is reset without need, so that every pair is drawn young and old.

The *age* is the number of steps since the last RESET. An agent resets where its way leads through RESET, which in many
systems is hardly ever. Then it draws at ages at which nobody arrives who comes from RESET, as every policy does, and a
system that changes with the age, as log-ins and tokens that expire do, is only ever seen when it has changed already.

A RESET is always allowed, and when it comes is decided before the draws until then: no proof is touched. Ages are
uniform on a logarithmic scale up to what the way back allows. What n steps may spend on them is `allowance(n)`: a
small share, and more than that in the beginning, because a short exploration that keeps to the share would draw the
pairs that decide it at old ages alone.
"""

from __future__ import annotations

import math
import random
from typing import Final

SHARE: Final = 0.03
"""The part of the steps that may be spent on these RESETs and the ways back,"""

EARLY: Final = 4.0
"""and this many times the square root of the steps besides."""

LARGEST_SHARE: Final = 0.25
"""The largest part of the steps that ages are chosen for."""

YOUNGEST: Final = 16
"""No agent younger than this is reset: it would be as young again."""

FIRST_COST: Final = 8.0
"""What a RESET and the way back are thought to cost before any has been paid for."""

ADVANCE: Final = 2.0
"""The number of RESETs that may be paid for later."""


class Renewals:
    """Chooses the ages, and keeps an account of what they cost."""

    def __init__(self, seed: int, steps: int) -> None:
        """Begins without any cost.

        Args:
            seed: of the ages. Each depends on it, on the step of the RESET before, and on the account.
            steps: the steps taken so far.
        """
        self._seed, self._began = seed, steps
        self._cost, self._times = 0, 0
        self._begun = steps, 0, 0  # the last RESET, and the account then

    def begin(self, steps: int) -> int:
        """Notes a RESET at this step, and returns a step before which the next one is never due.

        Most agents reset before that, and when theirs would have been due is never computed.
        """
        self._begun = steps, self._cost, self._times
        return steps + YOUNGEST

    @property
    def due(self) -> int:
        """The step at which the next RESET is due: by the account at the last one."""
        steps, cost, times = self._begun
        each = (cost + FIRST_COST) / (times + 1)
        chance = random.Random(f"{self._seed} {steps}").random()
        age = YOUNGEST * math.exp(chance * math.log(oldest_age(each / share_after(steps - self._began)) / YOUNGEST))
        affordable = self._began + steps_that_allow(cost - ADVANCE * each)
        return max(steps + math.ceil(age), math.ceil(affordable))

    def pay(self, lost: int) -> None:
        """Counts a RESET, and the steps of the journey that it ends."""
        self._times += 1
        self._cost += 1 + lost

    def pay_way_back(self, steps: int) -> None:
        """Counts the steps of the way back."""
        self._cost += steps


def allowance(steps: float) -> float:
    """Returns what a number of steps may spend on these RESETs and the ways back."""
    return SHARE * steps + EARLY * math.sqrt(steps)


def share_after(steps: int) -> float:
    """Returns the part of the next steps that may be spent after so many."""
    return min(SHARE + EARLY / (2 * math.sqrt(max(steps, 1))), LARGEST_SHARE)


def steps_that_allow(cost: float) -> float:
    """Returns the steps whose allowance is a cost; none for what is not positive."""
    root = (math.sqrt(EARLY**2 + 4 * SHARE * max(cost, 0.0)) - EARLY) / (2 * SHARE)
    return root**2


def oldest_age(mean: float) -> float:
    """Returns the end of the logarithmic scale from `YOUNGEST` on whose mean is this; at least twice `YOUNGEST`."""
    ratio = 2.0
    for _ in range(20):  # (ratio - 1) / ln(ratio) = mean / YOUNGEST, by repeated substitution
        ratio = max(2.0, 1.0 + math.log(ratio) * mean / YOUNGEST)
    return YOUNGEST * ratio
