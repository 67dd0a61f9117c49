from __future__ import annotations

import enum
import json
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.errors import DamagedFileError, InvalidLabelError
from axplore.labels import (
    MAX_DEPTH,
    MAX_LABEL_BYTES,
    SAFE_INTEGER,
    canonical_json,
    decode_label,
    encode_label,
    label_of_json,
    named,
    readable,
    text_of,
    written_bytes,
)
from axplore.types import RESET

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)  # lone surrogates included
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.binary(max_size=8)
    | any_text
    | st.text()
)
labels = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4), max_leaves=10
)


def through_a_file(label: Any) -> Any:
    return decode_label(json.loads(json.dumps(encode_label(label)).encode()))


def exact(label: Any) -> Any:
    """A value that is equal for labels of equal type and content only."""
    if isinstance(label, tuple):
        return ("tuple", *map(exact, label))
    if isinstance(label, frozenset):
        return ("frozenset", frozenset(map(exact, label)))
    return (type(label).__name__, hex(label) if type(label) is int else repr(label))


@given(labels)
def test_every_plain_label_comes_back_with_its_type(label: Any) -> None:
    assert exact(through_a_file(label)) == exact(label)


@given(labels, labels)
def test_labels_that_differ_in_type_or_content_are_written_differently(one: Any, other: Any) -> None:
    written_alike = canonical_json(encode_label(one)) == canonical_json(encode_label(other))
    assert written_alike == (exact(one) == exact(other))


@pytest.mark.parametrize(
    "label",
    [
        'a "quoted" name',
        "two\nlines\tand a tab",
        "</script><script>alert(1)</script>",
        "\ud800",
        "\ud800\udc00",  # two characters, not the one that this pair of surrogates stands for
        "\U00010000",
        "",
        "\x00",
        -0.0,
        float("inf"),
        5e-324,
        SAFE_INTEGER - 1,
        -SAFE_INTEGER,
        2**4096 - 1,
        -(2**4096) + 1,
        (),
        frozenset(),
        ((), ((),)),
        frozenset({frozenset({1}), (1,), "1", b"1"}),
        (True, 1, 1.0),
        None,
    ],
    ids=lambda label: ascii(canonical_json(encode_label(label)))[:40],
)
def test_awkward_labels_come_back(label: Any) -> None:
    assert exact(through_a_file(label)) == exact(label)


def test_true_one_and_one_point_zero_are_kept_apart() -> None:
    assert len({canonical_json(encode_label(label)) for label in (True, 1, 1.0, "1", b"1", (1,))}) == 6


def test_common_labels_read_well() -> None:
    assert encode_label("s0") == "s0"
    assert encode_label((3, "up", None)) == [3, "up", None]
    assert encode_label(0.5) == {"float": "0.5"}


@given(st.lists(st.integers(0, 99), min_size=2, max_size=6, unique=True))
def test_the_order_of_a_set_leaves_no_trace(members: list[int]) -> None:
    assert encode_label(frozenset(members)) == encode_label(frozenset(reversed(members)))


@pytest.mark.parametrize(
    ("scalar", "plain"),
    [
        (np.int64(7), 7),
        (np.uint8(7), 7),
        (np.bool_(True), True),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.str_("up"), "up"),
        (np.bytes_(b"up"), b"up"),
        ((np.int32(1), (np.float64(2.0),)), (1, (2.0,))),
    ],
)
def test_scalars_of_numpy_come_back_as_the_python_values_that_they_equal(scalar: Any, plain: Any) -> None:
    assert scalar == plain
    assert exact(through_a_file(scalar)) == exact(plain)


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "label",
    [
        Colour.RED,
        Level.LOW,
        Name("s0"),
        Point(1, 2),
        object(),
        RESET,
        1j,
        range(3),
        np.datetime64("2020-01-01"),
        [1, 2],
    ],
    ids=lambda label: type(label).__name__,
)
def test_a_label_that_is_not_plain_is_refused_by_name_wherever_it_stands(label: Any) -> None:
    for whole in (label, ("room", (label,))):
        with pytest.raises(InvalidLabelError, match="give the world a key function") as refusal:
            encode_label(whole)
        assert ascii(whole)[:40] in str(refusal.value)
        assert type(label).__qualname__ in str(refusal.value)


@pytest.mark.parametrize("label", [10**5000, -(10**5000), ("room", frozenset({2**4096}))], ids=["+", "-", "inside"])
def test_a_number_too_long_to_print_is_refused(label: Any) -> None:
    with pytest.raises(InvalidLabelError, match=r"a whole number of [0-9]+ bits cannot be a label"):
        encode_label(label)
    with pytest.raises(DamagedFileError):
        decode_label({"int": hex(10**5000)})


def test_a_label_that_holds_a_number_too_long_to_print_is_refused_with_a_message() -> None:
    with pytest.raises(InvalidLabelError, match="cannot be written to a file"):
        encode_label((object(), 10**5000))


def test_a_label_that_equals_nothing_is_refused() -> None:
    with pytest.raises(InvalidLabelError, match="NaN"):
        encode_label((1, float("nan")))


def nested(depth: int) -> tuple[Any, ...]:
    label: tuple[Any, ...] = ()
    for _ in range(depth - 1):
        label = (label,)
    return label


def test_tuples_nested_too_deep_are_refused_both_ways() -> None:
    assert through_a_file(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(InvalidLabelError, match="nested"):
        encode_label(nested(MAX_DEPTH + 1))
    with pytest.raises(DamagedFileError, match="nested"):
        decode_label(json.loads("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)))


@pytest.mark.parametrize(
    "written",
    [
        1.5,
        {},
        {"float": "nan"},
        {"float": "1.50"},
        {"float": 1.5},
        {"int": "0x7"},
        {"int": "20"},
        {"int": None},
        {"bytes": "6"},
        {"bytes": "6A"},
        {"set": [2, 1]},
        {"set": [1, 1]},
        {"set": "ab"},
        {"set": 3},
        {"characters": [97]},
        {"characters": [-1]},
        {"characters": ["a"]},
        {"tuple": []},
        {"float": "1.5", "int": "0x7"},
        SAFE_INTEGER,
        "\ud800",
        [{"float": "nan"}],
    ],
    ids=ascii,
)
def test_what_no_label_is_written_as_is_refused(written: Any) -> None:
    with pytest.raises(DamagedFileError):
        decode_label(written)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["int", "float", "bytes", "set", "characters", "x"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(json_values)
def test_reading_gives_a_label_that_is_written_the_same_way_or_a_refusal(written: Any) -> None:
    try:
        label = decode_label(written)
    except DamagedFileError:
        return
    assert canonical_json(encode_label(label)) == canonical_json(written)


@given(labels)
def test_every_label_is_readable_on_one_line_of_any_terminal(label: Any) -> None:
    assert readable(label).isprintable()


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("s1", "s1"),
        ((1, 2), "(1, 2)"),
        (np.int64(3), "3"),
        ((np.int64(0), (np.float64(0.5), np.str_("a"))), "0 · (0.5 · a)"),
        ((0, 1), "(0, 1)"),
        (("basket", "ann", 2), "basket · ann · 2"),
        (("", (1, 2)), "'' · (1, 2)"),
        ((("c", 3), ("v", (("w", "x"),))), '{"c": 3, "v": {"w": "x"}}'),
        (label_of_json({"b": [1, None], "a": {}}), '{"a": [], "b": [1, null]}'),
        ((("b", 3), ("a", 1)), "(b · 3) · (a · 1)"),
        ("two\nlines", r"two\nlines"),
        (RESET, "RESET"),
    ],
)
def test_labels_are_read_as_people_write_them(label: Any, text: str) -> None:
    assert readable(label) == text


def test_an_object_of_a_program_is_found_however_its_json_is_written() -> None:
    meant = label_of_json({"c": 3, "v": "idle", "list": [1, 2.5, {"x": True}]})
    for text in ('{"v":"idle","c":3,"list":[1,2.5,{"x":true}]}', readable(meant), text_of(meant)):
        assert named([0, "idle", meant], text, "state") is meant


def test_a_number_of_any_length_is_readable() -> None:
    assert readable(2**4096 - 1) == str(2**4096 - 1)
    assert readable(10**5000) == "a value of type int"


@pytest.mark.parametrize(
    "longest",
    [
        "x" * (MAX_LABEL_BYTES - 2),
        "\U0001f600" * (MAX_LABEL_BYTES // 12 - 1),
        bytes(MAX_LABEL_BYTES // 2 - 8),
        ("x" * (MAX_LABEL_BYTES // 2), "y" * (MAX_LABEL_BYTES // 2 - 10)),
    ],
)
def test_a_label_too_long_for_files_is_refused_with_its_size(longest: Any) -> None:
    assert through_a_file(longest) == longest
    longer = (*longest, "x") if isinstance(longest, tuple) else longest + longest
    with pytest.raises(InvalidLabelError, match=r"takes \d{3},\d{3} bytes in a file, and at most 262,144.*key="):
        encode_label(longer)


@given(labels)
def test_a_label_takes_no_more_in_a_file_than_is_said(label: Any) -> None:
    file = {"world": {"states": [[encode_label(label), []]]}}
    without: Any = {"world": {"states": [[None, []]]}}
    assert len(json.dumps(file, indent=1)) - len(json.dumps(without, indent=1)) + 4 <= written_bytes(label)


def test_a_very_long_label_is_shown_by_its_beginning() -> None:
    shown = readable("x" * 10**5)
    assert len(shown) < 2_100
    assert shown.endswith("... (100,000 characters)")
