"""Transitions and policies as tables: columns by name, written as CSV or Parquet.

Labels are written as `text_of` writes them, so that they can be read back exactly with `label_of`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from axplore.atlas.atlas import Atlas
from axplore.errors import AxploreError
from axplore.export.model import learned
from axplore.labels import label_of, text_of
from axplore.types import RESET

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""Of equal length, by name."""

FORMULA_STARTS: Final = ("=", "+", "-", "@")


def transitions(atlas: Atlas) -> Columns:
    """Every transition met; with bounds of its probability if the atlas is proven."""
    model = learned(atlas)
    rows = [
        (state, choice, move)
        for state, choices in zip(model.states, model.choices, strict=True)
        for choice in choices
        if choice.action is not RESET
        for move in choice.moves
    ]
    columns: dict[str, Sequence[Any]] = {
        "state": [text_of(state) for state, _, _ in rows],
        "action": [text_of(choice.action) for _, choice, _ in rows],
        "successor": [text_of(model.states[move.target]) for _, _, move in rows],
        "count": [move.count for _, _, move in rows],
        "visits": [move.visits for _, _, move in rows],
        "frequency": [move.frequency for _, _, move in rows],
    }
    if atlas.proven:
        columns["lower"] = [move.low for _, _, move in rows]
        columns["upper"] = [move.high for _, _, move in rows]
    return columns


def policies(atlas: Atlas) -> Columns:
    """What the policy to each state of the atlas plays in each of them; with the step where it depends on it."""
    rows = []
    for goal in atlas.states:
        policy = atlas.policy(goal)
        for step in (None,) if policy.horizon is None else range(policy.horizon):
            rows += [(goal, state, policy(state, step), step) for state in atlas.states if state != goal]
    columns: dict[str, Sequence[Any]] = {
        "goal": [text_of(goal) for goal, _, _, _ in rows],
        "state": [text_of(state) for _, state, _, _ in rows],
        "action": [text_of(action) for _, _, action, _ in rows],
    }
    if any(step is not None for _, _, _, step in rows):
        columns["step"] = [step for _, _, _, step in rows]
    return columns


def as_csv(columns: Columns) -> str:
    """The table as CSV: fields with commas, quotes or line ends are quoted.

    Spreadsheets run text that begins like a formula. Such a label is written as its JSON text, which begins with a
    quotation mark, and `label_of` reads it back all the same.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_without_formula(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def _without_formula(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and label_of(cell) == cell:
        return json.dumps(cell)
    return cell


def as_parquet(columns: Columns) -> bytes:
    """The table as Parquet. pyarrow has to be installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise AxploreError("pyarrow is not installed; `pip install pyarrow`, or use --format csv") from None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(columns)), sink)
    return bytes(sink.getvalue().to_pybytes())
