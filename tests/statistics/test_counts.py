from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.errors import InvalidInputError
from axplore.statistics.counts import CountedRows, TransitionCounts
from axplore.worlds.contract import Answer

Draw: TypeAlias = tuple[int, int, int]
"""A state, one of its actions, and the successor drawn."""

ACTIONS = {7: 2, 0: 1, 3: 0, 4: 3}
"""The states that the tests add, in this order, with how many actions each has; state 3 is terminal."""

PAIRS = [(state, action) for state, n_actions in ACTIONS.items() for action in range(n_actions)]

draws = st.lists(
    st.tuples(st.sampled_from(PAIRS), st.integers(0, 9)).map(lambda item: (*item[0], item[1])), max_size=40
)


def integers(values: Sequence[int]) -> Any:
    return np.array(values, dtype=np.int64)


def answer_of(stretch: Sequence[Draw]) -> Answer:
    """The answer of a world that met these transitions, by dictionaries."""
    pair_draws: dict[tuple[int, int], int] = {}
    counts: dict[Draw, int] = {}
    first_draws: dict[Draw, int] = {}
    for draw in stretch:
        pair = draw[:2]
        pair_draws[pair] = pair_draws.get(pair, 0) + 1
        counts[draw] = counts.get(draw, 0) + 1
        first_draws.setdefault(draw, pair_draws[pair])
    places = {pair: place for place, pair in enumerate(pair_draws)}
    return Answer(
        steps=len(stretch),
        completed=0,
        arrivals=0,
        travelled=0,
        cut_journeys=0,
        pair_states=integers([state for state, _ in pair_draws]),
        pair_actions=integers([action for _, action in pair_draws]),
        pair_draws=integers(list(pair_draws.values())),
        entry_pairs=integers([places[draw[:2]] for draw in counts]),
        entry_successors=integers([successor for _, _, successor in counts]),
        entry_counts=integers(list(counts.values())),
        entry_first_draws=integers(list(first_draws.values())),
    )


def counted(*stretches: Sequence[Draw]) -> TransitionCounts:
    return TransitionCounts().with_states(ACTIONS).with_answers(map(answer_of, stretches))


def as_lists(rows: CountedRows) -> dict[str, list[int]]:
    return {field.name: getattr(rows, field.name).tolist() for field in fields(rows)}


def expected_lists(stream: Sequence[Draw]) -> dict[str, list[int]]:
    """The rows of a stream, by going through it once for each pair."""
    visits, row_offsets, successors, counts, first_draws = [], [0], [], [], []
    for pair in PAIRS:
        outcomes = [draw[2] for draw in stream if draw[:2] == pair]
        tally = Counter(outcomes)  # in the order of first appearance
        visits.append(len(outcomes))
        row_offsets.append(row_offsets[-1] + len(tally))
        successors += list(tally)
        counts += list(tally.values())
        first_draws += [outcomes.index(successor) + 1 for successor in tally]
    return {
        "states": list(ACTIONS),
        "state_pairs": [0, *np.cumsum(list(ACTIONS.values())).tolist()],
        "visits": visits,
        "row_offsets": row_offsets,
        "successors": successors,
        "counts": counts,
        "first_draws": first_draws,
    }


def test_nothing_counted_gives_empty_rows() -> None:
    rows = TransitionCounts().rows()
    assert as_lists(rows) == {
        "states": [], "state_pairs": [0], "visits": [], "row_offsets": [0],
        "successors": [], "counts": [], "first_draws": [],
    }  # fmt: skip


def test_a_successor_seen_first_in_a_later_answer_is_dated_from_the_first_draw_of_all() -> None:
    counts = counted([(0, 0, 5), (0, 0, 5), (0, 0, 8)], [(0, 0, 5), (7, 1, 2), (0, 0, 1), (0, 0, 8)])
    rows = counts.rows()
    assert rows.visits.tolist() == [0, 1, 6, 0, 0, 0]
    assert rows.row_offsets.tolist() == [0, 0, 1, 4, 4, 4, 4]
    assert rows.successors.tolist() == [2, 5, 8, 1]
    assert rows.counts.tolist() == [1, 3, 2, 1]
    assert rows.first_draws.tolist() == [1, 1, 3, 5]
    assert (counts.n_states, counts.n_pairs, counts.n_entries) == (4, 6, 4)


@given(stream=draws, cuts=st.sets(st.integers(0, 40)))
def test_a_stream_split_into_any_answers_gives_the_rows_of_the_whole(stream: list[Draw], cuts: set[int]) -> None:
    bounds = [0, *sorted(cuts), 41]
    stretches = [stream[start:end] for start, end in pairwise(bounds)]
    assert as_lists(counted(*stretches).rows()) == expected_lists(stream)
    one_by_one = counted()
    for stretch in stretches:
        one_by_one = one_by_one.with_answers([answer_of(stretch)])
    assert as_lists(one_by_one.rows()) == expected_lists(stream)


@given(stream=draws, cut=st.integers(0, 40))
def test_later_answers_and_states_do_not_change_counts(stream: list[Draw], cut: int) -> None:
    before = counted(stream[:cut])
    assert as_lists(before.with_answers([answer_of(stream[cut:])]).rows()) == expected_lists(stream)
    assert before.with_states({9: 4}).n_states == 5
    assert as_lists(before.rows()) == expected_lists(stream[:cut])


@given(stream=draws, cut=st.integers(0, 40))
def test_states_may_be_added_between_answers(stream: list[Draw], cut: int) -> None:
    early = [draw for draw in stream[:cut] if draw[0] == 7]
    counts = TransitionCounts().with_states({7: 2}).with_answers([answer_of(early)])
    counts = counts.with_states({number: ACTIONS[number] for number in (0, 3, 4)})
    counts = counts.with_answers([answer_of(stream[cut:])])
    assert as_lists(counts.rows()) == expected_lists(early + stream[cut:])


@given(stream=draws, cut=st.integers(0, 40))
def test_saved_counts_resume_where_they_stopped(stream: list[Draw], cut: int) -> None:
    restored = TransitionCounts.from_arrays(counted(stream[:cut]).to_arrays())
    assert as_lists(restored.rows()) == expected_lists(stream[:cut])
    assert as_lists(restored.with_answers([answer_of(stream[cut:])]).rows()) == expected_lists(stream)


def test_the_order_of_the_transitions_in_an_answer_does_not_matter() -> None:
    stream = [(0, 0, 5), (0, 0, 6), (0, 0, 5), (0, 0, 7)]
    answer = answer_of(stream)
    names = ("entry_pairs", "entry_successors", "entry_counts", "entry_first_draws")
    reversed_ = replace(answer, **{name: getattr(answer, name)[::-1] for name in names})
    assert as_lists(counted().with_answers([reversed_]).rows()) == expected_lists(stream)


def test_the_layout_of_the_rows_is_kept_while_no_new_transition_is_met() -> None:
    before = counted([(0, 0, 5), (7, 0, 1)])
    after = before.with_answers([answer_of([(0, 0, 5)])])
    assert after.rows().successors is before.rows().successors
    assert after.rows().visits.tolist() == [1, 0, 2, 0, 0, 0]
    assert after.rows().counts.tolist() == [1, 2]
    assert after.with_answers([answer_of([(0, 0, 6)])]).rows().successors.tolist() == [1, 5, 6]


def test_rows_cannot_be_written_to() -> None:
    rows = counted([(0, 0, 5)]).rows()
    for array in (getattr(rows, field.name) for field in fields(rows)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_many_states_need_no_more_memory_than_the_transitions_met() -> None:
    n_states = 20_000
    counts = TransitionCounts().with_states(dict.fromkeys(range(n_states), 2))
    draws = [(number, 1, n_states - 1 - number) for number in range(0, n_states, 100)]
    counts = counts.with_answers([answer_of(draws)])
    assert counts.n_entries == 200
    assert sum(array.nbytes for array in counts.to_arrays().values()) < 3_000_000


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ((5, 0, 1), "state 5 cannot be counted: the state was not added"),
        ((99, 0, 1), "state 99 cannot be counted: the state was not added"),
        ((-1, 0, 1), "state -1 cannot be counted: the state was not added"),
        ((0, 1, 1), "state 0 was added without an action 1"),
        ((3, 0, 1), "state 3 was added without an action 0"),
        ((4, -1, 1), "state 4 was added without an action -1"),
    ],
)
def test_an_answer_with_a_pair_that_is_not_counted_is_refused_and_changes_nothing(draw: Draw, message: str) -> None:
    counts = counted([(0, 0, 5)])
    with pytest.raises(InvalidInputError, match=message):
        counts.with_answers([answer_of([(7, 0, 1), draw])])
    assert as_lists(counts.rows()) == expected_lists([(0, 0, 5)])


def test_an_answer_whose_transitions_do_not_add_up_is_refused() -> None:
    answer = answer_of([(7, 0, 1), (0, 0, 5), (0, 0, 6)])
    with pytest.raises(InvalidInputError, match="state 0, action 0: 3 draws, but 2 transitions"):
        counted().with_answers([replace(answer, pair_draws=integers([1, 3]))])


def test_an_answer_that_names_a_pair_twice_is_refused() -> None:
    answer = answer_of([(7, 0, 1), (0, 0, 5)])
    with pytest.raises(InvalidInputError, match="names a pair twice"):
        counted().with_answers([replace(answer, pair_states=integers([0, 0]))])


def test_a_state_is_added_once_and_never_with_a_negative_number() -> None:
    counts = counted()
    with pytest.raises(InvalidInputError, match="state 7 was added before"):
        counts.with_states({7: 2})
    for number, n_actions in ((-1, 2), (8, -1)):
        with pytest.raises(InvalidInputError, match="neither may be negative"):
            counts.with_states({number: n_actions})
    assert counts.n_states == 4


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("visits", [0, 0, 4, 0, 0, 0], "do not add up"),
        ("counts", [3, 0], "do not add up"),
        ("counts", [3], "incomplete"),
        ("row_offsets", [0, 0, 0, 1, 2, 2, 2], "do not add up"),
        ("row_offsets", [0, 0, 3, 2, 2, 2, 2], "do not fit"),
        ("row_offsets", [0, 0, 0, 2, 2, 2], "do not fit"),
        ("state_pairs", [0, 2, 3, 3, 5], "do not fit"),
        ("successors", [5, 5], "same successor twice"),
        ("first_draws", [0, 2], "first seen"),
        ("first_draws", [2, 1], "first seen"),
        ("first_draws", [1, 4], "first seen"),
        ("states", [7, 0, 3, 7], "added twice"),
        ("states", [7, 0, 3, -1], "negative number"),
    ],
)
def test_damaged_saved_counts_are_refused(name: str, values: list[int], message: str) -> None:
    arrays = counted([(0, 0, 5), (0, 0, 6), (0, 0, 5)]).to_arrays()
    with pytest.raises(InvalidInputError, match=message):
        TransitionCounts.from_arrays(arrays | {name: integers(values)})


def test_saved_counts_with_an_array_missing_are_refused() -> None:
    arrays = counted().to_arrays()
    del arrays["visits"]
    with pytest.raises(InvalidInputError, match="'visits' is missing"):
        TransitionCounts.from_arrays(arrays)
