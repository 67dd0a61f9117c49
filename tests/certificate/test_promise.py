from __future__ import annotations

import math

import numpy as np
import pytest

from axplore.certificate.promise import PropertyBounds, lower_text, upper_text
from axplore.properties import parse_property

RNG = np.random.default_rng(3)
VALUES = [
    0.0,
    1.0,
    0.5,
    1e-9,
    1 - 1e-9,
    0.9999996,
    1 / 3,
    1234567.3,
    1e6 + 0.4,
    1999999.9,
    *(10 ** RNG.uniform(-8, 13, 200)),
]


@pytest.mark.parametrize("value", VALUES)
def test_no_digit_of_a_bound_says_more_than_is_proven(value: float) -> None:
    lower, upper = float(lower_text(value)), float(upper_text(value))
    assert lower <= value <= upper
    assert upper - lower <= max(1.1e-6, value / 1e5)


def test_an_interval_in_words_holds_the_one_that_is_proven() -> None:
    prop = parse_property('Rmin=? [ F "a" ]')
    assert PropertyBounds(prop, 0.12345678, 0.12345678).interval == "between 0.123456 and 0.123457"
    assert PropertyBounds(prop, 1234567.8, math.inf).interval == "at least 1.234567e+6"
    assert PropertyBounds(prop, math.inf, math.inf).interval == "infinite"
