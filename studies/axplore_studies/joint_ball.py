"""The least steps of an oracle whose region is one ball around all rows together: one budget, in place of one per row.

A model is in the *joint ball* of the draws n if the sum over pairs of n KL(true row || its row) is at most kl(δ, 1 − δ).
This is what `limits` asks for, but that the answer is given here, its policies included, where a limit asks for
alternatives in which no answer of the model is right. So the oracle of the joint ball takes no less than any limit, and
what it takes beyond the limit says how loose that is, rather than what could be saved.

An adversary splits the budget among the rows. A split is kept as the *distances* that it allows each row; if some claim
fails with these, draws n can only prove it if n @ distances >= kl(δ, 1 − δ), which is linear in n. So the least steps
are those of a linear programme with such cuts. The adversary is sought for draws between those of the last programme
and the best with which nothing was found to fail. These draws are the answer; the adversary is a local one.
"""

from __future__ import annotations

from collections.abc import Callable
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
from axplore.types import RESET_PAIR, FloatArray, IntArray
from axplore_studies.oracle import Allocation, Oracle

TOTALS: Final = (16.0, 8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0)
"""The parts of the budget that the adversary splits one after the other: with more of it, claims show what they fear."""

HALVINGS: Final = 6
"""How finely is asked which part of a split suffices to let a claim fail."""

ROUNDS: Final = 150
SETTLED: Final = 0.01
"""The search ends when what is proven takes no more than this part more than what cuts ask for."""

Attack: TypeAlias = Callable[[IntervalModel], tuple[float, FloatArray]]
"""By how much a claim fails in a model, and what it would gain by the logarithm of the draws of each pair, [P]."""


@dataclass(frozen=True, eq=False)
class JointBall:
    """The search.

    Attributes:
        oracle: who allocates the draws, with a ball of its own for each row.
        begin: its draws: they prove all claims, and fix the policies of the answer.
        budget: what all rows share, in nats.
    """

    oracle: Oracle
    begin: Allocation
    budget: float

    def best(self) -> Allocation:
        """The best draws that were found."""
        proven, cuts = self.begin, np.zeros((0, self.oracle.model.n_pairs))
        for _ in range(ROUNDS):
            programme = self.oracle.cheapest(cuts, self.budget)
            if programme.steps >= proven.steps * (1.0 - SETTLED):
                break
            between = proven.mean(programme)
            found = [cut for attack in self._attacks if (cut := self._cut(attack, between.draws)) is not None]
            cuts = np.vstack((cuts, *found))
            if not found:
                proven = between
        return proven

    @cached_property
    def _attacks(self) -> list[Attack]:
        """Those on the claims of the answer, with the policies that are proven by the first draws."""
        model = self.oracle.model_after(self.begin.draws)
        return [_attack(claim, model) for claim in self.oracle.claims]

    def _cut(self, attack: Attack, draws: FloatArray) -> FloatArray | None:
        """Distances, [P], that let a claim fail and are within the budget; None if none are found."""
        distances = self._worst_split(attack, draws)
        if self._lacking(attack, distances) <= 0.0:
            return None
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._lacking(attack, middle * distances) > 0.0 else (middle, high)
        return high * distances

    def _worst_split(self, attack: Attack, draws: FloatArray) -> FloatArray:
        """The distances, [P], of the split with which a claim fails most.

        What a row takes from a bound falls like the root of its part. So the parts are those of the worst split where
        they are in proportion to what rows bring, and a few rounds of that find it.
        """
        distances, worst, most = self.budget / draws, np.zeros(len(draws)), -np.inf
        for total in TOTALS:
            lacking, gain = attack(self._within(distances))
            if not gain.any():
                break
            distances = gain / gain.sum() * total * self.budget / draws
            if total == 1.0 and (lacking := self._lacking(attack, distances)) > most:
                worst, most = distances, lacking
        return worst

    def _lacking(self, attack: Attack, distances: FloatArray) -> float:
        return attack(self._within(distances))[0]

    def _within(self, distances: FloatArray) -> IntervalModel:
        """All models with rows at most as far from the true ones, [P]."""
        return self.oracle.model_within(distances)


def _attack(claim: ToProve, model: IntervalModel) -> Attack:
    """What lets a claim fail; `model` proves it, and with it the policy, if there is one in it."""
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
    kept = np.zeros(len(gain))
    kept[played[played != RESET_PAIR]] = gain[played[played != RESET_PAIR]]
    return kept
