"""Questions beyond expected steps: the probability of a goal before something bad, and whether states can be left.

Everything is answered from the counts of an atlas. All states that were counted take part, whatever their distance, so
no level is spent again (docs/algorithms/questions.md, section 6). RESET has no part in a property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from axplore.arguments import label, refusal
from axplore.atlas.learned_model import model_with
from axplore.atlas.state_report import REFUTED
from axplore.errors import InvalidInputError, UnknownStateError
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.labels import readable
from axplore.proofs.bounds import IntervalModel
from axplore.proofs.chance_kernels import NO_PAIR
from axplore.proofs.chances import Asked, Chance, Question
from axplore.properties import Property, StateSet, parse_property
from axplore.target import confidence_text
from axplore.types import Action, BoolArray, IntArray, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


@dataclass(frozen=True, eq=False)
class Strategy:
    """What to play to reach a goal before something bad: `strategy(state, step)` is an action, or None.

    None means that nothing is known to help, or that everything is decided.

    Attributes:
        states: the index of each state.
        actions: the actions of each of them.
        choices: the choice in each, [n], or by the number of steps done and state, [steps, n]; NO_PAIR for none.
    """

    states: Mapping[State, int]
    actions: tuple[tuple[Action, ...], ...]
    choices: IntArray

    def __call__(self, state: State, step: int = 0) -> Action | None:
        index = self.states.get(state)
        if index is None or (self.choices.ndim == 2 and step >= len(self.choices)):
            return None
        choice = int(self.choices[step, index] if self.choices.ndim == 2 else self.choices[index])
        return None if choice == NO_PAIR else self.actions[index][choice]


@dataclass(frozen=True, eq=False)
class Checked:
    """Bounds of the probability that a property holds, from the initial state.

    Attributes:
        lower, upper: the bounds; 0 and 1 if nothing is proven.
        policy: for the best policy, what attains the lower bound; for the worst, what stays below the upper one.
        holds: whether a bound that was asked about is met; None if it is open, or if none was asked about.
        proven: whether the bounds are proven.
        sentence: the answer in words.
    """

    lower: float
    upper: float
    policy: Strategy
    holds: bool | None
    proven: bool
    sentence: str

    def __contains__(self, probability: float) -> bool:
        return self.lower <= probability <= self.upper

    def __str__(self) -> str:
        return self.sentence

    def as_json(self) -> dict[str, Any]:
        """Returns the answer as JSON values."""
        return {
            "lower": self.lower, "upper": self.upper, "holds": self.holds, "proven": self.proven,
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
    goal, bad = _predicate("reach", reach, atlas), _predicate("avoid", () if avoid is None else avoid, atlas)
    return _checked(atlas, goal, bad, within, best == "max", may_be_unseen=callable(reach), prop=None)


def check_property(atlas: Atlas, text: str | Property, names: Mapping[str, StateSet] | None = None) -> Checked:
    """Returns whether a property holds, or bounds of its probability; see `Atlas.check_property`."""
    asked = parse_property(text) if isinstance(text, str) else text
    named = names or {}
    if asked.of_cost:
        raise InvalidInputError("expected costs are planned with RESET as an action: `axplore plan`, `atlas.plan`")
    return _checked(
        atlas, lambda state: asked.reach(state, named), lambda state: asked.avoid(state, named), asked.within,
        asked.maximise, may_be_unseen=True, prop=asked,
    )  # fmt: skip


def _predicate(name: str, given: Any, atlas: Atlas) -> Callable[[State], bool]:
    """Returns the function that says whether a state is in a set, which may be given as a single label."""
    if callable(given):
        return lambda state: bool(given(state))
    is_set = isinstance(given, Set | list) or (isinstance(given, tuple) and not _is_label(given, atlas))
    states = frozenset(label(name, state) for state in (given if is_set else (given,)))
    for state in states:
        if state not in atlas.seen:
            raise UnknownStateError(
                f"{name} names {state!r}, which was never seen; a function of a state may speak of such states too"
            )
    return states.__contains__


def _is_label(given: Any, atlas: Atlas) -> bool:
    try:
        return given in atlas.seen
    except TypeError:  # a list or a set
        return False


def _checked(
    atlas: Atlas,
    reach: Callable[[State], bool],
    avoid: Callable[[State], bool],
    within: int | None,
    maximise: bool,
    *,
    may_be_unseen: bool,
    prop: Property | None,
) -> Checked:
    model = counted_model(atlas)
    labels = [atlas.seen[number] for number in model.numbers.tolist()]
    question = Question(_mask(reach, labels), _mask(avoid, labels), within, maximise, may_be_unseen)
    asked = Asked(model, question)
    low, high = asked.lower(), asked.upper()
    lower, upper = (max(0.0, low.value), high.value) if atlas.can_be_relied_on else (0.0, 1.0)
    negated = prop is not None and prop.negated
    if negated:
        lower, upper = 1.0 - upper, 1.0 - lower
    holds = None if prop is None else prop.holds(lower, upper)
    strategy = _strategy(atlas, model, labels, low if maximise else high)
    best = maximise != negated
    sentence = _sentence(atlas, prop, lower, upper, holds, best)
    return Checked(lower, upper, strategy, holds, atlas.can_be_relied_on, sentence)


def counted_model(atlas: Atlas) -> IntervalModel:
    """Returns the model of all states that were counted, in the order in which they were."""
    if not atlas.proven:
        raise InvalidInputError(
            f"nothing is proven of this atlas: {atlas.explorer} gives no bounds; explore with {DEFAULT_EXPLORER!r}"
        )
    return model_with(atlas, atlas.counts.states.tolist())


def _mask(chosen: Callable[[State], bool], labels: list[State]) -> BoolArray:
    return np.array([chosen(label) for label in labels], dtype=np.bool_)


def _strategy(atlas: Atlas, model: IntervalModel, labels: list[State], chance: Chance) -> Strategy:
    firsts = model.rows.state_pairs[:-1]
    choices = np.where(chance.policy == NO_PAIR, NO_PAIR, chance.policy - firsts)
    known = {label: index for index, label in enumerate(labels[: model.n_known])}
    actions = tuple(tuple(actions) for actions in atlas.counts.actions)
    return Strategy(known, actions, choices)


def _sentence(atlas: Atlas, prop: Property | None, lower: float, upper: float, holds: bool | None, best: bool) -> str:
    """Returns the answer in words."""
    if not atlas.can_be_relied_on:
        return f"Nothing can be said: {REFUTED}"
    assumptions = f"If {' and if '.join(atlas.assumptions)}, then with" if atlas.assumptions else ""
    sure = f"{assumptions or 'With'} confidence {confidence_text(atlas.target.delta)}"
    whose = "The best policy" if best else "Every policy"
    if holds is not None:
        return (
            f"{'Holds' if holds else 'Does not hold'}. {sure}, the probability is between {lower:.6g} and {upper:.6g}."
        )
    if prop is not None and prop.comparison is not None:
        return f"Open. {sure}, the probability is between {lower:.6g} and {upper:.6g}; more draws would decide it."
    what = (
        "does so with a probability between"
        if best
        else "does so with at least the least probability, which is between"
    )
    return f"{whose} {what} {lower:.6g} and {upper:.6g}. {sure}."


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
