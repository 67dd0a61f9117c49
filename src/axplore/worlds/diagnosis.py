"""Findings of the doctor: what each means for the guarantee, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Issue(Enum):
    """What can be wrong with a system; the value is its title."""

    START_NOT_FIXED = "The start is not fixed"
    NOISE_PINNED = "The noise is pinned by the seed"
    TIME_LIMIT = "Behaviour depends on the time since the reset"
    KEY_TOO_COARSE = "The state key is too coarse"
    HISTORY_MATTERS = "Labels hide something"
    KEY_TOO_FINE = "States hardly repeat: the key may be too fine"
    ACTION_FAILS = "An action fails"
    SYSTEM_FAILS = "The system fails"
    ASSUMPTION_FALSE = "A declared assumption is false"


class Level(Enum):
    """The severity of a finding."""

    DOUBT = "doubt"
    """Proven statements may be false."""
    NOTE = "note"
    """Proven statements still hold."""


NOTED: Final = frozenset({Issue.KEY_TOO_FINE, Issue.ACTION_FAILS})
"""Issues that do not affect proven statements. Steps that fail while exploring raise a doubt of their own."""

MEANINGS: Final = {
    Issue.START_NOT_FIXED: (
        "Every bound relies on RESET leading to one state. With several starts none holds, and exploring is refused."
    ),
    Issue.NOISE_PINNED: (
        "The same random outcome is counted again and again. Confidence grows with every repetition but proves "
        "nothing: bounds may be far off and yet certified."
    ),
    Issue.TIME_LIMIT: (
        "Where an action leads depends on how long the episode has lasted, which no state shows. Bounds do not hold "
        "for journeys that last that long."
    ),
    Issue.KEY_TOO_COARSE: (
        "One label stands for situations that behave differently. Counts mix them, and a policy planned on the mixture "
        "may take longer than certified."
    ),
    Issue.HISTORY_MATTERS: (
        "One label stands for situations that behave differently, or the system changes while it is explored. Counts "
        "mix them, and certified statements may be false."
    ),
    Issue.KEY_TOO_FINE: (
        "Certified statements hold. But only states that are met often can be certified, and these rarely recur: "
        "exploring takes many steps, and may not end before its step limit."
    ),
    Issue.ACTION_FAILS: (
        "A step that fails is not counted. Certified statements hold for the actions that work; exploring stops at the "
        "failure, or continues with a new system if a factory was given."
    ),
    Issue.SYSTEM_FAILS: "Nothing can be explored until this is fixed.",
    Issue.ASSUMPTION_FALSE: "What is proven under the assumption does not hold of this system.",
}

REMEDIES: Final = {
    Issue.START_NOT_FIXED: (
        "Fix the start without fixing the noise (of a Gymnasium environment: start='pinned'), or put a virtual state "
        "before it: start='virtual'."
    ),
    Issue.NOISE_PINNED: (
        "Seed the system once, not at every reset. If the system is deterministic, its states hide something: add it "
        "to the key."
    ),
    Issue.TIME_LIMIT: (
        "If there is a time limit, remove it, or set max_episode_steps, so that the world resets before it; if it is "
        "part of the task, add the remaining time to the key. If there is none, add to the key what has happened by "
        "then."
    ),
    Issue.KEY_TOO_COARSE: "Add to the key what is missing: what is carried, where the agent faces, what was opened.",
    Issue.HISTORY_MATTERS: (
        "Add to the state what is missing. What `axplore certify` proves of a policy holds all the same."
    ),
    Issue.KEY_TOO_FINE: (
        "Leave clocks, counters, identifiers and noise out of the key, and round real numbers. If the world is simply "
        "very large, nothing needs to be done."
    ),
    Issue.ACTION_FAILS: (
        "Offer the action only where it works, by actions(state), or fix it. With a factory, a system that "
        "fails is made again."
    ),
    Issue.SYSTEM_FAILS: "See the error of the system above.",
    Issue.ASSUMPTION_FALSE: "Assume less, or assume it only of the actions of which it is true.",
}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a system.

    Attributes:
        issue: the kind of issue.
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
    """The result of an examination.

    Attributes:
        findings: the findings; empty if nothing was found.
        steps: the steps taken, resets included.
        resets: the number of resets.
        states: the number of states met.
        seconds: the duration.
        longest: the most steps between two resets; a time limit beyond it cannot have been noticed.
        false_alarm: the probability with which the tests find fault with a sound system.
        assumptions: what was found of each declared assumption that nothing contradicts, a sentence or two each.
    """

    findings: tuple[Finding, ...]
    steps: int
    resets: int
    states: int
    seconds: float
    longest: int
    false_alarm: float
    assumptions: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def steps_per_second(self) -> float:
        """The speed of the system and the examination together; exploring is about as fast."""
        return self.steps / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """Returns the diagnosis as JSON values."""
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
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        summary = (
            f"{self.steps:,} steps with {self.resets:,} resets, {self.states:,} states met, "
            f"{self.steps_per_second:,.0f} steps per second, at most {self.longest:,} steps between resets."
        )
        if self.healthy:
            return "\n".join([f"Nothing found. {summary}", *self.assumptions])
        return "\n".join([*map(str, self.findings), *self.assumptions, summary])
