"""The claim that a state, or all states never seen, are beyond the radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axplore.certificate.bounds import UnprovenError, lower_steps
from axplore.certificate.deducted_bounds import require_lower
from axplore.certificate.differences import Follows
from axplore.certificate.kinds.kind import Checking, VectorKind
from axplore.certificate.promise import lower_text
from axplore.records.claims import TooFar

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class TooFarKind(VectorKind[TooFar]):
    """Every policy restricted to the known states needs more than L expected steps to the goal."""

    record, name, words, once = TooFar, "too_far", "too far", True

    def goals(self, certificate: Certificate) -> range:
        return range(len(certificate.known), certificate.n_seen + 1)

    def proof(self, claim: TooFar, checking: Checking, follows: Follows) -> str:
        if not follows.lower:
            require_lower(checking.sweeper, claim)
        steps, radius = lower_steps(claim), checking.certificate.radius
        if not steps > radius:
            raise UnprovenError(f"some policy may need only {steps:.6g} expected steps, not more than {radius:.6g}")
        return f"every policy needs at least {lower_text(steps)} expected steps, of {radius:.6g}"

    def conclude(self, claims: Sequence[TooFar], draft: Draft) -> None:
        for claim in claims:
            draft.beyond.add(claim.goal)
            draft.raise_lower(claim.goal, lower_steps(claim))
