"""The record of a run: how an exploration went. Nothing is concluded from it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import numpy as np
from msgspec import Meta

from axplore.errors import InvalidInputError
from axplore.records.codec import Record
from axplore.records.order import Labels
from axplore.types import IntArray


class StopReason(Enum):
    """Why an exploration ended; the value is a sentence for the reader."""

    NO_CANDIDATES = "No state outside the known set is reached from it often enough to be controllable."
    """STOP1 of [DisCo] Alg. 1."""
    ALL_TOO_FAR = "Even the optimistic way to every candidate takes more steps than the radius."
    """STOP2 of [DisCo] Alg. 1."""
    PROVEN = "The explorer found nothing left to prove."
    NARROW_ENOUGH = "The bounds are as narrow as was asked for, and leave the property open."
    CONTRADICTED = "The counts contradict an admission that earlier counts had proven."
    ASSUMPTION_CONTRADICTED = "A draw contradicts what was assumed."
    ENDLESS_LABELS = (
        "An action leads to states never seen before again and again: labels have no end. Leave out of them what is "
        "new at every step, such as a counter, a time or an identifier."
    )
    STEP_LIMIT = "The step limit was reached."
    TIME_LIMIT = "The time limit was reached."
    LOG_ENDED = "The log has no more transitions."
    LOG_DIFFERS = "The system does not behave as in the log."
    INTERRUPTED = "It was interrupted."
    IN_PROGRESS = "It is in progress."
    """It has not ended: what a run that is watched knew at its last checkpoint."""
    WORLD_FAILED = "The system failed."

    @property
    def by_own_rule(self) -> bool:
        """Whether the explorer ended by its own rule. What is proven is another question: see `Atlas.verdict`."""
        return self in (StopReason.NO_CANDIDATES, StopReason.ALL_TOO_FAR, StopReason.PROVEN)

    @property
    def by_limit(self) -> bool:
        """Whether a limit ended it."""
        return self in (StopReason.STEP_LIMIT, StopReason.TIME_LIMIT)


class Played(Record, frozen=True, eq=True, kw_only=True):
    """How the policies were played before anything was promised.

    Attributes:
        goals: the number of goals whose policies were to be played.
        played: how many of them were, at least once.
        episodes: the number of episodes of all of them.
        most: the most episodes of one goal.
        steps: the steps that this took, with those of confirming what is assumed.
        confirmed: the number of actions on the ways of which something is assumed.
        repeats: the fewest draws of one of these after its first, while exploring and since.
    """

    goals: Annotated[int, Meta(ge=0)]
    played: Annotated[int, Meta(ge=0)]
    episodes: Annotated[int, Meta(ge=0)]
    most: Annotated[int, Meta(ge=0)]
    steps: Annotated[int, Meta(ge=0)]
    confirmed: Annotated[int, Meta(ge=0)]
    repeats: Annotated[int, Meta(ge=0)]

    def __post_init__(self) -> None:
        if not self.played <= self.goals or not self.played <= self.episodes:
            raise InvalidInputError("more goals are said to be played than there are goals, or episodes")


class RunRecord(Record, frozen=True, kw_only=True):
    """How an exploration went.

    Attributes:
        world: the name of the world.
        explorer: the name of the explorer.
        steps: the steps taken while exploring, RESET included.
        examining: those of the examinations before, and of the RESETs that checked the start.
        playing: those of playing policies afterwards, before anything is promised.
        rounds: the number of rounds.
        stop: why it ended.
        found_at: the steps taken when each state of the atlas was admitted, in order of admission, [k].
        draws: a digest of what was drawn in these states, by label, as the world counted it; "" if nothing is proven.
        uncounted: the labels of states that the world has met without counting a transition to them.
        played: how the policies were played before anything was promised; None if they were not.
        logged: the number of draws that come from a log, and not from these steps.
    """

    world: str
    explorer: str
    steps: Annotated[int, Meta(ge=0)]
    rounds: Annotated[int, Meta(ge=0)]
    stop: StopReason
    found_at: IntArray
    draws: str = ""
    uncounted: Labels = Labels()
    examining: Annotated[int, Meta(ge=0)] = 0
    playing: Annotated[int, Meta(ge=0)] = 0
    played: Played | None = None
    logged: Annotated[int, Meta(ge=0)] = 0

    @property
    def steps_in_all(self) -> int:
        """All steps of the system."""
        return self.steps + self.examining + self.playing

    @property
    def steps_in_words(self) -> str:
        """All steps, and what they were for."""
        beside = {"examining the system": self.examining, "playing policies": self.playing}
        parts = [f"{steps:,} {purpose}" for purpose, steps in beside.items() if steps]
        listed = f": {', '.join([f'{self.steps:,} exploring', *parts])}" if parts else ""
        return f"{self.steps_in_all:,} steps taken{listed}"

    def __post_init__(self) -> None:
        super().__post_init__()
        moments = self.found_at
        ascends = moments.ndim == 1 and len(moments) > 0 and bool((np.diff(moments) >= 0).all())
        if not ascends or not 0 <= moments[0] <= moments[-1] <= self.steps:
            raise InvalidInputError("the steps at which states were admitted do not ascend up to the steps taken")
