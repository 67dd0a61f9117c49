"""Episodes of one fixed policy as witnesses of a bound: what they prove, and when they are the cheaper way.

Within a number of steps, the lower bound of the best probability and the upper bound of the worst one follow from any
policy. A test of whole episodes of one policy needs the level of one hypothesis in place of one for each pair, and
their draws count for the other bound as well. Theorem 4 of docs/algorithms/questions.md has the proof; what is forecast
here is an estimate.
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
        policy: the action to play by steps done and the world's number, [steps + 1, m]; RESET_ACTION ends an episode,
            and the last row ends every one.
        line: whose level it has, counted from 1.
        fractions, weights: of the bets.
        episodes, successes: what came of them.
    """

    policy: IntArray
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
        return Trials(times, len(self.policy), self.policy, always_reset=True)

    def reached(self, answer: Answer, goal: IntArray) -> EpisodesOfPolicy:
        """The test with the outcomes of more episodes, where those that reach a goal, by number, are successes."""
        return self._after(answer, int(answer.entry_counts[np.isin(answer.entry_successors, goal)].sum()))

    def missed(self, answer: Answer, safe: IntArray) -> EpisodesOfPolicy:
        """The test with the outcomes of more episodes, where those that surely miss a goal are successes.

        These are the episodes that ended by the policy, after the last step or in a state that is safe: by number,
        those from which the goal is not reached. Wherever else the policy plays nothing, an episode is no success.
        """
        plays = np.append(np.flatnonzero((self.policy[:-1] != RESET_ACTION).all(axis=0)), safe)
        ends_early = ~np.isin(answer.entry_successors, plays)
        return self._after(answer, max(answer.arrivals - int(answer.entry_counts[ends_early].sum()), 0))

    def _after(self, answer: Answer, successes: int) -> EpisodesOfPolicy:
        return replace(self, episodes=self.episodes + answer.completed, successes=self.successes + successes)

    def record(self, asked: Asked, delta: float) -> Witness:
        """The test as a certificate keeps it, with indices in place of numbers."""
        known = asked.model.numbers[: asked.model.n_known]
        choices = np.full((len(self.policy) - 1, len(known)), NO_CHOICE)
        planned = known < self.policy.shape[1]
        rows = self.policy[:-1, known[planned]]
        choices[:, planned] = np.where(rows == RESET_ACTION, NO_CHOICE, rows)
        return Witness(
            bound=self.bound(delta, asked.question.maximise),
            policy=choices,
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

    @property
    def is_possible(self) -> bool:
        """Whether an episode may begin, and its policy is not too large to keep.

        Without a number of steps nothing is tested: the region is as sharp where supports close, and episodes took more
        steps in all.
        """
        if self._within is None:
            return False
        policy = self._chance.policy
        may_begin = self._asked.is_asked[0] and policy.size and policy[0, 0] >= 0
        return bool(may_begin) and policy.size <= LARGEST_POLICY

    def gap(self, tried: Trying) -> float:
        """By how much the region's bound of the witness side is from the frequencies."""
        return tried.chance - (self._chance.value if self._maximise else 1.0 - self._chance.value)

    def tried(self, test: EpisodesOfPolicy | None = None) -> Trying:
        """What episodes of a policy would show by the frequencies: that of the bound, or that of a test."""
        return self._narrowing.trying(self._pairs(test))

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
        model, pairs = self._asked.model, self._pairs()
        known = model.numbers[: model.n_known]
        policy = np.full((len(pairs) + 1, int(known.max()) + 1), RESET_ACTION)
        policy[:-1, known] = np.where(pairs == RESET_PAIR, RESET_ACTION, pairs - model.rows.state_pairs[:-1])
        return EpisodesOfPolicy(
            policy=policy,
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
        return math.ceil(min(max(float(wanted) - test.episodes, 0.0), most))

    def _spread(self, chance: float, line: int) -> float:
        """How far a bound is from the truth after one episode; it falls like one over the root of their number."""
        nats = MIXED - math.log(line_level(EPISODE_PART * self._delta, line))
        return math.sqrt(2.0 * chance * (1.0 - chance) * nats)

    def _pairs(self, test: EpisodesOfPolicy | None = None) -> IntArray:
        """A policy as pairs by index, or RESET_PAIR, [steps, n]: that of the bound, or that of a test."""
        model, n_known = self._asked.model, self._asked.model.n_known
        if test is None:
            plays = self._asked.is_asked[:n_known] & (self._chance.policy >= 0)
            return np.where(plays, self._chance.policy, RESET_PAIR)
        known = model.numbers[:n_known]
        pairs = np.full((len(test.policy) - 1, n_known), RESET_PAIR)
        planned = known < test.policy.shape[1]
        actions = test.policy[:-1, known[planned]]
        pairs[:, planned] = np.where(
            actions == RESET_ACTION, RESET_PAIR, model.rows.state_pairs[:-1][planned] + actions
        )
        return pairs
