from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.errors import WorldError
from axplore.workers.engines import Reply, Server, TryElsewhereError, WorkerLostError, replied
from axplore.workers.pool import MAX_LOSSES, PATIENCE, SECONDS_TO_BEGIN, SLOW_SECONDS, OnSlow, WorkerPool
from axplore.worlds.contract import Incident, IncidentKind
from axplore_studies.in_process import InProcess


class ScriptedWorker:
    """Answers when the engine says so, and may be lost or silent instead, as the script says of each message."""

    def __init__(self, engine: ScriptedEngine, number: int, server: Server) -> None:
        self.engine, self.number, self.server = engine, number, server
        self.pending: Any = Reply()
        self.is_silent = self.is_late = self.is_stopped = False

    @property
    def name(self) -> str:
        return f"worker {self.number}"

    def send(self, message: Any) -> None:
        assert self.pending is None, "one at a time"
        assert not self.is_stopped
        what = self.engine.script(message, self.number)
        self.engine.given.append((message, self.number))
        if what == "refuse":
            raise WorkerLostError("gone before it was told")
        self.is_silent = what == "silent"
        self.is_late = what in ("later", "lose later")
        self.pending = WorkerLostError("gone") if what in ("lose", "lose later") else replied(self.server, message)

    def receive(self) -> Reply:
        pending, self.pending = self.pending, None
        if isinstance(pending, WorkerLostError):
            raise pending
        assert isinstance(pending, Reply)
        return pending

    def stop(self) -> None:
        self.is_stopped = True


class ScriptedEngine:
    """Workers answer in a random order, one at a time."""

    def __init__(self, n_workers: int, script: Callable[[Any, int], str], seed: int = 0) -> None:
        self.n_workers, self.script = n_workers, script
        self.started: list[ScriptedWorker] = []
        self.given: list[tuple[Any, int]] = []
        self.order = random.Random(seed)
        self.now = self.until = 0.0
        self.begins: Callable[[int], bool] = lambda _: True

    def start(self, make_server: Callable[[], Server]) -> ScriptedWorker:
        self.started.append(ScriptedWorker(self, len(self.started), make_server()))
        self.started[-1].is_silent = not self.begins(self.started[-1].number)
        return self.started[-1]

    def wait(self, workers: Sequence[ScriptedWorker], seconds: float | None) -> list[ScriptedWorker]:
        late = self.now < self.until
        ready = [
            worker for worker in workers if worker.pending and not worker.is_silent and not (late and worker.is_late)
        ]
        assert ready or seconds is not None, "no worker would ever answer"
        self.now += 0.01 if ready else seconds or 0.0
        return [self.order.choice(ready)] if ready else []

    def clock(self) -> float:
        return self.now

    def close(self) -> None:
        raise AssertionError("the pool does not own the engine")


def square(number: int) -> int:
    return number * number


def make_square() -> Server:
    return square


def done(pool: WorkerPool, tasks: Sequence[Any]) -> list[Any]:
    """The results in the order of the tasks; every task must have been answered once."""
    pairs = list(pool.results(tasks))
    assert sorted(place for place, _ in pairs) == list(range(len(tasks)))
    return [result for _, result in sorted(pairs)]


def well(_message: Any, _worker: int) -> str:
    return "answer"


@pytest.fixture
def incidents() -> list[Incident]:
    return []


@given(n_workers=st.integers(1, 5), n_tasks=st.integers(0, 30), seed=st.integers(0, 100))
def test_every_task_is_answered_once(n_workers: int, n_tasks: int, seed: int) -> None:
    engine = ScriptedEngine(n_workers, well, seed)
    pool = WorkerPool(engine, make_square)
    assert done(pool, range(n_tasks)) == [number**2 for number in range(n_tasks)]
    assert len(engine.given) == n_tasks
    assert len(engine.started) == min(n_workers, n_tasks), "no worker is started for nothing"
    assert done(pool, [7]) == [49]
    assert len(engine.started) <= max(min(n_workers, n_tasks), 1), "those who are there are used again"


@given(n_workers=st.integers(1, 4), seed=st.integers(0, 200), rate=st.floats(0, 0.5))
def test_tasks_of_lost_workers_are_done_again(n_workers: int, seed: int, rate: float) -> None:
    chance = random.Random(seed)

    def sometimes(_message: Any, _worker: int) -> str:
        return chance.choice(["lose", "refuse"]) if chance.random() < rate else "answer"

    incidents: list[Incident] = []
    engine = ScriptedEngine(n_workers, sometimes, seed)
    try:
        assert done(WorkerPool(engine, make_square, on_incident=incidents.append), range(20)) == [
            n**2 for n in range(20)
        ]
    except WorldError:
        assert len(incidents) >= MAX_LOSSES
    assert {incident.kind for incident in incidents} <= {IncidentKind.LOST}
    lost = [worker for worker in engine.started if worker.is_stopped]
    assert len(lost) == len(incidents)


def test_a_task_that_always_loses_its_worker_is_an_error_and_not_a_loop(incidents: list[Incident]) -> None:
    engine = ScriptedEngine(3, lambda message, _: "lose" if message == 5 else "answer")
    with pytest.raises(WorldError, match="10 workers were lost one after the other"):
        done(WorkerPool(engine, make_square, on_incident=incidents.append), range(9))
    assert len(incidents) == MAX_LOSSES


def test_the_loss_of_a_machine_with_many_workers_ends_nothing(incidents: list[Incident]) -> None:
    on_machine = 4 * MAX_LOSSES
    engine = ScriptedEngine(on_machine + 1, lambda _, number: "lose later" if number < on_machine else "later")
    engine.begins = lambda number: number <= on_machine  # there is no machine for others
    engine.until = 1.0  # when all workers have begun
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, clock=engine.clock)
    assert done(pool, range(50)) == [n**2 for n in range(50)]
    assert len(incidents) == on_machine


@pytest.mark.parametrize("on_slow", ["repeat", "wait", "ignore"])
def test_a_worker_that_never_begins_is_not_waited_for_when_all_others_have_failed(
    on_slow: OnSlow, incidents: list[Incident]
) -> None:
    attempts = []

    def fail_twice(message: int) -> int:
        attempts.append(message)
        if len(attempts) <= 2:
            raise TryElsewhereError("not yet")
        return message

    engine = ScriptedEngine(2, lambda *_: "answer")
    engine.begins = lambda number: number == 0
    pool = WorkerPool(engine, lambda: fail_twice, on_incident=incidents.append, on_slow=on_slow, clock=engine.clock)
    assert done(pool, [7, 8]) == [7, 8]
    assert len(incidents) == 2
    assert engine.now > SECONDS_TO_BEGIN


def test_a_task_that_failed_is_given_to_another_worker(incidents: list[Incident]) -> None:
    failing_server = {"number": None}

    def make() -> Server:
        mine = object()

        def server(message: Any) -> Any:
            failing_server["number"] = failing_server["number"] or mine  # type: ignore[assignment]
            if failing_server["number"] is mine:
                raise TryElsewhereError("not here")
            return message

        return server

    engine = ScriptedEngine(2, well)
    assert done(WorkerPool(engine, make, on_incident=incidents.append), ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
    assert {incident.kind for incident in incidents} == {IncidentKind.FAILED}
    assert len({incident.worker for incident in incidents}) == 1
    for task in "abcd":
        workers = [worker for message, worker in engine.given if message == task]
        assert len(workers) == len(set(workers)), "never twice by the same"


def test_a_task_at_which_all_have_failed_is_tried_again_and_told_how_often(incidents: list[Incident]) -> None:
    def make() -> Server:
        def server(message: Any) -> Any:
            if message[1] < 3:
                raise TryElsewhereError("not yet")
            return message

        return server

    engine = ScriptedEngine(2, well)
    pool = WorkerPool(
        engine, make, make_message=lambda task, failures, _: (task, failures), on_incident=incidents.append
    )
    assert done(pool, ["a"]) == [("a", 3)]
    assert len(incidents) == 3


def test_another_error_of_a_task_is_raised_and_the_crew_can_go_on() -> None:
    def make() -> Server:
        return lambda number: 10 // number

    pool = WorkerPool(ScriptedEngine(2, well), make)
    with pytest.raises(ZeroDivisionError):
        done(pool, [1, 2, 0, 5])
    assert done(pool, [1, 2, 5]) == [10, 5, 2]


def test_a_worker_is_briefed_by_what_it_was_told_before() -> None:
    def make_message(_task: int, _failures: int, memory: dict[str, Any]) -> int:
        memory["told"] = memory.get("told", 0) + 1
        return int(memory["told"])

    engine = ScriptedEngine(2, lambda message, worker: "lose" if (message, worker) == (3, 0) else "answer")
    list(WorkerPool(engine, make_square, make_message=make_message).results(range(12)))
    for number in range(len(engine.started)):
        told = [message for message, worker in engine.given if worker == number]
        assert told == list(range(1, len(told) + 1)), "a new worker has been told nothing"


def first_at(engine: ScriptedEngine, task: Any, worker: int) -> bool:
    """Whether a worker is the first to be given a task."""
    return next((number for message, number in engine.given if message == task), worker) == worker


def test_a_slow_task_is_done_by_an_idle_worker_as_well(incidents: list[Incident]) -> None:
    def hang_once(message: Any, worker: int) -> str:
        return "silent" if message == 4 and first_at(engine, 4, worker) else "answer"

    engine = ScriptedEngine(3, hang_once)
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, clock=engine.clock)
    assert done(pool, range(6)) == [0, 1, 4, 9, 16, 25]
    assert [incident.kind for incident in incidents] == [IncidentKind.SLOW]
    first, second = [worker for message, worker in engine.given if message == 4]
    assert engine.started[first].is_stopped, "it might never answer"
    assert not engine.started[second].is_stopped
    assert SLOW_SECONDS <= engine.now <= 2 * SLOW_SECONDS


def test_a_worker_is_started_to_help_with_the_only_task(incidents: list[Incident]) -> None:
    engine = ScriptedEngine(2, lambda message, worker: "silent" if message == 7 and worker == 0 else "answer")
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, clock=engine.clock)
    assert done(pool, [3]) == [9]
    assert done(pool, [7]) == [49]
    assert [incident.kind for incident in incidents] == [IncidentKind.SLOW]
    assert len(engine.started) == 2


def test_a_silent_worker_is_replaced_if_no_other_can_help_each_time_after_twice_as_long(
    incidents: list[Incident],
) -> None:
    engine = ScriptedEngine(1, lambda message, worker: "silent" if message == 3 and worker < 2 else "answer")
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, clock=engine.clock)
    assert done(pool, range(5)) == [0, 1, 4, 9, 16]
    assert [incident.kind for incident in incidents] == [IncidentKind.SLOW] * 2
    assert len(engine.started) == 3
    patience = PATIENCE * SLOW_SECONDS
    assert 3 * patience <= engine.now <= 3 * patience + 2 * SLOW_SECONDS


def test_a_slow_task_is_waited_for_where_others_would_do_it_otherwise(incidents: list[Incident]) -> None:
    engine = ScriptedEngine(2, lambda message, _: "later" if message == 3 else "answer")
    engine.until = 1000 * SLOW_SECONDS
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, on_slow="wait", clock=engine.clock)
    assert done(pool, range(6)) == [0, 1, 4, 9, 16, 25]
    assert [message for message, _ in engine.given].count(3) == 1
    assert [(incident.kind, incident.repeated) for incident in incidents] == [(IncidentKind.SLOW, False)]
    assert "step_timeout" in str(incidents[0])


def test_nothing_is_slow_before_anything_was_done(incidents: list[Incident]) -> None:
    """The first tasks may be long; there is nothing to measure them by."""
    engine = ScriptedEngine(2, lambda *_: "later")
    engine.until = 1000.0
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, clock=engine.clock)
    assert done(pool, [1, 2, 3]) == [1, 4, 9]
    assert not incidents


def test_results_that_are_no_longer_needed_leave_no_busy_workers() -> None:
    engine = ScriptedEngine(3, well)
    pool = WorkerPool(engine, make_square)
    results: Iterator[tuple[int, Any]] = pool.results(range(10))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert done(pool, range(4)) == [0, 1, 4, 9]


def test_this_process_is_an_engine_too() -> None:
    pool = WorkerPool(InProcess(), make_square)
    assert list(pool.results(range(5))) == [(number, number**2) for number in range(5)]
    pool.close()


def test_those_who_were_lost_while_idle_are_replaced_before_the_others_answer(incidents: list[Incident]) -> None:
    engine = ScriptedEngine(3, lambda message, worker: "refuse" if (message, worker) == (10, 0) else "answer")
    pool = WorkerPool(engine, make_square, on_incident=incidents.append, on_slow="ignore")
    assert done(pool, range(3)) == [0, 1, 4]
    started_at_wait: list[int] = []
    wait = engine.wait

    def noting(workers: Sequence[ScriptedWorker], seconds: float | None) -> list[ScriptedWorker]:
        started_at_wait.append(len(engine.started))
        return wait(workers, seconds)

    engine.wait = noting  # type: ignore[method-assign]
    assert done(pool, [10, 20, 30]) == [100, 400, 900]
    assert started_at_wait[0] == 4, "three, and one for the one that was lost"
