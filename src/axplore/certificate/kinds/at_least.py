"""The claim that every policy needs a number of steps, whatever the number is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axplore.certificate.bounds import lower_steps
from axplore.certificate.deducted_bounds import require_lower
from axplore.certificate.differences import Follows
from axplore.certificate.kinds.kind import Checking, VectorKind
from axplore.certificate.promise import lower_text
from axplore.records.claims import AtLeast

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class AtLeastKind(VectorKind[AtLeast]):
    """Every policy restricted to the known states needs the expected steps that the bound says."""

    record, name, words = AtLeast, "at_least", "at least"

    def goals(self, certificate: Certificate) -> range:
        return range(1, certificate.n_seen + 1)

    def proof(self, claim: AtLeast, checking: Checking, follows: Follows) -> str:
        if not follows.lower:
            require_lower(checking.sweeper, claim)
        return f"every policy needs at least {lower_text(lower_steps(claim))} expected steps"

    def conclude(self, claims: Sequence[AtLeast], draft: Draft) -> None:
        for claim in claims:
            draft.raise_lower(claim.goal, lower_steps(claim))
