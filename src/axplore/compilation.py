"""Compilation of kernels: with Numba, without the GIL, and cached.

Compiled code is cached on disk, beside the source or in the user's cache folder, so that only the first use after an
installation waits for it. If neither can be written, every process compiles for itself. `compiling` says what a user
waits for meanwhile.

Numba's own cache asks only whether the file of a function has changed, not the files of the functions that it calls,
and two processes that compile at the same time may mix up their files. Here every compiled function is a file of its
own, whose name says of what it was made: the sources that it depends on, the types of its arguments, the versions and
the processor. So it is either the right one or not there.

Half of the time would go into optimising the same code again for each kernel that it is called from. A part is
therefore compiled once, and whatever calls it refers to its code; only what is short is copied into its callers.
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
from typing import Any, Final, NamedTuple, TypeVar, cast

import llvmlite
import numba
from llvmlite.binding import parse_assembly
from numba import njit
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.event import Event, Listener, register
from numba.core.serialize import dumps
from numba.core.targetconfig import TargetConfig
from numba.core.types import unliteral

Function = TypeVar("Function", bound=Callable[..., Any])

_logger = logging.getLogger("axplore")

_settings: Final[Any] = config
LEVEL: Final[Any] = type(_settings.OPT)(min(_settings.OPT, 1))
"""How hard LLVM optimises kernels: beyond this level they take a sixth longer to compile and are as fast."""


def compiled(function: Function) -> Function:
    """Returns the function, compiled for the types with which it is first called."""
    return _compiled(function)


def compiled_part(function: Function) -> Function:
    """Returns the function, compiled for calls from other kernels only: no wrapper for Python has to be compiled.

    It is compiled once, and its callers refer to that code. Tests may still call it from Python; it is then compiled
    once more.
    """
    return _compiled_part(function, is_copied=False)


def compiled_inner(function: Function) -> Function:
    """The same for a function that makes no arrays, for other kernels own them, and that is called in inner loops.

    It does not count references to arrays: where a call takes less than a microsecond, counting would take most of it.
    Whether it becomes a part of its callers is up to LLVM. What must be, because a hundred arguments would take longer
    than its work, is `compiled_inline`.
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


def _compiled_part(function: Function, *, is_copied: bool = True, **options: Any) -> Function:
    kernel = _dispatcher(function, function.__name__, options)
    part = _dispatcher(function, f"{function.__name__}.part", {"no_cpython_wrapper": True, **options}, is_copied)
    # What Numba asks when another kernel calls this one.
    kernel.get_call_template = _without_literals(part.get_call_template)
    kernel.get_overload = part.get_overload
    return cast(Function, kernel)


def _dispatcher(function: Callable[..., Any], name: str, options: dict[str, Any], is_copied: bool = True) -> Any:
    # No kernel is called from C, for which Numba would compile a wrapper.
    dispatcher: Any = njit(**{"nogil": True, "no_cfunc_wrapper": True, **options})(function)
    try:
        # What `cache=True` does, with another class.
        dispatcher._cache = _KernelCache(function, name, is_copied)
    except RuntimeError:  # Numba finds no writable folder
        _say_that_nothing_is_kept()
    _compilations.add(dispatcher, f"{function.__module__}.{name}")
    return dispatcher


def _without_literals(template: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Lets calls from other kernels with constants use the same code as all others.

    Numba would compile a kernel once more for every constant that it is called with.
    """

    def for_types(args: Any, kws: Any) -> Any:
        named = {name: unliteral(kind) for name, kind in dict(kws).items()}  # type: ignore[no-untyped-call]
        return template(tuple(map(unliteral, args)), named)

    return for_types


class _Part(NamedTuple):
    """Code that other code refers to, by its symbol."""

    symbol: str
    kernel: str
    types: Any

    def is_at_hand(self) -> bool:
        """Returns whether the code is in this process, after loading or compiling it; a new symbol is another code."""
        kernel = _compilations.named.get(self.kernel)
        if kernel is None:
            return False
        kernel.compile(self.types)
        return self.symbol in _parts


_parts: Final[dict[str, _Part]] = {}  # those in this process, by symbol


class _KernelCode(CompileResultCacheImpl):
    """What is kept of a kernel: its code, and to which parts it refers."""

    def reduce(self, data: Any) -> Any:
        declared = [each.name for each in data.library._final_module.functions if each.is_declaration]
        return [_parts[name] for name in declared if name in _parts], super().reduce(data)  # type: ignore[no-untyped-call]

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Returns the kernel; None if a part is not as it was: LLVM ends a process where a symbol is missing."""
        parts, code = payload
        if not all(part.is_at_hand() for part in parts):
            return None
        return super().rebuild(target_context, code)  # type: ignore[no-untyped-call]


class _KernelCache(FunctionCache):
    """The cache of a kernel, in the folder that Numba chooses."""

    _impl_class = _KernelCode

    def __init__(self, function: Callable[..., Any], name: str, is_copied: bool) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self.files = _KernelFiles(Path(self.cache_path), function.__module__, name)
        self._cache_file: Any = self.files
        self._name = f"{function.__module__}.{name}"
        self._is_copied = is_copied

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Returns compiled code; None if there is none."""
        code = super().load_overload(signature, target_context)  # type: ignore[no-untyped-call]
        if code is not None:
            self._note(signature, code)
        return code

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keeps compiled code; a folder that cannot be written any more only means that nothing is kept."""
        self._note(signature, data)
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)  # type: ignore[no-untyped-call]

    def _note(self, signature: Any, data: Any) -> None:
        """Lets callers refer to the code of a part that is not copied: nothing is left to be linked into theirs."""
        if self._is_copied:
            return
        library, symbol = data.library, data.fndesc.llvm_func_name
        library._shared_module = parse_assembly(str(library.codegen._create_empty_module(library.name)))
        _parts[symbol] = _Part(symbol, self._name, signature)


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
        made_for = repr((key, str(LEVEL), str(_settings.BOUNDSCHECK), str(_settings.DEBUGINFO_DEFAULT)))
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

    While one is compiled no garbage is collected, LLVM optimises at the level of kernels, and options are listed in
    less time.
    """

    def __init__(self) -> None:
        self.kernels: list[Any] = []
        self.named: dict[str, Any] = {}
        self._under_way = 0
        self._collects = False  # whether garbage was collected before
        self._level = _settings.OPT  # before
        self._list_options = TargetConfig.values  # before
        self._done: set[int] = set()
        self._kept: dict[int, bool] = {}

    def add(self, kernel: Any, name: str) -> None:
        self.kernels.append(kernel)
        self.named[name] = kernel

    def on_start(self, event: Event) -> None:
        if not self._under_way:
            for kernel in self.kernels:
                if id(kernel) not in self._kept:
                    self._kept[id(kernel)] = is_kept(kernel)
            self._collects, self._level = gc.isenabled(), _settings.OPT
            gc.disable()  # a tenth of the time: what a compiler makes lives until it is done
            if id(event.data["dispatcher"]) in self._kept:  # not one of somebody else
                _settings.OPT = LEVEL
                TargetConfig.values = _options_that_matter  # type: ignore[method-assign]
        self._under_way += 1

    def on_end(self, event: Event) -> None:
        self._under_way -= 1
        self._done.add(id(event.data["dispatcher"]))
        if not self._under_way:
            _settings.OPT = self._level
            TargetConfig.values = self._list_options  # type: ignore[method-assign]
            if self._collects:
                _count_as_old()
                gc.enable()

    def in_words(self) -> str | None:
        if not self._under_way:
            return None
        missing = [id(kernel) for kernel in self.kernels if not self._kept.get(id(kernel), False)]
        done = len(self._done.intersection(missing))
        return f"compiling, on first use only: {done} of at most {len(missing)} functions"


_compilations: Final = _Compilations()
register("numba:compile", _compilations)  # type: ignore[no-untyped-call]


_OF_WRAPPERS: Final = frozenset({"no_cpython_wrapper", "no_cfunc_wrapper"})


def _options_that_matter(options: Any) -> dict[str, Any]:
    """Returns what `TargetConfig.values` does, in a twentieth of its time, and without the options of wrappers.

    Numba compares the options of a kernel whenever it looks up a function of NumPy that is called there, which takes a
    tenth of the time of compiling. Functions that were compiled for a kernel with a wrapper serve those without one.
    """
    own = {name: value for name, value in options._values.items() if name not in _OF_WRAPPERS}
    return {**_default_options(options.__class__), **own}


@cache
def _default_options(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items() if name not in _OF_WRAPPERS}


def _count_as_old() -> None:
    """Lets the next quick collection of garbage pass over what was made without any; a full one still looks at it."""
    if not gc.get_freeze_count():  # by somebody else
        gc.freeze()
        gc.unfreeze()


@cache
def _say_that_nothing_is_kept() -> None:
    """Logs a warning, once in a process."""
    _logger.warning(
        "compiled code cannot be cached, because neither axplore's folder nor the user's cache is writable: every "
        "process compiles for some seconds; set NUMBA_CACHE_DIR to a writable folder"
    )
