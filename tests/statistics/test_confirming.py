from __future__ import annotations

import pytest

from axplore.statistics.confirming import SEEN_WITH, draws_to_see, rate_seen


@pytest.mark.parametrize("rate", [0.5, 0.05, 0.02, 0.01, 1e-4])
def test_so_many_draws_show_an_outcome_and_one_fewer_would_not(rate: float) -> None:
    draws = draws_to_see(rate)
    assert 1 - (1 - rate) ** draws >= SEEN_WITH > 1 - (1 - rate) ** (draws - 1)


@pytest.mark.parametrize("draws", [1, 6, 59, 10**6])
def test_the_rate_that_draws_show_is_the_one_that_they_are_needed_for(draws: int) -> None:
    rate = rate_seen(draws)
    assert 1 - (1 - rate) ** draws == pytest.approx(SEEN_WITH)
    assert draws_to_see(rate * (1 + 1e-9)) == draws


def test_no_draw_shows_nothing_and_one_shows_what_comes_for_sure() -> None:
    assert rate_seen(0) == 1.0
    assert draws_to_see(1.0) == 1
