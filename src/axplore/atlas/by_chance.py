"""What can happen by chance: states outside the atlas that its policies may meet on their way.

A policy is followed from RESET until it arrives, resets, or leaves the atlas: an attempt. The probability that an
attempt ends in a state outside the atlas follows from the observed frequencies: it is an estimate, nothing is proven.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.atlas.transitions import entry_frequencies, pairs_played
from axplore.compressed import entries_in
from axplore.labels import readable
from axplore.types import RESET_PAIR, Action, FloatArray, IntArray, State, Status

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

KEPT: Final = 1 - 1e-9
"""An attempt that stays within the atlas for ever is given up with the rest of this probability in each step."""

MAX_WORK: Final = 20_000_000
"""Policies are followed as long as all together have no more transitions than this."""


@dataclass(frozen=True)
class ByChance:
    """A state outside the atlas that policies may meet.

    Attributes:
        state: the state.
        status: what is proven of it: set aside, or open.
        probability: that of ending there, in an attempt of the policy that does so most often; an estimate.
        goal: the goal of this policy.
        source, action: where it most often comes from on that way, and by which action.
        share: how often that action led there, as a part of its visits.
    """

    state: State
    status: Status
    probability: float
    goal: State
    source: State
    action: Action
    share: float

    def __str__(self) -> str:
        return (
            f"{readable(self.state)}: about {self.probability:.3g} in an attempt to reach {readable(self.goal)}; "
            f"{readable(self.action)} in {readable(self.source)} led there with a frequency of {self.share:.3g}"
        )


def by_chance(atlas: Atlas) -> tuple[ByChance, ...]:
    """Returns the states outside the atlas that its policies may meet, the likeliest first; see `Atlas.by_chance`."""
    members, entries = len(atlas.states), len(atlas.transitions.counts)
    if not len(atlas.frontier_numbers):
        return ()
    found: dict[int, tuple[float, int, int]] = {}
    for goal in range(1, min(members, MAX_WORK // max(1, entries))):
        if atlas.policies[goal].ndim == 1:  # others depend on the step
            for target, probability, entry in _exits(atlas, goal):
                found[target] = max(found.get(target, (0.0, 0, 0)), (probability, goal, entry))
    return tuple(
        _named(atlas, target, *found[target]) for target in sorted(found, key=lambda target: -found[target][0])
    )


def _exits(atlas: Atlas, goal: int) -> Iterator[tuple[int, float, int]]:
    """Yields the states outside where an attempt may end, with their probabilities and the likeliest entries there."""
    transitions, members = atlas.transitions, len(atlas.states)
    played = pairs_played(transitions, atlas.policies[goal], goal)[0]
    states = np.flatnonzero(played != RESET_PAIR)
    entries = entries_in(transitions.row_offsets, played[states])
    sources = np.repeat(states, np.diff(transitions.row_offsets)[played[states]])
    targets, frequencies = transitions.successors[entries], entry_frequencies(transitions)[entries]
    leaving = np.flatnonzero(targets >= members)
    if not len(leaving):
        return
    inside = (targets < members) & (targets != goal)
    visits = _visits(sources[inside], targets[inside], frequencies[inside], members)
    shares = visits[sources[leaving]] * frequencies[leaving]
    for target in np.unique(targets[leaving]).tolist():
        to_it = np.flatnonzero(targets[leaving] == target)
        if (probability := float(shares[to_it].sum())) > 0:
            yield target, probability, int(entries[leaving[to_it[np.argmax(shares[to_it])]]])


def _visits(sources: IntArray, targets: IntArray, frequencies: FloatArray, members: int) -> FloatArray:
    """Returns how often an attempt visits each state, in the mean, by the transitions within the atlas, [k]."""
    from scipy.sparse import csc_matrix, identity
    from scipy.sparse.csgraph import breadth_first_order
    from scipy.sparse.linalg import spsolve

    moves = csc_matrix((frequencies, (targets, sources)), shape=(members, members))
    met = breadth_first_order(moves.T, 0, return_predecessors=False)
    start = np.zeros(len(met))
    start[0] = 1.0
    visits = np.zeros(members)
    visits[met] = spsolve((identity(len(met)) - KEPT * moves[met][:, met]).tocsc(), start)
    return np.maximum(visits, 0.0)


def _named(atlas: Atlas, target: int, probability: float, goal: int, entry: int) -> ByChance:
    transitions = atlas.transitions
    source, action = atlas.pairs[int(transitions.entry_pairs[entry])]
    return ByChance(
        state=transitions.order[target],
        status=atlas.statuses[target],
        probability=min(1.0, probability),
        goal=atlas.states[goal],
        source=source,
        action=action,
        share=float(entry_frequencies(transitions)[entry]),
    )
