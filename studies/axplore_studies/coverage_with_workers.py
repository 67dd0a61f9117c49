"""Whether promises are kept with workers, too.

The models and checks are those of `coverage`; rounds, batches and the merging of answers are those of workers. The
engine is the process itself, because the number of workers and their engine change no draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from axplore.records.run import StopReason
from axplore.statistics.summaries import proportion_interval
from axplore.workers import DistributedWorld
from axplore.worlds.contract import World
from axplore_studies.coverage import trials_on
from axplore_studies.in_process import InProcess
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Document


def trials(models: int = 550) -> list[Trial]:
    """Returns the models to explore."""
    return trials_on(_shared, models)


def _shared(world: World) -> World:
    """Returns the world with workers; its trial ends with the process."""
    return DistributedWorld(world, InProcess())


def summary(records: Sequence[Record]) -> Document:
    """Returns the number of broken promises for each objective and delta."""
    counts: dict[tuple[str, float], Counter[str]] = {}
    for record in records:
        broken, left = int(bool(record["violations"])), int(record["left_region"])
        counts.setdefault((record["objective"], record["delta"]), Counter()).update(
            models=1,
            broken=broken,
            broken_inside_region=broken * (1 - left),
            left_region=left,
            given_up=int(record["stop"] != StopReason.PROVEN.name),
            steps=record["steps"],
        )
    rows = [
        {
            "objective": objective,
            "delta": delta,
            **count,
            "interval": proportion_interval(count["broken"], count["models"]),
        }
        for (objective, delta), count in counts.items()
    ]
    return Document(STUDY.name, rows, holds=not any(row["broken_inside_region"] for row in rows))


STUDY: Final = Study(
    "coverage-with-workers",
    "the same with the rounds and batches of workers, on fewer models",
    trials,
    summary,
    counted="models for each objective and delta",
)
