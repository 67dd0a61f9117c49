"""`deterministic`, for the verifier: 1 for a pair that has one outcome."""

from __future__ import annotations

from axplore.certificate.assumptions.kind import CheckedPairKind
from axplore.records.assumed import Assumed


class Deterministic(CheckedPairKind):
    """One draw settles a pair, which is no closing of its support."""

    name = "deterministic"
    closes = False

    def means_something(self, number: float) -> bool:
        """1 says that there is one outcome."""
        return number == 1.0

    def most_outcomes(self, number: float) -> float:  # noqa: ARG002
        """One."""
        return 1.0

    def clauses(self, assumed: Assumed) -> tuple[str, ...]:
        """Of how many pairs."""
        single = assumed.numbers[self.name]
        n_single, n_pairs = int(single.sum()), len(single)
        if n_single == n_pairs and n_pairs:
            return ("every action has one outcome",)
        return (f"{n_single} of the {n_pairs} actions have one outcome, as declared",) if n_single else ()
