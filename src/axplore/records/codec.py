"""One codec for every file: a record becomes JSON and named arrays, and is read back by the types of its fields.

| value                  | JSON                                                                 |
|------------------------|----------------------------------------------------------------------|
| record, mapping        | an object                                                            |
| tuple, frozenset       | a list; that of a set is sorted                                      |
| array                  | `{"array": name}`, where the name is its path within the record      |
| `Labels`, `Memory`     | what their `as_json` says, and `from_json` reads; no dataclasses     |
| enumeration            | its value                                                            |
| infinite number        | `"inf"` or `"-inf"`, because JSON has none                           |

`unpack` accepts what `pack` writes and nothing else: types, required and unknown fields are checked by msgspec, and the
record is packed again and compared, so that no second spelling of a value is ever read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec
import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidInputError
from axplore.labels import Json, canonical_json

Arrays = dict[str, npt.NDArray[Any]]

NUMBERS: Final = (np.dtype(np.int64), np.dtype(np.float64))
"""The types of numbers that an array may have whose field does not say which."""

Kind = TypeVar("Kind")


class Record(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True, dict=True):
    """Base class of all records: immutable, with arrays that cannot be written to."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            for item in value.values() if isinstance(value, dict) else (value,):
                if isinstance(item, np.ndarray):
                    item.flags.writeable = False


def pack(record: Any) -> tuple[Json, Arrays]:
    """Returns a record as a JSON value and the arrays that it names."""
    arrays: Arrays = {}
    return _packed(record, "", arrays), arrays


def unpack(kind: type[Kind], content: Json, arrays: Mapping[str, npt.NDArray[Any]] | None = None) -> Kind:
    """Returns the record of a kind that `pack` was given.

    Raises:
        InvalidInputError: the content is anything that `pack` does not write for this kind.
    """
    arrays = arrays or {}
    try:
        record = msgspec.convert(content, kind, strict=False, dec_hook=partial(_unpacked, arrays))
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        raise InvalidInputError(str(error)) from None
    again, used = pack(record)
    if canonical_json(again) != canonical_json(content):
        raise InvalidInputError("it holds values that are spelled in another way than they are written")
    if used.keys() != arrays.keys():
        raise InvalidInputError(f"it does not name the array {min(arrays.keys() - used.keys())!r}")
    return record


def _packed(value: Any, path: str, arrays: Arrays) -> Json:
    packed: Json
    match value:
        case Enum():
            packed = value.value
        case None | bool() | int() | str():
            packed = value
        case float():
            packed = value if math.isfinite(value) else str(value)
        case np.ndarray():
            arrays[path] = value
            packed = {"array": path}
        case msgspec.Struct():
            packed = _packed(_fields_kept(value), path, arrays)
        case _ if hasattr(value, "as_json"):
            packed = value.as_json()
        case Mapping():
            packed = {name: _packed(item, f"{path}.{name}".lstrip("."), arrays) for name, item in value.items()}
        case frozenset():
            packed = sorted((_packed(item, path, arrays) for item in value), key=canonical_json)
        case tuple() | list():
            packed = [_packed(item, f"{path}.{index}", arrays) for index, item in enumerate(value)]
        case _:
            raise InvalidInputError(f"{path} is of type {type(value).__name__}, which no file holds")
    return packed


def _fields_kept(record: msgspec.Struct) -> dict[str, Any]:
    """The fields of a record that are written: all, but for what is None where the record leaves defaults out."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    if not record.__struct_config__.omit_defaults:
        return fields
    return {name: value for name, value in fields.items() if value is not None}


def _unpacked(arrays: Mapping[str, npt.NDArray[Any]], kind: Any, content: Json) -> Any:
    """Returns a value of a type that msgspec does not know."""
    if hasattr(kind, "from_json"):
        return kind.from_json(content)
    if get_origin(kind) is np.ndarray:
        return _array(arrays, get_args(get_args(kind)[1])[0], content)
    raise TypeError(f"no file holds a {kind}")


def _array(arrays: Mapping[str, npt.NDArray[Any]], number: Any, content: Json) -> npt.NDArray[Any]:
    name = content.get("array") if isinstance(content, dict) else None
    array = arrays.get(name) if isinstance(name, str) else None
    if array is None:
        raise ValueError(f"the array {name!r} is missing")
    dtypes = NUMBERS if number is Any else (np.dtype(number),)
    if array.dtype not in dtypes:
        raise ValueError(f"the array {name!r} is of type {array.dtype}; expected {' or '.join(map(str, dtypes))}")
    return array
