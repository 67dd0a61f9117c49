from __future__ import annotations

import math
from enum import Enum
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest

from axplore.errors import InvalidInputError
from axplore.records.codec import Record, pack, unpack
from axplore.records.order import Labels
from axplore.types import FloatArray, IntArray


class Colour(Enum):
    RED = "red"


class Part(Record, frozen=True):
    numbers: IntArray
    values: FloatArray | None = None


class Whole(Record, frozen=True):
    states: Labels
    parts: tuple[Part, ...]
    colour: Colour
    bound: float
    settings: dict[str, Any]
    turn: Annotated[int, msgspec.Meta(ge=1, le=2**53)] = 1
    tags: frozenset[str] = frozenset()


def whole() -> Whole:
    part = Part(np.arange(3), np.array([0.5, math.inf]))
    return Whole(
        states=Labels([(0, 1), "a", 2**70, 1.5, True]),
        parts=(part, Part(np.arange(0))),
        colour=Colour.RED,
        bound=math.inf,
        settings={"array": "x", "key": None},
        tags=frozenset({"b", "a"}),
    )


def test_a_record_is_read_back_as_it_was() -> None:
    content, arrays = pack(whole())
    assert list(arrays) == ["parts.0.numbers", "parts.0.values", "parts.1.numbers"]
    back = unpack(Whole, content, arrays)
    assert pack(back)[0] == content
    assert list(back.states) == list(whole().states)
    assert type(back.states[4]) is bool
    assert back.bound == math.inf
    assert back.tags == {"a", "b"}
    assert back.settings == {"array": "x", "key": None}
    np.testing.assert_array_equal(back.parts[0].values, [0.5, math.inf])


def test_arrays_of_a_record_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        whole().parts[0].numbers[0] = 1


@pytest.mark.parametrize(
    "change",
    [
        {"bound": "1.5"},
        {"bound": True},
        {"bound": None},
        {"bound": "Infinity"},
        {"turn": 0},
        {"turn": 10**400},
        {"turn": "1"},
        {"turn": 1.0},
        {"colour": "blue"},
        {"states": "ab"},
        {"states": [{"float": "1.50"}]},
        {"tags": ["b", "a"]},
        {"tags": ["a", "a"]},
        {"unknown": 1},
        {"parts": [{"numbers": {"array": "parts.0.values"}, "values": None}]},
        {"parts": [{"numbers": {"array": "nowhere"}, "values": None}]},
        {"parts": [{"numbers": [1, 2], "values": None}]},
        {"parts": []},
    ],
    ids=repr,
)
def test_anything_else_is_refused(change: dict[str, Any]) -> None:
    content, arrays = pack(whole())
    with pytest.raises(InvalidInputError):
        unpack(Whole, {**content, **change}, arrays)


def test_a_missing_field_is_refused() -> None:
    content, arrays = pack(whole())
    del content["turn"]
    with pytest.raises(InvalidInputError):
        unpack(Whole, content, arrays)


def test_what_no_file_holds_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"settings\.key is of type object"):
        pack(msgspec.structs.replace(whole(), settings={"key": object()}))
