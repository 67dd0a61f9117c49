"""The data for the scripts of the page: the atlas and its answers as JSON, with large arrays packed."""

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
from axplore.atlas.drawing.layout import MARGIN, WIDTH, GridLayout, Layout
from axplore.atlas.drawing.palette import RAMP
from axplore.atlas.drawing.states import labels_of, shown_steps, ways_in
from axplore.atlas.journeys import estimated_chances, likeliest_indices
from axplore.atlas.learned_model import pairs_of_policy
from axplore.atlas.state_report import StateRow, rounded_down
from axplore.labels import finite
from axplore.report.appearance import Appearance
from axplore.report.charts import LOGARITHMIC_FROM
from axplore.runs.history import Moment, thousandths
from axplore.types import RESET_ACTION, RESET_PAIR, FloatArray, IntArray, Status

MAX_CHOICES: Final = 40_000_000
"""The largest number of choices of all policies together; policies to later goals are left out."""

MAX_CHOICES_TO_MAKE: Final = 4_000_000
"""Where policies are made when they are asked for, because all of them would be too many, fewer are shown."""

MAX_FOLLOWED: Final = 100_000_000
"""Most likely routes and probabilities are left out if following every policy once takes more transitions than this."""

MAX_FOLLOWED_FOR_CHANCES: Final = 100_000_000
"""All probabilities together follow no more transitions than this."""

MAX_STEPS_AHEAD: Final = 1000
"""Probabilities are computed up to this many steps."""

SURE: Final = 1 - 1e-6
"""Probabilities are computed until they are at least this."""

MAX_SHOWN_STEPS: Final = 200
SURE_ENOUGH: Final = 0.9995
"""Probabilities are shown at no more steps than this, and until they are at least this."""

CHANCE_UNIT: Final = 10_000
"""Probabilities are whole multiples of this unit."""

MAX_BOUNDED_WORK: Final = 100_000_000
"""Lower bounds of probabilities follow at most this many transitions, for all goals together; then come Markov's."""

MAX_BROKEN_EVEN: Final = 2_000
"""The page leaves out the break-even of an atlas whose states times transitions are more than this."""

BOUNDED_STEPS: Final = 4
"""Other lower bounds are computed up to this multiple of the steps to a goal."""

MAX_ROUTE: Final = 60
"""The largest number of states of a most likely route that are shown."""

LIMITS: Final = {
    "names": 300,  # the most states in view that show their names
    "arrows": 400,  # the most states in view that show arrows
    "shownOnRoute": 60,  # the most states on a route that a graph shows for it
    "listed": 500,  # the most states of a policy shown as text
    "suggested": 3000,  # labels that the search suggests
    "logarithmicFrom": LOGARITHMIC_FROM,
    "newsMilliseconds": 2000,
}

STATUSES: Final = tuple(Status)


def content_of(
    atlas: Atlas,
    layout: Layout,
    moments: Sequence[Moment],
    rows: Sequence[StateRow],
    look: Appearance,
    pictures: Sequence[str],
) -> dict[str, Any]:
    """Returns the data for the scripts of the page. Columns have an item for each state, in the order of the atlas."""
    distinct = {actions: number for number, actions in enumerate(dict.fromkeys(atlas.actions))}
    policies, answers, over_steps = _policies(atlas), _answers(atlas), thousandths(moments)
    transitions, is_proven = atlas.transitions, atlas.can_be_relied_on
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
        "refuted": atlas.is_refuted,
        "members": len(atlas.states),
        "unseenLower": rounded_down(atlas.unseen_lower) if is_proven else None,
        "labels": [row.text("state") for row in rows],
        "statusNames": [status.value for status in STATUSES],
        "statuses": [STATUSES.index(status if is_proven else Status.OPEN) for status in atlas.statuses],
        "reasons": [row.reason for row in rows],
        "breakEven": _break_evens(atlas),
        "byEpisodes": [str(atlas.by_episodes(state) or "") for state in atlas.states],
        "lower": [finite(row.lower) for row in rows],
        "upper": [finite(row.upper) for row in rows],
        "within": [finite(min(row.upper, row.by_episodes or math.inf)) for row in rows],
        "shownSteps": [finite(steps) for steps in shown_steps(atlas).tolist()],
        "lowerText": [row.text("lower") for row in rows],
        "upperText": [row.text("upper") for row in rows],
        "numbers": np.concatenate((atlas.numbers, atlas.frontier_numbers)).tolist(),
        "foundAt": atlas.found_at.tolist(),
        "visits": [row.visits for row in rows],
        "actionLists": [[look.action(action) for action in actions] for actions in distinct],
        "actionListOf": [distinct[actions] for actions in atlas.actions],
        "reset": RESET_ACTION,
        "chanceUnit": CHANCE_UNIT,
        "boundSteps": over_steps["steps"],
        "boundKnown": over_steps["known"],
        "limits": LIMITS,
        **_layout(layout),
        "pictures": pictures,
        "waysIn": ways_in(atlas).tolist(),
        "ramp": RAMP,
        "farthest": _farthest(atlas),
        **policies.columns,
        **answers.columns,
        "arrays": {name: packed(array) for name, array in arrays.items()},
    }


def as_json(content: dict[str, Any]) -> str:
    """Returns JSON that is safe inside an HTML script element, whatever the labels are."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def packed(array: npt.NDArray[Any]) -> dict[str, str]:
    """Returns an array of whole numbers as text: compressed, in base64."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    narrow = (kind for kind in ("int8", "int16", "int32") if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    name = next(narrow, "float64")
    content = np.ascontiguousarray(array, dtype=np.dtype(name).newbyteorder("<")).tobytes()
    return {"type": name, "data": base64.b64encode(zlib.compress(content, 6)).decode("ascii")}


def _farthest(atlas: Atlas) -> int | None:
    """The index of the state of the atlas that takes most steps, certified if any is: what the page shows at first."""
    steps = shown_steps(atlas)
    indices = range(1, len(atlas.states))
    certified = [index for index in indices if atlas.statuses[index] is Status.CERTIFIED]
    return max(certified or indices, key=lambda index: float(steps[index]), default=None)


class _Part(NamedTuple):
    """A part of the content: columns as JSON, and arrays to be packed."""

    columns: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def _layout(layout: Layout) -> dict[str, Any]:
    """Returns where states are at first; of a graph also the edges, from which the page lays out more of it."""
    if not isinstance(layout, GridLayout):
        graph = layout.graph.as_json()
        said_elsewhere = ("labels", "parents", "members")
        return {
            "layout": layout.view_json,
            "graph": {name: value for name, value in graph.items() if name not in said_elsewhere},
        }
    grid = {
        "kind": "grid",
        "width": WIDTH,
        "height": round(layout.height, 2),
        "margin": MARGIN,
        "size": round(layout.size, 2),
        "drawn": layout.drawn.tolist(),
        "x": np.round(layout.x, 2).tolist(),
        "y": np.round(layout.y, 2).tolist(),
        "cells": layout.cells,
        "walls": np.round(np.array(layout.wall_lines).reshape(-1, 4), 2).tolist(),
    }
    return {"layout": grid}


def _policies(atlas: Atlas) -> _Part:
    """Returns the policies for as many goals as there is room for, each with its horizon, 0 for none, and its width."""
    is_made = isinstance(atlas.policies, tuple)
    room = len(atlas.policies) if is_made else MAX_CHOICES_TO_MAKE // len(atlas.states)
    sizes = np.cumsum([policy.size for policy in atlas.policies[:room]])
    kept = atlas.policies[: int(np.searchsorted(sizes, MAX_CHOICES, side="right"))]
    choices, offsets = _joined([policy.ravel() for policy in kept])
    columns = {
        "horizons": [len(policy) if policy.ndim == 2 else 0 for policy in kept],
        "widths": [policy.shape[-1] for policy in kept],
    }
    return _Part(columns, {"choices": choices, "policyOffsets": offsets})


def _answers(atlas: Atlas) -> _Part:
    """Returns the most likely routes and arrival probabilities, for as many goals as can be computed quickly."""
    answered = min(len(atlas.states), MAX_FOLLOWED // (len(atlas.transitions.counts) + len(atlas.states)))
    ways = [likeliest_indices(atlas, goal) or [] for goal in range(answered)]
    routes, route_offsets = _joined([np.array(way[:MAX_ROUTE], dtype=np.int64) for way in ways])
    work = MAX_FOLLOWED_FOR_CHANCES // max(1, answered)
    found = [estimated_chances(atlas, goal, MAX_STEPS_AHEAD, SURE, work) for goal in range(answered)]
    lasts = [_last_step(atlas, goal, chances) for goal, chances in enumerate(found)]
    grids = [_shown_steps(last) for last in lasts]
    estimates, chance_offsets = _joined(
        [_in_units(chances[np.minimum(grid, len(chances) - 1)]) for chances, grid in zip(found, grids, strict=True)]
    )
    prover = _LowerBounds(atlas, lasts)
    lowers, _ = _joined([prover.of(goal, chances, grids[goal]) for goal, chances in enumerate(found)])
    columns = {
        "answered": answered,
        "routeLengths": [len(way) for way in ways],
        "meanSteps": [float((1 - chances).sum()) if chances[-1] >= SURE else None for chances in found],
        "chanceLast": lasts,
        "chanceRough": [int(prover.is_rough(goal)) for goal in range(answered)],
    }
    arrays = {
        "routes": routes,
        "routeOffsets": route_offsets,
        "estimates": estimates,
        "lowers": lowers,
        "chanceOffsets": chance_offsets,
    }
    return _Part(columns, arrays)


def _last_step(atlas: Atlas, goal: int, chances: FloatArray) -> int:
    """Returns up to which step probabilities of a goal are shown: till they are nearly 1, and some times its steps."""
    sure = min(len(chances) - 1, int(np.searchsorted(chances, SURE_ENOUGH)))
    upper = float(atlas.upper[goal])
    proven = math.ceil(BOUNDED_STEPS * upper) if math.isfinite(upper) else 0
    return max(1, sure, min(MAX_STEPS_AHEAD, proven))


def _shown_steps(last: int) -> IntArray:
    """Returns the steps after which probabilities are shown: all, or evenly spread ones; the page does the same."""
    n = min(last, MAX_SHOWN_STEPS)
    return np.arange(n + 1) * last // n


def _in_units(chances: FloatArray) -> IntArray:
    """Returns probabilities as whole numbers; rounding makes none 0 or 1 that is not."""
    exact = CHANCE_UNIT * chances
    units = np.rint(exact).astype(np.int64)
    # The page shows one digit less; a last digit of 5 would be rounded there whichever way the exact one should not.
    units += np.where(units % 10 == 5, np.where(exact < units, -1, 1), 0)
    clipped: IntArray = np.clip(units, chances > 0, CHANCE_UNIT - (chances < 1))
    return clipped


class _LowerBounds:
    """Lower bounds of the probabilities of arriving within a number of steps, rounded down; 0 if unproven.

    If nothing is uncertain about the rows that a policy plays, the frequencies are exact. Otherwise bounds are computed
    over the confidence region, for as many goals as takes little time. For the others Markov's inequality holds: if the
    mean is at most `upper`, n steps or more have a probability of at most upper / n.
    """

    def __init__(self, atlas: Atlas, lasts: Sequence[int]) -> None:
        self._atlas = atlas
        work = np.cumsum(lasts) * (len(atlas.transitions.counts) + len(atlas.statuses))
        self._computed = int(np.searchsorted(work, MAX_BOUNDED_WORK, side="right"))

    def of(self, goal: int, chances: FloatArray, grid: IntArray) -> IntArray:
        """Returns the bounds after each of some steps, in units, where the estimates are given."""
        upper = float(self._atlas.upper[goal])
        if not self._is_proven(goal):
            return np.zeros(len(grid), dtype=np.int64)
        bounds = np.maximum(0.0, 1.0 - upper / (grid + 1))
        if self._is_exact(goal):
            bounds = np.maximum(bounds, chances[np.minimum(grid, len(chances) - 1)])
        elif goal < self._computed:
            bounds = np.maximum(bounds, self._atlas.probability(self._atlas.states[goal], int(grid[-1])).lowers[grid])
        floored: IntArray = np.floor(CHANCE_UNIT * bounds).astype(np.int64)
        return floored

    def is_rough(self, goal: int) -> bool:
        """Returns whether only Markov's inequality says something of a goal."""
        return self._is_proven(goal) and goal >= self._computed and not self._is_exact(goal)

    def _is_proven(self, goal: int) -> bool:
        return self._atlas.can_be_relied_on and math.isfinite(float(self._atlas.upper[goal]))

    def _is_exact(self, goal: int) -> bool:
        choices = self._atlas.policies[goal]
        if choices.ndim == 2:
            return False
        model = self._atlas.model
        pairs = pairs_of_policy(self._atlas, model, choices)
        played = pairs[pairs != RESET_PAIR]
        return bool((model.rows.slack[played] == 0).all() and (model.rows.rest[played] == 0).all())


def _break_evens(atlas: Atlas) -> list[str]:
    """What each claim survives, for as many states as takes little time; empty for the others."""
    labels = labels_of(atlas)  # not the names by which the page shows them
    work = len(atlas.transitions.counts) * max(1, len(labels))
    if not atlas.can_be_relied_on or work > MAX_BROKEN_EVEN:
        return ["" for _ in labels]
    return [str(atlas.break_even(label)) for label in labels]


def _joined(parts: Sequence[npt.NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Concatenates arrays; also returns where each begins, and the end of the last."""
    offsets = np.concatenate(([0], np.cumsum([len(part) for part in parts], dtype=np.int64)))
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]), offsets
