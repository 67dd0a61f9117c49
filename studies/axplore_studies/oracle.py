"""The least steps in which claims could be proven, for whoever knows the model and chooses every visit beforehand.

The *oracle* knows the true rows, so that it draws each pair as often as is best, and travels along the best ways. What
it has to prove it proves as the certified explorer does: by a confidence region around frequencies, which it takes to
be the true rows. So what an explorer takes beyond it is the price of not knowing; what the oracle takes beyond the
least steps of any algorithm is the price of the region, and that is told apart by making the region less honest.

The least steps are found by a sequence of convex programmes. A claim that is just proven with the draws n, and would
gain g by the logarithm of each of them, is taken to hold for other draws m where sum of g sqrt(n / m) <= sum of g: what
is lacking to a proof is about a sum of terms that fall like the root of the draws. Each programme is solved by cutting
planes, for draws near the best ones; then all draws are scaled to where every claim is proven indeed. What is found is
a local optimum: an upper bound of what the best oracle takes, and proven to suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.compressed import entries_in
from axplore.errors import NotConvergedError
from axplore.mdp import TabularMdp
from axplore.proofs.bounds import IntervalModel, interval_model
from axplore.proofs.claims import ToOptimise, ToProve, ToReach, ToSetAside
from axplore.records.counts import Counts
from axplore.records.order import Labels
from axplore.statistics.centred import central_ball
from axplore.statistics.confidence import SharedBudget, confidence_region
from axplore.target import Target
from axplore.types import FloatArray, IntArray, State
from axplore_studies.lower_bounds.programme import flow_matrix, needed_information

if TYPE_CHECKING:
    from scipy.sparse import csr_array

REGION: Final = "region"
ONE_LEVEL: Final = "one level"
ONE_LOOK: Final = "one look"
INFORMATION: Final = "kl"

REGIONS: Final = (INFORMATION, ONE_LOOK, ONE_LEVEL, REGION)
"""From the least honest one: balls of the kl(δ, 1 − δ) nats that any algorithm needs; of the ln(1/δ) nats that suffice
for one fixed functional of one row that is looked at once; with martingales, and the level δ for every row; and the
region as it is."""

AS_IF: Final = 10**9
"""Counts that stand for a true row add up to about this."""

FINENESS: Final = 1.02
"""Draws are multiplied by powers of this until every claim is proven."""

BINDING: Final = 35
"""A claim that stays proven with this many powers less does not bind."""

ROUNDS: Final = 25
REACH, LEAST_REACH, NARROWING = 2.0, 1.05, 0.7
"""The factor within which the draws of a round are sought, at first and at last, and its power after one in vain."""

REMEMBERED: Final = 6
"""The number of rounds whose claims that bind are kept: those of one alone let draws go to and fro."""

CUTS: Final = 12
SETTLED: Final = 1e-3
"""How often a programme is cut at most, and by what part a claim may miss its proof after that."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Draws with which everything is proven.

    Attributes:
        steps: what they take in expectation, the travel included.
        draws: of each pair of the known states, [P].
    """

    steps: float
    draws: FloatArray

    def mixed(self, other: Allocation, part: float) -> Allocation:
        """Another in place of a part of this one: it can be travelled as well as they can."""
        return Allocation(
            (1.0 - part) * self.steps + part * other.steps, (1.0 - part) * self.draws + part * other.draws
        )

    def times(self, factor: float) -> Allocation:
        """The same, so many times."""
        return Allocation(factor * self.steps, factor * self.draws)


@dataclass(frozen=True, eq=False)
class Oracle:
    """Who knows the model.

    Attributes:
        mdp: the model.
        known: the labels of the states to admit, in this order; all others that can be seen are set aside.
        target: L, ε and δ.
        region: one of `REGIONS`.
    """

    mdp: TabularMdp
    known: Sequence[State]
    target: Target
    region: str = REGION

    @cached_property
    def model(self) -> IntervalModel:
        """The true rows of the known states, with hardly any slack."""
        counts = true_counts(self.mdp, self.known)
        region = confidence_region(counts, self.target.delta)
        region = replace(region, lows=np.zeros(len(region.lows)))  # those of so many draws; none are used (Eq. 21)
        return interval_model(counts, region, self.target.value_limit)

    @cached_property
    def claims(self) -> list[ToProve]:
        """What is to be proven."""
        radius, epsilon, model = self.target.radius, self.target.epsilon, self.model
        admitted: list[ToProve] = [ToReach(goal, radius + epsilon, goal) for goal in range(1, model.n_known)]
        optimal: list[ToProve] = [ToOptimise(goal, epsilon) for goal in range(1, model.n_known)]
        beyond: list[ToProve] = [ToSetAside(goal, radius) for goal in (*model.frontier, model.unseen)]
        return admitted + optimal + beyond

    def model_after(self, draws: FloatArray) -> IntervalModel:
        """What is known after these numbers of draws, [P], if the frequencies are the true rows."""
        if self.region == INFORMATION:
            return self.model_within(needed_information(self.target.delta) / draws)
        if self.region == ONE_LOOK:
            return self.model_within(-math.log(self.target.delta) / draws)
        if self.region == ONE_LEVEL:
            log_level = math.log(self.target.delta)
            return self._model_by_bets(draws, np.full(len(draws), log_level), (SharedBudget(1, -log_level),))
        assert self.model.log_levels is not None
        return self._model_by_bets(draws, self.model.log_levels, self.model.shared_budgets)

    def model_within(self, distances: FloatArray) -> IntervalModel:
        """All models whose rows are at most so far from the true ones, in nats, [P]."""
        rows = self.model.rows._replace(shares=self.model.rows.frequencies, slack=distances)
        return replace(self.model, rows=rows, counts=None, log_levels=None, starts={}, sharp={})

    def _model_by_bets(
        self, draws: FloatArray, log_levels: FloatArray, budgets: tuple[SharedBudget, ...]
    ) -> IntervalModel:
        """The region of the explorer with these levels, [P], and what pairs with one successor share."""
        frequencies, offsets = self.model.rows.frequencies, self.model.rows.row_offsets
        counts = np.maximum(frequencies * np.repeat(draws, np.diff(offsets)), 1.0)
        shares, slack = frequencies.copy(), np.empty(len(draws))
        for pair, (first, end) in enumerate(pairwise(offsets)):
            slack[pair] = central_ball(counts[first:end], log_levels[pair], shares[first:end])
            if end == first + 1:
                left = [budget.nats / max(draws[pair] - budget.after, 1e-9) for budget in budgets]
                slack[pair] = min(slack[pair], *left)
        rows = self.model.rows._replace(shares=shares, slack=slack)
        return replace(
            self.model,
            rows=rows,
            visits=draws,  # type: ignore[arg-type]  # expected ones, and no integers
            counts=counts,
            log_levels=log_levels,
            shared_budgets=budgets,
            starts={},
            sharp={},
        )

    def best(self, starts: Iterable[FloatArray] = ()) -> Allocation:
        """The best draws that are found, begun with equal ones and with others, [P]."""
        equal = np.ones(self.model.n_pairs)
        return min((self._best_from(start) for start in (equal, *starts)), key=lambda found: found.steps)

    def cheapest(self, cuts: FloatArray, level: float) -> Allocation:
        """The draws with cuts @ draws >= level, [n, P], that take the fewest steps."""
        n_pairs = self.model.n_pairs
        return self._programme(np.zeros(n_pairs), np.full(n_pairs, np.inf), cuts, np.full(len(cuts), level))

    def _best_from(self, start: FloatArray) -> Allocation:
        best, binding = self._enough(start)
        reach, rounds = REACH, [binding]
        for _ in range(ROUNDS):
            remembered = [claim for binding in rounds[-REMEMBERED:] for claim in binding]
            found, binding = self._enough(self._sought(best.draws, remembered, reach))
            rounds.append(binding)
            if found.steps < best.steps:
                best = found
            else:
                reach = reach**NARROWING
            if reach < LEAST_REACH:
                break
        return best

    def _enough(self, draws: FloatArray) -> tuple[Allocation, list[Binding]]:
        """Draws in proportion to some, [P], with which every claim is proven, and the claims that bind then."""
        after = cache(lambda power: self.model_after(draws * FINENESS**power))
        powers: dict[ToProve, int] = {}
        greatest = _least_power(self.claims[-1], after, 0)
        for claim in self.claims:
            if not claim.gain(after(greatest - BINDING)).proven:
                powers[claim] = _least_power(claim, after, greatest)
                greatest = max(greatest, powers[claim])
        last = [(claim.gain(after(power - 1)), power) for claim, power in powers.items() if power > greatest - BINDING]
        # Where a deduction (Theorem 4) proves a claim that rows do not come near, they say nothing of what it gains.
        binding = [Binding(gain.by_pair, draws * FINENESS ** (power - 1)) for gain, power in last if gain.by_pair.any()]
        no_cuts = np.zeros((0, len(draws)))
        return self._programme(draws * FINENESS**greatest, np.full(len(draws), np.inf), no_cuts, np.zeros(0)), binding

    def _sought(self, draws: FloatArray, binding: Sequence[Binding], reach: float) -> FloatArray:
        """The draws near some, [P], that take the fewest steps if claims hold where it is thought that they do."""
        possible = [claim for claim in binding if claim.at(draws * reach) < 1.0 - SETTLED]
        cuts, levels, found = np.zeros((0, len(draws))), np.zeros(0), draws / reach
        for _ in range(CUTS):
            missing = [claim for claim in possible if claim.at(found) > 1.0 + SETTLED]
            if not missing:
                break
            planes = [claim.cut(found) for claim in missing]
            cuts = np.vstack((cuts, *(plane for plane, _ in planes)))
            levels = np.append(levels, [level for _, level in planes])
            found = self._programme(draws / reach, draws * reach, cuts, levels).draws
        return found

    def _programme(self, least: FloatArray, most: FloatArray, cuts: FloatArray, levels: FloatArray) -> Allocation:
        """The draws, [P], between bounds and with cuts @ draws >= levels, that take the least expected steps."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack, vstack

        n_states = self.mdp.n_states  # as many RESETs
        arriving = np.zeros(n_states)
        arriving[self.mdp.initial_index] = 1.0
        bounds = np.concatenate((np.stack((least, most), axis=1), np.tile((0.0, np.inf), (n_states, 1))))
        found = linprog(  # type: ignore[call-overload]  # its stubs know dense matrices only
            np.ones(len(least) + n_states),
            A_ub=vstack((self._flow, hstack((csr_array(-cuts), csr_array((len(levels), n_states)))))),
            b_ub=np.concatenate((arriving, -levels)),
            bounds=bounds,
            method="highs",
        )
        if found.x is None:
            raise NotConvergedError(f"the linear programme could not be solved: {found.message}")
        return Allocation(float(found.fun), np.array(found.x[: len(least)]))

    @cached_property
    def _pairs(self) -> IntArray:
        """The pairs of the known states in the model, [P]."""
        states = np.array([self.mdp.index_of(label) for label in self.known])
        return entries_in(self.mdp.state_pairs, states)

    @cached_property
    def _flow(self) -> csr_array[np.float64]:
        """Plays minus arrivals in each state of the model, by pair of a known state and by RESET, [S, P + S]."""
        whole = flow_matrix(self.mdp)
        return whole[:, np.concatenate((self._pairs, self.mdp.n_pairs + np.arange(self.mdp.n_states)))]


@dataclass(frozen=True, eq=False)
class Binding:
    """A claim that was about to be proven.

    Attributes:
        gain: what it gained by the logarithm of the draws of each pair, [P].
        draws: those with which it was about to be proven, [P].
    """

    gain: FloatArray
    draws: FloatArray

    def at(self, draws: FloatArray) -> float:
        """What is lacking to its proof with other draws, [P], as a part of what may be: it holds up to 1."""
        return float(self.gain @ np.sqrt(self.draws / draws)) / float(self.gain.sum())

    def cut(self, draws: FloatArray) -> tuple[FloatArray, float]:
        """A plane between all draws for which the claim holds and these, [P]: plane @ draws >= level where it does."""
        slopes = 0.5 * self.gain * np.sqrt(self.draws / draws) / draws / self.gain.sum()
        return slopes, float(slopes @ draws) + self.at(draws) - 1.0


def _least_power(claim: ToProve, after: Callable[[int], IntervalModel], near: int) -> int:
    """The least power with which a claim is proven, sought from near."""
    step, low, high = 1, near - 1, near
    while not claim.gain(after(high)).proven:
        step *= 2
        low, high = high, high + step
    while claim.gain(after(low)).proven:
        step *= 2
        low, high = low - step, low
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if claim.gain(after(middle)).proven else (middle, high)
    return high


def true_counts(mdp: TabularMdp, known: Sequence[State]) -> Counts:
    """The rows of some states of a model as counts, each row with the likeliest successor first."""
    numbers, lengths, successors, counts, first_draws = {label: n for n, label in enumerate(known)}, [], [], [], []
    for label in known:
        for action in mdp.actions_of(label):
            row = sorted(mdp.row(label, action).items(), key=lambda item: -item[1])
            lengths.append(len(row))
            successors += [numbers.setdefault(successor, len(numbers)) for successor, _ in row]
            counts += [max(round(AS_IF * probability), 1) for _, probability in row]
            first_draws += [place + math.ceil(1.0 / probability) for place, (_, probability) in enumerate(row)]
    return Counts(
        order=Labels(numbers),
        actions=tuple(Labels(mdp.actions_of(label)) for label in known),
        states=np.arange(len(known)),
        row_offsets=np.cumsum([0, *lengths]),
        successors=np.array(successors),
        counts=np.array(counts),
        first_draws=np.array(first_draws),
    )
