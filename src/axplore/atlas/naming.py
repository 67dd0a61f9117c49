"""Labels as text for people and tables, and back.

A label that is text is written as it is, unless it would read as something else; any other is written as the JSON of
`encode_label`. So `s0`, `7` and `[0,1]` are the text "s0", the number 7 and the pair (0, 1), and the text "7" is `"7"`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from axplore.errors import DamagedFileError, UnknownStateError
from axplore.labels import canonical_json, decode_label, encode_label
from axplore.mdp import RESET, Action, Reset, State

RESET_TEXT = "RESET"


def text_of(label: State | Action | Reset) -> str:
    """The text of a label; different labels have different texts."""
    if label is RESET:
        return RESET_TEXT
    encoded = encode_label(label)
    if isinstance(label, str) and encoded == label and label != RESET_TEXT and label == label.strip():
        try:
            json.loads(label)
        except ValueError:
            return label if label else '""'
    return canonical_json(encoded)


def label_of(text: str) -> State:
    """The label that `text_of` wrote; text that it never writes is a label as it is."""
    try:
        return decode_label(json.loads(text))
    except (ValueError, DamagedFileError, RecursionError):
        return text


def named(labels: Iterable[State], text: str, what: str) -> State:
    """The one of some labels that a text means: what `text_of` writes, or else what Python prints."""
    known = list(labels)
    meant = label_of(text)
    if meant in known:
        return known[known.index(meant)]
    printed = [label for label in known if str(label) == text]
    if len(printed) == 1:
        return printed[0]
    some = ", ".join(text_of(label) for label in known[:5]) + (", ..." if len(known) > 5 else "")
    raise UnknownStateError(f"no {what} {text!r}; there are {len(known)}: {some}")
