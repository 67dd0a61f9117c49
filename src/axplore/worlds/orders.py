"""What every world needs for an order: checks, a random stream of its own, and counting the answer."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from axplore.errors import InvalidLabelError, InvalidOrderError, InvalidSettingError, UnknownStateError, WorldError
from axplore.labels import shortened, written_bytes
from axplore.records.vectors import NO_BASE, Vectors
from axplore.storage import MAX_SEALED_BYTES
from axplore.types import RESET_ACTION, Action, FloatArray, IntArray, State
from axplore.worlds.contract import (
    NO_GOAL,
    NOWHERE,
    Answer,
    Episodes,
    Order,
    Survey,
    Tour,
    Trials,
    Visit,
    WorldSnapshot,
)
from axplore.worlds.state_labels import is_mistakable

LARGEST: Final = 2**62
"""The largest number in an order, so that steps can be counted in 64 bits."""


NEARBY: Final = 32
"""The states in which a survey searches for an action to play before it leaves anything out."""

FINELY: Final = 32
"""Up to this many steps its searches go one step farther each time, and then a quarter."""


def checked_seed(seed: int) -> int:
    """Returns the seed of a world as an int; refuses anything but whole numbers from 0 on."""
    if not _is_whole(seed) or seed < 0:
        raise InvalidSettingError(f"the seed is {seed!r}; it must be a whole number, 0 or more")
    return int(seed)


def order_seed(seed: int, *key: int) -> np.random.SeedSequence:
    """Returns the seed of an order, or of a batch of it.

    Args:
        seed: the seed of the world.
        key: the number of earlier calls, the index of the order in its call and, for a batch, its index in the order.
    """
    return np.random.SeedSequence(seed, spawn_key=key)


def check_orders(orders: Sequence[Order], action_counts: IntArray) -> None:
    """Refuses orders that cannot be carried out.

    Args:
        orders: the orders of one call.
        action_counts: the number of actions of each discovered state, without RESET, [n].
    """
    for index, order in enumerate(orders):
        try:
            match order:
                case Visit():
                    _check_visit(order, action_counts)
                case Episodes():
                    _check_episodes(order, action_counts)
                case Trials():
                    _check_trials(order, action_counts)
                case Tour():
                    _check_tour(order, action_counts)
                case Survey():
                    _check_survey(order, action_counts)
                case _:
                    raise InvalidOrderError("it must be a Visit, Episodes, Trials, a Tour or a Survey")
        except InvalidOrderError as error:
            raise InvalidOrderError(f"order {index} of {len(orders)} ({type(order).__name__}): {error}") from None


def _check_visit(order: Visit, action_counts: IntArray) -> None:
    _check_state("state", order.state, action_counts)
    offered = action_counts[order.state]
    if not _is_whole(order.action) or not 0 <= order.action < offered:
        raise InvalidOrderError(f"action is {order.action!r}, but state {order.state} has {offered} actions")
    _check_whole("times", order.times, least=0)
    _check_whole("max_journey", order.max_journey, least=1)
    _check_whole("max_cuts", order.max_cuts, least=1)
    _check_policy(order.policy, action_counts, steps=order.max_journey)


def _check_episodes(order: Episodes, action_counts: IntArray) -> None:
    if order.goal != NO_GOAL:
        _check_state("goal", order.goal, action_counts)
    _check_whole("times", order.times, least=0)
    _check_whole("horizon", order.horizon, least=1)
    for name, value in (("allowance", order.allowance), ("slack", order.slack)):
        if math.isnan(value) or value < 0:
            raise InvalidOrderError(f"{name} is {value}; it must be a number of steps, 0 or more")
    _check_policy(order.policy, action_counts, steps=order.horizon)


def _check_trials(order: Trials, action_counts: IntArray) -> None:
    _check_whole("times", order.times, least=0)
    _check_whole("horizon", order.horizon, least=1)
    _check_whole("most_steps", order.most_steps, least=1)
    _check_policy(order.policy, action_counts, steps=order.horizon)


def _check_tour(order: Tour, action_counts: IntArray) -> None:
    _check_plays(order, action_counts)
    _check_whole("max_journey", order.max_journey, least=1)
    _check_whole("max_cuts", order.max_cuts, least=1)
    n_targets, policies, distances = len(order.targets), order.policies, order.distances
    if isinstance(policies, Vectors):
        _check_vectors(policies, distances, n_targets, action_counts)
        return
    _check_integers("the policies", policies)
    if policies.ndim != 2 or len(policies) != n_targets:
        shape = list(policies.shape)
        raise InvalidOrderError(f"the policies have the shape {shape}; they must be [{n_targets}, n], one per target")
    _check_planned(policies, action_counts)
    if not isinstance(distances, np.ndarray) or distances.dtype.kind not in "fiu":
        raise InvalidOrderError("the distances must be an array of numbers")
    if distances.shape != policies.shape:
        shapes = list(distances.shape), list(policies.shape)
        raise InvalidOrderError(f"the distances have the shape {shapes[0]}, but the policies {shapes[1]}")
    _check_distances(distances)


def _check_distances(distances: FloatArray, first_target: int = 0) -> None:
    wrong = ~(distances >= 0)
    if wrong.any():
        target, state = np.argwhere(wrong)[0]
        raise InvalidOrderError(
            f"state {state} is {distances[target, state]} steps from target {first_target + target}"
        )


def _check_vectors(policies: Vectors, distances: FloatArray | Vectors, n_targets: int, action_counts: IntArray) -> None:
    """Refuses vectors that do not fit each other or the targets, or hold invalid actions or distances."""
    if not isinstance(distances, Vectors) or not policies.shape == distances.shape == (n_targets, policies.length):
        raise InvalidOrderError(
            f"policies and distances must both be Vectors, of {n_targets} targets and as many states"
        )
    for name, vectors in (("policies", policies), ("distances", distances)):
        if not vectors.is_consistent or (vectors.base != NO_BASE).any():
            raise InvalidOrderError(f"the {name} are Vectors that are inconsistent, or that have bases")
    _check_integers("the policies", policies.numbers)
    for target in range(n_targets):
        _check_planned(policies[target], action_counts)
        _check_distances(distances[target][None], target)


def _check_survey(order: Survey, action_counts: IntArray) -> None:
    for name in ("states", "actions", "successors"):
        array = getattr(order, name)
        _check_integers(name, array)
        if array.ndim != 1 or len(array) != len(order.states):
            raise InvalidOrderError(
                f"{name} has the shape {list(array.shape)}; states, actions, successors must be [m]"
            )
        if len(array) and not 0 <= array.min() <= array.max() < LARGEST:
            raise InvalidOrderError(f"one of {name} is negative or too large")
    for name, array in (("a state", order.states), ("a successor", order.successors)):
        if len(array):
            _check_state(name, int(array.max()), action_counts)
    wrong = order.actions >= action_counts[order.states]
    if wrong.any():
        state, action = order.states[wrong][0], order.actions[wrong][0]
        raise InvalidOrderError(f"an action is {action}, but state {state} has {action_counts[state]} actions")
    pairs = order.states * (action_counts.max(initial=0) + 1) + order.actions
    if not np.diff(np.sort(pairs)).all():
        raise InvalidOrderError("a state and an action are named twice")
    _check_whole("max_depth", order.max_depth, least=0)
    _check_whole("plays", order.plays, least=0)


def _check_plays(order: Tour, action_counts: IntArray) -> None:
    """Refuses plays unless they are distinct pairs of discovered states, each to be played at least once."""
    for name, array in (("states", order.states), ("actions", order.actions), ("times", order.times)):
        _check_integers(name, array)
        if array.ndim != 1 or len(array) != len(order.states):
            raise InvalidOrderError(f"{name} has the shape {list(array.shape)}; states, actions and times must be [m]")
    met = set()
    for state, action, times in zip(order.states.tolist(), order.actions.tolist(), order.times.tolist(), strict=True):
        _check_state("a state", state, action_counts)
        offered = action_counts[state]
        if not 0 <= action < offered:
            raise InvalidOrderError(f"an action is {action}, but state {state} has {offered} actions")
        _check_whole("one of times", times, least=1)
        if (state, action) in met:
            raise InvalidOrderError(f"state {state}, action {action} is named twice")
        met.add((state, action))
    _check_whole("the sum of times", sum(order.times.tolist()), least=0)


def _check_policy(policy: IntArray, action_counts: IntArray, steps: int) -> None:
    """Refuses a policy that is neither [n] nor [steps, n]."""
    _check_integers("the policy", policy)
    if policy.ndim != 1 and (policy.ndim != 2 or len(policy) != steps):
        raise InvalidOrderError(f"the policy has the shape {list(policy.shape)}; it must be [n] or [{steps}, n]")
    _check_planned(policy, action_counts)


def _check_planned(policy: IntArray, action_counts: IntArray) -> None:
    """Refuses a policy, [..., n], that plays an action that its state does not have."""
    planned = policy.shape[-1]
    if planned > len(action_counts):
        raise InvalidOrderError(f"the policy is for {planned} states, but only {len(action_counts)} are discovered")
    wrong = (policy < RESET_ACTION) | (policy >= action_counts[:planned])
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise InvalidOrderError(
            f"the policy plays action {policy[where]} in state {where[-1]}, which has {action_counts[where[-1]]} "
            f"actions; RESET is {RESET_ACTION}"
        )


def _check_integers(name: str, array: IntArray) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise InvalidOrderError(f"{name} must be an array of integers")


def _check_state(name: str, state: int, action_counts: IntArray) -> None:
    if not _is_whole(state) or not 0 <= state < len(action_counts):
        raise InvalidOrderError(f"{name} is {state!r}, but the discovered states are 0 to {len(action_counts) - 1}")


def _check_whole(name: str, value: int, least: int) -> None:
    if not _is_whole(value) or not least <= value <= LARGEST:
        raise InvalidOrderError(f"{name} is {value!r}; it must be a whole number from {least} to 2^62")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class Tally:
    """The transitions met while an order is carried out.

    Attributes:
        rows: for each state and action by whatever the caller knows a successor by, its index and how often it came.
            Callers count what is there themselves, which is faster, and call `note_first` for what is not.
    """

    __slots__ = ("_firsts", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, dict[int, dict[Hashable, list[int]]]] = {}
        self._firsts: list[tuple[tuple[int, int], list[int], int]] = []

    @property
    def n_draws(self) -> int:
        """The number of transitions counted."""
        return sum(times for _, (_, times), _ in self._firsts)

    def is_met(self, state: int, action: int) -> bool:
        """Returns whether a transition from a pair was counted."""
        return action in self.rows.get(state, ())

    def note_first(self, state: int, action: int, successor: int, name: Hashable) -> None:
        """Counts the first transition from a state and an action to a successor, which the caller knows by a name."""
        row = self.rows.setdefault(state, {}).setdefault(action, {})
        row[name] = met = [successor, 1]
        self._firsts.append(((state, action), met, _draws_of(row)))

    def add(self, answer: Answer, numbers: IntArray) -> None:
        """Adds the counts of an answer, as if it had happened after everything counted so far.

        Args:
            answer: the answer to add.
            numbers: for each state of the answer, its index here, [n].
        """
        states = numbers[answer.pair_states].tolist()
        pairs = list(zip(states, answer.pair_actions.tolist(), strict=True))
        rows = [self.rows.setdefault(state, {}).setdefault(action, {}) for state, action in pairs]
        before = list(map(_draws_of, rows))
        for index, successor, count, first in zip(
            answer.entry_pairs.tolist(),
            numbers[answer.entry_successors].tolist(),
            answer.entry_counts.tolist(),
            answer.entry_first_draws.tolist(),
            strict=True,
        ):
            row = rows[index]
            if successor in row:
                row[successor][1] += count
            else:
                row[successor] = met = [successor, count]
                self._firsts.append((pairs[index], met, before[index] + first))

    def answer(
        self,
        steps: int,
        completed: int,
        arrivals: int,
        travelled: int,
        cut_journeys: int,
        outcomes: Sequence[int] = (),
    ) -> Answer:
        """Returns the answer to an order that is over."""
        draws: dict[tuple[int, int], int] = {}  # in the order in which pairs were first met
        for pair, (_, times), _ in self._firsts:
            draws[pair] = draws.get(pair, 0) + times
        indices = {pair: index for index, pair in enumerate(draws)}
        return Answer(
            steps=steps,
            completed=completed,
            arrivals=arrivals,
            travelled=travelled,
            cut_journeys=cut_journeys,
            pair_states=_array([state for state, _ in draws]),
            pair_actions=_array([action for _, action in draws]),
            pair_draws=_array(list(draws.values())),
            entry_pairs=_array([indices[pair] for pair, _, _ in self._firsts]),
            entry_successors=_array([successor for _, (successor, _), _ in self._firsts]),
            entry_counts=_array([times for _, (_, times), _ in self._firsts]),
            entry_first_draws=_array([first_draw for _, _, first_draw in self._firsts]),
            outcomes=_array(outcomes),
        )


def _draws_of(row: dict[Hashable, list[int]]) -> int:
    return sum([times for _, times in row.values()])


def no_answer(order: Order) -> Answer:
    """Returns the answer to an order of which nothing was carried out."""
    outcomes = [0] * (int(order.horizon) + 2) if isinstance(order, Episodes) else []
    return Tally().answer(0, 0, 0, 0, 0, outcomes)


def _array(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


MAX_STATES_BYTES: Final = MAX_SEALED_BYTES // 4 * 3
"""The bytes that states may take in a file; the rest is for what a file says besides."""

STATE_BYTES: Final = 64
"""What a file says of a state beside its label and actions, at most."""


class DiscoveredStates:
    """States with their actions, indexed in the order in which they were added.

    Attributes:
        labels: the labels of the states.
        actions: the actions of each.
        numbers: the index of each label.
        mistakable: the indices of labels that equal others which are not the same; see `is_mistakable`.

    All of these stay the same objects, so that callers can keep references.
    """

    __slots__ = ("_actions_bytes", "_written", "actions", "labels", "mistakable", "numbers")

    def __init__(self, states: Iterable[tuple[State, tuple[Action, ...]]] = ()) -> None:
        self.labels: Final[list[State]] = []
        self.actions: Final[list[tuple[Action, ...]]] = []
        self.numbers: Final[dict[State, int]] = {}
        self.mistakable: Final[set[int]] = set()
        self._written = [0]  # the bytes that the first n states take in a file, for each n
        self._actions_bytes: dict[tuple[Action, ...], int] = {}
        self.extend(states)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: State, actions: tuple[Action, ...]) -> int:
        """Adds a state and returns its index; refuses one that no file has room for."""
        written = self._written[-1] + STATE_BYTES + self._bytes_of((label,)) + self._bytes_of_actions(actions)
        if written > MAX_STATES_BYTES:
            raise WorldError(
                f"the labels of {len(self.labels) + 1:,} states and their actions take more than the "
                f"{MAX_STATES_BYTES:,} bytes that files have for them; the last is {shortened(label)}. Use shorter "
                "labels, such as numbers or digests: a key function (`key=`) makes one of each observation"
            )
        self._written.append(written)
        number = self.numbers[label] = len(self.labels)
        self.labels.append(label)
        self.actions.append(actions)
        if is_mistakable(label):
            self.mistakable.add(number)
        return number

    def extend(self, states: Iterable[tuple[State, tuple[Action, ...]]]) -> None:
        """Adds states."""
        for label, actions in states:
            self.add(label, actions)

    def learn(self, states: Iterable[tuple[State, tuple[Action, ...]]]) -> None:
        """Adds states, or gives those that are known by their labels alone their actions."""
        for label, actions in states:
            if label in self.numbers:
                self.actions[self.numbers[label]] = actions
            else:
                self.add(label, actions)

    def forget(self, n_kept: int) -> None:
        """Forgets all states but the first `n_kept`."""
        for label in self.labels[n_kept:]:
            self.mistakable.discard(self.numbers.pop(label))
        del self.labels[n_kept:], self.actions[n_kept:], self._written[n_kept + 1 :]

    def _bytes_of_actions(self, actions: tuple[Action, ...]) -> int:
        """The bytes of actions, which most states share."""
        size = self._actions_bytes.get(actions)
        if size is None:
            size = self._actions_bytes[actions] = self._bytes_of(actions)
        return size

    @staticmethod
    def _bytes_of(labels: tuple[Hashable, ...]) -> int:
        try:
            return sum(map(written_bytes, labels))
        except InvalidLabelError:  # a model may have labels that no file holds, as long as nothing is saved
            return 0

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Replaces the states by those of a snapshot; refuses a snapshot with another initial state."""
        if snapshot.labels[:1] != (self.labels[0],):
            raise InvalidSettingError(f"the snapshot is of another system: this one starts in {self.labels[0]!r}")
        if set(snapshot.actions[0]) != set(self.actions[0]):
            raise InvalidSettingError(
                f"the snapshot is of another system: the start of this one offers the actions {list(self.actions[0])}, "
                f"and there it is {list(snapshot.actions[0])}"
            )
        self.forget(0)
        self.extend(zip(snapshot.labels, snapshot.actions, strict=True))

    def snapshot(self, steps: int, calls: int, position: int = NOWHERE) -> WorldSnapshot:
        """Returns the snapshot of a world with these states."""
        return WorldSnapshot(tuple(self.labels), tuple(self.actions), steps, calls, position)

    def since(self, n_first: int) -> tuple[tuple[State, tuple[Action, ...]], ...]:
        """Returns the states after the first `n_first`, each with its actions."""
        return tuple(zip(self.labels[n_first:], self.actions[n_first:], strict=True))

    def actions_of(self, number: int) -> tuple[Action, ...]:
        """Returns the actions of a state; refuses an index that no state has."""
        if not 0 <= number < len(self.labels):
            raise UnknownStateError(f"no state {number!r}; the discovered states are 0 to {len(self.labels) - 1}")
        return self.actions[number]

    def action_counts(self) -> IntArray:
        """Returns the number of actions of each state, [n]."""
        return np.array([len(actions) for actions in self.actions], dtype=np.int64)
