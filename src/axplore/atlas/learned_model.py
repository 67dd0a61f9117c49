"""What an atlas knows of the transitions: frequencies and confidence region, in the form that planning reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.statistics.confidence import ConfidenceRegion, confidence_region
from axplore.statistics.counts import CountedRows
from axplore.types import RESET_ACTION, RESET_PAIR, IntArray

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


def learned_model(atlas: Atlas) -> IntervalModel:
    """Counts and confidence region of the states of an atlas that were counted, in order of admission.

    The region belongs to all counts: its levels go by the order in which states were added to them. So it is computed
    for all of them, and an atlas of fewer states takes its part.
    """
    counts, region = atlas.counts, confidence_region(atlas.counts, atlas.target.delta)
    row_of = {number: row for row, number in enumerate(counts.states.tolist())}
    rows = np.array([row_of[number] for number in atlas.numbers.tolist() if number in row_of], dtype=np.int64)
    if len(rows) != len(counts.states) or (np.diff(rows) < 0).any():
        counts, region = _part(counts, region, rows)
    return interval_model(counts, region, value_limit(atlas.target.radius, atlas.target.epsilon))


def value_limit(radius: float, epsilon: float) -> float:
    """Values beyond this decide nothing."""
    return 3 * (radius + epsilon) + 20


def model_with(atlas: Atlas, numbers: list[int]) -> IntervalModel:
    """The same for some of the states of an atlas, by number, in this order."""
    counts = atlas.counts
    row_of = {number: row for row, number in enumerate(counts.states.tolist())}
    rows = np.array([row_of[number] for number in numbers], dtype=np.int64)
    part, region = _part(counts, confidence_region(counts, atlas.target.delta), rows)
    return interval_model(part, region, value_limit(atlas.target.radius, atlas.target.epsilon))


def pairs_of_policy(atlas: Atlas, model: IntervalModel, choices: IntArray) -> IntArray:
    """A policy of the atlas, [m], as the pair of each known state of the model, [n]; RESET_PAIR where it resets."""
    pairs = np.full(model.n_known, RESET_PAIR)
    for position, place in enumerate(known_places(atlas, model)):
        if place < len(choices) and choices[place] != RESET_ACTION:
            pairs[position] = model.rows.state_pairs[position] + choices[place]
    return pairs


def choices_of_policy(atlas: Atlas, model: IntervalModel, pairs: IntArray) -> IntArray:
    """A policy of pairs, [n], as the choices of a policy of the atlas, [k]."""
    choices = np.full(len(atlas.numbers), RESET_ACTION, dtype=np.int64)
    for position, place in enumerate(known_places(atlas, model)):
        if pairs[position] != RESET_PAIR:
            choices[place] = pairs[position] - model.rows.state_pairs[position]
    return choices


def known_places(atlas: Atlas, model: IntervalModel) -> list[int]:
    """The place in the atlas of each known state of the model, [n]."""
    place_of = {number: place for place, number in enumerate(atlas.numbers.tolist())}
    return [place_of[number] for number in model.numbers[: model.n_known].tolist()]


def position_of(model: IntervalModel, number: int) -> int:
    """The position of a state, by its number, in the model; that of the unseen if no known state leads there."""
    (positions,) = np.nonzero(model.numbers == number)
    return int(positions[0]) if len(positions) else model.unseen


def _part(counts: CountedRows, region: ConfidenceRegion, rows: IntArray) -> tuple[CountedRows, ConfidenceRegion]:
    """Some of the counted states, by their places in the counts."""
    pairs = _ranges(counts.state_pairs, rows)
    entries = _ranges(counts.row_offsets, pairs)
    part = CountedRows(
        states=counts.states[rows],
        state_pairs=_offsets(np.diff(counts.state_pairs)[rows]),
        visits=counts.visits[pairs],
        row_offsets=_offsets(np.diff(counts.row_offsets)[pairs]),
        successors=counts.successors[entries],
        counts=counts.counts[entries],
        first_draws=counts.first_draws[entries],
    )
    levels = None if region.log_levels is None else region.log_levels[pairs]
    return part, ConfidenceRegion(region.shares[entries], region.slack[pairs], region.shared_budget, levels)


def _ranges(offsets: IntArray, rows: IntArray) -> IntArray:
    """The entries of the given rows, one row after the other."""
    return np.concatenate([np.arange(0), *(np.arange(offsets[row], offsets[row + 1]) for row in rows)]).astype(np.int64)


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
