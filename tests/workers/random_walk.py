"""Systems that workers make for themselves, and what they need to be the same everywhere."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

SECONDS_OF_HANGING = 600.0
IN_HASTE = "AXPLORE_TEST_IN_HASTE"


class Walk:
    """A walk on 0, ..., 5: an action goes that way, or stays with probability 0.3. It can be reseeded."""

    actions = ("left", "right")
    length = 6

    def __init__(self) -> None:
        self.state = 0
        self._noise = np.random.default_rng(0)

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self._noise = np.random.default_rng(seed)

    def reset(self) -> int:
        self.state = 0
        return self.state

    def step(self, action: str) -> int:
        if self._noise.random() >= 0.3:
            self.state = min(max(self.state + (1 if action == "right" else -1), 0), self.length - 1)
        return self.state


class LoggedWalk(Walk):
    """Notes every transition, and every reset as None, in a list that all instances share."""

    log: list[tuple[int, str, int] | None] = []  # noqa: RUF012 (shared on purpose)

    def reset(self) -> int:
        self.log.append(None)
        return super().reset()

    def step(self, action: str) -> int:
        before = self.state
        after = super().step(action)
        self.log.append((before, action, after))
        return after


class SlowWalk(Walk):
    """Takes a moment for every step, so that there is time to kill it, unless IN_HASTE is in the environment."""

    def step(self, action: str) -> int:
        if IN_HASTE not in os.environ:
            time.sleep(0.001)
        return super().step(action)


class WalkThatFailsOnce(Walk):
    """Raises in one process only: the first that gets to write its number to a file, and from then on always."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def step(self, action: str) -> int:
        try:
            with self._file.open("x", encoding="ascii") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            pass
        if self._file.read_text(encoding="ascii") == str(os.getpid()):
            raise RuntimeError("this machine has no licence")
        return super().step(action)


class WalkThatBreaks(Walk):
    """Raises now and then, by its noise: for every worker at the same steps of the same batch."""

    def step(self, action: str) -> int:
        if self._noise.random() < 0.002:
            raise RuntimeError("broken by its own noise")
        return super().step(action)


class WalkThatHangsOnce(Walk):
    """The first to write to a file hangs for long."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def step(self, action: str) -> int:
        # Not in the first batches: only where others have been carried out is one known to be slow.
        if self.state == 3 and not self._file.exists():
            self._file.touch()
            time.sleep(SECONDS_OF_HANGING)
        return super().step(action)
