"""Records of episodes: the verifier's wealth against exact arithmetic and the explorer's, and forgeries."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axplore.certificate.kinds.episodes import (
    EpisodeSetting,
    check_ranges,
    check_records,
    level_of,
    log_wealth,
)
from axplore.errors import InvalidInputError
from axplore.records.episodes import EpisodeRecord
from axplore.statistics import episodes as statistics
from edited import edited
from made_counts import made_counts
from tested_policies import plays

SHARE = 0.01
ROWS: list[list[tuple[int, int, int]]] = [
    [(0, 200, 1), (1, 300, 2), (2, 400, 3)],
    [(0, 100, 1), (1, 300, 2)],
    [(2, 300, 1)],
    [],
    [(3, 100, 1), (2, 10, 2)],
    [],
    [],
    [],
]
SETTING = EpisodeSetting(share=SHARE, counts=made_counts(ROWS, [2, 2, 1, 3]))

FIRST = EpisodeRecord(
    goal=2,
    **plays(1, 0),
    horizon=4,
    bound=5.0,
    at_most=5.0,
    tail=6.0,
    line=1,
    turn=1,
    fractions=(0.4, 0.8),
    weights=(0.5, 0.5),
    outcomes=(0, 0, 30, 12, 3, 2),
)
SECOND = edited(FIRST, goal=3, **plays(0, 1, 0), turn=2, outcomes=(0, 0, 0, 60, 12, 2))
OTHER_LINE = edited(FIRST, goal=1, **plays(0), horizon=2, line=2, outcomes=(0, 40, 6, 4))
RECORDS = (FIRST, SECOND, OTHER_LINE)


def exact_log_wealth(record: EpisodeRecord, bound: float) -> float:
    """The wealth of bets on a bound as a fraction of whole numbers, and its logarithm with fifty digits."""
    wealth = Fraction(0)
    for fraction, weight in zip(record.fractions, record.weights, strict=True):
        product = Fraction(weight)
        for steps, times in enumerate(record.outcomes):
            scale = record.horizon + Fraction(record.tail) - Fraction(record.bound)
            taken = Fraction(steps) if steps <= record.horizon else record.horizon + Fraction(record.tail)
            loss = taken - Fraction(bound)
            product *= (1 - Fraction(fraction) * loss / scale) ** times
        wealth += product
    with localcontext() as context:
        context.prec = 50
        return float(Decimal(wealth.numerator).ln() - Decimal(wealth.denominator).ln())


@st.composite
def any_record(draw: st.DrawFn) -> EpisodeRecord:
    horizon = draw(st.integers(1, 8))
    fractions = draw(st.lists(st.floats(0.001, 0.98), min_size=1, max_size=3))
    bound = draw(st.floats(0.5, 20.0))
    return EpisodeRecord(
        goal=1,
        **plays(0),
        horizon=horizon,
        bound=bound,
        at_most=None,
        tail=1.0 + bound + draw(st.sampled_from((0.0, 0.3, 7.0, 40.0))),
        line=1,
        turn=1,
        fractions=tuple(fractions),
        weights=(1.0 / len(fractions) - 1e-12,) * len(fractions),
        outcomes=(0, *draw(st.lists(st.integers(0, 40), min_size=horizon + 1, max_size=horizon + 1))),
    )


@given(any_record(), st.floats(0.0, 1.0))
def test_the_wealth_is_that_of_exact_arithmetic_and_never_above_it(record: EpisodeRecord, part: float) -> None:
    bound = record.bound + part * (record.tail - 1.0 - record.bound)
    exact = exact_log_wealth(record, bound)
    assert -1e-13 <= exact - log_wealth(record, bound) < 1e-9


@given(any_record(), st.floats(0.0, 1.0))
def test_explorer_and_verifier_agree_and_the_explorer_is_the_stricter_one(record: EpisodeRecord, part: float) -> None:
    bound = max(record.bound, min(record.bound + part * (record.tail - 1.0 - record.bound), record.tail - 1.0))
    bets = statistics.Bets(np.array(record.fractions), np.array(record.weights))
    losses = statistics.losses_if_slower(record.horizon, bound, record.tail, record.bound)
    explorer = statistics.log_wealth(losses, np.array(record.outcomes), bets)
    assert 0 <= log_wealth(record, bound) - explorer < 1e-8
    for line in (1, 2, 17):
        assert level_of(line, SHARE) == statistics.line_level(SHARE, line)


def test_records_that_prove_their_bounds_are_accepted_in_any_order() -> None:
    assert check_records(RECORDS, SETTING) == (None, None, None)
    assert check_records(RECORDS[::-1], SETTING) == (None, None, None)
    assert check_records((), SETTING) == ()


def refused(forged: EpisodeRecord, setting: EpisodeSetting = SETTING) -> str:
    """The reason for which a record is refused that takes the place of the first one."""
    reason, *_ = check_records((forged, *RECORDS[1:]), setting)
    assert reason is not None
    return reason


FORGERIES: dict[str, tuple[dict[str, Any], str]] = {
    "arrivals turned into misses": ({"outcomes": (0, 0, 10, 12, 3, 22)}, "nats"),
    "fewer episodes": ({"outcomes": (0, 0, 5, 2, 1, 0)}, "nats"),
    "more arrivals than draws": (
        {"outcomes": (0, 0, 700, 12, 3, 2)},
        "reached the goal 715 times, the draws only 710 times",
    ),
    "more episodes than were begun": (
        {"goal": 1, **plays(1), "outcomes": (0, 0, 386, 12, 3, 2)},
        "drawn 400 times",
    ),
    "more arrivals than by its own draws": ({"outcomes": (0, 0, 301, 12, 3, 2)}, "entered the goal 300 times"),
    "an arrival sooner than can be": ({"outcomes": (0, 1, 30, 12, 3, 2)}, "to the goal in 1 steps"),
    "a policy that leads elsewhere": (plays(1, 1), "entered the goal 0 times"),
    "a goal that the policy does not reach": ({"goal": 3}, "the goal 117 times, the draws only 100"),
    "an arrival without a step": ({"outcomes": (30, 0, 0, 12, 3, 2)}, "without a step"),
    "a longer horizon": ({"horizon": 5}, "do not fit a horizon"),
    "a longer horizon, misses moved": ({"horizon": 40, "outcomes": (0, 0, 30, 12, 3, 2, *[0] * 36)}, "nats"),
    "a smaller bound": ({"bound": 3.0, "at_most": 3.0}, "nats"),
    "a smaller bound than the least": ({"at_most": 4.9}, "fewer than the least bound"),
    "a bound above that of a restart": ({"at_most": 5.1}, "fewer than a restart takes"),
    "a dearer miss": ({"tail": 60.0}, "nats"),
    "a miss that costs less than a restart": ({"tail": 5.5}, "fewer than a restart takes"),
    "a later line": ({"line": 1000}, "nats"),
    "a later turn": ({"turn": 3}, "missing, or refused"),
    "the same turn twice": ({"turn": 2}, "stands 2 times"),
    "a policy in states that are not known": (plays(1, 0, 0, 0, 0), "states that are not known"),
    "an action that is none": (plays(2, 0), "does not exist"),
    "a policy that resets at once": (plays(-1, 0), "never leaves"),
    "no policy": (plays(), "never leaves"),
    "a goal that is not known": ({"goal": 4}, "no known state"),
    "weights above one": ({"weights": (0.9, 0.9)}, "more than the wealth"),
    "weights above one by a hair": ({"weights": (0.5, 0.5 + 2**-52)}, "more than the wealth"),
    "a stake above the wealth": ({"fractions": (0.4, 1.0)}, "bets are invalid"),
    "a bet without weight": ({"weights": (0.5,)}, "bets are invalid"),
    "no bets": ({"weights": (), "fractions": ()}, "bets are invalid"),
    "no episodes": ({"outcomes": (0,) * 6}, "nats"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forgeries_are_refused(forgery: str) -> None:
    changes, reason = FORGERIES[forgery]
    assert reason in refused(edited(FIRST, **changes))


def test_a_line_ends_with_the_first_record_that_cannot_be() -> None:
    impossible = edited(FIRST, outcomes=(0, 1, 30, 12, 3, 2))
    first, second, other = check_records((impossible, *RECORDS[1:]), SETTING)
    assert first is not None
    assert second == "turn 1 of its line 1 is missing, or refused"
    assert other is None
    assert check_records(RECORDS[1:], SETTING)[0] == "turn 1 of its line 1 is missing, or refused"


def test_a_test_that_ended_leaves_what_it_has_not_lost() -> None:
    """The second of a line needs as many more nats as the first has lost, and none more where that has won."""
    share = 2.0 * math.exp(-(log_wealth(SECOND, SECOND.bound) - 2.0))
    setting = edited(SETTING, share=share)
    won = edited(FIRST, at_most=None, outcomes=(0, 0, 3, 0, 0, 0))
    assert log_wealth(won, won.bound) > 0.0
    assert check_records((won, SECOND), setting) == (None, None)
    for missed, is_accepted in ((1, True), (2, True), (3, False)):
        lost = edited(won, outcomes=(0, 0, 0, 0, 0, missed))
        assert (-log_wealth(lost, lost.bound) <= 2.0) is is_accepted
        assert (check_records((lost, SECOND), setting)[1] is None) is is_accepted
        assert check_records((lost,), setting) == (None,)


def test_bets_serve_for_every_bound_from_the_least_on() -> None:
    wide = edited(FIRST, bound=3.0, tail=6.0, outcomes=(0, 0, 60, 24, 3, 2))
    proven = [bound for bound in np.linspace(3.0, 5.0, 81) if log_wealth(wide, bound) >= -math.log(SHARE / 2)]
    assert 3.0 < proven[0] < 5.0
    assert proven[-1] == 5.0
    for bound in np.linspace(3.0, 5.0, 81):
        accepted = check_records((edited(wide, at_most=float(bound)),), SETTING)[0] is None
        assert accepted == (bound >= proven[0])


def test_a_smaller_share_asks_for_more() -> None:
    assert "nats" in refused(FIRST, edited(SETTING, share=1e-9))


def test_the_levels_of_any_lines_stay_within_the_share() -> None:
    assert math.fsum(level_of(line, SHARE) for line in range(1, 100_000)) <= SHARE


def test_arrivals_of_all_records_together_must_fit_the_draws() -> None:
    """Two records that each fit the draws of the first action, but not together."""
    setting = EpisodeSetting(SHARE, made_counts([[(0, 20, 1), (1, 40, 2), (2, 40, 3)], *ROWS[1:]], [2, 2, 1, 3]))
    reasons = check_records(RECORDS, setting)
    assert reasons[0] is None
    assert all(reason is not None and "drawn 100 times" in reason for reason in reasons[1:])


@pytest.mark.parametrize(
    "changes",
    [
        {"goal": 0},
        {"goal": True},
        {"horizon": 0},
        {"turn": 1.0},
        {"bound": 5},
        {"bound": math.inf},
        {"bound": math.nan},
        {"at_most": 5},
        {"at_most": math.nan},
        {"outcomes": (0, -1, 3)},
        {"outcomes": (0, 1.5, 3)},
        {"actions": (-1, 0)},
        {"states": (0, 0)},
        {"states": (1, 0)},
        {"states": (0,)},
        {"states": (-1, 0)},
        {"fractions": (0.0, 0.4)},
        {"weights": (-0.5, 1.0)},
    ],
)
def test_what_is_no_record_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        check_ranges(edited(FIRST, **changes))


@pytest.mark.parametrize("name", ["fractions", "weights"])
def test_no_stake_is_above_the_whole_wealth(name: str) -> None:
    check_ranges(edited(FIRST, **{name: (1.0, 0.1)}))
    with pytest.raises(InvalidInputError, match=name):
        check_ranges(edited(FIRST, **{name: (1.05, 0.1)}))
