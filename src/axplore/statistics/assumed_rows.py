"""What is assumed of the rows of counted pairs, and what follows for their confidence regions.

- A pair with a *single* outcome is known after one draw.
- Where no outcome of a pair is rarer than p, another one that was not seen in n draws exists with probability at most
  K (1 - p)^n, where K = floor(1/p) bounds how many outcomes there are. That event does not become likelier with more
  draws, so one number of draws, fixed by the level of the pair, *closes* its support at all later times. If there is no
  room for another outcome of probability p, the support is closed at once. Each outcome seen has at least p.

docs/assumptions.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.statistics.counts import CountedRows, entries_in
from axplore.types import FloatArray, IntArray

CLOSING_PART: Final = 0.15
"""The part of δ for the supports that are taken for closed, if any pair has a least probability."""

TOLERANCE: Final = 1e-9
"""By how much sums of declared probabilities may exceed one: 3 times 1/3 is no contradiction."""


@dataclass(frozen=True, eq=False)
class AssumedRows:
    """What is assumed of each pair.

    Attributes:
        single: 1 if it has one outcome, else 0, [P].
        least: no outcome is rarer than this; 0 where nothing is assumed, [P].
    """

    single: IntArray
    least: FloatArray

    def __post_init__(self) -> None:
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    @property
    def anything(self) -> bool:
        """Whether anything is assumed of any pair."""
        return bool(self.single.any() or self.least.any())

    def padded(self, n_pairs: int) -> AssumedRows:
        """Returns these assumptions extended to `n_pairs` pairs; nothing is assumed of the new ones."""
        more = n_pairs - len(self.single)
        return AssumedRows(
            single=np.append(self.single, np.zeros(more, dtype=np.int64)),
            least=np.append(self.least, np.zeros(more)),
        )

    def of_states(self, rows: CountedRows, states: IntArray) -> AssumedRows:
        """The part of some of the counted states, by number."""
        place_of = {number: place for place, number in enumerate(rows.states.tolist())}
        places = np.array([place_of[number] for number in states.tolist()], dtype=np.int64)
        pairs = entries_in(rows.state_pairs, places)
        return AssumedRows(self.single[pairs], self.least[pairs])


def nothing_assumed(n_pairs: int) -> AssumedRows:
    """Rows of which nothing is assumed."""
    return AssumedRows(np.zeros(n_pairs, dtype=np.int64), np.zeros(n_pairs))


def closing_draws(least: FloatArray, levels: FloatArray) -> FloatArray:
    """After how many draws the support of each pair is closed, [P]; infinite without a least probability.

    Args:
        least: the least probability of an outcome, [P].
        levels: the probability with which the support may turn out to be larger, [P].
    """
    draws = np.full(len(least), np.inf)
    known = (least > 0.0) & (least < 1.0)
    outcomes = np.floor(1.0 / least[known] + TOLERANCE)
    wanted = (np.log(outcomes) - np.log(levels[known])) / -np.log1p(-least[known])
    draws[known] = np.ceil(wanted + TOLERANCE)  # on the strict side of what a verifier computes
    draws[least >= 1.0] = 1.0
    return draws


def has_no_room(least: FloatArray, n_successors: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each pair has so many successors that no further one of the least probability fits in, [P]."""
    full: npt.NDArray[np.bool_] = (least > 0.0) & (n_successors > 0) & ((n_successors + 1) * least > 1.0 + TOLERANCE)
    return full


def contradicted_pairs(rows: CountedRows, assumed: AssumedRows, closing: FloatArray) -> IntArray:
    """The pairs whose draws contradict what is assumed of them.

    Args:
        rows: what was counted.
        assumed: what is assumed of each pair.
        closing: the draws after which the support of each pair is closed, [P].
    """
    n_successors = np.diff(rows.row_offsets)
    too_many = ((assumed.single == 1) & (n_successors > 1)) | (n_successors * assumed.least > 1.0 + TOLERANCE)
    newest = np.zeros(len(n_successors))
    drawn = n_successors > 0
    newest[drawn] = rows.first_draws[rows.row_offsets[1:][drawn] - 1]
    pairs: IntArray = np.flatnonzero(too_many | (newest > closing))
    return pairs
