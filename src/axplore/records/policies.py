"""Policies towards many goals, kept as what differs from RESET and made when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final, overload

import numpy as np

from axplore.records.vectors import Vector, Vectors
from axplore.types import RESET_ACTION, IntArray


@final
class Policies(Sequence[IntArray]):
    """For each goal the action to play in each state, [n], or by step and state, [H, n], if it restarts after H steps.

    All of them together may take the square of the number of states.

    Attributes:
        choices: the index of an action, or RESET_ACTION, one row for each goal, [c, n].
        horizons: the steps after which the policies in some rows restart.
    """

    def __init__(self, choices: Vectors, horizons: Mapping[int, int] | None = None) -> None:
        self.choices = choices
        self.horizons = dict(horizons or {})

    @classmethod
    def of(cls, policies: Sequence[Vector[np.int64]], n_states: int, horizons: Mapping[int, int]) -> Policies:
        """Returns the policies of vectors."""
        return cls(Vectors.of(policies, n_states, np.int64), horizons)

    def __len__(self) -> int:
        return len(self.choices)

    @overload
    def __getitem__(self, goal: int) -> IntArray: ...
    @overload
    def __getitem__(self, goal: slice) -> list[IntArray]: ...
    def __getitem__(self, goal: int | slice) -> IntArray | list[IntArray]:
        if isinstance(goal, slice):
            return [self[each] for each in range(len(self))[goal]]
        policy: IntArray = self.choices[goal]
        horizon = self.horizons.get(range(len(self))[goal])
        # A view, which takes no memory: what was not verified may have a huge horizon.
        return policy if horizon is None else np.broadcast_to(policy, (horizon, len(policy)))

    def choices_of(self, goal: int) -> tuple[IntArray, IntArray]:
        """Returns the states in which a policy that does not restart plays anything but RESET, and what, [m] each."""
        policy: Vector[np.int64] = self.choices.vector(range(len(self))[goal])
        return policy.other_than(RESET_ACTION)

    def __eq__(self, other: Any) -> bool:
        """Whether the policies are the same, and kept in the same way."""
        return isinstance(other, Policies) and (self.choices, self.horizons) == (other.choices, other.horizons)

    __hash__ = None  # type: ignore[assignment]
