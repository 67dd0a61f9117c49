"""Claims of properties from a model: the bounds of docs/algorithms/questions.md as a certificate holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from axplore.proofs.bounds import IntervalModel
from axplore.proofs.chances import Asked, Chance, Question
from axplore.proofs.costs import CostBounds
from axplore.properties import Property, StateSet
from axplore.records.properties import NO_CHOICE, NamedStates, PropertyClaim
from axplore.types import FloatArray, IntArray, State


def asked_of(
    model: IntervalModel, labels: Sequence[State], prop: Property, names: Mapping[str, StateSet] | None = None
) -> Asked:
    """Returns what a property of a probability asks of a model.

    Args:
        model: of all states that were counted.
        labels: the label of each position of the model, [n + others].
        prop: the property.
        names: what names in it stand for; other names are labels of states.
    """
    reach, avoid = prop.masks(labels, names or {})
    return Asked(model, Question(reach, avoid, prop.within, prop.maximise))


def chance_claim(
    asked: Asked, lower: Chance, upper: Chance, prop: Property, names: Iterable[NamedStates]
) -> PropertyClaim:
    """Returns the claim of bounds of a probability, by the index of a certificate that lists states as the model does.

    Args:
        asked: what was asked of the model.
        lower, upper: its bounds.
        prop: the property.
        names: the states that names in it stand for.
    """
    is_stepwise = prop.within is not None
    return PropertyClaim(
        text=prop.text,
        names=tuple(sorted(names, key=lambda named: named.name)),
        costs=np.zeros(0),
        lower=_known(asked, lower.values),
        upper=_known(asked, upper.values),
        policy=_no_choices() if is_stepwise else choices_in(asked.model, (lower if prop.maximise else upper).policy),
        ranks=_no_choices() if is_stepwise else lower.ranks,
    )


def cost_claim(
    model: IntervalModel, costs: FloatArray, bounds: CostBounds, prop: Property, names: Iterable[NamedStates]
) -> PropertyClaim:
    """Returns the claim of bounds of the least cost; the arguments are those of `chance_claim`.

    Args:
        model: of all states that were counted.
        costs: of each pair, [P].
        bounds: what was found.
        prop: the property.
        names: the states that names in it stand for.
    """
    return PropertyClaim(
        text=prop.text,
        names=tuple(sorted(names, key=lambda named: named.name)),
        costs=costs,
        lower=bounds.lower[: model.n_known],
        upper=bounds.upper[: model.n_known],
        policy=choices_in(model, bounds.policy) if len(bounds.policy) else _no_choices(),
        ranks=_no_choices(),
    )


def named_states(names: Mapping[str, StateSet], labels: Sequence[State], text: str) -> list[NamedStates]:
    """Returns the names that a text uses with the indices of their states among these labels."""
    return [
        NamedStates(name, np.array([i for i, label in enumerate(labels) if is_in(label, states)], dtype=np.int64))
        for name, states in names.items()
        if f'"{name}"' in text
    ]


def is_in(label: State, states: StateSet) -> bool:
    """Returns whether a state is in a set, or satisfies a function."""
    return bool(states(label)) if callable(states) else label in states


def choices_in(model: IntervalModel, policy: IntArray) -> IntArray:
    """Returns a policy of pairs as choices among the actions of each state, or NO_CHOICE, [n] or [steps, n]."""
    choices: IntArray = np.where(policy < 0, NO_CHOICE, policy - model.rows.state_pairs[:-1])
    return choices


def _known(asked: Asked, values: FloatArray) -> FloatArray:
    """The bounds of the known states, as a claim has them, [n]: those of which nothing is asked have 0 or 1."""
    n_known = asked.model.n_known
    return np.where(asked.is_asked, values, asked.question.reach)[:n_known].astype(np.float64)


def _no_choices() -> IntArray:
    return np.zeros(0, dtype=np.int64)
