"""What is claimed to follow from counts, each claim with the vectors that prove it.

States are given by *index* in the order of the counts: 0..n-1 are the known ones in the order of admission, the initial
state is 0, and from n on come the other states that were seen. The index after the last stands for every state that
was never seen.

The *pairs* are the actions of the first known state, then those of the second, and so on. A policy names an action by
its index among the actions of the state, or says RESET_ACTION. Vectors have a number for each known state. Every other
state resets, so its value is one more than that of the initial state; the value of the goal itself is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, get_args, get_origin

import numpy as np
from msgspec import structs

from axplore.errors import InvalidInputError
from axplore.records.codec import Record
from axplore.records.vectors import Vector, Vectors
from axplore.types import FloatArray, IntArray


class Claim(Record, frozen=True):
    """A claim about one goal.

    Attributes:
        goal: the index of a state other than the initial one.
    """

    goal: int


class Way(Claim, frozen=True):
    """A claim about a policy towards a known state.

    Attributes:
        policy: what to play in each known state, [n].
        upper: a bound of the expected steps of the policy from each known state, [n].
    """

    policy: Vector[np.int64]
    upper: Vector[np.float64]


class Reachable(Way, frozen=True):
    """A policy restricted to the states admitted before the goal, from which on it resets, arrives within L + ε."""


class AtMost(Way, frozen=True):
    """A policy reaches the goal within the expected steps that the bound says, however many these are."""


class NearOptimal(Way, frozen=True):
    """A policy needs at most ε expected steps more to the goal than the best policy restricted to the known states.

    Attributes:
        lower: a lower bound of the expected steps of every policy, [n].
        regret: a bound of what the policy loses against the best one, [n].
        deduction: as in `Bound`.
    """

    lower: Vector[np.float64]
    regret: Vector[np.float64]
    deduction: float = 0.0


class Bound(Claim, frozen=True):
    """A claim about every policy restricted to the known states; the goal may also be all states never seen.

    Attributes:
        lower: a lower bound of the expected steps of every policy from each known state, [n].
        deduction: what has to be taken off the bound in the initial state. If it is not 0, the others are bounds only
            as if pairs with one successor were certain (docs/algorithms/certified.md, Theorem 4).
    """

    lower: Vector[np.float64]
    deduction: float = 0.0


class TooFar(Bound, frozen=True):
    """Every policy needs more than L expected steps to the goal, which is not known."""


class AtLeast(Bound, frozen=True):
    """Every policy needs the expected steps that the bound says, however few these are."""


class Columns(Record, frozen=True):
    """Claims of one kind in the form of a file, in which vectors share what they have in common.

    Attributes:
        goals: of each claim, [c].
        vectors: those of each field, one row for each claim.
        deductions: of each claim, [c]; None if nothing is deducted in any.
    """

    goals: IntArray
    vectors: dict[str, Vectors]
    deductions: FloatArray | None = None


AnyClaim = TypeVar("AnyClaim", bound=Claim)


def columns_of(claims: Sequence[Claim]) -> Columns:
    """Returns claims of one kind, of which there are some, as columns."""
    goals = np.array([claim.goal for claim in claims], dtype=np.int64)
    vectors = {}
    for name, dtype in vector_types(type(claims[0])).items():
        column = [getattr(claim, name) for claim in claims]
        vectors[name] = Vectors.of(column, column[0].length, dtype)
    deductions = np.array([deduction_of(claim) for claim in claims])
    return Columns(goals, vectors, deductions if deductions.any() else None)


def deduction_of(claim: Claim) -> float:
    """Returns what is deducted from the lower bound of a claim; 0 for claims that have none."""
    return claim.deduction if isinstance(claim, Bound | NearOptimal) else 0.0


def claims_in(kind: type[AnyClaim], columns: Columns) -> tuple[AnyClaim, ...]:
    """Returns the claims that `columns_of` was given; refuses columns that it does not return."""
    types, goals = vector_types(kind), columns.goals
    if columns.vectors.keys() != types.keys() or goals.ndim != 1:
        raise InvalidInputError(f"claims of {kind.__name__} need goals and {', '.join(types)}, and nothing else")
    vectors = [
        _rows(f"{kind.__name__}.{name}", columns.vectors[name], dtype, len(goals)) for name, dtype in types.items()
    ]
    claims = tuple(kind(int(goal), *row) for goal, *row in zip(goals, *vectors, strict=True))
    return claims if columns.deductions is None else _with_deductions(claims, columns.deductions)


def _with_deductions(claims: tuple[AnyClaim, ...], deductions: FloatArray) -> tuple[AnyClaim, ...]:
    if deductions.dtype != np.float64 or deductions.shape != (len(claims),) or not deductions.any():
        raise InvalidInputError("there is to be a deduction for each claim, or none")
    if not all(isinstance(claim, Bound | NearOptimal) for claim in claims):
        raise InvalidInputError("nothing can be deducted from claims without a lower bound")
    pairs = zip(claims, deductions.tolist(), strict=True)
    return tuple(structs.replace(claim, deduction=deduction) for claim, deduction in pairs)


def vector_types(kind: type[Claim]) -> Mapping[str, type[np.generic]]:
    """Returns the type of the numbers in each vector of a kind of claims."""
    if kind not in _VECTOR_TYPES:  # every claim is asked for it, and looking at annotations takes long
        _VECTOR_TYPES[kind] = _annotated_types(kind)
    return _VECTOR_TYPES[kind]


_VECTOR_TYPES: Final[dict[type[Claim], dict[str, type[np.generic]]]] = {}


def _annotated_types(kind: type[Claim]) -> dict[str, type[np.generic]]:
    fields = (field for field in structs.fields(kind) if get_origin(field.type) is Vector)
    return {field.name: get_args(field.type)[0] for field in fields}


def _rows(name: str, vectors: Vectors, dtype: type[np.generic], n_claims: int) -> list[Vector[Any]]:
    if vectors.dtype != dtype or not vectors.is_consistent or len(vectors) < n_claims:
        raise InvalidInputError(f"the arrays of {name} do not describe a vector for each claim")
    rows = [vectors.vector(row) for row in range(n_claims)]
    if Vectors.of(rows, vectors.length, dtype) != vectors:
        raise InvalidInputError(f"the arrays of {name} hold vectors that no claim has")
    return rows
