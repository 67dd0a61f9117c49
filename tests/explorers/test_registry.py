"""Adding an explorer is one file and one line: it then has everything that explorers have."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
import commands
from axplore import StopReason
from axplore.errors import BrokenContractError, InvalidInputError, UnknownNameError, UntrustedFileError
from axplore.explorers import registry
from axplore.explorers.base import (
    Exploration,
    Explorer,
    ExplorerState,
    RoundReport,
    exploration_of,
    first_counts,
    frontier_of,
    with_drawn,
)
from axplore.explorers.registry import DIRECTED, EXPLORERS, description_of, explorer_names, preset
from axplore.forecast import forecast
from axplore.records.counts import Counts
from axplore.target import Target
from axplore.testing import check_explorer
from axplore.types import RESET_ACTION
from axplore.worlds.contract import Visit, World


@dataclass(frozen=True, eq=False, kw_only=True)
class ToyState(ExplorerState):
    counts: Counts


@dataclass(frozen=True, kw_only=True)
class Toy(Explorer[ToyState]):
    """Plays the first action of the initial state ten times a round, three rounds long."""

    state_types = (ToyState,)

    target: Target

    def start(self, world: World) -> ToyState:
        return ToyState(round=1, known=(0,), found_at=(world.steps,), counts=first_counts(world))

    def advance(self, state: ToyState, world: World) -> ToyState:
        stay = np.full(1, RESET_ACTION, dtype=np.int64)
        counts = with_drawn(state.counts, world.carry_out([Visit(0, 0, 10, stay, max_journey=5)]), world)
        stop = StopReason.NO_CANDIDATES if state.round == 3 else None
        return replace(
            state, round=state.round + 1, counts=counts, frontier=frontier_of(counts), stop=stop, activity="toying"
        )

    def finish(self, state: ToyState, world: World) -> Exploration:
        stay = np.full(1, RESET_ACTION, dtype=np.int64)
        return exploration_of(self, state, world, counts=state.counts, policies=(stay,), optimistic_steps=np.zeros(1))


class Changing(Toy):
    """Breaks the contract: its round changes the state that it is given."""

    def advance(self, state: ToyState, world: World) -> ToyState:
        after = super().advance(state, world)
        object.__setattr__(state, "activity", "changed")
        return after


def make_toy(target: Target, states_bound: int | None = None) -> Toy:  # noqa: ARG001
    """The toy explorer, for this test."""
    return Toy(target=target)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the toy explorer, added by one line."""
    module = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "axplore.explorers.toy", module)
    monkeypatch.setattr(registry, "EXPLORERS", {**EXPLORERS, "toy": "toy:make_toy"})
    monkeypatch.setattr("axplore.runs.manifest.EXPLORERS", registry.EXPLORERS)
    monkeypatch.setattr("axplore.resuming.EXPLORERS", EXPLORERS)  # where it is one of another package
    return "toy"


def test_it_keeps_the_contract_that_explorers_have() -> None:
    target = Target(radius=3, epsilon=1)
    check_explorer(Toy(target=target))
    with pytest.raises(BrokenContractError, match="changes the state"):
        check_explorer(Changing(target=target))


@pytest.mark.parametrize("name", [name for name in EXPLORERS if "theory" not in name])
def test_our_explorers_keep_the_contract(name: str) -> None:
    options: dict[str, Any] = {"question": 'Pmax=? [ F "there" ]'} if name == DIRECTED else {}
    check_explorer(preset(name, radius=2, epsilon=1, states_bound=9, **options))


def test_it_has_a_name_on_the_command_line_a_page_and_a_run(toy: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    common = ("explore", "slippery-grid", "--radius", "3", "--explorer", toy, "--out", folder, "--json")
    answer = json.loads(commands.run(*common))
    assert answer["explorer"] == toy
    assert (folder / "report.html").stat().st_size > 10_000
    assert description_of(toy) == "The toy explorer, for this test."


def ended_after_15_steps(report: RoundReport) -> StopReason | None:
    return StopReason.STEP_LIMIT if report.steps >= 15 else None


def test_a_limit_cuts_its_rounds(toy: str) -> None:
    for limit in range(20):
        assert axplore.explore("slippery-grid", radius=3, explorer=toy, max_steps=limit).steps == limit


def test_its_run_is_resumed_from_a_checkpoint(toy: str, tmp_path: Path) -> None:
    whole = axplore.explore("slippery-grid", radius=3, explorer=toy)
    folder = tmp_path / "run"
    part = axplore.explore("slippery-grid", radius=3, explorer=toy, run=folder, on_round=ended_after_15_steps)
    assert part.stop is StopReason.STEP_LIMIT
    with pytest.raises(UntrustedFileError, match="explorer 'toy' of another package"):
        axplore.resume(folder)
    resumed = axplore.resume(folder, trust=True)
    assert resumed.stop is StopReason.NO_CANDIDATES
    assert resumed.steps == whole.steps
    assert np.array_equal(resumed.counts.counts, whole.counts.counts)


def test_it_works_with_workers(toy: str) -> None:
    atlas = axplore.explore("slippery-grid", radius=3, explorer=toy, workers=1)
    assert atlas.stop is StopReason.NO_CANDIDATES


def test_it_makes_no_forecast_and_says_so(toy: str) -> None:
    found = forecast("slippery-grid", 3, 1, explorers=[toy], probe_steps=100)
    assert found[toy].note == "this explorer makes no forecast"
    assert found[toy].steps == float("inf")


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="certified"):
        preset("certifed", radius=2, epsilon=1)


def test_explorers_of_other_packages_are_found_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "toys-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[axplore.explorers]\nplugged = {__name__}:make_toy\nbroken = missing_for_tests:make\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert {"plugged", "broken"} <= set(explorer_names())
    assert axplore.explore("slippery-grid", radius=3, explorer="plugged").stop is StopReason.NO_CANDIDATES
    with pytest.raises(InvalidInputError, match="of the package 'toys'"):
        preset("broken", radius=2, epsilon=1)
