"""The certificate: the counts of an exploration and what it claims to follow from them."""

from __future__ import annotations

import math
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from axplore import storage
from axplore.certificate import kinds
from axplore.certificate.assumptions.kind import Shape
from axplore.certificate.assumptions.registry import check_assumed, clauses
from axplore.certificate.count_checks import check_counts
from axplore.certificate.ranges import LEAST_DELTA, LEAST_STEPS, MOST_STEPS, check_named, check_real
from axplore.certificate.retired import check_retired
from axplore.errors import DamagedFileError, InvalidInputError
from axplore.goals import formula_of
from axplore.memory import Memory
from axplore.records.assumed import Assumed
from axplore.records.codec import Record, pack, unpack
from axplore.records.counts import Counts
from axplore.records.findings import Examined, Fault, Finding
from axplore.records.order import Labels
from axplore.records.properties import NamedStates
from axplore.records.retired import RetiredStates
from axplore.target import NO_RADIUS, Objective
from axplore.types import IntArray

NAME: Final = "certificate"
FORMAT: Final = "axplore certificate"
VERSION: Final = 19

AnyRecord = TypeVar("AnyRecord")


class Basis(Record, frozen=True, kw_only=True):
    """What the claims of a certificate rest on.

    Attributes:
        radius: L.
        epsilon: ε.
        delta: δ.
        objective: what was asked for.
        complete: whether it claims that nothing is missing, so that the objective is reached.
        counts: what was drawn from the known states, which come first in its order, as they were admitted.
        findings: what was found when the system was examined before it was explored.
        faults: failures of the system while it was explored.
        examined: how long it was looked at for what its labels may hide; None if it was not, as of a known model.
        assumed: what is assumed of each pair; None if nothing is.
        retired: states that were counted and are not known; None if there are none.
        memory: what tells situations apart, if these are the states; None if the outputs of the system are.
        goal: the states that were asked for, by a formula, which is empty if a function chose them; None if a map of
            everything within the radius was.
    """

    radius: float
    epsilon: float
    delta: float
    objective: Objective
    complete: bool
    counts: Counts
    findings: tuple[Finding, ...] = ()
    faults: tuple[Fault, ...] = ()
    examined: Examined | None = None
    assumed: Assumed | None = None
    retired: RetiredStates | None = None
    memory: Memory | None = None
    goal: NamedStates | None = None


class Certificate(Basis, frozen=True, kw_only=True):
    """The counts of an exploration and what it claims to follow from them.

    It is well formed by construction: shapes, indices and actions fit each other. Whether its claims hold is what
    `axplore.certificate.verify` finds out.

    Attributes:
        claims: of the kinds in `axplore.certificate.kinds`.
    """

    claims: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_settings(self)
        check_counts(self.counts)
        _check_assumed(self)
        _check_goal(self)
        if len(self.claims) != sum(len(self.of(kind.record)) for kind in kinds.KINDS):
            raise InvalidInputError("a claim is of no kind that certificates hold")
        for kind in kinds.KINDS:
            kind.check_shapes(self.of(kind.record), self)

    def of(self, record: type[AnyRecord]) -> tuple[AnyRecord, ...]:
        """Returns the claims of one kind, by the type of their records."""
        return tuple(self._by_type.get(record, ()))

    @cached_property
    def _by_type(self) -> dict[type[Any], list[Any]]:
        claims: dict[type[Any], list[Any]] = {}
        for claim in self.claims:
            claims.setdefault(type(claim), []).append(claim)
        return claims

    @cached_property
    def known(self) -> Labels:
        """The labels of the known states, in order of admission, [n]."""
        return self.counts.order[: len(self.actions)]

    @cached_property
    def others(self) -> Labels:
        """The labels of the other states seen."""
        return self.counts.order[len(self.actions) :]

    @property
    def actions(self) -> tuple[Labels, ...]:
        """The labels of the actions of each known state, [n]."""
        return self.counts.actions

    @cached_property
    def n_actions(self) -> IntArray:
        """The number of actions of each known state, [n]."""
        return np.array([len(actions) for actions in self.actions], dtype=np.int64)

    @property
    def reach(self) -> float:
        """L + ε."""
        return self.radius + self.epsilon

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed, as clauses that follow "if"; empty if nothing is."""
        return clauses(self.assumed)

    @property
    def pair_owners(self) -> IntArray:
        """The known state of each pair, [P]."""
        return np.repeat(np.arange(len(self.known)), self.n_actions)

    @property
    def n_seen(self) -> int:
        """How many states were seen; also the index that stands for those never seen."""
        return len(self.counts.order)

    @property
    def state_pairs(self) -> IntArray:
        """The first pair of each known state, and the end of the last one, [n + 1]."""
        return self.counts.state_pairs

    def save(self, folder: Path | str) -> None:
        """Writes certificate.json and certificate.npz into a folder, which is made if it is missing."""
        storage.write_sealed(Path(folder), NAME, *self.content)

    @classmethod
    def load(cls, folder: Path | str) -> Certificate:
        """Reads what `save` wrote; refuses files that are missing, damaged, edited or of another version."""
        body, arrays = storage.read_sealed(Path(folder), NAME, FORMAT, VERSION)
        try:
            return read(body, arrays)
        except InvalidInputError as error:
            raise DamagedFileError(f"{Path(folder) / NAME}.json is not a certificate: {error}") from None

    @property
    def digest(self) -> str:
        """SHA-256 of everything it holds, as hexadecimal digits."""
        return storage.digest_of(*self.content)

    @cached_property
    def content(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What goes into the JSON file and into the arrays."""
        kept = {}
        for kind in kinds.KINDS:
            claims = self.of(kind.record)
            kept[kind.name] = kind.kept(claims) if claims else None
        basis = {name: getattr(self, name) for name in Basis.__struct_fields__}
        body, arrays = pack({"assumptions": self.assumptions, **basis, "claims": kept})
        return {"format": FORMAT, "version": VERSION, **body}, arrays


def read(body: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Certificate:
    """The certificate of what goes into its files, the inverse of `Certificate.content`."""
    content = {name: value for name, value in body.items() if name not in ("format", "version")}
    document: Any = unpack(_document_type(tuple((kind.name, kind.kept_as) for kind in kinds.KINDS)), content, arrays)
    claims: list[Any] = []
    for kind in kinds.KINDS:
        kept = getattr(document.claims, kind.name)
        if kept is not None:
            claims += kind.read(kept)
    basis = {name: getattr(document, name) for name in Basis.__struct_fields__}
    certificate = Certificate(**basis, claims=tuple(claims))
    if document.assumptions != certificate.assumptions:
        raise InvalidInputError("its assumptions in words are not those that it makes")
    if certificate.content[0]["claims"] != body["claims"]:
        raise InvalidInputError("it lists a kind of claims of which it has none")
    return certificate


@cache
def _document_type(kept: tuple[tuple[str, Any], ...]) -> type[msgspec.Struct]:
    """The record that the files hold: claims of each kind, by its name, in the form in which it is kept."""
    fields = [(name, form | None, None) for name, form in kept]
    claims = msgspec.defstruct("Claims", fields, bases=(Record,), frozen=True, forbid_unknown_fields=True)
    both = [("assumptions", tuple[str, ...]), ("claims", claims)]
    return msgspec.defstruct("Document", both, bases=(Basis,), frozen=True, kw_only=True, forbid_unknown_fields=True)


def _check_settings(certificate: Certificate) -> None:
    """Refuses settings for which nothing is defined."""
    check_real("the radius", certificate.radius, 1.0, MOST_STEPS)
    check_real("epsilon", certificate.epsilon, LEAST_STEPS, MOST_STEPS)
    check_real("delta", certificate.delta, LEAST_DELTA, math.nextafter(1, 0))
    if certificate.objective is Objective.STAGED:
        raise InvalidInputError(f"nothing is claimed for the objective {Objective.STAGED.value}")
    if certificate.objective is Objective.QUESTION and certificate.radius != NO_RADIUS:
        raise InvalidInputError("a question has no radius")


def _check_goal(certificate: Certificate) -> None:
    """Refuses a goal that is not what its formula says."""
    goal = certificate.goal
    if goal is None:
        return
    check_named("the goal", goal, certificate.n_seen)
    if certificate.objective is Objective.QUESTION:
        raise InvalidInputError("a question has no goal beside its properties")
    if goal.name:
        meant, _ = formula_of(goal.name).masks(certificate.counts.order, {})
        if not np.array_equal(np.flatnonzero(meant), goal.states):
            raise InvalidInputError(f"the states of the goal are not those of the formula {goal.name}")


def _check_assumed(certificate: Certificate) -> None:
    """Refuses assumptions that do not fit the counts."""
    assumed, retired, n_pairs = certificate.assumed, certificate.retired, len(certificate.pair_owners)
    if retired is not None:
        check_retired(retired, certificate.counts)
    if assumed is not None:
        others = 0 if retired is None else len(retired.second_draws)
        check_assumed(assumed, Shape(n_pairs, len(certificate.counts.counts), certificate.n_seen, others))
