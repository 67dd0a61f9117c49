"""Known models: a sparse, immutable Markov decision process with RESET implied.

A model has states with any hashable labels, named actions that may depend on the state, and an initial state.
RESET, which leads to the initial state with certainty and costs one step, is available in every state and is
never stored ([DisCo] Asm. 1). A *terminal* state has no action of its own: it only resets.

Layout. A *pair* is a state with one of its actions. The pairs of state `s` are the rows
`state_pairs[s] .. state_pairs[s + 1]`, and the transitions of pair `r` are the entries
`row_offsets[r] .. row_offsets[r + 1]` of `successors` and `probabilities` (compressed rows, twice).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore.arguments import collection, real_array, shown
from axplore.compressed import entries_in, offsets_from, offsets_of
from axplore.errors import InvalidModelError, UnknownActionError, UnknownStateError
from axplore.types import Action, FloatArray, IntArray, State

ROW_SUM_TOLERANCE: Final = 1e-9
"""A row may miss one by this much (rounding of the caller's own arithmetic); it is then scaled to sum to one."""


@dataclass(frozen=True, eq=False)
class TabularMdp:
    """A known model. Build it with `from_rows`, `from_arrays`, `from_gymnasium` or `from_entries`.

    Attributes:
        states: the label of each state, [S].
        actions: the name of each action, [A].
        initial_index: the number of the state that RESET leads to (s_0 in the paper).
        state_pairs: the first pair of each state, and the end of the last one, [S + 1].
        pair_actions: the action of each pair, [P].
        row_offsets: the first transition of each pair, and the end of the last one, [P + 1].
        successors: the state that each transition leads to, ascending within a pair, [T].
        probabilities: of each transition, positive and summing to one within a pair, [T].
    """

    states: tuple[State, ...]
    actions: tuple[Action, ...]
    initial_index: int
    state_pairs: IntArray
    pair_actions: IntArray
    row_offsets: IntArray
    successors: IntArray
    probabilities: FloatArray

    def __post_init__(self) -> None:
        for array in (self.state_pairs, self.pair_actions, self.row_offsets, self.successors, self.probabilities):
            array.flags.writeable = False

    @classmethod
    def from_rows(cls, rows: Mapping[Any, Mapping[Any, Mapping[Any, float]]], initial_state: State) -> TabularMdp:
        """Builds a model from `{state: {action: {successor: probability}}}`; a state without actions is terminal."""
        states, index = _numbered(_mapping(rows, "rows", "{state: {action: {successor: probability}}}"))
        action_index: dict[Action, int] = {}
        pair_states: list[int] = []
        pair_actions: list[int] = []
        entries: list[tuple[int, int, float]] = []
        for state, options in rows.items():
            for action, row in _mapping(options, f"state {state!r}", "{action: {successor: probability}}").items():
                outcomes = _mapping(row, f"state {state!r}, action {action!r}", "{successor: probability}")
                for successor, probability in outcomes.items():
                    if successor not in index:
                        raise InvalidModelError(
                            f"state {state!r}, action {action!r}: successor {successor!r} is not a state of the model; "
                            "give it a row of its own (an empty one makes it terminal)"
                        )
                    entries.append(
                        (len(pair_states), index[successor], _probability(probability, state, action, successor))
                    )
                pair_states.append(index[state])
                pair_actions.append(action_index.setdefault(action, len(action_index)))
        return cls._from_entries(
            states,
            tuple(action_index),
            _index_in(index, initial_state, "initial state"),
            np.array(pair_states, dtype=np.int64),
            np.array(pair_actions, dtype=np.int64),
            np.array([pair for pair, _, _ in entries], dtype=np.int64),
            np.array([successor for _, successor, _ in entries], dtype=np.int64),
            np.array([probability for _, _, probability in entries], dtype=np.float64),
        )

    @classmethod
    def from_arrays(
        cls,
        probabilities: npt.ArrayLike,
        initial_state: State = 0,
        *,
        states: Sequence[State] | None = None,
        actions: Sequence[Action] | None = None,
        terminal: Collection[State] = (),
        available: npt.ArrayLike | None = None,
    ) -> TabularMdp:
        """Builds a model from dense transition probabilities.

        Args:
            probabilities: of each successor by state and action, [S, A, S].
            initial_state: the label of the state that RESET leads to.
            states: labels, [S]; 0..S-1 when not given.
            actions: names, [A]; 0..A-1 when not given.
            terminal: labels of the states that only reset; their rows are ignored.
            available: which actions each state has, [S, A] of booleans; all when not given.
        """
        dense = real_array("probabilities", probabilities).astype(np.float64)
        if dense.ndim != 3 or dense.shape[0] != dense.shape[2]:
            raise InvalidModelError(f"probabilities must have the shape [S, A, S], not {list(dense.shape)}")
        n_states, n_actions, _ = dense.shape
        labels, index = _numbered(range(n_states) if states is None else states)
        names = tuple(range(n_actions)) if actions is None else _distinct_names(actions)
        if len(labels) != n_states or len(names) != n_actions:
            raise InvalidModelError(
                f"probabilities are for {n_states} states and {n_actions} actions, "
                f"but {len(labels)} labels and {len(names)} names were given"
            )
        given = np.ones((n_states, n_actions)) if available is None else real_array("available", available)
        offered = given.astype(bool)
        if offered.shape != (n_states, n_actions):
            raise InvalidModelError(f"available must have the shape [S, A], not {list(offered.shape)}")
        ended = [_index_in(index, label, "terminal state") for label in _members(terminal, "terminal")]
        offered[ended] = False
        pair_states, pair_actions = np.nonzero(offered)
        rows = dense[pair_states, pair_actions]
        pair, successor = np.nonzero(rows)  # a NaN counts as nonzero, so the check below sees it
        return cls._from_entries(
            labels, names, _index_in(index, initial_state, "initial state"),
            pair_states, pair_actions, pair, successor, rows[pair, successor],
        )  # fmt: skip

    @classmethod
    def from_gymnasium(
        cls, transitions: Mapping[Any, Mapping[Any, Iterable[tuple[Any, ...]]]], initial_state: State
    ) -> TabularMdp:
        """Builds a model from a Gymnasium-style `P[state][action] = [(probability, successor, reward, terminated)]`.

        A state that is entered with `terminated` set is terminal: it only resets, whatever its own rows say.
        """
        rows: dict[State, dict[Action, dict[State, float]]] = {}
        ended: set[State] = set()
        entered: set[State] = set()
        shape = "{action: [(probability, successor, reward, terminated)]}"
        for state, options in _mapping(transitions, "transitions", f"{{state: {shape}}}").items():
            rows[state] = {}
            for action, outcomes in _mapping(options, f"state {state!r}", shape).items():
                row: dict[State, float] = {}
                for outcome in _outcomes(outcomes, state, action):
                    probability, successor, terminated = _gymnasium_outcome(outcome, state, action)
                    row[successor] = row.get(successor, 0.0) + probability
                    if probability != 0 and terminated:
                        ended.add(successor)
                    elif probability != 0 and successor != state:
                        entered.add(successor)
                rows[state][action] = row
        for state in rows:
            if state in ended and state in entered:
                raise InvalidModelError(
                    f"state {state!r} is entered both as terminal and as not terminal; give the two different labels"
                )
        return cls.from_rows({state: {} if state in ended else row for state, row in rows.items()}, initial_state)

    @classmethod
    def from_entries(
        cls,
        states: Iterable[State],
        actions: Iterable[Action],
        initial_state: State,
        *,
        pair_states: npt.ArrayLike,
        pair_actions: npt.ArrayLike,
        entry_pairs: npt.ArrayLike,
        successors: npt.ArrayLike,
        probabilities: npt.ArrayLike,
    ) -> TabularMdp:
        """Builds a model from arrays of numbers, without a Python step per transition: for large models.

        Args:
            states: the label of each state, [S].
            actions: the name of each action, [A].
            initial_state: the label of the state that RESET leads to.
            pair_states: the state of each pair, ascending, [P]; a state without pairs is terminal.
            pair_actions: the action of each pair, [P].
            entry_pairs: the pair of each entry, in any order, [E].
            successors: the state that each entry leads to, [E]; entries with the same pair and successor add up.
            probabilities: of each entry, [E].
        """
        labels, index = _numbered(states)
        names = _distinct_names(actions)
        pairs = _numbers(pair_states, "pair_states", len(labels))
        chosen = _numbers(pair_actions, "pair_actions", len(names))
        entries = _numbers(entry_pairs, "entry_pairs", len(pairs))
        targets = _numbers(successors, "successors", len(labels))
        values = real_array("probabilities", probabilities).astype(np.float64)
        if values.ndim != 1:
            raise InvalidModelError(f"probabilities must have the shape [E], not {list(values.shape)}")
        if len(pairs) != len(chosen) or not len(entries) == len(targets) == len(values):
            raise InvalidModelError(
                f"{len(pairs)} pair states with {len(chosen)} actions, and {len(entries)} entries with "
                f"{len(targets)} successors and {len(values)} probabilities: each group must have one length"
            )
        if (np.diff(pairs) < 0).any():
            raise InvalidModelError(
                "pair_states must be ascending: list the pairs of a state together, states in order"
            )
        keys = np.sort(pairs * len(names) + chosen)
        twice = np.flatnonzero(np.diff(keys) == 0)
        if twice.size:
            state, action = divmod(int(keys[twice[0]]), len(names))
            raise InvalidModelError(f"state {labels[state]!r} has two pairs with the action {names[action]!r}")
        initial = _index_in(index, initial_state, "initial state")
        return cls._from_entries(labels, names, initial, pairs, chosen, entries, targets, values)

    @classmethod
    def _from_entries(
        cls,
        states: tuple[State, ...],
        actions: tuple[Action, ...],
        initial_index: int,
        pair_states: IntArray,
        pair_actions: IntArray,
        entry_pairs: IntArray,
        successors: IntArray,
        probabilities: FloatArray,
    ) -> TabularMdp:
        """Checks and sorts entries (pair, successor, probability); `pair_states` must be ascending."""

        def named(pair: int) -> str:
            return f"state {states[pair_states[pair]]!r}, action {actions[pair_actions[pair]]!r}"

        bad = np.flatnonzero(~(probabilities >= 0) | ~np.isfinite(probabilities))
        if bad.size:
            first = bad[0]
            raise InvalidModelError(
                f"{named(entry_pairs[first])}: the probability of {states[successors[first]]!r} is "
                f"{probabilities[first]}; it must be a number from 0 to 1"
            )
        n_pairs = len(pair_states)
        sums = np.bincount(entry_pairs, weights=probabilities, minlength=n_pairs)
        off = np.flatnonzero(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE)
        if off.size:
            raise InvalidModelError(
                f"{named(off[0])}: the probabilities sum to {sums[off[0]]:.12g}, not to 1; "
                "complete the row, or leave the action out to say that the state does not have it"
            )
        keep = probabilities > 0
        keys = entry_pairs[keep] * len(states) + successors[keep]
        unique, inverse = np.unique(keys, return_inverse=True)
        merged = np.bincount(inverse, weights=probabilities[keep], minlength=len(unique))
        rows, targets = np.divmod(unique, len(states))
        return cls(
            states=states,
            actions=actions,
            initial_index=int(initial_index),
            state_pairs=offsets_of(pair_states, len(states)),
            pair_actions=np.asarray(pair_actions, dtype=np.int64),
            row_offsets=offsets_of(rows, n_pairs),
            successors=np.asarray(targets, dtype=np.int64),
            probabilities=merged / sums[rows],
        )

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def n_pairs(self) -> int:
        return len(self.pair_actions)

    @property
    def n_transitions(self) -> int:
        return len(self.successors)

    @property
    def initial_state(self) -> State:
        return self.states[self.initial_index]

    @cached_property
    def pair_states(self) -> IntArray:
        """The state of each pair, [P]."""
        return _frozen(np.repeat(np.arange(self.n_states), np.diff(self.state_pairs)))

    @cached_property
    def transition_pairs(self) -> IntArray:
        """The pair of each transition, [T]."""
        return _frozen(np.repeat(np.arange(self.n_pairs), np.diff(self.row_offsets)))

    @cached_property
    def _index(self) -> dict[State, int]:
        return {label: number for number, label in enumerate(self.states)}

    def __contains__(self, state: State) -> bool:
        return state in self._index

    def index_of(self, state: State) -> int:
        """Returns the number of the state with this label."""
        return _index_in(self._index, state, "state", error=UnknownStateError)

    def indices_of(self, states: Iterable[State]) -> IntArray:
        """Returns the numbers of the states with these labels."""
        return np.array([self.index_of(state) for state in states], dtype=np.int64)

    def actions_of(self, state: State) -> tuple[Action, ...]:
        """Returns the actions of a state beside RESET; none in a terminal state."""
        number = self.index_of(state)
        if number not in self._actions_of:
            first, end = self.state_pairs[number], self.state_pairs[number + 1]
            self._actions_of[number] = tuple(self.actions[action] for action in self.pair_actions[first:end].tolist())
        return self._actions_of[number]

    @cached_property
    def _actions_of(self) -> dict[int, tuple[Action, ...]]:
        """The actions of the states that were asked for, by their numbers."""
        return {}

    def is_terminal(self, state: State) -> bool:
        """Returns whether the state only resets."""
        return not self.actions_of(state)

    def pair_of(self, state: State, action: Action) -> int:
        """Returns the pair of a state with one of its actions."""
        offered = self.actions_of(state)
        if action not in offered:
            raise UnknownActionError(f"state {state!r} has no action {action!r}; it has {list(offered)!r} and RESET")
        return int(self.state_pairs[self.index_of(state)]) + offered.index(action)

    def row(self, state: State, action: Action) -> dict[State, float]:
        """Returns the probability of each successor."""
        pair = self.pair_of(state, action)
        entries = slice(self.row_offsets[pair], self.row_offsets[pair + 1])
        return {
            self.states[successor]: float(probability)
            for successor, probability in zip(self.successors[entries], self.probabilities[entries], strict=True)
        }

    def transitions_of(self, numbers: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Returns all transitions of the states with these indices: source, successor and probability of each."""
        entries = entries_in(self.row_offsets, entries_in(self.state_pairs, numbers))
        lengths = self.row_offsets[self.state_pairs[numbers + 1]] - self.row_offsets[self.state_pairs[numbers]]
        return np.repeat(numbers, lengths), self.successors[entries], self.probabilities[entries]

    def restricted_to(self, allowed: Iterable[State]) -> TabularMdp:
        """Returns the same model where every state outside `allowed` only resets.

        Its policies are the policies restricted to `allowed` ([DisCo] Def. 1). States keep their numbers.
        """
        keeps = np.zeros(self.n_states, dtype=bool)
        keeps[self.indices_of(allowed)] = True
        return self._with_pairs(keeps[self.pair_states])

    def vicinity_of(self, allowed: Iterable[State]) -> TabularMdp:
        """Returns the model restricted to `allowed`, without the states that its policies cannot meet.

        What is left are the allowed states, where they lead in one step, and the initial state. Values are those of
        `restricted_to`; the cost depends on what is left, not on the size of this model.
        """
        members = np.unique(self.indices_of(allowed))
        widths = self.state_pairs[members + 1] - self.state_pairs[members]
        pairs = entries_in(self.state_pairs, members)
        entries = entries_in(self.row_offsets, pairs)
        met = np.unique(np.concatenate((members, self.successors[entries], [self.initial_index])))
        return TabularMdp(
            states=tuple(self.states[number] for number in met),
            actions=self.actions,
            initial_index=int(np.searchsorted(met, self.initial_index)),
            state_pairs=offsets_of(np.repeat(np.searchsorted(met, members), widths), len(met)),
            pair_actions=self.pair_actions[pairs],
            row_offsets=offsets_from(self.row_offsets[pairs + 1] - self.row_offsets[pairs]),
            successors=np.searchsorted(met, self.successors[entries]),
            probabilities=self.probabilities[entries],
        )

    def _with_pairs(self, kept: npt.NDArray[np.bool_]) -> TabularMdp:
        """Returns the same model without the pairs that are not kept, [P]."""
        entries = kept[self.transition_pairs]
        renumbered = np.cumsum(kept) - 1
        return TabularMdp(
            states=self.states,
            actions=self.actions,
            initial_index=self.initial_index,
            state_pairs=offsets_of(self.pair_states[kept], self.n_states),
            pair_actions=self.pair_actions[kept],
            row_offsets=offsets_of(renumbered[self.transition_pairs[entries]], int(kept.sum())),
            successors=self.successors[entries],
            probabilities=self.probabilities[entries],
        )

    def __repr__(self) -> str:
        return (
            f"TabularMdp({self.n_states} states, {self.n_pairs} pairs, {self.n_transitions} transitions, "
            f"initial state {self.initial_state!r})"
        )


def _numbered(labels: Iterable[State]) -> tuple[tuple[State, ...], dict[State, int]]:
    """Returns the labels with their numbers; refuses a label that two states share."""
    ordered = _members(labels, "states")
    if not ordered:
        raise InvalidModelError("the model has no states; it needs at least its initial state")
    index: dict[State, int] = {}
    for number, label in enumerate(ordered):
        _check_hashable(label)
        if label in index:
            raise InvalidModelError(f"the label {label!r} is carried by states {index[label]} and {number}")
        index[label] = number
    return ordered, index


def _members(labels: Any, name: str) -> tuple[State, ...]:
    """Returns the labels in a collection; text is none."""
    members: tuple[State, ...] = collection("a collection of labels")(name, labels)
    return members


def _distinct_names(actions: Any) -> tuple[Action, ...]:
    names = _members(actions, "actions")
    for name in names:
        _check_hashable(name)
    if len(set(names)) != len(names):
        raise InvalidModelError(f"action names are not distinct: {list(names)!r}")
    return names


def _mapping(value: Any, where: str, shape: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise InvalidModelError(f"{where}: {shown(value)} is no mapping; give {shape}")
    return value


def _gymnasium_outcome(outcome: Any, state: State, action: Action) -> tuple[float, State, bool]:
    """Returns the probability, the successor and whether it is terminal; refuses what is no outcome of Gymnasium."""
    if not isinstance(outcome, tuple | list) or len(outcome) != 4:
        raise InvalidModelError(
            f"state {state!r}, action {action!r}: an outcome must be (probability, successor, reward, terminated), not "
            f"{outcome!r}"
        )
    given, successor, _, terminated = outcome
    probability = _probability(given, state, action, successor)
    _check_hashable(successor)
    if not probability >= 0:
        raise InvalidModelError(
            f"state {state!r}, action {action!r}: the probability of {successor!r} is {probability}; it must be a "
            "number from 0 to 1"
        )
    return probability, successor, bool(terminated)


def _outcomes(value: Any, state: State, action: Action) -> Iterable[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidModelError(f"state {state!r}, action {action!r}: {shown(value)} is no list of outcomes")
    return value


def _probability(value: Any, state: State, action: Action, successor: State) -> float:
    """Returns a number as a float; whether it is a probability is checked with all others."""
    try:
        if isinstance(value, Real):
            return float(value)
    except OverflowError:
        pass
    raise InvalidModelError(
        f"state {state!r}, action {action!r}: the probability of {shown(successor)} is {shown(value)}; it must be a "
        "number from 0 to 1"
    )


def _check_hashable(label: Any) -> None:
    try:
        hash(label)
    except TypeError:
        raise InvalidModelError(
            f"{shown(label)} cannot be the label of a state or an action: it is not hashable"
        ) from None


def _index_in(index: Mapping[State, int], label: State, what: str, error: type[Exception] = InvalidModelError) -> int:
    try:
        return index[label]
    except (KeyError, TypeError):  # TypeError: it is not hashable, so that no state has it
        some = ", ".join(repr(known) for known in list(index)[:5])
        raise error(f"no {what} {label!r}; the model has {len(index)} states: {some}, ...") from None


def _frozen(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array


def _numbers(values: npt.ArrayLike, name: str, end: int) -> IntArray:
    """Returns a copy of numbers from 0 to `end` - 1, [n]; refuses any other."""
    given = real_array(name, values)
    if given.ndim != 1:
        raise InvalidModelError(f"{name} must be a list of numbers, not of the shape {list(given.shape)}")
    outside = np.flatnonzero(~((given >= 0) & (given < end)) | (given != np.floor(given)))
    if outside.size:
        raise InvalidModelError(
            f"{name}[{outside[0]}] is {given[outside[0]]}; it must be a whole number from 0 to {end - 1}"
        )
    return given.astype(np.int64)
