"""Pairs that share a law over outcomes, as a certificate lists them, and the verifier's own account of their draws.

A user's function named the outcome of every draw. The verifier cannot run it, and takes the list for what it is: an
assumption. It adds up the draws of each class from those of its pairs, and looks for draws that contradict the list.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from axplore.certificate.contents import Counts, Record
from axplore.errors import InvalidInputError
from axplore.labels import canonical_json, encode_label
from axplore.types import IntArray

UNTIED: Final = -1
"""In place of an outcome or a class, of a pair that shares its law with no other or was never drawn."""

UNKNOWN: Final = -1
"""In place of the position to which an outcome leads, where it was neither seen in the pair nor predicted."""


@dataclass(frozen=True, eq=False)
class Tied(Record):
    """Which outcome each draw was.

    Attributes:
        names: the class and the name of each outcome, [O].
        outcomes: of each entry of the counts, or UNTIED, [E].
        predicted: pair, outcome and the position that it leads to there, of outcomes that were predicted, [Q, 3].
        elsewhere: how often each outcome was drawn in counted states that are not known, [O].
        other_classes: the class of each pair of these states, or UNTIED, [p].
    """

    names: tuple[tuple[Hashable, Hashable], ...]
    outcomes: IntArray
    predicted: IntArray
    elsewhere: IntArray
    other_classes: IntArray

    @cached_property
    def classes(self) -> list[int]:
        """The class of each outcome, numbered in the order in which the names stand, [O]."""
        numbers: dict[str, int] = {}
        return [numbers.setdefault(_text(name[0]), len(numbers)) for name in self.names]

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return max(self.classes, default=UNTIED) + 1

    def check_shape(self, n_pairs: int, n_entries: int, n_seen: int, n_other_pairs: int) -> None:
        """Refuses arrays that do not fit the counts, and names that stand twice."""
        n_outcomes = len(self.names)
        texts = [_text(name) for name in self.names]
        if len(set(texts)) != n_outcomes:
            raise InvalidInputError("an outcome of tied pairs is listed twice")
        shapes = {
            "outcomes": (n_entries,),
            "predicted": (len(self.predicted), 3),
            "elsewhere": (n_outcomes,),
            "other_classes": (n_other_pairs,),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.dtype != np.int64 or array.shape != shape:
                raise InvalidInputError(f"tied.{name} does not fit the counts")
        columns = (n_pairs, n_outcomes, n_seen)
        in_range = (
            _within(self.outcomes, UNTIED, n_outcomes)
            and all(_within(self.predicted[:, place], 0, end) for place, end in enumerate(columns))
            and _within(self.other_classes, UNTIED, self.n_classes)
            and (self.elsewhere >= 0).all()
        )
        if not in_range or (self.elsewhere.any() and not (self.other_classes != UNTIED).any()):
            raise InvalidInputError("tied names an outcome, a pair or a state that does not exist")

    def pair_classes(self, counts: Counts) -> list[int]:
        """The class of each pair, that of its first outcome; UNTIED where there is none, [P]."""
        first = [int(self.outcomes[a]) if b > a else UNTIED for a, b in pairwise(counts.row_offsets.tolist())]
        return [UNTIED if outcome == UNTIED else self.classes[outcome] for outcome in first]

    def totals(self, counts: Counts) -> list[int]:
        """How often each outcome was drawn in all pairs together, [O]."""
        total: list[int] = self.elsewhere.tolist()
        for outcome, count in zip(self.outcomes.tolist(), counts.counts.tolist(), strict=True):
            if outcome != UNTIED:
                total[outcome] += count
        return total

    def maps(self, counts: Counts) -> Iterator[tuple[int, int, int]]:
        """Yields pair, outcome and where it leads, as it was drawn and as it was predicted."""
        owners = np.repeat(np.arange(len(counts.row_offsets) - 1), np.diff(counts.row_offsets)).tolist()
        for pair, outcome, successor in zip(owners, self.outcomes.tolist(), counts.successors.tolist(), strict=True):
            if outcome != UNTIED:
                yield pair, outcome, successor
        yield from map(tuple, self.predicted.tolist())

    def contradiction(self, counts: Counts) -> tuple[int, str] | None:
        """The first pair whose draws contradict the list, and how; None if there is none."""
        for pair, (first, end) in enumerate(pairwise(counts.row_offsets.tolist())):
            kinds = {self.classes[o] if o != UNTIED else UNTIED for o in self.outcomes[first:end].tolist()}
            if len(kinds) > 1:
                return pair, "was given two classes"
        leads_to: dict[tuple[int, int], int] = {}
        comes_from: dict[tuple[int, int], int] = {}
        for pair, outcome, successor in self.maps(counts):
            if leads_to.setdefault((pair, outcome), successor) != successor:
                return pair, f"leads to two states by the outcome {self.names[outcome][1]!r}"
            other = comes_from.setdefault((pair, successor), outcome)
            if other != outcome:
                one, two = self.names[other][1], self.names[outcome][1]
                return pair, f"leads to one state by the outcomes {one!r} and {two!r}, which cannot be told apart"
        return None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is assumed, as clauses that follow "if"."""
        if not self.names:
            return ()
        size = self.n_classes
        whose = f"the actions of each of the {size} classes listed" if size > 1 else "the actions of the class listed"
        clause = f"{whose} share one law of outcomes"
        return (clause, "outcomes lead where they were predicted to lead") if len(self.predicted) else (clause,)


def pooled(counts: Counts, tied: Tied, apart: Sequence[bool]) -> tuple[Counts, list[int]]:
    """The rows in which each tied pair shows the draws of its whole class, and the class of each pair, [P].

    Args:
        counts: what was drawn.
        tied: which outcome each draw was.
        apart: which pairs are known without their class, [P].
    """
    classes = [UNTIED if known else kind for known, kind in zip(apart, tied.pair_classes(counts), strict=True)]
    totals = tied.totals(counts)
    of_class: dict[int, list[int]] = {}
    for outcome, kind in enumerate(tied.classes):
        if totals[outcome] > 0:
            of_class.setdefault(kind, []).append(outcome)
    leads_to = {(pair, outcome): successor for pair, outcome, successor in tied.maps(counts)}
    rows: list[list[tuple[int, int, int]]] = []
    for pair, (first, end) in enumerate(pairwise(counts.row_offsets.tolist())):
        own = (counts.successors[first:end], counts.counts[first:end], counts.first_draws[first:end])
        row = list(zip(*(array.tolist() for array in own), strict=True))
        if classes[pair] != UNTIED:
            row = [(leads_to.get((pair, o), UNKNOWN), totals[o], 0) for o in of_class[classes[pair]]]
        rows.append(row)
    entries = np.array([entry for row in rows for entry in row], dtype=np.int64).reshape(-1, 3)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Counts(offsets, *(entries[:, column].copy() for column in range(3))), classes


def unit_numbers(classes: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """The number of the class of each pair, or of the pair itself if it has none, in the order of their first pairs.

    Args:
        classes: of each pair, or UNTIED.
        ranks: of the state of each pair; pairs of one state stand in the order of its actions.
    """
    numbers: dict[tuple[str, int], int] = {}
    of_pair = [0] * len(classes)
    for pair in sorted(range(len(classes)), key=lambda pair: ranks[pair]):
        unit = ("pair", pair) if classes[pair] == UNTIED else ("class", classes[pair])
        of_pair[pair] = numbers.setdefault(unit, len(numbers) + 1)
    return of_pair


def _within(array: IntArray, least: int, end: int) -> bool:
    return bool(((array >= least) & (array < end)).all())


def _text(label: Hashable) -> str:
    return canonical_json(encode_label(label))
