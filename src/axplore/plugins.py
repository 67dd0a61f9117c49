"""Worlds and explorers of other packages, found by entry points.

A package declares them in its `pyproject.toml`:

    [project.entry-points."axplore.worlds"]
    robot = "my_package.axplore:ROBOT_FORM"

    [project.entry-points."axplore.explorers"]
    my-explorer = "my_package.axplore:my_explorer"

Nothing is imported before it is named: a broken package does not affect the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeVar

from axplore.errors import InvalidInputError, InvalidSettingError

WORLDS: Final = "axplore.worlds"
EXPLORERS: Final = "axplore.explorers"

Kind = TypeVar("Kind")


def names(group: str) -> tuple[str, ...]:
    """Returns the names that installed packages declare in a group, without importing anything."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def load(group: str, name: str, kind: type[Kind]) -> Kind:
    """Imports and returns what a name stands for.

    Raises:
        InvalidInputError: it cannot be imported or is of another kind; the message names the package.
    """
    entry = next(entry for entry in entry_points(group=group) if entry.name == name)
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # a package that exits must not end what lists it
        raise InvalidInputError(
            f"{_describe(entry)} cannot be imported ({type(error).__name__}: {error}); repair or uninstall its package"
        ) from error
    if not isinstance(loaded, kind):
        raise InvalidSettingError(f"{_describe(entry)} is a {type(loaded).__name__}; it must be a {kind.__name__}")
    return loaded


def loadable(group: str, kind: type[Kind]) -> Iterator[tuple[str, Kind | InvalidInputError]]:
    """Imports everything in a group, for a list; what cannot be imported comes as its error."""
    for name in names(group):
        try:
            yield name, load(group, name, kind)
        except InvalidInputError as error:
            yield name, error


def _describe(entry: EntryPoint) -> str:
    """Returns the name of an entry point, what it stands for, and its package."""
    package = "an unknown package" if entry.dist is None else f"the package {entry.dist.name!r}"
    return f"{entry.name!r} ({entry.value}, of {package})"
