"""Costs from a file: CSV with the columns state, action and cost, or JSON with a list of such objects.

States and actions are written as `axplore.atlas.naming` writes them. A line with the action RESET sets what RESET costs
everywhere; its state is left empty.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from axplore.atlas.files import storage_errors
from axplore.atlas.naming import RESET_TEXT, named, text_of
from axplore.errors import DamagedFileError, InvalidCostsError
from axplore.labels import decode_label
from axplore.mdp import Action, State

if TYPE_CHECKING:
    from axplore.atlas.atlas import Atlas

COLUMNS: Final = ("state", "action", "cost")


def read_costs(atlas: Atlas, path: Path) -> tuple[dict[tuple[State, Action], float], float]:
    """The table of costs in a file, and the cost of RESET, which is 1 unless the file says otherwise."""
    table: dict[tuple[State, Action], float] = {}
    reset_cost = 1.0
    for number, line in enumerate(_lines(path), start=1):
        missing = [column for column in COLUMNS if line.get(column) is None]
        if missing:
            raise DamagedFileError(f"{path}, entry {number}: there is no {missing[0]}; it needs {', '.join(COLUMNS)}")
        cost = _number(path, number, line["cost"])
        if line["action"] == RESET_TEXT:
            if line["state"] not in ("", "*"):
                raise InvalidCostsError(
                    f"{path}, entry {number}: RESET costs the same everywhere; leave its state empty"
                )
            reset_cost = cost
            continue
        state = named(atlas.states, _as_text(line["state"]), "state of the atlas")
        action = named(atlas.actions[atlas.places[state]], _as_text(line["action"]), f"action of {text_of(state)}")
        if (state, action) in table:
            raise InvalidCostsError(
                f"{path}, entry {number}: {text_of(state)} and {text_of(action)} have a cost already"
            )
        table[state, action] = cost
    return table, reset_cost


def _lines(path: Path) -> Iterable[Mapping[str, Any]]:
    with storage_errors(f"the costs cannot be read from {path}"):
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
        if path.suffix.lower() != ".json":
            return list(csv.DictReader(text.splitlines(keepends=True), strict=True))
        lines = json.loads(text)
    except (ValueError, csv.Error) as error:
        raise DamagedFileError(f"{path} cannot be read: {error}") from None
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise DamagedFileError(f"{path} must hold a list of objects with {', '.join(COLUMNS)}")
    return lines


def _as_text(label: Any) -> str:
    """A label of a JSON file, or the text of one, as text."""
    return label if isinstance(label, str) else text_of(decode_label(label))


def _number(path: Path, number: int, cost: Any) -> float:
    try:
        return float(cost)
    except (TypeError, ValueError):
        raise InvalidCostsError(f"{path}, entry {number}: the cost is {cost!r}, which is no number") from None
