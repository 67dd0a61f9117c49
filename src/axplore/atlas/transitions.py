"""The transitions of an atlas by index: its states in order of admission, followed by those of the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from axplore.compressed import offsets_from
from axplore.errors import AxploreError
from axplore.records.counts import Counts
from axplore.statistics.counts import in_order, rows_of
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


def transitions_of(atlas: Atlas) -> Counts:
    """Returns the transitions of an atlas by index, without those that start in states outside it."""
    return in_order(rows_of(atlas.counts, atlas.numbers), np.concatenate((atlas.numbers, atlas.frontier_numbers)))


def entry_states(counts: Counts) -> IntArray:
    """Returns which of the counted states each entry starts from, [E]."""
    states = np.repeat(np.arange(len(counts.states)), np.diff(counts.state_pairs))
    return states[counts.entry_pairs]


def entry_frequencies(counts: Counts) -> FloatArray:
    """Returns the count of each entry divided by the visits of its pair, [E]."""
    frequencies: FloatArray = counts.counts / counts.visits[counts.entry_pairs]
    return frequencies


def state_visits(counts: Counts) -> IntArray:
    """Returns the visits of all actions of each counted state together, [k]."""
    return np.diff(offsets_from(counts.visits)[counts.state_pairs])


def pairs_played(counts: Counts, choices: IntArray, goal: int) -> IntArray:
    """Returns the pair that a policy plays in each counted state, or RESET_PAIR, by step of a journey, [H, k].

    Args:
        counts: the transitions of an atlas by index.
        choices: the choices of the policy, [m], or by step, [H, m].
        goal: the index of its goal.
    """
    by_step = np.atleast_2d(choices)
    m = by_step.shape[1]
    first = counts.state_pairs[:m]
    has_actions = counts.state_pairs[1 : m + 1] > first
    pairs = np.full((len(by_step), len(counts.states)), RESET_PAIR)
    pairs[:, :m] = np.where(has_actions & (by_step != RESET_ACTION), first + by_step, RESET_PAIR)
    pairs[:, goal] = RESET_PAIR
    return pairs


def to_networkx(atlas: Atlas) -> Any:
    """Returns a `networkx.MultiDiGraph` of the transitions that were met; see `Atlas.to_networkx`."""
    try:
        import networkx as nx
    except ImportError:
        raise AxploreError("networkx is not installed; `pip install 'axplore[networkx]'` installs it") from None
    graph = nx.MultiDiGraph(initial=atlas.states[0])
    reports = [*map(atlas.describe, atlas.states), *atlas.frontier]
    for index, report in enumerate(reports):
        bounds = {"lower": report.bounds.lower, "upper": report.bounds.upper}
        graph.add_node(report.state, in_atlas=index < len(atlas.states), status=report.status.value, **bounds)
    entries = atlas.transitions
    counted = zip(entries.entry_pairs, entries.successors, entries.counts, entry_frequencies(entries), strict=True)
    for pair, successor, count, frequency in counted:
        state, action = atlas.pairs[pair]
        graph.add_edge(state, entries.order[successor], key=action, count=int(count), frequency=float(frequency))
    return graph
