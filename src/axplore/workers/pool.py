"""A pool of workers that completes tasks although workers may be lost, fail or be slow.

- A task whose worker is lost is repeated by another. So is a task that a worker could not do (`TryElsewhereError`), but
  not by the same worker if there are others.
- A task that takes far longer than the others is given to an idle worker as well, and the first answer counts. If no
  worker is idle, its worker is eventually replaced; each time the pool waits twice as long for the next.
- Every task is answered once. Answers come in the order of completion; results that must be the same for any number of
  workers must not depend on that order.
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
"""A task is slow after this many times the longest one so far, but at least this many seconds."""

PATIENCE: Final = 15.0
"""A worker is replaced if its task takes this many times as long as a slow one."""

MAX_LOSSES: Final = 10
"""The number of workers lost over a task after which the task is blamed."""

MAX_ROUNDS_LOST: Final = 3
"""The pool gives up if this many times the number of workers, and at least MAX_LOSSES, are lost before any answers. All
workers on a machine are lost at once, and their replacements may be placed there while it is believed to be up."""

SECONDS_TO_BEGIN: Final = 60.0
"""Seconds after which a worker that has not begun is not waited for: there may be no machine for it."""


Memory: TypeAlias = dict[str, Any]
"""What a worker was sent before, as far as `make_message` records it."""

OnSlow: TypeAlias = Literal["repeat", "wait", "ignore"]

MessageMaker: TypeAlias = Callable[[Any, int, Memory], Any]
"""Makes the message about a task, given the number of workers that failed at it and the memory of the worker."""


@dataclass(eq=False)
class _Slot:
    """A worker, as the pool sees it.

    Attributes:
        worker: the worker.
        memory: what it was sent.
        task: the index of its task; None if it has none.
        since: the time when it began that task, or was started.
        is_ready: whether it has reported that it is ready.
    """

    worker: Worker
    memory: Memory = field(default_factory=dict)
    task: int | None = None
    since: float = 0.0
    is_ready: bool = False

    @property
    def is_idle(self) -> bool:
        return self.is_ready and self.task is None


@dataclass(eq=False)
class _TaskProgress:
    """The progress of a task.

    Attributes:
        is_done: whether there is a result.
        failures: the number of times that a worker could not do it.
        failed: the workers that could not.
        losses: the number of workers lost over it.
        replaced: the number of workers replaced because they took too long.
        is_slow: whether it was reported as slow.
    """

    is_done: bool = False
    failures: int = 0
    failed: set[_Slot] = field(default_factory=set)
    losses: int = 0
    replaced: int = 0
    is_slow: bool = False


class WorkerPool:
    """Workers of an engine, started when they are needed and kept for further tasks."""

    def __init__(
        self,
        engine: Engine,
        make_server: Callable[[], Server],
        *,
        make_message: MessageMaker = lambda task, _, __: task,
        on_incident: Callable[[Incident], None] = lambda _: None,
        on_failure: Callable[[Any, int], None] = lambda _, __: None,
        on_slow: OnSlow = "repeat",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares the pool, without starting a worker yet.

        Args:
            engine: the engine that runs the workers.
            make_server: makes, in the worker, the server that answers messages.
            make_message: makes the message about a task.
            on_incident: called with every incident because of which a task is repeated.
            on_failure: called with every task that a worker could not do, and the steps that its system has taken.
            on_slow: `repeat` gives a slow task to an idle worker as well, `wait` only reports it, and `ignore` does not
                look for slow tasks, where the time of one task says nothing about another.
            clock: returns the time in seconds.
        """
        self._engine = engine
        self._make_server = make_server
        self._make_message = make_message
        self._on_incident = on_incident
        self._on_failure = on_failure
        self._on_slow: OnSlow = on_slow
        self._clock = clock
        self._slots: list[_Slot] = []
        self._longest = 0.0
        self._losses_in_a_row = 0
        self._tasks: Sequence[Any] = ()
        self._progress: list[_TaskProgress] = []
        self._waiting: deque[int] = deque()
        self._most_failed = 0  # the most workers that have failed at one task

    def results(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yields the index of each task with its result, in the order of completion."""
        self._tasks, self._progress = tasks, [_TaskProgress() for _ in tasks]
        self._waiting = deque(range(len(tasks)))
        self._most_failed = 0
        n_open = len(tasks)
        try:
            while n_open:
                n_wanted = n_open + self._most_failed  # a worker that failed at a task leaves it to another
                self._start_workers(n_wanted)
                self._hand_out()
                self._start_workers(n_wanted)  # for those found to be lost
                for slot in self._answered():
                    task, result = self._receive(slot)
                    if task is not None and not self._progress[task].is_done:
                        self._progress[task].is_done = True
                        n_open -= 1
                        yield task, result
                self._look_after_slow()
        finally:
            for slot in [slot for slot in self._slots if slot.task is not None]:
                self._stop(slot)  # its result is no longer needed

    def expect(self, seconds: float) -> None:
        """Says that a task may take this long, however long others took: it is not slow then."""
        self._longest = max(self._longest, seconds)

    def change_memories(self, change: Callable[[Memory], None]) -> None:
        """Changes what is remembered of every worker; no task may be in progress."""
        for slot in self._slots:
            change(slot.memory)

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
        """Gives waiting tasks to idle workers; to one that failed at a task only if all workers did."""
        now = self._clock()
        there = [slot for slot in self._slots if slot.is_ready or now - slot.since < SECONDS_TO_BEGIN]
        for slot in [slot for slot in self._slots if slot.is_idle]:
            for _ in range(len(self._waiting)):
                failed = self._progress[self._waiting[0]].failed
                if slot not in failed or failed.issuperset(there):
                    self._give(slot, self._waiting.popleft())
                    break
                self._waiting.rotate(-1)

    def _give(self, slot: _Slot, task: int) -> None:
        slot.task, slot.since = task, self._clock()
        try:
            slot.worker.send(self._make_message(self._tasks[task], self._progress[task].failures, slot.memory))
        except WorkerLostError as loss:
            self._lose(slot, loss)

    def _answered(self) -> list[_Slot]:
        """Returns the workers that have answered or are lost; perhaps none, when it is time to check the others."""
        busy = {id(slot.worker): slot for slot in self._slots if not slot.is_idle}
        if not busy:  # all workers that were to get a task are lost
            return []
        has_to_look = self._on_slow != "ignore" or not all(slot.is_ready for slot in self._slots)
        seconds = SLOW_SECONDS / 4 if has_to_look else None
        return [busy[id(worker)] for worker in self._engine.wait([slot.worker for slot in busy.values()], seconds)]

    def _receive(self, slot: _Slot) -> tuple[int | None, Any]:
        """Returns the index of the task that a slot has done, and its result; no index if it has done none."""
        try:
            reply = slot.worker.receive()
        except WorkerLostError as loss:
            self._lose(slot, loss)
            return None, None
        task, slot.task = slot.task, None
        if task is not None and isinstance(reply.error, TryElsewhereError):
            self._note_failure(slot, task, reply.error)
            return None, None
        if reply.error is not None:
            raise reply.error
        slot.is_ready = True
        self._losses_in_a_row = 0
        if task is not None:
            self._longest = max(self._longest, self._clock() - slot.since)
        return task, reply.value

    def _note_failure(self, slot: _Slot, task: int, error: TryElsewhereError) -> None:
        progress = self._progress[task]
        progress.failures += 1
        progress.failed.add(slot)
        self._most_failed = max(self._most_failed, len(progress.failed))
        self._on_incident(Incident(IncidentKind.FAILED, slot.worker.name, str(error)))
        self._on_failure(self._tasks[task], error.steps)
        self._put_back(task)

    def _lose(self, slot: _Slot, loss: WorkerLostError) -> None:
        is_repeated = slot.task is not None
        self._on_incident(Incident(IncidentKind.LOST, slot.worker.name, str(loss), is_repeated))
        self._stop(slot)
        self._losses_in_a_row += 1
        if slot.task is not None:
            self._progress[slot.task].losses += 1
            self._put_back(slot.task)
        losses = 0 if slot.task is None else self._progress[slot.task].losses
        most = max(MAX_LOSSES, MAX_ROUNDS_LOST * self._engine.n_workers)
        if losses >= MAX_LOSSES or self._losses_in_a_row >= most:
            losses = max(losses, self._losses_in_a_row)
            raise WorldError(f"{losses} workers were lost one after the other; the last: {loss}")

    def _put_back(self, task: int) -> None:
        """Puts a task back to be repeated, unless it is done or another slot has it."""
        if not self._progress[task].is_done and all(slot.task != task for slot in self._slots):
            self._waiting.appendleft(task)

    def _look_after_slow(self) -> None:
        if self._on_slow == "ignore" or self._longest == 0:
            return
        now, slow = self._clock(), max(SLOW_SECONDS, SLOW_FACTOR * self._longest)
        for slot in [slot for slot in self._slots if slot.task is not None]:
            task, seconds = slot.task, now - slot.since
            assert task is not None
            progress = self._progress[task]
            idle = next((other for other in self._slots if other.is_idle), None)
            is_alone = sum(other.task == task for other in self._slots) == 1
            if self._on_slow == "wait":
                if seconds > slow and not progress.is_slow:
                    progress.is_slow = True
                    self._note_slow(slot, seconds)
            elif progress.is_done:
                self._stop(slot)  # another worker was faster
            elif seconds > slow and is_alone and idle is not None:
                self._note_slow(slot, seconds)
                self._give(idle, task)
            elif seconds > slow and is_alone and len(self._slots) < self._engine.n_workers:
                self._start_workers(len(self._slots) + 1)  # and give it the task when it is ready
            elif seconds > PATIENCE * slow * 2**progress.replaced:
                progress.replaced += 1
                self._note_slow(slot, seconds)
                self._stop(slot)
                self._put_back(task)

    def _note_slow(self, slot: _Slot, seconds: float) -> None:
        told = f"{slot.worker.name} has not answered for {seconds:.0f} s; the longest answer took {self._longest:.1f} s"
        if self._on_slow == "wait":
            told += ". The pool waits, as the result may depend on its time; set step_timeout to end steps that hang"
        self._on_incident(Incident(IncidentKind.SLOW, slot.worker.name, told, self._on_slow == "repeat"))


Task = TypeVar("Task")
Result = TypeVar("Result")

_logger = logging.getLogger("axplore")


def results_of(
    function: Callable[[Task], Result], tasks: Sequence[Task], engine: Engine | None = None
) -> Iterator[Result]:
    """Yields the results of tasks in the order of completion; raises the first error.

    Args:
        function: does a task. It is called again, elsewhere, for a task whose worker was lost.
        tasks: the tasks, the longest first if that is known.
        engine: the engine that runs the workers; None for this process.
    """
    if engine is None:
        yield from map(function, tasks)
        return
    pool = WorkerPool(
        engine,
        lambda: function,
        on_incident=lambda incident: _logger.warning("%s", incident),
        on_slow="ignore",  # the time of one task says nothing about another
    )
    try:
        for _, result in pool.results(tasks):
            yield result
    finally:
        pool.close()
