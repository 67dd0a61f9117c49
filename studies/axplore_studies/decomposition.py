"""What the steps of the certified explorer are made of, from the least of any algorithm to its own, factor by factor.

An oracle (`oracle.py`) that knows the model proves the same claims in the fewest steps that were found. Its region is
as honest as it has to be, then has the whole δ for every row, then is looked at once, and then has only the information
that any algorithm needs: the quotients say what the union over rows, looking at any time and a proof in place of an
expectation cost. What is left down to the limit is that every row may be at its worst at once, and what the limit is
too low. Above the oracle stand the explorer by draws alone, which pays for not knowing the model, and with episodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from axplore.domains import domain
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.target import Target
from axplore.types import State
from axplore.worlds.catalogue import known_model
from axplore.worlds.simulated import SimulatedWorld
from axplore_studies.limits import ROUNDS
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.lower_bounds import lower_bound
from axplore_studies.oracle import INFORMATION, ONE_LEVEL, ONE_LOOK, REGION, REGIONS, Oracle
from axplore_studies.outputs import Table
from axplore_studies.systems.made_models import protocol

DELTA: Final = 0.1
LIMIT: Final = "limit"
DRAWS_ALONE: Final = "draws alone"
WITH_EPISODES: Final = "with episodes"


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
    "rows at once": (INFORMATION, LIMIT),
    "proof": (ONE_LOOK, INFORMATION),
    "any time": (ONE_LEVEL, ONE_LOOK),
    "union": (REGION, ONE_LEVEL),
    "planning": (DRAWS_ALONE, REGION),
    "episodes": (WITH_EPISODES, DRAWS_ALONE),
}
"""What each quotient of the steps of two parts is the price of."""


def trials(runs: int = 10) -> list[Trial]:
    """Returns the limits, the oracles and the explorations."""
    return [
        Trial({"world": world, "part": part, "seed": seed}, work)
        for world, case in CASES.items()
        for part, seed, work in _parts(case, runs)
    ]


def _parts(case: Case, runs: int) -> Iterable[tuple[str, int, Callable[[], Record]]]:
    yield LIMIT, 0, partial(_limit, case)
    for region in REGIONS:
        yield region, 0, partial(_by_oracle, case, region)
    for part, by_episodes in ((DRAWS_ALONE, False), (WITH_EPISODES, True)):
        for seed in range(runs):
            yield part, seed, partial(_explored, case, seed, by_episodes)


def _limit(case: Case) -> Record:
    found = lower_bound(case.made(), case.radius, case.epsilon, DELTA, seconds=math.inf, rounds=ROUNDS)
    return {"steps": round(found.steps, 1)}


def _by_oracle(case: Case, region: str) -> Record:
    """The oracle admits what an explorer did, in its order: states beyond L may be admitted or not."""
    mdp = case.made()
    _, known = _explore(case, mdp, 0, by_episodes=False)
    return {"steps": round(Oracle(mdp, known, case.target, region).best().steps, 1)}


def _explored(case: Case, seed: int, by_episodes: bool) -> Record:
    return {"steps": _explore(case, case.made(), seed, by_episodes)[0]}


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
    for world in CASES:
        parts: dict[str, list[float]] = {}
        for record in records:
            if record["world"] == world:
                parts.setdefault(record["part"], []).append(record["steps"])
        steps = {part: sum(found) / len(found) for part, found in parts.items()}
        quotients = {price: steps[part] / steps[base] for price, (part, base) in QUOTIENTS.items()}
        whole = {"world": world, "runs": len(parts[DRAWS_ALONE])}
        rows.append(
            whole
            | {part: round(found, 1) for part, found in steps.items()}
            | {f"price of {price}": round(found, 3) for price, found in quotients.items()}
        )
        lines.append(
            {"world": world}
            | {LIMIT: f"{steps[LIMIT]:,.0f}"}
            | {price: f"× {found:.2f}" for price, found in quotients.items()}
            | {"= steps": f"{steps[WITH_EPISODES]:,.0f}"}
        )
    return Table(STUDY.name, "What the steps of the certified explorer are made of", rows, lines)


STUDY: Final = Study(
    "decomposition",
    "what the steps of the certified explorer are made of, factor by factor",
    trials,
    summary,
    counted="explorations of each world",
)
