"""`tied` and `leads-to`, for the verifier: pairs that share a law over outcomes, as a certificate lists them.

A user's function named the outcome of every draw. The verifier cannot run it, and takes the list for what it is: an
assumption. It adds up the draws of each class from those of its pairs, and looks for draws that contradict the list.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import structs

from axplore.certificate.assumptions.kind import CheckedKind, Contradiction, Drawn, Shape
from axplore.certificate.ranges import check_wholes
from axplore.errors import InvalidInputError
from axplore.labels import canonical_json, encode_label
from axplore.records.assumed import UNKNOWN, UNTIED, Assumed, Ties
from axplore.records.counts import Counts
from axplore.types import IntArray


class Tied(CheckedKind):
    """Which pairs share a law, and where outcomes are predicted to lead."""

    name = "tied"

    def is_in(self, assumed: Assumed) -> bool:
        """Whether there is a list."""
        return assumed.ties is not None

    def check(self, assumed: Assumed, shape: Shape) -> None:
        """Refuses arrays that do not fit the counts, names that stand twice, and a list of nothing.

        Levels depend on whether there is a list, so one without an "if" must not change them.
        """
        assert assumed.ties is not None
        ties, n_outcomes = assumed.ties, len(assumed.ties.names)
        if not n_outcomes:
            raise InvalidInputError("ties list no outcome: where no pair is tied there are no ties")
        if not all(isinstance(name, tuple) and len(name) == 2 for name in ties.names):
            raise InvalidInputError("the names of ties do not give a class and an outcome each")
        if len(set(map(_text, ties.names))) != n_outcomes:
            raise InvalidInputError("an outcome of tied pairs is listed twice")
        shapes = {
            "outcomes": (shape.n_entries,),
            "predicted": (*ties.predicted.shape[:1], 3),
            "elsewhere": (n_outcomes,),
            "other_classes": (shape.n_other_pairs,),
        }
        for name, expected in shapes.items():
            if getattr(ties, name).shape != expected:
                raise InvalidInputError(f"ties.{name} does not fit the counts")
        check_wholes("ties.elsewhere", ties.elsewhere, 0)
        columns = (shape.n_pairs, n_outcomes, shape.n_seen)
        in_range = (
            _within(ties.outcomes, UNTIED, n_outcomes)
            and all(_within(ties.predicted[:, column], 0, end) for column, end in enumerate(columns))
            and _within(ties.other_classes, UNTIED, max(class_numbers(ties)) + 1)
        )
        if not in_range or (ties.elsewhere.any() and not (ties.other_classes != UNTIED).any()):
            raise InvalidInputError("ties name an outcome, a pair or a state that does not exist")
        drawn = {*ties.outcomes.tolist(), *np.flatnonzero(ties.elsewhere).tolist()}
        if not drawn >= set(range(n_outcomes)):
            raise InvalidInputError("ties list an outcome that was never drawn")

    def clauses(self, assumed: Assumed) -> tuple[str, ...]:
        """How many classes there are, and whether outcomes were predicted."""
        assert assumed.ties is not None
        size = len(set(class_numbers(assumed.ties)))
        whose = f"the actions of each of the {size} classes listed" if size > 1 else "the actions of the class listed"
        clause = f"{whose} share one law of outcomes"
        predicted = ("outcomes lead where they were predicted to lead",) if len(assumed.ties.predicted) else ()
        return (clause, *predicted)

    def contradiction(self, assumed: Assumed, drawn: Drawn) -> Contradiction | None:
        """Two classes in a pair, an outcome that leads to two states, or two outcomes that lead to one."""
        assert assumed.ties is not None
        ties, counts, classes = assumed.ties, drawn.counts, class_numbers(assumed.ties)
        for pair, (first, end) in enumerate(pairwise(counts.row_offsets.tolist())):
            kinds = {classes[o] if o != UNTIED else UNTIED for o in ties.outcomes[first:end].tolist()}
            if len(kinds) > 1:
                return pair, f"{_which_led_to(counts, pair)} was given two classes"
        leads_to: dict[tuple[int, int], int] = {}
        comes_from: dict[tuple[int, int], int] = {}
        for pair, outcome, successor in _maps(ties, counts):
            if leads_to.setdefault((pair, outcome), successor) != successor:
                which = _which_led_to(counts, pair)
                return pair, f"{which} leads to two states by the outcome {_outcome(ties, outcome)!r}"
            other = comes_from.setdefault((pair, successor), outcome)
            if other != outcome:
                both = f"{_outcome(ties, other)!r} and {_outcome(ties, outcome)!r}"
                which = _which_led_to(counts, pair)
                return pair, f"{which} leads to one state by the outcomes {both}, which cannot be told apart"
        return None


def class_numbers(ties: Ties) -> list[int]:
    """The class of each outcome, numbered in the order in which the names stand, [O]."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(_text(name[0]), len(numbers)) for name in ties.names]  # type: ignore[index]


def pair_classes(ties: Ties, counts: Counts) -> list[int]:
    """The class of each pair, that of its first outcome; UNTIED where there is none, [P]."""
    classes = [*class_numbers(ties), UNTIED]
    first_outcomes = [int(ties.outcomes[a]) if b > a else UNTIED for a, b in pairwise(counts.row_offsets.tolist())]
    return [classes[outcome] for outcome in first_outcomes]


def pooled(counts: Counts, ties: Ties, classes: Sequence[int]) -> Counts:
    """The rows in which each tied pair shows the draws of its whole class.

    Args:
        counts: what was drawn.
        ties: which outcome each draw was.
        classes: of each pair, UNTIED for one that is known without its class, [P].
    """
    totals = _totals(ties, counts)
    of_class: dict[int, list[int]] = {}
    for outcome, kind in enumerate(class_numbers(ties)):
        of_class.setdefault(kind, []).append(outcome)
    leads_to = {(pair, outcome): successor for pair, outcome, successor in _maps(ties, counts)}
    rows: list[list[tuple[int, int, int]]] = []
    for pair, (first, end) in enumerate(pairwise(counts.row_offsets.tolist())):
        own = (counts.successors[first:end], counts.counts[first:end], counts.first_draws[first:end])
        row = list(zip(*(array.tolist() for array in own), strict=True))
        if classes[pair] != UNTIED:
            row = [(leads_to.get((pair, o), UNKNOWN), totals[o], 0) for o in of_class[classes[pair]]]
        rows.append(row)
    entries = np.array([entry for row in rows for entry in row], dtype=np.int64).reshape(-1, 3)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    columns = (entries[:, column].copy() for column in range(3))
    names = ("successors", "counts", "first_draws")
    return structs.replace(counts, row_offsets=offsets, **dict(zip(names, columns, strict=True)))


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


def _totals(ties: Ties, counts: Counts) -> list[int]:
    """How often each outcome was drawn in all pairs together, [O]."""
    total: list[int] = ties.elsewhere.tolist()
    for outcome, count in zip(ties.outcomes.tolist(), counts.counts.tolist(), strict=True):
        if outcome != UNTIED:
            total[outcome] += count
    return total


def _maps(ties: Ties, counts: Counts) -> Iterator[tuple[int, int, int]]:
    """Yields pair, outcome and where it leads, as it was drawn and as it was predicted."""
    owners = np.repeat(np.arange(len(counts.row_offsets) - 1), np.diff(counts.row_offsets)).tolist()
    for pair, outcome, successor in zip(owners, ties.outcomes.tolist(), counts.successors.tolist(), strict=True):
        if outcome != UNTIED:
            yield pair, outcome, successor
    yield from map(tuple, ties.predicted.tolist())


def _which_led_to(counts: Counts, pair: int) -> str:
    entries = slice(*counts.row_offsets[pair : pair + 2].tolist())
    met = [repr(counts.order[successor]) for successor in counts.successors[entries].tolist()]
    return f", which led to {', '.join(met)},"


def _outcome(ties: Ties, outcome: int) -> Hashable:
    name: Hashable = ties.names[outcome][1]  # type: ignore[index]
    return name


def _within(array: IntArray, least: int, end: int) -> bool:
    return bool(((array >= least) & (array < end)).all())


def _text(label: Hashable) -> str:
    return canonical_json(encode_label(label))
