"""Says that kernels are being compiled, the only time that they are.

Compiled code is kept on disk, so only the first use after installation waits for it. A program that talks to a person
calls `prepare` before it plans.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

NOTICE: Final = "compiling (first use only) ..."


def needs_compiling() -> bool:
    """Whether the next use of planning has to compile: no kernels are kept, or they are older than their source."""
    from axplore.planning import sweep_kernels as kernels

    return not is_kept(kernels.iterate_in_place)


def is_kept(kernel: Any) -> bool:
    """Whether compiled code of a kernel is kept, and is newer than its source."""
    source = Path(kernel.py_func.__code__.co_filename)
    kept = Path(kernel.stats.cache_path).glob(f"{source.stem}.{kernel.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


def prepare(say: Callable[[str], object]) -> None:
    """Makes the kernels ready; if that means compiling them, which takes some seconds, says so first."""
    if not needs_compiling():
        return
    say(NOTICE)
    from axplore.mdp import TabularMdp
    from axplore.planning.value_iteration import value_iteration

    value_iteration(TabularMdp.from_rows({"start": {"go": {"end": 1.0}}, "end": {}}, "start"), "end", precision=0.1)
