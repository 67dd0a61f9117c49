"""Waiting for what other processes and threads do, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which what should have happened is taken for a failure: far more than a busy machine needs."""

HANGS = 2.0
"""Seconds after which a step is taken for hanging, where others must not be: they take milliseconds."""


def comes_true(holds: Callable[[], bool]) -> bool:
    """Waits until something holds, and returns whether it does in the end."""
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()
