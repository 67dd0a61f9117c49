"""Whether promises are kept where something is assumed that is true, too.

The models and checks are those of `coverage`. What is assumed of a model follows from its rows, and the kinds of
assumptions take turns: the least probability of all outcomes, that of each pair, the number of outcomes of each pair,
the last two together, and which pairs have one outcome. Every other model is explored with the rounds and batches of
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from axplore.assumptions import Assumptions
from axplore.mdp import TabularMdp
from axplore.types import Action, State
from axplore_studies.coverage import Conditions, broken_promises, trials_on
from axplore_studies.coverage_models import CoverageCase
from axplore_studies.coverage_with_workers import shared
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document

FEWEST_OUTCOMES: Final = 2
"""The least number of outcomes that can be declared."""

OfPair: TypeAlias = Callable[[State, Action], float]


def everywhere(mdp: TabularMdp) -> Assumptions:
    """The least probability of all outcomes."""
    return Assumptions(min_probability=float(mdp.probabilities.min(initial=1.0)))


def of_each_pair(mdp: TabularMdp) -> Assumptions:
    """The least probability of an outcome of each pair."""
    return Assumptions(min_probability=_least_probability(mdp))


def numbers_of_outcomes(mdp: TabularMdp) -> Assumptions:
    """The number of outcomes of each pair."""
    return Assumptions(outcomes=_n_outcomes(mdp))


def both(mdp: TabularMdp) -> Assumptions:
    """The least probability and the number of outcomes of each pair."""
    return Assumptions(min_probability=_least_probability(mdp), outcomes=_n_outcomes(mdp))


def certain_pairs(mdp: TabularMdp) -> Assumptions:
    """Which pairs have one outcome."""
    return Assumptions(deterministic=lambda state, action: len(mdp.row(state, action)) == 1)


ASSUMED: Final = (everywhere, of_each_pair, numbers_of_outcomes, both, certain_pairs)
"""What is assumed, in turns."""


def assumed_of(given: CoverageCase, seed: int) -> Assumptions:
    """Returns what is assumed of the model of a seed."""
    return ASSUMED[seed % len(ASSUMED)](given.mdp)


def _least_probability(mdp: TabularMdp) -> OfPair:
    return lambda state, action: min(mdp.row(state, action).values())


def _n_outcomes(mdp: TabularMdp) -> OfPair:
    return lambda state, action: max(len(mdp.row(state, action)), FEWEST_OUTCOMES)


def trials(models: int = 550) -> list[Trial]:
    """Returns the models to explore."""
    alone, with_workers = Conditions(assume=assumed_of), Conditions(shared, assumed_of)
    halves = zip(trials_on(alone, models), trials_on(with_workers, models), strict=True)
    return [pair[number % 2] for number, pair in enumerate(halves)]


def summary(records: Sequence[Record]) -> Document:
    """Returns the number of broken promises for each objective and delta."""
    return broken_promises(STUDY.name, records)


STUDY: Final = Study(
    "coverage-with-assumptions",
    "the same under assumptions that are true, every other model with workers",
    trials,
    summary,
    counted="models for each objective and delta",
)
