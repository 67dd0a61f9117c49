"""What a program has started ends with it, however fast it starts more.

The programs are finite by construction: each process takes a token from a pipe before it starts another, the pipe
holds a fixed number of them, and an alarm ends every process after 20 seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from axplore.worlds import child_process
from axplore.worlds.child_process import GuardedProcess

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guardian needs Linux")

TOKENS = 150

PROGRAM = """
import os, signal, sys, time
mark, tokens, leaves_group = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "yes"
reading, writing = os.pipe()
os.write(writing, b"x" * tokens)
os.set_blocking(reading, False)
print("begun", flush=True)
os.close(1)
while True:
    signal.alarm(20)
    try:
        os.read(reading, 1) or os._exit(0)
    except BlockingIOError:
        break
    if os.fork() == 0 and leaves_group:
        os.setsid()
    time.sleep(0.002)
time.sleep(20)
"""


def processes_with(mark: str) -> int:
    """How many processes have a word among their arguments."""
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += mark.encode() in (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
    return found


@pytest.mark.parametrize("leaves_group", ["no", "yes"])
@pytest.mark.parametrize("waits", [0.0, 0.5])
def test_nothing_is_left_of_a_program_that_starts_others_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_group: str, waits: float
) -> None:
    # Whoever waited only this long for the guardian would end it before it has killed all of them.
    monkeypatch.setattr(child_process, "SECONDS_TO_END", 0.005)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    mark = f"mark-{os.getpid()}-{leaves_group}-{waits}"
    command = [sys.executable, str(program), mark, str(TOKENS), leaves_group]
    process = GuardedProcess(command, None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    time.sleep(waits)
    assert processes_with(mark) >= 1
    process.end()
    process.stdout.close()
    assert processes_with(mark) == 0
