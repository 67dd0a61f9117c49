"""Policies of an atlas, as callables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from axplore.arguments import checked, label, optional, settings, whole
from axplore.errors import InvalidInputError, UnknownActionError
from axplore.memory import Memory
from axplore.types import RESET, RESET_ACTION, Action, IntArray, Reset, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Miss, Restarts, World
from axplore.worlds.playing import PlayedPolicy, player_of


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy towards a goal: `policy(state)` is an action, or RESET.

    It resets in the goal, where it has arrived, and in every state for which nothing is planned.

    Attributes:
        goal: the goal.
        indices: the index of each state in the atlas.
        actions: the actions of each of them.
        choices: the choice in each of the first m of them, [m], or by step and state, [H, m]: the index among the
            actions of the state, or RESET_ACTION.
        memory: what tells situations apart, if these are the states: `memory.follower()` follows a system, and names
            the state that it is in.
    """

    goal: State
    indices: Mapping[State, int]
    actions: tuple[tuple[Action, ...], ...]
    choices: IntArray
    memory: Memory | None = None

    @property
    def horizon(self) -> int | None:
        """H, the steps after which a policy that depends on the step resets; None for other policies."""
        return len(self.choices) if self.choices.ndim == 2 else None

    @checked(state=label, step=optional(whole()))
    def __call__(self, state: State, step: int | None = None) -> Action | Reset:
        """Returns what to play in a state.

        Args:
            state: the label of the current state.
            step: the number of steps of the journey so far. Only a policy with a horizon needs it; after the RESET at
                the horizon a new journey begins.
        """
        index = self.indices.get(state)
        choices = self._choices_at(step)
        if state == self.goal or index is None or choices is None or index >= len(choices):
            return RESET
        choice = choices[index]
        return RESET if choice == RESET_ACTION else self.actions[index][choice]

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Action | Reset, None]:
        """Returns what to play as Stable-Baselines3 does: the action, or RESET, and no hidden state.

        Args:
            observation: the label of a state, or a NumPy scalar or array without dimensions that holds it.
            state: not used.
            episode_start: not used.
            deterministic: not used; the policy is always deterministic.
        """
        del state, episode_start, deterministic
        return self(observation.item() if getattr(observation, "shape", None) == () else observation), None

    @checked(times=whole(least=1), max_steps=whole(least=1), seed=whole(), world_parameters=optional(settings))
    def run(
        self,
        world: Any,
        times: int = 1,
        max_steps: int = 10_000,
        seed: int = 0,
        world_parameters: Mapping[str, Any] | None = None,
    ) -> Journeys:
        """Follows the policy from the initial state.

        Args:
            world: a `World`, or anything else that can be explored.
            times: number of journeys.
            max_steps: the largest number of steps of a journey.
            seed: the seed of the noise, unless `world` is a `World`, which has its own.
            world_parameters: of a world given by its name.
        """
        with world_for(world, seed, world_parameters, self.memory) as followed:
            return run(self, followed, times, max_steps)

    def played(self) -> PlayedPolicy:
        """Returns what is played in a world; a policy with a horizon starts again after the RESET at the horizon."""
        choices, indices, actions, goal = np.atleast_2d(self.choices), self.indices, self.actions, self.goal
        horizon, n_planned = choices.shape
        period = 1 if self.horizon is None else horizon + 1

        def choose(state: State, step: int) -> Action | Reset:
            index, now = indices.get(state, n_planned), step % period
            if now == horizon or index >= n_planned or state == goal:
                return RESET
            choice = int(choices[now, index])
            return RESET if choice == RESET_ACTION else actions[index][choice]

        return PlayedPolicy(choose, period)

    def _choices_at(self, step: int | None) -> IntArray | None:
        """Returns the choices at a step, [m]; None beyond the horizon."""
        if self.horizon is None:
            return self.choices
        if step is None:
            raise InvalidInputError(
                f"the policy to {self.goal!r} depends on the step: call policy(state, step) "
                "with the number of steps that the journey has taken, from 0"
            )
        return self.choices[step] if step < self.horizon else None

    def __repr__(self) -> str:
        return f"Policy(to {self.goal!r})"


TRIES: Final = 100
"""Number of visits to each pair of the policy after which the search for a goal in a world is given up."""


@dataclass(frozen=True)
class Journeys:
    """The result of following a policy.

    Attributes:
        times: the number of journeys from the initial state.
        arrivals: the number of journeys that reached the goal.
        steps: the steps of all journeys together.
    """

    times: int
    arrivals: int
    steps: int

    @property
    def mean_steps(self) -> float:
        """The mean number of steps of a journey; one that did not arrive counts as the steps it was allowed."""
        return self.steps / self.times


def run(policy: Policy, world: World, times: int, max_steps: int) -> Journeys:
    """Follows a policy from the initial state to its goal a number of times."""
    if policy.horizon is not None:
        raise InvalidInputError(f"the policy to {policy.goal!r} depends on the step; call it with the step instead")
    try:
        player = player_of(world, policy.played(), policy.goal, max_steps, Restarts.CHOSEN)
        if not player.meet(TRIES):
            raise InvalidInputError(
                f"the policy does not lead to {policy.goal!r} in this world; is it the one that was explored?"
            )
        journeys = player.play_through(times)
    except UnknownActionError as error:
        raise InvalidInputError(f"{error}: it is another world") from None
    steps = [max_steps if isinstance(journey.outcome, Miss) else journey.outcome for journey in journeys]
    return Journeys(times, sum(journey.has_arrived for journey in journeys), sum(steps))
