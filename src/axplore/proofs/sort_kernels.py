"""A compiled sort: that of Numba takes more than a second to compile for each type."""

from __future__ import annotations

from typing import Final

import numpy as np

from axplore.compilation import compiled_inner, compiled_part
from axplore.types import FloatArray, IntArray

FEW: Final = 15
"""So many keys are sorted by insertion."""

MOST_WAITING: Final = 64
"""The larger half waits, so that as many as a number has bits are enough."""


@compiled_part
def ascending(keys: FloatArray) -> IntArray:
    """The places of the keys, that of the least one first: a quicksort, where each pivot is the median of three."""
    order = np.empty(len(keys), np.int64)
    for place in range(len(keys)):
        order[place] = place
    lows, highs, n_waiting = np.empty(MOST_WAITING, np.int64), np.empty(MOST_WAITING, np.int64), 1
    lows[0], highs[0] = 0, len(keys) - 1
    while n_waiting > 0:
        n_waiting -= 1
        low, high = lows[n_waiting], highs[n_waiting]
        while high - low >= FEW:
            pivot = _parted(keys, order, low, high)
            if high - pivot > pivot - low:
                lows[n_waiting], highs[n_waiting], high = pivot + 1, high, pivot - 1
            else:
                lows[n_waiting], highs[n_waiting], low = low, pivot - 1, pivot + 1
            n_waiting += 1
    _insert_each(keys, order)
    return order


@compiled_part
def keep_distinct(numbers: IntArray, first: int, end: int) -> int:
    """Sorts a range of numbers and keeps each once; returns its new end."""
    keys = np.empty(end - first)
    for place in range(end - first):
        keys[place] = numbers[first + place]
    kept = first
    for place in ascending(keys):
        number = int(keys[place])
        if kept == first or number != numbers[kept - 1]:
            numbers[kept] = number
            kept += 1
    return kept


@compiled_inner
def _parted(keys: FloatArray, order: IntArray, low: int, high: int) -> int:
    """Moves keys below a pivot to its left and those above to its right; returns where it is."""
    middle = (low + high) >> 1
    if keys[order[middle]] < keys[order[low]]:
        order[low], order[middle] = order[middle], order[low]
    if keys[order[high]] < keys[order[middle]]:
        order[high], order[middle] = order[middle], order[high]
    if keys[order[middle]] < keys[order[low]]:
        order[low], order[middle] = order[middle], order[low]
    pivot = keys[order[middle]]
    order[high], order[middle] = order[middle], order[high]
    left, right = low, high - 1
    while True:
        while left < high and keys[order[left]] < pivot:
            left += 1
        while right >= low and pivot < keys[order[right]]:
            right -= 1
        if left >= right:
            break
        order[left], order[right] = order[right], order[left]
        left, right = left + 1, right - 1
    order[left], order[high] = order[high], order[left]
    return left


@compiled_inner
def _insert_each(keys: FloatArray, order: IntArray) -> None:
    for place in range(1, len(order)):
        inserted, before = order[place], place
        while before > 0 and keys[inserted] < keys[order[before - 1]]:
            order[before] = order[before - 1]
            before -= 1
        order[before] = inserted
