"""A bundle of batches of which one fails leaves its worker with everything that it was sent."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from axplore.workers.distributed import DistributedWorld
from axplore.worlds.contract import Episodes, Visit
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.in_process import InProcess


class Brittle:
    """One step in ten fails."""

    actions = ("on",)

    def __init__(self) -> None:
        self._generator = random.Random(0)

    def reseed(self, seed: Any) -> None:
        self._generator = random.Random(int(seed.generate_state(1)[0]))

    def reset(self) -> int:
        return 0

    def step(self, _: str) -> int:
        if self._generator.random() < 0.1:
            raise RuntimeError("broken")
        return 1


def test_many_orders_of_one_episode_are_all_carried_out_though_steps_fail() -> None:
    world = DistributedWorld(SteppedWorld(Brittle, max_faults=10_000), InProcess())
    go = np.zeros(1, dtype=np.int64)
    world.carry_out([Visit(0, 0, 1, go, max_journey=1)])
    for _ in range(3):  # later calls bundle batches by the time that earlier ones took
        orders = [Episodes(goal=1, times=1, horizon=3, policy=go, always_reset=True)] * 200
        assert [answer.completed for answer in world.carry_out(orders)] == [1] * 200
    world.close()
