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
from axplore.mdp import TabularMdp
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
"""The cost of beginning a chunk, in entries."""


class ModelRows(NamedTuple):
    """A model as the kernels want it.

    Attributes:
        state_pairs: the first pair of each state, and the end of the last one, [n + 1].
        pair_chunks: the first chunk of each pair, and the end of the last one, [P + 1].
        successors: the value that each entry multiplies, [C, width]; beside the n states there may be echoes from n on.
        weights: the probability of each entry; 0 in the padding, [C, width].
        costs: the cost of each pair, [P].
        reset_costs: the cost of RESET in each state, [n]; infinite where it is not available.
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
    """The goals to solve for.

    Attributes:
        states: the state of each goal, [G]; -1 for a goal that only missing mass leads to.
        echoes: for each goal, entries of the values that equal `echo_cost` plus the value of the initial state, [G, e].
            Beside these, values from n on are 0.
        echo_cost: the cost of RESET there.
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
        patience: the number of sweeps before values are extrapolated. It changes speed only, never the bounds.
    """

    precision: float
    min_cost: float
    max_sweeps: int
    give_up_above: float
    patience: float = 6.0


class Solutions(NamedTuple):
    """The results for each goal, filled in by kernels.

    Attributes:
        values: u, [G, n + echoes].
        policy: the pair to play in each state, -1 for RESET and for the goal, [G, n].
        residuals: the largest of Lu - u, [G].
        sweeps: the number of sweeps, [G].
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
) -> ModelRows:
    """Compressed rows as the kernels want them; arguments are named as the fields of `TabularMdp` and `ModelRows`."""
    from axplore.graphs.sweep_kernels import pad

    width = _width_for(row_offsets)
    return ModelRows(
        state_pairs.astype(Index),
        *pad(read_only(row_offsets), read_only(successors), read_only(weights), width),
        costs,
        reset_costs,
        int(initial),
    )


def padded_rows_in_order(
    order: IntArray, mdp: TabularMdp, costs: FloatArray, reset_costs: FloatArray
) -> tuple[ModelRows, IntArray]:
    """Returns the rows of a model with its states in this order, and the pair that each pair was, [P]."""
    from axplore.graphs.sweep_kernels import pad_in_order

    width = _width_for(mdp.row_offsets)
    state_pairs, pair_chunks, successors, weights, pairs = pad_in_order(
        order, mdp.state_pairs, mdp.row_offsets, mdp.successors, mdp.probabilities, width
    )
    initial = int(np.flatnonzero(order == mdp.initial_index)[0])
    return ModelRows(state_pairs, pair_chunks, successors, weights, costs[pairs], reset_costs[order], initial), pairs


def _width_for(row_offsets: IntArray) -> int:
    """Returns the width of chunks that costs least for rows of these lengths."""
    if row_offsets[-1] > np.iinfo(Index).max:
        raise InvalidModelError(f"the model has {row_offsets[-1]} transitions; planning takes fewer than 2^32")
    how_many = np.bincount(np.diff(row_offsets))
    lengths = np.flatnonzero(how_many)
    widths = np.arange(1, _WIDEST + 1)
    chunks = -(-lengths[:, None] // widths)
    return int(widths[np.argmin(how_many[lengths] @ (chunks * (widths + _CHUNK_OVERHEAD)))])


def read_only(array: Array) -> Array:
    """Returns the same array, locked: a kernel would be compiled once for locked and once more for open arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
