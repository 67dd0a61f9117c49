"""What a kind of claims is to the verifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError
from axplore.certificate.claim_checks import ClaimCheck
from axplore.certificate.differences import Follows, by_differences
from axplore.certificate.ranges import MOST_BOUND, check_real, check_reals
from axplore.errors import InvalidInputError
from axplore.records import claims as records
from axplore.records.claims import Columns, claims_in, columns_of, vector_types
from axplore.records.vectors import Vector
from axplore.types import RESET_ACTION, IntArray

if TYPE_CHECKING:
    from axplore.certificate.conclusions import Draft
    from axplore.certificate.document import Certificate

AnyRecord = TypeVar("AnyRecord")
AnyClaim = TypeVar("AnyClaim", bound=records.Claim)


@dataclass(eq=False)
class Checking:
    """What claims are checked against.

    Attributes:
        certificate: whose claims they are; its draws can be, and do not contradict what is assumed.
        failed: the indices of which a claim was found not to follow so far.
    """

    certificate: Certificate
    failed: set[int | None]

    @cached_property
    def sweeper(self) -> Sweeper:
        """The confidence region of the counts."""
        return Sweeper.of(self.certificate)


class Kind(ABC, Generic[AnyRecord]):
    """A kind of claims: how a file keeps them, when they are well formed, what proves them, and what follows.

    Attributes:
        record: the type of the claims.
        name: what they are called in a file.
        words: what they are called in a verification.
        once: whether nothing is concluded from two claims about one state.
    """

    record: ClassVar[type[Any]]
    name: ClassVar[str]
    words: ClassVar[str]
    once: ClassVar[bool] = False

    @property
    def kept_as(self) -> Any:
        """The type in which a file keeps all claims of the kind."""
        return tuple[self.record, ...]  # type: ignore[name-defined]

    def kept(self, claims: Sequence[AnyRecord]) -> Any:
        """Returns claims, of which there are some, in that form."""
        return tuple(claims)

    def read(self, kept: Any) -> tuple[AnyRecord, ...]:
        """Returns the claims that a file keeps; refuses what `kept` does not return."""
        return tuple(kept)

    @abstractmethod
    def check_shape(self, claim: AnyRecord, certificate: Certificate) -> None:
        """Refuses a claim that does not fit the certificate: numbers out of their range, vectors of another length."""

    def check_shapes(self, claims: Sequence[AnyRecord], certificate: Certificate) -> None:
        """Refuses claims if one of them does not fit."""
        for claim in claims:
            self.check_shape(claim, certificate)

    @abstractmethod
    def checks(self, claims: Sequence[AnyRecord], checking: Checking) -> Iterable[ClaimCheck]:
        """Yields of each claim whether it follows."""

    @abstractmethod
    def conclude(self, claims: Sequence[AnyRecord], draft: Draft) -> None:
        """Adds to the conclusions what follows from claims if they hold."""

    def subject(self, claim: AnyRecord, certificate: Certificate) -> tuple[str, int | None]:
        """Returns what a claim is about, in words, and its index; None if it is about all states."""
        goal: int = claim.goal  # type: ignore[attr-defined]
        return subject_of(certificate, goal), goal

    def checked(self, claim: AnyRecord, certificate: Certificate, holds: bool, why: str) -> ClaimCheck:
        """Returns the check of a claim."""
        return ClaimCheck(self.words, *self.subject(claim, certificate), holds, why)


class VectorKind(Kind[AnyClaim]):
    """A kind of claims about single goals that vectors prove, checked one by one against the region."""

    kept_as = Columns

    def kept(self, claims: Sequence[AnyClaim]) -> Columns:
        return columns_of(claims)

    def read(self, kept: Columns) -> tuple[AnyClaim, ...]:
        return claims_in(self.record, kept)

    @abstractmethod
    def goals(self, certificate: Certificate) -> range:
        """Returns the indices that a claim may be about."""

    @abstractmethod
    def proof(self, claim: AnyClaim, checking: Checking, follows: Follows) -> str:
        """Returns in words what proves a claim; raises `UnprovenError` if nothing does.

        What follows by differences need not be looked at again.
        """

    def check_shape(self, claim: AnyClaim, certificate: Certificate) -> None:
        self.check_shapes((claim,), certificate)

    def check_shapes(self, claims: Sequence[AnyClaim], certificate: Certificate) -> None:
        kind, n_known, goals = self.record.__name__, len(certificate.known), self.goals(certificate)
        for claim in claims:
            if claim.goal not in goals:
                raise InvalidInputError(f"{kind} cannot be claimed of the index {claim.goal}")
        for name, dtype in vector_types(self.record).items():
            check_vectors(f"{kind}.{name}", [getattr(claim, name) for claim in claims], dtype, n_known)
        for claim in claims:
            check_real(f"{kind}.deduction", records.deduction_of(claim), 0.0, MOST_BOUND)
            if isinstance(claim, records.Way) and not _exists(claim.policy, certificate.n_actions):
                raise InvalidInputError(
                    f"{kind}.policy towards the index {claim.goal} plays an action that does not exist"
                )

    def checks(self, claims: Sequence[AnyClaim], checking: Checking) -> Iterator[ClaimCheck]:
        known = by_differences(checking.sweeper, claims, checking.certificate.epsilon)
        for claim, follows in zip(claims, known, strict=True):
            try:
                holds, why = True, self.proof(claim, checking, follows)
            except UnprovenError as reason:
                holds, why = False, str(reason)
            yield self.checked(claim, checking.certificate, holds, why)


def subject_of(certificate: Certificate, index: int) -> str:
    """What to call an index in a sentence."""
    if index == certificate.n_seen:
        return "every state never seen"
    return f"state {certificate.counts.order[index]!r}"


def check_vectors(name: str, vectors: Sequence[Vector[Any]], dtype: type[np.generic], length: int) -> None:
    """Refuses vectors of another length or type, and bounds out of their range."""
    for vector in vectors:
        if vector.dtype != dtype or vector.length != length:
            raise InvalidInputError(
                f"{name} is of shape {vector.shape} and type {vector.dtype}; expected ({length},) and {np.dtype(dtype)}"
            )
    if dtype is np.float64 and vectors:
        bases = {id(vector.base): vector.base for vector in vectors if vector.base is not None}
        parts = [*vectors, *bases.values()]
        check_reals(name, np.concatenate([part.numbers for part in parts]), 0.0, MOST_BOUND)
        check_reals(name, np.array([part.rest for part in parts]), 0.0, MOST_BOUND)


def _exists(policy: Vector[np.int64], n_actions: IntArray) -> bool:
    """Whether every action that a policy plays is one of its state."""
    states, actions = policy.other_than(RESET_ACTION)
    return bool(((actions >= 0) & (actions < n_actions[states])).all())
