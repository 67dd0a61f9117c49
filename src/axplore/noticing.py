"""What is noticed of a system while it is explored and before anything is promised, kept as soon as it is seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from axplore.assumptions import NOTHING, Assumptions
from axplore.atlas import Atlas
from axplore.budget import Budget
from axplore.errors import OrdersCutError
from axplore.explorers.base import RoundReport
from axplore.labels import readable
from axplore.records.findings import Examined, Finding, Issue
from axplore.records.run import Played, StopReason
from axplore.worlds.contract import Examinable, Replicable, Watched, World
from axplore.worlds.diagnosis import finding_of

_logger = logging.getLogger("axplore")

TELLABLE: Final = frozenset(
    {Issue.NOISE_PINNED, Issue.TIME_LIMIT, Issue.KEY_TOO_COARSE, Issue.HISTORY_MATTERS, Issue.SYSTEM_CHANGES}
)
"""Findings that hidden situations may explain."""


LEAST_BESIDE: Final = 2
"""The fewest steps for which a system is examined in another process: one with which it begins, and another."""


class Noticed:
    """What was found of a system under its present labels. It only grows: no later observation takes a doubt back.

    Attributes:
        findings: everything found so far.
        played: how the policies were played; None if they were not.
    """

    def __init__(
        self,
        system: Watched | None,
        findings: tuple[Finding, ...],
        keep: Callable[[Finding], None] | None,
        *,
        tried: World | None = None,
        assume: Assumptions = NOTHING,
        confirm: float | None = None,
    ) -> None:
        """Begins with what was found before.

        Args:
            system: the world whose system is tested while it is explored; None if none is.
            findings: what was found before, and is kept already.
            keep: stores a new finding where a killed process leaves it; None if there is no such place.
            tried: the world on which policies are played before anything is promised; None if they are not.
            assume: what is assumed of it.
            confirm: the rate above which a violation of that is looked for; see `axplore.atlas.replays.replay`.
        """
        self.findings = findings
        self.played: Played | None = None
        self._system, self._keep = system, keep
        self._tried, self._assume, self._confirm = tried, assume, confirm
        self._has_told_history = self._has_told_log = False

    def look(self, report: RoundReport) -> StopReason | None:
        """Keeps, as an observer of the exploration, what the tests that run along have found.

        A log that does not fit ends the exploration: draws of now do not mend what counts mix.
        """
        if self._system is not None and self._system.has_alarmed:
            self._note_history(self._system)
        logged = getattr(report.state, "logged", None)
        if logged is not None and not self._has_told_log:
            from axplore.continuing import difference_from

            finding = difference_from(logged, report.state.counts)
            if finding is not None:
                self._has_told_log = True
                self._note(finding)
        return StopReason.LOG_DIFFERS if self._has_told_log else None

    def keep(self, findings: Sequence[Finding]) -> None:
        """Keeps what an examination beside the exploration has found."""
        for finding in findings:
            self._note(finding)

    def judge(self, atlas: Atlas, explored: World, budget: Budget, *, interrupted: bool) -> bool:
        """Keeps what casts doubt on an atlas: what the test found, or else what playing policies finds.

        The policies that are promised are played last: of a system that changes, they are to show how it is now.

        Args:
            atlas: what is about to be promised.
            explored: the world that it is of.
            budget: what is left of the limits.
            interrupted: whether Ctrl-C was pressed, so that nothing is played any more.

        Returns:
            Whether Ctrl-C was pressed by now.
        """
        is_promised = atlas.complete and not atlas.is_refuted and self._tried is not None
        try:
            return self._judged(atlas, explored, budget, is_promised=is_promised, interrupted=interrupted)
        finally:
            self._note_hearsay(atlas)

    def _judged(self, atlas: Atlas, explored: World, budget: Budget, *, is_promised: bool, interrupted: bool) -> bool:
        try:
            if self._system is not None:
                self._note_history(self._system)
            if is_promised and not self._has_told_history and not interrupted:
                assert self._tried is not None
                if self._system is not None:
                    self._attempt(atlas, self._system, explored, budget)
                if not self._has_told_history:
                    self._replay(atlas, self._tried, explored)
                if self._system is not None:
                    self._note_history(self._system)
                return False
        except KeyboardInterrupt:
            interrupted = True
        except OrdersCutError:
            self._note_not_played("The limit of steps or seconds came first.")
            return False
        if is_promised and interrupted:
            self._note_not_played("An interruption came first.")
        return interrupted

    def examined(self, before: int) -> Examined | None:
        """Returns how long the system was looked at; None if there is none, as for a model.

        Args:
            before: the steps of the examination before exploring.
        """
        return None if self._system is None else structs.replace(self._system.examined, before=before)

    def _note_hearsay(self, atlas: Atlas) -> None:
        """Adds a doubt, not kept in the run, about states that only a log has met: one that resumes may meet them."""
        if self._system is None or not atlas.complete:
            return
        never = {self._system.states[number] for number in self._system.hearsay} & set(atlas.states)
        if never:
            named = ", ".join(sorted(map(readable, never))[:5])
            seen = f"The system was never in {len(never):,} of the states, {named}, which are known from the log alone."
            self.findings = (*self.findings, finding_of(Issue.ACTIONS_OF_LOG, seen))

    def _note_not_played(self, why: str) -> None:
        """Adds a doubt that is not kept in the run: one that resumes plays them."""
        self.findings = (*self.findings, finding_of(Issue.NOT_PLAYED, why))

    def _replay(self, atlas: Atlas, tried: World, explored: World) -> None:
        from axplore.atlas.replays import replay

        shown = replay(atlas, tried, explored, self._assume, self._confirm)
        self.played = shown.played
        for finding in shown.findings:
            self._note(finding)
        matters = self._system is not None or bool(atlas.assumptions)  # models hide nothing
        if matters and shown.was_cut:
            self._note_not_played("The limit of steps or seconds came first.")

    def _attempt(self, atlas: Atlas, system: Watched, explored: World, budget: Budget) -> None:
        """Tries to reach what is set aside; where something is assumed, or in doubt already, there is no need."""
        from axplore.atlas.attempts import attempt
        from axplore.atlas.replays import steps_to_keep

        left = budget.left(atlas.steps)
        most = math.inf if left is None else left - steps_to_keep(atlas)
        if most > 0 and not atlas.assumptions and not any(finding.is_doubt for finding in self.findings):
            for finding in attempt(atlas, system, explored, most, budget.seconds_left / 2):
                self._has_told_history = True
                self._note(finding)

    def _note_history(self, system: Watched) -> None:
        from axplore.worlds.alarms import history_finding

        finding = None if self._has_told_history else history_finding(system)
        if finding is not None:
            self._has_told_history = True
            self._note(finding)

    def _note(self, finding: Finding) -> None:
        _logger.warning("%s", finding)
        if finding not in self.findings:
            if self._keep is not None:
                self._keep(finding)
            self.findings = (*self.findings, finding)


def hides_something(findings: Sequence[Finding]) -> bool:
    """Returns whether hidden situations may explain what was found."""
    return any(finding.issue in TELLABLE for finding in findings)


def examined(
    system: Examinable, seed: int, budget: Budget, exploring: int = 0, assume: Assumptions = NOTHING
) -> tuple[Finding, ...]:
    """Returns the findings of a short examination; none but a contradicted assumption prevents exploring.

    Args:
        system: the world whose system is examined.
        seed: of the actions that are played.
        budget: what it may take; its steps are counted there. Where it leaves nothing, nothing is found.
        exploring: the steps of exploring so far.
        assume: what is declared to be known of it, which is tested too.
    """
    from axplore.worlds.doctor import BRIEF_STEPS

    findings = _examined(system, seed, budget, exploring, budget.to_examine(exploring, BRIEF_STEPS), assume)
    for finding in findings:
        _logger.warning("%s", finding)
    return findings


def _examined(
    system: Examinable, seed: int, budget: Budget, exploring: int, max_steps: int, assume: Assumptions = NOTHING
) -> tuple[Finding, ...]:
    from axplore.worlds.doctor import BRIEF_SECONDS, examine_world

    seconds = min(BRIEF_SECONDS, budget.seconds_left)
    if not max_steps or seconds <= 0:
        return ()
    with budget.counted("examining", system, exploring):
        return examine_world(system, max_steps=max_steps, seconds=seconds, seed=seed, assume=assume).findings


class ExaminationBeside:
    """A short examination in another process, while workers explore; nothing that it finds prevents that.

    Attributes:
        reserved: the most steps that it takes; they are set aside in the budget until it is over.
    """

    def __init__(self, system: Examinable, seed: int, budget: Budget, reserved: int) -> None:
        """Begins it.

        Args:
            system: the world whose system is examined; it can be replicated.
            seed: of the actions that are played.
            budget: what it may take.
            reserved: the most steps that it takes.
        """
        from axplore.workers.examination import Examination
        from axplore.worlds.doctor import BRIEF_SECONDS

        assert isinstance(system, Replicable)
        self.reserved = budget.reserved = reserved
        self._system, self._seed, self._budget = system, seed, budget
        self._examination = Examination(system, reserved, BRIEF_SECONDS, seed, budget.ends)

    def finish(self, exploring: int) -> tuple[Finding, ...]:
        """Waits for its end, and returns what was found; examines here and now if that has failed.

        Args:
            exploring: the steps of exploring so far.
        """
        from axplore.worlds.doctor import BRIEF_STEPS

        outcome = self._examination.result()
        self._budget.reserved = 0
        if outcome is None:
            self._budget.in_vain += self.reserved  # nobody knows how many it took
            most = self._budget.to_examine(exploring, BRIEF_STEPS)
            return _examined(self._system, self._seed, self._budget, exploring, most)
        self._budget.examining += outcome.steps
        return outcome.findings

    def close(self) -> None:
        """Ends it, wherever it is."""
        self._examination.close()


def examination_beside(
    system: Examinable, seed: int, budget: Budget, assume: Assumptions, exploring: int = 0, due: int | None = None
) -> ExaminationBeside | None:
    """Returns an examination that has begun in another process; None if it is better done here and now.

    Args:
        system: the world whose system is examined.
        seed: of the actions that are played.
        budget: what it may take.
        assume: what is declared to be known of it; what contradicts that is to end an exploration before it begins.
        exploring: the steps of exploring so far.
        due: the steps that were reserved for it by a process that did not see its end; None if it was not begun.
    """
    from axplore.worlds.doctor import BRIEF_STEPS

    # One step more than an examination takes in this process: another system has to begin.
    reserved = budget.to_examine(exploring, BRIEF_STEPS + 1)
    if due is not None:
        left = budget.left(exploring)
        reserved = due if left is None else min(due, left)
    if not assume.nothing or reserved < LEAST_BESIDE or not isinstance(system, Replicable):
        return None
    return ExaminationBeside(system, seed, budget, reserved)
