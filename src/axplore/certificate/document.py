"""The certificate: the counts of an exploration and what it claims to follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.certificate.assumed import Apart, Assumed
from axplore.certificate.contents import (
    AtLeast,
    AtMost,
    Claim,
    Counts,
    NearOptimal,
    Reachable,
    Sparse,
    TooFar,
    check_shape,
    dtype_of,
    rest_of,
)
from axplore.certificate.distances import Distances
from axplore.certificate.doubts import FaultRecord, FindingRecord
from axplore.certificate.episode_records import EpisodeRecord, records_from_json, records_to_json
from axplore.certificate.tied import Tied
from axplore.errors import DamagedFileError, InvalidInputError
from axplore.labels import decode_label, encode_label
from axplore.memory import Memory
from axplore.target import Objective
from axplore.types import Action, IntArray, State

NAME: Final = "certificate"
FORMAT: Final = "axplore certificate"
VERSION: Final = 10
CLAIMS: Final[dict[str, type[Any]]] = {
    "reachable": Reachable,
    "too_far": TooFar,
    "near_optimal": NearOptimal,
    "at_most": AtMost,
    "at_least": AtLeast,
}

OPTIONAL: Final[dict[str, type[Any]]] = {"assumed": Assumed, "tied": Tied, "apart": Apart, "distances": Distances}
"""Records that a certificate may be without."""

NO_BASE: Final = -1
"""In place of a base, of a vector that is not written as what differs from one."""

KINDS: Final = {
    "assumptions": list, "objective": str, "complete": bool, "known": list, "others": list, "actions": list,
    "findings": list, "faults": list, "outcomes": list,
}  # fmt: skip
"""The types of what is no number in the JSON file."""

LEAST_DELTA: Final = 1e-100
"""With a smaller δ, parts of it would not be numbers any more."""

Kind = TypeVar("Kind", Reachable, TooFar, NearOptimal, AtMost, AtLeast)


@dataclass(frozen=True, eq=False)
class Certificate:
    """The counts of an exploration and what it claims to follow from them.

    It is well formed by construction: shapes, positions and actions fit each other. Whether its claims hold is what
    `axplore.certificate.verify` finds out.

    Attributes:
        radius: L.
        epsilon: ε.
        delta: δ.
        objective: what was asked for.
        known: the labels of the known states, in order of admission, [n].
        others: the labels of the other states seen.
        actions: the names of the actions of each known state, [n].
        counts: what was drawn.
        reachable: claims about known states.
        too_far: claims about other states, and about those never seen.
        near_optimal: claims about the policies towards known states.
        at_most: upper bounds of policies towards known states of which neither is claimed; they also close the tails of
            tests that prove policies near-optimal.
        at_least: lower bounds of which none of these says anything.
        complete: whether it claims that everything the objective asks for is proven.
        findings: what was found when the system was examined before it was explored.
        faults: failures of the system while it was explored.
        complete: whether it claims that nothing is missing, so that the objective is reached.
        episodes: tests of policies by episodes, which prove known states reachable without their rows, and policies
            near-optimal together with `at_most` and `at_least`.
        assumed: what is assumed of each pair; None if nothing is.
        apart: states that were counted and are not known; None if there are none.
        distances: the fewest steps to every state, in place of all claims, where every pair is assumed to have one
            outcome.
        memory: what tells situations apart, if these are the states; None if the outputs of the system are.
    """

    radius: float
    epsilon: float
    delta: float
    objective: Objective
    known: tuple[State, ...]
    others: tuple[State, ...]
    actions: tuple[tuple[Action, ...], ...]
    counts: Counts
    reachable: tuple[Reachable, ...]
    too_far: tuple[TooFar, ...]
    near_optimal: tuple[NearOptimal, ...]
    complete: bool
    findings: tuple[FindingRecord, ...] = ()
    faults: tuple[FaultRecord, ...] = ()
    at_most: tuple[AtMost, ...] = ()
    at_least: tuple[AtLeast, ...] = ()
    episodes: tuple[EpisodeRecord, ...] = ()
    assumed: Assumed | None = None
    apart: Apart | None = None
    distances: Distances | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        _check_settings(self)
        n_actions = np.array([len(actions) for actions in self.actions], dtype=np.int64)
        self.counts.check_shape(int(n_actions.sum()), self.n_seen)
        _check_assumed(self)
        for claim in self.claims:
            check_shape(claim, n_actions, self.n_seen)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims about single goals."""
        return (*self.reachable, *self.too_far, *self.near_optimal, *self.at_most, *self.at_least)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed, as clauses that follow "if"; empty if nothing is."""
        return () if self.assumed is None else self.assumed.sentences

    @property
    def tied(self) -> Tied | None:
        """Which pairs are assumed to share a law; None if none are."""
        return None if self.assumed is None else self.assumed.tied

    @property
    def pair_owners(self) -> IntArray:
        """The known state of each pair, [P]."""
        return np.repeat(np.arange(len(self.known)), [len(actions) for actions in self.actions])

    @property
    def n_seen(self) -> int:
        """How many states were seen; also the position that stands for those never seen."""
        return len(self.known) + len(self.others)

    @property
    def state_pairs(self) -> IntArray:
        """The first pair of each known state, and the end of the last one, [n + 1]."""
        return np.cumsum([0, *map(len, self.actions)], dtype=np.int64)

    def save(self, folder: Path | str) -> None:
        """Writes certificate.json and certificate.npz into a folder, which is made if it is missing."""
        storage.write_sealed(Path(folder), NAME, *self._parts)

    @classmethod
    def load(cls, folder: Path | str) -> Certificate:
        """Reads what `save` wrote; refuses files that are missing, damaged, edited or of another version."""
        body, arrays = storage.read_sealed(Path(folder), NAME, FORMAT, VERSION)
        try:
            return _assembled(body, arrays)
        except InvalidInputError as error:
            raise DamagedFileError(f"{Path(folder) / NAME}.json is not a certificate: {error}") from None

    @property
    def digest(self) -> str:
        """SHA-256 of everything it holds, as hexadecimal digits."""
        return storage.digest_of(*self._parts)

    @cached_property
    def _parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What goes into the JSON file and into the arrays."""
        body = {
            "format": FORMAT,
            "version": VERSION,
            "assumptions": list(self.assumptions),
            "radius": self.radius,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "objective": self.objective.value,
            "complete": self.complete,
            "known": [encode_label(label) for label in self.known],
            "others": [encode_label(label) for label in self.others],
            "actions": [[encode_label(action) for action in actions] for actions in self.actions],
            "findings": [finding.as_json() for finding in self.findings],
            "faults": [fault.as_json() for fault in self.faults],
            "episodes": records_to_json(self.episodes),
            **({} if self.memory is None else {"memory": self.memory.as_json()}),
            "outcomes": [] if self.tied is None else [encode_label(name) for name in self.tied.names],
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            f"counts.{field.name}": getattr(self.counts, field.name) for field in fields(Counts)
        }
        bases = SharedVectors(len(self.known))
        for name in CLAIMS:
            arrays |= _stacked(name, getattr(self, name), bases)
        arrays["bases"] = bases.stacked
        for name in OPTIONAL:
            record = getattr(self, name)
            if record is not None:
                arrays |= {f"{name}.{field}": getattr(record, field) for field in _array_fields(OPTIONAL[name])}
        return body, arrays


class SharedVectors:
    """The vectors that others are written as what differs from, in the order of their first use."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._places: dict[int, int] = {}
        self._vectors: list[npt.NDArray[Any]] = []

    def place_of(self, vector: npt.NDArray[Any] | Sparse) -> int:
        """The place of what a vector is written as a difference from, which is added if it is new; NO_BASE if none."""
        base = vector.base if isinstance(vector, Sparse) else None
        if base is None:
            return NO_BASE
        place = self._places.setdefault(base.__array_interface__["data"][0], len(self._vectors))
        if place == len(self._vectors):
            self._vectors.append(base)
        return place

    @property
    def stacked(self) -> npt.NDArray[Any]:
        """One in each row, [b, n]."""
        return np.concatenate(self._vectors or [np.zeros(0)]).reshape(-1, self._length)


def _stacked(name: str, claims: Sequence[Claim], bases: SharedVectors) -> dict[str, npt.NDArray[Any]]:
    """The claims of a kind as arrays: their goals, [c], and the numbers of each of their vectors, one after the other.

    Of a vector of which most numbers are the same, only the others are written, and their places; `sizes` says how many
    numbers of each vector there are, [c]. Lower bounds may also be written as what differs from one of the bases.
    """
    arrays: dict[str, npt.NDArray[Any]] = {f"{name}.goal": np.array([claim.goal for claim in claims], dtype=np.int64)}
    for field in fields(CLAIMS[name])[1:]:
        vectors = [claim.kept(field.name) for claim in claims]
        sparse = [vector for vector in vectors if isinstance(vector, Sparse)]
        numbers = [vector.numbers if isinstance(vector, Sparse) else vector for vector in vectors]
        column = f"{name}.{field.name}"
        arrays[column] = np.concatenate([np.zeros(0, dtype_of(field.name)), *numbers])
        arrays[f"{column}.sizes"] = np.array([len(part) for part in numbers], dtype=np.int64)
        arrays[f"{column}.places"] = np.concatenate([np.zeros(0, np.int64), *(vector.places for vector in sparse)])
        if field.name == "regret":
            rest = [vector.rest if isinstance(vector, Sparse) else 0.0 for vector in vectors]
            arrays[f"{column}.rest"] = np.array(rest, dtype=np.float64)
        if field.name == "lower":
            arrays[f"{column}.base"] = np.array([bases.place_of(vector) for vector in vectors], dtype=np.int64)
    return arrays


def _unstacked(kind: type[Kind], name: str, arrays: Mapping[str, npt.NDArray[Any]], n_known: int) -> tuple[Kind, ...]:
    goals = _array(arrays, f"{name}.goal")
    columns = [_vectors(arrays, f"{name}.{field.name}", field.name, n_known) for field in fields(kind)[1:]]
    if any(len(column) != len(goals) for column in columns) or goals.ndim != 1 or goals.dtype != np.int64:
        raise InvalidInputError(f"the arrays {name}.* do not have a row for each claim")
    return tuple(kind(int(goal), *vectors) for goal, *vectors in zip(goals, *columns, strict=True))


def _vectors(
    arrays: Mapping[str, npt.NDArray[Any]], column: str, name: str, n_known: int
) -> list[npt.NDArray[Any] | Sparse]:
    """The vectors that `_stacked` wrote to a column; refuses numbers and places that no vectors have."""
    numbers, sizes, places = (_array(arrays, f"{column}{part}") for part in ("", ".sizes", ".places"))
    is_whole = sizes == n_known
    base = _array(arrays, f"{column}.base") if name == "lower" else np.full(len(sizes), NO_BASE)
    rest = _array(arrays, f"{column}.rest") if name == "regret" else np.zeros(len(sizes))
    bases = _array(arrays, "bases")
    well_formed = (
        numbers.ndim == sizes.ndim == places.ndim == base.ndim == rest.ndim == 1
        and rest.dtype == np.float64
        and len(rest) == len(sizes)
        and base.dtype == np.int64
        and len(base) == len(sizes)
        and bool(((base >= NO_BASE) & (base < len(bases)) & ~(is_whole & (base != NO_BASE))).all())
        and bases.dtype == np.float64
        and bases.shape[1:] == (n_known,)
        and numbers.dtype == dtype_of(name)
        and sizes.dtype == places.dtype == np.int64
        and bool(((sizes >= 0) & (is_whole | (2 * sizes <= n_known))).all())
        and sizes.sum() == len(numbers)
        and sizes[~is_whole].sum() == len(places)
        and bool(((places >= 0) & (places < n_known)).all())
    )
    if not well_formed:
        raise InvalidInputError(f"the arrays {column}* do not describe vectors of {n_known} numbers")
    vectors: list[npt.NDArray[Any] | Sparse] = []
    first, first_place = 0, 0
    for size, shared, usual in zip(sizes.tolist(), base.tolist(), rest.tolist(), strict=True):
        part, own = numbers[first : first + size], places[first_place : first_place + size]
        first += size
        if size == n_known:
            vectors.append(part)
            continue
        first_place += size
        has_first = size > 0 and own[0] == 0
        if (np.diff(own) <= 0).any() or not (has_first or name in ("policy", "regret") or shared != NO_BASE):
            raise InvalidInputError(f"the places in {column} do not ascend, or the initial state is missing")
        others = usual if name == "regret" else rest_of(name, part[0] if has_first else 0.0)
        vectors.append(Sparse(n_known, others if shared == NO_BASE else bases[shared], own, part))
    return vectors


def _array_fields(kind: type[Any]) -> list[str]:
    """The fields of a record that are arrays."""
    return [field.name for field in fields(kind) if field.name not in ("names", "tied")]


def _optional(name: str, arrays: Mapping[str, npt.NDArray[Any]], **others: Any) -> Any:
    """The record of this name, with what is no array of it; None if there is none of its arrays."""
    names = {field: f"{name}.{field}" for field in _array_fields(OPTIONAL[name])}
    if not arrays.keys() & set(names.values()):
        return None
    return OPTIONAL[name](**others, **{field: _array(arrays, array) for field, array in names.items()})


def _outcome_names(given: Sequence[Any]) -> tuple[Any, ...]:
    """The class and the name of each outcome."""
    names = tuple(map(decode_label, given))
    if not all(isinstance(name, tuple) and len(name) == 2 for name in names):
        raise InvalidInputError("'outcomes' does not name a class and an outcome each")
    return names


def _array(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    if name not in arrays or arrays[name].ndim == 0:
        raise InvalidInputError(f"the array {name!r} is missing")
    return arrays[name]


def _assembled(body: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Certificate:
    """The certificate of these parts, the inverse of `Certificate._parts`."""
    for key, kind in KINDS.items():
        if not isinstance(body.get(key), kind):
            raise InvalidInputError(f"{key!r} is missing or of the wrong kind")
    if body["objective"] not in [objective.value for objective in Objective]:
        raise InvalidInputError(f"there is no objective {body['objective']!r}")
    if not all(isinstance(actions, list) for actions in body["actions"]):
        raise InvalidInputError("'actions' is not a list of lists")
    certificate = Certificate(
        **{key: _number(body, key) for key in ("radius", "epsilon", "delta")},
        objective=Objective(body["objective"]),
        known=tuple(map(decode_label, body["known"])),
        others=tuple(map(decode_label, body["others"])),
        actions=tuple(tuple(map(decode_label, actions)) for actions in body["actions"]),
        counts=Counts(**{field.name: _array(arrays, f"counts.{field.name}") for field in fields(Counts)}),
        reachable=_unstacked(Reachable, "reachable", arrays, len(body["known"])),
        too_far=_unstacked(TooFar, "too_far", arrays, len(body["known"])),
        near_optimal=_unstacked(NearOptimal, "near_optimal", arrays, len(body["known"])),
        at_most=_unstacked(AtMost, "at_most", arrays, len(body["known"])),
        at_least=_unstacked(AtLeast, "at_least", arrays, len(body["known"])),
        complete=body["complete"],
        findings=tuple(map(FindingRecord.from_json, body["findings"])),
        faults=tuple(map(FaultRecord.from_json, body["faults"])),
        episodes=records_from_json(body.get("episodes")),
        assumed=_optional("assumed", arrays, tied=_optional("tied", arrays, names=_outcome_names(body["outcomes"]))),
        apart=_optional("apart", arrays),
        distances=_optional("distances", arrays),
        memory=Memory.from_json(body["memory"]) if "memory" in body else None,
    )
    parts = certificate._parts
    if parts[0] != body or parts[1].keys() != arrays.keys() or not np.array_equal(parts[1]["bases"], arrays["bases"]):
        raise InvalidInputError("it holds something that does not belong there")
    return certificate


def _number(body: Mapping[str, Any], key: str) -> float:
    if not isinstance(body.get(key), float):
        raise InvalidInputError(f"{key!r} is missing or not a number with a decimal point")
    return float(body[key])


def _check_settings(certificate: Certificate) -> None:
    """Refuses settings for which nothing is defined, and lists that do not fit each other."""
    radius, epsilon, delta = certificate.radius, certificate.epsilon, certificate.delta
    defined = math.isfinite(radius) and radius >= 1 and math.isfinite(epsilon) and epsilon > 0
    if not (defined and LEAST_DELTA <= delta < 1):
        raise InvalidInputError(f"radius {radius}, epsilon {epsilon} and delta {delta} cannot be")
    if certificate.objective is Objective.STAGED:
        raise InvalidInputError(f"nothing is claimed for the objective {Objective.STAGED.value}")
    if not certificate.known or len(certificate.actions) != len(certificate.known):
        raise InvalidInputError(
            f"{len(certificate.known)} known states with {len(certificate.actions)} lists of actions"
        )


def _check_assumed(certificate: Certificate) -> None:
    """Refuses assumptions and distances that do not fit the counts, or each other."""
    assumed, distances, n_pairs = certificate.assumed, certificate.distances, len(certificate.pair_owners)
    if assumed is not None:
        assumed.check_shape(n_pairs)
        if assumed.tied is not None:
            others = 0 if certificate.apart is None else len(certificate.apart.second_draws)
            assumed.tied.check_shape(n_pairs, len(certificate.counts.counts), certificate.n_seen, others)
        if certificate.episodes and assumed.sentences:
            raise InvalidInputError("tests by episodes need the part of δ that assumptions take")
    if certificate.apart is not None:
        certificate.apart.check_shape(len(certificate.known))
    if distances is None:
        return
    distances.check_shape(len(certificate.known), certificate.n_seen, n_pairs)
    if assumed is None or not assumed.single.all() or certificate.claims or certificate.episodes:
        raise InvalidInputError("distances need every pair to be assumed to have one outcome, and no other claims")
