"""Explorations that begin with a log: its draws count as if the explorer had made them. docs/logs.md has the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from axplore.errors import InvalidSettingError
from axplore.explorers.base import Explorer, ExplorerState, Logged
from axplore.labels import readable, shortened
from axplore.logs import Log, read_log
from axplore.records.counts import Counts
from axplore.records.findings import Finding, Issue
from axplore.records.order import Labels
from axplore.request import Request
from axplore.statistics.confidence import pair_weights
from axplore.statistics.counts import with_order
from axplore.statistics.two_samples import rows_that_differ
from axplore.types import Action, IntArray, State
from axplore.worlds.catalogue import function_named
from axplore.worlds.contract import Resumable, World
from axplore.worlds.diagnosis import finding_of

FALSE_ALARM: Final = 2.5e-4
"""The probability with which a log that fits is said to change, or to differ from the system."""

SHOWN: Final = 3
"""The number of outcomes that a finding names."""


def state_after_log(
    request: Request, explorer: Explorer[Any], world: World
) -> tuple[ExplorerState, tuple[Finding, ...]]:
    """Returns the first state of an explorer that continues from a log, and what was found in the log.

    The world then knows the states of the log, in the order in which they appear there.
    """
    log = _log_of(request, world)
    actions = _actions_by(request, world)
    counted = dict(zip(log.counts.states.tolist(), log.counts.actions, strict=True))
    labels, offered, unsure = list(log.counts.order), list[tuple[Action, ...]](), list(log.unsure)
    for number, label in enumerate(labels):
        told = tuple(counted[number]) if number in counted else actions(label)
        offered.append(told or ())
        if told is None:
            unsure.append(number)
            if request.has_workers or explorer.assume.all_deterministic:
                raise InvalidSettingError(
                    f"the log never leaves the state {shortened(label)}, and the system does not tell its actions "
                    "before it is there; with workers, or where all is deterministic, say which actions each state "
                    "has: log_actions=... in Python, --log-actions MODULE:FUNCTION on the command line"
                )
    _acquaint(world, labels, offered)
    world.hear(unsure)
    counts = with_order(log.counts, Labels(world.states))
    state = explorer.start_with(Logged(counts, tuple(unsure), log.steps), world)
    return state, changes_within(log)


def _log_of(request: Request, world: World) -> Log:
    if request.memory is not None:
        raise InvalidSettingError("begin_with has the labels of the system, and memory makes others: give one of them")
    return read_log(request.begin_with, initial=world.states[0], actions=_actions_by(request, world))


def _actions_by(request: Request, world: World) -> Callable[[State], tuple[Action, ...] | None]:
    """Returns what tells the actions of a state: the system where it can, or else what was declared."""
    declared = request.log_actions
    if isinstance(declared, str):
        declared = function_named(declared)

    def actions(label: State) -> tuple[Action, ...] | None:
        told = world.actions_at(label)
        if declared is None or told is not None:
            return told
        given = declared.get(label) if isinstance(declared, Mapping) else declared(label)
        return None if given is None else tuple(given)

    return actions


def _acquaint(world: World, labels: list[State], offered: list[tuple[Action, ...]]) -> None:
    """Tells a world the states of a log; those that it has met itself follow."""
    if not isinstance(world, Resumable):
        raise InvalidSettingError(
            f"{type(world).__name__} cannot begin with a log, because it cannot be resumed: it needs snapshot() and "
            "restore()"
        )
    before = world.snapshot()
    known = set(labels)
    for label, actions in zip(before.labels, before.actions, strict=True):
        if label not in known:
            labels.append(label)
            offered.append(actions)
    position = before.position if before.position < 0 else labels.index(before.labels[before.position])
    world.restore(replace(before, labels=tuple(labels), actions=tuple(offered), position=position))


def changes_within(log: Log) -> tuple[Finding, ...]:
    """Returns the finding that a pair led elsewhere in the second half of a log than in the first; none if none did."""
    seen = _difference(log.counts, log.early, log.counts.counts - log.early, ("in the first half", "in the second"))
    return () if seen is None else (finding_of(Issue.LOG_CHANGES, seen),)


def difference_from(logged: Logged, counts: Counts) -> Finding | None:
    """Returns the finding that the system behaves otherwise than in its log; None if nothing says so.

    Args:
        logged: what was logged.
        counts: all that was drawn, in the log and since. Its rows begin with those of the log, as successors stand in
            the order of their first sight.
    """
    log, n_pairs = logged.counts, len(logged.counts.row_offsets) - 1
    first = np.zeros(int(counts.row_offsets[n_pairs]), dtype=np.int64)
    shifts = counts.row_offsets[:n_pairs] - log.row_offsets[:-1]
    first[np.arange(len(log.counts)) + np.repeat(shifts, np.diff(log.row_offsets))] = log.counts
    seen = _difference(log, first, counts.counts[: len(first)] - first, ("in the log", "now"), counts)
    return None if seen is None else finding_of(Issue.LOG_DIFFERS, seen)


def _difference(
    log: Counts, first: IntArray, second: IntArray, names: tuple[str, str], rows: Counts | None = None
) -> str | None:
    """Returns in words the clearest difference between two samples of the pairs of a log; None if there is none.

    Args:
        log: the log, whose order of states decides on the levels.
        first, second: how often each entry came in each sample, [E].
        names: what to call the samples.
        rows: what the entries are of; by default, the log.
    """
    rows = log if rows is None else rows
    levels = FALSE_ALARM * pair_weights(log)
    offsets = rows.row_offsets[: len(levels) + 1]
    clearest = max(rows_that_differ(offsets, first, second, levels), key=lambda found: found[1], default=None)
    if clearest is None:
        return None
    pair = clearest[0]
    state = int(np.searchsorted(log.state_pairs, pair, side="right")) - 1
    action = log.actions[state][pair - int(log.state_pairs[state])]
    entries = np.arange(offsets[pair], offsets[pair + 1])
    entries = entries[np.argsort(-(first + second)[entries], kind="stable")][:SHOWN]
    drawn = [int(sample[offsets[pair] : offsets[pair + 1]].sum()) for sample in (first, second)]
    outcomes = ", ".join(
        f"{readable(rows.order[int(rows.successors[entry])])} {first[entry] / drawn[0]:.0%} {names[0]} and "
        f"{second[entry] / drawn[1]:.0%} {names[1]}"
        for entry in entries.tolist()
    )
    where = f"Action {readable(action)} in state {readable(log.order[int(log.states[state])])}"
    return f"{where} led to {outcomes} ({drawn[0]:,} and {drawn[1]:,} draws)."
