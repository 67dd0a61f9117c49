"""Compilation of kernels: with Numba, without the GIL, and cached.

Compiled code is cached on disk, beside the source or in the user's cache folder, so that only the first use after an
installation waits for it. If neither can be written, every process compiles for itself. `compiling` says what a user
waits for meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, register
from numba.core.types import unliteral

Function = TypeVar("Function", bound=Callable[..., Any])

_logger = logging.getLogger("axplore")


def compiled(function: Function) -> Function:
    """Returns the function, compiled for the types with which it is first called."""
    return _compiled(function)


def compiled_inner(function: Function) -> Function:
    """Returns the function, compiled for calls from other kernels, which own the arrays; it must not make any itself.

    It does not count references to arrays. Where a call takes less than a microsecond, that would take most of it.
    """
    return _compiled(function, _nrt=False)


def compiled_inline(function: Function) -> Function:
    """The same as a part of each caller, for what is so short that handing over its arguments would take longer."""
    return _compiled(function, _nrt=False, forceinline=True)


def compiling() -> str | None:
    """Returns what is being compiled now, as "3 of at most 40 functions"; None if nothing is."""
    return _compilations.in_words()


def specialisations() -> dict[str, int]:
    """Returns for how many types of arguments each kernel was compiled or loaded in this process; none if for none."""
    return {f"{kernel.__module__}.{kernel.__name__}": len(kernel.signatures) for kernel in _compilations.kernels}


class _KernelCache(FunctionCache):
    """The cache of a kernel; what cannot be read any more is compiled again.

    Numba reads the whole index of a kernel before it sees that the source is newer. The index names the classes of
    arguments, so one that is left from another version of axplore may name a class that is no more.
    """

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Returns the compiled code for a signature; None if there is none."""
        try:
            return super().load_overload(signature, target)  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):
            self.flush()  # type: ignore[no-untyped-call]
            return None


def _compiled(function: Function, **options: Any) -> Function:
    # No kernel is called from C, for which Numba would compile a wrapper.
    kernel = njit(**{"nogil": True, "no_cfunc_wrapper": True, **options})(function)
    _without_literals(kernel)
    try:
        # What `cache=True` does, with another class.
        kernel._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
    except RuntimeError:  # Numba finds no writable folder
        _say_that_nothing_is_kept()
    _compilations.kernels.append(kernel)
    return cast(Function, kernel)


def _without_literals(kernel: Any) -> None:
    """Lets calls from other kernels with constants use the same code as all others.

    Numba would compile a kernel once more for every constant that it is called with.
    """
    template = kernel.get_call_template

    def for_types(args: Any, kws: Any) -> Any:
        named = {name: unliteral(kind) for name, kind in dict(kws).items()}  # type: ignore[no-untyped-call]
        return template(tuple(map(unliteral, args)), named)

    kernel.get_call_template = for_types


def is_kept(kernel: Any) -> bool:
    """Returns whether compiled code of a kernel is cached and newer than its source."""
    if kernel.stats.cache_path is None:
        return False
    source = Path(kernel.py_func.__code__.co_filename)
    kept = Path(kernel.stats.cache_path).glob(f"{source.stem}.{kernel.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


class _Compilations(Listener):
    """Counts kernels that are compiled in this process; those loaded from the cache do not count."""

    def __init__(self) -> None:
        self.kernels: list[Any] = []
        self._under_way = 0
        self._done: set[int] = set()
        self._kept: dict[int, bool] = {}

    def on_start(self, _: Event) -> None:
        if not self._under_way:
            for kernel in self.kernels:
                self._kept.setdefault(id(kernel), is_kept(kernel))
        self._under_way += 1

    def on_end(self, event: Event) -> None:
        self._under_way -= 1
        self._done.add(id(event.data["dispatcher"]))

    def in_words(self) -> str | None:
        if not self._under_way:
            return None
        missing = [id(kernel) for kernel in self.kernels if not self._kept.get(id(kernel), False)]
        done = len(self._done.intersection(missing))
        return f"compiling, on first use only: {done} of at most {len(missing)} functions"


_compilations: Final = _Compilations()
register("numba:compile", _compilations)  # type: ignore[no-untyped-call]


@cache
def _say_that_nothing_is_kept() -> None:
    """Logs a warning, once in a process."""
    _logger.warning(
        "compiled code cannot be cached, because neither axplore's folder nor the user's cache is writable: every "
        "process compiles for some seconds; set NUMBA_CACHE_DIR to a writable folder"
    )
