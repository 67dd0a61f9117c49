"""The learned model of an atlas as plain rows: what every format is written from.

States of the atlas come first, in order of admission, then the others that were seen. Every state has RESET; a state
outside the atlas has nothing else. An action that was never played is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from axplore.atlas.atlas import Atlas
from axplore.atlas.learned import known_places
from axplore.errors import InvalidInputError
from axplore.export.identifiers import identifiers
from axplore.labels import encode_label
from axplore.mdp import RESET, Action, FloatArray, Reset, State
from axplore.planning.interval import IntervalModel
from axplore.statistics.hull import row_hulls

Hulls: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""The least and the greatest probability of each entry, and the greatest of the mass never seen of each pair."""

UNSEEN = "unseen"
"""The name of the state that stands for whatever was never seen to follow an action."""


@dataclass(frozen=True)
class Move:
    """One transition.

    Attributes:
        target: the position that it leads to.
        count, visits: it was met so often, in so many plays; 1 of 1 for RESET.
        low, high: between which its probability lies in every model of the region.
    """

    target: int
    count: int
    visits: int
    low: float
    high: float

    @property
    def frequency(self) -> float:
        return self.count / self.visits


@dataclass(frozen=True)
class Choice:
    """An action of a state.

    Attributes:
        action: its label, or RESET.
        name: what to call it in a model checker.
        moves: where it leads.
        unseen: the greatest probability of what was never seen to follow it.
    """

    action: Action | Reset
    name: str
    moves: tuple[Move, ...]
    unseen: float = 0.0


@dataclass(frozen=True)
class LearnedModel:
    """All transitions met.

    Attributes:
        title: what the model is of.
        states: the labels, by position; the initial state is the first, [n].
        names: what to call them in a model checker, [n].
        n_known: how many of them are states of the atlas.
        choices: the actions of each state, RESET last, [n].
    """

    title: str
    states: tuple[State, ...]
    names: tuple[str, ...]
    n_known: int
    choices: tuple[tuple[Choice, ...], ...]

    @property
    def n_choices(self) -> int:
        return sum(map(len, self.choices))


def learned(atlas: Atlas) -> LearnedModel:
    """The rows of an atlas."""
    model = atlas.model
    states = tuple(atlas.seen[number] for number in model.numbers.tolist())
    for label in (*states, *(action for offered in atlas.actions for action in offered)):
        encode_label(label)  # refuses what no file can hold, before anything is written
    actions = list(dict.fromkeys(action for offered in atlas.actions for action in offered))
    action_names = dict(zip(actions, identifiers(actions, "action"), strict=True))
    hulls = row_hulls(model.rows.row_offsets, model.rows.shares, model.rows.slack)
    places = known_places(atlas, model)
    reset = Choice(RESET, "RESET", (Move(0, 1, 1, 1.0, 1.0),))
    choices = []
    for position in range(len(states)):
        own: list[Choice] = []
        if position < model.n_known:
            offered = atlas.actions[places[position]]
            own = [_choice(model, position, k, action, action_names[action], hulls) for k, action in enumerate(offered)]
        choices.append((*(choice for choice in own if choice.moves), reset))
    title = f"{atlas.world}, explored by {atlas.explorer}, radius {atlas.precision.radius:g}"
    return LearnedModel(title, states, tuple(identifiers(states, "state")), model.n_known, tuple(choices))


def check_proven(atlas: Atlas) -> None:
    """Refuses an atlas whose counts were not kept for a confidence region."""
    if not atlas.proven:
        raise InvalidInputError(
            f"nothing is proven of this atlas, so it has no confidence region: {atlas.explorer} leaves none; explore "
            "with 'certified', or export the frequencies with drn"
        )


def _choice(model: IntervalModel, position: int, place: int, action: Action, name: str, hulls: Hulls) -> Choice:
    low, high, unseen = hulls
    pair = int(model.rows.state_pairs[position]) + place
    visits = int(model.visits[pair])
    moves = tuple(
        Move(
            target=int(model.rows.successors[entry]),
            count=round(float(model.rows.frequencies[entry]) * visits),
            visits=visits,
            low=float(low[entry]),
            high=float(high[entry]),
        )
        for entry in range(model.rows.row_offsets[pair], model.rows.row_offsets[pair + 1])
    )
    return Choice(action, name, moves, float(unseen[pair]))
