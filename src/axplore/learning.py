"""`from_transitions`: what a log proves already, what is open, and what to play next."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from axplore.addresses import without_secrets
from axplore.arguments import checked, label, optional, real, text
from axplore.atlas import Atlas
from axplore.atlas.construction import atlas_of
from axplore.continuing import changes_within
from axplore.explorers.base import Logged
from axplore.explorers.certified import Certified
from axplore.exploring import DEFAULT_DELTA, DEFAULT_EPSILON, objective_from
from axplore.logs import Offered, read_log
from axplore.records.findings import Issue
from axplore.records.run import StopReason
from axplore.target import Objective, Target
from axplore.types import State
from axplore.worlds.diagnosis import finding_of
from axplore.worlds.recorded import RecordedWorld


@checked(radius=real(), epsilon=real(), delta=real(), initial=optional(label), name=optional(text))
def from_transitions(
    transitions: str | os.PathLike[str] | Iterable[Any],
    radius: float,
    epsilon: float = DEFAULT_EPSILON,
    delta: float = DEFAULT_DELTA,
    *,
    objective: Objective | str = Objective.OPTIMAL,
    initial: State | None = None,
    actions: Offered | None = None,
    name: str | None = None,
) -> Atlas:
    """Returns the atlas of transitions that were logged: what they prove, whatever policy played them.

    `atlas.next_draws()` says what to play to prove the rest. docs/logs.md says when this is valid.

    Args:
        transitions: (state, action, next state) each, in the order in which they happened: an iterable, or a file whose
            name ends in .csv, .jsonl, .ndjson or .parquet. The action of a RESET is `axplore.RESET`, or RESET in a
            file.
        radius, epsilon, delta: L, ε and δ, as for `explore`.
        objective: `optimal`, or `within-radius`.
        initial: the initial state; by default, the one to which RESET leads, or else the first one of the log.
        actions: a function or a mapping that returns the actions of each state. Without it, a state is taken to have
            those that the log plays in it, which is a doubt of the verdict.
        name: what to call the system; by default, the name of the file.

    Raises:
        InvalidInputError: something is not a transition; the message says where.
        StorageError: the file cannot be read.
    """
    explorer = Certified(
        target=Target(radius=radius, epsilon=epsilon, delta=delta),
        objective=objective_from(objective),
        by_episodes=False,
    )
    log = read_log(transitions, initial=initial, actions=actions)
    world = RecordedWorld(log.counts, log.steps, log.offered)
    learned = replace(explorer.learned(log.counts, world), logged=Logged(log.counts, (), log.steps))
    exploration = explorer.finish(learned, world)
    if exploration.evidence is not None and exploration.evidence.complete:
        exploration = replace(exploration, stop=StopReason.PROVEN)
    is_file = isinstance(transitions, str | os.PathLike)
    called = name or (without_secrets(Path(transitions).name) if is_file else "a log")  # type: ignore[arg-type]
    played = f"The log plays {len(log.counts.visits):,} actions in {len(log.counts.states):,} states."
    return atlas_of(
        exploration,
        world,
        world_name=called,
        explorer_name=type(explorer).__name__,
        findings=(*changes_within(log), *([] if actions is not None else [finding_of(Issue.ACTIONS_OF_LOG, played)])),
    )
