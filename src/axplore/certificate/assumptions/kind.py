"""What a kind of assumption is on the side of the verifier, which shares no computation with those who use it.

A kind owns, in its own file: the shape of what a certificate says of it, what draws contradict it, what follows from it
for the rows of pairs, and the clause that follows "if". Everything else loops over `KINDS` of the registry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from axplore.errors import InvalidInputError
from axplore.records.assumed import UNTIED, Assumed
from axplore.records.counts import Counts

Contradiction: TypeAlias = tuple[int, str]
"""A pair, and what its draws show that is assumed to be impossible, in words that follow the name of the pair."""


@dataclass(frozen=True)
class Shape:
    """How many of everything there are in a certificate.

    Attributes:
        n_pairs: pairs of known states.
        n_entries: entries of their rows.
        n_seen: states seen.
        n_other_pairs: pairs of counted states that are not known.
    """

    n_pairs: int
    n_entries: int
    n_seen: int
    n_other_pairs: int


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was drawn, in the form in which assumptions speak of it.

    Attributes:
        counts: as they were drawn.
        pooled: the rows in which each tied pair shows the draws of its class; the counts if no pair is tied.
        classes: of each pair, or UNTIED, [P].
        weights: the part of δ that each pair may use, [P].
    """

    counts: Counts
    pooled: Counts
    classes: Sequence[int]
    weights: Sequence[float]

    def row(self, pair: int) -> list[int]:
        """The counts of a pair, or of its class."""
        first, end = self.pooled.row_offsets[pair : pair + 2].tolist()
        counts: list[int] = self.pooled.counts[first:end].tolist()
        return counts


class CheckedKind(ABC):
    """A kind of assumption as the verifier sees it.

    Attributes:
        name: as in the certificate and on the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def is_in(self, assumed: Assumed) -> bool:
        """Whether a certificate assumes it, if only of some pairs or of none yet."""

    @abstractmethod
    def check(self, assumed: Assumed, shape: Shape) -> None:
        """Raises InvalidInputError for what is no assumption of this kind."""

    @abstractmethod
    def clauses(self, assumed: Assumed) -> tuple[str, ...]:
        """What is assumed, in words that follow "if"."""

    def contradiction(self, assumed: Assumed, drawn: Drawn) -> Contradiction | None:  # noqa: ARG002
        """The first draws that contradict it, beyond too many outcomes and those that come too late; None if none."""
        return None


class CheckedPairKind(CheckedKind):
    """A kind that says one number of each pair, and nothing where the number is 0.

    Attributes:
        closes: whether it may close the support of a pair while it is drawn.
        closes_by_chance: whether it may err in that, for which it needs a part of δ.
    """

    closes: ClassVar[bool] = True
    closes_by_chance: ClassVar[bool] = False

    def is_in(self, assumed: Assumed) -> bool:
        """Whether there are numbers of it."""
        return self.name in assumed.numbers

    def check(self, assumed: Assumed, shape: Shape) -> None:
        """Refuses anything but a number that means something for each pair."""
        numbers = assumed.numbers[self.name]
        if numbers.shape != (shape.n_pairs,):
            raise InvalidInputError(f"assumed.{self.name} does not give a number for each pair")
        if not all(number == 0.0 or self.means_something(number) for number in numbers.tolist()):
            raise InvalidInputError(f"assumed.{self.name} holds a number that means nothing")

    @abstractmethod
    def means_something(self, number: float) -> bool:
        """Whether a number that is not 0 says something of a pair."""

    def most_outcomes(self, number: float) -> float:  # noqa: ARG002
        """How many outcomes a pair can have, infinite if that is not known; not asked where the number is 0."""
        return math.inf

    def floor(self, number: float) -> float:  # noqa: ARG002
        """How likely each outcome of a pair is at least; not asked where the number is 0."""
        return 0.0

    def closing_draws(self, number: float, level: float) -> float:  # noqa: ARG002
        """After how many draws no outcome is left unseen, but with the probability `level`; not asked where it is 0."""
        return math.inf

    def of_all(self, numbers: Sequence[float]) -> float:
        """What is said of all pairs of a class; the least, if greater numbers say more."""
        return min(numbers)

    def of_classes(self, assumed: Assumed, classes: Sequence[int]) -> list[float]:
        """The number of each pair: in a class, what is said of all of its pairs, [P]."""
        own = assumed.numbers[self.name].tolist()
        of_class: dict[int, list[float]] = {}
        for number, kind in zip(own, classes, strict=True):
            of_class.setdefault(kind, []).append(number)
        shared = {kind: self.of_all(numbers) for kind, numbers in of_class.items() if kind != UNTIED}
        return [shared.get(kind, number) for number, kind in zip(own, classes, strict=True)]
