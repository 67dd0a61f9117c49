from __future__ import annotations

import math

import numpy as np
import pytest

from axplore.errors import InvalidInputError
from axplore.statistics.summaries import estimate, proportions


def test_the_half_width_is_that_of_students_t() -> None:
    # Mean 3, deviation sqrt(2.5), and t = 2.776445 for four degrees of freedom.
    mean, half_width = estimate([1, 2, 3, 4, 5])
    assert mean == 3
    assert half_width == pytest.approx(2.7764451 * math.sqrt(2.5 / 5), rel=1e-6)


def test_one_sample_says_nothing_about_its_spread() -> None:
    assert estimate([4.0]) == (4.0, math.inf)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no samples"):
        estimate([])


def test_a_state_counts_from_the_time_at_which_it_was_found() -> None:
    found = proportions([[0, 10], [0]], total=2, grid=np.array([0.0, 9.0, 10.0]))
    assert found.tolist() == [[0.5, 0.5, 1.0], [0.5, 0.5, 0.5]]
