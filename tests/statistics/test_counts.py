from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from axplore.errors import InvalidInputError
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.statistics.counts import check_counts, in_order, no_counts, rows_of, with_answers, with_order, with_states
from axplore.worlds.contract import Answer

Draw: TypeAlias = tuple[int, int, int]
"""A state, one of its actions, and the successor drawn."""

ORDER = Labels(f"s{state}" for state in range(10))

ACTIONS = {7: ("x", "y"), 0: ("x",), 3: (), 4: ("x", "y", "z")}
"""The states that the tests add, in this order, with the actions of each; state 3 is terminal."""

PAIRS = [(state, action) for state, actions in ACTIONS.items() for action in range(len(actions))]

ARRAYS = ("states", "state_pairs", "visits", "row_offsets", "successors", "counts", "first_draws")

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


def counted(*stretches: Sequence[Draw]) -> Counts:
    return more(with_states(no_counts(ORDER), ACTIONS), *stretches)


def more(counts: Counts, *stretches: Sequence[Draw]) -> Counts:
    return with_answers(counts, map(answer_of, stretches), ORDER)


def as_lists(counts: Counts) -> dict[str, list[int]]:
    return {name: getattr(counts, name).tolist() for name in ARRAYS}


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
        "state_pairs": [0, *np.cumsum([len(actions) for actions in ACTIONS.values()]).tolist()],
        "visits": visits,
        "row_offsets": row_offsets,
        "successors": successors,
        "counts": counts,
        "first_draws": first_draws,
    }


def test_nothing_counted_gives_empty_rows() -> None:
    assert as_lists(no_counts(ORDER)) == {
        "states": [], "state_pairs": [0], "visits": [], "row_offsets": [0],
        "successors": [], "counts": [], "first_draws": [],
    }  # fmt: skip


def test_a_successor_seen_first_in_a_later_answer_is_dated_from_the_first_draw_of_all() -> None:
    rows = counted([(0, 0, 5), (0, 0, 5), (0, 0, 8)], [(0, 0, 5), (7, 1, 2), (0, 0, 1), (0, 0, 8)])
    assert rows.visits.tolist() == [0, 1, 6, 0, 0, 0]
    assert rows.row_offsets.tolist() == [0, 0, 1, 4, 4, 4, 4]
    assert rows.successors.tolist() == [2, 5, 8, 1]
    assert rows.counts.tolist() == [1, 3, 2, 1]
    assert rows.first_draws.tolist() == [1, 1, 3, 5]


@given(stream=draws, cuts=st.sets(st.integers(0, 40)))
def test_a_stream_split_into_any_answers_gives_the_rows_of_the_whole(stream: list[Draw], cuts: set[int]) -> None:
    bounds = [0, *sorted(cuts), 41]
    stretches = [stream[start:end] for start, end in pairwise(bounds)]
    assert as_lists(counted(*stretches)) == expected_lists(stream)
    one_by_one = counted()
    for stretch in stretches:
        one_by_one = more(one_by_one, stretch)
    assert as_lists(one_by_one) == expected_lists(stream)


@given(stream=draws, cut=st.integers(0, 40))
def test_later_answers_and_states_do_not_change_counts(stream: list[Draw], cut: int) -> None:
    before = counted(stream[:cut])
    assert as_lists(more(before, stream[cut:])) == expected_lists(stream)
    assert len(with_states(before, {9: "abcd"}).states) == 5
    assert as_lists(before) == expected_lists(stream[:cut])


@given(stream=draws, cut=st.integers(0, 40))
def test_states_may_be_added_between_answers(stream: list[Draw], cut: int) -> None:
    early = [draw for draw in stream[:cut] if draw[0] == 7]
    counts = more(with_states(no_counts(ORDER), {7: ACTIONS[7]}), early)
    counts = more(with_states(counts, {state: ACTIONS[state] for state in (0, 3, 4)}), stream[cut:])
    assert as_lists(counts) == expected_lists(early + stream[cut:])


def test_the_order_of_the_transitions_in_an_answer_does_not_matter() -> None:
    stream = [(0, 0, 5), (0, 0, 6), (0, 0, 5), (0, 0, 7)]
    answer = answer_of(stream)
    names = ("entry_pairs", "entry_successors", "entry_counts", "entry_first_draws")
    reversed_ = replace(answer, **{name: getattr(answer, name)[::-1] for name in names})
    assert as_lists(with_answers(counted(), [reversed_], ORDER)) == expected_lists(stream)


def test_the_layout_of_the_rows_is_kept_while_no_new_transition_is_met() -> None:
    before = counted([(0, 0, 5), (7, 0, 1)])
    after = more(before, [(0, 0, 5)])
    assert after.successors is before.successors
    assert after.visits.tolist() == [1, 0, 2, 0, 0, 0]
    assert after.counts.tolist() == [1, 2]
    assert more(after, [(0, 0, 6)]).successors.tolist() == [1, 5, 6]


def test_rows_cannot_be_written_to() -> None:
    counts = counted([(0, 0, 5)])
    for name in ("states", "row_offsets", "successors", "counts", "first_draws"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(counts, name)[0] = 9


def test_many_states_need_no_more_memory_than_the_transitions_met() -> None:
    n_states = 20_000
    order = Labels(range(n_states))
    counts = with_states(no_counts(order), dict.fromkeys(range(n_states), "ab"))
    draws = [(number, 1, n_states - 1 - number) for number in range(0, n_states, 100)]
    counts = with_answers(counts, [answer_of(draws)], order)
    assert len(counts.counts) == 200
    assert sum(getattr(counts, name).nbytes for name in ARRAYS) < 3_000_000


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ((5, 0, 1), "state 5 cannot be counted: the state was not added"),
        ((99, 0, 1), "state 99 cannot be counted: the state was not added"),
        ((-1, 0, 1), "state -1 cannot be counted: the state was not added"),
        ((0, 1, 1), "state 0 was added without an action 1"),
        ((3, 0, 1), "state 3 was added without an action 0"),
        ((4, -1, 1), "state 4 was added without an action -1"),
        ((4, 0, 10), "leads to state 10, but 10 states were met"),
        ((4, 0, -1), "leads to state -1, but 10 states were met"),
    ],
)
def test_an_answer_with_a_pair_that_is_not_counted_is_refused_and_changes_nothing(draw: Draw, message: str) -> None:
    counts = counted([(0, 0, 5)])
    with pytest.raises(InvalidInputError, match=message):
        more(counts, [(7, 0, 1), draw])
    assert as_lists(counts) == expected_lists([(0, 0, 5)])


def test_an_answer_whose_transitions_do_not_add_up_is_refused() -> None:
    answer = answer_of([(7, 0, 1), (0, 0, 5), (0, 0, 6)])
    with pytest.raises(InvalidInputError, match="state 0, action 0: 3 draws, but 2 transitions"):
        with_answers(counted(), [replace(answer, pair_draws=integers([1, 3]))], ORDER)


def test_an_answer_that_names_a_pair_twice_is_refused() -> None:
    answer = answer_of([(7, 0, 1), (0, 0, 5)])
    with pytest.raises(InvalidInputError, match="names a pair twice"):
        with_answers(counted(), [replace(answer, pair_states=integers([0, 0]))], ORDER)


def test_a_state_is_added_once_and_only_if_it_was_met() -> None:
    counts = counted()
    with pytest.raises(InvalidInputError, match="state 7 was added before"):
        with_states(counts, {7: "ab"})
    for state in (-1, 10):
        with pytest.raises(InvalidInputError, match=f"there is no state {state}"):
            with_states(counts, {state: "ab"})


@given(stream=draws, chosen=st.permutations(list(ACTIONS)))
def test_rows_of_some_states_are_those_of_their_labels(stream: list[Draw], chosen: list[int]) -> None:
    counts = counted(stream)
    part = rows_of(counts, integers(chosen[:3]))
    assert by_label(part) == {pair: row for pair, row in by_label(counts).items() if pair[0] in names_of(chosen[:3])}


@given(stream=draws, chosen=st.permutations(range(10)))
def test_counts_in_another_order_say_the_same_of_every_label(stream: list[Draw], chosen: list[int]) -> None:
    counts = counted(stream)
    moved = in_order(counts, integers(chosen))
    assert list(moved.order) == names_of(chosen)
    assert by_label(moved) == by_label(counts)


def names_of(states: Sequence[int]) -> list[Any]:
    return [ORDER[state] for state in states]


def by_label(counts: Counts) -> dict[Any, Any]:
    """For each state and action, by label, how often it led where."""
    pairs = [
        (counts.order[state], action)
        for state, actions in zip(counts.states.tolist(), counts.actions, strict=True)
        for action in actions
    ]
    rows: dict[Any, Any] = {pair: {} for pair in pairs}
    for pair, successor, count in zip(counts.entry_pairs, counts.successors, counts.counts, strict=True):
        rows[pairs[pair]][counts.order[successor]] = count
    return rows


def test_an_order_that_lacks_a_state_or_begins_otherwise_is_refused() -> None:
    counts = counted([(0, 0, 5)])
    for chosen in ([7, 0, 3, 4], [7, 0, 3, 5], [7, 0, 3, 4, 5, 5]):
        with pytest.raises(InvalidInputError, match="the new order of states"):
            in_order(counts, integers(chosen))
    with pytest.raises(InvalidInputError, match="changed their order"):
        with_order(counts, Labels(reversed(ORDER)))
    with pytest.raises(InvalidInputError, match="changed their order"):
        with_answers(counts, [answer_of([(0, 0, 5)])], ORDER[:9])
    assert with_order(counts, Labels((*ORDER, "new"))).order[10] == "new"
    with pytest.raises(InvalidInputError, match="state 5 was not counted"):
        rows_of(counts, integers([0, 5]))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("counts", [3, 0], "incomplete"),
        ("counts", [3], "incomplete"),
        ("row_offsets", [0, 0, 3, 2, 2, 2, 2], "do not fit"),
        ("row_offsets", [0, 0, 0, 2, 2, 2], "do not fit"),
        ("successors", [5, 5], "same successor twice"),
        ("successors", [5, 10], "none of the 10 states met"),
        ("first_draws", [0, 2], "first seen"),
        ("first_draws", [2, 1], "first seen"),
        ("first_draws", [1, 4], "first seen"),
        ("states", [7, 0, 3, 7], "added twice"),
        ("states", [7, 0, 3], "without its actions"),
        ("states", [7, 0, 3, -1], "none of the 10 states met"),
    ],
)
def test_damaged_saved_counts_are_refused(name: str, values: list[int], message: str) -> None:
    counts = counted([(0, 0, 5), (0, 0, 6), (0, 0, 5)])
    check_counts(counts)
    with pytest.raises(InvalidInputError, match=message):
        check_counts(structs.replace(counts, **{name: integers(values)}))
