"""What assumptions say of the rows of counted pairs, in the form in which a confidence region uses it.

Which assumptions there are, and how they come to say this, is for `axplore.assumptions` to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.records.counts import Counts
from axplore.statistics.counts import rows_of
from axplore.types import FloatArray, IntArray

CLOSING_PART: Final = 0.15
"""The part of δ for the supports that are taken for closed, where an assumption closes supports by chance.

It comes out of that of the martingale that pairs with one successor share, to which most pairs then do not belong."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """Rows in which every tied pair shows the draws of its whole class.

    Attributes:
        rows: visits and counts of a tied pair are those of its class, and it has an entry for each outcome of that; the
            successor is UNKNOWN where it is not known what the outcome does in the pair.
        groups: equal for the pairs of one class, and different for all others, [P].
        tied: whether each pair is tied, [P].
    """

    rows: Counts
    groups: IntArray
    tied: npt.NDArray[np.bool_]

    def of_states(self, states: IntArray, pairs: IntArray) -> Pooled:
        """The part of some states, by number, which have these pairs."""
        return Pooled(rows_of(self.rows, states), self.groups[pairs], self.tied[pairs])


@dataclass(frozen=True, eq=False)
class GivenRows:
    """The rows of some counts and what is assumed of them.

    Attributes:
        rows: where pairs are tied, those of their classes.
        groups: equal for pairs that share a law, [P].
        pooled: the rows of classes; None if no pair is tied.
        weights: the part of the error that each pair may use, [P]; the pairs of a class use theirs together.
        most_outcomes: how many outcomes each pair can have, infinite where that is not known, [P].
        floors: the least probability of each outcome, [P].
        closing: the draws after which the support of each pair is closed, infinite if never, [P].
        is_given: whether anything is assumed of each pair, so that it takes no part in the shared martingale, [P].
        closes: whether the support of any pair might close, by what was declared before the first draw.
        closes_by_chance: whether a support may be taken for closed that is not, which takes a part of δ.
    """

    rows: Counts
    groups: IntArray
    pooled: Pooled | None
    weights: FloatArray
    most_outcomes: FloatArray
    floors: FloatArray
    closing: FloatArray
    is_given: npt.NDArray[np.bool_]
    closes: bool
    closes_by_chance: bool


def nothing_given(rows: Counts, weights: FloatArray) -> GivenRows:
    """Rows of which nothing is assumed."""
    n_pairs = len(rows.visits)
    no_pair = np.zeros(n_pairs, dtype=np.bool_)
    nothing, endless = np.zeros(n_pairs), np.full(n_pairs, np.inf)
    return GivenRows(
        rows=rows,
        groups=np.arange(n_pairs),
        pooled=None,
        weights=weights,
        most_outcomes=endless,
        floors=nothing,
        closing=endless,
        is_given=no_pair,
        closes=False,
        closes_by_chance=False,
    )
