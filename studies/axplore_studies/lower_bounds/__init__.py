"""A proven lower bound on the steps of every algorithm: how far any explorer is from the optimum.

`programme` is the linear programme, `alternatives` the exact check on which the bound rests; `search` and `candidates`
propose alternatives, and `bound` is the loop. docs/algorithms/lower-bound.md has the proof.
"""

from __future__ import annotations

from axplore_studies.lower_bounds.alternatives import (
    UNSEEN,
    Alternative,
    AlternativeKind,
    ChangedRow,
    ModelQuestion,
    Unseen,
)
from axplore_studies.lower_bounds.bound import (
    SECONDS,
    BindingAlternative,
    BoundProgress,
    LowerBound,
    PairDraws,
    lower_bound,
)

__all__ = [
    "SECONDS",
    "UNSEEN",
    "Alternative",
    "AlternativeKind",
    "BindingAlternative",
    "BoundProgress",
    "ChangedRow",
    "LowerBound",
    "ModelQuestion",
    "PairDraws",
    "Unseen",
    "lower_bound",
]
