"""Refines labels before and while a system is explored: situations that share one are told apart by what came before.

At first, and whenever a test finds that labels hide something, `axplore.worlds.telling_apart` proposes a memory; the
system is examined with the labels that it gives, and explored anew. No count of the labels before is kept. So every
draw that is counted comes after its labels were chosen, and the certificate of the last labels holds as if they had
been given.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Final, Literal

from axplore.arguments import refusal, whole
from axplore.atlas.construction import finding_records
from axplore.certificate.doubts import FindingRecord
from axplore.errors import InvalidSettingError, WorldError
from axplore.explorers.base import Explorer, ExplorerState, RoundReport, StopReason
from axplore.worlds.aalpy import check_aalpy, merged_by_alergia
from axplore.worlds.diagnosis import Issue
from axplore.worlds.stepped import SteppedWorld
from axplore.worlds.telling_apart import Teller

_logger = logging.getLogger("axplore")

TELLABLE: Final = frozenset(
    {Issue.NOISE_PINNED.name, Issue.TIME_LIMIT.name, Issue.KEY_TOO_COARSE.name, Issue.HISTORY_MATTERS.name}
)
"""Findings that hidden situations may explain."""

BY_AALPY: Final[Literal["aalpy"]] = "aalpy"
"""The memory for which AALpy merges histories into situations,"""

LONGEST_FOR_AALPY: Final = 12
EFFORT_FOR_AALPY: Final = 2
"""while draws are made where situations by histories of this many outputs lack them, as its test needs more of them."""

MOST_PROPOSALS: Final = 4
"""The number of memories that are proposed for a system, each on twice the draws of the one before."""

REACH_FACTOR: Final = 4.0
"""Situations are told apart up to this many times the radius and ε, along the likeliest way to each."""

SHARE_FOR_TELLING: Final = 0.7
"""Of the steps left, the part that a proposal may take,"""

MOST_STEPS_FOR_TELLING: Final = 1_000_000
"""and the number of steps that it may take in any case."""


def memory_setting(name: str, value: Any) -> int | Literal["aalpy"]:
    """Checks that an argument says how situations are told apart: a number of outputs, or `aalpy`."""
    if isinstance(value, str) and value == BY_AALPY:
        return BY_AALPY
    if isinstance(value, str):
        raise refusal(name, value, f"a number of outputs, 1 or more, or {BY_AALPY!r}")
    number: int = whole(least=1)(name, value)
    return number


class Refiner:
    """Tells situations apart that share a label, whenever a test finds that labels hide something.

    Attributes:
        stopped: the state of the explorer when a test that runs along ended it; None if none did.
    """

    def __init__(self, world: SteppedWorld, teller: Teller, seed: int, last_step: int | None) -> None:
        """Begins with nothing told apart.

        Args:
            world: the system.
            teller: what proposes memories for it.
            seed: of examinations.
            last_step: the step limit, in steps of the world.
        """
        self._world, self._teller, self._seed, self._last_step = world, teller, seed, last_step
        self._n_proposals = 0
        self.stopped: ExplorerState | None = None

    def note(self, report: RoundReport) -> StopReason | None:
        """Ends an exploration, as an observer of it, whose labels are known to hide something."""
        if not self._world.has_alarmed or self._n_proposals >= MOST_PROPOSALS:
            return None
        self.stopped = report.state
        return StopReason.INTERRUPTED

    def refined(self, findings: tuple[FindingRecord, ...]) -> tuple[FindingRecord, ...]:
        """Gives the world another memory, until an examination finds nothing, and returns the findings of the last.

        If there is no other, the world keeps the one it has, and the findings stay.

        Args:
            findings: what was found of the labels as they are.
        """
        kept = self._world.memory
        while self._n_proposals < MOST_PROPOSALS:
            left = math.inf if self._last_step is None else self._last_step - self._world.steps
            budget = int(min(SHARE_FOR_TELLING * left, MOST_STEPS_FOR_TELLING))
            if budget <= 0:
                break
            self._n_proposals += 1
            try:
                proposed = self._teller.propose(budget)
            except WorldError:  # exploring will meet it, too, and says it better
                break
            if proposed is None or proposed == kept:
                if hides_something(findings):
                    continue
                break
            kept = proposed
            self._world.remember(kept)
            _logger.info("%s", kept.summary)
            findings = examined(self._world, self._seed + self._n_proposals)
            if not hides_something(findings):
                break
        if self._world.memory != kept:
            self._world.remember(kept)
        return findings


def refiner_of(
    memory: int | Literal["aalpy"] | None,
    world: SteppedWorld | None,
    explorer: Explorer[Any],
    seed: int,
    last_step: int | None,
    *,
    has_workers: bool,
) -> Refiner | None:
    """Returns what tells situations apart; None if that is not asked for.

    Args:
        memory: the largest number of outputs of a history that begins a situation of its own; `aalpy` if AALpy is to
            merge histories into situations; None for none.
        world: the system, if it is stepped and tested.
        explorer: what will explore it.
        seed: of what is played.
        last_step: the step limit, in steps of the world.
        has_workers: whether workers step the system.
    """
    if memory is None:
        return None
    if memory == BY_AALPY:
        check_aalpy()
    if has_workers:
        raise InvalidSettingError("memory needs to follow the system step by step: leave workers and ray out")
    if world is None:
        raise InvalidSettingError(
            "memory is for systems that are stepped, and needs the tests of the doctor: known models hide nothing, and "
            "doctor=False (--no-doctor) leaves the tests out"
        )
    reach = REACH_FACTOR * explorer.target.reach
    if memory == BY_AALPY:
        by_aalpy = Teller(world, LONGEST_FOR_AALPY, reach, seed, merged_by_alergia, EFFORT_FOR_AALPY)
        return Refiner(world, by_aalpy, seed, last_step)
    teller = Teller(world, memory, reach, seed)
    return Refiner(world, teller, seed, last_step)


def hides_something(findings: Sequence[FindingRecord]) -> bool:
    """Returns whether hidden situations may explain what was found."""
    return any(finding.issue in TELLABLE for finding in findings)


def examined(system: SteppedWorld, seed: int) -> tuple[FindingRecord, ...]:
    """Returns the findings of a short examination; they do not prevent exploring."""
    from axplore.worlds.doctor import BRIEF_SECONDS, BRIEF_STEPS, examine_world

    findings = examine_world(system, max_steps=BRIEF_STEPS, seconds=BRIEF_SECONDS, seed=seed).findings
    for finding in findings:
        _logger.warning("%s", finding)
    return finding_records(findings)
