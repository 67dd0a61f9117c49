"""The states of explorers as JSON and arrays, and back, exactly.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from axplore.errors import AxploreError, DamagedFileError, InvalidInputError
from axplore.explorers.base import Explorer, ExplorerState, StopReason
from axplore.labels import Json, canonical_json
from axplore.statistics.counts import TransitionCounts

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SavedState:
    """The state of an explorer as a file holds it.

    Attributes:
        content: JSON, see above.
        arrays: what it names.
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
        DamagedFileError: it is no state of this explorer.
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
        f"a state of {type(explorer).__name__} holds a {type(part).__name__}, which its state_types do not name in "
        "their place: no checkpoint can hold it"
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
    """Reads what `_encode` wrote; no class is made that the explorer does not declare."""

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
