"""What a run folder tells of the time: how the run began, and its events. Only read, and without the run's lock."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from axplore.atlas import Atlas
from axplore.atlas.construction import summed_faults
from axplore.certificate.doubts import FaultRecord
from axplore.runs.events import NAME as EVENTS
from axplore.runs.events import read_events
from axplore.runs.manifest import NAME as ORIGIN
from axplore.runs.manifest import RunManifest, load_manifest
from axplore.storage import storage_errors
from axplore.types import FloatArray

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
        manifest: how it began; None of a folder that holds an atlas only.
        events: everything noted since.
    """

    manifest: RunManifest | None = None
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
        """What the run recovered from: faults of the system, and what happened to workers; empty if nothing."""
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
    return History(load_manifest(folder), events)


def faults_in(folder: Path) -> tuple[FaultRecord, ...]:
    """The failures of the system that the log of a run tells of.

    Lines that are damaged are left out: they are no reason not to go on with a run.
    """
    records = []
    with storage_errors(f"{folder / EVENTS} cannot be read"):
        lines = (folder / EVENTS).read_bytes().splitlines() if (folder / EVENTS).is_file() else []
    for line in lines:
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            event = json.loads(line)
            if event["event"] == "fault":
                records.append(FaultRecord.from_json(event["record"]))
    return summed_faults(records)


def _is_mishap(event: Mapping[str, Any]) -> bool:
    return event["event"] in ("fault", "worker")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


MAX_POINTS: Final = 100
"""The page has the bounds of at most this many moments,"""

MAX_VALUES: Final = 100_000
"""and at most this many lower and as many upper bounds in all."""


@dataclass(frozen=True, eq=False)
class Moment:
    """What was proven at a time.

    Attributes:
        steps: taken by then.
        lower: bounds of the states known by then, in the order of the atlas, [n].
        upper: bounds of the same states, infinite where nothing was proven, [n].
    """

    steps: int
    lower: FloatArray
    upper: FloatArray

    @property
    def widths(self) -> FloatArray:
        """Of the states that have an upper bound; not of the initial state, where nothing is to be proven, [m]."""
        widths = (self.upper - self.lower)[1:]
        return widths[np.isfinite(widths)]


def moments_of(atlas: Atlas, history: History) -> list[Moment]:
    """The moments that the log of a run tells, as many as fit on the page; the first and the last are among them."""
    events = [event for event in history.bounds(atlas.steps) if len(event["lower"]) <= len(atlas.states)]
    room = max(2, min(MAX_POINTS, MAX_VALUES // max(1, len(atlas.states))))
    places = np.unique(np.linspace(0, len(events) - 1, min(room, len(events))).round().astype(np.int64))
    return [_moment(events[place]) for place in places.tolist()]


def thousandths(moments: Sequence[Moment]) -> dict[str, Any]:
    """The bounds of all moments one after another, rounded to the safe side; -1 for infinity."""
    lower = np.concatenate([np.empty(0), *(moment.lower for moment in moments)])
    upper = np.concatenate([np.empty(0), *(moment.upper for moment in moments)])
    proven = np.isfinite(upper)
    return {
        "steps": [moment.steps for moment in moments],
        "known": [len(moment.lower) for moment in moments],
        "lower": np.floor(1000 * lower).astype(np.int64),
        "upper": np.where(proven, np.ceil(1000 * np.where(proven, upper, 0.0)), -1).astype(np.int64),
    }


def _moment(event: Mapping[str, Any]) -> Moment:
    upper = [math.inf if value is None else value for value in event["upper"]]
    return Moment(event["steps"], np.array(event["lower"], dtype=np.float64), np.array(upper, dtype=np.float64))
