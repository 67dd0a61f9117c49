"""Whether promises are kept with workers, too.

The models and checks are those of `coverage`; rounds, batches and the merging of answers are those of workers. The
engine is the process itself, because the number of workers and their engine change no draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from axplore.workers import DistributedWorld
from axplore.worlds.contract import World
from axplore_studies.coverage import Conditions, broken_promises, trials_on
from axplore_studies.in_process import InProcess
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document


def trials(models: int = 550) -> list[Trial]:
    """Returns the models to explore."""
    return trials_on(Conditions(share=shared), models)


def shared(world: World) -> World:
    """Returns the world with workers; its trial ends with the process."""
    return DistributedWorld(world, InProcess())


def summary(records: Sequence[Record]) -> Document:
    """Returns the number of broken promises for each objective and delta."""
    return broken_promises(STUDY.name, records)


STUDY: Final = Study(
    "coverage-with-workers",
    "the same with the rounds and batches of workers, on fewer models",
    trials,
    summary,
    counted="models for each objective and delta",
)
