"""A run folder in use: it records the world, writes checkpoints and logs events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from axplore.atlas import Atlas
from axplore.atlas.construction import fault_records, summed_faults
from axplore.certificate.doubts import FaultRecord
from axplore.errors import AxploreError
from axplore.explorers.base import Explorer, ExplorerState, RoundReport, StopReason
from axplore.labels import encode_label
from axplore.runs.batch_journal import BatchJournal
from axplore.runs.checkpoints import (
    Checkpoint,
    encode_state,
    journal_path,
    load_checkpoint,
    remove_others,
    save_checkpoint,
)
from axplore.runs.events import EventLog
from axplore.runs.history import faults_in
from axplore.runs.journal import Call, Journal, header_of, read_journal
from axplore.runs.manifest import RunManifest, current_versions, described, load_manifest, save_manifest
from axplore.runs.recorded import RecordedWorld
from axplore.storage import Lock, new_folder, read_document, remove_unfinished, storage_errors, write_document
from axplore.types import FloatArray
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import current_command
from axplore.worlds.contract import World, snapshot_of

ENDED: Final = "ended.json"
ENDED_FORMAT: Final = "axplore end of a run"
ENDED_VERSION: Final = 1

SECONDS_BETWEEN_CHECKPOINTS: Final = 10.0
PART_FOR_CHECKPOINTS: Final = 0.05
"""The largest share of the time that checkpoints take."""

SECONDS_BETWEEN_ROUNDS: Final = 1.0
"""The shortest time between two rounds that are logged, in seconds."""

REPORTED: Final = ("round", "known", "frontier", "steps", "activity")
"""The fields of a round that are logged."""

SECONDS_FOR_BOUNDS: Final = 0.05
"""Bounds take at most about this many seconds, so that a run of one second has some, too,"""

PART_FOR_BOUNDS: Final = 0.05
"""or this share of the time of the run."""

GROWTH_BETWEEN_BOUNDS: Final = 1.1
"""The factor of steps after which bounds are logged again, so that a long run has a few hundred of them."""

BOUND_DIGITS: Final = 4
"""The number of decimals of a logged bound, which is rounded to the safe side."""


class RunFolder:
    """A run folder that is locked by this process. Close it, or use it as a context manager."""

    def __init__(self, folder: Path, lock: Lock, manifest: RunManifest, checkpoint: Checkpoint) -> None:
        """Opens the run at its last checkpoint; `resume_from` resumes it.

        Args:
            folder: the folder of the run.
            lock: the lock on it.
            manifest: how the run began.
            checkpoint: the last checkpoint.
        """
        self._folder = folder
        self._lock = lock
        self._manifest = manifest
        self._checkpoint = checkpoint
        self._journal: Journal | None = None
        self._batches: BatchJournal | None = None
        self._system: World | None = None
        self._events = EventLog(folder)
        self._explorer: Explorer[Any] | None = None
        self._state: ExplorerState | None = None
        self._n_known = 0
        self._faults = faults_in(folder)
        self._n_faults = self._n_incidents = 0
        self._began = self._noted_at = time.monotonic()
        self._processor_began = time.process_time()
        self._next_checkpoint = -float("inf")
        self._proves_bounds = True  # until the explorer computes bounds
        self._steps_of_bounds = 0
        self._seconds_of_bounds = self._last_seconds_of_bounds = 0.0

    @property
    def folder(self) -> Path:
        """The path of the folder."""
        return self._folder

    @property
    def manifest(self) -> RunManifest:
        """How the run began."""
        return self._manifest

    @property
    def checkpoint(self) -> Checkpoint:
        """The last checkpoint."""
        return self._checkpoint

    @property
    def world(self) -> RecordedWorld:
        """The recorded world, once the run was resumed."""
        return self._world

    def faults_so_far(self) -> tuple[FaultRecord, ...]:
        """Returns the failures of the system since the run began, as an atlas stores them."""
        self._note_faults()
        return self._faults

    def limit(self, max_steps: int | None) -> None:
        """Sets another step limit. None removes a limit that has ended the run, and keeps any other."""
        if max_steps is not None or self._ended_by() == StopReason.STEP_LIMIT.name:
            self._checkpoint = replace(self._checkpoint, max_steps=max_steps)
            save_checkpoint(self._checkpoint, self._manifest.run, self._folder)

    def resume_from(self, world: World, explorer: Explorer[Any]) -> None:
        """Resumes from the last checkpoint; calls that were answered after it are repeated from the journal first.

        Args:
            world: the world that was explored, or one like it.
            explorer: the explorer from now on.
        """
        self._explorer = explorer
        path, header = self._journal_of(self._checkpoint)
        past, lengths = read_journal(path, header)
        self._journal = journal = Journal(path, header, lengths[-1])

        def drop(n_dropped: int) -> None:
            journal.cut(lengths[-1 - n_dropped])
            self._events.note("dropped", calls=n_dropped)

        if isinstance(world, DistributedWorld):
            self._batches = world.ledger = BatchJournal(self._folder, self._manifest.run)
        self._system = world
        self._n_faults, self._n_incidents = len(world.faults), len(world.incidents)
        self._world = RecordedWorld(world, self._checkpoint.world, self._keep, past, drop)
        if not past:  # otherwise a checkpoint is due as soon as they are repeated
            self._next_checkpoint = self._began + SECONDS_BETWEEN_CHECKPOINTS
        with storage_errors(f"{self._folder / ENDED} cannot be removed"):
            (self._folder / ENDED).unlink(missing_ok=True)

    def note_start(self, event: str) -> None:
        """Logs that the run begins or resumes, and with which command and versions."""
        self._events.note(
            event,
            command=current_command(),
            versions=current_versions(),
            checkpoint=self._checkpoint.number,
            steps=self._steps(),
            max_steps=self._checkpoint.max_steps,
            explorer=self._checkpoint.explorer,
        )

    def note(self, report: RoundReport) -> None:
        """Logs the report of a round, and writes a checkpoint when one is due."""
        self._state = state = report.state
        n_known, self._n_known = self._n_known or len(state.known), len(state.known)
        self._note_faults()
        if self._world.repeating:
            return
        moment = time.monotonic()
        if moment >= self._noted_at + SECONDS_BETWEEN_ROUNDS or len(state.known) > n_known:
            self._noted_at = moment
            admitted = [encode_label(self._world.states[number]) for number in state.known[n_known:]]
            counted = {name: getattr(report, name) for name in REPORTED}
            self._events.note("round", **counted, **({"admitted": admitted} if admitted else {}))
        if self._bounds_are_due(state, moment):
            self._compute_bounds(state)
        if moment >= self._next_checkpoint and state.stop is None:
            self.write_checkpoint(state)

    def write_checkpoint(self, state: ExplorerState, *, narrowed: bool | None = None) -> None:
        """Writes a checkpoint; there must be no calls left to repeat.

        Args:
            state: the state of the explorer.
            narrowed: see `Checkpoint`; unchanged by default.
        """
        assert self._explorer is not None
        narrowed = self._checkpoint.narrowed if narrowed is None else narrowed
        if narrowed:
            self._explorer.refuse_beyond_reach(state, self._world)
        self._lock.check_place()
        began = time.monotonic()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._checkpoint = Checkpoint(
            number=self._checkpoint.number + 1,
            explorer=described(self._explorer),
            max_steps=self._checkpoint.max_steps,
            narrowed=narrowed,
            state=encode_state(state, self._explorer),
            world=self._world.snapshot(),
        )
        save_checkpoint(self._checkpoint, self._manifest.run, self._folder)
        self._journal = Journal(*self._journal_of(self._checkpoint), 0)
        taken = time.monotonic() - began
        self._next_checkpoint = began + max(SECONDS_BETWEEN_CHECKPOINTS, taken / PART_FOR_CHECKPOINTS)

    def end(self, atlas: Atlas, *, is_whole: bool) -> None:
        """Writes the atlas of a run that has ended, for now or for good.

        Args:
            atlas: the atlas.
            is_whole: whether the run ended between two rounds. Within a round the world may be ahead of the state: then
                the last checkpoint stays, and the journal holds the calls since.
        """
        self._note_faults()
        whole = is_whole and not self._world.repeating
        if whole and self._state is not None:
            self.write_checkpoint(self._state)
        self._lock.check_place()
        with storage_errors(f"the atlas in {self._folder} cannot be replaced"):
            # The files of an atlas are replaced one by one; without this one there is no atlas.
            (self._folder / "atlas.json").unlink(missing_ok=True)
        atlas.save(self._folder)
        write_document(
            self._folder / ENDED, {"format": ENDED_FORMAT, "version": ENDED_VERSION, "stop": atlas.stop.name}
        )
        if self._batches is not None and whole:
            self._batches.remove()
            self._batches = None
        if atlas.proven:
            n_known = len(atlas.states)
            self._note_bounds(atlas.steps, atlas.lower[:n_known], atlas.upper[:n_known])
        self._events.note(
            "ended",
            stop=atlas.stop.name,
            steps=atlas.steps,
            states=len(atlas.states),
            complete=atlas.complete,
            seconds=round(time.monotonic() - self._began, 3),
            processor_seconds=round(time.process_time() - self._processor_began, 3),
        )

    def close(self) -> None:
        """Releases the lock."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._batches is not None:
            self._batches.close()
            self._batches = None
        self._events.close()
        self._lock.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            with suppress(AxploreError):  # the error being raised says more
                self._note_faults()
                self._events.note("failed", error=f"{kind.__name__}: {error}")
        self.close()

    def _ended_by(self) -> str | None:
        """Returns why the run has ended; None if it was killed."""
        path = self._folder / ENDED
        return read_document(path, ENDED_FORMAT, ENDED_VERSION).get("stop") if path.exists() else None

    def _keep(self, call: Call) -> None:
        assert self._journal is not None
        self._note_faults()  # before the answer counts, so that a kill cannot separate it from its faults
        self._journal.append(call)

    def _journal_of(self, checkpoint: Checkpoint) -> tuple[Path, dict[str, Any]]:
        number = checkpoint.number
        return journal_path(self._folder, number), header_of(self._manifest.run, number)

    def _steps(self) -> int:
        return self._world.steps - self._manifest.steps_before

    def _bounds_are_due(self, state: ExplorerState, moment: float) -> bool:
        if not self._proves_bounds or len(state.known) == 1 or state.stop is not None:
            return False
        seconds = (
            self._seconds_of_bounds + self._last_seconds_of_bounds
        )  # assuming that it takes as long as the last time
        affordable = seconds <= SECONDS_FOR_BOUNDS + PART_FOR_BOUNDS * (moment - self._began)
        return affordable and self._steps() >= GROWTH_BETWEEN_BOUNDS * self._steps_of_bounds

    def _compute_bounds(self, state: ExplorerState) -> None:
        """Logs the bounds proven so far, without changing the state or the world."""
        assert self._explorer is not None
        began = time.monotonic()
        bounds = self._explorer.bounds(state)
        self._proves_bounds = bounds is not None
        if bounds is not None:
            self._steps_of_bounds = self._steps()
            self._note_bounds(self._steps_of_bounds, *bounds)
        self._last_seconds_of_bounds = time.monotonic() - began
        self._seconds_of_bounds += self._last_seconds_of_bounds

    def _note_bounds(self, steps: int, lower: FloatArray, upper: FloatArray) -> None:
        """Logs the bounds of the known states, in the order of admission; infinite ones are null."""
        self._events.note(
            "bounds",
            steps=steps,
            lower=[_outwards(value, math.floor) for value in lower.tolist()],
            upper=[_outwards(value, math.ceil) for value in upper.tolist()],
        )

    def _note_faults(self) -> None:
        if self._system is None:
            return
        faults = self._system.faults
        for fault in faults[self._n_faults :]:
            (record,) = fault_records([fault])
            self._faults = summed_faults([*self._faults, record])
            self._events.note(
                "fault", kind=fault.kind.name, message=str(fault), steps=fault.steps, record=record.as_json()
            )
        self._n_faults = len(faults)
        incidents = self._system.incidents
        for incident in incidents[self._n_incidents :]:
            self._events.note("worker", kind=incident.kind.name, message=str(incident), steps=self._steps())
        self._n_incidents = len(incidents)


def _outwards(value: float, rounding: Callable[[float], int]) -> float | None:
    scale = 10**BOUND_DIGITS
    return rounding(value * scale) / scale if math.isfinite(value) else None


def begin_run(
    folder: Path,
    manifest: RunManifest,
    explorer: Explorer[Any],
    state: ExplorerState,
    world: World,
    max_steps: int | None,
) -> RunFolder:
    """Begins a run in a folder, which must be empty or not exist, with the explorer in its first state."""
    checkpoint = Checkpoint(
        number=0,
        explorer=described(explorer),
        max_steps=max_steps,
        narrowed=False,
        state=encode_state(state, explorer),
        world=snapshot_of(world),
    )
    with new_folder(folder):
        lock = Lock(folder)
        try:
            save_checkpoint(checkpoint, manifest.run, folder)
            # Written last: a folder is a run once it holds this file.
            save_manifest(manifest, folder)
            run = RunFolder(folder, lock, manifest, checkpoint)
            run.resume_from(world, explorer)
            run.note_start("began")
        except BaseException:
            lock.close()
            raise
    return run


def open_run(folder: Path) -> RunFolder:
    """Opens a run that was interrupted or has ended; refuses one that is in use by another process, or damaged."""
    manifest = load_manifest(folder)
    lock = Lock(folder)
    try:
        with storage_errors(f"the folder {folder} cannot be used"):
            remove_unfinished(folder)
            checkpoint = load_checkpoint(manifest.run, folder)
            remove_others(folder, checkpoint.number)
        return RunFolder(folder, lock, manifest, checkpoint)
    except BaseException:
        lock.close()
        raise
