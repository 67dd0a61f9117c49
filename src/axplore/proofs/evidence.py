"""Everything that the counts prove about each state, in the form that a certificate keeps.

Each statement comes with the vectors that prove it, so that a reader who trusts no solver can check them with one sweep
over the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from axplore.proofs.bounds import GoalValues, IntervalModel, Regret
from axplore.proofs.claims import NearOptimal, Reachable, TooFar, surely_beyond, surely_within
from axplore.proofs.travel import actions_of
from axplore.target import Objective, Target
from axplore.types import IntArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is proven, by position: known states first, in the order of admission, then the others that were seen.

    Attributes:
        model: the counts and the confidence region that everything follows from.
        target: L, ε and δ.
        objective: what was asked for.
        reachable: for each known state a policy restricted on those admitted before it, and its upper bound, [n].
        regrets: for each known state the final policy, its bounds and its regret, [n]; empty for AX_L.
        lower: for each state seen, a lower bound of the steps of every policy, [n + others].
        unseen: the same for a state never seen.
    """

    model: IntervalModel
    target: Target
    objective: Objective
    reachable: tuple[GoalValues, ...]
    regrets: tuple[Regret, ...]
    lower: tuple[GoalValues, ...]
    unseen: GoalValues

    @property
    def best_upper(self) -> tuple[GoalValues, ...]:
        """For each known state the policy to use, with its upper bound, [n]."""
        return tuple(regret.upper for regret in self.regrets) or self.reachable

    @property
    def complete(self) -> bool:
        """Whether S_L→ ⊆ K is proven: every other state, seen or not, is too far."""
        return all(self.sets_aside(position) for position in range(self.model.n_known, self.model.unseen + 1))

    def status(self, position: int) -> Status:
        """Whether a state is proven within reach with a good policy, proven too far, or neither."""
        if position >= self.model.n_known:
            return Status.SET_ASIDE if self.sets_aside(position) else Status.OPEN
        optimal = not self.regrets or self.is_near_optimal(position)
        return Status.CERTIFIED if self.reaches(position) and optimal else Status.OPEN

    def reaches(self, position: int) -> bool:
        """Whether a known state is proven to be reached within L + ε through states admitted before it."""
        return surely_within(self.reachable[position].steps, self.target.radius + self.target.epsilon)

    def is_near_optimal(self, position: int) -> bool:
        """Whether the final policy to a known state is proven to lose at most ε."""
        regret = self.regrets[position]
        return surely_within(regret.steps, self.target.epsilon, regret.upper.steps)

    def sets_aside(self, position: int) -> bool:
        """Whether a state that is not known, or the unseen, is proven to be farther than L."""
        path = self.unseen if position == self.model.unseen else self.lower[position]
        return surely_beyond(path.steps, self.target.radius)

    def actions(self, policy: IntArray) -> IntArray:
        """A policy of pairs as one of positions among the actions of each known state, [n]."""
        return actions_of(self.model, policy)


def gather_evidence(model: IntervalModel, target: Target, objective: Objective) -> Evidence:
    """Solves every claim once more on the final counts."""
    reach = target.radius + target.epsilon
    known = range(model.n_known)
    start = GoalValues(0, np.zeros(len(model.numbers)), np.full(model.n_known, -1), proven=True)
    reachable = tuple(start if goal == 0 else Reachable(goal, reach, goal).path(model) for goal in known)
    regrets: tuple[Regret, ...] = ()
    if objective is Objective.OPTIMAL:
        regrets = tuple(NearOptimal(goal, target.epsilon).regret(model) for goal in known)
    lower = tuple(TooFar(goal, target.radius).path(model) for goal in range(len(model.numbers)))
    return Evidence(
        model=model,
        target=target,
        objective=objective,
        reachable=reachable,
        regrets=regrets,
        lower=lower,
        unseen=TooFar(model.unseen, target.radius).path(model),
    )


class Status(Enum):
    """What is known of a state; the value is what to call it."""

    CERTIFIED = "certified"
    """Proven within reach, with a policy as good as the objective asks for."""
    SET_ASIDE = "set aside"
    """Proven too far for every policy through the known states."""
    OPEN = "open"
    """Neither."""
