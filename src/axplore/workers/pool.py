"""Tasks done by workers, whoever they are and whatever becomes of them.

- A task of a worker that is lost is done again by another. So is one that a worker could not do (`TryElsewhereError`),
  but not by the same worker if there are others.
- A task that takes far longer than others did is given to an idle worker as well, and the first to answer counts. Where
  nobody is idle, its worker is replaced in the end; each time the pool waits twice as long for the next.
- Every task is answered once. The answers come in the order in which they are done; what is to be the same for any
  number of workers must not depend on that order.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

from axplore.errors import WorldError
from axplore.workers.engines import Engine, Server, TryElsewhereError, Worker, WorkerLostError
from axplore.worlds.contract import Incident, IncidentKind

SLOW_SECONDS: Final = 2.0
SLOW_FACTOR: Final = 4.0
"""A task is slow after so many times the longest one, but not before so many seconds."""

PATIENCE: Final = 15.0
"""A worker whose task takes so many times as long as a slow one is replaced."""

MAX_LOSSES: Final = 10
"""A task by which so many workers are lost is said to be what ends them."""

MAX_ROUNDS_LOST: Final = 3
"""So many times over everybody must be lost, and at least MAX_LOSSES workers, before anybody answers, to be given up.
All who are on a machine are lost at once, and those started instead may be sent there while it is thought to be up."""

SECONDS_TO_BEGIN: Final = 60.0
"""A worker that has not begun after so long may never do so: there may be no machine for it."""


Memory: TypeAlias = dict[str, Any]
"""What a worker was told before, as whoever briefs it sees fit to note."""

OnSlow: TypeAlias = Literal["repeat", "wait", "ignore"]

MessageMaker: TypeAlias = Callable[[Any, int, Memory], Any]
"""The message about a task, at which so many workers have failed, to a worker with such a memory."""


@dataclass(eq=False)
class _Slot:
    """A worker, as the pool sees it.

    Attributes:
        worker: itself.
        memory: what it was told.
        place: of the task that it does; None if it does none.
        since: when it began that, or was started.
        is_ready: whether it has said so.
    """

    worker: Worker
    memory: Memory = field(default_factory=dict)
    place: int | None = None
    since: float = 0.0
    is_ready: bool = False

    @property
    def is_idle(self) -> bool:
        return self.is_ready and self.place is None


@dataclass(eq=False)
class _TaskProgress:
    """How far a task has come.

    Attributes:
        is_done: whether there is a result.
        failures: how often a worker could not do it.
        failed: who.
        losses: how many workers were lost over it.
        replaced: how many were replaced, as they took too long.
        is_slow: whether it was told that it is.
    """

    is_done: bool = False
    failures: int = 0
    failed: set[_Slot] = field(default_factory=set)
    losses: int = 0
    replaced: int = 0
    is_slow: bool = False


class WorkerPool:
    """Workers of an engine, started when they are needed, and kept for the next tasks."""

    def __init__(
        self,
        engine: Engine,
        make_server: Callable[[], Server],
        *,
        make_message: MessageMaker = lambda task, _, __: task,
        on_incident: Callable[[Incident], None] = lambda _: None,
        on_slow: OnSlow = "repeat",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts no worker yet.

        Args:
            engine: where they work.
            make_server: makes what answers the messages, where it works.
            make_message: makes the message about a task.
            on_incident: called with whatever makes a task be done again.
            on_slow: `repeat` gives a task that is slow to an idle worker as well, `wait` only tells of it, and `ignore`
                does not even look, where the time of one task says nothing of another.
            clock: tells the time in seconds.
        """
        self._engine = engine
        self._make_server = make_server
        self._make_message = make_message
        self._on_incident = on_incident
        self._on_slow: OnSlow = on_slow
        self._clock = clock
        self._slots: list[_Slot] = []
        self._longest = 0.0
        self._losses_in_a_row = 0
        self._tasks: Sequence[Any] = ()
        self._progress: list[_TaskProgress] = []
        self._waiting: deque[int] = deque()
        self._most_failed = 0  # how many have failed at the same task

    def results(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The place of each task with its result, in the order in which they are done."""
        self._tasks, self._progress = tasks, [_TaskProgress() for _ in tasks]
        self._waiting = deque(range(len(tasks)))
        self._most_failed = 0
        n_open = len(tasks)
        try:
            while n_open:
                n_wanted = n_open + self._most_failed  # one who failed at a task leaves it to somebody else
                self._start_workers(n_wanted)
                self._hand_out()
                self._start_workers(n_wanted)  # for those who were found to be lost
                for slot in self._answered():
                    place, result = self._receive(slot)
                    if place is not None and not self._progress[place].is_done:
                        self._progress[place].is_done = True
                        n_open -= 1
                        yield place, result
                self._look_after_slow()
        finally:
            for slot in [slot for slot in self._slots if slot.place is not None]:
                self._stop(slot)  # nobody waits for what it does any more

    def close(self) -> None:
        """Stops all workers."""
        for slot in list(self._slots):
            self._stop(slot)

    def _start_workers(self, n_wanted: int) -> None:
        while len(self._slots) < min(self._engine.n_workers, n_wanted):
            self._slots.append(_Slot(self._engine.start(self._make_server), since=self._clock()))

    def _stop(self, slot: _Slot) -> None:
        self._slots.remove(slot)
        slot.worker.stop()

    def _hand_out(self) -> None:
        """Gives waiting tasks to idle workers; to one that has failed at it only if everybody has who is there."""
        now = self._clock()
        there = [slot for slot in self._slots if slot.is_ready or now - slot.since < SECONDS_TO_BEGIN]
        for slot in [slot for slot in self._slots if slot.is_idle]:
            for _ in range(len(self._waiting)):
                failed = self._progress[self._waiting[0]].failed
                if slot not in failed or failed.issuperset(there):
                    self._give(slot, self._waiting.popleft())
                    break
                self._waiting.rotate(-1)

    def _give(self, slot: _Slot, place: int) -> None:
        slot.place, slot.since = place, self._clock()
        try:
            slot.worker.send(self._make_message(self._tasks[place], self._progress[place].failures, slot.memory))
        except WorkerLostError as loss:
            self._lose(slot, loss)

    def _answered(self) -> list[_Slot]:
        """The workers that have answered or are lost; perhaps none, when it is time to look at the others."""
        busy = {id(slot.worker): slot for slot in self._slots if not slot.is_idle}
        if not busy:  # everybody was lost who was to be given something
            return []
        has_to_look = self._on_slow != "ignore" or not all(slot.is_ready for slot in self._slots)
        seconds = SLOW_SECONDS / 4 if has_to_look else None
        return [busy[id(worker)] for worker in self._engine.wait([slot.worker for slot in busy.values()], seconds)]

    def _receive(self, slot: _Slot) -> tuple[int | None, Any]:
        """The place of the task that a slot has done, and its result; no place if it has done none."""
        try:
            reply = slot.worker.receive()
        except WorkerLostError as loss:
            self._lose(slot, loss)
            return None, None
        place, slot.place = slot.place, None
        if place is not None and isinstance(reply.error, TryElsewhereError):
            self._note_failure(slot, place, reply.error)
            return None, None
        if reply.error is not None:
            raise reply.error
        slot.is_ready = True
        self._losses_in_a_row = 0
        if place is not None:
            self._longest = max(self._longest, self._clock() - slot.since)
        return place, reply.value

    def _note_failure(self, slot: _Slot, place: int, error: TryElsewhereError) -> None:
        progress = self._progress[place]
        progress.failures += 1
        progress.failed.add(slot)
        self._most_failed = max(self._most_failed, len(progress.failed))
        self._on_incident(Incident(IncidentKind.FAILED, slot.worker.name, str(error)))
        self._put_back(place)

    def _lose(self, slot: _Slot, loss: WorkerLostError) -> None:
        is_repeated = slot.place is not None
        self._on_incident(Incident(IncidentKind.LOST, slot.worker.name, str(loss), is_repeated))
        self._stop(slot)
        self._losses_in_a_row += 1
        if slot.place is not None:
            self._progress[slot.place].losses += 1
            self._put_back(slot.place)
        losses = 0 if slot.place is None else self._progress[slot.place].losses
        most = max(MAX_LOSSES, MAX_ROUNDS_LOST * self._engine.n_workers)
        if losses >= MAX_LOSSES or self._losses_in_a_row >= most:
            losses = max(losses, self._losses_in_a_row)
            raise WorldError(f"{losses} workers were lost one after the other, the last one thus: {loss}")

    def _put_back(self, place: int) -> None:
        """Lets a task be done again, unless it is done or another slot does it."""
        if not self._progress[place].is_done and all(slot.place != place for slot in self._slots):
            self._waiting.appendleft(place)

    def _look_after_slow(self) -> None:
        if self._on_slow == "ignore" or self._longest == 0:
            return
        now, slow = self._clock(), max(SLOW_SECONDS, SLOW_FACTOR * self._longest)
        for slot in [slot for slot in self._slots if slot.place is not None]:
            place, seconds = slot.place, now - slot.since
            assert place is not None
            progress = self._progress[place]
            idle = next((other for other in self._slots if other.is_idle), None)
            is_alone = sum(other.place == place for other in self._slots) == 1
            if self._on_slow == "wait":
                if seconds > slow and not progress.is_slow:
                    progress.is_slow = True
                    self._note_slow(slot, seconds)
            elif progress.is_done:
                self._stop(slot)  # somebody else was faster
            elif seconds > slow and is_alone and idle is not None:
                self._note_slow(slot, seconds)
                self._give(idle, place)
            elif seconds > slow and is_alone and len(self._slots) < self._engine.n_workers:
                self._start_workers(len(self._slots) + 1)  # and give it the task when it is ready
            elif seconds > PATIENCE * slow * 2**progress.replaced:
                progress.replaced += 1
                self._note_slow(slot, seconds)
                self._stop(slot)
                self._put_back(place)

    def _note_slow(self, slot: _Slot, seconds: float) -> None:
        told = f"{slot.worker.name} has not answered for {seconds:.0f} s; the longest answer took {self._longest:.1f} s"
        if self._on_slow == "wait":
            told += ". It is waited for, as its work may depend on how long it takes; step_timeout ends what hangs"
        self._on_incident(Incident(IncidentKind.SLOW, slot.worker.name, told, self._on_slow == "repeat"))


Task = TypeVar("Task")
Result = TypeVar("Result")

_logger = logging.getLogger("axplore")


def results_of(
    function: Callable[[Task], Result], tasks: Sequence[Task], engine: Engine | None = None
) -> Iterator[Result]:
    """The result of every task, in the order in which they are done; an error of one ends it.

    Args:
        function: does a task. It is called again, elsewhere, for a task whose worker was lost.
        tasks: what to do, the longest first if that is known.
        engine: where it is done; by this process when there is none.
    """
    if engine is None:
        yield from map(function, tasks)
        return
    pool = WorkerPool(
        engine,
        lambda: function,
        on_incident=lambda incident: _logger.warning("%s", incident),
        on_slow="ignore",  # how long a task takes says nothing of another
    )
    try:
        for _, result in pool.results(tasks):
            yield result
    finally:
        pool.close()
