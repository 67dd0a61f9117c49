"""The states of explorers as JSON and arrays, and back, exactly.

| value                   | JSON                                                   |
|-------------------------|--------------------------------------------------------|
| number, text, None      | itself; `{"float": "inf"}` if it is not finite         |
| tuple                   | a list                                                 |
| frozenset               | `{"set": [...]}`                                       |
| array                   | `{"array": name}`                                      |
| `TransitionCounts`      | `{"counts": name}`, its arrays as `name.<array>`       |
| `StopReason`            | `{"stop": name}`                                       |
| one of `KINDS`          | `{"kind": name, "fields": {...}}`                      |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore.errors import AxploreError, DamagedFileError
from axplore.explorers.base import ExplorerState, StopReason
from axplore.explorers.certified import CertifiedState
from axplore.explorers.disco import DiscoState
from axplore.explorers.ucb_explore import UcbExploreState
from axplore.explorers.ucb_staged import StagedState
from axplore.labels import Json, canonical_json
from axplore.proofs.claims import NearOptimal, Reachable, TooFar
from axplore.proofs.episode_tests import EpisodeTest, EpisodeTests
from axplore.statistics.counts import TransitionCounts
from axplore.statistics.episodes import Bets

STATES: Final = (CertifiedState, DiscoState, UcbExploreState, StagedState)
"""The states that can be kept. An explorer with another is repeated from its start."""

KINDS: Final[Mapping[str, type[Any]]] = {
    kind.__name__: kind for kind in (*STATES, Reachable, TooFar, NearOptimal, EpisodeTests, EpisodeTest, Bets)
}

Arrays = dict[str, npt.NDArray[Any]]


def encode_state(state: ExplorerState) -> tuple[Json, Arrays]:
    """A state as JSON with arrays beside it."""
    arrays: Arrays = {}
    return _encode(state, arrays), arrays


def decode_state(encoded: Json, arrays: Mapping[str, npt.NDArray[Any]]) -> ExplorerState:
    """The state that `encode_state` was given."""
    try:
        state = _decode(encoded, arrays)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, AxploreError):
            raise DamagedFileError(str(error)) from None
        raise DamagedFileError(f"it holds no state of an explorer: {type(error).__name__}: {error}") from None
    if not isinstance(state, STATES):
        raise DamagedFileError("it holds no state of an explorer")
    return state


def _encode(value: Any, arrays: Arrays) -> Json:
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | bool() | int() | str():
            encoded: Json = value
        case float():
            encoded = value if math.isfinite(value) else {"float": repr(value)}
        case tuple():
            encoded = [_encode(item, arrays) for item in value]
        case frozenset():
            encoded = {"set": sorted((_encode(item, arrays) for item in value), key=canonical_json)}
        case StopReason():
            encoded = {"stop": value.name}
        case np.ndarray():
            encoded = {"array": f"array{len(arrays)}"}
            arrays[encoded["array"]] = value
        case TransitionCounts():
            encoded = {"counts": f"counts{len(arrays)}"}
            arrays |= {f"{encoded['counts']}.{name}": array for name, array in value.to_arrays().items()}
        case _:
            content = {field.name: _encode(getattr(value, field.name), arrays) for field in fields(value)}
            encoded = {"kind": type(value).__name__, "fields": content}
    return encoded


def _decode(encoded: Json, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    if isinstance(encoded, list):
        return tuple(_decode(item, arrays) for item in encoded)
    if not isinstance(encoded, dict):
        return encoded
    if "kind" in encoded:
        content = {name: _decode(value, arrays) for name, value in encoded["fields"].items()}
        return KINDS[encoded["kind"]](**content)
    ((tag, content),) = encoded.items()
    return _TAGGED[tag](content, arrays)


def _counts_from(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> TransitionCounts:
    prefix = f"{name}."
    return TransitionCounts.from_arrays(
        {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    )


_TAGGED: Final[Mapping[str, Callable[[Any, Mapping[str, npt.NDArray[Any]]], Any]]] = {
    "float": lambda content, _: float(content),
    "set": lambda content, arrays: frozenset(_decode(item, arrays) for item in content),
    "stop": lambda content, _: StopReason[content],
    "array": lambda content, arrays: arrays[content].copy(),
    "counts": _counts_from,
}
