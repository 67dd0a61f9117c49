"""Checkpoints: everything that an exploration needs to resume from a point between two rounds.

A checkpoint is a pair of files that counts once its JSON file exists. Then the one before it is removed. The state of
the explorer is kept exactly, as JSON and arrays:

| value                   | JSON                                                   |
|-------------------------|--------------------------------------------------------|
| number, text, None      | itself; `{"float": "inf"}` if it is not finite         |
| tuple                   | a list                                                 |
| frozenset               | `{"set": [...]}`                                       |
| array                   | `{"array": name}`                                      |
| `Counts`                | `{"counts": name}`, its arrays as `name.<array>`; labels stand with the world |
| `StopReason`            | `{"stop": name}`                                       |
| other record            | `{"record": [name of its class, name, JSON]}`, its arrays as `name.<array>` |
| dataclass of the explorer | `{"kind": name, "fields": {...}}`                    |

Fields that are not compared (`compare=False`) are left out: they follow from the others, and are found again.
"""

from __future__ import annotations

import builtins
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.errors import AxploreError, DamagedFileError, InvalidInputError
from axplore.explorers.base import Explorer, ExplorerState
from axplore.labels import Json, canonical_json
from axplore.records.codec import Record, pack, unpack
from axplore.records.counts import Counts
from axplore.records.findings import Finding
from axplore.records.order import Labels
from axplore.records.run import StopReason
from axplore.runs.journal import decode_states, encode_states
from axplore.statistics.counts import check_counts
from axplore.storage import storage_errors, sync_folder
from axplore.worlds.contract import WorldSnapshot

Arrays = dict[str, npt.NDArray[Any]]

COUNT_ARRAYS: Final = ("states", "row_offsets", "successors", "counts", "first_draws")
"""What is kept of counts; the labels are kept once, with the world."""


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


def decode_state(saved: SavedState, explorer: Explorer[Any], world: WorldSnapshot) -> Any:
    """Returns the state that `encode_state` was given.

    Args:
        saved: the state as it was saved.
        explorer: the explorer whose state it is.
        world: what the world had met by then; it has the labels that the counts of the state refer to.

    Raises:
        DamagedFileError: it is not a state of this explorer.
    """
    try:
        state = _Decoder(saved.arrays, explorer, world).decode(saved.content)
        _check_numbers(state, len(world.labels))
        state.check([len(offered) for offered in world.actions])
    except (LookupError, TypeError, ValueError, AttributeError, AxploreError) as error:
        raise DamagedFileError(
            f"{saved.file} is damaged: it holds no state of an explorer: {type(error).__name__}: {error}"
        ) from None
    if type(state) is not explorer.state_types[0]:
        raise DamagedFileError(f"{saved.file} is damaged: it holds no state of {type(explorer).__name__}")
    return state


def _check_numbers(state: ExplorerState, n_states: int) -> None:
    """Refuses numbers of states that the world has not met, and a state that is known twice."""
    numbers = (*state.known, *state.frontier)
    if state.known[:1] != (0,) or len(set(numbers)) < len(numbers) or len(state.found_at) != len(state.known):
        raise InvalidInputError("the known states are not distinct, or do not begin with the initial one")
    if not all(0 <= number < n_states for number in numbers):
        raise InvalidInputError(f"a state has a number that is not one of the {n_states} met")


def _is_of(value: Any, wanted: Any) -> bool:
    """Returns whether a value is of an annotated type: a class, a union, a tuple, a frozenset or an array."""
    parts = get_args(wanted)
    match get_origin(wanted):
        case types.UnionType | typing.Union:
            fits = any(_is_of(value, part) for part in parts)
        case builtins.tuple if parts[-1:] == (...,):
            fits = isinstance(value, tuple) and all(_is_of(item, parts[0]) for item in value)
        case builtins.tuple:
            fits = isinstance(value, tuple) and len(value) == len(parts) and all(map(_is_of, value, parts))
        case builtins.frozenset:
            fits = isinstance(value, frozenset) and all(_is_of(item, parts[0]) for item in value)
        case np.ndarray:
            fits = isinstance(value, np.ndarray) and value.dtype.kind in _kinds_of(parts[-1])
        case None if getattr(wanted, "_is_protocol", False):  # of the parts of a state, which are all dataclasses
            fits = is_dataclass(value)
        case None if wanted in (int, float):
            fits = isinstance(value, int | wanted) and not isinstance(value, bool)
        case None if isinstance(wanted, type):
            fits = isinstance(value, wanted)
        case _:
            fits = True
    return fits


def _kinds_of(dtype: Any) -> str:
    """Returns the kinds of arrays that an annotated dtype allows."""
    return "".join(np.dtype(part).kind for part in get_args(dtype) if isinstance(part, type)) or "bif"


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
        case Counts():
            encoded = {"counts": f"counts{len(arrays)}"}
            arrays |= {f"{encoded['counts']}.{name}": getattr(value, name) for name in COUNT_ARRAYS}
        case _:
            if type(value) not in explorer.state_types:
                _refuse(value, explorer)
            if isinstance(value, Record):
                return _encode_record(value, arrays)
            kept = [field.name for field in fields(value) if field.compare]  # others follow from these
            content = {name: _encode(getattr(value, name), arrays, explorer) for name in kept}
            encoded = {"kind": type(value).__name__, "fields": content}
    return encoded


def _encode_record(record: Record, arrays: Arrays) -> Json:
    name = f"record{len(arrays)}"
    content, own = pack(record)
    arrays |= {f"{name}.{array}": values for array, values in own.items()}
    return {"record": [type(record).__name__, name, content]}


class _Decoder:
    """Decodes what `_encode` returned; makes only classes that the explorer declares."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], explorer: Explorer[Any], world: WorldSnapshot) -> None:
        self._arrays = arrays
        self._world = world
        self._kinds = {kind.__name__: kind for kind in explorer.state_types}
        self._tagged: Final[Mapping[str, Callable[[Any], Any]]] = {
            "float": float,
            "set": lambda content: frozenset(self.decode(item) for item in content),
            "stop": lambda content: StopReason[content],
            "array": lambda content: arrays[content].copy(),
            "counts": self._counts,
            "record": self._record,
        }

    def decode(self, encoded: Json) -> Any:
        if isinstance(encoded, list):
            return tuple(self.decode(item) for item in encoded)
        if not isinstance(encoded, dict):
            return encoded
        if "kind" in encoded:
            content = {name: self.decode(value) for name, value in encoded["fields"].items()}
            kind = self._kinds[encoded["kind"]]
            for name, wanted in get_type_hints(kind).items():
                if name in content and not _is_of(content[name], wanted):
                    raise InvalidInputError(f"{name} of {kind.__name__} is {type(content[name]).__name__}")
            return kind(**content)
        ((tag, content),) = encoded.items()
        return self._tagged[tag](content)

    def _record(self, parts: tuple[str, str, Json]) -> Record:
        kind, name, content = parts
        of_record = {array: values for array, values in self._arrays.items() if array.startswith(f"{name}.")}
        record: Record = unpack(
            self._kinds[kind], content, {array.removeprefix(f"{name}."): values for array, values in of_record.items()}
        )
        return record

    def _counts(self, name: str) -> Counts:
        arrays = {array: self._arrays[f"{name}.{array}"].astype(np.int64) for array in COUNT_ARRAYS}
        actions = tuple(Labels(self._world.actions[state]) for state in arrays["states"].tolist())
        counts = Counts(Labels(self._world.labels), actions, **arrays)
        check_counts(counts)
        return counts


FORMAT: Final = "axplore checkpoint"
VERSION: Final = 13

_NUMBERED: Final = re.compile(r"(?:checkpoint-(\d+)\.(?:json|npz)|journal-(\d+))")


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A point from which a run can resume.

    Attributes:
        number: the index of the checkpoint; 0 is the beginning.
        explorer: the description of the explorer; see `axplore.runs.manifest.described`.
        max_steps: the step limit of the run.
        examining, playing, in_vain: the steps of the run so far beside exploring; see `axplore.budget.Budget`.
        narrowed: whether the target was reduced before, so that states beyond its reach may be known.
        state: the state of the explorer.
        world: the snapshot of the world.
        findings: what was found of the system by then, under the labels of this checkpoint.
    """

    number: int
    explorer: Mapping[str, Json]
    max_steps: int | None
    examining: int
    playing: int
    in_vain: int
    narrowed: bool
    state: SavedState
    world: WorldSnapshot
    findings: tuple[Finding, ...]


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
        "examining": checkpoint.examining,
        "playing": checkpoint.playing,
        "in_vain": checkpoint.in_vain,
        "narrowed": checkpoint.narrowed,
        "world": {
            "states": encode_states(zip(world.labels, world.actions, strict=True)),
            "steps": world.steps,
            "calls": world.calls,
            "position": world.position,
            "labelling": world.labelling,
        },
        "state": checkpoint.state.content,
        "findings": pack(checkpoint.findings)[0],
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
        if not all(_is_of(world[name], int) for name in ("steps", "calls", "position")):
            raise InvalidInputError("steps, calls and position of the world are not whole numbers")
        for name in ("examining", "playing", "in_vain"):
            if not _is_of(body[name], int) or body[name] < 0:
                raise InvalidInputError(f"{name} is no number of steps")
        if not (_is_of(body["max_steps"], int | None) and _is_of(body["narrowed"], bool)):
            raise InvalidInputError("max_steps is not a whole number, or narrowed is neither true nor false")
        if not isinstance(body["explorer"], dict):
            raise InvalidInputError("it describes no explorer")
        return Checkpoint(
            number=body["number"],
            explorer=body["explorer"],
            max_steps=body["max_steps"],
            examining=body["examining"],
            playing=body["playing"],
            in_vain=body["in_vain"],
            narrowed=body["narrowed"],
            state=SavedState(body["state"], arrays, str(path)),
            world=WorldSnapshot(
                labels=tuple(label for label, _ in states),
                actions=tuple(actions for _, actions in states),
                steps=world["steps"],
                calls=world["calls"],
                position=world["position"],
                labelling=world["labelling"],
            ),
            findings=unpack(tuple[Finding, ...], body["findings"]),
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
