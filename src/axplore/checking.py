"""`check`: from a world and a question to an answer with a certificate, in one call."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from axplore.arguments import label, optional, real, refusal, settings, text, whole
from axplore.atlas import Atlas
from axplore.atlas.questions import Checked
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.explorers.directed import MOST_PRECISE, Directed, Functions
from axplore.exploring import DEFAULT_DELTA, explored
from axplore.labels import encode_label
from axplore.properties import MOST_STEPS, StateSet, parse_property
from axplore.request import UNASKED, Request, WorldLike
from axplore.target import NO_RADIUS, Target

DEFAULT_PRECISION: Final = 0.01


@dataclass(frozen=True, eq=False)
class Found(Checked):
    """The answer to a question, with the atlas of what was sampled for it.

    Attributes:
        atlas: the counts and their certificate, with a verdict.
    """

    atlas: Atlas


def check(
    world: WorldLike,
    question: str | None = None,
    *,
    reach: Any = None,
    avoid: Any = None,
    within: int | None = None,
    best: str = "max",
    precision: float = DEFAULT_PRECISION,
    delta: float = DEFAULT_DELTA,
    names: Mapping[str, StateSet] | None = None,
    **options: Any,
) -> Found:
    """Bounds the probability of a property by sampling what decides it, and stops when it is answered.

    Args:
        world: what `explore` takes.
        question: a property such as `Pmax=? [ !"error" U<=20 "thanks" ]` or `P>=0.9 [ F "thanks" ]`.
        reach, avoid, within, best: the same without a text: sets or functions of labels, or labels of single states, a
            number of steps, and "max" or "min".
        precision: the width of the bounds at which to stop; a bound such as >=0.9 may be decided before.
        delta: the probability that the answer may be wrong.
        names: what names in the question stand for: sets of states, or functions of a label. A run keeps sets only.
        options: settings of `explore`, such as `assume`, `seed`, `max_steps`, `workers`, `run` and `progress`.

    Returns:
        Bounds, a verdict in words, a policy, and the atlas with its certificate.
    """
    asked, named = _asked(question, reach, avoid, within, best)
    request = request_for(world, asked, precision, delta, {**(names or {}), **named}, options)
    return found_in(explored(request), asked)


def request_for(
    world: WorldLike,
    question: str,
    precision: float = DEFAULT_PRECISION,
    delta: float = DEFAULT_DELTA,
    names: Mapping[str, StateSet] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Request:
    """Returns what is asked of an exploration that answers a question; the arguments are those of `check`."""
    options, names = options or {}, names or {}
    known = [declared.name for declared in fields(Request) if declared.name not in (*UNASKED, "world")]
    for option in options:
        if option not in known:
            raise InvalidSettingError(f"check() has no setting {option!r}; it has {', '.join(known)}")
    prop = parse_property(text("question", question))
    if prop.of_cost:
        raise InvalidInputError("expected costs are planned with RESET as an action: `axplore plan`, `atlas.plan`")
    functions = {name: given for name, given in settings("names", names).items() if callable(given)}
    if functions and options.get("run") is not None:
        raise InvalidSettingError(
            f"{min(functions)!r} is a function, which no run can keep; give a set of states, compare fields of a state "
            "in the question, or leave `run` out"
        )
    if options.get("memory") is not None and (functions or prop.compares):
        raise InvalidSettingError(
            "memory makes labels of outputs and what came before them, which functions and fields of a state do not "
            "know: name outputs in quotation marks, or give sets of them"
        )
    precision = real(least=MOST_PRECISE, most=1)("precision", precision)
    explorer = Directed(
        target=Target(radius=NO_RADIUS, epsilon=precision, delta=delta),
        question=question,
        named=json.dumps({name: _labels(name, given) for name, given in names.items() if name not in functions}),
        functions=Functions(functions) if functions else None,
    )
    request = Request(world, explorer=explorer, **options)
    return request if not request.has_workers else Request(world, explorer=explorer.for_workers(), **options)


def found_in(atlas: Atlas, question: str) -> Found:
    """Returns the answer that an atlas has to the question that was asked."""
    answer = atlas.check_property(question)
    return Found(**{field.name: getattr(answer, field.name) for field in fields(answer)}, atlas=atlas)


def _labels(name: str, given: Any) -> list[Any]:
    """Returns the labels of a set, as JSON."""
    if not isinstance(given, Collection) or isinstance(given, str):
        raise refusal(f"names[{name!r}]", given, "a set of states, or a function of a label")
    return [encode_label(label) for label in given]


def _asked(
    question: str | None, reach: Any, avoid: Any, within: int | None, best: str
) -> tuple[str, dict[str, StateSet]]:
    """Returns the text of a question, and what its names stand for."""
    if (question is None) == (reach is None):
        raise InvalidSettingError("give either a question, such as 'Pmax=? [ F \"goal\" ]', or what to reach")
    if question is not None:
        if avoid is not None or within is not None:
            raise InvalidSettingError("avoid and within go with reach; a question says both itself")
        return question, {}
    if best not in ("max", "min"):
        raise refusal("best", best, "'max' or 'min'")
    within = optional(whole(most=MOST_STEPS))("within", within)
    steps = "" if within is None else f"<={within}"
    names = {"goal": _set("reach", reach)} | ({} if avoid is None else {"bad": _set("avoid", avoid)})
    path = f'F{steps} "goal"' if avoid is None else f'!"bad" U{steps} "goal"'
    return f"P{best}=? [ {path} ]", names


def _set(name: str, given: Any) -> StateSet:
    """Returns a set of states, which may be given as one label; a tuple is a label."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    states = given if isinstance(given, set | frozenset | list) else [given]
    return frozenset(label(name, state) for state in states)
