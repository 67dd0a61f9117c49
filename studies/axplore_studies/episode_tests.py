"""The steps that tests by episodes take to admit all states of a world, with optimal policies given.

For each world: the steps by the forecast, with the best fraction known, with bets around it, and with bets spread over
all fractions; means of 200 simulated tests of each state, at the level of the first line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from axplore.domains import combination_lock, confusing_chain, slippery_grid
from axplore.graphs.exact import optimal_paths
from axplore.mdp import TabularMdp
from axplore.statistics.confidence import EPISODE_PART
from axplore.statistics.episodes import (
    Bets,
    EpisodeForecast,
    focused_bets,
    forecast_horizon,
    line_level,
    losses_if_slower,
    spread_bets,
)
from axplore.types import FloatArray, IntArray
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table

DELTA: Final = 0.1
REPEATS: Final = 200
COLUMNS: Final = ("forecast", "best_fraction", "around_it", "spread")
PART: Final = 256
"""The number of episodes of every repeat that are drawn at once."""

WORLDS: Final[dict[str, tuple[TabularMdp, float, float]]] = {
    "chain 0.1": (confusing_chain(), 4.5, 0.1),
    "chain 0.8": (confusing_chain(), 4.5, 0.8),
    "lock": (combination_lock(), 2.7, 0.2),
    "slippery 4x4": (slippery_grid(4, 4), 6.0, 1.0),
    "slippery 6x6": (slippery_grid(6, 6), 8.0, 1.0),
    "slippery 10x10": (slippery_grid(10, 10), 10.0, 1.0),
    "deterministic 6x6": (slippery_grid(6, 6, slip=0.0), 8.0, 1.0),
}


def arrivals_of(mdp: TabularMdp, policy: IntArray, goal: int, steps: int) -> FloatArray:
    """Returns the probability to reach a goal after exactly 0, 1, ..., `steps` steps, [steps + 1]."""
    moves = np.zeros((mdp.n_states, mdp.n_states))
    for state, pair in enumerate(policy.tolist()):
        entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
        if pair < 0:
            moves[state, mdp.initial_index] = 1.0
        else:
            np.add.at(moves[state], mdp.successors[entries], mdp.probabilities[entries])
    mass, arrivals = np.zeros(mdp.n_states), np.zeros(steps + 1)
    mass[mdp.initial_index] = 1.0
    for step in range(1, steps + 1):
        mass = mass @ moves
        arrivals[step], mass[goal] = mass[goal], 0.0
    return arrivals


def admissions(mdp: TabularMdp, radius: float, epsilon: float) -> Iterator[FloatArray]:
    """Yields, for every state to be admitted, those up to L + ε/2, the law of the best way by those before it."""
    known = [mdp.initial_state]
    while True:
        others = [state for state in mdp.states if state not in known]
        paths = optimal_paths(mdp, others, allowed=known) if others else None
        near = [] if paths is None else [s for s in others if paths.steps(s) <= radius + epsilon / 2]
        if paths is None or not near:
            return
        for state in near:
            policy = paths.policy[others.index(state)]
            yield arrivals_of(mdp, policy, mdp.index_of(state), int(5 * (radius + epsilon)) + 20)
        known += near


def mean_steps(
    arrivals: FloatArray, forecast: EpisodeForecast, bound: float, bets: Bets, generator: np.random.Generator
) -> float:
    """Returns the mean steps of REPEATS tests, the RESET before every episode included."""
    horizon = forecast.horizon
    law = np.append(arrivals[: horizon + 1], max(1.0 - arrivals[: horizon + 1].sum(), 0.0))
    lengths = np.append(np.arange(horizon + 1), horizon) + 1
    gains = np.log1p(-np.outer(losses_if_slower(horizon, bound), bets.fractions))
    needed = -math.log(line_level(EPISODE_PART * DELTA, 1))
    logs, steps, over = np.tile(np.log(bets.weights), (REPEATS, 1)), np.zeros(REPEATS), np.zeros(REPEATS, dtype=bool)
    while not over.all():
        outcomes = generator.choice(len(law), (REPEATS, PART), p=law / law.sum())
        paths = logs[:, None, :] + gains[outcomes].cumsum(axis=1)
        proven = np.logaddexp.reduce(paths, axis=2) >= needed
        last = np.where(proven.any(axis=1), proven.argmax(axis=1), PART - 1)
        steps += np.where(over, 0, lengths[outcomes].cumsum(axis=1)[np.arange(REPEATS), last])
        over |= proven.any(axis=1)
        logs = paths[:, -1]
    return float(steps.mean())


def trials() -> list[Trial]:
    """Returns the worlds."""
    return [Trial({"world": name}, partial(_measured, name)) for name in WORLDS]


def _measured(name: str) -> Record:
    mdp, radius, epsilon = WORLDS[name]
    generator, totals, n_states = np.random.default_rng(0), np.zeros(4), 0
    for arrivals in admissions(mdp, radius, epsilon):
        forecast = forecast_horizon(arrivals, radius + epsilon)
        best = Bets(np.array([forecast.fraction]), np.ones(1))
        totals[0] += forecast.steps(-math.log(line_level(EPISODE_PART * DELTA, 1)))
        for column, bets in enumerate((best, focused_bets(forecast.fraction), spread_bets()), start=1):
            totals[column] += mean_steps(arrivals, forecast, radius + epsilon, bets, generator)
        n_states += 1
    return {"states": n_states, **dict(zip(COLUMNS, totals.round().tolist(), strict=True))}


def summary(records: Sequence[Record]) -> Table:
    """Returns a row for each world."""
    return Table(STUDY.name, "Steps that tests by episodes take to admit all states", list(records))


STUDY: Final = Study("episode-tests", "steps that tests by episodes take to admit all states", trials, summary)
