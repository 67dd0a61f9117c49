"""Alternatives before they are checked, and how their rows are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from axplore.lower_bounds.alternatives import MARGIN, Kind
from axplore.lower_bounds.programme import divergence
from axplore.mdp import TabularMdp
from axplore.types import FloatArray, State

UPWARDS: Final = -1.0
"""The sign of a change that makes a goal farther,"""

DOWNWARDS: Final = 1.0
"""and of one that brings it nearer."""

AIM: Final = 3 * MARGIN
"""Steps beyond a limit that are aimed at, so that the check, which asks for `MARGIN`, is passed."""

_LEAST_LEAK: Final = 1e-10
"""Missing mass below this is rounding, and no new successor."""

Rows: TypeAlias = dict[int, FloatArray]
"""Of each changed pair, the weight of every state and of `UNSEEN`, [S + 1]."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that may have disjoint correct answers.

    Attributes:
        kind: why they should be disjoint.
        goal: the state that this is about.
        rows: what changes.
    """

    kind: Kind
    goal: State
    rows: Rows


def moved_row(mdp: TabularMdp, sign: float, pair: int, values: FloatArray, multiplier: float, extra: int) -> FloatArray:
    """The row p / (1 + sign x (V − m)) of `kernels`, its missing mass on the state `extra`, [S + 1]."""
    entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
    mean = values[mdp.pair_states[pair]] - 1
    row = np.zeros(mdp.n_states + 1)
    seen = mdp.successors[entries]
    row[seen] = mdp.probabilities[entries] / (1 + sign * multiplier * (values[seen] - mean))
    missing = 1 - float(row.sum())
    if missing > _LEAST_LEAK:
        row[extra] += missing
    return row


def row_divergences(mdp: TabularMdp, rows: Rows) -> dict[int, float]:
    """KL(p ‖ p') of each changed pair."""
    found = {}
    for pair, row in rows.items():
        before = np.zeros(mdp.n_states + 1)
        entries = slice(mdp.row_offsets[pair], mdp.row_offsets[pair + 1])
        before[mdp.successors[entries]] = mdp.probabilities[entries]
        found[pair] = divergence(before, row / row.sum())
    return found


def told_apart(mdp: TabularMdp, rows: Rows, visits: FloatArray) -> float:
    """What draws tell about changed rows, in nats."""
    return sum(float(visits[pair]) * nats for pair, nats in row_divergences(mdp, rows).items())
