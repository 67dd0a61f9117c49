"""Whether counts are such that draws can have given them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from axplore.certificate.document import Certificate
from axplore.certificate.region import closing_draws


def contradiction(certificate: Certificate) -> str | None:
    """The first thing in the counts and names that cannot be, in words; None if there is none."""
    seen = _repeated((*certificate.known, *certificate.others))
    if seen:
        return f"the state {seen[0]!r} is listed twice"
    for state, actions in zip(certificate.known, certificate.actions, strict=True):
        if _repeated(actions):
            return f"state {state!r} has the action {_repeated(actions)[0]!r} twice"
    counts = certificate.counts
    for pair, (first, end) in enumerate(pairwise(counts.row_offsets.tolist())):
        entries = slice(first, end)
        if _repeated(counts.successors[entries].tolist()):
            return f"{_pair_name(certificate, pair)} has a successor twice"
        if not _possible(counts.counts[entries].tolist(), counts.first_draws[entries].tolist()):
            return f"{_pair_name(certificate, pair)} has counts that no draws can give"
    return None


def _possible(counts: Sequence[int], first_draws: Sequence[int]) -> bool:
    """Whether successors first seen at these draws can have these counts."""
    if any(count < 1 for count in counts):
        return False
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
    for pair in assumed.too_many_outcomes(np.diff(counts.row_offsets)).tolist():
        met = _outcomes_of(certificate, pair)
        return f"{_pair_name(certificate, pair)} led to {', '.join(met[:-1])} and {met[-1]}"
    n_actions = [len(actions) for actions in certificate.actions]
    closing = closing_draws(n_actions, certificate.delta, assumed, certificate.apart)
    for pair in np.flatnonzero(assumed.least > 0.0).tolist():
        first, end = counts.row_offsets[pair : pair + 2].tolist()
        if end > first and counts.first_draws[end - 1] > closing[pair]:
            return (
                f"{_pair_name(certificate, pair)} led to {_outcomes_of(certificate, pair)[-1]} at its draw "
                f"{counts.first_draws[end - 1]} for the first time, when no other outcome should have been left"
            )
    return None


def _outcomes_of(certificate: Certificate, pair: int) -> list[str]:
    labels = (*certificate.known, *certificate.others)
    entries = slice(*certificate.counts.row_offsets[pair : pair + 2].tolist())
    return [repr(labels[position]) for position in certificate.counts.successors[entries].tolist()]


def _pair_name(certificate: Certificate, pair: int) -> str:
    state = int(np.searchsorted(certificate.state_pairs, pair, side="right")) - 1
    action = certificate.actions[state][pair - int(certificate.state_pairs[state])]
    return f"action {action!r} of state {certificate.known[state]!r}"
