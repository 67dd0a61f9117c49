"""The doctor's tests of what a user declares to know: what the draws of an examination say of each assumption.

A contradiction is either observed, as a second outcome is, or has a probability of at most the false alarm if the
assumption is true. Where nothing contradicts an assumption, it is said how large a violation would have shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from axplore.assumptions import Assumptions
from axplore.errors import InvalidSettingError
from axplore.statistics.assumed_rows import TOLERANCE, log_rarity
from axplore.statistics.dependence import HomogeneityTest
from axplore.types import State
from axplore.worlds.diagnosis import Finding, Issue
from axplore.worlds.probing import Draw, Pair

SEEN_WITH: Final = 0.95
"""How surely a violation would have been seen of which it is said that it would."""

Outcomes: TypeAlias = dict[Pair, Counter[State]]
Report: TypeAlias = tuple[list[Finding], list[str]]
"""What contradicts an assumption, and what was found where nothing does."""


def examined_assumptions(draws: Sequence[Draw], assume: Assumptions, false_alarm: float) -> Report:
    """Returns findings on assumptions that are false, and a sentence on each that nothing contradicts.

    Args:
        draws: every step of an examination, in order.
        assume: what is assumed.
        false_alarm: the probability with which a true assumption may be called false, for each of them.
    """
    outcomes: Outcomes = {}
    for draw in draws:
        outcomes.setdefault(draw.pair, Counter())[draw.successor] += 1
    reports = []
    if assume.deterministic:
        reports.append(_deterministic(outcomes, assume))
    if assume.min_probability:
        reports.append(_least_probability(outcomes, assume, false_alarm))
    if assume.tied is not None:
        reports.append(_tied(draws, assume, false_alarm))
    return [found for findings, _ in reports for found in findings], [line for _, lines in reports for line in lines]


def _deterministic(outcomes: Outcomes, assume: Assumptions) -> Report:
    asked = {pair: met for pair, met in outcomes.items() if assume.is_deterministic(*pair)}
    for (state, action), met in asked.items():
        if len(met) > 1:
            one, two = (f"{successor!r} {times} times" for successor, times in met.most_common(2))
            seen = f"'deterministic': action {action!r} of state {state!r} led to {one} and to {two}."
            return [Finding(Issue.ASSUMPTION_FALSE, seen)], []
    repeats = sum(met.total() - 1 for met in asked.values())
    if not repeats:
        return [], ["deterministic: no action was played twice, so that nothing can be said."]
    chance = 1.0 - (1.0 - SEEN_WITH) ** (1.0 / repeats)
    return [], [
        f"deterministic: {len(asked):,} actions had one outcome each, and were played {repeats:,} more times. A second "
        f"outcome that comes with a probability above {chance:.2g} each time would have been seen with "
        f"{SEEN_WITH:.0%}; an action that was played once tells nothing."
    ]


def _least_probability(outcomes: Outcomes, assume: Assumptions, false_alarm: float) -> Report:
    told_apart, asked = 0, 0
    for rank, ((state, action), met) in enumerate(outcomes.items(), start=1):
        least, draws = assume.least_probability(state, action), met.total()
        if not least:
            continue
        asked += 1
        whose = f"'min-probability' of {least:g}: action {action!r} of state {state!r}"
        if len(met) * least > 1.0 + TOLERANCE:
            return [Finding(Issue.ASSUMPTION_FALSE, f"{whose} has {len(met)} outcomes, more than there can be.")], []
        if least >= 1.0:
            continue
        kinds = math.floor(1.0 / least + TOLERANCE)
        alarm = math.log(kinds * rank * (rank + 1) / false_alarm)
        successor, times = min(met.items(), key=lambda item: item[1])
        if _rarity(times, draws, least) >= alarm:
            seen = f"{whose} led to {successor!r} {times} times in {draws}."
            return [Finding(Issue.ASSUMPTION_FALSE, seen)], []
        told_apart += _rarity(round(draws * least / 2), draws, least) >= alarm
    return [], [
        f"min-probability: none of {asked:,} actions has more outcomes than there can be, or one that is rarer for "
        f"sure. {told_apart:,} of them were played so often that one of half the probability would probably have shown."
    ]


def _rarity(times: int, draws: int, least: float) -> float:
    return float(log_rarity(np.array([times]), np.array([draws]), np.array([least]))[0])


def _tied(draws: Sequence[Draw], assume: Assumptions, false_alarm: float) -> Report:
    test, classes = HomogeneityTest(false_alarm), dict[Pair, Hashable]()
    leads_to: dict[tuple[Pair, Hashable], State] = {}
    n_tied = 0
    for draw, kind, outcome in _named(draws, assume):
        n_tied += 1
        state, action = draw.pair
        whose = f"'tied': action {action!r} of state {state!r}"
        if classes.setdefault(draw.pair, kind) != kind:
            seen = f"{whose} was given the classes {classes[draw.pair]!r} and {kind!r}."
            return [Finding(Issue.ASSUMPTION_FALSE, seen)], []
        other = leads_to.setdefault((draw.pair, outcome), draw.successor)
        if other != draw.successor:
            seen = f"{whose} leads to {other!r} and to {draw.successor!r} by the outcome {outcome!r}."
            return [Finding(Issue.ASSUMPTION_FALSE, seen)], []
        predicted = None if assume.leads_to is None else assume.leads_to(state, action, outcome)
        if predicted not in (None, draw.successor):
            seen = f"'leads-to': the outcome {outcome!r} leads to {draw.successor!r}, and not to {predicted!r}, from "
            return [Finding(Issue.ASSUMPTION_FALSE, f"{seen}state {state!r} by action {action!r}.")], []
        test.add(kind, draw.pair, outcome)
    if test.alarm is not None:
        pair, table = max(test.alarm.table.items(), key=lambda row: sum(row[1].values()))
        seen = (
            f"'tied': the outcomes of the class {test.alarm.pair!r} depend on where they are drawn ({pair}: {table})."
        )
        return [Finding(Issue.ASSUMPTION_FALSE, seen)], []
    n_classes = len(set(classes.values()))
    kinds = f"{n_classes:,} class{'es' if n_classes != 1 else ''}"
    return [], [
        f"tied: in {n_tied:,} draws of {len(classes):,} actions of {kinds} no outcome led to two states, "
        f"and nothing showed that outcomes depend on where they are drawn (a test that alarms wrongly with a "
        f"probability of at most {false_alarm:g})."
    ]


def _named(draws: Sequence[Draw], assume: Assumptions) -> Iterator[tuple[Draw, Hashable, Hashable]]:
    """Yields the draws of tied pairs with class and outcome."""
    assert assume.tied is not None
    for draw in draws:
        given = assume.tied(*draw.pair, draw.successor)
        if given is None:
            continue
        if not (isinstance(given, tuple) and len(given) == 2):
            raise InvalidSettingError(f"the function of tied gives {given!r}, not a class and the name of an outcome")
        yield draw, *given
