"""What a user declares to know of a system, beyond what every proof takes for granted.

    explore(world, radius=8, assume="deterministic")
    explore(world, radius=8, assume=["min-probability=0.1", Assumptions(deterministic=is_motion)])
    explore(world, radius=8, assume=Assumptions(tied=law_and_outcome))

Assumptions are used to the full, written into the certificate, and part of every promise: "if ...". A draw that
contradicts one ends the exploration. docs/assumptions.md says what each of them means for a real system.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

from axplore.arguments import plain, real, refusal
from axplore.errors import InvalidSettingError
from axplore.types import Action, State

NONE: Final = "none"
"""What is written for no assumption at all."""

PROBABILITY: Final = real(above=0, most=1)

OutcomeOf: TypeAlias = Callable[[State, Action, State], tuple[Hashable, Hashable] | None]
"""Gives for a state, an action and the next state the class of the action and the name of the outcome, or None."""

LeadsTo: TypeAlias = Callable[[State, Action, Hashable], State | None]
"""Gives for a state, an action and the name of an outcome the state that it leads to, or None if that is not known."""


def _least_probability(value: Any) -> float:
    """A probability, or 0 for nothing assumed."""
    return 0.0 if plain(value) in (0, None) and value is not False else float(PROBABILITY("min_probability", value))


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What is taken for true of a system. The default assumes nothing.

    Attributes:
        deterministic: every action has one outcome; or a function of state and action that says which pairs have.
        min_probability: no outcome of an action is rarer than this; or a function of state and action that says how
            rare an outcome of the pair may be, 0 where nothing is known.
        tied: a function of state, action and next state that gives a class and the name of an outcome: all pairs of a
            class have the same probabilities of outcomes, and within a pair an outcome leads to one state. The class
            is that of the pair, whatever the next state; None for a pair that shares its law with no other.
        leads_to: a function of state, action and the name of an outcome that predicts the next state, where `tied` is
            given; None where it cannot tell. Without it, what an outcome does is known once it was seen in the pair.
    """

    deterministic: bool | Callable[[State, Action], bool] = False
    min_probability: float | Callable[[State, Action], float] = 0.0
    tied: OutcomeOf | None = None
    leads_to: LeadsTo | None = None

    def __post_init__(self) -> None:
        given = plain(self.deterministic)
        if not (isinstance(given, bool) or callable(given)):
            raise refusal("deterministic", given, "True, False or a function of state and action")
        object.__setattr__(self, "deterministic", given)
        if not callable(self.min_probability):
            object.__setattr__(self, "min_probability", _least_probability(self.min_probability))
        for name in ("tied", "leads_to"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise refusal(name, function, "a function")

    def check_whole(self) -> None:
        """Refuses a prediction of outcomes where nothing says what the outcomes are."""
        if self.leads_to is not None and self.tied is None:
            raise InvalidSettingError("leads-to predicts the outcomes that tied names; declare tied too")

    @property
    def nothing(self) -> bool:
        """Whether nothing is assumed."""
        return self == NOTHING

    @property
    def all_deterministic(self) -> bool:
        """Whether every action is assumed to have one outcome: nothing else matters then."""
        return self.deterministic is True

    def is_deterministic(self, state: State, action: Action) -> bool:
        """Whether a pair is assumed to have one outcome."""
        given = self.deterministic
        return given if isinstance(given, bool) else bool(given(state, action))

    def least_probability(self, state: State, action: Action) -> float:
        """How rare an outcome of a pair may be; 0 where nothing is assumed."""
        given = self.min_probability
        return _least_probability(given(state, action)) if callable(given) else given

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the assumptions that are functions, which no file can hold."""
        return tuple(field.name.replace("_", "-") for field in fields(self) if callable(getattr(self, field.name)))

    def __str__(self) -> str:
        parts = []
        if self.deterministic:
            parts.append("deterministic" if self.deterministic is True else "deterministic where declared")
        if self.min_probability:
            given = self.min_probability
            parts.append(f"min-probability {'as declared' if callable(given) else f'{given:g}'}")
        if self.tied is not None:
            parts.append("tied as declared" if self.leads_to is None else "tied and predicted as declared")
        return ", ".join(parts) or NONE


NOTHING: Final = Assumptions()
"""No assumption at all."""

Assumed: TypeAlias = str | Assumptions | Iterable[str | Assumptions] | None
"""What `assume` takes: text as on the command line, assumptions, or several of these, which combine."""


Loading: TypeAlias = Callable[[str], Any]
"""Returns the function that `MODULE:FUNCTION` stands for."""


def assumptions_from(given: Assumed, load: Loading | None = None) -> Assumptions:
    """Returns the assumptions that texts such as `deterministic`, `Assumptions` or several of these stand for.

    Args:
        given: what is assumed.
        load: imports the functions that texts name; without it these are refused.
    """
    if given is None:
        return NOTHING
    if isinstance(given, str | Assumptions):
        given = (given,)
    if not isinstance(given, Iterable):
        raise refusal("assume", given, "text, axplore.Assumptions, or several of these")
    chosen: dict[str, Any] = {}
    for part in given:
        for name, value in _declared(part, load).items():
            if name in chosen:
                raise InvalidSettingError(f"assume names {name.replace('_', '-')} twice; declare it once")
            chosen[name] = value
    assumptions = replace(NOTHING, **chosen)
    assumptions.check_whole()
    return assumptions


def _declared(part: str | Assumptions, load: Loading | None) -> dict[str, Any]:
    """The assumptions that one part of `assume` makes, by name."""
    if isinstance(part, Assumptions):
        given = {field.name: getattr(part, field.name) for field in fields(part)}
        return {name: value for name, value in given.items() if value != getattr(NOTHING, name)}
    if not isinstance(part, str):
        raise refusal("assume", part, "text or axplore.Assumptions")
    name, _, value = part.strip().partition("=")
    match name:
        case "none" if not value:
            return {}
        case "deterministic" if not value:
            return {"deterministic": True}
        case "min-probability" if value:
            try:
                return {"min_probability": PROBABILITY("min-probability", float(value))}
            except ValueError:
                raise refusal("min-probability", value, "a number above 0 and at most 1") from None
        case "tied" | "leads-to" if value and load is not None:
            return {name.replace("-", "_"): load(value)}
    raise refusal("assume", part, "none, deterministic, min-probability=P, tied=MODULE:FUNCTION or leads-to=...")
