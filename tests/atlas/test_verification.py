"""No single change of a saved atlas or its certificate makes it say what does not follow.

Every array and every field of both files is changed, one number or one entry at a time, and sealed again. The change is
refused, or found out by the verifier, or it changes no answer, or every answer still follows and is still true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import axplore
from altered import altered
from axplore import Atlas, storage
from axplore.atlas import files
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import AtLeast, NearOptimal, TooFar, document
from axplore.errors import AxploreError
from axplore.explorers.certified import Certified
from axplore.labels import canonical_json
from axplore.memory import Memory
from axplore.proofs import shared_bounds
from axplore.records.assumed import Assumed
from axplore.records.episodes import EpisodeRecord
from axplore.records.findings import Fault, FaultKind, Finding, Issue, Level
from axplore.records.order import Labels
from axplore.records.retired import RetiredStates
from axplore.target import Target
from axplore.truth import optimal_steps, policy_steps_on

CHAIN = axplore.domain("confusing-chain")
SETTINGS: dict[str, dict[str, Any]] = {
    "optimal": {},
    "cut short": {"max_steps": 600},
    "within radius, cut short": {"objective": "within-radius", "max_steps": 600},
}
FILES = {"atlas": (files.FORMAT, files.VERSION), "certificate": (document.FORMAT, document.VERSION)}

Parts = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]
"""The JSON and the arrays of a file."""

OBJECTIVES = [objective.value for objective in axplore.Objective]

UNPROVEN = ("run",)
"""How the run went: no count can prove it, and nothing proven changes with it."""

DOUBTS: dict[str, list[Any]] = {
    "findings": [(Finding(Issue.START_NOT_FIXED, "Seen.", "Bad.", "Mend it.", Level.DOUBT),)],
    "faults": [(Fault(FaultKind.DIED, "gone", Labels(["s0", "forward"]), 5, count=2),)],
    "assumed": [Assumed({"deterministic": np.ones(1)})],
    "memory": [Memory(("s0", "s0"), ("s0", "s0 | after forward"), {})],
    "retired": [RetiredStates(*(np.ones(1, dtype=np.int64) for _ in range(4)))],
    "tests": [(EpisodeRecord(1, (0,), (0,), 1, 1.0, 1.0, 2.0, 1, 1, (0.5,), (1.0,), (0, 9, 0)),)],
}


@pytest.fixture(scope="module", params=SETTINGS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return explored(SETTINGS[request.param], tmp_path_factory.mktemp("runs") / "chain")


@pytest.fixture(scope="module")
def saved_as_large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the certificate that a large model would have: its lower bounds share bases."""
    folder = tmp_path_factory.mktemp("runs") / "large"
    explorer = Certified(target=Target(radius=4.5, epsilon=0.8, delta=0.1), whole_up_to=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_bounds, "MOST_KEPT", 0.5)
        axplore.explore(CHAIN, explorer=explorer, seed=3).save(folder)
    return folder


def explored(settings: dict[str, Any], folder: Path) -> Path:
    axplore.explore(CHAIN, radius=4.5, epsilon=0.8, seed=3, **settings).save(folder)
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
        taken = policy_steps_on(CHAIN, list(atlas.states), atlas.policies[atlas.index_of(goal)], goal)
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
    yield from (objective for objective in OBJECTIVES if value in OBJECTIVES and value != objective)
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
def test_no_single_change_makes_a_run_say_what_does_not_follow(
    name: str, saved: Path, request: pytest.FixtureRequest
) -> None:
    """The runs that were cut short are changed in fewer places: what they share with the first is tried there."""
    is_first = request.node.callspec.params["saved"] == next(iter(SETTINGS))
    check_single_changes(name, saved, every=1 if is_first else 3)


def test_no_change_of_a_field_makes_a_complete_run_promise_more(tmp_path: Path) -> None:
    """Of policies within the radius; its arrays are like those of the runs above."""
    saved = explored({"objective": "within-radius"}, tmp_path / "saved")
    body, _ = storage.read_sealed(saved, "certificate", *FILES["certificate"])
    check_single_changes("certificate", saved, lambda part: part in body)


def test_no_single_change_makes_a_large_run_say_what_does_not_follow(saved_as_large: Path) -> None:
    _, arrays = storage.read_sealed(saved_as_large, "certificate", *FILES["certificate"])
    shared = np.concatenate([array for name, array in arrays.items() if name.endswith(".lower.base")])
    assert max(np.bincount(shared[shared >= 0])) > 1, "no two bounds share a base"
    # All else is as it is without shared bases.
    check_single_changes("certificate", saved_as_large, lambda part: ".lower." in part)


def read_forged(forged: dict[str, Parts], folder: Path, name: str, *format_and_version: Any) -> Parts:
    """What `storage.read_sealed` reads after `storage.write_sealed` wrote it; files would take most of the time."""
    body, arrays = forged[name]
    body = storage.parsed_json(json.dumps(body).encode())
    storage.check_format(folder / f"{name}.json", body, *format_and_version)
    return body, dict(arrays)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields where something stands in JSON, but for the names of arrays; of a list the first and the last item."""
    if isinstance(value, dict) and "array" in value:
        return
    if path:
        yield path
    items: dict[Any, Any] = {}
    if isinstance(value, dict):
        items = value
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        items = {0: value[0], len(value) - 1: value[-1]}
    for key, item in items.items():
        yield from places_in(item, (*path, key))


def at(body: Any, path: Sequence[Any]) -> Any:
    for key in path:
        body = body[key]
    return body


def with_other(body: Any, path: Sequence[Any], value: Any) -> Any:
    """JSON in which something else stands in one place; a copy, but for what is beside the way to this place."""
    if not path:
        return value
    copied = body.copy()
    copied[path[0]] = with_other(body[path[0]], path[1:], value)
    return copied


def without(holder: Any, key: Any) -> Any:
    """An object or a list of JSON without one of its items."""
    copied = holder.copy()
    del copied[key]
    return copied


def check_single_changes(
    name: str, saved: Path, is_changed: Callable[[str], bool] = lambda _: True, every: int = 1
) -> None:
    """Changes a file in one place after the other.

    Args:
        name: of the file.
        saved: the folder.
        is_changed: whether a part of it is changed.
        every: one change in this many is tried of each part.
    """
    before = answers(Atlas.load(saved))
    kept = {name: storage.read_sealed(saved, name, *FILES[name]) for name in FILES}
    body, arrays = kept[name]
    kept_json = canonical_json(body)
    seen: dict[str, set[str]] = {}

    def tried(part: str, body: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        forged = kept | {name: (body, arrays)}
        if name == "certificate":  # and the atlas beside it is sealed again too
            record, found_at = kept["atlas"]
            forged["atlas"] = ({**record, "certificate": storage.digest_of(body, arrays)}, found_at)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "read_sealed", partial(read_forged, forged))
            seen.setdefault(part, set()).add(outcome(saved, before))

    changed = [*filter(is_changed, arrays)]
    for part in changed:
        for forged in list(changed_arrays(arrays[part]))[::every]:
            tried(part, body, {**arrays, part: forged})
        tried(part, body, {other: kept for other, kept in arrays.items() if other != part})
    changed_fields = {".".join(map(str, path)): path for path in places_in(body)}
    for part in filter(is_changed, changed_fields):
        *outer, last = changed_fields[part]
        holder = at(body, outer)
        for forged_value in list(changed_values(holder[last]))[::every]:
            forged_body = with_other(body, outer, with_other(holder, [last], forged_value))
            if canonical_json(forged_body) != kept_json:
                tried(part, forged_body, arrays)
        tried(part, with_other(body, outer, without(holder, last)), arrays)
    assert {part: ends for part, ends in seen.items() if "FALSE" in ends} == {}
    assert set(seen) == {*changed, *filter(is_changed, changed_fields)}
    assert "refused" in set().union(*seen.values())
    if name == "atlas":
        assert not any("true" in ends for ends in seen.values()), "an atlas holds nothing that is proven"
        harmless = {part for part, ends in seen.items() if "harmless" in ends}
        assert all(part.startswith(UNPROVEN) for part in harmless)


def test_an_atlas_says_nothing_that_its_certificate_does_not_say(chain: Atlas) -> None:
    again = Atlas(source=chain.source, run=chain.run)
    assert answers(again) == answers(chain)
    assert {field.name for field in fields(Atlas)} == {"source", "run", "part"}


def test_lower_bounds_and_open_states_are_claimed_too() -> None:
    for settings in SETTINGS.values():
        atlas = axplore.explore(CHAIN, radius=4.5, epsilon=0.8, seed=3, **settings)
        assert atlas.certificate is not None
        assert axplore.verify(atlas).holds
        claimed = {claim.goal for claim in atlas.certificate.of(TooFar)}
        claimed |= {claim.goal for claim in atlas.certificate.of(AtLeast)}
        claimed |= {claim.goal for claim in atlas.certificate.of(NearOptimal)}
        assert claimed == set(range(1, len(atlas.states) + len(atlas.frontier) + 1))
        assert is_true(atlas)


def test_a_contradiction_is_seen_in_the_certificate_alone(chain: Atlas) -> None:
    atlas = chain
    assert atlas.certificate is not None
    refuted = altered(atlas, lower=np.full(len(atlas.lower), 100.0))
    assert refuted.verdict.kind is VerdictKind.CONTRADICTED
