"""No certificate crashes the verifier: extreme values in any field are refused, or verified like any others."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Container, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from explored import certificate_of

import axplore
from axplore import Assumptions, StopReason, TabularMdp, storage
from axplore.certificate import (
    Certificate,
    Decision,
    EpisodeCertificate,
    Verification,
    document,
    verify,
    verify_episodes,
)
from axplore.certificate.bellman import bounds_along_way
from axplore.certificate.conclusions import conclusions_of
from axplore.certificate.count_checks import contradicted_assumption
from axplore.domains import GridTies, confusing_chain, slippery_grid
from axplore.errors import AxploreError, DamagedFileError
from axplore.labels import canonical_json
from axplore.memory import Memory
from axplore.records.counts import Counts
from axplore.records.distances import Distances
from axplore.records.episodes import EpisodeRecord
from axplore.records.order import Labels
from axplore.records.vectors import Vector
from axplore.truth import ACCURACY, optimal_steps
from axplore.types import RESET_ACTION
from edited import edited

DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]

VALUES: tuple[Any, ...] = (
    0, -1, 2**53, 2**63, 10**400, 0.0, 1e-320, 1e308, math.nan, math.inf, "", None, True, [], {}, DEEP,
)  # fmt: skip
FEW_VALUES: tuple[Any, ...] = (-1, 10**400, math.nan, None)
NUMBERS = (0, -1, 1, 2**53, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 1e-320, 1e9, 1e308, math.nan, math.inf)

GRID = slippery_grid(rows=2, columns=2, slip=0.1)
TIES = GridTies(rows=2, columns=2)
SETTINGS: dict[str, dict[str, Any]] = {
    "deterministic": {"assume": "deterministic"},
    "least probability": {"assume": "min-probability=0.05"},
    "tied": {"assume": Assumptions(tied=TIES.outcome_of, leads_to=TIES.leads_to)},
    "episodes": {"objective": "within-radius", "epsilon": 1.0},
}


@cache
def model_of(kind: str) -> TabularMdp:
    if kind == "memory":
        return confusing_chain()
    return slippery_grid(rows=2, columns=2, slip=0.0) if kind == "deterministic" else GRID


@cache
def certificate(kind: str) -> Certificate:
    """A certificate of a kind, with all that this kind may hold."""
    if kind == "memory":
        situation = Memory(("s0",), ("s0",), {(0, "a0", "s0"): 0}, {(0, "a0", "s0"): 3})
        return edited(certificate_of("chain cut short"), memory=situation)
    if kind == "retired":
        settings: dict[str, Any] = {"radius": 2.0, "epsilon": 1.0, "doctor": False, "max_steps": 300}
        with tempfile.TemporaryDirectory() as run:
            axplore.explore(GRID, assume=SETTINGS["tied"]["assume"], run=run, **settings)
            atlas = axplore.resume(run, GRID, assume="none", on_round=lambda _: StopReason.STEP_LIMIT)
    else:
        atlas = axplore.explore(
            model_of(kind), **{"radius": 2.0, "epsilon": 0.5, "doctor": False, "max_steps": 3000} | SETTINGS[kind]
        )
    assert atlas.certificate is not None
    return atlas.certificate


def test_the_kinds_are_what_they_are_called() -> None:
    tied = certificate("tied").assumed
    assert tied is not None
    assert tied.ties is not None
    assert certificate("retired").retired is not None
    assert certificate("episodes").of(EpisodeRecord)
    assert certificate("deterministic").of(Distances)
    assert certificate("memory").memory is not None


def test_a_way_drawn_so_seldom_that_its_factors_overflow_says_nothing() -> None:
    columns = (np.array(column) for column in ([0, 1], [0, 1], [1], [2], [1]))
    two_draws = Counts(Labels("ab"), (Labels("x"), Labels()), *columns)
    state_pairs, policy = np.array([0, 1, 1]), Vector.complete(np.array([0, RESET_ACTION]))
    assert bounds_along_way(two_draws, state_pairs, 1, policy, budget=1e4) is None
    assert bounds_along_way(two_draws, state_pairs, 1, policy, budget=1.0) is not None


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields where something stands in JSON; of a list the first and the last item."""
    if path:
        yield path
    items: dict[Any, Any] = {}
    if isinstance(value, dict):
        items = value
    elif isinstance(value, list) and value:
        items = {0: value[0], len(value) - 1: value[-1]}
    for key, item in items.items():
        yield from places_in(item, (*path, key))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """JSON in which something else stands in one place; a copy, but for what is beside the way to this place."""
    if not path:
        return value
    copied = body.copy()
    copied[path[0]] = changed(body[path[0]], path[1:], value)
    return copied


def changed_arrays(
    arrays: dict[str, npt.NDArray[Any]], elsewhere: Container[str]
) -> Iterator[tuple[str, dict[str, npt.NDArray[Any]]]]:
    """Yields the arrays with an extreme value in the first or last place of one of them, or in all, or none at all.

    Args:
        arrays: the arrays.
        elsewhere: the names of those that certificates of other kinds are tried with.
    """
    for name, array in arrays.items():
        values = FLOATS if array.dtype.kind == "f" else NUMBERS
        for value in values[1:5:3] if name in elsewhere else values:
            for place in ([0], slice(None)) if array.size else ():
                other = array.copy()
                other.flat[place] = value
                yield name, arrays | {name: other}
        if name in elsewhere:
            continue
        for other in (array[:0], array[:-1], array.reshape(1, -1), array.astype("f8")):
            yield name, arrays | {name: other}
        yield name, {kept: item for kept, item in arrays.items() if kept != name}


def read(body: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Certificate:
    """The certificate of a forgery, read as from a file whose digest fits."""
    try:
        parsed = storage.parsed_json(json.dumps(body).encode())
        canonical_json(parsed)
    except ValueError as error:  # what `storage.read_json` says of such a file
        raise DamagedFileError(str(error)) from None
    return document.read(parsed, arrays)


def check_truth(given: Certificate, model: TabularMdp) -> None:
    """Compares all that follows from a certificate with the truth."""
    concluded = conclusions_of(given)
    for position, state in enumerate((*given.known, *given.others)):
        best = optimal_steps(model, state, given.known)
        assert concluded.lower[position] <= best + ACCURACY
        assert best <= concluded.upper[position] + ACCURACY


KINDS = ("episodes", "deterministic", "retired", "memory", "least probability", "tied")
"""What a kind has in common with one before it is tried with few values."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
class TestCertificates:
    def test_extreme_values_in_the_document(self, kind: str) -> None:
        body, arrays = certificate(kind).content
        others = KINDS[: KINDS.index(kind)]
        before = {path for other in others for path in places_in(certificate(other).content[0])}
        for path in places_in(body):
            for value in FEW_VALUES if path in before else VALUES:
                _answered(lambda body: _verified(read(body, arrays)), changed(body, path, value), (path, value))

    def test_extreme_values_in_the_arrays(self, kind: str) -> None:
        body, arrays = certificate(kind).content
        before = {name for other in KINDS[: KINDS.index(kind)] for name in certificate(other).content[1]}
        for name, others in changed_arrays(arrays, before):
            verified = _answered(lambda arrays: _verified(read(body, arrays)), others, (name, others.get(name)))
            is_claim = name.startswith("claims.")
            if is_claim and verified is not None and verified.holds:
                check_truth(read(body, others), model_of(kind))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("claim", [{"within": 3.0, "chance": None}, {"within": None, "chance": 0.7}])
@pytest.mark.parametrize("decision", [Decision.PROVEN, Decision.REFUTED])
def test_extreme_values_in_a_certificate_by_episodes(
    claim: dict[str, Any], decision: Decision, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    plain = EpisodeCertificate(
        "w", "p", "g", **claim, horizon=9, restarts=False, delta=0.1, decision=decision, arrivals={2: 40, 5: 3},
        missed=2, ended=0, lost=1, steps=200,
    )  # fmt: skip
    body, path = plain._body(), tmp_path / "certificate.json"
    for place in places_in(body):
        for value in VALUES:
            forged = changed(body, place, value)
            try:
                storage.write_document(path, forged)
            except (ValueError, RecursionError, OverflowError):
                path.write_text(json.dumps({**forged, "digest": "0" * 64}))
            _answered(lambda path: verify_episodes(EpisodeCertificate.load(path)), path, (place, value))


def _verified(certificate: Certificate) -> Verification:
    """The verification of a certificate of which everything is asked that an atlas asks."""
    conclusions_of(certificate)
    contradicted_assumption(certificate)
    return verify(certificate)


def _answered(ask: Callable[[Any], Any], subject: Any, forgery: Any) -> Any:
    """What the verifier answers; None if it refuses with an error of its own."""
    try:
        return ask(subject)
    except AxploreError:
        return None
    except Exception as error:
        error.add_note(f"forged: {str(forgery)[:300]}")
        raise
