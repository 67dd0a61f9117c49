"""What explorers read off the counts of their known set."""

from __future__ import annotations

import numpy as np

from axplore.mdp import RESET_ACTION, FloatArray, IntArray
from axplore.statistics.counts import CountedRows, TransitionCounts


def frontier_of(counts: TransitionCounts) -> tuple[int, ...]:
    """U: the numbers of the successors met outside the known set, ascending."""
    rows = counts.rows()
    return tuple(sorted(set(rows.successors.tolist()) - set(rows.states.tolist())))


def estimates_of(rows: CountedRows) -> FloatArray:
    """p̂(s'|s,a) = N(s,a,s')/N(s,a) of each transition met, [E]."""
    estimates: FloatArray = rows.counts / rows.visits[rows.entry_pairs]
    return estimates


def policy_by_number(policy: IntArray, known: tuple[int, ...]) -> IntArray:
    """A policy by position in the known set, [m] or [H, m], as one by number in the world, [n] or [H, n]."""
    numbers = np.array(known[: policy.shape[-1]])
    by_number = np.full((*policy.shape[:-1], numbers.max() + 1), RESET_ACTION, dtype=np.int64)
    by_number[..., numbers] = policy
    return by_number
