"""Labels that a function of the user makes of what a system answers: `key`, for every kind of world.

A key leaves out what does not matter, such as a time or an identifier, or reads the label off an answer that is none.
It must keep what matters: a key that lumps together what behaves differently makes what is proven worthless, which the
doctor and the tests that run along look for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from axplore.errors import AxploreError, WorldError
from axplore.labels import shortened
from axplore.mdp import TabularMdp
from axplore.types import Action, State
from axplore.worlds.systems import SYSTEM_ERRORS, adapter_for, is_system

Key: TypeAlias = Callable[[Any], State]
"""Turns what a system answers into the label of its state."""

Offered: TypeAlias = Sequence[Action] | Callable[[State], Sequence[Action]] | None


def label_by(key: Key, answer: Any) -> State:
    """Returns the label that a key makes of an answer; an error of the key is not one of the system."""
    try:
        return key(answer)
    except AxploreError:
        raise
    except SYSTEM_ERRORS as error:
        name = getattr(key, "__qualname__", "key")
        raise WorldError(
            f"the key function {name} raised {type(error).__name__} at {shortened(answer)}: {error}"
        ) from error


class KeyedSystem:
    """A system whose states are what a key makes of its own; see `systems`.

    Whether a state is terminal, and which actions it has, is still up to the answer of the system.
    """

    knows_here_only = True

    def __init__(self, system: Any, key: Key, actions: Offered = None) -> None:
        self._adapter, self._key = adapter_for(system, actions), key
        self._answer: Any = None
        self.close = self._adapter.close
        for name in ("reseed", "render"):
            if callable(method := getattr(system, name, None)):
                setattr(self, name, method)

    def reset(self) -> State:
        """Resets the system."""
        self._answer = self._adapter.reset()
        return label_by(self._key, self._answer)

    def step(self, action: Action) -> State:
        """Steps the system."""
        self._answer = self._adapter.step(action)
        return label_by(self._key, self._answer)

    def actions(self, state: State) -> tuple[Action, ...]:  # noqa: ARG002
        """Returns the actions of the state just entered."""
        return self._adapter.actions(self._answer)


def keyed(source: Any, key: Key, actions: Offered = None) -> Any:
    """Returns a system, or what makes one, with other labels."""
    if is_system(source):
        return KeyedSystem(source, key, actions)
    return partial(_made, source, key, actions)


def _made(make: Callable[[], Any], key: Key, actions: Offered) -> KeyedSystem:
    return KeyedSystem(make(), key, actions)


class ModelSystem:
    """A known model as a system that is stepped, one step at a time."""

    def __init__(self, mdp: TabularMdp, seed: int = 0) -> None:
        self._mdp, self._noise = mdp, np.random.default_rng(seed)
        self._state: State = mdp.initial_state
        self._rows = {
            (state, action): (list(row), np.cumsum(list(row.values())).tolist())
            for state in mdp.states
            for action in mdp.actions_of(state)
            for row in [mdp.row(state, action)]
        }

    def reset(self) -> State:
        """Returns to the initial state."""
        self._state = self._mdp.initial_state
        return self._state

    def step(self, action: Action) -> State:
        """Plays an action."""
        successors, cumulated = self._rows[self._state, action]
        place = int(np.searchsorted(cumulated, self._noise.random() * cumulated[-1], side="right"))
        self._state = successors[min(place, len(successors) - 1)]
        return self._state

    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the actions of a state."""
        return self._mdp.actions_of(state)

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the noise another random stream."""
        self._noise = np.random.default_rng(seed)
