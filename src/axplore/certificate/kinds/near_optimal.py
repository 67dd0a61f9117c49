"""The claim that a policy is nearly as good as the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axplore.certificate.bounds import (
    UnprovenError,
    corrected_regret,
    corrected_upper,
    lower_steps,
    proven_lower,
    proven_regret,
    proven_upper,
    upper_steps,
)
from axplore.certificate.deducted_bounds import proven_lower_steps
from axplore.certificate.kinds.kind import Checking, VectorKind
from axplore.certificate.promise import lower_text, upper_text
from axplore.records.claims import NearOptimal

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class NearOptimalKind(VectorKind[NearOptimal]):
    """A policy needs at most ε expected steps more than the best policy restricted to the known states."""

    record, name, words, once = NearOptimal, "near_optimal", "near-optimal", True

    def goals(self, certificate: Certificate) -> range:
        return range(1, len(certificate.known))

    def proof(self, claim: NearOptimal, checking: Checking) -> str:
        epsilon, sweeper = checking.certificate.epsilon, checking.sweeper
        upper, least = proven_upper(sweeper, claim), proven_lower_steps(sweeper, claim)
        loss = float(upper[0]) - least
        if loss > epsilon and not claim.deduction:  # elsewhere W is no bound by itself
            loss = float(proven_regret(sweeper, claim, upper, proven_lower(sweeper, claim))[0])
        if not loss <= epsilon:
            raise UnprovenError(f"its policy may lose {loss:.6g} expected steps, more than {epsilon:.6g}")
        interval = f"between {lower_text(least)} and {upper_text(upper[0])} expected steps"
        return f"{interval}, at most {upper_text(loss)} from the best"

    def conclude(self, claims: Sequence[NearOptimal], draft: Draft) -> None:
        for claim in claims:
            draft.optimal.add(claim.goal)
            draft.use(claim.goal, claim.policy, upper_steps(claim))
            draft.raise_lower(claim.goal, lower_steps(claim))
            draft.losses[claim.goal] = loss_of(claim, draft.certificate.epsilon)


def loss_of(claim: NearOptimal, epsilon: float) -> float:
    """What a near-optimal policy loses: the gap between its bounds, or its regret where the gap is too wide."""
    gap = upper_steps(claim) - lower_steps(claim)
    if gap <= epsilon or claim.deduction:
        return gap
    return min(float(corrected_regret(claim.regret.whole, corrected_upper(claim.upper.whole))[0]), gap)
