from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import axplore
from altered import altered
from axplore import Atlas, StopReason
from axplore.atlas.difference import ChangeKind
from axplore.errors import ExitCode, InvalidInputError, InvalidSettingError
from axplore.mdp import TabularMdp
from commands import run

OPEN_DOOR = "S../.#./..."
SHUT_DOOR = "S../.##/..#"
"""The cells (1, 2) and (2, 2) are walled up."""


def maze(drawing: str, slip: float = 0.0, seed: int = 0, **settings: Any) -> Atlas:
    parameters = {"drawing": drawing, "slip": slip}
    return axplore.explore("maze", 6, 1, seed=seed, world_parameters=parameters, **settings)


@pytest.fixture(scope="module")
def before() -> Atlas:
    return maze(OPEN_DOOR)


@pytest.fixture(scope="module")
def after() -> Atlas:
    return maze(SHUT_DOOR)


def test_states_behind_a_wall_are_proven_lost_and_gained_the_other_way_round(before: Atlas, after: Atlas) -> None:
    difference = before.diff(after)
    assert {change.state for change in difference.lost} == {(1, 2), (2, 2)}
    assert all(change.proven for change in difference.lost)
    assert not difference.gained
    assert difference.exit_code is ExitCode.REFUTED
    back = after.diff(before)
    assert {change.state for change in back.gained} == {(1, 2), (2, 2)}
    assert all(change.proven for change in back.gained)
    assert not back.regressions
    assert back.exit_code is ExitCode.DONE


def test_a_floor_that_becomes_slippery_makes_ways_slower_by_at_least_what_is_said() -> None:
    firm = axplore.explore("confusing-chain", 8, 1, world_parameters={"forward_probability": 1.0})
    loose = axplore.explore("confusing-chain", 8, 1, world_parameters={"forward_probability": 0.5})
    difference = firm.diff(loose)
    slower = {change.state: change for change in difference.slower}
    assert "s3" in slower
    assert all(change.proven for change in slower.values())
    assert slower["s3"].new.lower - slower["s3"].old.upper <= 3  # from 3 steps to 6
    assert "s3" in {change.state for change in loose.diff(firm).faster}


@pytest.mark.parametrize("seed", range(1, 6))
def test_of_two_runs_of_one_system_no_difference_is_proven(seed: int) -> None:
    difference = maze(OPEN_DOOR, slip=0.1).diff(maze(OPEN_DOOR, slip=0.1, seed=seed))
    assert not any(change.proven for change in difference.changes)


def test_what_lies_behind_a_state_at_the_border_of_the_radius_is_not_proven_lost() -> None:
    # b takes 4.5 steps: with ε = 4 it may be in the atlas, with ε = 0.2 it cannot be. c lies behind it.
    system = TabularMdp.from_rows(
        {
            "a": {"go": {"a": 7 / 9, "b": 2 / 9}},
            "b": {"go": {"c": 1.0}},
            "c": {"go": {"c": 1.0}},
        },
        initial_state="a",
    )
    loose = axplore.explore(system, 4, 4, objective="within-radius", seed=10)  # where both are taken in
    strict = axplore.explore(system, 4, 0.2, objective="within-radius")
    assert (set(loose), set(strict)) == ({"a", "b", "c"}, {"a"})
    assert strict.nothing_missing
    assert strict.describe("c").bounds.lower > loose.bounds("c").upper, "bounds alone would call it proven"
    difference = loose.diff(strict)
    assert {change.state: change.proven for change in difference.lost} == {"b": False, "c": False}
    assert difference.exit_code is ExitCode.DONE, "neither has to be in an atlas"


def test_an_unfinished_run_proves_no_loss_and_has_its_own_exit_code(before: Atlas) -> None:
    unfinished = maze(SHUT_DOOR, max_steps=100)
    difference = before.diff(unfinished)
    assert difference.lost
    assert not difference.regressions
    assert difference.exit_code is ExitCode.UNFINISHED
    assert any("The new run" in line for line in difference.summary)


def test_what_is_contradicted_or_not_proven_proves_no_difference(before: Atlas, after: Atlas) -> None:
    refuted = altered(after, stop=StopReason.CONTRADICTED)
    assert not any(change.proven for change in before.diff(refuted).changes)
    estimated = maze(SHUT_DOOR, explorer="disco-experiment")
    assert not any(change.proven for change in before.diff(estimated).changes)


def test_actions_that_only_one_atlas_has_are_named() -> None:
    def atlas(actions: tuple[str, ...]) -> Atlas:
        rows: Any = {"a": {action: {"b": 1.0} for action in actions}, "b": {}}
        return axplore.explore(TabularMdp.from_rows(rows, initial_state="a"), 2, 1)

    (change,) = atlas(("push", "pull")).diff(atlas(("push", "turn"))).differing
    assert (change.state, change.kind) == ("a", ChangeKind.SAME)
    assert (change.actions_lost, change.actions_gained) == (("pull",), ("turn",))
    assert "no longer has the action pull" in change.why


def test_runs_that_start_elsewhere_and_what_is_no_atlas_are_refused(before: Atlas, chain: Atlas) -> None:
    with pytest.raises(InvalidInputError, match="start in different states"):
        before.diff(chain)
    with pytest.raises(InvalidSettingError, match="new"):
        before.diff("runs/maze-1")  # type: ignore[arg-type]


def test_the_command_prints_writes_a_page_and_exits_for_continuous_integration(
    before: Atlas, after: Atlas, tmp_path: Path
) -> None:
    before.save(tmp_path / "old")
    after.save(tmp_path / "new")
    page = tmp_path / "changes.html"
    said = run("diff", tmp_path / "old", tmp_path / "new", "--page", page, code=1)
    assert "2 lost (2 proven), 6 same." in said
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 1
    assert "(1, 2)" in text
    assert "<script" not in text
    document = json.loads(run("diff", tmp_path / "old", tmp_path / "new", "--json", code=1))
    assert document["exit_code"] == 1
    assert [change["state"] for change in document["changes"] if change["proven"]] == [[1, 2], [2, 2]]
    assert "8 same." in run("diff", tmp_path / "old", tmp_path / "old")
