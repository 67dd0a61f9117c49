"""The history of a run: its manifest and events. Reads only, and without the lock of the run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from axplore.atlas import Atlas
from axplore.certificate.doubts import summed_faults
from axplore.records.codec import unpack
from axplore.records.findings import Fault, Finding
from axplore.runs.events import NAME as EVENTS
from axplore.runs.events import read_events, read_lines
from axplore.runs.manifest import NAME as ORIGIN
from axplore.runs.manifest import RunManifest, load_manifest
from axplore.storage import parsed_json
from axplore.types import FloatArray

Record = TypeVar("Record", Fault, Finding)

STARTS = ("began", "resumed")

FINDING: Final = "finding"
"""The event that something was found of the system."""

ANSWERED: Final = "answered"
"""The event that a property was answered, with its bounds and the steps until then."""

REFINED: Final = "refined"
"""The event after which exploring began anew with other labels."""

EXAMINING: Final = "examining"
"""The event that the system is examined beside the exploration, with the steps that are reserved for that."""

EXAMINED: Final = "examined"
"""The event that this is over."""

MISHAPS = {
    "": "the system failed and was restarted",
    "LOST": "a worker was lost",
    "FAILED": "the system failed at a worker",
    "SLOW": "a worker was slow",
}
"""Descriptions of mishaps, by the kind of the event."""


@dataclass(frozen=True)
class History:
    """The history of a run.

    Attributes:
        manifest: how the run began; None for a folder that only holds an atlas.
        events: all events since.
    """

    manifest: RunManifest | None = None
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def seconds(self) -> float | None:
        """The duration of the run, without the times between a kill and its resumption; None if unknown."""
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
        """The processor time of the run; None if unknown, for example after a kill."""
        starts = sum(event["event"] in STARTS for event in self.events)
        taken = [event.get("processor_seconds") for event in self.events if event["event"] == "ended"]
        known = [seconds for seconds in taken if seconds is not None]
        return sum(known) if starts and len(known) == starts else None

    @property
    def rounds(self) -> list[Mapping[str, Any]]:
        """The events with steps, known states and frontier."""
        return [event for event in self._under_these_labels if event["event"] == "round"]

    @property
    def mishaps(self) -> str:
        """Describes what the run recovered from, faults of the system and incidents of workers; empty if nothing."""
        kinds = Counter(
            event["kind"] if event["event"] == "worker" else "" for event in self.events if _is_mishap(event)
        )
        return ", ".join(f"{_times(count)} {MISHAPS.get(kind, MISHAPS[''])}" for kind, count in sorted(kinds.items()))

    @property
    def _under_these_labels(self) -> tuple[Mapping[str, Any], ...]:
        """The events since labels were last refined, when exploring began anew."""
        kinds = [event["event"] for event in self.events]
        return self.events if REFINED not in kinds else self.events[len(kinds) - kinds[::-1].index(REFINED) :]

    def bounds(self, last: int) -> list[Mapping[str, Any]]:
        """Returns the events with bounds of the known states, with increasing steps up to the last.

        When a run is killed, it may lose steps. Events logged after it resumed replace those of the lost steps.
        """
        kept: list[Mapping[str, Any]] = []
        for event in self._under_these_labels:
            if event["event"] == "bounds" and event["steps"] <= last:
                while kept and kept[-1]["steps"] >= event["steps"]:
                    kept.pop()
                kept.append(event)
        return kept


def history_of(folder: Path) -> History:
    """Returns the history in a folder; an empty one if the folder only holds an atlas."""
    if not (folder / ORIGIN).is_file():
        return History()
    events = tuple(read_events(folder)) if (folder / EVENTS).is_file() else ()
    return History(load_manifest(folder), events)


def faults_in(folder: Path) -> tuple[Fault, ...]:
    """Returns the failures of the system in the log of a run."""
    return summed_faults(_records(folder, lambda event: event["event"] == "fault", Fault))


def findings_since(folder: Path, checkpoint: int) -> list[Finding]:
    """Returns what was found of the system after a checkpoint was written, by the log of a run."""
    return _records(
        folder,
        lambda event: event["event"] == FINDING and event["checkpoint"] == checkpoint,
        Finding,
    )


def examination_due(folder: Path) -> int | None:
    """Returns the steps that are reserved for an examination whose end no process has seen; None if there is none."""
    due = None
    for event in _events(folder, lambda event: event["event"] in (EXAMINING, EXAMINED)):
        with suppress(ValueError, LookupError, TypeError):
            due = max(0, int(event["steps"])) if event["event"] == EXAMINING else None
    return due


def _records(folder: Path, is_meant: Callable[[Any], bool], kind: type[Record]) -> list[Record]:
    """The records of some events."""
    records = []
    for event in _events(folder, is_meant):
        with suppress(ValueError, LookupError, TypeError):
            records.append(unpack(kind, event["record"]))
    return records


def _events(folder: Path, is_meant: Callable[[Any], bool]) -> Iterator[Any]:
    """Yields some events. Damaged lines are ignored, because they need not keep a run from resuming."""
    for line in read_lines(folder) if (folder / EVENTS).is_file() else ():
        with suppress(ValueError, LookupError, TypeError):
            event = parsed_json(line)
            if is_meant(event):
                yield event


def _is_mishap(event: Mapping[str, Any]) -> bool:
    return event["event"] in ("fault", "worker")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


MAX_POINTS: Final = 100
"""The page shows the bounds of at most this many moments."""

MAX_VALUES: Final = 100_000
"""The page shows at most this many lower and as many upper bounds in all."""


@dataclass(frozen=True, eq=False)
class Moment:
    """The bounds that were proven at a point of a run.

    Attributes:
        steps: the steps taken by then.
        lower: lower bounds of the states known by then, in the order of the atlas, [n].
        upper: upper bounds of the same states, infinite where nothing was proven, [n].
    """

    steps: int
    lower: FloatArray
    upper: FloatArray

    @property
    def widths(self) -> FloatArray:
        """The gaps between the bounds of states that have an upper bound, without the initial state, [m]."""
        widths = (self.upper - self.lower)[1:]
        return widths[np.isfinite(widths)]


def moments_of(atlas: Atlas, history: History) -> list[Moment]:
    """Returns the moments in the log of a run, as many as fit on the page, including the first and the last."""
    events = [event for event in history.bounds(atlas.steps) if len(event["lower"]) <= len(atlas.states)]
    room = max(2, min(MAX_POINTS, MAX_VALUES // max(1, len(atlas.states))))
    indices = np.unique(np.linspace(0, len(events) - 1, min(room, len(events))).round().astype(np.int64))
    return [_moment(events[index]) for index in indices.tolist()]


def thousandths(moments: Sequence[Moment]) -> dict[str, Any]:
    """Returns the bounds of all moments, in thousandths and concatenated, rounded to the safe side; -1 for infinity."""
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
