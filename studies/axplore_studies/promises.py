"""What the certified explorer promises, compared with the true model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

import numpy as np

from axplore.assumptions.applied import given_rows, region_given
from axplore.explorers.base import Exploration, RoundReport
from axplore.explorers.certified import CertifiedState
from axplore.graphs.finite_horizon import truncated_steps
from axplore.mdp import TabularMdp
from axplore.proofs.evidence import Evidence
from axplore.records.claims import Bound, Way
from axplore.records.run import StopReason
from axplore.statistics.centred import log_wealth
from axplore.target import Objective
from axplore.truth import (
    ACCURACY,
    check_optimal,
    check_within_radius,
    controllable_states,
    optimal_steps,
    policy_on_model,
    policy_steps_on,
)
from axplore.types import FloatArray, State
from axplore.worlds.contract import World
from axplore_studies.coverage_models import CoverageCase


class Violation(Enum):
    """How a trial may break the promise; the value describes it."""

    MISSING = "a controllable state is missing"
    BEYOND = "a state found is not controllable even with ε more"
    POLICY = "a policy misses its objective"
    BOUND = "a bound does not hold"


class RegionWatch:
    """Checks after every round whether the true model is still in the region, and every proven test is true."""

    def __init__(self, mdp: TabularMdp, world: World, delta: float) -> None:
        self.left = False
        self._mdp = mdp
        self._world = world
        self._delta = delta
        self._looked_at: set[tuple[int, int, float]] = set()

    def look(self, report: RoundReport) -> None:
        """Checks the region; to be called after every round of the certified explorer."""
        self._look_at_tests(report.state)
        rows = report.state.counts
        assumed = report.state.assumed
        region = region_given(rows, self._delta, assumed)
        is_given = given_rows(rows, self._delta, assumed).is_given
        assert region.log_levels is not None  # it is a region of counts
        spent = dict.fromkeys((budget.after for budget in region.shared_budgets), 0.0)  # of each shared budget
        numbers = self._mdp.indices_of(self._world.states)
        for place, known in enumerate(numbers[rows.states]):
            first = self._mdp.state_pairs[known] - rows.state_pairs[place]
            for pair in range(rows.state_pairs[place], rows.state_pairs[place + 1]):
                entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
                counts = rows.counts[entries].astype(np.float64)
                if not len(counts):
                    continue
                truth = self._row(int(first + pair))[numbers[rows.successors[entries]]]
                is_impossible = truth.min() <= 0.0 or (region.closed[pair] and truth.sum() < 1.0 - ACCURACY)
                if is_impossible or log_wealth(counts, truth, np.zeros(len(counts))) >= -region.log_levels[pair]:
                    self.left = True
                elif len(counts) == 1 and not is_given[pair]:
                    for after in spent:
                        spent[after] -= max(counts[0] - after, 0.0) * math.log(truth[0])
        if any(spent[budget.after] > budget.nats for budget in region.shared_budgets):
            self.left = True

    def _look_at_tests(self, state: CertifiedState) -> None:
        """Whether a test by episodes has proven what is not true, which δ allows for as well."""
        labels = [self._world.states[number] for number in state.known]
        for test in state.tests:
            if test.proves_any and (test.line, test.turn, test.at_most) not in self._looked_at:
                self._looked_at.add((test.line, test.turn, test.at_most))
                goal = self._world.states[test.goal]
                by_step = policy_on_model(self._mdp, labels, np.tile(test.policy(len(labels)).whole, (test.horizon, 1)))
                taken, missed = truncated_steps(self._mdp, self._mdp.index_of(goal), by_step)
                if taken + missed * test.tail > test.at_most + ACCURACY:
                    self.left = True

    def _row(self, pair: int) -> FloatArray:
        """Returns the true probabilities of a pair of the model, [S]."""
        row = np.zeros(self._mdp.n_states)
        entries = slice(self._mdp.row_offsets[pair], self._mdp.row_offsets[pair + 1])
        row[self._mdp.successors[entries]] = self._mdp.probabilities[entries]
        return row


def violations_of(exploration: Exploration, given: CoverageCase) -> list[Violation]:
    """Returns the promises that an exploration breaks. Bounds must hold at any time, the others at a regular end."""
    found = [] if bounds_hold(exploration, given.mdp) else [Violation.BOUND]
    if exploration.stop is not StopReason.PROVEN:
        return found
    target = exploration.explorer.target
    truth = controllable_states(given.mdp, target.radius)
    reachable = controllable_states(given.mdp, target.radius + target.epsilon)
    steps = {goal: policy_steps_of(exploration, given.mdp, goal) for goal in exploration.states}
    check = check_optimal if _evidence(exploration).objective is Objective.OPTIMAL else check_within_radius
    if not set(truth.states) <= set(exploration.states):
        found.append(Violation.MISSING)
    if not set(exploration.states) <= set(reachable.states):
        found.append(Violation.BEYOND)
    if check(truth, steps=steps, epsilon=target.epsilon).excess > ACCURACY:
        found.append(Violation.POLICY)
    return found


def bounds_hold(exploration: Exploration, mdp: TabularMdp) -> bool:
    """Returns whether every bound of the evidence holds in the true model: of optima, of policies and of regrets."""
    evidence = _evidence(exploration)
    known, seen = exploration.states, (*exploration.states, *exploration.frontier)  # in the order of indices
    best = {state: optimal_steps(mdp, state, known) for state in mdp.states}
    unseen = min((steps for state, steps in best.items() if state not in seen), default=math.inf)
    lower = all(_steps(bound) <= best[state] + ACCURACY for state, bound in zip(seen, evidence.lower, strict=True))
    reachable = _taken(exploration, mdp, evidence.reachable)
    final = _taken(exploration, mdp, evidence.best_upper)
    playing = replace(exploration, policies=evidence.policies)
    handed_back = np.array([policy_steps_of(playing, mdp, state) for state in known])
    upper = all(
        taken[state] <= way.upper[0] + ACCURACY
        for taken, ways in ((reachable, evidence.reachable), (final, evidence.best_upper))
        for state, way in zip(known, ways, strict=True)
    ) and all(handed_back <= evidence.upper_steps + ACCURACY)
    regrets = all(
        final[state] - best[state] <= regret.steps + ACCURACY
        for state, regret in zip(known, evidence.regrets, strict=False)
        if math.isfinite(regret.upper.upper[0])
    )
    return lower and _steps(evidence.unseen) <= unseen + ACCURACY and upper and regrets


def _steps(bound: Bound) -> float:
    """The steps that a lower bound says, less what is deducted."""
    return float(bound.lower[0]) - bound.deduction


def _taken(exploration: Exploration, mdp: TabularMdp, ways: Sequence[Way]) -> dict[State, float]:
    """Returns the true steps of the policies of these ways, one to each state found."""
    playing = replace(exploration, policies=tuple(way.policy.whole for way in ways))
    return {state: policy_steps_of(playing, mdp, state) for state in exploration.states}


def _evidence(exploration: Exploration) -> Evidence:
    assert exploration.evidence is not None  # the certified explorer always has it
    return exploration.evidence


def policy_steps_of(exploration: Exploration, mdp: TabularMdp, goal: State) -> float:
    """Returns the expected steps of the policy to a state found, on the model that was explored; exact."""
    return policy_steps_on(mdp, exploration.states, exploration.policy(goal), goal)
