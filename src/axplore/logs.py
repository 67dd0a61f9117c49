"""Transitions that were logged become counts: from CSV, JSON lines, Parquet, or any iterable.

A transition is a state, an action and the next state. Labels are numbered while they are read, a block at a time, and
what was numbered is counted as arrays: ten million transitions take less than a minute. Nothing of a file is executed,
and a line that is not a transition is refused with its number. docs/logs.md says when such counts prove something.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from axplore.arguments import plain
from axplore.compressed import offsets_from
from axplore.errors import DamagedFileError, InvalidInputError, InvalidSettingError, StorageError
from axplore.labels import RESET_TEXT, canonical_json, encode_label, label_of, label_of_json, readable, shortened
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.storage import open_regular
from axplore.types import RESET, Action, IntArray, State

COLUMNS: Final = ("state", "action", "next_state")
BLOCK: Final = 2**16
"""The number of transitions that are numbered at once."""

MOST_LABELS: Final = 2_000_000
"""Of states, and of actions. A log with more has labels without end, of which nothing can be proven."""

LONGEST_LINE: Final = 2**20

Offered = Callable[[State], Iterable[Action] | None] | Mapping[State, Iterable[Action]]
"""The actions of each state; None for one of which only the log tells them."""

Actions = Callable[[State], tuple[Action, ...] | None]

Columns = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Log:
    """What was logged.

    Attributes:
        counts: the transitions, where states are counted in the order in which they were first left.
        steps: the number of transitions, those of RESET included.
        early: how often each entry of the counts came in the first half of the log, [E].
        offered: returns the actions of any state, where that was declared; None where the log is all that is known.
        unsure: the indices of counted states whose actions only the log tells.
    """

    counts: Counts
    steps: int
    early: IntArray
    offered: Actions | None = None
    unsure: tuple[int, ...] = ()


class _Numbers:
    """Numbers things in the order in which they come, each of which stands for a label.

    Different things may stand for one label, as two spellings of a JSON value do: then they have one number.
    """

    def __init__(self, label_of_thing: Callable[[Any], Hashable]) -> None:
        self._label_of = label_of_thing
        self._numbers: dict[Any, int] = {}
        self._of_labels: dict[Hashable, int] = {}
        self.labels: list[Hashable] = []

    def of(self, things: Sequence[Any]) -> IntArray:
        """Returns the number of each thing, [n]."""
        try:
            for thing in set(things) - self._numbers.keys():
                self._numbers[thing] = self._number_of(self._label_of(thing))
        except TypeError:
            raise InvalidInputError("a state or an action cannot be a label, because it is not hashable") from None
        return np.fromiter(map(self._numbers.__getitem__, things), dtype=np.int64, count=len(things))

    def _number_of(self, label: Hashable) -> int:
        written = RESET_TEXT if label is RESET else canonical_json(encode_label(label))  # refuses what no file can hold
        number = self._of_labels.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
        elif label is not RESET and written != canonical_json(encode_label(self.labels[number])):
            raise InvalidInputError(
                f"{shortened(self.labels[number])} and {shortened(label)} are equal in Python, and not the same; use "
                "one of them"
            )
        if len(self.labels) > MOST_LABELS:
            raise InvalidInputError(
                f"there are more than {MOST_LABELS:,} labels; leave out of them what is new at every step, such as a "
                "counter, a time or an identifier"
            )
        return number


def read_log(
    source: str | os.PathLike[str] | Iterable[Any], *, initial: State | None = None, actions: Offered | None = None
) -> Log:
    """Returns what was logged.

    Args:
        source: a file whose name ends in .csv, .jsonl, .ndjson or .parquet, or an iterable of transitions.
        initial: the initial state; by default, the one to which RESET leads, or else the first one of the log.
        actions: the actions of each state; by default, those that were played in it.

    Raises:
        InvalidInputError: it is no log: the message names what is wrong, and where.
        StorageError: the file cannot be read.
    """
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    blocks, to_label = (_blocks_of(source), _label_of_typed) if path is None else _opened(path)
    states, played = _Numbers(to_label), _Numbers(to_label)
    parts: list[tuple[IntArray, IntArray, IntArray]] = []
    n_rows = 0
    try:
        for before, action, after in blocks:
            numbered = states.of(before), played.of(action), states.of(after)
            parts.append(tuple(column.astype(np.int32) for column in numbered))  # type: ignore[arg-type]
            n_rows += len(action)
    except InvalidInputError as error:
        named = "" if path is None else f"{path}: "
        raise DamagedFileError(f"{named}{error}") from None
    if not n_rows:
        raise DamagedFileError(f"{path or 'the log'} has no transition")
    columns = [np.concatenate([part[place] for part in parts]) for place in range(3)]
    parts.clear()
    offered = None if actions is None else partial(_offered, actions)
    return _counted(columns, states.labels, played.labels, initial, offered)


def _blocks_of(transitions: Any) -> Iterator[Columns]:
    if not isinstance(transitions, Iterable):
        raise InvalidSettingError("transitions are neither a path nor an iterable of (state, action, next state)")
    rows, n_read = iter(transitions), 0
    while block := list(islice(rows, BLOCK)):
        for row in block:
            n_read += 1
            if not isinstance(row, tuple | list) or len(row) != 3:
                raise InvalidInputError(f"transition {n_read:,}, {shortened(row)}, is not (state, action, next state)")
        before, action, after = zip(*block, strict=True)
        yield _typed(before), _typed(action), _typed(after)


def _typed(things: Sequence[Any]) -> list[tuple[type, Any]]:
    """Returns things with their types: 1, 1.0 and True would be one otherwise, and that would go unnoticed."""
    return list(zip(map(type, things), things, strict=True))


def _label_of_typed(typed: tuple[type, Any]) -> Hashable:
    label: Hashable = plain(typed[1])
    return label


def _opened(path: Path) -> tuple[Iterator[Columns], Callable[[Any], Hashable]]:
    """Returns the blocks of a file, and how what stands in them becomes a label."""
    readers: Mapping[str, tuple[Callable[[Path], Iterator[Columns]], Callable[[Any], Hashable]]] = {
        ".csv": (_csv_blocks, _label_of_text),
        ".jsonl": (_json_blocks, _label_of_raw),
        ".ndjson": (_json_blocks, _label_of_raw),
        ".parquet": (_parquet_blocks, _label_of_cell),
    }
    if path.suffix.lower() not in readers:
        raise InvalidSettingError(f"{path} is no log: its name must end in {', '.join(readers)}")
    read, to_label = readers[path.suffix.lower()]
    return read(path), to_label


def _label_of_text(text: str) -> Hashable:
    if not text:
        raise InvalidInputError('a cell is empty; the empty text is written ""')
    return RESET if text == RESET_TEXT else label_of(text)


def _label_of_raw(raw: bytes) -> Hashable:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInputError(f"{shortened(raw)} is not a label: {error}") from None
    return RESET if value == RESET_TEXT else label_of_json(value)


def _label_of_cell(cell: Any) -> Hashable:
    if cell is None:
        raise InvalidInputError("a cell has no value")
    return _label_of_text(cell) if isinstance(cell, str) else label_of_json(cell)


def _lines(path: Path) -> Iterator[str]:
    """Yields the lines of a text file; refuses one that is too long, and what is no text."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except OSError as error:
        raise StorageError(f"the log {path} cannot be read: {error.strerror}") from None
    with open(descriptor, encoding="utf-8-sig", newline="") as file:
        try:
            for line in iter(partial(file.readline, LONGEST_LINE), ""):
                if len(line) == LONGEST_LINE:
                    raise InvalidInputError(f"a line has more than {LONGEST_LINE:,} characters")
                yield line
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"it is not text in UTF-8: {error.reason}") from None


def _csv_blocks(path: Path) -> Iterator[Columns]:
    rows, n_read = csv.reader(_lines(path), strict=True), 0
    try:
        header = next(rows, [])
        missing = [name for name in COLUMNS if header.count(name) != 1]
        if missing:
            raise InvalidInputError(f"its first line must name {', '.join(COLUMNS)} once each; see {missing[0]}")
        places = [header.index(name) for name in COLUMNS]
        while block := list(islice(rows, BLOCK)):
            for row in block:
                n_read += 1
                if len(row) != len(header):
                    raise InvalidInputError(
                        f"transition {n_read:,}, {shortened(row)}, has {len(row)} cells in place of {len(header)}"
                    )
            columns = tuple(zip(*block, strict=True))
            yield columns[places[0]], columns[places[1]], columns[places[2]]
    except csv.Error as error:
        raise InvalidInputError(f"it is not CSV: {error}") from None


class _Line(msgspec.Struct):
    """A transition as an object of JSON; other fields are ignored."""

    state: msgspec.Raw
    action: msgspec.Raw
    next_state: msgspec.Raw


def _json_blocks(path: Path) -> Iterator[Columns]:
    decoder = msgspec.json.Decoder(_Line)
    lines = (line for line in _lines(path) if not line.isspace())
    n_read = 0
    while block := list(islice(lines, BLOCK)):
        columns: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
        for line in block:
            n_read += 1
            try:
                row = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
                raise InvalidInputError(f"transition {n_read:,}, {shortened(line.strip())}, is none: {error}") from None
            columns[0].append(bytes(row.state))
            columns[1].append(bytes(row.action))
            columns[2].append(bytes(row.next_state))
        yield columns


def _parquet_blocks(path: Path) -> Iterator[Columns]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InvalidSettingError("Parquet needs pyarrow: pip install 'axplore[export]'") from None
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            log = parquet.ParquetFile(file)
            missing = [name for name in COLUMNS if name not in log.schema_arrow.names]
            if missing:
                raise InvalidInputError(f"it has no column {missing[0]}; it needs {', '.join(COLUMNS)}")
            for batch in log.iter_batches(BLOCK, columns=list(COLUMNS)):
                state, action, next_state = (batch.column(name).to_pylist() for name in COLUMNS)
                yield state, action, next_state
    except OSError as error:  # an error of Arrow may be one of these
        raise StorageError(f"the log {path} cannot be read: {error}") from None
    except ArrowException as error:
        raise InvalidInputError(f"it is not Parquet: {error}") from None


def _counted(
    columns: list[Any], states: list[Hashable], played: list[Hashable], initial: State | None, offered: Actions | None
) -> Log:
    """Returns the log of numbered transitions."""
    before, action, after = columns
    n_rows = len(action)
    if RESET in states:
        place = states.index(RESET)
        first = int(np.flatnonzero((before == place) | (after == place))[0]) + 1
        raise DamagedFileError(
            f"transition {first:,} has RESET for a state, but RESET is an action: give a state of this name another "
            "label"
        )
    resets = played.index(RESET) if RESET in played else -1
    start = _start(before, action, after, states, resets, initial)
    drawn = action != resets
    before, action, after = before[drawn], action[drawn], after[drawn]
    columns.clear()  # a long log takes most of the memory, here and below
    order = _order_of_appearance(before, after, start, len(states))
    numbers = np.empty(len(states), dtype=np.int64)
    numbers[:] = -1
    numbers[order] = np.arange(len(order))
    labels = Labels(states[place] for place in order.tolist())
    counts, early, unsure = _rows(numbers[before], action.astype(np.int64), numbers[after], labels, played, offered)
    return Log(counts, n_rows, early, offered, unsure)


def _start(before: Any, action: Any, after: Any, states: list[Hashable], resets: int, initial: State | None) -> int:
    """Returns the initial state; refuses a log in which RESET leads elsewhere."""
    begun = np.unique(after[action == resets])
    if len(begun) > 1:
        named = " and ".join(readable(states[place]) for place in begun[:2].tolist())
        raise DamagedFileError(f"RESET leads to {named}: there must be one initial state")
    if initial is None:
        return int(begun[0]) if len(begun) else int(before[0])
    if initial not in states:
        raise InvalidSettingError(f"the initial state {shortened(initial)} is not in the log")
    start = states.index(initial)
    if len(begun) and start != begun[0]:
        raise InvalidSettingError(
            f"initial is {shortened(initial)}, but RESET leads to {readable(states[int(begun[0])])} in the log"
        )
    return start


def _first_places(numbers: Any, n: int) -> IntArray:
    """Returns where each number stands first; the length of all where it does not, [n]."""
    places = np.full(n, len(numbers), dtype=np.int64)
    places[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return places


def _order_of_appearance(before: Any, after: Any, start: int, n_states: int) -> IntArray:
    """Returns the states in the order in which they appear, the initial one first; those of RESET alone are none."""
    left, met = _first_places(before, n_states), _first_places(after, n_states)
    moments = np.minimum(2 * left, 2 * met + 1)
    moments[start] = -1
    order = np.argsort(moments, kind="stable")
    return order[moments[order] < 2 * len(before)].astype(np.int64)


def _rows(
    before: IntArray, action: IntArray, after: IntArray, labels: Labels, played: list[Hashable], offered: Actions | None
) -> tuple[Counts, IntArray, tuple[int, ...]]:
    """Returns the counts, those of the first half, and the states whose actions only the log tells.

    The rank of a state is its place in the order in which states were first left.
    """
    n_states = len(labels)
    first_left = _first_places(before, n_states)
    ranked = np.argsort(first_left, kind="stable")
    ranked = ranked[first_left[ranked] < len(before)]
    ranked = np.concatenate(([0], ranked[ranked != 0]))  # the initial state is counted before anything is drawn
    actions, pair_of, unsure = _pairs(ranked, before, action, labels, played, offered)
    pairs = pair_of(before, action)
    del before, action
    n_pairs = sum(map(len, actions))
    by_pair = np.argsort(pairs, kind="stable")
    firsts = offsets_from(np.bincount(pairs, minlength=n_pairs))
    entries = (pairs * n_states + after)[by_pair]
    in_first_half = by_pair < len(by_pair) // 2
    del pairs, after, by_pair
    found, first_rows, counts = np.unique(entries, return_index=True, return_counts=True)
    early = np.bincount(np.searchsorted(found, entries[in_first_half]), minlength=len(found))
    del entries, in_first_half
    entry_pairs = found // n_states
    first_draws = first_rows - firsts[entry_pairs] + 1
    ordered = np.lexsort((first_draws, entry_pairs))
    counted = Counts(
        labels,
        actions,
        ranked.astype(np.int64),
        offsets_from(np.bincount(entry_pairs, minlength=n_pairs)),
        (found % n_states)[ordered],
        counts[ordered].astype(np.int64),
        first_draws[ordered].astype(np.int64),
    )
    return counted, early[ordered].astype(np.int64), unsure


def _pairs(
    ranked: IntArray,
    before: IntArray,
    action: IntArray,
    labels: Labels,
    played: list[Hashable],
    offered: Actions | None,
) -> tuple[tuple[Labels, ...], Callable[[IntArray, IntArray], IntArray], tuple[int, ...]]:
    """Returns the actions of each counted state, what numbers pairs, and the states whose actions no one else tells."""
    keys, first_rows = np.unique(before * len(played) + action, return_index=True)
    by_first = keys[np.argsort(first_rows, kind="stable")]
    of_state: dict[int, list[int]] = {number: [] for number in ranked.tolist()}
    for key in by_first.tolist():
        of_state[key // len(played)].append(key % len(played))
    actions: list[Labels] = []
    pair_numbers: dict[int, int] = {}
    n_pairs, unsure = 0, []
    for number in ranked.tolist():
        names = [played[place] for place in of_state[number]]
        told = None if offered is None else offered(labels[number])
        listed = names if told is None else list(told)
        if told is None:
            unsure.append(number)
        for name in names:
            if name not in listed:
                where = readable(labels[number])
                raise InvalidSettingError(f"the log plays {readable(name)} in {where}, which actions lacks")
        places = {name: place for place, name in enumerate(listed)}
        for place in of_state[number]:
            pair_numbers[number * len(played) + place] = n_pairs + places[played[place]]
        actions.append(Labels(listed))
        n_pairs += len(listed)
    numbers = np.array([pair_numbers[key] for key in keys.tolist()], dtype=np.int64)
    return (
        tuple(actions),
        lambda states, chosen: numbers[np.searchsorted(keys, states * len(played) + chosen)],
        tuple(unsure),
    )


def _offered(actions: Offered, state: State) -> tuple[Action, ...] | None:
    """Returns the actions of a state, as they were declared; None if only the log tells them."""
    try:
        told = actions(state) if callable(actions) else actions[state]
        return None if told is None else tuple(dict.fromkeys(told))
    except KeyError:
        raise InvalidSettingError(f"actions lacks the state {readable(state)}, which is in the log") from None
