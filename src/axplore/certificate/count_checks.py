"""Whether counts are such that draws can have given them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from axplore.certificate.assumptions.deterministic import Deterministic
from axplore.certificate.assumptions.given import all_single, given_rows
from axplore.certificate.assumptions.registry import kinds_in
from axplore.certificate.ranges import MOST_DRAWS, check_wholes
from axplore.errors import InvalidInputError
from axplore.labels import readable
from axplore.records.assumed import UNTIED, Assumed
from axplore.records.counts import Counts
from axplore.types import BoolArray, IntArray

if TYPE_CHECKING:
    from axplore.certificate.document import Certificate


def check_counts(counts: Counts) -> None:
    """Refuses counts of which states, pairs and entries do not fit each other."""
    n_known, n_seen = len(counts.actions), len(counts.order)
    if not 0 < n_known <= n_seen or not np.array_equal(counts.states, np.arange(n_known)):
        raise InvalidInputError(f"{n_known} lists of actions do not belong to the first of {n_seen} states")
    n_pairs = sum(map(len, counts.actions))
    _check_array("row_offsets", counts.row_offsets, n_pairs + 1)
    if counts.row_offsets[0] != 0 or (np.diff(counts.row_offsets) < 0).any():
        raise InvalidInputError("counts.row_offsets do not ascend from 0")
    n_entries = int(counts.row_offsets[-1])
    for name in ("successors", "counts", "first_draws"):
        _check_array(name, getattr(counts, name), n_entries)
    for name in ("counts", "first_draws"):
        check_wholes(f"counts.{name}", getattr(counts, name), 1)
    if counts.counts.sum(dtype=np.float64) > MOST_DRAWS:
        raise InvalidInputError(f"counts.counts holds more than {MOST_DRAWS} draws in all")
    if n_entries and not 0 <= counts.successors.min() <= counts.successors.max() < n_seen:
        raise InvalidInputError(f"a successor is none of the {n_seen} states seen")


def _check_array(name: str, array: IntArray, length: int) -> None:
    if array.dtype != np.int64 or array.shape != (length,):
        shape = f"of shape {array.shape} and type {array.dtype}"
        raise InvalidInputError(f"counts.{name} is {shape}; expected ({length},) and int64")


def contradiction(counts: Counts) -> str | None:
    """The first thing in the counts and names that cannot be, in words; None if there is none."""
    seen = _repeated(counts.order)
    if seen:
        return f"the state {seen[0]!r} is listed twice"
    looked_at: set[int] = set()  # most states have the same list of actions
    for state, actions in zip(counts.order, counts.actions, strict=False):
        if id(actions) not in looked_at and _repeated(actions):
            return f"state {state!r} has the action {_repeated(actions)[0]!r} twice"
        looked_at.add(id(actions))
    for pair in np.flatnonzero(~_has_one_possible_entry(counts)).tolist():
        entries = slice(*counts.row_offsets[pair : pair + 2].tolist())
        if _repeated(counts.successors[entries].tolist()):
            return f"{_pair_name(counts, pair)} has a successor twice"
        if not _possible(counts.counts[entries].tolist(), counts.first_draws[entries].tolist()):
            return f"{_pair_name(counts, pair)} has counts that no draws can give"
    return None


def _has_one_possible_entry(counts: Counts) -> BoolArray:
    """Whether a pair was drawn and led to one state, from its first draw on, [P]."""
    has_one: BoolArray = np.diff(counts.row_offsets) == 1
    has_one[has_one] = counts.first_draws[counts.row_offsets[:-1][has_one]] == 1
    return has_one


def _possible(counts: Sequence[int], first_draws: Sequence[int]) -> bool:
    """Whether successors first seen at these draws can have these counts."""
    # Before a successor was first seen, all draws were of those seen before it.
    draws_before = (0, *accumulate(counts))
    earlier = (0, *first_draws)
    return all(earlier[i] < draw <= draws_before[i] + 1 for i, draw in enumerate(first_draws))


def _repeated(items: Sequence[Hashable]) -> list[Hashable]:
    return [item for item, times in Counter(items).items() if times > 1]


def contradicted_assumption(certificate: Certificate) -> str | None:
    """What was drawn although it is assumed to be impossible, or all but impossible, in words; None if nothing was."""
    assumed, counts = certificate.assumed, certificate.counts
    if assumed is None:
        return None
    lengths = np.diff(counts.row_offsets)
    if assumed.ties is None and set(assumed.numbers) == {Deterministic.name} and all_single(assumed, len(lengths)):
        return next((_shown_outcomes(counts, pair) for pair in np.flatnonzero(lengths > 1).tolist()), None)
    return _contradicted_row(certificate, assumed)


def _contradicted_row(certificate: Certificate, assumed: Assumed) -> str | None:
    """The first row whose draws contradict what is assumed of it, in words; None if there is none."""
    counts, lengths = certificate.counts, np.diff(certificate.counts.row_offsets)
    n_actions = [len(actions) for actions in certificate.actions]
    given = given_rows(counts, n_actions, certificate.delta, assumed, certificate.retired)
    lengths_of_classes = np.diff(given.drawn.pooled.row_offsets)
    most = np.array(given.own_most)
    for pair in np.flatnonzero(lengths > most).tolist():
        return _shown_outcomes(counts, pair)
    for pair in np.flatnonzero((lengths > 0) & (np.array(given.drawn.classes) == UNTIED)).tolist():
        # The draws of a class have no common order, so that of none of them it is known that it came late.
        newest = counts.first_draws[counts.row_offsets[pair + 1] - 1]
        if newest > given.closing[pair]:
            return (
                f"{_pair_name(counts, pair)} led to {_outcomes_of(counts, pair)[-1]} at its draw "
                f"{newest} for the first time, when no other outcome should have been left"
            )
    for kind in kinds_in(assumed):
        contradicted = kind.contradiction(assumed, given.drawn)
        if contradicted is not None:
            return f"{_pair_name(counts, contradicted[0])}{contradicted[1]}"
    for pair in np.flatnonzero(lengths_of_classes > most).tolist():
        shown = f"belongs to a class that has shown {lengths_of_classes[pair]} outcomes"
        return f"{_pair_name(counts, pair)} {shown}"
    return None


def _shown_outcomes(counts: Counts, pair: int) -> str:
    """That a pair led to several states, in words."""
    met = _outcomes_of(counts, pair)
    return f"{_pair_name(counts, pair)} led to {', '.join(met[:-1])} and {met[-1]}"


def _outcomes_of(counts: Counts, pair: int) -> list[str]:
    entries = slice(*counts.row_offsets[pair : pair + 2].tolist())
    return [_shown(counts.order[successor]) for successor in counts.successors[entries].tolist()]


def _pair_name(counts: Counts, pair: int) -> str:
    """What to call a pair in a message."""
    state = 0
    while pair >= len(counts.actions[state]):
        pair -= len(counts.actions[state])
        state += 1
    return f"action {_shown(counts.actions[state][pair])} of state {_shown(counts.order[state])}"


def _shown(label: Hashable) -> str:
    """A label in a sentence: text in quotes, and anything else as people write it."""
    return repr(label) if isinstance(label, str) else readable(label)
