"""The layout of models for compiled sweeps.

A *row* is a pair's transitions. Rows are cut into chunks of one width and padded with zeros, because a loop whose
length never changes costs a third of one that does (measured on rows of three to five entries). Rows need not sum to
one: what is missing leads to the goal, whose value is 0.

The functions below say which states can be met, by graph search alone: probabilities matter only by not being zero.
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


class Rows(NamedTuple):
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


class Outcome(NamedTuple):
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
) -> Rows:
    """Compressed rows as the kernels want them; arguments are named as the fields of `TabularMdp` and `Rows`."""
    from axplore.planning.sweep_kernels import pad

    width = _width_for(row_offsets)
    return Rows(
        state_pairs.astype(Index),
        *pad(read_only(row_offsets), read_only(successors), read_only(weights), width),
        costs,
        reset_costs,
        int(initial),
    )


def padded_rows_in_order(
    order: IntArray, mdp: TabularMdp, costs: FloatArray, reset_costs: FloatArray
) -> tuple[Rows, IntArray]:
    """Returns the rows of a model with its states in this order, and the pair that each pair was, [P]."""
    from axplore.planning.sweep_kernels import pad_in_order

    width = _width_for(mdp.row_offsets)
    state_pairs, pair_chunks, successors, weights, pairs = pad_in_order(
        order, mdp.state_pairs, mdp.row_offsets, mdp.successors, mdp.probabilities, width
    )
    initial = int(np.flatnonzero(order == mdp.initial_index)[0])
    return Rows(state_pairs, pair_chunks, successors, weights, costs[pairs], reset_costs[order], initial), pairs


def _width_for(row_offsets: IntArray) -> int:
    """Returns the width of chunks that costs least for rows of these lengths."""
    if row_offsets[-1] > np.iinfo(Index).max:
        raise InvalidModelError(f"the model has {row_offsets[-1]} transitions; planning takes fewer than 2^32")
    how_many = np.bincount(np.diff(row_offsets))
    lengths = np.flatnonzero(how_many)
    widths = np.arange(1, _WIDEST + 1)
    chunks = -(-lengths[:, None] // widths)
    return int(widths[np.argmin(how_many[lengths] @ (chunks * (widths + _CHUNK_OVERHEAD)))])


def offsets_of(sorted_rows: IntArray, n_rows: int) -> IntArray:
    """Returns the offset of each row in an array sorted by row, and the end of the last one, [n_rows + 1]."""
    offsets: IntArray = np.concatenate(([0], np.cumsum(np.bincount(sorted_rows, minlength=n_rows))))
    return offsets


def read_only(array: Array) -> Array:
    """Returns the same array, locked: a kernel would be compiled once for locked and once more for open arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


BoolArray = npt.NDArray[np.bool_]


def reachable_states(starts: IntArray, offsets: IntArray, successors: IntArray) -> BoolArray:
    """Returns the nodes that can be reached from any of `starts` in a graph of compressed rows, [n], with the starts.

    Args:
        starts: where to begin.
        offsets: the first successor of each node, and the end of the last one's, [n + 1].
        successors: all nodes' successors, one after the other.
    """
    from axplore.planning.sweep_kernels import search

    met: BoolArray = search(read_only(starts), read_only(offsets), read_only(successors))
    return met


def met_from_start(mdp: TabularMdp) -> BoolArray:
    """Returns the states that some policy meets from the initial state, [S]."""
    return reachable_states(np.array([mdp.initial_index]), mdp.row_offsets[mdp.state_pairs], mdp.successors)


def certain_states(mdp: TabularMdp, goal: int) -> tuple[BoolArray, BoolArray]:
    """From where some policy without RESET reaches a goal with probability one, [S], and which pairs stay there, [P].

    It is the largest set in which the goal can be reached from every state by pairs that never leave the set.
    """
    pair_states, transition_pairs = mdp.pair_states, mdp.transition_pairs
    inside = np.ones(mdp.n_states, dtype=bool)
    while True:
        leaving = np.bincount(transition_pairs, ~inside[mdp.successors], minlength=mdp.n_pairs) > 0
        staying = ~leaving & inside[pair_states] & (pair_states != goal)
        kept = staying[transition_pairs]
        back = _reversed_edges(mdp.successors[kept], pair_states[transition_pairs[kept]], mdp.n_states)
        reaching = reachable_states(np.array([goal]), *back)
        if np.array_equal(reaching, inside):
            return inside, staying
        inside = reaching


def leading_to(targets: IntArray, sources: IntArray, successors: IntArray, n_nodes: int) -> BoolArray:
    """From where some of `targets` can be reached along the edges sources → successors, [n]; the targets count."""
    return reachable_states(targets, *_reversed_edges(successors, sources, n_nodes))


def _reversed_edges(heads: IntArray, tails: IntArray, n_nodes: int) -> tuple[IntArray, IntArray]:
    """Compressed rows of the graph with an edge head → tail for each of these."""
    order = np.argsort(heads, kind="stable")
    return offsets_of(heads, n_nodes), tails[order]
