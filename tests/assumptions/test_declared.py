"""Assumptions as values: what is written on the command line, what combines, and what is refused."""

from __future__ import annotations

import pytest

from axplore.assumptions import NOTHING, Assumptions, assumptions_from
from axplore.assumptions.kind import PairKind
from axplore.errors import InvalidSettingError
from axplore.types import Action, State


def is_left(state: State, action: Action) -> bool:
    del state
    return action == "left"


def test_nothing_is_assumed_by_default() -> None:
    assert assumptions_from(None) == assumptions_from("none") == assumptions_from([]) == NOTHING
    assert NOTHING.nothing
    assert str(NOTHING) == "none"


def test_assumptions_are_written_as_text_and_combine() -> None:
    assert assumptions_from("deterministic").all_deterministic
    both = assumptions_from(["min-probability=0.25", Assumptions(deterministic=is_left)])
    assert both == Assumptions(min_probability=0.25, deterministic=is_left)
    assert str(both) == "deterministic where declared, min-probability 0.25"


def test_an_assumption_may_hold_for_some_pairs_only() -> None:
    assumed = Assumptions(deterministic=is_left, min_probability=lambda _, action: 0.1 if action == "jump" else 0.0)
    numbers = {
        kind.name: [kind.number(value, 0, action) for action in ("left", "jump")]
        for kind, value in assumed.kinds()
        if isinstance(kind, PairKind)
    }
    assert numbers == {"deterministic": [1.0, 0.0], "min-probability": [0.0, 0.1]}
    assert assumed.functions == ("deterministic", "min-probability")


@pytest.mark.parametrize(
    "given",
    [
        "certain",
        "deterministic=yes",
        "min-probability",
        "min-probability=0",
        "min-probability=1.5",
        "min-probability=nan",
        "min-probability=often",
        "tied=module:law",
        3,
        [3],
        ["deterministic", "deterministic"],
    ],
)
def test_what_is_no_assumption_is_refused(given: object) -> None:
    with pytest.raises(InvalidSettingError):
        assumptions_from(given)  # type: ignore[arg-type]


def test_functions_are_named_on_the_command_line() -> None:
    def tie(state: State, action: Action, successor: State) -> tuple[str, State]:
        del state, action
        return "all", successor

    loaded = assumptions_from(["tied=module:law", "leads-to=module:map"], load=lambda _: tie)
    assert loaded.functions == ("tied", "leads-to")
    assert str(loaded) == "tied and predicted as declared"
    with pytest.raises(InvalidSettingError, match="declare tied too"):
        assumptions_from("leads-to=module:map", load=lambda _: tie)


@pytest.mark.parametrize("wrong", [{"deterministic": 1}, {"min_probability": -0.5}, {"tied": "module:law"}])
def test_values_of_the_wrong_kind_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidSettingError):
        Assumptions(**wrong)
