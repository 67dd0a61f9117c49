"""Candidates for alternatives, before they are checked: their rows, and families that change the rows of one state.

In a family, no policy is good in both models. Take a goal g, a state s, and what policies that keep the limit in the
model may play in s, its *good* rows. In the alternative these become worse and a *rival* row better, until every policy
that plays a good row in s takes more than ε steps above the rival. With the way beyond s replaced by a number x, let
φ(x) be the least steps from the initial state to g: it does not depend on the rows of s. So a target of T steps for the
rival and T + ε for the good rows becomes one number for each, and the least change of each row has a closed form
(`kernels`). What is left is a choice of T, from a grid.

The whole family is found once: what depends on the allocation of draws is only which member is told apart worst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.types import FloatArray, IntArray, State
from axplore_studies.lower_bounds.alternatives import MARGIN, AlternativeKind, ModelQuestion
from axplore_studies.lower_bounds.kernels import multiplier_of
from axplore_studies.lower_bounds.programme import divergence

UPWARDS: Final = -1.0
"""The sign of a change that makes a goal farther."""

DOWNWARDS: Final = 1.0
"""The sign of a change that brings a goal nearer."""

AIM: Final = 3 * MARGIN
"""The margin, in steps, that candidates aim at, so that they pass the check, which asks for `MARGIN`."""

_LEAST_LEAK: Final = 1e-10
"""Missing mass below this is rounding, not a new successor."""

Rows: TypeAlias = dict[int, FloatArray]
"""For each changed pair, the weight of every state and of `UNSEEN`, [S + 1]."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that may have disjoint correct answers.

    Attributes:
        kind: why they should be disjoint.
        goal: the state that this is about.
        rows: the rows that change.
    """

    kind: AlternativeKind
    goal: State
    rows: Rows


def moved_row(mdp: TabularMdp, sign: float, pair: int, values: FloatArray, multiplier: float, extra: int) -> FloatArray:
    """Returns the row p / (1 + sign x (V − m)) of `kernels`, its missing mass on the state `extra`, [S + 1]."""
    entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
    mean = values[mdp.pair_states[pair]] - 1
    row = np.zeros(mdp.n_states + 1)
    seen = mdp.successors[entries]
    row[seen] = mdp.probabilities[entries] / (1 + sign * multiplier * (values[seen] - mean))
    missing = 1 - float(row.sum())
    if missing > _LEAST_LEAK:
        row[extra] += missing
    return row


def row_divergences(mdp: TabularMdp, rows: Rows) -> dict[int, float]:
    """Returns KL(p ‖ p') of each changed pair."""
    found = {}
    for pair, row in rows.items():
        before = np.zeros(mdp.n_states + 1)
        entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
        before[mdp.successors[entries]] = mdp.probabilities[entries]
        found[pair] = divergence(before, row / row.sum())
    return found


def told_apart(mdp: TabularMdp, rows: Rows, visits: FloatArray) -> float:
    """Returns the information of draws about changed rows, in nats."""
    return sum(float(visits[pair]) * nats for pair, nats in row_divergences(mdp, rows).items())


_TARGETS: Final = 13
"""The number of targets T that are tried, from one where only the rival changes to one where only the good rows do."""

_CLOSE: Final = MARGIN / 10
_EVALUATIONS: Final = 60


def other_ways(question: ModelQuestion) -> Iterator[Candidate]:
    """Yields every member of every family, goal by goal."""
    mdp = question.mdp
    for goal in question.inner.states:
        for state in question.outer.states:
            if mdp.initial_state != goal != state:
                yield from Family.of(question, goal, state).members()


@dataclass(frozen=True, eq=False)
class Family:
    """The alternatives about one goal in which the rows of one state change.

    Attributes:
        question: what is asked.
        goal: the goal.
        goal_number: the index of the goal.
        place: the index of the state whose rows change.
        pairs: the pairs of this state, [n].
        least: the least steps from the initial state if each of them must be played there, and RESET at last, [n + 1].
    """

    question: ModelQuestion
    goal: State
    goal_number: int
    place: int
    pairs: IntArray
    least: FloatArray

    @classmethod
    def of(cls, question: ModelQuestion, goal: State, state: State) -> Family:
        """Returns the family of a goal and a state."""
        mdp, forced = question.mdp, question.forced
        number, place = mdp.index_of(goal), mdp.index_of(state)
        pairs = np.flatnonzero(mdp.pair_states == place)
        rows = (*pairs.tolist(), mdp.n_pairs + place)
        least = np.empty(len(rows))
        far = 10 * (question.radius + question.epsilon + 1)  # rows that take longer are not rivals
        for position, row in enumerate(rows):
            usable = question.playable.copy()
            usable[forced.row_states == place] = 0
            usable[row] = 1
            found = forced.least(number, usable, enough=far)
            least[position] = found.steps if found.settled else np.inf
        return cls(question, goal, number, place, pairs, least)

    @cached_property
    def is_good(self) -> npt.NDArray[np.bool_]:
        """Which rows of the state policies that keep the limit may play, RESET at last, [n + 1]."""
        return self.least <= self.question.limit(self.goal)

    @property
    def can_change(self) -> bool:
        """Whether the good rows can become worse; that of RESET is known."""
        return bool(self.is_good.any() and not self.is_good[-1])

    @property
    def good(self) -> IntArray:
        return self.pairs[self.is_good[:-1]]

    @property
    def rivals(self) -> IntArray:
        return self.pairs[~self.is_good[:-1]]

    @property
    def lowest_target(self) -> float:
        """The steps that a rival must take if the good rows do not change."""
        return self.question.limit(self.goal) - 2 * self.question.epsilon - AIM

    def members(self) -> Iterator[Candidate]:
        """Yields the alternatives, for each rival and target."""
        if not self.can_change:
            return
        if self.question.objective is Objective.WITHIN_RADIUS:
            yield from self._member(None, 0.0, self.question.limit(self.goal) + AIM)
            return
        epsilon = self.question.epsilon
        unchanged = float(self.least[~self.is_good].min())
        targets = [self.lowest_target]
        if unchanged < np.inf:
            targets = np.linspace(self.lowest_target, unchanged, _TARGETS)[:-1].tolist()
            yield from self._member(None, unchanged, unchanged + epsilon + AIM)
        for target in targets:
            for rival in self.rivals.tolist():
                yield from self._member(rival, target - AIM, target + epsilon + AIM)

    def raised(self, farther: float) -> Rows | None:
        """Returns the good rows, changed until every policy that plays one of them takes at least `farther`."""
        if farther <= float(self.least.min()):
            return {}
        found = self.beyond(farther, self.question.playable)
        return None if found is None else self._moved(UPWARDS, self.good, *found)

    def _member(self, rival: int | None, nearer: float, farther: float) -> Iterator[Candidate]:
        """Yields the alternative where the rival takes `nearer` steps at most, and the good rows at least `farther`."""
        rows = self.raised(farther)
        if rows is None:
            return
        if rival is not None:
            found = self.beyond(nearer, self.question.playable_inside)
            if found is None or found[0] <= 1:
                return
            rows = rows | self._moved(DOWNWARDS, np.array([rival]), *found)
        if rows:
            yield Candidate(AlternativeKind.OTHER_WAY, self.goal, rows)

    def _moved(self, sign: float, pairs: IntArray, beyond: float, values: FloatArray) -> Rows:
        """Returns the rows of these pairs, changed until the way beyond the state takes `beyond` steps."""
        mdp = self.question.mdp
        farthest = 1 + float(values[mdp.initial_index])
        extended = np.append(values, farthest)
        mean = beyond - 1
        room = mean if sign == DOWNWARDS else farthest - mean
        rows: Rows = {}
        for pair in pairs.tolist():
            entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
            gaps = values[mdp.successors[entries]] - mean
            multiplier = multiplier_of(sign, mdp.probabilities[entries], gaps, 1 / max(room, 1e-12))
            if multiplier > 0:
                extra = self.goal_number if sign == DOWNWARDS else mdp.n_states
                rows[pair] = moved_row(mdp, sign, pair, extended, multiplier, extra)
        return rows

    def beyond(self, steps: float, playable: IntArray) -> tuple[float, FloatArray] | None:
        """Returns the number x with φ(x) = `steps`, and the values of all states with it; None if there is none."""
        low, high = 0.0, steps + 1
        least, most = self._with(low, steps, playable), self._with(high, steps, playable)
        if most[0] < steps or least[0] > steps:
            return None
        for _ in range(_EVALUATIONS):
            middle = low + (high - low) * (0.5 if most[0] > steps + 1 else (steps - least[0]) / (most[0] - least[0]))
            found = self._with(middle, steps, playable)
            if abs(found[0] - steps) <= _CLOSE:
                return middle, found[1]
            if found[0] < steps:
                low, least = middle, found
            else:
                high, most = middle, found
        return None

    def _with(self, beyond: float, steps: float, playable: IntArray) -> tuple[float, FloatArray]:
        """φ(x), and the values of all states with it, [S]."""
        found = self.question.forced.least(
            self.goal_number, playable, fixed=(self.place, beyond), enough=2 * steps + 10
        )
        return found.steps, found.values
