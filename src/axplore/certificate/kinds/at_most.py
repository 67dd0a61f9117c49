"""The claim that a policy keeps a bound, whatever the bound is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axplore.certificate.bounds import proven_upper, upper_steps
from axplore.certificate.differences import Follows
from axplore.certificate.kinds.kind import Checking, VectorKind
from axplore.certificate.promise import upper_text
from axplore.records.claims import AtMost

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class AtMostKind(VectorKind[AtMost]):
    """A policy reaches the goal within the expected steps that its bound says."""

    record, name, words = AtMost, "at_most", "at most"

    def goals(self, certificate: Certificate) -> range:
        return range(1, len(certificate.known))

    def proof(self, claim: AtMost, checking: Checking, follows: Follows) -> str:
        if not follows.upper:
            proven_upper(checking.sweeper, claim)
        return f"its policy takes up to {upper_text(upper_steps(claim))} expected steps"

    def conclude(self, claims: Sequence[AtMost], draft: Draft) -> None:
        for claim in claims:
            draft.use(claim.goal, claim.policy, upper_steps(claim))
