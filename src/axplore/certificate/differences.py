"""Claims that follow by what their vectors do not share, in time that does not grow with the number of states.

A vector has numbers of its own for a few states, and all others share theirs: one number, or those of a base. An
inequality that holds of the shared numbers need not be looked at again where a vector changes nothing in it, or only
what helps. So the shared numbers are checked once for all claims that have them, and of each claim what it touches:

- *lower*, W <= 1 + least mean of W under every action: the actions of states whose number was raised, those that may
  lead to a state whose number was lowered, or to the goal, and those for which the shared numbers fail;
- *upper*, U >= 1 + greatest mean of U under the policy: where the policy does not reset. Everywhere else one inequality
  about the shared number says all;
- *loss*, R >= U - (1 + least mean of W under another action), and R >= greatest mean of R under the policy: likewise.

States outside, which reset, count one more than the initial state. That differs between claims with the same base, so
a base is checked with the least that any of them has there. All inequalities are those of `bounds`, and looked at by
the same operators, many claims at a time. What does not follow in this way may still follow as a whole: `bounds`
decides then, and says why not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import (
    LARGEST,
    ROUNDING,
    correction,
    follows_along_way,
    lower_steps,
    upper_steps,
)
from axplore.certificate.sparse import Places, Sparse, places
from axplore.records.claims import Bound, NearOptimal, Way
from axplore.records.vectors import Vector
from axplore.types import RESET_ACTION, BoolArray, FloatArray, IntArray

MOST_AT_ONCE: Final = 2**17
"""About as many actions are looked at together, so that memory does not grow with the number of claims."""

LARGE_PART: Final = 0.25
"""A claim that touches more than this part of all actions, and more than these, is looked at as a whole."""

FEW: Final = 1000


@dataclass(frozen=True)
class Follows:
    """Which bounds of a claim follow by their differences."""

    upper: bool = False
    lower: bool = False
    loss: bool = False


def by_differences(sweeper: Sweeper, claims: Sequence[Any], epsilon: float) -> list[Follows]:
    """Which bounds of each of some claims of one kind follow; a loss is looked at where the gap is more than ε."""
    uppers, lowers, losses = (np.zeros(len(claims), dtype=np.bool_) for _ in range(3))
    if claims and isinstance(claims[0], Way):
        uppers = uppers_that_follow(sweeper, claims)
    if claims and isinstance(claims[0], Bound | NearOptimal):
        lowers = lowers_that_follow(sweeper, claims)
    if claims and isinstance(claims[0], NearOptimal):
        wide = np.array([upper_steps(claim) - lower_steps(claim) > epsilon for claim in claims])
        losses = _marked(uppers & lowers & wide, lambda some: losses_that_follow(sweeper, [claims[i] for i in some]))
    return [Follows(*each) for each in zip(uppers.tolist(), lowers.tolist(), losses.tolist(), strict=True)]


def uppers_that_follow(sweeper: Sweeper, claims: Sequence[Way]) -> BoolArray:
    """Which upper bounds follow by their differences, [c]."""
    follows = _marked(
        [_shares_a_number(claim.upper, claim.goal) and _resets_elsewhere(claim.policy) for claim in claims],
        lambda chosen: _uppers_follow(sweeper, [claims[place] for place in chosen]),
    )
    for place in np.flatnonzero(~follows).tolist():
        claim = claims[place]
        follows[place] = _is_possible(claim.upper, claim.goal) and follows_along_way(sweeper, claim)
    return follows


def lowers_that_follow(sweeper: Sweeper, claims: Sequence[Bound | NearOptimal]) -> BoolArray:
    """Which lower bounds follow by their differences, [c]."""
    follows = np.zeros(len(claims), dtype=np.bool_)
    by_base: dict[tuple[int, float], list[int]] = {}
    for place, claim in enumerate(claims):
        lower = claim.lower
        if len(lower.indices) < lower.length and _is_possible(lower, claim.goal):
            shared = (0, 0.0) if lower.base is None else (id(lower.base), correction(lower))
            by_base.setdefault(shared, []).append(place)
    for chosen in by_base.values():
        follows[chosen] = _lowers_follow(sweeper, [claims[place] for place in chosen])
    return follows


def losses_that_follow(sweeper: Sweeper, claims: Sequence[NearOptimal]) -> BoolArray:
    """Which bounds of losses follow by their differences, if both other bounds do, [c]."""
    return _marked(
        [
            all(_shares_a_number(vector, claim.goal) for vector in (claim.upper, claim.lower, claim.regret))
            and _resets_elsewhere(claim.policy)
            for claim in claims
        ],
        lambda chosen: _losses_follow(sweeper, [claims[place] for place in chosen]),
    )


def _uppers_follow(sweeper: Sweeper, claims: Sequence[Way]) -> BoolArray:
    upper = _uppers_of(sweeper, claims)
    return _policies_keep(_plays(sweeper, claims), upper, 1.0, upper.margin)


def _lowers_follow(sweeper: Sweeper, claims: Sequence[Bound | NearOptimal]) -> BoolArray:
    lower = _lowers_of(sweeper, claims)
    own, margin, most = lower.own, lower.margin, lower.outside - lower.margin
    shared_top = lower.rest if lower.base is None else np.full(len(claims), lower.base.max())
    may_reset = lower.numbers <= most[own.claims]
    doubtful = _doubtful_of_rest(lower, lower.rest - 1.0 + margin) if lower.base is None else _doubtful_of_base(lower)

    def hold(pairs: Places) -> BoolArray:
        values, lack = lower.at(_states_of(sweeper, pairs)), margin[pairs.claims]
        holds: BoolArray = values <= 1.0 + lower.least_means(pairs, values - 1.0 + lack) - lack
        return holds

    touched, fits = _touched(lower, own[lower.numbers > lower.shared_at(own)], doubtful)
    follows = fits & (shared_top <= most) & _without(own.claims[~may_reset], len(claims))
    return follows & _hold_in(touched, hold, len(claims))


def _losses_follow(sweeper: Sweeper, claims: Sequence[NearOptimal]) -> BoolArray:
    upper, lower, plays = _uppers_of(sweeper, claims), _lowers_of(sweeper, claims), _plays(sweeper, claims)
    loss = _losses_of(sweeper, claims, upper)
    margin, n_pairs = upper.margin + loss.margin, sweeper.region.n_pairs
    played = np.unique(plays.claims * n_pairs + plays.items)

    def lost(states: Places) -> FloatArray:
        """The least number of steps after a rival that the claims allow for."""
        return upper.at(states) - loss.at(states) + margin[states.claims]

    def hold(pairs: Places) -> BoolArray:
        needed = lost(_states_of(sweeper, pairs)) - 1.0
        is_played = np.isin(pairs.claims * n_pairs + pairs.items, played)
        holds: BoolArray = is_played | (lower.least_means(pairs, needed) >= needed)
        return holds

    states = _states_of(sweeper, plays)
    states = states[(states.items != 0) & (states.items != lower.goals[states.claims])]
    reset_is_worse = 1.0 + lower.of_start[states.claims] >= lost(states)
    touched, fits = _touched(lower, loss.own, _doubtful_of_rest(lower, upper.rest - loss.rest + margin - 1.0))
    follows = fits & _policies_keep(plays, loss, 0.0, margin) & _without(states.claims[~reset_is_worse], len(claims))
    return follows & _hold_in(touched, hold, len(claims))


def _policies_keep(plays: Places, bound: Sparse, cost: float, margin: FloatArray) -> BoolArray:
    """Whether bounds are at least a cost plus their greatest mean under policies, [c].

    Args:
        plays: the pairs of the policies, which reset in all other states.
        bound: of what is kept.
        cost: of each step.
        margin: by how much the inequalities must hold, [c].
    """
    sweeper, own = bound.sweeper, bound.own
    after_reset = cost + bound.of_start + margin
    states = _states_of(sweeper, plays)
    resets = ~np.isin(_keys(own, sweeper.n_seen), _keys(states, sweeper.n_seen)) & (
        own.items != bound.goals[own.claims]
    )
    too_low = own.claims[resets & (bound.numbers < after_reset[own.claims])]
    plays = plays[states.items != bound.goals[plays.claims]]

    def hold(pairs: Places) -> BoolArray:
        values, lack = bound.at(_states_of(sweeper, pairs)), margin[pairs.claims]
        holds: BoolArray = values >= cost + bound.greatest_means(pairs, values - cost - lack) + lack
        return holds

    n_claims = len(bound.goals)
    follows = (bound.rest >= after_reset) & _without(too_low, n_claims)
    return follows & _hold_in(_parts(plays), hold, n_claims)


def _touched(lower: Sparse, changed: Places, doubtful: tuple[IntArray, IntArray]) -> tuple[Iterator[Places], BoolArray]:
    """The pairs of which an inequality about lower bounds may not follow from what is shared, some claims at a time.

    Returns also which claims these are few of, [c]; there are none of the others.

    Args:
        lower: the bounds.
        changed: states all of whose pairs are to be looked at.
        doubtful: pairs, and how many of them, the first ones, are to be looked at for each claim, [c].
    """
    sweeper, n_claims, n_pairs = lower.sweeper, len(lower.goals), lower.sweeper.region.n_pairs
    met = np.flatnonzero(lower.goals < sweeper.n_seen)
    entered = lower.own[lower.numbers < lower.shared_at(lower.own)].joined(Places(met, lower.goals[met]))
    (first_leading, leading), (pairs, n_doubtful) = sweeper.leading, doubtful
    n_own, n_leading = np.diff(sweeper.state_pairs), np.diff(first_leading)
    sizes = n_doubtful + np.bincount(changed.claims, n_own[changed.items], n_claims)
    sizes = sizes + np.bincount(entered.claims, n_leading[entered.items], n_claims)
    fits = sizes <= max(FEW, LARGE_PART * n_pairs)

    def parts() -> Iterator[Places]:
        for some in _blocks(np.where(fits, sizes, 0.0)):
            own, into = (states[_within(states, some)] for states in (changed, entered))
            every = np.arange(some.start, some.stop)
            found = own[fits[own.claims]].spread(sweeper.state_pairs, n_own)
            found = found.joined(into[fits[into.claims]].spread(first_leading, n_leading).named(leading))
            worst = Places(every, every)[fits[some]].spread(np.zeros_like(n_doubtful), n_doubtful)
            found = found.joined(worst.named(pairs))
            found = Places(*np.divmod(np.unique(_keys(found, n_pairs)), n_pairs))
            yield found[_states_of(sweeper, found).items != lower.goals[found.claims]]

    return parts(), fits


def _doubtful_of_base(lower: Sparse) -> tuple[IntArray, IntArray]:
    """The pairs for which the base of some bounds fails, outside at the least of what these have there, for each."""
    sweeper, base = lower.sweeper, lower.base
    assert base is not None
    values, margin = np.full(sweeper.n_seen, lower.outside.min()), lower.margin.max()
    values[: len(base)] = base
    own = base[sweeper.owners]
    means = sweeper.region.least_means(values, own - 1.0 + margin)
    pairs = np.flatnonzero(own > 1.0 + means - margin)
    return pairs, np.full(len(lower.goals), len(pairs))


def _doubtful_of_rest(lower: Sparse, needed: FloatArray) -> tuple[IntArray, IntArray]:
    """The pairs that may have a smaller mean than needed, [c], where all states have the shared number, or more."""
    masses, order = lower.sweeper.least_masses
    least = np.maximum(needed, 0.0) / np.maximum(lower.rest, np.finfo(np.float64).tiny)
    return order, np.searchsorted(masses, least)


def _uppers_of(sweeper: Sweeper, claims: Sequence[Way]) -> Sparse:
    factors = np.array([1.0 + correction(claim.upper) for claim in claims])
    return Sparse.of(sweeper, _goals(claims), [claim.upper for claim in claims], np.multiply, factors)


def _lowers_of(sweeper: Sweeper, claims: Sequence[Bound | NearOptimal]) -> Sparse:
    factors = np.array([1.0 + correction(claim.lower) for claim in claims])
    return Sparse.of(sweeper, _goals(claims), [claim.lower for claim in claims], np.divide, factors)


def _losses_of(sweeper: Sweeper, claims: Sequence[NearOptimal], upper: Sparse) -> Sparse:
    """The bounds of losses, each corrected by three times the correction of its upper bound."""
    every = np.ones(len(claims))
    loss = Sparse.of(sweeper, upper.goals, [claim.regret for claim in claims], np.multiply, every)
    more = 3.0 * np.maximum(ROUNDING, 10.0 * upper.margin)
    both = np.unique(np.append(_keys(loss.own, sweeper.n_seen), _keys(upper.own, sweeper.n_seen)))
    own = Places(*np.divmod(both, sweeper.n_seen))
    numbers = loss.at(own) + more[own.claims] * upper.at(own)
    corrected = replace(loss, own=own, numbers=numbers, rest=loss.rest + more * upper.rest)
    return replace(corrected, outside=corrected.of_start)


def _goals(claims: Sequence[Way | Bound | NearOptimal]) -> IntArray:
    return np.array([claim.goal for claim in claims], dtype=np.int64)


def _plays(sweeper: Sweeper, claims: Sequence[Way]) -> Places:
    """The pairs that policies play."""
    chosen = [claim.policy.other_than(RESET_ACTION) for claim in claims]
    states = places([states for states, _ in chosen])
    actions = np.concatenate([actions for _, actions in chosen])
    return Places(states.claims, sweeper.state_pairs[states.items] + actions)


def _states_of(sweeper: Sweeper, pairs: Places) -> Places:
    return Places(pairs.claims, sweeper.owners[pairs.items])


def _keys(where: Places, n_items: int) -> IntArray:
    return where.claims * n_items + where.items


def _hold_in(parts: Iterator[Places], hold: Callable[[Places], BoolArray], n_claims: int) -> BoolArray:
    """Whether all inequalities of a claim hold, [c]; none is looked at of a claim that stands in no part."""
    failing = [pairs.claims[~hold(pairs)] for pairs in parts if len(pairs)]
    return _without(np.concatenate([np.zeros(0, dtype=np.int64), *failing]), n_claims)


def _without(failing: IntArray, n_claims: int) -> BoolArray:
    """Whether a claim is not among those that fail, [c]."""
    holds = np.ones(n_claims, dtype=np.bool_)
    holds[failing] = False
    return holds


def _parts(pairs: Places) -> Iterator[Places]:
    for first in range(0, len(pairs), MOST_AT_ONCE):
        yield pairs[first : first + MOST_AT_ONCE]


def _blocks(sizes: FloatArray) -> Iterator[slice]:
    """Claims that follow each other, about as many at a time as fit."""
    block = (np.cumsum(sizes) // MOST_AT_ONCE).astype(np.int64)
    ends = np.flatnonzero(np.diff(block, append=-1)) + 1
    for first, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
        yield slice(first, end)


def _within(where: Places, some: slice) -> slice:
    """Where the items of some claims are."""
    first, end = np.searchsorted(where.claims, [some.start, some.stop]).tolist()
    return slice(first, end)


def _marked(chosen: Sequence[bool] | BoolArray, follow: Callable[[list[int]], BoolArray]) -> BoolArray:
    """What follows of the chosen claims; the others do not, [c]."""
    follows, places_of_chosen = np.array(chosen, dtype=np.bool_), [place for place, is_in in enumerate(chosen) if is_in]
    if places_of_chosen:
        follows[places_of_chosen] = follow(places_of_chosen)
    return follows


def _resets_elsewhere(policy: Vector[np.int64]) -> bool:
    return policy.base is None and policy.rest == RESET_ACTION


def _shares_a_number(vector: Vector[np.float64], goal: int) -> bool:
    return vector.base is None and len(vector.indices) < vector.length and _is_possible(vector, goal)


def _is_possible(vector: Vector[np.float64], goal: int) -> bool:
    """Whether a vector has numbers of steps, and 0 at the goal."""
    return vector.max() <= LARGEST and (goal >= vector.length or vector[goal] == 0.0)
