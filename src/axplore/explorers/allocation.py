"""How many visits DisCo asks of each pair of the known set: the allocation φ, n_k = φ(K_k).

Every function here is an `Allocation`: it takes how much the pairs' transitions spread over the known set, and answers
with the visits that each pair needs. The spreads are estimates, so an allocation is asked again as they change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from axplore.explorers.interface import Precision
from axplore.explorers.settings import required_states_bound
from axplore.mdp import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Spreads:
    """How much the estimated transitions of the known set's pairs spread.

    Attributes:
        within_known: Σ_{y in K} sqrt(p̂(y|s,a) (1 - p̂(y|s,a))) of each pair, [P]; its square is Θ̂(s, a, K).
        with_goal: the same sum over K, the goal s† and the meta-state x of everything else, for the goal that makes it
            largest, [P]. Its maximum is X_k of [DisCo] Eq. (budget), for whichever goal is chosen later.
        n_known: |K|.
        n_actions: A, the most actions that any state has beside RESET.
        states_bound: S, an upper bound on the number of states, if one is known.
    """

    within_known: FloatArray
    with_goal: FloatArray
    n_known: int
    n_actions: int
    states_bound: int | None = None


Allocation: TypeAlias = Callable[[Spreads, Precision], IntArray]
"""The visits that each pair of the known set needs, [P]."""

VARIANCE_FACTOR: Final = 57
"""Before X_k²/γ² in [DisCo] Eq. (budget)."""
VARIANCE_LOG_FACTOR: Final = 8 * math.e
"""Inside the logarithm of the first term of [DisCo] Eq. (budget)."""
RANGE_FACTOR: Final = 24
"""Before |S†_k|/γ and inside the logarithm of the second term of [DisCo] Eq. (budget)."""
EXTRA_STATES: Final = 2
"""|S†_k| = |K_k| + 2: the goal and the meta-state ([DisCo] Def. of M†)."""


def model_accuracy(precision: Precision) -> float:
    """γ of [DisCo] Eq. (budget): 2ε / (12 (L + 1 + ε)(L + ε/3)), how well the model must be known."""
    radius, epsilon = precision.radius, precision.epsilon
    return 2 * epsilon / (12 * (radius + 1 + epsilon) * (radius + epsilon / 3))


def exact_allocation(spreads: Spreads, precision: Precision) -> IntArray:
    """n_k of [DisCo] App. "State Transfer", Eq. (budget), with all its constants and logarithms.

    It also covers what the termination proof asks of every pair ([DisCo] Lem. (high_prob_visit)): ⌈L log(3ALS/δ)⌉.
    """
    states_bound = required_states_bound(spreads.states_bound)
    accuracy = model_accuracy(precision)
    pairs_bound = states_bound * spreads.n_actions
    spread = float(spreads.with_goal.max(initial=0.0))
    size = spreads.n_known + EXTRA_STATES
    variance_term = 0.0
    if spread > 0:  # x² log²(c x) tends to 0 with x
        root = VARIANCE_LOG_FACTOR * spread * math.sqrt(2 * pairs_bound) / (math.sqrt(precision.delta) * accuracy)
        variance_term = VARIANCE_FACTOR * spread**2 / accuracy**2 * math.log(root) ** 2
    range_log = math.log(RANGE_FACTOR * size * pairs_bound / (precision.delta * accuracy))
    range_term = RANGE_FACTOR * size / accuracy * range_log
    return _same_for_all(spreads, variance_term + range_term)


def theorem_allocation(spreads: Spreads, precision: Precision, alpha: float = 1.0) -> IntArray:
    """φ of [DisCo] Thm. 1 with its logarithms: α (L⁴ Θ̂/ε² log²(LSA/(εδ)) + L² |K|/ε log(LSA/(εδ))).

    The theorem says that some absolute constant α does, not which; bind another with `functools.partial`.
    """
    states_bound = required_states_bound(spreads.states_bound)
    radius, epsilon = precision.radius, precision.epsilon
    logarithm = math.log(radius * states_bound * spreads.n_actions / (epsilon * precision.delta))
    theta = float(spreads.within_known.max(initial=0.0)) ** 2
    first = radius**4 * theta / epsilon**2 * logarithm**2
    second = radius**2 * spreads.n_known / epsilon * logarithm
    return _same_for_all(spreads, alpha * (first + second))


def per_pair_allocation(spreads: Spreads, precision: Precision) -> IntArray:
    """The published experiment's: Thm. 1 with α = 1, no logarithms, and Θ̂(s, a, K) of the pair itself.

    [DisCo] App. "Algorithmic Configurations". It carries no guarantee.
    """
    return _without_logarithms(spreads.within_known, spreads, precision)


def maximum_allocation(spreads: Spreads, precision: Precision) -> IntArray:
    """The published experiment's on the combination lock: as `per_pair_allocation`, with the largest Θ̂ for all.

    [DisCo] App. "Combination Lock". It carries no guarantee.
    """
    largest = np.full_like(spreads.within_known, spreads.within_known.max(initial=0.0))
    return _without_logarithms(largest, spreads, precision)


def _without_logarithms(spread: FloatArray, spreads: Spreads, precision: Precision) -> IntArray:
    radius, epsilon = precision.radius, precision.epsilon
    visits = radius**4 * spread**2 / epsilon**2 + radius**2 * spreads.n_known / epsilon
    return np.ceil(visits).astype(np.int64)


def _same_for_all(spreads: Spreads, visits: float) -> IntArray:
    return np.full(len(spreads.within_known), math.ceil(visits), dtype=np.int64)
