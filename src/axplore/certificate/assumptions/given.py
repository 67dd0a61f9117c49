"""What a certificate assumes of the rows of pairs, in the form in which the verifier's region and checks use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axplore.certificate.assumptions.kind import Drawn
from axplore.certificate.assumptions.registry import pair_kinds_in
from axplore.certificate.assumptions.tied import pair_classes, pooled, unit_numbers
from axplore.certificate.levels import CLOSING, pair_weights, weight_of
from axplore.records.assumed import UNTIED, Assumed
from axplore.records.counts import Counts
from axplore.records.retired import RetiredStates


@dataclass(frozen=True, eq=False)
class Given:
    """What is assumed of rows.

    Attributes:
        drawn: what was drawn.
        own_most: how many outcomes each pair can have by what is said of itself, infinite if not known, [P].
        most: the same by what is said of all pairs of its class, [P].
        floors: how likely each outcome is at least, [P].
        closing: the draws after which no outcome is left unseen, infinite if there are none, [P].
        is_given: whether anything is assumed of each pair, [P].
        closes: whether the support of any pair might close, by what was declared.
        closes_by_chance: whether that takes a part of δ.
    """

    drawn: Drawn
    own_most: list[float]
    most: list[float]
    floors: list[float]
    closing: list[float]
    is_given: list[bool]
    closes: bool
    closes_by_chance: bool


def given_rows(
    counts: Counts, n_actions: Sequence[int], delta: float, assumed: Assumed | None, retired: RetiredStates | None
) -> Given:
    """What is assumed of the rows of some counts.

    Args:
        counts: what was drawn.
        n_actions: of each known state, in the order of admission, [n].
        delta: δ.
        assumed: what is assumed of each pair; None if nothing is.
        retired: states that were counted and are not known.
    """
    assumed = assumed or Assumed({})
    kinds, n_pairs = pair_kinds_in(assumed), sum(n_actions)
    own = {kind.name: assumed.numbers[kind.name].tolist() for kind in kinds}
    classes = classes_of(counts, assumed)
    weights = level_weights(counts, n_actions, assumed, retired)
    rows = counts if assumed.ties is None else pooled(counts, assumed.ties, classes)
    shared = {kind.name: kind.of_classes(assumed, classes) for kind in kinds}
    closes = any(kind.closes for kind in kinds)
    n_by_chance = sum(kind.closes_by_chance for kind in kinds)
    levels = [CLOSING * delta * weight / max(n_by_chance, 1) for weight in weights]
    given = Given(
        drawn=Drawn(counts, rows, classes, weights),
        own_most=_most_outcomes(assumed, n_pairs),
        most=[math.inf] * n_pairs,
        floors=[0.0] * n_pairs,
        closing=[math.inf] * n_pairs,
        is_given=[
            kind != UNTIED or any(numbers[pair] for numbers in own.values()) for pair, kind in enumerate(classes)
        ],
        closes=closes,
        closes_by_chance=n_by_chance > 0,
    )
    for kind in kinds:
        for pair, number in enumerate(shared[kind.name]):
            if number != 0.0:
                given.most[pair] = min(given.most[pair], kind.most_outcomes(number))
                given.floors[pair] = max(given.floors[pair], kind.floor(number))
                given.closing[pair] = min(given.closing[pair], kind.closing_draws(number, levels[pair]))
    return given


def classes_of(counts: Counts, assumed: Assumed) -> list[int]:
    """The class of each pair; UNTIED for one that has one outcome and is known without its class, [P]."""
    n_pairs = len(counts.row_offsets) - 1
    if assumed.ties is None:
        return [UNTIED] * n_pairs
    most = _most_outcomes(assumed, n_pairs)
    return [UNTIED if most[pair] == 1 else kind for pair, kind in enumerate(pair_classes(assumed.ties, counts))]


def all_single(assumed: Assumed | None, n_pairs: int) -> bool:
    """Whether every pair is assumed to have one outcome."""
    if assumed is None:
        return False
    is_single = np.zeros(n_pairs, dtype=np.bool_)
    for kind in pair_kinds_in(assumed):
        numbers = assumed.numbers[kind.name]
        for number in np.unique(numbers).tolist():  # most often the same of all pairs
            if number != 0.0 and kind.most_outcomes(number) == 1:
                is_single |= numbers == number
    return bool(is_single.all())


def level_weights(
    counts: Counts, n_actions: Sequence[int], assumed: Assumed | None, retired: RetiredStates | None
) -> list[float]:
    """The part of δ that the ball of each pair may use, [P]; the pairs of a class use theirs together."""
    ranks = list(range(1, len(n_actions) + 1)) if retired is None else retired.ranks.tolist()
    if assumed is None or assumed.ties is None:
        return pair_weights(n_actions, ranks)
    classes = classes_of(counts, assumed)
    owners = [rank for rank, actions in zip(ranks, n_actions, strict=True) for _ in range(actions)]
    if retired is not None:
        classes += assumed.ties.other_classes.tolist()
        owners += np.repeat(retired.other_ranks, retired.n_actions).tolist()
    numbers = unit_numbers(classes, owners)
    return [weight_of(number) for number in numbers[: sum(n_actions)]]


def _most_outcomes(assumed: Assumed, n_pairs: int) -> list[float]:
    """How many outcomes each pair can have by what is said of itself, infinite if not known, [P]."""
    most = [math.inf] * n_pairs
    for kind in pair_kinds_in(assumed):
        for pair, number in enumerate(assumed.numbers[kind.name].tolist()):
            if number != 0.0:
                most[pair] = min(most[pair], kind.most_outcomes(number))
    return most
