"""Tries the policies of an atlas on its system before anything is promised, and looks for what labels hide.

A claim that is false because labels hide something shows when its own policy is played: either the pairs behave
otherwise on that way than while exploring, or the policy takes longer than its upper bound, or less than the lower
bound of every policy. Three tests ask this, each valid at any time, with `FALSE_ALARM` for all of them together:

- whether the successors of a pair depend on whose policy was being played, exploring and short random walks from RESET
  included (`HistoryTest`). Exploring resets only where a policy does, so it may never have seen what follows a RESET;
- whether the policy to a goal takes longer than proven (as in `axplore.atlas.validation`);
- whether it takes less, if it is restarted after the horizon: no policy may (`axplore.statistics.episodes`).

The steps are not counted, and what they meet proves nothing.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from axplore.atlas.validation import log_evidence_of_slowness
from axplore.errors import WorldError
from axplore.explorers.base import policy_by_number
from axplore.labels import readable
from axplore.statistics.dependence import HistoryTest, two_that_differ
from axplore.statistics.episodes import log_wealth, losses_if_slower, spread_bets
from axplore.types import Action, State
from axplore.worlds.contract import Answer, Episodes, World
from axplore.worlds.diagnosis import Finding, Issue
from axplore.worlds.hindsight import pair_of
from axplore.worlds.stepped import SteppedWorld

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

FALSE_ALARM: Final = 5e-4

SHARE: Final = 0.2
FEWEST_STEPS: Final = 4_000
MOST_STEPS: Final = 200_000
SECONDS: Final = 30.0
"""What the replays of an atlas may take: a part of the steps of the exploration, within limits."""

HORIZON_FACTOR: Final = 10
"""An episode is cut after this many times the steps that are proven."""

ROUNDS: Final = 5
"""The steps are spent in this many rounds over all goals."""

WALKING: Final = 0.1
"""A part of the steps is spent on random walks from RESET,"""

LONGEST_WALK: Final = 8
"""of at most this many actions."""

EXPLORING: Final = "exploring"
"""The context of what was counted before."""

WALKS: Final = "walks"
"""The context of random walks from RESET."""


def history_finding(world: SteppedWorld) -> Finding | None:
    """Returns what the test that ran along has found; None if nothing."""
    alarm: Any = world.history_alarm
    if alarm is None:
        return None

    def describe(context: Any) -> str:
        before = pair_of(context)
        return "first after a RESET" if before is None else f"after {_pair_text(world, before)}"

    pair = pair_of(alarm.pair)
    assert pair is not None
    rows = [f"{describe(context)}: {_row_text(world, alarm, context)}" for context in two_that_differ(alarm.table)]
    return Finding(
        Issue.HISTORY_MATTERS,
        f"What {_pair_text(world, pair)} leads to depends on what came before ({'; '.join(rows)}; "
        f"{alarm.draws:,} draws).",
    )


@dataclass
class _Goal:
    """A goal whose policy is tried, and what came of it."""

    place: int
    order: Episodes
    lengths: list[int]
    arrived: list[bool]


def replay(atlas: Atlas, world: SteppedWorld, explored: World | None = None) -> Finding | None:
    """Plays the policies of an atlas, and returns what shows that labels hide something; None if nothing does.

    Args:
        atlas: of the world, with proven bounds.
        world: as exploring left it; afterwards it is as before, but for the system itself.
        explored: the world that the atlas is of, if it is another one: workers may have met what this one has not.
    """
    before = world.snapshot()
    n_faults = len(world.faults)
    try:
        if explored is not None and explored.states != world.states:
            actions = tuple(map(explored.actions_of, range(len(explored.states))))
            world.restore(replace(before, labels=tuple(explored.states), actions=actions))
        finding = next(_found(atlas, world), None)
    except WorldError:  # a system that fails only now keeps nobody from what is proven
        return None
    finally:
        world.restore(before)
    return finding if len(world.faults) == n_faults else None


def _found(atlas: Atlas, world: SteppedWorld) -> Iterator[Finding]:
    indices = {state: index for index, state in enumerate(world.states)}
    proven = [place for place in range(1, len(atlas.states)) if math.isfinite(atlas.upper[place])]
    # A policy that depends on the step was tried by episodes already: nothing but they prove its bound.
    goals = [_goal(atlas, place, indices) for place in proven if atlas.policies[place].ndim == 1]
    test = _begun(atlas, indices)
    budget = min(max(FEWEST_STEPS, int(SHARE * atlas.steps)), MOST_STEPS)
    first, ends = world.steps, time.monotonic() + SECONDS
    generator = random.Random(atlas.steps)
    while world.steps - first < WALKING * budget and time.monotonic() < ends:
        test.add(_walked(world, indices, generator))
        if test.alarm is not None:
            yield _dependence_finding(atlas, world, test.alarm)
    first = world.steps
    for round_number in range(1, ROUNDS + 1):
        for number, goal in enumerate(goals, 1):
            share = budget * (round_number - 1 + number / len(goals)) / ROUNDS
            while world.steps - first < share and time.monotonic() < ends:
                _play(goal, world, test)
                if test.alarm is not None:
                    yield _dependence_finding(atlas, world, test.alarm)
            yield from _length_findings(atlas, goal, FALSE_ALARM / (4 * len(goals)))


def _goal(atlas: Atlas, place: int, indices: Mapping[State, int]) -> _Goal:
    known = tuple(indices[state] for state in atlas.states)
    policy = policy_by_number(atlas.policies[place], known)
    horizon = max(20, math.ceil(HORIZON_FACTOR * float(atlas.upper[place])))
    return _Goal(place, Episodes(known[place], 1, horizon, policy), [], [])


def _begun(atlas: Atlas, indices: Mapping[State, int]) -> HistoryTest:
    """Returns the test with everything that was counted while exploring."""
    test, rows = HistoryTest(FALSE_ALARM / 2), atlas.counts
    for row, state in enumerate(rows.states.tolist()):
        first = int(rows.state_pairs[row])
        for pair in range(first, int(rows.state_pairs[row + 1])):
            entries = slice(rows.row_offsets[pair], rows.row_offsets[pair + 1])
            met = zip(rows.successors[entries].tolist(), rows.counts[entries].tolist(), strict=True)
            counts: dict[Hashable, int] = {indices[atlas.seen[successor]]: times for successor, times in met}
            if counts:
                test.begin_with((indices[atlas.seen[state]], pair - first), EXPLORING, counts)
    return test


def _play(goal: _Goal, world: SteppedWorld, test: HistoryTest) -> None:
    """Plays a few more episodes of a goal's policy."""
    for answer in world.carry_out([goal.order] * 16):
        goal.lengths.append(answer.travelled)
        goal.arrived.append(bool(answer.arrivals))
        test.add(_draws(goal.place, answer))


def _walked(
    world: SteppedWorld, indices: dict[State, int], generator: random.Random
) -> list[tuple[str, tuple[int, int], int, int]]:
    """Plays a few random actions after a RESET, and returns what followed each.

    Args:
        world: the world.
        indices: of its states; those met for the first time are added.
        generator: what chooses the actions.
    """
    draws: list[tuple[str, tuple[int, int], int, int]] = []
    before: tuple[int, int] | None = None
    left = generator.randint(1, LONGEST_WALK)

    def choose(label: State, offered: tuple[Action, ...]) -> Action | None:
        nonlocal before, left
        here = indices.setdefault(label, len(indices))
        if before is not None:
            draws.append((WALKS, before, here, 1))
        left -= 1
        if left < 0 or not offered:
            return None
        before = here, generator.randrange(len(offered))
        return offered[before[1]]

    world.walk(choose)
    return draws


def _draws(context: int, answer: Answer) -> Iterator[tuple[int, tuple[int, int], int, int]]:
    pairs = list(zip(answer.pair_states.tolist(), answer.pair_actions.tolist(), strict=True))
    for place, successor, times in zip(
        answer.entry_pairs.tolist(), answer.entry_successors.tolist(), answer.entry_counts.tolist(), strict=True
    ):
        yield context, pairs[place], successor, times


def _length_findings(atlas: Atlas, goal: _Goal, level: float) -> Iterator[Finding]:
    """What contradicts the bounds of a goal."""
    if not goal.lengths:
        return
    lengths, needed = np.array(goal.lengths), -math.log(level)
    state = readable(atlas.states[goal.place])
    lower, upper = float(atlas.lower[goal.place]), float(atlas.upper[goal.place])
    seen = f"The policy to {state} took {lengths.mean():.3f} steps on average in {len(lengths):,} episodes"
    if log_evidence_of_slowness(lengths, upper) >= needed:
        yield Finding(Issue.HISTORY_MATTERS, f"{seen}, though at most {upper:.3f} are proven from the counts.")
    horizon = goal.order.horizon
    outcomes = np.bincount(np.where(goal.arrived, lengths, horizon + 1), minlength=horizon + 2)
    if lower > 0 and log_wealth(losses_if_slower(horizon, lower), outcomes, spread_bets()) >= needed:
        yield Finding(Issue.HISTORY_MATTERS, f"{seen}, though at least {lower:.3f} are proven from the counts.")


def _dependence_finding(atlas: Atlas, world: SteppedWorld, alarm: Any) -> Finding:
    def describe(context: object) -> str:
        if context == EXPLORING:
            return "while exploring"
        if context == WALKS:
            return "on short walks from RESET"
        assert isinstance(context, int)
        return f"on the way to {readable(atlas.states[context])}"

    rows = [f"{describe(context)}: {_row_text(world, alarm, context)}" for context in two_that_differ(alarm.table)]
    return Finding(
        Issue.HISTORY_MATTERS,
        f"What {_pair_text(world, alarm.pair)} leads to depends on the way there ({'; '.join(rows)}).",
    )


def _pair_text(world: SteppedWorld, pair: tuple[int, int]) -> str:
    state, action = pair
    return f"action {readable(world.actions_of(state)[action])} in state {readable(world.states[state])}"


def _row_text(world: SteppedWorld, alarm: Any, context: object) -> str:
    row = sorted(alarm.table[context].items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{readable(world.states[state])} {times} times" for state, times in row)
