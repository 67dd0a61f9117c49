"""The claim that a policy is nearly as good as the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axplore.certificate.bounds import (
    UnprovenError,
    corrected_lower,
    corrected_upper,
    loss_steps,
    lower_steps,
    proven_regret,
    proven_upper,
    upper_steps,
)
from axplore.certificate.deducted_bounds import require_lower
from axplore.certificate.differences import Follows
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

    def proof(self, claim: NearOptimal, checking: Checking, follows: Follows) -> str:
        epsilon, sweeper = checking.certificate.epsilon, checking.sweeper
        if not follows.upper:
            proven_upper(sweeper, claim)
        if not follows.lower:
            require_lower(sweeper, claim)
        upper, lower = upper_steps(claim), lower_steps(claim)
        loss = upper - lower
        if loss > epsilon and not claim.deduction:  # with one W is no bound by itself
            if not follows.loss:
                proven_regret(sweeper, claim, corrected_upper(claim.upper), corrected_lower(claim.lower))
            loss = loss_steps(claim)
        if not loss <= epsilon:
            raise UnprovenError(f"its policy may lose {loss:.6g} expected steps, more than {epsilon:.6g}")
        interval = f"between {lower_text(lower)} and {upper_text(upper)} expected steps"
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
    return min(loss_steps(claim), gap)
