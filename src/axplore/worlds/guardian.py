"""Runs a command, and makes sure that nothing of it stays behind.

This file is run as a script:

    python -I -S guardian.py PARENT REPORT COMMAND [ARGUMENT]...

The guardian stands between the process that starts it and the command. What the command starts, and no longer has a
parent, becomes a child of the guardian, even if it has left its process group. When the command ends, or PARENT does,
by SIGKILL too, or when PARENT sends SIGTERM, the guardian kills all of it and ends as the command did.

To the file descriptor REPORT it writes a line `process N` with the process id of the command, and, before it or
after it, a line `error N` if the command cannot be run.

This works only on Linux. The script imports nothing of axplore, so that it starts quickly.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Never

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
"""Options of prctl on Linux: the signal to receive when the parent ends, and to become the parent of orphans."""

PARENT_ENDED: Final = signal.SIGUSR1

SECONDS_BETWEEN_LOOKS: Final = 5.0
"""Seconds between checks that the parent still exists, although a signal should tell."""

SECONDS_TO_KILL: Final = 20.0
"""Seconds after which processes that cannot be killed, such as those of another user, are left alone."""


def guard(parent: int, report: int, command: list[str]) -> Never:
    """Runs the command until it or the parent ends, kills what is left, and ends as the command did."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, PARENT_ENDED)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    guardian = os.getpid()
    process = os.fork()
    if process == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _become(command, report, guardian)
    with suppress(OSError):  # the reader is gone
        os.write(report, f"process {process}\n".encode())
    _let_go_of_files()
    codes: dict[int, int] = {}
    while process not in codes and os.getppid() == parent:
        told = signal.sigtimedwait((signal.SIGCHLD, signal.SIGTERM, PARENT_ENDED), SECONDS_BETWEEN_LOOKS)
        if told is not None and told.si_signo == signal.SIGTERM and told.si_pid == parent:
            break
        codes.update(_ended())
    codes.update(_kill_all())
    _end_as(codes.get(process, -signal.SIGKILL))


def _become(command: list[str], report: int, guardian: int) -> Never:
    """Turns into the command, in the new process."""
    if os.getppid() != guardian:
        os._exit(1)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.set_inheritable(report, False)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(report, f"error {error.errno}\n".encode())
    os._exit(127)


def _let_go_of_files() -> None:
    """Closes everything but standard error: an end of file must not wait for the guardian."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) != 2:
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(int(name))


def _ended() -> Iterator[tuple[int, int]]:
    """Yields the children that have ended since, each with its exit code, negative if it is a signal."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended[0], os.waitstatus_to_exitcode(ended[1])


def _kill_all() -> Iterator[tuple[int, int]]:
    """Kills everything that the command has started until nothing is left.

    Processes that start others faster than they can be killed are stopped first: one that is stopped starts none, so
    that each look finds fewer that still run.
    """
    deadline = time.monotonic() + SECONDS_TO_KILL
    while (left := _descendants()) and time.monotonic() < deadline:
        for told in (signal.SIGSTOP, signal.SIGKILL):
            for process in left:
                with suppress(OSError):
                    os.kill(process, told)
        signal.sigtimedwait((signal.SIGCHLD,), 0.01)
        yield from _ended()


def _descendants() -> list[int]:
    """Returns the processes that descend from this one, itself left out. Orphans among them are its own children."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                after_name = stat.read().rpartition(b")")[2].split()
                children.setdefault(int(after_name[1]), []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for process in found:  # grows while it is read
        found += children.get(process, ())
    return found


def _end_as(code: int) -> Never:
    """Ends with an exit code, or by the signal that it stands for."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):  # SIGKILL has no handler to restore
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    guard(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
