"""Findings of the doctor: what each means for the guarantee, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from axplore.records.findings import Finding, Issue, Level

NOTED: Final = frozenset({Issue.KEY_TOO_FINE, Issue.ACTION_FAILS})
"""Issues that do not affect proven statements. An action that never works is not counted anywhere."""

MEANINGS: Final = {
    Issue.START_NOT_FIXED: (
        "Every bound relies on RESET leading to one state. With several starts none holds, and exploring is refused."
    ),
    Issue.NOISE_PINNED: (
        "Which of the two it is cannot be told from outside. If the noise begins anew at every reset, the same random "
        "outcome is counted again and again; if the system is deterministic, a label stands for situations that behave "
        "differently. Either way confidence grows with every repetition and proves nothing."
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
    Issue.SYSTEM_CHANGES: (
        "Counts mix what the system did early and late, so certified statements may be false, and those that are true "
        "by now may not stay so."
    ),
    Issue.KEY_TOO_FINE: (
        "Certified statements hold. But only states that are met often can be certified, and these rarely recur: "
        "exploring takes many steps, and may not end before its step limit."
    ),
    Issue.ACTION_FAILS: (
        "A step that fails is not counted. Certified statements hold for the actions that work; exploring stops at the "
        "failure, or continues with a new system if a factory was given."
    ),
    Issue.STEP_FAILS: (
        "Where these steps would have led is unknown. If that has to do with failing, counts are biased, and certified "
        "statements may be false."
    ),
    Issue.SYSTEM_FAILS: (
        "Nothing can be explored until this is fixed, and what is certified says nothing of what it does where it "
        "fails."
    ),
    Issue.ASSUMPTION_FALSE: "What is proven under the assumption does not hold of this system.",
    Issue.ACTIONS_OF_LOG: (
        "A state is taken to have the actions that were played in it, and one that was never left to be terminal. An "
        "action that was never played may lead anywhere sooner, and makes the levels of the others smaller."
    ),
    Issue.LOG_CHANGES: (
        "Counts mix what the system did early and late in the log, so certified statements may be false, and those "
        "that are true of the end may not have been true before."
    ),
    Issue.LOG_DIFFERS: (
        "Counts mix what the system did in the log and what it does now, so certified statements may be false. Either "
        "the system has changed since, or the log is of another one, or something was left out of it."
    ),
    Issue.NOT_PLAYED: (
        "Everything is proven from the counts. Whether labels hide something that shows only where the policies are "
        "played was not tried to the end."
    ),
}

REMEDIES: Final = {
    Issue.START_NOT_FIXED: (
        "Fix the start without fixing the noise (of a Gymnasium environment: start='pinned'), or put a virtual state "
        "before it: start='virtual'."
    ),
    Issue.NOISE_PINNED: (
        "If the system has noise, seed it once, not at every reset. If it is deterministic, add to the key what its "
        "labels hide."
    ),
    Issue.TIME_LIMIT: (
        "If there is a time limit, such as a log-in that expires or a lock after some attempts, raise it in a test "
        "environment, or set max_episode_steps below it, so that the world resets before; if it is part of the task, "
        "add the time left to the key. If there is none, add to the key what has happened by then."
    ),
    Issue.KEY_TOO_COARSE: "Add to the key what is missing: what is carried, where the agent faces, what was opened.",
    Issue.HISTORY_MATTERS: (
        "Add to the state what is missing. What `axplore certify` proves of a policy holds all the same."
    ),
    Issue.SYSTEM_CHANGES: (
        "Look for what RESET does not undo: caches that fill, data that is used up, wear, load, learning. Let RESET "
        "undo it, or explore a system that is made anew. If nothing changes, add to the state what is missing: then "
        "the ways to the state have changed, and not the system."
    ),
    Issue.KEY_TOO_FINE: (
        "Leave clocks, counters, identifiers and noise out of the key, and round real numbers. If the world is simply "
        "very large, nothing needs to be done."
    ),
    Issue.ACTION_FAILS: (
        "Offer the action only where it works, by actions(state), or fix it. With a factory, a system that "
        "fails is made again."
    ),
    Issue.STEP_FAILS: "Find out why they fail. With a factory, a system that fails is made again.",
    Issue.SYSTEM_FAILS: "See the error of the system above.",
    Issue.ASSUMPTION_FALSE: "Assume less, or assume it only of the actions of which it is true.",
    Issue.ACTIONS_OF_LOG: "Say which actions each state has: actions=, or --actions MODULE:FUNCTION.",
    Issue.LOG_CHANGES: "Use the part of the log since the last change of the system.",
    Issue.LOG_DIFFERS: "Explore without the log, or begin with what was logged since the system changed.",
    Issue.NOT_PLAYED: "Resume the run, which plays them, or explore again.",
}


def finding_of(issue: Issue, seen: str) -> Finding:
    """Returns the finding of an issue, in words that stay with it; `seen` is what was observed."""
    level = Level.NOTE if issue in NOTED else Level.DOUBT
    return Finding(issue, seen, MEANINGS[issue], REMEDIES[issue], level)


def assumption_finding(assumption: str, seen: str, level: Level = Level.REFUTED) -> Finding:
    """Returns the finding that a declared assumption is false.

    Args:
        assumption: its name, such as `deterministic`.
        seen: what was observed.
        level: `REFUTED` if the draws are impossible, or nearly so, where it is true; `DOUBT` if a test says so that may
            alarm wrongly.
    """
    issue = Issue.ASSUMPTION_FALSE
    return Finding(issue, seen, MEANINGS[issue], REMEDIES[issue], level, assumption)


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
