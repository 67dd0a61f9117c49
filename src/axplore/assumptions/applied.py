"""Assumptions applied to counts: what they say of each pair, what contradicts them, and the region that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec import structs

from axplore.assumptions.declared import Assumptions
from axplore.assumptions.kind import Grown, PairKind
from axplore.assumptions.registry import KINDS, pair_kinds
from axplore.assumptions.tied import pair_classes, pooled, ties_of_pairs
from axplore.compressed import entries_in
from axplore.errors import InvalidInputError
from axplore.records.assumed import UNKNOWN, UNTIED, Assumed, Ties
from axplore.records.counts import Counts
from axplore.statistics.confidence import JOINING, ConfidenceRegion, confidence_region, pair_weights, unit_weights
from axplore.statistics.counts import counted_indices
from axplore.statistics.given_rows import CLOSING_PART, GivenRows, nothing_given
from axplore.types import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]


def applied(assume: Assumptions, assumed: Assumed | None, grown: Grown) -> Assumed:
    """Returns what is assumed of each pair of grown counts.

    Args:
        assume: what is assumed.
        assumed: what was assumed of each pair of the counts before; None if there were none.
        grown: the counts.
    """
    result = assumed or Assumed({})
    for kind, value in assume.kinds():
        result = kind.applied(value, assume, result, grown)
    return result


def region_given(
    rows: Counts,
    delta: float,
    assumed: Assumed | None = None,
    ranks: IntArray | None = None,
    spent: Sequence[float] = (0.0,) * len(JOINING),
    weights: FloatArray | None = None,
) -> ConfidenceRegion:
    """The region that holds the true transition probabilities at all times with probability 1 - δ, if assumptions do.

    Args:
        rows: what was counted.
        delta: δ.
        assumed: what is assumed of each pair; None if nothing is.
        ranks: of the states in the order in which they were first counted, see `confidence_region`.
        spent: what states that are not among the rows have taken of each of the shared martingales, in nats.
        weights: the part of the error that each pair may use, [P], where that does not follow from the rows.
    """
    return confidence_region(rows, delta, given_rows(rows, delta, assumed, ranks, weights), ranks, spent)


def given_rows(
    rows: Counts,
    delta: float,
    assumed: Assumed | None,
    ranks: IntArray | None = None,
    weights: FloatArray | None = None,
) -> GivenRows:
    """What is assumed of rows, in the form in which a region uses it; the arguments are those of `region_given`."""
    given = nothing_given(rows, pair_weights(rows, ranks) if weights is None else weights)
    if assumed is None:
        return given
    _check_fits(assumed, rows)
    said, n_pairs = _said(assumed), len(rows.visits)
    closes = any(kind.closes for kind, _ in said)
    is_given = _any_of([numbers != 0.0 for _, numbers in said], n_pairs)
    if assumed.ties is not None:
        shared = pooled(rows, assumed.ties, is_single(assumed, n_pairs))
        units = unit_weights(shared.groups) if weights is None else weights
        if not len(assumed.ties.names):
            # No pair has turned out to be tied, and a certificate has no list of them. A level that is allowed with
            # such a list and without one is valid whether or not a tied pair is drawn later.
            units = np.minimum(given.weights, units)
        given = replace(given, rows=shared.rows, groups=shared.groups, pooled=shared, weights=units)
        is_given = is_given | shared.tied
    said = [(kind, kind.of_groups(numbers, given.groups)) for kind, numbers in said]
    n_by_chance = sum(kind.closes_by_chance for kind, _ in said)
    levels = CLOSING_PART * delta * given.weights / max(n_by_chance, 1)
    return replace(
        given,
        most_outcomes=_least([kind.most_outcomes(numbers) for kind, numbers in said], n_pairs),
        floors=np.max([np.zeros(n_pairs), *(kind.floors(numbers) for kind, numbers in said)], axis=0),
        closing=_least([kind.closing_draws(numbers, levels) for kind, numbers in said], n_pairs),
        is_given=is_given,
        closes=closes,
        closes_by_chance=n_by_chance > 0,
    )


def contradicted_pairs(rows: Counts, delta: float, assumed: Assumed) -> IntArray:
    """The pairs whose draws contradict what is assumed of them: by what any kind says, or by all of it together."""
    given = given_rows(rows, delta, assumed)
    n_outcomes, newest = np.diff(given.rows.row_offsets), np.zeros(len(rows.visits))
    drawn = n_outcomes > 0
    newest[drawn] = given.rows.first_draws[given.rows.row_offsets[1:][drawn] - 1]
    most = _least([kind.most_outcomes(numbers) for kind, numbers in _said(assumed)], len(rows.visits))
    wrong = [np.flatnonzero((n_outcomes > most) | (newest > given.closing))]
    wrong += [kind.contradicted(assumed, rows, given) for kind in KINDS if kind.is_in(assumed)]
    return np.unique(np.concatenate(wrong))


def is_single(assumed: Assumed, n_pairs: int) -> BoolArray:
    """Whether each pair is assumed to have one outcome, [P]."""
    return _any_of([kind.most_outcomes(numbers) == 1.0 for kind, numbers in _said(assumed)], n_pairs)


def listed(assumed: Assumed, rows: Counts, numbers: IntArray, n_known: int) -> Assumed | None:
    """What is assumed of the pairs of known states, by index, as a certificate lists it; None if nothing is.

    Args:
        assumed: what is assumed of each pair of the rows.
        rows: what was counted, perhaps of more states.
        numbers: the number of each state by index, [n + others].
        n_known: how many of them are known.
    """
    known = numbers[:n_known]
    pairs, others = _pairs_of(rows, known), _pairs_of(rows, rows.states[~np.isin(rows.states, known)])
    of_pairs = {name: of_all[pairs] for name, of_all in assumed.numbers.items()}
    if assumed.ties is None or not len(assumed.ties.names):
        return Assumed(of_pairs) if of_pairs else None
    ties = ties_of_pairs(assumed.ties, rows, pairs)
    classes = np.where(is_single(assumed, len(rows.visits)), UNTIED, pair_classes(assumed.ties, rows))
    predicted = _by_position(ties, numbers)
    return Assumed(of_pairs, structs.replace(ties, predicted=predicted, other_classes=classes[others]))


def _check_fits(assumed: Assumed, rows: Counts) -> None:
    """Refuses what is assumed of other counts: it may come from a checkpoint."""
    fits = all(numbers.shape == rows.visits.shape for numbers in assumed.numbers.values())
    if fits and assumed.ties is not None:
        ties, n_outcomes = assumed.ties, len(assumed.ties.names)
        ends = (len(rows.visits), n_outcomes, len(rows.order))  # of pairs, outcomes and states
        fits = (
            ties.outcomes.shape == rows.counts.shape
            and ties.elsewhere.shape == (n_outcomes,)
            and ties.predicted.shape == (*ties.predicted.shape[:1], 3)
            and bool(((ties.outcomes >= UNTIED) & (ties.outcomes < n_outcomes)).all())
            and bool(((ties.predicted >= 0) & (ties.predicted < ends)).all())
        )
    if not fits:
        raise InvalidInputError(f"assumptions do not belong to the {len(rows.visits)} pairs that are counted")


def _pairs_of(rows: Counts, states: IntArray) -> IntArray:
    """The pairs of some of the counted states, by number."""
    return entries_in(rows.state_pairs, counted_indices(rows)[states])


def _by_position(ties: Ties, numbers: IntArray) -> IntArray:
    """What is predicted of outcomes, with indices in place of numbers, as far as the states have one, [Q, 3]."""
    predicted = ties.predicted.copy()
    indices = np.full(int(max(numbers.max(), predicted[:, 2].max(initial=0))) + 1, UNKNOWN)
    indices[numbers] = np.arange(len(numbers))
    predicted[:, 2] = indices[predicted[:, 2]]
    met: IntArray = predicted[predicted[:, 2] != UNKNOWN]
    return met


def _said(assumed: Assumed) -> list[tuple[PairKind, FloatArray]]:
    """The kinds that say a number of each pair, and the numbers, [P] each."""
    return [(kind, assumed.numbers[kind.name]) for kind in pair_kinds() if kind.is_in(assumed)]


def _any_of(masks: list[BoolArray], n_pairs: int) -> BoolArray:
    any_of: BoolArray = np.any([np.zeros(n_pairs, dtype=np.bool_), *masks], axis=0)
    return any_of


def _least(arrays: list[FloatArray], n_pairs: int) -> FloatArray:
    least: FloatArray = np.min([np.full(n_pairs, np.inf), *arrays], axis=0)
    return least
