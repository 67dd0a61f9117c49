"""Which draws narrow the bounds of a probability soonest. An estimate: no proof depends on it.

Let U and W be the bounds of a question, and let each state play the action that decides the bound that is farther from
the truth: for Pmax the one of greatest upper bound, for Pmin the one of least lower bound. Then U - W from the initial
state is at most the sum, over these pairs, of the expected visits times what the slack of the pair adds to the width.
That falls like one over the square root of the draws, so that one more draw of a pair gains a known amount, and the
best way to sample is the policy that gains most per step. It is found by policy iteration on the frequencies, RESET
being one of its actions: it cuts where little is left to gain, and takes detours where much is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from axplore.proofs.chances import Asked, Chance
from axplore.proofs.narrowing_kernels import deciding_shares, stage_values, stage_weights
from axplore.proofs.row_kernels import UNKNOWN_SHIFT
from axplore.types import RESET_PAIR, BoolArray, FloatArray, IntArray

HORIZONS: Final = (100.0, 20_000.0)
"""Expected steps after which a trial is cut wherever it is, so that waiting in a loop has an end: at least, at most."""

WIDE, TIED = 5.0, (0.05, 1.0)
"""Actions that are no farther apart than this many times the width, squared, are looked at together; and the limits."""

IMPROVEMENTS: Final = 12
"""How often the sampling policy is improved at most."""

ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Sampling:
    """A way to sample.

    Attributes:
        policy: the pair to play in each known state, or RESET_PAIR, [n].
        steps: the expected steps of a trial, its RESET included.
        draws: the expected draws of each pair in a trial, [P].
        trials: the number of trials.
    """

    policy: IntArray
    steps: float
    draws: FloatArray
    trials: int = 1


@dataclass(frozen=True, eq=False)
class Trying:
    """What an episode of one policy shows by the frequencies.

    Attributes:
        chance: that it reaches the goal or, where the worst policy is asked for, that it surely misses it.
        steps: the expected steps, its RESET included.
        draws: the expected draws of each pair, [P].
    """

    chance: float
    steps: float
    draws: FloatArray


class _Draws(NamedTuple):
    """What slacks add to the width after a number of draws, [P]: of all pairs that share them, and of each alone."""

    weights: FloatArray
    visits: FloatArray
    own: FloatArray


class Narrowing:
    """What would narrow the bounds of a question.

    Args:
        asked: the question.
        low, high: its bounds.
        own_visits: how often each pair was drawn itself, also where pairs share their draws, [P].
        closing: the draws after which the support of each pair is closed, infinite if never, [P].
        is_witnessed: whether the bound that any policy proves comes from episodes, so that draws serve the other one.
        below, above: the question as the lower and the upper bound answer it, where departing from rows has a price
            that differs; the question itself when not given.
    """

    def __init__(
        self,
        asked: Asked,
        low: Chance,
        high: Chance,
        own_visits: IntArray,
        closing: FloatArray,
        is_witnessed: bool = False,
        below: Asked | None = None,
        above: Asked | None = None,
    ) -> None:
        self._asked, self._low, self._high = asked, low, high
        self._below, self._above = (below or asked).rows, (above or asked).rows
        self._own_visits, self._closing = own_visits, closing
        maximise = asked.question.maximise
        self._sides = (float(maximise), float(not maximise)) if is_witnessed else (1.0, 1.0)
        self._horizon = HORIZONS[1]
        self._model, self._rows = asked.model, asked.rows
        self._owners = np.repeat(np.arange(self._model.n_known), np.diff(self._rows.state_pairs))
        self._entry_pairs = np.repeat(np.arange(self._model.n_pairs), np.diff(self._rows.row_offsets))

    @cached_property
    def weights(self) -> FloatArray:
        """What the slack of each pair adds to the width from the initial state, [P]."""
        return self._by_stage[0] if self._asked.question.within is not None else self._at_once[0]

    @property
    def _tied(self) -> float:
        """How far apart actions may be to count as equally likely to decide a bound, as a part of the width.

        While bounds are far apart, whatever is left out now decides them later.
        """
        return float(np.clip(WIDE * (self._high.value - self._low.value), *TIED))

    @property
    def _shares(self) -> FloatArray:
        """How the actions that decide a bound share each state, [P]."""
        return self._by_stage[1] if self._asked.question.within is not None else self._at_once[1]

    def samplings(self, steps: float, n_parts: int) -> Iterator[Sampling]:
        """Yields ways to sample, one after the other, each until it gains half of what it gained at its beginning.

        Args:
            steps: those of all of them, at most.
            n_parts: the number of ways, at most.
        """
        self._horizon = float(np.clip(steps / 2.0, *HORIZONS))
        now = _Draws(self.weights, self._model.visits.astype(np.float64), self._own_visits.astype(np.float64))
        policy: IntArray | None = None
        for _ in range(n_parts):
            gains = self._gains(now)
            sampling = self._best_sampling(gains, policy)
            trials = self._trials(sampling, now, gains, max(1, math.ceil(steps / sampling.steps)))
            yield replace(sampling, trials=trials)
            policy, now = sampling.policy, self._after(now, sampling.draws * trials)
            steps -= trials * sampling.steps
            if steps <= 0.0:
                break

    def rate(self, draws: FloatArray, steps: float) -> float:
        """What a step takes off the width, if a trial has these draws and steps."""
        now = _Draws(self.weights, self._model.visits.astype(np.float64), self._own_visits.astype(np.float64))
        return float(draws @ self._gains(now)) / steps

    @cached_property
    def best_rate(self) -> float:
        """What a step takes off the width at best."""
        now = _Draws(self.weights, self._model.visits.astype(np.float64), self._own_visits.astype(np.float64))
        gains = self._gains(now)
        best = self._best_sampling(gains, None)
        return float(best.draws @ gains) / best.steps

    def trying(self, policy: IntArray) -> Trying:
        """What an episode of a policy shows by the frequencies.

        Args:
            policy: the pair to play by steps done and known state, or RESET_PAIR, [steps, n].
        """
        question, n_known = self._asked.question, self._model.n_known
        draws, left = self._stepwise_draws(policy)
        steps = 1.0 + float(draws.sum())
        if question.maximise:
            return Trying(self._led_to(question.reach, draws), steps, draws)
        safe = question.avoid.copy()
        safe[:n_known] |= np.diff(self._rows.state_pairs) == 0
        return Trying(min(self._led_to(safe & ~question.reach, draws) + left, 1.0), steps, draws)

    def _led_to(self, ends: BoolArray, draws: FloatArray) -> float:
        """How often these draws lead to some states, by the frequencies."""
        flow = draws[self._entry_pairs] * self._rows.frequencies
        return min(float(flow[ends[self._rows.successors]].sum()), 1.0)

    def _stepwise_draws(self, policy: IntArray) -> tuple[FloatArray, float]:
        """The expected draws of each pair under a policy that depends on the step, [P], and the mass that is left."""
        n_all, draws = len(self._model.numbers), np.zeros(self._model.n_pairs)
        here: FloatArray = np.zeros(n_all)
        here[0] = 1.0
        for choice in policy:
            plays = choice != RESET_PAIR
            mass = np.zeros(self._model.n_pairs)
            mass[choice[plays]] = here[: len(choice)][plays]
            draws += mass
            flow = mass[self._entry_pairs] * self._rows.frequencies
            here = np.bincount(self._rows.successors, flow, minlength=n_all).astype(np.float64)
            here[~self._asked.is_asked] = 0.0
            if here.sum() <= ROUNDING:
                break
        return draws, float(here.sum())

    def _trials(self, sampling: Sampling, now: _Draws, gains: FloatArray, most: int) -> int:
        """The number of trials after which the gain of a way to sample has fallen to a half."""
        half = 0.5 * float(sampling.draws @ gains)
        least = 1
        while least < most:
            middle = (least + most + 1) // 2
            if float(sampling.draws @ self._gains(self._after(now, sampling.draws * middle))) >= half:
                least = middle
            else:
                most = middle - 1
        return least

    def _after(self, now: _Draws, drawn: FloatArray) -> _Draws:
        """What is left to gain after further draws, [P], if the frequencies stay."""
        shared = self._model.per_group(drawn)
        visits = now.visits + shared
        weights = now.weights * np.sqrt((now.visits + 1.0) / (visits + 1.0))
        settled = (now.visits < self._closing) & (visits >= self._closing) & (np.diff(self._rows.row_offsets) < 2)
        return _Draws(np.where(settled, 0.0, weights), visits, now.own + drawn)

    def _gains(self, now: _Draws) -> FloatArray:
        """What one more draw of each pair takes off the width, [P]."""
        per_draw = now.weights / (2.0 * (now.visits + 1.0))
        # A support that will be closed takes off all that it adds, and then every draw before has had its part in it.
        left = np.maximum(self._closing - now.visits, 0.0)
        per_draw = np.where(left > 0.0, np.maximum(per_draw, now.weights / (left + 1.0)), per_draw)
        gains = self._model.per_group(per_draw)
        rest = self._rows.rest  # where outcomes that pairs share lead is seen by draws of the pair itself
        return gains + np.where(rest > 0.0, now.weights / (now.own + 1.0), 0.0)

    def _shifts(self) -> FloatArray:
        return np.full(self._model.n_pairs, UNKNOWN_SHIFT)

    @cached_property
    def _by_stage(self) -> tuple[FloatArray, FloatArray]:
        """Weights and shares, [P] each, if a number of steps is given: then actions may depend on the step."""
        asked, rows, question = self._asked, self._rows, self._asked.question
        assert question.within is not None
        shape, weights = (question.within + 1, len(self._model.numbers)), np.zeros(self._model.n_pairs)
        uppers, lowers = np.empty(shape), np.empty(shape)
        uppers[:], lowers[:] = asked.outside(), question.reach
        uppers[0] = question.reach
        stage_values(rows, asked.order, uppers, self._shifts(), True, question.maximise)
        stage_values(rows, asked.order, lowers, self._shifts(), False, question.maximise)
        played = np.zeros(self._model.n_pairs)
        stage_weights(
            rows, asked.order, uppers, lowers, self._shifts(), question.maximise, self._tied, weights, played,
            *self._sides,
        )  # fmt: skip
        of_state = np.bincount(self._owners, played, minlength=self._model.n_known)[self._owners]
        return weights, np.divide(played, of_state, out=np.zeros_like(played), where=of_state > 0.0)

    @cached_property
    def _at_once(self) -> tuple[FloatArray, FloatArray]:
        """Weights and shares, [P] each, without a number of steps."""
        shares, gaps = np.zeros(self._model.n_pairs), np.zeros(self._model.n_pairs)
        deciding_shares(
            self._above, self._below, self._asked.order, self._high.values, self._low.values, self._shifts(),
            self._asked.question.maximise, self._tied, shares, gaps, *self._sides,
        )  # fmt: skip
        occupancy = _Solved(self._transitions(shares), shares > 0.0, self._owners, self._horizon).occupancy
        return shares * occupancy[self._owners] * gaps, shares

    def _transitions(self, shares: FloatArray) -> Any:
        """The frequencies with which one gets from each known state to each, given shares of actions, [n, n]."""
        from scipy.sparse import csr_array

        rows, n_known, pairs = self._rows, self._model.n_known, self._entry_pairs
        used = np.flatnonzero((shares[pairs] > 0.0) & (rows.successors < n_known))
        weights = shares[pairs[used]] * rows.frequencies[used]
        return csr_array((weights, (self._owners[pairs[used]], rows.successors[used])), shape=(n_known, n_known))

    def _best_sampling(self, gains: FloatArray, start: IntArray | None) -> Sampling:
        """The policy that gains most per step, found by improving another one, or all that decide together."""
        shares = self._shares if start is None else self._all_of(start)
        policy = np.full(self._model.n_known, RESET_PAIR) if start is None else start
        best: tuple[float, IntArray, _Solved, float] | None = None
        for _ in range(IMPROVEMENTS):
            system = _Solved(self._transitions(shares), shares > 0.0, self._owners, self._horizon)
            here = np.bincount(self._owners, shares * gains, minlength=self._model.n_known).astype(np.float64)
            gained, taken = system.sums(here)
            rate = gained[0] / taken[0]
            if (policy != RESET_PAIR).any() and (best is None or rate > best[0]):
                best = rate, policy, system, float(taken[0])
            better = self._improved(policy, gains, gained - rate * taken, rate)
            if np.array_equal(better, policy):
                break
            policy, shares = better, self._all_of(better)
        assert best is not None
        _, policy, system, steps = best
        draws, plays = np.zeros(self._model.n_pairs), policy != RESET_PAIR
        draws[policy[plays]] = system.occupancy[plays]
        return Sampling(policy, steps, draws)

    def _all_of(self, policy: IntArray) -> FloatArray:
        """A policy as shares of pairs, [P]."""
        shares = np.zeros(self._model.n_pairs)
        shares[policy[policy != RESET_PAIR]] = 1.0
        return shares

    def _improved(self, policy: IntArray, gains: FloatArray, values: FloatArray, rate: float) -> IntArray:
        """The policy that is best for one step, if every step costs the rate, and values follow; RESET included."""
        rows, n_known, asked = self._rows, self._model.n_known, self._asked.is_asked
        every = np.full(len(self._model.numbers), -rate)  # what is not known is left by RESET
        every[:n_known] = np.where(asked[:n_known], values, -rate)
        ahead = np.bincount(self._entry_pairs, rows.frequencies * every[rows.successors], minlength=self._model.n_pairs)
        ahead = np.where(np.diff(rows.row_offsets) == 0, -rate, ahead)
        worth = gains - rate + ahead
        best = np.full(n_known, -np.inf)
        np.maximum.at(best, self._owners, worth)
        chosen, is_best = np.full(n_known, RESET_PAIR), np.flatnonzero(worth >= best[self._owners])
        chosen[self._owners[is_best[::-1]]] = is_best[::-1]
        # The action before is kept where no other is better by more than rounding.
        kept = policy != RESET_PAIR
        kept[kept] &= worth[policy[kept]] >= best[kept] - ROUNDING * np.abs(best[kept])
        stops = (best <= -rate) | ~asked[:n_known]
        stops[0] = False  # a trial has at least one step
        return np.where(stops, RESET_PAIR, np.where(kept, policy, chosen))


class _Solved:
    """The chain of a policy that resets, solved once.

    Args:
        transitions: the probabilities of getting from each known state to each, [n, n].
        plays: whether each pair is played, [P].
        owners: the state of each pair, [P].
        horizon: the expected steps after which a trial is cut wherever it is.
    """

    def __init__(self, transitions: Any, plays: BoolArray, owners: IntArray, horizon: float) -> None:
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        self._n = transitions.shape[0]
        self._plays = np.bincount(owners[plays], minlength=self._n) > 0
        self._stays = 1.0 - 1.0 / horizon
        self._to_known = transitions
        self._solver = splu((eye_array(self._n) - self._stays * transitions).tocsc())

    @cached_property
    def occupancy(self) -> FloatArray:
        """The expected visits of each state in a trial, [n]."""
        start = np.zeros(self._n)
        start[0] = 1.0
        visits: FloatArray = np.maximum(self._solver.solve(start, trans="T"), 0.0)  # type: ignore[call-overload]
        return visits

    def sums(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The expected gains of a trial from each state, and its steps, that of the RESET included, [n] each."""
        stays = np.asarray(self._to_known.sum(axis=1)).ravel() * self._stays
        steps = np.where(self._plays, 2.0 - stays, 1.0)  # where it leaves the known states, a RESET follows
        return self._solver.solve(np.where(self._plays, gains, 0.0)), self._solver.solve(steps)


def by_number(policy: IntArray, first_pairs: IntArray, numbers: IntArray) -> IntArray:
    """A policy of pairs by index as one of actions by the world's number, [greatest number + 1]."""
    actions = np.full(int(numbers.max()) + 1, RESET_PAIR)
    actions[numbers] = np.where(policy == RESET_PAIR, RESET_PAIR, policy - first_pairs)
    return actions
