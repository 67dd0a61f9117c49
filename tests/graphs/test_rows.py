from __future__ import annotations

import numpy as np
import pytest
import reference

from axplore.domains import random_sparse
from axplore.graphs.rows import ModelRows, padded_rows
from axplore.mdp import TabularMdp


def rows_of(mdp: TabularMdp) -> ModelRows:
    return padded_rows(
        mdp.state_pairs,
        mdp.row_offsets,
        mdp.successors,
        mdp.probabilities,
        np.ones(mdp.n_pairs),
        np.ones(mdp.n_states),
        mdp.initial_index,
    )


@pytest.mark.parametrize("longest", [1, 4, 9, 30])
def test_padding_changes_no_row(longest: int) -> None:
    mdp = reference.mixed_rows(3, 40, longest)
    rows = rows_of(mdp)
    unpadded = np.zeros((mdp.n_pairs, mdp.n_states))
    for pair in range(mdp.n_pairs):
        chunks = slice(rows.pair_chunks[pair], rows.pair_chunks[pair + 1])
        np.add.at(unpadded[pair], rows.successors[chunks].ravel(), rows.weights[chunks].ravel())
    assert np.array_equal(unpadded, reference.dense_rows(mdp))


@pytest.mark.parametrize(("branching", "width"), [((1, 1), 1), ((3, 5), 5), ((4, 4), 4)])
def test_short_rows_are_one_chunk_wide(branching: tuple[int, int], width: int) -> None:
    rows = rows_of(random_sparse(50, 2, branching, seed=0))
    assert rows.successors.shape == (100, width)


def test_padding_costs_at_most_a_few_entries_for_each_row() -> None:
    mdp = reference.mixed_rows(5, 200, 100)
    assert rows_of(mdp).successors.size <= mdp.n_transitions + 8 * mdp.n_pairs
