"""Which of many rows have two samples that no one distribution explains.

The test is `log_evidence_of_two`, for which a bound from the likelihood ratio chooses the few rows worth computing it:
the predictor gives no more to a sample than its likeliest distribution does, times the orders in which successors can
be named, and one distribution is granted more than its likelihood.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from scipy.special import gammaln, xlogy

from axplore.statistics.dependence import log_evidence_of_two
from axplore.types import FloatArray, IntArray


def rows_that_differ(
    row_offsets: IntArray, first: IntArray, second: IntArray, levels: FloatArray
) -> Iterator[tuple[int, float]]:
    """Yields the index and the log evidence of each row whose two samples differ.

    Args:
        row_offsets: the first entry of each row, and the end of the last one, [P + 1].
        first, second: how often each entry was drawn in each sample, [E].
        levels: the probability with which each row may be yielded although nothing differs, [P].
    """
    rows = np.repeat(np.arange(len(row_offsets) - 1), np.diff(row_offsets))

    def likelihoods(counts: IntArray) -> FloatArray:
        """The largest logarithm of the likelihood of each row, [P]."""
        totals = np.bincount(rows, counts, minlength=len(levels))
        by_entry = np.bincount(rows, xlogy(counts, counts), minlength=len(levels))
        return np.asarray(by_entry - xlogy(totals, totals), dtype=np.float64)

    met = np.bincount(rows, (first + second) > 0, minlength=len(levels))
    at_most = likelihoods(first) + likelihoods(second) - likelihoods(first + second) + gammaln(met + 1.0)
    drawn = np.bincount(rows, first, minlength=len(levels)) > 0
    drawn &= np.bincount(rows, second, minlength=len(levels)) > 0
    wanted = -np.log(levels)
    for row in np.flatnonzero(drawn & (at_most >= wanted)).tolist():
        entries = range(int(row_offsets[row]), int(row_offsets[row + 1]))
        evidence = log_evidence_of_two(_sample(first, entries), _sample(second, entries))
        if evidence >= wanted[row]:
            yield row, evidence


def _sample(times: IntArray, entries: range) -> dict[Hashable, int]:
    return {entry: int(times[entry]) for entry in entries if times[entry]}
