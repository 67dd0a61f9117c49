"""Explorers by name, with every option set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from axplore.errors import InvalidSettingError, UnknownNameError
from axplore.explorers.base import Explorer
from axplore.explorers.certified import Certified
from axplore.explorers.disco import DisCo
from axplore.explorers.disco_rules import (
    effective_horizon,
    exact_allocation,
    per_pair_allocation,
    proof_bonus,
    rollout_bound,
    simulation_bonus,
)
from axplore.explorers.ucb_explore import UcbExplore
from axplore.explorers.ucb_rules import (
    ORIGINAL_ACCURACY_DIVISOR,
    StageModels,
    bernstein_bonus,
    experiment_discovery,
    experiment_episodes,
    hoeffding_bonus,
    theory_discovery,
    theory_episodes,
)
from axplore.explorers.ucb_staged import StagedUcbExplore
from axplore.target import Objective, Target

Preset: TypeAlias = Callable[[Target, int | None], Any]
"""An explorer from L, ε, δ and the bound S on the number of states, if there is one."""


def certified(target: Target, states_bound: int | None = None) -> Certified:  # noqa: ARG001
    """The certified explorer for AX*: its promise is proven by the counts, and it needs no S."""
    return Certified(target=target)


def certified_within_radius(target: Target, states_bound: int | None = None) -> Certified:  # noqa: ARG001
    """The certified explorer for AX_L, which takes fewer steps; it needs no S."""
    return Certified(target=target, objective=Objective.WITHIN_RADIUS)


def disco_theory(target: Target, states_bound: int | None = None) -> DisCo:
    """DisCo with every constant and logarithm of the proofs ([DisCo] App. "Proof of Theorem 1"); it needs S."""
    return DisCo(
        target=target,
        allocation=exact_allocation,
        bonus=proof_bonus,
        journey_limit=rollout_bound,
        states_bound=states_bound,
    )


def disco_experiment(target: Target, states_bound: int | None = None) -> DisCo:
    """DisCo as in the paper's simulations ([DisCo] App. "Algorithmic Configurations"); it carries no guarantee."""
    return DisCo(
        target=target,
        allocation=per_pair_allocation,
        bonus=simulation_bonus,
        journey_limit=effective_horizon,
        states_bound=states_bound,
    )


def ucb_explore_theory(target: Target, states_bound: int | None = None) -> UcbExplore:
    """UcbExplore with constants, logarithms, Hoeffding bonuses and bucketed samples; it needs S."""
    return UcbExplore(
        target=target,
        episodes=theory_episodes,
        discovery=theory_discovery,
        bonus=hoeffding_bonus,
        stage_models=StageModels.BUCKETED,
        accuracy_divisor=ORIGINAL_ACCURACY_DIVISOR,
        states_bound=states_bound,
    )


def ucb_explore_experiment(target: Target, states_bound: int | None = None) -> UcbExplore:
    """UcbExplore-Bernstein ([DisCo] App. "Algorithmic Configurations"); it carries no guarantee."""
    return UcbExplore(
        target=target,
        episodes=experiment_episodes,
        discovery=experiment_discovery,
        bonus=bernstein_bonus,
        stage_models=StageModels.STATIONARY,
        accuracy_divisor=1.0,
        states_bound=states_bound,
    )


def staged_ucb_explore_theory(target: Target, states_bound: int | None = None) -> StagedUcbExplore:
    """UcbExplore's AX' form by restarts, on `ucb_explore_theory`."""
    return StagedUcbExplore(final=ucb_explore_theory(target, states_bound))


def staged_ucb_explore_experiment(target: Target, states_bound: int | None = None) -> StagedUcbExplore:
    """UcbExplore's AX' form by restarts, on `ucb_explore_experiment`."""
    return StagedUcbExplore(final=ucb_explore_experiment(target, states_bound))


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "certified": certified,
        "certified-within-radius": certified_within_radius,
        "disco-theory": disco_theory,
        "disco-experiment": disco_experiment,
        "ucb-explore-theory": ucb_explore_theory,
        "ucb-explore-experiment": ucb_explore_experiment,
        "ucb-explore-staged-theory": staged_ucb_explore_theory,
        "ucb-explore-staged-experiment": staged_ucb_explore_experiment,
    }
)
"""The presets by the names that the command line uses."""

DEFAULT_EXPLORER: Final = "certified"


def preset(
    name: str, *, radius: float, epsilon: float, delta: float = 0.1, states_bound: int | None = None, **options: Any
) -> Explorer[Any]:
    """The explorer of that name for a radius, an epsilon and a delta.

    Args:
        name: one of `PRESETS`.
        radius: L.
        epsilon: ε.
        delta: δ.
        states_bound: S, an upper bound on the number of states; the theory presets need it, the certified ones do not.
        options: fields of the explorer's configuration to set otherwise.
    """
    if name not in PRESETS:
        raise UnknownNameError.of("explorer", name, PRESETS)
    explorer = PRESETS[name](Target(radius=radius, epsilon=epsilon, delta=delta), states_bound)
    known = [option.name for option in fields(explorer)]
    for option in options:
        if option not in known:
            raise InvalidSettingError(f"the explorer {name!r} has no option {option!r}; it has {', '.join(known)}")
    return replace(explorer, **options)  # type: ignore[no-any-return]
