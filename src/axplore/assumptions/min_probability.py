"""`min-probability=P`: no outcome of an action is rarer than p.

Another outcome that was not seen in n draws exists with probability at most K (1 - p)^n, where K = floor(1/p) bounds
how many outcomes there are. That event does not become likelier with more draws, so one number of draws, fixed by the
level of the pair, *closes* its support at all later times. If there is no room for another outcome of probability p,
the support is closed at once. Each outcome seen has at least p. docs/assumptions.md has the proofs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.arguments import plain, real, refusal
from axplore.assumptions.kind import Draw, Examined, Loading, Pair, PairKind
from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.types import Action, FloatArray, IntArray, State

if TYPE_CHECKING:
    from axplore.assumptions.declared import Assumptions
    from axplore.statistics.given_rows import GivenRows

PROBABILITY: Final = real(least=1e-12, most=1)

FALSE_ALARM: Final = 1e-3
"""The probability with which outcomes as likely as assumed may ever be taken for rarer, in all pairs together."""

STRICTNESS: Final = 1e-6
"""In nats: the margin with which the verifier agrees."""

TOLERANCE: Final = 1e-9
"""By how much sums of declared probabilities may exceed one: 3 times 1/3 is no contradiction."""


class MinProbability(PairKind):
    """No outcome is rarer than the number of its pair; or a function of state and action gives that, 0 for nothing."""

    name, form = "min-probability", "min-probability=P"
    closes_by_chance = True

    def read(self, text: str, load: Loading | None) -> float | None:  # noqa: ARG002
        """A number above 0."""
        if not text:
            return None
        try:
            return float(PROBABILITY(self.name, float(text)))
        except ValueError:
            raise refusal(self.name, text, "a number above 0 and at most 1") from None

    def checked(self, value: Any) -> Any:
        """A probability, 0 or a function."""
        return value if callable(value) else _probability(value) or None

    def words(self, value: Any, assume: Assumptions) -> str:  # noqa: ARG002
        """The probability."""
        return f"min-probability {'as declared' if callable(value) else f'{value:g}'}"

    def clause(self, number: float, *, everywhere: bool) -> str:
        """The probability."""
        return f"no outcome of {'an action' if everywhere else 'it'} is assumed to be rarer than {number:g}"

    def contradicted_by(self, number: float, outcomes: Mapping[Hashable, int], weight: float) -> bool:
        """Whether there are too many outcomes, or one that came too seldom."""
        if super().contradicted_by(number, outcomes, weight):
            return True
        if not weight or number >= 1.0 or not outcomes:
            return False
        alarm = math.log(math.floor(1.0 / number + TOLERANCE) / (FALSE_ALARM * weight)) + STRICTNESS
        return _rarity(min(outcomes.values()), sum(outcomes.values()), number) >= alarm

    def number(self, value: Any, state: State, action: Action) -> float:
        """The probability."""
        return _probability(value(state, action)) if callable(value) else float(value)

    def most_outcomes(self, numbers: FloatArray) -> FloatArray:
        """As many as have room."""
        most = np.full(len(numbers), np.inf)
        most[numbers > 0.0] = np.floor((1.0 + TOLERANCE) / numbers[numbers > 0.0])
        return most

    def floors(self, numbers: FloatArray) -> FloatArray:
        """The probabilities themselves."""
        return numbers

    def closing_draws(self, numbers: FloatArray, levels: FloatArray) -> FloatArray:
        """The n at which K (1 - p)^n has fallen to the level."""
        draws = np.full(len(numbers), np.inf)
        known = (numbers > 0.0) & (numbers < 1.0)
        wanted = (np.log(_kinds(numbers[known])) - np.log(levels[known])) / -np.log1p(-numbers[known])
        draws[known] = np.ceil(wanted + TOLERANCE)  # on the strict side of what a verifier computes
        draws[numbers >= 1.0] = 1.0
        return draws

    def contradicted(self, assumed: Assumed, rows: Counts, given: GivenRows) -> IntArray:
        """The pairs with an outcome that is rarer than assumed, as far as the draws can tell."""
        rows, least = given.rows, self.of_groups(assumed.numbers[self.name], given.groups)
        asked = np.flatnonzero(least[rows.entry_pairs] > 0.0)
        pairs = rows.entry_pairs[asked]
        rarity = log_rarity(rows.counts[asked], rows.visits[pairs], least[pairs])
        return pairs[rarity >= np.log(_kinds(least[pairs]) / (FALSE_ALARM * given.weights[pairs])) + STRICTNESS]

    def examined(
        self,
        value: Any,
        assume: Assumptions,  # noqa: ARG002
        draws: Sequence[Draw],
        false_alarm: float,
    ) -> Examined:
        """Looks for too many outcomes, and for one that comes too seldom."""
        outcomes: dict[Pair, Counter[State]] = {}
        for draw in draws:
            outcomes.setdefault(draw.pair, Counter())[draw.successor] += 1
        told_apart, asked = 0, 0
        for rank, ((state, action), met) in enumerate(outcomes.items(), start=1):
            least, times_played = self.number(value, state, action), met.total()
            if not least:
                continue
            asked += 1
            whose = f"'min-probability' of {least:g}: action {action!r} of state {state!r}"
            if len(met) * least > 1.0 + TOLERANCE:
                return Examined(f"{whose} has {len(met)} outcomes, more than there can be.", is_false=True)
            if least >= 1.0:
                continue
            alarm = math.log(math.floor(1.0 / least + TOLERANCE) * rank * (rank + 1) / false_alarm)
            successor, times = min(met.items(), key=lambda item: item[1])
            if _rarity(times, times_played, least) >= alarm:
                seen = f"{whose} led to {successor!r} {times} times in {times_played}."
                return Examined(seen, is_false=True, is_inferred=True)
            told_apart += _rarity(round(times_played * least / 2), times_played, least) >= alarm
        return Examined(
            f"min-probability: none of {asked:,} actions has more outcomes than there can be, or one that is rarer for "
            f"sure. {told_apart:,} of them were played so often that one of half the probability would probably have "
            "shown."
        )


def _probability(value: Any) -> float:
    """A probability, or 0 for nothing assumed."""
    return 0.0 if plain(value) in (0, None) and value is not False else float(PROBABILITY("min_probability", value))


def _kinds(least: FloatArray) -> FloatArray:
    """K, how many outcomes there can be."""
    kinds: FloatArray = np.floor(1.0 / least + TOLERANCE)
    return kinds


def log_rarity(counts: IntArray, draws: IntArray, least: FloatArray) -> FloatArray:
    """How much the draws speak against each outcome being as likely as assumed, in nats, [m].

    The bettor predicts by the Beta(1/2, 1/2) mixture whether the outcome comes. If its probability is `least` or more,
    the wealth against the likeliest such probability ever reaches 1/level with probability at most `level`.

    Args:
        counts: how often each outcome came, [m].
        draws: of its pair, [m].
        least: the least probability that is assumed, [m].
    """
    log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])
    others = draws - counts
    inside = np.clip(least, TOLERANCE, 1.0 - TOLERANCE)
    wealth = log_gamma(counts + 0.5) + log_gamma(others + 0.5) - log_gamma(draws + 1.0) - math.log(math.pi)
    wealth -= counts * np.log(inside) + others * np.log1p(-inside)
    return np.where(counts < inside * draws, wealth, 0.0)


def _rarity(times: int, draws: int, least: float) -> float:
    """The same of one outcome; at once of one that came often enough, as almost all do."""
    if times >= draws * min(max(least, TOLERANCE), 1.0 - TOLERANCE):
        return 0.0
    return float(log_rarity(np.array([times]), np.array([draws]), np.array([least]))[0])
