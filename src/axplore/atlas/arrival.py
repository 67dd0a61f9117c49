"""The chance to arrive at a goal within a number of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axplore.atlas.learned import pairs_of_policy, position_of
from axplore.errors import InvalidSettingError
from axplore.mdp import RESET_ACTION, RESET_PAIR, FloatArray, IntArray, State
from axplore.planning.arrival import arrival_chances
from axplore.planning.interval import IntervalModel

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas


@dataclass(frozen=True, eq=False)
class Arrival:
    """The chance that the atlas's policy, started in the initial state, is at its goal after at most so many steps.

    Attributes:
        lowers, uppers: bounds of it after 0, 1, ..., n steps, [n + 1]; 0 and 1 if nothing is proven.
        estimates: what it would be if the frequencies met were the probabilities, [n + 1]. No bound.
        proven: whether the bounds are proven.
    """

    lowers: FloatArray
    estimates: FloatArray
    uppers: FloatArray
    proven: bool

    @property
    def lower(self) -> float:
        """At least this, within all the steps."""
        return float(self.lowers[-1])

    @property
    def estimate(self) -> float:
        """About this, within all the steps; no bound."""
        return float(self.estimates[-1])

    @property
    def upper(self) -> float:
        """At most this, within all the steps."""
        return float(self.uppers[-1])

    def __str__(self) -> str:
        proven = f", proven between {self.lower:.4f} and {self.upper:.4f}" if self.proven else ", not proven"
        return f"about {self.estimate:.4f} within {len(self.estimates) - 1} steps{proven}"


def arrival(atlas: Atlas, goal: State, steps: int) -> Arrival:
    """The chance to arrive at a goal of the atlas within a number of steps, and within each smaller number."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise InvalidSettingError(f"steps is {steps!r}; it must be a whole number, 0 or more")
    model, policy = atlas.model, atlas.policy(goal)
    position = position_of(model, int(atlas.numbers[atlas.states.index(goal)]))
    if policy.horizon is not None:
        estimates = _by_step(atlas, model, policy.choices, position, int(steps))
        return Arrival(np.zeros(steps + 1), estimates, np.ones(steps + 1), proven=False)
    pairs = pairs_of_policy(atlas, model, policy.choices)
    chances = arrival_chances(model.rows, position, pairs, len(model.numbers) + 1, int(steps))
    if not atlas.proven:
        chances[:, 0], chances[:, 2] = 0.0, 1.0
    return Arrival(chances[:, 0].copy(), chances[:, 1].copy(), chances[:, 2].copy(), atlas.proven)


def _by_step(atlas: Atlas, model: IntervalModel, choices: IntArray, goal: int, steps: int) -> FloatArray:
    """The chances of a policy that depends on the step of a journey, which RESET begins anew, [steps + 1]."""
    rows, horizon = model.rows, len(choices)
    played = [pairs_of_policy(atlas, model, row) for row in (*choices, np.full(0, RESET_ACTION))]
    mass = {(0, 0): 1.0}  # by position and step of the journey
    arrived = [1.0 if goal == 0 else 0.0]
    for _ in range(steps):
        after: dict[tuple[int, int], float] = {}
        reached = arrived[-1]
        for (position, step), chance in mass.items():
            pair = played[min(step, horizon)][position] if position < model.n_known else RESET_PAIR
            if goal == 0:
                continue
            if pair == RESET_PAIR:
                after[0, 0] = after.get((0, 0), 0.0) + chance
                continue
            for entry in range(rows.row_offsets[pair], rows.row_offsets[pair + 1]):
                successor, part = int(rows.successors[entry]), chance * float(rows.frequencies[entry])
                if successor == goal:
                    reached += part
                else:
                    after[successor, step + 1] = after.get((successor, step + 1), 0.0) + part
        mass = after
        arrived.append(reached)
    return np.array([min(chance, 1.0) for chance in arrived])
