"""Tries to reach what an atlas calls too far, before it is promised that nothing does.

Certified policies never go where states were set aside. But a promise that all other states take more than L steps is
false just as well if labels hide something, or if the system changes with the age. So of every state set aside, and of
the states never seen, the policy that looks most promising is played from RESET, where ages are young. What the tests
that run along find meanwhile counts as ever. And a policy that takes less than the lower bound of every policy refutes
that bound; the probability that this happens to any bound that is true is at most `FALSE_ALARM`.

The steps are not counted, and what they meet proves nothing. Where workers step the system, they play, some episodes at
once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
from axplore.types import RESET, RESET_ACTION, RESET_PAIR, Action, IntArray, Reset, State
from axplore.worlds.alarms import history_finding
from axplore.worlds.contract import NO_GOAL, Answer, Episodes, Examinable, Restarts, Watched, World
from axplore.worlds.diagnosis import finding_of
from axplore.worlds.walkers import INTERRUPTED
from axplore.worlds.watched import Patience, SharedWorld

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

FALSE_ALARM: Final = 2e-4

SHARE: Final = 0.1
FEWEST_STEPS: Final = 6_000
MOST_STEPS: Final = 100_000
SECONDS: Final = 20.0
"""What the attempts at an atlas may take: a part of the steps of the exploration, within limits. In the fewest, what
happens at a step with a probability of 1 in 2,000 happens with one of 0.95. Where workers step the system, the seconds
are those of all of them together."""

MOST_GOALS: Final = 20
"""Of the states set aside, those that look nearest are attempted."""

HORIZON_FACTOR: Final = 3
"""An attempt ends after this many times the steps that no policy is to take less than."""

LONG: Final = 8
"""Long attempts last this many times as long."""

FIRST_LOOK: Final = 4
"""The number of attempts before the first look at the tests that run along; then twice as many, up to"""

AT_ONCE: Final = 32
"""this many. Where workers play, they are given as many at once."""

WORTHWHILE: Final = 8
"""Where there is time for fewer than this many more, they end: most workers would have nothing to do."""

LATER_CALLS: Final = 2**41
"""Attempts of workers have random streams of their own: those of calls that no exploration comes to."""

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
        self._note(arrived_after[0] if arrived_after and answer.completed else math.inf)

    def begin(self, world: World, numbers: Mapping[State, int]) -> _Attempt:
        """Returns the next episode for a world that takes orders; its most steps count until it is over.

        Args:
            world: the world.
            numbers: the number there of every state that it had met before the first attempt.
        """
        policy = np.full(len(numbers), RESET_ACTION, dtype=np.int64)
        for state, action in self.choices.items():
            policy[numbers[state]] = world.actions_of(numbers[state]).index(action)
        begun = _Attempt(
            self,
            self.most_steps,
            self.is_long,
            Episodes(NO_GOAL if self.label is NEVER_SEEN else numbers[self.label], 1, self.most_steps - 1, policy),
        )
        self.steps += begun.most_steps
        self.long_steps += begun.is_long * begun.most_steps
        return begun

    def end(self, begun: _Attempt, answer: Answer, recorded: IntArray, numbers: Mapping[State, int]) -> None:
        """Notes what came of an episode that was begun.

        Args:
            begun: what `begin` returned.
            answer: the answer to its order.
            recorded: its steps; see `SharedWorld.recorded`.
            numbers: as for `begin`.
        """
        self.steps += answer.steps - begun.most_steps
        self.long_steps += begun.is_long * (answer.steps - begun.most_steps)
        if not answer.steps:  # a limit came first
            return
        arrived_after = math.inf
        if not (recorded[:, 1] == INTERRUPTED).any():
            if self.label is NEVER_SEEN:
                seen = [numbers[state] for state in self.seen if state in numbers]
                places = np.flatnonzero(~np.isin(recorded[:, 1], seen))
                arrived_after = int(places[0]) if len(places) else math.inf  # the RESET before them is recorded first
            elif answer.arrivals:
                arrived_after = answer.travelled
        self._note(arrived_after)

    def _note(self, arrived_after: float) -> None:
        """Notes the steps after which an episode arrived."""
        self.outcomes[int(arrived_after) if arrived_after <= self.horizon else -1] += 1


@dataclass(frozen=True, eq=False)
class _Attempt:
    """An episode that workers play.

    Attributes:
        goal: what is attempted.
        most_steps: the most steps that it takes.
        is_long: whether it is a long one.
        order: the order.
    """

    goal: _Goal
    most_steps: int
    is_long: bool
    order: Episodes


def attempt(
    atlas: Atlas,
    world: Watched,
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
        most_steps, patience = min(steps_to_attempt(atlas), most_steps), Patience(world, SECONDS, most_seconds)
        with suppress(OrdersCutError):  # what was seen until a limit came counts
            if isinstance(world, SharedWorld):
                _play_at_once(goals, world, most_steps, patience)
            elif isinstance(world, Examinable):
                _play(goals, world, most_steps, patience)
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


def _play(goals: list[_Goal], world: Examinable, most_steps: float, patience: Patience) -> None:
    """Plays episodes towards the goal that took the fewest steps so far, until a test that runs along alarms."""
    last, episodes = world.steps + most_steps, FIRST_LOOK
    # Each look ends a batch of the tests: a state that is new in one tells something from the next one on.
    while goals and world.history_alarm is None:
        for _ in range(episodes):
            goal = min(goals, key=lambda goal: goal.steps)
            # What is left is for the policies that are promised.
            if world.steps + goal.most_steps > last or patience.is_over:
                return
            goal.play(world)
        episodes = min(2 * episodes, AT_ONCE)


def _play_at_once(goals: list[_Goal], world: SharedWorld, most_steps: float, patience: Patience) -> None:
    """Does the same with workers, some episodes at once."""
    numbers = {state: number for number, state in enumerate(world.states)}
    first = world.steps
    world.restore(replace(world.snapshot(), calls=world.snapshot().calls + LATER_CALLS))
    while goals and world.history_alarm is None and not patience.is_over:
        left = most_steps - (world.steps - first)
        begun = _next_attempts(goals, world, numbers, min(left, patience.steps_left))
        has_played = world.steps > first
        if len(begun) < (WORTHWHILE if has_played else 1):  # what is left is for the policies that are promised
            return
        answers = world.carry_out_watched([attempt.order for attempt in begun])
        for attempt, answer, recorded in zip(begun, answers, world.recorded, strict=True):
            attempt.goal.end(attempt, answer, recorded, numbers)


def _next_attempts(
    goals: list[_Goal], world: SharedWorld, numbers: Mapping[State, int], most_steps: float
) -> list[_Attempt]:
    """Returns the next episodes, the longest first, so that no worker is left with a long one at the end."""
    begun: list[_Attempt] = []
    most = world.affordable(max(goal.horizon for goal in goals) * LONG + 3, AT_ONCE)
    while len(begun) < most:
        goal = min(goals, key=lambda goal: goal.steps)
        if goal.most_steps > most_steps:
            break
        begun.append(goal.begin(world, numbers))
        most_steps -= begun[-1].most_steps
    return sorted(begun, key=lambda attempt: -attempt.most_steps)


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
