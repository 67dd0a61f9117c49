"""Streaming tests of whether what follows a pair depends on anything else than the pair.

If a state says all that matters, then the successors of a pair are independent draws from one distribution, whatever
came before: where the agent came from, what it saw last time, how long it has been under way. Call such a circumstance
a *context*. It must be known before the draw.

The test bets against independence. For each pair it multiplies the probabilities q that a predictor, which knows the
context, gives to what comes next, and divides by the largest probability that any one distribution gives to it:

    E = Π_t q_t(x_t) / max_p Π_t p(x_t)

Under independence the true distribution is among those p, and Π q / Π p_true is a martingale that starts at 1, so by
Ville's inequality E ever reaches 1/α with a probability of at most α (Wasserman, Ramdas, Balakrishnan, *Universal
inference*, PNAS 2020). This holds at all times at once, for any way of choosing actions and of stopping, and also
where the context depends on earlier successors, as predecessors do: there a chi-square test of a table is wrong.

Successors that a pair has not had before cannot be named in advance. The predictor gives them one probability
together, and the denominator takes 1 for it, which only makes E smaller.

Pairs share the level: the r-th pair met alarms at E ≥ r (r + 1) / α, and Σ 1 / (r (r + 1)) = 1.

`TimingTest` looks for an event that comes at one moment, whatever pair is played then. A hidden limit on the length of
an episode shows as such an event: the return to the start comes at the suspected moment from any pair, while the same
pairs do not cause it at other moments. No pair alone has enough draws at that moment, so the test bets on all of them
together:

    E = q(events at the moment, of all pairs) · Π_pairs q(events of the pair at other times)
        / Π_pairs max_p p(events of the pair at all times)

If the event depends on the pair alone, E ever reaches 1/α with a probability of at most α, whatever moments are
suspected, as long as they are chosen before the draw.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import lgamma
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from axplore.errors import InvalidSettingError

PRIOR_DRAWS: Final = 1.0
"""The weight, in draws, of all contexts together in the prediction for one of them."""

NOVELTY: Final = 0.5
"""The prior weight, in draws, of each successor, and of any new one (Krichevsky, Trofimov)."""


@dataclass(frozen=True)
class Dependence:
    """An alarm: the successors of a pair depend on the context.

    Attributes:
        pair: the pair.
        draws: the number of draws from the pair.
        table: the counts of each successor in each context.
        log_evidence: log E at that moment.
    """

    pair: Hashable
    draws: int
    table: dict[Hashable, dict[Hashable, int]]
    log_evidence: float


class PairBet:
    """The bet on one pair."""

    def __init__(self) -> None:
        self.draws = 0
        self.table: dict[Hashable, dict[Hashable, int]] = {}
        self._totals: dict[Hashable, int] = {}
        self._context_draws: dict[Hashable, int] = {}
        self._log_predicted = 0.0
        self._log_repeats = 0.0  # Σ (n_x - 1) log (n_x - 1), over the successors met

    @property
    def log_evidence(self) -> float:
        """The logarithm of E: the gain of the predictor beyond what one distribution can explain."""
        repeats = self.draws - len(self._totals)
        return self._log_predicted - (self._log_repeats - _x_log_x(repeats))

    def add(self, context: Hashable, successor: Hashable) -> None:
        """Adds a draw."""
        self._log_predicted += math.log(self._predicted(context, successor))
        times = self._totals.get(successor, 0)
        if times:
            self._log_repeats += _x_log_x(times) - _x_log_x(times - 1)
        self._totals[successor] = times + 1
        row = self.table.setdefault(context, {})
        row[successor] = row.get(successor, 0) + 1
        self._context_draws[context] = self._context_draws.get(context, 0) + 1
        self.draws += 1

    def _predicted(self, context: Hashable, successor: Hashable) -> float:
        """q: as in this context before, mixed with what all contexts had before."""
        n_outcomes = len(self._totals) + 1  # the last one is: any successor that is new
        overall = (self._totals.get(successor, 0) + NOVELTY) / (self.draws + NOVELTY * n_outcomes)
        here = self.table.get(context, {}).get(successor, 0)
        return (here + PRIOR_DRAWS * overall) / (self._context_draws.get(context, 0) + PRIOR_DRAWS)


class _Bet(Protocol):
    """What the tests need of the bet on one pair."""

    draws: int

    @property
    def table(self) -> Mapping[Hashable, Mapping[Hashable, int]]: ...

    @property
    def log_evidence(self) -> float: ...


Bet = TypeVar("Bet", bound=_Bet)


class _PairwiseTest(Generic[Bet]):
    """Bets on every pair that is met; the first alarm stays. The r-th pair alarms at E ≥ r (r + 1) / α."""

    def __init__(self, false_alarm: float, bet: Callable[[], Bet]) -> None:
        if not 0 < false_alarm < 1:
            raise InvalidSettingError(f"false_alarm is {false_alarm}; it must be between 0 and 1")
        self._log_level = -math.log(false_alarm)
        self._new_bet = bet
        self._bets: dict[Hashable, Bet] = {}
        self._ranks: dict[Hashable, int] = {}
        self.alarm: Dependence | None = None

    def _bet(self, pair: Hashable) -> Bet:
        bet = self._bets.get(pair)
        if bet is None:
            bet = self._bets[pair] = self._new_bet()
            self._ranks[pair] = self._rank_of_new()
        return bet

    def _rank_of_new(self) -> int:
        """Returns r of a pair that is met for the first time, and has a bet by now."""
        return len(self._bets)

    def _threshold(self, pair: Hashable) -> float:
        rank = self._ranks[pair]
        return self._log_level + math.log(rank * (rank + 1))

    def _look_at(self, pair: Hashable, bet: Bet) -> None:
        """Alarms if the bet on a pair has gained enough."""
        if self.alarm is None and bet.log_evidence >= self._threshold(pair):
            table = {context: dict(row) for context, row in bet.table.items()}
            self.alarm = Dependence(pair, bet.draws, table, bet.log_evidence)


class HomogeneityTest(_PairwiseTest[PairBet]):
    """Bets on every pair, draw by draw."""

    def __init__(self, false_alarm: float) -> None:
        """Begins without any draw.

        Args:
            false_alarm: α, the probability with which it ever alarms although successors depend on their pair alone.
        """
        super().__init__(false_alarm, PairBet)

    @property
    def margin(self) -> float:
        """By how much the strongest bet is now above what it takes to alarm, as a logarithm; no draws, no margin."""
        margins = (bet.log_evidence - self._threshold(pair) for pair, bet in self._bets.items())
        return max(margins, default=-math.inf)

    def add(self, pair: Hashable, context: Hashable, successor: Hashable) -> None:
        """Adds a draw of a pair in a context that was known before it."""
        bet = self._bet(pair)
        bet.add(context, successor)
        self._look_at(pair, bet)


MOST_WAITING: Final = 4
"""The batches of a pair with one successor that are kept until it is needed to know what was bet on them."""


class HistoryTest(_PairwiseTest["_BatchBet"]):
    """The same question asked of draws that come as counted batches, which is quick enough to be asked all along.

    What a batch holds must not depend on what it is: whoever cuts the draws into batches has to choose the end of one
    before it comes. A predictor knows the contexts and everything before the batch. For each context it takes the
    Dirichlet distribution around what came there before, and around what came anywhere, so that the probability of a
    batch depends on its counts alone. Successors that are new in a batch count together as one. Predictors differ in
    how much they expect contexts to be alike (`TIES`) and, where contexts have an order, in which of them they take for
    one and the same (`SPLITS`); E is their mean.
    """

    def __init__(self, false_alarm: float, *, is_ordered: bool = False) -> None:
        """Begins without any draw.

        Args:
            false_alarm: α, the probability with which it ever alarms although successors depend on their pair alone.
            is_ordered: whether contexts are the numbers of classes, from 0 on, whose order means something.
        """
        super().__init__(false_alarm, partial(_BatchBet, is_ordered=is_ordered))
        self._waiting: dict[Hashable, tuple[int, tuple[_Rows, ...]]] = {}

    def begin_with(self, pair: Hashable, context: Hashable, counts: Mapping[Hashable, int]) -> None:
        """Adds all draws of a pair in one context so far, which came one by one; each context once."""
        self._bet(pair).begin_with(context, counts)

    def add(self, draws: Iterable[tuple[Hashable, Hashable, Hashable, int]]) -> None:
        """Adds a batch of draws, each a context, a pair, a successor and the number of times."""
        by_pair: defaultdict[Hashable, list[tuple[Hashable, Hashable, int]]] = defaultdict(list)
        for context, pair, successor, times in draws:
            by_pair[pair].append((context, successor, times))
        for pair, rows in by_pair.items():
            if not self._may_wait(pair, rows):
                bet = self._bet(pair)
                bet.add(rows)
                self._look_at(pair, bet)

    def _may_wait(self, pair: Hashable, rows: Sequence[tuple[Hashable, Hashable, int]]) -> bool:
        """Keeps a batch for later where a bet cannot have gained: the first few of a pair with one successor so far.

        Most pairs of a large system are drawn a few times only, and a bet takes far more memory than what it bets on.
        """
        if pair in self._bets:
            return False
        rank, batches = self._waiting.get(pair, (self._rank_of_new() + 1, ()))
        successor = batches[0][0][1] if batches else rows[0][1]
        may_wait = len(batches) < MOST_WAITING and all(row[1] == successor for row in rows)
        if may_wait:
            self._waiting[pair] = rank, (*batches, tuple(rows))
        return may_wait

    def _bet(self, pair: Hashable) -> _BatchBet:
        if pair not in self._waiting:
            return super()._bet(pair)
        rank, batches = self._waiting[pair]
        bet = super()._bet(pair)
        del self._waiting[pair]
        self._ranks[pair] = rank
        for rows in batches:
            bet.add(rows)
        return bet

    def _rank_of_new(self) -> int:
        return len(self._bets) + len(self._waiting)


def log_evidence_of_two(first: Mapping[Hashable, int], second: Mapping[Hashable, int]) -> float:
    """Returns log E that no one distribution explains two samples of a pair, each drawn one by one.

    The predictor takes the two rows for unrelated: each has a Dirichlet prior of 1/2 on the m successors that there
    are, and m itself the prior 1 / (m (m + 1)). They are named in the order of their first sight, in whichever sample.
    What it gives to the counts does not depend on the order of the draws, so that the samples may be interleaved and
    end in any way. The term of the m successors met bounds the sum over all m from below. One distribution explains the
    draws of successors that had been met before; for the first of each it is granted 1.
    """
    kinds = list({**first, **second})
    m = len(kinds)
    predicted = lgamma(m + 1) - math.log(m * (m + 1.0))
    for sample in (first, second):
        predicted += lgamma(m * NOVELTY) - lgamma(sum(sample.values()) + m * NOVELTY)
        predicted += sum(lgamma(times + NOVELTY) - lgamma(NOVELTY) for times in sample.values())
    repeats = [first.get(kind, 0) + second.get(kind, 0) - 1 for kind in kinds]
    return predicted - (sum(map(_x_log_x, repeats)) - _x_log_x(sum(repeats)))


def log_evidence_of_shares(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Returns log E that two samples have different shares of hits, given the hits and misses of each.

    The predictor takes the shares for unrelated, with a prior of 1/2 on hits and misses (Krichevsky, Trofimov); one
    share explains both at best with the likelihood of their frequency.
    """
    predicted = sum(
        lgamma(hits + NOVELTY) + lgamma(misses + NOVELTY) - lgamma(hits + misses + 2 * NOVELTY)
        - 2 * lgamma(NOVELTY) + lgamma(2 * NOVELTY)
        for hits, misses in (first, second)
    )  # fmt: skip
    hits, misses = first[0] + second[0], first[1] + second[1]
    return predicted - (_x_log_x(hits) + _x_log_x(misses) - _x_log_x(hits + misses))


def log_evidence_of_drop(before: tuple[int, int], now: tuple[int, int]) -> float:
    """Returns log E that something has become less probable; each sample has the number of hits and of misses.

    The hypothesis is that the probability has not fallen. The predictor gives each sample a prior of 1/2 on hits and on
    misses, and the likeliest probabilities that have not fallen are one and the same if the frequency has. They give
    the draws at least what the true ones give, so E has a mean of at most 1 at any time (universal inference).
    """
    drawn = sum(before), sum(now)
    if not all(drawn) or now[0] / drawn[1] >= before[0] / drawn[0]:
        return -math.inf
    return log_evidence_of_shares(before, now)


TIES: Final = (1.0, 16.0, 256.0)
"""The number of draws that what came anywhere counts in the prediction for one context, one for each predictor."""


SPLITS: Final = tuple(range(1, 13))
"""Where contexts are ordered, the classes at which something may begin to be otherwise."""


class _BatchBet:
    """The bet on one pair by batches: the mean of predictors, which group contexts in one way or another.

    Where contexts are ordered numbers, half of the stake is on there being two groups: those before a class, and those
    from it on. What expires, wears out or gets stuck is so, and two rows are learned from fewer draws than many.
    """

    def __init__(self, *, is_ordered: bool = False) -> None:
        self.draws = 0
        self._totals: dict[Hashable, int] = {}
        self._repeats: dict[Hashable, int] = {}  # draws of successors that were known by then
        self._each = _Predictors(lambda context: context)
        self._splits = _Splits() if is_ordered else None

    @property
    def table(self) -> dict[Hashable, dict[Hashable, int]]:
        """The counts of each successor in each context."""
        return self._each.rows

    @property
    def log_evidence(self) -> float:
        """The logarithm of E."""
        predicted = self._each.log_predicted
        if self._splits is not None:
            predicted = _log_mean([predicted, self._splits.log_predicted])
        explained = sum(map(_x_log_x, self._repeats.values())) - _x_log_x(sum(self._repeats.values()))
        return predicted - explained

    def begin_with(self, context: Hashable, counts: Mapping[Hashable, int]) -> None:
        """Adds draws that came one by one before any batch: each was a repeat, or new (Eq. 3 of certified.md).

        Draws in several contexts may have come in any order: what each predicts depends on its own alone.
        """
        kinds, total = len(counts), sum(counts.values())
        predicted = lgamma(kinds + 1) - math.log(kinds * (kinds + 1.0))
        predicted += lgamma(kinds / 2) - lgamma(total + kinds / 2) - kinds * lgamma(0.5)
        predicted += sum(lgamma(times + 0.5) for times in counts.values())
        everyone = self._predictors([context])
        for predictors in everyone:
            predictors.gain(predicted)
        for successor, times in counts.items():
            self._repeats[successor] = self._repeats.get(successor, 0) + times - 1
        self._count(context, counts, everyone)

    def add(self, rows: Iterable[tuple[Hashable, Hashable, int]]) -> None:
        """Adds a batch of contexts, successors and times."""
        mass = self.draws + NOVELTY * (len(self._totals) + 1)
        shares = {successor: (times + NOVELTY) / mass for successor, times in self._totals.items()}
        batch: _Table = {}
        for context, successor, times in rows:
            _add_to(batch, context, successor, times)
        everyone = self._predictors(batch)
        for predictors in everyone:
            predictors.bet(batch, shares, NOVELTY / mass)
        for context, counts in batch.items():
            for successor, times in counts.items():
                if successor in shares:
                    self._repeats[successor] = self._repeats.get(successor, 0) + times
            self._count(context, counts, everyone)

    def _count(self, context: Hashable, counts: Mapping[Hashable, int], everyone: Iterable[_Predictors]) -> None:
        for successor, times in counts.items():
            self._totals[successor] = self._totals.get(successor, 0) + times
            self.draws += times
        for predictors in everyone:
            predictors.count(context, counts)

    def _predictors(self, contexts: Iterable[Hashable]) -> list[_Predictors]:
        """Returns all predictors, which from now on tell these contexts apart."""
        return [self._each] if self._splits is None else [self._each, *self._splits.for_classes(contexts)]


_Rows: TypeAlias = tuple[tuple[Hashable, Hashable, int], ...]
"""The draws of a pair in a batch: contexts, successors and times."""

_Table: TypeAlias = dict[Hashable, dict[Hashable, int]]


class _Predictors:
    """Predictors that know the group of a context, one for each of `TIES`.

    Attributes:
        rows: the counts of each successor in each group.
    """

    def __init__(self, group_of: Callable[[Hashable], Hashable]) -> None:
        self.rows: _Table = {}
        self._group_of = group_of
        self._draws: dict[Hashable, int] = {}
        self._log_predicted = [0.0] * len(TIES)

    def copy_with(self, group_of: Callable[[Hashable], Hashable]) -> _Predictors:
        """Returns what they would be if contexts had been grouped in another way, which made no difference so far."""
        copied = _Predictors(group_of)
        copied.rows = {group: dict(row) for group, row in self.rows.items()}
        copied._draws, copied._log_predicted = dict(self._draws), list(self._log_predicted)
        return copied

    @property
    def log_predicted(self) -> float:
        """The logarithm of the mean of what they gave to all draws so far."""
        return _log_mean(self._log_predicted)

    def gain(self, log_predicted: float) -> None:
        """Multiplies what each of them gave."""
        self._log_predicted = [term + log_predicted for term in self._log_predicted]

    def bet(self, batch: _Table, shares: Mapping[Hashable, float], novelty: float) -> None:
        """Predicts a batch, given the shares of known successors and that of all new ones together."""
        grouped: _Table = {}
        for context, counts in batch.items():
            group = self._group_of(context)
            for successor, times in counts.items():
                _add_to(grouped, group, successor if successor in shares else _NEW, times)
        for group, counts in grouped.items():
            here, before, total = self.rows.get(group, {}), self._draws.get(group, 0), sum(counts.values())
            draws = [(here.get(kind, 0), shares.get(kind, novelty), times) for kind, times in counts.items()]
            for predictor, tie in enumerate(TIES):
                gain = lgamma(before + tie) - lgamma(before + tie + total)
                for met, share, times in draws:
                    expected = met + tie * share
                    gain += lgamma(expected + times) - lgamma(expected)
                self._log_predicted[predictor] += gain

    def count(self, context: Hashable, counts: Mapping[Hashable, int]) -> None:
        """Adds what came in a context."""
        group = self._group_of(context)
        row = self.rows.setdefault(group, {})
        for successor, times in counts.items():
            row[successor] = row.get(successor, 0) + times
        self._draws[group] = self._draws.get(group, 0) + sum(counts.values())


class _Splits:
    """Predictors for each of `SPLITS`; neighbours that no class met so far tells apart are one and the same."""

    def __init__(self) -> None:
        self._met: set[Hashable] = set()
        self._parts = [(SPLITS, _Predictors(partial(_is_from, SPLITS[0])))]  # neighbours, and what they share

    @property
    def log_predicted(self) -> float:
        """The logarithm of the mean of what all of them gave to all draws so far."""
        return _log_mean([gain for splits, shared in self._parts for gain in [shared.log_predicted] * len(splits)])

    def for_classes(self, classes: Iterable[Any]) -> Iterator[_Predictors]:
        """Yields the predictors that differ once these classes are met."""
        for number in classes:
            if number not in self._met:
                self._met.add(number)
                self._parts = [part for shared in self._parts for part in _parted(*shared, number)]
        for _, predictors in self._parts:
            yield predictors


def _parted(splits: tuple[int, ...], shared: _Predictors, number: int) -> Iterator[tuple[tuple[int, ...], _Predictors]]:
    """Yields neighbouring splits with what they share: apart where a class comes after some and before others."""
    after = tuple(split for split in splits if _is_from(split, number))
    before = splits[len(after) :]
    if not after or not before:
        yield splits, shared
        return
    yield after, shared
    yield before, shared.copy_with(partial(_is_from, before[0]))


_NEW: Final = object()
"""Stands for all successors that are new in a batch."""


def _add_to(table: _Table, group: Hashable, successor: Hashable, times: int) -> None:
    row = table.setdefault(group, {})
    row[successor] = row.get(successor, 0) + times


def _is_from(first: int, context: Any) -> bool:
    return bool(context >= first)


def _log_mean(logarithms: Sequence[float]) -> float:
    """Returns the logarithm of the mean of numbers, given theirs."""
    largest = max(logarithms)
    return largest + math.log(sum(math.exp(term - largest) for term in logarithms) / len(logarithms))


def two_that_differ(table: Mapping[Hashable, Mapping[Hashable, int]]) -> tuple[Hashable, Hashable]:
    """Returns the two contexts whose rows differ most clearly, by the likelihood ratio of two rows against one."""
    contexts = sorted(table, key=lambda context: -sum(table[context].values()))[:MOST_COMPARED]
    best, chosen = -1.0, (contexts[0], contexts[-1])
    for place, one in enumerate(contexts):
        for other in contexts[place + 1 :]:
            joint = {x: table[one].get(x, 0) + table[other].get(x, 0) for x in {*table[one], *table[other]}}
            gain = _log_likelihood(table[one]) + _log_likelihood(table[other]) - _log_likelihood(joint)
            if gain > best:
                best, chosen = gain, (one, other)
    return chosen


def log_difference(one: Mapping[Hashable, int], other: Mapping[Hashable, int]) -> float:
    """Returns the logarithm of the Bayes factor of two distributions against one, given draws of two origins.

    The prior of a distribution over the successors met is Jeffreys'. It is a measure of difference, not a test whose
    level is proven.
    """
    kinds = len({*one, *other})
    if kinds < 2:
        return 0.0
    mass, n_one, n_other = NOVELTY * kinds, sum(one.values()), sum(other.values())
    gain = lgamma(mass) - lgamma(n_one + mass) - lgamma(n_other + mass)
    gain += lgamma(n_one + n_other + mass)
    for successor, times in one.items():
        again = other.get(successor, 0)
        if again:
            gain += lgamma(times + NOVELTY) + lgamma(again + NOVELTY) - lgamma(times + again + NOVELTY)
            gain -= lgamma(NOVELTY)
    return gain


MOST_COMPARED: Final = 40
"""Of contexts, the most frequent ones, when two are sought that differ."""


def _log_likelihood(row: Mapping[Hashable, int]) -> float:
    return sum(map(_x_log_x, row.values())) - _x_log_x(sum(row.values()))


def _x_log_x(x: int) -> float:
    return x * math.log(x) if x else 0.0


DOUBT: Final = 0.25
"""The r-th pair met is thought to cause the event at all with the probability DOUBT / r; this costs little if it never
does."""


@dataclass
class _Events:
    """Counts of one pair: the event absent and present, at other times and at the suspected step."""

    local_regret: float
    other_misses: int = 0
    other_events: int = 0
    timed_misses: int = 0
    timed_events: int = 0

    def log_evidence(self) -> float:
        """Returns the contribution of the pair to log E, except for the common prediction at that step."""
        log_doubted = math.log(self.local_regret) + _log_mixture(self.other_misses, self.other_events)
        never = 1.0 - self.local_regret if self.other_events == 0 else 0.0
        log_predicted = math.log(never + math.exp(log_doubted)) if never else log_doubted
        events, misses = self.other_events + self.timed_events, self.other_misses + self.timed_misses
        return log_predicted - _log_largest(misses, events)


class TimingTest:
    """Bets that an event comes at suspected moments; an alarm stays."""

    def __init__(self, false_alarm: float) -> None:
        """Begins without any draw.

        Args:
            false_alarm: α, the probability with which it ever alarms although the event depends on the pair alone.
        """
        if not 0 < false_alarm < 1:
            raise InvalidSettingError(f"false_alarm is {false_alarm}; it must be between 0 and 1")
        self._log_level = -math.log(false_alarm)
        self._pairs: dict[Hashable, _Events] = {}
        self._log_pairs = 0.0
        self.timed_misses = self.timed_events = 0
        self.alarmed = False

    @property
    def log_evidence(self) -> float:
        """The logarithm of E."""
        return self._log_pairs + _log_mixture(self.timed_misses, self.timed_events)

    def add(self, pair: Hashable, suspected: bool, event: bool) -> None:
        """Adds a draw of a pair, at the suspected moment or not, with the event or not."""
        events = self._pairs.get(pair)
        if events is None:
            events = self._pairs[pair] = _Events(DOUBT / (len(self._pairs) + 1))
        before = events.log_evidence()
        if suspected:
            self.timed_events += event
            self.timed_misses += not event
            events.timed_events += event
            events.timed_misses += not event
        else:
            events.other_events += event
            events.other_misses += not event
        self._log_pairs += events.log_evidence() - before
        self.alarmed = self.alarmed or self.log_evidence >= self._log_level


def _log_mixture(misses: int, events: int) -> float:
    """Returns the logarithm of ∫ p^events (1 - p)^misses over Jeffreys' prior (Krichevsky, Trofimov)."""
    return lgamma(events + 0.5) + lgamma(misses + 0.5) - lgamma(events + misses + 1.0) - math.log(math.pi)


def _log_largest(misses: int, events: int) -> float:
    """Returns the logarithm of max_p p^events (1 - p)^misses."""
    draws = misses + events
    return sum(count * math.log(count / draws) for count in (misses, events) if count)
