"""What a run folder tells of the time: how the run began, and its events. Only read, and without the run's lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from axplore.runs.events import NAME as EVENTS
from axplore.runs.events import read_events
from axplore.runs.origin import NAME as ORIGIN
from axplore.runs.origin import Origin, load_origin

STARTS = ("began", "resumed")

MISHAPS = {
    "": "the system failed and was started again",
    "LOST": "a worker was lost",
    "FAILED": "the system failed at a worker",
    "SLOW": "a worker was slow",
}
"""What to say of events, by the kind of what happened to a worker."""


@dataclass(frozen=True)
class History:
    """How a run went.

    Attributes:
        origin: how it began; None of a folder that holds an atlas only.
        events: everything noted since.
    """

    origin: Origin | None = None
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def seconds(self) -> float | None:
        """How long it ran, times between a kill and its resumption not counted; None if nobody knows."""
        total, since, last = 0.0, None, None
        for event in self.events:
            moment = datetime.fromisoformat(event["time"])
            if event["event"] in STARTS and since is not None and last is not None:
                total += (last - since).total_seconds()
            if event["event"] in STARTS:
                since = moment
            last = moment
        return None if since is None or last is None else total + (last - since).total_seconds()

    @property
    def processor_seconds(self) -> float | None:
        """How long its process was computing; None if nobody knows, as after a kill."""
        starts = sum(event["event"] in STARTS for event in self.events)
        taken = [event.get("processor_seconds") for event in self.events if event["event"] == "ended"]
        known = [seconds for seconds in taken if seconds is not None]
        return sum(known) if starts and len(known) == starts else None

    @property
    def rounds(self) -> list[Mapping[str, Any]]:
        """The events that tell steps, known states and frontier."""
        return [event for event in self.events if event["event"] == "round"]

    @property
    def mishaps(self) -> str:
        """What went wrong and was made good: faults of the system, and what happened to workers; empty if nothing."""
        kinds = Counter(
            event["kind"] if event["event"] == "worker" else "" for event in self.events if _is_mishap(event)
        )
        return ", ".join(f"{_times(count)} {MISHAPS.get(kind, MISHAPS[''])}" for kind, count in sorted(kinds.items()))

    def bounds(self, last: int) -> list[Mapping[str, Any]]:
        """The events that tell bounds of the known states, with growing steps up to the last.

        What was noted before steps were lost, as when a run is killed, gives way to what was noted after it.
        """
        kept: list[Mapping[str, Any]] = []
        for event in self.events:
            if event["event"] == "bounds" and event["steps"] <= last:
                while kept and kept[-1]["steps"] >= event["steps"]:
                    kept.pop()
                kept.append(event)
        return kept


def history_of(folder: Path) -> History:
    """What a folder tells; nothing if it holds an atlas only."""
    if not (folder / ORIGIN).is_file():
        return History()
    events = tuple(read_events(folder)) if (folder / EVENTS).is_file() else ()
    return History(load_origin(folder), events)


def _is_mishap(event: Mapping[str, Any]) -> bool:
    return event["event"] in ("fault", "worker")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
