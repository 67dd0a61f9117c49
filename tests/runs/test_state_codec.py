from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from axplore.domains import confusing_chain
from axplore.errors import DamagedFileError
from axplore.explorers.base import Explorer, RoundReport, StopReason, run
from axplore.explorers.certified import Certified, CertifiedState
from axplore.explorers.registry import preset
from axplore.proofs.claims import Claim, NearOptimal, Reachable, TooFar
from axplore.runs.checkpoints import decode_state, encode_state
from axplore.statistics.counts import TransitionCounts
from axplore.storage import digest_of
from axplore.target import Target
from axplore.worlds.simulated import SimulatedWorld

NAMES = ("certified", "disco-experiment", "ucb-explore-experiment", "ucb-explore-staged-experiment")


def written(state: Any, explorer: Explorer[Any]) -> str:
    saved = encode_state(state, explorer)
    return digest_of(saved.content, saved.arrays)


def read_back(state: Any, explorer: Explorer[Any]) -> Any:
    saved = encode_state(state, explorer)
    return decode_state(replace(saved, content=json.loads(json.dumps(saved.content, allow_nan=False))), explorer)


@pytest.mark.parametrize("name", NAMES)
def test_every_state_of_an_exploration_is_read_back_as_it_was(name: str) -> None:
    explorer = preset(name, radius=2.0, epsilon=1.0)
    seen = 0

    def check(report: RoundReport) -> None:
        nonlocal seen
        state: Any = report.state
        again = read_back(state, explorer)
        assert type(again) is type(state)
        # The written form holds every field, so that equal forms are equal states.
        assert written(again, explorer) == written(state, explorer)
        for part in ("round", "known", "found_at", "frontier", "activity", "stop"):
            assert getattr(again, part) == getattr(state, part)
        seen += 1

    run(explorer, SimulatedWorld(confusing_chain(), 0), max_steps=20_000, observers=[check])
    assert seen > 3


def test_claims_and_numbers_that_are_not_finite_are_read_back() -> None:
    counts = TransitionCounts().with_states({0: 2})
    claims: frozenset[Claim] = frozenset(
        {Reachable(1, 0.1 + 0.2, None), Reachable(1, 0.3, 1), TooFar(2, np.inf), NearOptimal(3, 1e-300)}
    )
    state = CertifiedState(
        round=3, known=(0,), found_at=(5,), stop=StopReason.PROVEN, counts=counts, proven=claims, activity="“±”"
    )
    again = read_back(state, Certified(target=Target(radius=2.0, epsilon=1.0)))
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
        lambda state: {**state, "kind": "TooFar", "fields": {"goal": 1, "steps": 2.0}},
        lambda state: {**state, "fields": {**state["fields"], "stop": {"stop": "TIRED"}}},
        lambda state: {**state, "fields": {**state["fields"], "counts": {"counts": "elsewhere"}}},
        lambda state: {**state, "fields": {**state["fields"], "more": 1}},
        lambda state: {**state, "fields": {**state["fields"], "known": {"array": "array9"}}},
    ],
)
def test_what_is_no_state_is_refused(damage: Any) -> None:
    explorer = preset("certified", radius=2.0, epsilon=1.0)
    saved = encode_state(explorer.start(SimulatedWorld(confusing_chain(), 0)), explorer)
    with pytest.raises(DamagedFileError, match="no state of"):
        decode_state(replace(saved, content=damage(saved.content)), explorer)
