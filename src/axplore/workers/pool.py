"""Tasks done by workers, whoever they are and whatever becomes of them.

- A task of a worker that is lost is done again by another. So is one that a worker could not do (`TryElsewhereError`),
  but not by the same worker if there are others.
- A task that takes far longer than others did is given to an idle worker as well, and the first to answer counts. Where
  nobody is idle, its worker is replaced in the end; each time the crew waits twice as long for the next.
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
from axplore.workers.worker import Engine, Server, TryElsewhereError, Worker, WorkerLostError
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
All who are on a machine are lost at once, and those hired instead may be sent to it while it is thought to be there."""

SECONDS_TO_BEGIN: Final = 60.0
"""A worker that has not begun after so long may never do so: there may be no machine for it."""


Memory: TypeAlias = dict[str, Any]
"""What a worker was told before, as whoever briefs it sees fit to note."""

OnSlow: TypeAlias = Literal["repeat", "wait", "ignore"]

MessageMaker: TypeAlias = Callable[[Any, int, Memory], Any]
"""The message about a task, at which so many workers have failed, to a worker with such a memory."""


@dataclass(eq=False)
class _Member:
    """A worker, as the crew sees it.

    Attributes:
        worker: itself.
        memory: what it was told.
        place: of the task that it does; None if it does none.
        since: when it began that, or was hired.
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
class _Course:
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
    failed: set[_Member] = field(default_factory=set)
    losses: int = 0
    replaced: int = 0
    is_slow: bool = False


class WorkerPool:
    """Workers of an engine, hired when they are needed, and kept for the next tasks."""

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
        """Hires nobody yet.

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
        self._members: list[_Member] = []
        self._longest = 0.0
        self._losses_in_a_row = 0
        self._tasks: Sequence[Any] = ()
        self._courses: list[_Course] = []
        self._waiting: deque[int] = deque()
        self._most_failed = 0  # how many have failed at the same task

    def results(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The place of each task with its result, in the order in which they are done."""
        self._tasks, self._courses = tasks, [_Course() for _ in tasks]
        self._waiting = deque(range(len(tasks)))
        self._most_failed = 0
        n_open = len(tasks)
        try:
            while n_open:
                n_wanted = n_open + self._most_failed  # one who failed at a task leaves it to somebody else
                self._hire(n_wanted)
                self._hand_out()
                self._hire(n_wanted)  # for those who were found to be lost
                for member in self._answered():
                    place, result = self._receive(member)
                    if place is not None and not self._courses[place].is_done:
                        self._courses[place].is_done = True
                        n_open -= 1
                        yield place, result
                self._look_after_slow()
        finally:
            for member in [member for member in self._members if member.place is not None]:
                self._dismiss(member)  # nobody waits for what it does any more

    def close(self) -> None:
        """Dismisses everybody."""
        for member in list(self._members):
            self._dismiss(member)

    def _hire(self, n_wanted: int) -> None:
        while len(self._members) < min(self._engine.n_workers, n_wanted):
            self._members.append(_Member(self._engine.start(self._make_server), since=self._clock()))

    def _dismiss(self, member: _Member) -> None:
        self._members.remove(member)
        member.worker.stop()

    def _hand_out(self) -> None:
        """Gives waiting tasks to idle members; to one that has failed at it only if everybody has who is there."""
        now = self._clock()
        there = [member for member in self._members if member.is_ready or now - member.since < SECONDS_TO_BEGIN]
        for member in [member for member in self._members if member.is_idle]:
            for _ in range(len(self._waiting)):
                failed = self._courses[self._waiting[0]].failed
                if member not in failed or failed.issuperset(there):
                    self._give(member, self._waiting.popleft())
                    break
                self._waiting.rotate(-1)

    def _give(self, member: _Member, place: int) -> None:
        member.place, member.since = place, self._clock()
        try:
            member.worker.send(self._make_message(self._tasks[place], self._courses[place].failures, member.memory))
        except WorkerLostError as loss:
            self._lose(member, loss)

    def _answered(self) -> list[_Member]:
        """The members that have answered or are lost; perhaps none, when it is time to look at the others."""
        busy = {id(member.worker): member for member in self._members if not member.is_idle}
        if not busy:  # everybody was lost who was to be given something
            return []
        has_to_look = self._on_slow != "ignore" or not all(member.is_ready for member in self._members)
        seconds = SLOW_SECONDS / 4 if has_to_look else None
        return [busy[id(worker)] for worker in self._engine.wait([member.worker for member in busy.values()], seconds)]

    def _receive(self, member: _Member) -> tuple[int | None, Any]:
        """The place of the task that a member has done, and its result; no place if it has done none."""
        try:
            reply = member.worker.receive()
        except WorkerLostError as loss:
            self._lose(member, loss)
            return None, None
        place, member.place = member.place, None
        if place is not None and isinstance(reply.error, TryElsewhereError):
            self._note_failure(member, place, reply.error)
            return None, None
        if reply.error is not None:
            raise reply.error
        member.is_ready = True
        self._losses_in_a_row = 0
        if place is not None:
            self._longest = max(self._longest, self._clock() - member.since)
        return place, reply.value

    def _note_failure(self, member: _Member, place: int, error: TryElsewhereError) -> None:
        course = self._courses[place]
        course.failures += 1
        course.failed.add(member)
        self._most_failed = max(self._most_failed, len(course.failed))
        self._on_incident(Incident(IncidentKind.FAILED, member.worker.name, str(error)))
        self._put_back(place)

    def _lose(self, member: _Member, loss: WorkerLostError) -> None:
        is_repeated = member.place is not None
        self._on_incident(Incident(IncidentKind.LOST, member.worker.name, str(loss), is_repeated))
        self._dismiss(member)
        self._losses_in_a_row += 1
        if member.place is not None:
            self._courses[member.place].losses += 1
            self._put_back(member.place)
        losses = 0 if member.place is None else self._courses[member.place].losses
        most = max(MAX_LOSSES, MAX_ROUNDS_LOST * self._engine.n_workers)
        if losses >= MAX_LOSSES or self._losses_in_a_row >= most:
            losses = max(losses, self._losses_in_a_row)
            raise WorldError(f"{losses} workers were lost one after the other, the last one thus: {loss}")

    def _put_back(self, place: int) -> None:
        """Lets a task be done again, unless it is done or another member does it."""
        if not self._courses[place].is_done and all(member.place != place for member in self._members):
            self._waiting.appendleft(place)

    def _look_after_slow(self) -> None:
        if self._on_slow == "ignore" or self._longest == 0:
            return
        now, slow = self._clock(), max(SLOW_SECONDS, SLOW_FACTOR * self._longest)
        for member in [member for member in self._members if member.place is not None]:
            place, seconds = member.place, now - member.since
            assert place is not None
            course = self._courses[place]
            idle = next((other for other in self._members if other.is_idle), None)
            is_alone = sum(other.place == place for other in self._members) == 1
            if self._on_slow == "wait":
                if seconds > slow and not course.is_slow:
                    course.is_slow = True
                    self._note_slow(member, seconds)
            elif course.is_done:
                self._dismiss(member)  # somebody else was faster
            elif seconds > slow and is_alone and idle is not None:
                self._note_slow(member, seconds)
                self._give(idle, place)
            elif seconds > slow and is_alone and len(self._members) < self._engine.n_workers:
                self._hire(len(self._members) + 1)  # and give it the task when it is ready
            elif seconds > PATIENCE * slow * 2**course.replaced:
                course.replaced += 1
                self._note_slow(member, seconds)
                self._dismiss(member)
                self._put_back(place)

    def _note_slow(self, member: _Member, seconds: float) -> None:
        told = (
            f"{member.worker.name} has not answered for {seconds:.0f} s; the longest answer took {self._longest:.1f} s"
        )
        if self._on_slow == "wait":
            told += ". It is waited for, as its work may depend on how long it takes; step_timeout ends what hangs"
        self._on_incident(Incident(IncidentKind.SLOW, member.worker.name, told, self._on_slow == "repeat"))


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
