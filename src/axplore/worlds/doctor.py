"""The doctor: walks through a system and looks for defects that would make a certificate worthless.

A guarantee holds for a system that resets to one state and whose steps depend on nothing but state and action. None of
this can be proven from outside, but much that breaks it shows within a few thousand steps.

- What is *observed* is certain: two starts, an action that raises, a state that is terminal at one time and not at
  another.
- What is *tested* is whether successors depend on more than state and action: on where the agent came from, on what
  happened there before, on the time since the reset, on what an earlier episode with the same actions met, and whether
  episodes return to the start at one particular step. The probability that any of these tests alarms on a sound system
  is at most `false_alarm`, whatever the system (see `axplore.statistics.dependence`).

Finding nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import numpy as np

from axplore.assumptions import NOTHING, Assumptions
from axplore.errors import InvalidSettingError
from axplore.labels import clipped
from axplore.records.findings import Finding, Issue
from axplore.types import Action, State
from axplore.worlds.assumption_tests import examined_assumptions
from axplore.worlds.contract import Examinable
from axplore.worlds.diagnosis import Diagnosis, finding_of
from axplore.worlds.probing import (
    LONG_JOURNEY,
    BrokenSystemError,
    Change,
    Failure,
    LimitReachedError,
    Pair,
    Probe,
    Question,
    change_point,
)
from axplore.worlds.systems import SystemAdapter, adapter_for, is_system

FALSE_ALARM: Final = 1e-3
STEPS: Final = 20_000
SECONDS: Final = 30.0
BRIEF_STEPS: Final = 2_000
BRIEF_SECONDS: Final = 10.0
"""Limits of the examination before exploring."""

FIRST_RESETS: Final = 20
"""Number of resets at the beginning. They miss a second start that comes once in four times with probability 0.3 %."""

REPLAYED_SHARE: Final = 0.3
"""The share of the steps that replays earlier actions."""

REPLAYED_LENGTH: Final = 60
REPLAYS: Final = 8
"""The length of an episode that is replayed, and the number of replays."""

SHORTEST: Final = 8
LONGEST_SHARE: Final = 1 / 16
"""The range of lengths of random episodes, the second as a share of the steps. Lengths are uniform on a logarithmic
scale, so that there are many short ones and some that meet a time limit."""

SEEN_OFTEN: Final = 3
"""The number of times that something must have happened at the same step to be attributed to time."""

MOST_ARE_NEW: Final = 0.5
"""The share of new states in the second half of an examination from which states are said not to repeat."""

FEW_STEPS: Final = 200
"""The fewest steps after which anything is said about states that do not repeat."""


def examine(
    system: Any,
    *,
    actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None = None,
    expected_actions: Sequence[Action] = (),
    max_episode_steps: int | None = None,
    max_steps: int = STEPS,
    seconds: float = SECONDS,
    seed: int = 0,
    false_alarm: float = FALSE_ALARM,
    assume: Assumptions = NOTHING,
) -> Diagnosis:
    """Examines a system that can be reset and stepped.

    Args:
        system: an object with `reset` and `step`, a function that makes one, or a `SystemAdapter`.
        actions: the available actions, if the system does not say: a sequence or a function of the state.
        expected_actions: actions that some state should offer.
        max_episode_steps: the step at which the system is known to end an episode; the doctor resets
            before it.
        max_steps: the largest number of steps, RESETs included.
        seconds: the time after which no step begins.
        seed: the seed of the actions that the doctor plays, and of the system's noise if it can be seeded.
        false_alarm: the probability with which any of the tests may alarm on a sound system; and the same for each
            assumption that is true.
        assume: what is declared to be known of the system; it is tested too.
    """
    if max_steps < 1 or not seconds > 0:
        raise InvalidSettingError(f"max_steps is {max_steps} and seconds is {seconds}; both must be positive")
    handle = _adapter(system, actions)
    own_seed, noise_seed = np.random.SeedSequence(seed).spawn(2)
    handle.reseed(noise_seed)
    rng = np.random.default_rng(own_seed)
    probe = Probe(handle, rng, false_alarm, max_steps, seconds)
    broken = None
    try:
        with suppress(LimitReachedError):
            _walk(probe, rng, max_steps, max_steps if max_episode_steps is None else max_episode_steps - 1)
    except BrokenSystemError as error:
        broken = clipped(str(error))
    findings = [finding_of(Issue.SYSTEM_FAILS, broken)] if broken else []
    findings += _judge(probe, expected_actions)
    contradictions, sentences = examined_assumptions(probe.draws, assume, false_alarm)
    return Diagnosis(
        (*findings, *contradictions),
        probe.steps,
        probe.resets,
        len(probe.offered),
        probe.seconds,
        probe.longest,
        false_alarm,
        tuple(sentences),
    )


def examine_world(world: Examinable, **settings: Any) -> Diagnosis:
    """Examines the system of a world. Its steps are among `system_steps` of the world, and not among `steps`.

    Args:
        world: the world. Its next order begins with a RESET.
        settings: the other arguments of `examine`.
    """
    handle, limit = world.borrow_system()
    diagnosis = examine(handle, max_episode_steps=limit, **settings)
    world.note_borrowed(diagnosis.steps)
    return diagnosis


def _adapter(system: Any, actions: Sequence[Action] | Callable[[State], Sequence[Action]] | None) -> SystemAdapter:
    if isinstance(system, SystemAdapter):
        return system
    return adapter_for(system if is_system(system) else system(), actions)


def _walk(probe: Probe, rng: np.random.Generator, max_steps: int, limit: int) -> None:
    """Resets often, replays episodes, and plays random ones, none longer than the limit."""
    for _ in range(FIRST_RESETS):
        probe.reset()
    while probe.steps < REPLAYED_SHARE * max_steps and not probe.spent:
        path = probe.wander(min(REPLAYED_LENGTH, limit))
        for _ in range(REPLAYS):
            if not probe.spent:
                probe.replay(path)
    longest = max(2 * SHORTEST, int(LONGEST_SHARE * max_steps))
    while not probe.spent:
        probe.wander(min(limit, int(np.exp(rng.uniform(np.log(SHORTEST), np.log(longest))))))
    probe.reset()


def _judge(probe: Probe, expected_actions: Sequence[Action]) -> list[Finding]:
    """Returns the findings, the most severe first. What one cause explains is not reported as another."""
    findings = [*_start_not_fixed(probe)]
    timed = _time_limit(probe)
    pinned = [] if timed else _noise_pinned(probe)
    findings += timed or pinned or _too_coarse(probe)
    findings += _too_fine(probe)
    findings += _failing_actions(probe, expected_actions, explained=bool(timed))
    return findings


def _start_not_fixed(probe: Probe) -> list[Finding]:
    if len(probe.starts) < 2:
        return []
    counted = ", ".join(f"{state!r} {times} times" for state, times in probe.starts.most_common(3))
    more = f" and {len(probe.starts) - 3} more" if len(probe.starts) > 3 else ""
    return [finding_of(Issue.START_NOT_FIXED, f"{probe.resets} resets landed in {counted}{more}.")]


def _time_limit(probe: Probe) -> list[Finding]:
    """Finds a time limit by returns to the start, failures, or ends of episodes that all come at one step."""
    if probe.timing.alarmed:
        limit, events, misses = probe.suspected_limit, probe.timing.timed_events, probe.timing.timed_misses
        return [
            finding_of(
                Issue.TIME_LIMIT,
                f"Step {limit} after a reset led back to the start {events} of {events + misses} times, from any "
                "state, and the same actions in the same states did not at other times.",
            )
        ]
    age = _common_age([failure.age for failure in _known_to_work(probe)])
    if age is not None and all(failure.age == age for failure in probe.failures):
        example = probe.failures[0].message
        return [
            finding_of(
                Issue.TIME_LIMIT,
                f"Step {age} after a reset failed {len(probe.failures)} times, with actions that had worked: {example}",
            )
        ]
    ends = [change.age for change in probe.changes if not change.now]
    age = _common_age(ends)
    if age is not None:
        return [
            finding_of(
                Issue.TIME_LIMIT,
                f"After step {age} {len(ends)} episodes were over, in states that are not terminal at other times.",
            )
        ]
    return _behaviour_changes_with_time(probe)


def _behaviour_changes_with_time(probe: Probe) -> list[Finding]:
    """Finds a change over time if a test alarmed, and one step explains more than the agent's history does."""
    if all(test.alarm is None for test in probe.tests.values()) or _is_pinned(probe):
        return []
    moment = change_point(probe.draws)
    if moment is None:
        return []
    return [
        finding_of(
            Issue.TIME_LIMIT,
            f"From step {moment} after a reset on, the same actions in the same states lead elsewhere than before: "
            "either there is a time limit, or by then something has usually happened that the key does not show.",
        )
    ]


def _is_pinned(probe: Probe) -> bool:
    """Returns whether replays never diverged, although the test says that states do not determine the outcome."""
    return probe.tests[Question.REPLAY].alarm is not None and probe.replays_left == 0


def _noise_pinned(probe: Probe) -> list[Finding]:
    if not _is_pinned(probe):
        return []
    seen = (
        f"Episodes with the same actions met the same states in all {probe.replays_followed} steps, though the same "
        f"action in the same state leads to different states. {_dependence(probe, Question.REPLAY)}"
    )
    return [finding_of(Issue.NOISE_PINNED, seen)]


def _too_coarse(probe: Probe) -> list[Finding]:
    tested = [question for question in Question if probe.tests[question].alarm is not None]
    if tested:
        strongest = max(tested, key=lambda question: probe.tests[question].margin)
        return [finding_of(Issue.KEY_TOO_COARSE, _dependence(probe, strongest))]
    if probe.changes:
        change: Change = probe.changes[0]
        before, now = (list(actions) or "none, being terminal" for actions in (change.before, change.now))
        return [
            finding_of(
                Issue.KEY_TOO_COARSE,
                f"State {change.state!r} offered the actions {before}, and later {now}. {len(probe.changes)} times a "
                "state offered other actions than before.",
            )
        ]
    return []


def _too_fine(probe: Probe) -> list[Finding]:
    late = probe.steps - probe.steps // 2
    new = sum(step > probe.steps // 2 for step in probe.new_at)
    if probe.steps >= FEW_STEPS and new >= MOST_ARE_NEW * late:
        return [
            finding_of(
                Issue.KEY_TOO_FINE,
                f"{new} of the last {late} steps met a new state; {len(probe.offered)} states in {probe.steps} steps.",
            )
        ]
    if probe.long_journeys >= SEEN_OFTEN and probe.journeys_with_repeats == 0:
        return [
            finding_of(
                Issue.KEY_TOO_FINE,
                f"No state was met twice between two resets, in {probe.long_journeys} journeys of {LONG_JOURNEY} steps "
                "and more.",
            )
        ]
    return []


def _failing_actions(probe: Probe, expected_actions: Sequence[Action], explained: bool) -> list[Finding]:
    """Returns one finding for each action that raises or is never available."""
    findings = []
    failures: dict[Action, list[Failure]] = {}
    for failure in probe.failures if not explained else ():
        failures.setdefault(failure.action, []).append(failure)
    for action, failed in failures.items():
        worked = sum(times for (_, played), times in probe.worked.items() if played == action)
        # Where it also works, an outcome is lost with a failure; where it never does, there is none to lose.
        unsteady = [failure for failure in failed if probe.worked[failure.state, action]]
        example = (unsteady or failed)[0]
        findings.append(
            finding_of(
                Issue.STEP_FAILS if unsteady else Issue.ACTION_FAILS,
                f"Action {action!r} failed {len(failed)} times and worked {worked} times; in state "
                f"{example.state!r} it raised {example.message}",
            )
        )
    offered = {action for actions in probe.offered.values() for action in actions}
    findings += [
        finding_of(Issue.ACTION_FAILS, f"Action {action!r} was available in none of {len(probe.offered)} states.")
        for action in expected_actions
        if action not in offered
    ]
    if probe.offered and not offered:
        findings.append(finding_of(Issue.ACTION_FAILS, "The start offers no action, so nothing can be explored."))
    return findings


def _known_to_work(probe: Probe) -> list[Failure]:
    return [failure for failure in probe.failures if probe.worked[failure.state, failure.action]]


def _common_age(ages: list[int]) -> int | None:
    """Returns the age that all share, if there are enough of them; None otherwise."""
    return ages[0] if len(ages) >= SEEN_OFTEN and len(set(ages)) == 1 and ages[0] > 1 else None


def _dependence(probe: Probe, question: Question) -> str:
    """Describes what a test saw."""
    alarm = probe.tests[question].alarm
    assert alarm is not None
    state, action = cast(Pair, alarm.pair)
    rows = sorted(alarm.table.items(), key=lambda item: -sum(item[1].values()))[:3]
    described = "; ".join(f"{_context(question, context)}: {_successors(row)}" for context, row in rows)
    return (
        f"What action {action!r} in state {state!r} leads to depends on {question.value} ({described}, among "
        f"{alarm.draws} draws)."
    )


def _context(question: Question, context: Any) -> str:
    match question:
        case Question.ORIGIN:
            return "at the start" if context is None else f"after {context[1]!r} in {context[0]!r}"
        case Question.MEMORY:
            return "the first time" if context is None else f"after {context!r}"
        case Question.AGE:
            return f"at steps {2 ** (context - 1)} to {2**context - 1}"
        case Question.REPLAY:
            return "not replayed" if context is None else f"where it had been {context[0]!r}"


def _successors(row: dict[Any, int]) -> str:
    common = sorted(row.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{successor!r} {times} times" for successor, times in common)
