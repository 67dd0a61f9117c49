"""How the bounds of a run came together over its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from axplore.atlas import Atlas
from axplore.mdp import FloatArray
from axplore.report.history import History

MAX_POINTS: Final = 100
"""The page has the bounds of so many moments at most,"""

MAX_VALUES: Final = 100_000
"""and so many lower and so many upper bounds in all."""


@dataclass(frozen=True, eq=False)
class Moment:
    """What was proven at a time.

    Attributes:
        steps: taken by then.
        lower: bounds of the states known by then, in the order of the atlas, [n].
        upper: bounds of the same states, infinite where nothing was proven, [n].
    """

    steps: int
    lower: FloatArray
    upper: FloatArray

    @property
    def widths(self) -> FloatArray:
        """Of the states that have an upper bound; not of the initial state, where nothing is to be proven, [m]."""
        widths = (self.upper - self.lower)[1:]
        return widths[np.isfinite(widths)]


def moments_of(atlas: Atlas, history: History) -> list[Moment]:
    """The moments that the log of a run tells, as many as fit on the page; the first and the last are among them."""
    events = [event for event in history.bounds(atlas.steps) if len(event["lower"]) <= len(atlas.states)]
    room = max(2, min(MAX_POINTS, MAX_VALUES // max(1, len(atlas.states))))
    places = np.unique(np.linspace(0, len(events) - 1, min(room, len(events))).round().astype(np.int64))
    return [_moment(events[place]) for place in places.tolist()]


def thousandths(moments: Sequence[Moment]) -> dict[str, Any]:
    """The bounds of all moments one after another, rounded to the safe side; -1 for infinity."""
    lower = np.concatenate([np.empty(0), *(moment.lower for moment in moments)])
    upper = np.concatenate([np.empty(0), *(moment.upper for moment in moments)])
    proven = np.isfinite(upper)
    return {
        "steps": [moment.steps for moment in moments],
        "known": [len(moment.lower) for moment in moments],
        "lower": np.floor(1000 * lower).astype(np.int64),
        "upper": np.where(proven, np.ceil(1000 * np.where(proven, upper, 0.0)), -1).astype(np.int64),
    }


def _moment(event: Mapping[str, Any]) -> Moment:
    upper = [math.inf if value is None else value for value in event["upper"]]
    return Moment(event["steps"], np.array(event["lower"], dtype=np.float64), np.array(upper, dtype=np.float64))
