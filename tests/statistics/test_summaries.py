from __future__ import annotations

import math

import numpy as np
import pytest

from axplore.errors import InvalidInputError
from axplore.statistics.summaries import estimate, proportion_interval, proportions


def test_the_half_width_is_that_of_students_t() -> None:
    # Mean 3, deviation sqrt(2.5), and t = 2.776445 for four degrees of freedom.
    mean, half_width = estimate([1, 2, 3, 4, 5])
    assert mean == 3
    assert half_width == pytest.approx(2.7764451 * math.sqrt(2.5 / 5), rel=1e-6)


def test_two_samples_are_enough() -> None:
    mean, half_width = estimate([1, 3])
    assert mean == 2
    assert half_width == pytest.approx(12.7062047, rel=1e-6)  # t for one degree of freedom; the deviation is sqrt(2)


def test_one_sample_says_nothing_about_its_spread() -> None:
    assert estimate([4.0]) == (4.0, math.inf)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no samples"):
        estimate([])


def test_a_state_counts_from_the_time_at_which_it_was_found() -> None:
    found = proportions([[0, 10], [0]], total=2, grid=np.array([0.0, 9.0, 10.0]))
    assert found.tolist() == [[0.5, 0.5, 1.0], [0.5, 0.5, 0.5]]


def chance_of_at_most(number: int, total: int, probability: float) -> float:
    return math.fsum(math.comb(total, k) * probability**k * (1 - probability) ** (total - k) for k in range(number + 1))


@pytest.mark.parametrize(("number", "total"), [(0, 1), (1, 1), (0, 20), (3, 20), (20, 20), (150, 400)])
def test_outside_the_interval_of_a_proportion_each_tail_is_too_rare(number: int, total: int) -> None:
    low, high = proportion_interval(number, total)
    assert low == 0 if number == 0 else 1 - chance_of_at_most(number - 1, total, low) == pytest.approx(0.025)
    assert high == 1 if number == total else chance_of_at_most(number, total, high) == pytest.approx(0.025)


@pytest.mark.parametrize(("number", "total"), [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_proportion_is_refused(number: int, total: int) -> None:
    with pytest.raises(InvalidInputError, match="is not a proportion"):
        proportion_interval(number, total)
