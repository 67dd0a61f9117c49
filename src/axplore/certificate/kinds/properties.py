"""The claim of bounds of a property: the probability of a goal before something bad, or what reaching it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axplore.certificate.bounds import UnprovenError
from axplore.certificate.claim_checks import ClaimCheck
from axplore.certificate.kinds.kind import Checking, Kind
from axplore.certificate.promise import PropertyBounds
from axplore.certificate.property_proofs import Asked, PropertyProof
from axplore.certificate.ranges import MOST_BOUND, MOST_STEPS, check_named, check_reals, check_wholes
from axplore.errors import InvalidInputError
from axplore.properties import Property, parse_property
from axplore.records.properties import NO_CHOICE, PropertyClaim

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate


class PropertyKind(Kind[PropertyClaim]):
    """The property of a text lies between two bounds, from the initial state."""

    record, name, words = PropertyClaim, "properties", "property"

    def check_shape(self, claim: PropertyClaim, certificate: Certificate) -> None:
        prop = parse_property(claim.text)
        _check_names(claim, certificate.n_seen)
        _check_arrays(claim, prop, certificate)
        try:
            Asked.of(claim, certificate)
        except RecursionError:
            raise InvalidInputError("the property is nested too deeply") from None

    def subject(self, claim: PropertyClaim, _: Certificate) -> tuple[str, None]:
        return claim.text, None

    def checks(self, claims: Sequence[PropertyClaim], checking: Checking) -> Iterator[ClaimCheck]:
        for claim in claims:
            bounds = PropertyBounds.of(claim)
            try:
                PropertyProof(claim, Asked.of(claim, checking.certificate), checking.sweeper).check()
                holds, why = True, str(bounds)
            except UnprovenError as reason:
                holds, why = False, str(reason)
            yield self.checked(claim, checking.certificate, holds, why)

    def conclude(self, claims: Sequence[PropertyClaim], draft: Draft) -> None:
        draft.properties = tuple(PropertyBounds.of(claim) for claim in claims)


def _check_names(claim: PropertyClaim, n_seen: int) -> None:
    """Refuses names that stand twice, and states that do not exist."""
    if any(first.name >= second.name for first, second in pairwise(claim.names)):
        raise InvalidInputError("the names of a property are not in their order, or one stands there twice")
    for named in claim.names:
        check_named("a name of a property", named, n_seen)


def _check_arrays(claim: PropertyClaim, prop: Property, certificate: Certificate) -> None:
    """Refuses arrays of another length than the property needs, and numbers out of their range."""
    n_known, n_pairs = len(certificate.known), len(certificate.pair_owners)
    is_stepwise = prop.within is not None
    plays = (not prop.of_cost or len(claim.upper) > 0) and not is_stepwise
    lengths = {
        "costs": n_pairs if prop.of_cost else 0,
        "lower": n_known,
        "upper": 0 if prop.of_cost and not len(claim.upper) else n_known,
        "policy": n_known if plays else 0,
        "ranks": 0 if prop.of_cost or is_stepwise else n_known,
    }
    for name, length in lengths.items():
        array: npt.NDArray[Any] = getattr(claim, name)
        if array.shape != (length,):
            raise InvalidInputError(f"properties.{name} is of shape {array.shape}; expected ({length},)")
    most = MOST_BOUND if prop.of_cost else 1.0
    for name in ("lower", "upper"):
        check_reals(f"properties.{name}", getattr(claim, name), 0.0, most)
    check_reals("properties.costs", claim.costs, 0.0, MOST_STEPS)
    check_wholes("properties.ranks", claim.ranks, NO_CHOICE, n_known)
    check_wholes("properties.policy", claim.policy, NO_CHOICE)
    if plays and (claim.policy >= np.maximum(certificate.n_actions, 0)).any():
        raise InvalidInputError("the policy of a property plays an action that does not exist")
