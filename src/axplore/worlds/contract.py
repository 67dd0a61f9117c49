"""What an explorer may ask of a world, and what it gets back.

An explorer never steps an environment. It gives *orders*, and a world carries them out and answers with the
transitions it met, counted. States are numbered in the order of discovery, the initial state is 0, and an action
is its position among the state's own actions. RESET is no action of the world: it is always there, known, and one step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from axplore.types import Action, FloatArray, IntArray, State


@dataclass(frozen=True, eq=False)
class Visit:
    """Go to a state by a policy and play an action there, so many more times.

    The agent starts where it stands, and goes on from wherever the action leads. On the way every transition counts.

    By a policy that depends on the step, every journey starts in the initial state: with a RESET unless the agent
    stands there. That RESET counts as a step of the world, not of the journey. It is also the one that cuts a journey,
    so that a journey cut in the initial state takes none. A journey to the initial state has no steps.

    Attributes:
        state: the state to visit.
        action: what to play there.
        times: how often.
        policy: what to play on the way by state, [n], or by step and state, [max_journey, n]; RESET_ACTION resets, and
            so does every state from n on.
        max_journey: a journey that has not arrived after so many steps is cut: the agent resets, which is a step, and
            sets out again.
        max_cuts: after so many cut journeys in a row the order ends, with fewer visits than asked for. So it ends
            under any policy.
    """

    state: int
    action: int
    times: int
    policy: IntArray
    max_journey: int
    max_cuts: int = 1000


@dataclass(frozen=True, eq=False)
class Episodes:
    """Run a policy from the initial state towards a goal, so many times.

    An episode starts with a RESET unless the agent stands in the initial state, and ends at the goal or after `horizon`
    steps. The RESET counts as a step of the world, not of the episode; one that the policy plays counts as both. An
    episode towards the initial state has no steps.

    Attributes:
        goal: the state to reach.
        times: how many episodes at most.
        horizon: the steps after which an episode ends.
        policy: what to play by state, [n], or by step and state, [horizon, n]; RESET_ACTION resets, and so does every
            state from n on.
        allowance, slack: stop once the steps of the first j episodes exceed `j * allowance + slack`.
    """

    goal: int
    times: int
    horizon: int
    policy: IntArray
    allowance: float = math.inf
    slack: float = math.inf


@dataclass(frozen=True, eq=False)
class Tour:
    """Play several pairs so many more times each, going from one to the next by the nearest way.

    The agent starts where it stands, and goes on from wherever its actions lead. On the way every transition counts.

    - In a state with outstanding plays it plays the outstanding action with the largest remaining share, that is plays
      outstanding by plays asked for; of equal ones, the first in the order. Then it chooses a target anew.
    - In another state it heads for a target by the target's policy. It chooses the nearest one with outstanding plays
      when it sets out and after a cut; of equal ones, the first.
    - The order ends with the last play.

    A target is a distinct state among `states`, in the order in which they first appear there: see `targets`.

    Attributes:
        states, actions: the pairs to play, all different, [m] each.
        times: how often to play each, at least once, [m].
        policies: what to play in each state on the way to each target, [t, n]; RESET_ACTION resets, and so does every
            state from n on.
        distances: the expected steps to each target from each state, [t, n], at least 0 and possibly infinite. They
            only choose the nearest. Where nothing is planned they are 1 + distances[:, 0], as the agent resets there.
        max_journey: a journey that has not arrived at any play after so many steps is cut: the agent resets, which is
            a step, and chooses again.
        max_cuts: after so many cut journeys in a row the order ends, with fewer plays than asked for. So it ends
            under any policies.
    """

    states: IntArray
    actions: IntArray
    times: IntArray
    policies: IntArray
    distances: FloatArray
    max_journey: int
    max_cuts: int = 1000

    @property
    def targets(self) -> IntArray:
        """The distinct states among `states`, in the order in which they first appear there, [t]."""
        distinct, first_places = np.unique(self.states, return_index=True)
        targets: IntArray = distinct[np.argsort(first_places)]
        return targets


Order: TypeAlias = Visit | Episodes | Tour


@dataclass(frozen=True, eq=False)
class Answer:
    """What happened while an order was carried out.

    Attributes:
        steps: steps taken, RESET included.
        completed: visits or plays made, or episodes run.
        arrivals: visits or plays made, or episodes that reached the goal.
        travelled: the sum of the lengths of the episodes (those that did not arrive count `horizon`); 0 for visits and
            tours.
        cut_journeys: how many journeys were cut.
        pair_states, pair_actions: the pairs drawn from, [m], in the order in which they were first met.
        pair_draws: how often each was drawn, [m].
        entry_pairs: of each transition met, in the order in which they were first met, which of those pairs it
            belongs to, [e].
        entry_successors: where it led, [e].
        entry_counts: how often it was met, [e].
        entry_first_draws: at which draw of its pair, counted from 1 within this answer, it was met first, [e].
    """

    steps: int
    completed: int
    arrivals: int
    travelled: int
    cut_journeys: int
    pair_states: IntArray
    pair_actions: IntArray
    pair_draws: IntArray
    entry_pairs: IntArray
    entry_successors: IntArray
    entry_counts: IntArray
    entry_first_draws: IntArray


class World(Protocol):
    """A system that can be reset and stepped, seen through orders."""

    @property
    def states(self) -> Sequence[State]:
        """The labels of the states discovered so far, by number; the initial state is the first."""

    @property
    def steps(self) -> int:
        """How many steps were taken so far, RESET included."""

    def actions_of(self, state: int) -> tuple[Action, ...]:
        """The actions of a discovered state beside RESET; none if it is terminal."""

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Carries out orders one after the other and answers each.

        An order may name the states discovered before the call. All orders are checked before the first step.

        The random stream of an order depends on the seed of the world, on how many calls came before, and on the
        place of the order in its call, on nothing else.
        """


def steps_by_now(world: World) -> int:
    """The steps of a world with those of the call in progress, as far as it tells; safe to ask from another thread."""
    by_now: int = getattr(world, "steps_by_now", world.steps)
    return by_now
