"""Atlases of any size, made by hand: a tree of which every action leads to a child, nine times of ten."""

from __future__ import annotations

import math

import numpy as np

from axplore.atlas import Atlas
from axplore.atlas.statements import Statements
from axplore.certificate import Certificate
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.records.run import RunRecord, StopReason
from axplore.target import Objective, Target
from axplore.types import State, Status

BRANCHES = 3


def tree_atlas(members: int, frontier: int = 0, labels: tuple[State, ...] | None = None) -> Atlas:
    """An atlas of a tree: state i leads to 3 i + 1, 3 i + 2 and 3 i + 3, and the last states are left out."""
    n = members + frontier
    successors, counts_of_entries, offsets, pairs = [], [], [0], [0]
    for state in range(members):
        children = [child for child in range(BRANCHES * state + 1, BRANCHES * state + 1 + BRANCHES) if child < n]
        for child in children:
            successors += [child, state]
            counts_of_entries += [9, 1]
            offsets.append(offsets[-1] + 2)
        pairs.append(pairs[-1] + len(children))
    depths = np.array(
        [math.ceil(math.log((BRANCHES - 1) * (state + 1) + 1, BRANCHES) - 1e-9) - 1 for state in range(n)]
    )
    lower = depths / 0.9
    radius = float(lower[members - 1]) + 0.05
    lower[members:] = radius + 0.5
    upper = np.where(np.arange(n) < members, lower + 0.25, math.inf)
    upper[0] = 0.0
    policies = []
    for goal in range(members):
        policy = np.full(members, -1, dtype=np.int64)
        state = goal
        while state:
            parent = (state - 1) // BRANCHES
            policy[parent] = state - BRANCHES * parent - 1
            state = parent
        policies.append(policy)
    counts = Counts(
        order=Labels(labels or (f"state {number}" for number in range(n))),
        actions=tuple(
            Labels(f"to child {child}" for child in range(pairs[state + 1] - pairs[state])) for state in range(members)
        ),
        states=np.arange(members),
        row_offsets=np.array(offsets),
        successors=np.array(successors),
        counts=np.array(counts_of_entries),
        first_draws=np.array([1, 2] * pairs[-1]),
    )
    target = Target(radius=radius, epsilon=0.5, delta=0.1)
    return Atlas(
        source=Certificate(
            radius=target.radius,
            epsilon=target.epsilon,
            delta=target.delta,
            objective=Objective.OPTIMAL,
            counts=counts,
            complete=True,
        ),
        run=RunRecord(
            world="tree",
            explorer="certified",
            steps=10 * members + 100,
            rounds=members,
            stop=StopReason.PROVEN,
            found_at=np.arange(members) * 10,
        ),
        part=Statements(
            target=target,
            objective=Objective.OPTIMAL,
            numbers=np.arange(members),
            policies=tuple(policies),
            frontier_numbers=np.arange(members, n),
            lower=lower,
            upper=upper,
            regret=upper - lower,
            statuses=(Status.CERTIFIED,) * members + (Status.SET_ASIDE,) * frontier,
            unseen_lower=radius + 1,
            complete=True,
        ),
    )
