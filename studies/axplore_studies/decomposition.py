"""What the steps of the certified explorer are made of, from the least of any algorithm to its own, factor by factor.

An oracle (`oracle.py`) that knows the model proves the same claims in the fewest steps that are found. Its region is as
honest as it has to be, then has the whole δ for every row, then is looked at once, then has only the information that
any algorithm needs, and then shares that among all rows (`joint_ball.py`). The quotients say what the union over rows,
looking at any time, a proof in place of an expectation, and rows that may all be at their worst at once cost. What is
left down to the limit is that this is an answer, where the limit asks for any. Above the oracle stand the explorer by
draws alone, which pays for not knowing the model, and with episodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from axplore.domains import domain
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.target import Target
from axplore.types import FloatArray, State
from axplore.worlds.catalogue import known_model
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.joint_ball import JointBall
from axplore_studies.limits import ROUNDS
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.lower_bounds import lower_bound
from axplore_studies.lower_bounds.programme import needed_information
from axplore_studies.oracle import INFORMATION, ONE_LEVEL, ONE_LOOK, REGION, REGIONS, Allocation, Oracle
from axplore_studies.outputs import Table
from axplore_studies.systems.made_models import protocol

DELTA: Final = 0.1
LIMIT: Final = "limit"
ORACLE: Final = "oracle"
JOINT: Final = "joint ball"
DRAWS_ALONE: Final = "draws alone"
WITH_EPISODES: Final = "with episodes"
PARTS: Final = (LIMIT, JOINT, *REGIONS, DRAWS_ALONE, WITH_EPISODES)
"""From the least steps to those that the explorer takes."""


@dataclass(frozen=True)
class Case:
    """What to explore.

    Attributes:
        made: makes the model.
        radius: L.
        epsilon: ε.
    """

    made: Callable[[], TabularMdp]
    radius: float
    epsilon: float

    @property
    def target(self) -> Target:
        return Target(radius=self.radius, epsilon=self.epsilon, delta=DELTA)


def _grid(size: int) -> Callable[[], TabularMdp]:
    return partial(domain, "slippery-grid", rows=size, columns=size)


CASES: Final = {
    "confusing-chain, ε 0.1": Case(partial(domain, "confusing-chain"), 4.5, 0.1),
    "confusing-chain, ε 0.8": Case(partial(domain, "confusing-chain"), 4.5, 0.8),
    "combination-lock, ε 0.2": Case(partial(domain, "combination-lock"), 2.7, 0.2),
    "slippery-grid 4×4, ε 1": Case(_grid(4), 6.0, 1.0),
    "slippery-grid 6×6, ε 1": Case(_grid(6), 8.0, 1.0),
    "protocol of 40 states, ε 1": Case(partial(protocol, 0), 8.0, 1.0),
    "FrozenLake, ε 1": Case(partial(known_model, "gym:FrozenLake-v1", {}), 8.0, 1.0),
}

QUOTIENTS: Final = {
    "answer": (JOINT, LIMIT),
    "rows": (INFORMATION, JOINT),
    "proof": (ONE_LOOK, INFORMATION),
    "any time": (ONE_LEVEL, ONE_LOOK),
    "union": (REGION, ONE_LEVEL),
    "planning": (DRAWS_ALONE, REGION),
    "episodes": (WITH_EPISODES, DRAWS_ALONE),
}
"""What each quotient of the steps of two parts is the price of."""


def trials(runs: int = 20) -> list[Trial]:
    """Returns the limits, the oracles and the explorations."""
    return [
        Trial({"world": world, "by": by, "seed": seed}, work, weight=float(by == ORACLE))
        for world, case in CASES.items()
        for by, seed, work in _trials_of(case, runs)
    ]


def _trials_of(case: Case, runs: int) -> Iterable[tuple[str, int, Callable[[], Record]]]:
    yield LIMIT, 0, partial(_limit, case)
    yield ORACLE, 0, partial(_by_oracle, case)
    for part, by_episodes in ((DRAWS_ALONE, False), (WITH_EPISODES, True)):
        for seed in range(runs):
            yield part, seed, partial(_explored, case, seed, part, by_episodes)


def _limit(case: Case) -> Record:
    found = lower_bound(case.made(), case.radius, case.epsilon, DELTA, seconds=math.inf, rounds=ROUNDS)
    return {"steps": {LIMIT: round(found.steps, 1)}}


def _by_oracle(case: Case) -> Record:
    """The oracle admits what an explorer did, in its order: states beyond L may be admitted or not."""
    mdp = case.made()
    _, known = _explore(case, mdp, 0, by_episodes=False)
    least = least_of_oracles(mdp, known, case.target)
    return {"steps": {part: round(found.steps, 1) for part, found in least.items()}}


def least_of_oracles(mdp: TabularMdp, known: Sequence[State], target: Target) -> dict[str, Allocation]:
    """Returns the best draws by region, the least honest one first; each search begins with the one before, too."""
    least: dict[str, Allocation] = {}
    before: list[FloatArray] = []
    for region in REGIONS:
        oracle = Oracle(mdp, known, target, region)
        found = oracle.best(before)
        if region == INFORMATION:
            least[JOINT] = JointBall(oracle, found, needed_information(target.delta)).best()
        least[region] = found
        before = [found.draws]
    return least


def _explored(case: Case, seed: int, part: str, by_episodes: bool) -> Record:
    return {"steps": {part: _explore(case, case.made(), seed, by_episodes)[0]}}


def _explore(case: Case, mdp: TabularMdp, seed: int, by_episodes: bool) -> tuple[int, list[State]]:
    """The steps of an exploration, and what it admitted, in this order."""
    explorer, world = Certified(target=case.target, by_episodes=by_episodes), SimulatedWorld(mdp, seed)
    state = explorer.start(world)
    while state.stop is None:
        state = explorer.advance(state, world)
    return world.steps, [state.counts.order[number] for number in state.known]


def summary(records: Sequence[Record]) -> Table:
    """Returns the mean steps of each part, and the quotients."""
    rows, lines = [], []
    for world in dict.fromkeys(record["world"] for record in records):
        of_world = [record for record in records if record["world"] == world]
        steps = {part: _mean(of_world, part) for part in PARTS}
        quotients = {price: round(steps[part] / steps[base], 3) for price, (part, base) in QUOTIENTS.items()}
        runs = sum(record["by"] == DRAWS_ALONE for record in of_world)
        rows.append(
            {"world": world, "runs": runs}
            | {part: round(found, 1) for part, found in steps.items()}
            | {f"price of {price}": found for price, found in quotients.items()}
        )
        lines.append(
            {"world": world, LIMIT: f"{steps[LIMIT]:,.0f}"}
            | {price: f"{found:.2f}" for price, found in quotients.items()}
            | {"steps": f"{steps[WITH_EPISODES]:,.0f}"}
        )
    title = "What the steps of the certified explorer are made of: the limit, times what each of these costs"
    return Table(STUDY.name, title, rows, lines)


def _mean(records: Sequence[Record], part: str) -> float:
    return float(np.mean([record["steps"][part] for record in records if part in record["steps"]]))


STUDY: Final = Study(
    "decomposition",
    "what the steps of the certified explorer are made of, factor by factor",
    trials,
    summary,
    counted="explorations of each world",
)
