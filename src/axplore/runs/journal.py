"""The journal: what the world answered since the last checkpoint, a record for each call.

A record is written when the world has answered and before the explorer hears of it, so that a kill loses no more than
the call in progress.

    header   a line of JSON: format, version, run, number of the checkpoint
    record   length of the content (8 bytes), CRC-32 of these, CRC-32 of the content (4 bytes each), content
    content  whole numbers of 8 bytes, and then the states discovered in this call, as JSON

All numbers are little-endian. A last record that is incomplete is the call that a kill interrupted, and is dropped.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from axplore.errors import AxploreError, DamagedFileError
from axplore.labels import Json, canonical_json, decode_label, encode_label
from axplore.storage import check_format, storage_errors, write_all
from axplore.types import Action, IntArray, State
from axplore.worlds.contract import Answer

FORMAT: Final = "axplore journal"
VERSION: Final = 2

SECONDS_BETWEEN_SYNCS: Final = 0.5
"""A record is forced to the disk unless one was so short a time before; a kill loses none in any case."""

SCALARS: Final = ("steps", "completed", "arrivals", "travelled", "cut_journeys")
PAIR_ARRAYS: Final = ("pair_states", "pair_actions", "pair_draws")
ENTRY_ARRAYS: Final = ("entry_pairs", "entry_successors", "entry_counts", "entry_first_draws")
ARRAYS: Final = (*PAIR_ARRAYS, *ENTRY_ARRAYS, "outcomes")

_LENGTH: Final = struct.Struct("<Q")
_CHECKS: Final = struct.Struct("<II")
_FRAME: Final = _LENGTH.size + _CHECKS.size


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a world's `carry_out`.

    Attributes:
        checksum: of the orders.
        answers: to them.
        discovered: the states discovered meanwhile, each with its actions.
        steps: the steps of the world after it.
        position: the number of the state in which the agent stood then; -1 if the world does not say.
    """

    checksum: int
    answers: tuple[Answer, ...]
    discovered: tuple[tuple[State, tuple[Action, ...]], ...]
    steps: int
    position: int


class Journal:
    """A journal that is written to."""

    def __init__(self, path: Path, header: Mapping[str, Any], length: int) -> None:
        """Opens it to go on after its first `length` bytes; with none it begins.

        Args:
            path: of the file.
            header: see `header_of`.
            length: as `read_journal` gave it.
        """
        self._path = path
        self._synced_at = -float("inf")
        with self._errors():
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            self._length = length
            self.cut(length)
            if not length:
                self._write(_line(header))

    @property
    def length(self) -> int:
        """In bytes."""
        return self._length

    def append(self, call: Call) -> None:
        """Writes a record, whole or not at all."""
        content = _content_of(call)
        length = _LENGTH.pack(len(content))
        with self._errors():
            self._write(length + _CHECKS.pack(zlib.crc32(length), zlib.crc32(content)) + content)
            if time.monotonic() >= self._synced_at + SECONDS_BETWEEN_SYNCS:
                os.fsync(self._descriptor)
                self._synced_at = time.monotonic()

    def cut(self, length: int) -> None:
        """Drops everything after so many bytes."""
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
            with suppress(OSError):  # what is left of it would be dropped when it is read
                os.ftruncate(self._descriptor, self._length)
            raise
        self._length += len(content)

    def _errors(self) -> AbstractContextManager[None]:
        return storage_errors(f"{self._path} cannot be written")


def header_of(run: str, checkpoint: int) -> dict[str, Any]:
    """What the journal of a run after a checkpoint begins with."""
    return {"format": FORMAT, "version": VERSION, "run": run, "checkpoint": checkpoint}


def read_journal(path: Path, header: Mapping[str, Any]) -> tuple[list[Call], list[int]]:
    """The calls in a journal, [n], and the length in bytes of its part before each and after the last, [n + 1].

    A file that does not exist, or not beyond a part of its header, holds no calls and has no length.
    """
    try:
        content = path.read_bytes()
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
        header = json.loads(content.partition(b"\n")[0])
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise DamagedFileError(f"{path} is damaged: its first line is not that of a journal")
    check_format(path, header, wanted["format"], wanted["version"])
    after = f" after checkpoint {wanted['checkpoint']}" if "checkpoint" in wanted else ""
    raise DamagedFileError(f"{path} is not the journal of this run{after}")


def _records(path: Path, content: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    """The contents of the records from a place on, each with the place where it ends."""
    while len(content) - place >= _FRAME:
        packed = content[place : place + _LENGTH.size]
        length_check, content_check = _CHECKS.unpack_from(content, place + _LENGTH.size)
        start = place + _FRAME
        end = start + _LENGTH.unpack(packed)[0]
        if zlib.crc32(packed) != length_check:
            if any(content[place:]):
                _refuse_record(path, place)
            return  # room that was set aside when the power went
        if end > len(content):
            return
        if zlib.crc32(content[start:end]) != content_check:
            if end < len(content):
                _refuse_record(path, place)
            return
        yield end, content[start:end]
        place = end


def _refuse_record(path: Path, place: int) -> NoReturn:
    raise DamagedFileError(
        f"{path} is damaged at byte {place}. Without this file the run goes on from the checkpoint before it"
    )


def _content_of(call: Call) -> bytes:
    text = canonical_json(encode_states(call.discovered)).encode("ascii") if call.discovered else b""
    parts = [np.array([call.checksum, call.steps, call.position, len(text), len(call.answers)], dtype="<i8")]
    for answer in call.answers:
        sizes = (len(answer.pair_states), len(answer.entry_pairs), len(answer.outcomes))
        parts.append(np.array([*(getattr(answer, name) for name in SCALARS), *sizes], dtype="<i8"))
        parts += [getattr(answer, name).astype("<i8", copy=False) for name in ARRAYS]
    return np.concatenate(parts).tobytes() + text


def _call_from(path: Path, content: bytes, number: int) -> Call:
    """The call of a record's content, which fits its checksum: if it is no call, something else has written it."""
    try:
        head = _numbers(content, 0, 5)
        checksum, steps, position, text_size, n_answers = head.tolist()
        numbers = _numbers(content, 5, (len(content) - text_size) // 8 - 5)
        answers, used = _answers_from(numbers, n_answers)
        if used != len(numbers) or (used + 5) * 8 + text_size != len(content):
            raise ValueError("its parts do not fit its length")
        discovered = decode_states(json.loads(content[len(content) - text_size :]) if text_size else [])
    except (ValueError, TypeError, AxploreError) as error:
        raise DamagedFileError(f"{path} is damaged: record {number} is not a call: {error}") from None
    return Call(checksum, answers, discovered, steps, position)


def _numbers(content: bytes, start: int, size: int) -> IntArray:
    return np.frombuffer(content, "<i8", size, 8 * start).astype(np.int64)


def _answers_from(numbers: IntArray, n_answers: int) -> tuple[tuple[Answer, ...], int]:
    """So many answers from the beginning of the numbers, and how many numbers that took."""
    answers = []
    place = 0
    for _ in range(n_answers):
        *scalars, n_pairs, n_entries, n_outcomes = _taken(numbers, place, len(SCALARS) + 3).tolist()
        place += len(SCALARS) + 3
        parts: dict[str, Any] = dict(zip(SCALARS, scalars, strict=True))
        for name in ARRAYS:
            size = n_pairs if name in PAIR_ARRAYS else n_entries if name in ENTRY_ARRAYS else n_outcomes
            parts[name] = _taken(numbers, place, size)
            place += size
        answers.append(Answer(**parts))
    return tuple(answers), place


def _taken(numbers: IntArray, place: int, size: int) -> IntArray:
    if not 0 <= size <= len(numbers) - place:
        raise ValueError(f"{size} numbers from place {place} of {len(numbers)}")
    return numbers[place : place + size].copy()


def encode_states(states: Iterable[tuple[State, tuple[Action, ...]]]) -> Json:
    """States, each with its actions, as JSON; refuses labels that are not plain."""
    return [[encode_label(state), [encode_label(action) for action in actions]] for state, actions in states]


def decode_states(encoded: Json) -> tuple[tuple[State, tuple[Action, ...]], ...]:
    """What `encode_states` was given."""
    return tuple((decode_label(state), tuple(decode_label(action) for action in actions)) for state, actions in encoded)
