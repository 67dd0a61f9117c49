"""Refines labels before and while a system is explored: situations that share one are told apart by what came before.

At first, and whenever a test finds that labels hide something, `axplore.worlds.situation_inference` proposes a
memory; the system is examined with the labels that it gives, and explored anew. No count of the labels before is kept.
So every draw that is counted comes after its labels were chosen, and the certificate of the last labels holds as if
they had been given.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Final

from axplore.assumptions import NOTHING, Assumptions
from axplore.budget import Budget
from axplore.errors import InvalidSettingError, OrdersCutError, WorldError
from axplore.explorers.base import Explorer, ExplorerState, RoundReport
from axplore.noticing import examined, hides_something
from axplore.records.findings import Finding
from axplore.records.run import StopReason
from axplore.request import BY_AALPY, Request
from axplore.worlds.aalpy import check_aalpy, merged_by_alergia
from axplore.worlds.contract import Examinable
from axplore.worlds.situation_inference import SituationInference
from axplore.worlds.situations import SituationWorld

_logger = logging.getLogger("axplore")

LONGEST_FOR_AALPY: Final = 12
EFFORT_FOR_AALPY: Final = 2
"""While AALpy merges histories into situations, draws are made where situations by histories of this many outputs lack
them, and its test needs this many times as many."""

MOST_PROPOSALS: Final = 4
"""The number of memories that are proposed for a system, each on twice the draws of the one before."""

REACH_FACTOR: Final = 4.0
"""Situations are told apart up to this many times the radius and ε, along the likeliest way to each."""

SHARE_FOR_INFERENCE: Final = 0.7
"""The part of the steps left that a proposal may take."""

MOST_STEPS_FOR_INFERENCE: Final = 1_000_000
"""The largest number of steps of a proposal, however many are left."""


class Refiner:
    """Tells situations apart that share a label, whenever a test finds that labels hide something.

    Attributes:
        world: the world whose states are the situations told apart so far.
        stopped: the state of the explorer when a test that runs along ended it; None if none did.
    """

    def __init__(
        self,
        world: SituationWorld,
        inference: SituationInference,
        seed: int,
        budget: Budget,
        steps_before: int,
        assume: Assumptions = NOTHING,
    ) -> None:
        """Begins with what the world tells apart.

        Args:
            world: the system.
            inference: what proposes memories for it.
            seed: of examinations.
            budget: what all of this may take.
            steps_before: the steps of the world before the first of this exploration.
            assume: what is assumed of it.
        """
        self.world, self._inference, self._seed = world, inference, seed
        self._budget, self._steps_before = budget, steps_before
        self._assume = assume
        self._n_proposals = 0
        self.stopped: ExplorerState | None = None

    @property
    def _exploring(self) -> int:
        """The steps of exploring so far."""
        return self.world.steps - self._steps_before

    def _steps_to_propose(self) -> int:
        """Returns the steps that a proposal may take."""
        left = self._budget.left(self._exploring)
        share = math.inf if left is None else SHARE_FOR_INFERENCE * left
        return int(min(share, MOST_STEPS_FOR_INFERENCE))

    @property
    def n_situations(self) -> int:
        """The number of situations told apart; 0 if the answers of the system are the states."""
        return 0 if self.world.memory is None else len(self.world.memory.outputs)

    def note(self, report: RoundReport) -> StopReason | None:
        """Ends an exploration, as an observer of it, whose labels are known to hide something."""
        if not self.world.has_alarmed or self._n_proposals >= MOST_PROPOSALS:
            return None
        self.stopped = report.state
        return StopReason.INTERRUPTED

    def refined(self, findings: tuple[Finding, ...]) -> tuple[tuple[Finding, ...], bool]:
        """Gives the world another memory, until an examination finds nothing.

        If there is no other, the world keeps the one it has, and the findings stay.

        Args:
            findings: what was found of the labels as they are.

        Returns:
            The findings of the last examination, and whether the world has other labels now.
        """
        before = kept = self.world.memory
        while self._n_proposals < MOST_PROPOSALS:
            max_steps = self._steps_to_propose()
            if max_steps <= 0:
                break
            self._n_proposals += 1
            self.world.remember(None)  # draws are of the outputs themselves
            try:
                self.world.limit(self._budget.left(self._exploring), self._budget.ends)
                proposed = self._inference.propose(max_steps)
            except (WorldError, OrdersCutError):  # exploring will meet it, too, and says it better
                break
            finally:
                self.world.limit()
            if proposed is None or proposed == kept:
                if hides_something(findings):
                    continue
                break
            kept = proposed
            self.world.remember(kept)
            _logger.info("%s", kept.summary)
            findings = examined(self.world, self._seed + self._n_proposals, self._budget, self._exploring, self._assume)
            if not hides_something(findings):
                break
        if self.world.memory != kept:
            self.world.remember(kept)
        return findings, kept != before


def _refuse_what_knows_other_labels(explorer: Explorer[Any]) -> None:
    """Refuses goals and functions of states: labels will be others than the outputs that they are written for."""
    labels = "memory makes labels of outputs and what came before them"
    if not explorer.goal.is_everything:
        raise InvalidSettingError(
            f"{labels}, which a goal does not know: leave goal out, or ask for the probability to reach an output, as "
            "in `axplore check WORLD 'Pmax=? [ F \"output\" ]' --memory N`"
        )
    if explorer.assume.functions:
        raise InvalidSettingError(
            f"{labels}, which the function of {explorer.assume.functions[0]} does not know: assume it of all actions, "
            "or leave memory out"
        )


def refiner_of(
    request: Request, world: Examinable | None, explorer: Explorer[Any], budget: Budget, steps_before: int
) -> Refiner:
    """Returns what tells situations apart by the memory that a request asks for.

    Args:
        request: what is asked for.
        world: the system, if it is stepped and tested.
        explorer: what will explore it.
        budget: what all of this may take.
        steps_before: the steps of the world before the first of this exploration.
    """
    if request.memory == BY_AALPY:
        check_aalpy()
    if request.has_workers:
        raise InvalidSettingError("memory needs to follow the system step by step: leave workers and ray out")
    _refuse_what_knows_other_labels(explorer)
    if world is None:
        raise InvalidSettingError(
            "memory is for systems that are stepped, and needs the tests of the doctor: known models hide nothing, and "
            "doctor=False (--no-doctor) leaves the tests out"
        )
    reach = REACH_FACTOR * explorer.target.reach
    if request.memory == BY_AALPY:
        inference = SituationInference(
            world, LONGEST_FOR_AALPY, reach, request.seed, merged_by_alergia, EFFORT_FOR_AALPY
        )
    else:
        assert request.memory is not None
        inference = SituationInference(world, request.memory, reach, request.seed)
    return Refiner(SituationWorld(world), inference, request.seed, budget, steps_before, explorer.assume)
