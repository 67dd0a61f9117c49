"""Bounds that a run notes on its way change nothing of what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axplore import explore
from axplore.runs import recording
from axplore.runs.events import read_events
from axplore.target import Objective
from axplore_studies.kills import RESULTS

CHAIN = "confusing-chain"


def noted(folder: Path) -> list[dict[str, Any]]:
    return [dict(event) for event in read_events(folder) if event["event"] == "bounds"]


@pytest.fixture
def _bounds_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SECONDS_FOR_BOUNDS", 1e9)
    monkeypatch.setattr(recording, "GROWTH_BETWEEN_BOUNDS", 0.0)


@pytest.mark.parametrize("objective", [Objective.OPTIMAL, Objective.WITHIN_RADIUS])
@pytest.mark.usefixtures("_bounds_always")
def test_noting_bounds_after_every_piece_of_work_leaves_the_same_bytes(
    objective: Objective, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explore(CHAIN, 4.5, 0.5, objective=objective, run=tmp_path / "with")
    monkeypatch.setattr(recording, "SECONDS_FOR_BOUNDS", -1e9)
    explore(CHAIN, 4.5, 0.5, objective=objective, run=tmp_path / "without")
    assert len(noted(tmp_path / "with")) > 20
    assert len(noted(tmp_path / "without")) == 1
    for name in RESULTS:
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()


def test_the_last_bounds_noted_are_those_of_the_atlas_rounded_outwards(tmp_path: Path) -> None:
    atlas = explore(CHAIN, 4.5, 0.5, run=tmp_path)
    last, n = noted(tmp_path)[-1], len(atlas.states)
    assert last["steps"] == atlas.steps
    lower, upper = np.array(last["lower"]), np.array(last["upper"])
    assert lower == pytest.approx(atlas.lower[:n], abs=1.1e-4)
    assert upper == pytest.approx(atlas.upper[:n], abs=1.1e-4)
    assert (lower <= atlas.lower[:n]).all()
    assert (upper >= atlas.upper[:n]).all()


@pytest.mark.parametrize("objective", [Objective.OPTIMAL, Objective.WITHIN_RADIUS])
@pytest.mark.usefixtures("_bounds_always")
def test_bounds_noted_on_the_way_are_those_of_the_atlas_of_a_run_that_ends_there(
    objective: Objective, tmp_path: Path
) -> None:
    explore(CHAIN, 4.5, 0.5, objective=objective, run=tmp_path / "whole")
    first: dict[int, dict[str, Any]] = {}
    for event in noted(tmp_path / "whole"):
        first.setdefault(event["steps"], event)
    assert list(first) == sorted(first)
    for steps, event in list(first.items())[3::10]:
        folder = tmp_path / str(steps)
        atlas = explore(CHAIN, 4.5, 0.5, objective=objective, max_steps=steps, run=folder)
        last = noted(folder)[-1]
        assert atlas.steps == steps
        assert (last["lower"], last["upper"]) == (event["lower"], event["upper"])


def test_an_explorer_without_proof_notes_no_bounds(tmp_path: Path) -> None:
    explore(CHAIN, 4.5, 0.8, explorer="disco-experiment", run=tmp_path)
    assert noted(tmp_path) == []
