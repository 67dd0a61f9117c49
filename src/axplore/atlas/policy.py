"""The way to a goal, as something to call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axplore.errors import InvalidInputError
from axplore.mdp import RESET, RESET_ACTION, Action, IntArray, Reset, State

if TYPE_CHECKING:
    from axplore.atlas.running import Journeys
    from axplore.worlds.orders import World


@dataclass(frozen=True, eq=False)
class Policy:
    """What to play in each state on the way to a goal. Call it: `policy(state)` is an action, or RESET.

    It resets in the goal, where it has arrived, and in every state for which nothing is planned.

    Attributes:
        goal: its goal.
        places: the place of each state in the atlas.
        actions: of each of them.
        choices: what to play in the first m of them, [m], or by step and state, [H, m]: the position among the state's
            actions, or RESET_ACTION.
    """

    goal: State
    places: Mapping[State, int]
    actions: tuple[tuple[Action, ...], ...]
    choices: IntArray

    @property
    def horizon(self) -> int | None:
        """H, the steps after which a policy that depends on the step resets; None if it does not depend on it."""
        return len(self.choices) if self.choices.ndim == 2 else None

    def __call__(self, state: State, step: int | None = None) -> Action | Reset:
        """What to play in a state.

        Args:
            state: where the agent stands; any label.
            step: how many steps the journey has taken, from 0. Only a policy with a horizon needs it; once it has
                reset there, a new journey begins.
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
        """What to play, in the form of Stable-Baselines3: the action, or RESET, and no hidden state.

        Args:
            observation: the label of a state, or a NumPy scalar or array without dimensions that holds it.
            state: not used.
            episode_start: not used.
            deterministic: not used; the policy always is.
        """
        del state, episode_start, deterministic
        return self(observation.item() if getattr(observation, "shape", None) == () else observation), None

    def run(self, world: World, times: int = 1, max_steps: int = 10_000) -> Journeys:
        """Follows the policy in a world, so many times from the initial state, and at most so many steps each."""
        from axplore.atlas.running import run

        return run(self, world, times, max_steps)

    def _choices_at(self, step: int | None) -> IntArray | None:
        """What to play at a step, [m]; None where the horizon is over."""
        if self.horizon is None:
            return self.choices
        if step is None or step < 0:
            raise InvalidInputError(
                f"the policy to {self.goal!r} depends on the step, and the step is {step}: call policy(state, step) "
                "with the number of steps that the journey has taken, from 0"
            )
        return self.choices[step] if step < self.horizon else None

    def __repr__(self) -> str:
        return f"Policy(to {self.goal!r})"
