"""The log of a run, `events.jsonl`: a line of JSON for each event, append-only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from axplore.errors import DamagedFileError, StorageError
from axplore.storage import MAX_JSON_BYTES, lines_of, open_regular, parsed_json, storage_errors, write_all

NAME: Final = "events.jsonl"

ROOM_FOR_PROGRESS: Final = MAX_JSON_BYTES // 2
"""The bytes for events that only show progress, so that there is always room for what matters."""

LARGEST_SHARE: Final = 8
"""One of them may take an eighth of what is left of that: the more they are, the smaller those that still fit."""


class EventLog:
    """A log that is open for writing."""

    def __init__(self, folder: Path) -> None:
        """Opens the log; drops a last line that a kill left incomplete."""
        self._path = folder / NAME
        with storage_errors(f"{self._path} cannot be written"):
            self._descriptor = open_regular(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self._size = sum(len(line) + 1 for line in lines_of(self._descriptor))
            os.ftruncate(self._descriptor, self._size)

    def note(self, event: str, **content: Any) -> None:
        """Appends a line with the time, the kind of the event, and its content; refuses more than is read."""
        line = _line(event, content)
        if self._size + len(line) > MAX_JSON_BYTES:
            raise StorageError(f"{self._path} is full: it has {self._size:,} bytes, and more are not read")
        with storage_errors(f"{self._path} cannot be written"):
            write_all(self._descriptor, line)
        self._size += len(line)

    def note_progress(self, event: str, **content: Any) -> None:
        """Does the same, if there is room for an event that nothing depends on."""
        if LARGEST_SHARE * len(_line(event, content)) <= ROOM_FOR_PROGRESS - self._size:
            self.note(event, **content)

    def read(self) -> tuple[Mapping[str, Any], ...]:
        """Returns all events of the run."""
        with storage_errors(f"{self._path} cannot be read"):
            return tuple(_events_in(lines_of(self._descriptor), self._path))

    def sync(self) -> None:
        """Waits until everything noted is on the disk."""
        with storage_errors(f"{self._path} cannot be written"):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def read_events(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the events of a run in order; ignores a last line that a kill left incomplete.

    Raises:
        DamagedFileError: a line is not an event, or its content is invalid.
    """
    return _events_in(read_lines(folder), folder / NAME)


def read_lines(folder: Path) -> Iterator[bytes]:
    """Yields the complete lines of the log of a run, whatever they hold."""
    path = folder / NAME
    try:
        descriptor = open_regular(path, os.O_RDONLY)
        try:
            yield from lines_of(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None


def _line(event: str, content: Mapping[str, Any]) -> bytes:
    return json.dumps({"time": now(), "event": event, **content}, allow_nan=False).encode("ascii") + b"\n"


def _events_in(lines: Iterable[bytes], path: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the events of the lines of a log; the path is for messages."""
    for number, line in enumerate(lines, start=1):
        try:
            event = parsed_json(line)
        except ValueError as error:
            raise DamagedFileError(f"{path} is damaged in line {number}: {error}") from None
        flaw = _flaw(event)
        if flaw is not None:
            raise DamagedFileError(f"{path} is damaged in line {number}: {flaw}")
        yield event


COUNTS: Final[Mapping[str, Sequence[str]]] = {"round": ("round", "known", "frontier", "steps"), "bounds": ("steps",)}
"""The fields of events that are whole numbers."""

LARGEST: Final = 1e12
"""The largest bound or number of seconds that is accepted."""


def _flaw(event: Any) -> str | None:
    """Returns what is wrong with the fields of an event that are read; None if nothing is."""
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return "it is not an event"
    if not _is_time(event.get("time")):
        return f"its time is {event.get('time')!r}"
    kind = event["event"]
    for name in COUNTS.get(kind, ()):
        value = event.get(name)
        if type(value) is not int or value < 0:
            return f"{name} is {value!r}; it must be a whole number, 0 or more"
    if kind in ("fault", "worker") and not isinstance(event.get("kind"), str):
        return f"kind is {event.get('kind')!r}; it must be a name"
    if kind == "ended" and not (event.get("processor_seconds") is None or _is_number(event["processor_seconds"])):
        return f"processor_seconds is {event['processor_seconds']!r}; it must be a number, 0 or more"
    return _flaw_of_bounds(event.get("lower"), event.get("upper")) if kind == "bounds" else None


def _flaw_of_bounds(lower: Any, upper: Any) -> str | None:
    if not isinstance(lower, list) or not isinstance(upper, list) or not len(lower) == len(upper) > 0:
        return "lower and upper must be lists with an item for each known state"
    if not all(map(_is_number, lower)) or not all(value is None or _is_number(value) for value in upper):
        return "a bound must be a number, 0 or more; an upper one may be null"
    return None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= LARGEST


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def now() -> str:
    """Returns the current time in the format of events."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
