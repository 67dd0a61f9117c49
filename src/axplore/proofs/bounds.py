"""Shortest paths when only a confidence region of the model is known: lower, upper and regret bounds.

`IntervalModel` joins the counts with their confidence region and numbers states by index: the known ones in the
order of admission, then every other state seen. The functions answer for one goal:

- `empirical_path`: the best policy if the observed frequencies were the truth. An estimate, no bound.
- `upper_path`: a policy with a proven upper bound of its expected steps, or one that says it proved nothing.
- `lower_path`: a proven lower bound of the expected steps of every policy restricted to the known states.
- `regret_path`: a proven bound of what a policy loses against the best one.

A vector is a bound only after its Bellman check: the solvers return the residual of their last sweep, and the values
are scaled by it ([DisCo] Lem. 5, after Bertsekas and Tsitsiklis 1991, Lem. 1). The proofs are in
docs/algorithms/certified.md. Steps are counted unless the model was given costs; then all of this holds of costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from msgspec import structs

from axplore.compressed import offsets_from, offsets_of, without
from axplore.graphs.search import Graph, graph_from, hops_from, reversed_graph
from axplore.proofs.bound_kernels import (
    ANY_POLICY,
    BEYOND_LIMIT,
    allowed_pairs,
    local_regrets,
    lower_bound,
    met_by,
    regret_bound,
    upper_bound,
)
from axplore.proofs.estimate_kernels import (
    ESTIMATE_CHANGE,
    empirical_values,
    estimated_steps,
    least_upper_bounds,
)
from axplore.proofs.row_kernels import UNKNOWN_SHIFT, RegionRows, grown_balls
from axplore.proofs.sensitivity import lower_gain, regret_gain, upper_gain
from axplore.proofs.sharpening import (
    WAY_ROUNDING,
    bounds_along,
    certain_way,
    certain_ways,
    sharp_for_lower,
    sharp_for_upper,
)
from axplore.records.counts import Counts
from axplore.records.vectors import Vector
from axplore.statistics.confidence import ConfidenceRegion, SharedBudget
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray

TOLERANCE: Final = 1e-6
"""The residual that solvers aim at; it loosens a bound by about this part."""

TRIAL_TOLERANCE: Final = 1e-4
"""The same where it is only asked what more draws might bring."""

LEAST_RESIDUAL: Final = 1e-13
"""No residual smaller than this is aimed at: rounding would not let it be reached."""

INNER_SWEEPS: Final = 10
INNER_SWEEPS_BELOW: Final = 30
"""Sweeps between two improvements, for upper and lower bounds; there, policies and rows aim at the same thing."""

MOST_SLACK: Final = 1.0
"""Gains are asked for slacks up to this one, in nats: slack · exp(-slack), which they follow, is greatest there."""

ROUNDING: Final = 1e-9
MARGIN: Final = 1e-13
LARGEST: Final = 1e9
"""The verifier corrects vectors by these before it concludes from them: docs/certificate.md, "One rule"."""

STRICTNESS: Final = 2.0
"""Decisions are made with a correction this many times as large, so that the verifier concludes what was decided."""


def correction(values: FloatArray | Vector[np.float64]) -> float:
    """By what part of itself a bound has to be weakened before anything is decided by it."""
    return correction_for(float(values.max(initial=0.0)))


def correction_for(largest: float) -> float:
    """The same of a bound with this largest value."""
    return STRICTNESS * max(ROUNDING, 10.0 * MARGIN * (1.0 + largest)) if largest <= LARGEST else np.inf


def most_steps(values: FloatArray | Vector[np.float64]) -> float:
    """What an upper bound decides by: its value in the initial state, corrected upwards."""
    return float(values[0]) * (1.0 + correction(values)) if values[0] else 0.0


def least_steps(values: FloatArray | Vector[np.float64], deduction: float = 0.0) -> float:
    """What a lower bound decides by: its value in the initial state, corrected downwards, less the deduction."""
    return max(0.0, float(values[0]) / (1.0 + correction(values)) - deduction)


WHOLE_UP_TO: Final = 1000
"""The number of known states up to which bounds and policies are kept in every state."""

MOST_BUDGET: Final = 60.0
"""Nothing is deducted from larger budgets, after many surprises: then each row by itself says more."""

CERTAIN: Final = 1e-300
"""The slack of a pair that counts as certain; 0 is that of a row that is known."""

NO_WAY: Final = -1
"""In place of the state before one that no way leads to."""

NOT_SEEN: Final = -1
"""In place of the index of a state that is not among those seen."""

MOST_NUMBERS: Final = 2**22
"""The number of values and choices that are remembered of estimates, and of starts: up to 32 MB each."""

MOST_SHARP: Final = 2**20
"""The same of balls for single goals: up to 8 MB, because garbage may keep those of some rounds."""


Start: TypeAlias = tuple[FloatArray, FloatArray]
Asked: TypeAlias = tuple[str, int, int, float]
"""Which bound, of which goal, with how many known states, and up to which value."""

Key = TypeVar("Key")
Item = TypeVar("Item")


def _remember(remembered: dict[Key, Item], key: Key, item: Item, size: int, most: int = MOST_NUMBERS) -> None:
    """Caches an item of a size; clears a full cache first."""
    if (len(remembered) + 1) * size > most:
        remembered.clear()
    remembered[key] = item


class _OfFrequencies(Generic[Item]):
    """Like `cached_property`, of what follows from frequencies alone: models with the same ones share it."""

    def __init__(self, find: Callable[[IntervalModel], Item]) -> None:
        self._find, self._name, self.__doc__ = find, find.__name__, find.__doc__

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...

    @overload
    def __get__(self, model: IntervalModel, owner: type) -> Item: ...

    def __get__(self, model: IntervalModel | None, owner: type) -> Self | Item:
        if model is None:
            return self
        if self._name not in model.shared:
            model.shared[self._name] = self._find(model)
        found: Item = model.shared[self._name]
        return found


def _of_frequencies(find: Callable[[IntervalModel], Item]) -> _OfFrequencies[Item]:
    return _OfFrequencies(find)


@dataclass(frozen=True, eq=False)
class IntervalModel:
    """Counts and confidence region, by index.

    Attributes:
        rows: region and counts in the form of the kernels.
        visits: how often each pair was drawn, [P].
        numbers: the world's number of each state, known states first, [n + others].
        n_known: n, how many states are known.
        limit: values beyond it are not followed: an upper bound is then infinite, a lower one stays at the limit.
        tolerance: the residual that solvers aim at, as a part of the least cost.
        estimates: empirical paths found so far, by goal and `n_allowed`; they depend on the frequencies only.
        shared: what else was found that depends on the frequencies only, by name.
        starts: where solvers ended last, by what they were asked for: values and shifts. From there they need fewer
            sweeps when only the slacks have changed: in trials. A bound that proves something begins at the estimate,
            so that it depends on the counts alone, and not on what was asked before.
        solved: the bounds found so far, by what they were asked for; not those of trials.
        counts, log_levels: what sharper balls are made of, [E] and [P]; none are made without them.
        shared_budgets: what pairs with one successor share (Eq. 8).
        sharp: the last balls made for single goals, by goal, side and `n_allowed`.
        imagined: the model whose visits are imagined to have grown, and the inverse of their growth, [P]; or nothing.
        groups: equal for pairs that share their draws, [P]; None if none do.
        closing: the draws after which nothing but what was seen can follow each pair, [P]; None if that is never known.
        whole_up_to: with more known states, vectors are kept only where they matter: memory would be short.
        asked: the indices of the goals that are asked for, any one of which will do; None for all states.
    """

    rows: RegionRows
    visits: IntArray
    numbers: IntArray
    n_known: int
    limit: float
    tolerance: float = TOLERANCE
    estimates: dict[tuple[int, int], GoalValues] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    starts: dict[tuple[str, int, int], Start] = field(default_factory=dict)
    counts: FloatArray | None = None
    log_levels: FloatArray | None = None
    shared_budgets: tuple[SharedBudget, ...] = ()
    sharp: dict[tuple[int, float, int], RegionRows] = field(default_factory=dict)
    imagined: tuple[IntervalModel, FloatArray] | None = None
    groups: IntArray | None = None
    closing: FloatArray | None = None
    whole_up_to: int = WHOLE_UP_TO
    asked: tuple[int, ...] | None = None
    solved: dict[Asked, GoalValues] = field(default_factory=dict, init=False)  # `replace` leaves it empty

    @property
    def is_large(self) -> bool:
        """Whether vectors are kept only where they matter from the initial state on."""
        return self.n_known > self.whole_up_to

    @property
    def unseen(self) -> int:
        """The index of the goal that stands for every state never seen."""
        return len(self.numbers)

    @property
    def frontier(self) -> range:
        """The indices of the states that were seen but are not known."""
        return range(self.n_known, len(self.numbers))

    @property
    def n_pairs(self) -> int:
        return len(self.visits)

    @property
    def times_met(self) -> FloatArray:
        """How often each entry was drawn, [E]; frequencies may have been moved to what is assumed."""
        assert self.counts is not None
        return self.counts

    def with_visits(self, visits: FloatArray) -> IntervalModel:
        """What more draws, [P], would bring if the frequencies stayed: shares nearer to them, slacks by 1 / visits."""
        growth = self.visits / visits
        rows = _grown(self.rows, growth)
        if self.closing is not None:
            rows = rows._replace(closed=rows.closed | (visits >= self.closing))
        return self._with(rows=rows, tolerance=TRIAL_TOLERANCE, sharp={}, imagined=(self, growth))

    def _with(self, **changes: Any) -> IntervalModel:
        """What `replace` returns, in a quarter of the time: trials need a model for each step."""
        made = object.__new__(IntervalModel)
        made.__dict__.update((name, self.__dict__[name]) for name in FIELDS)
        made.__dict__.update(changes, solved={})
        return made

    def per_group(self, per_pair: FloatArray) -> FloatArray:
        """The sum over the pairs that share their draws with each pair, [P]."""
        if self.groups is None:
            return per_pair
        totals: FloatArray = np.bincount(self.groups, per_pair).astype(np.float64)
        return totals[self.groups]

    def group_sizes(self) -> FloatArray:
        """The number of pairs that share their draws with each pair, itself included, [P]."""
        return self.per_group(np.ones(self.n_pairs))

    def cheapest_of_group(self, travel: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The least steps that one more draw takes in the group of each pair, and which pair of each group has them.

        Args:
            travel: the steps that one more draw of each pair takes, [P].
        """
        if self.groups is None:
            return travel, np.ones(len(travel), dtype=np.bool_)
        order = np.lexsort((travel, self.groups))
        _, first, of_pair = np.unique(self.groups[order], return_index=True, return_inverse=True)
        cheapest = np.zeros(len(travel), dtype=np.bool_)
        cheapest[order[first]] = True
        least = np.empty(len(travel))
        least[order] = travel[order[first]][of_pair]
        return least, cheapest

    def rows_for(self, goal: int, side: float, n_allowed: int | None = None) -> RegionRows:
        """The region with balls that are sharp for a goal: for upper bounds (side 1) or for lower ones (side -1)."""
        if self.counts is None or self.log_levels is None or not self.has_several:
            return self.rows
        key = goal, side, self.n_known if n_allowed is None else n_allowed
        if key not in self.sharp:
            if self.imagined is not None:
                before, growth = self.imagined
                sharp = _grown(before.rows_for(goal, side, n_allowed), growth)._replace(closed=self.rows.closed)
            else:
                sharp = self._sharpened(goal, side, n_allowed, self.counts, self.log_levels)
            _remember(self.sharp, key, sharp, len(sharp.shares) + len(sharp.slack), MOST_SHARP)
        return self.sharp[key]

    def _sharpened(
        self, goal: int, side: float, n_allowed: int | None, counts: FloatArray, log_levels: FloatArray
    ) -> RegionRows:
        if goal == self.unseen:  # no frequency leads there, so that there is no estimate to begin with
            about = lower_path(replace(self, counts=None, starts={}), goal)
        else:
            about = empirical_path(self, goal, n_allowed)
        values = np.minimum(about.values, self.limit)
        if side > 0:
            # What a policy loses needs bounds from all states, admissions that from the initial state.
            admits = goal >= self.n_known or n_allowed is not None
            policy = along(self, about).policy if admits else about.policy
            shares, slack = sharp_for_upper(self.rows, counts, log_levels, goal, values, policy)
        else:
            shares, slack = sharp_for_lower(self.rows, counts, log_levels, goal, values, self.n_known)
        return self.rows._replace(shares=shares, slack=slack)

    def with_costs(self, costs: FloatArray, reset_cost: float) -> IntervalModel:
        """The same region with other costs: of each pair, above 0 and at most 1, [P], and of RESET."""
        rows = self.rows._replace(costs=costs, reset_cost=reset_cost)
        return replace(self, rows=rows, estimates={}, shared={}, starts={}, sharp={})

    @_of_frequencies
    def has_several(self) -> bool:
        """Whether some pair has shown several successors; if none has, no ball can be sharper for one goal."""
        if self.imagined is not None:
            return self.imagined[0].has_several
        return bool((np.diff(self.rows.row_offsets) > 1).any())

    @cached_property
    def has_floors(self) -> bool:
        """Whether successors of some pair have a least probability."""
        return bool((self.rows.floors > 0.0).any())

    @_of_frequencies
    def frontier_steps(self) -> FloatArray:
        """The steps to each frontier state if frequencies were probabilities; infinite far beyond the limit."""
        return estimated_steps(self.rows, self.predecessors, self.leading, len(self.numbers), 10 * self.limit)

    @cached_property
    def least_upper(self) -> FloatArray:
        """What no upper bound of the steps to each state falls below, at little cost, [n + others]."""
        return least_upper_bounds(self.rows, self.graph)

    @_of_frequencies
    def graph(self) -> Graph:
        """Where some pair was seen to lead from each state; from no state but the known ones."""
        ends = self.rows.row_offsets[self.rows.state_pairs]
        return graph_from(np.append(ends, np.full(len(self.frontier), ends[-1])), self.rows.successors)

    @property
    def bounds_ways(self) -> bool:
        """Whether ways on which each pair has one successor have bounds of their own (Eq. 18)."""
        if self.counts is None or self.log_levels is None or self.min_cost < 1.0:
            return False
        return bool(self.shared_budgets)

    @_of_frequencies
    def owners(self) -> IntArray:
        """The known state of each pair, [P]."""
        return np.repeat(np.arange(self.n_known), np.diff(self.rows.state_pairs))

    @_of_frequencies
    def pair_of_entries(self) -> IntArray:
        """The pair of each entry, [E]."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.rows.row_offsets))

    @_of_frequencies
    def hops(self) -> IntArray:
        """The least number of steps in which each state was seen to be met, [n + others]."""
        return hops_from(self.graph, np.zeros(1, dtype=np.int64)).astype(np.int64)

    @_of_frequencies
    def single_successors(self) -> IntArray:
        """The first successor of each pair, [P]; the initial state for pairs without one."""
        return np.append(self.rows.successors, 0)[self.rows.row_offsets[:-1]]

    @cached_property
    def budgets_to_deduct(self) -> tuple[SharedBudget, ...]:
        """The shared budgets from which lower bounds may follow (Theorem 4): no other is joined sooner and less."""
        if not self.bounds_ways or self.is_large or self.n_known == 1:
            return ()
        found: list[SharedBudget] = []
        for budget in sorted(self.shared_budgets, key=lambda budget: budget.after):
            if budget.nats < min((sooner.nats for sooner in found), default=MOST_BUDGET):
                found.append(budget)
        return tuple(found)

    def with_one_successor(self, after: int) -> BoolArray:
        """Whether each pair has one successor and was drawn more often than this, [P]."""
        joined: BoolArray = (np.diff(self.rows.row_offsets) == 1) & (self.visits > after)
        return joined

    def as_certain(self, pairs: BoolArray) -> IntervalModel:
        """The model as if some pairs, [P], led where they were seen to lead, and nowhere else."""
        rows = self.rows._replace(slack=np.where(pairs, CERTAIN, self.rows.slack))
        imagined = None if self.imagined is None else (self.imagined[0].as_certain(pairs), self.imagined[1])
        return replace(self, rows=rows, starts={}, sharp={}, imagined=imagined)

    @cached_property
    def quick_ways(self) -> dict[int, CertainWay | None]:
        """The shortest ways over pairs with one successor that were asked for so far, by goal."""
        return {}

    @_of_frequencies
    def certain_ways(self) -> tuple[IntArray, IntArray]:
        """The state and the pair before each state on a shortest way over pairs with one successor, or NO_WAY."""
        return certain_ways(self.rows, len(self.numbers))

    @_of_frequencies
    def predecessors(self) -> Graph:
        """From which known states each state was met."""
        return reversed_graph(self.graph)

    @_of_frequencies
    def leading(self) -> Graph:
        """The pairs that lead to each state, ascending."""
        rows = self.rows
        pairs = np.repeat(np.arange(self.n_pairs), np.diff(rows.row_offsets))
        by_successor = np.argsort(rows.successors, kind="stable")
        return graph_from(offsets_of(rows.successors[by_successor], len(self.numbers)), pairs[by_successor])

    @cached_property
    def min_cost(self) -> float:
        """c_min, the least of all costs."""
        return min(float(self.rows.costs.min(initial=1.0)), self.rows.reset_cost)

    @cached_property
    def residual(self) -> float:
        """What solvers aim at, so that it is the same part of the least cost whatever that is."""
        return max(self.tolerance * self.min_cost, LEAST_RESIDUAL)

    @property
    def residual_in_trials(self) -> float:
        """The same in trials."""
        return max(TRIAL_TOLERANCE * self.min_cost, LEAST_RESIDUAL)

    def start(self) -> FloatArray:
        """All mass on the initial state, [n]."""
        mass = np.zeros(self.n_known)
        mass[0] = 1.0
        return mass


FIELDS: Final = tuple(each.name for each in fields(IntervalModel))


def interval_model(counts: Counts, region: ConfidenceRegion, limit: float) -> IntervalModel:
    """Joins counts and region. The states of the counts are the known ones."""
    others = without(counts.successors, counts.states)
    numbers = np.concatenate((counts.states, others))
    indices = np.full(int(numbers.max()) + 1, NOT_SEEN)
    indices[numbers] = np.arange(len(numbers))
    groups, shares, log_levels, closed = None, region.shares, region.log_levels, region.closed
    lows, visits, closing = region.lows, counts.visits, region.closing if np.isfinite(region.closing).any() else None
    rest = np.zeros(len(visits))
    if region.pooled is not None:
        groups, counts = region.pooled.groups, region.pooled.rows
        visits = counts.visits
        inside = (counts.successors >= 0) & (counts.successors < len(indices))
        leads = inside & (np.append(indices, NOT_SEEN)[np.where(inside, counts.successors, -1)] != NOT_SEEN)
        rest = np.bincount(counts.entry_pairs, np.where(leads, 0.0, shares), minlength=len(rest)).astype(np.float64)
        is_whole = np.bincount(counts.entry_pairs, ~leads, minlength=len(rest)) == 0
        counts, shares, lows, closed = _only_leading(counts, leads), shares[leads], lows[leads], closed & is_whole
        log_levels = None if log_levels is None else np.where(is_whole, log_levels, -np.inf)
        closing = None if closing is None else np.where(is_whole, closing, np.inf)
    seen = np.bincount(counts.entry_pairs, counts.counts, minlength=len(rest))
    rows = RegionRows(
        counts.state_pairs,
        counts.row_offsets,
        indices[counts.successors],
        shares,
        region.slack,
        _allowed(counts.counts / seen[counts.entry_pairs], region.floors, counts),
        np.ones(len(visits)),
        1.0,
        closed,
        np.array(region.floors),  # a copy: kernels would be compiled once more for arrays that are read-only
        rest,
        np.bincount(counts.entry_pairs, lows > 0.0, minlength=len(rest)) > 0,
        np.array(lows),
        np.full(len(visits), np.inf),
        np.zeros(len(shares)),
    )
    model = IntervalModel(
        rows, visits, numbers, len(counts.states), limit,
        counts=counts.counts.astype(np.float64), log_levels=log_levels, shared_budgets=region.shared_budgets,
        groups=groups, closing=closing,
    )  # fmt: skip
    return _last.shared_with(model)


class _LastFrequencies:
    """What was found for the model made last. Draws that lead where all before led change no frequency."""

    def __init__(self) -> None:
        self._last: IntervalModel | None = None

    def shared_with(self, model: IntervalModel) -> IntervalModel:
        """Returns the model with what was found for the one before, if that has the same frequencies.

        Whatever it is asked for, it gives the same as if nothing had been found before.
        """
        last = self._last  # read once: other threads may explore, too
        if last is not None and _have_same_frequencies(last, model):
            model = replace(model, estimates=last.estimates, shared=last.shared)
        # Without what it proves, which would take memory.
        self._last = IntervalModel(
            model.rows, model.visits, model.numbers, model.n_known, model.limit,
            estimates=model.estimates, shared=model.shared,
        )  # fmt: skip
        return model


_last: Final = _LastFrequencies()


def _have_same_frequencies(model: IntervalModel, other: IntervalModel) -> bool:
    if (model.limit, len(model.numbers)) != (other.limit, len(other.numbers)):
        return False
    names = "state_pairs", "row_offsets", "successors", "frequencies"
    return all(np.array_equal(getattr(model.rows, name), getattr(other.rows, name)) for name in names)


def _allowed(frequencies: FloatArray, floors: FloatArray, rows: Counts) -> FloatArray:
    """The frequencies, [E], those below the least probability of their pair raised to it, the others in proportion.

    A policy that looks best by frequencies that no model has may be far from the best one of all models that are left.
    """
    pairs, n_pairs = rows.entry_pairs, len(floors)
    if not floors.any():
        return frequencies
    floor = np.where(floors * np.diff(rows.row_offsets) <= 1.0, floors, 0.0)[pairs]
    raised = np.zeros(len(frequencies), dtype=np.bool_)
    while True:
        kept = np.bincount(pairs, np.where(raised, 0.0, frequencies), minlength=n_pairs)
        left = 1.0 - np.bincount(pairs, np.where(raised, floor, 0.0), minlength=n_pairs)
        factors = np.divide(left, kept, out=np.ones(n_pairs), where=kept > 0.0)
        allowed: FloatArray = np.where(raised, floor, frequencies * factors[pairs])
        below = allowed < floor
        if not below.any():
            return allowed
        raised |= below


def _only_leading(rows: Counts, leads: npt.NDArray[np.bool_]) -> Counts:
    """The rows without the entries of which it is not known where they lead."""
    lengths = np.bincount(rows.entry_pairs[leads], minlength=len(rows.row_offsets) - 1)
    return structs.replace(
        rows,
        row_offsets=offsets_from(lengths),
        successors=rows.successors[leads],
        counts=rows.counts[leads],
        first_draws=rows.first_draws[leads],
    )


def _grown(rows: RegionRows, growth: FloatArray) -> RegionRows:
    """Balls as they would be if the visits of each pair had grown by a factor, whose inverse is given, [P]."""
    shares, slack, rest, lows = grown_balls(rows, growth)
    return rows._replace(shares=shares, slack=slack, rest=rest, lows=lows)


def _around_frequencies(rows: RegionRows) -> RegionRows:
    """The rows with balls around the frequencies, where more draws would move them: for gains, not for bounds.

    A ball so large that its bound stands at the worst value there is gains nothing from a single draw, though it may be
    what blocks a claim. So none is taken for larger than one whose gain is about the greatest.
    """
    slack = np.minimum(rows.slack, MOST_SLACK)
    return rows._replace(shares=rows.frequencies, slack=slack, rest=np.zeros(len(rows.rest)))


@dataclass(frozen=True, eq=False)
class GoalValues:
    """Values and policy towards a goal.

    Attributes:
        goal: the index of a state.
        values: expected steps, or a bound of them, from each state, [n + others].
        policy: a pair, or RESET_PAIR, for each known state, [n].
        proven: whether the values are a bound; never for an estimate.
        deduction: what has to be taken off the value of the initial state; only of a lower bound (Theorem 4).
    """

    goal: int
    values: FloatArray
    policy: IntArray
    proven: bool
    deduction: float = 0.0

    @cached_property
    def steps(self) -> float:
        """From the initial state."""
        return float(self.values[0]) - self.deduction

    @cached_property
    def at_most(self) -> float:
        """What an upper bound decides by."""
        return most_steps(self.values)

    @cached_property
    def at_least(self) -> float:
        """What a lower bound decides by."""
        return least_steps(self.values, self.deduction)


@dataclass(frozen=True, eq=False)
class CertainWay:
    """A way to a goal on which each pair has one successor, with RESET elsewhere, and its bound (Eq. 18).

    Of the other states nothing is kept: where there are many, most of a path says the same of them.

    Attributes:
        goal: the index of a state.
        states, pairs: of the way from the initial state on, and what is played there, [m].
        bounds: of the expected steps from these states, [m].
        n_known, n_seen: the number of states.
    """

    goal: int
    states: IntArray
    pairs: IntArray
    bounds: FloatArray
    n_known: int
    n_seen: int

    @property
    def steps(self) -> float:
        """From the initial state."""
        return float(self.bounds[0])

    @cached_property
    def at_most(self) -> float:
        """What is decided by."""
        largest = max(1.0 + self.steps, float(self.bounds.max()))
        return self.steps * (1.0 + correction_for(largest))

    @cached_property
    def last_state(self) -> int:
        """The state of the way that was admitted last."""
        return int(self.states.max())

    @cached_property
    def path(self) -> GoalValues:
        """The same with all states."""
        values = np.full(self.n_seen, 1.0 + self.steps)
        values[self.states], values[self.goal] = self.bounds, 0.0
        policy = np.full(self.n_known, RESET_PAIR)
        policy[self.states] = self.pairs
        return GoalValues(self.goal, values, policy, proven=True)


def empirical_path(model: IntervalModel, goal: int, n_allowed: int | None = None) -> GoalValues:
    """The shortest path if frequencies were probabilities; infinite values far beyond the limit of the model.

    Args:
        model: for its frequencies.
        goal: the index of a state.
        n_allowed: the number of known states to which the policy is restricted; all when not given.
    """
    if n_allowed is None:
        n_allowed = model.n_known
    if (goal, n_allowed) not in model.estimates and not _estimate(model, goal, n_allowed, 10 * model.limit):
        nowhere = np.full(len(model.numbers), np.inf), np.full(model.n_known, RESET_PAIR)
        _remember_estimate(model, n_allowed, GoalValues(goal, *nowhere, proven=False))
    return model.estimates[goal, n_allowed]


def along(model: IntervalModel, path: GoalValues) -> GoalValues:
    """The path with RESET in all states that its policy does not lead to: to solve for it takes less time."""
    return replace(path, policy=np.where(states_met(model, path), path.policy, RESET_PAIR))


def states_met(model: IntervalModel, path: GoalValues) -> BoolArray:
    """Which known states the policy of a path meets from the initial one on, as far as was seen, [n]."""
    return met_by(model.rows.row_offsets, model.rows.successors, path.goal, path.policy)


def may_be_within(model: IntervalModel, steps: float) -> list[int]:
    """The frontier states whose upper bound may be within a number of steps, those that look nearest first."""
    within = (model.least_upper[model.n_known :] <= steps) & (model.frontier_steps <= steps)
    near = np.flatnonzero(within)
    return [int(goal) for goal in model.n_known + near[np.argsort(model.frontier_steps[near], kind="stable")]]


def _estimate(model: IntervalModel, goal: int, n_allowed: int, limit: float) -> bool:
    """Keeps the empirical path to a goal and returns True, unless it takes more than the limit."""
    values = np.zeros(len(model.numbers))
    policy = np.full(model.n_known, RESET_PAIR)
    # Before the first draw there is one state, and nothing to compile: the first step comes sooner.
    found = len(model.numbers) == 1 or empirical_values(
        model.rows, model.predecessors, model.leading, goal, n_allowed, values, policy, limit, ESTIMATE_CHANGE
    )
    if found:
        _remember_estimate(model, n_allowed, GoalValues(goal, values, policy, proven=False))
    return found


def _remember_estimate(model: IntervalModel, n_allowed: int, path: GoalValues) -> None:
    _remember(model.estimates, (path.goal, n_allowed), path, len(model.numbers) + model.n_known)


def upper_path(
    model: IntervalModel,
    goal: int,
    *,
    follow: GoalValues | None = None,
    n_allowed: int | None = None,
    at_most: float = np.inf,
) -> GoalValues:
    """A policy and a proven upper bound of its steps; infinite and not proven where nothing could be shown.

    Args:
        model: counts and region.
        goal: the index of a state.
        follow: play as this path does, or RESET; the robust optimum when not given.
        n_allowed: the number of known states to which the policy is restricted; all when not given.
        at_most: bounds beyond it are of no use, and within it any will do.
    """
    if follow is not None:
        return _upper_path(model, goal, follow, n_allowed, at_most)
    if at_most < np.inf and model.imagined is None:
        way = quick_way(model, goal, n_allowed)
        if way is not None and way.at_most <= at_most:
            return way.path
    asked = "upper", goal, model.n_known if n_allowed is None else n_allowed, at_most
    return _solved(model, asked, lambda: _upper_path(model, goal, None, n_allowed, at_most))


def _solved(model: IntervalModel, asked: Asked, solve: Callable[[], GoalValues]) -> GoalValues:
    """A bound, solved for once; in trials every time."""
    if model.imagined is not None:
        return solve()
    if asked not in model.solved:
        _remember(model.solved, asked, solve(), len(model.numbers) + model.n_known + model.n_pairs)
    return model.solved[asked]


def remember_start(model: IntervalModel, asked: tuple[str, int, int], start: Start) -> None:
    """Keeps where a solver ended, for the trials that follow."""
    _remember(model.starts, asked, start, len(start[0]) + len(start[1]))


def _upper_path(
    model: IntervalModel, goal: int, follow: GoalValues | None, n_allowed: int | None, at_most: float
) -> GoalValues:
    rows = model.rows_for(goal, 1.0, n_allowed)
    playing = model.n_known if n_allowed is None else n_allowed
    allowed = allowed_pairs(rows.state_pairs, playing, ANY_POLICY if follow is None else follow.policy)
    estimate = empirical_path(model, goal, n_allowed)
    way = way_along(model, follow or estimate, n_allowed)
    if way is not None and way.at_most <= at_most < np.inf:
        return way.path
    # Where outcomes have a least probability, frequencies may be outside the region, and worse than all bounds.
    limit = model.limit if model.has_floors else min(model.limit, at_most)
    is_whole = follow is None and model.imagined is None  # else to ask for the least takes longer than to solve
    may_be_found = estimate.steps < limit and not (is_whole and model.least_upper[goal] > at_most)
    policy = np.full(model.n_known, RESET_PAIR)
    asked = ("upper" if follow is None else "following", goal, playing)
    cold = estimate.values, np.full(model.n_pairs, UNKNOWN_SHIFT)
    last = None if model.imagined is None else model.starts.get(asked)
    starts = [(start, INNER_SWEEPS) for start in (last, cold) if start is not None]
    for start, inner in (*starts, (cold, 0)) if may_be_found else ():
        values, shifts = start[0].copy(), start[1].copy()
        residual = upper_bound(rows, goal, allowed, values, policy, shifts, inner, limit, model.residual)
        if residual == BEYOND_LIMIT:
            break
        if residual < model.min_cost:
            remember_start(model, asked, (values, shifts))
            path = GoalValues(goal, values / (1 - residual / model.min_cost), policy, proven=True)
            return _better(path, way)
    return _better(GoalValues(goal, np.full(len(model.numbers), np.inf), policy, proven=False), way)


def _better(path: GoalValues, other: CertainWay | None) -> GoalValues:
    return path if other is None or path.steps <= other.steps else other.path


def way_along(model: IntervalModel, path: GoalValues, n_allowed: int | None = None) -> CertainWay | None:
    """The way of a path from the initial state to its goal, if each of its pairs has one successor."""
    if not model.bounds_ways:
        return None
    states = certain_way(model.rows, path.goal, path.policy)
    way = _certain(model, path.goal, states, path.policy[states])
    return way if way is not None and _is_allowed(way, n_allowed) else None


def visits_along_way(model: IntervalModel, estimate: GoalValues, above: float) -> FloatArray:
    """The visits of each pair with which Eq. 18 bounds the way that looks best by so much more than its steps, [P]."""
    way = certain_way(model.rows, estimate.goal, estimate.policy)
    visits, weights = np.zeros(model.n_pairs), np.arange(len(way)) + 2.0
    needed = [
        budget.after + budget.nats * (1.0 + WAY_ROUNDING) / np.log1p(above / weights) for budget in model.shared_budgets
    ]
    visits[estimate.policy[way]] = min(needed, key=lambda draws: float(draws.sum()))
    return visits


def quick_way(model: IntervalModel, goal: int, n_allowed: int | None = None) -> CertainWay | None:
    """A shortest way to a goal among those whose pairs all have one successor, without any solving."""
    if not model.bounds_ways or not 0 < goal < len(model.numbers):
        return None
    if goal not in model.quick_ways:
        model.quick_ways[goal] = _shortest_certain(model, goal)
    way = model.quick_ways[goal]
    return way if way is not None and _is_allowed(way, n_allowed) else None


def _is_allowed(way: CertainWay, n_allowed: int | None) -> bool:
    return n_allowed is None or way.last_state < n_allowed


def _shortest_certain(model: IntervalModel, goal: int) -> CertainWay | None:
    before, pairs = model.certain_ways
    backwards = []
    state = goal
    while state != 0:
        if before[state] == NO_WAY:
            return None
        backwards.append(state)
        state = int(before[state])
    entered = np.array(backwards[::-1])
    return _certain(model, goal, before[entered], pairs[entered])


def _certain(model: IntervalModel, goal: int, states: IntArray, pairs: IntArray) -> CertainWay | None:
    """The way through these states, in which these pairs are played, [m] each; None if some were drawn once only."""
    visits = model.visits[pairs] / (1.0 if model.imagined is None else model.imagined[1][pairs])
    joined = [budget for budget in model.shared_budgets if len(states) and visits.min() >= budget.after + 1.0]
    if not joined:
        return None
    bounds = min((bounds_along(visits - budget.after, budget.nats) for budget in joined), key=lambda found: found[0])
    return CertainWay(goal, states, pairs, bounds, model.n_known, len(model.numbers))


def lower_path(model: IntervalModel, goal: int, guess: FloatArray | None = None) -> GoalValues:
    """A proven lower bound of the steps of every policy restricted to the known states, and what attains it."""
    return _solved(model, ("lower", goal, model.n_known, np.inf), lambda: _lower_path(model, goal, guess))


def _lower_path(model: IntervalModel, goal: int, guess: FloatArray | None) -> GoalValues:
    rows = model.rows_for(goal, -1.0)
    policy = np.full(model.n_known, RESET_PAIR)
    asked = ("lower", goal, model.n_known)
    start, shifts = guess, np.full(model.n_pairs, UNKNOWN_SHIFT)
    if model.imagined is not None and asked in model.starts:
        start, shifts = model.starts[asked]
        shifts = shifts.copy()
    for inner in (INNER_SWEEPS_BELOW, 0):
        values = np.zeros(len(model.numbers))
        if inner and start is not None:
            values[:] = np.minimum(start, model.limit)
        residual = lower_bound(rows, goal, values, policy, shifts, inner, model.limit, model.residual)
        if residual < np.inf:
            remember_start(model, asked, (values, shifts))
            return GoalValues(goal, values / (1 + residual / model.min_cost), policy, proven=True)
    return GoalValues(goal, np.zeros(len(model.numbers)), policy, proven=True)


@dataclass(frozen=True, eq=False)
class Regret:
    """What the policy of an upper path may lose against the best one.

    Attributes:
        upper, lower: the bounds that it follows from.
        local_regret: what it may lose in each known state by playing the wrong action there, [n].
        rivals: the action that might be better, [n].
        values: the bound from each state, [n + others]; a single infinite one where it is not needed.
    """

    upper: GoalValues
    lower: GoalValues
    local_regret: FloatArray
    rivals: IntArray
    values: FloatArray

    @property
    def steps(self) -> float:
        """What the policy may lose from the initial state: the better of the two ways to bound it."""
        return float(min(self.values[0], self.upper.steps - self.lower.steps))

    @property
    def at_most(self) -> float:
        """What is decided by: the same from corrected bounds."""
        if not self.upper.steps:
            return 0.0
        corrected = float(self.values[0]) + 3.0 * correction(self.upper.values) * self.upper.steps
        return min(corrected, self.upper.at_most - self.lower.at_least)


def gap_between(upper: GoalValues, lower: GoalValues) -> Regret:
    """What follows from the bounds alone: the policy loses no more than the gap between them."""
    nothing = np.zeros(0, dtype=np.int64)
    return Regret(upper, lower, nothing.astype(np.float64), nothing, np.full(1, np.inf))


def regret_path(model: IntervalModel, upper: GoalValues, lower: GoalValues) -> Regret:
    """Bounds what the policy of the upper path loses; infinite if that path is not proven."""
    local_regret = np.full(model.n_known, np.inf)
    rivals = np.full(model.n_known, RESET_PAIR)
    values = np.full(len(model.numbers), np.inf)
    if upper.proven:
        below, above = model.rows_for(upper.goal, -1.0), model.rows_for(upper.goal, 1.0)
        shifts = _shifts_below(model, upper.goal)
        local_regrets(below, upper.goal, upper.values, lower.values, upper.policy, rivals, local_regret, shifts)
        regret_bound(above, upper.goal, upper.values, upper.policy, local_regret, values)
    return Regret(upper, lower, local_regret, rivals, values)


def gain_of_upper(model: IntervalModel, path: GoalValues) -> FloatArray:
    """What the value of the initial state would gain from more draws of each pair, [P]."""
    gain = np.zeros(model.n_pairs)
    upper_gain(
        _around_frequencies(model.rows_for(path.goal, 1.0)), path.goal, path.values, path.policy, model.start(), gain
    )
    return gain


def gain_of_lower(model: IntervalModel, path: GoalValues) -> FloatArray:
    """What the lower bound at the initial state would gain from more draws of each pair, [P]."""
    gain = np.zeros(model.n_pairs)
    rows = _around_frequencies(model.rows_for(path.goal, -1.0))
    lower_gain(rows, path.goal, path.values, path.policy, _shifts_below(model, path.goal), model.start(), gain)
    return gain


def _shifts_below(model: IntervalModel, goal: int) -> FloatArray:
    """About the best shift of each pair for the lower values towards a goal, [P]: those found last, or unknown."""
    found = model.starts.get(("lower", goal, model.n_known))
    return np.full(model.n_pairs, UNKNOWN_SHIFT) if found is None else found[1].copy()


def gain_of_regret(model: IntervalModel, regret: Regret) -> FloatArray:
    """What the regret bound at the initial state would gain from more draws of each pair, [P]."""
    gain, goal = np.zeros(model.n_pairs), regret.upper.goal
    rows = _around_frequencies(model.rows_for(goal, 1.0))
    regret_gain(
        rows, goal, regret.upper.values, regret.upper.policy, regret.lower.values, regret.lower.policy,
        _shifts_below(model, goal), regret.rivals, regret.local_regret, regret.values, gain,
    )  # fmt: skip
    return gain
