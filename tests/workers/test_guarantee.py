"""The promise of the certified explorer, where its orders are carried out in batches."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from scipy.stats import binom

from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.records.run import StopReason
from axplore.target import Target
from axplore.workers import distributed as world_module
from axplore.workers.batches import BatchOutcome, BatchRequest, BatchServer
from axplore.workers.distributed import DistributedWorld
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.coverage_models import KINDS, case
from axplore_studies.in_process import InProcess
from axplore_studies.promises import RegionWatch, violations_of

DELTA: Final = 0.2
SEEDS: Final = 5
N_MODELS: Final = SEEDS * len(KINDS)
"""Fifty models. If each breaks the promise with a probability of at most δ = 0.2, then more than 19 do so with a
probability below 0.001; if draws are repeated as though they were new, most do."""

MOST_BROKEN: Final = int(binom.ppf(0.999, N_MODELS, DELTA))


def trials() -> tuple[int, int]:
    """How often the truth was outside the region at some time, and how often a promise was broken."""
    left = broken = 0
    for kind in KINDS:
        for seed in range(SEEDS):
            given = case(kind, 1000 + seed)
            explorer = Certified(target=Target(radius=given.radius, epsilon=1.0, delta=DELTA)).for_workers()
            world = DistributedWorld(SimulatedWorld(given.mdp, seed), InProcess())
            watch = RegionWatch(given.mdp, world, DELTA)
            exploration = run(explorer, world, max_steps=50_000, observers=[watch.look])
            left += watch.left or exploration.stop is StopReason.CONTRADICTED
            broken += bool(violations_of(exploration, given))
    return left, broken


def test_the_guarantee_holds_with_workers() -> None:
    left, broken = trials()
    assert left <= MOST_BROKEN
    assert broken <= MOST_BROKEN


def test_the_study_would_see_batches_that_repeat_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Repeating(BatchServer):
        """Gives every batch of an order the same stream."""

        def carry_out(self, request: BatchRequest) -> BatchOutcome:
            call, place, _ = request.key
            return super().carry_out(BatchRequest(**{**vars(request), "key": (call, place, 0)}))

    monkeypatch.setattr(world_module, "BatchServer", Repeating)
    left, _ = trials()
    assert left > MOST_BROKEN


def test_the_number_of_models_is_worked_out() -> None:
    chances = np.array([binom.sf(MOST_BROKEN, N_MODELS, DELTA), binom.sf(MOST_BROKEN - 1, N_MODELS, DELTA)])
    assert chances[0] < 0.001 <= chances[1]
