"""Tied rows: draws of a class count together, in every pair of it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from axplore.statistics.assumed_rows import AssumedRows
from axplore.statistics.confidence import confidence_region
from axplore.statistics.counts import CountedRows
from axplore.statistics.tied_rows import NO_TIES, UNKNOWN, UNTIED, Ties, Tying, pooled
from axplore.types import Action, State

PAIRS = ((0, "a"), (0, "b"), (1, "a"))


def outcome_of(state: State, action: Action, successor: State) -> tuple[Hashable, Hashable] | None:
    """Steps by `a` are tied by how far they lead; `b` is tied to nothing."""
    return ("walk", int(str(successor)) - int(str(state))) if action == "a" else None


def leads_to(state: State, action: Action, outcome: Hashable) -> State:
    del action
    return int(str(state)) + int(str(outcome))


def rows_of(*rows: dict[int, int]) -> CountedRows:
    """State 0 with the pairs a and b, and state 1 with the pair a: each successor with its count."""
    lengths = [len(row) for row in rows]
    return CountedRows(
        states=np.array([0, 1]),
        state_pairs=np.array([0, 2, 3]),
        visits=np.array([sum(row.values()) for row in rows]),
        row_offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        successors=np.array([successor for row in rows for successor in row], dtype=np.int64),
        counts=np.array([count for row in rows for count in row.values()], dtype=np.int64),
        first_draws=np.array([place + 1 for row in rows for place in range(len(row))], dtype=np.int64),
    )


ROWS = rows_of({0: 30, 1: 10}, {0: 7}, {1: 50, 2: 5, 3: 5})
STATES = tuple(range(4))


@pytest.fixture
def ties() -> Ties:
    return Tying(outcome_of).extended(NO_TIES, ROWS, PAIRS, STATES)


def test_outcomes_of_a_class_are_added_up_over_its_pairs(ties: Ties) -> None:
    assert ties.pair_classes.tolist() == [0, UNTIED, 0]
    assert dict(zip(ties.names, ties.totals(ROWS.counts).tolist(), strict=True)) == {
        '["walk",0]': 80,
        '["walk",1]': 15,
        '["walk",2]': 5,
    }


def test_every_pair_of_a_class_shows_all_its_draws_and_where_they_lead_if_that_is_known(ties: Ties) -> None:
    shared = pooled(ROWS, ties, np.zeros(3, dtype=np.bool_))
    assert shared.rows.visits.tolist() == [100, 7, 100]
    assert shared.rows.counts.tolist() == [80, 15, 5, 7, 80, 15, 5]
    assert shared.rows.successors.tolist() == [0, 1, UNKNOWN, 0, 1, 2, 3]
    predicted = Tying(outcome_of, leads_to).extended(NO_TIES, ROWS, PAIRS, STATES)
    assert pooled(ROWS, predicted, np.zeros(3, dtype=np.bool_)).rows.successors.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert pooled(ROWS, ties, np.ones(3, dtype=np.bool_)).rows.counts.tolist() == ROWS.counts.tolist()


def test_growing_rows_keep_their_outcomes(ties: Ties) -> None:
    before = Tying(outcome_of).extended(NO_TIES, rows_of({0: 3}, {}, {1: 2, 2: 1}), PAIRS, STATES)
    grown = Tying(outcome_of).extended(before, ROWS, PAIRS, STATES)
    assert [grown.names[outcome] for outcome in grown.outcomes if outcome != UNTIED] == [
        ties.names[outcome] for outcome in ties.outcomes if outcome != UNTIED
    ]


def test_draws_of_pairs_left_out_count_elsewhere(ties: Ties) -> None:
    part = ties.of_pairs(ROWS, np.array([2]))
    assert part.elsewhere.tolist() == [30, 10, 0]
    assert part.totals(ROWS.counts[3:]).tolist() == ties.totals(ROWS.counts).tolist()


def test_a_class_has_the_ball_of_all_its_draws(ties: Ties) -> None:
    region = confidence_region(ROWS, 0.1, AssumedRows(np.zeros(3, dtype=np.int64), np.zeros(3), ties))
    alone = confidence_region(ROWS, 0.1)
    assert region.slack[0] == region.slack[2] < min(alone.slack[0], alone.slack[2])
    assert region.shared_budget == np.inf


@pytest.mark.parametrize(
    ("wrong", "pair"),
    [
        (lambda state, _, successor: (state == successor, successor), 0),
        (lambda state, *_: (state, "moved"), 0),
        (lambda state, _, successor: ("all", "far" if (state, successor) in ((1, 2), (1, 3)) else successor), 2),
    ],
)
def test_pairs_that_contradict_the_ties_are_found(wrong: Tying, pair: int) -> None:
    ties = Tying(wrong).extended(NO_TIES, ROWS, PAIRS, STATES)  # type: ignore[arg-type]
    assert pair in ties.contradicted_pairs(ROWS.successors)


def test_ties_that_fit_contradict_nothing(ties: Ties) -> None:
    assert not len(ties.contradicted_pairs(ROWS.successors))


def test_the_true_law_of_a_class_is_in_its_ball_as_often_as_the_level_says() -> None:
    law, rng, outside = np.array([0.6, 0.3, 0.1]), np.random.default_rng(1), 0
    for _ in range(200):
        drawn = [rng.multinomial(size, law) for size in (40, 60)]
        rows = rows_of({0: 1, **dict(enumerate(drawn[0].tolist()))}, {0: 7}, dict(enumerate(drawn[1].tolist(), 1)))
        if (rows.counts < 1).any():
            continue
        ties = Tying(outcome_of).extended(NO_TIES, rows, PAIRS, STATES)
        region = confidence_region(rows, 0.5, AssumedRows(np.zeros(3, dtype=np.int64), np.zeros(3), ties))
        shares = region.shares[:3]
        outside += float((shares * np.log(shares / law)).sum()) > region.slack[0]
    assert outside <= 200 * 0.1
