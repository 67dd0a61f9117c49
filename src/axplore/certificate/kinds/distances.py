"""The claim of the fewest steps to every state of a system whose actions are assumed to have one outcome each.

If every pair that was drawn has one outcome, the draws are a graph, and the expected steps of the best policy to a
state are the length of the shortest way. One record says this for all states, and one look at every edge proves it:

- *lower*: no edge leads from a state to one that is said to be more than a step farther. So every way takes at least
  as many steps as the record says, unless it uses a pair that was never drawn, which may lead anywhere.
- *upper*: every known state is one step farther than the state from which its own pair leads to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axplore.certificate.assumptions.given import all_single
from axplore.certificate.claim_checks import ClaimCheck
from axplore.certificate.kinds.kind import Checking, Kind
from axplore.certificate.ranges import check_wholes
from axplore.errors import InvalidInputError
from axplore.records.counts import Counts
from axplore.records.distances import FAR, NO_PAIR, Distances
from axplore.records.policies import Policies
from axplore.records.properties import PropertyClaim
from axplore.records.vectors import NO_BASE, Vectors
from axplore.target import Objective
from axplore.types import RESET_ACTION, FloatArray, IntArray, Status

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class DistancesKind(Kind[Distances]):
    """How far each state is; it stands in place of all other claims of steps."""

    record, name, words = Distances, "distances", "distances"

    def check_shape(self, claim: Distances, certificate: Certificate) -> None:
        n_known, n_pairs = len(certificate.known), len(certificate.pair_owners)
        for name, length in (("steps", certificate.n_seen), ("reached_by", n_known)):
            array = getattr(claim, name)
            if array.dtype != np.int64 or array.shape != (length,):
                raise InvalidInputError(f"distances.{name} is of shape {array.shape} and type {array.dtype}")
        check_wholes("distances.steps", claim.steps, 0, FAR)
        check_wholes("distances.reached_by", claim.reached_by, NO_PAIR, n_pairs - 1)
        others = len(certificate.claims) - len(certificate.of(PropertyClaim))
        if not all_single(certificate.assumed, len(certificate.pair_owners)) or others > 1:
            raise InvalidInputError(
                "distances need every pair to be assumed to have one outcome, and no other claims of steps"
            )

    def subject(self, claim: Distances, _: Certificate) -> tuple[str, None]:
        return f"the fewest steps to {len(claim.steps)} states", None

    def checks(self, claims: Sequence[Distances], checking: Checking) -> Iterator[ClaimCheck]:
        for claim in claims:
            mistake = mistake_in(claim, checking.certificate.counts, checking.certificate.pair_owners)
            why = mistake or "no action leads nearer than claimed, and every known state is reached as claimed"
            yield self.checked(claim, checking.certificate, not mistake, why)

    def conclude(self, claims: Sequence[Distances], draft: Draft) -> None:
        for claim in claims:
            certificate = draft.certificate
            bounds = exact_bounds(claim, certificate.counts, certificate.pair_owners)
            draft.lower[:-1], draft.lower[-1], draft.upper[:] = bounds.lower, bounds.unseen, bounds.upper
            draft.policies = shortest_ways(claim.reached_by, certificate.state_pairs)
            asked = certificate.radius, certificate.epsilon, certificate.objective
            for index, status in enumerate(bounds.statuses(len(certificate.known), *asked)):
                draft.conclude(index, status)
            if bounds.unseen > certificate.radius:
                draft.conclude(certificate.n_seen, Status.SET_ASIDE)


def mistake_in(distances: Distances, counts: Counts, owners: IntArray) -> str | None:
    """The first thing in the distances that does not follow from the counts, in words; None if all of it does.

    Args:
        distances: what is claimed.
        counts: every pair has one outcome at most.
        owners: the known state of each pair, [P].
    """
    steps, n_known = distances.steps, len(distances.reached_by)
    drawn = np.flatnonzero(np.diff(counts.row_offsets))
    leads_to = np.full(len(owners), NO_PAIR)
    leads_to[drawn] = counts.successors[counts.row_offsets[:-1][drawn]]
    if steps[0] != 0 or distances.reached_by[0] != NO_PAIR:
        return "the initial state is not said to take 0 steps"
    nearer = steps[leads_to[drawn]] > steps[owners[drawn]] + 1
    if nearer.any():
        pair = int(drawn[np.argmax(nearer)])
        return f"a way of {steps[owners[pair]] + 1} steps leads to a state that is said to take {steps[leads_to[pair]]}"
    last = distances.reached_by[1:]
    if (last == NO_PAIR).any():
        return "a known state is said to be reached by no action"
    wrong = (leads_to[last] != np.arange(1, n_known)) | (steps[1:n_known] != steps[owners[last]] + 1)
    if wrong.any():
        return f"known state {int(np.argmax(wrong)) + 1} is not reached as claimed"
    return None


def shortest_ways(reached_by: IntArray, state_pairs: IntArray) -> Policies:
    """Returns the policy to each known state along a tree of shortest ways: one more action than to the state before.

    Args:
        reached_by: the last pair on the way to each known state, or NO_PAIR, [n].
        state_pairs: the first pair of each known state, and the end of the last one, [n + 1].
    """
    n_known = len(reached_by)
    reached = np.flatnonzero(reached_by != NO_PAIR)
    pairs = reached_by[reached]
    before = np.searchsorted(state_pairs, pairs, side="right") - 1
    base = np.full(n_known, NO_BASE, dtype=np.int64)
    base[reached] = before
    sizes = (reached_by != NO_PAIR).astype(np.int64)
    rest = np.full(n_known, RESET_ACTION, dtype=np.int64)
    return Policies(Vectors(n_known, pairs - state_pairs[before], sizes, before, rest, base))


@dataclass(frozen=True, eq=False)
class ExactBounds:
    """What distances say of every state, if they hold.

    Attributes:
        lower, upper: of the steps to each state; upper is infinite for those that are not known, [n + others].
        unseen: no state never seen takes fewer steps; infinite if every pair of the known states was drawn.
    """

    lower: FloatArray
    upper: FloatArray
    unseen: float

    @property
    def regret(self) -> FloatArray:
        """What the shortest way known may lose against the best policy, [n + others]."""
        return self.upper - self.lower

    def statuses(self, n_known: int, radius: float, epsilon: float, objective: Objective) -> tuple[Status, ...]:
        """Of each state."""
        certified = self.upper[:n_known] <= radius + epsilon
        if objective is Objective.OPTIMAL:
            certified &= self.regret[:n_known] <= epsilon
        known = (Status.CERTIFIED if holds else Status.OPEN for holds in certified.tolist())
        beyond = (self.lower[n_known:] > radius).tolist()
        return (*known, *(Status.SET_ASIDE if holds else Status.OPEN for holds in beyond))


def exact_bounds(distances: Distances, counts: Counts, owners: IntArray) -> ExactBounds:
    """The bounds that follow from distances: a pair never drawn may lead anywhere."""
    steps = distances.steps.astype(np.float64)
    undrawn = owners[np.diff(counts.row_offsets) == 0]
    unseen = float(steps[undrawn].min()) + 1.0 if len(undrawn) else math.inf
    lower = np.minimum(steps, unseen)
    lower[0] = 0.0
    upper = steps.copy()
    upper[len(distances.reached_by) :] = math.inf
    return ExactBounds(lower, upper, unseen)
