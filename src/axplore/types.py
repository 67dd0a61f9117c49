"""The types that everything shares: arrays, labels of states and actions, RESET, and what is known of a state."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

State: TypeAlias = Hashable
"""The label of a state."""
Action: TypeAlias = Hashable
"""The label of an action."""


class Reset(Enum):
    """The type of RESET, the action that every state has and no model stores."""

    RESET = "RESET"

    def __repr__(self) -> str:
        return "RESET"


RESET: Final = Reset.RESET

RESET_ACTION: Final = -1
"""RESET in an array of action indices."""

RESET_PAIR: Final = -1
"""RESET in an array of pair indices."""


class Status(Enum):
    """What is known of a state; the value is what to call it."""

    CERTIFIED = "certified"
    """Proven within reach, with a policy as good as the objective asks for."""
    SET_ASIDE = "set aside"
    """Proven too far for every policy through the known states."""
    OPEN = "open"
    """Neither."""
