"""All kinds of assumptions that a certificate may rest on. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

from typing import Final

from axplore.certificate.assumptions.deterministic import Deterministic
from axplore.certificate.assumptions.kind import CheckedKind, CheckedPairKind, Shape
from axplore.certificate.assumptions.min_probability import MinProbability
from axplore.certificate.assumptions.outcomes import Outcomes
from axplore.certificate.assumptions.tied import Tied
from axplore.errors import InvalidInputError
from axplore.records.assumed import Assumed

KINDS: Final[list[CheckedKind]] = [Deterministic(), MinProbability(), Outcomes(), Tied()]
"""In the order in which their clauses stand."""


def kinds_in(assumed: Assumed) -> list[CheckedKind]:
    """The kinds that a certificate assumes."""
    return [kind for kind in KINDS if kind.is_in(assumed)]


def pair_kinds_in(assumed: Assumed) -> list[CheckedPairKind]:
    """The kinds that say a number of each pair."""
    return [kind for kind in kinds_in(assumed) if isinstance(kind, CheckedPairKind)]


def check_assumed(assumed: Assumed, shape: Shape) -> None:
    """Refuses what is no assumption, and what does not fit the counts."""
    unknown = assumed.numbers.keys() - {kind.name for kind in KINDS}
    if unknown:
        raise InvalidInputError(f"there is no assumption {min(unknown)!r}")
    kinds = kinds_in(assumed)
    if not kinds:
        raise InvalidInputError("assumptions are listed, but there are none")
    for kind in kinds:
        kind.check(assumed, shape)


def clauses(assumed: Assumed | None) -> tuple[str, ...]:
    """What is assumed, as clauses that follow "if"; empty if nothing is."""
    return () if assumed is None else tuple(clause for kind in kinds_in(assumed) for clause in kind.clauses(assumed))
