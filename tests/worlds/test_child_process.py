"""Nothing stays behind, however the process that explores ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from axplore.errors import StorageError, WorldError
from axplore.storage import Lock
from axplore.worlds.child_process import Child, how_it_ended
from axplore.worlds.systems import SystemFaultError
from waiting import comes_true

DEAF_PROGRAM = """
import axplore.worlds.program as program, sys
system = program.Program([sys.executable, "-c", "import time; time.sleep(600)"])
print(system.pid, flush=True)
system.reset()
"""
"""A program that never reads its input, so that it does not notice when that ends."""

HANGING_SYSTEM = """
import time
from axplore.worlds.child_process import isolated

class Hanging:
    actions = ("go",)

    def reset(self):
        time.sleep(600)

    def step(self, action):
        return action

system = isolated(Hanging, 600.0)()
print(system.pid, flush=True)
system.reset()
"""


FORKING = """
import os, subprocess, sys, time
def sleeping(*, daemon):
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=daemon).pid
started = [sleeping(daemon=False), sleeping(daemon=True)]
if os.fork() == 0:  # an orphan in a session of its own, as a daemon is
    os.setsid()
    if os.fork() == 0:
        started.append(os.getpid())
        open(sys.argv[1] + ".new", "w").write(" ".join(map(str, started)))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(600)
    os._exit(0)
"""
"""A program that starts a process in its group, one in a session of its own, and a daemon, and writes their numbers."""

FORKING_PROGRAM = FORKING + "time.sleep(600)"
FORKING_AND_ENDING = (
    FORKING
    + """
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
sys.exit(7)
"""
)

EXPLORING = """
import sys, time
from axplore.worlds.child_process import Child
child = Child([sys.executable, "-c", sys.argv[1], sys.argv[2]])
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("script", [DEAF_PROGRAM, HANGING_SYSTEM], ids=["deaf program", "hanging system"])
def test_a_system_in_its_own_process_ends_with_whoever_steps_it(script: str, signal_number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as exploring:
        assert exploring.stdout is not None
        pid = int(exploring.stdout.readline())
        assert is_running(pid)
        exploring.send_signal(signal_number)
        exploring.wait()
    if not comes_true(lambda: not is_running(pid)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        pytest.fail("it stayed behind")


def numbers_in(file: Path) -> list[int]:
    """The numbers of processes, as soon as they are written."""
    assert comes_true(file.exists)
    return [int(number) for number in file.read_text(encoding="ascii").split()]


def left_behind(pids: list[int]) -> list[int]:
    """The processes that are still running after a while, which are ended then."""
    comes_true(lambda: not any(map(is_running, pids)))
    left = [pid for pid in pids if is_running(pid)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_b5_what_a_program_has_started_ends_with_whoever_explores(tmp_path: Path, signal_number: int) -> None:
    started = tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-c", EXPLORING, FORKING_PROGRAM, str(started)]) as exploring:
        pids = numbers_in(started)
        assert all(map(is_running, pids))
        exploring.send_signal(signal_number)
        exploring.wait()
    assert len(pids) == 3
    assert left_behind(pids) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a guardian")
@pytest.mark.parametrize("end", ["closed", "killed", "ended"])
def test_b5_what_a_program_has_started_ends_with_the_program(tmp_path: Path, end: str) -> None:
    started = tmp_path / "pids"
    code = FORKING_AND_ENDING if end == "ended" else FORKING_PROGRAM
    child = Child([sys.executable, "-c", code, str(started)])
    pids = numbers_in(started)
    if end == "killed":
        os.kill(child.pid, signal.SIGKILL)
    if end == "closed":
        child.close()
    else:
        with pytest.raises(SystemFaultError, match="exit status 7" if end == "ended" else "killed by SIGKILL"):
            child.ask(b"hello", 20.0)
    assert left_behind([child.pid, *pids]) == []
    child.close()


def test_a_command_that_cannot_be_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    no_program = tmp_path / "text"
    no_program.write_text("no program", encoding="utf-8")
    for command, reason in ((str(no_program), "Permission denied"), ("no-such-program", "No such file")):
        with pytest.raises(WorldError, match=f"cannot be run: .*{reason}"):
            Child([command])


def test_an_answer_to_a_request_that_was_interrupted_is_not_taken_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    child = Child(["cat"])
    monkeypatch.setattr(select, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        child.ask(b"first", 5.0)
    monkeypatch.undo()
    with pytest.raises(SystemFaultError, match="the request before was interrupted"):
        child.ask(b"second", 5.0)
    child.close()


def test_a_process_that_was_killed_by_a_signal_without_a_name_is_told_by_its_number() -> None:
    child = Child([sys.executable, "-c", "import os; os.kill(os.getpid(), 40)"])
    with pytest.raises(SystemFaultError, match="killed by signal 40"):
        child.ask(b"hello", 20.0)
    assert [how_it_ended(code) for code in (3, -9, -40)] == [
        "exit status 3",
        "killed by SIGKILL",
        "killed by signal 40",
    ]


def test_a_forked_process_does_not_hold_the_lock_of_a_run(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(StorageError, match="in use"):
        Lock(tmp_path)
    reading, writing = os.pipe()
    started, starting = os.pipe()
    forked = os.fork()
    if forked == 0:
        os.close(writing)
        os.write(starting, b".")
        os.read(reading, 1)  # until the test has seen what it wants
        os._exit(0)
    os.close(reading)
    try:
        os.read(started, 1)
        lock.close()
        Lock(tmp_path).close()
    finally:
        os.close(writing)
        os.waitpid(forked, 0)
