"""How kernels are compiled: with Numba, kept on disk between runs, and outside the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function, compiled for the types it is first called with."""
    return cast(Function, njit(cache=True, nogil=True)(function))
