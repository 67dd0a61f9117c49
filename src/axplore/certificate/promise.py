"""What is promised once everything that was asked for is proven, in one place for all that repeats it."""

from __future__ import annotations

from axplore.target import Objective


def promise(n_states: int, radius: float, epsilon: float, objective: Objective | None) -> str:
    """Returns the promise as a clause."""
    subject = "the initial state is" if n_states == 1 else f"{n_states:,} states are"
    clause = f"{subject} reliably reachable within {radius + epsilon:g} expected steps, and no other within {radius:g}"
    if objective is not Objective.OPTIMAL:
        return clause
    steps = "1 step" if epsilon == 1 else f"{epsilon:g} steps"
    return f"{clause}; each policy is within {steps} of the best one through these states"
