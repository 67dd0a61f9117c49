"""What draws prove if every action has one outcome: a graph, in which the best way to a state is the shortest.

No region is needed, nothing is estimated, and one breadth-first search answers for all goals at once, so that worlds
of a hundred thousand states take seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from axplore.certificate.contents import Counts
from axplore.certificate.distances import NO_PAIR, Distances, ExactBounds, ShortestWays, exact_bounds
from axplore.compilation import compiled
from axplore.statistics.counts import CountedRows
from axplore.target import Objective, Target
from axplore.types import IntArray

FAR = 2**62
"""The steps to a state that no known way leads to."""


@dataclass(frozen=True, eq=False)
class SurveyEvidence:
    """What is proven of each state, by position: known states first, in the order of admission, then the others seen.

    Attributes:
        target: L, ε and δ.
        objective: what was asked for.
        rows: the counts; their states are the known ones.
        numbers: the world's number of each position, [n + others].
        steps: the fewest steps to each, [n + others].
        reached_by: the last pair on a shortest way to each known state, [n].
    """

    target: Target
    objective: Objective
    rows: CountedRows
    numbers: IntArray
    steps: IntArray
    reached_by: IntArray

    @property
    def n_known(self) -> int:
        """How many states are known."""
        return len(self.rows.states)

    @property
    def contradicted(self) -> bool:
        """Whether an action had more than one outcome, so that nothing follows from the draws."""
        return bool((np.diff(self.rows.row_offsets) > 1).any())

    @property
    def undrawn_states(self) -> IntArray:
        """The position of the state of each pair that was never drawn."""
        owners = np.repeat(np.arange(self.n_known), np.diff(self.rows.state_pairs))
        undrawn: IntArray = owners[self.rows.visits == 0]
        return undrawn

    @property
    def finished(self) -> bool:
        """Whether every action was drawn that could lead to another state within the radius."""
        return not (self.steps[self.undrawn_states] + 1 <= self.target.radius).any()

    @property
    def policies(self) -> ShortestWays:
        """The shortest way to each known state, [n]."""
        return ShortestWays(self.reached_by, self.rows.state_pairs)

    @cached_property
    def counts(self) -> Counts:
        """The counts as a certificate keeps them."""
        return Counts(
            self.rows.row_offsets, positions_of(self.rows, self.numbers), self.rows.counts, self.rows.first_draws
        )

    @cached_property
    def distances(self) -> Distances:
        """The claim about all states."""
        return Distances(self.steps, self.reached_by)

    @cached_property
    def bounds(self) -> ExactBounds:
        """What follows from it."""
        owners = np.repeat(np.arange(self.n_known), np.diff(self.rows.state_pairs))
        return exact_bounds(self.distances, self.counts, owners)


def survey_evidence(rows: CountedRows, target: Target, objective: Objective) -> SurveyEvidence:
    """Finds the shortest way to every state seen; the first outcome of a pair counts if it had several."""
    others = np.setdiff1d(rows.successors, rows.states)
    numbers = np.concatenate((rows.states, others))
    steps = np.full(len(numbers), FAR, dtype=np.int64)
    reached_by = np.full(len(numbers), NO_PAIR, dtype=np.int64)
    _search(rows.state_pairs, rows.row_offsets, positions_of(rows, numbers), steps, reached_by)
    return SurveyEvidence(target, objective, rows, numbers, steps, reached_by[: len(rows.states)])


def positions_of(rows: CountedRows, numbers: IntArray) -> IntArray:
    """The position of each successor, [E]."""
    positions = np.empty(int(numbers.max()) + 1, dtype=np.int64)
    positions[numbers] = np.arange(len(numbers))
    return positions[rows.successors]


def max_depth(radius: float) -> int:
    """The farthest state in which an action may lead to one within the radius; negative if there is none."""
    return math.floor(radius) - 1


@compiled
def _search(
    state_pairs: IntArray, row_offsets: IntArray, successors: IntArray, steps: IntArray, reached_by: IntArray
) -> None:
    """Breadth-first from the first position: writes the steps to each, and the pair that leads there, [n + others]."""
    n_known = len(state_pairs) - 1
    queue = np.empty(n_known, np.int64)
    queue[0] = 0
    steps[0] = 0
    n_queued, first = 1, 0
    while first < n_queued:
        here = queue[first]
        first += 1
        for pair in range(state_pairs[here], state_pairs[here + 1]):
            if row_offsets[pair] == row_offsets[pair + 1]:
                continue
            after = successors[row_offsets[pair]]
            if steps[after] == FAR:
                steps[after] = steps[here] + 1
                reached_by[after] = pair
                if after < n_known:
                    queue[n_queued] = after
                    n_queued += 1
