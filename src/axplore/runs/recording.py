"""Records an exploration in its run folder: answers, checkpoints, events, faults and bounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import Any, Final

from axplore.addresses import current_command
from axplore.atlas import Atlas
from axplore.budget import Budget
from axplore.certificate.doubts import summed_faults
from axplore.errors import AxploreError
from axplore.explorers.base import Explorer, ExplorerState, RoundReport
from axplore.labels import encode_label
from axplore.records.codec import pack
from axplore.records.findings import Fault, Finding
from axplore.runs.checkpoints import Checkpoint, encode_state
from axplore.runs.events import EventLog
from axplore.runs.folder import RunFolder, answered_before
from axplore.runs.history import EXAMINED, EXAMINING, REFINED, History, faults_in
from axplore.runs.journal import Call
from axplore.runs.manifest import current_versions, described
from axplore.runs.recorded import RecordedWorld
from axplore.types import FloatArray
from axplore.worlds.contract import World, snapshot_of

SECONDS_BETWEEN_CHECKPOINTS: Final = 10.0
PART_FOR_CHECKPOINTS: Final = 0.05
"""The largest share of the time that checkpoints take."""

SECONDS_BETWEEN_ROUNDS: Final = 1.0
"""The shortest time between two rounds that are logged, in seconds."""

REPORTED: Final = ("round", "known", "frontier", "steps", "activity")
"""The fields of a round that are logged."""

SECONDS_FOR_BOUNDS: Final = 0.05
"""Bounds may take this many seconds of any run, so that a run of one second has some, too."""

PART_FOR_BOUNDS: Final = 0.05
"""Bounds may take this share of the time of a longer run."""

GROWTH_BETWEEN_BOUNDS: Final = 1.1
"""The factor of steps after which bounds are logged again, so that a long run has a few hundred of them."""

BOUND_DIGITS: Final = 4
"""The number of decimals of a logged bound, which is rounded to the safe side."""


class RunRecorder:
    """Records one exploration of a run, from its last checkpoint on. Use it as a context manager."""

    def __init__(
        self,
        folder: RunFolder,
        world: World,
        explorer: Explorer[Any],
        budget: Budget,
        tried: World | None = None,
    ) -> None:
        """Restores the world to the last checkpoint; later calls are repeated from the journal first.

        Args:
            folder: the folder of the run.
            world: the world that was explored, or one like it.
            explorer: the explorer from now on.
            budget: what it may take, and has taken beside exploring.
            tried: the world whose failures count too, because policies are tried on it; it may be the same.
        """
        self._folder = folder
        self._explorer, self._budget = explorer, budget
        self._began = self._noted_at = time.monotonic()
        self._processor_began = time.process_time()
        past = folder.open_journal()
        world.keep_batches(folder.open_batches)
        self._system = world
        self._faults = faults = FaultLog(folder, world, tried)

        def keep(call: Call) -> None:
            faults.update()  # before the answer counts, so that a kill cannot separate it from its faults
            folder.append(call)

        self._keep = keep
        self._world = RecordedWorld(world, folder.checkpoint.world, keep, past, folder.drop)
        self._bounds = BoundsSampler(folder.events, explorer, self._began)
        self._state: ExplorerState | None = None
        self._n_known = 0
        # If there are calls to repeat, a checkpoint is due as soon as that is done.
        self._next_checkpoint = -math.inf if past else self._began + SECONDS_BETWEEN_CHECKPOINTS
        folder.mark_open()

    @property
    def folder(self) -> RunFolder:
        """The folder of the run."""
        return self._folder

    def history(self) -> History:
        """Returns the history of the run by now.

        Raises:
            DamagedFileError: the log that an earlier process left is damaged.
        """
        return History(self._folder.manifest, self._folder.events.read())

    @property
    def world(self) -> RecordedWorld:
        """The world that the explorer gives its orders to."""
        return self._world

    def note_start(self, event: str) -> None:
        """Logs that the run begins or resumes, and with which command and versions."""
        checkpoint = self._folder.checkpoint
        self._folder.events.note(
            event,
            command=current_command(),
            versions=current_versions(),
            checkpoint=checkpoint.number,
            steps=self._steps(),
            max_steps=checkpoint.max_steps,
            explorer=checkpoint.explorer,
        )

    def note_examination(self, reserved: int) -> None:
        """Logs that the system is examined beside the exploration, and how many steps are reserved for that."""
        self._folder.events.note(EXAMINING, steps=reserved)
        self._folder.events.sync()

    def note_examined(self, steps: int) -> None:
        """Logs that this is over, and the steps of examining by then; what was found is kept already."""
        self._folder.events.note(EXAMINED, steps=steps)
        self._folder.events.sync()

    def note(self, report: RoundReport) -> None:
        """Logs the report of a round, and writes a checkpoint when one is due."""
        self._state = state = report.state
        n_known, self._n_known = self._n_known or len(state.known), len(state.known)
        self._faults.update()
        if self._world.repeating:
            return
        moment = time.monotonic()
        if moment >= self._noted_at + SECONDS_BETWEEN_ROUNDS or len(state.known) > n_known:
            self._noted_at = moment
            admitted = [encode_label(self._world.states[number]) for number in state.known[n_known:]]
            counted = {name: getattr(report, name) for name in REPORTED}
            left = {} if report.remaining is None else {"remaining": asdict(report.remaining)}
            self._folder.events.note_progress(
                "round", **counted, **left, **({"admitted": admitted} if admitted else {})
            )
        for answer in self._explorer.answers(state):
            self._folder.note_answer(answer, self._steps())
        self._bounds.sample(state, self._steps(), moment)
        if moment >= self._next_checkpoint and state.stop is None:
            self.write_checkpoint(state)

    def begin_anew(self, state: ExplorerState, n_situations: int, findings: tuple[Finding, ...]) -> None:
        """Records from now on an exploration with other labels, whose world and explorer are in their first state.

        The checkpoint that it writes holds both, so a run that is killed resumes with the labels before or after.

        Args:
            state: the state of the explorer.
            n_situations: the number of situations that the labels tell apart, for the log.
            findings: what was found under these labels; those of the labels before say nothing of them.
        """
        self._world = RecordedWorld(self._system, snapshot_of(self._system), self._keep)
        self.write_checkpoint(state, findings=findings)
        self._state, self._n_known = state, 0
        self._bounds = BoundsSampler(self._folder.events, self._explorer, self._began)
        self._folder.events.note(REFINED, situations=n_situations, steps=self._steps())

    def write_checkpoint(
        self,
        state: ExplorerState,
        *,
        narrowed: bool | None = None,
        findings: tuple[Finding, ...] | None = None,
    ) -> None:
        """Writes a checkpoint; there must be no calls left to repeat.

        Args:
            state: the state of the explorer.
            narrowed: see `Checkpoint`; unchanged by default.
            findings: see `Checkpoint`; those so far by default.
        """
        last = self._folder.checkpoint
        narrowed = last.narrowed if narrowed is None else narrowed
        if narrowed:
            self._explorer.refuse_beyond_reach(state, self._world)
        began = time.monotonic()
        self._folder.save(
            Checkpoint(
                number=last.number + 1,
                explorer=described(self._explorer),
                max_steps=last.max_steps,
                examining=self._budget.examining,
                playing=self._budget.playing,
                in_vain=self._budget.in_vain,
                narrowed=narrowed,
                state=encode_state(state, self._explorer),
                world=self._world.snapshot(),
                findings=self._folder.findings if findings is None else findings,
            )
        )
        taken = time.monotonic() - began
        self._next_checkpoint = began + max(SECONDS_BETWEEN_CHECKPOINTS, taken / PART_FOR_CHECKPOINTS)

    def faults_so_far(self) -> tuple[Fault, ...]:
        """Returns the failures of the system since the run began, as an atlas stores them."""
        self._faults.update()
        return self._faults.records

    def end(self, atlas: Atlas, *, is_whole: bool) -> Atlas:
        """Writes the atlas of a run that has ended, for now or for good, and returns it.

        Properties that the last atlas of the run answered are answered again.

        Args:
            atlas: the atlas.
            is_whole: whether the run ended between two rounds. Within a round the world may be ahead of the state: then
                the last checkpoint stays, and the journal holds the calls since.
        """
        self._faults.update()
        is_whole = is_whole and not self._world.repeating
        if is_whole and self._state is not None:
            self.write_checkpoint(self._state)
        atlas = answered_before(self._folder.path, atlas)
        self._folder.end(atlas, is_whole=is_whole)
        for bounds in atlas.properties:
            self._folder.note_answer(bounds, atlas.steps)
        if atlas.proven:
            n_known = len(atlas.states)
            self._bounds.note(atlas.steps, atlas.lower[:n_known], atlas.upper[:n_known])
        self._folder.events.note(
            "ended",
            stop=atlas.stop.name,
            steps=atlas.steps,
            states=len(atlas.states),
            complete=atlas.complete,
            seconds=round(time.monotonic() - self._began, 3),
            processor_seconds=round(time.process_time() - self._processor_began, 3),
        )
        return atlas

    def __enter__(self) -> RunRecorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            with suppress(AxploreError):  # the error being raised says more
                self._faults.update()

    def _steps(self) -> int:
        return self._world.steps - self._folder.manifest.steps_before


class FaultLog:
    """Logs the failures of a system and of its workers as events of a run."""

    def __init__(self, folder: RunFolder, world: World, tried: World | None) -> None:
        """Begins with the failures that the folder has; earlier ones of the worlds are not logged."""
        self._events = folder.events
        self._steps_before = folder.manifest.steps_before
        self._world = world
        self._records = faults_in(folder.path)
        self._failing = [world] if tried in (None, world) else [world, tried]
        self._n_faults = [len(failing.faults) for failing in self._failing]
        self._n_incidents = len(world.incidents)

    @property
    def records(self) -> tuple[Fault, ...]:
        """The failures of the system since the run began, as an atlas stores them."""
        return self._records

    def update(self) -> None:
        """Logs the failures since the last call."""
        for index, failing in enumerate(self._failing):
            faults = failing.faults
            for fault in faults[self._n_faults[index] :]:
                self._records = summed_faults([*self._records, fault])
                self._events.note(
                    "fault", kind=fault.kind.name, message=str(fault), steps=fault.steps, record=pack(fault)[0]
                )
            self._n_faults[index] = len(faults)
        incidents = self._world.incidents
        steps = self._world.steps - self._steps_before
        for incident in incidents[self._n_incidents :]:
            self._events.note("worker", kind=incident.kind.name, message=str(incident), steps=steps)
        self._n_incidents = len(incidents)


class BoundsSampler:
    """Logs from time to time the bounds proven so far, as long as that takes only a small share of the time."""

    def __init__(self, events: EventLog, explorer: Explorer[Any], began: float) -> None:
        """Begins with no bounds.

        Args:
            events: the log.
            explorer: the explorer, which may or may not prove bounds.
            began: when the run began, by the clock of `time.monotonic`.
        """
        self._events = events
        self._explorer = explorer
        self._began = began
        self._proves_bounds = True  # until the explorer computes bounds
        self._steps = 0
        self._seconds = self._last_seconds = 0.0

    def sample(self, state: ExplorerState, steps: int, moment: float) -> None:
        """Logs the bounds proven so far if that is due, without changing the state.

        Args:
            state: the state of the explorer.
            steps: the steps of the run.
            moment: the time now, by the clock of `time.monotonic`.
        """
        if not self._is_due(state, steps, moment):
            return
        began = time.monotonic()
        bounds = self._explorer.bounds(state)
        self._proves_bounds = bounds is not None
        if bounds is not None:
            self._steps = steps
            self.note(steps, *bounds)
        self._last_seconds = time.monotonic() - began
        self._seconds += self._last_seconds

    def note(self, steps: int, lower: FloatArray, upper: FloatArray) -> None:
        """Logs the bounds of the known states, in the order of admission; infinite ones are null."""
        self._events.note_progress(
            "bounds",
            steps=steps,
            lower=[_outwards(value, math.floor) for value in lower.tolist()],
            upper=[_outwards(value, math.ceil) for value in upper.tolist()],
        )

    def _is_due(self, state: ExplorerState, steps: int, moment: float) -> bool:
        if not self._proves_bounds or len(state.known) == 1 or state.stop is not None:
            return False
        seconds = self._seconds + self._last_seconds  # assuming that it takes as long as the last time
        affordable = seconds <= SECONDS_FOR_BOUNDS + PART_FOR_BOUNDS * (moment - self._began)
        return affordable and steps >= GROWTH_BETWEEN_BOUNDS * self._steps


def _outwards(value: float, rounding: Callable[[float], int]) -> float | None:
    scale = 10**BOUND_DIGITS
    return rounding(value * scale) / scale if math.isfinite(value) else None
