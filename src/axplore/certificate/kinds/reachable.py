"""The claim that a state is within reach by states admitted before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axplore.certificate.bounds import UnprovenError, proven_upper, upper_steps
from axplore.certificate.differences import Follows
from axplore.certificate.kinds.kind import Checking, VectorKind
from axplore.certificate.promise import upper_text
from axplore.records.claims import Reachable
from axplore.types import RESET_ACTION

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class ReachableKind(VectorKind[Reachable]):
    """A policy restricted to the states admitted before the goal reaches it within L + ε expected steps."""

    record, name, words, once = Reachable, "reachable", "reachable", True

    def goals(self, certificate: Certificate) -> range:
        return range(1, len(certificate.known))

    def proof(self, claim: Reachable, checking: Checking, follows: Follows) -> str:
        states, _ = claim.policy.other_than(RESET_ACTION)
        if len(states) and states[-1] >= claim.goal:
            raise UnprovenError("its policy does not reset in every state that was admitted with it or later")
        if not follows.upper:
            proven_upper(checking.sweeper, claim)
        steps, limit = upper_steps(claim), checking.certificate.reach
        if not steps <= limit:
            raise UnprovenError(f"its policy takes up to {steps:.6g} expected steps, more than {limit:.6g}")
        return f"by states admitted before it within {upper_text(steps)} expected steps, of {limit:.6g}"

    def conclude(self, claims: Sequence[Reachable], draft: Draft) -> None:
        for claim in claims:
            draft.reached.add(claim.goal)
            draft.use(claim.goal, claim.policy, upper_steps(claim))
