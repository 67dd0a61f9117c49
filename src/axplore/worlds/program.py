r"""A program in any language as a system: JSON lines over its standard input and output, or over HTTP.

    axplore sends            the program answers
    {"reset": true}          {"state": [0, 0], "actions": ["left", "right"]}
    {"action": "right"}      {"state": [0, 1], "actions": ["left", "right"]}
    {"action": "right"}      {"state": [0, 2], "terminal": true}

Each message is one line, flushed. `actions` are any JSON values, of which one is sent back; they default to those of
the previous answer. `terminal` defaults to false. The input ends when the exploration does. What the program writes to
standard error is shown unchanged.

A server answers the same over HTTP: axplore posts each request to one address, in the body, with the header
`Axplore-Session`, by which a server that serves several at once tells them apart.

Labels: numbers, text, true, false and null stay as they are, a list becomes a tuple, and an object a tuple of
(name, value) sorted by name. Equal numbers such as 1 and 1.0 are one state; null is not a state.
"""

from __future__ import annotations

import json
import shlex
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final, Never
from urllib.parse import SplitResult, urlsplit

from axplore.addresses import without_secrets
from axplore.errors import InvalidSettingError, WorldError
from axplore.labels import label_of_json, shortened
from axplore.records.findings import FaultKind
from axplore.types import Action, State
from axplore.worlds.child_process import LONGEST_LINE, Child
from axplore.worlds.keys import Key, label_by
from axplore.worlds.state_labels import plain_state
from axplore.worlds.stepped import Start, SteppedWorld
from axplore.worlds.supervision import MAX_FAULTS, START_CHECKS, OnInvalid
from axplore.worlds.systems import SystemFaultError
from axplore.worlds.timed_http import TimedExchange

STEP_TIMEOUT: Final = 60.0
"""Seconds after which a program that has not answered has failed."""


def program_world(
    command: str | Sequence[str],
    seed: int = 0,
    *,
    key: Key | None = None,
    start: Start = "fixed",
    max_episode_steps: int | None = None,
    step_timeout: float = STEP_TIMEOUT,
    max_faults: int = MAX_FAULTS,
    on_invalid: OnInvalid = "error",
    start_checks: int = START_CHECKS,
) -> SteppedWorld:
    """Returns a program as a world. The program is restarted after a fault.

    Args:
        command: the command to run, as text that is split as a shell would, or in parts. No shell is involved.
        seed: not used: the noise is the program's own.
        key: makes the label of a state of the JSON value that the program calls it; by default, that is the label.
        start: see `SteppedWorld`.
        max_episode_steps: see `SteppedWorld`.
        step_timeout: seconds after which a program that has not answered has failed; it is then killed.
        max_faults, on_invalid: see `SteppedWorld`.
        start_checks: see `SteppedWorld`.
    """
    try:
        parts = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise InvalidSettingError(f"the command {command!r} cannot be read: {error}") from None
    if not parts:
        raise InvalidSettingError("there is no command to run; write exec:COMMAND")
    _check_timeout(step_timeout)
    return SteppedWorld(
        partial(Program, parts, step_timeout, key),
        seed,
        start=start,
        max_episode_steps=max_episode_steps,
        max_faults=max_faults,
        on_invalid=on_invalid,
        start_checks=start_checks,
    )


def server_world(
    address: str, seed: int = 0, *, key: Key | None = None, step_timeout: float = STEP_TIMEOUT, **options: Any
) -> SteppedWorld:
    """Returns a server as a world. After a fault, a new connection begins a new session.

    Args:
        address: of the server, such as http://localhost:8080/. No proxy is used, and no redirect is followed.
        seed: not used: the noise is the server's own.
        key: see `program_world`.
        step_timeout: seconds after which a server that has not answered has failed.
        options: `start`, `max_episode_steps`, `max_faults`, `on_invalid`, `start_checks` of `SteppedWorld`.
    """
    checked_address(address)
    _check_timeout(step_timeout)
    return SteppedWorld(partial(Server, address, step_timeout, key), seed, **options)


def _check_timeout(step_timeout: float) -> None:
    if not step_timeout > 0:
        raise InvalidSettingError(f"step_timeout is {step_timeout}; it must be a positive number of seconds")


class JsonSystem(ABC):
    """A system that answers requests in JSON, however they reach it; see `systems`."""

    knows_here_only = True

    def __init__(self, key: Key | None = None) -> None:
        self._key = key
        self._offered: list[Any] | None = None
        self._actions: dict[State, dict[Action, Any]] = {}
        self._here: State = None
        self._told: dict[State, Any] = {}

    @abstractmethod
    def exchange(self, request: bytes) -> bytes:
        """Sends a request and returns the answer."""

    @abstractmethod
    def close(self) -> None:
        """Ends the conversation."""

    def reset(self) -> State:
        """Sends {"reset": true}."""
        return self._ask({"reset": True})

    def step(self, action: Action) -> State:
        """Sends {"action": ...}."""
        return self._ask({"action": self._actions[self._here][action]})

    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the actions that the program gave for the state."""
        return tuple(self._actions[state])

    def _ask(self, request: dict[str, Any]) -> State:
        line = self.exchange(json.dumps(request).encode())
        answer = _parsed(line)
        state, terminal = self._label(answer["state"]), answer.get("terminal", False)
        if self._key is None and (told := self._told.setdefault(state, answer["state"])) != answer["state"]:
            raise WorldError(
                f"the states {shortened(told)} and {shortened(answer['state'])} have the same label, "
                f"{shortened(state)}, as an object becomes a list of its names and values: call one of them otherwise"
            )
        self._offered = answer.get("actions", self._offered)
        actions = {} if terminal else self._named_actions(line)
        before = self._actions.setdefault(state, actions)
        if before is not actions and before != actions:
            raise WorldError(
                f"state {state!r} has the actions {list(before)} at one time and {list(actions)} at another: let the "
                "program tell the two states apart"
            )
        self._here = state
        return state

    def _label(self, told: Any) -> State:
        """Returns the label of a state that the program calls so."""
        return label_of_json(told) if self._key is None else plain_state(label_by(self._key, told))

    def _named_actions(self, line: bytes) -> dict[Action, Any]:
        """Returns the actions on offer, by label."""
        if self._offered is None:
            raise _malformed(line, "it must name its actions, at least at the first reset")
        actions = {label_of_json(action): action for action in self._offered}
        if len(actions) != len(self._offered):
            raise _malformed(line, "its actions are not all different")
        return actions


class Program(JsonSystem):
    """A running program as a system."""

    def __init__(self, command: Sequence[str], step_timeout: float = STEP_TIMEOUT, key: Key | None = None) -> None:
        super().__init__(key)
        self._child = Child(command)
        self._timeout = step_timeout

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def exchange(self, request: bytes) -> bytes:
        """Sends a line and returns the next."""
        return self._child.ask(request, self._timeout)

    def close(self) -> None:
        """Ends the program."""
        self._child.close()


class Server(JsonSystem):
    """A server as a system: one connection, which is kept open, and one session."""

    def __init__(self, address: str, step_timeout: float = STEP_TIMEOUT, key: Key | None = None) -> None:
        super().__init__(key)
        self._connection = TimedExchange(checked_address(address), step_timeout)
        self._headers = {"Content-Type": "application/json", "Axplore-Session": uuid.uuid4().hex}
        self._timeout = step_timeout

    def reset(self) -> State:
        """Sends {"reset": true}, over a new connection if the server has closed the one before."""
        if self._connection.was_closed:
            self._connection.close()
        return super().reset()

    def exchange(self, request: bytes) -> bytes:
        """Posts a request and returns the body of the answer. A redirect is not followed."""
        if self._connection.was_closed:
            # Nothing was sent, so nothing is lost; but a server that died in between no longer knows where it stood.
            self.close()
            raise SystemFaultError(FaultKind.CLOSED, "no step was sent to it; the next one begins with a reset")
        try:
            status, body, has_end = self._connection.post(request, self._headers, LONGEST_LINE)
        except TimeoutError:
            self.close()
            raise SystemFaultError(FaultKind.TIMED_OUT, f"no answer within {self._timeout:g} s") from None
        except (OSError, HTTPException) as error:
            self.close()
            told = str(error) or type(error).__name__
            raise SystemFaultError(FaultKind.DIED, f"the server cannot be reached: {told}") from None
        if len(body) > LONGEST_LINE:
            self.close()
            raise SystemFaultError(FaultKind.INVALID, f"an answer of more than {LONGEST_LINE} bytes")
        if 300 <= status < 400:
            raise SystemFaultError(
                FaultKind.INVALID, f"status {status}: redirects are not followed; give the final address"
            )
        if status != HTTPStatus.OK:
            raise SystemFaultError(FaultKind.RAISED, f"status {status}: {body[:200].decode(errors='replace')}")
        if not (has_end or _is_json(body)):
            raise SystemFaultError(FaultKind.DIED, _shown("its answer has no length and may have been cut off", body))
        return body

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def checked_address(address: str) -> SplitResult:
    """Returns the parts of an address; refuses one that axplore does not connect to."""
    shown = without_secrets(address)
    wanted = f"{shown!r} is not an address of a server: write it as http://HOST:PORT/PATH or https://HOST/PATH"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise InvalidSettingError(f"{wanted} ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.username or parts.fragment:
        raise InvalidSettingError(wanted)
    if not address.isascii() or any(character.isspace() for character in address):
        raise InvalidSettingError(wanted)
    return parts


def _parsed(line: bytes) -> dict[str, Any]:
    """Parses an answer; refuses one that is malformed."""
    try:
        answer = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _malformed(line, f"it is not JSON ({error})") from None
    if not isinstance(answer, dict) or "state" not in answer:
        raise _malformed(line, "it must be an object with a state")
    if not isinstance(answer.get("actions", []), list):
        raise _malformed(line, "its actions must be a list")
    if not isinstance(answer.get("terminal", False), bool):
        raise _malformed(line, "terminal must be true or false")
    return answer


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


def _is_json(text: bytes) -> bool:
    """Whether a text is complete JSON: no part of an object that is cut off is."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _malformed(line: bytes, why: str) -> SystemFaultError:
    return SystemFaultError(FaultKind.INVALID, _shown(why, line))


def _shown(why: str, line: bytes) -> str:
    shown = line.decode(errors="backslashreplace")
    return f"{why}: {shown if len(shown) <= 200 else shown[:197] + '...'}"
