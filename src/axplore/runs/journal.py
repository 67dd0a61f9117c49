"""The journal: the answers of the world since the last checkpoint, one record per call.

A record is written before the explorer gets the answer, so that a kill loses only the call in progress.

    header   a line of JSON: format, version, run, number of the checkpoint
    record   length of the content (8 bytes), CRC-32 of these, CRC-32 of the content (4 bytes each), content
    content  whole numbers of 8 bytes, and then the states discovered in this call and its faults, as JSON

All numbers are little-endian. A last record that is incomplete is the call that a kill interrupted, and is dropped.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from axplore.errors import AxploreError, DamagedFileError
from axplore.labels import Json, canonical_json, decode_label, encode_label
from axplore.records.codec import pack, unpack
from axplore.records.findings import Fault
from axplore.records.order import Labels
from axplore.storage import (
    MAX_SEALED_VALUES,
    check_format,
    open_regular,
    parsed_json,
    read_file,
    storage_errors,
    write_all,
)
from axplore.types import Action, IntArray, State
from axplore.worlds.contract import Answer, Order

FORMAT: Final = "axplore journal"
VERSION: Final = 3

SECONDS_BETWEEN_SYNCS: Final = 0.5
"""The shortest time between two syncs to disk, in seconds. A kill loses no record in any case."""

SCALARS: Final = ("steps", "completed", "arrivals", "travelled", "cut_journeys")
PAIR_ARRAYS: Final = ("pair_states", "pair_actions", "pair_draws")
ENTRY_ARRAYS: Final = ("entry_pairs", "entry_successors", "entry_counts", "entry_first_draws")
ARRAYS: Final = (*PAIR_ARRAYS, *ENTRY_ARRAYS, "outcomes")

HEAD: Final = 6
"""The number of numbers before the first answer of a record."""

_LENGTH: Final = struct.Struct("<Q")
_CHECKS: Final = struct.Struct("<II")
_FRAME: Final = _LENGTH.size + _CHECKS.size


@dataclass(frozen=True, eq=False)
class Call:
    """One call of `World.carry_out`.

    Attributes:
        checksum: the checksum of the orders.
        answers: the answers.
        discovered: the states discovered by the call, each with its actions.
        steps: the steps of the world after the call.
        position: the index of the state in which the agent stood then; -1 if the world does not tell.
        faults: the failures of the system during the call, where they are stored with the answers.
        was_cut: whether a limit cut the orders.
    """

    checksum: int
    answers: tuple[Answer, ...]
    discovered: tuple[tuple[State, tuple[Action, ...]], ...]
    steps: int
    position: int
    faults: tuple[Fault, ...] = ()
    was_cut: bool = False


class Journal:
    """A journal that is open for writing."""

    def __init__(self, path: Path, header: Mapping[str, Any], length: int) -> None:
        """Opens a journal to append after its first `length` bytes; with 0, begins a new one.

        Args:
            path: the path of the file.
            header: the header, see `header_of`.
            length: the length that `read_journal` returned.
        """
        self._path = path
        self._synced_at = -float("inf")
        with self._errors():
            self._descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._length = length
            self.cut(length)
            if not length:
                self._write(_line(header))

    @property
    def length(self) -> int:
        """The length in bytes."""
        return self._length

    def append(self, call: Call) -> None:
        """Appends a record, whole or not at all."""
        content = _content_of(call)
        length = _LENGTH.pack(len(content))
        with self._errors():
            self._write(length + _CHECKS.pack(zlib.crc32(length), zlib.crc32(content)) + content)
            if time.monotonic() >= self._synced_at + SECONDS_BETWEEN_SYNCS:
                os.fsync(self._descriptor)
                self._synced_at = time.monotonic()

    def cut(self, length: int) -> None:
        """Drops everything after the first `length` bytes."""
        with self._errors():
            os.ftruncate(self._descriptor, length)
            self._length = length

    def close(self) -> None:
        """Closes the file."""
        with self._errors():
            os.close(self._descriptor)

    def _write(self, content: bytes) -> None:
        try:
            write_all(self._descriptor, content)
        except OSError:
            with suppress(OSError):  # an incomplete record would be dropped when it is read
                os.ftruncate(self._descriptor, self._length)
            raise
        self._length += len(content)

    def _errors(self) -> AbstractContextManager[None]:
        return storage_errors(f"{self._path} cannot be written")


def header_of(run: str, checkpoint: int) -> dict[str, Any]:
    """Returns the header of the journal after a checkpoint of a run."""
    return {"format": FORMAT, "version": VERSION, "run": run, "checkpoint": checkpoint}


def read_journal(path: Path, header: Mapping[str, Any]) -> tuple[list[Call], list[int]]:
    """Returns the calls in a journal, [n], and the offset in bytes of each and of the end of the last, [n + 1].

    A file that does not exist, or ends within its header, holds no calls and has length 0.
    """
    try:
        content = read_file(path)
    except FileNotFoundError:
        return [], [0]
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None
    wanted = _line(header)
    if len(content) < len(wanted) and wanted.startswith(content):
        return [], [0]
    if not content.startswith(wanted):
        _refuse_header(path, content, header)
    calls: list[Call] = []
    lengths = [len(wanted)]
    for end, record in _records(path, content, lengths[0]):
        calls.append(_call_from(path, record, len(calls)))
        lengths.append(end)
    return calls, lengths


def _line(header: Mapping[str, Any]) -> bytes:
    return canonical_json(header).encode("ascii") + b"\n"


def _refuse_header(path: Path, content: bytes, wanted: Mapping[str, Any]) -> NoReturn:
    try:
        header = parsed_json(content.partition(b"\n")[0])
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise DamagedFileError(f"{path} is damaged: its first line is not that of a journal")
    check_format(path, header, wanted["format"], wanted["version"])
    after = f" after checkpoint {wanted['checkpoint']}" if "checkpoint" in wanted else ""
    raise DamagedFileError(f"{path} is not the journal of this run{after}")


def _records(path: Path, content: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yields the contents of the records from an offset on, each with the offset where it ends."""
    while len(content) - offset >= _FRAME:
        packed = content[offset : offset + _LENGTH.size]
        length_check, content_check = _CHECKS.unpack_from(content, offset + _LENGTH.size)
        start = offset + _FRAME
        end = start + _LENGTH.unpack(packed)[0]
        if zlib.crc32(packed) != length_check:
            if any(content[offset:]):
                _refuse_record(path, offset)
            return  # space that was allocated but not written before a power failure
        if end > len(content):
            return
        if zlib.crc32(content[start:end]) != content_check:
            if end < len(content):
                _refuse_record(path, offset)
            return
        yield end, content[start:end]
        offset = end


def _refuse_record(path: Path, offset: int) -> NoReturn:
    raise DamagedFileError(
        f"{path} is damaged at byte {offset}. If you remove this file, the run resumes from the last checkpoint"
    )


def _content_of(call: Call) -> bytes:
    text = b""
    if call.discovered or call.faults:
        noted = {"states": encode_states(call.discovered), "faults": pack(call.faults)[0]}
        text = canonical_json(noted).encode("ascii")
    head = [call.checksum, call.steps, call.position, int(call.was_cut), len(text), len(call.answers)]
    parts = [np.array(head, dtype="<i8")]
    for answer in call.answers:
        sizes = (len(answer.pair_states), len(answer.entry_pairs), len(answer.outcomes))
        parts.append(np.array([*(getattr(answer, name) for name in SCALARS), *sizes], dtype="<i8"))
        parts += [getattr(answer, name).astype("<i8", copy=False) for name in ARRAYS]
    return np.concatenate(parts).tobytes() + text


def _call_from(path: Path, content: bytes, number: int) -> Call:
    """Decodes the content of a record, whose checksum is right; refuses content that is not a call."""
    try:
        head = _numbers(content, 0, HEAD)
        checksum, steps, position, was_cut, text_size, n_answers = head.tolist()
        numbers = _numbers(content, HEAD, (len(content) - text_size) // 8 - HEAD)
        answers, used = _answers_from(numbers, n_answers)
        if used != len(numbers) or (used + HEAD) * 8 + text_size != len(content) or was_cut not in (0, 1):
            raise ValueError("its parts do not fit its length")
        text = content[len(content) - text_size :]
        noted = parsed_json(text, MAX_SEALED_VALUES) if text_size else {"states": [], "faults": []}
        discovered, faults = decode_states(noted["states"]), unpack(tuple[Fault, ...], noted["faults"])
    except (ValueError, TypeError, LookupError, AxploreError) as error:
        raise DamagedFileError(f"{path} is damaged: record {number} is not a call: {error}") from None
    return Call(checksum, answers, discovered, steps, position, faults, bool(was_cut))


def _numbers(content: bytes, start: int, size: int) -> IntArray:
    return np.frombuffer(content, "<i8", size, 8 * start).astype(np.int64)


def _answers_from(numbers: IntArray, n_answers: int) -> tuple[tuple[Answer, ...], int]:
    """Decodes `n_answers` answers from the beginning of the numbers; also returns how many numbers that took."""
    answers = []
    offset = 0
    for _ in range(n_answers):
        *scalars, n_pairs, n_entries, n_outcomes = _taken(numbers, offset, len(SCALARS) + 3).tolist()
        offset += len(SCALARS) + 3
        parts: dict[str, Any] = dict(zip(SCALARS, scalars, strict=True))
        for name in ARRAYS:
            size = n_pairs if name in PAIR_ARRAYS else n_entries if name in ENTRY_ARRAYS else n_outcomes
            parts[name] = _taken(numbers, offset, size)
            offset += size
        answers.append(Answer(**parts))
    return tuple(answers), offset


def _taken(numbers: IntArray, offset: int, size: int) -> IntArray:
    if not 0 <= size <= len(numbers) - offset:
        raise ValueError(f"{size} numbers from offset {offset} of {len(numbers)}")
    return numbers[offset : offset + size].copy()


def encode_states(states: Iterable[tuple[State, tuple[Action, ...]]]) -> Json:
    """Returns states, each with its actions, as JSON; refuses labels that are not plain."""
    return [[encode_label(state), Labels.shared(actions).as_json()] for state, actions in states]


def decode_states(encoded: Json) -> tuple[tuple[State, tuple[Action, ...]], ...]:
    """Returns the states that `encode_states` was given."""
    return tuple((decode_label(state), Labels.from_json(actions).as_tuple()) for state, actions in encoded)


def checksum_of(orders: Sequence[Order]) -> int:
    """Returns a checksum of orders."""
    checksum = 0
    for order in orders:
        checksum = zlib.crc32(type(order).__name__.encode(), checksum)
        for field in fields(order):
            value = getattr(order, field.name)
            if isinstance(value, np.ndarray):
                checksum = zlib.crc32(f"{value.shape}".encode(), checksum)
                checksum = zlib.crc32(np.ascontiguousarray(value).tobytes(), checksum)
            else:
                checksum = zlib.crc32(f"{value}".encode(), checksum)
    return checksum
