"""Questions beyond expected steps: the probability of a goal before something bad, and whether states can be left.

Everything is answered from the counts of an atlas. All states that were counted take part, whatever their distance, so
no level is spent again (docs/algorithms/questions.md, section 6). RESET has no part in a property.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from msgspec import structs

from axplore import arguments
from axplore.arguments import label, real_array, refusal
from axplore.atlas.learned_model import model_with
from axplore.atlas.state_report import REFUTED
from axplore.certificate.promise import PropertyBounds
from axplore.errors import InvalidCostsError, InvalidInputError, UnknownStateError
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.labels import finite, readable
from axplore.proofs.bounds import IntervalModel
from axplore.proofs.chances import Asked, Question
from axplore.proofs.costs import CostQuestion
from axplore.proofs.property_claims import asked_of, chance_claim, choices_in, cost_claim, named_states
from axplore.properties import Property, StateSet, parse_property
from axplore.records.properties import NO_CHOICE, NamedStates, PropertyClaim
from axplore.target import confidence_text
from axplore.types import Action, FloatArray, IntArray, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

PairCosts: TypeAlias = Callable[[Any, Any], float] | Mapping[tuple[Any, Any], float] | None
"""Costs of pairs: a function, or a table in which missing pairs cost 1."""

MOST_PRICE: Final = 1e6
"""The greatest cost of a pair."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """What to play to reach a goal before something bad: `strategy(state, step)` is an action, or None.

    None means that nothing is known to help, or that everything is decided.

    Attributes:
        states: the index of each state.
        actions: the actions of each of them.
        choices: the choice in each, [n], or by the number of steps done and state, [steps, n]; NO_CHOICE for none.
    """

    states: Mapping[State, int]
    actions: tuple[tuple[Action, ...], ...]
    choices: IntArray

    def __call__(self, state: State, step: int = 0) -> Action | None:
        index = self.states.get(state)
        if index is None or (self.choices.ndim == 2 and step >= len(self.choices)):
            return None
        choice = int(self.choices[step, index] if self.choices.ndim == 2 else self.choices[index])
        return None if choice == NO_CHOICE else self.actions[index][choice]


@dataclass(frozen=True, eq=False)
class Checked:
    """Bounds of the probability that a property holds, or of its expected cost, from the initial state.

    Attributes:
        text: the property.
        lower, upper: the bounds; 0 and 1, or 0 and infinity for a cost, if nothing is proven.
        policy: for the best policy, what attains the lower bound; for the worst and for costs, what stays below the
            upper one.
        holds: whether a bound that was asked about is met; None if it is open, or if none was asked about.
        proven: whether the bounds are proven.
        sentence: the answer in words.
        claim: what proves the bounds, for the certificate; see `Atlas.keep`.
    """

    text: str
    lower: float
    upper: float
    policy: Strategy
    holds: bool | None
    proven: bool
    sentence: str
    claim: PropertyClaim

    def __contains__(self, probability: float) -> bool:
        return self.lower <= probability <= self.upper

    def __str__(self) -> str:
        return self.sentence

    def as_json(self) -> dict[str, Any]:
        """Returns the answer as JSON values."""
        return {
            "lower": finite(self.lower), "upper": finite(self.upper), "holds": self.holds, "proven": self.proven,
            "sentence": self.sentence,
        }  # fmt: skip


def check(
    atlas: Atlas,
    reach: StateSet | State,
    avoid: StateSet | State | None = None,
    within: int | None = None,
    best: str = "max",
) -> Checked:
    """Returns bounds of the probability of reaching a set of states before another; see `Atlas.check`."""
    if best not in ("max", "min"):
        raise refusal("best", best, "'max' or 'min'")
    path, names = path_of(atlas, reach, avoid, "" if within is None else f"<={within}")
    return check_property(atlas, f"P{best}=? [ {path} ]", names)


def path_of(
    atlas: Atlas, reach: StateSet | State, avoid: StateSet | State | None, steps: str = ""
) -> tuple[str, dict[str, StateSet]]:
    """Returns the text of a path formula, and the states that its names stand for."""
    goal = _states("reach", reach, atlas)
    names = {_name_for(goal, "goal"): goal}
    (goal_name,) = names
    if avoid is None:
        return f'F{steps} "{goal_name}"', names
    bad = _states("avoid", avoid, atlas)
    bad_name = _name_for(bad, "bad")
    if bad_name == goal_name and bad != goal:
        bad_name = f"{bad_name}, to avoid"
    return f'!"{bad_name}" U{steps} "{goal_name}"', {**names, bad_name: bad}


def _name_for(states: StateSet, otherwise: str) -> str:
    """Returns what to call a set in a property: a single state by its label, if that is text."""
    if callable(states) or len(states) != 1:
        return otherwise
    (only,) = states
    return only if isinstance(only, str) and '"' not in only and only else otherwise


def _states(name: str, given: Any, atlas: Atlas) -> StateSet:
    """Returns a set of states, which may be given as a single label, or a function."""
    if callable(given):
        function: Callable[[State], bool] = given
        return function
    is_set = isinstance(given, Set | list) or (isinstance(given, tuple) and not _is_label(given, atlas))
    states = frozenset(label(name, state) for state in (given if is_set else (given,)))
    for state in states:
        if state not in atlas.seen:
            raise UnknownStateError(
                f"{name} names {state!r}, which was never seen; a function of a state may speak of such states too"
            )
    return states


def _is_label(given: Any, atlas: Atlas) -> bool:
    try:
        return given in atlas.seen
    except TypeError:  # a list or a set
        return False


def check_property(atlas: Atlas, text: str | Property, names: Mapping[str, StateSet] | None = None) -> Checked:
    """Returns whether a property holds, or bounds of its probability; see `Atlas.check_property`."""
    prop = text if isinstance(text, Property) else parse_property(arguments.text("text", text))
    given = {} if names is None else arguments.settings("names", names)
    if atlas.memory is not None and prop.compares:
        raise InvalidInputError(
            "labels are outputs together with what came before them here, and have no fields: name outputs or states "
            "in quotation marks"
        )
    named = {
        **_situations(atlas),
        **_names_kept(atlas),
        **{name: _named(name, states) for name, states in given.items()},
    }
    if prop.of_cost:
        return _costed(atlas, prop, named, None)
    model = counted_model(atlas)
    labels = [atlas.seen[number] for number in model.numbers.tolist()]
    asked = asked_of(model, labels, prop, named)
    low, high = asked.lower(), asked.upper()
    claim = _with_tests(atlas, chance_claim(asked, low, high, prop, _names_needed(atlas, prop, named)))
    return _answer(
        atlas,
        model,
        _bounds_of(atlas, claim, PropertyBounds(prop, 0.0, 1.0)),
        (low if prop.maximise else high).policy,
        claim,
    )


def _named(name: str, given: Any) -> StateSet:
    """Returns what a name stands for; refuses anything but a set of states or a function."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    if not isinstance(given, Collection) or isinstance(given, str):
        raise refusal(f"names[{name!r}]", given, "a set of states, or a function of a label")
    return frozenset(label(f"names[{name!r}]", state) for state in given)


def _with_tests(atlas: Atlas, claim: PropertyClaim) -> PropertyClaim:
    """Returns a claim with the episodes and joint draws that the certificate of the atlas has of the same property."""
    kept = () if atlas.certificate is None else atlas.certificate.of(PropertyClaim)
    for other in kept:
        if _asks_the_same(other, claim) and len(other.lower) == len(claim.lower):
            tests = {name: getattr(other, name) for name in ("witness", "joint", "joint_lower", "joint_upper")}
            return structs.replace(claim, **tests)
    return claim


def cost(
    atlas: Atlas, reach: StateSet | State, avoid: StateSet | State | None = None, costs: PairCosts = None
) -> Checked:
    """Returns bounds of the least expected cost of surely reaching a set of states; see `Atlas.cost`."""
    path, names = path_of(atlas, reach, avoid)
    return _costed(atlas, parse_property(f"Rmin=? [ {path} ]"), names, costs)


def _costed(atlas: Atlas, prop: Property, names: Mapping[str, StateSet], costs: PairCosts) -> Checked:
    model = counted_model(atlas)
    labels = [atlas.seen[number] for number in model.numbers.tolist()]
    reach, avoid = prop.masks(labels, names)
    priced = _pair_costs(atlas, costs)
    chance = Asked(model, Question(reach, avoid))
    sure = chance.upper()
    if atlas.can_be_relied_on and sure.value < 1.0:  # then no policy surely arrives, and none has a finite cost
        surely = parse_property(f"Pmax<1 {prop.text[prop.text.index('[') :]}")
        claim = chance_claim(chance, chance.lower(), sure, surely, _names_needed(atlas, surely, names))
        infinite = PropertyBounds(prop, math.inf, math.inf, claim, atlas.source.counts.order)
        return _answer(atlas, model, infinite, sure.policy, claim)
    found = CostQuestion(model, reach, avoid, priced).bounds()
    claim = cost_claim(model, priced, found, prop, _names_needed(atlas, prop, names))
    return _answer(atlas, model, _bounds_of(atlas, claim, PropertyBounds(prop, 0.0, math.inf)), found.policy, claim)


def _bounds_of(atlas: Atlas, claim: PropertyClaim, nothing: PropertyBounds) -> PropertyBounds:
    """Returns the bounds that a claim proves, if the counts prove anything."""
    return PropertyBounds.of(claim, atlas.source.counts.order) if atlas.can_be_relied_on else nothing


def _pair_costs(atlas: Atlas, costs: PairCosts) -> FloatArray:
    """Returns the cost of each pair that was counted, [P]."""
    counts = atlas.counts
    pairs = [
        (counts.order[state], action)
        for state, actions in zip(counts.states.tolist(), counts.actions, strict=True)
        for action in actions
    ]
    if costs is None:
        return np.ones(len(pairs))
    table = costs if isinstance(costs, Mapping) else None
    unknown = [key for key in table or () if key not in set(pairs)]
    if unknown:
        raise InvalidCostsError(f"the costs name {unknown[0]!r}, which is no state with one of its actions")
    priced = real_array("costs", [1.0 if table and pair not in table else _cost_of(costs, pair) for pair in pairs])
    for pair, price in zip(pairs, priced.tolist(), strict=True):
        if not 0.0 <= price <= MOST_PRICE:
            raise InvalidCostsError(
                f"{readable(pair[1])} in {readable(pair[0])} costs {price!r}; it must be from 0 to {MOST_PRICE:g}"
            )
    return priced.astype(np.float64)


def _cost_of(costs: Any, pair: tuple[State, Action]) -> Any:
    return costs[pair] if isinstance(costs, Mapping) else costs(*pair)


def _answer(
    atlas: Atlas, model: IntervalModel, bounds: PropertyBounds, policy: IntArray, claim: PropertyClaim
) -> Checked:
    proven, sentence = atlas.can_be_relied_on, _sentence(atlas, bounds)
    if bounds.meaning:
        sentence = f"{sentence} Here, {bounds.meaning}."
    strategy = _strategy(atlas, model, policy if len(policy) else np.full(model.n_known, NO_CHOICE))
    return Checked(bounds.text, bounds.lower, bounds.upper, strategy, bounds.holds, proven, sentence, claim)


def _names_kept(atlas: Atlas) -> dict[str, StateSet]:
    """Returns what names stand for in the claims of an atlas."""
    if atlas.certificate is None:
        return {}
    order = atlas.certificate.counts.order
    return {
        named.name: frozenset(order[index] for index in named.states.tolist())
        for claim in atlas.certificate.of(PropertyClaim)
        for named in claim.names
    }


def _situations(atlas: Atlas) -> Mapping[str, StateSet]:
    """Returns what outputs that stand for several situations are called."""
    return {} if atlas.memory is None else atlas.memory.names


def _names_needed(atlas: Atlas, prop: Property, names: Mapping[str, StateSet]) -> list[NamedStates]:
    """Returns what names in a property stand for; nothing where they are labels of the states that they stand for."""
    order = atlas.source.counts.order
    if not (prop.unknown(order, ()) or any(name in _situations(atlas) for name in prop.names)):
        with suppress(InvalidInputError):
            if np.array_equal(prop.masks(order, names), prop.masks(order, {})):
                return []
    return named_states(names, order, prop.text)


def answered_again(old: Atlas, new: Atlas) -> Atlas:
    """Returns a newer atlas of a run with answers to the properties that an older one answers.

    Only labels and their fields can be asked about again: of a set that was given by a name it is not known which of
    the states that were met since belong to it.
    """
    if old.certificate is None or new.certificate is None or not new.can_be_relied_on:
        return new
    for claim in old.certificate.of(PropertyClaim):
        is_answered = any(bounds.prop.text == claim.text for bounds in new.properties)
        is_priced = len(claim.costs) and (claim.costs != 1.0).any()  # of pairs since, the costs are not known
        if not claim.names and not is_answered and not is_priced:
            new = with_claim(new, check_property(new, claim.text).claim)
    return new


def with_claim(atlas: Atlas, claim: PropertyClaim) -> Atlas:
    """Returns an atlas whose certificate holds the claim of a property, in place of an earlier one of the same."""
    certificate = atlas.certificate
    if certificate is None:
        raise InvalidInputError("a part of an atlas has no certificate; ask the atlas that it was taken from")
    if not atlas.can_be_relied_on:
        raise InvalidInputError(f"nothing can be kept: {REFUTED}")
    # In its place: of properties, the first is what a run was for (see `Conclusions.open_parts`).
    claims = [claim if _asks_the_same(other, claim) else other for other in certificate.claims]
    kept = claims if claim in claims else [*claims, claim]
    return replace(atlas, source=structs.replace(certificate, claims=tuple(kept)))


def _asks_the_same(other: Any, claim: PropertyClaim) -> bool:
    if not isinstance(other, PropertyClaim) or other.text != claim.text:
        return False
    return [(named.name, named.states.tolist()) for named in other.names] == [
        (named.name, named.states.tolist()) for named in claim.names
    ]


def counted_model(atlas: Atlas) -> IntervalModel:
    """Returns the model of all states that were counted, in the order in which they were."""
    if not atlas.proven:
        raise InvalidInputError(
            f"nothing is proven of this atlas: {atlas.explorer} gives no bounds; explore with {DEFAULT_EXPLORER!r}"
        )
    return model_with(atlas, atlas.counts.states.tolist())


def _strategy(atlas: Atlas, model: IntervalModel, policy: IntArray) -> Strategy:
    known = {atlas.seen[number]: index for index, number in enumerate(model.numbers[: model.n_known].tolist())}
    actions = tuple(tuple(actions) for actions in atlas.counts.actions)
    return Strategy(known, actions, choices_in(model, policy))


def _sentence(atlas: Atlas, bounds: PropertyBounds) -> str:
    """Returns the answer in words."""
    if not atlas.can_be_relied_on:
        return f"Nothing can be said: {REFUTED}"
    assumptions = f"If {' and if '.join(atlas.assumptions)}, then with" if atlas.assumptions else ""
    sure = f"{assumptions or 'With'} confidence {confidence_text(atlas.target.delta)}"
    if bounds.holds is not None:
        return f"{'Holds' if bounds.holds else 'Does not hold'}. {sure}, {bounds.clause}."
    if bounds.prop.comparison is not None:
        return f"Open. {sure}, {bounds.clause}; more draws would decide it."
    if bounds.prop.of_cost:
        return f"{bounds.clause[:1].upper()}{bounds.clause[1:]}. {sure}."
    who = "The best policy does so with a probability"
    if bounds.prop.maximise == bounds.prop.negated:
        who = "Every policy does so with at least the least probability, which is"
    return f"{who} {bounds.interval}. {sure}."


class Leaving(Enum):
    """Whether a state can be left."""

    CAN = "can be left"
    CANNOT = "cannot be left"
    OPEN = "open"


@dataclass(frozen=True)
class Exit:
    """Whether one state can be left, and how that is known.

    Attributes:
        state: the state.
        leaving: whether it can be left.
        action, successor: a transition that was seen to leave it; None if none was.
    """

    state: State
    leaving: Leaving
    action: Action | None = None
    successor: State | None = None

    def __str__(self) -> str:
        how = "" if self.action is None else f": {readable(self.action)} led to {readable(self.successor)}"
        return f"{readable(self.state)} {self.leaving.value}{how}"


def can_be_left(atlas: Atlas) -> tuple[Exit, ...]:
    """Returns for every counted state whether some action leads elsewhere; see docs/algorithms/questions.md, 5."""
    model = counted_model(atlas)
    return tuple(map(partial(_exit, atlas, model), range(model.n_known)))


def _exit(atlas: Atlas, model: IntervalModel, index: int) -> Exit:
    rows, state = model.rows, atlas.seen[int(model.numbers[index])]
    pairs = range(int(rows.state_pairs[index]), int(rows.state_pairs[index + 1]))
    for choice, pair in enumerate(pairs):
        for successor in rows.successors[rows.row_offsets[pair] : rows.row_offsets[pair + 1]].tolist():
            if successor != index:
                left_by = atlas.counts.actions[index][choice]
                return Exit(state, Leaving.CAN, left_by, atlas.seen[int(model.numbers[successor])])
    is_closed = atlas.can_be_relied_on and all(
        (rows.closed[pair] or rows.slack[pair] == 0.0) and rows.row_offsets[pair] < rows.row_offsets[pair + 1]
        for pair in pairs
    )
    return Exit(state, Leaving.CANNOT if is_closed else Leaving.OPEN)
