"""What the certified explorer has to prove, and the draws that would prove it soonest.

A *claim* is a statement about one goal that a confidence region may or may not prove: that it is to be reached, to be
set aside, or to be reached by a policy that is nearly optimal. `cheapest_draws` asks what would have to be drawn: it
assumes that the frequencies stay as they are and that slacks fall like 1 / visits, and lets the visits of those pairs
grow that bring the claim most per step of travel, until the claim would be proven. The answer is an estimate to choose
samples by; no proof rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

import numpy as np

from axplore.proofs.bounds import (
    CertainWay,
    GoalValues,
    IntervalModel,
    Regret,
    along,
    empirical_path,
    gain_of_lower,
    gain_of_regret,
    gain_of_upper,
    gap_between,
    lower_path,
    quick_way,
    regret_path,
    remember_start,
    upper_path,
    visits_along_way,
    way_along,
)
from axplore.proofs.deductions import deducted_path, visits_deducted
from axplore.proofs.row_kernels import UNKNOWN_SHIFT
from axplore.proofs.travel import Travel, TravelAlong
from axplore.proofs.trial_kernels import (
    FEW_TRIALS,
    GIVEN_UP,
    HOPELESS,
    NEEDS_WAYS,
    TRIALS,
    Trials,
    grown_visits,
    tried_below,
    with_own_balls,
)
from axplore.proofs.ways import WayModel, among_first, model_along
from axplore.types import RESET_PAIR, FloatArray, IntArray

LEFT_TO_DEDUCT: Final = 0.5
"""Pairs with several successors are to leave this part of what a bound may lose to those with one."""

WORTH_DEDUCTING: Final = 0.2
"""The least part of the steps that pairs with one successor take for a deduction to be sought among others."""

PARTS_ABOVE: Final = (0.25, 0.5, 0.75)
"""The parts of ε by which an upper bound may exceed the steps of a way; the lower bound has the rest."""

SLIGHTLY_MORE: Final = 1.0 + 1e-6

UNSEEN: Final = -1
"""In place of a number, of all states that were never seen."""


@dataclass(frozen=True, eq=False)
class Gain:
    """What more draws would bring to a claim.

    Attributes:
        by_pair: what the bound gains by the logarithm of the visits of each pair, [P].
        lacking: by how much the bound misses the claim; infinite if there is none.
        proven: whether the claim is proven without them.
    """

    by_pair: FloatArray
    lacking: float
    proven: bool = False


PROVEN: Final = Gain(np.zeros(0), 0.0, proven=True)
"""Of a claim that needs no draws."""


class ToProve(Protocol):
    """Something to prove about a goal."""

    @property
    def goal(self) -> int:
        """The index of the goal."""

    def is_proven(self, model: IntervalModel) -> bool:
        """Whether the model proves the claim."""

    def gain(self, model: IntervalModel) -> Gain:
        """`PROVEN` if the model proves the claim; otherwise what more draws of each pair would bring."""

    def about(self, goal: int) -> ToProve:
        """The same claim about another goal."""


class _AboutGoal:
    """A claim as a dataclass."""

    def about(self, goal: int) -> Self:
        return replace(self, goal=goal)  # type: ignore[type-var]


def with_numbers(claims: Iterable[ToProve], numbers: IntArray) -> set[ToProve]:
    """Claims with the number of each goal in place of its index; `numbers` has those of all indices.

    Indices belong to one model: in the next, which has met more states, another state may stand there.
    """
    number_of = dict(enumerate([*numbers.tolist(), UNSEEN]))
    return {claim.about(number_of[claim.goal]) for claim in claims}


def with_indices(claims: Iterable[ToProve], numbers: IntArray) -> set[ToProve]:
    """Undoes `with_numbers`, for a model with other indices."""
    index_of = {number: index for index, number in enumerate([*numbers.tolist(), UNSEEN])}
    return {claim.about(index_of[claim.goal]) for claim in claims}


@dataclass(frozen=True)
class ToReach(_AboutGoal):
    """A policy restricted to the first `n_allowed` known states reaches the goal within `steps` expected steps."""

    goal: int
    steps: float
    n_allowed: int | None = None

    def path(self, model: IntervalModel) -> GoalValues:
        """The policy and its upper bound."""
        return upper_path(model, self.goal, n_allowed=self.n_allowed)

    def is_proven(self, model: IntervalModel) -> bool:
        """Whether the model proves the claim; quicker than by the path, because bounds are not followed beyond it."""
        quick = None if model.imagined is not None else quick_way(model, self.goal, self.n_allowed)
        if quick is not None and quick.at_most <= self.steps:
            return True
        return self.any_path(model).at_most <= self.steps

    def _quick_way(self, model: IntervalModel) -> CertainWay | None:
        return quick_way(model, self.goal, self.n_allowed) if model.is_large and model.imagined is None else None

    def any_path(self, model: IntervalModel) -> GoalValues | CertainWay:
        """A policy whose upper bound proves the claim, if there is one."""
        return self._path_along(model) or upper_path(model, self.goal, n_allowed=self.n_allowed, at_most=self.steps)

    def _path_along(self, model: IntervalModel) -> GoalValues | CertainWay | None:
        """What looks best, if its upper bound proves the claim, in large models; found along its way."""
        quick = self._quick_way(model)
        if quick is not None and quick.at_most <= self.steps:
            return quick
        part = self.along_way(model)
        if part is None:
            return None
        found = upper_path(part[1].model, part[0].goal, follow=part[1].path, at_most=self.steps)
        return part[1].in_whole(found, model, self.goal) if found.at_most <= self.steps else None

    def along_way(self, model: IntervalModel) -> tuple[ToReach, WayModel] | None:
        """The claim in the model of the way that looks best, in large models: trials there take less time."""
        if not model.is_large or model.groups is not None:
            return None
        way = model_along(model, empirical_path(model, self.goal, self.n_allowed))
        return None if way is None else (ToReach(way.path.goal, self.steps), way)

    def gain(self, model: IntervalModel) -> Gain:
        if model.imagined is None and self.is_proven(model):
            return PROVEN
        # The robust optimum may be a detour through well-known pairs that never gets good enough; what looks best is
        # the policy to invest in.
        estimate = along(model, empirical_path(model, self.goal, self.n_allowed))
        robust = upper_path(model, self.goal, follow=estimate, n_allowed=self.n_allowed)
        if robust.at_most <= self.steps:
            return PROVEN
        looks_best = gain_of_upper(model, estimate)
        given_up = estimate.policy[robust.policy != estimate.policy]
        # Where a pair is not known well the robust path resets instead, and gets no better for drawing the others.
        if not robust.proven or looks_best[given_up[given_up != RESET_PAIR]].any():
            return Gain(looks_best, robust.at_most - self.steps)
        return Gain(gain_of_upper(model, robust), robust.at_most - self.steps)


@dataclass(frozen=True)
class ToSetAside(_AboutGoal):
    """Every policy restricted to the known states needs more than `steps` expected steps to the goal."""

    goal: int
    steps: float

    @staticmethod
    def model_to_try(model: IntervalModel) -> IntervalModel:
        """The model in which trials are made."""
        return model

    def path(self, model: IntervalModel) -> GoalValues:
        """The lower bound."""
        guess = empirical_path(model, self.goal).values if self.goal != model.unseen else None
        by_rows = lower_path(model, self.goal, guess)
        if model.imagined is not None or by_rows.at_least > self.steps:
            return by_rows
        deducted = deducted_path(model, self.goal, self.steps)
        return by_rows if deducted is None or deducted.at_least <= by_rows.at_least else deducted

    def is_proven(self, model: IntervalModel) -> bool:
        """Whether the lower bound proves the claim."""
        return self.path(model).at_least > self.steps

    def gain(self, model: IntervalModel) -> Gain:
        path = self.path(model)
        if path.at_least > self.steps:
            return PROVEN
        by_rows = lower_path(model, self.goal) if path.deduction else path
        return Gain(gain_of_lower(model, by_rows), self.steps - path.at_least)

    def visits_deducted(self, model: IntervalModel, travel: Travel, at_most: float) -> Iterator[FloatArray]:
        """Yields visits of each pair with which a deduction would prove the claim, [P], by some of which it does."""
        several = model.visits.astype(np.float64)
        if self.goal != model.unseen and model.has_several:
            estimate = empirical_path(model, self.goal).steps
            if not self.steps < estimate < np.inf:
                return
            needed = _AsIfCertain(self.goal, self.steps + LEFT_TO_DEDUCT * (estimate - self.steps))
            drawn = _cheapest_draws(needed, model, travel, at_most)
            if not drawn.travel < at_most:
                return
            several += drawn.more
            model = replace(model.with_visits(several), visits=np.ceil(several).astype(np.int64))
        for visits in visits_deducted(model, self.goal, self.steps):
            yield np.maximum(visits, several)


@dataclass(frozen=True)
class _AsIfCertain(_AboutGoal):
    """What a deduction begins with: more than `steps` are needed if the pairs of the shared budget are certain."""

    goal: int
    steps: float

    def is_proven(self, model: IntervalModel) -> bool:
        """Whether the lower bound proves the claim."""
        return self._path(self.model_to_try(model)).at_least > self.steps

    def gain(self, model: IntervalModel) -> Gain:
        certain = self.model_to_try(model)
        path = self._path(certain)
        if path.at_least > self.steps:
            return PROVEN
        return Gain(gain_of_lower(certain, path), self.steps - path.at_least)

    def _path(self, certain: IntervalModel) -> GoalValues:
        return lower_path(certain, self.goal, empirical_path(certain, self.goal).values)

    @staticmethod
    def model_to_try(model: IntervalModel) -> IntervalModel:
        """The model in which these pairs are certain."""
        return model.as_certain(model.with_one_successor(0))


@dataclass(frozen=True)
class ToOptimise(_AboutGoal):
    """A policy towards the goal loses at most `steps` against the best one restricted to the known states."""

    goal: int
    steps: float

    def regret(self, model: IntervalModel) -> Regret:
        """The better of two policies: the robust optimum, and what looks best."""
        robust, looks_best = self._candidates(model)
        better = robust if robust.at_most <= looks_best.at_most else looks_best
        return better if better.at_most <= self.steps else self.by_deduction(model) or better

    def quick_regret(self, model: IntervalModel, lower: GoalValues) -> Regret | None:
        """That of a way on which every pair has one successor, if the gap between its bounds is small enough."""
        way = way_along(model, empirical_path(model, self.goal))
        if way is None or way.at_most - lower.at_least > self.steps:
            return None
        return gap_between(way.path, lower)

    def by_deduction(self, model: IntervalModel) -> Regret | None:
        """That which follows from the gap between the bounds, the lower one by a deduction (Theorem 4)."""
        if model.imagined is not None:
            return None
        upper = upper_path(model, self.goal)
        lower = deducted_path(model, self.goal, upper.at_most - self.steps) if upper.proven else None
        if lower is None or upper.at_most - lower.at_least > self.steps:
            return None
        return gap_between(upper, lower)

    def visits_deducted(self, model: IntervalModel, travel: Travel, at_most: float) -> Iterator[FloatArray]:
        """Yields visits of each pair with which a deduction would prove the claim, [P], by some of which it does."""
        estimate = empirical_path(model, self.goal)
        if way_along(model, estimate) is None:
            upper = upper_path(model, self.goal).at_most
            yield from ToSetAside(self.goal, upper - self.steps).visits_deducted(model, travel, at_most)
            return
        for part in PARTS_ABOVE:
            above = part * self.steps
            needed = ToSetAside(self.goal, (estimate.steps + above - self.steps) * SLIGHTLY_MORE)
            along = visits_along_way(model, estimate, above)
            for visits in needed.visits_deducted(model, travel, at_most):
                yield np.maximum(visits, along)

    def lower(self, model: IntervalModel) -> GoalValues:
        """The lower bound of the steps of every policy."""
        return lower_path(model, self.goal, empirical_path(model, self.goal).values)

    def is_proven(self, model: IntervalModel) -> bool:
        """Whether some policy is proven to lose no more."""
        candidates = self._candidates(model, any_will_do=True)
        return min(regret.at_most for regret in candidates) <= self.steps or self.by_deduction(model) is not None

    def gain(self, model: IntervalModel) -> Gain:
        robust, looks_best = self._candidates(model, any_will_do=True)
        if min(robust.at_most, looks_best.at_most) <= self.steps or self.by_deduction(model) is not None:
            return PROVEN
        if not looks_best.upper.proven:
            return Gain(gain_of_upper(model, empirical_path(model, self.goal)), np.inf)
        return Gain(gain_of_regret(model, looks_best), looks_best.at_most - self.steps)

    def _candidates(self, model: IntervalModel, any_will_do: bool = False) -> tuple[Regret, Regret]:
        """The robust optimum and what looks best; the first twice if it is good enough or the same.

        If any will do, no regret is sought where the gap between the bounds is small enough.
        """
        estimate, lower = empirical_path(model, self.goal), self.lower(model)
        quick = self.quick_regret(model, lower) if any_will_do else None
        if quick is not None:
            return quick, quick
        upper = upper_path(model, self.goal)
        if any_will_do and upper.at_most - lower.at_least <= self.steps:
            quick = gap_between(upper, lower)
            return quick, quick
        robust = regret_path(model, upper, lower)
        if robust.at_most <= self.steps or (robust.upper.policy == estimate.policy).all():
            return robust, robust
        return robust, regret_path(model, upper_path(model, self.goal, follow=estimate), lower)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws that would prove a claim if the frequencies stayed as they are.

    Attributes:
        more: how many more of each pair, [P].
        travel: the steps that they would take.
    """

    more: FloatArray
    travel: float


def cheapest_draws(claim: ToProve, model: IntervalModel, travel: Travel, at_most: float = np.inf) -> Draws:
    """The draws that would prove a claim soonest; all zero if it is proven.

    In large models, draws for a state to be reached are sought along the way that looks best.

    Where the gains give no hint, every pair is drawn a little more: with more draws the estimates change. Of pairs that
    share their draws, the one is drawn that takes the fewest steps.

    Args:
        claim: what to prove.
        model: every pair must have been drawn more often than it has successors.
        travel: the steps that one more draw of each pair takes.
        at_most: draws that take more steps are not followed to their end, because others are cheaper.
    """
    part = claim.along_way(model) if isinstance(claim, ToReach) else None
    if part is None:
        return _by_rows_or_deduction(claim, model, travel, at_most)
    own_claim, way = part
    draws, more = _cheapest_draws(own_claim, way.model, travel.along(way.pairs), at_most), np.zeros(model.n_pairs)
    more[way.pairs] = draws.more
    return Draws(more, draws.travel)


def draws_to_refute(claim: ToReach, model: IntervalModel, travel: Travel) -> Draws:
    """The draws that would prove that no policy in the first known states reaches the goal within the steps claimed."""
    part = among_first(model, model.n_known if claim.n_allowed is None else claim.n_allowed)
    beyond, pairs = ToSetAside(claim.goal, claim.steps), np.arange(part.n_pairs)
    draws, more = _cheapest_draws(beyond, part, travel.along(pairs), np.inf), np.zeros(model.n_pairs)
    more[pairs] = draws.more
    return Draws(more, draws.travel)


def _by_rows_or_deduction(claim: ToProve, model: IntervalModel, travel: Travel, at_most: float) -> Draws:
    """The cheaper of the draws that prove a claim by rows alone, and by a deduction.

    Where some pairs have several successors, both are sought by trials. What a deduction may save are the draws of
    pairs with one, so none is sought where these are few.
    """
    if not model.has_several:
        deducted = _draws_deducted(claim, model, travel, at_most)
        if deducted is None:
            return _cheapest_draws(claim, model, travel, at_most)
        draws = _cheapest_draws(claim, model, travel, deducted.travel, gives_up=True)
        return draws if draws.travel < deducted.travel else deducted
    draws = _cheapest_draws(claim, model, travel, at_most)
    if travel.steps(np.where(model.with_one_successor(0), draws.more, 0.0)) < WORTH_DEDUCTING * draws.travel:
        return draws
    return _draws_deducted(claim, model, travel, min(at_most, draws.travel)) or draws


def _draws_deducted(claim: ToProve, model: IntervalModel, travel: Travel, at_most: float) -> Draws | None:
    """The cheapest draws that prove a claim by a deduction (Theorem 4); None if none do within `at_most` steps."""
    if not isinstance(claim, ToSetAside | ToOptimise) or not model.budgets_to_deduct:
        return None
    best = None
    for visits in claim.visits_deducted(model, travel, at_most):
        more = np.maximum(np.ceil(visits) - model.visits, 0.0)
        if np.isfinite(more).all() and (steps := travel.steps(more)) < at_most:
            best, at_most = Draws(more, steps), steps
    return best


def _cheapest_draws(
    claim: ToProve, model: IntervalModel, travel: Travel | TravelAlong, at_most: float, gives_up: bool = False
) -> Draws:
    """The draws that trials find; of more than `at_most` steps if they do not lead to a proof within them.

    With `gives_up` this is also said of trials that come nearer to the proof so slowly that they will not get there.
    """
    # A draw in one pair of a group is a draw in all: each of them counts with its part of the steps and of the gain.
    sizes, drawn, shared = model.group_sizes(), np.ones(model.n_pairs, dtype=np.bool_), None
    if model.groups is not None and isinstance(travel, Travel):
        least, drawn = model.cheapest_of_group(travel.per_draw_of_all())
        shared = least / sizes
    if isinstance(claim, ToSetAside | _AsIfCertain) and isinstance(travel, Travel):
        visits = _visits_below(claim, model, travel, shared, at_most, gives_up)
    else:
        visits = _visits_tried(claim, model, travel, shared, at_most, gives_up)
    if visits is None:
        return Draws(np.zeros(model.n_pairs), np.inf)
    more = visits - model.visits
    return Draws(more * drawn, _steps(more, travel, shared))


def _steps(draws: FloatArray, travel: Travel | TravelAlong, shared: FloatArray | None) -> float:
    """The steps that draws take, [P]; `shared` are those for a draw of each pair, where pairs share their draws."""
    return travel.steps(draws) if shared is None else float(draws @ shared)


def _visits_below(
    claim: ToSetAside | _AsIfCertain,
    model: IntervalModel,
    travel: Travel,
    shared: FloatArray | None,
    at_most: float,
    gives_up: bool,
) -> FloatArray | None:
    """The visits that trials of a lower bound come to, [P], without a return to Python but for ways; None if hopeless.

    The arguments are those of `_visits_tried`, which gives the same.
    """
    owners, closing, groups = model.owners, model.closing, model.groups
    model, asked = claim.model_to_try(model), ("lower", claim.goal, model.n_known)
    start, shifts = model.starts.get(asked, (None, np.full(model.n_pairs, UNKNOWN_SHIFT)))
    if start is None:
        start = empirical_path(model, claim.goal).values if claim.goal != model.unseen else np.zeros(len(model.numbers))
    rows, visits = model.rows_for(claim.goal, -1.0), model.visits.astype(np.float64)
    trials = Trials(
        rows=rows,
        before=visits.copy(),
        closing=np.full(model.n_pairs, np.inf) if closing is None else closing,
        groups=np.zeros(0, dtype=np.int64) if groups is None else groups,
        owners=owners,
        goal=claim.goal,
        steps=claim.steps,
        limit=model.limit,
        tolerance=model.residual_in_trials,
        min_cost=model.min_cost,
        visits=visits,
        written=np.full(model.n_pairs, -1.0),
        grown=with_own_balls(rows),
        around=with_own_balls(rows),
        start=start.copy(),
        shifts=shifts.copy(),
        policy=np.full(model.n_known, RESET_PAIR),
        worth=np.full(model.n_pairs, -np.inf),
        seen=np.zeros(len(rows.shares)),
        gain=np.zeros(model.n_pairs),
        pace=np.zeros(4),
    )
    per_draw, is_found = travel.found if shared is None else (shared, np.ones(model.n_known, dtype=np.bool_))
    wanted = np.zeros(model.n_known, dtype=np.bool_)
    while (ended := tried_below(trials, gives_up, at_most, per_draw, is_found, wanted)) == NEEDS_WAYS:
        travel.find(wanted)
        wanted[:] = False
    remember_start(model, asked, (trials.start, trials.shifts))
    return None if ended == GIVEN_UP else visits


def _visits_tried(
    claim: ToProve,
    model: IntervalModel,
    travel: Travel | TravelAlong,
    shared: FloatArray | None,
    at_most: float,
    gives_up: bool,
) -> FloatArray | None:
    """The visits that trials come to, [P]; None if they were given up without hope.

    Args:
        claim: what to prove.
        model: counts and region.
        travel: the steps that one more draw of each pair takes.
        shared: the same, where pairs share their draws, [P].
        at_most: draws that take more steps are not followed to their end.
        gives_up: whether trials are given up that come nearer to the proof too slowly.
    """
    visits = model.visits.astype(np.float64)
    at_first = steps = 0.0
    for trial in range(TRIALS):
        gain = claim.gain(model.with_visits(visits))
        if gain.proven:
            break
        at_first = at_first if trial else gain.lacking
        if gives_up and trial >= FEW_TRIALS:
            brought = (at_first - gain.lacking) * HOPELESS
            if steps * gain.lacking > brought * at_most or trial * gain.lacking > brought * TRIALS:
                return None
        by_pair = gain.by_pair if model.groups is None else model.per_group(gain.by_pair) / model.group_sizes()
        per_draw = travel.for_growth(visits, by_pair) if shared is None else shared
        visits = grown_visits(visits, by_pair, per_draw, gain.lacking)
        steps = float(((visits - model.visits) * per_draw).sum())
        if steps > at_most:
            break
    return visits
