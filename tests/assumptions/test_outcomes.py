"""`outcomes=K`: a support that has shown K outcomes is closed."""

from __future__ import annotations

import numpy as np
import pytest

import axplore
from axplore.assumptions import Assumptions
from axplore.assumptions.registry import KINDS
from axplore.certificate.assumptions import registry as checked
from axplore.errors import InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.records.run import StopReason

COIN = TabularMdp.from_rows(
    {
        "start": {"toss": {"heads": 0.5, "tails": 0.5}},
        "heads": {"again": {"start": 0.9, "won": 0.1}},
        "tails": {"again": {"start": 0.7, "lost": 0.3}},
        "won": {},
        "lost": {},
    },
    "start",
)
WON = 0.05 / (1 - 0.5 * 0.9 - 0.5 * 0.7)
ASKED = 'Pmax=? [ F "won" ]'


def test_it_closes_supports_so_that_upper_bounds_converge_without_a_least_probability() -> None:
    nothing = axplore.check(COIN, ASKED, precision=0.1, max_steps=20_000)
    found = axplore.check(COIN, ASKED, precision=0.1, assume="outcomes=2", max_steps=200_000)
    assert nothing.upper - nothing.lower > 0.1
    assert found.lower <= WON <= found.upper <= found.lower + 0.1
    assert axplore.verify(found.atlas).holds
    assert found.atlas.assumptions == ("no action has more than 2 outcomes",)
    assert "no action has more than 2 outcomes" in found.sentence


def test_an_outcome_too_many_contradicts_it() -> None:
    rows = {"start": {"roll": {"one": 0.4, "two": 0.3, "three": 0.3}}, "one": {}, "two": {}, "three": {}}
    found = axplore.check(TabularMdp.from_rows(rows, "start"), 'Pmax=? [ F "one" ]', assume="outcomes=2")
    assert found.atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
    assert not found.proven


def test_a_function_says_how_many_there_are_where_it_knows() -> None:
    assume = Assumptions(outcomes=lambda state, _: 2 if state == "start" else 0)
    found = axplore.check(COIN, ASKED, precision=0.5, assume=assume, max_steps=20_000)
    assert found.atlas.assumptions == ("none of 1 actions has more than 2 outcomes",)
    assert axplore.verify(found.atlas).holds


def test_exploring_takes_it_too() -> None:
    atlas = axplore.explore(COIN, 3, 1, assume="outcomes=2")
    assert atlas.verdict.kind.name == "PROVEN"
    assert axplore.verify(atlas).complete


@pytest.mark.parametrize("text", ["outcomes=1", "outcomes=0", "outcomes=two", "outcomes=-1", "outcomes=2.5"])
def test_what_is_no_number_of_outcomes_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="outcomes"):
        axplore.check(COIN, ASKED, assume=text)


def test_both_accounts_of_it_agree() -> None:
    (ours,) = (kind for kind in KINDS if kind.name == "outcomes")
    (theirs,) = (kind for kind in checked.KINDS if kind.name == "outcomes")
    for number in (2.0, 3.0, 17.0):
        assert theirs.means_something(number)  # type: ignore[attr-defined]
        assert ours.most_outcomes(np.array([number]))[0] == theirs.most_outcomes(number)  # type: ignore[attr-defined]
    assert not any(theirs.means_something(number) for number in (0.5, 1.0, 2.5, 1e7))  # type: ignore[attr-defined]
