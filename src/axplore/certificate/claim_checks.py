"""What the verifier says of a certificate, claim by claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from axplore.errors import ExitCode


@dataclass(frozen=True)
class ClaimCheck:
    """Whether one claim follows from the counts.

    Attributes:
        kind: what to call what is claimed: the words of a kind of claims, or "counts", "assumptions", "complete".
        subject: of what, in words; a state by its label.
        index: of the state in the certificate; None for a claim about all of them.
        holds: whether it is proven.
        why: what proves it, or what is wrong.
    """

    kind: str
    subject: str
    index: int | None
    holds: bool
    why: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.holds else 'FAILED'}  {self.kind:<12}  {self.subject}: {self.why}"


@dataclass(frozen=True)
class Verification:
    """Whether everything that a certificate claims follows from its counts.

    Attributes:
        claims: the check of each claim.
        open_parts: what the certificate would have to claim besides to be complete, in words.
        conclusion: what may be said if every claim holds, a sentence or two in each line.
        code: the exit code that goes with the conclusion.
    """

    claims: tuple[ClaimCheck, ...]
    open_parts: tuple[str, ...]
    conclusion: tuple[str, ...]
    code: ExitCode

    @property
    def holds(self) -> bool:
        """Whether every claim that is made is proven."""
        return all(claim.holds for claim in self.claims)

    @property
    def complete(self) -> bool:
        """Whether everything that the objective asks for is proven: every claim holds and none is missing."""
        return self.holds and not self.open_parts

    @property
    def exit_code(self) -> ExitCode:
        """What a command that verifies exits with."""
        return self.code if self.holds else ExitCode.REFUTED

    def requiring_completeness(self) -> Verification:
        """The same with one claim more: that nothing is left to prove. It holds if the certificate is complete."""
        if any(claim.kind == "complete" for claim in self.claims):
            return self
        why = self.open_parts[0] if self.open_parts else "the certificate does not claim it"
        return replace(self, claims=(*self.claims, ClaimCheck("complete", "all", None, False, why)))

    @property
    def failures(self) -> tuple[ClaimCheck, ...]:
        """The claims that are not proven."""
        return tuple(claim for claim in self.claims if not claim.holds)

    @property
    def proven(self) -> Mapping[str, int]:
        """How many claims of each kind are proven."""
        return Counter(claim.kind for claim in self.claims if claim.holds)

    def __str__(self) -> str:
        return "\n".join((*map(str, self.claims), self.summary))

    @property
    def summary(self) -> str:
        """The outcome without the single claims."""
        if not self.holds:
            return f"REJECTED: {len(self.failures)} of {len(self.claims)} claims do not follow from the counts."
        return "\n".join((f"VERIFIED: all {len(self.claims)} claims follow from the counts.", *self.conclusion))
