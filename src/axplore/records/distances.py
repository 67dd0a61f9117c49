"""The fewest steps to every state of a system whose actions are assumed to have one outcome each."""

from __future__ import annotations

from typing import Final

from axplore.records.codec import Record
from axplore.types import IntArray

FAR: Final = 2**62
"""The steps to a state that no known way leads to."""

NO_PAIR: Final = -1
"""In place of the pair that leads to the initial state."""


class Distances(Record, frozen=True):
    """How far each state is, and how it is reached.

    Attributes:
        steps: the fewest steps to each state seen, [n + others].
        reached_by: the last pair on a shortest way to each known state; NO_PAIR for the initial one, [n].
    """

    steps: IntArray
    reached_by: IntArray
