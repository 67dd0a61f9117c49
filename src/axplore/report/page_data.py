"""What the page's script works with: the atlas as JSON, with large arrays packed."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from axplore.atlas import Atlas
from axplore.atlas.state_report import rounded_down
from axplore.atlas.table import state_rows
from axplore.labels import readable
from axplore.report.layout import Layout, shown_steps
from axplore.report.transitions import Transitions
from axplore.runs.history import Moment, thousandths
from axplore.types import RESET_ACTION, FloatArray, IntArray, Status

MAX_CHOICES: Final = 40_000_000
"""Policies with more choices than this in all are left out, from the last goals on."""

MOST_WITH_CHANCES: Final = 400
"""An atlas of more states than this has no bounds of its chances on the page but Markov's."""

CHANCE_STEPS: Final = 4
"""They are computed up to so many times the steps of a goal,"""

MOST_CHANCE_STEPS: Final = 200
"""and no farther than this."""

STATUSES: Final = tuple(Status)


def content_of(atlas: Atlas, transitions: Transitions, layout: Layout, moments: Sequence[Moment]) -> dict[str, Any]:
    """Everything that the map and the panel of a goal show. Columns have an item for each place."""
    rows = state_rows(atlas)
    distinct = {actions: number for number, actions in enumerate(dict.fromkeys(atlas.actions))}
    return {
        "radius": atlas.target.radius,
        "epsilon": atlas.target.epsilon,
        "proven": atlas.proven,
        "steps": atlas.steps,
        "members": len(atlas.states),
        "unseenLower": rounded_down(atlas.unseen_lower) if atlas.proven else None,
        "labels": [row.text("state") for row in rows],
        "statusNames": [status.value for status in STATUSES],
        "statuses": [STATUSES.index(status) for status in atlas.statuses],
        "reasons": [row.reason for row in rows],
        "lower": _finite(atlas.lower),
        "upper": _finite(atlas.upper),
        "shownSteps": _finite(shown_steps(atlas)),
        "lowerText": [row.text("lower") for row in rows],
        "upperText": [row.text("upper") for row in rows],
        "numbers": np.concatenate((atlas.numbers, atlas.left_out_numbers)).tolist(),
        "foundAt": atlas.found_at.tolist(),
        "visits": [row.visits for row in rows],
        "actionLists": [[readable(action) for action in actions] for actions in distinct],
        "actionListOf": [distinct[actions] for actions in atlas.actions],
        "layout": {
            "kind": layout.kind,
            "height": round(layout.height, 2),
            "size": round(layout.size, 2),
            "drawn": layout.drawn.tolist(),
            "x": np.round(layout.x, 2).tolist(),
            "y": np.round(layout.y, 2).tolist(),
            "rings": [(steps, round(radius, 2)) for steps, radius in layout.rings],
            "cells": layout.cells,
        },
        "statePairs": packed(transitions.state_pairs),
        "visitsOfPairs": packed(transitions.visits),
        "rowOffsets": packed(transitions.row_offsets),
        "successors": packed(transitions.successors),
        "counts": packed(transitions.counts),
        **_policies(atlas),
        **_chances(atlas),
        **_narrowing(moments),
    }


def as_json(content: dict[str, Any]) -> str:
    """JSON that may stand inside of an HTML script element, whatever the labels are."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def packed(array: npt.NDArray[Any]) -> dict[str, str]:
    """An array of whole numbers as text: compressed, in base 64."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    narrow = (kind for kind in ("int8", "int16", "int32") if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    name = next(narrow, "float64")
    content = np.ascontiguousarray(array, dtype=np.dtype(name).newbyteorder("<")).tobytes()
    return {"type": name, "data": base64.b64encode(zlib.compress(content, 6)).decode("ascii")}


def _policies(atlas: Atlas) -> dict[str, Any]:
    """What to play, for as many goals as there is room for: the horizon, 0 for none, and the width of each."""
    sizes = np.cumsum([policy.size for policy in atlas.policies])
    kept = atlas.policies[: int(np.searchsorted(sizes, MAX_CHOICES, side="right"))]
    choices = np.concatenate([np.empty(0, dtype=np.int64), *(policy.ravel() for policy in kept)])
    return {
        "horizons": [len(policy) if policy.ndim == 2 else 0 for policy in kept],
        "widths": [policy.shape[-1] for policy in kept],
        "choices": packed(choices),
        "reset": RESET_ACTION,
    }


def _chances(atlas: Atlas) -> dict[str, Any]:
    """Lower bounds, in thousandths, of the chances to arrive within 0, 1, ... steps, where they take little time."""
    lengths, found = [0] * len(atlas.states), [np.empty(0, dtype=np.int64)]
    if atlas.proven and len(atlas.states) <= MOST_WITH_CHANCES:
        for place, state in enumerate(atlas.states):
            steps = math.ceil(min(MOST_CHANCE_STEPS, CHANCE_STEPS * atlas.upper[place]))
            found.append(np.floor(1000 * atlas.probability(state, steps).lowers).astype(np.int64))
            lengths[place] = steps + 1
    return {"chanceLengths": lengths, "chances": packed(np.concatenate(found))}


def _narrowing(moments: Sequence[Moment]) -> dict[str, Any]:
    """The bounds over steps, for the curve of a goal."""
    over_steps = thousandths(moments)
    return {
        "boundSteps": over_steps["steps"],
        "boundKnown": over_steps["known"],
        "boundLower": packed(over_steps["lower"]),
        "boundUpper": packed(over_steps["upper"]),
    }


def _finite(values: FloatArray | IntArray) -> list[float | None]:
    """Numbers for JSON, which has no infinity."""
    return [value if math.isfinite(value) else None for value in _plain(values)]


def _plain(values: FloatArray | IntArray) -> Iterable[float]:
    plain: list[float] = values.tolist()
    return plain
