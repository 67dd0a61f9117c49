"""The dice game Pig: the scores that can be banked, in how many rolls, and how.

axplore explore examples.gallery.pig:Pig --radius 14 --epsilon 6 --objective within-radius
"""

import numpy as np

GOAL = 10


class Pig:
    """The state is (banked, at stake). A roll of 1 loses what is at stake; other rolls add to it, up to the goal."""

    def __init__(self) -> None:
        self.noise = np.random.default_rng(0)

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self.noise = np.random.default_rng(seed)

    def actions(self, state: tuple[int, int]) -> tuple[str, ...]:
        banked, stake = state
        return () if banked >= GOAL else ("roll", "bank") if stake else ("roll",)

    def is_terminal(self, state: tuple[int, int]) -> bool:
        return state[0] >= GOAL

    def reset(self) -> tuple[int, int]:
        self.banked, self.stake = 0, 0
        return 0, 0

    def step(self, action: str) -> tuple[int, int]:
        if action == "bank":
            self.banked, self.stake = min(GOAL, self.banked + self.stake), 0
        else:
            die = int(self.noise.integers(1, 7))
            self.stake = 0 if die == 1 else min(GOAL - self.banked, self.stake + die)
        return self.banked, self.stake
