from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from axplore.errors import WorldError
from axplore.workers.engines import Server, WorkerLostError, engine_for
from axplore.workers.pool import results_of
from axplore_studies.in_process import InProcess, InProcessWorker


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    if number == 2:
        raise WorldError("no 2")
    return number


def die_once(folder: Path, number: int) -> int:
    """The square of a number; the process that is the first to be asked for the square of 3 is killed."""
    if number == 3 and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def test_without_an_engine_tasks_are_done_here_in_turn() -> None:
    done: list[int] = []
    results = results_of(lambda number: done.append(number) or square(number), [1, 2, 3])  # type: ignore[func-returns-value]
    assert next(results) == 1
    assert done == [1]
    assert list(results) == [4, 9]


def test_an_engine_does_every_task_once() -> None:
    assert sorted(results_of(square, range(20), InProcess())) == [number * number for number in range(20)]


def test_an_error_of_a_task_ends_the_sweep() -> None:
    with pytest.raises(WorldError, match="no 2"):
        list(results_of(refuse, [1, 2, 3], InProcess()))


def test_the_task_of_a_killed_process_is_done_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "axplore"), engine_for(2, None) as engine:
        assert sorted(results_of(partial(die_once, tmp_path), range(6), engine)) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "killed").exists()
    assert "a worker was lost, its work is repeated" in caplog.text


class DiesIdle(InProcess):
    """An engine whose first worker is ready, and gone when it is told the first task."""

    def __init__(self) -> None:
        self.started = 0

    def start(self, make_server: Callable[[], Server]) -> InProcessWorker:
        self.started += 1
        worker = super().start(make_server)
        if self.started == 1:
            worker.send = self.lose  # type: ignore[method-assign]
        return worker

    def lose(self, message: int) -> None:
        raise WorkerLostError(f"gone before {message}")

    def wait(self, workers: Sequence[InProcessWorker], seconds: float | None) -> list[InProcessWorker]:
        assert workers or seconds is not None, "no worker will ever answer"
        return super().wait(workers, seconds)


def test_other_workers_are_started_when_all_are_lost_before_their_first_task() -> None:
    engine = DiesIdle()
    assert list(results_of(square, [1, 2], engine)) == [1, 4]
    assert engine.started == 2


def test_no_workers_are_no_engine() -> None:
    with engine_for(None, None) as engine:
        assert engine is None
