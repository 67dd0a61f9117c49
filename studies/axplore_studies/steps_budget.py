"""Where the steps of the certified explorer go: how many draws its region costs, made sharper one step at a time.

At the end of a run the draws are what they are. For every goal, the study asks by which factor all of them could be
divided if the lower bound of its steps were to stay as it is and the region were less honest: if its level were not
divided among rows (`one level`); if in addition nobody looked before the end (`one look`); or if the errors of all rows
on the way had to share one budget, instead of each row being at its worst at once. Of that there are three kinds. In a
*joint ball* every row pays for its own bets, as in a product of the martingales of rows that were named beforehand;
with *one functional* a single number is bet on, which is the most that one martingale per claim could bring; and with
one *for every choice* of an action in each state, which a claim about all policies needs, every state on the way pays
the logarithm of its number of actions. Terms of second order are included, since the bound of each split of a budget is
computed in full. What is left out flatters the joint ones: rows and weights have to be chosen before the draws that
they serve, and states off the adversary's way pay as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from axplore.domains import domain
from axplore.explorers.certified import Certified
from axplore.proofs.bounds import GoalValues, IntervalModel, empirical_path, lower_path
from axplore.proofs.row_kernels import extreme_row, lower_backup
from axplore.proofs.sensitivity import NOWHERE, expected_visits
from axplore.target import Target
from axplore.types import RESET_PAIR, FloatArray
from axplore.worlds.catalogue import named_world
from axplore.worlds.contract import World
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table
from axplore_studies.systems.made_models import protocol

DELTA: Final = 0.1
BEYOND: Final = 3.0
"""Frontier states that look farther than the radius by more than this are ruled out by the way, and not asked for."""

SPLITS: Final = 25
"""How often the split of a joint budget is improved, in favour of whoever wants the bound to be low."""

FUNCTIONAL: Final = 6.3
"""The nats of one functional: ln(1/δ), 2.5 for the number of claims and 1.5 for not knowing its variance."""

CLAIMS: Final = 6.0
OWN_BETS: Final = 1.3
"""The nats of a joint ball: those of its claim, and for each further successor of a row on the way ½ ln(1 + n/κ)."""

CERTAIN: Final = 0.3
"""In place of the number of further successors, of a row that has shown one."""

Deficit = Callable[[float], float]


@dataclass(frozen=True)
class BudgetCase:
    """What to explore."""

    made: Callable[[int], World]
    radius: float
    epsilon: float


def _simulated(name: str, **parameters: float) -> Callable[[int], World]:
    return lambda seed: SimulatedWorld(domain(name, **parameters), seed)


CASES: Final = {
    "confusing-chain, ε 0.1": BudgetCase(_simulated("confusing-chain"), 4.5, 0.1),
    "confusing-chain, ε 0.8": BudgetCase(_simulated("confusing-chain"), 4.5, 0.8),
    "combination-lock, ε 0.2": BudgetCase(_simulated("combination-lock"), 2.7, 0.2),
    "slippery-grid 4×4, ε 1": BudgetCase(_simulated("slippery-grid", rows=4, columns=4), 6.0, 1.0),
    "protocol of 40 states, ε 1": BudgetCase(lambda seed: SimulatedWorld(protocol(0), seed), 8.0, 1.0),
    "FrozenLake, ε 1": BudgetCase(lambda seed: named_world("gym:FrozenLake-v1", seed, {}), 8.0, 1.0),
}

VARIANTS: Final = ("one level", "one look", "joint ball", "for every choice", "one functional")


def trials(runs: int = 3) -> list[Trial]:
    """Returns the explorations whose draws are examined."""
    return [
        Trial({"world": name, "seed": seed}, partial(_examined, name, seed)) for name in CASES for seed in range(runs)
    ]


def _examined(name: str, seed: int) -> Record:
    """Explores a world, and finds the factors of each goal."""
    case = CASES[name]
    explorer, world = Certified(target=Target(radius=case.radius, epsilon=case.epsilon, delta=DELTA)), case.made(seed)
    state = explorer.start(world)
    while state.stop is None:
        state = explorer.advance(state, world)
    model = explorer.model(state)
    near = np.flatnonzero(model.frontier_steps <= case.radius + BEYOND) + model.n_known
    goals = [*range(1, model.n_known), *near.tolist()]
    factors = [found for goal in goals if (found := _factors(model, int(goal))) is not None]
    steps = world.steps
    world.close()
    return {"steps": steps, "factors": factors}


def _factors(model: IntervalModel, goal: int) -> dict[str, float] | None:
    """By what all draws could be divided, by variant; None for a goal whose lower bound has nothing to gain."""
    sharp = model.rows_for(goal, -1.0)
    deficit, _ = _deficit(model, goal, sharp.slack, sharp.shares)
    if deficit < 1e-3 or model.log_levels is None:
        return None
    nats = np.minimum(sharp.slack, 1e6) * model.visits
    whole = math.log(DELTA)
    ask: dict[str, Deficit] = {
        "one level": partial(_by_rows, model, goal, np.maximum(nats + model.log_levels - whole, 0.1)),
        "one look": partial(_by_rows, model, goal, np.full(model.n_pairs, -whole)),
        "joint ball": partial(_jointly, model, goal, CLAIMS, _own_bets(model)),
        "for every choice": partial(_jointly, model, goal, FUNCTIONAL, _choices(model)),
        "one functional": partial(_jointly, model, goal, FUNCTIONAL, np.zeros(model.n_pairs)),
    }
    return {name: round(_greatest_factor(ask[name], deficit), 3) for name in VARIANTS}


def _own_bets(model: IntervalModel) -> FloatArray:
    """The nats that each row pays for its own bets, [P]."""
    return OWN_BETS * np.maximum(np.diff(model.rows.row_offsets) - 1.0, CERTAIN)


def _choices(model: IntervalModel) -> FloatArray:
    """The logarithm of the number of actions of the state of each pair, [P]."""
    n_actions = np.diff(model.rows.state_pairs)
    logarithms: FloatArray = np.log(np.repeat(n_actions, n_actions))
    return logarithms


def _greatest_factor(deficit_after: Deficit, deficit: float) -> float:
    """The factor by which draws can be divided until a bound lacks as much as it does."""
    low, high = 0.02, 100.0
    for _ in range(14):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if deficit_after(middle) < deficit else (low, middle)
    return low


def _by_rows(model: IntervalModel, goal: int, nats: FloatArray, factor: float) -> float:
    """What the lower bound lacks with fewer draws, if each row may be at its worst."""
    return _deficit(model, goal, nats * factor / model.visits, model.rows.frequencies)[0]


def _jointly(model: IntervalModel, goal: int, shared: float, own: FloatArray, factor: float) -> float:
    """What it lacks if all rows share a budget, to which each one used adds its own, split as is worst for it.

    What a row adds is about the root of its part b of the budget, with the slope g. So b should be in proportion to
    g² b; a few rounds of that find a split, and the worst of those tried counts.
    """
    draws = model.visits / factor
    policy = empirical_path(model, goal).policy
    parts, worst = np.zeros(model.n_pairs), 0.0
    parts[policy[policy != RESET_PAIR]] = 1.0
    for _ in range(SPLITS):
        parts *= (shared + own[parts > 0.0].sum()) / parts.sum()
        lacking, slopes = _deficit(model, goal, parts / draws, model.rows.frequencies)
        worst = max(worst, lacking)
        better = (slopes / draws) ** 2 * np.where(parts > 0.0, parts, 1e-3)
        better[better < 1e-4 * better.max()] = 0.0
        if not better.any():
            break
        better *= parts.sum() / better.sum()
        parts = (parts + better) / 2
        parts[parts < 1e-6] = 0.0
    return worst


def _deficit(model: IntervalModel, goal: int, slack: FloatArray, shares: FloatArray) -> tuple[float, FloatArray]:
    """By how much a lower bound is below the estimate, and its derivative by the slack of each pair, [P]."""
    rows = model.rows._replace(shares=shares, slack=np.maximum(slack, 1e-12))
    estimate = empirical_path(model, goal)
    path = lower_path(replace(model, rows=rows, counts=None, starts={}, sharp={}), goal, estimate.values)
    return estimate.steps - path.steps, _slopes(model, replace(model, rows=rows), path)


def _slopes(model: IntervalModel, within: IntervalModel, path: GoalValues) -> FloatArray:
    row, weights = np.zeros(len(model.rows.shares)), np.zeros(model.n_pairs)
    plays = [int(pair) for state, pair in enumerate(path.policy) if state != path.goal and pair != RESET_PAIR]
    for pair in plays:
        _, weight, shift = lower_backup(within.rows, pair, path.values)
        extreme_row(within.rows, pair, path.values, 0.0, -1.0, weight, shift, row)
        weights[pair] = abs(weight)
    nowhere = np.zeros(model.n_known, dtype=np.int64)
    met = expected_visits(within.rows, path.goal, path.policy, row, NOWHERE, nowhere, model.start())
    slopes = np.zeros(model.n_pairs)
    played = path.policy != RESET_PAIR
    slopes[path.policy[played]] = met[played] * weights[path.policy[played]]
    return slopes


def summary(records: Sequence[Record]) -> Table:
    """Returns the middle factor of all goals, and those of the tenth with the least and the most to gain."""
    rows, lines = [], []
    for world in CASES:
        of_world = [record for record in records if record["world"] == world]
        factors = [found for record in of_world for found in record["factors"]]
        steps = float(np.mean([record["steps"] for record in of_world]))
        spread = {name: np.quantile([found[name] for found in factors], (0.1, 0.5, 0.9)) for name in VARIANTS}
        shared = {"world": world, "runs": len(of_world), "goals": len(factors)}
        rows.append(
            {**shared, "steps": round(steps), **{name: np.round(found, 2).tolist() for name, found in spread.items()}}
        )
        told = {name: f"{middle:.2f} ({least:.2f} to {most:.2f})" for name, (least, middle, most) in spread.items()}
        lines.append({**shared, "steps": f"{steps:,.0f}", **told})
    title = (
        "By what the draws for lower bounds could be divided if the region were sharper: the middle goal, and tenths"
    )
    return Table(STUDY.name, title, rows, lines)


STUDY: Final = Study(
    "steps-budget",
    "where the steps of the certified explorer go: its region made sharper step by step",
    trials,
    summary,
    counted="explorations of each world",
)
