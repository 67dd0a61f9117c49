"""Whether what a certificate says of states that were counted and are not known can be."""

from __future__ import annotations

import numpy as np

from axplore.certificate.ranges import check_wholes
from axplore.errors import InvalidInputError
from axplore.records.counts import Counts
from axplore.records.retired import NEVER_DRAWN, RetiredStates


def check_retired(retired: RetiredStates, counts: Counts) -> None:
    """Refuses arrays that do not fit each other, ranks that two states share, and orders that cannot be."""
    leasts = {"ranks": 1, "other_ranks": 1, "n_actions": 0, "second_draws": NEVER_DRAWN}
    for name, least in leasts.items():
        check_wholes(f"retired.{name}", getattr(retired, name), least)
    if any(getattr(retired, name).ndim != 1 for name in leasts):
        raise InvalidInputError("the retired states hold something that is no list of whole numbers")
    every = np.concatenate((retired.ranks, retired.other_ranks))
    fits = len(retired.ranks) == len(counts.actions) and len(retired.n_actions) == len(retired.other_ranks)
    if not fits or len(np.unique(every)) != len(every):
        raise InvalidInputError("the retired states do not give each state a rank of its own")
    if len(retired.second_draws) != sum(retired.n_actions.tolist()) or (retired.second_draws == 1).any():
        raise InvalidInputError("the retired states do not say of each pair when its second successor came")
    _check_order(retired, counts)


def _check_order(retired: RetiredStates, counts: Counts) -> None:
    """Refuses ranks in which the states cannot have been counted: each was met by a draw in one of a smaller rank."""
    n_states = len(retired.ranks) + len(retired.other_ranks)
    if retired.ranks[0] != 1 or max(retired.ranks.max(), retired.other_ranks.max(initial=0)) != n_states:
        raise InvalidInputError(
            "the retired states do not number the states in an order that begins with the initial state"
        )
    if len(retired.other_ranks):
        return  # any of them may have led to any state
    if (np.diff(retired.ranks) > 0).all():
        raise InvalidInputError("the retired states name no states, and no other order than that of admission")
    owners = np.repeat(np.arange(len(counts.actions)), np.diff(counts.state_pairs))[counts.entry_pairs]
    inside = counts.successors < len(retired.ranks)
    first = np.full(len(retired.ranks), n_states + 1)
    np.minimum.at(first, counts.successors[inside], retired.ranks[owners[inside]])
    if (first[1:] >= retired.ranks[1:]).any():
        raise InvalidInputError("the retired states count a state before any draw in another one led to it")
