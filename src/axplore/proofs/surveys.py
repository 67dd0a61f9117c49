"""What draws prove if every action has one outcome: a graph, in which the best way to a state is the shortest.

No region is needed, nothing is estimated, and one breadth-first search answers for all goals at once, so that worlds
of a hundred thousand states take seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from axplore.certificate.kinds.distances import ExactBounds, exact_bounds, shortest_ways
from axplore.compressed import offsets_from, without
from axplore.graphs.search import graph_from, search_tree
from axplore.records.counts import Counts
from axplore.records.distances import FAR, NO_PAIR, Distances
from axplore.records.policies import Policies
from axplore.statistics.counts import in_order
from axplore.target import Objective, Target
from axplore.types import IntArray, Status


@dataclass(frozen=True, eq=False)
class SurveyEvidence:
    """What is proven of each state, by index: known states first, in the order of admission, then the others seen.

    Attributes:
        target: L, ε and δ.
        objective: what was asked for.
        rows: the counts; their states are the known ones.
        numbers: the world's number of each state, [n + others].
        steps: the fewest steps to each, [n + others].
        reached_by: the last pair on a shortest way to each known state, [n].
    """

    target: Target
    objective: Objective
    rows: Counts
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
        """The index of the state of each pair that was never drawn."""
        owners = np.repeat(np.arange(self.n_known), np.diff(self.rows.state_pairs))
        undrawn: IntArray = owners[self.rows.visits == 0]
        return undrawn

    @property
    def finished(self) -> bool:
        """Whether every action was drawn that could lead to another state within the radius."""
        return not (self.steps[self.undrawn_states] + 1 <= self.target.radius).any()

    @property
    def policies(self) -> Policies:
        """The shortest way to each known state, [n]."""
        return shortest_ways(self.reached_by, self.rows.state_pairs)

    @cached_property
    def counts(self) -> Counts:
        """The counts by index, as a certificate keeps them."""
        return in_order(self.rows, self.numbers)

    @cached_property
    def distances(self) -> Distances:
        """The claim about all states."""
        return Distances(self.steps, self.reached_by)

    @cached_property
    def bounds(self) -> ExactBounds:
        """What follows from it."""
        owners = np.repeat(np.arange(self.n_known), np.diff(self.rows.state_pairs))
        return exact_bounds(self.distances, self.counts, owners)

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for is proven: no state is open, seen or not."""
        asked = self.target.radius, self.target.epsilon, self.objective
        is_settled = Status.OPEN not in self.bounds.statuses(self.n_known, *asked)
        return not self.contradicted and is_settled and self.bounds.unseen > self.target.radius


def survey_evidence(rows: Counts, target: Target, objective: Objective) -> SurveyEvidence:
    """Finds the shortest way to every state seen; the first outcome of a pair counts if it had several."""
    others = without(rows.successors, rows.states)
    numbers = np.concatenate((rows.states, others))
    drawn = np.flatnonzero(np.diff(rows.row_offsets))
    first_outcomes = indices_of_successors(rows, numbers)[rows.row_offsets[drawn]]
    ends = offsets_from(np.diff(rows.row_offsets) > 0)[rows.state_pairs]
    ends = np.append(ends, np.full(len(others), ends[-1]))  # of the other states nothing was drawn
    hops, last_edges = search_tree(graph_from(ends, first_outcomes), start=0)
    steps = np.where(hops < len(hops), hops.astype(np.int64), FAR)
    reached_by = np.append(drawn, NO_PAIR)[last_edges]  # an edge of -1 points to the last
    return SurveyEvidence(target, objective, rows, numbers, steps, reached_by[: len(rows.states)])


def indices_of_successors(rows: Counts, numbers: IntArray) -> IntArray:
    """The index of each successor, [E]."""
    indices = np.empty(int(numbers.max()) + 1, dtype=np.int64)
    indices[numbers] = np.arange(len(numbers))
    return indices[rows.successors]


def max_depth(radius: float) -> int:
    """The farthest state in which an action may lead to one within the radius; negative if there is none."""
    return math.floor(radius) - 1
