"""Rules in which configurations of DisCo differ: allocations, bonuses, journey limits and policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import numpy as np

from axplore.explorers.base import check_attainable, required_states_bound
from axplore.graphs.optimistic import Bonus, experiment_bonus, theory_bonus
from axplore.target import Target
from axplore.types import FloatArray, IntArray

BonusRule: TypeAlias = Callable[[Target, int | None, int], Bonus]
"""β, given the target, the bound S on the number of states, if there is one, and the number of actions A."""


def proof_bonus(target: Target, states_bound: int | None, n_actions: int) -> Bonus:
    """β with the constants and logarithms of the proofs ([DisCo] Eq. (bonuses)); it needs S."""
    return theory_bonus(required_states_bound(states_bound), n_actions, target.delta)


def simulation_bonus(target: Target, states_bound: int | None, n_actions: int) -> Bonus:  # noqa: ARG001
    """β without them ([DisCo] App. "Algorithmic Configurations")."""
    return experiment_bonus


JOURNEY_FACTOR: Final = 4
"""Before (L + ε + 1) in ψ ([DisCo] Lem. (gen_model)) and before (L + 1) in H_eff ([DisCo] Lem. (log_dependency_H))."""
ROLLOUT_FACTOR: Final = 6
"""Before Z in the logarithm of ψ ([DisCo] Lem. (gen_model))."""

JourneyLimit: TypeAlias = Callable[[Target, int], int]
"""Returns the steps after which a journey is cut, given the target and the number of samples asked for."""


def rollout_bound(target: Target, samples: int) -> int:
    """ψ = 4 (L + ε + 1) log(6Z/δ), which no journey exceeds with probability 1 - δ/3 ([DisCo] Lem. (gen_model)).

    Differs from [DisCo]: Z counts the samples asked of the current known set, because S_{L+ε} is not known.
    """
    logarithm = math.log(ROLLOUT_FACTOR * samples / target.delta)
    return math.ceil(JOURNEY_FACTOR * (target.radius + target.epsilon + 1) * logarithm)


def effective_horizon(target: Target, samples: int) -> int:  # noqa: ARG001 (one type for all)
    """H_eff = 4 (L + 1) ⌈log(4 (L + 1)/ε)⌉ ([DisCo] Lem. (log_dependency_H))."""
    reach = JOURNEY_FACTOR * (target.radius + 1)
    return math.ceil(reach * math.ceil(math.log(reach / target.epsilon)))


class JourneyPolicies(Enum):
    """The policies that lead to the known states during sample collection."""

    AS_ADMITTED = "the policy with which the state was admitted, restricted to the set of that time"
    """[DisCo] Alg. 1, literally."""
    REPLANNED = "planned again for the larger set whenever a state is admitted"


@dataclass(frozen=True, eq=False)
class Spreads:
    """The spread of the estimated transitions of the pairs of the known set.

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


Allocation: TypeAlias = Callable[[Spreads, Target], IntArray]
"""The visits that each pair of the known set needs, [P]."""

VARIANCE_FACTOR: Final = 57
"""Before X_k²/γ² in [DisCo] Eq. (budget)."""
VARIANCE_LOG_FACTOR: Final = 8 * math.e
"""Inside the logarithm of the first term of [DisCo] Eq. (budget)."""
RANGE_FACTOR: Final = 24
"""Before |S†_k|/γ and inside the logarithm of the second term of [DisCo] Eq. (budget)."""
EXTRA_STATES: Final = 2
"""|S†_k| = |K_k| + 2: the goal and the meta-state ([DisCo] Def. of M†)."""


def model_accuracy(target: Target) -> float:
    """γ of [DisCo] Eq. (budget): 2ε / (12 (L + 1 + ε)(L + ε/3)), how well the model must be known."""
    radius, epsilon = target.radius, target.epsilon
    return 2 * epsilon / (12 * (radius + 1 + epsilon) * (radius + epsilon / 3))


def exact_allocation(spreads: Spreads, target: Target) -> IntArray:
    """n_k of [DisCo] App. "State Transfer", Eq. (budget), with all its constants and logarithms.

    It also covers what the termination proof asks of every pair ([DisCo] Lem. (high_prob_visit)): ⌈L log(3ALS/δ)⌉.
    """
    states_bound = required_states_bound(spreads.states_bound)
    accuracy = model_accuracy(target)
    pairs_bound = states_bound * spreads.n_actions
    spread = float(spreads.with_goal.max(initial=0.0))
    size = spreads.n_known + EXTRA_STATES
    variance_term = 0.0
    if spread > 0:  # x² log²(c x) tends to 0 with x
        root = VARIANCE_LOG_FACTOR * spread * math.sqrt(2 * pairs_bound) / (math.sqrt(target.delta) * accuracy)
        variance_term = VARIANCE_FACTOR * spread**2 / accuracy**2 * math.log(root) ** 2
    range_log = math.log(RANGE_FACTOR * size * pairs_bound / (target.delta * accuracy))
    range_term = RANGE_FACTOR * size / accuracy * range_log
    return _same_for_all(spreads, variance_term + range_term, target)


def theorem_allocation(spreads: Spreads, target: Target, alpha: float = 1.0) -> IntArray:
    """φ of [DisCo] Thm. 1 with its logarithms: α (L⁴ Θ̂/ε² log²(LSA/(εδ)) + L² |K|/ε log(LSA/(εδ))).

    The theorem says that some absolute constant α does, not which; bind another with `functools.partial`.
    """
    states_bound = required_states_bound(spreads.states_bound)
    radius, epsilon = target.radius, target.epsilon
    logarithm = math.log(radius * states_bound * spreads.n_actions / (epsilon * target.delta))
    theta = float(spreads.within_known.max(initial=0.0)) ** 2
    first = radius**4 * theta / epsilon**2 * logarithm**2
    second = radius**2 * spreads.n_known / epsilon * logarithm
    return _same_for_all(spreads, alpha * (first + second), target)


def per_pair_allocation(spreads: Spreads, target: Target) -> IntArray:
    """The published experiment's: Thm. 1 with α = 1, no logarithms, and Θ̂(s, a, K) of the pair itself.

    [DisCo] App. "Algorithmic Configurations". It carries no guarantee.
    """
    return _without_logarithms(spreads.within_known, spreads, target)


def maximum_allocation(spreads: Spreads, target: Target) -> IntArray:
    """The published experiment's on the combination lock: as `per_pair_allocation`, with the largest Θ̂ for all.

    [DisCo] App. "Combination Lock". It carries no guarantee.
    """
    largest = np.full_like(spreads.within_known, spreads.within_known.max(initial=0.0))
    return _without_logarithms(largest, spreads, target)


def _without_logarithms(spread: FloatArray, spreads: Spreads, target: Target) -> IntArray:
    radius, epsilon = target.radius, target.epsilon
    visits = radius**4 * spread**2 / epsilon**2 + radius**2 * spreads.n_known / epsilon
    return _whole_visits(visits, target)


def _same_for_all(spreads: Spreads, visits: float, target: Target) -> IntArray:
    return _whole_visits(np.full(len(spreads.within_known), visits), target)


def _whole_visits(visits: FloatArray, target: Target) -> IntArray:
    """Rounds up; refuses numbers that no run will ever reach, and that integers might not hold."""
    check_attainable("visits of each pair", float(visits.max(initial=0.0)), target)
    return np.ceil(visits).astype(np.int64)
