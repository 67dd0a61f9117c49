"""Lower bounds in which the pairs with one successor spend their budget once, and not each of them all of it.

Row by row, every pair with one successor may lead elsewhere as often as its draws allow, so that a way of m steps is
shortened by about m / 2 times what one of its pairs could take off. But the martingale that these pairs share bounds
the sum of (draws - 1) log(1/p) over all of them (Eq. 8): what one of them spends, the others cannot. Theorem 4 of
docs/algorithms/certified.md turns this into a bound. Let W be a lower bound as if these pairs were certain. Then no
policy takes fewer steps than W(s0) less a *deduction*, the most that a single pair can take off with the whole budget.

A pair with k + 1 draws takes off at most `budget * W(y) / k` whenever it is played, y being its successor: its *gain*.
The *detour* of a pair is by how much its backup exceeds the value of its state. Who wants the gain of a pair has to
get there, and pays for the detours on the way; and who wants it again, for those on the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from axplore.compilation import compiled
from axplore.proofs.bounds import GoalValues, IntervalModel, empirical_path, least_steps, lower_path
from axplore.proofs.row_kernels import RegionRows, lower_backup
from axplore.statistics.confidence import SharedBudget
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray

MOST_GAIN: Final = 2.0 - 1e-6
"""No gain is larger: a pair that leads a step nearer to the goal is entered again for a detour of two steps."""

SAFETY: Final = 1e-8
"""The part by which gains are enlarged, and by how much detours are shortened, far above the rounding of both."""

SAME_VALUE: Final = 1e-9
"""Values nearer than this count as equal."""

ABOVE: Final = (1.0, 1.5, 2.0)
"""By how much the value of the initial state towards the unseen exceeds the steps to be proven."""

FALL, FALL_IF_UNCERTAIN = 1.0, 0.75
"""By how much values towards the unseen fall with each step from the initial state: where pairs with several successors
lead away from it, something has to be left for what they may lead to."""

ENOUGH_MORE: Final = 1.02
"""Visits are estimated with this factor more."""

MOST_RELAXATIONS: Final = 1000


@dataclass(frozen=True, eq=False)
class Shortcuts:
    """What the pairs with one successor may take off the steps to a goal.

    Budgets that the same pairs have joined share all of this but what it takes off.

    Attributes:
        model: counts and region.
        goal: the index of a state, or of the unseen.
        values: W, [n + others].
        joined: which pairs have joined, [P].
    """

    model: IntervalModel
    goal: int
    values: FloatArray
    joined: BoolArray

    @property
    def are_bounded(self) -> bool:
        """Whether W is a lower bound as if these pairs were certain."""
        return bool((self._backups - self._owned >= -SAFETY / 10.0).all())

    def deduction(self, budget: SharedBudget) -> float:
        """The most that one of them takes off from the initial state; infinite if there is no bound."""
        repeats = (self.model.visits - budget.after).astype(np.float64)
        gains = np.where(self.joined, self._divided(budget, repeats), 0.0)
        matter = gains > self.detours
        if (matter & ((gains > self._most_gains) | (repeats < _nats(budget)))).any():
            return np.inf
        return float(np.max(gains - self._ways - self.detours, where=matter, initial=0.0))

    def visits_for(self, budget: SharedBudget, deduction: float) -> FloatArray:
        """The visits of each pair with which no more than this is taken off, [P]; infinite if no visits suffice."""
        allowed = np.maximum(self.detours, np.minimum(deduction + self._ways + self.detours, self._most_gains))
        visits = budget.after + np.maximum(self._divided(budget, np.maximum(allowed, 0.0)), _nats(budget))
        return np.where(self.joined, visits, 0.0)

    @property
    def visits_to_be_bounded(self) -> FloatArray:
        """The visits of each pair with several successors with which W would be a lower bound, [P]; an estimate."""
        model = self.model
        ahead = self.values[model.rows.successors] * model.rows.frequencies
        likely = 1.0 + np.bincount(model.pair_of_entries, ahead, minlength=model.n_pairs)
        # What may be less than the frequencies say falls like 1 / visits.
        less, may_be_less = likely - self._backups, likely - self._owned
        growth = np.divide(less, may_be_less, out=np.full(len(less), np.inf), where=may_be_less > 0.0)
        return np.where(self._backups < self._owned, model.visits * growth * ENOUGH_MORE, 0.0)

    def _divided(self, budget: SharedBudget, divisors: FloatArray) -> FloatArray:
        """The budget times the value ahead, by these divisors: repeats or gains, [P]."""
        spent = _nats(budget) * self.values[self.model.single_successors]
        parts: FloatArray = np.divide(spent, divisors, out=np.full(len(spent), np.inf), where=divisors > 0.0)
        return parts

    @cached_property
    def _owned(self) -> FloatArray:
        """The value of the state of each pair, [P]."""
        return self.values[self.model.owners]

    @cached_property
    def _backups(self) -> FloatArray:
        """One step and the least mean of W, as if these pairs were certain, [P]; infinite in the goal."""
        model = self.model
        backups = 1.0 + self.values[model.single_successors]
        others = np.flatnonzero(~self.joined)
        if len(others):
            _find_backups(model.as_certain(self.joined).rows_for(self.goal, -1.0), others, self.values, backups)
        backups[model.owners == self.goal] = np.inf
        return backups

    @cached_property
    def detours(self) -> FloatArray:
        """By how much the backup of each pair exceeds the value of its state, [P]."""
        detours: FloatArray = np.maximum(self._backups - self._owned - SAFETY, 0.0)
        return detours

    @cached_property
    def _resets(self) -> FloatArray:
        """The detour of a RESET in each known state, [n]; infinite in the initial state, where it is of no use."""
        resets: FloatArray = np.maximum(1.0 + self.values[0] - self.values[: self.model.n_known] - SAFETY, 0.0)
        resets[0] = np.inf
        return resets

    @cached_property
    def _edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """From which known state to which, and by what detour, for each entry and each RESET.

        States outside reset, so that what leads there leads to the initial state. No way continues from the goal.
        """
        model, n_known = self.model, self.model.n_known
        pairs = model.pair_of_entries
        goes_on = (model.rows.successors != self.goal) & (model.owners[pairs] != self.goal)
        pairs, heads = pairs[goes_on], model.rows.successors[goes_on]
        return (
            np.append(model.owners[pairs], np.arange(1, n_known)),
            np.append(np.where(heads < n_known, heads, 0), np.zeros(n_known - 1, dtype=np.int64)),
            np.append(self.detours[pairs], self._resets[1:]),
        )

    @cached_property
    def _ways(self) -> FloatArray:
        """The detours on the way from the initial state to that of each pair, at least, [P]."""
        tails, heads, detours = self._edges
        values: FloatArray = self.values[: self.model.n_known]
        # Where all pairs are certain, the detours of a way are its steps less what the values fall by.
        ways: FloatArray = np.maximum(self.model.hops[: len(values)] + values - values[0] - SAFETY, 0.0)
        ways[0] = 0.0
        return ways[self.model.owners] if _relax(tails, heads, detours, ways) else np.zeros(self.model.n_pairs)

    @cached_property
    def _most_gains(self) -> FloatArray:
        """What each pair may gain so that no way back to it is worth the detours, [P]."""
        model, n_known = self.model, self.model.n_known
        least = self._resets.copy()
        np.minimum.at(least, model.owners, self.detours)
        leaving = np.append(least, np.zeros(len(self.values) - n_known))
        if self.goal < len(leaving):
            leaving[self.goal] = np.inf
        ahead = model.single_successors
        back = np.where(ahead == model.owners, 0.0, leaving[ahead])
        return np.maximum(self._least_rises, self.detours + back)

    @cached_property
    def _least_rises(self) -> FloatArray:
        """The least detour that leads up again to the value of the state of a pair that leads to a smaller one, [P].

        A way back to the state passes the middle between both values upwards, and so takes such a detour. It is at most
        `MOST_GAIN`, and 0 for pairs that do not lead to a smaller value.
        """
        tails, heads, detours = self._edges
        ahead = self.model.single_successors
        ahead_value = np.where(ahead < self.model.n_known, self.values[ahead], self.values[0])
        ahead_value[ahead == self.goal] = 0.0
        order = np.argsort((ahead_value + self._owned) / 2.0)
        middles, least = (ahead_value + self._owned)[order] / 2.0, np.full(len(order), MOST_GAIN)
        rises = np.flatnonzero((detours < MOST_GAIN) & (self.values[heads] > self.values[tails]))
        lows, highs = np.searchsorted(middles, self.values[[tails[rises], heads[rises]]], side="right")
        for low, high, detour in zip(lows, highs, detours[rises], strict=True):
            np.minimum(least[low:high], detour, out=least[low:high])
        rise = np.empty(len(order))
        rise[order] = least
        return np.where(ahead_value < self._owned - SAME_VALUE, rise, 0.0)


def _nats(budget: SharedBudget) -> float:
    return budget.nats * (1.0 + SAFETY)


def deducted_path(model: IntervalModel, goal: int, steps: float) -> GoalValues | None:
    """The best lower bound of the steps to a goal by a deduction; None if there is none.

    Args:
        model: counts and region.
        goal: the index of a state, or of the unseen.
        steps: what is to be proven; bounds of the steps to the unseen are no larger than is useful for that.
    """
    anywhere = np.full(model.n_known, RESET_PAIR)
    paths: list[GoalValues] = []
    for joined, budgets in _by_joined(model):
        for found in _candidates(model, goal, steps, joined):
            if found.are_bounded:
                deduction = min(found.deduction(budget) for budget in budgets)
                paths.append(GoalValues(goal, found.values, anywhere, proven=True, deduction=deduction))
    return max(paths, key=lambda path: path.at_least, default=None)


def _by_joined(model: IntervalModel) -> list[tuple[BoolArray, list[SharedBudget]]]:
    """The pairs that have joined a budget, [P], and the budgets that the same pairs have joined."""
    groups: list[tuple[BoolArray, list[SharedBudget]]] = []
    for budget in model.budgets_to_deduct:
        joined = model.with_one_successor(budget.after)
        if groups and np.array_equal(groups[-1][0], joined):
            groups[-1][1].append(budget)
        else:
            groups.append((joined, [budget]))
    return groups


def visits_deducted(model: IntervalModel, goal: int, steps: float) -> Iterator[FloatArray]:
    """Yields visits with which a deduction would leave more than `steps`, [P] each, if the frequencies stayed.

    All pairs with one successor are taken to join, and those with several to have been drawn enough.
    """
    for shortcuts in _candidates(model, goal, steps, model.with_one_successor(0)):
        left = least_steps(shortcuts.values) - steps
        if left > 0.0:
            for budget in model.budgets_to_deduct:
                visits = shortcuts.visits_for(budget, left * (1.0 - SAFETY))
                yield np.maximum(visits, shortcuts.visits_to_be_bounded)


def _candidates(model: IntervalModel, goal: int, steps: float, joined: BoolArray) -> Iterator[Shortcuts]:
    """Yields values from which something may be deducted: those as if the pairs of a budget were certain."""
    if goal != model.unseen:
        yield Shortcuts(model, goal, as_if_certain(model, goal, joined).values, joined)
        return
    fall = model.hops.astype(np.float64) * (FALL_IF_UNCERTAIN if model.has_several else FALL)
    for above in ABOVE:  # no certain pair leads there, so that any number of steps would do
        yield Shortcuts(model, goal, _from_start(steps + above, fall, model), joined)


def as_if_certain(model: IntervalModel, goal: int, pairs: BoolArray) -> GoalValues:
    """A lower bound of the steps to a goal that was seen, as if some pairs, [P], were certain."""
    return lower_path(model.as_certain(pairs), goal, empirical_path(model, goal).values)


def _from_start(steps: float, fall: FloatArray, model: IntervalModel) -> FloatArray:
    """Values that fall from that of the initial state, [n + others]; other states than the known ones reset."""
    values = np.maximum(steps - fall, 0.0)
    values[model.n_known :] = 1.0 + steps
    return values


@compiled
def _relax(tails: IntArray, heads: IntArray, lengths: FloatArray, ways: FloatArray) -> bool:
    """Shortens ways until none is shorter over another edge; returns False if that takes too long."""
    for _ in range(MOST_RELAXATIONS):
        is_done = True
        for edge in range(len(lengths)):
            if ways[tails[edge]] + lengths[edge] < ways[heads[edge]]:
                ways[heads[edge]] = ways[tails[edge]] + lengths[edge]
                is_done = False
        if is_done:
            return True
    return False


@compiled
def _find_backups(rows: RegionRows, pairs: IntArray, values: FloatArray, backups: FloatArray) -> None:
    for pair in pairs:
        backups[pair] = lower_backup(rows, pair, values)[0]
