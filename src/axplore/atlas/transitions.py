"""The transitions of an atlas by place: its states in order of admission, followed by those of the frontier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from axplore.errors import AxploreError
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

ELSEWHERE = -1
"""The place of a state that is neither in the atlas nor on its frontier."""


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
    named = np.concatenate((atlas.numbers, atlas.frontier_numbers))
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
    reports = [*map(atlas.describe, atlas.states), *atlas.frontier]
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
