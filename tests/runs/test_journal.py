from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.errors import DamagedFileError, InvalidLabelError
from axplore.records.findings import Fault, FaultKind
from axplore.records.order import Labels
from axplore.runs.journal import Call, Journal, header_of, read_journal
from axplore.worlds.contract import Answer

HEADER = header_of("run", 3)

numbers = st.integers(-(2**62), 2**62)
labels = st.one_of(st.text(max_size=3), st.integers(), st.tuples(st.integers(), st.booleans()))


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    n_pairs, n_entries, n_outcomes = (draw(st.integers(0, 4)) for _ in range(3))

    def array(size: int) -> Any:
        return np.array(draw(st.lists(numbers, min_size=size, max_size=size)), dtype=np.int64)

    scalars: list[Any] = [draw(numbers) for _ in range(5)]
    arrays = [*[array(n_pairs) for _ in range(3)], *[array(n_entries) for _ in range(4)], array(n_outcomes)]
    return Answer(*scalars, *arrays)


pairs = st.tuples(labels, labels).map(Labels)

calls = st.builds(
    Call,
    checksum=st.integers(0, 2**32 - 1),
    answers=st.lists(answers(), max_size=3).map(tuple),
    discovered=st.lists(st.tuples(labels, st.lists(labels, max_size=2).map(tuple)), max_size=2).map(tuple),
    steps=numbers,
    position=numbers,
    faults=st.lists(
        st.builds(Fault, st.sampled_from(FaultKind), st.text(max_size=5), st.none() | pairs, st.integers(0, 2**62)),
        max_size=2,
    ).map(tuple),
)

SOME_ANSWER = Answer(7, 2, 2, 0, 1, *[*[np.arange(3)] * 3, *[np.arange(5)] * 4, np.arange(2)])
SOME_CALLS = [
    Call(11, (SOME_ANSWER,), (("there", ("go", "stay")),), 7, 1),
    Call(12, (SOME_ANSWER, SOME_ANSWER), (), 21, 0),
    Call(13, (), (((0, 1), ()),), 21, -1),
]


def written(path: Path, some_calls: list[Call]) -> bytes:
    """What a journal of these calls holds."""
    journal = Journal(path, HEADER, 0)
    for call in some_calls:
        journal.append(call)
    journal.close()
    return path.read_bytes()


def plain(call: Call) -> tuple[Any, ...]:
    """Everything in a call, to be compared."""
    parts = [[np.asarray(getattr(answer, field.name)).tolist() for field in fields(answer)] for answer in call.answers]
    return call.checksum, parts, call.discovered, call.steps, call.position, call.faults


@given(some_calls=st.lists(calls, max_size=4))
def test_what_is_written_is_read(some_calls: list[Call], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    content = written(path, some_calls)
    read, lengths = read_journal(path, HEADER)
    assert list(map(plain, read)) == list(map(plain, some_calls))
    assert lengths[-1] == len(content)
    assert len(lengths) == len(some_calls) + 1


def test_cut_anywhere_it_holds_the_calls_that_were_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    content = written(path, SOME_CALLS)
    _, lengths = read_journal(path, HEADER)
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        read, _ = read_journal(path, HEADER)
        assert len(read) == max(sum(length <= size for length in lengths) - 1, 0)
    assert (size, len(read)) == (len(content), 3)


def test_after_a_cut_it_goes_on_with_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    content = written(path, SOME_CALLS)
    path.write_bytes(content[:-3])
    _, lengths = read_journal(path, HEADER)
    journal = Journal(path, HEADER, lengths[-1])
    journal.append(SOME_CALLS[2])
    journal.close()
    assert path.read_bytes() == content


def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    content = written(path, SOME_CALLS)
    _, lengths = read_journal(path, HEADER)
    for place in range(len(content)):
        path.write_bytes(bytes([*content[:place], content[place] ^ 16, *content[place + 1 :]]))
        if place < lengths[-2] + 12:
            with pytest.raises(DamagedFileError, match=str(path)):
                read_journal(path, HEADER)
        else:
            # What is damaged in the last record cannot be told from a record that was not written to its end.
            read, _ = read_journal(path, HEADER)
            assert len(read) == 2


def test_room_that_was_never_written_to_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    content = written(path, SOME_CALLS)
    path.write_bytes(content + bytes(100))
    read, lengths = read_journal(path, HEADER)
    assert (len(read), lengths[-1]) == (3, len(content))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (header_of("another", 3), "not the journal of this run"),
        (header_of("run", 4), "not the journal of this run after checkpoint 3"),
        ({**HEADER, "version": 1}, "version 1 of its format; this axplore reads version 3"),
        ({**HEADER, "format": "a diary"}, "not of the format 'axplore journal'"),
    ],
)
def test_another_journal_is_refused(header: dict[str, Any], reason: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", header, 0)
    journal.append(SOME_CALLS[0])
    journal.close()
    with pytest.raises(DamagedFileError, match=reason):
        read_journal(tmp_path / "journal", HEADER)


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"\x00\x01\n" * 99)
    with pytest.raises(DamagedFileError, match="first line"):
        read_journal(tmp_path / "journal", HEADER)
    assert read_journal(tmp_path / "nothing", HEADER) == ([], [0])


def test_a_label_that_is_not_plain_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, HEADER, 0)
    journal.append(SOME_CALLS[0])
    before = path.read_bytes()
    with pytest.raises(InvalidLabelError):
        journal.append(replace(SOME_CALLS[1], discovered=((object(), ()),)))
    assert path.read_bytes() == before
