r"""A program in any language as a system: JSON lines over its standard input and output.

    axplore sends            the program answers
    {"reset": true}          {"state": [0, 0], "actions": ["left", "right"]}
    {"action": "right"}      {"state": [0, 1], "actions": ["left", "right"]}
    {"action": "right"}      {"state": [0, 2], "terminal": true}

Each message is one line, flushed. `actions` are any JSON values, of which one is sent back; they default to those of
the previous answer. `terminal` defaults to false. The input ends when the exploration does. What the program writes to
standard error is shown unchanged.

Labels: numbers, text, true, false and null stay as they are, a list becomes a tuple, and an object a tuple of
(name, value) sorted by name. Equal numbers such as 1 and 1.0 are one state; null is not a state.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Never

from axplore.errors import InvalidSettingError, WorldError
from axplore.types import Action, State
from axplore.worlds.child_process import Child
from axplore.worlds.contract import FaultKind
from axplore.worlds.stepped import Start, SteppedWorld
from axplore.worlds.supervision import MAX_FAULTS, START_CHECKS, OnInvalid
from axplore.worlds.systems import SystemFaultError

STEP_TIMEOUT: Final = 60.0
"""Seconds after which a program that has not answered has failed."""


def program_world(
    command: str | Sequence[str],
    seed: int = 0,
    *,
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
    if not step_timeout > 0:
        raise InvalidSettingError(f"step_timeout is {step_timeout}; it must be a positive number of seconds")
    return SteppedWorld(
        partial(Program, parts, step_timeout),
        seed,
        start=start,
        max_episode_steps=max_episode_steps,
        max_faults=max_faults,
        on_invalid=on_invalid,
        start_checks=start_checks,
    )


class Program:
    """A running program as a system; see `systems`."""

    def __init__(self, command: Sequence[str], step_timeout: float = STEP_TIMEOUT) -> None:
        self._child = Child(command)
        self._timeout = step_timeout
        self._offered: list[Any] | None = None
        self._actions: dict[State, dict[Action, Any]] = {}
        self._here: State = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def reset(self) -> State:
        """Sends {"reset": true}."""
        return self._ask({"reset": True})

    def step(self, action: Action) -> State:
        """Sends {"action": ...}."""
        return self._ask({"action": self._actions[self._here][action]})

    def actions(self, state: State) -> tuple[Action, ...]:
        """Returns the actions that the program gave for the state."""
        return tuple(self._actions[state])

    def close(self) -> None:
        """Ends the program."""
        self._child.close()

    def _ask(self, request: dict[str, Any]) -> State:
        line = self._child.ask(json.dumps(request).encode(), self._timeout)
        answer = _parsed(line)
        state, terminal = hashable(answer["state"]), answer.get("terminal", False)
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

    def _named_actions(self, line: bytes) -> dict[Action, Any]:
        """Returns the actions on offer, by label."""
        if self._offered is None:
            raise _malformed(line, "it must name its actions, at least at the first reset")
        actions = {hashable(action): action for action in self._offered}
        if len(actions) != len(self._offered):
            raise _malformed(line, "its actions are not all different")
        return actions


def hashable(value: Any) -> State:
    """Returns a JSON value as a label."""
    if isinstance(value, list):
        return tuple(map(hashable, value))
    if isinstance(value, dict):
        return tuple((name, hashable(value[name])) for name in sorted(value))
    label: State = value
    return label


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


def _malformed(line: bytes, why: str) -> SystemFaultError:
    shown = line.decode(errors="backslashreplace")
    shown = shown if len(shown) <= 200 else shown[:197] + "..."
    return SystemFaultError(FaultKind.INVALID, f"{why}: {shown}")
