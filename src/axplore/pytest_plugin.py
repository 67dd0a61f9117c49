"""The pytest plugin: the option `--axplore-update`, the settings of budgets, and the fixture `axplore`.

Nothing of axplore is imported until a test uses it: see docs/pytest.md.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

from axplore import assertion_context
from axplore.assertion_context import MAX_SECONDS, MAX_STEPS, Context

Number = TypeVar("Number", int, float)

_BUDGET = pytest.StashKey[tuple[int, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the option and the settings."""
    group = parser.getgroup("axplore")
    group.addoption(
        "--axplore-update", action="store_true", help="write the maps of assert_unchanged instead of comparing them"
    )
    parser.addini("axplore_max_steps", f"the steps that an assertion of axplore may take ({MAX_STEPS:,})")
    parser.addini("axplore_max_seconds", f"the seconds that an assertion of axplore may take ({MAX_SECONDS:g})")


def pytest_configure(config: pytest.Config) -> None:
    """Reads the settings, so that a wrong one is refused before the first test."""
    config.stash[_BUDGET] = (
        _setting(config, "axplore_max_steps", int, MAX_STEPS),
        _setting(config, "axplore_max_seconds", float, MAX_SECONDS),
    )


def _setting(config: pytest.Config, name: str, kind: Callable[[str], Number], default: Number) -> Number:
    text = config.getini(name)
    if not text:
        return default
    try:
        value = kind(text)
    except ValueError:
        value = kind("0")
    if not 0 < value < math.inf:
        raise pytest.UsageError(f"{name} is {text!r}; it must be a number above 0")
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tells the assertions which test runs."""
    max_steps, max_seconds = item.config.stash[_BUDGET]
    before = assertion_context.current
    assertion_context.current = Context(
        max_steps=max_steps,
        max_seconds=max_seconds,
        update=item.config.getoption("--axplore-update"),
        folder=item.path.parent,
        pages=lambda: _pages_of(item),
    )
    try:
        return (yield)
    finally:
        assertion_context.current = before


def _pages_of(item: pytest.Item) -> Path:
    """Returns a folder for the pages of a test, in pytest's cache; one of its own, so that workers do not meet."""
    cache = getattr(item.config, "cache", None)
    if cache is None:
        return Context().pages()
    name = re.sub(r"[^\w.]+", "-", item.nodeid)[-80:]
    folder = Path(cache.mkdir("axplore")) / f"{name}-{zlib.crc32(item.nodeid.encode('utf-8', 'replace')):08x}"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def axplore() -> ModuleType:
    """`explore` within the budget of a test, and the assertions of `axplore.assertions`."""
    from axplore import assertions

    return assertions
