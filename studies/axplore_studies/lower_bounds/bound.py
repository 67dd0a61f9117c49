"""The loop: solve the programme, look for alternatives that its allocation does not tell apart, add them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.target import Objective
from axplore.types import RESET, Action, FloatArray, IntArray, Reset, State
from axplore_studies.lower_bounds.alternatives import (
    Alternative,
    AlternativeKind,
    ChangedRow,
    ModelQuestion,
    changed_model,
    divergences,
)
from axplore_studies.lower_bounds.candidates import Candidate, other_ways, row_divergences, told_apart
from axplore_studies.lower_bounds.programme import Solution, needed_information, solve
from axplore_studies.lower_bounds.search import Search

SECONDS: Final = 120.0
"""The default time limit of the search for alternatives, in seconds."""

_TOLERANCE: Final = 1e-3
"""An alternative counts as distinguished if at most this share of the information is missing."""

_LEAST_GAIN: Final = 1e-3
"""A round that raises the bound by less than this share of it is wasted."""

_ROUNDS_IN_VAIN: Final = 4
"""The number of wasted rounds in a row that ends the search."""

_WEIGHT_OF_LATEST: Final = 0.4
"""Alternatives are sought for a running mean of allocations: the extreme ones of single programmes mislead."""

_LEAST_SHARE: Final = 1e-3
"""The smallest share of the mean that any pair is drawn in that search, so that no row can change for free."""

_KEPT_ROUNDS: Final = 8
"""The number of rounds after which an alternative that was not binding is dropped from the programme."""

_LEAST_BINDING: Final = 1e-9
"""The smallest share of the bound with which an alternative is reported."""

Watcher: TypeAlias = Callable[["BoundProgress"], None]


@dataclass(frozen=True)
class BoundProgress:
    """The progress of the search.

    Attributes:
        round: the number of the round, counted from one.
        steps: the bound proven so far.
        alternatives: the number of alternatives in the programme.
        seconds: the seconds since the start.
    """

    round: int
    steps: float
    alternatives: int
    seconds: float


@dataclass(frozen=True)
class BindingAlternative:
    """An alternative that the bound rests on.

    Attributes:
        kind: why no answer is correct in both.
        goal: the state that this is about.
        changes: the rows that differ.
        steps: the part of the bound that it adds, before the value of the first visit is subtracted.
    """

    kind: AlternativeKind
    goal: State
    changes: tuple[ChangedRow, ...]
    steps: float


@dataclass(frozen=True)
class PairDraws:
    """The draws of a pair in the best allocation.

    Attributes:
        state: the state of the pair.
        action: the action of the pair, or RESET.
        draws: the expected number of draws.
    """

    state: State
    action: Action | Reset
    draws: float


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound on the expected steps of every δ-correct algorithm.

    Attributes:
        steps: the bound.
        radius: L.
        epsilon: ε.
        delta: δ.
        objective: AX* or AX_L.
        information: kl(δ, 1 − δ), the information needed against each alternative, in nats.
        alternatives: those that the bound rests on, the largest part first.
        allocation: the draws that meet them all with the fewest steps.
        finished: whether the search ended by itself; otherwise more time may find a larger bound.
        seconds: the duration of the search.
    """

    steps: float
    radius: float
    epsilon: float
    delta: float
    objective: Objective
    information: float
    alternatives: tuple[BindingAlternative, ...]
    allocation: tuple[PairDraws, ...]
    finished: bool
    seconds: float


def lower_bound(
    mdp: TabularMdp,
    radius: float,
    epsilon: float,
    delta: float,
    objective: Objective = Objective.OPTIMAL,
    *,
    any_policy: bool = False,
    seconds: float = SECONDS,
    rounds: float = math.inf,
    watcher: Watcher | None = None,
) -> LowerBound:
    """Returns a lower bound on the expected steps of every algorithm that meets an objective with probability 1 − δ.

    It is valid whenever the search ends, even by Ctrl-C; more time can only raise it.
    docs/algorithms/lower-bound.md has the proof.

    Args:
        mdp: the model that is explored.
        radius: the expected steps within which a state counts, L.
        epsilon: the slack, ε.
        delta: the probability with which an answer may be wrong, δ.
        objective: AX* or AX_L.
        any_policy: whether the policies of an answer may continue outside its states, where those of all explorers here
            reset; the bound is then lower.
        seconds: the time limit of the search.
        rounds: the largest number of rounds. Unlike a time limit, it gives the same bound every time.
        watcher: called after each round.
    """
    if not 0 < delta < 1:
        raise InvalidSettingError(f"delta is {delta!r}; it must be a probability between 0 and 1")
    if not seconds > 0:
        raise InvalidSettingError(f"seconds is {seconds!r}; it must be a number above 0")
    if not rounds >= 1:
        raise InvalidSettingError(f"rounds is {rounds!r}; it must be at least 1")
    question = ModelQuestion(mdp, radius, epsilon, objective, any_policy)
    loop = _Loop(question, needed_information(delta), time.monotonic(), seconds, rounds)
    finished = loop.run(watcher)
    return LowerBound(
        steps=loop.best.solution.steps,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        objective=objective,
        information=loop.information,
        alternatives=_binding(mdp, loop.best),
        allocation=_allocation(mdp, loop.best.solution),
        finished=finished,
        seconds=time.monotonic() - loop.began,
    )


@dataclass(frozen=True, eq=False)
class _Proven:
    """A programme with its solution; replaced as a whole, so that an interruption finds it consistent.

    Attributes:
        solution: the solution of the programme.
        alternatives: its alternatives, [J].
        idle: the number of rounds for which each of them has not been binding, [J].
    """

    solution: Solution
    alternatives: tuple[Alternative, ...]
    idle: tuple[int, ...]

    def extended(self, question: ModelQuestion, found: list[Alternative], information: float) -> _Proven:
        """Returns the programme with more alternatives, without those that have not been binding for long."""
        everything = (*self.alternatives, *found)
        solution = solve(question.mdp, [one.divergences for one in everything], information)
        before = (*self.idle, *(0 for _ in found))
        idle = [0 if share > 0 else rounds + 1 for share, rounds in zip(solution.shares, before, strict=True)]
        kept = [place for place, rounds in enumerate(idle) if rounds < _KEPT_ROUNDS]
        return _Proven(
            replace(solution, shares=solution.shares[kept]),
            tuple(everything[place] for place in kept),
            tuple(idle[place] for place in kept),
        )


@dataclass(eq=False)
class _Loop:
    """The state of the search.

    Attributes:
        question: what is asked.
        information: kl(δ, 1 − δ).
        began: the time when the search began.
        seconds: the time limit.
        rounds: the largest number of rounds.
        proven: the latest programme.
        best: the programme that proves most.
    """

    question: ModelQuestion
    information: float
    began: float
    seconds: float
    rounds: float
    proven: _Proven = field(init=False)
    best: _Proven = field(init=False)

    def __post_init__(self) -> None:
        self.proven = self.best = _Proven(solve(self.question.mdp, [], self.information), (), ())

    def run(self, watcher: Watcher | None) -> bool:
        """Searches until nothing more is found, or a limit is reached; returns whether it was the former."""
        if self.information <= 0:
            return True
        try:
            return self._run(watcher)
        except KeyboardInterrupt:
            return False

    def _run(self, watcher: Watcher | None) -> bool:
        search = Search(self.question)
        families = _Families.of(self.question, self._is_over)
        mean = self._first_allocation()
        in_vain, number = 0, 0
        while in_vain < _ROUNDS_IN_VAIN:
            if self._is_over() or number >= self.rounds:
                return False
            number += 1
            before = self.proven.solution.steps
            found = self._round(search, families, mean) or self._round(search, families, self.proven.solution.visits)
            now = self.proven.solution
            mean = mean + _WEIGHT_OF_LATEST * (now.visits - mean)
            in_vain = in_vain + 1 if now.steps < before * (1 + _LEAST_GAIN) else 0
            if watcher is not None:
                elapsed = time.monotonic() - self.began
                watcher(BoundProgress(number, now.steps, len(self.proven.alternatives), elapsed))
            if not found and not self._is_over():
                return True
        return True

    def _round(self, search: Search, families: _Families, visits: FloatArray) -> bool:
        """Adds the alternatives found for an allocation, and solves again; returns whether there were any."""
        told_by = self.proven.solution.visits
        sought = self._bounded(visits)
        found = []
        for candidate in (*families.worst(sought), *search.candidates(sought)):
            if self._is_over():
                break
            if told_apart(search.mdp, candidate.rows, told_by) < self.information * (1 - _TOLERANCE):
                alternative = checked(self.question, candidate)
                if alternative is not None:
                    found.append(alternative)
        if found:
            self.proven = self.proven.extended(self.question, found, self.information)
            self.best = max(self.best, self.proven, key=lambda one: one.solution.steps)
        return bool(found)

    def _first_allocation(self) -> FloatArray:
        """Returns an allocation that draws every pair of S_{L+ε}→ equally often."""
        mdp = self.question.mdp
        known = mdp.indices_of(self.question.outer.states)
        return np.isin(mdp.pair_states, known).astype(np.float64)

    def _bounded(self, visits: FloatArray) -> FloatArray:
        """Returns the allocation without zeros, [P]."""
        known = self._first_allocation()
        least = _LEAST_SHARE * float(visits.sum()) / max(1.0, float(known.sum()))
        return np.maximum(visits, max(least, 1e-12))

    def _is_over(self) -> bool:
        return time.monotonic() - self.began > self.seconds


@dataclass(frozen=True, eq=False)
class _Families:
    """The alternatives of `other_ways`, which do not depend on an allocation.

    Attributes:
        candidates: all of them, [n].
        goals: the index of the goal of each, [n].
        owners: the candidate of each changed row, [m].
        pairs: the pair of each changed row, [m].
        divergences: the divergence of each changed row, [m].
    """

    candidates: tuple[Candidate, ...]
    goals: IntArray
    owners: IntArray
    pairs: IntArray
    divergences: FloatArray

    @classmethod
    def of(cls, question: ModelQuestion, is_over: Callable[[], bool]) -> _Families:
        """Returns all alternatives that are found before the time is up."""
        candidates: list[Candidate] = []
        owners: list[int] = []
        pairs: list[int] = []
        nats: list[float] = []
        for candidate in other_ways(question):
            if is_over():
                break
            changed = row_divergences(question.mdp, candidate.rows)
            owners += [len(candidates)] * len(changed)
            pairs += changed
            nats += changed.values()
            candidates.append(candidate)
        places = {goal: place for place, goal in enumerate(question.inner.states)}
        return cls(
            tuple(candidates),
            np.array([places[one.goal] for one in candidates], dtype=np.int64),
            np.array(owners, dtype=np.int64),
            np.array(pairs, dtype=np.int64),
            np.array(nats, dtype=np.float64),
        )

    def worst(self, visits: FloatArray) -> Iterator[Candidate]:
        """Yields, for each goal, the candidate that these draws distinguish worst."""
        told = np.bincount(self.owners, self.divergences * visits[self.pairs], minlength=len(self.candidates))
        for goal in np.unique(self.goals):
            own = np.flatnonzero(self.goals == goal)
            yield self.candidates[own[np.argmin(told[own])]]


def checked(question: ModelQuestion, candidate: Candidate) -> Alternative | None:
    """Returns the alternative if no answer is correct in both models; None otherwise."""
    model = changed_model(question.mdp, candidate.rows)
    if not question.separates(model, candidate.kind, candidate.goal):
        return None
    return Alternative(candidate.kind, candidate.goal, model, divergences(question.mdp, model, candidate.rows))


def _binding(mdp: TabularMdp, proven: _Proven) -> tuple[BindingAlternative, ...]:
    """Returns the alternatives with a share in the bound, the largest first."""
    shares = proven.solution.shares
    found = []
    for place in np.argsort(-shares, kind="stable").tolist():
        if shares[place] > _LEAST_BINDING * shares.sum():
            one = proven.alternatives[place]
            found.append(BindingAlternative(one.kind, one.goal, one.changes(mdp), float(shares[place])))
    return tuple(found)


def _allocation(mdp: TabularMdp, solution: Solution) -> tuple[PairDraws, ...]:
    """Returns the draws of every pair and of RESET that are not negligible."""
    least = 1e-6 * max(1.0, solution.steps)
    pairs = [
        PairDraws(mdp.states[mdp.pair_states[pair]], mdp.actions[mdp.pair_actions[pair]], float(solution.visits[pair]))
        for pair in np.flatnonzero(solution.visits > least)
    ]
    resets = [
        PairDraws(mdp.states[state], RESET, float(solution.resets[state]))
        for state in np.flatnonzero(solution.resets > least)
    ]
    return (*pairs, *resets)
