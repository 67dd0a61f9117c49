"""The learned model of an atlas as plain rows, from which every format is written.

States of the atlas come first, in order of admission, followed by the others seen. Every state has RESET, unless it is
left out; a state outside the atlas has nothing else. Without RESET, a state in which nothing can be played stays.
Actions that were never played are left out, except from intervals without RESET: there they lead to the unseen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from axplore.atlas.atlas import Atlas
from axplore.atlas.learned_model import known_indices
from axplore.errors import InvalidInputError
from axplore.explorers.registry import DEFAULT_EXPLORER
from axplore.labels import encode_label, readable
from axplore.proofs.bounds import IntervalModel
from axplore.statistics.confidence import row_hulls
from axplore.types import RESET, Action, FloatArray, Reset, State

Hulls: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""The smallest and largest probability of each entry, and the largest unseen probability of each pair."""

STAY: Final = "stay"
"""The action of a state in which nothing can be played, where RESET is none."""

UNSEEN = "unseen"
"""The name of the state that stands for all successors never seen."""


@dataclass(frozen=True)
class Move:
    """One transition.

    Attributes:
        target: the index of the state it leads to.
        count, visits: number of times it was met, and of plays of the action; 1 and 1 for RESET.
        low, high: bounds on its probability in every model of the region.
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
        name: its name in a model checker.
        moves: its transitions.
        unseen: the largest probability of leading to a successor never seen.
    """

    action: Action | Reset
    name: str
    moves: tuple[Move, ...]
    unseen: float = 0.0


@dataclass(frozen=True)
class LearnedModel:
    """All transitions met.

    Attributes:
        title: a description of the model.
        states: the labels; the initial state is the first, [n].
        names: their names in a model checker, [n].
        n_known: the number of states of the atlas among them.
        choices: the actions of each state, RESET last, [n].
        has_reset: whether RESET is an action.
    """

    title: str
    states: tuple[State, ...]
    names: tuple[str, ...]
    n_known: int
    choices: tuple[tuple[Choice, ...], ...]
    has_reset: bool = True

    def labels(self, index: int) -> str:
        """The labels of a state in a model checker: its name and, where nothing was drawn in it, `unseen`.

        Where RESET is an action, such a state resets, which is the worst case; without it nothing is known of it.
        """
        is_unknown = not self.has_reset and index >= self.n_known
        return f"{self.names[index]} {UNSEEN}" if is_unknown else self.names[index]

    @property
    def n_choices(self) -> int:
        return sum(map(len, self.choices))


def learned(atlas: Atlas, *, reset: bool = True, unplayed: bool = False) -> LearnedModel:
    """Returns the learned model of an atlas.

    Args:
        atlas: the atlas.
        reset: whether RESET is an action.
        unplayed: whether actions that were never played are in it, without any transition.
    """
    model = atlas.model
    states = tuple(atlas.seen[number] for number in model.numbers.tolist())
    for label in (*states, *(action for offered in atlas.actions for action in offered)):
        encode_label(label)  # refuses labels that cannot be written, before anything is written
    actions = list(dict.fromkeys(action for offered in atlas.actions for action in offered))
    action_names = dict(zip(actions, identifiers(actions, "action"), strict=True))
    hulls = row_hulls(model.rows.row_offsets, model.rows.shares, model.rows.slack)
    indices = known_indices(atlas, model)
    choices = []
    for index in range(len(states)):
        own: list[Choice] = []
        if index < model.n_known:
            offered = atlas.actions[indices[index]]
            own = [_choice(model, index, k, action, action_names[action], hulls) for k, action in enumerate(offered)]
        kept = [choice for choice in own if choice.moves or unplayed]
        if reset:
            kept.append(Choice(RESET, "RESET", (Move(0, 1, 1, 1.0, 1.0),)))
        choices.append(tuple(kept or [Choice(STAY, STAY, (Move(index, 1, 1, 1.0, 1.0),))]))
    title = f"{atlas.world}, explored by {atlas.explorer}, radius {atlas.target.radius:g}"
    return LearnedModel(title, states, tuple(identifiers(states, "state")), model.n_known, tuple(choices), reset)


def check_proven(atlas: Atlas) -> None:
    """Refuses an atlas that has no confidence region."""
    if not atlas.proven:
        raise InvalidInputError(
            f"nothing is proven of this atlas, so it has no confidence region: {atlas.explorer} has none; explore "
            f"with {DEFAULT_EXPLORER!r}, or export the frequencies with drn"
        )


def _choice(model: IntervalModel, index: int, action_index: int, action: Action, name: str, hulls: Hulls) -> Choice:
    low, high, unseen = hulls
    pair = int(model.rows.state_pairs[index]) + action_index
    visits = int(model.visits[pair])
    moves = tuple(
        Move(
            target=int(model.rows.successors[entry]),
            count=int(model.times_met[entry]),
            visits=visits,
            low=float(low[entry]),
            high=float(high[entry]),
        )
        for entry in range(model.rows.row_offsets[pair], model.rows.row_offsets[pair + 1])
    )
    is_closed = bool(model.rows.closed[pair]) and bool(moves) and model.rows.rest[pair] == 0.0
    return Choice(action, name, moves, 0.0 if is_closed else float(unseen[pair]))


LONGEST_NAME: Final = 60
"""The longest name that is made of a label, in characters."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_RESERVED: Final = frozenset(
    re.findall(
        r"\w+",
        """
        A C E F G I P Pmax Pmin R RESET Rmax Rmin S U W X bool ceil clock const ctmc deadlock double dtmc endinit
        endinvariant endmodule endobservables endplayer endrewards endsystem false filter floor formula func global
        init int invariant label log max mdp min mod module nondeterministic observable observables of player pomdp
        popta pow prob probabilistic pta rate rewards s smg stay step steps stochastic system true unseen
        """,
    )
)
"""Keywords of PRISM and Storm, and names that the files use themselves."""


def identifiers(labels: Sequence[State], kind: str) -> list[str]:
    """Returns a distinct name for each label.

    It is the label itself if it is an identifier, else what can be read of it, such as `s_0_3` of the state (0, 3), or
    `<kind>_<index>` where that says nothing or would be the name of another.
    """
    given = {label for label in labels if isinstance(label, str) and _is_identifier(label)}
    told = [None if isinstance(label, str) and label in given else _told(label, kind) for label in labels]
    times = Counter(told)
    names = []
    for index, (label, words) in enumerate(zip(labels, told, strict=True)):
        if words is None:
            names.append(str(label))
            continue
        name = words if words and times[words] == 1 and words not in given else f"{kind}_{index}"
        while name in given or name in names:
            name += "_"
        names.append(name)
    return names


def _told(label: State, kind: str) -> str:
    """What an identifier can tell of a label; nothing if that is too little or too long."""
    signed = re.sub(r"(?<![A-Za-z0-9])-(?=[0-9])", "minus ", readable(label))
    words = "_".join(re.findall(r"[A-Za-z0-9]+", signed))
    return f"{kind[0]}_{words}" if words and len(words) <= LONGEST_NAME else ""


def _is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None and text not in _RESERVED
