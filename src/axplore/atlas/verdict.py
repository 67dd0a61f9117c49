"""The verdict: what may be said of an atlas as a whole, decided in one place for everything that reports on it.

It follows from what is proven, why the exploration stopped, the findings of the examination, the failures of the
system, and the assumptions. Only `PROVEN` is unconditional. docs/verdicts.md explains the kinds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from axplore.atlas.state_report import StateReport, rounded_down, rounded_up
from axplore.certificate.count_checks import contradicted_assumption
from axplore.certificate.doubts import doubts_in, notes_in
from axplore.certificate.promise import HOLDS, PropertyBounds, goal_beyond, goal_promise, promise
from axplore.errors import ExitCode
from axplore.explorers.registry import THEOREMS
from axplore.labels import readable
from axplore.records.findings import Examined, Issue
from axplore.records.run import StopReason
from axplore.statistics.confirming import SEEN_WITH, rate_seen
from axplore.target import Objective, confidence_text
from axplore.types import Status

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

ASSUMPTIONS: Final = (
    "RESET leads to one and the same state",
    "a state and an action determine the distribution of the next state",
    "states are told apart by their labels",
)
"""The assumptions of every proof, which cannot be proven."""

NO_MAP: Final = "Nothing is said of the steps to states: a property was asked for, and no map."

LOG_ASSUMPTION: Final = (
    "the log is of this system, who made it knew the past only, and nothing was left out because of where it led"
)
"""What is assumed besides where draws come from a log."""

NOT_TRIED: Final = (
    "The policies were not played, and nothing that is set aside was attempted: what only that shows was not looked "
    "for."
)

FEWEST_TO_RATE: Final = 100
"""The steps from which on it is said how rare something may be that did not happen in them."""

LISTED: Final = 5
"""The largest number of states that a sentence names."""


class VerdictKind(Enum):
    """The kinds of verdicts; the value is the name to print."""

    PROVEN = "proven"
    """Everything that was asked for is proven, and nothing casts doubt on the assumptions."""
    PROVEN_UNDER_DOUBT = "proven under doubt"
    """Everything is proven from the counts, but something was observed that contradicts the assumptions."""
    UNFINISHED = "unfinished"
    """Some states are open; those called certified or set aside are proven to be so."""
    CONTRADICTED = "contradicted"
    """The counts refute what earlier counts had proven; nothing can be relied on."""
    NOT_PROVEN = "not proven"
    """The explorer ended by its own rule, and gives no proof."""


@dataclass(frozen=True)
class Verdict:
    """What may be said of an atlas as a whole.

    Attributes:
        kind: which of the five it is.
        headline: the verdict in a sentence.
        sentences: what holds, and what is open.
        doubts: what casts doubt on the assumptions, a few sentences each: findings and faults.
        notes: other observations, which do not affect what is proven.
        assumptions: the assumptions of everything proven; empty if nothing is proven.
        open_states: the number of states seen that are neither certified nor set aside.
        exit_code: the exit code of a command that ends with this verdict.
    """

    kind: VerdictKind
    headline: str
    sentences: tuple[str, ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    open_states: int
    exit_code: ExitCode

    @property
    def lines(self) -> tuple[str, ...]:
        """The whole verdict, line by line."""
        assumed = (f"It rests on these assumptions: {'; '.join(self.assumptions)}.",) if self.assumptions else ()
        doubts = (f"In doubt: {doubt}" for doubt in self.doubts)
        return (self.headline, *self.sentences, *doubts, *(f"Note: {note}" for note in self.notes), *assumed)

    def as_json(self) -> dict[str, Any]:
        """Returns the verdict as JSON values."""
        return {
            "kind": self.kind.name,
            "headline": self.headline,
            "sentences": list(self.sentences),
            "doubts": list(self.doubts),
            "notes": list(self.notes),
            "assumptions": list(self.assumptions),
            "open_states": self.open_states,
            "exit_code": int(self.exit_code),
        }

    def __str__(self) -> str:
        return "\n".join(self.lines)


def verdict_of(atlas: Atlas) -> Verdict:
    """Decides what may be said of an atlas."""
    doubts = doubts_in(atlas.findings, atlas.faults)
    kind = _kind_of(atlas, in_doubt=bool(doubts))
    is_question = atlas.objective is Objective.QUESTION
    headline, *sentences = (_QUESTION_WORDS if is_question else _WORDS)[kind](atlas)
    if kind is not VerdictKind.CONTRADICTED and not is_question:
        sentences += _what_is_answered(atlas)
    if doubts or kind is VerdictKind.CONTRADICTED:
        sentences += _what_holds_anyway(atlas)
    if kind in (VerdictKind.PROVEN, VerdictKind.PROVEN_UNDER_DOUBT):
        sentences += _what_was_played(atlas)
    sentences += _what_was_logged(atlas)
    if atlas.memory is not None:
        sentences.append(f"{atlas.memory.summary}.")
    return Verdict(
        kind=kind,
        headline=headline,
        sentences=tuple(sentences),
        doubts=doubts,
        notes=notes_in(atlas.findings, atlas.faults),
        assumptions=(*atlas.assumptions, *ASSUMPTIONS, *_of_log(atlas)) if atlas.proven else (),
        open_states=sum(status is Status.OPEN for status in atlas.statuses) if atlas.proven and not is_question else 0,
        exit_code=_exit_code(kind, atlas.stop, in_doubt=bool(doubts)),
    )


def _what_was_logged(atlas: Atlas) -> list[str]:
    """How many of the draws come from a log."""
    if not atlas.run.logged:
        return []
    drawn = int(atlas.counts.counts.sum())
    return [f"{min(atlas.run.logged, drawn):,} of the {drawn:,} draws that this rests on come from a log."]


def _of_log(atlas: Atlas) -> tuple[str, ...]:
    return (LOG_ASSUMPTION,) if atlas.run.logged else ()


def _kind_of(atlas: Atlas, *, in_doubt: bool) -> VerdictKind:
    if atlas.is_refuted:
        return VerdictKind.CONTRADICTED
    if not atlas.proven and atlas.stop.by_own_rule:
        return VerdictKind.NOT_PROVEN
    if not atlas.complete:
        return VerdictKind.UNFINISHED
    return VerdictKind.PROVEN_UNDER_DOUBT if in_doubt else VerdictKind.PROVEN


def _exit_code(kind: VerdictKind, stop: StopReason, *, in_doubt: bool) -> ExitCode:
    match kind:
        case VerdictKind.CONTRADICTED:
            return ExitCode.REFUTED
        case VerdictKind.UNFINISHED:
            by_reason = {StopReason.INTERRUPTED: ExitCode.INTERRUPTED, StopReason.WORLD_FAILED: ExitCode.FAILED}
            return by_reason.get(stop, ExitCode.UNFINISHED)
        case _:
            return ExitCode.IN_DOUBT if in_doubt else ExitCode.DONE


def _proven(atlas: Atlas) -> list[str]:
    return [
        f"Proven{_if_assumed(atlas)}: {_promise(atlas)}.",
        f"All this, and every bound, holds at once with {_surely(atlas)}.",
        *_what_is_decided(atlas),
    ]


def _proven_under_doubt(atlas: Atlas) -> list[str]:
    return [
        f"Proven under doubt: what follows holds only if the assumptions do, and {_what_is_doubted(atlas)}.",
        f"If {' and if '.join((*atlas.assumptions, 'the assumptions hold'))}, then with {_surely(atlas)} "
        f"{_promise(atlas)}.",
        *_what_is_decided(atlas),
    ]


def _unfinished(atlas: Atlas) -> list[str]:
    reason = _clause(atlas.stop.value)
    if atlas.is_part:
        reason = f"the counts do not decide everything for the radius of {atlas.target.radius:g}"
    if not atlas.proven:
        return [f"Unfinished: {reason}. {_states(len(atlas.states))} found so far, and nothing is proven."]
    members = [atlas.describe(state) for state in atlas.states]
    unproven = [report for report in members if report.status is Status.OPEN]
    undecided = [report for report in atlas.frontier if report.status is Status.OPEN]
    n_open = len(unproven) + len(undecided)
    open_states = f"{_states(n_open)} {'is' if n_open == 1 else 'are'} open" if n_open else "no state seen is open"
    doubted = ("the assumptions hold",) if doubts_in(atlas.findings, atlas.faults) else ()
    conditions = " and if ".join((*atlas.assumptions, *doubted))
    sentences = [
        f"{f'If {conditions}, w' if conditions else 'W'}hat is called certified or set aside, and every bound, "
        f"holds at once with {_surely(atlas)}.",
        *_what_is_decided(atlas),
    ]
    if undecided:
        sentences.append(f"{_states(len(undecided))} seen and undecided: {_named(undecided)}.")
    if not atlas.unseen_ruled_out:
        open_states += ", and states never seen are not ruled out"
        sentences.append(
            f"States never seen are not ruled out: that they take at least {rounded_down(atlas.unseen_lower)} "
            "expected steps is all that is proven."
        )
    if unproven:
        sentences.append(f"{_states(len(unproven))} of the atlas not fully proven: {_named(unproven)}.")
    if atlas.objective is Objective.OPTIMAL and not atlas.nothing_missing:
        sentences.append("Until they are decided, policies are compared only with others through the states above.")
    if atlas.goals is not None:
        return [f"Unfinished: {reason}; {_goal_by_now(atlas)}.", *sentences]
    return [f"Unfinished: {reason}; {open_states}.", *sentences]


def _goal_by_now(atlas: Atlas) -> str:
    """Returns what is known of a goal that is not settled, as a clause."""
    goals = [goal for goal in atlas.goals or () if goal in atlas.indices] or list(atlas.goals or ())
    if not goals:
        return "the goal was not seen by then"
    return f"the goal {readable(goals[0])} is open: {atlas.describe(goals[0]).bounds}"


def _contradicted(atlas: Atlas) -> list[str]:
    contradicted = None if atlas.certificate is None else contradicted_assumption(atlas.certificate)
    headline = f"it was assumed that {' and that '.join(atlas.assumptions)}, but {contradicted}."
    if contradicted is None:
        headline = next((_first_lower(finding.seen) for finding in atlas.findings if finding.refutes), "")
    if headline:
        return [
            f"Contradicted: {headline}",
            "Nothing here can be relied on. The draws themselves are valid whatever was assumed: resume the run with a "
            "weaker assumption, or with none, and nothing of them is lost.",
        ]
    return [
        "Contradicted: the counts refute what earlier counts had proven, so nothing here can be relied on.",
        "Either the system changes over time, or its steps depend on more than state and action, or the failure "
        f"that δ = {atlas.target.delta:g} allows for has occurred.",
    ]


def _not_proven(atlas: Atlas) -> list[str]:
    theorem = THEOREMS.get(atlas.explorer)
    rule = f"by a rule that is proven right in the paper ({theorem})" if theorem else "by a rule without a guarantee"
    return [
        f"Not proven: {atlas.explorer} found {_states(len(atlas.states))} and ended {rule}; it leaves no certificate.",
        f"{_states(len(atlas.frontier), 'other ')} seen on the frontier.",
    ]


_WORDS: Final = {
    VerdictKind.PROVEN: _proven,
    VerdictKind.PROVEN_UNDER_DOUBT: _proven_under_doubt,
    VerdictKind.UNFINISHED: _unfinished,
    VerdictKind.CONTRADICTED: _contradicted,
    VerdictKind.NOT_PROVEN: _not_proven,
}
"""The headline and the sentences of each kind."""


def _answered(atlas: Atlas) -> list[str]:
    return [
        f"Proven{_if_assumed(atlas)}: {_first_answer(atlas)}",
        *_what_is_answered(atlas)[1:],
        f"{'All this holds' if len(atlas.properties) > 1 else 'It holds'} with {_surely(atlas)}. {NO_MAP}",
    ]


def _answered_under_doubt(atlas: Atlas) -> list[str]:
    return [
        f"Proven under doubt: what follows holds only if the assumptions do, and {_what_is_doubted(atlas)}.",
        f"If {' and if '.join((*atlas.assumptions, 'the assumptions hold'))}, then with {_surely(atlas)}:",
        *_what_is_answered(atlas),
        NO_MAP,
    ]


def _unanswered(atlas: Atlas) -> list[str]:
    if not atlas.properties:
        return [f"Unfinished: {_clause(atlas.stop.value)}; nothing is answered yet.", NO_MAP]
    doubted = ("the assumptions hold",) if doubts_in(atlas.findings, atlas.faults) else ()
    conditions = " and if ".join((*atlas.assumptions, *doubted))
    return [
        f"Unfinished: {_clause(atlas.stop.value)}; by now, {_first_answer(atlas)}",
        *_what_is_answered(atlas)[1:],
        f"{f'If {conditions}, t' if conditions else 'T'}his holds with {_surely(atlas)}. {NO_MAP}",
    ]


_QUESTION_WORDS: Final = {
    **_WORDS,
    VerdictKind.PROVEN: _answered,
    VerdictKind.PROVEN_UNDER_DOUBT: _answered_under_doubt,
    VerdictKind.UNFINISHED: _unanswered,
}
"""The same where properties are all that was asked for."""


def _what_is_answered(atlas: Atlas) -> list[str]:
    """Returns a sentence for each property that the certificate answers."""
    return [f"{bounds.in_full} {_how(bounds)}." for bounds in atlas.properties]


def _first_answer(atlas: Atlas) -> str:
    return _what_is_answered(atlas)[0]


def _how(bounds: PropertyBounds) -> str:
    """Returns the answer to a property as a predicate."""
    if bounds.prop.comparison is None:
        return f"is {bounds.interval}"
    return f"{HOLDS[bounds.holds]}: the value is {bounds.interval}"


def _promise(atlas: Atlas) -> str:
    """Returns what is promised once everything is proven, as a clause."""
    n_states, target = len(atlas.states), atlas.target
    if atlas.goals is None:
        return promise(n_states, target.radius, target.epsilon, atlas.objective)
    goal, asked = atlas.reached_goal, None if atlas.certificate is None else atlas.certificate.goal
    if goal is None:
        return goal_beyond("" if asked is None else asked.name, n_states, target.radius, target.epsilon)
    return goal_promise(readable(goal), atlas.bounds(goal).upper, target.epsilon, atlas.objective)


def _what_is_decided(atlas: Atlas) -> list[str]:
    if atlas.reached_goal is not None:
        return ["Nothing else was asked for: other states within the radius may be missing."]
    if not atlas.nothing_missing:
        return ["States within the radius may be missing."]
    others = _states(len(atlas.frontier), "other ")
    farther = f"the {others} seen and all states never seen take" if atlas.frontier else "all others take"
    return [f"Nothing within the radius is missing: {farther} more than {atlas.target.radius:g} expected steps."]


def _what_was_played(atlas: Atlas) -> list[str]:
    """Returns what was examined and played, and how large a violation of what is assumed would have shown."""
    played, examined = atlas.run.played, None if atlas.certificate is None else atlas.certificate.examined
    if atlas.is_part:  # the record is of the atlas that it was taken from
        return []
    looked = [] if examined is None else [str(examined), *_rarest(examined)]
    if played is None and atlas.assumptions:
        return [*looked, "The policies were not played, so nothing was tried of what is assumed."]
    if played is None:
        return [*looked, NOT_TRIED] if looked else []
    times = f"up to {_times(played.most)} each" if played.played == played.goals else _times(played.most) + " at most"
    sentences = looked + (
        [
            f"{played.played:,} of {played.goals:,} policies were played before this was promised, {times}, "
            f"in {played.steps:,} steps."
        ]
        if played.goals
        else []
    )
    if played.confirmed and played.repeats:
        actions = "The action" if played.confirmed == 1 else f"Each of the {played.confirmed:,} actions"
        sentences.append(
            f"{actions} that they played was drawn {_times(played.repeats + 1)} or more: if one of them had another "
            f"outcome more often than 1 in {math.floor(1 / rate_seen(played.repeats)):,}, it would have shown itself "
            f"with a probability of {SEEN_WITH:g}."
        )
    elif played.confirmed:
        sentences.append("Not every action that they played was drawn twice, which says nothing of what is assumed.")
    return sentences


def _rarest(examined: Examined) -> list[str]:
    """Returns how rare something may be that has probably happened at least once in what was looked at."""
    steps = examined.before + examined.watched
    if steps < FEWEST_TO_RATE:
        return []
    rarest = math.floor(1 / rate_seen(steps))
    return [f"Something hidden that happens less often than once in {rarest:,} steps may not have happened in them."]


def _what_holds_anyway(atlas: Atlas) -> list[str]:
    """Returns what is true of states even if labels hide something: that which episodes prove."""
    # Noise that is seeded anew at every RESET makes episodes repeat each other.
    is_pinned = any(finding.issue is Issue.NOISE_PINNED for finding in atlas.findings)
    tested = {test.goal for test in atlas.tests}
    if not tested or is_pinned:
        return []
    within = rounded_up(max(min(test.steps for test in atlas.tests if test.goal == goal) for goal in tested))
    return [
        f"Whatever the labels hide, {_states(len(tested))} {'is' if len(tested) == 1 else 'are'} reached within "
        f"{within} expected steps from RESET, by policies that restart (`by episodes`). Episodes prove this with "
        f"{_surely(atlas)}, if they are independent of each other and alike."
    ]


def _what_is_doubted(atlas: Atlas) -> str:
    """Returns the titles of all doubts, as a clause."""
    parts = [_clause(finding.title) for finding in atlas.findings if finding.is_doubt]
    failed = sum(fault.count for fault in atlas.faults if fault.is_doubt)
    if failed:
        parts.append(
            f"{failed} step{'' if failed == 1 else 's'} failed and {'is' if failed == 1 else 'are'} not counted"
        )
    return "; ".join(parts)


def _if_assumed(atlas: Atlas) -> str:
    return f", if {' and if '.join(atlas.assumptions)}" if atlas.assumptions else ""


def _surely(atlas: Atlas) -> str:
    return f"a probability of at least {confidence_text(atlas.target.delta)}"


def _clause(sentence: str) -> str:
    return _first_lower(sentence).rstrip(".")


def _first_lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _states(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}state{'' if count == 1 else 's'}"


def _named(reports: list[StateReport]) -> str:
    names = [readable(report.state) for report in reports[:LISTED]]
    rest = len(reports) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")
