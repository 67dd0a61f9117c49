"""The least steps that any algorithm needs on the worlds of the tables, and how close ours come to it.

Every bound is found in a fixed number of rounds, so that the numbers are the same every time and everywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from axplore.errors import DamagedFileError
from axplore.experiments.paper import CHAIN, CHAIN_EPSILONS, GRID, LOCK
from axplore.experiments.result_tables import Table
from axplore.experiments.runner import read_lines
from axplore.labels import readable
from axplore.lower_bounds import LowerBound, lower_bound
from axplore.worlds.catalogue import known_model

LIMITS_FILE: Final = "limits.json"
RECORDS_FILE: Final = "limits.jsonl"
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


def limits_table(out: Path, on_done: Callable[[int, int], None] | None = None) -> Table:
    """Bounds the steps on each of the worlds, saves the table, and returns it.

    Finished bounds are stored in `limits.jsonl`, with the alternatives that they rest on; called again after an
    interruption, it resumes there.

    Args:
        out: the folder for the table.
        on_done: called with the finished and the total number of worlds.
    """
    path = out / RECORDS_FILE
    out.mkdir(parents=True, exist_ok=True)
    records = {_key(record): record for record in read_lines(path)}
    for number, one in enumerate(WORLDS, start=1):
        if (one.place, one.radius, one.epsilon) not in records:
            record = _record(one)
            records[_key(record)] = record
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        if on_done is not None:
            on_done(number, len(WORLDS))
    rows = [_row(records[one.place, one.radius, one.epsilon]) for one in WORLDS]
    title = f"The least expected steps of any algorithm that meets AX*, delta = {DELTA:g}"
    table = Table("limits", title, rows, source="")
    table.save(out)
    return table


def with_limits(table: Table, path: Path) -> Table:
    """Returns the table with the limit and the ratio of the steps to it, where a file of limits has one.

    Args:
        table: a table with the columns domain, radius, epsilon and mean in its rows; its lines are in the same order.
        path: a file that `limits_table` saved; if it does not exist, the table is returned unchanged.
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


def _record(one: LimitedWorld) -> dict[str, Any]:
    mdp = known_model(one.world, {name: str(value) for name, value in one.parameters})
    found = lower_bound(mdp, one.radius, one.epsilon, DELTA, seconds=math.inf, rounds=ROUNDS)
    return {
        "domain": one.place,
        "radius": one.radius,
        "epsilon": one.epsilon,
        "delta": DELTA,
        "objective": found.objective.value,
        "limit": math.floor(10 * found.steps) / 10,  # a lower bound is rounded down
        "search_ended": found.finished,
        "alternatives": alternatives_as_json(found),
    }


def alternatives_as_json(found: LowerBound) -> list[dict[str, Any]]:
    """Returns the alternatives that a bound rests on, with the changes of each, as JSON values."""
    return [
        {
            "kind": one.kind.value,
            "goal": readable(one.goal),
            "steps": round(one.steps, 3),
            "changes": [
                {
                    "state": readable(change.state),
                    "action": readable(change.action),
                    "divergence": float(f"{change.divergence:.4g}"),
                    "after": {readable(state): float(f"{chance:.6g}") for state, chance in change.after.items()},
                }
                for change in one.changes
            ],
        }
        for one in found.alternatives
    ]


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of the table, with the number of alternatives in place of the alternatives."""
    return {**record, "alternatives": len(record["alternatives"])}


def _key(row: dict[str, Any]) -> tuple[str, float, float]:
    return str(row["domain"]), float(row["radius"]), float(row["epsilon"])
