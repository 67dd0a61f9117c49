"""A system that takes its time, explored by four workers.

    python examples/slow_crane.py

The crane swings between five places. A swing takes two thousandths of a second, misses now and then, and the load is
lost if it swings on from the last place. Every worker has a crane of its own; the atlas is the same for any number.
"""

from __future__ import annotations

import time

import numpy as np

import axplore


class Crane:
    """Anything with `reset` and `step` will do. `reseed` makes its noise repeatable, so that runs are."""

    actions = ("left", "right")

    def __init__(self) -> None:
        self.place = 0
        self.noise = np.random.default_rng()

    def reseed(self, seed: np.random.SeedSequence) -> None:
        """Takes a stream for its noise."""
        self.noise = np.random.default_rng(seed)

    def reset(self) -> str:
        """Back to the first place."""
        self.place = 0
        return "place 0"

    def step(self, action: str) -> str:
        """One swing."""
        time.sleep(0.002)
        if self.noise.random() < 0.9:
            self.place += 1 if action == "right" else -1
        self.place = max(self.place, 0)
        return "lost" if self.place > 4 else f"place {self.place}"

    def is_terminal(self, state: str) -> bool:
        """Nothing can be done with a load that is lost."""
        return state == "lost"


if __name__ == "__main__":
    # The class is a factory: each worker calls it. An object could not be in four processes at once.
    print(axplore.explore(Crane, radius=6, epsilon=1, workers=4, progress=True))
