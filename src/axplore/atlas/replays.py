"""Plays the policies of an atlas before anything is promised, and looks for what shows that a promise is false.

A claim that is false because labels hide something, or because an assumption is, shows when its own policy is played.
First every goal has one episode, the farthest first; then the goals share the steps. Where something is assumed, each
action that the first episodes played is then drawn until another outcome, if it comes more often than a rate, would
have shown itself with a probability of 0.95 (`axplore.statistics.confirming`). What is asked of the draws:

- whether they contradict what is assumed, or rows depend on whose policy was being played, exploring and short random
  walks from RESET included (`axplore.atlas.draw_checks`). Exploring resets only where a policy does, so it may never
  have seen what follows a RESET;
- whether the policy to a goal takes longer than proven (as in `axplore.atlas.validation`);
- whether it takes less, if it is restarted after the horizon: no policy may (`axplore.statistics.episodes`).

Where workers step the system, they play, many episodes at once: which ones depends on what came of those before, and
not on the number of workers.

The tests are valid at any time, with `FALSE_ALARM` for all of them together. What is seen counts whether or not the
system fails on the way. An episode that a failure interrupts has not arrived, so that losing long episodes cannot look
like arriving early; and a failure that ends the replays is a finding itself. The steps are not counted, and what they
meet proves nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from axplore.assumptions import NOTHING, Assumptions
from axplore.atlas.draw_checks import FALSE_ALARM as DRAWS_ALARM
from axplore.atlas.draw_checks import WALKS, DrawChecks
from axplore.atlas.validation import log_evidence_of_slowness
from axplore.errors import OrdersCutError, UnfixedStartError, WorldError
from axplore.labels import readable
from axplore.records.findings import Finding, Issue
from axplore.records.policies import Policies
from axplore.records.run import Played
from axplore.statistics.confirming import draws_to_see
from axplore.statistics.episodes import log_wealth, losses_if_slower, spread_bets
from axplore.types import RESET_ACTION, Action, IntArray, State
from axplore.worlds.contract import (
    Answer,
    Episodes,
    Examinable,
    Order,
    Resumable,
    Trials,
    Visit,
    World,
    WorldSnapshot,
)
from axplore.worlds.diagnosis import finding_of
from axplore.worlds.watched import Patience, SharedWorld

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

FALSE_ALARM: Final = 2 * DRAWS_ALARM

SHARE: Final = 0.2
FEWEST_STEPS: Final = 4_000
MOST_STEPS: Final = 200_000
SECONDS: Final = 30.0
"""What the replays of an atlas may take: a part of the steps of the exploration, within limits. Where workers step the
system, the seconds are those of all of them together."""

MOST_SIMULATED_STEPS: Final = 10_000
"""The most steps of replays on a model. Its labels hide nothing: where nothing is assumed, one episode of each goal is
all that is played."""

CONFIRMED: Final = 0.02
"""The rate above which another outcome is looked for unless it is chosen,"""

CONFIRMING_STEPS: Final = 20_000
"""and the steps that this may take then, or a part of the steps of the exploration."""

HORIZON_FACTOR: Final = 40
SHORTEST_HORIZON: Final = 80
"""An episode is cut after this many times the steps that are proven, but never before this many. Hardly any is that
long, and one that a system is stuck in shows that it is."""

QUICK_FACTORS: Final = (2, 4, 10)
"""Whether a policy takes less than proven is asked with restarts after these multiples of the lower bound."""

ROUNDS: Final = 5
"""The steps are spent in this many rounds over all goals."""

MOST_PLANNED: Final = 10**9
CHOICE: Final = 30
"""All policies that are played together cover at most this many states, where one on the way counts as much as thirty
in which a policy resets. So of a world with a million states, at most a thousand episodes and visits are made."""

BATCH: Final = 16
"""The most episodes in a call of a world."""

AT_ONCE: Final = 256
"""The most episodes, or walks, that workers are given at once,"""

OF_GOAL: Final = 64
"""and of one goal."""

MAX_CUTS: Final = 3
"""The cut journeys in a row after which an action is not drawn any more."""

WALKING: Final = 0.1
"""A part of the steps is spent on random walks from RESET,"""

LONGEST_WALK: Final = 8
"""of at most this many actions."""

MEAN_WALK: Final = 1 + (1 + LONGEST_WALK) / 2
"""The steps of a walk with its RESET, where none ends early."""

VISITED: Final = 8
"""For that many episodes at once, workers are given one action that is to be drawn again: it is more work."""

MOST_WALKED: Final = 1_000
"""Walks of workers are random in this many of the states that were met first; beyond, each action has its turn."""

LATER_CALLS: Final = 2**40
"""Replays have random streams of their own: those of calls that no exploration comes to."""


@dataclass(frozen=True)
class Replay:
    """What playing the policies has shown.

    Attributes:
        findings: what shows that promises may be false.
        played: what was played.
        was_cut: whether a limit of the world came before all goals had their share.
    """

    findings: tuple[Finding, ...]
    played: Played
    was_cut: bool


def replay(
    atlas: Atlas,
    world: World,
    explored: World | None = None,
    assume: Assumptions = NOTHING,
    confirm: float | None = None,
) -> Replay:
    """Plays the policies of an atlas, and returns what shows that its promises may be false.

    Failures from which the world recovers are among its faults.

    Args:
        atlas: of the world, with proven bounds.
        world: `playable`, and as exploring left it; afterwards it is as before, but for the system itself.
        explored: the world that the atlas is of, if it is another one: workers may have met what this one has not.
        assume: what is assumed, with the functions that no file holds.
        confirm: the rate above which another outcome of an action of which something is assumed is to show itself, 0
            for none; when not given, `CONFIRMED`, as far as the steps suffice that exploring justifies.
    """
    assert isinstance(world, Resumable)
    before = world.snapshot()
    try:
        world.restore(_begun(before, explored))
        replays = _Replays(atlas, world, assume, confirm)
        try:
            findings = tuple(islice(replays.found(), 1))
        except WorldError as error:  # does not affect what is proven, nor what was seen
            findings = (*islice(replays.length_findings(), 1), _failure_finding(error))
        return Replay(findings, replays.record, replays.is_cut and not replays.has_played)
    finally:
        world.restore(before)


def steps_to_replay(atlas: Atlas) -> int:
    """Returns the steps that episodes of the goals of an atlas may take."""
    return min(max(FEWEST_STEPS, int(SHARE * atlas.steps)), MOST_STEPS)


def steps_to_keep(atlas: Atlas) -> int:
    """Returns the steps that suffice for all replays where nothing is assumed, walks and last episodes included."""
    return math.ceil((1 + 2 * WALKING) * steps_to_replay(atlas))


def _begun(before: WorldSnapshot, explored: World | None) -> WorldSnapshot:
    """Returns where replays begin: with all states that the exploration met, and random streams of their own."""
    later = replace(before, calls=before.calls + LATER_CALLS)
    if explored is None or tuple(explored.states) == before.labels:
        return later
    actions = tuple(map(explored.actions_of, range(len(explored.states))))
    return replace(later, labels=tuple(explored.states), actions=actions)


def _failure_finding(error: WorldError) -> Finding:
    """What is said of a system that could not be tried to the end."""
    issue = Issue.START_NOT_FIXED if isinstance(error, UnfixedStartError) else Issue.SYSTEM_FAILS
    return finding_of(issue, f"While the policies were played: {error}.")


@dataclass
class _Goal:
    """A goal whose policy is tried, and what came of it.

    Attributes:
        index: in the atlas.
        horizon: the steps after which an episode is cut.
        outcomes: the number of episodes that arrived after each number of steps, and of those that did not,
            [horizon + 2].
        lengths: of the episodes that no failure interrupted, or what they took at least.
        steps: that its episodes took.
    """

    index: int
    horizon: int
    outcomes: IntArray
    lengths: list[int] = field(default_factory=list)
    steps: int = 0

    def note(self, answer: Answer) -> None:
        """Adds one episode, and those that failures interrupted before it."""
        self.steps += answer.steps
        self.outcomes += answer.outcomes
        if not answer.completed:
            return
        if not answer.cut_journeys:
            self.lengths.append(answer.travelled)
        else:  # it took what it drew, at least, unless some of that was of others
            was_interrupted = int(answer.outcomes.sum()) > answer.completed
            self.lengths.append(0 if was_interrupted else int(answer.pair_draws.sum()))


class _Replays:
    """Replays in progress.

    Attributes:
        is_cut: whether a limit of the world has ended them.
        has_played: whether all goals had their share before that.
    """

    def __init__(self, atlas: Atlas, world: World, assume: Assumptions, confirm: float | None) -> None:
        self._atlas, self._world, self._confirm = atlas, world, confirm
        self._shared = world if isinstance(world, SharedWorld) and world.can_be_watched else None
        self._is_simulated = world.examinable is None and self._shared is None
        self._checks = DrawChecks(atlas, world, "the policies were played", assume)
        self._numbers = {state: number for number, state in enumerate(world.states)}
        self._in_world = np.array([self._numbers[state] for state in atlas.states])
        self._farthest_first = _promised(atlas)
        self._goals: list[_Goal] = []  # those that were begun
        self._planned = 0  # the states that all policies so far cover; see `MOST_PLANNED`
        self._confirmed: dict[tuple[int, int], None] = {}  # in the order in which they were met
        self.is_cut = self.has_played = False
        self._first = world.steps
        self._patience = Patience(world, math.inf if self._is_simulated else SECONDS)

    @property
    def record(self) -> Played:
        """What was played so far."""
        episodes = [len(goal.lengths) for goal in self._goals]
        draws = [self._checks.times(*pair) for pair in self._confirmed]
        return Played(
            goals=len(self._farthest_first),
            played=sum(times > 0 for times in episodes),
            episodes=sum(episodes),
            most=max(episodes, default=0),
            steps=self._steps,
            confirmed=len(draws),
            repeats=max(0, min(draws, default=1) - 1),
        )

    def found(self) -> Iterator[Finding]:
        """Plays, and yields what it finds."""
        budget = steps_to_replay(self._atlas)
        if self._is_simulated:
            budget = min(budget, MOST_SIMULATED_STEPS)
        yield from self._every_goal_once(budget)
        if isinstance(self._world, Examinable):
            yield from self._walks(self._world, int(WALKING * budget))
        if self._shared is not None:
            yield from self._walks_at_once(self._shared, int(WALKING * budget))
        if not self._is_simulated or self._atlas.assumptions:
            yield from self._shares(budget)
        self.has_played = not self.is_cut
        yield from self._confirmation(max(CONFIRMING_STEPS, budget))

    def length_findings(self) -> Iterator[Finding]:
        """What contradicts the bounds of any goal."""
        for goal in self._goals:
            yield from self._length_findings(goal)

    @property
    def _steps(self) -> int:
        return self._world.steps - self._first

    def _is_late(self) -> bool:
        return self.is_cut or self._planned >= MOST_PLANNED or self._patience.is_over

    def _goal(self, index: int) -> _Goal:
        horizon = self._horizon(index)
        return _Goal(index, horizon, np.zeros(horizon + 2, dtype=np.int64))

    def _horizon(self, index: int) -> int:
        """Returns the steps after which a journey to a state of the atlas is cut."""
        return max(SHORTEST_HORIZON, math.ceil(HORIZON_FACTOR * float(self._atlas.upper[index])))

    def _every_goal_once(self, budget: int) -> Iterator[Finding]:
        """Plays one episode of each goal, the farthest first, as far as the steps suffice."""
        waiting = self._farthest_first
        while len(waiting) and self._steps < budget and not self._is_late():
            at_once = self._at_once(self._horizon(int(waiting[0])))
            expected = np.cumsum(self._atlas.upper[waiting[:at_once]])
            n_begun = max(1, int(np.searchsorted(expected, budget - self._steps)))
            begun, waiting = waiting[:n_begun].tolist(), waiting[n_begun:]
            goals = [self._goal(index) for index in begun]
            self._goals += goals
            yield from self._episodes([(goal, 1) for goal in goals], is_confirmed=True)

    def _at_once(self, horizon: int) -> int:
        """Returns how many episodes of at most this many steps are played at once, where they are the first."""
        # A batch may take one step to start a system, and one to reset it.
        return 1 if self._shared is None else self._shared.affordable(horizon + 2, AT_ONCE)

    def _shares(self, budget: int) -> Iterator[Finding]:
        """Spends the same number of steps on every goal."""
        share = budget / max(1, len(self._farthest_first))
        yield from self._shares_in_rounds(share) if self._shared is None else self._shares_at_once(share)

    def _shares_at_once(self, share: float) -> Iterator[Finding]:
        """Plays many episodes at once, of the goals that had the fewest steps, until every goal had its share."""
        while (episodes := self._next_episodes(share)) and not self._is_late():
            before = [goal.steps for goal, _ in episodes]
            yield from self._episodes(episodes)
            for (goal, _), steps in zip(episodes, before, strict=True):
                if int(ROUNDS * goal.steps / share) > int(ROUNDS * steps / share):
                    yield from self._length_findings(goal)

    def _next_episodes(self, share: float) -> list[tuple[_Goal, int]]:
        """Returns goals that have not had their share, and how many episodes of each are played next."""
        goals = sorted((goal for goal in self._goals if goal.lengths and goal.steps < share), key=_steps_of)
        room = min(self._at_once(max((goal.horizon for goal in goals), default=1)), self._affordable_episodes)
        episodes: list[tuple[_Goal, int]] = []
        for goal in goals[:room]:
            left = math.ceil((share - goal.steps) * len(goal.lengths) / goal.steps)
            episodes.append((goal, min(OF_GOAL, left, room)))
            room -= episodes[-1][1]
            if not room:
                break
        return episodes

    @property
    def _affordable_episodes(self) -> int:
        """About how many episodes there is time for; at least one."""
        lengths = [length for goal in self._goals for length in goal.lengths]
        mean = 1 + sum(lengths) / max(1, len(lengths))
        return max(1, math.ceil(min(AT_ONCE, self._patience.steps_left / mean)))

    def _shares_in_rounds(self, share: float) -> Iterator[Finding]:
        """Plays in a few rounds, one goal after the other."""
        for round_number in range(1, ROUNDS + 1):
            for goal in self._goals:
                wanted = share * round_number / ROUNDS
                while goal.lengths and goal.steps < wanted and not self._is_late():
                    left = (wanted - goal.steps) * len(goal.lengths) / goal.steps
                    yield from self._episodes([(goal, min(BATCH, math.ceil(left)))])
                yield from self._length_findings(goal)

    def _episodes(self, episodes: Sequence[tuple[_Goal, int]], *, is_confirmed: bool = False) -> Iterator[Finding]:
        """Plays episodes.

        Args:
            episodes: the goals, each with the number of its episodes.
            is_confirmed: whether the actions that they play are to be confirmed, as far as anything is assumed of them.
        """
        # Workers begin every batch with a RESET.
        orders = [
            Episodes(
                int(self._in_world[goal.index]),
                1,
                goal.horizon,
                self._policy(goal.index),
                always_reset=self._shared is None,
            )
            for goal, _ in episodes
        ]
        if self._shared is not None:  # each is sent to a worker
            self._planned += sum(
                (times - 1) * len(order.policy) for order, (_, times) in zip(orders, episodes, strict=True)
            )
        goals = [goal for goal, times in episodes for _ in range(times)]
        repeated = [order for order, (_, times) in zip(orders, episodes, strict=True) for _ in range(times)]
        following = [*goals[1:], None]
        for goal, answer, after in zip(goals, self._carried_out(repeated), following, strict=True):
            goal.note(answer)
            yield from self._checked(goal.index, answer.transitions(), more=after is goal)
            if is_confirmed:
                pairs = zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), strict=True)
                self._confirmed |= dict.fromkeys(pair for pair in pairs if self._checks.is_assumed(*pair))

    def _confirmation(self, budget: int) -> Iterator[Finding]:
        """Draws the actions that were played, until another outcome would have shown itself."""
        if self._confirm == 0 or not self._confirmed:
            return
        draws = 1 + draws_to_see(CONFIRMED if self._confirm is None else self._confirm)
        last = math.inf if self._confirm is not None else self._steps + budget
        hopeless: set[tuple[int, int]] = set()
        wanted = 1
        while wanted < draws:  # in rounds, so that all of them have about as many when the steps are used up
            wanted = min(2 * wanted, draws)
            waiting = [pair for pair in self._confirmed if pair not in hopeless]
            while waiting:
                at_once = max(1, self._at_once(SHORTEST_HORIZON) // VISITED)
                pairs, waiting = waiting[:at_once], waiting[at_once:]
                missing = {pair: times for pair in pairs if (times := wanted - self._checks.times(*pair)) > 0}
                if not missing:
                    continue
                if self._steps >= last or self.is_cut or (self._confirm is None and self._is_late()):
                    return
                for pair, answer in zip(missing, self._visited(missing), strict=True):
                    yield from self._checked(self._index_of(pair[0]), answer.transitions())
                    if answer.completed < missing[pair]:
                        hopeless.add(pair)

    def _visited(self, pairs: dict[tuple[int, int], int]) -> list[Answer]:
        """Goes to the states of pairs by their policies and plays their actions, each a number of times."""
        visits: list[Order] = []
        for pair, times in pairs.items():
            index = self._index_of(pair[0])
            visits.append(Visit(*pair, times, self._policy(index), self._horizon(index), MAX_CUTS))
        return self._carried_out(visits)

    def _carried_out(self, orders: Sequence[Order]) -> list[Answer]:
        """Returns what came of orders, also where a limit of the world cuts them: nothing is played after that."""
        try:
            return self._world.carry_out(orders) if self._shared is None else self._shared.carry_out_watched(orders)
        except OrdersCutError as cut:
            self.is_cut = True
            return cut.answers

    def _index_of(self, number: int) -> int:
        """Returns the index in the atlas of a state, by its number in the world."""
        return self._atlas.indices[self._world.states[number]]

    def _policy(self, index: int) -> IntArray:
        """Returns what the policy to a state plays in each state of the world, [n]."""
        policy: IntArray = np.full(len(self._world.states), RESET_ACTION)
        policies = self._atlas.policies
        if isinstance(policies, Policies):
            states, choices = policies.choices_of(index)
        else:
            choices = policies[index]
            states = np.arange(len(choices))
        policy[self._in_world[states]] = choices
        self._planned += len(policy) + CHOICE * len(states)
        return policy

    def _checked(
        self, context: Hashable, draws: Iterable[tuple[int, int, int, int]], *, more: bool = False
    ) -> Iterator[Finding]:
        finding = self._checks.add(context, draws, more=more)
        if finding is not None:
            yield finding

    def _walks(self, world: Examinable, budget: int) -> Iterator[Finding]:
        """Plays a few random actions after a RESET, again and again."""
        last, generator = self._steps + budget, random.Random(self._atlas.steps)
        while self._steps < last and not self._is_late():
            yield from self._checked(WALKS, self._walked(world, generator), more=True)
        yield from self._checked(WALKS, ())

    def _walks_at_once(self, world: SharedWorld, budget: int) -> Iterator[Finding]:
        """Plays many such walks at once."""
        last, generator = self._steps + budget, np.random.default_rng(self._atlas.steps)
        offered = np.array([len(world.actions_of(number)) for number in range(min(len(world.states), MOST_WALKED))])
        while self._steps < last and not self._is_late():
            n_walks = min(self._at_once(LONGEST_WALK), math.ceil((last - self._steps) / MEAN_WALK))
            walks = [_random_walk(offered, generator) for _ in range(n_walks)]
            self._planned += sum(walk.policy.size for walk in walks)
            for answer in self._carried_out(walks):
                yield from self._checked(WALKS, answer.transitions(), more=True)
        yield from self._checked(WALKS, ())

    def _walked(self, world: Examinable, generator: random.Random) -> list[tuple[int, int, int, int]]:
        """Plays a few random actions after a RESET, and returns what followed each."""
        draws: list[tuple[int, int, int, int]] = []
        before: tuple[int, int] | None = None
        left = generator.randint(1, LONGEST_WALK)

        def choose(label: State, offered: tuple[Action, ...]) -> Action | None:
            nonlocal before, left
            here = self._number_of(label)
            if before is not None:
                draws.append((*before, here, 1))
            left -= 1
            if left < 0 or not offered:
                return None
            before = here, generator.randrange(len(offered))
            return offered[before[1]]

        try:
            world.walk(choose)
        except OrdersCutError:
            self.is_cut = True
        return draws

    def _number_of(self, label: State) -> int:
        """Returns the number of a state that the world has shown."""
        for number in range(len(self._numbers), len(self._world.states)):
            self._numbers[self._world.states[number]] = number
        return self._numbers[label]

    def _length_findings(self, goal: _Goal) -> Iterator[Finding]:
        """What contradicts the bounds of a goal; all goals share the level."""
        if not goal.lengths:
            return
        lengths, needed = (
            np.array(goal.lengths),
            -math.log((FALSE_ALARM - DRAWS_ALARM) / (2 * len(self._farthest_first))),
        )
        state = readable(self._atlas.states[goal.index])
        lower, upper = float(self._atlas.lower[goal.index]), float(self._atlas.upper[goal.index])
        seen = f"The policy to {state} took {lengths.mean():.3f} steps on average in {len(lengths):,} episodes"
        if log_evidence_of_slowness(lengths, upper) >= needed:
            yield finding_of(Issue.HISTORY_MATTERS, f"{seen}, though at most {upper:.3f} are proven from the counts.")
        if lower > 0 and _log_evidence_of_haste(goal.outcomes, lower) >= needed:
            yield finding_of(Issue.HISTORY_MATTERS, f"{seen}, though at least {lower:.3f} are proven from the counts.")


def _promised(atlas: Atlas) -> IntArray:
    """Returns the indices of the goals whose policies are promised, the farthest first.

    Where one goal was asked for, nothing is promised of other policies. One that depends on the step was tried by
    episodes already: nothing but they prove its bound.
    """
    if atlas.reached_goal is None:
        goals = np.arange(1, len(atlas.states))
    else:
        goals = np.array([index for index in [atlas.index_of(atlas.reached_goal)] if index], dtype=np.int64)
    goals = goals[np.isfinite(atlas.upper[goals])]
    goals = goals[np.argsort(-atlas.upper[goals], kind="stable")]
    policies = atlas.policies
    if isinstance(policies, Policies):
        return goals[~np.isin(goals, list(policies.horizons))] if policies.horizons else goals
    return goals[[policies[index].ndim == 1 for index in goals.tolist()]]


def _steps_of(goal: _Goal) -> int:
    return goal.steps


def _random_walk(offered: IntArray, generator: np.random.Generator) -> Trials:
    """Returns a walk of a few random actions.

    Args:
        offered: the number of actions of each state in which they are random, [n].
        generator: chooses them.
    """
    length = int(generator.integers(1, LONGEST_WALK, endpoint=True))
    policy = np.where(offered > 0, generator.integers(0, np.maximum(offered, 1), (length, len(offered))), RESET_ACTION)
    return Trials(1, length, policy, goes_beyond=True)


def _log_evidence_of_haste(outcomes: IntArray, lower: float) -> float:
    """Returns the logarithm of the evidence of episodes against a least number of expected steps.

    Every policy takes that many, also one that is restarted after any horizon: the evidence is the mean over some.

    Args:
        outcomes: the number of episodes that arrived after each number of steps, and of those that did not, [h + 2].
        lower: the least number of expected steps, which is positive.
    """
    evidence = []
    for factor in QUICK_FACTORS:
        horizon = min(max(1, math.ceil(factor * lower)), len(outcomes) - 2)
        sooner = np.append(outcomes[: horizon + 1], outcomes[horizon + 1 :].sum())
        evidence.append(log_wealth(losses_if_slower(horizon, lower), sooner, spread_bets()))
    return float(np.logaddexp.reduce(evidence) - math.log(len(evidence)))
