"""What a user declares to know of a system, beyond what every proof takes for granted.

    explore(world, radius=8, assume="deterministic")
    explore(world, radius=8, assume=["min-probability=0.1", Assumptions(deterministic=is_motion)])

Assumptions are used to the full, written into the certificate, and part of every promise: "if ...". A draw that
contradicts one ends the exploration. docs/assumptions.md says what each of them means for a real system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

from axplore.arguments import plain, real, refusal
from axplore.errors import InvalidSettingError
from axplore.types import Action, State

NONE: Final = "none"
"""What is written for no assumption at all."""

PROBABILITY: Final = real(above=0, most=1)


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
    """

    deterministic: bool | Callable[[State, Action], bool] = False
    min_probability: float | Callable[[State, Action], float] = 0.0

    def __post_init__(self) -> None:
        given = plain(self.deterministic)
        if not (isinstance(given, bool) or callable(given)):
            raise refusal("deterministic", given, "True, False or a function of state and action")
        object.__setattr__(self, "deterministic", given)
        if not callable(self.min_probability):
            object.__setattr__(self, "min_probability", _least_probability(self.min_probability))

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
        return ", ".join(parts) or NONE


NOTHING: Final = Assumptions()
"""No assumption at all."""

Assumed: TypeAlias = str | Assumptions | Iterable[str | Assumptions] | None
"""What `assume` takes: text as on the command line, assumptions, or several of these, which combine."""


def assumptions_from(given: Assumed) -> Assumptions:
    """Returns the assumptions that `none`, `deterministic`, `min-probability=P` or several of these stand for."""
    if given is None:
        return NOTHING
    if isinstance(given, str | Assumptions):
        given = (given,)
    if not isinstance(given, Iterable):
        raise refusal("assume", given, "text, axplore.Assumptions, or several of these")
    chosen: dict[str, Any] = {}
    for part in given:
        for name, value in _declared(part).items():
            if name in chosen:
                raise InvalidSettingError(f"assume names {name.replace('_', '-')} twice; declare it once")
            chosen[name] = value
    return replace(NOTHING, **chosen)


def _declared(part: str | Assumptions) -> dict[str, Any]:
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
    raise refusal("assume", part, "none, deterministic or min-probability=P")
