"""What is assumed of the rows of counted pairs, and what follows for their confidence regions.

- A pair with a *single* outcome is known after one draw.
- Pairs that are *tied* share one law over outcomes (`axplore.statistics.tied_rows`).
- Where no outcome of a pair is rarer than p, another one that was not seen in n draws exists with probability at most
  K (1 - p)^n, where K = floor(1/p) bounds how many outcomes there are. That event does not become likelier with more
  draws, so one number of draws, fixed by the level of the pair, *closes* its support at all later times. If there is no
  room for another outcome of probability p, the support is closed at once. Each outcome seen has at least p.

docs/assumptions.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from axplore.statistics.counts import CountedRows, entries_in
from axplore.statistics.tied_rows import Ties, pooled
from axplore.types import FloatArray, IntArray

CLOSING_PART: Final = 0.15
"""The part of δ for the supports that are taken for closed, if any pair has a least probability."""

FALSE_ALARM: Final = 1e-3
"""The probability with which outcomes as likely as assumed may ever be taken for rarer, in all pairs together."""

STRICTNESS: Final = 1e-6
"""In nats: a verifier finds what was found here."""

TOLERANCE: Final = 1e-9
"""By how much sums of declared probabilities may exceed one: 3 times 1/3 is no contradiction."""


@dataclass(frozen=True, eq=False)
class AssumedRows:
    """What is assumed of each pair.

    Attributes:
        single: 1 if it has one outcome, else 0, [P].
        least: no outcome is rarer than this; 0 where nothing is assumed, [P].
        ties: which pairs share a law; None if no pair is tied. One with a single outcome is not.
    """

    single: IntArray
    least: FloatArray
    ties: Ties | None = None

    def __post_init__(self) -> None:
        self.single.flags.writeable = self.least.flags.writeable = False

    @property
    def anything(self) -> bool:
        """Whether anything is assumed of any pair."""
        return bool(self.single.any() or self.least.any() or self.ties is not None)

    def padded(self, n_pairs: int) -> AssumedRows:
        """Returns these assumptions extended to `n_pairs` pairs; nothing is assumed of the new ones."""
        more = n_pairs - len(self.single)
        ties = self.ties
        if ties is not None:
            missing = n_pairs - len(ties.lengths)
            ties = replace(ties, lengths=np.append(ties.lengths, np.zeros(missing, dtype=np.int64)))
        return AssumedRows(
            single=np.append(self.single, np.zeros(more, dtype=np.int64)),
            least=np.append(self.least, np.zeros(more)),
            ties=ties,
        )

    def of_states(self, rows: CountedRows, states: IntArray) -> AssumedRows:
        """The part of some of the counted states, by number."""
        place_of = {number: place for place, number in enumerate(rows.states.tolist())}
        places = np.array([place_of[number] for number in states.tolist()], dtype=np.int64)
        pairs = entries_in(rows.state_pairs, places)
        ties = None if self.ties is None else self.ties.of_pairs(rows, pairs)
        return AssumedRows(self.single[pairs], self.least[pairs], ties)


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


def log_rarity(counts: IntArray, draws: IntArray, least: FloatArray) -> FloatArray:
    """How much the draws speak against each outcome being as likely as assumed, in nats, [m].

    The bettor predicts by the Beta(1/2, 1/2) mixture whether the outcome comes. If its probability is `least` or more,
    the wealth against the likeliest such probability ever reaches 1/level with probability at most `level`.

    Args:
        counts: how often each outcome came, [m].
        draws: of its pair, [m].
        least: the least probability that is assumed, [m].
    """
    log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])
    others = draws - counts
    inside = np.clip(least, TOLERANCE, 1.0 - TOLERANCE)
    wealth = log_gamma(counts + 0.5) + log_gamma(others + 0.5) - log_gamma(draws + 1.0) - math.log(math.pi)
    wealth -= counts * np.log(inside) + others * np.log1p(-inside)
    return np.where(counts < inside * draws, wealth, 0.0)


def _too_rare(rows: CountedRows, least: FloatArray, weights: FloatArray) -> IntArray:
    """The pairs with an outcome that is rarer than assumed, as far as the draws can tell."""
    asked = np.flatnonzero(least[rows.entry_pairs] > 0.0)
    if not len(asked):
        return asked
    pairs = rows.entry_pairs[asked]
    rarity = log_rarity(rows.counts[asked], rows.visits[pairs], least[pairs])
    kinds = np.floor(1.0 / least[pairs] + TOLERANCE)
    return pairs[rarity >= np.log(kinds / (FALSE_ALARM * weights[pairs])) + STRICTNESS]


def contradicted_pairs(
    rows: CountedRows, assumed: AssumedRows, closing: FloatArray, weights: FloatArray | None = None
) -> IntArray:
    """The pairs whose draws contradict what is assumed of them.

    Args:
        rows: what was counted.
        assumed: what is assumed of each pair.
        closing: the draws after which the support of each pair is closed, [P].
        weights: the part of the error that each pair may use, [P]; without it nothing is said of rare outcomes.
    """
    least = assumed.least
    several = (assumed.single == 1) & (np.diff(rows.row_offsets) > 1)
    wrong = np.flatnonzero(several)
    if assumed.ties is not None:  # the draws of a class have no common order, so that none of them comes late
        wrong = np.union1d(wrong, assumed.ties.contradicted_pairs(rows.successors))
        shared = pooled(rows, assumed.ties, assumed.single == 1)
        rows, least = shared.rows, shared.least(least)
    n_successors = np.diff(rows.row_offsets)
    newest = np.zeros(len(n_successors))
    drawn = n_successors > 0
    newest[drawn] = rows.first_draws[rows.row_offsets[1:][drawn] - 1]
    impossible = np.flatnonzero((n_successors * least > 1.0 + TOLERANCE) | (newest > closing))
    rare = impossible[:0] if weights is None else _too_rare(rows, least, weights)
    return np.unique(np.concatenate((wrong, impossible, rare)))
