"""The log of a run, `events.jsonl`: a line of JSON for each thing that happened, only ever added to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from axplore.errors import DamagedFileError
from axplore.storage import storage_errors, write_all

NAME: Final = "events.jsonl"


class EventLog:
    """A log that is written to."""

    def __init__(self, folder: Path) -> None:
        """Opens it; a last line that a kill left incomplete is dropped."""
        self._path = folder / NAME
        with storage_errors(f"{self._path} cannot be written"):
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            written = self._path.read_bytes()
            os.ftruncate(self._descriptor, written.rfind(b"\n") + 1)

    def note(self, event: str, **content: Any) -> None:
        """Adds a line with the time and the kind of the event before its content."""
        line = json.dumps({"time": now(), "event": event, **content}, allow_nan=False)
        with storage_errors(f"{self._path} cannot be written"):
            write_all(self._descriptor, line.encode("ascii") + b"\n")

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def read_events(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The events of a run, from the first; a last line that a kill left incomplete is no event."""
    path = folder / NAME
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
        except ValueError as error:
            raise DamagedFileError(f"{path} is damaged in line {number}: {error}") from None
        if not isinstance(event, dict) or "event" not in event:
            raise DamagedFileError(f"{path} is damaged: line {number} is no event")
        yield event


def now() -> str:
    """The time, as events give it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
