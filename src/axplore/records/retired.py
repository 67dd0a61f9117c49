"""States that were counted and are not known any more."""

from __future__ import annotations

from typing import Final

from axplore.records.codec import Record
from axplore.types import IntArray

NEVER_DRAWN: Final = -1
ONE_SUCCESSOR: Final = 0
"""In place of the draw at which a pair showed its second successor."""


class RetiredStates(Record, frozen=True):
    """States that were counted while something else was assumed or asked for, and are not known now.

    The level of a state goes by its rank: its index in the order in which states were first counted. So the ranks of
    the known states are kept, and of the others what they have taken of the martingale that pairs share.

    Attributes:
        ranks: of the known states, from 1 on, [n].
        other_ranks: of the others, [m].
        n_actions: of each of the others, [m].
        second_draws: for each pair of the others the draw at which its second successor came, ONE_SUCCESSOR or
            NEVER_DRAWN, [p].
    """

    ranks: IntArray
    other_ranks: IntArray
    n_actions: IntArray
    second_draws: IntArray
