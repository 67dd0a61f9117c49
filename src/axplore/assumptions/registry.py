"""All kinds of assumptions. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from axplore.assumptions.deterministic import Deterministic
from axplore.assumptions.kind import AssumptionKind, PairKind
from axplore.assumptions.min_probability import MinProbability
from axplore.assumptions.outcomes import Outcomes
from axplore.assumptions.tied import LeadsToKind, Tied

KINDS: Final[list[AssumptionKind]] = [Deterministic(), MinProbability(), Outcomes(), Tied(), LeadsToKind()]
"""In the order in which they are applied and spoken of; a kind stands after what it needs."""


def pair_kinds() -> Iterator[PairKind]:
    """Yields the kinds that say a number of each pair."""
    return (kind for kind in KINDS if isinstance(kind, PairKind))


def forms() -> str:
    """How assumptions are written, for help and errors."""
    return ", ".join(kind.form for kind in KINDS)
