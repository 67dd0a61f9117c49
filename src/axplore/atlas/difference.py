"""What changed between two atlases: states gained and lost, slower and faster routes, and what is proven of each.

Every bound of an atlas holds with its own δ, so with probability at least 1 - δ_old - δ_new all of them hold at once.

A state g has become worse if every policy through the new states K' takes more steps than some policy of the old
system. If that policy goes through states of K' only, this cannot happen unless the system has changed. So the new
lower bound of g is compared with an upper bound in the old region of the best policy through those old states that are
in K' as well, or have been shown to have become worse themselves. Without this restriction, a state at the border of
the radius, which may be in one atlas and not in another of the same system, would make whatever lies behind it look
lost. Lower bounds of an atlas that may miss states within the radius prove nothing of the system.

Actions that behave differently are found by `axplore.atlas.row_changes`, also where no state is lost or slower.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from axplore.atlas.learned_model import index_in_model, model_with
from axplore.atlas.row_changes import RowChange, changed_rows
from axplore.atlas.state_report import Bounds, StateReport, rounded_down, rounded_up
from axplore.errors import ExitCode, InvalidInputError, UnknownNameError, printable
from axplore.labels import encode_label, finite, readable, shortened
from axplore.proofs.bounds import upper_path
from axplore.target import confidence_text
from axplore.types import Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


CONFIDENCE: Final = 0.99
"""The default confidence of all changed actions together."""


class FailOn(Enum):
    """Which proven changes fail a build; the value is the name on the command line."""

    LOST = "lost"
    SLOWER = "slower"
    WORSE_ROWS = "worse rows"
    """Actions that lead less often to where routes of the old atlas relied on."""
    ROWS = "rows"
    """All actions that behave differently."""


WORSE: Final = frozenset({FailOn.LOST, FailOn.SLOWER, FailOn.WORSE_ROWS})
"""What fails a build by default: every proven change for the worse."""


def failures_named(names: Iterable[str]) -> frozenset[FailOn]:
    """Returns which changes fail a build, from names: lost, slower, rows, worse for the default, or any."""
    known = {kind.value: frozenset({kind}) for kind in (FailOn.LOST, FailOn.SLOWER, FailOn.ROWS)}
    known |= {"worse": WORSE, "any": frozenset(FailOn)}
    chosen: frozenset[FailOn] = frozenset()
    for name in names:
        if name not in known:
            raise UnknownNameError.of("change to fail on", name, known)
        chosen |= known[name]
    return chosen


class ChangeKind(Enum):
    """How a state differs; the value is the name to print."""

    LOST = "lost"
    """It is in the old atlas, and not in the new one."""
    GAINED = "gained"
    """It is in the new atlas, and not in the old one."""
    SLOWER = "slower"
    """It is in both, and is proven to take more steps."""
    FASTER = "faster"
    """It is in both, and is proven to take fewer steps."""
    SAME = "same"
    """It is in both, and no difference is proven."""


@dataclass(frozen=True)
class StateChange:
    """What changed for a state that is in one of the atlases, or in both.

    Attributes:
        state: its label.
        kind: how it differs.
        proven: whether the expected steps to it are proven to differ in that direction.
        old, new: the bounds in each atlas.
        actions_lost, actions_gained: actions that only one atlas has for it; empty unless it is in both.
        why: what is proven, in a sentence.
    """

    state: State
    kind: ChangeKind
    proven: bool
    old: Bounds
    new: Bounds
    actions_lost: tuple[Action, ...]
    actions_gained: tuple[Action, ...]
    why: str

    def as_json(self) -> dict[str, Any]:
        """Returns the change as JSON values; labels are written as in files."""
        return {
            "state": encode_label(self.state),
            "change": self.kind.value,
            "proven": self.proven,
            "old": [finite(self.old.lower), finite(self.old.upper)],
            "new": [finite(self.new.lower), finite(self.new.upper)],
            "actions_lost": [encode_label(action) for action in self.actions_lost],
            "actions_gained": [encode_label(action) for action in self.actions_gained],
            "why": self.why,
        }


@dataclass(frozen=True, eq=False)
class Difference:
    """What changed between two atlases.

    Attributes:
        old, new: the atlases.
        changes: one for each state of either, those that differ first.
        rows: the actions that are proven to behave differently, the clearest first.
    """

    old: Atlas
    new: Atlas
    changes: tuple[StateChange, ...]
    rows: tuple[RowChange, ...] = ()

    def of(self, kind: ChangeKind) -> tuple[StateChange, ...]:
        """Returns the changes of a kind, those that are proven first."""
        return tuple(change for change in self.changes if change.kind is kind)

    @property
    def lost(self) -> tuple[StateChange, ...]:
        """States that are no longer in the atlas."""
        return self.of(ChangeKind.LOST)

    @property
    def gained(self) -> tuple[StateChange, ...]:
        """States that are new in the atlas."""
        return self.of(ChangeKind.GAINED)

    @property
    def slower(self) -> tuple[StateChange, ...]:
        """States that are proven to take more steps."""
        return self.of(ChangeKind.SLOWER)

    @property
    def faster(self) -> tuple[StateChange, ...]:
        """States that are proven to take fewer steps."""
        return self.of(ChangeKind.FASTER)

    @property
    def differing(self) -> tuple[StateChange, ...]:
        """Everything but the states of which no difference is proven and whose actions are the same."""
        return tuple(
            change
            for change in self.changes
            if change.kind is not ChangeKind.SAME or change.actions_lost or change.actions_gained
        )

    @property
    def regressions(self) -> tuple[StateChange, ...]:
        """The changes for the worse that are proven: states lost, and slower routes."""
        return tuple(change for change in (*self.lost, *self.slower) if change.proven)

    def failures(self, fail_on: Collection[FailOn] = WORSE) -> tuple[StateChange | RowChange, ...]:
        """Returns the proven changes that are asked to be failures: states lost, slower routes, changed actions."""
        states = [change for change in self.regressions if FailOn(change.kind.value) in fail_on]
        worse = [row for row in self.rows if row.worse] if FailOn.WORSE_ROWS in fail_on else ()
        return (*states, *(self.rows if FailOn.ROWS in fail_on else worse))

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for continuous integration if every proven change for the worse fails."""
        return self.exit_code_for(WORSE)

    def exit_code_for(self, fail_on: Collection[FailOn]) -> ExitCode:
        """Returns the exit code for continuous integration.

        REFUTED if there is a failure; UNFINISHED if a state is missing that should be in both atlases if nothing had
        changed, or a run has open states; IN_DOUBT if a run is in doubt; DONE otherwise.
        """
        codes = {self.old.verdict.exit_code, self.new.verdict.exit_code}
        if self.failures(fail_on):
            return ExitCode.REFUTED
        if any(self._is_missing(change) for change in self.lost) or codes - {ExitCode.DONE, ExitCode.IN_DOUBT}:
            return ExitCode.UNFINISHED
        return ExitCode.IN_DOUBT if ExitCode.IN_DOUBT in codes else ExitCode.DONE

    def _is_missing(self, change: StateChange) -> bool:
        """Whether a state that is lost should be in the new atlas; at the border of the radius it may be or not."""
        is_at_border = change.old.upper > self.new.target.radius and change.new.lower > self.new.target.radius
        return not is_at_border

    @property
    def summary(self) -> tuple[str, ...]:
        """The counts of what changed, and with what confidence; a line each."""
        kinds = Counter(change.kind for change in self.changes)
        proven = Counter(change.kind for change in self.changes if change.proven)
        parts = [
            f"{kinds[kind]} {kind.value}" + (f" ({proven[kind]} proven)" if kind in _BY_MEMBERSHIP else "")
            for kind in ChangeKind
            if kinds[kind]
        ]
        lines = [f"{', '.join(parts)}."]
        if self.rows:
            named = "action behaves" if len(self.rows) == 1 else "actions behave"
            sure = f"{self.rows[0].confidence:g}"
            lines.append(f"{len(self.rows)} {named} differently, all together with confidence {sure}.")
        if self.regressions or any(change.proven for change in (*self.gained, *self.faster)):
            together = confidence_text(min(1.0, self.old.target.delta + self.new.target.delta))
            in_doubt = self.old.verdict.doubts or self.new.verdict.doubts
            condition = "If the assumptions hold, which is in doubt, all" if in_doubt else "All"
            lines.append(f"{condition} that is called proven holds at once with a probability of at least {together}.")
        for name, atlas in (("old", self.old), ("new", self.new)):
            if atlas.verdict.exit_code is not ExitCode.DONE:
                lines.append(f"The {name} run: {atlas.verdict.headline}")
        return tuple(lines)

    def as_json(self) -> dict[str, Any]:
        """Returns the difference as JSON values."""
        return {
            "worlds": [self.old.world, self.new.world],
            "verdicts": [self.old.verdict.as_json(), self.new.verdict.as_json()],
            "summary": list(self.summary),
            "changes": [change.as_json() for change in self.changes],
            "rows": [change.as_json() for change in self.rows],
            "exit_code": int(self.exit_code),
        }

    def __str__(self) -> str:
        lines = (f"{readable(change.state)}: {change.kind.value}, {change.why}" for change in self.differing)
        return printable("\n".join([*lines, *map(str, self.rows), *self.summary]))


_BY_MEMBERSHIP = (ChangeKind.LOST, ChangeKind.GAINED)
"""Kinds of changes that need no proof."""

_ORDER = {kind: index for index, kind in enumerate(ChangeKind)}


def difference(old: Atlas, new: Atlas, confidence: float = CONFIDENCE) -> Difference:
    """Returns what changed from an old atlas to a new one of the same system, or of another with the same labels.

    Args:
        old, new: the atlases.
        confidence: that of all actions together that are called changed.
    """
    if old.states[0] != new.states[0]:
        raise InvalidInputError(
            f"the runs start in different states, {shortened(old.states[0])} and {shortened(new.states[0])}, so their "
            "labels do not mean the same"
        )
    worse, better = _became_worse(old, new), _became_worse(new, old)
    states = dict.fromkeys((*old.states, *new.states))
    changes = [_change(old, new, state, worse.get(state), better.get(state)) for state in states]
    ordered = sorted(changes, key=lambda change: (_ORDER[change.kind], not change.proven))
    return Difference(old, new, tuple(ordered), changed_rows(old, new, confidence))


def _became_worse(old: Atlas, new: Atlas) -> dict[State, float]:
    """Returns the states of the old atlas that are proven to be worse, each with the steps that it took at most."""
    worse: dict[State, float] = {}
    if not (old.can_be_relied_on and new.can_be_relied_on and new.nothing_missing):
        return worse
    while True:
        at_most = _upper_bounds(old, {*new.states, *worse})
        found = {state: most for state, most in at_most.items() if new.describe(state).bounds.lower > most}
        if found.keys() <= worse.keys():
            return worse
        worse = {**found, **worse}


def _upper_bounds(atlas: Atlas, allowed: set[State]) -> dict[State, float]:
    """Returns upper bounds of the steps to each state of the atlas by policies through those that are allowed."""
    if allowed.issuperset(atlas.states):
        return dict(zip(atlas.states, atlas.upper[: len(atlas.states)].tolist(), strict=True))
    numbers = [number for number in atlas.numbers.tolist() if atlas.seen[number] in allowed]
    model = model_with(atlas, numbers)
    indices = [index_in_model(model, number) for number in atlas.numbers.tolist()]
    return {
        state: math.inf if index == model.unseen else upper_path(model, index).at_most
        for state, index in zip(atlas.states, indices, strict=True)
    }


def _change(old: Atlas, new: Atlas, state: State, before: float | None, now: float | None) -> StateChange:
    """Returns what changed for a state.

    Args:
        old, new: the atlases.
        state: a state of one of them.
        before: the steps that it took at most, if it is proven to have become worse.
        now: the steps that it takes at most, if it is proven to have become better.
    """
    reports = old.describe(state), new.describe(state)
    if state not in new.indices:
        kind, proven = ChangeKind.LOST, before is not None
    elif state not in old.indices:
        kind, proven = ChangeKind.GAINED, now is not None
    else:
        proven = before is not None or now is not None
        kind = ChangeKind.SLOWER if before is not None else ChangeKind.FASTER if proven else ChangeKind.SAME
    lost, gained = _actions(old, new, state)
    why = _why(kind, reports, before, now)
    sentences = why, *_action_sentences(lost, gained)
    return StateChange(state, kind, proven, reports[0].bounds, reports[1].bounds, lost, gained, " ".join(sentences))


def _actions(old: Atlas, new: Atlas, state: State) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    if state not in old.indices or state not in new.indices:
        return (), ()
    before, after = old.actions[old.indices[state]], new.actions[new.indices[state]]
    return tuple(a for a in before if a not in after), tuple(a for a in after if a not in before)


def _action_sentences(lost: tuple[Action, ...], gained: tuple[Action, ...]) -> Iterator[str]:
    for actions, verb in ((lost, "no longer has"), (gained, "now has")):
        if actions:
            yield f"It {verb} the action{'s' if len(actions) > 1 else ''} {', '.join(map(readable, actions))}."


def _why(kind: ChangeKind, reports: tuple[StateReport, StateReport], before: float | None, now: float | None) -> str:
    old, new = reports
    if before is not None:
        least, more = rounded_down(new.bounds.lower), rounded_down(new.bounds.lower - before)
        return (
            f"proven: every policy through the new states takes at least {least} expected steps, where one took at "
            f"most {rounded_up(before)}; that is at least {more} more."
        )
    if now is not None:
        least, fewer = rounded_down(old.bounds.lower), rounded_down(old.bounds.lower - now)
        return (
            f"proven: a policy takes at most {rounded_up(now)} expected steps, where every policy through the old "
            f"states took at least {least}; that is at least {fewer} fewer."
        )
    if kind is ChangeKind.SAME:
        return f"no difference is proven: {old.bounds} before, {new.bounds} now."
    name, other = ("new", new) if kind is ChangeKind.LOST else ("old", old)
    return f"not proven: in the {name} run it is {other.status.value}. {other.reason}"
