"""Labels of states and actions: plain values, which mean the same in every process and every file.

Any other answer of a system is not a state. It must not be left out of the counts, because it is where an action led:
either exploring ends with an error that says what to fix, or such answers are a state of their own.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from enum import Enum
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidLabelError, WorldError
from axplore.labels import encode_label, shortened
from axplore.records.findings import FaultKind
from axplore.types import Action, State
from axplore.worlds.systems import SystemAdapter, SystemFaultError, is_worth_a_line

_logger = logging.getLogger("axplore")

PLAIN_TYPES: Final[dict[type, Callable[[Any], State]]] = {
    str: str.__str__,  # str() of a member of an enumeration is its name
    int: int,
    float: float,
    bytes: bytes,
}
"""Converts a value of a subclass to the plain one that it equals."""

PLAIN_KINDS: Final = "biufSU"
"""NumPy's kinds of scalars that equal plain values: truth values, numbers, bytes and text."""

INVALID_STATE: Final = "invalid"
"""The label of the state that stands for all answers that are not states, if the user asks for it."""

CONTAINERS: Final = frozenset({tuple, frozenset})
"""The types of labels that hold others."""

LENGTHS_OF_STEPS: Final = (4, 5)
"""The number of values that `step` of an environment returns: 5 in Gymnasium, 4 in the older Gym."""


def plain_state(answer: Any, method: str = "step") -> State:
    """Returns the answer of a system as the label of a state.

    NumPy's scalars, named tuples and members of IntEnum or StrEnum become the plain values that they equal.

    Args:
        answer: the answer.
        method: the method that gave it.

    Raises:
        SystemFaultError: the answer is not a state; its kind is INVALID.
    """
    reason = _mistake(answer, method)
    if reason is None:
        try:
            state = _plain(answer)
            encode_label(state)
            _check_equal(answer, state)
        except (InvalidLabelError, RecursionError) as error:
            reason = f"{shortened(answer)} is not a state: {error}"
        else:
            return state
    raise SystemFaultError(FaultKind.INVALID, reason)


def with_invalid_state(adapter: SystemAdapter) -> SystemAdapter:
    """Returns the same system with one more terminal state, to which steps with an invalid answer lead."""
    valid: set[State] = set()
    n_invalid = 0

    def step(action: Action) -> State:
        nonlocal n_invalid
        try:
            answer = adapter.step(action)
            with suppress(TypeError):  # not hashable
                if answer in valid:
                    return answer
            state = plain_state(answer)
        except SystemFaultError as error:
            if error.kind is not FaultKind.INVALID:
                raise
            n_invalid += 1
            if is_worth_a_line(n_invalid):
                _logger.warning("%s; counted as the state %r (%d times so far)", error, INVALID_STATE, n_invalid)
            return INVALID_STATE
        if state == INVALID_STATE:
            raise WorldError(f"a state is called {INVALID_STATE!r}, which is reserved for invalid answers; rename it")
        valid.add(state)
        return answer

    def actions_of(state: State) -> tuple[Action, ...]:
        return () if state == INVALID_STATE else adapter.actions(state)

    return replace(adapter, step=step, actions=actions_of)


def check_same_kind(known: State, answer: State) -> None:
    """Refuses an answer that equals a known state but looks different: True and 1 are equal in Python.

    Whole numbers and floats that are equal, such as 1 and 1.0, are one state.
    """
    kind = type(known)
    if kind is type(answer) and kind not in CONTAINERS:
        return  # as at nearly every step
    if not _is_same_kind(known, answer):
        raise WorldError(
            f"the states {shortened(known)} and {shortened(answer)} are equal in Python, so they would be counted "
            "as one: a truth value equals a number. Use other labels, text for example"
        )


def hint_at_rewards(start: State, answer: State) -> None:
    """Warns if the first answer to a step looks like the state with a reward, which would be a part of the label."""
    looks_like_it = (
        isinstance(answer, tuple)
        and 2 <= len(answer) <= max(LENGTHS_OF_STEPS)
        and not isinstance(start, tuple)
        and type(answer[0]) is type(start)
        and isinstance(answer[1], float | np.floating)
    )
    if looks_like_it:
        _logger.warning(
            "step returned %s and reset %s: if the second value is a reward, return the state alone; otherwise each "
            "reward makes a state of its own",
            shortened(answer),
            shortened(start),
        )


def checked_actions(state: State, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Returns the actions of a state; refuses labels that are not plain, and duplicates."""
    offered = tuple(actions)
    for action in offered:
        try:
            encode_label(action)
        except InvalidLabelError:
            how = "its name, and look it up in step" if isinstance(action, Enum) else "text, numbers or tuples of these"
            raise WorldError(
                f"state {shortened(state)} offers the action {shortened(action)}, which cannot be stored in a file, as "
                f"it is of type {type(action).__qualname__}: offer {how}"
            ) from None
    if len(set(offered)) != len(offered):
        raise WorldError(f"state {shortened(state)} offers an action twice: {shortened(list(offered))}")
    return offered


def _mistake(answer: Any, method: str) -> str | None:
    """Returns the likely mistake in a system that gives this answer; None if there is no hint."""
    if answer is None:
        return f"{method} returned None: does it `return` the state?"
    if isinstance(answer, tuple) and answer and isinstance(answer[-1], dict):
        if len(answer) in LENGTHS_OF_STEPS and isinstance(answer[2], bool | np.bool_):
            return (
                f"{method} returned what Gymnasium's step does, (observation, reward, terminated, truncated, info): "
                "pass the Gymnasium environment itself, or return the state alone"
            )
        if len(answer) == 2:
            return (
                f"{method} returned what Gymnasium's reset does, (observation, info): pass the Gymnasium "
                "environment itself, or return the state alone"
            )
    return None


def _plain(answer: Any) -> State:
    """Returns the plain value that an answer equals; raises if there is none."""
    if isinstance(answer, np.generic) and answer.dtype.kind in PLAIN_KINDS:
        answer = answer.item()
    if answer is None or isinstance(answer, bool):
        return answer
    if isinstance(answer, float) and math.isnan(answer):
        raise InvalidLabelError("it holds NaN, which equals nothing, not even itself")
    if isinstance(answer, tuple):
        return tuple(map(_plain, answer))
    if isinstance(answer, frozenset):
        return frozenset(map(_plain, answer))
    for kind, plain in PLAIN_TYPES.items():
        if isinstance(answer, kind):
            return plain(answer)
    raise InvalidLabelError(_what_to_do(answer))


def _check_equal(answer: Any, state: State) -> None:
    """Refuses an answer that does not equal the label made of it: it would be a new state each time."""
    try:
        is_equal = hash(answer) == hash(state) and bool(answer == state)
    except Exception as error:  # whatever a type of a user's own may raise
        raise InvalidLabelError(f"it cannot be compared with {shortened(state)}: {type(error).__name__}") from None
    if not is_equal:
        raise InvalidLabelError(
            f"it is of type {type(answer).__qualname__}, and does not equal {shortened(state)}; return plain text, "
            "numbers, bytes, or tuples or frozensets of these"
        )


ADVICE: Final[tuple[tuple[Any, str], ...]] = (
    (dict, "a dict cannot be hashed; return a tuple of the values that make up the state"),
    (set, "a set cannot be hashed; return frozenset(...) of it"),
    (np.datetime64 | np.timedelta64, "a date or a duration is a number in a unit; return str(...) of it"),
    (np.void, "a record of NumPy is no plain value; return tuple(...) of its fields, or bytes"),
)
"""What to return in place of a value of some types."""


def _what_to_do(answer: Any) -> str:
    kind = type(answer).__qualname__
    if isinstance(answer, Enum):
        return f"it is a member of the Enum {kind}; return its name"
    if isinstance(answer, list | np.ndarray):
        return f"a value of type {kind} cannot be hashed; return tuple(...) of it"
    for kinds, advice in ADVICE:
        if isinstance(answer, kinds):
            return advice
    if is_dataclass(answer):
        return "return dataclasses.astuple(...) of it"
    return (
        f"an object of type {kind} does not mean the same in another process; return text, numbers, bytes, or tuples "
        "or frozensets of these"
    )


def is_mistakable(label: State) -> bool:
    """Returns whether a label equals another one, with a truth value in place of a number or the other way round."""
    if isinstance(label, tuple | frozenset):
        return any(map(is_mistakable, label))
    return isinstance(label, int | float) and label in (0, 1)


def _is_same_kind(known: Any, answer: Any) -> bool:
    if isinstance(known, tuple):
        kinds = [*map(type, known)]  # in most tuples the same, and none of them holds others
        is_plain = kinds == [*map(type, answer)] and CONTAINERS.isdisjoint(kinds)
        return is_plain or all(map(_is_same_kind, known, answer))
    if isinstance(known, frozenset):
        as_known = {item: item for item in known}
        return all(_is_same_kind(as_known[item], item) for item in answer)
    return isinstance(known, bool) == isinstance(answer, bool | np.bool_)
