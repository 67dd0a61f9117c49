"""Child processes: one that answers each line with a line within a time limit, and Python systems that run in one.

An isolated system may hang or die without harm. Its process runs this module; both sides write lines, which are pickled
values in base64. What the system prints goes to standard error.
"""

from __future__ import annotations

import base64
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import IO, Any, Final

import numpy as np

from axplore.errors import InvalidSettingError, WorldError
from axplore.records.findings import FaultKind
from axplore.types import Action, State
from axplore.worlds import guardian
from axplore.worlds.state_labels import plain_state
from axplore.worlds.systems import Factory, SystemFaultError, adapter_for

LONGEST_LINE: Final = 2**24
"""The longest answer accepted, in bytes."""

SECONDS_TO_END: Final = 2.0
"""Seconds that a process may take to end by itself when it is told to."""


class Child:
    """A running process, which ends when this one does. Ctrl-C does not reach it: the exploration handles that."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        try:
            self._process = GuardedProcess(command, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except (OSError, ValueError) as error:
            raise WorldError(f"{command[0] if command else 'the command'!r} cannot be run: {error}") from error
        self._unread = b""
        self._is_asked = False  # and has not answered
        self.close = weakref.finalize(self, _end, self._process)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, line: bytes, timeout: float | None) -> bytes:
        """Sends a line and returns the answer, both without the line break."""
        if self._is_asked:
            raise SystemFaultError(FaultKind.DIED, "the request before was interrupted, and its answer may still come")
        if self._unread:
            raise SystemFaultError(FaultKind.INVALID, f"it wrote more than one line per request: {self._unread[:80]!r}")
        try:
            _stream(self._process.stdin).write(line + b"\n")
        except OSError:
            raise self._died() from None
        self._is_asked = True
        answer = self._line(timeout)
        self._is_asked = False
        return answer

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
        code = self._process.code
        if code is None:
            return SystemFaultError(FaultKind.DIED, "it closed its output")
        return SystemFaultError(FaultKind.DIED, how_it_ended(code))


class GuardedProcess:
    """A process out of the reach of Ctrl-C that ends with this one, however it ends, and with all that it has started.

    On Linux another process sees to that: see `guardian`. Elsewhere a process ends when its input does, if it heeds
    that, and what it has started and is still in its group is killed when it is told to end.

    Attributes:
        pid: its number.
        stdin, stdout: the ends of its pipes, if there are any.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None,
        *,
        stdin: int,
        stdout: int | None = None,
        files: Sequence[int] = (),
    ) -> None:
        """Starts it.

        Args:
            command: what to run.
            environment: its variables; those of this process when None.
            stdin, stdout: as for `subprocess.Popen`.
            files: the descriptors that it inherits.

        Raises:
            OSError: the command cannot be run.
        """
        reading, writing = os.pipe()
        try:
            guarded = [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), str(writing), *command]
            self._process = subprocess.Popen(
                guarded if _CAN_BE_GUARDED else command,
                stdin=stdin,
                stdout=stdout,
                bufsize=0,
                env=environment,
                pass_fds=[*files, writing] if _CAN_BE_GUARDED else files,
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.stdin, self.stdout = self._process.stdin, self._process.stdout
        with os.fdopen(reading, encoding="ascii") as report:
            told = dict(line.split() for line in report)
        self.pid = int(told.get("process", self._process.pid))
        if "error" in told:
            self._process.communicate()
            number = int(told["error"])
            raise OSError(number, os.strerror(number), command[0])

    @property
    def code(self) -> int | None:
        """Its exit code, negative if it is a signal; None while it is running."""
        return self._process.poll()

    def wait(self, seconds: float) -> None:
        """Waits until it has ended; raises `subprocess.TimeoutExpired` if that takes longer."""
        self._process.wait(seconds)

    def end(self) -> None:
        """Waits for a process that should be ending, and kills it and what it has started if it has not ended soon."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)
        if _CAN_BE_GUARDED:
            self._process.terminate()  # the guardian, which kills the others first; they would outlive it
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(guardian.SECONDS_TO_KILL + SECONDS_TO_END)
        with suppress(OSError):  # all have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


_CAN_BE_GUARDED: Final = sys.platform == "linux" and bool(sys.executable)


def how_it_ended(code: int) -> str:
    """Describes the exit code of a process as given by `subprocess`."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal, which has no name
        return f"killed by signal {-code}"


def interpreter_environment() -> dict[str, str]:
    """Returns environment variables with which another Python finds the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # both are pipes
    return stream


def _end(process: GuardedProcess) -> None:
    """Ends a process by closing its input, and kills it if that does not help."""
    with suppress(OSError):
        _stream(process.stdin).close()
    process.end()
    _stream(process.stdout).close()


SECONDS_TO_START: Final = 120.0
"""Seconds that a new process may take to start and to make its system."""


def isolated(factory: Factory, step_timeout: float) -> Callable[[], IsolatedSystem]:
    """Returns a factory of the same systems, each in its own process, whose steps fail after a timeout in seconds."""
    import cloudpickle

    if not step_timeout > 0:
        raise InvalidSettingError(f"step_timeout is {step_timeout}; it must be a positive number of seconds")
    return partial(IsolatedSystem, cloudpickle.dumps(factory), step_timeout)


class IsolatedSystem:
    """A system in another process; see `systems`."""

    knows_here_only = True

    def __init__(self, pickled_factory: bytes, step_timeout: float) -> None:
        self._child = Child([sys.executable, "-m", "axplore.worlds.child_process"], interpreter_environment())
        self._timeout = step_timeout
        self._announced: dict[State, tuple[tuple[Action, ...], bool]] = {}
        self._answer(base64.b64encode(pickled_factory), SECONDS_TO_START)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def reset(self) -> State:
        """Resets the system."""
        return self._entered("reset", None)

    def step(self, action: Action) -> State:
        """Steps the system."""
        return self._entered("step", action)

    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the actions of the state just entered."""
        return self._announced[state][0]

    def is_terminal(self, state: State) -> bool:
        """Returns whether the state just entered is terminal."""
        return self._announced[state][1]

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the noise of the system a new random stream, if it can be reseeded."""
        self._answer(_packed(("reseed", seed)), self._timeout)

    def close(self) -> None:
        """Ends the process."""
        self._child.close()

    def _entered(self, name: str, argument: Any) -> State:
        state, told = self._answer(_packed((name, argument)), self._timeout)
        if told is not None:
            self._announced[state] = told
        entered: State = state
        return entered

    def _answer(self, request: bytes, timeout: float) -> Any:
        kind, value = _unpacked(self._child.ask(request, timeout))
        if kind == "answer":
            return value
        if kind == "refused":
            raise WorldError(value)
        raise SystemFaultError(FaultKind[kind], value)


def serve() -> None:
    """Makes a system, and serves requests until the input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what the system prints must not mix with the answers
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    server: _Server | None = None
    while line := requests.get():
        try:
            if server is None:
                server = _Server(_unpacked(line)())
                answer: Any = ("answer", None)
            else:
                answer = ("answer", server.do(*_unpacked(line)))
        except WorldError as error:
            answer = ("refused", str(error))
        except SystemFaultError as error:
            answer = (error.kind.name, str(error))
        except Exception as error:
            answer = (FaultKind.RAISED.name, f"{type(error).__name__}: {error}")
        answers.write(_packed(answer) + b"\n")


def _read(requests: SimpleQueue[bytes]) -> None:
    """Reads requests, and ends the process with its input, even if the system hangs in a step."""
    for line in sys.stdin.buffer:
        requests.put(line)
    requests.put(b"")
    time.sleep(SECONDS_TO_END / 2)
    os._exit(1)


class _Server:
    """The system on its own side. It tells the actions of a state once, and again when they change."""

    def __init__(self, system: Any) -> None:
        # A system without actions gets them on the other side.
        self._adapter = adapter_for(system, None if hasattr(system, "actions") else ())
        self._is_terminal = getattr(system, "is_terminal", lambda _: False)
        self._announced: dict[State, tuple[tuple[Action, ...], bool]] = {}

    def do(self, name: str, argument: Any) -> Any:
        if name == "reseed":
            return self._adapter.reseed(argument)
        state = self._adapter.reset() if name == "reset" else self._adapter.step(argument)
        label = plain_state(state, name)
        told = self._adapter.actions(state), bool(self._is_terminal(state))
        if self._announced.get(label) == told:
            return label, None
        self._announced[label] = told
        return label, told


def _packed(value: Any) -> bytes:
    return base64.b64encode(pickle.dumps(value))


def _unpacked(line: bytes) -> Any:
    return pickle.loads(base64.b64decode(line))


if __name__ == "__main__":
    serve()
