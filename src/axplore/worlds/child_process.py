"""A process that answers each line it is sent with a line, in time."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from axplore.errors import WorldError
from axplore.worlds.contract import FaultKind
from axplore.worlds.systems import SystemFaultError

LONGEST_LINE: Final = 2**24
"""An answer of more bytes is none."""

SECONDS_TO_END: Final = 2.0
"""How long a process may take to end by itself once it is told to."""


PR_SET_PDEATHSIG: Final = 1
"""Of Linux's prctl: the signal to get when the parent ends."""


class Child:
    """A running process. It is out of the reach of Ctrl-C, which is for the exploration to hear, and ends with this."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=environment,
                start_new_session=True,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 (it calls two functions of the system, and no lock)
            )
        except (OSError, ValueError) as error:
            raise WorldError(f"{command[0] if command else 'the command'!r} cannot be run: {error}") from error
        self._unread = b""
        self.close = weakref.finalize(self, _end, self._process)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, line: bytes, timeout: float | None) -> bytes:
        """Sends a line and returns the line it is answered with; both without the end of the line."""
        if self._unread:
            raise SystemFaultError(FaultKind.INVALID, f"it said more than it was asked for: {self._unread[:80]!r}")
        try:
            _stream(self._process.stdin).write(line + b"\n")
        except OSError:
            raise self._died() from None
        return self._line(timeout)

    def _line(self, timeout: float | None) -> bytes:
        output = _stream(self._process.stdout).fileno()
        deadline = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._unread:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([output], [], [], left)[0]:
                raise SystemFaultError(FaultKind.TIMED_OUT, f"no answer within {timeout:g} s")
            received = os.read(output, 65536)
            if not received:
                raise self._died()
            self._unread += received
            if len(self._unread) > LONGEST_LINE:
                raise SystemFaultError(FaultKind.INVALID, f"a line of more than {LONGEST_LINE} bytes")
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _died(self) -> SystemFaultError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)
        code = self._process.returncode
        if code is None:
            return SystemFaultError(FaultKind.DIED, "it closed its output")
        return SystemFaultError(FaultKind.DIED, how_it_ended(code))


def how_it_ended(code: int) -> str:
    """Returns what the exit code of a process, as `subprocess` gives it, means."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal, which has no name
        return f"killed by signal {-code}"


def end_with_parent() -> Callable[[], None] | None:
    """Returns what a new process calls first, so that the system kills it when this one ends, even by SIGKILL.

    Only Linux can do that; elsewhere a process ends when its input does, if it heeds that.
    """
    if sys.platform != "linux":
        return None
    set_option, parent = ctypes.CDLL(None).prctl, os.getpid()

    def in_new_process() -> None:
        set_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended in the meantime
            os._exit(1)

    return in_new_process


def interpreter_environment() -> dict[str, str]:
    """The environment for another Python that is to find the modules that this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def end_with_group(process: subprocess.Popen[bytes]) -> None:
    """Waits for a process that should be ending, and kills it and its children if it has not ended soon.

    It must lead a session of its own, so that what it started is in its group.
    """
    with suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_TO_END)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # both are pipes
    return stream


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closes the input of a process, which should end it, and sees to it that it ends."""
    with suppress(OSError):
        _stream(process.stdin).close()
    end_with_group(process)
    _stream(process.stdout).close()
