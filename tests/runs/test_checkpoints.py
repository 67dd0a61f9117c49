from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from axplore.domains import confusing_chain
from axplore.errors import DamagedFileError
from axplore.explorers.base import Explorer, RoundReport, first_counts, run
from axplore.explorers.certified import Certified, CertifiedState
from axplore.explorers.registry import preset
from axplore.proofs.claims import ToOptimise, ToProve, ToReach, ToSetAside
from axplore.records.run import StopReason
from axplore.runs.checkpoints import decode_state, encode_state
from axplore.storage import digest_of
from axplore.target import Target
from axplore.worlds.simulated import SimulatedWorld

NAMES = ("certified", "disco-experiment", "ucb-explore-experiment", "ucb-explore-staged-experiment")


def written(state: Any, explorer: Explorer[Any]) -> str:
    saved = encode_state(state, explorer)
    return digest_of(saved.content, saved.arrays)


def read_back(state: Any, explorer: Explorer[Any], world: SimulatedWorld) -> Any:
    saved = encode_state(state, explorer)
    content = json.loads(json.dumps(saved.content, allow_nan=False))
    return decode_state(replace(saved, content=content), explorer, world.snapshot())


@pytest.mark.parametrize("name", NAMES)
def test_every_state_of_an_exploration_is_read_back_as_it_was(name: str) -> None:
    explorer = preset(name, radius=2.0, epsilon=1.0)
    seen = 0

    def check(report: RoundReport) -> None:
        nonlocal seen
        state: Any = report.state
        again = read_back(state, explorer, world)
        assert type(again) is type(state)
        # The written form holds every field, so that equal forms are equal states.
        assert written(again, explorer) == written(state, explorer)
        for part in ("round", "known", "found_at", "frontier", "activity", "stop"):
            assert getattr(again, part) == getattr(state, part)
        seen += 1

    world = SimulatedWorld(confusing_chain(), 0)
    run(explorer, world, max_steps=20_000, observers=[check])
    assert seen > 3


def test_claims_and_numbers_that_are_not_finite_are_read_back() -> None:
    world = SimulatedWorld(confusing_chain(), 0)
    claims: frozenset[ToProve] = frozenset(
        {ToReach(1, 0.1 + 0.2, None), ToReach(1, 0.3, 1), ToSetAside(2, np.inf), ToOptimise(3, 1e-300)}
    )
    state = CertifiedState(
        round=3,
        known=(0,),
        found_at=(5,),
        stop=StopReason.PROVEN,
        counts=first_counts(world),
        proven=claims,
        activity="“±”",
    )
    again = read_back(state, Certified(target=Target(radius=2.0, epsilon=1.0)), world)
    assert isinstance(again, CertifiedState)
    assert again.proven == claims
    assert (again.stop, again.activity) == (StopReason.PROVEN, "“±”")


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: 7,
        lambda state: [state],
        lambda _: {"kind": "CertifiedState"},
        lambda state: {**state, "kind": "os.system"},
        lambda state: {**state, "kind": "ToSetAside", "fields": {"goal": 1, "steps": 2.0}},
        lambda state: {**state, "fields": {**state["fields"], "stop": {"stop": "TIRED"}}},
        lambda state: {**state, "fields": {**state["fields"], "counts": {"counts": "elsewhere"}}},
        lambda state: {**state, "fields": {**state["fields"], "more": 1}},
        lambda state: {**state, "fields": {**state["fields"], "known": {"array": "array9"}}},
    ],
)
def test_what_is_no_state_is_refused(damage: Any) -> None:
    explorer = preset("certified", radius=2.0, epsilon=1.0)
    world = SimulatedWorld(confusing_chain(), 0)
    saved = encode_state(explorer.start(world), explorer)
    with pytest.raises(DamagedFileError, match="no state of"):
        decode_state(replace(saved, content=damage(saved.content)), explorer, world.snapshot())
