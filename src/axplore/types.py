"""The types that everything shares: arrays, labels of states and actions, and RESET."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

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
