"""Policies of an atlas, as callables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.arguments import checked, label, optional, settings, whole
from axplore.errors import InvalidInputError
from axplore.memory import Memory
from axplore.types import RESET, RESET_ACTION, Action, IntArray, Reset, State
from axplore.worlds.catalogue import world_for
from axplore.worlds.contract import Episodes, Visit, World

if TYPE_CHECKING:
    from axplore.worlds.contract import World


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy towards a goal: `policy(state)` is an action, or RESET.

    It resets in the goal, where it has arrived, and in every state for which nothing is planned.

    Attributes:
        goal: the goal.
        places: the place of each state in the atlas.
        actions: the actions of each of them.
        choices: the choice in each of the first m of them, [m], or by step and state, [H, m]: the index among the
            actions of the state, or RESET_ACTION.
        memory: what tells situations apart, if these are the states: `memory.follower()` follows a system, and names
            the state that it is in.
    """

    goal: State
    places: Mapping[State, int]
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
        place = self.places.get(state)
        choices = self._choices_at(step)
        if state == self.goal or place is None or choices is None or place >= len(choices):
            return RESET
        choice = choices[place]
        return RESET if choice == RESET_ACTION else self.actions[place][choice]

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


TRIES: Final = 1000
"""Number of plays for each state of the atlas after which the search for a goal in a world is given up."""


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
    """Follows a policy from the initial state to its goal a number of times.

    A world indexes states in the order in which it met them, so one that has not met the goal is first led there.
    """
    if policy.horizon is not None:
        raise InvalidInputError(f"the policy to {policy.goal!r} depends on the step; call it with the step instead")
    _meet(policy, world, max_steps)
    goal = list(world.states).index(policy.goal)
    (answer,) = world.carry_out([Episodes(goal, times, max_steps, _choices(policy, world))])
    return Journeys(times, answer.arrivals, answer.travelled)


def _meet(policy: Policy, world: World, max_steps: int) -> None:
    """Plays the policy in one state after the other until the world has met the goal."""
    tried: dict[int, int] = {}
    for _ in range(TRIES * len(policy.places)):
        if policy.goal in world.states:
            return
        choices = _choices(policy, world)
        planned = np.flatnonzero(choices != RESET_ACTION).tolist()
        if not planned:
            break
        state = min(planned, key=lambda number: tried.get(number, 0))
        tried[state] = tried.get(state, 0) + 1
        world.carry_out([Visit(state, int(choices[state]), 1, choices, max_steps, max_cuts=10)])
    raise InvalidInputError(
        f"the policy does not lead to {policy.goal!r} in this world; is it the one that was explored?"
    )


def _choices(policy: Policy, world: World) -> IntArray:
    """Returns the choice in each state that the world has met, by its index there, [n]."""
    choices = np.full(len(world.states), RESET_ACTION, dtype=np.int64)
    for number, state in enumerate(world.states):
        action = policy(state)
        if action is RESET:
            continue
        offered = world.actions_of(number)
        if action not in offered:
            raise InvalidInputError(f"state {state!r} of this world has no action {action!r}: it is another world")
        choices[number] = offered.index(action)
    return choices
