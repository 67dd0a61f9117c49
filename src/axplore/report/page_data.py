"""What the scripts of the page show: the atlas and its answers as JSON, with large arrays packed."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from axplore.atlas import Atlas
from axplore.atlas.journeys import estimated_chances, likeliest_places
from axplore.atlas.layout import MARGIN, WIDTH, Layout, shown_steps
from axplore.atlas.state_report import StateRow, can_be_relied_on, rounded_down
from axplore.labels import finite, readable
from axplore.report.charts import LOGARITHMIC_FROM
from axplore.runs.history import Moment, thousandths
from axplore.types import RESET_ACTION, FloatArray, IntArray, Status

MAX_CHOICES: Final = 40_000_000
"""Policies with more choices than this in all are left out, from the last goals on."""

MAX_FOLLOWED: Final = 100_000_000
"""So are likeliest ways and chances if following every policy once takes more transitions than this in all;"""

MAX_FOLLOWED_FOR_CHANCES: Final = 100_000_000
"""and all chances together follow no more transitions than this."""

MAX_STEPS_AHEAD: Final = 1000
"""Chances are computed up to this many steps,"""

SURE: Final = 1 - 1e-6
"""or until they are at least this,"""

MAX_SHOWN_STEPS: Final = 200
SURE_ENOUGH: Final = 0.9995
"""and shown up to this many, or until they are at least this."""

CHANCE_UNIT: Final = 10_000
"""Chances are whole numbers of this part."""

MAX_BOUNDED: Final = 400
"""An atlas of more states than this has no lower bounds of its chances on the page but Markov's."""

BOUNDED_STEPS: Final = 4
"""The others are computed up to this many times the steps of a goal."""

MAX_ROUTE: Final = 60
"""A likeliest way is shown up to this many states."""

LIMITS: Final = {
    "names": 300,  # no more states in view than this have their names
    "arrows": 400,  # and no more have arrows
    "listed": 500,  # states of a whole policy in words
    "suggested": 3000,  # labels that the search suggests
    "logarithmicFrom": LOGARITHMIC_FROM,
    "newsMilliseconds": 2000,
}

STATUSES: Final = tuple(Status)


def content_of(atlas: Atlas, layout: Layout, moments: Sequence[Moment], rows: Sequence[StateRow]) -> dict[str, Any]:
    """Returns everything that the scripts of the page show. Columns have an item for each place."""
    distinct = {actions: number for number, actions in enumerate(dict.fromkeys(atlas.actions))}
    policies, answers, over_steps = _policies(atlas), _answers(atlas), thousandths(moments)
    transitions, is_proven = atlas.transitions, can_be_relied_on(atlas)
    arrays = {
        "statePairs": transitions.state_pairs,
        "visits": transitions.visits,
        "rowOffsets": transitions.row_offsets,
        "successors": transitions.successors,
        "counts": transitions.counts,
        "boundLower": over_steps["lower"],
        "boundUpper": over_steps["upper"],
        **policies.arrays,
        **answers.arrays,
    }
    return {
        "radius": atlas.target.radius,
        "epsilon": atlas.target.epsilon,
        "proven": is_proven,
        "members": len(atlas.states),
        "unseenLower": rounded_down(atlas.unseen_lower) if is_proven else None,
        "labels": [row.text("state") for row in rows],
        "statusNames": [status.value for status in STATUSES],
        "statuses": [STATUSES.index(status if is_proven else Status.OPEN) for status in atlas.statuses],
        "reasons": [row.reason for row in rows],
        "lower": [finite(row.lower) for row in rows],
        "upper": [finite(row.upper) for row in rows],
        "shownSteps": [finite(steps) for steps in shown_steps(atlas).tolist()],
        "lowerText": [row.text("lower") for row in rows],
        "upperText": [row.text("upper") for row in rows],
        "numbers": np.concatenate((atlas.numbers, atlas.left_out_numbers)).tolist(),
        "foundAt": atlas.found_at.tolist(),
        "visits": [row.visits for row in rows],
        "actionLists": [[readable(action) for action in actions] for actions in distinct],
        "actionListOf": [distinct[actions] for actions in atlas.actions],
        "reset": RESET_ACTION,
        "chanceUnit": CHANCE_UNIT,
        "boundSteps": over_steps["steps"],
        "boundKnown": over_steps["known"],
        "limits": LIMITS,
        "layout": _layout(layout),
        **policies.columns,
        **answers.columns,
        "arrays": {name: packed(array) for name, array in arrays.items()},
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


class _Part(NamedTuple):
    """A part of the content: columns as JSON, and arrays to be packed."""

    columns: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def _layout(layout: Layout) -> dict[str, Any]:
    return {
        "kind": layout.kind,
        "width": WIDTH,
        "height": round(layout.height, 2),
        "margin": MARGIN,
        "size": round(layout.size, 2),
        "drawn": layout.drawn.tolist(),
        "x": np.round(layout.x, 2).tolist(),
        "y": np.round(layout.y, 2).tolist(),
        "rings": [(steps, round(radius, 2)) for steps, radius in layout.rings],
        "cells": layout.cells,
    }


def _policies(atlas: Atlas) -> _Part:
    """What to play, for as many goals as there is room for: the horizon, 0 for none, and the width of each."""
    sizes = np.cumsum([policy.size for policy in atlas.policies])
    kept = atlas.policies[: int(np.searchsorted(sizes, MAX_CHOICES, side="right"))]
    choices, offsets = _joined([policy.ravel() for policy in kept])
    columns = {
        "horizons": [len(policy) if policy.ndim == 2 else 0 for policy in kept],
        "widths": [policy.shape[-1] for policy in kept],
    }
    return _Part(columns, {"choices": choices, "policyOffsets": offsets})


def _answers(atlas: Atlas) -> _Part:
    """The likeliest way and the chances to arrive, for as many goals as they take little time for."""
    answered = min(len(atlas.states), MAX_FOLLOWED // (len(atlas.transitions.counts) + len(atlas.states)))
    ways = [likeliest_places(atlas, goal) or [] for goal in range(answered)]
    routes, route_offsets = _joined([np.array(way[:MAX_ROUTE], dtype=np.int64) for way in ways])
    work = MAX_FOLLOWED_FOR_CHANCES // max(1, answered)
    found = [estimated_chances(atlas, goal, MAX_STEPS_AHEAD, SURE, work) for goal in range(answered)]
    shown = [chances[: _shown_length(chances)] for chances in found]
    estimates, chance_offsets = _joined([_in_units(chances) for chances in shown])
    lowers, _ = _joined([_lower_bounds(atlas, goal, len(chances)) for goal, chances in enumerate(shown)])
    columns = {
        "answered": answered,
        "routeLengths": [len(way) for way in ways],
        "meanSteps": [float((1 - chances).sum()) if chances[-1] >= SURE else None for chances in found],
    }
    arrays = {
        "routes": routes,
        "routeOffsets": route_offsets,
        "estimates": estimates,
        "lowers": lowers,
        "chanceOffsets": chance_offsets,
    }
    return _Part(columns, arrays)


def _shown_length(chances: FloatArray) -> int:
    return min(MAX_SHOWN_STEPS, int(np.searchsorted(chances, SURE_ENOUGH))) + 1


def _in_units(chances: FloatArray) -> IntArray:
    """Chances as whole numbers; one that is neither 0 nor 1 does not become so by rounding."""
    units = np.rint(CHANCE_UNIT * chances).astype(np.int64)
    clipped: IntArray = np.clip(units, chances > 0, CHANCE_UNIT - (chances < 1))
    return clipped


def _lower_bounds(atlas: Atlas, goal: int, length: int) -> IntArray:
    """Lower bounds of the chances to arrive within 0, 1, ... steps, rounded down; empty if nothing is proven.

    They are computed over the confidence region where that takes little time. Beyond, Markov's inequality holds: a mean
    of `upper` steps leaves a chance of at most upper / n for n steps or more.
    """
    upper = float(atlas.upper[goal])
    if not can_be_relied_on(atlas) or not math.isfinite(upper):
        return np.zeros(length, dtype=np.int64)
    bounds = np.maximum(0.0, 1.0 - upper / np.arange(1, length + 1))
    if len(atlas.states) <= MAX_BOUNDED:
        steps = min(length - 1, math.ceil(BOUNDED_STEPS * upper))
        lowers = atlas.probability(atlas.states[goal], steps).lowers
        bounds = np.maximum(bounds, np.concatenate((lowers, np.full(length - len(lowers), lowers[-1]))))
    floored: IntArray = np.floor(CHANCE_UNIT * bounds).astype(np.int64)
    return floored


def _joined(parts: Sequence[npt.NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Arrays one after another, and where each begins, with the end of the last."""
    offsets = np.concatenate(([0], np.cumsum([len(part) for part in parts], dtype=np.int64)))
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]), offsets
