"""What UcbExplore's configurations differ in: how many episodes, how much discovery, and how optimistic.

The theory's rules have the constants and logarithms that [DisCo] prints; the experiment's have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import numpy as np

from axplore.explorers.base import required_states_bound
from axplore.planning.finite_horizon import BonusWeights
from axplore.target import Target
from axplore.types import FloatArray, IntArray

EPISODES_FACTOR: Final = 6
"""Before (L/ε)³ in λ ([DisCo] App. "Outline of the Algorithm")."""
EPISODES_LOG_FACTOR: Final = 16
"""Before |K|²/δ in the logarithm of λ ([DisCo] App. "Outline of the Algorithm")."""
DISCOVERY_LOG_FACTOR: Final = 3
"""Before ALS/δ in b ([DisCo] Lem. (high_prob_visit))."""
ORIGINAL_ACCURACY_DIVISOR: Final = 8.0
"""The original divides ε' = ε/L by 8 ([DisCo] App. "Algorithmic Configurations")."""
EXPERIMENT_EPISODES_CONSTANT: Final = 3.0
"""c in c/ε'³ episodes. [DisCo] says only that constants are removed; 1 gives 0.55 to 0.6 of the published totals, 3
comes near them. It was fitted after the fact and validates nothing."""


@dataclass(frozen=True)
class Problem:
    """What the rules below depend on.

    Attributes:
        target: L, ε and δ.
        accuracy: e, the relative accuracy: ε/L, divided by the configuration's divisor.
        horizon: H = ⌈(1 + 1/e) L⌉.
        n_known: |K|.
        n_actions: A, the most actions that any state has beside RESET.
        states_bound: S, an upper bound on the number of states, if one is known.
    """

    target: Target
    accuracy: float
    horizon: int
    n_known: int
    n_actions: int
    states_bound: int | None


EpisodesRule: TypeAlias = Callable[[Problem], int]
"""λ, how many episodes a round has at most."""
DiscoveryRule: TypeAlias = Callable[[Problem], int]
"""b, how often each action of a new state is played."""
HorizonBonus: TypeAlias = Callable[[IntArray, Problem], BonusWeights]
"""How optimistic to be about pairs with these visits, [P]."""


def theory_episodes(problem: Problem) -> int:
    """⌈6/e³ log(16 |K|²/δ)⌉ ([DisCo] App. "Outline of the Algorithm")."""
    logarithm = math.log(EPISODES_LOG_FACTOR * problem.n_known**2 / problem.target.delta)
    return math.ceil(EPISODES_FACTOR / problem.accuracy**3 * logarithm)


def experiment_episodes(problem: Problem, constant: float = EXPERIMENT_EPISODES_CONSTANT) -> int:
    """⌈c/e³⌉: λ without constants and logarithms, but for c. Bind another c with `functools.partial`."""
    return math.ceil(constant / problem.accuracy**3)


def lock_episodes(problem: Problem) -> int:
    """⌈log(|K|²)/e³⌉ ([DisCo] App. "Combination Lock"); with a single known state the logarithm is taken as 1.

    Reconstructed: for |K| = 1 the printed number is 0, and a round without episodes would admit anything.
    """
    logarithm = math.log(problem.n_known**2) if problem.n_known > 1 else 1.0
    return math.ceil(logarithm / problem.accuracy**3)


def theory_discovery(problem: Problem) -> int:
    """⌈L log(3ALS/δ)⌉ ([DisCo] Lem. (high_prob_visit))."""
    radius, states = problem.target.radius, required_states_bound(problem.states_bound)
    inside = DISCOVERY_LOG_FACTOR * problem.n_actions * radius * states / problem.target.delta
    return math.ceil(radius * math.log(inside))


def experiment_discovery(problem: Problem) -> int:
    """⌈L⌉: the same without constants and logarithms ([DisCo] App. "Algorithmic Configurations")."""
    return math.ceil(problem.target.radius)


def hoeffding_bonus(visits: IntArray, problem: Problem) -> BonusWeights:
    """(H - h) sqrt(log(2SAHN/δ) / (2N/H)), with the visits split into H buckets.

    Reconstructed: [DisCo] says that the original uses Hoeffding bonuses on N/H samples; the logarithm is that of
    [DisCo] Eq. (bonuses) with a factor H for the steps of the horizon.
    """
    states = required_states_bound(problem.states_bound)
    draws = np.maximum(1, visits)
    logarithm = np.log(float(2 * states * problem.n_actions * problem.horizon) * draws / problem.target.delta)
    bucket = np.maximum(1, visits // problem.horizon)
    return BonusWeights(variance=np.zeros(len(visits)), range=np.sqrt(logarithm / (2 * bucket)))


def bernstein_bonus(visits: IntArray, problem: Problem) -> BonusWeights:
    """sqrt(Var[V_{h+1}] / (N/H ∨ 1)) + (H - h)/(N/H ∨ 1) ([DisCo] App. "Algorithmic Configurations")."""
    return _bernstein(visits / problem.horizon)


def lock_bernstein_bonus(visits: IntArray, problem: Problem) -> BonusWeights:  # noqa: ARG001 (one type for all)
    """As `bernstein_bonus`, with N in the place of N/H ([DisCo] App. "Combination Lock")."""
    return _bernstein(visits.astype(np.float64))


def _bernstein(samples: FloatArray) -> BonusWeights:
    inverse = 1 / np.maximum(1.0, samples)
    return BonusWeights(variance=inverse, range=inverse)


class StageModels(Enum):
    """How the transitions of a pair are estimated."""

    STATIONARY = "one model from all samples"
    BUCKETED = "the samples are dealt into H buckets, one model for each step of the horizon"
