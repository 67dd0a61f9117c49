from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axplore.arguments import (
    Check,
    checked,
    collection,
    file_path,
    flag,
    function,
    instance,
    label,
    optional,
    real,
    real_array,
    settings,
    shown,
    text,
    whole,
)
from axplore.errors import AxploreError, InvalidSettingError, StorageError


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("check", "given", "wanted"),
    [
        (real(), np.float32(2), 2.0),
        (real(), np.int64(2), 2.0),
        (real(), Fraction(1, 4), 0.25),
        (real(least=1, most=2), 2, 2.0),
        (whole(), np.int32(7), 7),
        (whole(), np.uint8(7), 7),
        (flag, np.bool_(True), True),
        (text, np.str_("a"), "a"),
        (optional(whole()), None, None),
        (label, np.int64(3), 3),
        (settings, {"size": np.int64(3)}, {"size": 3}),
        (collection("states"), iter([1, 2]), (1, 2)),
        (file_path, "runs/a", Path("runs/a")),
    ],
)
def test_a_welcome_argument_becomes_a_value_of_pythons_own_types(check: Check, given: Any, wanted: Any) -> None:
    converted = check("it", given)
    assert converted == wanted
    assert type(converted) is type(wanted)


@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (real(), "2", "size is '2'; it must be a number"),
        (real(), True, "size is True; it must be a number"),
        (real(), None, "size is None; it must be a number"),
        (real(), 2j, "size is 2j; it must be a number"),
        (real(), Decimal(2), "it must be a number"),
        (real(), math.nan, "size is nan; it must be a number"),
        (real(), 10**400, r"size is 10+\.\.\.; it must be a number"),
        (real(above=0, most=1), 0, "size is 0; it must be a number above 0 and at most 1"),
        (real(least=1, most=9), 10, "size is 10; it must be a number from 1 to 9"),
        (real(least=1), -1, "size is -1; it must be a number of at least 1"),
        (real(above=1), 1, "size is 1; it must be a number above 1"),
        (whole(), 3.0, r"size is 3\.0; it must be a whole number of at least 0"),
        (whole(), "3", "size is '3'; it must be a whole number"),
        (whole(), True, "size is True; it must be a whole number"),
        (whole(), 2**63, r"it must be a whole number below 2\*\*63"),
        (whole(least=1, most=5), 0, "size is 0; it must be a whole number from 1 to 5"),
        (flag, 1, "size is 1; it must be True or False"),
        (text, b"a", "it must be text"),
        (file_path, "", "size is ''; it must be a path that a file can have"),
        (file_path, "a\0b", "it must be a path that a file can have"),
        (file_path, "a\ud800b", "it must be a path that a file can have"),
        (file_path, b"a", "it must be a path: text, or a pathlib.Path"),
        (file_path, 5, "size is 5; it must be a path"),
        (function, 3, "size is 3; it must be a function"),
        (settings, 5, "size is 5; it must be a mapping from names to values"),
        (settings, {1: 2}, "it must be a mapping from names to values"),
        (label, [1], r"size is \[1\]; it must be the label of a state or an action, which must be hashable"),
        (collection("names"), "ab", "size is 'ab'; it must be names"),
        (instance(int, "an int"), "a", "size is 'a'; it must be an int"),
        (real_array, ["1", "2"], "it must be an array of numbers"),
        (real_array, [[1], [1, 2]], "it must be an array of numbers"),
        (real_array, object(), "it must be an array of numbers"),
    ],
)
def test_a_wrong_argument_is_refused_with_its_name(check: Check, given: Any, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        check("size", given)


def test_a_path_that_is_too_long_is_refused() -> None:
    with pytest.raises(StorageError, match=r"^run is 'aaa.*which cannot be used"):
        file_path("run", "a" * 5000)


def test_messages_show_any_object() -> None:
    assert shown(Rude()) == "of type Rude"
    assert len(shown("x" * 1000)) == 60


@checked(size=whole(least=1))
def twice(size: int, times: int = 2) -> int:
    """Returns twice as much."""
    return size * times


def test_a_checked_function_keeps_its_name_and_its_words_on_missing_arguments() -> None:
    assert twice.__name__ == "twice"
    assert twice(np.int64(3)) == 6  # type: ignore[arg-type]
    assert twice(size=3, times=1) == 3
    with pytest.raises(AxploreError, match=r"^size is 0"):
        twice(0)
    with pytest.raises(TypeError, match=r"twice\(\) missing 1 required positional argument: 'size'"):
        twice()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        twice(1, sise=2)  # type: ignore[call-arg]
