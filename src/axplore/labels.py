"""Labels of states and actions as JSON, and back, exactly.

Files hold no pickle, so a label is written only if it is made of plain values:

| label                          | JSON                                     |
|--------------------------------|------------------------------------------|
| `None`, `True`, `"text"`       | `null`, `true`, `"text"`                 |
| `7`                            | `7`                                      |
| `2**60`                        | `{"int": "0x1000000000000000"}`          |
| `1.5`                          | `{"float": "1.5"}`                       |
| `b"ab"`                        | `{"bytes": "6162"}`                      |
| `(0, 1)`                       | `[0, 1]`                                 |
| `frozenset({1, 2})`            | `{"set": [1, 2]}`                        |
| text that no Unicode file holds | `{"characters": [55296, 97]}`           |

Whole numbers, truth values and floats stay apart, though Python takes 1, True and 1.0 as equal: what is read back has
the type that was written. NumPy's scalars are written as the Python values that they equal.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np

from axplore.errors import DamagedFileError, InvalidLabelError, UnknownStateError, printable
from axplore.types import RESET, Action, Reset, State

Json: TypeAlias = Any
"""What `json.loads` may give."""

MAX_DEPTH: Final = 50
"""How deep tuples and sets may be nested; far below what the JSON reader can follow."""

SAFE_INTEGER: Final = 2**53
"""From here on readers that know floats only, JavaScript among them, would round."""

MAX_BITS: Final = 4096
"""Of a whole number. Python refuses to write one of more than 4,300 digits, on pages and in messages too."""

MOST_BYTES_PER_CHARACTER: Final = 12
"""Of text or bytes in JSON, which has only ASCII: a character is written as two codes of six."""

DEPTH_IN_FILES: Final = 8
"""The bytes for the end of a line and its indentation, where a file has a label at its deepest place."""

MAX_LABEL_BYTES: Final = 2**18
"""The largest label in a file: a quarter of a megabyte of JSON. Files of all labels have a limit, too."""

MOST_NUMBERS: Final = 100
"""Of a tuple of whole numbers that is written without looking at each of them."""

_SURROGATES: Final = ("\ud800", "\udfff")


def encode_label(label: Hashable) -> Json:
    """Returns the label as a value that `json.dumps` writes and `decode_label` reads.

    Raises:
        InvalidLabelError: the label is not made of plain values, or too long for a file.
    """
    if _is_of_numbers(label):
        return list(label)  # type: ignore[call-overload]
    encoded = _encode(label, label, MAX_DEPTH)
    if not isinstance(encoded, str | list | dict):
        return encoded
    # What Python prints has a character at least for each of the text, and all that stands between.
    if MOST_BYTES_PER_CHARACTER * len(repr(encoded)) <= MAX_LABEL_BYTES:
        return encoded
    if (size := len(canonical_json(encoded))) > MAX_LABEL_BYTES:
        raise InvalidLabelError(
            f"the label {shortened(label)} takes {size:,} bytes in a file, and at most {MAX_LABEL_BYTES:,} are "
            "allowed; use a shorter one, such as a number or a digest of it: a key function (`key=`) makes one of "
            "each observation"
        )
    return encoded


def written_bytes(label: Hashable) -> int:
    """Returns an upper bound on the bytes that a label takes in an indented JSON file; refuses as `encode_label`."""
    text = canonical_label(label)
    opened = text.count("[") + text.count("{")
    n_lines = 1 + text.count(",") + 2 * opened
    return len(text) + text.count(":") + n_lines * (DEPTH_IN_FILES + min(opened, MAX_DEPTH))


def decode_label(encoded: Json) -> Hashable:
    """Returns the label that `encode_label` was given; refuses everything that it never gives."""
    if type(encoded) is list and _is_of_numbers(numbers := tuple(encoded)):
        return numbers
    label = _decode(encoded, MAX_DEPTH)
    try:
        expected = encode_label(label)
    except InvalidLabelError as error:
        raise DamagedFileError(f"{shortened(encoded)} is not a label: {error}") from None
    if canonical_json(expected) != canonical_json(encoded):
        raise DamagedFileError(f"{shortened(encoded)} is not how the label {shortened(label)} is written")
    return label


def canonical_json(value: Json) -> str:
    """Returns the one text of a JSON value: sorted keys, no spaces, ASCII only."""
    return _CANONICAL.encode(value)


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_label(label: Hashable) -> str:
    """Returns `canonical_json(encode_label(label))`, quickly for a tuple of numbers: there may be a million."""
    if _is_of_numbers(label):
        return f"[{','.join(map(str, label))}]"  # type: ignore[call-overload]
    return canonical_json(encode_label(label))


def _is_of_numbers(label: object) -> bool:
    """Returns whether a label is a short tuple of whole numbers, which are their own JSON."""
    if type(label) is not tuple or not 0 < len(label) <= MOST_NUMBERS or set(map(type, label)) != {int}:
        return False
    return bool(min(label) > -SAFE_INTEGER and max(label) < SAFE_INTEGER)


def finite(number: float) -> float | None:
    """Returns the number for JSON, which has no infinity: None in its place."""
    return number if math.isfinite(number) else None


MAX_MESSAGE: Final = 2_000
"""The longest message of a system that is kept, in characters."""


def clipped(message: str) -> str:
    """Returns what a system said, up to a length that every file has room for."""
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}... ({len(message):,} characters)"


def shortened(value: object) -> str:
    """Returns the value for a message, however long it is."""
    try:
        text = ascii(value)
    except Exception:  # Python writes no whole number of more than 4,300 digits, and objects may write anything
        text = f"a value of type {type(value).__qualname__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _encode(label: Hashable, whole: Hashable, depth: int) -> Json:
    if depth == 0:
        raise InvalidLabelError(f"the label {shortened(whole)} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(label, np.generic) and label.dtype.kind in "biufSU":
        label = label.item()
    # By exact type: an enumeration's member or a named tuple may equal a plain value, but is not one.
    kind = type(label)
    if label is None or kind is bool:
        return label
    if kind is tuple:
        return [_encode(item, whole, depth - 1) for item in label]  # type: ignore[attr-defined]
    if kind is frozenset:
        members = [_encode(item, whole, depth - 1) for item in label]  # type: ignore[attr-defined]
        return {"set": sorted(members, key=canonical_json)}
    if kind in _PLAIN:
        return _PLAIN[kind](label)
    raise InvalidLabelError(
        f"the label {shortened(whole)} cannot be written to a file: {shortened(label)} is of type {kind.__qualname__}; "
        "give the world a key function that turns it into text, numbers, bytes, or tuples or frozensets of these"
    )


def _encode_int(label: int) -> Json:
    if label.bit_length() > MAX_BITS:
        raise InvalidLabelError(
            f"a whole number of {label.bit_length()} bits cannot be a label, because Python would not print it; "
            f"use one of at most {MAX_BITS} bits, or text"
        )
    return label if abs(label) < SAFE_INTEGER else {"int": hex(label)}


def _encode_float(label: float) -> Json:
    if math.isnan(label):
        raise InvalidLabelError("NaN cannot be a label: it equals nothing, not even itself")
    return {"float": repr(label)}


def _encode_text(label: str) -> Json:
    # Two halves of a surrogate pair in a row would be read back as one character.
    first, last = _SURROGATES
    if any(first <= character <= last for character in label):
        return {"characters": [ord(character) for character in label]}
    return label


def _encode_bytes(label: bytes) -> Json:
    return {"bytes": label.hex()}


_PLAIN: Final[dict[type, Callable[[Any], Json]]] = {
    int: _encode_int,
    float: _encode_float,
    str: _encode_text,
    bytes: _encode_bytes,
}


def _decode(encoded: Json, depth: int) -> Hashable:
    if depth == 0:
        raise DamagedFileError(f"a label is nested deeper than {MAX_DEPTH} levels")
    if encoded is None or isinstance(encoded, bool | int | str):
        return encoded
    if isinstance(encoded, list):
        return tuple(_decode(item, depth - 1) for item in encoded)
    if isinstance(encoded, dict) and len(encoded) == 1:
        ((tag, content),) = encoded.items()
        try:
            if tag == "set":
                return frozenset(_decode(item, depth - 1) for item in content)
            if tag in _TAGGED:
                return _TAGGED[tag](content)
        except (TypeError, ValueError, OverflowError) as error:
            raise DamagedFileError(f"{shortened(encoded)} is not a label: {error}") from None
    raise DamagedFileError(f"{shortened(encoded)} is not a label")


_TAGGED: Final[dict[str, Callable[[Any], Hashable]]] = {
    "int": lambda content: int(content, 16),
    "float": float,
    "bytes": bytes.fromhex,
    "characters": lambda content: "".join(map(chr, content)),
}


RESET_TEXT = "RESET"

PART: Final = " · "
"""Stands between the parts of a label."""

LONGEST_READABLE: Final = 2_000
"""Of a label, in characters; people do not read more."""


def readable(label: State | Action | Reset) -> str:
    """Returns the label as people write it, on one line, with nothing that a terminal obeys.

    Text and numbers are as they are, and so are tuples of numbers: `(0, 1)`. Other tuples are joined by dots, as in
    `basket · ann · 2`, and what a program wrote as a JSON object is shown as one: `{"c": 3, "v": "idle"}`.
    Different labels may look the same, as 1 and "1" do, or two that are very long; `text_of` tells them apart.
    """
    if label is RESET:
        return RESET_TEXT
    try:
        text = _in_words(_plain(label), MAX_DEPTH)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = shortened(label)
    text = printable(text).replace("\n", "\\n")
    return text if len(text) <= LONGEST_READABLE else f"{text[:LONGEST_READABLE]}... ({len(text):,} characters)"


def _in_words(label: Hashable, depth: int) -> str:
    if type(label) is not tuple or depth == 0 or not _has_text(label, depth):
        return str(label)
    if _is_object(label):
        return json.dumps(_as_json(label), ensure_ascii=False)
    return PART.join(_as_part(item, depth - 1) for item in label)


def _as_json(value: Any) -> Json:
    """Returns the JSON value that `label_of_json` made a label of, as far as it can be told."""
    if type(value) is not tuple:
        return value if value is None or isinstance(value, str | int | float) else str(value)
    if value and _is_object(value):
        return {name: _as_json(part) for name, part in value}
    return list(map(_as_json, value))


def _as_part(item: Hashable, depth: int) -> str:
    """Returns a part of a tuple: tuples in brackets, and text that would not be seen quoted."""
    if isinstance(item, str):
        return item if item.strip() else repr(item)
    text = _in_words(item, depth)
    return f"({text})" if type(item) is tuple and not text.startswith("(") else text


def _has_text(label: tuple[Hashable, ...], depth: int) -> bool:
    """Returns whether a tuple has text in it, at any depth: others are read as numbers."""
    return depth > 0 and any(
        isinstance(item, str) or (type(item) is tuple and _has_text(item, depth - 1)) for item in label
    )


def _is_object(label: tuple[Hashable, ...]) -> bool:
    """Returns whether a tuple is how `label_of_json` writes an object: pairs of a name and a value, by name."""
    if not all(type(item) is tuple and len(item) == 2 and isinstance(item[0], str) and item[0] for item in label):
        return False
    names = [item[0] for item in label]  # type: ignore[index]
    return names == sorted(set(names))


def _plain(label: Hashable) -> Hashable:
    """Returns the label with NumPy's scalars as the Python values that they equal."""
    if isinstance(label, np.generic):
        return label.item()  # type: ignore[no-any-return]
    if type(label) is tuple:
        return tuple(map(_plain, label))
    return frozenset(map(_plain, label)) if type(label) is frozenset else label


def text_of(label: State | Action | Reset) -> str:
    """Returns the text of a label; different labels have different texts."""
    if label is RESET:
        return RESET_TEXT
    encoded = encode_label(label)
    if isinstance(label, str) and encoded == label and label != RESET_TEXT and label == label.strip():
        try:
            json.loads(label)
        except ValueError:
            return label if label else '""'
    return canonical_json(encoded)


def _as_python_prints(text: str) -> State:
    """Returns the label that Python prints as a text, written with any spaces; the text itself if there is none."""
    try:
        label: State = ast.literal_eval(text.strip())
        encode_label(label)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, InvalidLabelError):
        return text
    return label


def label_of(text: str) -> State:
    """Returns the label that `text_of` wrote; text that it never writes is a label as it is."""
    try:
        return decode_label(json.loads(text))
    except (ValueError, DamagedFileError, RecursionError):
        return text


def label_of_json(value: Json) -> State:
    """Returns a JSON value of a program as a label: a list as a tuple, an object as one of (name, value) by name."""
    if isinstance(value, list):
        return tuple(map(label_of_json, value))
    if isinstance(value, dict):
        return tuple((name, label_of_json(value[name])) for name in sorted(value))
    label: State = value
    return label


def _as_program_writes(text: str) -> State:
    """Returns the label of a state that a program writes as this JSON; the text itself if it is none."""
    try:
        return label_of_json(json.loads(text))
    except (ValueError, RecursionError):
        return text


def meanings(text: str) -> tuple[State, ...]:
    """Returns the labels that a text may mean, written by `text_of`, a program or Python; often one and the same."""
    return label_of(text), _as_program_writes(text), _as_python_prints(text)


def named(labels: Iterable[State], text: str, what: str) -> State:
    """Returns the one of some labels that a text means, written by `text_of`, a program, Python or `readable`.

    So `[1,1]`, `(1, 1)` and `(1,1)` all mean the tuple, and `{"a":1}` what a program calls so.
    """
    from difflib import get_close_matches

    known = list(labels)
    for meant in meanings(text):
        if meant in known:
            return known[known.index(meant)]
    names = [readable(label) for label in known]
    if names.count(text) == 1:
        return known[names.index(text)]
    close = get_close_matches(text, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise UnknownStateError(f"no {what} named {text!r}{guess} (there are {len(known)}: {some})")
