"""The model learned by an atlas: frequencies and confidence region, in the form that planning reads.

`Transitions` has them by place: the states of the atlas in order of admission, followed by those left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from axplore.errors import AxploreError
from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.statistics.confidence import ConfidenceRegion, confidence_region
from axplore.statistics.counts import CountedRows
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


def learned_model(atlas: Atlas) -> IntervalModel:
    """Returns the model of the states of an atlas that were counted, in order of admission.

    The levels of the region depend on the order in which states were added to the counts. So the region is computed
    for all counts, and an atlas of fewer states uses a part of it.
    """
    counts, region = atlas.counts, confidence_region(atlas.counts, atlas.target.delta)
    row_of = {number: row for row, number in enumerate(counts.states.tolist())}
    rows = np.array([row_of[number] for number in atlas.numbers.tolist() if number in row_of], dtype=np.int64)
    if len(rows) != len(counts.states) or (np.diff(rows) < 0).any():
        counts, region = _part(counts, region, rows)
    return interval_model(counts, region, value_limit(atlas.target.radius, atlas.target.epsilon))


def value_limit(radius: float, epsilon: float) -> float:
    """Returns the number of steps beyond which a value decides nothing."""
    return 3 * (radius + epsilon) + 20


def model_with(atlas: Atlas, numbers: list[int]) -> IntervalModel:
    """Returns the model of some of the states of an atlas, given by number, in this order."""
    counts = atlas.counts
    row_of = {number: row for row, number in enumerate(counts.states.tolist())}
    rows = np.array([row_of[number] for number in numbers], dtype=np.int64)
    part, region = _part(counts, confidence_region(counts, atlas.target.delta), rows)
    return interval_model(part, region, value_limit(atlas.target.radius, atlas.target.epsilon))


def pairs_of_policy(atlas: Atlas, model: IntervalModel, choices: IntArray) -> IntArray:
    """Returns a policy of the atlas, [m], as the pair of each known state of the model, or RESET_PAIR, [n]."""
    pairs = np.full(model.n_known, RESET_PAIR)
    for position, place in enumerate(known_places(atlas, model)):
        if place < len(choices) and choices[place] != RESET_ACTION:
            pairs[position] = model.rows.state_pairs[position] + choices[place]
    return pairs


def choices_of_policy(atlas: Atlas, model: IntervalModel, pairs: IntArray) -> IntArray:
    """Returns a policy of pairs, [n], as the choices of a policy of the atlas, [k]."""
    choices = np.full(len(atlas.numbers), RESET_ACTION, dtype=np.int64)
    for position, place in enumerate(known_places(atlas, model)):
        if pairs[position] != RESET_PAIR:
            choices[place] = pairs[position] - model.rows.state_pairs[position]
    return choices


def known_places(atlas: Atlas, model: IntervalModel) -> list[int]:
    """Returns the place in the atlas of each known state of the model, [n]."""
    place_of = {number: place for place, number in enumerate(atlas.numbers.tolist())}
    return [place_of[number] for number in model.numbers[: model.n_known].tolist()]


def position_of(model: IntervalModel, number: int) -> int:
    """Returns the position of a state, by number, in the model; that of the unseen if no known state leads there."""
    (positions,) = np.nonzero(model.numbers == number)
    return int(positions[0]) if len(positions) else model.unseen


def _part(counts: CountedRows, region: ConfidenceRegion, rows: IntArray) -> tuple[CountedRows, ConfidenceRegion]:
    """Returns the counts and the region restricted to some of the counted states."""
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
    return part, ConfidenceRegion(region.shares[entries], region.slack[pairs], region.shared_budget)


def _ranges(offsets: IntArray, rows: IntArray) -> IntArray:
    """Returns the indices of the entries of the given rows, row by row."""
    return np.concatenate([np.arange(0), *(np.arange(offsets[row], offsets[row + 1]) for row in rows)]).astype(np.int64)


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


ELSEWHERE = -1
"""The place of a state that is neither in the atlas nor among those left out."""


@dataclass(frozen=True, eq=False)
class Transitions:
    """The transitions met in the states of an atlas.

    Attributes:
        state_pairs: the first pair of each state of the atlas, and the number of pairs, [k + 1].
        visits: the visits of each pair, [P].
        row_offsets: the first entry of each pair, and the number of entries, [P + 1].
        successors: the place of the state that each entry leads to, or `ELSEWHERE`, [E].
        counts: the number of times that each entry was met, [E].
    """

    state_pairs: IntArray
    visits: IntArray
    row_offsets: IntArray
    successors: IntArray
    counts: IntArray

    @property
    def entry_places(self) -> IntArray:
        """The place of the state that each entry starts from, [E]."""
        places = np.repeat(np.arange(len(self.state_pairs) - 1), np.diff(self.state_pairs))
        return np.repeat(places, np.diff(self.row_offsets))

    @cached_property
    def entry_frequencies(self) -> FloatArray:
        """The count of each entry divided by the visits of its pair, [E]."""
        frequencies: FloatArray = self.counts / np.repeat(self.visits, np.diff(self.row_offsets))
        return frequencies

    @property
    def state_visits(self) -> IntArray:
        """The visits of all actions of each state of the atlas together, [k]."""
        totals = np.concatenate(([0], np.cumsum(self.visits)))
        return totals[self.state_pairs[1:]] - totals[self.state_pairs[:-1]]

    def pairs_played(self, choices: IntArray, goal: int) -> IntArray:
        """Returns the pair that a policy plays in each state of the atlas, or RESET_PAIR, by step of a journey, [H, k].

        Args:
            choices: the choices of the policy, [m], or by step, [H, m].
            goal: the place of its goal.
        """
        by_step = np.atleast_2d(choices)
        m = by_step.shape[1]
        counted = self.state_pairs[1 : m + 1] > self.state_pairs[:m]
        pairs = np.full((len(by_step), len(self.state_pairs) - 1), RESET_PAIR)
        pairs[:, :m] = np.where(counted & (by_step != RESET_ACTION), self.state_pairs[:m] + by_step, RESET_PAIR)
        pairs[:, goal] = RESET_PAIR
        return pairs


def transitions_of(atlas: Atlas) -> Transitions:
    """Returns the transitions of an atlas, without those that start in states outside it."""
    counts = atlas.count_arrays
    rows = {number: row for row, number in enumerate(counts["states"].tolist())}
    pairs = [_pairs_of(rows.get(number), counts["state_pairs"]) for number in atlas.numbers.tolist()]
    pair_order = np.concatenate([np.empty(0, dtype=np.int64), *pairs])
    offsets = counts["row_offsets"]
    lengths = np.diff(offsets)[pair_order]
    row_offsets = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.repeat(offsets[:-1][pair_order] - row_offsets[:-1], lengths) + np.arange(row_offsets[-1])
    places = np.full(len(atlas.seen), ELSEWHERE)
    named = np.concatenate((atlas.numbers, atlas.left_out_numbers))
    places[named] = np.arange(len(named))
    return Transitions(
        state_pairs=np.cumsum([0, *map(len, pairs)]),
        visits=counts["visits"][pair_order],
        row_offsets=row_offsets,
        successors=places[counts["successors"][entries]],
        counts=counts["counts"][entries],
    )


def to_networkx(atlas: Atlas) -> Any:
    """Returns a `networkx.MultiDiGraph` of the transitions that were met; see `Atlas.to_networkx`."""
    try:
        import networkx as nx
    except ImportError:
        raise AxploreError("networkx is not installed; `pip install 'axplore[networkx]'` installs it") from None
    graph = nx.MultiDiGraph(initial=atlas.states[0])
    reports = [*map(atlas.status, atlas.states), *atlas.left_out]
    for place, report in enumerate(reports):
        bounds = {"lower": report.bounds.lower, "upper": report.bounds.upper}
        graph.add_node(report.state, in_atlas=place < len(atlas.states), status=report.status.value, **bounds)
    entries = atlas.transitions
    pairs = np.repeat(np.arange(len(entries.visits)), np.diff(entries.row_offsets)).tolist()
    for entry, (pair, successor) in enumerate(zip(pairs, entries.successors.tolist(), strict=True)):
        if successor != ELSEWHERE:
            state, action = atlas.pairs[pair]
            graph.add_edge(
                state,
                reports[successor].state,
                key=action,
                count=int(entries.counts[entry]),
                frequency=float(entries.entry_frequencies[entry]),
            )
    return graph


def _pairs_of(row: int | None, state_pairs: IntArray) -> IntArray:
    if row is None:
        return np.empty(0, dtype=np.int64)
    return np.arange(state_pairs[row], state_pairs[row + 1])
