"""AALpy systems under learning, and anything else with `pre()`, `step(letter)` and `post()`, as systems to explore.

Such a system answers a letter with an output, which is taken as the state. Where the same output comes from states that
behave differently, pass a function that tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from axplore.errors import InvalidInputError
from axplore.types import Action, State

START: Final = "start"
"""The label of the state before the first letter."""


class AalpySystem:
    """A system under learning as a system; see `systems`."""

    def __init__(
        self,
        learned: Any,
        alphabet: Sequence[Action],
        *,
        initial: State = START,
        state: Callable[[Any, Any], State] | None = None,
    ) -> None:
        """Adapts a system under learning.

        Args:
            learned: the system, with `pre`, `step` and `post`.
            alphabet: the letters, which are the actions of every state.
            initial: the state before the first letter. None asks for it with `step(None)`, as AALpy does for the empty
                word; Moore machines and MDPs answer that.
            state: returns the state, given the system and its last output; the output itself by default.
        """
        if not is_aalpy(learned):
            raise InvalidInputError(
                f"{learned!r} is not a system under learning: it needs pre(), step(letter) and post()"
            )
        self._learned, self._initial = learned, initial
        self._state = state or (lambda _, output: output)
        self._under_way = False
        self.actions = tuple(alphabet)

    def reset(self) -> State:
        """Ends the word and begins another."""
        if self._under_way:
            self._learned.post()
        self._learned.pre()
        self._under_way = True
        output = self._learned.step(None) if self._initial is None else self._initial
        return self._state(self._learned, output)

    def step(self, action: Action) -> State:
        """Plays a letter."""
        return self._state(self._learned, self._learned.step(action))

    def close(self) -> None:
        """Ends the word."""
        if self._under_way:
            self._learned.post()
            self._under_way = False


def is_aalpy(thing: object) -> bool:
    """Returns whether an object can be used as a system under learning."""
    return not isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in ("pre", "step", "post"))
