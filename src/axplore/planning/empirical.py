"""What was counted about a known set of states: all that optimistic planning may look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from axplore.errors import InvalidModelError
from axplore.mdp import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class EmpiricalModel:
    """Counts of the transitions out of a known set K, in compressed rows as those of `TabularMdp`.

    The n known states are numbered 0..n-1. A state that was seen, but is not known, is n + j for some j.

    Attributes:
        initial_index: the number of the initial state, which is known.
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
        row_offsets: the first transition of each pair, and the end of the last one, [P + 1].
        successors: the state that each transition leads to, different ones within a pair, [T].
        counts: how often it was seen, N(s, a, s'), [T].
        visits: how often each pair was played, N(s, a): the sum of its counts, [P].
    """

    initial_index: int
    state_pairs: IntArray
    row_offsets: IntArray
    successors: IntArray
    counts: IntArray
    visits: IntArray

    def __post_init__(self) -> None:
        if not 0 <= self.initial_index < self.n_known:
            raise InvalidModelError(
                f"the initial state is {self.initial_index}; it must be one of 0..{self.n_known - 1}"
            )
        if self.state_pairs[-1] != self.n_pairs or self.row_offsets[-1] != len(self.successors):
            raise InvalidModelError(
                f"offsets end at {self.state_pairs[-1]} pairs and {self.row_offsets[-1]} transitions, "
                f"but there are {self.n_pairs} and {len(self.successors)}"
            )
        sums = np.bincount(self.transition_pairs, self.counts, minlength=self.n_pairs)
        off = np.flatnonzero(sums != self.visits)
        if off.size or (self.counts < 0).any() or (self.successors < 0).any():
            pair = off[0] if off.size else 0
            raise InvalidModelError(
                f"pair {pair} was visited {self.visits[pair]} times and its counts sum to {sums[pair]:g}; "
                "they must be equal, and counts and successors at least 0"
            )

    @property
    def n_known(self) -> int:
        return len(self.state_pairs) - 1

    @property
    def n_pairs(self) -> int:
        return len(self.visits)

    @cached_property
    def n_outside(self) -> int:
        """How many numbers from n on are in use."""
        return max(0, int(self.successors.max(initial=-1)) + 1 - self.n_known)

    @cached_property
    def transition_pairs(self) -> IntArray:
        """The pair of each transition, [T]."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.row_offsets))

    @cached_property
    def empirical(self) -> FloatArray:
        """The share of each transition among the visits of its pair, p̂(s'|s, a), [T]."""
        empirical: FloatArray = self.counts / np.maximum(1, self.visits)[self.transition_pairs]
        return empirical

    def pair_name(self, pair: int) -> str:
        """What messages call a pair."""
        state = int(np.searchsorted(self.state_pairs, pair, side="right")) - 1
        return f"known state {state}, action {pair - self.state_pairs[state]}"
