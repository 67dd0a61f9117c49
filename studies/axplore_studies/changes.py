"""How often `diff` calls something changed between two runs of one system, and how often it finds real changes.

Pairs of runs of one random model, whole or ended early, must hardly ever differ. Pairs of a model and another in which
one row leads elsewhere show how large a change has to be for the draws that such runs make.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from axplore.atlas import Atlas
from axplore.atlas.row_changes import changed_rows
from axplore.exploring import explore
from axplore.mdp import TabularMdp
from axplore.statistics.summaries import proportion_interval
from axplore_studies.coverage_models import KINDS, case
from axplore_studies.loop import Record, Study, Trial
from axplore_studies.outputs import Table

DELTA: Final = 0.1
"""Of each run."""

ROW_LEVELS: Final = (0.01, 0.1, 0.5)
"""One minus the confidence of all changed actions together; with 0.5 a test that is not valid shows itself soonest."""

MOVED: Final = (0.0, 0.1, 0.3, 0.6)
"""The part of the first row's probability that leads elsewhere in the second model of a pair; 0: nothing changed."""

ENDED_EARLY: Final = 300
"""The step limit of every other run."""


def first_pair(mdp: TabularMdp) -> tuple[Any, Any]:
    """Returns the first action of the initial state, or of another state if that has none."""
    states = (mdp.initial_state, *mdp.states)
    return next((state, mdp.actions_of(state)[0]) for state in states if mdp.actions_of(state))


def moved(mdp: TabularMdp, part: float) -> TabularMdp:
    """Returns the model in which a part of its first row leads to another state."""
    start, first = first_pair(mdp)
    rows = {state: {a: dict(mdp.row(state, a)) for a in mdp.actions_of(state)} for state in mdp.states}
    row = {state: (1 - part) * p for state, p in rows[start][first].items()}
    elsewhere = min(mdp.states, key=lambda state: (row.get(state, 0.0), mdp.states.index(state)))
    row[elsewhere] = row.get(elsewhere, 0.0) + part
    rows[start][first] = {state: p for state, p in row.items() if p > 0}
    return TabularMdp.from_rows(rows, mdp.initial_state)


def mapped(mdp: TabularMdp, radius: float, seed: int, max_steps: int | None) -> Atlas:
    """Returns the atlas of a run."""
    return explore(
        mdp, radius=radius, epsilon=1.0, delta=DELTA, objective="within-radius", seed=seed, max_steps=max_steps,
        doctor=False,
    )  # fmt: skip


def run_trial(part: float, kind: str, seed: int) -> Record:
    """Compares two runs."""
    given = case(kind, seed)
    limit = ENDED_EARLY if seed % 2 else None
    old = mapped(given.mdp, given.radius, 2 * seed, None)
    new = mapped(given.mdp if part == 0 else moved(given.mdp, part), given.radius, 2 * seed + 1, limit)
    difference = old.diff(new)
    proven = [change for change in difference.changes if change.proven]
    found = {level: changed_rows(old, new, 1 - level) for level in ROW_LEVELS}
    pair = first_pair(given.mdp)
    return {
        "part": part, "kind": kind, "seed": seed, "proven": len(proven),
        "rows": {str(level): len(rows) for level, rows in found.items()},
        "found": any((row.state, row.action) == pair for row in found[ROW_LEVELS[0]]),
        "draws": min(_drawn(old, pair), _drawn(new, pair)),
    }  # fmt: skip


def _drawn(atlas: Atlas, pair: tuple[Any, Any]) -> int:
    return sum(atlas.successors(*pair).values()) if pair in atlas.pairs else 0


def trials(pairs: int = 1000) -> list[Trial]:
    """Returns the pairs of runs to compare: this many of one system, and a tenth of them for each change."""
    made = []
    for part in MOVED:
        for number in range(pairs if part == 0 else pairs // 10):
            seed, kind = divmod(number, len(KINDS))
            address = {"part": part, "kind": list(KINDS)[kind], "seed": seed}
            made.append(Trial(address, partial(run_trial, **address)))  # type: ignore[arg-type]
    return made


def summary(records: Sequence[Record]) -> Table:
    """Returns how many pairs of runs were found to differ."""
    rows: list[dict[str, Any]] = []
    for part in MOVED:
        group = [record for record in records if record["part"] == part]
        if not group:
            continue
        row: dict[str, Any] = {"part": part, "pairs": len(group)}
        for level in ROW_LEVELS:
            alarms = sum(record["rows"][str(level)] > 0 for record in group)
            row[f"rows_{level:g}"] = alarms
            row[f"rows_{level:g}_low"] = round(proportion_interval(alarms, len(group))[0], 5)
        row["states_proven"] = sum(record["proven"] > 0 for record in group)
        row["found"] = sum(record["found"] for record in group)
        row["median_draws"] = int(np.median([record["draws"] for record in group]))
        rows.append(row)
    unchanged = next((row for row in rows if row["part"] == 0), None)
    holds = unchanged is None or (
        all(unchanged[f"rows_{level:g}_low"] <= level for level in ROW_LEVELS)
        and proportion_interval(unchanged["states_proven"], unchanged["pairs"])[0] <= 2 * DELTA
    )
    title = "Pairs of runs that diff calls changed, of one system and of systems of which a part of one row has moved"
    return Table("changes", title, rows, holds=holds)


STUDY: Final = Study(
    "changes",
    "how often diff calls something changed where nothing is, and where something is",
    trials,
    summary,
    counted="pairs of runs of one system",
)
