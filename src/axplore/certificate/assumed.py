"""What a certificate assumes of each pair, and whether its counts contradict that.

Assumptions are declared by a user, not proven. They stand first in the certificate, and whatever is concluded from them
begins with "if".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from axplore.certificate.contents import Counts, Record
from axplore.errors import InvalidInputError
from axplore.types import IntArray


@dataclass(frozen=True, eq=False)
class Assumed(Record):
    """What is assumed of each pair.

    Attributes:
        single: 1 if it has one outcome, else 0, [P].
    """

    single: IntArray

    def check_shape(self, n_pairs: int) -> None:
        """Refuses arrays that do not fit so many pairs."""
        if self.single.dtype != np.int64 or self.single.shape != (n_pairs,) or not np.isin(self.single, (0, 1)).all():
            raise InvalidInputError("assumed.single does not say of each pair whether it has one outcome")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is assumed, as clauses that follow "if"."""
        n_single, n_pairs = int(self.single.sum()), len(self.single)
        if not n_single:
            return ()
        if n_single == n_pairs:
            return ("every action has one outcome",)
        return (f"{n_single} of the {n_pairs} actions have one outcome, as declared",)

    def contradicted_pair(self, counts: Counts) -> int | None:
        """The first pair whose draws cannot be if what is assumed of it is true; None if there is none."""
        wrong = np.flatnonzero((self.single == 1) & (np.diff(counts.row_offsets) > 1))
        return int(wrong[0]) if len(wrong) else None


NEVER_DRAWN, ONE_SUCCESSOR = -1, 0
"""In place of the draw at which a pair showed its second successor."""


@dataclass(frozen=True, eq=False)
class Apart(Record):
    """States that were counted while something else was assumed or asked for, and are not known now.

    The level of a state goes by its rank: its place in the order in which states were first counted. So the ranks of
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

    def check_shape(self, n_known: int) -> None:
        """Refuses arrays that do not fit each other, and ranks that two states share."""
        arrays = (self.ranks, self.other_ranks, self.n_actions, self.second_draws)
        if any(array.dtype != np.int64 or array.ndim != 1 for array in arrays):
            raise InvalidInputError("apart holds something that is no list of whole numbers")
        every = np.concatenate((self.ranks, self.other_ranks))
        fits = len(self.ranks) == n_known and len(self.n_actions) == len(self.other_ranks)
        if not fits or every.min() < 1 or len(np.unique(every)) != len(every):
            raise InvalidInputError("apart does not give each state a rank of its own")
        drawn = len(self.second_draws) == self.n_actions.sum() and (self.n_actions >= 0).all()
        if not drawn or (self.second_draws < NEVER_DRAWN).any() or (self.second_draws == 1).any():
            raise InvalidInputError("apart does not say of each pair when its second successor came")
