"""What assumptions save where they are true, and how soon they are noticed where they are false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axplore.atlas.verification import verify
from axplore.experiments.paper import CHAIN, GRID
from axplore.experiments.result_tables import Table
from axplore.explorers.base import StopReason
from axplore.exploring import explore
from axplore.mdp import TabularMdp
from axplore.statistics.summaries import estimate
from axplore.truth import controllable_states
from axplore.worlds.catalogue import known_model

SEEDS: Final = 20


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
    """

    world: str
    radius: float
    epsilon: float
    assume: str
    holds: bool
    parameters: tuple[tuple[str, float], ...] = ()

    def model(self) -> TabularMdp:
        """Returns the model behind the world."""
        return known_model(self.world, dict(self.parameters))


def _grid(size: int, slip: float, radius: float, assume: str) -> AssumedWorld:
    parameters = (("rows", size), ("columns", size), ("slip", slip))
    return AssumedWorld(GRID, radius, 1.0, assume, holds=slip == 0, parameters=parameters)


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
)


def assumptions_table(out: Path, on_done: Callable[[int, int], None] | None = None) -> Table:
    """Explores each of the worlds under its assumption, saves the table, and returns it.

    Args:
        out: the folder for the table.
        on_done: called with the finished and the total number of worlds.
    """
    rows = []
    for number, one in enumerate(WORLDS, start=1):
        rows.append(_row(one))
        if on_done is not None:
            on_done(number, len(WORLDS))
    title = f"The certified explorer under assumptions, delta = 0.1, {SEEDS} seeds"
    table = Table("assumptions", title, rows, source="")
    table.save(out)
    return table


def _row(one: AssumedWorld) -> dict[str, Any]:
    mdp = one.model()
    inner, outer = (set(controllable_states(mdp, radius).states) for radius in (one.radius, one.radius + one.epsilon))
    atlases = [
        explore(mdp, one.radius, one.epsilon, assume=one.assume, seed=seed, doctor=False) for seed in range(SEEDS)
    ]
    noticed = [atlas for atlas in atlases if atlas.stop is StopReason.ASSUMPTION_CONTRADICTED]
    steps = estimate([atlas.steps for atlas in atlases])
    parameters = ", ".join(f"{name} {value:g}" for name, value in one.parameters)
    return {
        "world": f"{one.world} ({parameters})" if parameters else one.world,
        "radius": one.radius,
        "epsilon": one.epsilon,
        "assumed": one.assume,
        "true": one.holds,
        "steps": round(steps.mean, 1),
        "most_steps": max(atlas.steps for atlas in atlases),
        "noticed": len(noticed),
        "steps_to_notice": round(estimate([atlas.steps for atlas in noticed]).mean, 1) if noticed else None,
        "right": sum(atlas.complete and inner <= set(atlas.states) <= outer for atlas in atlases),
        "verified": sum(verify(atlas).complete for atlas in atlases),
    }
