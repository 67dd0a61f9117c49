"""What an explorer hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from axplore.errors import UnknownStateError
from axplore.explorers.interface import Explorer, ExplorerState
from axplore.explorers.stopping import StopReason
from axplore.mdp import Action, FloatArray, IntArray, State
from axplore.worlds.orders import World

if TYPE_CHECKING:
    from axplore.explorers.evidence import Evidence
    from axplore.statistics.counts import TransitionCounts


@dataclass(frozen=True, eq=False)
class Exploration:
    """The states that an explorer found, and the way to each of them.

    Attributes:
        states: the labels of the controllable states, in order of admission; the initial state is the first, [k].
        numbers: their numbers in the world, [k].
        found_at: the steps of the world at which each was admitted, [k].
        policies: for each state as the goal, what to play in the first m of `states`, [m], or by step and state,
            [H, m]: the position among the state's actions, or RESET_ACTION. Every other state resets, and so does the
            agent after H steps.
        optimistic_steps: the explorer's optimistic estimate of the steps to each, [k].
        frontier: the labels of the other states discovered.
        counts: the transitions met.
        steps: steps taken in the world, RESET included.
        rounds: how many rounds there were.
        stop: why the exploration ended.
        explorer: the configuration that was run.
        evidence: what is proven of each state; only of the certified explorer.
        actions: the actions of each of `states` beside RESET, [k].
    """

    states: tuple[State, ...]
    numbers: IntArray
    found_at: IntArray
    policies: tuple[IntArray, ...]
    optimistic_steps: FloatArray
    frontier: tuple[State, ...]
    counts: TransitionCounts
    steps: int
    rounds: int
    stop: StopReason
    explorer: Explorer[Any]
    evidence: Evidence | None = None
    actions: tuple[tuple[Action, ...], ...] = ()

    def position_of(self, state: State) -> int:
        """The place of a state in `states`."""
        try:
            return self.states.index(state)
        except ValueError:
            raise UnknownStateError(
                f"{state!r} is none of the {len(self.states)} states found to be controllable"
            ) from None

    def policy(self, goal: State) -> IntArray:
        """The policy towards a goal, [m] or [H, m]; see `policies`."""
        return self.policies[self.position_of(goal)]


def exploration_of(
    explorer: Explorer[Any],
    state: ExplorerState,
    world: World,
    *,
    counts: TransitionCounts,
    policies: tuple[IntArray, ...],
    optimistic_steps: FloatArray,
    evidence: Evidence | None = None,
) -> Exploration:
    """What a state of an explorer stands for; the other arguments are those of `Exploration`."""
    return Exploration(
        states=tuple(world.states[number] for number in state.known),
        numbers=np.array(state.known, dtype=np.int64),
        found_at=np.array(state.found_at, dtype=np.int64),
        policies=policies,
        optimistic_steps=optimistic_steps,
        frontier=tuple(world.states[number] for number in state.frontier),
        counts=counts,
        steps=world.steps,
        rounds=state.round,
        stop=state.stop or StopReason.STEP_LIMIT,
        explorer=explorer,
        evidence=evidence,
        actions=tuple(world.actions_of(number) for number in state.known),
    )
