"""UcbExplore's form for AX': runs with growing radii, one after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    ForecastProbe,
    Outlook,
    check_attainable,
    exploration_of,
    policy_by_number,
)
from axplore.explorers.ucb_explore import UcbExplore, UcbExploreState, ucb_explore_experiment, ucb_explore_theory
from axplore.target import Target
from axplore.types import RESET_ACTION, IntArray
from axplore.worlds.contract import World

MAX_STAGES: Final = 10**5
"""Each stage explores from scratch."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StagedState(ExplorerState):
    """The state of the restarts.

    Attributes:
        stage: n, which radius is being explored, counted from 0.
        inner: the state of that stage's own exploration.
        policies: for each known state, the policy of the stage that found it, by step and number in the world, [H, n].
        optimistic_steps: the optimistic H-step time of each in that stage.
    """

    stage: int
    inner: UcbExploreState
    policies: tuple[IntArray, ...]
    optimistic_steps: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class StagedUcbExplore(Explorer[StagedState]):
    """UcbExplore for AX': restarts from scratch with growing radii ([DisCo] App. "Autonomous Exploration Objectives").

    A state keeps the policy of the first stage that found it, so it is reached within L' + ε steps, where L' is the
    least radius of the grid at which it is controllable.

    Attributes:
        final: the configuration of the last stage; the others differ in the radius.
    """

    state_types = (StagedState, UcbExploreState)

    final: UcbExplore

    def __post_init__(self) -> None:
        stages = (self.target.radius - 1) / self.target.epsilon
        check_attainable("stages", stages, self.target, most=MAX_STAGES)

    @property
    def target(self) -> Target:
        """L, ε and δ of the last stage."""
        return self.final.target

    @property
    def radii(self) -> tuple[float, ...]:
        """L_n = 1 + nε for n = 0..⌈(L - 1)/ε⌉, the last one capped at L."""
        radius, epsilon = self.target.radius, self.target.epsilon
        last = math.ceil((radius - 1) / epsilon)
        return tuple(min(radius, 1 + n * epsilon) for n in range(last + 1))

    def forecast(self, probe: ForecastProbe) -> Outlook:
        """Returns the steps of the stages, one after the other."""
        stages = [replace(self.final, target=replace(self.target, radius=radius)) for radius in self.radii]
        outlooks = [stage.forecast(probe) for stage in stages]
        steps = sum(outlook.steps for outlook in outlooks)
        return Outlook(steps, "episodes of all stages", needs_states_bound=outlooks[-1].needs_states_bound)

    def start(self, world: World) -> StagedState:
        """Returns the first stage, with L_0 = 1."""
        inner = self._explorer(0).start(world)
        return StagedState(
            round=1, known=inner.known, found_at=inner.found_at, stage=0, inner=inner,
            policies=inner.policies, optimistic_steps=inner.optimistic_steps,
        )  # fmt: skip

    def advance(self, state: StagedState, world: World) -> StagedState:
        """Advances the current stage, or begins the next."""
        if state.inner.stop is None:
            inner = self._explorer(state.stage).advance(state.inner, world)
            advanced = self._with_inner(state, inner, world)
            return advanced if inner.failure is None else advanced.failed(inner.failure)
        if state.stage + 1 == len(self.radii):
            return replace(state, stop=state.inner.stop)
        stage = state.stage + 1
        inner = self._explorer(stage).start(world)
        return replace(
            state, stage=stage, inner=inner, round=state.round + 1, activity=f"restarted, radius {self.radii[stage]:g}"
        )

    def finish(self, state: StagedState, world: World) -> Exploration:
        """Returns each state with the policy of the first stage that found it."""
        return exploration_of(
            self,
            state,
            world,
            counts=state.inner.counts,
            policies=tuple(_by_index(policy, state.known) for policy in state.policies),
            optimistic_steps=np.array(state.optimistic_steps),
        )

    def _explorer(self, stage: int) -> UcbExplore:
        """Returns the stage's own explorer. Reconstructed: the stages share δ equally."""
        delta = self.target.delta / len(self.radii)
        return replace(self.final, target=replace(self.target, radius=self.radii[stage], delta=delta))

    def _with_inner(self, state: StagedState, inner: UcbExploreState, world: World) -> StagedState:
        """Takes over what the stage found that no stage before it had found."""
        advanced = replace(
            state,
            inner=inner,
            round=state.round + inner.round - state.inner.round,
            frontier=tuple(number for number in range(len(world.states)) if number not in {*state.known, *inner.known}),
            activity=f"radius {self.radii[state.stage]:g}: {inner.activity}",
        )
        if len(inner.known) == len(state.inner.known) or inner.known[-1] in state.known:
            return advanced
        return replace(
            advanced,
            known=(*state.known, inner.known[-1]),
            found_at=(*state.found_at, world.steps),
            policies=(*state.policies, policy_by_number(inner.policies[-1], inner.known)),
            optimistic_steps=(*state.optimistic_steps, inner.optimistic_steps[-1]),
        )


def _by_index(policy: IntArray, known: tuple[int, ...]) -> IntArray:
    """A policy by step and number in the world, [H, n], as one by step and index in the known set, [H, |K|]."""
    numbers = np.array(known)
    by_index = np.full((len(policy), len(known)), RESET_ACTION, dtype=np.int64)
    planned = numbers < policy.shape[1]
    by_index[:, planned] = policy[:, numbers[planned]]
    return by_index


def staged_ucb_explore_theory(target: Target, states_bound: int | None = None) -> StagedUcbExplore:
    """UcbExplore's AX' form by restarts, on `ucb_explore_theory`."""
    return StagedUcbExplore(final=ucb_explore_theory(target, states_bound))


def staged_ucb_explore_experiment(target: Target, states_bound: int | None = None) -> StagedUcbExplore:
    """UcbExplore's AX' form by restarts, on `ucb_explore_experiment`."""
    return StagedUcbExplore(final=ucb_explore_experiment(target, states_bound))
