"""What episodes of one fixed policy prove of a property, checked by itself (Theorem 4 of docs/algorithms/questions.md).

Someone who starts with the wealth 1 and stakes the part λ of it on each episode has 1 + λ (1 / q - 1) times as much
after a success, and 1 - λ times after a miss. If successes have a probability of at most q, this wealth and every mixture
of such ones reach 1 / level with probability at most `level`, whenever one stops (Ville).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from axplore.certificate.bellman import Sweeper
from axplore.certificate.bounds import UnprovenError
from axplore.certificate.kinds.episodes import level_of
from axplore.certificate.levels import EPISODES
from axplore.certificate.property_proofs import Asked
from axplore.records.properties import NO_CHOICE, PropertyClaim, Witness
from axplore.types import BoolArray

ROUNDING: Final = 1e-12
"""An error that sums of logarithms do not reach, relative to the sum of the sizes of their terms."""


def check_witness(claim: PropertyClaim, witness: Witness, asked: Asked, sweeper: Sweeper, delta: float) -> None:
    """Raises `UnprovenError` if the bound of a witness does not follow from its episodes."""
    _check_policy(witness, asked)
    _check_ends(claim, witness, asked)
    _check_draws(witness, asked, sweeper)
    # The chance that is to be proven, rounded up: the bound is one of it, or of the opposite.
    chance = witness.bound if asked.prop.maximise else 1.0 - witness.bound + 4e-16
    if not 0.0 < chance < 1.0:
        raise UnprovenError(f"a chance of {chance:.6g} cannot be proven by episodes")
    needed, wealth = -math.log(level_of(witness.line, EPISODES * delta)), log_wealth(witness, chance)
    if not wealth >= needed:
        raise UnprovenError(f"the {witness.episodes} episodes of the witness gain {wealth:.6g} nats, of {needed:.6g}")
    lower, upper = float(claim.lower[0]), float(claim.upper[0])
    if not (witness.bound <= upper if asked.prop.maximise else lower <= witness.bound):
        raise UnprovenError(f"the bound {witness.bound:.6g} of the witness contradicts that of the region")


def log_wealth(witness: Witness, chance: float) -> float:
    """The logarithm of the wealth against a chance of success, rounded down."""
    if math.fsum(witness.weights) > 1 or max(witness.fractions) >= 1:
        raise UnprovenError("the witness stakes more than the wealth it has")
    missed, logarithms = witness.episodes - witness.successes, []
    for fraction, weight in zip(witness.fractions, witness.weights, strict=True):
        won = witness.successes * math.log1p(fraction * (1.0 / chance - 1.0))
        lost = missed * math.log1p(-fraction)
        logarithms.append(math.log(weight) + won + lost - ROUNDING * (1.0 + abs(math.log(weight)) + won - lost))
    largest = max(logarithms)
    return largest + math.log(math.fsum(math.exp(each - largest) for each in logarithms)) - ROUNDING


def _check_policy(witness: Witness, asked: Asked) -> None:
    """The policy plays nothing where a property is decided, and something in the initial state."""
    plays = np.atleast_2d(witness.policy != NO_CHOICE)
    if not plays[0, 0]:
        raise UnprovenError("the policy of the witness plays nothing in the initial state")
    if plays[:, ~asked.inside].any() or plays[:, witness.ends].any():
        raise UnprovenError("the policy of the witness goes on where the property is decided")
    within = asked.prop.within
    if within is not None and not (witness.horizon <= within if asked.prop.maximise else witness.horizon == within):
        raise UnprovenError(f"episodes of {witness.horizon} steps say nothing of {within}")


def _check_ends(claim: PropertyClaim, witness: Witness, asked: Asked) -> None:
    """From every end of an episode that counts as a miss of the goal, the goal cannot be reached."""
    if not len(witness.ends):
        return
    if asked.prop.maximise or asked.prop.within is not None:
        raise UnprovenError("nothing but the worst probability, without a number of steps, has ends of episodes")
    if (claim.upper[witness.ends] != 0.0).any():
        raise UnprovenError("an episode of the witness ended where the goal may still be reached")


def _check_draws(witness: Witness, asked: Asked, sweeper: Sweeper) -> None:
    """The draws, among which all those of the episodes are, can hold these."""
    first = int(np.atleast_2d(witness.policy)[0, 0])
    drawn = int(sweeper.counts.visits[first])
    if witness.episodes > drawn:
        raise UnprovenError(f"{witness.episodes} episodes begin with an action that was drawn {drawn} times")
    if not asked.prop.maximise and asked.prop.within is not None:
        return
    counts = sweeper.counts
    led = np.bincount(counts.successors, counts.counts, minlength=len(counts.order))
    entered = int(led[_successes(witness, asked)].sum())
    if witness.successes > entered:
        raise UnprovenError(f"{witness.successes} episodes ended where the draws have led {entered} times")


def _successes(witness: Witness, asked: Asked) -> BoolArray:
    """Where an episode ends that succeeds, [n + others]."""
    if asked.prop.maximise:
        return asked.reach
    ends = asked.avoid & ~asked.reach
    ends[: len(asked.inside)] |= ~asked.inside & ~asked.reach[: len(asked.inside)]
    ends[witness.ends] = True
    return ends
