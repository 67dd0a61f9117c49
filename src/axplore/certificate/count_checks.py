"""Whether counts are such that draws can have given them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from typing import Final

import numpy as np

from axplore.certificate.assumed import TOLERANCE, Assumed
from axplore.certificate.document import Certificate
from axplore.certificate.region import closing_draws, least_of_class, level_weights
from axplore.certificate.tied import UNTIED, pooled

FALSE_ALARM: Final = 1e-3
"""The probability with which outcomes as likely as assumed may ever be taken for rarer, in all pairs together."""


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
    classes = np.full(len(assumed.single), UNTIED)
    if assumed.tied is not None:
        contradicted = assumed.tied.contradiction(counts)
        if contradicted is not None:
            met = _outcomes_of(certificate, contradicted[0])
            return f"{_pair_name(certificate, contradicted[0])}, which led to {', '.join(met)}, {contradicted[1]}"
        classes = np.where(assumed.single == 1, UNTIED, assumed.tied.pair_classes(counts))
        for pair in np.flatnonzero(classes != UNTIED).tolist():
            size = assumed.tied.classes.count(classes[pair])
            if size * assumed.least[pair] > 1.0 + TOLERANCE:
                return f"{_pair_name(certificate, pair)} belongs to a class that has shown {size} outcomes"
    n_actions = [len(actions) for actions in certificate.actions]
    weights = level_weights(counts, n_actions, assumed, certificate.apart)
    closing = closing_draws(assumed.least, weights, certificate.delta)
    # The draws of a class have no common order, so that of none of them it is known that it came late.
    for pair in np.flatnonzero((assumed.least > 0.0) & (classes == UNTIED)).tolist():
        first, end = counts.row_offsets[pair : pair + 2].tolist()
        if end > first and counts.first_draws[end - 1] > closing[pair]:
            return (
                f"{_pair_name(certificate, pair)} led to {_outcomes_of(certificate, pair)[-1]} at its draw "
                f"{counts.first_draws[end - 1]} for the first time, when no other outcome should have been left"
            )
    return _too_rare(certificate, assumed, weights)


def _too_rare(certificate: Certificate, assumed: Assumed, weights: Sequence[float]) -> str | None:
    """An outcome that came so seldom that it must be rarer than assumed, in words; None if there is none."""
    counts, least, classes = certificate.counts, assumed.least, [UNTIED] * len(weights)
    if assumed.tied is not None:
        counts, classes = pooled(counts, assumed.tied, (assumed.single == 1).tolist())
        least = least_of_class(least, classes)
    for pair, (first, end) in enumerate(pairwise(counts.row_offsets.tolist())):
        if not 0.0 < least[pair] < 1.0:
            continue
        row = counts.counts[first:end].tolist()
        level = FALSE_ALARM * weights[pair] / math.floor(1.0 / least[pair] + TOLERANCE)
        for count in row:
            if log_rarity(count, sum(row), float(least[pair])) >= -math.log(level):
                whose = "" if classes[pair] == UNTIED else " (with its class)"
                return (
                    f"{_pair_name(certificate, pair)}{whose} had an outcome {count} times in {sum(row)}, which one as "
                    f"likely as {least[pair]:g} has with a probability of at most {level:.1g}"
                )
    return None


def log_rarity(count: int, draws: int, least: float) -> float:
    """How much the draws speak against an outcome of probability `least` or more, in nats.

    A bettor predicts whether it comes by the mixture of all probabilities with the density Beta(1/2, 1/2), against the
    likeliest that is assumed to be possible. By Ville's inequality he ever has 1/level with probability at most level.
    """
    if count >= least * draws:
        return 0.0
    mixture = math.lgamma(count + 0.5) + math.lgamma(draws - count + 0.5) - math.lgamma(draws + 1) - math.log(math.pi)
    return mixture - count * math.log(least) - (draws - count) * math.log1p(-least)


def _outcomes_of(certificate: Certificate, pair: int) -> list[str]:
    labels = (*certificate.known, *certificate.others)
    entries = slice(*certificate.counts.row_offsets[pair : pair + 2].tolist())
    return [repr(labels[position]) for position in certificate.counts.successors[entries].tolist()]


def _pair_name(certificate: Certificate, pair: int) -> str:
    state = int(np.searchsorted(certificate.state_pairs, pair, side="right")) - 1
    action = certificate.actions[state][pair - int(certificate.state_pairs[state])]
    return f"action {action!r} of state {certificate.known[state]!r}"
