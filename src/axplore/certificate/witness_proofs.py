"""What episodes of one fixed policy prove of a property, checked by itself (Theorem 4 of docs/algorithms/questions.md).

Someone who starts with the wealth 1 and stakes the part λ of it on each episode has 1 + λ (1 / q - 1) times as much
after a success, and 1 - λ times after a miss. If successes have a probability of at most q, this wealth and every
mixture of such ones reach 1 / level with probability at most `level`, whenever one stops (Ville).

Every draw of an episode is counted in the rows too. So a witness is refused if the rows cannot hold its successes, or
prove that its policy has fewer of them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError
from axplore.certificate.kinds.episodes import level_of
from axplore.certificate.levels import EPISODES
from axplore.certificate.property_proofs import MARGIN, Asked
from axplore.records.properties import NO_CHOICE, PropertyClaim, Witness
from axplore.types import BoolArray

ROUNDING: Final = 1e-12
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""


def check_witness(claim: PropertyClaim, witness: Witness, asked: Asked, sweeper: Sweeper, delta: float) -> None:
    """Raises `UnprovenError` if the bound of a witness does not follow from its episodes."""
    _check_policy(witness, asked)
    _check_draws(witness, asked, sweeper)
    _check_wealth(witness, asked, delta)
    _check_rows(witness, asked, sweeper)
    lower, upper = float(claim.lower[0]), float(claim.upper[0])
    if not (witness.bound <= upper if asked.prop.maximise else lower <= witness.bound):
        raise UnprovenError(f"the bound {witness.bound:.6g} of the witness contradicts that of the region")


def _check_policy(witness: Witness, asked: Asked) -> None:
    """The policy plays nothing where a property is decided, and something in the initial state."""
    plays = witness.policy != NO_CHOICE
    if not plays[:1, 0].any():
        raise UnprovenError("the policy of the witness plays nothing in the initial state")
    if plays[:, ~asked.inside].any():
        raise UnprovenError("the policy of the witness goes on where the property is decided")


def _check_draws(witness: Witness, asked: Asked, sweeper: Sweeper) -> None:
    """The draws, among which all those of the episodes are, can hold the successes."""
    counts = sweeper.counts
    drawn = int(counts.visits[int(witness.policy[0, 0])])
    if witness.successes > drawn:
        raise UnprovenError(f"{witness.successes} episodes begin with an action that was drawn {drawn} times")
    steps, states = np.nonzero(witness.policy != NO_CHOICE)
    is_played = np.zeros(len(counts.visits), dtype=np.bool_)
    is_played[counts.state_pairs[states] + witness.policy[steps, states]] = True
    ends = is_played[counts.entry_pairs] & _ends_of_successes(asked)[counts.successors]
    possible = int(counts.counts[ends].sum())
    if not asked.prop.maximise:  # an episode that missed the goal for as long as may be has drawn at every step
        possible += int(counts.visits[is_played].sum()) // len(witness.policy)
    if witness.successes > possible:
        raise UnprovenError(f"the draws of its policy hold {possible} successes, not the {witness.successes} claimed")


def _ends_of_successes(asked: Asked) -> BoolArray:
    """The states in which an episode ends that succeeds, unless all its steps were taken, [n + others]."""
    if asked.prop.maximise:
        return asked.reach
    ends = asked.avoid.copy()
    ends[: len(asked.inside)] |= ~asked.inside
    return ends & ~asked.reach


def _check_wealth(witness: Witness, asked: Asked, delta: float) -> None:
    """The episodes gain what the level of the line asks for."""
    if math.fsum(witness.weights) > 1 or max(witness.fractions) >= 1:
        raise UnprovenError("the witness stakes more than the wealth it has")
    # The chance that is to be proven, rounded up: the bound is one of it, or of the opposite.
    chance = witness.bound if asked.prop.maximise else 1.0 - witness.bound + 4e-16
    if not 0.0 < chance < 1.0:
        raise UnprovenError(f"a chance of {chance:.6g} cannot be proven by episodes")
    needed, wealth = -math.log(level_of(witness.line, EPISODES * delta)), log_wealth(witness, chance)
    if not wealth >= needed:
        raise UnprovenError(f"the {witness.episodes} episodes of the witness gain {wealth:.6g} nats, of {needed:.6g}")


def log_wealth(witness: Witness, chance: float) -> float:
    """The logarithm of the wealth against a chance of success, rounded down."""
    missed, logarithms = witness.episodes - witness.successes, []
    for fraction, weight in zip(witness.fractions, witness.weights, strict=True):
        won = witness.successes * math.log1p(fraction * (1.0 / chance - 1.0))
        lost = missed * math.log1p(-fraction)
        logarithms.append(math.log(weight) + won + lost - ROUNDING * (1.0 + abs(math.log(weight)) + won - lost))
    largest = max(logarithms)
    return largest + math.log(math.fsum(math.exp(value - largest) for value in logarithms)) - ROUNDING


def _check_rows(witness: Witness, asked: Asked, sweeper: Sweeper) -> None:
    """The rows leave room for the chance of this policy: one sweep for each step, as for the bounds themselves."""
    values, region, n_known = asked.reach.astype(np.float64), sweeper.region, len(asked.inside)
    # An episode that ends before its last step is a success in some states, and a miss in all others.
    ended = (asked.reach if asked.prop.maximise else ~_ends_of_successes(asked)).astype(np.float64)
    for choice in witness.policy[::-1]:
        if asked.prop.maximise:
            means = 1.0 - region.least_means(1.0 - values, -np.inf) + MARGIN
        else:
            means = region.least_means(values, -np.inf) - MARGIN
        plays = np.flatnonzero(choice != NO_CHOICE)
        values = ended.copy()
        values[:n_known][plays] = np.clip(means[sweeper.state_pairs[plays] + choice[plays]], 0.0, 1.0)
    if not (witness.bound <= values[0] if asked.prop.maximise else values[0] <= witness.bound):
        most = "at most" if asked.prop.maximise else "at least"
        raise UnprovenError(f"by the rows, the policy of the witness reaches the goal with {most} {values[0]:.6g}")
