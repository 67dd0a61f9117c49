"""What an atlas says of states: derived from a certificate or an estimate, never stored beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axplore.certificate import Certificate
from axplore.certificate.conclusions import conclusions_of
from axplore.certificate.promise import PropertyBounds
from axplore.records.episodes import EpisodeRecord
from axplore.records.estimate import Estimate
from axplore.target import Objective, Target
from axplore.types import FloatArray, IntArray, Status


@dataclass(frozen=True, eq=False, kw_only=True)
class Statements:
    """What is said of the states that were met.

    Attributes:
        target: L, ε and δ.
        objective: the objective of the certified explorer; None for other explorers.
        numbers: the numbers of the states of the atlas, in order of admission; the initial state is the first, [k].
        frontier_numbers: the numbers of the other states met, [f].
        policies: for each state of the atlas as the goal, the choices of its `Policy`, [m] or [H, m].
        lower, upper, regret: the bounds of the states of the atlas, and then of those of the frontier, [k + f].
        statuses: their statuses, in the same order, [k + f].
        unseen_lower: a lower bound on the expected steps to any state that was never seen.
        complete: whether everything that the objective asks for is proven: no state, seen or unseen, is open.
        tests: what episodes of single policies prove of states, by index.
        properties: the properties that are answered, with their bounds.
        goals: the indices of the goals that were asked for; None if a map was.
        reached_goal: the nearest of them that is reached as was asked; None if none is.
    """

    target: Target
    objective: Objective | None
    numbers: IntArray
    frontier_numbers: IntArray
    policies: Sequence[IntArray]
    lower: FloatArray
    upper: FloatArray
    regret: FloatArray
    statuses: tuple[Status, ...]
    unseen_lower: float
    complete: bool
    tests: tuple[EpisodeRecord, ...] = ()
    properties: tuple[PropertyBounds, ...] = ()
    goals: tuple[int, ...] | None = None
    reached_goal: int | None = None

    def __post_init__(self) -> None:
        policies = self.policies if isinstance(self.policies, tuple) else ()  # others are made when asked for
        for array in (self.numbers, self.frontier_numbers, *policies, self.lower, self.upper, self.regret):
            array.flags.writeable = False


def statements_of(source: Certificate | Estimate) -> Statements:
    """Returns what a certificate says, if its claims hold; or what an explorer without a proof found."""
    return _certified(source) if isinstance(source, Certificate) else _estimated(source)


def _certified(certificate: Certificate) -> Statements:
    concluded, n_known = conclusions_of(certificate), len(certificate.known)
    return Statements(
        target=Target(radius=certificate.radius, epsilon=certificate.epsilon, delta=certificate.delta),
        objective=certificate.objective,
        numbers=np.arange(n_known),
        frontier_numbers=np.arange(n_known, certificate.n_seen),
        policies=concluded.policies,
        lower=concluded.lower,
        upper=concluded.upper,
        regret=concluded.regret,
        statuses=concluded.statuses,
        unseen_lower=concluded.unseen_lower,
        complete=certificate.complete,
        tests=tuple(record for record in certificate.of(EpisodeRecord) if record.at_most is not None),
        properties=concluded.properties,
        goals=None if certificate.goal is None else tuple(certificate.goal.states.tolist()),
        reached_goal=concluded.reached_goal,
    )


def _estimated(estimate: Estimate) -> Statements:
    n_states = len(estimate.states) + len(estimate.frontier)
    return Statements(
        target=Target(radius=estimate.radius, epsilon=estimate.epsilon, delta=estimate.delta),
        objective=None,
        numbers=estimate.states,
        frontier_numbers=estimate.frontier,
        policies=estimate.policies,
        lower=np.concatenate((estimate.optimistic_steps, np.zeros(len(estimate.frontier)))),
        upper=np.full(n_states, np.inf),
        regret=np.full(n_states, np.inf),
        statuses=(Status.OPEN,) * n_states,
        unseen_lower=0.0,
        complete=False,
    )
