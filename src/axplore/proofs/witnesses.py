"""Episodes of one fixed policy as witnesses of a bound: what they prove, and when they are the cheaper way.

The lower bound of the best probability, and the upper bound of the worst one, follow from any policy. A test of whole
episodes of one policy needs the level of one hypothesis in place of one for each pair, and their draws count for the
other bound as well. Theorem 4 of docs/algorithms/questions.md has the proof; what is forecast here is an estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from axplore.proofs.chances import Asked, Chance
from axplore.proofs.narrowing import Narrowing, Trying
from axplore.records.properties import NO_CHOICE, Witness
from axplore.statistics.confidence import EPISODE_PART
from axplore.statistics.episodes import Bets, line_level, log_wealth
from axplore.types import RESET_ACTION, RESET_PAIR, IntArray
from axplore.worlds.contract import Answer, Trials

MULTIPLES: Final = ((0.25, 0.1), (0.5, 0.2), (1.0, 0.4), (2.0, 0.2), (4.0, 0.1))
"""The multiples of the fraction that is predicted to be best, and the parts of the wealth that stake them."""

MIXED: Final = 1.0
"""About what a mixture of bets costs, in nats."""

LONGEST: Final = 20.0
"""An episode ends after this many times its expected steps: those that have not arrived by then are hardly any."""

MOST_TESTS: Final = 12
"""No more tests are begun: each has a smaller level than that before."""

FORESEEN: Final = 0.5
"""A test begins if episodes of this part of the steps so far would prove as much as the region does."""

LARGEST_POLICY: Final = 10_000_000
"""Policies by steps and states with more entries are not tried."""

BISECTIONS: Final = 60


@dataclass(frozen=True, eq=False)
class EpisodesOfPolicy:
    """A test of one policy; everything but the outcomes is fixed before its first episode.

    Attributes:
        policy: the action to play by the world's number, [m], or by steps done and number, [steps + 1, m], where the
            last row ends every episode; RESET_ACTION ends an episode.
        ends: the numbers of the states in which an episode ends because the goal cannot be reached from there.
        horizon: the steps after which an episode ends.
        line: whose level it has, counted from 1.
        fractions, weights: of the bets.
        episodes, successes: what came of them.
    """

    policy: IntArray
    ends: tuple[int, ...]
    horizon: int
    line: int
    fractions: tuple[float, ...]
    weights: tuple[float, ...]
    episodes: int = 0
    successes: int = 0

    @property
    def bets(self) -> Bets:
        """What is staked."""
        return Bets(np.array(self.fractions), np.array(self.weights))

    def chance(self, delta: float) -> float:
        """The greatest chance of success that the outcomes prove, or nearly; 0 if none."""
        if not self.successes:
            return 0.0
        needed = -math.log(line_level(EPISODE_PART * delta, self.line))
        outcomes, bets = np.array([self.successes, self.episodes - self.successes]), self.bets
        low, high = 0.0, self.successes / self.episodes
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            losses = np.array([1.0 - 1.0 / middle, 1.0]) if middle > 0.0 else None
            if losses is not None and log_wealth(losses, outcomes, bets) >= needed:
                low = middle
            else:
                high = middle
        return min(low, 1.0 - 1e-12)

    def bound(self, delta: float, maximise: bool) -> float:
        """What it proves: a lower bound of the best probability, or an upper one of the worst."""
        chance = self.chance(delta)
        return chance if maximise else min(1.0 - chance + 1e-15, 1.0)

    def order(self, times: int) -> Trials:
        """Returns an order for more episodes; each begins with a RESET, so that they are independent."""
        return Trials(times, self.horizon + (self.policy.ndim == 2), self.policy, always_reset=True)

    def after(self, answer: Answer, succeeds: IntArray, fails: IntArray | None) -> EpisodesOfPolicy:
        """The test with the outcomes of more episodes.

        Args:
            answer: what came of an order.
            succeeds: the states whose entry is a success, by number.
            fails: the states whose entry is none, if every other end is a success; None if it is not.
        """
        if fails is None:
            successes = int(answer.entry_counts[np.isin(answer.entry_successors, succeeds)].sum())
        else:
            failed = np.isin(answer.entry_successors, fails)
            successes = answer.arrivals - int(answer.entry_counts[failed].sum())
        episodes = self.episodes + answer.completed
        return replace(
            self, episodes=episodes, successes=min(self.successes + max(min(successes, answer.completed), 0), episodes)
        )

    def record(self, asked: Asked, delta: float) -> Witness:
        """The test as a certificate keeps it, with indices in place of numbers."""
        known = asked.model.numbers[: asked.model.n_known]
        rows = np.atleast_2d(self.policy)[: self.horizon]
        choices = np.full((len(rows), len(known)), NO_CHOICE)
        planned = known < rows.shape[1]
        choices[:, planned] = np.where(rows[:, known[planned]] == RESET_ACTION, NO_CHOICE, rows[:, known[planned]])
        return Witness(
            bound=self.bound(delta, asked.question.maximise),
            policy=choices if self.policy.ndim == 2 else choices[0],
            ends=np.flatnonzero(np.isin(known, self.ends)),
            horizon=self.horizon,
            line=self.line,
            fractions=self.fractions,
            weights=self.weights,
            episodes=self.episodes,
            successes=self.successes,
        )


class Witnessing:
    """Which policy to test by episodes, and how many of them pay.

    Args:
        asked: the question.
        low, high: its bounds by the region.
        narrowing: what other draws would bring.
        delta: δ.
    """

    def __init__(self, asked: Asked, low: Chance, high: Chance, narrowing: Narrowing, delta: float) -> None:
        self._asked, self._narrowing, self._delta = asked, narrowing, delta
        self._maximise, self._within = asked.question.maximise, asked.question.within
        self._chance = low if self._maximise else high
        n_known = asked.model.n_known
        is_end = asked.is_asked[:n_known] & (high.values[:n_known] == 0.0)
        self._ends = is_end if not self._maximise and self._within is None else np.zeros(n_known, dtype=np.bool_)

    @property
    def is_possible(self) -> bool:
        """Whether an episode may begin, and its policy is not too large to keep.

        Without a number of steps the region is as sharp where supports close, and episodes took more steps in all.
        """
        if self._within is None:
            return False
        policy = np.atleast_2d(self._chance.policy)
        may_begin = self._asked.is_asked[0] and policy.size and policy[0, 0] >= 0 and not self._ends[0]
        return bool(may_begin) and policy.size <= LARGEST_POLICY

    def gap(self, tried: Trying) -> float:
        """By how much the region's bound of the witness side is from the frequencies."""
        return tried.chance - (self._chance.value if self._maximise else 1.0 - self._chance.value)

    def tried(self, test: EpisodesOfPolicy | None = None) -> Trying:
        """What episodes of a policy would show by the frequencies: that of the bound, or that of a test."""
        return self._narrowing.trying(self._pairs(test), self._ends_of(test))

    def new_test(self, tried: Trying, line: int, steps: float) -> EpisodesOfPolicy | None:
        """A test to begin; None if it would not prove more than the region with a good part of the steps so far."""
        if line > MOST_TESTS or not 0.0 < tried.chance < 1.0:
            return None
        episodes = FORESEEN * steps / tried.steps
        foreseen = self._spread(tried.chance, line) / math.sqrt(max(episodes, 1.0))
        if foreseen > self.gap(tried):
            return None
        multiples, weights = (np.array(column) for column in zip(*MULTIPLES, strict=True))
        fractions = np.minimum(multiples * min(foreseen / (1.0 - tried.chance), 1.0), 0.98)
        numbers, model = self._asked.model.numbers, self._asked.model
        pairs, known = np.atleast_2d(self._pairs()), numbers[: model.n_known]
        policy = np.full((len(pairs) + (self._within is not None), int(known.max()) + 1), RESET_ACTION)
        first = model.rows.state_pairs[:-1]
        policy[: len(pairs), known] = np.where(pairs == RESET_PAIR, RESET_ACTION, pairs - first)
        horizon = self._within if self._within is not None else math.ceil(LONGEST * tried.steps)
        return EpisodesOfPolicy(
            policy=policy if self._within is not None else policy[0],
            ends=tuple(known[self._ends].tolist()),
            horizon=horizon,
            line=line,
            fractions=tuple(fractions.tolist()),
            weights=tuple((weights / (weights.sum() * (1.0 + 1e-12))).tolist()),
        )

    def worth(self, test: EpisodesOfPolicy, tried: Trying, steps: float) -> int:
        """How many episodes of at most some steps gain more than other draws do; theirs count for the other bound."""
        lacking = self._narrowing.best_rate - self._narrowing.rate(tried.draws, tried.steps)
        most = steps / tried.steps
        if lacking <= 0.0:
            return math.ceil(most)
        wanted = (self._spread(tried.chance, test.line) / (2.0 * tried.steps * lacking)) ** (2.0 / 3.0)
        return math.ceil(min(max(wanted - test.episodes, 0.0), most))

    def _spread(self, chance: float, line: int) -> float:
        """How far a bound is from the truth after one episode; it falls like one over the root of their number."""
        nats = MIXED - math.log(line_level(EPISODE_PART * self._delta, line))
        return math.sqrt(2.0 * chance * (1.0 - chance) * nats)

    def _pairs(self, test: EpisodesOfPolicy | None = None) -> IntArray:
        """A policy as pairs by index, or RESET_PAIR, [n] or [steps, n]."""
        model, n_known = self._asked.model, self._asked.model.n_known
        if test is None:
            plays = self._asked.is_asked[:n_known] & ~self._ends & (self._chance.policy >= 0)
            return np.where(plays, self._chance.policy, RESET_PAIR)
        known, rows = model.numbers[:n_known], np.atleast_2d(test.policy)
        rows = rows[: test.horizon] if test.policy.ndim == 2 else rows
        pairs = np.full((len(rows), n_known), RESET_PAIR)
        planned = known < rows.shape[1]
        actions = rows[:, known[planned]]
        first = model.rows.state_pairs[:-1][planned]
        pairs[:, planned] = np.where(actions == RESET_ACTION, RESET_PAIR, first + actions)
        return pairs if test.policy.ndim == 2 else pairs[0]

    def _ends_of(self, test: EpisodesOfPolicy | None) -> IntArray:
        n_known = self._asked.model.n_known
        if test is None:
            return np.flatnonzero(self._ends)
        return np.flatnonzero(np.isin(self._asked.model.numbers[:n_known], test.ends))
