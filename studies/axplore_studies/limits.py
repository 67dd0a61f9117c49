"""The least steps that any algorithm needs on the worlds of the tables, and how close ours come to it.

Every bound is found in a fixed number of rounds, so that the numbers are the same every time and everywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from axplore.errors import DamagedFileError
from axplore.worlds.catalogue import known_model
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.lower_bounds import lower_bound
from axplore_studies.lower_bounds.printing import alternatives_as_json
from axplore_studies.outputs import Table
from axplore_studies.paper.experiments import CHAIN, CHAIN_EPSILONS, GRID, LOCK

NAME: Final = "limits"
LIMITS_FILE: Final = f"{NAME}.json"
DELTA: Final = 0.1
ROUNDS: Final = 40


@dataclass(frozen=True)
class LimitedWorld:
    """A world with the precision for which its steps are bounded.

    Attributes:
        world: its name.
        radius: L.
        epsilon: ε.
        parameters: those that differ from the world's defaults, as (name, value).
    """

    world: str
    radius: float
    epsilon: float
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def place(self) -> str:
        """The world with its parameters, as text."""
        parameters = ", ".join(f"{name} {value:g}" for name, value in self.parameters)
        return f"{self.world} ({parameters})" if parameters else self.world


def _grid(size: int, slip: float, radius: float) -> LimitedWorld:
    return LimitedWorld(GRID, radius, 1.0, (("rows", size), ("columns", size), ("slip", slip)))


WORLDS: Final = (
    *(LimitedWorld(CHAIN, 4.5, epsilon) for epsilon in CHAIN_EPSILONS),
    LimitedWorld(LOCK, 2.7, 0.2),
    _grid(4, 0.2, 6),
    _grid(6, 0.2, 8),
    _grid(6, 0.0, 8),
    LimitedWorld("gym:FrozenLake-v1", 8, 1.0),
)


def trials() -> list[Trial]:
    """Returns the searches, one for each world."""
    return [
        Trial(
            {"domain": one.place, "radius": one.radius, "epsilon": one.epsilon, "delta": DELTA}, partial(_bounded, one)
        )
        for one in WORLDS
    ]


def summary(records: Sequence[Record]) -> Table:
    """Returns the table, with the number of alternatives in place of the alternatives."""
    title = f"The least expected steps of any algorithm that meets AX*, delta = {DELTA:g}"
    return Table(NAME, title, [{**record, "alternatives": len(record["alternatives"])} for record in records])


def with_limits(table: Table, path: Path) -> Table:
    """Returns the table with the limit and the ratio of the steps to it, where a file of limits has one.

    Args:
        table: a table with the columns domain, radius, epsilon and mean in its rows; its lines are in the same order.
        path: the file of a table of limits; if it does not exist, the table is returned unchanged.
    """
    if not path.exists():
        return table
    try:
        limits = {_key(row): float(row["limit"]) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{path} is not a table of limits: {error}; make it again") from None
    rows, lines = [], []
    for row, line in zip(table.rows, table.lines or [{} for _ in table.rows], strict=True):
        limit = limits.get(_key(row), math.nan)
        known = limit > 0
        ratio = row["mean"] / limit if known else math.nan
        rows.append({**row, "limit": limit if known else None, "ratio": round(ratio, 1) if known else None})
        shown = {"limit": f"{limit:,.0f}", "ratio": f"{ratio:,.1f}"} if known else {"limit": None, "ratio": None}
        lines.append({**line, **shown})
    return replace(table, rows=rows, lines=lines if table.lines else [])


def _bounded(one: LimitedWorld) -> Record:
    mdp = known_model(one.world, {name: str(value) for name, value in one.parameters})
    found = lower_bound(mdp, one.radius, one.epsilon, DELTA, seconds=math.inf, rounds=ROUNDS)
    return {
        "objective": found.objective.value,
        "limit": math.floor(10 * found.steps) / 10,  # a lower bound is rounded down
        "search_ended": found.finished,
        "alternatives": alternatives_as_json(found),
    }


def _key(row: dict[str, Any]) -> tuple[str, float, float]:
    return str(row["domain"]), float(row["radius"]), float(row["epsilon"])


STUDY: Final = Study(NAME, "the least steps of any algorithm on the worlds of the tables", trials, summary)
