"""Following a policy in a world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.mdp import RESET, RESET_ACTION, IntArray
from axplore.worlds.orders import Episodes, Visit, World

if TYPE_CHECKING:
    from axplore.atlas.policy import Policy

TRIES: Final = 1000
"""After so many plays for each state of the atlas, a goal that the world never showed is given up."""


@dataclass(frozen=True)
class Journeys:
    """What came of following a policy.

    Attributes:
        times: journeys from the initial state.
        arrivals: how many of them reached the goal.
        steps: of all of them together.
    """

    times: int
    arrivals: int
    steps: int

    @property
    def mean_steps(self) -> float:
        """Steps of a journey, on average; one that did not arrive counts as many as it was allowed."""
        return self.steps / self.times


def run(policy: Policy, world: World, times: int, max_steps: int) -> Journeys:
    """Follows a policy from the initial state to its goal, so many times.

    A world names states by the order in which it met them. So one that never met the goal is first led there.
    """
    if times < 1 or max_steps < 1:
        raise InvalidSettingError(f"times is {times} and max_steps is {max_steps}; both must be at least 1")
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
    """What to play in each state that the world has met, by its number there, [n]."""
    choices = np.full(len(world.states), RESET_ACTION, dtype=np.int64)
    for number, state in enumerate(world.states):
        action = policy(state)
        if action is RESET:
            continue
        offered = world.actions_of(number)
        if action not in offered:
            raise InvalidInputError(f"state {state!r} of this world has no action {action!r}: it is another one")
        choices[number] = offered.index(action)
    return choices
