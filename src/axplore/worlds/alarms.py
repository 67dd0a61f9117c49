"""What the tests that run along have found, in words."""

from __future__ import annotations

from typing import Any, Final

from axplore.labels import readable
from axplore.records.findings import Finding, Issue
from axplore.statistics.dependence import Dependence, two_that_differ
from axplore.worlds.contract import Watched
from axplore.worlds.diagnosis import finding_of
from axplore.worlds.hindsight import EARLY_DRAWS, SHORT_RUN, Alarm, Circumstance, pair_of

ISSUES: Final = {
    Circumstance.ORIGIN: Issue.HISTORY_MATTERS,
    Circumstance.RUN: Issue.HISTORY_MATTERS,
    Circumstance.AGE: Issue.TIME_LIMIT,
    Circumstance.PERIOD: Issue.SYSTEM_CHANGES,
}


def history_finding(world: Watched) -> Finding | None:
    """Returns what the tests that ran along have found; None if nothing."""
    alarm: Alarm | None = world.history_alarm
    if alarm is None:
        return None
    seen = _described(world, alarm)
    others = [other for other in world.other_alarms if other.circumstance is not alarm.circumstance]
    if others:
        also = " ".join(_described(world, other) for other in others)
        seen = f"{seen} The same draws, seen otherwise: {also} Any of these may be the cause of the others."
    return finding_of(ISSUES[alarm.circumstance], seen)


def _described(world: Watched, alarm: Alarm) -> str:
    found = alarm.dependence
    pair = pair_of(int(str(found.pair)))
    assert pair is not None
    rows = [
        f"{_context_text(world, alarm.circumstance, context)}: {row_text(world, found, context)}"
        for context in _told_of(alarm)
    ]
    return (
        f"What {pair_text(world, pair)} leads to depends on {alarm.circumstance.value} ({'; '.join(rows)}; "
        f"{found.draws:,} draws)."
    )


def _told_of(alarm: Alarm) -> list[Any]:
    """The two contexts that differ most; the earlier one first, where contexts have an order."""
    contexts: list[Any] = list(two_that_differ(alarm.dependence.table))
    return contexts if alarm.circumstance is Circumstance.ORIGIN else sorted(contexts)


def _context_text(world: Watched, circumstance: Circumstance, context: Any) -> str:
    if circumstance is Circumstance.ORIGIN:
        before = pair_of(context)
        return "first after a RESET" if before is None else f"after {pair_text(world, before)}"
    first = 2 ** (context - 1) if context else 0
    if circumstance is Circumstance.AGE:
        return f"{_range_text(first, 2**context - 1)} step{'' if context == 1 else 's'} after a RESET"
    if circumstance is Circumstance.RUN:
        return f"{_range_text(SHORT_RUN * first, SHORT_RUN * 2**context - 1)} times"
    return f"in its draws {_range_text(EARLY_DRAWS * first + 1, EARLY_DRAWS * 2**context)}"


def _range_text(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def pair_text(world: Watched, pair: tuple[int, int]) -> str:
    """Returns an action and its state in words."""
    state, action = pair
    if state >= len(world.states):
        return f"an action in {_state_text(world, state)}"
    return f"action {readable(world.actions_of(state)[action])} in state {_state_text(world, state)}"


def row_text(world: Watched, found: Dependence, context: Any) -> str:
    """Returns where a pair led most often in a context."""
    row: list[tuple[Any, int]] = sorted(found.table[context].items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{_state_text(world, state)} {times} times" for state, times in row)


def _state_text(world: Watched, state: int) -> str:
    """Returns a state in words; what was met outside orders may be forgotten by now."""
    return readable(world.states[state]) if state < len(world.states) else "a state met only then"
