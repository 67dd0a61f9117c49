"""What DisCo's configurations differ in beside the allocation: bonuses, when journeys are cut, and their policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from axplore.explorers.interface import Precision
from axplore.explorers.settings import required_states_bound
from axplore.planning.optimistic import Bonus, experiment_bonus, theory_bonus

BonusRule: TypeAlias = Callable[[Precision, int | None, int], Bonus]
"""β, given the precision, the bound S on the number of states, if there is one, and the number of actions A."""


def proof_bonus(precision: Precision, states_bound: int | None, n_actions: int) -> Bonus:
    """β with the constants and logarithms of the proofs ([DisCo] Eq. (bonuses)); it needs S."""
    return theory_bonus(required_states_bound(states_bound), n_actions, precision.delta)


def simulation_bonus(precision: Precision, states_bound: int | None, n_actions: int) -> Bonus:  # noqa: ARG001
    """β without them ([DisCo] App. "Algorithmic Configurations")."""
    return experiment_bonus


JOURNEY_FACTOR: Final = 4
"""Before (L + ε + 1) in ψ ([DisCo] Lem. (gen_model)) and before (L + 1) in H_eff ([DisCo] Lem. (log_dependency_H))."""
ROLLOUT_FACTOR: Final = 6
"""Before Z in the logarithm of ψ ([DisCo] Lem. (gen_model))."""

JourneyLimit: TypeAlias = Callable[[Precision, int], int]
"""After how many steps a journey is cut, given the precision and the number of samples asked for."""


def rollout_bound(precision: Precision, samples: int) -> int:
    """ψ = 4 (L + ε + 1) log(6Z/δ), which no journey exceeds with probability 1 - δ/3 ([DisCo] Lem. (gen_model)).

    Differs from [DisCo]: Z counts the samples asked of the current known set, because S_{L+ε} is not known.
    """
    logarithm = math.log(ROLLOUT_FACTOR * samples / precision.delta)
    return math.ceil(JOURNEY_FACTOR * (precision.radius + precision.epsilon + 1) * logarithm)


def effective_horizon(precision: Precision, samples: int) -> int:  # noqa: ARG001 (one type for all)
    """H_eff = 4 (L + 1) ⌈log(4 (L + 1)/ε)⌉ ([DisCo] Lem. (log_dependency_H))."""
    reach = JOURNEY_FACTOR * (precision.radius + 1)
    return math.ceil(reach * math.ceil(math.log(reach / precision.epsilon)))


class JourneyPolicies(Enum):
    """Which policies lead to the known states during sample collection."""

    AS_ADMITTED = "the policy with which the state was admitted, restricted on the set of that time"
    """[DisCo] Alg. 1, literally."""
    REPLANNED = "planned again for the larger set whenever a state is admitted"
