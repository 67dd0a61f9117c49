"""Everything that the counts prove about each state, in the form that a certificate keeps.

Each statement comes with the vectors that prove it, so that a reader who trusts no solver can check them with one sweep
over the counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from axplore.proofs.bounds import GoalValues, IntervalModel, Regret
from axplore.proofs.claims import NearOptimal, Reachable, TooFar
from axplore.proofs.travel import actions_of
from axplore.target import Objective, Target
from axplore.types import IntArray, Status


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is proven, by position: known states first, in the order of admission, then the others that were seen.

    Attributes:
        model: the counts and the confidence region that everything follows from.
        target: L, ε and δ.
        objective: what was asked for.
        reachable: for each known state a policy restricted to those admitted before it, and its upper bound, [n].
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
        """Whether everything that the objective asks for is proven: no state is open, seen or not."""
        return self.nothing_missing and all(self.status(goal) is Status.CERTIFIED for goal in range(self.model.n_known))

    @property
    def nothing_missing(self) -> bool:
        """Whether S_L→ ⊆ K is proven: every other state, seen or not, is too far."""
        radius = self.target.radius
        others = self.lower[self.model.n_known :]
        return self.unseen.at_least > radius and all(path.at_least > radius for path in others)

    def status(self, position: int) -> Status:
        """Whether a state is proven within reach with a good policy, proven too far, or neither."""
        target = self.target
        if position >= self.model.n_known:
            return Status.SET_ASIDE if self.lower[position].at_least > target.radius else Status.OPEN
        reached = self.reachable[position].at_most <= target.radius + target.epsilon
        optimal = not self.regrets or self.regrets[position].at_most <= target.epsilon
        return Status.CERTIFIED if reached and optimal else Status.OPEN

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
