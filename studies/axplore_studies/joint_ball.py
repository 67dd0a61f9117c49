"""The least steps of an oracle whose region is one ball around all rows together, in place of one around each row.

A model is in the *joint ball* of the draws n if the sum over pairs of n KL(true row || its row) is at most a budget.
With kl(δ, 1 − δ) nats this is what a limit asks for (docs/algorithms/lower-bound.md), but that the answer is given
here, its policies included, and proven as the explorer proves it. A limit asks only for what tells the model from those
in which *no* answer is right that is right here. So it is no larger; the quotient is what one answer costs beyond that.

An adversary splits the budget among the rows. A split is kept as the *distances* that it allows each row; if some claim
fails with these, draws n can only prove it if n @ distances >= budget, which is linear in n. So the least steps are
those of a linear programme with such cuts. The adversary is sought for draws half-way from the best with which nothing
was found to fail to those of the last programme. He is a local one: the best draws are an estimate, and no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, TypeAlias

import numpy as np

from axplore.proofs.bounds import (
    GoalValues,
    IntervalModel,
    gain_of_lower,
    gain_of_regret,
    gain_of_upper,
    regret_path,
    upper_path,
)
from axplore.proofs.claims import ToOptimise, ToProve, ToReach, ToSetAside
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray
from axplore_studies.oracle import Allocation, Oracle

TOTALS: Final = ((16.0, 8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0), (0.06, 0.12, 0.25, 0.5, 1.0, 1.0, 1.0, 1.0))
"""The parts of the budget that the adversary splits one after the other. From above and from below, policies differ."""

CORNERS: Final = 3
"""Of so many pairs with one successor each is tried as the only one of them that takes part in a split."""

HALVINGS: Final = 6
"""How finely is asked which part of a split suffices to let a claim fail."""

ROUNDS: Final = 150
SETTLED: Final = 0.01
"""By what part the best draws may miss those of the programme, and what is proven the budget, while they are sought."""

Attack: TypeAlias = Callable[[IntervalModel], tuple[float, FloatArray]]
"""By how much a claim fails in a model, and what it would gain by the logarithm of the draws of each pair, [P]."""


@dataclass(frozen=True, eq=False)
class JointBall:
    """The search.

    Attributes:
        oracle: who allocates the draws, with a ball of the same budget around each row.
        begin: its draws: they prove all claims, and fix the policies of the answer.
        budget: what all rows share, in nats.
    """

    oracle: Oracle
    begin: Allocation
    budget: float

    def best(self) -> Allocation:
        """The best draws that were found."""
        proven, cuts = self.begin, np.zeros((0, len(self.begin.draws)))
        for _ in range(ROUNDS):
            programme = self.oracle.cheapest(cuts, self.budget)
            if programme.steps >= proven.steps * (1.0 - SETTLED):
                break
            between = proven.mixed(programme, 0.5)
            found = [cut for attack in self._attacks if (cut := self._cut(attack, between.draws)) is not None]
            cuts = np.vstack((cuts, *found))
            proven = self._mended(proven, cuts) if found else between
        return proven.times(1.0 / (1.0 - SETTLED))

    def _mended(self, proven: Allocation, cuts: FloatArray) -> Allocation:
        """Draws with which no claim fails by any of the cuts, [n, P]: as many of the first instead as are needed."""
        here = cuts @ proven.draws
        needed = np.maximum(self.budget - here, 0.0) / np.maximum(cuts @ self.begin.draws - here, 1e-12)
        return proven.mixed(self.begin, min(float(needed.max()), 1.0))

    @cached_property
    def _attacks(self) -> list[Attack]:
        """Those on the claims of the answer, with the policies that the first draws prove."""
        model = self.oracle.model_after(self.begin.draws)
        return [_attack(claim, model) for claim in self.oracle.claims]

    def _cut(self, attack: Attack, draws: FloatArray) -> FloatArray | None:
        """Distances, [P], that let a claim fail and are within the budget; None if none are found."""
        distances = max(self._splits(attack, draws), key=lambda split: self._failure(attack, split))
        low, high = 0.0, 1.0 - SETTLED
        if self._failure(attack, high * distances) <= 0.0:
            return None
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._failure(attack, middle * distances) > 0.0 else (middle, high)
        return high * distances

    def _splits(self, attack: Attack, draws: FloatArray) -> Iterator[FloatArray]:
        """The distances, [P], of splits that may be the worst for a claim.

        Of the pairs with one successor one alone takes part in the worst split, as on certain ways (Eq. 18).
        """
        _, gain = attack(self.oracle.model_within(self.budget / draws))
        certain = np.flatnonzero(self._is_certain & (gain > 0.0))
        corners = certain[np.argsort(-gain[certain])[:CORNERS]]
        for corner in np.split(corners, max(len(corners), 1)):  # a single pair, or none
            taking_part = ~self._is_certain
            taking_part[corner] = True
            for totals in TOTALS:
                yield self._split(attack, draws, taking_part, totals)

    def _split(self, attack: Attack, draws: FloatArray, taking_part: BoolArray, totals: Sequence[float]) -> FloatArray:
        """The distances, [P], of a split among some pairs, [P], that cannot be made worse by a little.

        There, what a claim gains by a part of the budget is the same for all rows that have one: the parts are in
        proportion to what it gains by their logarithms. A few rounds find that, since bounds are concave in the parts.
        """
        distances = totals[0] * self.budget / draws * taking_part
        for total in totals:
            _, gain = attack(self.oracle.model_within(distances))
            gain = gain * taking_part
            if not gain.any():
                break
            distances = gain / gain.sum() * total * self.budget / draws
        return distances * (self.budget / max(float(distances @ draws), self.budget))

    def _failure(self, attack: Attack, distances: FloatArray) -> float:
        return attack(self.oracle.model_within(distances))[0]

    @cached_property
    def _is_certain(self) -> BoolArray:
        """Which pairs have one successor, [P]."""
        certain: BoolArray = np.diff(self.oracle.model.rows.row_offsets) == 1
        return certain


def _attack(claim: ToProve, model: IntervalModel) -> Attack:
    """How a claim may fail. The model proves it; so it fixes the policy, if there is one in the claim."""
    if isinstance(claim, ToReach):
        return partial(_of_reaching, claim, upper_path(model, claim.goal, n_allowed=claim.n_allowed))
    if isinstance(claim, ToOptimise):
        return partial(_of_optimising, claim, claim.regret(model).upper)
    assert isinstance(claim, ToSetAside)
    return partial(_of_setting_aside, claim)


def _of_reaching(claim: ToReach, path: GoalValues, model: IntervalModel) -> tuple[float, FloatArray]:
    found = upper_path(model, claim.goal, follow=path, n_allowed=claim.n_allowed)
    return found.at_most - claim.steps, gain_of_upper(model, found if found.proven else path)


def _of_optimising(claim: ToOptimise, path: GoalValues, model: IntervalModel) -> tuple[float, FloatArray]:
    upper = upper_path(model, claim.goal, follow=path)
    if not upper.proven:
        return np.inf, gain_of_upper(model, path)
    regret = regret_path(model, upper, claim.lower(model))
    gain = gain_of_regret(model, regret)
    return regret.at_most - claim.steps, _of_pairs(gain, upper.policy, regret.lower.policy, regret.rivals)


def _of_setting_aside(claim: ToSetAside, model: IntervalModel) -> tuple[float, FloatArray]:
    path = claim.path(model)
    return claim.steps - path.at_least, _of_pairs(gain_of_lower(model, path), path.policy)


def _of_pairs(gain: FloatArray, *policies: IntArray) -> FloatArray:
    """The gain of the pairs that are played, [P]: of pairs that tie, an adversary spends on one alone."""
    played = np.concatenate(policies)
    played = played[played != RESET_PAIR]
    kept = np.zeros(len(gain))
    kept[played] = gain[played]
    return kept
