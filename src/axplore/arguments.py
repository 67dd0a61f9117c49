"""Checks of public arguments: they are validated and converted before anything is done with them.

    @checked(radius=real(least=1), run=optional(file_path))
    def explore(world, radius, run=None): ...

A check takes the name and the value of an argument, and returns the value that the rest of the code works with. NumPy
scalars are accepted everywhere. An invalid value raises an `AxploreError` that names the argument.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import wraps
from numbers import Real
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidSettingError, StorageError

Check: TypeAlias = Callable[[str, Any], Any]
"""Returns an argument in the form in which it is used, given its name and value, or raises."""

Function = TypeVar("Function", bound=Callable[..., Any])

LARGEST_WHOLE: Final = 2**63 - 1
"""The largest whole number, because counts and indices are stored in 64 bits."""

_SHOWN_CHARACTERS: Final = 60
"""The number of characters of a refused value that a message shows."""


def checked(**checks: Check) -> Callable[[Function], Function]:
    """Returns a decorator that passes arguments through their checks; defaults are taken as they are."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            __tracebackhide__ = True  # pytest then shows the call itself
            try:
                bound = signature.bind(*arguments, **named)
            except TypeError:  # an argument is missing or unknown: let Python say so
                return function(*arguments, **named)
            for name, check in checks.items():
                if name in bound.arguments:
                    bound.arguments[name] = check(name, bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return cast(Function, call)

    return decorate


def real(
    *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf, wanted: str | None = None
) -> Check:
    """Returns a check for a finite number, which becomes a float.

    Args:
        least: the smallest number that is allowed.
        most: the largest.
        above: a number that it must exceed.
        wanted: what it must be, for messages that need more than the range.
    """
    wanted = wanted or f"a number{_range(least, most, above)}"

    def check(name: str, value: Any) -> float:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise refusal(name, value, wanted)
        try:
            converted = float(value)
        except OverflowError:
            converted = math.inf
        if not (math.isfinite(converted) and least <= converted <= most and converted > above):
            raise refusal(name, value, wanted)
        return converted

    return check


def whole(*, least: int = 0, most: int = LARGEST_WHOLE) -> Check:
    """Returns a check for a whole number, which becomes an int: from one to another."""
    wanted = f"a whole number{_range(least, most if most < LARGEST_WHOLE else math.inf)}"

    def check(name: str, value: Any) -> int:
        try:
            converted = operator.index(value)
        except TypeError:
            raise refusal(name, value, wanted) from None
        if converted > LARGEST_WHOLE:
            raise refusal(name, value, "a whole number below 2**63")
        if isinstance(value, bool | np.bool_) or not least <= converted <= most:
            raise refusal(name, value, wanted)
        return converted

    return check


def optional(check: Check) -> Check:
    """Returns a check that also allows None."""
    return lambda name, value: None if value is None else check(name, value)


def instance(kind: type, what: str) -> Check:
    """Returns a check for objects of a type, which messages call `what`."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise refusal(name, value, what)
        return value

    return check


def collection(what: str) -> Check:
    """Returns a check for a collection, which becomes a tuple and which messages call `what`; refuses text."""

    def check(name: str, value: Any) -> tuple[Any, ...]:
        is_text = isinstance(value, str | bytes)
        is_scalar = isinstance(value, np.ndarray) and value.ndim == 0
        if is_text or is_scalar or not isinstance(value, Iterable):
            raise refusal(name, value, what)
        return tuple(value)

    return check


def flag(name: str, value: Any) -> bool:
    """Checks that an argument is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise refusal(name, value, "True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """Checks that an argument is text."""
    if not isinstance(value, str):
        raise refusal(name, value, "text")
    return str(value)


def file_path(name: str, value: Any) -> Path:
    """Checks that an argument is a path that a file can have; nothing needs to be there."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise refusal(name, value, "a path: text, or a pathlib.Path")
    try:
        if not os.fspath(value) or b"\0" in os.fsencode(value):
            raise refusal(name, value, "a path that a file can have")
        os.lstat(value)
    except UnicodeEncodeError:
        raise refusal(name, value, "a path that a file can have") from None
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise StorageError(f"{name} is {shown(value)}, which cannot be used: {error.strerror}") from None
    return Path(value)


def function(name: str, value: Any) -> Callable[..., Any]:
    """Checks that an argument can be called."""
    if not callable(value):
        raise refusal(name, value, "a function")
    return cast("Callable[..., Any]", value)


def settings(name: str, value: Any) -> dict[str, Any]:
    """Checks that an argument is a table of settings by their names; NumPy's scalars become Python's."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refusal(name, value, "a mapping from names to values")
    return {str(key): plain(setting) for key, setting in value.items()}


def label(name: str, value: Any) -> Hashable:
    """Checks that an argument can be the label of a state or an action."""
    try:
        hash(value)
    except TypeError:
        raise refusal(name, value, "the label of a state or an action, which must be hashable") from None
    return cast(Hashable, plain(value))


def real_array(name: str, value: Any) -> npt.NDArray[Any]:
    """Checks that an argument is an array of numbers, or makes one; text that looks like numbers is refused."""
    try:
        converted = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        converted = np.array(["none"])
    if converted.dtype.kind not in "biuf" and converted.size:
        raise refusal(name, value, "an array of numbers")
    return converted


def plain(value: Any) -> Any:
    """Returns a NumPy scalar as the Python value that it equals, and everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def refusal(name: str, value: Any, wanted: str) -> InvalidSettingError:
    """Returns the error that says what an argument is and what it must be."""
    return InvalidSettingError(f"{name} is {shown(value)}; it must be {wanted}")


def shown(value: Any) -> str:
    """Returns a value as text for a message, shortened, even if its `repr` raises."""
    try:
        written = repr(value)
    except Exception:  # the `repr` of an object of others may raise anything
        written = f"of type {type(value).__qualname__}"
    return written if len(written) <= _SHOWN_CHARACTERS else f"{written[: _SHOWN_CHARACTERS - 3]}..."


def _range(least: float, most: float, above: float = -math.inf) -> str:
    """Describes the numbers that are allowed."""
    if math.isfinite(above) and math.isfinite(most):
        return f" above {above:g} and at most {most:g}"
    if math.isfinite(above):
        return f" above {above:g}"
    if math.isfinite(least) and math.isfinite(most):
        return f" from {least:g} to {most:g}"
    return f" of at least {least:g}" if math.isfinite(least) else ""
