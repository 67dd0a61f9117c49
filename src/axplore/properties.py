"""Properties in the usual notation of probabilistic model checkers, such as `Pmax=? [ !"error" U<=20 "thanks" ]`.

    property   Pmax=? [ path ]   Pmin=? [ path ]   P>=0.9 [ path ]   Rmin=? [ path ]
    path       F states   states U states   G states   each with an optional number of steps: F<=20 states
    states     "name"   x=3   kind="pay"   true   false   !states   states & states   states | states   (states)

Costs are asked for with R, without a number of steps: the least expected cost of a policy that surely reaches the goal.

A bound without `max` or `min` is about every policy: `P>=0.9` asks whether the least probability is at least 0.9, and
`P<=0.1` whether the greatest is at most 0.1. A name in quotation marks is the label of a state or a set that is given
with the property. A comparison reads a field of the state: of an object, or of text such as `x=3, ok=true`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from axplore.errors import InvalidInputError
from axplore.labels import meanings, readable, text_of
from axplore.types import BoolArray, State

GRAMMAR: Final = r"""
    property: probability "[" path "]" | cost "[" path "]"
    probability: _PROBABILITY EXTREME? _asked
    cost: _COST ("{" STRING "}")? EXTREME? _asked
    _asked: _QUERY | COMPARISON (NUMBER | INT)
    path: _EVENTUALLY steps? states         -> eventually
        | _ALWAYS steps? states             -> always
        | states _UNTIL steps? states       -> until
    steps: "<=" INT
    ?states: conjunction ("|" conjunction)* -> either
    ?conjunction: single ("&" single)*      -> both
    ?single: "!" single                     -> negation
        | "(" states ")"
        | STRING                            -> name
        | _TRUE                             -> anything
        | _FALSE                            -> nothing
        | NAME COMPARISON STRING            -> comparison
        | NAME COMPARISON VALUE             -> comparison
        | NAME COMPARISON NUMBER            -> comparison
        | NAME COMPARISON INT               -> comparison
    _PROBABILITY.3: /P(?=(max|min)?\s*[=<>])/
    _COST.3: /R(?=(max|min)?\s*[=<>{])/
    EXTREME.3: /(max|min)(?=\s*[=<>])/
    _QUERY.4: "=?"
    _EVENTUALLY.2: /F(?![\w])/
    _ALWAYS.2: /G(?![\w])/
    _UNTIL.2: /U(?![\w])/
    _TRUE.2: /true(?![\w])/
    _FALSE.2: /false(?![\w])/
    COMPARISON: ">=" | "<=" | "!=" | ">" | "<" | "="
    VALUE.1: /true(?!\w)|false(?!\w)/
    STRING: /"[^"]*"/
    NUMBER.1: /-?\d+\.\d+([eE][-+]?\d+)?|-?\d+[eE][-+]?\d+|-\d+/
    INT: /\d+/
    NAME: /[A-Za-z_]\w*/
    %ignore /\s+/
"""

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip

StateSet: TypeAlias = Callable[[State], bool] | Collection[State]
"""States as a set, or as a function of the label."""

Predicate: TypeAlias = Callable[[State, Mapping[str, StateSet]], bool]

MOST_TEXT: Final = 4000
"""The longest property that is read, in characters."""

MOST_DEPTH: Final = 100
"""The deepest nesting that is read: formulas are evaluated by recursion."""

MOST_STEPS: Final = 100_000
"""The largest number of steps of a property: a verifier computes a sweep for each."""


@dataclass(frozen=True)
class Property:
    """A property of a system.

    Attributes:
        text: as it was written.
        reach, avoid: functions of a state and of the named sets.
        within: the number of steps, or None.
        maximise: whether the best policy is asked about; else the worst.
        negated: whether the property is that the path formula does *not* happen, as for G.
        comparison: one of >=, >, <=, <, or None if the value is asked for.
        bound: what to compare with.
        of_cost: whether the expected cost is asked about, and not a probability.
        names: what stands in it in quotation marks for states, each once.
        compares: whether it compares a field of states.
    """

    text: str
    reach: Predicate
    avoid: Predicate
    within: int | None
    maximise: bool
    negated: bool
    comparison: str | None
    bound: float
    of_cost: bool
    names: tuple[str, ...]
    compares: bool

    def holds(self, lower: float, upper: float) -> bool | None:
        """Returns whether the bound of the property is met, given bounds of its value; None if they leave it open."""
        if self.comparison is None:
            return None
        met = COMPARISONS[self.comparison]
        at_ends = {met(lower, self.bound), met(upper, self.bound)}
        return at_ends.pop() if len(at_ends) == 1 else None

    def masks(self, labels: Iterable[State], names: Mapping[str, StateSet]) -> tuple[BoolArray, BoolArray]:
        """Returns which states are to be reached, and which of the others are to be avoided, [n] each."""
        every = list(labels)
        reach = np.array([self.reach(label, names) for label in every], dtype=np.bool_)
        avoid = np.array([self.avoid(label, names) for label in every], dtype=np.bool_)
        return reach, avoid & ~reach

    def unknown(self, labels: Iterable[State], given: Collection[str]) -> list[str]:
        """Returns the names in it that are neither given nor the label of one of some states."""
        missing = [name for name in self.names if name not in given]
        for label in labels if missing else ():
            missing = [name for name in missing if not _is_named(label, name, {})]
        return missing

    def of_path(self, lower: float, upper: float) -> tuple[float, float]:
        """Returns bounds of the property from bounds of its path formula, of which it may be the complement."""
        return (_complement(upper, 0.0), _complement(lower, 1.0)) if self.negated else (lower, upper)


def _complement(probability: float, towards: float) -> float:
    """Returns 1 - p, rounded towards a side."""
    rest = 1.0 - probability
    exact = Fraction(rest) + Fraction(probability)
    is_safe = exact <= 1 if towards == 0.0 else exact >= 1
    return rest if is_safe else math.nextafter(rest, towards)


def parse_property(text: str) -> Property:
    """Returns the property that a text stands for.

    Raises:
        InvalidInputError: the text is no property; the message shows where.
    """
    from lark.exceptions import UnexpectedInput

    if len(text) > MOST_TEXT:
        raise InvalidInputError(f"the property has {len(text):,} characters; at most {MOST_TEXT:,} are read")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        is_over = getattr(getattr(error, "token", None), "type", None) == "$END"
        place = len(text) if is_over or error.pos_in_stream is None else error.pos_in_stream
        raise _refused(text, place, "it ends too early" if is_over else "this cannot stand here") from None
    if _depth(tree) > MOST_DEPTH:
        raise InvalidInputError(f"the property is nested more than {MOST_DEPTH} times")
    return _property_of(text, tree)


def _depth(tree: Any) -> int:
    """Returns how deeply a tree is nested, however deep that is."""
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for inner in level for child in getattr(inner, "children", ())]
    return depth


def _property_of(text: str, tree: Any) -> Property:
    from lark import Tree

    head, path = tree.children
    of_cost = head.data == "cost"
    kind, comparison, bound = _asked(text, head.children, of_cost=of_cost)
    within = None
    parts = list(path.children)
    if isinstance(parts[-2] if len(parts) > 1 else None, Tree) and parts[-2].data == "steps":
        steps = parts.pop(-2).children[0]
        within = int(steps)
        if within > MOST_STEPS:
            raise _refused(text, steps.start_pos, f"at most {MOST_STEPS:,} steps are answered")
    reach, avoid, negated = _sets(path.data, parts)
    # Without a choice between best and worst, a bound has to hold whatever is played.
    wants_most = comparison in ("<=", "<") if not kind else kind == "max"
    if of_cost and wants_most:
        raise _refused(text, 0, "the greatest expected cost is not answered; ask for Rmin")
    if of_cost and (negated or within is not None):
        raise _refused(text, text.index("["), "a cost is that of reaching states: F states, or states U states")
    maximise = wants_most != negated
    names = dict.fromkeys(str(name.children[0])[1:-1] for name in path.find_data("name"))
    compares = any(True for _ in path.find_data("comparison"))
    return Property(text, reach, avoid, within, maximise, negated, comparison, bound, of_cost, tuple(names), compares)


def _asked(text: str, tokens: list[Any], *, of_cost: bool) -> tuple[str, str | None, float]:
    """Returns max, min or nothing, the comparison and the number of the head of a property."""
    by_type = {token.type: token for token in tokens}
    if "STRING" in by_type:
        raise _refused(text, by_type["STRING"].start_pos, "costs have no name: they are given to `atlas.cost`")
    kind = str(by_type.get("EXTREME", ""))
    number = by_type.get("NUMBER") or by_type.get("INT")
    if number is None:
        if not kind:
            raise _refused(text, 1, "say whether the best or the worst policy is meant: Pmax=? or Pmin=?")
        return kind, None, 0.0
    comparison = by_type["COMPARISON"]
    if comparison in ("=", "!="):
        raise _refused(text, comparison.start_pos, "a bound is one of >=, >, <= and <")
    if not of_cost and not 0 <= float(number) <= 1:
        raise _refused(text, number.start_pos, "a probability is between 0 and 1")
    return kind, str(comparison), float(number)


def _sets(path: str, parts: list[Any]) -> tuple[Predicate, Predicate, bool]:
    """Returns what to reach, what to avoid, and whether the property is that this does not happen."""
    if path == "eventually":
        return _predicate(parts[0]), _never, False
    if path == "always":
        inside = _predicate(parts[0])
        return lambda state, names: not inside(state, names), _never, True
    through, goal = map(_predicate, parts)
    return goal, lambda state, names: not through(state, names), False


def _never(_: State, __: Mapping[str, StateSet]) -> bool:
    return False


def _predicate(tree: Any) -> Predicate:
    """Returns the function that a state formula stands for."""
    match tree.data:
        case "anything":
            return lambda _, __: True
        case "nothing":
            return _never
        case "name":
            name = str(tree.children[0])[1:-1]
            return lambda state, names: _is_named(state, name, names)
        case "comparison":
            field, compared, value = map(str, tree.children)
            wanted = value[1:-1] if value.startswith('"') else json.loads(value)
            return lambda state, _: _compares(state, field, COMPARISONS[compared], wanted)
        case "negation":
            inner = _predicate(tree.children[0])
            return lambda state, names: not inner(state, names)
    parts = [_predicate(child) for child in tree.children]
    combined = any if tree.data == "either" else all
    return lambda state, names: combined(part(state, names) for part in parts)


def _is_named(state: State, name: str, names: Mapping[str, StateSet]) -> bool:
    given = names.get(name)
    if given is None:
        return name in (state, text_of(state), readable(state)) or state in _meanings(name)
    return bool(given(state)) if callable(given) else state in given


def _compares(state: State, field: str, met: Callable[[Any, Any], bool], wanted: Any) -> bool:
    fields = fields_of(state)
    if field not in fields:
        raise InvalidInputError(f"state {text_of(state)} has no field {field!r}; it has {', '.join(fields) or 'none'}")
    try:
        return met(fields[field], wanted)
    except TypeError:
        raise InvalidInputError(
            f"{field} is {fields[field]!r} in state {text_of(state)}, which cannot be compared with {wanted!r}"
        ) from None


def fields_of(state: State) -> dict[str, Any]:
    """Returns the fields of a state: of an object, kept as pairs, or of text such as `x=3, ok=true`."""
    if isinstance(state, tuple):
        pairs = [item for item in state if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)]
        return dict(pairs) if len(pairs) == len(state) else {}
    if isinstance(state, str):
        parts = [part.partition("=") for part in state.split(", ")]
        if all(sign for _, sign, _ in parts):
            return {name.strip(): _value(value) for name, _, value in parts}
    return {}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _refused(text: str, place: int, why: str) -> InvalidInputError:
    """Returns an error that points at a place of the text."""
    return InvalidInputError(
        f'{why}:\n    {text}\n    {" " * place}^\nA property is written like Pmax=? [ !"error" U<=20 "thanks" ]'
    )


@lru_cache(maxsize=256)
def _meanings(name: str) -> tuple[State, ...]:
    return meanings(name)


@cache
def _parser() -> Any:
    from lark import Lark

    return Lark(GRAMMAR, start="property", parser="lalr", maybe_placeholders=False, propagate_positions=True)
