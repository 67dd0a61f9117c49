"""One goal in place of a map: which states `explore(..., goal=...)` asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from axplore.arguments import label, refusal
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.labels import meanings, text_of
from axplore.properties import parse_property
from axplore.types import State

EVERYTHING: Final = "everything"
"""What is written for no goal: a map of everything within the radius."""


@dataclass(frozen=True)
class Goal:
    """The states that are asked for: any one of them will do.

    Attributes:
        text: a formula of states as in properties, such as `"thanks"` or `x>=3 & ok=true`; empty for everything.
        function: a function of a state in its place, which no file can hold.
    """

    text: str = ""
    function: Callable[[State], bool] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether a map is asked for, and no goal."""
        return not self.text and self.function is None

    def includes(self, state: State) -> bool:
        """Returns whether a state is one of those that are asked for."""
        return bool(self.function(state)) if self.function is not None else self._formula.reach(state, {})

    def check_names(self, names: Collection[str]) -> None:
        """Refuses a goal that uses a name which the system has for some of its states: a goal knows labels only."""
        for name in () if not self.text else self._formula.names:
            if name in names:
                raise InvalidSettingError(
                    f'"{name}" is what the system calls a set of states, and a goal names states by their labels: '
                    "compare fields of a state, or ask for the probability: "
                    f"axplore check WORLD 'Pmax=? [ F \"{name}\" ]'"
                )

    @cached_property
    def _formula(self) -> Any:
        return formula_of(self.text)


ALL: Final = Goal()
"""No goal: everything within the radius."""


def formula_of(text: str) -> Any:
    """Returns the property whose goal is a formula of states; raises InvalidInputError if the text is none."""
    prop = parse_property(f"Pmax=? [ F {text} ]")
    if prop.within is not None:
        raise InvalidInputError(f"a goal has no number of steps: {text}")
    return prop


def goal_from(given: Any) -> Goal:
    """Returns the goal that a label, a set of labels, a formula of states or a function stands for."""
    if isinstance(given, Goal):
        return given
    if callable(given):
        return Goal(function=given)
    if isinstance(given, str):
        return _from_text(given)
    if isinstance(given, Set | list):
        if not given:
            raise refusal("goal", given, "a state, a set of states, a formula of states or a function")
        return Goal(" | ".join(sorted(_quoted(label("goal", state)) for state in given)))
    return Goal(_quoted(label("goal", given)))


def _from_text(text: str) -> Goal:
    if text == EVERYTHING:
        return ALL
    with suppress(InvalidInputError):
        formula_of(text)
        return Goal(text)
    if '"' in text:
        formula_of(text)  # says where it is wrong
    return Goal(f'"{text}"')  # a label, written in any of the ways in which labels are


def _quoted(state: State) -> str:
    """Returns the formula of one state."""
    for text in (text_of(state), repr(state)):
        if '"' not in text and state in meanings(text):
            return f'"{text}"'
    raise InvalidSettingError(f"the goal {text_of(state)} cannot be written as a formula; give a function of a state")
