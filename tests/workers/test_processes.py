from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from random_walk import SECONDS_OF_HANGING, SlowWalk, Walk, WalkThatFailsOnce, WalkThatHangsOnce

import axplore
from axplore.errors import InvalidSettingError, WorldError
from axplore.workers import pool as crew_module
from axplore.workers.distributed import DistributedWorld
from axplore.workers.engines import Server
from axplore.workers.pool import WorkerPool
from axplore.workers.processes import Processes
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess
from waiting import PATIENCE, comes_true

FILES = ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz")
WALK = {"radius": 5.0, "epsilon": 1.0, "explorer": "certified"}


def saved(atlas: axplore.Atlas, folder: Path) -> dict[str, bytes]:
    """The files of an atlas."""
    atlas.save(folder)
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The atlas of the walk, explored by this process."""
    with DistributedWorld(SteppedWorld(Walk), InProcess()) as world:
        atlas = axplore.explore(world, **WALK)  # type: ignore[arg-type]
    assert list(atlas.states) == [0, 1, 2, 3]
    return saved(atlas, tmp_path_factory.mktemp("expected"))


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[Processes]:
    engine = Processes(getattr(request, "param", 2))
    yield engine
    engine.close()
    assert not engine.pids


def explored(factory: Any, engine: Processes, folder: Path) -> tuple[dict[str, bytes], DistributedWorld]:
    with DistributedWorld(SteppedWorld(factory), engine) as world:
        return saved(axplore.explore(world, **WALK), folder), world  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", [1, 2, 4], indirect=True)
def test_any_number_of_processes_gives_the_same_bytes(
    engine: Processes, expected: dict[str, bytes], tmp_path: Path
) -> None:
    found, world = explored(Walk, engine, tmp_path)
    assert found == expected
    assert not world.incidents


def test_ten_killed_workers_change_nothing(
    engine: Processes, expected: dict[str, bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kills, steps_between = 10, 100
    victims = random.Random(7)
    is_over = threading.Event()
    killed: list[int] = []

    def kill(world: DistributedWorld) -> None:
        while len(killed) < kills and not is_over.wait(0.005):
            pids = engine.pids
            if pids and world.steps_by_now > steps_between * len(killed):
                victim = victims.choice(pids)
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

    with DistributedWorld(SteppedWorld(SlowWalk), engine) as world:
        killer = threading.Thread(target=kill, args=(world,))
        killer.start()
        try:
            found = saved(axplore.explore(world, **WALK), tmp_path)  # type: ignore[arg-type]
        finally:
            is_over.set()
            killer.join()
    assert len(killed) == kills, "the run was over too soon to be killed so often"
    assert found == expected
    assert [incident.kind.name for incident in world.incidents].count("LOST") >= 1
    assert "was killed by SIGKILL" in caplog.text


def test_a_system_that_fails_in_one_process_only_changes_nothing(
    engine: Processes, expected: dict[str, bytes], tmp_path: Path
) -> None:
    world = SteppedWorld(partial(WalkThatFailsOnce, tmp_path / "licence"))
    with DistributedWorld(world, engine) as worked:
        found = saved(axplore.explore(worked, **WALK), tmp_path / "atlas")  # type: ignore[arg-type]
    assert found == expected
    assert {incident.kind.name for incident in worked.incidents} == {"FAILED"}
    assert "this machine has no licence" in str(worked.incidents[0])


def test_a_worker_that_hangs_changes_nothing(
    engine: Processes, expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, "SLOW_SECONDS", 0.2)
    began = time.monotonic()
    found, world = explored(partial(WalkThatHangsOnce, tmp_path / "hung"), engine, tmp_path / "atlas")
    assert found == expected
    assert "SLOW" in {incident.kind.name for incident in world.incidents}
    assert time.monotonic() - began < SECONDS_OF_HANGING, "it did not wait for the one that hangs"


def make_echo() -> Server:
    return lambda message: message


def test_workers_and_what_they_have_started_end_with_the_process_that_started_them() -> None:
    program = """
import os, subprocess, sys, time
from axplore.workers.pool import WorkerPool
from axplore.workers.processes import Processes
engine = Processes(2)
def make_server():
    daemon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    return lambda seconds: time.sleep(seconds) or daemon.pid
pool = WorkerPool(engine, make_server)
daemons = [pid for _, pid in pool.results([0, 0])]
print(*engine.pids, *set(daemons), flush=True)
for _ in pool.results([60, 60]): pass
"""
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pids = [int(pid) for pid in starter.stdout.readline().split()]
    assert len(pids) >= 3
    starter.kill()
    starter.wait()
    starter.stdout.close()
    assert comes_true(lambda: not any(map(is_alive, pids))), "although they were at work"


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_without_a_main_guard_can_have_workers(tmp_path: Path) -> None:
    """Its systems are of a class that no other process can import."""
    (tmp_path / "program.py").write_text(
        """
import axplore

class Line:
    actions = ("on",)
    def reset(self):
        print("what a system prints")
        self.state = ("cell", 0)
        return self.state
    def step(self, action):
        self.state = ("cell", min(self.state[1] + 1, 2))
        return self.state

atlas = axplore.explore(Line, radius=3, epsilon=0.5, workers=2)
print(sorted(atlas.states))
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines()[-1] == "[('cell', 0), ('cell', 1), ('cell', 2)]"


def test_what_workers_print_does_not_stand_in_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    engine = Processes(1)
    pool = WorkerPool(engine, lambda: print)
    assert list(pool.results(["hello"])) == [(0, None)]
    engine.close()
    captured = capfd.readouterr()
    assert "hello" not in captured.out
    assert "hello" in captured.err


def test_an_error_in_a_worker_is_the_callers(engine: Processes) -> None:
    pool = WorkerPool(engine, lambda: lambda number: 10 // number)
    with pytest.raises(ZeroDivisionError):
        list(pool.results([1, 0]))


def test_an_answer_that_cannot_be_sent_is_an_error_and_not_a_loss(engine: Processes) -> None:
    pool = WorkerPool(engine, lambda: lambda _: threading.Lock())
    with pytest.raises(RuntimeError, match="cannot be sent: TypeError"):
        list(pool.results([1]))


def test_a_worker_that_cannot_be_made_is_an_error_and_not_a_loss(engine: Processes) -> None:
    def make() -> Server:
        raise ImportError("no such simulator")

    with pytest.raises(ImportError, match="no such simulator"):
        list(WorkerPool(engine, make).results([1]))


def test_workers_that_die_at_once_are_given_up(engine: Processes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with pytest.raises(WorldError, match=r"workers were lost one after the other; the last: .* ended with status 3"):
        list(WorkerPool(engine, lambda: lambda _: os._exit(3)).results([1]))


@pytest.mark.parametrize("workers", [-1, 1.5, "two", True])
def test_a_number_of_workers_that_is_none_is_refused(workers: Any) -> None:
    with pytest.raises(InvalidSettingError, match="workers is"):
        axplore.explore("confusing-chain", radius=2, workers=workers)
