"""Logs become counts: exactly those that counting one by one gives, from every format, or a clear error."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axplore import RESET
from axplore.errors import AxploreError, DamagedFileError, InvalidInputError, InvalidSettingError, StorageError
from axplore.logs import read_log
from axplore.statistics.counts import check_counts


def walk(length: int, seed: int = 0) -> list[tuple[Any, Any, Any]]:
    """A log with labels of several kinds."""
    generator = np.random.default_rng(seed)
    states = ["home", ("room", 1), ("room", 2), 7, 'seven, or "7"', "RESETS"]
    state, log = 0, list[tuple[Any, Any, Any]]()
    for _ in range(length):
        if generator.random() < 0.1:
            log.append((states[state], RESET, states[0]))
            state = 0
            continue
        action, after = int(generator.integers(3)), int(generator.integers(len(states)))
        log.append((states[state], f"a{action}" if state % 2 else action, states[after]))
        state = after
    return log


def write_csv(log: list[tuple[Any, Any, Any]], path: Path) -> Path:
    from axplore.labels import text_of

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "state", "action", "next_state"])
        writer.writerows([place, *map(text_of, row)] for place, row in enumerate(log))
    return path


def write_json(log: list[tuple[Any, Any, Any]], path: Path) -> Path:
    names = ("state", "action", "next_state")
    rows = ({name: "RESET" if thing is RESET else thing for name, thing in zip(names, row, strict=True)} for row in log)
    path.write_text("\n".join(json.dumps({"time": place, **row}) for place, row in enumerate(rows)), encoding="utf-8")
    return path


def write_parquet(log: list[tuple[Any, Any, Any]], path: Path) -> Path:
    from axplore.labels import text_of

    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        name: [text_of(row[place]) for row in log] for place, name in enumerate(("state", "action", "next_state"))
    }
    parquet.write_table(pyarrow.table(columns), path)
    return path


WRITERS: dict[str, Callable[[list[tuple[Any, Any, Any]], Path], Path]] = {
    "log.csv": write_csv, "log.jsonl": write_json, "log.parquet": write_parquet
}  # fmt: skip


@pytest.mark.parametrize("length", [1, 2, 50, 3000])
def test_counts_are_those_of_counting_one_by_one(length: int) -> None:
    log = [("home", 0, "home"), *walk(length)]
    counts = read_log(log).counts
    check_counts(counts)
    draws = [row for row in log if row[1] is not RESET]
    assert counts.order[0] == "home"
    assert list(counts.order) == list(dict.fromkeys(state for row in draws for state in (row[0], row[2])))
    left = list(dict.fromkeys(row[0] for row in draws))
    assert [counts.order[number] for number in counts.states] == left
    drawn: Counter[Any] = Counter()
    firsts: dict[Any, int] = {}
    times = Counter(draws)
    for row in draws:
        drawn[row[:2]] += 1
        firsts.setdefault(row, drawn[row[:2]])
    pair = 0
    for state, actions in zip(left, counts.actions, strict=True):
        assert list(actions) == list(dict.fromkeys(row[1] for row in draws if row[0] == state))
        for action in actions:
            entries = range(counts.row_offsets[pair], counts.row_offsets[pair + 1])
            found = [(state, action, counts.order[int(counts.successors[entry])]) for entry in entries]
            assert found == [met for met in firsts if met[:2] == (state, action)]
            assert [counts.counts[entry] for entry in entries] == [times[met] for met in found]
            assert [counts.first_draws[entry] for entry in entries] == [firsts[met] for met in found]
            pair += 1


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("length", [40, 64, 300])
def test_every_format_holds_the_same(name: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.logs.BLOCK", 64)
    log = walk(length)
    path = WRITERS[name](log, tmp_path / name)
    expected, read = read_log(log), read_log(path)
    assert read.steps == expected.steps == length
    assert read.counts.order == expected.counts.order
    assert read.counts.actions == expected.counts.actions
    for array in ("states", "row_offsets", "successors", "counts", "first_draws"):
        np.testing.assert_array_equal(getattr(read.counts, array), getattr(expected.counts, array))


def test_two_spellings_of_a_label_are_one_state(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"state": {"a": 1, "b": 2}, "action": 0, "next_state": {"b":2,"a":1}}\n'
        '{"state": "\\u0068ome", "action": 0, "next_state": "home"}\n',
        encoding="utf-8",
    )
    assert list(read_log(path).counts.order) == [(("a", 1), ("b", 2)), "home"]


@pytest.mark.parametrize("other", [True, 1.0])
def test_labels_that_are_equal_and_not_the_same_are_refused(other: Any, tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="are equal in Python"):
        read_log([(1, 0, other)])
    with pytest.raises(DamagedFileError, match="are equal in Python"):
        read_log(write_json([((1, 2), 0, (other, 2))], tmp_path / "log.jsonl"))
    assert len(read_log([(1, 0, np.int64(1))]).counts.order) == 1


def test_the_initial_state_is_where_reset_leads() -> None:
    log = [("b", 0, "a"), ("a", RESET, "a"), ("a", 1, "b")]
    assert read_log(log).counts.order[0] == "a"
    assert read_log(log[:1]).counts.order[0] == "b"
    assert read_log(log[:1], initial="a").counts.order[0] == "a"
    with pytest.raises(InvalidSettingError, match="RESET leads to a in the log"):
        read_log(log, initial="b")
    with pytest.raises(InvalidSettingError, match="'c' is not in the log"):
        read_log(log[:1], initial="c")
    with pytest.raises(DamagedFileError, match="there must be one initial state"):
        read_log([*log, ("b", RESET, "b")])


def test_declared_actions_are_all_there_is() -> None:
    log = [("a", 0, "b"), ("b", 1, "a")]
    counts = read_log(log, actions={"a": [0, 1], "b": [1]}).counts
    assert [list(actions) for actions in counts.actions] == [[0, 1], [1]]
    assert counts.visits.tolist() == [1, 0, 1]
    with pytest.raises(InvalidSettingError, match="plays 1 in b, which actions lacks"):
        read_log(log, actions=lambda _: [0])
    with pytest.raises(InvalidSettingError, match="actions lacks the state b"):
        read_log(log, actions={"a": [0]})


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([], "has no transition"),
        ([("a", 0)], "transition 1, .* is not .state, action, next state"),
        (["abc"], "transition 1, .* is not .state, action, next state"),
        ([("a", [], "b")], "not hashable"),
        ([("a", 0, object())], "cannot be written to a file"),
        ([("a", 0, float("nan"))], "NaN"),
        ([("a", 0, "b"), ("a", 0, RESET)], "transition 2 has RESET for a state"),
        (5, "neither a path nor an iterable"),
    ],
)
def test_what_is_no_log_is_refused(log: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_log(log)


HEADER = b"state,action,next_state\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.csv", b"", "first line must name"),
        ("log.csv", HEADER, "has no transition"),
        ("log.csv", b"state,action\na,b\n", "see next_state"),
        ("log.csv", b"state,state,action,next_state\n", "see state"),
        ("log.csv", HEADER + b"a,b,c\na,b\n", "transition 2, .* 2 cells in place of 3"),
        ("log.csv", HEADER + b"a,,c\n", "a cell is empty"),
        ("log.csv", HEADER + b'a,b,"c', "not CSV"),
        ("log.csv", HEADER + b"\xff\xfe,b,c\n", "not text in UTF-8"),
        ("log.csv", HEADER + b"a" * 2**21, "more than 1,048,576 characters"),
        ("log.csv", HEADER + b"a" * 2**19 + b",b,c\n", "field larger than"),
        ("log.jsonl", b'{"state": 1, "action": 2, "next_state": 3}\n{"state": 1, "act', "transition 2, .* is none"),
        ("log.jsonl", b'{"state": 1, "action": 2}\n', "next_state"),
        ("log.jsonl", b"[1, 2, 3]\n", "transition 1, .* is none"),
        ("log.jsonl", b'{"state": 1.5e999, "action": 2, "next_state": 3}\n', "is not a label"),
        ("log.jsonl", b'{"state": ' + b"[" * 900 + b"]" * 900 + b', "action": 2, "next_state": 3}\n', "nested"),
        ("log.parquet", b"PAR1 and nothing else", "not Parquet|cannot be read"),
        ("log.txt", b"a b c", "must end in"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(AxploreError, match=message) as raised:
        read_log(path)
    assert name in str(raised.value)


def test_a_file_that_is_not_there_or_a_trap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        read_log(tmp_path / "log.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "log.csv")
    with pytest.raises(StorageError, match="symbolic link"):
        read_log(tmp_path / "link.csv")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(StorageError, match="not a regular file"):
        read_log(tmp_path / "folder.jsonl")


def test_labels_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axplore.logs.MOST_LABELS", 1000)
    with pytest.raises(DamagedFileError, match="more than 1,000 labels"):
        read_log((place, 0, place + 1) for place in range(10_000))
