"""`outcomes`, for the verifier: the most outcomes of each pair."""

from __future__ import annotations

from typing import Final

from axplore.certificate.assumptions.kind import CheckedPairKind
from axplore.records.assumed import Assumed

LARGEST: Final = 10**6


class Outcomes(CheckedPairKind):
    """A pair that has shown as many outcomes as it can have has no other."""

    name = "outcomes"

    def means_something(self, number: float) -> bool:
        """A whole number from 2 on; one outcome is `deterministic`."""
        return 2.0 <= number <= LARGEST and number == int(number)

    def most_outcomes(self, number: float) -> float:
        """The number itself."""
        return number

    def clauses(self, assumed: Assumed) -> tuple[str, ...]:
        """Of how many pairs, and the most of all."""
        numbers = assumed.numbers[self.name]
        declared = numbers[numbers > 0.0]
        if not len(declared):
            return ()
        whose = "no action has" if len(declared) == len(numbers) else f"none of {len(declared)} actions has"
        most = f"{declared.max():g} outcomes"
        return (f"{whose} more than {most if declared.min() == declared.max() else f'declared, {most} at the most'}",)
