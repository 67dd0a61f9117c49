"""What was noticed beside the counts, and may make what they prove worthless: findings and faults.

The counts prove nothing of a system that breaks the assumptions, and no verifier can see that it does. So whatever was
seen of it is kept with the counts, in plain words.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from msgspec import Meta

from axplore.errors import InvalidInputError
from axplore.labels import shortened
from axplore.records.codec import Record
from axplore.records.order import Labels


class Examined(Record, frozen=True, eq=True, kw_only=True):
    """How long a system was looked at for what its labels may hide. Finding nothing in it proves nothing.

    Attributes:
        before: the steps of the examination before exploring, and of the RESETs that checked the start.
        watched: the steps that the tests that run along have seen, in the process that ended the exploration.
        resets: the RESETs before and between them.
        oldest: the most of them since one RESET.
    """

    before: Annotated[int, Meta(ge=0)] = 0
    watched: Annotated[int, Meta(ge=0)] = 0
    resets: Annotated[int, Meta(ge=0)] = 0
    oldest: Annotated[int, Meta(ge=0)] = 0

    def __str__(self) -> str:
        looked = f"in {self.before:,} steps before it was explored, those that check the start included"
        steps = f"{self.watched:,} steps, after {self.resets:,} RESETs and at most {self.oldest:,} since the last one"
        return f"The system was examined {looked}, and by the tests that run along in {steps}."


class Issue(Enum):
    """What can be wrong with a system; the value is its title."""

    START_NOT_FIXED = "The start is not fixed"
    NOISE_PINNED = "Episodes repeat each other: the noise is pinned by the seed, or the key is too coarse"
    TIME_LIMIT = "Behaviour depends on the time since the reset"
    KEY_TOO_COARSE = "The state key is too coarse"
    HISTORY_MATTERS = "Labels hide something"
    SYSTEM_CHANGES = "The system changes while it is explored"
    KEY_TOO_FINE = "States hardly repeat: the key may be too fine"
    ACTION_FAILS = "An action fails"
    STEP_FAILS = "Steps fail now and then"
    SYSTEM_FAILS = "The system fails"
    ASSUMPTION_FALSE = "A declared assumption is false"
    ACTIONS_OF_LOG = "Only the actions of the log are known"
    LOG_CHANGES = "The log changes in its course"
    LOG_DIFFERS = "The system does not behave as in the log"
    NOT_PLAYED = "The policies were not played to the end"


class Level(Enum):
    """What a finding means for what is proven."""

    REFUTED = "refuted"
    """It is false: a draw contradicts what was assumed for it."""
    DOUBT = "doubt"
    """What is proven is doubtful."""
    NOTE = "note"
    """It holds all the same."""


class Finding(Record, frozen=True, eq=True):
    """Something that was found in a system.

    Attributes:
        issue: what it is.
        seen: what was observed.
        meaning: what it means for what is proven.
        remedy: what to do about it.
        level: whether it makes what is proven doubtful, or refutes it.
        assumption: the name of the declared assumption that it shows to be false, such as `deterministic`; None if it
            is not about one.
    """

    issue: Issue
    seen: str
    meaning: str
    remedy: str
    level: Level
    assumption: str | None = None

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.issue.value

    @property
    def is_doubt(self) -> bool:
        """Whether what is proven is doubtful because of it, or refuted."""
        return self.level is not Level.NOTE

    @property
    def refutes(self) -> bool:
        """Whether what is proven is false because of it."""
        return self.level is Level.REFUTED

    def __str__(self) -> str:
        return f"{self.title}. {self.seen} {self.meaning} {self.remedy}"


class FaultKind(Enum):
    """How a system failed; the value is the end of a sentence about it."""

    RAISED = "raised an error"
    TIMED_OUT = "did not answer in time"
    DIED = "ended"
    INVALID = "gave an invalid answer"
    LOST = "was lost with its worker"
    CLOSED = "closed its connection between two requests"


class Fault(Record, frozen=True, eq=True):
    """A failure of a system, after which it was restarted. The step that failed is left out of the counts.

    Whether a step fails may depend on where it led, and then the counts are biased. The same holds for the loss of a
    worker, with which a whole batch of draws is lost.

    Attributes:
        kind: how the system failed.
        message: the error it gave, the first time.
        pair: the state and the action that was being played; None at a RESET, between steps, and of a lost worker.
        steps: the steps that the world had taken before, the first time.
        count: the number of times.
    """

    kind: FaultKind
    message: str
    pair: Labels | None
    steps: Annotated[int, Meta(ge=0)]
    count: Annotated[int, Meta(ge=1)] = 1

    def __post_init__(self) -> None:
        if self.pair is not None and len(self.pair) != 2:
            raise InvalidInputError("a fault names neither a state and an action nor a RESET")

    @property
    def is_doubt(self) -> bool:
        """Whether an outcome was lost with it; at a RESET and between steps there is none to lose."""
        return self.pair is not None or self.kind is FaultKind.LOST

    def __str__(self) -> str:
        if self.pair is not None:
            where = f" at action {shortened(self.pair[1])} in state {shortened(self.pair[0])}"
        else:
            where = "" if self.kind in (FaultKind.LOST, FaultKind.CLOSED) else " at a reset"
        return f"the system {self.kind.value}{where}, after {self.steps} steps: {self.message}"
