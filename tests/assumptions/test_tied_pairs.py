"""Tied rows: draws of a class count together, in every pair of it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from axplore.assumptions import Assumptions
from axplore.assumptions.applied import applied, contradicted_pairs, listed, region_given
from axplore.assumptions.kind import Grown
from axplore.assumptions.tied import OutcomeOf, pair_classes, pooled, ties_of_pairs, totals_of
from axplore.records.assumed import UNKNOWN, UNTIED, Assumed, Ties
from axplore.records.counts import Counts
from axplore.types import Action, State
from made_counts import made_counts

PAIRS = ((0, "a"), (0, "b"), (1, "a"))


def outcome_of(state: State, action: Action, successor: State) -> tuple[Hashable, Hashable] | None:
    """Steps by `a` are tied by how far they lead; `b` is tied to nothing."""
    return ("walk", int(str(successor)) - int(str(state))) if action == "a" else None


def leads_to(state: State, action: Action, outcome: Hashable) -> State:
    del action
    return int(str(state)) + int(str(outcome))


def rows_of(*rows: dict[int, int]) -> Counts:
    """State 0 with the pairs a and b, and state 1 with the pair a: each successor with its count."""
    entries = [[(successor, count, draw) for draw, (successor, count) in enumerate(row.items(), 1)] for row in rows]
    return made_counts(entries, [2, 1], labels=range(4))


ROWS = rows_of({0: 30, 1: 10}, {0: 7}, {1: 50, 2: 5, 3: 5})
STATES = tuple(range(4))


def ties_in(rows: Counts, **declared: object) -> Ties:
    ties = applied(Assumptions(**declared), None, Grown(rows, None, PAIRS, STATES)).ties
    assert ties is not None
    return ties


@pytest.fixture
def ties() -> Ties:
    return ties_in(ROWS, tied=outcome_of)


def test_outcomes_of_a_class_are_added_up_over_its_pairs(ties: Ties) -> None:
    assert pair_classes(ties, ROWS).tolist() == [0, UNTIED, 0]
    assert dict(zip(ties.names, totals_of(ties, ROWS.counts).tolist(), strict=True)) == {
        ("walk", 0): 80,
        ("walk", 1): 15,
        ("walk", 2): 5,
    }


def test_every_pair_of_a_class_shows_all_its_draws_and_where_they_lead_if_that_is_known(ties: Ties) -> None:
    shared = pooled(ROWS, ties, np.zeros(3, dtype=np.bool_))
    assert shared.rows.visits.tolist() == [100, 7, 100]
    assert shared.rows.counts.tolist() == [80, 15, 5, 7, 80, 15, 5]
    assert shared.rows.successors.tolist() == [0, 1, UNKNOWN, 0, 1, 2, 3]
    predicted = ties_in(ROWS, tied=outcome_of, leads_to=leads_to)
    assert pooled(ROWS, predicted, np.zeros(3, dtype=np.bool_)).rows.successors.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert pooled(ROWS, ties, np.ones(3, dtype=np.bool_)).rows.counts.tolist() == ROWS.counts.tolist()


def test_growing_rows_keep_their_outcomes(ties: Ties) -> None:
    assume, fewer = Assumptions(tied=outcome_of), rows_of({0: 3}, {}, {1: 2, 2: 1})
    before = applied(assume, None, Grown(fewer, None, PAIRS, STATES))
    grown = applied(assume, before, Grown(ROWS, fewer, PAIRS, STATES)).ties
    assert grown is not None
    assert [grown.names[outcome] for outcome in grown.outcomes if outcome != UNTIED] == [
        ties.names[outcome] for outcome in ties.outcomes if outcome != UNTIED
    ]


def test_draws_of_pairs_left_out_count_elsewhere(ties: Ties) -> None:
    part = ties_of_pairs(ties, ROWS, np.array([2]))
    assert part.elsewhere.tolist() == [30, 10, 0]
    assert totals_of(part, ROWS.counts[3:]).tolist() == totals_of(ties, ROWS.counts).tolist()


def test_a_class_has_the_ball_of_all_its_draws(ties: Ties) -> None:
    region = region_given(ROWS, 0.1, Assumed({}, ties))
    alone = region_given(ROWS, 0.1)
    assert region.slack[0] == region.slack[2] < min(alone.slack[0], alone.slack[2])
    assert region.shared_budgets == ()


@pytest.mark.parametrize(
    ("wrong", "pair"),
    [
        (lambda state, _, successor: (state == successor, successor), 0),
        (lambda state, *_: (state, "moved"), 0),
        (lambda state, _, successor: ("all", "far" if (state, successor) in ((1, 2), (1, 3)) else successor), 2),
    ],
)
def test_pairs_that_contradict_the_ties_are_found(wrong: OutcomeOf, pair: int) -> None:
    assert pair in contradicted_pairs(ROWS, 0.1, Assumed({}, ties_in(ROWS, tied=wrong)))


def test_ties_that_fit_contradict_nothing(ties: Ties) -> None:
    assert not len(contradicted_pairs(ROWS, 0.1, Assumed({}, ties)))


def test_the_true_law_of_a_class_is_in_its_ball_as_often_as_the_level_says() -> None:
    law, rng, outside = np.array([0.6, 0.3, 0.1]), np.random.default_rng(1), 0
    for _ in range(200):
        drawn = [rng.multinomial(size, law) for size in (40, 60)]
        rows = rows_of({0: 1, **dict(enumerate(drawn[0].tolist()))}, {0: 7}, dict(enumerate(drawn[1].tolist(), 1)))
        if (rows.counts < 1).any():
            continue
        region = region_given(rows, 0.5, Assumed({}, ties_in(rows, tied=outcome_of)))
        shares = region.shares[:3]
        outside += float((shares * np.log(shares / law)).sum()) > region.slack[0]
    assert outside <= 200 * 0.1


def test_levels_do_not_depend_on_whether_a_tied_pair_was_drawn_yet() -> None:
    """A function that names nothing leaves no list in the certificate; the level is allowed with a list and without."""
    unnamed = Assumed({}, ties_in(ROWS, tied=lambda *_: None))
    assert listed(unnamed, ROWS, np.arange(4), 2) is None
    levels = region_given(ROWS, 0.1, unnamed).weights
    apart = Assumed({}, ties_in(ROWS, tied=lambda state, action, successor: ((state, action), successor)))
    assert (levels <= region_given(ROWS, 0.1, apart).weights).all()
    assert (levels <= region_given(ROWS, 0.1).weights).all()
