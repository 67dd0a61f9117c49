"""Random systems whose labels hide states, and the exact law of a policy on them."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from axplore.types import RESET, FloatArray

ACTIONS = ("left", "right")


@dataclass(frozen=True, eq=False)
class AliasedModel:
    """Hidden states 0, ..., n - 1, of which the first is the start.

    Attributes:
        rows: the probabilities of the next hidden state, by action and hidden state, [A, n, n].
        labels: what is seen of each hidden state, [n]; that of the start is its own.
    """

    rows: FloatArray
    labels: tuple[int, ...]

    def system(self, seed: int = 0) -> AliasedSystem:
        return AliasedSystem(self, seed)

    def chain(self, play: Callable[[Any], Any]) -> FloatArray:
        """The probabilities of the next hidden state if a function of the label says what to play, [n, n]."""
        start = np.eye(len(self.labels))[0]
        actions = [play(label) for label in self.labels]
        return np.array(
            [
                start if action is RESET else self.rows[ACTIONS.index(action), state]
                for state, action in enumerate(actions)
            ]
        )

    def arrival_law(self, play: Callable[[Any], Any], goal: int, horizon: int) -> FloatArray:
        """The probability to see the goal first after k = 0, ..., horizon steps, and to miss it, [horizon + 2]."""
        chain = self.chain(play)
        is_goal = np.array(self.labels) == goal
        mass = np.zeros(len(self.labels))
        mass[0] = 1.0
        law = np.zeros(horizon + 2)
        for step in range(horizon + 1):
            law[step] = mass[is_goal].sum()
            mass = np.where(is_goal, 0.0, mass) @ chain
        law[-1] = max(1.0 - law[:-1].sum(), 0.0)
        return law

    def restarted_steps(self, play: Callable[[Any], Any], goal: int, horizon: int) -> float:
        """The expected steps of the policy that is restarted by RESET after every miss."""
        law = self.arrival_law(play, goal, horizon)
        arrives = float(law[:-1].sum())
        if arrives == 0.0:
            return np.inf
        return float((law[:-1] * np.arange(horizon + 1)).sum() + law[-1] * (horizon + 1)) / arrives


class AliasedSystem:
    """Shows labels only."""

    actions = ACTIONS

    def __init__(self, model: AliasedModel, seed: int) -> None:
        self._cumulative = [[list(accumulate(row)) for row in rows] for rows in model.rows.tolist()]
        self._labels = model.labels
        self._random = random.Random(seed)
        self._state = 0

    def reseed(self, seed: int) -> None:
        self._random = random.Random(seed)

    def reset(self) -> int:
        self._state = 0
        return self._labels[0]

    def step(self, action: str) -> int:
        row = self._cumulative[ACTIONS.index(action)][self._state]
        self._state = min(bisect(row, self._random.random() * row[-1]), len(row) - 1)
        return self._labels[self._state]


def random_model(
    rng: np.random.Generator, n_states: int, n_labels: int, successors: int = 3, evenness: float = 0.7
) -> AliasedModel:
    """Random rows; every label but the start's is shared by about n_states / n_labels states.

    Args:
        rng: of everything.
        n_states: hidden ones.
        n_labels: of them, the start's included.
        successors: of each row.
        evenness: the parameter of the Dirichlet distribution of a row; rows of small ones are nearly deterministic.
    """
    rows = np.zeros((len(ACTIONS), n_states, n_states))
    for row in rows.reshape(-1, n_states):
        row[rng.choice(n_states, size=successors, replace=False)] = rng.dirichlet([evenness] * successors)
    labels = (0, *(1 + rng.permutation(n_states - 1) % (n_labels - 1)).tolist())
    return AliasedModel(rows, labels)


def random_policy(rng: np.random.Generator, model: AliasedModel) -> dict[int, str]:
    return {label: ACTIONS[rng.integers(len(ACTIONS))] for label in sorted(set(model.labels))}
