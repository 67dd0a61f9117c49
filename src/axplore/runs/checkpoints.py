"""Checkpoints: everything that an exploration needs to resume from a point between two rounds.

A checkpoint is a pair of files that counts once its JSON file exists. Then the one before it is removed. The state of
the explorer is kept exactly, as JSON and arrays:

| value                   | JSON                                                   |
|-------------------------|--------------------------------------------------------|
| number, text, None      | itself; `{"float": "inf"}` if it is not finite         |
| tuple                   | a list                                                 |
| frozenset               | `{"set": [...]}`                                       |
| array                   | `{"array": name}`                                      |
| `TransitionCounts`      | `{"counts": name}`, its arrays as `name.<array>`       |
| `StopReason`            | `{"stop": name}`                                       |
| dataclass of the explorer | `{"kind": name, "fields": {...}}`                    |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.errors import AxploreError, DamagedFileError, InvalidInputError
from axplore.explorers.base import Explorer, ExplorerState, StopReason
from axplore.labels import Json, canonical_json
from axplore.memory import Memory
from axplore.runs.journal import decode_states, encode_states
from axplore.statistics.counts import TransitionCounts
from axplore.storage import storage_errors, sync_folder
from axplore.worlds.contract import WorldSnapshot

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SavedState:
    """The state of an explorer in the form in which it is saved.

    Attributes:
        content: JSON, see above.
        arrays: the arrays that it names.
        file: the name of the file, for messages.
    """

    content: Json
    arrays: Arrays
    file: str = "it"


def encode_state(state: ExplorerState, explorer: Explorer[Any]) -> SavedState:
    """Returns a state of an explorer in the form in which it is saved.

    Raises:
        InvalidInputError: the explorer does not declare the class of the state or of one of its parts.
    """
    arrays: Arrays = {}
    if type(state) is not explorer.state_types[0]:
        _refuse(state, explorer)
    return SavedState(_encode(state, arrays, explorer), arrays)


def decode_state(saved: SavedState, explorer: Explorer[Any]) -> Any:
    """Returns the state that `encode_state` was given.

    Raises:
        DamagedFileError: it is not a state of this explorer.
    """
    try:
        state = _Decoder(saved.arrays, explorer).decode(saved.content)
    except (LookupError, TypeError, ValueError, AttributeError, AxploreError) as error:
        raise DamagedFileError(
            f"{saved.file} is damaged: it holds no state of an explorer: {type(error).__name__}: {error}"
        ) from None
    if type(state) is not explorer.state_types[0]:
        raise DamagedFileError(f"{saved.file} is damaged: it holds no state of {type(explorer).__name__}")
    return state


def _refuse(part: object, explorer: Explorer[Any]) -> NoReturn:
    raise InvalidInputError(
        f"a state of {type(explorer).__name__} holds a {type(part).__name__}, which its state_types do not declare "
        "there, so it cannot be saved in a checkpoint"
    )


def _encode(value: Any, arrays: Arrays, explorer: Explorer[Any]) -> Json:
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | bool() | int() | str():
            encoded: Json = value
        case float():
            encoded = value if math.isfinite(value) else {"float": repr(value)}
        case tuple():
            encoded = [_encode(item, arrays, explorer) for item in value]
        case frozenset():
            encoded = {"set": sorted((_encode(item, arrays, explorer) for item in value), key=canonical_json)}
        case StopReason():
            encoded = {"stop": value.name}
        case np.ndarray():
            encoded = {"array": f"array{len(arrays)}"}
            arrays[encoded["array"]] = value
        case TransitionCounts():
            encoded = {"counts": f"counts{len(arrays)}"}
            arrays |= {f"{encoded['counts']}.{name}": array for name, array in value.to_arrays().items()}
        case _:
            if type(value) not in explorer.state_types:
                _refuse(value, explorer)
            content = {field.name: _encode(getattr(value, field.name), arrays, explorer) for field in fields(value)}
            encoded = {"kind": type(value).__name__, "fields": content}
    return encoded


class _Decoder:
    """Decodes what `_encode` returned; makes only classes that the explorer declares."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], explorer: Explorer[Any]) -> None:
        self._arrays = arrays
        self._kinds = {kind.__name__: kind for kind in explorer.state_types}
        self._tagged: Final[Mapping[str, Callable[[Any], Any]]] = {
            "float": float,
            "set": lambda content: frozenset(self.decode(item) for item in content),
            "stop": lambda content: StopReason[content],
            "array": lambda content: arrays[content].copy(),
            "counts": self._counts,
        }

    def decode(self, encoded: Json) -> Any:
        if isinstance(encoded, list):
            return tuple(self.decode(item) for item in encoded)
        if not isinstance(encoded, dict):
            return encoded
        if "kind" in encoded:
            content = {name: self.decode(value) for name, value in encoded["fields"].items()}
            return self._kinds[encoded["kind"]](**content)
        ((tag, content),) = encoded.items()
        return self._tagged[tag](content)

    def _counts(self, name: str) -> TransitionCounts:
        prefix = f"{name}."
        named = {key.removeprefix(prefix): array for key, array in self._arrays.items() if key.startswith(prefix)}
        return TransitionCounts.from_arrays(named)


FORMAT: Final = "axplore checkpoint"
VERSION: Final = 5

_NUMBERED: Final = re.compile(r"(?:checkpoint-(\d+)\.(?:json|npz)|journal-(\d+))")


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A point from which a run can resume.

    Attributes:
        number: the index of the checkpoint; 0 is the beginning.
        explorer: the description of the explorer; see `axplore.runs.manifest.described`.
        max_steps: the step limit of the run.
        narrowed: whether the target was reduced before, so that states beyond its reach may be known.
        state: the state of the explorer.
        world: the snapshot of the world.
    """

    number: int
    explorer: Mapping[str, Json]
    max_steps: int | None
    narrowed: bool
    state: SavedState
    world: WorldSnapshot


def journal_path(folder: Path, number: int) -> Path:
    """Returns the path of the journal of the calls after a checkpoint."""
    return folder / f"journal-{number}"


def save_checkpoint(checkpoint: Checkpoint, run: str, folder: Path) -> None:
    """Writes a checkpoint, and then removes earlier ones with their journals."""
    world = checkpoint.world
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "run": run,
        "number": checkpoint.number,
        "explorer": checkpoint.explorer,
        "max_steps": checkpoint.max_steps,
        "narrowed": checkpoint.narrowed,
        "world": {
            "states": encode_states(zip(world.labels, world.actions, strict=True)),
            "steps": world.steps,
            "calls": world.calls,
            "position": world.position,
            "memory": None if world.memory is None else world.memory.as_json(),
        },
        "state": checkpoint.state.content,
    }
    with storage_errors(f"checkpoint {checkpoint.number} cannot be written to {folder}"):
        storage.write_sealed(folder, _name(checkpoint.number), body, checkpoint.state.arrays)
        sync_folder(folder)
        remove_others(folder, checkpoint.number)


def load_checkpoint(run: str, folder: Path) -> Checkpoint:
    """Returns the last checkpoint of a run."""
    numbers = [int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.json") if _number(path) >= 0]
    if not numbers:
        raise DamagedFileError(f"the run in {folder} is damaged: it has no checkpoint")
    name = _name(max(numbers))
    body, arrays = storage.read_sealed(folder, name, FORMAT, VERSION)
    path = folder / f"{name}.json"
    if body.get("run") != run or body.get("number") != max(numbers):
        raise DamagedFileError(f"{path} is not of this run")
    try:
        world = body["world"]
        states = decode_states(world["states"])
        return Checkpoint(
            number=body["number"],
            explorer=body["explorer"],
            max_steps=body["max_steps"],
            narrowed=body["narrowed"],
            state=SavedState(body["state"], arrays, str(path)),
            world=WorldSnapshot(
                labels=tuple(label for label, _ in states),
                actions=tuple(actions for _, actions in states),
                steps=world["steps"],
                calls=world["calls"],
                position=world["position"],
                memory=None if world["memory"] is None else Memory.from_json(world["memory"]),
            ),
        )
    except (LookupError, TypeError, ValueError, AxploreError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None


def remove_others(folder: Path, number: int) -> None:
    """Removes all checkpoints but this one, and their journals."""
    # JSON files first: without one, the rest of its checkpoint does not count.
    for path in sorted(folder.iterdir(), key=lambda path: path.suffix != ".json"):
        if _number(path) not in (-1, number):
            path.unlink()


def _name(number: int) -> str:
    return f"checkpoint-{number}"


def _number(path: Path) -> int:
    """Returns the number in the name of a checkpoint or journal; -1 for other files."""
    match = _NUMBERED.fullmatch(path.name)
    return -1 if match is None else int(match[1] or match[2])
