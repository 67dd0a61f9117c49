"""What a certificate is made of: counts, and claims with the vectors that prove them.

States are *positions*: 0..n-1 are the known ones in the order of admission, the initial state is 0, and from n on come
the other states that were seen. The position after the last stands for every state that was never seen.

The *pairs* are the actions of the first known state, then those of the second, and so on. A policy names an action by
its place among the actions of the state, or says RESET_ACTION. Vectors have a number for each known state. Every other
state resets, so its value is one more than that of the initial state; the value of the goal itself is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from axplore.errors import InvalidInputError
from axplore.types import IntArray

RESET_ACTION: Final = -1
"""How a policy says RESET."""


@dataclass(frozen=True, eq=False)
class Sparse:
    """A vector without the numbers that most places have, or that it has in common with other vectors.

    Attributes:
        length: how many numbers there are in all.
        rest: the number in all other places; or a vector that has the numbers of all other places, [length].
        places: those with another number, ascending, [m].
        numbers: the numbers there, [m].
    """

    length: int
    rest: float | npt.NDArray[Any]
    places: IntArray
    numbers: npt.NDArray[Any]

    @property
    def whole(self) -> npt.NDArray[Any]:
        """The vector as an array."""
        vector = np.empty(self.length, dtype=self.numbers.dtype)
        vector[:] = self.rest
        vector[self.places] = self.numbers
        vector.flags.writeable = False
        return vector

    @property
    def base(self) -> npt.NDArray[Any] | None:
        """The vector that it has most numbers in common with; None if these are all the same."""
        return self.rest if isinstance(self.rest, np.ndarray) else None

    @property
    def shape(self) -> tuple[int]:
        """That of the whole vector."""
        return (self.length,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the whole vector."""
        return self.numbers.dtype

    def __getitem__(self, place: int) -> Any:
        """The number in one place."""
        found = int(np.searchsorted(self.places, place))
        if found < len(self.places) and self.places[found] == place:
            return self.numbers[found]
        return self.rest if self.base is None else self.base[place]

    def max(self, initial: float = -np.inf) -> float:
        """The greatest number."""
        if self.base is not None:
            return float(self.whole.max(initial=initial))
        first = self.rest if len(self.places) < self.length else initial
        return float(np.maximum(first, self.numbers.max(initial=initial)))

    def head(self, length: int) -> Sparse:
        """The first numbers."""
        n_places = int(np.searchsorted(self.places, length))
        rest = self.rest if self.base is None else self.base[:length]
        return Sparse(length, rest, self.places[:n_places], self.numbers[:n_places])


def without_rest(vector: npt.NDArray[Any], rest: float) -> npt.NDArray[Any] | Sparse:
    """Returns the vector without the number that most places have; as it is, if that would not save much."""
    places = np.flatnonzero(vector != rest)
    return vector if 2 * len(places) > len(vector) else Sparse(len(vector), rest, places, vector[places])


class Vector:
    """An attribute of a frozen dataclass that holds an array or a `Sparse`, and is read as an array."""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> npt.NDArray[Any]:
        if instance is None:
            raise AttributeError("a vector has no default")
        vector = instance.__dict__[self.name]
        return vector.whole if isinstance(vector, Sparse) else vector

    def __set__(self, instance: Any, vector: npt.NDArray[Any] | Sparse) -> None:
        instance.__dict__[self.name] = vector


class KeptPolicies(Sequence[IntArray]):
    """Policies, kept without the places where they reset, and made when they are asked for."""

    def __init__(self, policies: Iterable[IntArray | Sparse]) -> None:
        self._policies = tuple(
            without_rest(policy, RESET_ACTION) if isinstance(policy, np.ndarray) and policy.ndim == 1 else policy
            for policy in policies
        )

    def __len__(self) -> int:
        return len(self._policies)

    @overload
    def __getitem__(self, place: int) -> IntArray: ...

    @overload
    def __getitem__(self, place: slice) -> list[IntArray]: ...

    def __getitem__(self, place: int | slice) -> IntArray | list[IntArray]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        policy = self._policies[place]
        return policy.whole if isinstance(policy, Sparse) else policy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeptPolicies) and len(self) == len(other) and all(map(np.array_equal, self, other))

    __hash__ = None  # type: ignore[assignment]


class WithVectors:
    """A frozen dataclass with vectors."""

    def kept(self, name: str) -> npt.NDArray[Any] | Sparse:
        """A vector as it is kept."""
        vector: npt.NDArray[Any] | Sparse = vars(self)[f"_{name}"]
        return vector


def rest_of(name: str, first: float) -> float:
    """The number of most places of a vector of a claim that has this number at the initial state."""
    return {"policy": RESET_ACTION, "regret": 0.0}.get(name, 1.0 + first)


class Record:
    """A frozen dataclass whose arrays cannot be written to."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


class ClaimRecord(Record, WithVectors):
    """A claim: its vectors are kept without the number that most places have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in fields(self):  # type: ignore[arg-type]
            vector = vars(self).get(f"_{field.name}")
            if isinstance(vector, Sparse) and 2 * len(vector.places) > vector.length:
                vars(self)[f"_{field.name}"] = vector.whole
            elif isinstance(vector, np.ndarray) and vector.ndim == 1 and len(vector):
                vars(self)[f"_{field.name}"] = without_rest(vector, rest_of(field.name, vector[0]))


@dataclass(frozen=True, eq=False)
class Counts(Record):
    """Everything that was drawn, as compressed rows; a row holds successors in the order in which they were first seen.

    Attributes:
        row_offsets: the first entry of each pair, and the end of the last one, [P + 1].
        successors: the position that each entry leads to, [E].
        counts: how often it was met, [E].
        first_draws: at which draw of its pair, counted from 1, it was met first, [E].
    """

    row_offsets: IntArray
    successors: IntArray
    counts: IntArray
    first_draws: IntArray

    def check_shape(self, n_pairs: int, n_seen: int) -> None:
        """Refuses arrays that do not describe rows of `n_pairs` pairs over `n_seen` states."""
        _check_array("counts.row_offsets", self.row_offsets, np.int64, n_pairs + 1)
        if self.row_offsets[0] != 0 or (np.diff(self.row_offsets) < 0).any():
            raise InvalidInputError("counts.row_offsets do not ascend from 0")
        n_entries = int(self.row_offsets[-1])
        for name in ("successors", "counts", "first_draws"):
            _check_array(f"counts.{name}", getattr(self, name), np.int64, n_entries)
        if n_entries and not 0 <= self.successors.min() <= self.successors.max() < n_seen:
            raise InvalidInputError(f"a successor is none of the {n_seen} states seen")


@dataclass(frozen=True, eq=False)
class Reachable(ClaimRecord):
    """A policy restricted to the states admitted before the goal reaches it within L + ε expected steps.

    Attributes:
        goal: the position of a known state other than the initial one.
        policy: what to play in each known state, [n]; from the goal on it resets.
        upper: a bound of the expected steps of the policy from each known state, [n].
    """

    goal: int
    policy: Vector = Vector()
    upper: Vector = Vector()


@dataclass(frozen=True, eq=False)
class TooFar(ClaimRecord):
    """Every policy restricted to the known states needs more than L expected steps to the goal.

    Attributes:
        goal: the position of a state that is not known, or the one after the last for all that were never seen.
        lower: a lower bound of the expected steps of every policy from each known state, [n].
    """

    goal: int
    lower: Vector = Vector()


@dataclass(frozen=True, eq=False)
class NearOptimal(ClaimRecord):
    """A policy needs at most ε expected steps more to the goal than the best policy restricted to the known states.

    Attributes:
        goal: the position of a known state other than the initial one.
        policy: what to play in each known state, [n].
        upper: a bound of the expected steps of the policy from each known state, [n].
        lower: a lower bound of the expected steps of every policy, [n].
        regret: a bound of what the policy loses against the best one, [n].
    """

    goal: int
    policy: Vector = Vector()
    upper: Vector = Vector()
    lower: Vector = Vector()
    regret: Vector = Vector()


@dataclass(frozen=True, eq=False)
class AtMost(ClaimRecord):
    """A policy reaches the goal within the expected steps that the bound says, however many these are.

    Attributes:
        goal: the position of a known state other than the initial one.
        policy: what to play in each known state, [n].
        upper: a bound of the expected steps of the policy from each known state, [n].
    """

    goal: int
    policy: Vector = Vector()
    upper: Vector = Vector()


@dataclass(frozen=True, eq=False)
class AtLeast(ClaimRecord):
    """Every policy restricted to the known states needs the expected steps that the bound says, however few these are.

    Attributes:
        goal: the position of a state other than the initial one, or the one after the last for all never seen.
        lower: a lower bound of the expected steps of every policy from each known state, [n].
    """

    goal: int
    lower: Vector = Vector()


Claim: TypeAlias = Reachable | TooFar | NearOptimal | AtMost | AtLeast


def check_shape(claim: Claim, n_actions: IntArray, n_seen: int) -> None:
    """Refuses a claim about a state that it cannot be about, and vectors that do not fit the known states.

    Args:
        claim: what to check.
        n_actions: of each known state, [n].
        n_seen: how many states were seen.
    """
    kind, n_known = type(claim).__name__, len(n_actions)
    first, end = n_known if isinstance(claim, TooFar) else 1, n_known
    if isinstance(claim, TooFar | AtLeast):
        end = n_seen + 1
    if not first <= claim.goal < end:
        raise InvalidInputError(f"{kind} cannot be claimed of the position {claim.goal}")
    for name in (field.name for field in fields(claim) if field.name != "goal"):
        _check_array(f"{kind}.{name}", claim.kept(name), dtype_of(name), n_known)
    if not isinstance(claim, TooFar | AtLeast) and not _exists(claim.kept("policy"), n_actions):
        raise InvalidInputError(f"{kind}.policy towards the position {claim.goal} plays an action that does not exist")


def _exists(policy: npt.NDArray[Any] | Sparse, n_actions: IntArray) -> bool:
    """Whether every action that a policy plays is one of its state."""
    actions = policy
    if isinstance(policy, Sparse):
        actions, n_actions = policy.numbers, n_actions[policy.places]
    return bool(((actions >= RESET_ACTION) & (actions < n_actions)).all())  # type: ignore[operator]


def dtype_of(name: str) -> type[np.int64] | type[np.float64]:
    """The type of the numbers in a vector of a claim."""
    return np.int64 if name == "policy" else np.float64


def _check_array(name: str, array: npt.NDArray[Any] | Sparse, dtype: type[np.generic], length: int) -> None:
    if array.dtype != dtype or array.shape != (length,):
        raise InvalidInputError(
            f"{name} is of shape {array.shape} and type {array.dtype}; expected ({length},) and {np.dtype(dtype)}"
        )
