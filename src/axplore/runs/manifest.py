"""The manifest of a run: `run.json`, which says how it began and never changes."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import uuid4

import numpy as np
from msgspec import Meta

from axplore.addresses import current_command, has_secrets
from axplore.assumptions import NOTHING, Assumptions
from axplore.errors import DamagedFileError, InvalidInputError, InvalidSettingError, StorageError
from axplore.explorers.base import Explorer, checked_explorer
from axplore.explorers.registry import EXPLORERS, explorer_names, factory_of
from axplore.goals import ALL
from axplore.labels import Json, canonical_json
from axplore.records.codec import Record, pack, unpack
from axplore.request import Request, kept_settings
from axplore.runs.events import now
from axplore.storage import read_document, write_document
from axplore.target import Target

NAME: Final = "run.json"
FORMAT: Final = "axplore run"
VERSION: Final = 5

ANY_TARGET: Final = Target(radius=1.0, epsilon=1.0)
"""A target for explorers that are made before their own is known."""

LIBRARIES: Final = ("axplore", "numpy", "scipy", "numba")
"""Packages whose versions may change what an explorer does."""


def current_versions() -> dict[str, str]:
    """Returns the versions of Python and of these packages."""
    return {"python": platform.python_version(), **{library: _version(library) for library in LIBRARIES}}


@cache
def _version(library: str) -> str:
    return version(library)  # takes two milliseconds


class RunManifest(Record, frozen=True, kw_only=True):
    """How a run began.

    Attributes:
        world: the description of the world.
        world_name: the name from which it can be made again; None if it was passed as an object, or holds an address
            with what may be secret, which no file keeps.
        world_parameters: the parameters of a named world.
        explorer: the name of the explorer.
        settings: the settings of the request that are kept, by name.
        fingerprint: the fingerprint of the world, if it has one; worlds that share it behave alike.
        steps_before: the steps that the world had taken before the run.
        run: a unique name of the run.
        command: the command that began it.
        directory: the working directory of that command.
        versions: the versions of Python and of the libraries.
        begun: the time.
    """

    world: str
    world_name: str | None
    world_parameters: dict[str, Any]
    explorer: str
    settings: dict[str, Any]
    fingerprint: str | None
    steps_before: Annotated[int, Meta(ge=0, le=2**62)]
    run: str
    command: str
    directory: str
    versions: dict[str, str]
    begun: str

    @cached_property
    def request(self) -> Request:
        """What was asked for, as far as the manifest keeps it."""
        return Request(self.world_name, world_parameters=self.world_parameters, **self.settings)


def manifest_of(
    request: Request, *, world: str, explorer: str, fingerprint: str | None, steps_before: int
) -> RunManifest:
    """Returns the manifest of a run that begins now; the other arguments are fields of it."""
    world_name, parameters = kept_world(request)
    return RunManifest(
        world=world,
        world_name=world_name,
        world_parameters=parameters,
        explorer=explorer,
        settings=kept_settings(request),
        fingerprint=fingerprint,
        steps_before=steps_before,
        run=uuid4().hex,
        command=current_command(),
        directory=os.getcwd(),
        versions=current_versions(),
        begun=now(),
    )


def kept_world(request: Request) -> tuple[str | None, dict[str, Json]]:
    """Returns the name and the parameters from which a file makes a world again; none if it cannot, or must not."""
    name, parameters = request.world, plain_parameters(request.world_parameters or {})
    if not isinstance(name, str) or parameters is None:
        return None, {}
    texts = [name, *(value for value in parameters.values() if isinstance(value, str))]
    return (None, {}) if any(map(has_secrets, texts)) else (name, parameters)


def save_manifest(manifest: RunManifest, folder: Path) -> None:
    """Writes the manifest of a run into its folder."""
    body, _ = pack(manifest)
    write_document(folder / NAME, {"format": FORMAT, "version": VERSION, **body})


def load_manifest(folder: Path) -> RunManifest:
    """Reads a manifest that `save_manifest` wrote."""
    path = folder / NAME
    if not path.is_file():
        raise StorageError(f"there is no run in {folder}: it holds no {NAME}")
    body = read_document(path, FORMAT, VERSION)
    content = {name: value for name, value in body.items() if name not in ("format", "version")}
    try:
        manifest = unpack(RunManifest, content)
        if manifest.settings.keys() != kept_settings(manifest.request).keys():
            raise InvalidInputError("it does not hold the settings that are kept")
    except (InvalidInputError, TypeError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    return manifest


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Json] | None:
    """Returns parameters of a world as JSON; None if one of them could not be read back."""
    if not all(value is None or isinstance(value, bool | int | float | str) for value in parameters.values()):
        return None
    try:
        canonical_json(dict(parameters))
    except ValueError:  # an infinity or NaN, or a number of thousands of digits
        return None
    return dict(parameters)


def described(value: Any) -> Json:
    """Returns an explorer, or one of its options, as JSON, the same for equal ones."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Assumptions):
        return {name: described(declared) for name, declared in value.declared}
    if is_dataclass(value) and not isinstance(value, type):
        options = {option.name: described(getattr(value, option.name)) for option in fields(value)}
        return {"type": _name_of(type(value)), **options}
    return _name_of(value if callable(value) and hasattr(value, "__qualname__") else type(value))


def explorer_from_description(
    manifest: RunManifest,
    description: Mapping[str, Json],
    given: Explorer[Any] | None,
    *,
    assumed_anew: bool = False,
) -> Explorer[Any]:
    """Returns the explorer of a run.

    Args:
        manifest: the manifest of the run.
        description: the description of the explorer, from `described`.
        given: the explorer that the caller passes; it must match. Without it, the explorer is made by its name, or by
            another name of its class, and its options that are plain values are set as described.
        assumed_anew: whether what it assumes is about to be replaced, so that
            functions among its assumptions need not be passed.
    """
    functions = _functions_in(description.get("assume"))
    if functions and assumed_anew:
        description = {**description, "assume": described(NOTHING)}
    elif functions and given is None:
        raise InvalidSettingError(
            f"the run assumes something by functions of its user ({', '.join(functions)}), which no file holds; pass "
            "them again: resume(run, assume=...) in Python, --assume on the command line"
        )
    if given is None and _goal_function(description) is not None:
        raise InvalidSettingError(
            f"the goal of the run is a function ({_goal_function(description)}), which no file holds; pass it again, "
            "or another goal: resume(run, goal=...) in Python, --goal on the command line"
        )
    if given is not None:
        if not _fits(checked_explorer(given), description):
            raise InvalidSettingError(
                f"the explorer of the run was {_short(description)}; this one is {_short(described(given))}"
            )
        return given
    for name in [manifest.explorer] if manifest.explorer in explorer_names() else EXPLORERS:
        try:
            explorer: Explorer[Any] = _as_described(
                factory_of(name)(ANY_TARGET, manifest.request.states_bound), description
            )
        except InvalidSettingError:  # a preset that needs a bound on the number of states, which the run does not have
            continue
        except (LookupError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"the description of the explorer is damaged: {error}") from None
        if _fits(explorer, description):
            return explorer
    raise InvalidSettingError(
        f"the run was explored by a configuration of {manifest.explorer} that has no name; "
        "resume it from Python, and pass the explorer: axplore.resume(run, explorer=...)"
    )


def _functions_in(assumed: Json) -> list[str]:
    """The names of the functions among assumptions as `described` gave them."""
    if not isinstance(assumed, dict):
        return []
    return [value for value in assumed.values() if isinstance(value, str)]


def _goal_function(description: Mapping[str, Json]) -> str | None:
    """The name of the function that chooses the goal; None if none does."""
    goal = description.get("goal")
    function = goal.get("function") if isinstance(goal, dict) else None
    return function if isinstance(function, str) else None


def without_goal_function(description: Mapping[str, Json]) -> Mapping[str, Json]:
    """Returns the description of an explorer without a function that chooses its goal."""
    return {**description, "goal": described(ALL)} if _goal_function(description) is not None else description


def _fits(explorer: Explorer[Any], description: Mapping[str, Json]) -> bool:
    """Whether a description matches an explorer; options that an earlier version did not have are at their defaults."""
    own = described(explorer)
    return bool(own == {**own, **description})


def _as_described(value: Any, description: Mapping[str, Json]) -> Any:
    """Returns an explorer, or a part of one, with the plain values, enumerations and parts of a description."""
    if description["type"] != _name_of(type(value)):
        return value
    options: dict[str, Any] = {}
    for option in fields(value):
        current, wanted = getattr(value, option.name), description.get(option.name)
        if isinstance(current, Assumptions):
            options[option.name] = _assumptions_from(description.get(option.name, {}))
        elif is_dataclass(current):
            if option.name in description:
                options[option.name] = _as_described(current, description[option.name])
        elif isinstance(current, Enum):
            options[option.name] = type(current)[description[option.name]]
        elif option.name in description and not callable(current) and (current is not None or not _is_text(wanted)):
            options[option.name] = wanted
    return replace(value, **options)


def _assumptions_from(description: Mapping[str, Json]) -> Assumptions:
    """Returns the assumptions of a description, without those that are functions of the user."""
    return Assumptions(**{name.replace("-", "_"): value for name, value in description.items() if not _is_text(value)})


def _is_text(value: Json) -> bool:
    """Returns whether a value may be the name of a function. It is never looked up, because files must not run code."""
    return isinstance(value, str)


def _name_of(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _short(description: Json) -> str:
    return ", ".join(f"{name}={value}" for name, value in _flat(description).items())


def _flat(description: Mapping[str, Json]) -> dict[str, Json]:
    flat: dict[str, Json] = {}
    for name, value in description.items():
        flat |= _flat(value) if isinstance(value, dict) else {name: value}
    return flat
