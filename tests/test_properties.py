from __future__ import annotations

from typing import Any

import pytest

from axplore.errors import InvalidInputError
from axplore.properties import fields_of, parse_property


@pytest.mark.parametrize(
    ("text", "maximise", "within", "negated", "comparison", "bound"),
    [
        ('Pmax=? [ F "a" ]', True, None, False, None, 0.0),
        ('Pmin=? [ !"bad" U<=20 "goal" ]', False, 20, False, None, 0.0),
        ('P>=0.9 [ F "a" ]', False, None, False, ">=", 0.9),
        ('P<=0.1 [ F<=3 "a" ]', True, 3, False, "<=", 0.1),
        ('P>=1 [ G !"bad" ]', True, None, True, ">=", 1.0),
        ('Pmax>0.5 [ G "ok" ]', False, None, True, ">", 0.5),
        ('Pmax=? [ F s1=12 & (s2!=12 | !"a") ]', True, None, False, None, 0.0),
        ("Pmax=?[F true]", True, None, False, None, 0.0),
        (f'Pmax=? [ F<={"0" * 30}7 "a" ]', True, 7, False, None, 0.0),
    ],
)
def test_the_usual_notation_is_read(
    text: str, maximise: bool, within: int | None, negated: bool, comparison: str | None, bound: float
) -> None:
    read = parse_property(text)
    asked = (read.maximise, read.within, read.negated, read.comparison, read.bound)
    assert asked == (maximise, within, negated, comparison, bound)


@pytest.mark.parametrize(
    ("text", "why", "place"),
    [
        ("Pmax=? [ F ]", "this cannot stand here", 11),
        ('Pmax=? [ "a" U', "too early|cannot stand", 14),
        ("hello", "this cannot stand here", 0),
        ('P=? [ F "a" ]', "best or the worst", 1),
        ('Pmax>=1.5 [ F "a" ]', "between 0 and 1", 6),
        ('Pmax=0.5 [ F "a" ]', "one of >=", 4),
        ('Pmax=? [ X "a" ]', "this cannot stand here", 11),
        ('Pmax=? [ F<=-1 "a" ]', "this cannot stand here", 12),
        ('R{"fuel"}min=? [ F "a" ]', "costs have no name", 2),
        ("", "too early|cannot stand", 0),
    ],
)
def test_an_error_points_at_the_place(text: str, why: str, place: int) -> None:
    with pytest.raises(InvalidInputError, match=why) as error:
        parse_property(text)
    shown, mark = str(error.value).split("\n")[1:3]
    assert (shown[4:], mark.index("^") - 4) == (text, place)


@pytest.mark.parametrize(
    ("formula", "state", "inside"),
    [
        ('"thanks"', "thanks", True),
        ('"thanks"', "error", False),
        ('"(1, 2)"', (1, 2), True),
        ("x>=3 & ok=true", "x=3, ok=true", True),
        ('door="open" & floor!=2', "floor=1, door=open", True),
        ('door="open"', (("door", "closed"), ("floor", 1)), False),
        ("x>=4 | ok=false", "x=3, ok=true", False),
        ("v!=2", (("c", 1), ("v", 3)), True),
        ('!("a" | "b")', "c", True),
        ("false", "c", False),
    ],
)
def test_formulas_say_which_states_they_mean(formula: str, state: Any, inside: bool) -> None:
    assert parse_property(f"Pmax=? [ F {formula} ]").reach(state, {}) is inside


def test_names_stand_for_sets_and_functions() -> None:
    read = parse_property('Pmax=? [ !"bad" U "good" ]')
    names: dict[str, Any] = {"bad": {1, 2}, "good": lambda state: state > 5}
    assert [read.reach(state, names) for state in (1, 3, 6)] == [False, False, True]
    assert [read.avoid(state, names) for state in (1, 3, 6)] == [True, False, False]


def test_a_field_that_a_state_does_not_have_is_named() -> None:
    with pytest.raises(InvalidInputError, match="no field 'y'; it has x"):
        parse_property("Pmax=? [ F y=1 ]").reach("x=1", {})
    with pytest.raises(InvalidInputError, match="cannot be compared"):
        parse_property("Pmax=? [ F x<1 ]").reach("x=abc", {})
    assert fields_of("plain text") == {}


@pytest.mark.parametrize(
    ("text", "lower", "upper", "holds"),
    [
        ('P>=0.9 [ F "a" ]', 0.91, 0.95, True),
        ('P>=0.9 [ F "a" ]', 0.8, 0.89, False),
        ('P>=0.9 [ F "a" ]', 0.8, 0.95, None),
        ('P<0.1 [ F "a" ]', 0.1, 0.2, False),
        ('Pmax=? [ F "a" ]', 0.1, 0.2, None),
    ],
)
def test_a_bound_is_decided_where_both_ends_agree(text: str, lower: float, upper: float, holds: bool | None) -> None:
    assert parse_property(text).holds(lower, upper) is holds


@pytest.mark.parametrize("formula", ["!" * 1900 + '"a"', '("a" | ' * 400 + '"a"' + ")" * 400])
def test_a_formula_that_is_nested_too_deeply_is_refused_and_a_long_one_is_not(formula: str) -> None:
    with pytest.raises(InvalidInputError, match="nested more than"):
        parse_property(f"Pmax=? [ F {formula} ]")
    assert parse_property(f"Pmax=? [ F {' | '.join(['x=1'] * 500)} ]").reach("x=1", {})
