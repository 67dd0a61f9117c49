"""What an explorer without a proof found: states, policies and counts."""

from __future__ import annotations

import numpy as np

from axplore.errors import InvalidInputError
from axplore.memory import Memory
from axplore.records.codec import Record
from axplore.records.counts import Counts
from axplore.records.findings import Fault, Finding
from axplore.types import RESET_ACTION, FloatArray, IntArray


class Estimate(Record, frozen=True, kw_only=True):
    """The result of an exploration that proves nothing.

    Attributes:
        radius, epsilon, delta: L, ε and δ.
        counts: the transitions met; indices of states are those of its order.
        states: the index of each state found, in order of admission; the initial state is the first, [k].
        frontier: the index of each other state met, [f].
        policies: for each state found, as the goal, what to play in the first m of them, [m], or by step, [H, m].
        optimistic_steps: the explorer's optimistic estimate of the steps to each, [k].
        findings: what was found of the system.
        faults: the failures of the system.
        memory: what tells situations apart, if these are the states.
    """

    radius: float
    epsilon: float
    delta: float
    counts: Counts
    states: IntArray
    frontier: IntArray
    policies: tuple[IntArray, ...]
    optimistic_steps: FloatArray
    findings: tuple[Finding, ...] = ()
    faults: tuple[Fault, ...] = ()
    memory: Memory | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known, others = self.states.tolist(), self.frontier.tolist()
        offered = dict(zip(self.counts.states.tolist(), map(len, self.counts.actions), strict=True))
        fits = (
            len(known) == len(self.policies) == len(self.optimistic_steps) > 0
            and len({*known, *others}) == len(known) + len(others)
            and all(0 <= state < len(self.counts.order) for state in (*known, *others))
            and len(self.counts.order.indices) == len(self.counts.order)
            and set(known) <= offered.keys()
            and set(self.counts.successors.tolist()) <= {*known, *others}
        )
        if not fits or not all(_is_possible(policy, [offered[state] for state in known]) for policy in self.policies):
            raise InvalidInputError("the parts of the estimate do not fit each other")


def _is_possible(policy: IntArray, n_actions: list[int]) -> bool:
    """Whether a policy plays only what states offer."""
    most = np.array(n_actions[: policy.shape[-1]])
    return (
        policy.ndim in (1, 2)
        and policy.shape[-1] <= len(n_actions)
        and bool(((policy >= RESET_ACTION) & (policy < most)).all())
    )
