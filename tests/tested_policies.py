"""Policies of tests by episodes, for tests."""

from __future__ import annotations

from axplore.records.episodes import EpisodeRecord


def plays(*actions: int) -> dict[str, tuple[int, ...]]:
    """The fields of a record whose policy plays these actions in the first known states, and resets where one is -1."""
    states = tuple(state for state, action in enumerate(actions) if action != -1)
    return {"states": states, "actions": tuple(actions[state] for state in states)}


def with_play(record: EpisodeRecord, state: int, action: int) -> dict[str, tuple[int, ...]]:
    """The fields of a record whose policy plays another action in a state, and resets there if that is -1."""
    played = {**dict(zip(record.states, record.actions, strict=True)), state: action}
    states = tuple(state for state in sorted(played) if played[state] != -1)
    return {"states": states, "actions": tuple(played[state] for state in states)}
