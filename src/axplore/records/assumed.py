"""What is assumed of counted pairs, in one record for explorers, checkpoints, certificates and atlases."""

from __future__ import annotations

from typing import Final

from axplore.records.codec import Record
from axplore.records.order import Labels
from axplore.types import FloatArray, IntArray

UNTIED: Final = -1
"""In place of the class of a pair that shares its law with no other or was never drawn, and of its outcomes."""

UNKNOWN: Final = -1
"""In place of the state to which an outcome leads in a pair, where it was neither seen there nor predicted."""


class Ties(Record, frozen=True):
    """Which outcome every entry of some counts is; outcomes of one class belong to pairs that share a law.

    Attributes:
        names: of each outcome its class and its own name, a tuple of two labels, [O].
        outcomes: the outcome of each entry of the counts, or UNTIED, [E].
        predicted: pair, outcome and the index of the state that it leads to there, of outcomes that were predicted,
            [Q, 3].
        elsewhere: how often each outcome was drawn in counted states that are not among the counts, [O].
        other_classes: the class of each pair of these states, or UNTIED, [p]. Classes are numbered in the order in
            which the names stand.
    """

    names: Labels
    outcomes: IntArray
    predicted: IntArray
    elsewhere: IntArray
    other_classes: IntArray


class Assumed(Record, frozen=True):
    """What is assumed of each pair of some counts.

    Attributes:
        numbers: for each kind of assumption that was declared, by its name, a number for each pair, [P]: what it says
            is for the kind to know, and 0 says that nothing is assumed of the pair. A kind that was declared stands
            here even if it says nothing of any pair yet, because levels depend on what was declared, not on draws.
        ties: which pairs share a law; None if that was not declared.
    """

    numbers: dict[str, FloatArray]
    ties: Ties | None = None
