"""The range of every number in a certificate, checked where the number comes in.

Certificates are files of strangers. Within these ranges no sum, product or logarithm that the verifier computes leaves
the numbers that a computer has, so it comes to a verdict on whatever it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidInputError
from axplore.properties import MOST_TEXT
from axplore.records.properties import NamedStates

MOST_DRAWS: Final = 2**53
"""The largest number of draws, episodes and anything else that is counted: floats hold all whole numbers up to here."""

MOST_STEPS: Final = 1e12
"""The largest number of expected steps that may be asked for or claimed."""

MOST_BOUND: Final = 1e100
"""The largest number in a vector that is to prove a claim, far more than any claim needs."""

LEAST_STEPS: Final = 1e-12
"""The smallest positive one."""

LEAST_PROBABILITY: Final = 1e-12
"""The smallest probability that may be assumed of an outcome; 0 says that nothing is assumed."""

LEAST_DELTA: Final = 1e-100
"""The smallest δ: parts of a smaller one would not be numbers any more."""


def check_whole(name: str, value: object, least: int, most: int = MOST_DRAWS) -> None:
    """Refuses anything but a whole number in this range."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidInputError(f"{name} is {_shown(value)}, not a whole number from {least} to {most}")


def check_each_whole(name: str, values: Sequence[int], least: int, most: int = MOST_DRAWS) -> None:
    """Refuses anything but whole numbers in this range; there may be many."""
    if set(map(type, values)) - {int} or (values and not least <= min(values) <= max(values) <= most):
        for value in values:
            check_whole(name, value, least, most)


def check_real(name: str, value: object, least: float, most: float) -> None:
    """Refuses anything but a floating-point number in this range."""
    if not isinstance(value, float) or not least <= value <= most:
        raise InvalidInputError(f"{name} is {_shown(value)}, not a number with a decimal point from {least} to {most}")


def check_wholes(name: str, array: npt.NDArray[Any], least: int, most: int = MOST_DRAWS) -> None:
    """Refuses an array with anything but whole numbers in this range."""
    if array.dtype != np.int64 or (array.size and not least <= array.min() <= array.max() <= most):
        raise InvalidInputError(f"{name} holds something that is not a whole number from {least} to {most}")


def check_reals(name: str, numbers: npt.NDArray[Any] | float, least: float, most: float) -> None:
    """Refuses numbers outside this range, and what is no number."""
    if not np.all((numbers >= least) & (numbers <= most)):
        raise InvalidInputError(f"{name} holds something that is not a number from {least} to {most}")


def check_named(what: str, named: NamedStates, n_seen: int) -> None:
    """Refuses a name that is too long, and states that do not exist or do not ascend."""
    if len(named.name) > MOST_TEXT:
        raise InvalidInputError(f"the name of {what} is too long")
    check_wholes(f"the states of {what}", named.states, 0, n_seen - 1)
    if named.states.ndim != 1 or (np.diff(named.states) <= 0).any():
        raise InvalidInputError(f"the states of {what} do not ascend")


def _shown(value: object) -> str:
    """The value for a message; strangers give very long ones."""
    text = f"{value:.3g}" if isinstance(value, float) else repr(value) if _is_short(value) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]}..."


def _is_short(value: object) -> bool:
    """Whether writing a value out takes no time, and no depth of recursion."""
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) < 10**40)
