"""A plugin of pytest: writes which tests run which lines of some files.

`tools/mutants.py` tries the tests that run a changed line first, the shortest before the others. Compiled code is not
traced, and neither are other processes; what a shared fixture runs counts for the first test that asks for it.

    TRACED=src/axplore/certificate TRACED_INTO=build/traced.json python -m pytest -p traced tests/certificate
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

MOST = 60
"""How many tests of a line are written."""

_root = Path(os.environ["TRACED"]).resolve()
_lines: dict[str, set[int]] = {}
_seconds: dict[str, float] = {}
_tests: dict[str, list[str]] = {}


def _trace(frame: FrameType, event: str, _: Any) -> Any:
    name = frame.f_code.co_filename
    if not name.startswith(str(_root)):
        return None
    lines = _lines.setdefault(name, set())

    def trace_line(frame: FrameType, _event: str, _: Any) -> Any:
        lines.add(frame.f_lineno)
        return trace_line

    return trace_line(frame, event, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Notes what a test runs, its fixtures with it."""
    _lines.clear()
    began = time.perf_counter()
    sys.settrace(_trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        _seconds[item.nodeid] = time.perf_counter() - began
        for name, lines in _lines.items():
            for line in lines:
                _tests.setdefault(f"{Path(name).relative_to(Path.cwd())}:{line}", []).append(item.nodeid)


def pytest_sessionfinish() -> None:
    """Writes the tests of each line, the shortest first and at most MOST of them."""
    found = {line: sorted(tests, key=_seconds.__getitem__)[:MOST] for line, tests in _tests.items()}
    Path(os.environ["TRACED_INTO"]).write_text(json.dumps(found))
