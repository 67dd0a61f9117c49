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
from axplore.certificate.ranges import (
    MOST_BOUND,
    MOST_STEPS,
    check_named,
    check_real,
    check_reals,
    check_whole,
    check_wholes,
)
from axplore.certificate.witness_proofs import check_witness
from axplore.errors import InvalidInputError
from axplore.properties import Property, parse_property
from axplore.records.episodes import EpisodeRecord
from axplore.records.properties import NO_CHOICE, PropertyClaim, Witness

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
        Asked.of(claim, certificate)

    def subject(self, claim: PropertyClaim, certificate: Certificate) -> tuple[str, None]:
        return PropertyBounds.of(claim, certificate.counts.order).in_full, None

    def checks(self, claims: Sequence[PropertyClaim], checking: Checking) -> Iterator[ClaimCheck]:
        lines = [claim.witness.line for claim in claims if claim.witness is not None]
        lines += {record.line for record in checking.certificate.of(EpisodeRecord)}
        for claim in claims:
            bounds = PropertyBounds.of(claim, checking.certificate.counts.order)
            try:
                _check_situations(bounds, checking.certificate)
                asked = Asked.of(claim, checking.certificate)
                PropertyProof(claim, asked, checking.sweeper).check()
                if claim.witness is not None:
                    check_witness(claim, claim.witness, asked, checking.sweeper, checking.certificate.delta)
                    if lines.count(claim.witness.line) > 1:
                        raise UnprovenError(f"line {claim.witness.line} of tests by episodes is used twice")
                holds, why = True, str(bounds)
            except UnprovenError as reason:
                holds, why = False, str(reason)
            yield self.checked(claim, checking.certificate, holds, why)

    def conclude(self, claims: Sequence[PropertyClaim], draft: Draft) -> None:
        draft.properties = tuple(PropertyBounds.of(claim, draft.certificate.counts.order) for claim in claims)


def _check_situations(bounds: PropertyBounds, certificate: Certificate) -> None:
    """Refuses the name of an output that stands for several situations where it is not said for which."""
    named = {named.name for named in bounds.claim.names} if bounds.claim is not None else set()
    situations = {} if certificate.memory is None else certificate.memory.names
    for name in bounds.prop.names:
        if name in situations and name not in named:
            raise UnprovenError(f'"{name}" stands for several situations, and it is not said for which')


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
    if claim.witness is not None:
        _check_witness_shape(claim.witness, prop, certificate)


def _check_witness_shape(witness: Witness, prop: Property, certificate: Certificate) -> None:
    """Refuses arrays of another length than the property needs, and numbers out of their range."""
    n_known = len(certificate.known)
    if prop.of_cost or prop.within is None:
        raise InvalidInputError("only the probability within a number of steps has a witness")
    check_real("the bound of a witness", witness.bound, 0.0, 1.0)
    for name in ("line", "episodes"):
        check_whole(f"{name!r} of a witness", getattr(witness, name), 1)
    check_whole("'successes' of a witness", witness.successes, 0, witness.episodes)
    shape = (prop.within, n_known)
    if witness.policy.shape != shape:
        raise InvalidInputError(f"the policy of a witness is of shape {witness.policy.shape}; expected {shape}")
    check_wholes("the policy of a witness", witness.policy, NO_CHOICE)
    if (witness.policy >= np.maximum(certificate.n_actions, 0)).any():
        raise InvalidInputError("the policy of a witness plays an action that does not exist")
    if not witness.fractions or len(witness.fractions) != len(witness.weights):
        raise InvalidInputError("the bets of a witness are invalid")
    for name in ("fractions", "weights"):
        for item in getattr(witness, name):
            check_real(f"{name!r} of a witness", item, 1e-100, 1.0)
