"""Systems: objects that can be reset and stepped, and so be explored.

A *system* has `reset() -> state` and `step(action) -> state`; a state is any hashable value. It may also have:

- `actions`: a sequence, the same in every state, or a function `actions(state)` of the state just entered;
- `is_terminal(state)`: whether the state can only be reset;
- `reseed(seed)`: takes a whole number, a `StreamSeed`, which alone determines its noise from then on;
- `render()`: returns a picture of its current state: red, green and blue as bytes, [height, width, 3];
- `close()`.

`adapter_for` supplies whatever a system leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from axplore.errors import InvalidInputError
from axplore.records.findings import FaultKind
from axplore.types import Action, State

VIRTUAL_START: Final = "virtual start"
"""The label of the state that precedes a random start."""

BEGIN: Final = "begin"
"""The only action of the virtual start: it leads to wherever the system's own reset leads."""


class StreamSeed(int):
    """The seed of a random stream: a whole number of 32 bits, as any generator of random numbers takes it.

    NumPy's generators take it as the seed sequence that it was made of, with all of its entropy.
    """

    _sequence: np.random.SeedSequence

    def __new__(cls, sequence: np.random.SeedSequence) -> StreamSeed:
        """Returns the seed of a stream that a seed sequence determines."""
        seed = super().__new__(cls, sequence.generate_state(1)[0])
        seed._sequence = sequence
        return seed

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Returns words of the seed sequence, as `numpy.random.SeedSequence` does."""
        return self._sequence.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[np.random.SeedSequence]:
        """Returns seed sequences of further streams, as `numpy.random.SeedSequence` does."""
        return self._sequence.spawn(n_children)

    def __reduce__(self) -> tuple[type[StreamSeed], tuple[np.random.SeedSequence]]:
        return StreamSeed, (self._sequence,)


np.random.bit_generator.ISpawnableSeedSequence.register(StreamSeed)


class System(Protocol):
    """An object that can be reset and stepped."""

    def reset(self) -> Any:
        """Returns to the start and returns that state."""

    def step(self, action: Any) -> Any:
        """Plays an action and returns the state it leads to."""


SYSTEM_ERRORS: Final = (Exception, SystemExit)
"""What a system may raise where it fails. One that calls `exit()` has failed: it must not end the exploration, whose
exit code has a meaning of its own."""

Factory: TypeAlias = Callable[[], Any]
"""Makes a system; called again after a fault."""


@dataclass(frozen=True)
class SystemAdapter:
    """A system with defaults for everything that it may leave out.

    Attributes:
        reset, step: the methods of the system.
        actions: returns the actions of the state just entered; none if it is terminal.
        reseed: gives its noise a new random stream; None if that is impossible.
        close: releases its resources.
        render: returns a picture of its current state; None if it has none.
        knows_here_only: whether it tells the actions of the state just entered, and of no other.
    """

    reset: Callable[[], State]
    step: Callable[[Action], State]
    actions: Callable[[State], tuple[Action, ...]]
    reseed: Callable[[np.random.SeedSequence], None]
    close: Callable[[], None]
    render: Callable[[], Any] | None = None
    knows_here_only: bool = False

    @property
    def can_be_reseeded(self) -> bool:
        """Whether its noise follows the random streams that it is given."""
        return self.reseed is not _nothing


View: TypeAlias = Callable[[SystemAdapter], SystemAdapter]
"""Returns the same system with other labels."""


def is_system(thing: object) -> bool:
    """Returns whether an object can be reset and stepped. A class cannot: it is a factory."""
    return not isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in ("reset", "step"))


def adapter_for(
    system: Any, actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None = None
) -> SystemAdapter:
    """Returns the adapter of a system; `actions` replaces its own."""
    if not is_system(system):
        raise InvalidInputError(f"{system!r} is not a system: it needs the methods reset() and step(action)")
    offered = actions if actions is not None else getattr(system, "actions", None)
    if offered is None:
        raise InvalidInputError(
            f"{type(system).__name__} does not say which actions it has: give it `actions`, a sequence or a function "
            "of the state, or pass actions=... to the world"
        )
    ends = getattr(system, "is_terminal", None)
    same = None if callable(offered) else tuple(offered)

    def actions_of(state: State) -> tuple[Action, ...]:
        if ends is not None and ends(state):
            return ()
        return same if same is not None else tuple(offered(state))  # type: ignore[operator]

    reseed = getattr(system, "reseed", None)
    return SystemAdapter(
        reset=system.reset,
        step=system.step,
        actions=actions_of,
        reseed=_nothing if reseed is None else lambda seed: reseed(StreamSeed(seed)),
        close=getattr(system, "close", _nothing),
        render=getattr(system, "render", None),
        knows_here_only=callable(offered) and getattr(system, "knows_here_only", False),
    )


def with_virtual_start(handle: SystemAdapter) -> SystemAdapter:
    """Returns the same system with a fixed start before its random one; the action `BEGIN` leads to that."""
    at_start = True

    def reset() -> State:
        nonlocal at_start
        at_start = True
        return VIRTUAL_START

    def step(action: Action) -> State:
        nonlocal at_start
        # Decided by the state, not by the action: the system may have an action of that name itself.
        state = handle.reset() if at_start else handle.step(action)
        at_start = False
        if state == VIRTUAL_START:
            raise SystemFaultError(
                FaultKind.INVALID, f"a state is called {VIRTUAL_START!r}, which is reserved for the virtual start"
            )
        return state

    def actions_of(state: State) -> tuple[Action, ...]:
        return (BEGIN,) if state == VIRTUAL_START else handle.actions(state)

    return replace(handle, reset=reset, step=step, actions=actions_of)


def _nothing(*_: object) -> None:
    """Does nothing, in place of a method that a system does not have."""


def is_worth_a_line(n_times: int) -> bool:
    """Returns whether to log an event when it happens the n-th time: the first three times, the 10th, the 100th, ..."""
    return n_times <= 3 or n_times == 10 ** (len(str(n_times)) - 1)


class SystemFaultError(Exception):
    """Raised by a system that knows how it failed. Worlds treat any other exception as `FaultKind.RAISED`."""

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
