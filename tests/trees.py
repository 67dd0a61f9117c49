"""Atlases of any size, made by hand: a tree of which every action leads to a child, nine times of ten."""

from __future__ import annotations

import math

import numpy as np

from axplore.atlas import Atlas
from axplore.explorers.base import StopReason
from axplore.target import Objective, Target
from axplore.types import State, Status

BRANCHES = 3


def tree_atlas(members: int, frontier: int = 0, labels: tuple[State, ...] | None = None) -> Atlas:
    """An atlas of a tree: state i leads to 3 i + 1, 3 i + 2 and 3 i + 3, and the last states are left out."""
    n = members + frontier
    successors, counts, offsets, pairs = [], [], [0], [0]
    for state in range(members):
        children = [child for child in range(BRANCHES * state + 1, BRANCHES * state + 1 + BRANCHES) if child < n]
        for child in children:
            successors += [child, state]
            counts += [9, 1]
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
    return Atlas(
        world="tree",
        explorer="certified",
        target=Target(radius=radius, epsilon=0.5, delta=0.1),
        objective=Objective.OPTIMAL,
        seen=labels or tuple(f"state {number}" for number in range(n)),
        numbers=np.arange(members),
        found_at=np.arange(members) * 10,
        actions=tuple(
            tuple(f"to child {child}" for child in range(pairs[state + 1] - pairs[state])) for state in range(members)
        ),
        policies=tuple(policies),
        frontier_numbers=np.arange(members, n),
        lower=lower,
        upper=upper,
        regret=upper - lower,
        statuses=(Status.CERTIFIED,) * members + (Status.SET_ASIDE,) * frontier,
        unseen_lower=radius + 1,
        proven=True,
        complete=True,
        count_arrays={
            "states": np.arange(members),
            "state_pairs": np.array(pairs),
            "visits": np.full(pairs[-1], 10),
            "row_offsets": np.array(offsets),
            "successors": np.array(successors),
            "counts": np.array(counts),
            "first_draws": np.array([1, 2] * pairs[-1]),
        },
        steps=10 * members + 100,
        rounds=members,
        stop=StopReason.PROVEN,
    )
