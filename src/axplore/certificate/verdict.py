"""What the verifier says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class ClaimKind(Enum):
    """The kinds of claims; the value is the name by which a verdict calls them."""

    COUNTS = "counts"
    REACHABLE = "reachable"
    TOO_FAR = "too far"
    NEAR_OPTIMAL = "near-optimal"
    COMPLETE = "complete"
    ATLAS = "atlas"
    """That an atlas says no more than its certificate; see `axplore.atlas.verification`."""


@dataclass(frozen=True)
class ClaimVerdict:
    """Whether one claim is proven.

    Attributes:
        kind: what is claimed.
        subject: of what, in words; a state by its label.
        position: of the state in the certificate; None for a claim about all of them.
        holds: whether it is proven.
        why: what proves it, or what is wrong.
    """

    kind: ClaimKind
    subject: str
    position: int | None
    holds: bool
    why: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.holds else 'FAILED'}  {self.kind.value:<12}  {self.subject}: {self.why}"


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate proves what it claims.

    Attributes:
        claims: a verdict for each claim.
        open_parts: what the certificate would have to claim besides to be complete, in words.
        promise: what is then true, in words.
    """

    claims: tuple[ClaimVerdict, ...]
    open_parts: tuple[str, ...]
    promise: str

    @property
    def holds(self) -> bool:
        """Whether every claim that is made is proven."""
        return all(claim.holds for claim in self.claims)

    @property
    def complete(self) -> bool:
        """Whether the objective is proven: every claim holds and none is missing."""
        return self.holds and not self.open_parts

    @property
    def failures(self) -> tuple[ClaimVerdict, ...]:
        """The claims that are not proven."""
        return tuple(claim for claim in self.claims if not claim.holds)

    @property
    def proven(self) -> Mapping[ClaimKind, int]:
        """How many claims of each kind are proven."""
        return Counter(claim.kind for claim in self.claims if claim.holds)

    def __str__(self) -> str:
        return "\n".join((*map(str, self.claims), self.summary))

    @property
    def summary(self) -> str:
        """The verdict without the single claims."""
        if not self.holds:
            return f"REJECTED: {len(self.failures)} of {len(self.claims)} claims are not proven."
        lines = [f"VERIFIED: all {len(self.claims)} claims are proven from the counts.", self.promise]
        if self.open_parts:
            more = len(self.open_parts) - 1
            lines.append(f"NOT COMPLETE: {self.open_parts[0]}{f', and {more} more are open' if more else ''}.")
        return "\n".join(lines)
