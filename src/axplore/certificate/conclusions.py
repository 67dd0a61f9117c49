"""What follows from the claims of a certificate, if they hold: bounds, policies and a status for every state."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from axplore.certificate import kinds
from axplore.certificate.document import Certificate
from axplore.certificate.kinds.kind import subject_of
from axplore.certificate.promise import PropertyBounds
from axplore.records.policies import Policies
from axplore.records.vectors import Vector
from axplore.target import Objective
from axplore.types import RESET_ACTION, FloatArray, Status

NEAREST: Final = 1.0
"""No other state is nearer to the initial one than a step."""


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What a certificate says of every state: the known ones, then the others seen, by index.

    Attributes:
        lower: no policy restricted to the known states takes fewer expected steps, [n + others].
        upper: the policy takes no more; infinite without a claim, and for states that are not known, [n + others].
        regret: the policy loses no more against the best one; likewise, [n + others].
        statuses: of each state, [n + others].
        policies: to each known state, by state, [n], or by step and state if it restarts after H steps, [H, n]; it
            resets everywhere if no policy is claimed to arrive, [n].
        unseen_lower: no state never seen can be reached in fewer expected steps.
        open_parts: what would have to be claimed besides, or only once, for the objective to be reached, in words.
        refuted: the known states that were admitted as within reach and are proven to be beyond it.
        properties: the bounds of properties.
        reached_goal: of the goals that were asked for, the nearest one that is reached as was asked; None if none is.
    """

    lower: FloatArray
    upper: FloatArray
    regret: FloatArray
    statuses: tuple[Status, ...]
    policies: Policies
    unseen_lower: float
    open_parts: tuple[str, ...]
    refuted: tuple[int, ...]
    properties: tuple[PropertyBounds, ...]
    reached_goal: int | None


@dataclass(eq=False)
class Draft:
    """Conclusions in the making, to which each kind of claims adds what follows from its own.

    Attributes:
        certificate: whose conclusions they are.
        lower: of every index, that of states never seen included, [n + others + 1].
        upper: of every state seen, [n + others].
        losses: what policies lose at most, where that is less than the gap of their bounds.
        reached: the states within reach by states admitted before them.
        optimal: those of which the policy is near-optimal.
        beyond: the indices beyond the radius.
        ways: the policy to use for each goal.
        horizons: the steps after which some of these restart.
        policies: all of them at once, in place of `ways`.
        properties: the bounds of properties.
    """

    certificate: Certificate
    lower: FloatArray
    upper: FloatArray
    losses: dict[int, float] = field(default_factory=dict)
    reached: set[int] = field(default_factory=lambda: {0})
    optimal: set[int] = field(default_factory=lambda: {0})
    beyond: set[int] = field(default_factory=set)
    ways: dict[int, Vector[np.int64]] = field(default_factory=dict)
    horizons: dict[int, int] = field(default_factory=dict)
    policies: Policies | None = None
    properties: tuple[PropertyBounds, ...] = ()

    def use(self, goal: int, policy: Vector[np.int64], upper: float, horizon: int | None = None) -> None:
        """Makes a policy the one to use, in place of any other."""
        self.ways[goal], self.upper[goal] = policy, upper
        self.horizons.pop(goal, None)
        if horizon is not None:
            self.horizons[goal] = horizon

    def raise_lower(self, goal: int, steps: float) -> None:
        """Adds a lower bound; the greatest counts."""
        self.lower[goal] = max(self.lower[goal], steps)

    def conclude(self, index: int, status: Status) -> None:
        """Adds the status of a state as a whole."""
        if status is Status.CERTIFIED:
            self.reached.add(index)
            self.optimal.add(index)
        elif status is Status.SET_ASIDE:
            self.beyond.add(index)

    def finished(self) -> Conclusions:
        """Returns the conclusions."""
        n_known, n_seen, radius = len(self.certificate.known), self.certificate.n_seen, self.certificate.radius
        lower, upper = self.lower, self.upper
        for goal in range(n_known, n_seen + 1):
            if goal not in self.beyond:  # then nothing is said that would set it aside, however close the bound is
                lower[goal] = min(lower[goal], radius)
        lower[0] = upper[0] = 0.0
        regret = upper - lower[:-1]
        for goal, loss in self.losses.items():
            regret[goal] = loss
        return Conclusions(
            lower=lower[:-1],
            upper=upper,
            regret=regret,
            statuses=tuple(self._status(index) for index in range(n_seen)),
            policies=self.policies or self._policies(n_known),
            unseen_lower=float(lower[-1]),
            open_parts=(*self._missing(), *_repeated(self.certificate)),
            refuted=tuple(np.flatnonzero(lower[:n_known] > self.certificate.reach).tolist()),
            properties=self.properties,
            reached_goal=min(self._goals_reached(), key=lambda goal: upper[goal], default=None),
        )

    def _policies(self, n_known: int) -> Policies:
        resetting = Vector.of(np.full(n_known, RESET_ACTION, dtype=np.int64), RESET_ACTION)
        return Policies.of([self.ways.get(goal, resetting) for goal in range(n_known)], n_known, self.horizons)

    def _status(self, index: int) -> Status:
        if index >= len(self.certificate.known):
            return Status.SET_ASIDE if index in self.beyond else Status.OPEN
        good = index in self.optimal or self.certificate.objective is not Objective.OPTIMAL
        return Status.CERTIFIED if index in self.reached and good else Status.OPEN

    def _missing(self) -> list[str]:
        if self.certificate.objective is Objective.QUESTION:
            return self._unanswered()
        n_known, n_seen = len(self.certificate.known), self.certificate.n_seen
        goals = [goal for goal in self._goals() if goal < n_known]
        if goals:
            subject = subject_of(self.certificate, goals[0])
            return [] if self._goals_reached() else [f"{subject}, the goal, is not claimed to be reached as was asked"]
        # That no goal is within the radius takes a map of what is.
        wanted = [("reachable", self.reached, range(n_known)), ("too far", self.beyond, range(n_known, n_seen + 1))]
        if self.certificate.objective is Objective.OPTIMAL and self.certificate.goal is None:
            wanted.append(("near-optimal", self.optimal, range(n_known)))
        return [
            f"{subject_of(self.certificate, goal)} is not claimed to be {words}"
            for words, claimed, goals in wanted
            for goal in goals
            if goal not in claimed
        ]

    def _goals(self) -> list[int]:
        """The goals that were asked for."""
        return [] if self.certificate.goal is None else self.certificate.goal.states.tolist()

    def _goals_reached(self) -> list[int]:
        """Those that are reached as was asked."""
        return [goal for goal in self._goals() if self._status(goal) is Status.CERTIFIED]

    def _unanswered(self) -> list[str]:
        """What would have to be claimed of the first property, where that is all that was asked for.

        Properties that were asked of the same counts since are claimed beside it, whatever their bounds are.
        """
        if not self.properties:
            return ["no property is claimed to be answered"]
        asked, precision = self.properties[0], self.certificate.epsilon
        if asked.is_settled(precision):
            return []
        to = "" if asked.prop.comparison is not None else f" to {precision:g}"
        return [f"{asked.in_full}: {asked.clause}, which does not answer it{to}"]


def _repeated(certificate: Certificate) -> list[str]:
    """What is claimed twice and may be claimed once only."""
    return [
        f"{subject_of(certificate, goal)} is twice claimed to be {kind.words}"
        for kind in kinds.KINDS
        if kind.once
        for goal, times in Counter(claim.goal for claim in certificate.of(kind.record)).items()
        if times > 1
    ]


def conclusions_of(certificate: Certificate) -> Conclusions:
    """What follows from the claims of a certificate, if they hold, which is not checked here; see `verify`."""
    n_seen = certificate.n_seen
    draft = Draft(certificate, np.full(n_seen + 1, NEAREST), np.full(n_seen, math.inf))
    for kind in kinds.KINDS:
        kind.conclude(certificate.of(kind.record), draft)
    return draft.finished()
