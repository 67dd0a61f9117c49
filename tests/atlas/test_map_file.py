"""Maps to commit: what is read back proves the same, and what no exploration wrote is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import axplore
from axplore import Atlas, Objective
from axplore.atlas.map_file import map_of, read_map, write_map
from axplore.errors import DamagedFileError, InvalidInputError
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.target import Target


def explored(world: Any, objective: Objective = Objective.WITHIN_RADIUS, seed: int = 0, radius: float = 3.0) -> Atlas:
    target = Target(radius=radius, epsilon=1.0, delta=0.1)
    return axplore.explore(world, explorer=Certified(target=target, objective=objective, by_episodes=False), seed=seed)


@pytest.mark.parametrize("objective", [Objective.OPTIMAL, Objective.WITHIN_RADIUS])
@pytest.mark.parametrize("world", ["combination-lock", "confusing-chain", "slippery-grid"])
def test_a_map_proves_what_its_atlas_proves(world: str, objective: Objective, tmp_path: Path) -> None:
    atlas = explored(world, objective)
    write_map(map_of(atlas), tmp_path / "map.json")
    again = read_map(tmp_path / "map.json").atlas()
    assert again.states == atlas.states
    for state in atlas.seen:
        assert again.describe(state).bounds == atlas.describe(state).bounds
    assert again.verdict.headline == atlas.verdict.headline
    assert again.steps == atlas.steps


def test_labels_of_every_kind_are_kept(tmp_path: Path) -> None:
    labels = ["1", 1.5, ("a", 1), "RESET", 'with "quotes"\n', None]
    rows = {label: {label: {labels[(place + 1) % len(labels)]: 1.0}} for place, label in enumerate(labels)}
    write_map(map_of(explored(TabularMdp.from_rows(rows, labels[0]), radius=6)), tmp_path / "map.json")
    counts = read_map(tmp_path / "map.json").counts
    assert list(counts.order) == labels
    assert [actions[0] for actions in counts.actions] == labels


def test_an_atlas_that_rests_on_more_than_counts_has_no_map() -> None:
    with pytest.raises(InvalidInputError, match="rests on more"):
        map_of(axplore.explore("maze", radius=3, epsilon=1, assume="deterministic", max_steps=500))
    with pytest.raises(InvalidInputError, match="proves nothing"):
        map_of(axplore.explore("confusing-chain", radius=2, epsilon=1, explorer="disco-experiment", states_bound=10))


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("maps") / "map.json"
    write_map(map_of(explored("combination-lock")), path)
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("draws",), []),
        (("draws",), {}),
        (("draws", "s3"), 1),
        (("draws", "[1, 2]"), {}),
        (("draws", '"s3"'), {}),
        (("steps",), 3),
        (("steps",), True),
        (("radius",), 0),
        (("radius",), "3"),
        (("delta",), 2),
        (("objective",), "best"),
        (("objective",), ["optimal"]),
        (("world",), None),
        (("more",), 1),
    ],
)
def test_what_no_exploration_wrote_is_refused(
    content: dict[str, Any], place: tuple[str, ...], value: Any, tmp_path: Path
) -> None:
    changed = json.loads(json.dumps(content))
    table = changed
    for name in place[:-1]:
        table = table[name]
    table[place[-1]] = value
    (tmp_path / "map.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(DamagedFileError, match=r"map\.json"):
        read_map(tmp_path / "map.json")


@pytest.mark.parametrize("drawn", [[0, 1], [1], [5, 6], [5, 0], [5.0, 1], [2**60, 1], "many", [True, 1], [5, 2]])
def test_impossible_draws_are_refused(content: dict[str, Any], drawn: Any, tmp_path: Path) -> None:
    changed = json.loads(json.dumps(content))
    state, rows = next(iter(changed["draws"].items()))
    action = next(iter(rows))
    changed["draws"][state][action] = {state: drawn}
    (tmp_path / "map.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(DamagedFileError, match=r"map\.json"):
        read_map(tmp_path / "map.json")


def test_a_missing_map_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match=r"nowhere\.json"):
        read_map(tmp_path / "nowhere.json")
