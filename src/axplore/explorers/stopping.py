"""Why an exploration ended."""

from __future__ import annotations

from enum import Enum


class StopReason(Enum):
    """Why an exploration ended; the value is a sentence for the reader."""

    NO_CANDIDATES = "No state outside the known set is reached from it often enough to be controllable."
    """STOP1 of [DisCo] Alg. 1."""
    ALL_TOO_FAR = "Even the optimistic way to every candidate takes more steps than the radius."
    """STOP2 of [DisCo] Alg. 1."""
    PROVEN = "Every state is proven to be within the radius, to the asked precision, or beyond it."
    CONTRADICTED = (
        "The counts contradict an admission that earlier counts had proven: the world changes over time, or the event "
        "has come up that delta allows for. The promise does not hold."
    )
    STEP_LIMIT = "The step limit was reached before the explorer was done; its promise does not hold yet."
    INTERRUPTED = "It was interrupted before the explorer was done; its promise does not hold yet."
    WORLD_FAILED = "The world failed before the explorer was done; its promise does not hold yet."

    @property
    def complete(self) -> bool:
        """Whether the explorer ended by its own rule."""
        return self in (StopReason.NO_CANDIDATES, StopReason.ALL_TOO_FAR, StopReason.PROVEN)
