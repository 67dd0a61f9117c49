"""What assumptions save where they are true, and how soon they are noticed where they are false."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import numpy as np

from axplore.assumptions import Assumptions
from axplore.atlas import Atlas
from axplore.atlas.verification import verify
from axplore.domains import GridTies, slippery_grid
from axplore.exploring import explore
from axplore.mdp import TabularMdp
from axplore.records.run import StopReason
from axplore.statistics.summaries import estimate
from axplore.truth import ACCURACY, controllable_states, optimal_steps
from axplore.types import Action, State
from axplore.worlds.catalogue import known_model
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table
from axplore_studies.paper.experiments import CHAIN, GRID

SEEDS: Final = 20
MODELS: Final = 50
"""The number of random models of each kind, and of their states."""

N_STATES: Final = 8
GROUPED_BY: Final = ("world", "radius", "epsilon", "assumed", "true")
DELTA: Final = 0.1


@dataclass(frozen=True)
class AssumedWorld:
    """A world that is explored under an assumption.

    Attributes:
        world: its name.
        radius: L.
        epsilon: ε.
        assume: what is assumed.
        holds: whether that is true of it.
        parameters: of the world.
        runs: the usual number of runs.
    """

    world: str
    radius: float
    epsilon: float
    assume: str | Assumptions
    holds: bool
    parameters: tuple[tuple[str, float], ...] = ()
    runs: int = SEEDS

    @property
    def name(self) -> str:
        """The name of the world with its parameters."""
        parameters = ", ".join(f"{name} {value:g}" for name, value in self.parameters)
        return f"{self.world} ({parameters})" if parameters else self.world

    def model(self, seed: int) -> TabularMdp:
        """Returns the model behind the world; the same for every seed."""
        del seed
        return known_model(self.world, dict(self.parameters))


@dataclass(frozen=True)
class RandomModels(AssumedWorld):
    """Random models of which an assumption is true, a new one for each seed.

    Attributes:
        make: makes the model of a seed.
    """

    make: Callable[[int], TabularMdp] = slippery_grid

    def model(self, seed: int) -> TabularMdp:
        """Returns the model of a seed."""
        return self.make(seed)


def _grid(size: int, slip: float, radius: float, assume: str) -> AssumedWorld:
    parameters = (("rows", size), ("columns", size), ("slip", slip))
    return AssumedWorld(GRID, radius, 1.0, assume, holds=slip == 0, parameters=parameters)


def _tied_grid(size: int, slip: float, radius: float, *, predicted: bool, runs: int = SEEDS) -> AssumedWorld:
    parameters = (("rows", size), ("columns", size), ("slip", slip))
    return AssumedWorld(GRID, radius, 1.0, _ties(size, predicted), holds=True, parameters=parameters, runs=runs)


def _ties(size: int, predicted: bool) -> Assumptions:
    floor = GridTies(rows=size, columns=size)
    return Assumptions(tied=floor.outcome_of, leads_to=floor.leads_to if predicted else None)


def _random_model(seed: int, most_outcomes: int) -> TabularMdp:
    """Eight states with two actions; probabilities are tenths."""
    rng = np.random.default_rng(seed)
    rows: dict[State, dict[Action, dict[State, float]]] = {}
    for state in range(N_STATES):
        rows[state] = {}
        for action in ("a", "b"):
            cuts = np.sort(rng.choice(np.arange(1, 10), size=rng.integers(0, most_outcomes), replace=False))
            tenths = np.diff([0, *cuts, 10])
            successors = rng.choice(N_STATES, size=len(tenths), replace=False)
            rows[state][action] = {int(s): int(n) / 10 for s, n in zip(successors, tenths, strict=True)}
    return TabularMdp.from_rows(rows, 0)


def _certain_model(seed: int) -> TabularMdp:
    return _random_model(seed, 1)


def _model_of_tenths(seed: int) -> TabularMdp:
    return _random_model(seed, 3)


def _slippery_floor(seed: int) -> TabularMdp:
    rng = np.random.default_rng(seed)
    return slippery_grid(3, 3, slip=float(rng.uniform(0.05, 0.5)), start=(int(rng.integers(3)), int(rng.integers(3))))


def _uneven_floor(seed: int) -> TabularMdp:
    """A floor that slips three times as often in its right half."""
    del seed
    left, right = (slippery_grid(6, 6, slip=slip) for slip in (0.2, 0.6))
    rows = {
        state: {action: (left if state[1] < 3 else right).row(state, action) for action in left.actions_of(state)}
        for state in (cast(tuple[int, int], state) for state in left.states)
    }
    return TabularMdp.from_rows(rows, (0, 0))


WORLDS: Final = (
    _grid(6, 0, 8, "deterministic"),
    _grid(20, 0, 20, "deterministic"),
    AssumedWorld("gym:FrozenLake-v1", 8, 1, "min-probability=0.33", holds=True),
    AssumedWorld(CHAIN, 4.5, 0.1, "min-probability=0.15", holds=True),
    _grid(6, 0.2, 8, "deterministic"),
    _grid(6, 0.05, 8, "deterministic"),
    _grid(6, 0.01, 8, "deterministic"),
    _grid(6, 0.2, 8, "min-probability=0.2"),
    _grid(6, 0.2, 8, "min-probability=0.15"),
    _tied_grid(6, 0.2, 8, predicted=False),
    _tied_grid(6, 0.2, 8, predicted=True),
    _tied_grid(20, 0.1, 15, predicted=True, runs=5),
    RandomModels("floor slips more to the right", 8, 1, _ties(6, False), holds=False, make=_uneven_floor, runs=10),
    RandomModels("random, one outcome", 4, 0.5, "deterministic", holds=True, make=_certain_model, runs=MODELS),
    RandomModels("random, tenths", 4, 0.5, "min-probability=0.1", holds=True, make=_model_of_tenths, runs=MODELS),
    RandomModels("random slippery 3x3", 3, 1, _ties(3, False), holds=True, make=_slippery_floor, runs=MODELS),
    RandomModels("random slippery 3x3", 3, 1, _ties(3, True), holds=True, make=_slippery_floor, runs=MODELS),
)


def trials(seeds: int | None = None) -> list[Trial]:
    """Returns the runs on each of the worlds under its assumption; the usual number of runs differs between them."""
    return [
        Trial(
            {"world": one.name, "radius": one.radius, "epsilon": one.epsilon, "assumed": str(one.assume), "seed": seed},
            partial(_explored, one, seed),
        )
        for one in WORLDS
        for seed in range(seeds or one.runs)
    ]


def _explored(one: AssumedWorld, seed: int) -> Record:
    mdp = one.model(seed)
    atlas = explore(mdp, one.radius, one.epsilon, DELTA, assume=one.assume, seed=seed, doctor=False)
    return {
        "true": one.holds,
        "steps": atlas.steps,
        "noticed": atlas.stop is StopReason.ASSUMPTION_CONTRADICTED,
        "right": _is_right(one, mdp, atlas),
        "verified": verify(atlas).complete,
    }


def summary(records: Sequence[Record]) -> Table:
    """Returns a row for each world and assumption."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in GROUPED_BY), []).append(record)
    title = f"The certified explorer under assumptions, delta = {DELTA}"
    rows = [dict(zip(GROUPED_BY, group, strict=True)) | _counted(runs) for group, runs in groups.items()]
    return Table(STUDY.name, title, rows)


def _counted(runs: Sequence[Record]) -> dict[str, Any]:
    noticed = [run["steps"] for run in runs if run["noticed"]]
    return {
        "runs": len(runs),
        "steps": round(estimate([run["steps"] for run in runs]).mean, 1),
        "most_steps": max(run["steps"] for run in runs),
        "noticed": len(noticed),
        "steps_to_notice": round(estimate(noticed).mean, 1) if noticed else None,
        "right": sum(run["right"] for run in runs),
        "verified": sum(run["verified"] for run in runs),
    }


def _is_right(one: AssumedWorld, mdp: TabularMdp, atlas: Atlas) -> bool:
    """Whether an atlas is complete, nothing is missing or too much in it, and every bound holds."""
    inner, outer = (set(controllable_states(mdp, radius).states) for radius in (one.radius, one.radius + one.epsilon))
    if not (atlas.complete and inner <= set(atlas.states) <= outer):
        return False
    steps = {state: optimal_steps(mdp, state, atlas.states) for state in atlas.states}
    bounds = {state: atlas.bounds(state) for state in atlas.states}
    return all(
        bounds[state].lower - ACCURACY <= steps[state] <= bounds[state].upper + ACCURACY for state in atlas.states
    )


STUDY: Final = Study(
    "assumptions",
    "what assumptions save, and how soon false ones are noticed",
    trials,
    summary,
    counted="runs on each world",
)
