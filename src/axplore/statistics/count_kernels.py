"""The kernel of counting, apart from what reads counts: importing Numba takes longer than reading an atlas."""

from __future__ import annotations

import numpy as np

from axplore.compilation import compiled
from axplore.statistics.counts import COUNT, NONE, PAIR, SUCCESSOR
from axplore.types import IntArray


@compiled
def merge(row_offsets: IntArray, successors: IntArray, counts: IntArray, met: IntArray) -> int:
    """Adds what was met, [e, 4], to the counts, [E]; transitions without an entry are gathered at the front of `met`.

    Returns:
        How many different transitions these are.
    """
    n_fresh = 0
    newest = np.full(len(row_offsets) - 1, NONE)  # of the gathered ones of each pair
    older = np.empty(len(met), np.int64)  # the one of the same pair that was gathered before it
    for item in range(len(met)):
        pair, successor = met[item, PAIR], met[item, SUCCESSOR]
        entry, end = row_offsets[pair], row_offsets[pair + 1]
        # Rows are short: a scan is quicker than a search. Transitions without an entry form a list for each pair,
        # linked by `older`, with the newest at its head.
        while entry < end and successors[entry] != successor:
            entry += 1
        if entry < end:
            counts[entry] += met[item, COUNT]
            continue
        same = newest[pair]
        while same != NONE and met[same, SUCCESSOR] != successor:
            same = older[same]
        if same != NONE:
            met[same, COUNT] += met[item, COUNT]
            continue
        # n_fresh <= item, so that nothing is overwritten which is still to be read.
        for column in range(met.shape[1]):
            met[n_fresh, column] = met[item, column]
        older[n_fresh] = newest[pair]
        newest[pair] = n_fresh
        n_fresh += 1
    return n_fresh
