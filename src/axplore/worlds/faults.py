"""What can go wrong with a system while it is stepped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from axplore.mdp import Action, State


class FaultKind(Enum):
    """How a system failed; the value is the end of a sentence about it."""

    RAISED = "raised an error"
    TIMED_OUT = "did not answer in time"
    DIED = "ended"
    INVALID = "gave an invalid answer"


@dataclass(frozen=True)
class Fault:
    """One failure of a system, after which it was started again.

    Attributes:
        kind: how it failed.
        message: what it said.
        state: the label of the state in which an action was played; None if it was being reset.
        action: the action, likewise.
        steps: the steps of the world before it.
    """

    kind: FaultKind
    message: str
    state: State | None
    action: Action | None
    steps: int

    def __str__(self) -> str:
        where = "at a reset" if self.action is None else f"at action {self.action!r} in state {self.state!r}"
        return f"the system {self.kind.value} {where}, after {self.steps} steps: {self.message}"


class SystemFaultError(Exception):
    """Raised by a system that knows how it failed; worlds take every other exception as `FaultKind.RAISED`."""

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
