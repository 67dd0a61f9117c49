"""The claim of bounds of a property: the probability of a goal before something bad, or what reaching it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from axplore.certificate.bounds import UnprovenError
from axplore.certificate.claim_checks import ClaimCheck
from axplore.certificate.joint_proofs import check_joint, entries_of
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
from axplore.records.properties import NO_BOUND, NO_CHOICE, JointBound, JointDraws, PropertyClaim, Witness

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate

MOST_PLAYS: Final = 1e6
"""No pair that is played more often has a price."""


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
        lines = [line for claim in claims for line in _lines(claim)]
        lines += {record.line for record in checking.certificate.of(EpisodeRecord)}
        for claim in claims:
            bounds = PropertyBounds.of(claim, checking.certificate.counts.order)
            try:
                _check_situations(bounds, checking.certificate)
                asked = Asked.of(claim, checking.certificate)
                proof = PropertyProof(claim, asked, checking.sweeper)
                proof.check()
                if claim.witness is not None:
                    check_witness(claim, claim.witness, asked, checking.sweeper, checking.certificate.delta)
                if claim.joint is not None:
                    check_joint(claim, claim.joint, proof, checking.certificate.delta)
                twice = [line for line in _lines(claim) if lines.count(line) > 1]
                if twice:
                    raise UnprovenError(f"line {twice[0]} of tests is used twice")
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


def _lines(claim: PropertyClaim) -> list[int]:
    """The lines of the tests that a claim rests on."""
    return [tests.line for tests in (claim.witness, claim.joint) if tests is not None]


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
    if claim.joint is not None:
        _check_joint_shape(claim, claim.joint, prop, certificate)
    elif claim.joint_lower is not None or claim.joint_upper is not None:
        raise InvalidInputError("a bound by joint draws has no draws")


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


def _check_joint_shape(claim: PropertyClaim, joint: JointDraws, prop: Property, certificate: Certificate) -> None:
    """Refuses arrays of another length than the named pairs need, and numbers out of their range."""
    if prop.of_cost or prop.within is not None:
        raise InvalidInputError("only the probability within any number of steps has joint draws")
    if certificate.assumed is not None and certificate.assumed.ties is not None:
        raise InvalidInputError("joint draws of actions that share their draws cannot be checked")
    check_whole("'line' of joint draws", joint.line, 1)
    check_wholes("'pairs' of joint draws", joint.pairs, 0, len(certificate.pair_owners) - 1)
    if joint.pairs.ndim != 1 or not len(joint.pairs) or (np.diff(joint.pairs) <= 0).any():
        raise InvalidInputError("the pairs of joint draws do not ascend, or there are none")
    check_wholes("'before' of joint draws", joint.before, 0)
    entries, _ = entries_of(joint.pairs, certificate.counts)
    if joint.before.shape != entries.shape:
        raise InvalidInputError(f"'before' of joint draws is of shape {joint.before.shape}; expected {entries.shape}")
    for bound, is_upper in ((claim.joint_lower, False), (claim.joint_upper, True)):
        if bound is not None:
            _check_joint_bound(bound, len(joint.pairs), prop.maximise != is_upper, is_upper, certificate)


def _check_joint_bound(
    bound: JointBound, n_pairs: int, is_fixed: bool, is_upper: bool, certificate: Certificate
) -> None:
    """The same of the bound of one side, which may be of one policy."""
    n_known = len(certificate.known)
    check_real("a bound by joint draws", bound.bound, 0.0, 1.0)
    check_real("the price of joint draws", bound.price, 0.0, MOST_BOUND)
    shapes = {
        "values": (n_known,), "most_plays": (n_pairs,), "plays": (n_pairs, n_known),
        "policy": (n_known if is_fixed else 0,), "ranks": (0 if is_upper else n_known,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array: npt.NDArray[Any] = getattr(bound, name)
        if array.shape != shape:
            raise InvalidInputError(f"{name!r} of a bound by joint draws is of shape {array.shape}; expected {shape}")
    check_reals("'values' of a bound by joint draws", bound.values, 0.0, 1.0)
    check_reals("'plays' of a bound by joint draws", bound.plays, 0.0, MOST_PLAYS)
    check_reals("'most_plays' of a bound by joint draws", bound.most_plays, NO_BOUND, MOST_PLAYS)
    check_wholes("'ranks' of a bound by joint draws", bound.ranks, NO_CHOICE, n_known)
    check_wholes("'policy' of a bound by joint draws", bound.policy, NO_CHOICE)
    if is_fixed and (bound.policy >= np.maximum(certificate.n_actions, 0)).any():
        raise InvalidInputError("the policy of a bound by joint draws plays an action that does not exist")
