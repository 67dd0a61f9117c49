"""What the assertions of `axplore.assertions` need to know of the test that calls them.

The pytest plugin sets it. It imports nothing else, so that test suites without axplore do not wait for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MAX_STEPS: Final = 100_000
MAX_SECONDS: Final = 300.0
"""What a test may take unless it, or the settings of pytest, say otherwise. The seconds leave room for compiling."""


@dataclass(frozen=True)
class Context:
    """The test that runs now.

    Attributes:
        max_steps, max_seconds: what an assertion may take by default.
        update: whether maps are written instead of compared.
        folder: where relative paths of maps begin: beside the file of the test.
        pages: returns the folder for pages of what failed.
    """

    max_steps: int = MAX_STEPS
    max_seconds: float = MAX_SECONDS
    update: bool = False
    folder: Path = field(default_factory=Path.cwd)
    pages: Callable[[], Path] = lambda: Path(tempfile.mkdtemp(prefix="axplore-"))


current: Context | None = None
"""The test that runs now; None outside of pytest."""


def context() -> Context:
    """Returns what is known of the test that runs now."""
    return current or Context()
