"""Orders carried out step by step in plain Python, on deterministic models. Shares nothing with the compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axplore.worlds.orders import Answer, Episodes, Order, Visit


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
        before = self.steps
        completed, arrivals, travelled, cuts = self._visit(order) if isinstance(order, Visit) else self._run(order)
        return self._answer(self.steps - before, completed, arrivals, travelled, cuts)

    def _visit(self, order: Visit) -> tuple[int, int, int, int]:
        completed = cuts = failures = 0
        while completed < order.times:
            for _ in range(order.max_journey):
                if self.position == order.state:
                    break
                self._play(self._planned(order.policy))
            if self.position == order.state:
                self._play(order.action)
                completed, failures = completed + 1, 0
            else:
                self._play(-1)
                cuts, failures = cuts + 1, failures + 1
                if failures == order.max_cuts:
                    break
        return completed, completed, 0, cuts

    def _run(self, order: Episodes) -> tuple[int, int, int, int]:
        lengths: list[int] = []
        arrivals = 0
        while len(lengths) < order.times:
            if self.position != 0:
                self._play(-1)
            length = 0
            while self.position != order.goal and length < order.horizon:
                policy = order.policy[length] if order.policy.ndim == 2 else order.policy
                self._play(self._planned(policy))
                length += 1
            arrivals += self.position == order.goal
            lengths.append(length)
            if sum(lengths) > len(lengths) * order.allowance + order.slack:
                break
        return len(lengths), arrivals, sum(lengths), 0

    def _planned(self, policy: Any) -> int:
        return int(policy[self.position]) if self.position < len(policy) else -1

    def _play(self, action: int) -> None:
        self.steps += 1
        if action < 0:
            self.position = 0
            return
        label = self.moves[self.states[self.position]][action]
        if label not in self.states:
            self.states.append(label)
        successor = self.states.index(label)
        self._log.append((self.position, action, successor))
        self.position = successor

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
        )
