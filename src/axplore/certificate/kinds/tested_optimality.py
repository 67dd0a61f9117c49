"""Policies that are near-optimal by a test: three claims about one goal from which it follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axplore.certificate.bounds import correction, lower_steps, upper_steps
from axplore.records.claims import AnyClaim, AtLeast, AtMost, NearOptimal
from axplore.records.episodes import EpisodeRecord
from axplore.records.vectors import Vector
from axplore.target import Objective
from axplore.types import RESET_ACTION

if TYPE_CHECKING:
    from axplore.certificate.document import Certificate


@dataclass(frozen=True, eq=False)
class OptimalByTest:
    """Three claims about one goal from which it follows that a policy is near-optimal.

    Attributes:
        record: the policy, cut after the horizon of its test and charged with its tail then, keeps its bound.
        way: the policy never needs more than that tail, so it keeps the bound without being cut.
        at_least: no policy takes fewer steps than this one is allowed to take, less ε.
    """

    record: EpisodeRecord
    way: AtMost
    at_least: AtLeast

    @property
    def upper(self) -> float:
        """The most expected steps of the policy."""
        return min(self.record.steps, upper_steps(self.way))

    @property
    def lower(self) -> float:
        """The fewest expected steps of any policy."""
        return lower_steps(self.at_least)


def optimal_by_test(certificate: Certificate) -> dict[int, OptimalByTest]:
    """For each known state of which no other claim says so, why its policy is near-optimal by a test, if it is.

    There is one claim of each kind for a goal at most: where there are more, nothing is concluded.
    """
    if certificate.objective is not Objective.OPTIMAL:
        return {}
    others = {claim.goal for claim in certificate.of(NearOptimal)}
    ways, bounds = _single(certificate.of(AtMost)), _single(certificate.of(AtLeast))
    best: dict[int, OptimalByTest] = {}
    records = (record for record in certificate.of(EpisodeRecord) if record.at_most is not None)
    for record in sorted(records, key=lambda record: record.steps, reverse=True):  # the least one counts
        goal = record.goal
        if goal in ways and goal in bounds and goal not in others and goal < len(certificate.known):
            tested = OptimalByTest(record, ways[goal], bounds[goal])
            if _closes_tail(tested) and record.steps - tested.lower <= certificate.epsilon:
                best[goal] = tested
    return best


def _closes_tail(tested: OptimalByTest) -> bool:
    """Whether the way is that of the test, and takes at most its tail from every state, known or not."""
    record, way = tested.record, tested.way
    factor = 1.0 + correction(way.upper)
    most = max(1.0 + float(way.upper[0]) * factor, way.upper.max() * factor)
    return _plays(record.policy(way.policy.length), record.goal) == _plays(way.policy, record.goal) and (
        most <= record.tail and all(state < way.policy.length for state in record.states)
    )


def _plays(policy: Vector[np.int64], goal: int) -> dict[int, int]:
    """What a policy plays, by state; nothing is played at the goal."""
    states, actions = policy.other_than(RESET_ACTION)
    plays = dict(zip(states.tolist(), actions.tolist(), strict=True))
    plays.pop(goal, None)
    return plays


def _single(claims: Sequence[AnyClaim]) -> dict[int, AnyClaim]:
    """The claims about goals of which there is one only, by goal."""
    times = Counter(claim.goal for claim in claims)
    return {claim.goal: claim for claim in claims if times[claim.goal] == 1}
