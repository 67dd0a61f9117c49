"""No single change of a saved atlas or its certificate makes it say what does not follow.

Every array and every field of both files is changed, one number or one entry at a time, and sealed again. The change is
refused, or found out by the verifier, or it changes no answer, or every answer still follows and is still true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import axplore
from axplore import Atlas, Status, storage
from axplore.atlas import files
from axplore.atlas.verdict import VerdictKind
from axplore.atlas.verification import RECORD
from axplore.certificate import ClaimKind, document
from axplore.certificate.assumed import Apart, Assumed
from axplore.certificate.doubts import DOUBT, FaultRecord, FindingRecord
from axplore.certificate.episode_records import EpisodeRecord
from axplore.errors import AxploreError
from axplore.experiments.runner import policy_steps_on
from axplore.memory import Memory
from axplore.proofs import certificates, evidence, shared_bounds
from axplore.truth import optimal_steps

CHAIN = axplore.domain("confusing-chain")
SETTINGS: dict[str, dict[str, Any]] = {
    "optimal": {},
    "within radius": {"objective": "within-radius"},
    "cut short": {"max_steps": 600},
    "within radius, cut short": {"objective": "within-radius", "max_steps": 600},
}
FILES = {"atlas": (files.FORMAT, files.VERSION), "certificate": (document.FORMAT, document.VERSION)}

UNPROVEN = {"world", "explorer", "steps", "rounds", "found_at", "uncounted", "stop"}
"""How the run went: no count can prove it, and nothing proven changes with it."""

NAMES = {"known", "others", "actions"}
"""What states and actions are called: a certificate of the same draws in a world with other names is no forgery."""

DOUBTS: dict[str, list[Any]] = {
    "findings": [(FindingRecord("START_NOT_FIXED", "The start is not fixed", "Seen.", "Bad.", "Mend it.", DOUBT),)],
    "faults": [(FaultRecord("DIED", ("s0", "forward"), 2, "gone"),)],
    "assumed": [Assumed(np.ones(1, dtype=np.int64), np.zeros(1))],
    "memory": [Memory(("s0", "s0"), ("s0", "s0 | after forward"), {})],
    "apart": [Apart(*(np.ones(1, dtype=np.int64) for _ in range(4)))],
    "tests": [(EpisodeRecord(1, (0,), 1, 1.0, 2.0, 1, 1, (0.5,), (1.0,), (0, 9, 0)),)],
}


@pytest.fixture(scope="module", params=SETTINGS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return explored(request.param, tmp_path_factory.mktemp("runs") / "chain")


@pytest.fixture(scope="module")
def saved_as_large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the certificate that a large model would have: its lower bounds share bases."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (shared_bounds, evidence, certificates):
            patch.setattr(module, "MOST_WHOLE", 0)
        patch.setattr(shared_bounds, "MOST_KEPT", 0.5)
        return explored("optimal", tmp_path_factory.mktemp("runs") / "large")


def explored(setting: str, folder: Path) -> Path:
    axplore.explore(CHAIN, radius=4.5, epsilon=0.8, seed=3, **SETTINGS[setting]).save(folder)
    return folder


def answers(atlas: Atlas) -> dict[str, Any]:
    """Everything that an atlas says to be proven, and everything that is computed from its counts."""
    states = atlas.states
    reports = [*map(atlas.describe, states), *atlas.frontier, atlas.describe("atlantis")]
    return {
        "reports": [(repr(report.state), report.status, report.bounds) for report in reports],
        "policies": [policy.tolist() for policy in atlas.policies],
        "by episodes": [str(report.by_episodes) for report in reports],
        "counts": [atlas.successors(*pair) for pair in atlas.pairs],
        "model": [array.tolist() for array in atlas.model.rows[:5]],
        "question": (atlas.target, atlas.objective, atlas.complete),
        "doubts": (atlas.findings, atlas.faults),
    }


def is_true(atlas: Atlas) -> bool:
    """Whether everything that an atlas says to be proven holds of the chain."""
    target, known = atlas.target, [state for state in atlas.states if state in CHAIN.states]
    if len(known) < len(atlas.states):
        return False
    for goal in atlas.states:
        best, bounds = optimal_steps(CHAIN, goal, allowed=known), atlas.bounds(goal)
        taken = policy_steps_on(CHAIN, list(atlas.states), atlas.policies[atlas.place_of(goal)], goal)
        if best < bounds.lower - 1e-9 or taken > bounds.upper + 1e-9 or taken - best > bounds.regret + 1e-9:
            return False
        proof = atlas.by_episodes(goal)
        if proof is not None:
            taken = policy_steps_on(CHAIN, list(atlas.states), proof.policy.choices, goal)
            if taken > proof.within + 1e-9:
                return False
    others = {report.state: report for report in atlas.frontier}
    farther = {state: optimal_steps(CHAIN, state, allowed=known) for state in CHAIN.states if state not in known}
    unseen = [steps for state, steps in farther.items() if state not in others]
    return all(farther.get(state, np.inf) >= report.bounds.lower - 1e-9 for state, report in others.items()) and (
        not unseen or min(unseen) >= min(atlas.unseen_lower, target.radius) - 1e-9
    )


def outcome(folder: Path, before: dict[str, Any]) -> str:
    try:
        atlas = Atlas.load(folder)
        verification = axplore.verify(atlas)
        if not verification.holds:
            return "rejected"
        after = answers(atlas)
    except AxploreError:
        return "refused"
    if after == before:
        return "harmless"
    return "true" if is_true(atlas) else "FALSE"


def changed_arrays(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """The array with one number changed, at a few places, and one number more or less."""
    for place in sorted({0, array.size // 2, array.size - 1} if array.size else ()):
        value = array.flat[place]
        for other in (0, value + 1, value - 1, value * 3, value * 1.0001, value * 0.9999):
            if array.dtype.kind == "i" and other != int(other):
                continue
            copy = array.copy()
            copy.flat[place] = other
            if copy.flat[place] != value:
                yield copy
    if len(array) > 1:
        yield array[:-1]
        yield array[::-1].copy()
        yield array[[1, 0, *range(2, len(array))]]


def changed_values(value: Any) -> Iterator[Any]:
    """Other values of a field of JSON."""
    yield from (None, True, False, 1, 1.5, "PROVEN", [])
    if isinstance(value, float):
        yield from (value * 1.01, value * 0.99, value + 1, -value)
    if isinstance(value, int):
        yield from (value + 1, value - 1, 10 * value)
    if isinstance(value, list) and value:
        yield value[:-1]
        yield [*value[1:], value[0]]
        yield [*value, "one more"]
        yield [value[0]] * len(value)


@pytest.mark.parametrize("name", FILES)
def test_no_single_change_makes_a_run_say_what_does_not_follow(name: str, saved: Path, tmp_path: Path) -> None:
    check_single_changes(name, saved, tmp_path)


def test_no_single_change_makes_a_large_run_say_what_does_not_follow(saved_as_large: Path, tmp_path: Path) -> None:
    _, arrays = storage.read_sealed(saved_as_large, "certificate", *FILES["certificate"])
    shared = np.concatenate([arrays[f"{kind}.lower.base"] for kind in ("too_far", "near_optimal", "at_least")])
    assert max(np.bincount(shared[shared >= 0])) > 1, "no two bounds share a base"
    check_single_changes("certificate", saved_as_large, tmp_path)


def check_single_changes(name: str, saved: Path, tmp_path: Path) -> None:
    before = answers(Atlas.load(saved))
    body, arrays = storage.read_sealed(saved, name, *FILES[name])
    seen: dict[str, set[str]] = {}
    for other in {*FILES} - {name}:
        for suffix in ("json", "npz"):
            (tmp_path / f"{other}.{suffix}").write_bytes((saved / f"{other}.{suffix}").read_bytes())

    def tried(part: str, body: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        storage.write_sealed(tmp_path, name, body, arrays)
        if name == "certificate":  # and the atlas beside it is sealed again too
            record, found_at = storage.read_sealed(saved, "atlas", *FILES["atlas"])
            digest = storage.digest_of(body, arrays)
            storage.write_sealed(tmp_path, "atlas", {**record, "certificate": digest}, found_at)
        seen.setdefault(part, set()).add(outcome(tmp_path, before))

    for part, array in arrays.items():
        for forged in changed_arrays(array):
            tried(part, body, {**arrays, part: forged})
        tried(part, body, {other: kept for other, kept in arrays.items() if other != part})
    for part, value in body.items():
        for forged_value in changed_values(value):
            if forged_value != value or type(forged_value) is not type(value):
                tried(part, {**body, part: forged_value}, arrays)
        tried(part, {other: kept for other, kept in body.items() if other != part}, arrays)
    assert {part: ends for part, ends in seen.items() if "FALSE" in ends and part not in NAMES} == {}
    assert set(seen) == {*body, *arrays}
    if name == "atlas":
        assert not any("true" in ends for ends in seen.values()), "an atlas holds nothing that is proven"
        harmless = {part for part, ends in seen.items() if "harmless" in ends}
        assert harmless <= UNPROVEN


@pytest.mark.parametrize("name", ["chain", "unfinished"])
def test_every_part_of_an_atlas_in_memory_follows_from_the_certificate(
    name: str, request: pytest.FixtureRequest
) -> None:
    atlas: Atlas = request.getfixturevalue(name)
    for field in fields(Atlas):
        if field.name in RECORD or field.name == "certificate":
            continue
        for forged in DOUBTS.get(field.name) or forgeries_of(getattr(atlas, field.name)):
            verification = axplore.verify(replace(atlas, **{field.name: forged}))
            assert [claim.kind for claim in verification.failures] == [ClaimKind.ATLAS], field.name


def forgeries_of(part: Any) -> Iterator[Any]:
    """Other values of a part of an atlas; at least one."""
    if isinstance(part, np.ndarray):
        copy = part.copy()
        copy[1] = 7 if copy[1] != 7 else 8
        yield copy
    elif isinstance(part, dict):
        for name, array in part.items():
            for forged in forgeries_of(array):
                yield {**part, name: forged}
    elif isinstance(part, bool):
        yield not part
    elif isinstance(part, float):
        yield part * 1.001
    elif isinstance(part, axplore.Objective):
        yield axplore.Objective.WITHIN_RADIUS
    elif isinstance(part, tuple) and part and isinstance(part[0], Status):
        yield (Status.OPEN, *part[1:])
        yield (Status.CERTIFIED,) * len(part)
    elif isinstance(part, tuple) and part and isinstance(part[0], np.ndarray):
        yield part[:-1]
        yield (next(forgeries_of(part[0])), *part[1:])
    elif isinstance(part, tuple):
        yield ("one more", *part)
    else:
        yield replace(part, radius=part.radius + 0.5)


def test_lower_bounds_and_open_states_are_claimed_too() -> None:
    for settings in SETTINGS.values():
        atlas = axplore.explore(CHAIN, radius=4.5, epsilon=0.8, seed=3, **settings)
        assert atlas.certificate is not None
        assert axplore.verify(atlas).holds
        claimed = {claim.goal for claim in atlas.certificate.too_far}
        claimed |= {claim.goal for claim in atlas.certificate.at_least}
        claimed |= {claim.goal for claim in atlas.certificate.near_optimal}
        assert claimed == set(range(1, len(atlas.states) + len(atlas.frontier) + 1))
        assert is_true(atlas)


def test_a_contradiction_is_seen_in_the_certificate_alone(chain: Atlas) -> None:
    atlas = chain
    assert atlas.certificate is not None
    refuted = replace(atlas, lower=np.full(len(atlas.lower), 100.0))
    assert refuted.verdict.kind is VerdictKind.CONTRADICTED
