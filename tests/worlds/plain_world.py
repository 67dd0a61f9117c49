"""Systems and worlds in plain Python, step by step. They share nothing with compiled code but the tables of draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from axplore.mdp import TabularMdp
from axplore.records.vectors import Vector, Vectors
from axplore.types import State
from axplore.worlds import simulation_kernels as kernels
from axplore.worlds.contract import Answer, Episodes, Order, Tour, Trials, Visit, WorldSnapshot
from axplore.worlds.orders import order_seed


def with_vectors(tour: Tour) -> Tour:
    """The same tour with vectors in place of arrays; the rest of a row is its last number."""

    def vectors_of(numbers: Any) -> Vectors:
        rows = [Vector.of(row, row[-1] if row.size else 0) for row in numbers]
        return Vectors.of(rows, numbers.shape[1], numbers.dtype.type)

    return replace(tour, policies=vectors_of(tour.policies), distances=vectors_of(tour.distances))


def as_lists(answer: Answer) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(answer).items()}


class PlainWorld:
    """A world whose moves are `moves[state][action]`; RESET leads to `initial_state`."""

    def __init__(self, moves: Mapping[int, Sequence[int]], initial_state: int) -> None:
        self.moves = moves
        self.states = [initial_state]
        self.position = 0  # a number in the order of discovery, like every state below
        self.steps = 0
        self._log: list[tuple[int, int, int]] = []

    def carry_out(self, order: Order) -> Answer:
        """Carries out one order."""
        self._log = []
        self._outcomes: list[int] = []
        before = self.steps
        match order:
            case Visit():
                outcome = self._visit(order)
            case Trials():
                outcome = self._try(order)
            case Episodes():
                outcome = self._run(order)
            case Tour():
                outcome = self._tour(order)
        return self._answer(self.steps - before, *outcome)

    def _visit(self, order: Visit) -> tuple[int, int, int, int]:
        staged = order.policy.ndim == 2
        completed = cuts = failures = 0
        while completed < order.times:
            if staged and self.position != 0:
                self._play(-1)
            for step in range(order.max_journey):
                if self.position == order.state:
                    break
                self._play(self._planned(order.policy[step] if staged else order.policy))
            if self.position == order.state:
                self._play(order.action)
                completed, failures = completed + 1, 0
            else:
                if not staged or self.position != 0:
                    self._play(-1)
                cuts, failures = cuts + 1, failures + 1
                if failures == order.max_cuts:
                    break
        return completed, completed, 0, cuts

    def _run(self, order: Episodes) -> tuple[int, int, int, int]:
        lengths: list[int] = []
        arrivals = 0
        self._outcomes = [0] * (order.horizon + 2)
        while len(lengths) < order.times:
            if self.position != 0 or order.always_reset:
                self._play(-1)
            length = 0
            while self.position != order.goal and length < order.horizon:
                policy = order.policy[length] if order.policy.ndim == 2 else order.policy
                self._play(self._planned(policy))
                length += 1
            arrivals += self.position == order.goal
            lengths.append(length)
            self._outcomes[length if self.position == order.goal else order.horizon + 1] += 1
            if sum(lengths) > len(lengths) * order.allowance + order.slack:
                break
        return len(lengths), arrivals, sum(lengths), 0

    def _try(self, order: Trials) -> tuple[int, int, int, int]:
        completed = ended = 0
        first, beyond = self.steps, len(np.atleast_2d(order.policy)[0])
        while completed < order.times and self.steps - first < order.most_steps:
            if self.position != 0 or order.always_reset:
                self._play(-1)
            for step in range(order.horizon + 1):
                rows = np.atleast_2d(order.policy)
                chosen = self._planned(rows[min(step, len(rows) - 1)])
                if order.goes_beyond and self.position >= beyond:
                    played = [
                        sum(draw[:2] == (self.position, action) for draw in self._log)
                        for action in range(self._offered(self.states[self.position]))
                    ]
                    chosen = played.index(min(played)) if played else -1
                if chosen < 0 or step == order.horizon:
                    ended += chosen < 0
                    break
                self._play(chosen)
            completed += 1
        return completed, ended, 0, completed - ended

    def _tour(self, order: Tour) -> tuple[int, int, int, int]:
        """Asks again at every step which plays are outstanding, and how far each target is."""
        asked = dict(
            zip(zip(order.states.tolist(), order.actions.tolist(), strict=True), order.times.tolist(), strict=True)
        )
        left = dict(asked)
        targets = list(dict.fromkeys(order.states.tolist()))
        heading: int | None = None
        journey = cuts = failures = 0
        while any(left.values()) and failures < order.max_cuts:
            shares = {pair: left[pair] / asked[pair] for pair in asked if pair[0] == self.position and left[pair]}
            if shares:
                chosen = max(shares, key=lambda pair: shares[pair])  # of equal ones the first
                left[chosen] -= 1
                self._play(chosen[1])
                heading, journey, failures = None, 0, 0
            elif journey == order.max_journey:
                self._play(-1)
                heading, journey, cuts, failures = None, 0, cuts + 1, failures + 1
            else:
                if heading is None:
                    open_targets = [
                        target for target in targets if any(left[pair] for pair in left if pair[0] == target)
                    ]
                    heading = targets.index(
                        min(open_targets, key=lambda target: self._far(order, targets.index(target)))
                    )
                self._play(self._planned(order.policies[heading]))
                journey += 1
        completed = sum(asked.values()) - sum(left.values())
        return completed, completed, 0, cuts

    def _far(self, order: Tour, target: int) -> float:
        distances = order.distances[target].tolist()
        if self.position < len(distances):
            return float(distances[self.position])
        return 1.0 + distances[0] if distances else 0.0

    def _planned(self, policy: Any) -> int:
        return int(policy[self.position]) if self.position < len(policy) else -1

    def _play(self, action: int) -> None:
        self.steps += 1
        if action < 0:
            self.position = 0
            return
        label = self._successor(self.states[self.position], action)
        if label not in self.states:
            self.states.append(label)
        successor = self.states.index(label)
        self._log.append((self.position, action, successor))
        self.position = successor

    def _successor(self, label: int, action: int) -> int:
        return self.moves[label][action]

    def _offered(self, label: int) -> int:
        return len(self.moves[label])

    def _answer(self, steps: int, completed: int, arrivals: int, travelled: int, cuts: int) -> Answer:
        pairs = list(dict.fromkeys(draw[:2] for draw in self._log))
        entries = list(dict.fromkeys(self._log))
        draws_of = {pair: [draw for draw in self._log if draw[:2] == pair] for pair in pairs}

        def array(values: Sequence[int]) -> Any:
            return np.array(values, dtype=np.int64)

        return Answer(
            steps=steps,
            completed=completed,
            arrivals=arrivals,
            travelled=travelled,
            cut_journeys=cuts,
            pair_states=array([state for state, _ in pairs]),
            pair_actions=array([action for _, action in pairs]),
            pair_draws=array([len(draws_of[pair]) for pair in pairs]),
            entry_pairs=array([pairs.index(entry[:2]) for entry in entries]),
            entry_successors=array([successor for _, _, successor in entries]),
            entry_counts=array([self._log.count(entry) for entry in entries]),
            entry_first_draws=array([draws_of[entry[:2]].index(entry) + 1 for entry in entries]),
            outcomes=array(self._outcomes),
        )


class DrawingWorld(PlainWorld):
    """The same on a model whose labels are its indices, with the random words of a `SimulatedWorld` of that seed."""

    def __init__(self, mdp: TabularMdp, seed: int) -> None:
        super().__init__({}, mdp.initial_index)
        self._mdp, self._seed, self._calls = mdp, seed, 0
        self._words: list[int] = []
        self._tables = kernels.tables_of(mdp)

    def carry_out(self, order: Order) -> Answer:
        """Carries out one order, as a call of its own."""
        self._words = [int(word) for word in order_seed(self._seed, self._calls, 0).generate_state(4, np.uint64)]
        self._calls += 1
        return super().carry_out(order)

    def _offered(self, label: int) -> int:
        return int(self._mdp.state_pairs[label + 1] - self._mdp.state_pairs[label])

    def _successor(self, label: int, action: int) -> int:
        pair = int(self._mdp.state_pairs[label]) + action
        entry, end = (int(self._mdp.row_offsets[row]) for row in (pair, pair + 1))
        if end - entry > 1:
            place = (self._next_word() >> 11) / 2**53 * (end - entry)
            entry += int(place)
            if place - int(place) >= self._tables.thresholds[entry]:
                entry = int(self._tables.aliases[entry])
        return int(self._mdp.successors[entry])

    def _next_word(self) -> int:
        """One step of xoshiro256++."""
        s0, s1, s2, s3 = self._words

        def rotated(word: int, bits: int) -> int:
            return (word << bits | word >> (64 - bits)) % 2**64

        word = (rotated((s0 + s3) % 2**64, 23) + s0) % 2**64
        shifted = (s1 << 17) % 2**64
        s2, s3 = s2 ^ s0, s3 ^ s1
        s1, s0 = s1 ^ s2, s0 ^ s3
        self._words = [s0, s1, s2 ^ shifted, rotated(s3, 45)]
        return word


def snapshot_of_labels(mdp: TabularMdp, labels: Sequence[State], position: int = 0) -> WorldSnapshot:
    """A snapshot of a simulated world that has discovered these states, and has taken no step."""
    return WorldSnapshot(tuple(labels), tuple(map(mdp.actions_of, labels)), steps=0, calls=0, position=position)


class Moves:
    """A deterministic system: `moves[state][action]`."""

    def __init__(self, moves: dict[Any, list[Any]], initial_state: Any) -> None:
        self.moves, self.initial_state, self.state = moves, initial_state, initial_state

    def reset(self) -> Any:
        self.state = self.initial_state
        return self.state

    def step(self, action: int) -> Any:
        self.state = self.moves[self.state][action]
        return self.state

    def actions(self, state: Any) -> range:
        assert state == self.state, "actions are asked for where the system stands"
        return range(len(self.moves[state]))


class Words:
    """A system on a model, driven by the random words that a `SimulatedWorld` draws."""

    def __init__(self, mdp: TabularMdp) -> None:
        self._mdp, self._drawing = mdp, DrawingWorld(mdp, seed=0)
        self._state = mdp.initial_index

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._drawing._words = [int(word) for word in seed.generate_state(4, np.uint64)]

    def reset(self) -> Any:
        self._state = self._mdp.initial_index
        return self._mdp.states[self._state]

    def step(self, action: Any) -> Any:
        place = self.actions(self._mdp.states[self._state]).index(action)
        self._state = self._drawing._successor(self._state, place)
        return self._mdp.states[self._state]

    def actions(self, state: Any) -> tuple[Any, ...]:
        return self._mdp.actions_of(state)
