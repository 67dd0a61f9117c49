"""Small systems, each made to have one fault, on a slippery ring and a slippery line."""

from __future__ import annotations

from typing import Any

import numpy as np

from axplore.mdp import TabularMdp


class ModelSystem:
    """A known model that is stepped: without fault."""

    def __init__(self, mdp: TabularMdp, seed: int = 0) -> None:
        self.mdp, self.rng = mdp, np.random.default_rng(seed)
        self.state: Any = mdp.initial_state
        self.rows = {
            (state, action): (list(row), np.cumsum(list(row.values())).tolist())
            for state in mdp.states
            for action in mdp.actions_of(state)
            for row in [mdp.row(state, action)]
        }

    def reset(self) -> Any:
        self.state = self.mdp.initial_state
        return self.state

    def step(self, action: Any) -> Any:
        successors, cumulated = self.rows[self.state, action]
        place = int(np.searchsorted(cumulated, self.rng.random() * cumulated[-1], side="right"))
        self.state = successors[min(place, len(successors) - 1)]
        return self.state

    def actions(self, state: Any) -> tuple[Any, ...]:
        return self.mdp.actions_of(state)


class Ring:
    """Seven places in a ring; a step forward or back slips, and stays, once in five times. Without fault."""

    actions: Any = ("forward", "back")
    size = 7

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.place = self.age = 0

    def reset(self) -> Any:
        self.place = self.age = 0
        return self.label()

    def step(self, action: Any) -> Any:
        self.age += 1
        self.move(action)
        return self.label()

    def move(self, action: Any) -> None:
        if self.rng.random() >= 0.2:
            self.place = (self.place + (1 if action == "forward" else -1)) % self.size

    def label(self) -> Any:
        return self.place


class UnfixedStart(Ring):
    def reset(self) -> Any:
        super().reset()
        self.place = int(self.rng.integers(2))
        return self.label()


class PinnedNoise(Ring):
    def reset(self) -> Any:
        self.rng = np.random.default_rng(42)
        return super().reset()


class SilentReset(Ring):
    limit = 60

    def step(self, action: Any) -> Any:
        label = super().step(action)
        return self.reset() if self.age == self.limit else label


class RaisingLimit(Ring):
    limit = 60

    def step(self, action: Any) -> Any:
        if self.age + 1 == self.limit:
            raise RuntimeError("the episode is over")
        return super().step(action)


class EndingLimit(Ring):
    limit = 60

    def is_terminal(self, _state: Any) -> bool:
        return self.age >= self.limit


class Freezing(Ring):
    limit = 60

    def move(self, action: Any) -> None:
        if self.age <= self.limit:
            super().move(action)


class HiddenDirection(Ring):
    """After a step back the next step is twice as far: what is coming from where matters."""

    last = "forward"

    def reset(self) -> Any:
        self.last = "forward"
        return super().reset()

    def move(self, action: Any) -> None:
        super().move(action)
        if self.last == "back":
            super().move(action)
        self.last = action


class HiddenCoin(Ring):
    """A coin that nobody sees is tossed at every reset; it says which way is forward."""

    sign = 1

    def reset(self) -> Any:
        self.sign = 1 if self.rng.random() < 0.5 else -1
        return super().reset()

    def move(self, action: Any) -> None:
        if self.rng.random() >= 0.2:
            self.place = (self.place + self.sign * (1 if action == "forward" else -1)) % self.size


class CarriedKey(Ring):
    """A key lies in place 2; once it is met, the door between 4 and 5 opens. The label does not say who has it."""

    has_key = False

    def reset(self) -> Any:
        self.has_key = False
        return super().reset()

    def move(self, action: Any) -> None:
        before = self.place
        super().move(action)
        self.has_key |= self.place == 2
        if {before, self.place} == {4, 5} and not self.has_key:
            self.place = before


class Noisy(Ring):
    def label(self) -> Any:
        return (self.place, float(self.rng.random()))


class Counting(Ring):
    def label(self) -> Any:
        return (self.place, self.age)


class RaisingAction(Ring):
    actions = ("forward", "back", "jump")

    def move(self, action: Any) -> None:
        if action == "jump":
            raise ValueError("cannot jump")
        super().move(action)


class RaisingSometimes(Ring):
    def move(self, action: Any) -> None:
        if self.place == 3 and self.rng.random() < 0.5:
            raise ValueError("stumbled")
        super().move(action)


class Stuck(Ring):
    actions = ()


class BrokenReset(Ring):
    def reset(self) -> Any:
        raise OSError("no such device")


class UnhashableState(Ring):
    def label(self) -> Any:
        return [self.place]


class TerminalSometimes(Ring):
    """Place 3 ends an episode once in two times, and the label does not say which."""

    over = False

    def label(self) -> Any:
        self.over = self.place == 3 and self.rng.random() < 0.5
        return self.place

    def is_terminal(self, _state: Any) -> bool:
        return self.over


class Tree(Ring):
    """A binary tree of depth 16, in which no place comes twice on one way; its leaves are terminal. Without fault."""

    actions: Any = ("left", "right")
    depth = 16

    def reset(self) -> Any:
        self.place = 1
        return self.place

    def step(self, action: Any) -> Any:
        turned = (action == "right") != (self.rng.random() < 0.1)
        self.place = 2 * self.place + turned
        return self.place

    def is_terminal(self, state: Any) -> bool:
        return bool(state >= 2**self.depth)


class Road(Ring):
    """A road of 5,000 places without a way back; a step goes one or two places on. Without fault."""

    actions: Any = ("walk",)

    def step(self, _action: Any) -> Any:
        self.place = min(5000, self.place + 1 + int(self.rng.random() < 0.5))
        return self.place
