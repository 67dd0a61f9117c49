"""Local search for the alternatives that an allocation of draws distinguishes worst.

An alternative with a state g nearer, or farther, than before is described by values V: the steps to g from each state.
Each row is then changed by the least that makes V a bound on the steps (`kernels.change_costs`), so that *every* V
gives an alternative, and the best V is found by descent.

No proof depends on this module: it proposes rows, and `ModelQuestion.separates` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.types import FloatArray, IntArray, State
from axplore_studies.lower_bounds.alternatives import UNSEEN, AlternativeKind, ModelQuestion
from axplore_studies.lower_bounds.candidates import (
    AIM,
    DOWNWARDS,
    UPWARDS,
    Candidate,
    Family,
    Rows,
    moved_row,
    told_apart,
)
from axplore_studies.lower_bounds.kernels import change_costs, descend

_REPEATS: Final = 6
"""The number of times that a policy is chosen anew for values found with the previous one."""

_EXITS: Final = 12
"""The number of ways out of the known states that are tried, the cheapest first."""

_RIVALS: Final = 8
"""The number of rivals of the best route to a goal that are tried, the nearest first."""


_STARTS: Final = 2
"""The number of states in which shortening a rival is tried."""

_PARTS: Final = (0.0, 0.2, 0.4, 0.6, 0.8)
_LEAST_WIDTH: Final = 0.01
"""The first fractions tried for the target between a rival and the good rows, and the final resolution."""


@dataclass(eq=False)
class _Rival:
    """A pair that no good policy to a goal plays in a state.

    Attributes:
        family: the family of the goal and the state.
        pair: the pair.
        steps: the least steps of a policy that plays it.
        values: the same from each state, [S].
        own_states: the states of S_L→ that the best policy does not meet.
    """

    family: Family
    pair: int
    steps: float
    values: FloatArray
    own_states: IntArray
    _part: float = 0.4
    _width: float = 0.0

    @classmethod
    def of(cls, family: Family, pair: int) -> _Rival:
        """Returns the rival, with its values."""
        question = family.question
        usable = question.playable.copy()
        usable[question.forced.row_states == family.place] = 0
        usable[pair] = 1
        least = question.forced.least(family.goal_number, usable, enough=3 * question.limit(family.goal))
        best = question.forced.least(family.goal_number, question.playable)
        is_own = ~question.forced.met(best.choices, family.goal_number)
        is_own[[family.place, family.goal_number]] = False
        inner = question.mdp.indices_of(question.inner.states)
        own_states = inner[is_own[inner]]
        return cls(family, pair, least.steps if least.settled else np.inf, least.values, own_states)

    def parts(self) -> tuple[float, ...]:
        """Returns the fractions of the range of targets to try next."""
        if not self._width:
            return _PARTS
        return tuple(sorted({max(0.0, self._part - self._width), self._part, min(0.95, self._part + self._width)}))

    def follow(self, part: float) -> None:
        """Continues from the best fraction, with a finer resolution if it was the middle one."""
        if not self._width:
            self._width = 0.1
        elif part == self._part:
            self._width = max(_LEAST_WIDTH, self._width / 2)
        self._part = part


@dataclass(eq=False)
class Search:
    """Proposes alternatives for allocations of draws, and remembers where the last ones were found.

    Attributes:
        question: what is asked.
    """

    question: ModelQuestion
    _remembered: dict[State, FloatArray] = field(default_factory=dict)
    _ways: dict[int, FloatArray] = field(default_factory=dict)
    _rivals: dict[State, list[_Rival]] = field(default_factory=dict)

    @property
    def mdp(self) -> TabularMdp:
        return self.question.mdp

    def candidates(self, visits: FloatArray) -> Iterator[Candidate]:
        """Yields alternatives of each kind and goal that these draws distinguish worst; visits are positive, [P]."""
        inner = self.question.inner.states
        for goal in inner:
            if goal != self.mdp.initial_state:
                yield from self._leaving(goal, visits)
        for goal in self.mdp.states:
            if goal not in self.question.outer.steps:
                yield from self._entering(goal, visits)
        yield from self._entering(UNSEEN, visits)
        for goal in inner:
            if goal != self.mdp.initial_state:
                yield from self._overtaken(goal, visits)

    # A member leaves: every route to it becomes longer than L + ε.

    def _leaving(self, goal: State, visits: FloatArray) -> Iterator[Candidate]:
        target = self.question.radius + self.question.epsilon + AIM
        known = self.mdp.indices_of(self.question.outer.states)
        number = self.mdp.index_of(goal)
        pairs = np.flatnonzero(np.isin(self.mdp.pair_states, known[known != number]))
        now = self.question.forced.least(number, self._playing_in(known)).values
        steps = now[self.mdp.initial_index]
        starts = [now * target / steps, now + target - steps]
        if goal in self._remembered:
            starts.append(self._remembered[goal])
        found = []
        for start in starts:
            values, free = self._completed(start, known, number, target)
            found.append(self._descended(UPWARDS, values, free, pairs, visits, 1 + target))
        _, values = min(found, key=lambda one: one[0])
        self._remembered[goal] = values
        yield Candidate(AlternativeKind.LEAVES, goal, self._changed(UPWARDS, values, pairs, number, target))

    # A state outside, or one never seen, enters: some route to it becomes no longer than L.

    def _entering(self, goal: State, visits: FloatArray) -> Iterator[Candidate]:
        target = self.question.radius - AIM
        if target < 1:
            return
        known = self.mdp.indices_of(self.question.inner.states)
        number = self.mdp.n_states if goal is UNSEEN else self.mdp.index_of(goal)
        every_pair = np.flatnonzero(np.isin(self.mdp.pair_states, known))
        exits = every_pair if goal is UNSEEN else self._pairs_into(number, every_pair)
        ways = [self._way_out(int(pair), number, known, visits, target) for pair in exits]
        ways.sort(key=lambda way: way[0])
        for _, values in ways[:_EXITS]:
            free = known[known != self.mdp.initial_index]
            found = self._lowered(values, free, number, every_pair, visits, target)
            if found is not None:
                yield Candidate(AlternativeKind.ENTERS, goal, found)

    def _way_out(
        self, pair: int, goal: int, known: IntArray, visits: FloatArray, target: float
    ) -> tuple[float, FloatArray]:
        """Returns values as if the goal were entered from this pair, and the cost of that in this row alone."""
        mdp = self.mdp
        exit_state = int(mdp.pair_states[pair])
        distances = self._distances(exit_state, known)
        values = np.full(mdp.n_states + 1, 1 + target)
        shifted = target - distances[mdp.initial_index] + distances
        values[known] = np.clip(shifted[known], 1.0, 1 + target)
        values[mdp.initial_index] = target
        values[goal] = 0.0
        if target - distances[mdp.initial_index] < 1:
            return np.inf, values
        _, costs = self._pair_costs(DOWNWARDS, values, np.array([pair]), visits, 1 + target)
        return float(costs[0]), values

    def _lowered(
        self, values: FloatArray, free: IntArray, goal: int, pairs: IntArray, visits: FloatArray, target: float
    ) -> Rows | None:
        """Returns the cheapest rows near values, free in some states, with a policy of at most `target` steps."""
        best: tuple[float, FloatArray, IntArray] | None = None
        for _ in range(_REPEATS):
            chosen = self._cheapest_policy(values, pairs, visits, target)
            information, values = self._descended(DOWNWARDS, values, free, chosen, visits, 1 + target)
            if best is not None and information >= best[0] * (1 - 1e-3):
                break
            best = information, values, chosen
        if best is None or not np.isfinite(best[0]):
            return None
        return self._changed(DOWNWARDS, best[1], best[2], goal, target)

    def _cheapest_policy(self, values: FloatArray, pairs: IntArray, visits: FloatArray, target: float) -> IntArray:
        """Returns, for each state that does not reset, the pair that attains the values at the least cost."""
        _, costs = self._pair_costs(DOWNWARDS, values, pairs, visits, 1 + target)
        order = np.lexsort((costs, self.mdp.pair_states[pairs]))
        states, first = np.unique(self.mdp.pair_states[pairs][order], return_index=True)
        chosen = pairs[order][first]
        return chosen[values[states] < 1 + target - 1e-9]

    # Another route to a member becomes so short, and the good ones so long, that no policy is good in both models.

    def _overtaken(self, goal: State, visits: FloatArray) -> Iterator[Candidate]:
        """Yields, for each rival of the best route, the cheapest rows with which it is more than ε steps shorter."""
        if self.question.objective is Objective.WITHIN_RADIUS:
            return
        for rival in self._rivals_to(goal):
            found = [self._overtaking(rival, part, visits) for part in rival.parts()]
            information, part, rows = min(found, key=lambda one: one[0])
            rival.follow(part)
            if information < np.inf:
                yield Candidate(AlternativeKind.OTHER_WAY, goal, rows)

    def _overtaking(self, rival: _Rival, part: float, visits: FloatArray) -> tuple[float, float, Rows]:
        """Returns the cheapest rows for a target: at fraction 0 the good rows do not change, at 1 the rival."""
        mdp, family = self.mdp, rival.family
        target = family.lowest_target + part * (rival.steps - family.lowest_target)
        raised = family.raised(target + self.question.epsilon + AIM)
        if raised is None or target < 1:
            return np.inf, part, {}
        beyond = family.beyond(target - AIM, self.question.playable_inside)
        if beyond is None or beyond[0] <= 1:
            return np.inf, part, {}
        # States that good policies meet keep their values and rows: shortening them would help those policies, too.
        pairs = np.append(np.flatnonzero(np.isin(mdp.pair_states, rival.own_states)), rival.pair)
        best: tuple[float, Rows] = np.inf, {}
        for values in self._shortened(rival, *beyond, pairs, visits, target - AIM):
            lowered = self._lowered(values, rival.own_states, family.goal_number, pairs, visits, target - AIM)
            if lowered is not None:
                rows = raised | lowered
                best = min(best, (told_apart(mdp, rows, visits), rows), key=lambda one: one[0])
        return best[0], part, best[1]

    def _shortened(
        self, rival: _Rival, beyond: float, values: FloatArray, pairs: IntArray, visits: FloatArray, target: float
    ) -> list[FloatArray]:
        """Yields initial values with the route beyond the rival shortened in one of its states, cheapest first."""
        known = self.mdp.indices_of(self.question.inner.states)
        own, place = rival.own_states, rival.family.place
        starts = []
        for state in (place, *own.tolist()):
            distances = self._distances(state, known)
            left = beyond - distances[place]
            if left >= 1 or state == place:
                start = np.append(values, 1 + target)
                start[own] = np.clip(np.minimum(rival.values[own], left + distances[own]), 1.0, 1 + target)
                _, costs = self._pair_costs(DOWNWARDS, start, pairs, visits, 1 + target)
                each = np.full(self.mdp.n_states, np.inf)
                np.minimum.at(each, self.mdp.pair_states[pairs], costs)
                starts.append((float(each[np.isfinite(each)].sum()), state, start))
        starts.sort(key=lambda one: one[:2])
        return [start for _, _, start in starts[:_STARTS]]

    def _rivals_to(self, goal: State) -> list[_Rival]:
        """Returns the pairs that no good policy to a goal plays, the best first."""
        if goal not in self._rivals:
            found = []
            for state in self.question.outer.states:
                family = Family.of(self.question, goal, state)
                if state != goal and family.can_change:
                    found += [_Rival.of(family, int(pair)) for pair in family.rivals]
            found.sort(key=lambda rival: rival.steps)
            self._rivals[goal] = [rival for rival in found if rival.steps < np.inf][:_RIVALS]
        return self._rivals[goal]

    # Shared by all three.

    def _descended(
        self, sign: float, values: FloatArray, free: IntArray, pairs: IntArray, visits: FloatArray, farthest: float
    ) -> tuple[float, FloatArray]:
        """Returns the cheapest values near the given ones, which only free states may leave, and their cost."""
        mdp = self.mdp
        found = values.copy()
        cost = descend(
            sign, found, free, pairs, mdp.pair_states, mdp.row_offsets, mdp.successors, mdp.probabilities,
            visits, farthest,
        )  # fmt: skip
        return float(cost), found

    def _completed(self, start: FloatArray, known: IntArray, goal: int, target: float) -> tuple[FloatArray, IntArray]:
        """Returns values for the search near `start`, [S + 1], and the states where they are free."""
        initial = self.mdp.initial_index
        values = np.full(self.mdp.n_states + 1, 1 + target)
        values[known] = np.clip(start[known], 1.0, 1 + target)
        values[initial], values[goal] = target, 0.0
        return values, known[(known != initial) & (known != goal)]

    def _pair_costs(
        self, sign: float, values: FloatArray, pairs: IntArray, visits: FloatArray, farthest: float
    ) -> tuple[FloatArray, FloatArray]:
        """Returns the multiplier and the cost of each pair, [n] and [n]."""
        mdp = self.mdp
        multipliers, costs = np.empty(len(pairs)), np.empty(len(pairs))
        change_costs(
            sign, values, pairs, mdp.pair_states, mdp.row_offsets, mdp.successors, mdp.probabilities,
            visits, farthest, np.zeros(mdp.n_states + 1), multipliers, costs,
        )  # fmt: skip
        return multipliers, costs

    def _changed(self, sign: float, values: FloatArray, pairs: IntArray, goal: int, target: float) -> Rows:
        """Returns the rows that make the values a bound."""
        multipliers, _ = self._pair_costs(sign, values, pairs, np.ones(self.mdp.n_pairs), 1 + target)
        rows: Rows = {}
        for pair, multiplier in zip(pairs.tolist(), multipliers.tolist(), strict=True):
            if multiplier > 0:
                extra = goal if sign == DOWNWARDS else self.mdp.n_states
                rows[pair] = moved_row(self.mdp, sign, pair, values, multiplier, extra)
        return rows

    def _playing_in(self, known: IntArray) -> IntArray:
        """Returns which rows a policy restricted to these states may play: their pairs, and RESET everywhere, [R]."""
        forced = self.question.forced
        usable = np.isin(forced.row_states, known)
        usable[self.mdp.n_pairs :] = True
        return usable.astype(np.int64)

    def _distances(self, place: int, known: IntArray) -> FloatArray:
        """Returns the least steps to a state from each other one, restricted to these states, [S]."""
        if place not in self._ways:
            self._ways[place] = self.question.forced.least(place, self._playing_in(known)).values
        return self._ways[place]

    def _pairs_into(self, goal: int, pairs: IntArray) -> IntArray:
        """Returns the pairs that lead to the goal in the model."""
        entries = self.mdp.successors == goal
        return pairs[np.isin(pairs, self.mdp.transition_pairs[entries])]
