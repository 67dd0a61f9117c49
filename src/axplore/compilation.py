"""Compilation of kernels: with Numba, without the GIL, and cached.

Compiled code is cached on disk, beside the source or in the user's cache folder, so that only the first use after an
installation waits for it. If neither can be written, every process compiles for itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

NOTICE: Final = "compiling (first use only) ..."
"""The message to a user who waits for kernels that are not cached yet."""

_logger = logging.getLogger("axplore")


def compiled(function: Function) -> Function:
    """Returns the function, compiled for the types with which it is first called."""
    return _compiled(function)


def compiled_inner(function: Function) -> Function:
    """Returns the function, compiled for calls from other kernels, which own the arrays; it must not make any itself.

    It does not count references to arrays. Where a call takes less than a microsecond, that would take most of it.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **options: Any) -> Function:
    try:
        return cast(Function, njit(cache=True, nogil=True, **options)(function))
    except RuntimeError:  # Numba finds no writable folder
        _say_that_nothing_is_kept()
        return cast(Function, njit(nogil=True, **options)(function))


def is_kept(kernel: Any) -> bool:
    """Returns whether compiled code of a kernel is cached and newer than its source."""
    if kernel.stats.cache_path is None:
        return False
    source = Path(kernel.py_func.__code__.co_filename)
    kept = Path(kernel.stats.cache_path).glob(f"{source.stem}.{kernel.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


@cache
def _say_that_nothing_is_kept() -> None:
    """Logs a warning, once in a process."""
    _logger.warning(
        "compiled code cannot be cached, because neither axplore's folder nor the user's cache is writable: every "
        "process compiles for some seconds; set NUMBA_CACHE_DIR to a writable folder"
    )
