"""A Python system in a process of its own, so that it may hang or die.

The other process is this module run by itself. Both sides write lines: pickled values, in base64. What the system
prints goes to standard error.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidSettingError, WorldError
from axplore.types import Action, State
from axplore.worlds.child_process import SECONDS_TO_END, Child, interpreter_environment
from axplore.worlds.contract import FaultKind
from axplore.worlds.state_labels import plain_state
from axplore.worlds.systems import Factory, SystemFaultError, adapter_for

SECONDS_TO_START: Final = 120.0
"""How long a new process and the making of its system may take."""


def isolated(factory: Factory, step_timeout: float) -> Callable[[], IsolatedSystem]:
    """A factory of the same systems, each in its own process, that fail after so many seconds without an answer."""
    import cloudpickle

    if not step_timeout > 0:
        raise InvalidSettingError(f"step_timeout is {step_timeout}; it must be a positive number of seconds")
    return partial(IsolatedSystem, cloudpickle.dumps(factory), step_timeout)


class IsolatedSystem:
    """A system in another process: see `systems`."""

    def __init__(self, pickled_factory: bytes, step_timeout: float) -> None:
        self._child = Child([sys.executable, "-m", "axplore.worlds.isolated"], interpreter_environment())
        self._timeout = step_timeout
        self._told: dict[State, tuple[tuple[Action, ...], bool]] = {}
        self._answer(base64.b64encode(pickled_factory), SECONDS_TO_START)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._child.pid

    def reset(self) -> State:
        """Resets the system."""
        return self._entered("reset", None)

    def step(self, action: Action) -> State:
        """Steps the system."""
        return self._entered("step", action)

    def actions(self, state: State) -> tuple[Action, ...]:
        """The actions of the state just entered."""
        return self._told[state][0]

    def is_terminal(self, state: State) -> bool:
        """Whether the state just entered only resets."""
        return self._told[state][1]

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Gives the noise of the system a new stream, if it can be given one."""
        self._answer(_packed(("reseed", seed)), self._timeout)

    def close(self) -> None:
        """Ends the process."""
        self._child.close()

    def _entered(self, name: str, argument: Any) -> State:
        state, told = self._answer(_packed((name, argument)), self._timeout)
        if told is not None:
            self._told[state] = told
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
    """Makes a system, and carries out what is asked for until the input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what the system prints must not stand among the answers
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
    """Ends the process when nobody asks any more, even if the system hangs in a step."""
    for line in sys.stdin.buffer:
        requests.put(line)
    requests.put(b"")
    time.sleep(SECONDS_TO_END / 2)
    os._exit(1)


class _Server:
    """The system on its own side. It tells the actions of a state once."""

    def __init__(self, system: Any) -> None:
        # A system that does not say what can be played gets its actions on the other side.
        self._adapter = adapter_for(system, None if hasattr(system, "actions") else ())
        self._is_terminal = getattr(system, "is_terminal", lambda _: False)
        self._told: set[State] = set()

    def do(self, name: str, argument: Any) -> Any:
        if name == "reseed":
            return self._adapter.reseed(argument)
        state = self._adapter.reset() if name == "reset" else self._adapter.step(argument)
        label = plain_state(state, name)
        if label in self._told:
            return label, None
        told = self._adapter.actions(state), bool(self._is_terminal(state))
        self._told.add(label)
        return label, told


def _packed(value: Any) -> bytes:
    return base64.b64encode(pickle.dumps(value))


def _unpacked(line: bytes) -> Any:
    return pickle.loads(base64.b64decode(line))


if __name__ == "__main__":
    serve()
