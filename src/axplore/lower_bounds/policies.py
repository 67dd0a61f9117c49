"""Whether one policy is good in two models: an exact search over deterministic stationary policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.lower_bounds.kernels import least_steps
from axplore.mdp import TabularMdp
from axplore.types import FloatArray, IntArray

MOST_NODES: Final = 3000
"""The number of sets of policies after which the search gives up without a result."""


@dataclass(frozen=True, eq=False)
class ForcedModel:
    """A model whose rows are its pairs, followed by RESET in each state.

    Attributes:
        initial: the index of the initial state.
        row_states: the state of each row, [R].
        offsets: the first entry of each row, and the number of entries, [R + 1].
        successors: the successor of each entry, [E].
        probabilities: the probability of each entry, [E].
    """

    initial: int
    row_states: IntArray
    offsets: IntArray
    successors: IntArray
    probabilities: FloatArray

    @classmethod
    def of(cls, mdp: TabularMdp) -> ForcedModel:
        """Returns the rows of a model."""
        n_states = mdp.n_states
        return cls(
            mdp.initial_index,
            np.concatenate((mdp.pair_states, np.arange(n_states))),
            np.concatenate((mdp.row_offsets, mdp.n_transitions + 1 + np.arange(n_states))),
            np.concatenate((mdp.successors, np.full(n_states, mdp.initial_index))),
            np.concatenate((mdp.probabilities, np.ones(n_states))),
        )

    @cached_property
    def all_rows(self) -> IntArray:
        """1 for every row: all are usable, [R]."""
        return np.ones(len(self.row_states), dtype=np.int64)

    @property
    def n_states(self) -> int:
        return int(self.row_states[-1]) + 1

    def least(
        self,
        goal: int,
        usable: IntArray | None = None,
        *,
        enough: float = np.inf,
        below: FloatArray | None = None,
        fixed: tuple[int, float] = (-1, 0.0),
    ) -> Least:
        """Returns the least expected steps to a goal from each state, where only some rows may be played.

        Args:
            goal: the index of the goal.
            usable: 1 for each row that may be played, else 0, [R]; all by default.
            enough: the search ends once the initial state takes more than this.
            below: lower bounds to start from, [S].
            fixed: a state and its value, as if the rest of the way were known.
        """
        rows = self.all_rows if usable is None else usable
        values = np.zeros(self.n_states) if below is None else below.copy()
        choices = np.full(self.n_states, -1, dtype=np.int64)
        state, value = fixed
        if state >= 0:
            values[state] = value
        settled = least_steps(
            goal, self.initial, self.row_states, self.offsets, self.successors, self.probabilities,
            rows, state, value, enough, values, choices,
        )  # fmt: skip
        return Least(values, choices, settled, float(values[self.initial]))

    def pair_values(self, values: FloatArray) -> FloatArray:
        """Returns one plus the mean value of the successor, of each row, [R]."""
        rows = np.repeat(np.arange(len(self.row_states)), np.diff(self.offsets))
        means = np.bincount(rows, self.probabilities * values[self.successors])
        return 1.0 + means.astype(np.float64)

    def met(self, choices: IntArray, goal: int) -> npt.NDArray[np.bool_]:
        """Returns the states where a policy has to choose, [S]: those it meets before the goal."""
        found = np.zeros(self.n_states, dtype=np.bool_)
        waiting = [self.initial]
        while waiting:
            state = waiting.pop()
            if found[state] or state == goal:
                continue
            found[state] = True
            waiting += self.successors[self.offsets[choices[state]] : self.offsets[choices[state] + 1]].tolist()
        return found


@dataclass(frozen=True, eq=False)
class Least:
    """Least expected steps under forced actions.

    Attributes:
        values: lower bounds from each state, [S].
        choices: the row that attains them in each state, [S].
        settled: whether the values no longer changed.
        steps: the lower bound from the initial state.
    """

    values: FloatArray
    choices: IntArray
    settled: bool
    steps: float


Limited: TypeAlias = tuple[ForcedModel, float]
"""A model with the most steps that a policy may take from its initial state."""


def has_common_policy(first: Limited, second: Limited, goal: int, playable: IntArray) -> bool:
    """Returns whether some deterministic stationary policy may keep both limits; False only if provably none does.

    Splits the policies by what they play in one state after another, and drops a part when the best of it exceeds a
    limit in either model. The second model may have one state more, at the end, which only resets.

    Args:
        first: a model with its limit.
        second: another model with its limit.
        goal: the index of the goal of the policies.
        playable: 1 for each row of the first model that policies may play, else 0, [R].
    """
    rows = len(first[0].row_states)
    waiting: list[tuple[IntArray, FloatArray | None, FloatArray | None]] = [(playable, None, None)]
    looked_at = 0
    while waiting:
        looked_at += 1
        if looked_at > MOST_NODES:
            return True
        usable, below, other_below = waiting.pop()
        here = first[0].least(goal, usable, enough=first[1], below=below)
        if here.steps > first[1]:
            continue
        other_usable = np.concatenate((usable, np.ones(len(second[0].row_states) - rows, dtype=np.int64)))
        there = second[0].least(goal, other_usable, enough=second[1], below=other_below)
        if there.steps > second[1]:
            continue
        if not (here.settled and there.settled) or _keeps(second, there, here.choices, goal):
            return True
        if _keeps(first, here, there.choices[: len(here.choices)], goal):
            return True
        state = _most_disputed(first[0], second[0], here, there, goal)
        if state < 0:
            return True
        for row in np.flatnonzero((first[0].row_states == state) & (usable == 1)):
            child = usable.copy()
            child[first[0].row_states == state] = 0
            child[row] = 1
            waiting.append((child, here.values, there.values))
    return False


def _keeps(limited: Limited, least: Least, choices: IntArray, goal: int) -> bool:
    """Returns whether the policy, and its best completion where it says nothing, keeps the limit of this model."""
    model, limit = limited
    usable = model.all_rows.copy()
    named = np.flatnonzero(choices >= 0)
    usable[np.isin(model.row_states, named)] = 0
    usable[choices[named]] = 1
    taken = model.least(goal, usable, enough=limit, below=least.values)
    return taken.steps <= limit


def _most_disputed(first: ForcedModel, second: ForcedModel, here: Least, there: Least, goal: int) -> int:
    """Returns the state where the best policies of both models differ, and lose most by the other's choice."""
    n_states = len(here.choices)
    met = first.met(here.choices, goal) | second.met(there.choices, goal)[:n_states]
    differing = np.flatnonzero(met & (here.choices != there.choices[:n_states]))
    if not differing.size:
        return -1
    lost_there = second.pair_values(there.values)[here.choices[differing]] - there.values[differing]
    lost_here = first.pair_values(here.values)[there.choices[differing]] - here.values[differing]
    return int(differing[np.argmax(lost_there + lost_here)])
