"""The layout of models for compiled sweeps.

A *row* is a pair's transitions. Rows are cut into chunks of one width and padded with zeros, because a loop whose
length never changes costs a third of one that does (measured on rows of three to five entries). Rows need not sum to
one: what is missing leads to the goal, whose value is 0.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidModelError
from axplore.types import FloatArray, IntArray

Array = TypeVar("Array", bound=npt.NDArray[Any])

Index = np.uint32  # unsigned: compiled code need not look out for negative indices, which count from the end

CONVERGED: Final = 0
GAVE_UP: Final = 1
UNFINISHED: Final = 2

ROUNDING: Final = 8 * float(np.finfo(np.float64).eps)
"""Changes of a value by less than this part of it are no progress."""

_WIDEST: Final = 8
_CHUNK_OVERHEAD: Final = 2
"""What beginning a chunk costs, in entries."""


class Rows(NamedTuple):
    """A model as the kernels want it.

    Attributes:
        state_pairs: the first pair of each state, and the end of the last one, [n + 1].
        pair_chunks: the first chunk of each pair, and the end of the last one, [P + 1].
        successors: the value that each entry multiplies, [C, width]; beside the n states there may be echoes from n on.
        weights: the probability of each entry; 0 in the padding, [C, width].
        costs: of each pair, [P].
        reset_costs: of RESET in each state, [n]; infinite where it is not available.
        initial: the state that RESET leads to.
    """

    state_pairs: npt.NDArray[Index]
    pair_chunks: npt.NDArray[Index]
    successors: npt.NDArray[Index]
    weights: FloatArray
    costs: FloatArray
    reset_costs: FloatArray
    initial: int


class Goals(NamedTuple):
    """What is solved for.

    Attributes:
        states: the state of each goal, [G]; -1 for a goal that only missing mass leads to.
        echoes: for each goal, entries of the values that equal `echo_cost` plus the value of the initial state, [G, e].
            Beside these, values from n on are 0.
        echo_cost: what RESET costs there.
    """

    states: IntArray
    echoes: IntArray
    echo_cost: float


class Limits(NamedTuple):
    """When a goal is done.

    Attributes:
        precision: γ of the stopping rule.
        min_cost: a lower bound on all costs.
        max_sweeps: after which a goal counts as unfinished.
        give_up_above: a goal is abandoned once the value of the initial state is proven to exceed this.
    """

    precision: float
    min_cost: float
    max_sweeps: int
    give_up_above: float


class Outcome(NamedTuple):
    """What is filled in for each goal.

    Attributes:
        values: u, [G, n + echoes].
        policy: the pair to play in each state, -1 for RESET and for the goal, [G, n].
        residuals: the largest of Lu - u, [G].
        sweeps: how many it took, [G].
        status: CONVERGED, GAVE_UP or UNFINISHED, [G].
    """

    values: FloatArray
    policy: IntArray
    residuals: FloatArray
    sweeps: IntArray
    status: IntArray


def padded_rows(
    state_pairs: IntArray,
    row_offsets: IntArray,
    successors: IntArray,
    weights: FloatArray,
    costs: FloatArray,
    reset_costs: FloatArray,
    initial: int,
) -> Rows:
    """Compressed rows as the kernels want them; arguments are named as the fields of `TabularMdp` and `Rows`."""
    from axplore.planning.sweep_kernels import pad

    if len(successors) > np.iinfo(Index).max:
        raise InvalidModelError(f"the model has {len(successors)} transitions; planning takes fewer than 2^32")
    lengths, how_many = np.unique(np.diff(row_offsets), return_counts=True)
    widths = np.arange(1, _WIDEST + 1)
    chunks = -(-lengths[:, None] // widths)
    width = int(widths[np.argmin(how_many @ (chunks * (widths + _CHUNK_OVERHEAD)))])
    return Rows(
        state_pairs.astype(Index),
        *pad(read_only(row_offsets), read_only(successors), read_only(weights), width),
        costs,
        reset_costs,
        int(initial),
    )


def offsets_of(sorted_rows: IntArray, n_rows: int) -> IntArray:
    """Where each row starts in an array sorted by row, and where the last one ends, [n_rows + 1]."""
    offsets: IntArray = np.concatenate(([0], np.cumsum(np.bincount(sorted_rows, minlength=n_rows))))
    return offsets


def read_only(array: Array) -> Array:
    """The same array, locked: a kernel would be compiled once for locked and once more for open arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
