"""What a certificate assumes of each pair, and whether its counts contradict that.

Assumptions are declared by a user, not proven. They stand first in the certificate, and whatever is concluded from them
begins with "if".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from axplore.certificate.contents import Record
from axplore.certificate.tied import Tied
from axplore.errors import InvalidInputError
from axplore.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Assumed(Record):
    """What is assumed of each pair.

    Attributes:
        single: 1 if it has one outcome, else 0, [P].
        least: no outcome is rarer than this; 0 where nothing is assumed, [P].
        tied: which pairs share a law; None if none do.
    """

    single: IntArray
    least: FloatArray
    tied: Tied | None = None

    def check_shape(self, n_pairs: int) -> None:
        """Refuses arrays that do not fit the number of pairs."""
        if self.least.dtype != np.float64 or self.least.shape != (n_pairs,):
            raise InvalidInputError("assumed.least does not give a probability for each pair")
        if not ((self.least >= 0.0) & (self.least <= 1.0)).all():
            raise InvalidInputError("assumed.least holds what is no probability")
        if self.single.dtype != np.int64 or self.single.shape != (n_pairs,) or not np.isin(self.single, (0, 1)).all():
            raise InvalidInputError("assumed.single does not say of each pair whether it has one outcome")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is assumed, as clauses that follow "if"."""
        n_pairs, clauses = len(self.single), []
        n_single = int(self.single.sum())
        if n_single == n_pairs and n_pairs:
            return ("every action has one outcome",)
        if n_single:
            clauses.append(f"{n_single} of the {n_pairs} actions have one outcome, as declared")
        declared = self.least[self.least > 0.0]
        if len(declared):
            whose = "an action" if len(declared) == n_pairs else f"{len(declared)} of the {n_pairs} actions"
            rarest = (
                f"{declared.min():g}"
                if declared.min() == declared.max()
                else f"declared, {declared.min():g} at the least"
            )
            clauses.append(f"no outcome of {whose} is rarer than {rarest}")
        return (*clauses, *(() if self.tied is None else self.tied.sentences))

    def too_many_outcomes(self, n_successors: IntArray) -> IntArray:
        """The pairs that have shown more outcomes than can be if what is assumed of them is true."""
        several = (self.single == 1) & (n_successors > 1)
        too_many = n_successors * self.least > 1.0 + TOLERANCE
        pairs: IntArray = np.flatnonzero(several | too_many)
        return pairs


TOLERANCE = 1e-9
"""By how much sums of declared probabilities may exceed one: 3 times 1/3 is no contradiction."""

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
