"""Compilation of kernels: with Numba, without the GIL, and cached.

Compiled code is cached on disk, beside the source or in the user's cache folder, so that only the first use after an
installation waits for it. If neither can be written, every process compiles for itself. `compiling` says what a user
waits for meanwhile.

Numba's own cache asks only whether the file of a function has changed, not the files of the functions that it calls,
and two processes that compile at the same time may mix up their files. Here every compiled function is a file of its
own, whose name says of what it was made: the sources that it depends on, the types of its arguments, the versions and
the processor. So it is either the right one or not there.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import os
import pickle
import re
import sys
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import llvmlite
import numba
from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, register
from numba.core.serialize import dumps
from numba.core.types import unliteral

Function = TypeVar("Function", bound=Callable[..., Any])

_logger = logging.getLogger("axplore")


def compiled(function: Function) -> Function:
    """Returns the function, compiled for the types with which it is first called."""
    return _compiled(function)


def compiled_part(function: Function) -> Function:
    """Returns the function, compiled for calls from other kernels only: no wrapper for Python has to be compiled.

    Tests may still call it from Python; it is then compiled once more.
    """
    return _compiled_part(function)


def compiled_inner(function: Function) -> Function:
    """The same for a function that makes no arrays: other kernels own them.

    It does not count references to arrays. Where a call takes less than a microsecond, that would take most of it.
    """
    return _compiled_part(function, _nrt=False)


def compiled_inline(function: Function) -> Function:
    """The same as a part of each caller, for what is so short that handing over its arguments would take longer."""
    return _compiled_part(function, _nrt=False, forceinline=True)


def compiling() -> str | None:
    """Returns what is being compiled now, as "3 of at most 40 functions"; None if nothing is."""
    return _compilations.in_words()


def specialisations() -> dict[str, int]:
    """Returns for how many types of arguments each kernel was compiled or loaded in this process; none if for none.

    A kernel that was called both from Python and from other kernels counts for each, as it is compiled for each.
    """
    counted: dict[str, int] = {}
    for kernel in _compilations.kernels:
        name = f"{kernel.__module__}.{kernel.__name__}"
        counted[name] = counted.get(name, 0) + len(kernel.signatures)
    return counted


def is_kept(kernel: Any) -> bool:
    """Returns whether compiled code of a kernel, made from the sources as they are, is cached."""
    return isinstance(kernel._cache, _KernelCache) and kernel._cache.files.any_is_kept()


def _compiled(function: Function, **options: Any) -> Function:
    kernel = _dispatcher(function, function.__name__, options)
    kernel.get_call_template = _without_literals(kernel.get_call_template)
    return cast(Function, kernel)


def _compiled_part(function: Function, **options: Any) -> Function:
    kernel = _dispatcher(function, function.__name__, options)
    part = _dispatcher(function, f"{function.__name__}.part", {"no_cpython_wrapper": True, **options})
    # What Numba asks when another kernel calls this one.
    kernel.get_call_template = _without_literals(part.get_call_template)
    kernel.get_overload = part.get_overload
    return cast(Function, kernel)


def _dispatcher(function: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    # No kernel is called from C, for which Numba would compile a wrapper.
    dispatcher: Any = njit(**{"nogil": True, "no_cfunc_wrapper": True, **options})(function)
    try:
        # What `cache=True` does, with another class.
        dispatcher._cache = _KernelCache(function, name)
    except RuntimeError:  # Numba finds no writable folder
        _say_that_nothing_is_kept()
    _compilations.kernels.append(dispatcher)
    return dispatcher


def _without_literals(template: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Lets calls from other kernels with constants use the same code as all others.

    Numba would compile a kernel once more for every constant that it is called with.
    """

    def for_types(args: Any, kws: Any) -> Any:
        named = {name: unliteral(kind) for name, kind in dict(kws).items()}  # type: ignore[no-untyped-call]
        return template(tuple(map(unliteral, args)), named)

    return for_types


class _KernelCache(FunctionCache):
    """The cache of a kernel, in the folder that Numba chooses."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self.files = _KernelFiles(Path(self.cache_path), function.__module__, name)
        self._cache_file: Any = self.files

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keeps compiled code; a folder that cannot be written any more only means that nothing is kept."""
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)  # type: ignore[no-untyped-call]


class _KernelFiles:
    """The files of one kernel, each with the compiled code for some types of arguments.

    They are `MODULE.KERNEL-PYTHON-SOURCES-KEY.kernel`: two digests say of what the code was made, and the first bytes
    of a file are the digest of the rest. A file appears as a whole and is never changed.
    """

    def __init__(self, folder: Path, module: str, name: str) -> None:
        self._folder = folder
        self._prefix = f"{module}.{name}-{sys.implementation.cache_tag}-"
        self._sources = _digest_of_sources(module)

    def any_is_kept(self) -> bool:
        """Returns whether there is a file of the present sources."""
        return any(self._folder.glob(f"{self._prefix}{self._sources}-*.kernel"))

    def load(self, key: Any) -> Any:
        """Returns the compiled code for a key; None if there is none, or if it is damaged."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return pickle.loads(code) if hashlib.sha256(code).digest() == digest else None

    def save(self, key: Any, data: Any) -> None:
        """Keeps the compiled code for a key, and removes what was compiled from other sources."""
        code = dumps(data)  # type: ignore[no-untyped-call]
        path = self._path(key)
        unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            unfinished.write_bytes(hashlib.sha256(code).digest() + code)
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        for other in self._folder.glob(f"{self._prefix}*"):
            if not other.name.startswith(f"{self._prefix}{self._sources}-"):
                other.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        settings = [getattr(config, name) for name in ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")]
        made_for = repr((key, [str(setting) for setting in settings]))
        return self._folder / f"{self._prefix}{self._sources}-{_short(made_for.encode())}.kernel"


_DIGEST_BYTES: Final = hashlib.sha256().digest_size
_IMPORTED: Final = re.compile(rb"^(?:from|import) +([\w.]+)", re.MULTILINE)


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _digest_of_sources(module: str) -> str:
    """Returns a digest of all sources that the kernels of a module depend on, and of the versions that compile them."""
    sources = _sources_of(module)
    described = [numba.__version__, llvmlite.__version__, *(f"{name} {sources[name]}" for name in sorted(sources))]
    return _short("\n".join(described).encode())


def _sources_of(module: str) -> dict[str, str]:
    """Returns digests of the source of a module and of the modules of its package that it imports at its top.

    Their own imports count if they have kernels too: what a kernel uses is defined in one of these modules.
    """
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        source = _source(name)
        if name in found or source is None:
            continue
        found[name] = _short(source)
        if name == module or f"from {__name__} import".encode() in source:
            waiting += [imported for imported in _imports(source) if _is_ours(imported, module)]
    return found


def _imports(source: bytes) -> list[str]:
    return [name.decode() for name in _IMPORTED.findall(source)]


def _is_ours(name: str, module: str) -> bool:
    return name.partition(".")[0] in (__name__.partition(".")[0], module.partition(".")[0])


@cache
def _source(name: str) -> bytes | None:
    """Returns the source of a module that was imported; None if there is none."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    return cast(bytes, module.__loader__.get_data(file))  # type: ignore[union-attr]


class _Compilations(Listener):
    """Counts kernels that are compiled in this process; those loaded from the cache do not count.

    While one is compiled no garbage is collected.
    """

    def __init__(self) -> None:
        self.kernels: list[Any] = []
        self._under_way = 0
        self._collects = False  # whether garbage was collected before
        self._done: set[int] = set()
        self._kept: dict[int, bool] = {}

    def on_start(self, _: Event) -> None:
        if not self._under_way:
            for kernel in self.kernels:
                self._kept.setdefault(id(kernel), is_kept(kernel))
            self._collects = gc.isenabled()
            gc.disable()  # a tenth of the time: what a compiler makes lives until it is done
        self._under_way += 1

    def on_end(self, event: Event) -> None:
        self._under_way -= 1
        self._done.add(id(event.data["dispatcher"]))
        if not self._under_way and self._collects:
            gc.enable()

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
