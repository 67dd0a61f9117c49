"""What a user declares to know of a system, as a value: read from text, checked, combined, and said in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from axplore.arguments import refusal
from axplore.assumptions.kind import AssumptionKind, Loading
from axplore.assumptions.registry import KINDS, forms
from axplore.errors import InvalidSettingError

NONE: Final = "none"
"""What is written for no assumption at all."""


@dataclass(frozen=True, init=False)
class Assumptions:
    """What is taken for true of a system: `Assumptions(min_probability=0.1)`. Without arguments it assumes nothing.

    docs/assumptions.md describes the kinds of assumptions, which are the arguments:

    - deterministic: True if every action has one outcome; or a function of state and action that says which pairs have.
    - min_probability: no outcome of an action is rarer than this; or a function of state and action that says how rare
      an outcome of the pair may be, 0 where nothing is known.
    - tied: a function of state, action and next state that gives a class and the name of an outcome.
    - leads_to: a function of state, action and the name of an outcome that predicts the next state.

    Attributes:
        declared: the names of kinds, as on the command line, and what is declared of each, in the order of the kinds.
    """

    declared: tuple[tuple[str, Any], ...]

    def __init__(self, **declared: Any) -> None:
        known = {kind.keyword: kind for kind in KINDS}
        for name in declared:
            if name not in known:
                raise InvalidSettingError(
                    f"there is no assumption {name!r}; the kinds of assumptions are {', '.join(known)}"
                )
        values = [(kind.name, kind.checked(declared.get(name))) for name, kind in known.items()]
        object.__setattr__(self, "declared", tuple((name, value) for name, value in values if value is not None))

    def get(self, name: str) -> Any:
        """What is declared of a kind, by its name on the command line; None if nothing is."""
        return dict(self.declared).get(name)

    def kinds(self) -> Iterator[tuple[AssumptionKind, Any]]:
        """Yields the kinds of which something is declared, and what."""
        return ((kind, self.get(kind.name)) for kind in KINDS if self.get(kind.name) is not None)

    def check_whole(self) -> None:
        """Refuses an assumption that says nothing without another."""
        for kind, _ in self.kinds():
            if kind.needs is not None and self.get(kind.needs) is None:
                raise InvalidSettingError(f"{kind.name} says nothing without {kind.needs}; declare {kind.needs} too")

    @property
    def nothing(self) -> bool:
        """Whether nothing is assumed."""
        return not self.declared

    @property
    def all_deterministic(self) -> bool:
        """Whether every action is assumed to have one outcome: nothing else matters then."""
        return self.get("deterministic") is True

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the assumptions that are functions, which no file can hold."""
        return tuple(name for name, value in self.declared if callable(value))

    def __str__(self) -> str:
        words = (kind.words(value, self) for kind, value in self.kinds())
        return ", ".join(filter(None, words)) or NONE


NOTHING: Final = Assumptions()
"""No assumption at all."""

Declared: TypeAlias = str | Assumptions | Iterable[str | Assumptions] | None
"""What `assume` takes: text as on the command line, assumptions, or several of these, which combine."""


def assumptions_from(given: Declared, load: Loading | None = None) -> Assumptions:
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
        for name, value in _declared(part, load):
            if name in chosen:
                raise InvalidSettingError(f"assume names {name} twice; declare it once")
            chosen[name] = value
    assumptions = Assumptions(**{name.replace("-", "_"): value for name, value in chosen.items()})
    assumptions.check_whole()
    return assumptions


def _declared(part: str | Assumptions, load: Loading | None) -> tuple[tuple[str, Any], ...]:
    """The assumptions that one part of `assume` makes, by name."""
    if isinstance(part, Assumptions):
        return part.declared
    if not isinstance(part, str):
        raise refusal("assume", part, "text or axplore.Assumptions")
    name, _, text = part.strip().partition("=")
    if name == NONE and not text:
        return ()
    for kind in KINDS:
        value = kind.read(text, load) if kind.name == name else None
        if value is not None:
            return ((name, value),)
    raise refusal("assume", part, f"{NONE}, or of the form {forms()}")
