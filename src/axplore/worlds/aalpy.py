"""AALpy systems under learning, and whatever else has `pre()`, `step(letter)` and `post()`, as systems to explore.

Such a system answers a letter with an output, and the output is taken as the state. Where it says too little, where the
same output comes from states that behave differently, give a function that says more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from axplore.errors import InvalidInputError
from axplore.types import Action, State

START: Final = "start"
"""What the state before the first letter is called."""


class AalpySystem:
    """A system under learning as a system: see `systems`."""

    def __init__(
        self,
        learned: Any,
        alphabet: Sequence[Action],
        *,
        initial: State = START,
        state: Callable[[Any, Any], State] | None = None,
    ) -> None:
        """Takes a system under learning.

        Args:
            learned: the system, with `pre`, `step` and `post`.
            alphabet: the letters, which are the actions of every state.
            initial: the state before the first letter. None asks for it by `step(None)`, as AALpy does for an empty
                word, which Moore machines and MDPs answer.
            state: what the state is, given the system and its last output; the output itself when not given.
        """
        if not is_aalpy(learned):
            raise InvalidInputError(f"{learned!r} is no system under learning: it needs pre(), step(letter) and post()")
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
    """Whether it can be used as a system under learning."""
    return not isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in ("pre", "step", "post"))
