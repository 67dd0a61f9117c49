"""Finite models of which only labels are seen, as systems, and exact values of policies that see labels only.

A system breaks the assumptions of a proof where its next label depends on more than the label and the action, or where
RESET does not begin anew. As long as what it depends on is finite, the whole is a Markov chain under every policy, and
what a promise is worth follows from linear equations.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np

from axplore.types import RESET, FloatArray

FAULT: Final = "fault"
"""The label of hidden states that are never seen: entering one raises an error."""

FRESH: Final = "fresh"
"""The label of hidden states that show a label never seen before, each time."""

Row: TypeAlias = Mapping[Any, float]
"""The probability of each next hidden state."""

Choice: TypeAlias = Callable[[Any, int], Any]
"""What a policy plays: a function of the label and of the steps since its last RESET."""

LARGEST: Final = 600
"""The largest number of hidden states: exact values solve dense equations."""

DOUBLINGS: Final = 20
"""The average in the long run is taken over 2^20 journeys."""


@dataclass(frozen=True)
class Rules:
    """How a system works, as functions of its hidden state.

    Attributes:
        start: the hidden state that a new system is in.
        actions: all actions.
        step: the row of a hidden state and an action.
        label: what is shown of a hidden state.
        reset: the row of RESET; by default it leads to the start.
        offers: the actions that a hidden state offers; none if it is terminal. By default all.
    """

    start: Any
    actions: tuple[str, ...]
    step: Callable[[Any, str], Row]
    label: Callable[[Any], Hashable]
    reset: Callable[[Any], Row] | None = None
    offers: Callable[[Any], tuple[str, ...]] | None = None

    def model(self) -> HiddenModel:
        """Returns the model of all hidden states that can be met."""
        reset = self.reset or (lambda _: {self.start: 1.0})
        offers = self.offers or (lambda _: self.actions)
        rows: dict[Any, dict[Any, Row]] = {}
        waiting = [self.start]
        while waiting:
            hidden = waiting.pop()
            if hidden in rows:
                continue
            rows[hidden] = {action: self.step(hidden, action) for action in offers(hidden)} | {RESET: reset(hidden)}
            waiting += [after for row in rows[hidden].values() for after in row if after not in rows]
            if len(rows) > LARGEST:
                raise ValueError(f"more than {LARGEST} hidden states")
        places = {hidden: place for place, hidden in enumerate(rows)}
        table = {action: np.zeros((len(rows), len(rows))) for action in (*self.actions, RESET)}
        for hidden, place in places.items():
            for action, row in rows[hidden].items():
                for after, probability in row.items():
                    table[action][place, places[after]] += probability
        return HiddenModel(
            labels=tuple(self.label(hidden) for hidden in places),
            offers=tuple(tuple(offers(hidden)) for hidden in places),
            rows=table,
        )


@dataclass(frozen=True, eq=False)
class HiddenModel:
    """Hidden states 0, ..., n - 1, of which the first is the start.

    Attributes:
        labels: what is shown of each, [n].
        offers: the actions that each offers, [n].
        rows: the probabilities of the next hidden state by action, RESET included, [n, n] each; zero where an action is
            not offered.
        now: the hidden state that it is in, from which the first journey is reset.
    """

    labels: tuple[Hashable, ...]
    offers: tuple[tuple[str, ...], ...]
    rows: Mapping[Any, FloatArray]
    now: int = 0

    def chain(self, play: Callable[[Any], Any]) -> FloatArray:
        """Returns the chain of a function of the label, [n, n]; what is not offered is played as RESET."""
        chain: FloatArray = self.rows[RESET].copy()
        for hidden, label in enumerate(self.labels):
            if label not in (FAULT, FRESH) and (action := play(label)) in self.offers[hidden]:
                chain[hidden] = self.rows[action][hidden]
        return chain

    def shows(self, goal: Hashable) -> FloatArray:
        """Returns 1 where the goal is shown and 0 elsewhere, [n]."""
        return np.array([float(label == goal) for label in self.labels])

    def policy_steps(self, play: Callable[[Any], Any], goal: Hashable) -> float:
        """Returns the expected steps from RESET until the goal is shown, in the long run; infinite if it may never be.

        The policy is played again and again, with a RESET after every arrival. Where RESET begins anew, this is the
        value of one journey; where something survives it, it is the average over what earlier journeys leave.
        """
        chain, arrived = self.chain(play), self.shows(goal) > 0
        begins = chain.copy()
        begins[arrived] = self.rows[RESET][arrived]
        met = _reached(begins, self.rows[RESET][self.now] > 0)
        if not _can_reach(chain, arrived)[met].all():
            return math.inf
        ways, goals = np.flatnonzero(met & ~arrived), np.flatnonzero(met & arrived)
        ends = np.zeros((len(chain), len(goals)))  # where a journey ends that begins in each hidden state
        ends[goals] = np.eye(len(goals))
        steps = np.zeros(len(chain))
        if len(ways):
            asked = np.column_stack([np.ones(len(ways)), chain[np.ix_(ways, goals)]])
            solved = np.linalg.solve(np.eye(len(ways)) - chain[np.ix_(ways, ways)], asked)
            steps[ways], ends[ways] = solved[:, 0], solved[:, 1:]
        return float(self._long_run_start(ends, goals) @ steps)

    def restarted_steps(self, play: Choice, goal: Hashable, horizon: int) -> float:
        """Returns the expected steps until the goal is shown if a RESET follows every miss, in the long run.

        Args:
            play: the policy.
            goal: the label to reach.
            horizon: the steps after which an attempt has missed.
        """
        chains: dict[int, FloatArray] = {}
        arrived = self.shows(goal)
        attempt = self.rows[RESET][self.now].copy()
        taken = arrivals = 0.0
        for number in range(1 if self.begins_anew else 60):
            after = np.zeros(len(attempt))
            costs = chance = 0.0
            mass = attempt
            for step in range(horizon + 1):
                now = mass * arrived
                chance, costs, after = chance + now.sum(), costs + step * now.sum(), after + now
                mass = mass - now
                if step < horizon:
                    if step not in chains:
                        chains[step] = self.chain(partial(_played, play, step))
                    mass = mass @ chains[step]
            costs += (horizon + 1) * mass.sum()
            attempt = (after + mass) @ self.rows[RESET]
            if self.begins_anew or number >= 30:  # what the first attempts leave has settled
                taken, arrivals = taken + costs, arrivals + chance
        return taken / arrivals if arrivals > 0.0 else math.inf

    @cached_property
    def begins_anew(self) -> bool:
        """Whether RESET leads everywhere to the same distribution."""
        resets = self.rows[RESET]
        return bool(np.allclose(resets, resets[0], atol=1e-15))

    def least_steps(self, goal: Hashable, allowed: Iterable[Hashable], sweeps: int = 400) -> float:
        """Returns a lower bound on the steps of every policy that resets outside some labels, whatever it remembers.

        It is the value of a policy that sees hidden states, from the best place that a RESET can lead to.
        """
        arrived, kept = self.shows(goal) > 0, set(allowed)
        usable = {
            action: np.array(
                [
                    action is RESET or (label in kept and action in offers)
                    for label, offers in zip(self.labels, self.offers, strict=True)
                ]
            )
            for action in self.rows
        }
        steps = np.zeros(len(self.labels))
        for _ in range(sweeps):
            ahead = [np.where(usable[action], 1.0 + row @ steps, np.inf) for action, row in self.rows.items()]
            better = np.where(arrived, 0.0, np.min(ahead, axis=0))
            if np.max(better - steps) < 1e-9:
                break
            steps = better
        return float(steps[self.rows[RESET].any(axis=0)].min())

    def _long_run_start(self, ends: FloatArray, goals: Any) -> FloatArray:
        """Returns the distribution of where journeys begin in the long run, [n], if each ends as given and is reset."""
        resets = self.rows[RESET]
        start: FloatArray = resets[self.now].copy()
        if self.begins_anew:
            return start
        starts = np.flatnonzero(resets.any(axis=0))
        next_start = ends[starts] @ resets[np.ix_(goals, starts)]
        average, ahead = np.eye(len(starts)), next_start  # of the first 2^k journeys, and what 2^k of them lead to
        for _ in range(DOUBLINGS):
            average, ahead = (average + ahead @ average) / 2, ahead @ ahead
        start[starts] = resets[self.now][starts] @ average
        return start


def _played(play: Choice, step: int, label: Any) -> Any:
    return play(label, step)


def _reached(chain: FloatArray, start: Any) -> Any:
    met = np.array(start, dtype=bool)
    while True:
        more = met | ((met @ (chain > 0)) > 0)
        if (more == met).all():
            return met
        met = more


def _can_reach(chain: FloatArray, goal: Any) -> Any:
    return _reached(chain.T, goal)


@dataclass(frozen=True)
class Border:
    """A system at the border of what is assumed, or within it.

    Attributes:
        first: how it works in the beginning.
        later: how it comes to work, with the same hidden states; None if it stays as it is.
        weight: the probability that a step is one of `later`, as a function of the plays so far that count.
        worn_by: the action whose plays count; None for all steps and RESETs.
        phases: the plays after which a periodic system is looked at, relative to the end of an exploration.
        radius: the radius to explore it with.
    """

    first: HiddenModel
    radius: float
    later: HiddenModel | None = None
    weight: Callable[[int], float] = lambda _: 0.0
    worn_by: str | None = None
    phases: tuple[int, ...] = (0,)

    def system(self, seed: int) -> BorderSystem:
        """Returns a new system."""
        return BorderSystem(self, seed)

    def models_after(self, plays: int, hidden: int = 0) -> list[HiddenModel]:
        """Returns how the system works after a number of plays, in a hidden state, once for each phase."""
        if self.later is None:
            return [replace(self.first, now=hidden)]
        return [_mixed(self.first, self.later, self.weight(plays + phase), hidden) for phase in self.phases]


def _mixed(first: HiddenModel, later: HiddenModel, weight: float, hidden: int) -> HiddenModel:
    rows = {action: (1 - weight) * first.rows[action] + weight * later.rows[action] for action in first.rows}
    return HiddenModel(first.labels, first.offers, rows, hidden)


class BorderSystem:
    """Shows labels only. It is one system for its whole life: what it hides survives everything but what clears it.

    Attributes:
        plays: the plays so far that count for how it changes.
        hidden: the hidden state that it is in.
    """

    def __init__(self, border: Border, seed: int) -> None:
        self.plays = 0
        self._border = border
        self._cumulative = [_cumulative(model) for model in (border.first, border.later) if model is not None]
        self._random = random.Random(seed)
        self.hidden = 0
        self._fresh = 0

    def reseed(self, seed: int) -> None:
        """Gives the noise a new stream; what is hidden stays."""
        self._random = random.Random(int(seed))

    def reset(self) -> Any:
        """Plays RESET, which may not clear everything."""
        return self._play(RESET)

    def step(self, action: str) -> Any:
        """Plays an action."""
        return self._play(action)

    def actions(self, _label: Any) -> tuple[str, ...]:
        """Returns the actions of the hidden state just entered."""
        return self._border.first.offers[self.hidden]

    def _play(self, action: Any) -> Any:
        border = self._border
        is_later = len(self._cumulative) == 2 and self._random.random() < border.weight(self.plays)
        if border.worn_by in (None, action):
            self.plays += 1
        after, cumulative = self._cumulative[is_later][action][self.hidden]
        place = min(bisect(cumulative, self._random.random() * cumulative[-1]), len(after) - 1)
        self.hidden = after[place]
        label = border.first.labels[self.hidden]
        if label == FAULT:
            raise RuntimeError("the step failed")
        if label == FRESH:
            self._fresh += 1
            return (FRESH, self._fresh)
        return label


def _cumulative(model: HiddenModel) -> dict[Any, list[tuple[list[int], list[float]]]]:
    """Returns the next hidden states and their cumulated probabilities, by action and hidden state."""

    def of(row: FloatArray) -> tuple[list[int], list[float]]:
        after = np.flatnonzero(row)
        return after.tolist(), list(accumulate(row[after].tolist()))

    return {action: [of(row) for row in rows] for action, rows in model.rows.items()}


def best_label_policy(
    model: HiddenModel, goal: Hashable, allowed: Sequence[Hashable], below: float, horizon: int
) -> tuple[float, dict[Any, Any], int | None]:
    """Searches for a policy of labels that takes less than some steps; returns the best one met, and its horizon.

    Every policy that resets outside the labels is one that a lower bound speaks of, so that a single one that takes
    less refutes the bound. The search changes one choice at a time, from several beginnings; it may miss one.
    """
    choices = {label: [*_offered(model, label), RESET] for label in allowed if label != goal}
    found: tuple[float, dict[Any, Any], int | None] = (math.inf, {}, None)
    for turn in range(max(len(options) for options in choices.values()) if choices else 0):
        policy = {label: options[turn % len(options)] for label, options in choices.items()}
        best = _value(model, policy, goal, horizon)
        improved = True
        while improved:
            improved = False
            for label, options in choices.items():
                for action in options:
                    if action == policy[label]:
                        continue
                    tried = policy | {label: action}
                    value = _value(model, tried, goal, horizon)
                    if value[0] < best[0] - 1e-9:
                        policy, best, improved = tried, value, True
        if best[0] < found[0]:
            found = (best[0], policy, best[1])
        if found[0] < below:
            break
    return found


def _offered(model: HiddenModel, label: Hashable) -> list[str]:
    return sorted(
        {action for seen, offers in zip(model.labels, model.offers, strict=True) if seen == label for action in offers}
    )


def _value(model: HiddenModel, policy: Mapping[Any, Any], goal: Hashable, horizon: int) -> tuple[float, int | None]:
    """Returns the least steps of a policy of labels with or without restarts, and the horizon that gives them."""
    plain = model.policy_steps(lambda label: policy.get(label, RESET), goal)
    if not model.begins_anew:
        return plain, None
    arrived = model.shows(goal)
    chain = model.chain(lambda label: policy.get(label, RESET))
    mass = model.rows[RESET][0].copy()
    chance = costs = 0.0
    best: tuple[float, int | None] = (plain, None)
    for step in range(horizon + 1):
        now = float((mass * arrived).sum())
        chance, costs = chance + now, costs + step * now
        mass = mass * (1 - arrived)
        if step and chance > 0.0:
            restarted = (costs + (step + 1) * float(mass.sum())) / chance
            if restarted < best[0]:
                best = (restarted, step)
        mass = mass @ chain
    return best
