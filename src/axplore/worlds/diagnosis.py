"""What the doctor says of a system: findings, what each means for the guarantee, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Issue(Enum):
    """What can be wrong with a system; the value is its title."""

    START_NOT_FIXED = "The start is not fixed"
    NOISE_PINNED = "The noise is pinned by the seed"
    TIME_LIMIT = "Episodes have a hidden time limit"
    KEY_TOO_COARSE = "The state key is too coarse"
    KEY_TOO_FINE = "The state key is too fine"
    ACTION_FAILS = "An action fails"
    SYSTEM_FAILS = "The system fails"


class Level(Enum):
    """How grave a finding is."""

    DOUBT = "doubt"
    """What is proven may be false."""
    NOTE = "note"
    """What is proven holds all the same."""


NOTED: Final = frozenset({Issue.KEY_TOO_FINE, Issue.ACTION_FAILS})
"""Issues that leave what is proven as it is. Steps that fail while exploring are doubted by themselves."""

MEANINGS: Final = {
    Issue.START_NOT_FIXED: (
        "Every bound counts on RESET leading to one state. With several starts none holds, and exploring is refused."
    ),
    Issue.NOISE_PINNED: (
        "What is counted is one run of the dice again and again. Confidence grows with every repetition and proves "
        "nothing: bounds may be far off and certified all the same."
    ),
    Issue.TIME_LIMIT: (
        "What follows an action depends on how long the episode has lasted, which no state says. Bounds do not hold "
        "for journeys that come near the limit."
    ),
    Issue.KEY_TOO_COARSE: (
        "One label stands for situations that behave differently. Counts mix them, and a policy planned on the mixture "
        "need not take as long as certified."
    ),
    Issue.KEY_TOO_FINE: (
        "What is certified holds. But only what is met often can be certified, and these states hardly come again: "
        "exploring takes many steps, and may not end before its step limit."
    ),
    Issue.ACTION_FAILS: (
        "A step that fails is not counted. What is certified holds for the actions that work; exploring stops at the "
        "failure, or goes on with a new system if a factory was given."
    ),
    Issue.SYSTEM_FAILS: "Nothing can be explored until this is mended.",
}

REMEDIES: Final = {
    Issue.START_NOT_FIXED: (
        "Fix the start without fixing the noise (of a Gymnasium environment: start='pinned'), or let a virtual state "
        "stand before it: start='virtual'."
    ),
    Issue.NOISE_PINNED: (
        "Seed the system once, not at every reset. If the system is deterministic, its states hide something: add it "
        "to the key."
    ),
    Issue.TIME_LIMIT: (
        "Take the limit off, or say max_episode_steps, so that the world resets before it. If the limit is part of "
        "the task, add the time that is left to the key."
    ),
    Issue.KEY_TOO_COARSE: "Add to the state what is missing: what is carried, where it faces, what was opened.",
    Issue.KEY_TOO_FINE: (
        "Leave clocks, counters, identifiers and noise out of the key, and round real numbers. If the world is just "
        "very large, nothing need be done."
    ),
    Issue.ACTION_FAILS: (
        "Offer the action only where it works, by actions(state), or mend it; give a factory, and a system that "
        "fails is made again."
    ),
    Issue.SYSTEM_FAILS: "See the message of the system above.",
}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        issue: what it is.
        seen: what was observed.
    """

    issue: Issue
    seen: str

    @property
    def meaning(self) -> str:
        """What it means for the guarantee."""
        return MEANINGS[self.issue]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.issue]

    @property
    def level(self) -> Level:
        """Whether it makes what is proven doubtful."""
        return Level.NOTE if self.issue in NOTED else Level.DOUBT

    def __str__(self) -> str:
        return f"{self.issue.value}. {self.seen} {self.meaning} {self.remedy}"


@dataclass(frozen=True)
class Diagnosis:
    """What an examination found.

    Attributes:
        findings: what is wrong; empty if nothing was found.
        steps: steps taken, resets included.
        resets: how many of them were resets.
        states: how many states were met.
        seconds: how long it took.
        longest: the most steps between two resets; a time limit beyond it cannot have been seen.
        false_alarm: the probability with which a system without fault is said to depend on more than its state.
    """

    findings: tuple[Finding, ...]
    steps: int
    resets: int
    states: int
    seconds: float
    longest: int
    false_alarm: float

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def steps_per_second(self) -> float:
        """Of the system and the examination together; exploring is about as quick."""
        return self.steps / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "healthy": self.healthy,
            "findings": [
                {
                    "issue": finding.issue.name,
                    "seen": finding.seen,
                    "meaning": finding.meaning,
                    "remedy": finding.remedy,
                    "level": finding.level.value,
                }
                for finding in self.findings
            ],
            "steps": self.steps,
            "resets": self.resets,
            "states": self.states,
            "longest": self.longest,
            "seconds": self.seconds,
            "steps_per_second": self.steps_per_second,
            "false_alarm": self.false_alarm,
        }

    def __str__(self) -> str:
        summary = (
            f"{self.steps:,} steps with {self.resets:,} resets, {self.states:,} states met, "
            f"{self.steps_per_second:,.0f} steps a second, at most {self.longest:,} steps between resets."
        )
        if self.healthy:
            return f"Nothing found. {summary}"
        return "\n".join([*map(str, self.findings), summary])
