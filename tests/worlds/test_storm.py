from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.errors import InvalidInputError, InvalidSettingError, StorageError
from axplore.mdp import TabularMdp
from axplore.truth import controllable_states
from axplore.worlds.storm import action_names, storm_system, storm_world

stormpy = pytest.importorskip("stormpy")

PRISM = """
mdp
const int N;
module walker
  x : [0..N] init 0;
  ok : bool init true;
  [go] x < N & ok -> 0.7 : (x' = x + 1) + 0.2 : true + 0.1 : (ok' = false);
  [leap] x = 0 -> 0.5 : (x' = 2) + 0.5 : (ok' = false);
  [] x = 1 & ok -> (x' = 0);
  [rest] x = N & ok -> true;
endmodule
label "there" = x = N;
"""

DRN = """
@type: MDP
@parameters

@reward_models

@nr_states
4
@nr_choices
6
@model
state 0 init
\taction go
\t\t1 : 0.75
\t\t0 : 0.25
\taction leap
\t\t2 : 0.4
\t\t0 : 0.6
state 1
\taction go
\t\t2 : 1
state 2 there
\taction stay
\t\t2 : 1
\taction on
\t\t3 : 0.5
\t\t2 : 0.5
state 3
\taction __NOLABEL__
\t\t3 : 1
"""


def label(x: int, ok: bool = True) -> str:
    return f"ok={str(ok).lower()}, x={x}"


def walker(n: int) -> TabularMdp:
    """The PRISM program by hand; a walker that is not ok can only leap in 0, else nothing."""
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for x in range(n + 1):
        for ok in (True, False):
            row = rows[label(x, ok)] = {}
            if x < n and ok:
                row["go"] = {label(x + 1): 0.7, label(x): 0.2, label(x, False): 0.1}
            if x == 0:
                row["leap"] = {label(2, ok): 0.5, label(0, False): 0.5}
            if x == 1 and ok:
                row["#1"] = {label(0): 1.0}
            if x == n and ok:
                row["rest"] = {label(n): 1.0}
    return TabularMdp.from_rows(rows, label(0))


def drn_model() -> TabularMdp:
    return TabularMdp.from_rows(
        {
            0: {"go": {1: 0.75, 0: 0.25}, "leap": {2: 0.4, 0: 0.6}},
            1: {"go": {2: 1.0}},
            2: {"stay": {2: 1.0}, "on": {3: 0.5, 2: 0.5}},
            3: {"#0": {3: 1.0}},
        },
        0,
    )


@pytest.fixture
def prism_file(tmp_path: Path) -> Path:
    file = tmp_path / "walker.prism"
    file.write_text(PRISM)
    return file


@pytest.fixture
def drn_file(tmp_path: Path) -> Path:
    file = tmp_path / "model.drn"
    file.write_text(DRN)
    return file


def assert_explored_exactly(world: Any, model: TabularMdp, radius: float, parameters: dict[str, Any]) -> None:
    """The atlas holds the states that the model says are there, and bounds around their exact steps."""
    atlas = axplore.explore(world, radius=radius, epsilon=0.5, delta=0.01, world_parameters=parameters)
    truth = controllable_states(model, radius)
    assert not truth.boundary
    assert set(atlas.states) == set(truth.states)
    assert atlas.complete
    for state in atlas.states:
        bounds = atlas.bounds(state)
        assert bounds.lower - 1e-9 <= truth.steps[state] <= bounds.upper + 1e-9
        assert atlas.actions[atlas.states.index(state)] == model.actions_of(state)


def test_a_prism_program_is_explored_as_the_same_model_by_hand(prism_file: Path) -> None:
    assert_explored_exactly(f"storm:{prism_file}", walker(3), 4.0, {"N": "3"})


def test_a_drn_file_is_explored_as_the_same_model_by_hand(drn_file: Path) -> None:
    assert_explored_exactly(f"storm:{drn_file}", drn_model(), 5.0, {})


def test_a_jani_model_is_explored_as_the_prism_program_that_it_comes_from(prism_file: Path, tmp_path: Path) -> None:
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(prism_file)), "N=2")
    jani = tmp_path / "walker.jani"
    jani.write_text(str(program.to_jani([])[0]))
    atlas = axplore.explore(f"storm:{jani}", radius=3.0, epsilon=0.5, delta=0.01)
    truth = controllable_states(walker(2), 3.0)
    assert set(atlas.states) == set(truth.states)
    for state in atlas.states:
        assert atlas.bounds(state).lower - 1e-9 <= truth.steps[state] <= atlas.bounds(state).upper + 1e-9


@pytest.mark.parametrize("kind", ["prism", "drn"])
def test_successors_have_the_frequencies_of_the_model(kind: str, prism_file: Path, drn_file: Path) -> None:
    """Hoeffding's bound for each transition, all together wrong with a probability of 1e-6."""
    model = walker(3) if kind == "prism" else drn_model()
    system = storm_system(prism_file, {"N": 3}) if kind == "prism" else storm_system(drn_file)
    system.reseed(np.random.SeedSequence(1))
    start, draws = model.initial_state, 3000
    for action in model.actions_of(start):
        met: dict[Any, int] = {}
        for _ in range(draws):
            assert system.reset() == start
            successor = system.step(action)
            met[successor] = met.get(successor, 0) + 1
        row = model.row(start, action)
        assert set(met) == set(row)
        for successor, probability in row.items():
            margin = math.sqrt(math.log(2 * 12 / 1e-6) / (2 * draws))
            assert abs(met[successor] / draws - probability) <= margin


def test_the_same_seed_gives_the_same_steps(prism_file: Path) -> None:
    def walk(seed: int) -> list[Any]:
        system = storm_system(prism_file, {"N": 30})
        system.reseed(np.random.SeedSequence(seed))
        path = [system.reset()]
        for _ in range(20):
            path.append(system.step("go") if "go" in system.actions(path[-1]) else system.reset())
        return path

    assert walk(1) == walk(1)
    assert walk(1) != walk(2)


def test_labels_are_kept_and_a_dead_end_is_terminal(prism_file: Path) -> None:
    system = storm_system(prism_file, {"N": 2})
    system.reseed(np.random.SeedSequence(0))
    state = system.reset()
    for _ in range(2000):
        state = system.step("go") if "go" in system.actions(state) else system.reset()
    assert system.labels[label(0)] == frozenset()
    assert system.labels[label(2)] == {"there"}
    assert system.actions(label(2)) == ("rest",)
    assert system.actions(label(1)) == ("go", "#1")
    assert system.actions(label(1, False)) == ()


def test_a_goal_does_not_mistake_a_label_of_the_model_for_one_of_a_state(prism_file: Path) -> None:
    """It would be proven to be out of reach, because no state is called so."""
    world = f"storm:{prism_file}"
    settings: dict[str, Any] = {"world_parameters": {"N": 2}, "doctor": False}
    with pytest.raises(InvalidSettingError, match='"there" is what the system calls'):
        axplore.explore(world, 4, 1, goal="there", **settings)
    found = axplore.check(world, 'Pmax=? [ F<=9 "there" ]', precision=0.3, **settings)
    assert 'where "there" is ok=true, x=2' in str(found.atlas.verdict)


def test_two_choices_of_one_name_are_told_apart_and_played(tmp_path: Path) -> None:
    file = tmp_path / "twins.nm"
    file.write_text(
        "mdp\nmodule m\n x : [0..2] init 0;\n [a] x=0 -> (x'=1);\n [a] x=0 -> (x'=2);\n [b] x>0 -> (x'=0);\nendmodule\n"
    )
    system = storm_system(file)
    assert system.actions(system.reset()) == ("a#0", "a#1")
    assert [system.step("a#0"), system.reset(), system.step("a#1")] == ["x=1", "x=0", "x=2"]
    assert system.actions("x=2") == ("b",)


def test_a_large_program_is_not_built(prism_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A billion states: only those that are met exist."""
    monkeypatch.setattr("axplore.worlds.storm.MOST_SECONDS", 0.5)
    world = storm_world(prism_file, N=10**9)
    atlas = axplore.explore(world, radius=3.5, epsilon=0.5)
    assert set(atlas.states) == set(controllable_states(walker(6), 3.5).states)


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["go", "stop"], ("go", "stop")), (["", "go"], ("#0", "go")), (["a", "a", ""], ("a#0", "a#1", "#2")), ([], ())],
)
def test_names_of_choices_are_distinct(names: list[str], expected: tuple[str, ...]) -> None:
    assert action_names(names) == expected


def test_what_storm_cannot_read_is_an_error_that_says_so(tmp_path: Path, prism_file: Path, drn_file: Path) -> None:
    nonsense = tmp_path / "nonsense.nm"
    nonsense.write_text("nonsense")
    timed = tmp_path / "timed.sm"
    timed.write_text("ctmc")
    with pytest.raises(InvalidInputError, match=r"Storm cannot read .*nonsense\.nm"):
        storm_system(nonsense)
    with pytest.raises(InvalidInputError, match=r"undefined constants: N.* --set NAME=VALUE"):
        storm_system(prism_file)
    with pytest.raises(InvalidInputError, match="ends in one of"):
        storm_system(timed)
    with pytest.raises(StorageError, match="there is no model file"):
        storm_system(tmp_path / "missing.nm")
    with pytest.raises(InvalidSettingError, match="a DRN file has no constants"):
        storm_system(drn_file, {"N": 2})


def test_a_model_in_continuous_time_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "queue.prism"
    file.write_text("ctmc\nmodule m\n x : [0..1] init 0;\n <> x<1 -> 2 : (x'=1);\n <> x=1 -> 1 : (x'=0);\nendmodule\n")
    with pytest.raises(InvalidInputError, match="only DTMC and MDP"):
        storm_system(file)


def test_without_stormpy_the_extra_is_named(prism_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'axplore\[storm\]'"):
        storm_system(prism_file, {"N": 2})
