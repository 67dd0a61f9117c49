"""Tries to reach what an atlas calls too far, before it is promised that nothing does.

Certified policies never go where states were set aside. But a promise that all other states take more than L steps is
false just as well if labels hide something, or if the system changes with the age. So of every state set aside, and of
the states never seen, the policy that looks most promising is played from RESET, where ages are young. What the tests
that run along find meanwhile counts as ever. And a policy that takes less than the lower bound of every policy refutes
that bound; the probability that this happens to any bound that is true is at most `FALSE_ALARM`.

The steps are not counted, and what they meet proves nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.atlas.learned_model import index_in_model, known_indices
from axplore.errors import OrdersCutError, WorldError
from axplore.labels import readable
from axplore.proofs.bounds import IntervalModel, empirical_path
from axplore.proofs.claims import ToSetAside
from axplore.records.findings import Finding, Issue
from axplore.statistics.episodes import log_wealth, losses_if_slower, spread_bets
from axplore.types import RESET, RESET_PAIR, Action, IntArray, Reset, State
from axplore.worlds.alarms import history_finding
from axplore.worlds.contract import Examinable, Restarts, World
from axplore.worlds.diagnosis import finding_of

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

FALSE_ALARM: Final = 2e-4

SHARE: Final = 0.1
FEWEST_STEPS: Final = 6_000
MOST_STEPS: Final = 100_000
SECONDS: Final = 20.0
"""What the attempts at an atlas may take: a part of the steps of the exploration, within limits. In the fewest, what
happens at a step with a probability of 1 in 2,000 happens with one of 0.95."""

MOST_GOALS: Final = 20
"""Of the states set aside, those that look nearest are attempted."""

HORIZON_FACTOR: Final = 3
"""An attempt ends after this many times the steps that no policy is to take less than."""

LONG: Final = 8
"""Long attempts last this many times as long."""

EPISODES_BETWEEN_LOOKS: Final = 4
"""The number of attempts between two looks at the tests that run along."""

NEVER_SEEN: Final = ("never seen",)
"""Stands in place of the goal where any state that was never seen would do; no system has it for a label."""


@dataclass
class _Goal:
    """What is attempted, by which policy, and what came of it."""

    label: State
    lower: float
    choices: dict[State, Action]
    seen: frozenset[State] = frozenset()
    horizon: int = 0
    steps: int = 0
    long_steps: int = 0
    outcomes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.horizon = max(10, math.ceil(HORIZON_FACTOR * self.lower))
        self.outcomes = np.zeros(self.horizon + 2, dtype=np.int64)

    @property
    def is_long(self) -> bool:
        """Whether the next episode is a long one."""
        return 2 * self.long_steps < self.steps

    @property
    def most_steps(self) -> int:
        """The most steps of the next episode, the RESET before it included."""
        return 1 + (LONG * self.horizon if self.is_long else self.horizon)

    def play(self, world: Examinable) -> None:
        """Plays one episode; half of the steps go to long ones, which show where a system is stuck.

        A state never seen before is noticed where the policy is asked what to play there, which misses terminal ones
        and a last step: both only make the policy look slower.
        """
        arrived_after: list[int] = []

        def choose(state: State, step: int) -> Action | Reset:
            if self.label is NEVER_SEEN and state not in self.seen:
                arrived_after.append(step)
            return self.choices.get(state, RESET)

        is_long = self.is_long
        answer = world.run_episode(choose, self.label, self.most_steps - 1, Restarts.CHOSEN)
        self.steps += answer.steps
        self.long_steps += is_long * answer.steps
        if answer.arrivals:
            arrived_after.append(answer.travelled)
        is_soon = bool(arrived_after) and answer.completed and arrived_after[0] <= self.horizon
        self.outcomes[arrived_after[0] if is_soon else -1] += 1


def attempt(
    atlas: Atlas,
    world: Examinable,
    explored: World | None = None,
    most_steps: float = math.inf,
    most_seconds: float = math.inf,
) -> tuple[Finding, ...]:
    """Plays from RESET towards what is set aside; returns what a test that runs along found, or what refutes a bound.

    Args:
        atlas: of the world, with everything proven and nothing assumed.
        world: as exploring left it; afterwards it is as before, but for the system itself.
        explored: the world that the atlas is of, if it is another one.
        most_steps: the steps that there are for it.
        most_seconds: the seconds that there are for it.
    """
    before = world.snapshot()
    try:
        if explored is not None and explored.states != world.states:
            actions = tuple(map(explored.actions_of, range(len(explored.states))))
            world.restore(replace(before, labels=tuple(explored.states), actions=actions))
        goals = list(_goals(atlas))
        with suppress(OrdersCutError):  # what was seen until a limit came counts
            _play(goals, world, min(steps_to_attempt(atlas), most_steps), min(SECONDS, most_seconds))
        found = history_finding(world)  # while the states that were met are known
        return tuple(_refuted(goals))[:1] if found is None else (found,)
    except WorldError:  # replays say so
        return ()
    finally:
        world.restore(before)


def _goals(atlas: Atlas) -> Iterator[_Goal]:
    """Yields what is attempted: the states set aside that look nearest, and the states never seen."""
    model = atlas.model
    aside = [report for report in atlas.frontier if report.bounds.lower > atlas.target.radius]
    indices = {report.state: index_in_model(model, atlas.seen.index(report.state)) for report in aside}
    nearest = sorted(aside, key=lambda report: empirical_path(model, indices[report.state]).steps)
    for report in nearest[:MOST_GOALS]:
        yield _Goal(report.state, report.bounds.lower, _choices(atlas, model, indices[report.state]))
    if atlas.unseen_ruled_out:
        choices = _choices(atlas, model, model.unseen)
        yield _Goal(NEVER_SEEN, atlas.unseen_lower, choices, frozenset(atlas.seen))


def _choices(atlas: Atlas, model: IntervalModel, goal: int) -> dict[State, Action]:
    """The policy that would be the best one in the most favourable model of the region."""
    policy = ToSetAside(goal, atlas.target.radius).path(model).policy.tolist()
    first = model.rows.state_pairs.tolist()
    return {
        atlas.states[index]: atlas.actions[index][policy[known] - first[known]]
        for known, index in enumerate(known_indices(atlas, model))
        if policy[known] != RESET_PAIR
    }


def steps_to_attempt(atlas: Atlas) -> int:
    """Returns the steps that the attempts at an atlas may take."""
    return min(max(FEWEST_STEPS, int(SHARE * atlas.steps)), MOST_STEPS)


def _play(goals: list[_Goal], world: Examinable, most_steps: float, most_seconds: float) -> None:
    """Plays episodes towards the goal that took the fewest steps so far, until a test that runs along alarms."""
    last, ends = world.steps + most_steps, time.monotonic() + most_seconds
    # Each look ends a batch of the tests: a state that is new in one tells something from the next one on.
    while goals and world.history_alarm is None and world.steps < last and time.monotonic() < ends:
        for _ in range(EPISODES_BETWEEN_LOOKS):
            goal = min(goals, key=lambda goal: goal.steps)
            if world.steps + goal.most_steps > last:  # what is left is for the policies that are promised
                return
            goal.play(world)


def _refuted(goals: list[_Goal]) -> Iterator[Finding]:
    """What contradicts a lower bound."""
    for goal in goals:
        losses = losses_if_slower(goal.horizon, goal.lower)
        if log_wealth(losses, goal.outcomes, spread_bets()) >= -math.log(FALSE_ALARM / len(goals)):
            name = "states never seen before" if goal.label is NEVER_SEEN else readable(goal.label)
            episodes, arrived = int(goal.outcomes.sum()), int(goal.outcomes[:-1].sum())
            yield finding_of(
                Issue.HISTORY_MATTERS,
                f"A policy from RESET to {name} arrived in {arrived:,} of {episodes:,} attempts of at most "
                f"{goal.horizon} steps, so it takes less than the {goal.lower:.3f} expected steps that are proven from "
                "the counts to be the least.",
            )
