"""`min-probability`, for the verifier: the least probability of an outcome of each pair."""

from __future__ import annotations

import math
from typing import Final

from axplore.certificate.assumptions.kind import CheckedPairKind, Contradiction, Drawn
from axplore.certificate.ranges import LEAST_PROBABILITY
from axplore.records.assumed import UNTIED, Assumed

FALSE_ALARM: Final = 1e-3
"""The probability with which outcomes as likely as assumed may ever be taken for rarer, in all pairs together."""

TOLERANCE: Final = 1e-9
"""By how much sums of declared probabilities may exceed one: 3 times 1/3 is no contradiction."""


class MinProbability(CheckedPairKind):
    """An outcome that has the probability p or more is missed n times with probability (1 - p)^n, and 1 / p can be."""

    name = "min-probability"
    closes_by_chance = True

    def means_something(self, number: float) -> bool:
        """A probability that is not too small to count with."""
        return LEAST_PROBABILITY <= number <= 1.0

    def most_outcomes(self, number: float) -> float:
        """As many as have room."""
        return float(math.floor((1.0 + TOLERANCE) / number))

    def floor(self, number: float) -> float:
        """The probability itself."""
        return number

    def closing_draws(self, number: float, level: float) -> float:
        """After n draws another outcome exists with probability K (1 - p)^n."""
        if number >= 1.0:
            return 1.0
        kinds = math.floor(1.0 / number + TOLERANCE)
        return math.ceil(math.log(kinds / level) / -math.log1p(-number))

    def clauses(self, assumed: Assumed) -> tuple[str, ...]:
        """Of how many pairs, and the least of all."""
        least = assumed.numbers[self.name]
        declared = least[least > 0.0]
        if not len(declared):
            return ()
        whose = "an action" if len(declared) == len(least) else f"{len(declared)} of the {len(least)} actions"
        rarest = f"{declared.min():g}"
        if declared.min() != declared.max():
            rarest = f"declared, {rarest} at the least"
        return (f"no outcome of {whose} is rarer than {rarest}",)

    def contradiction(self, assumed: Assumed, drawn: Drawn) -> Contradiction | None:
        """An outcome that came so seldom that it must be rarer than assumed."""
        for pair, least in enumerate(self.of_classes(assumed, drawn.classes)):
            if not 0.0 < least < 1.0:
                continue
            row = drawn.row(pair)
            level = FALSE_ALARM * drawn.weights[pair] / math.floor(1.0 / least + TOLERANCE)
            for count in row:
                if log_rarity(count, sum(row), least) >= -math.log(level):
                    whose = "" if drawn.classes[pair] == UNTIED else " (with its class)"
                    return pair, (
                        f"{whose} had an outcome {count} times in {sum(row)}, which one as likely as {least:g} has "
                        f"with a probability of at most {level:.1g}"
                    )
        return None


def log_rarity(count: int, draws: int, least: float) -> float:
    """How much the draws speak against an outcome of probability `least` or more, in nats.

    A bettor predicts whether it comes by the mixture of all probabilities with the density Beta(1/2, 1/2), against the
    likeliest that is assumed to be possible. By Ville's inequality he ever has 1/level with probability at most level.
    """
    if count >= least * draws:
        return 0.0
    mixture = math.lgamma(count + 0.5) + math.lgamma(draws - count + 0.5) - math.lgamma(draws + 1) - math.log(math.pi)
    return mixture - count * math.log(least) - (draws - count) * math.log1p(-least)
