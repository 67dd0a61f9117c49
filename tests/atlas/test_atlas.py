from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import axplore
from axplore import RESET, Atlas, Status, StopReason, TabularMdp, storage
from axplore.atlas.files import VERSION
from axplore.atlas.state_report import rounded_down, rounded_up
from axplore.errors import DamagedFileError, InvalidInputError, StorageError, UnknownActionError, UnknownStateError
from axplore.truth import controllable_states, optimal_steps
from made_counts import same_counts
from oracle import policy_steps

CHAIN = axplore.domain("confusing-chain")
EXACT = {"s0": 0, "s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 4}
"""V* on the chain, restricted to S_L→ with L = 4.5."""
CONFUSING = {f"s{number}" for number in range(6, 12)}
FAR = 11
"""The steps to each confusing state: one skip in six leads there, and each of the others costs a RESET besides."""


@pytest.fixture(scope="module")
def saved(chain: Atlas, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "chain"
    chain.save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(saved, tmp_path / "run"))


def exact_steps(mdp: TabularMdp, atlas: Atlas, goal: Any) -> float:
    policy = atlas.policy(goal)
    return policy_steps(mdp, {state: policy(state) for state in mdp.states}, goal)


# What an atlas answers.


def test_the_bounds_of_the_chain_contain_its_exact_steps(chain: Atlas) -> None:
    assert set(chain.states) == set(EXACT)
    assert chain.states[0] == "s0"
    for goal, steps in EXACT.items():
        assert steps in chain.bounds(goal)
        assert chain.bounds(goal).proven


def test_every_policy_keeps_its_bounds_on_the_true_model(chain: Atlas) -> None:
    for goal, optimum in EXACT.items():
        steps = exact_steps(CHAIN, chain, goal)
        assert steps in chain.bounds(goal)
        assert steps <= optimum + chain.bounds(goal).regret
        assert chain.bounds(goal).regret <= 0.1


@pytest.mark.parametrize("seed", range(4))
def test_on_random_models_nothing_is_missing_and_bounds_contain_the_optimum(seed: int) -> None:
    mdp = axplore.domain("random-sparse", states=8, actions=2, branching=(1, 2), seed=seed)
    atlas = axplore.explore(mdp, radius=2.5, epsilon=0.5, seed=seed, max_steps=100_000)
    assert atlas.complete
    assert set(controllable_states(mdp, 2.5).states) <= set(atlas.states)
    for goal in atlas.states:
        assert optimal_steps(mdp, goal, allowed=atlas.states) in atlas.bounds(goal)
        assert exact_steps(mdp, atlas, goal) in atlas.bounds(goal)
    for report in atlas.frontier:
        assert optimal_steps(mdp, report.state, allowed=atlas.states) >= report.bounds.lower > 2.5


def test_a_policy_resets_at_its_goal_and_wherever_nothing_is_planned(chain: Atlas) -> None:
    policy = chain.policy("s3")
    assert [policy(state) for state in ("s0", "s1", "s2", "s3")] == ["forward", "forward", "forward", RESET]
    assert policy("s7") is RESET
    assert policy("never seen") is RESET
    assert policy(None) is RESET


def test_a_policy_that_depends_on_the_step_asks_for_it_and_resets_after_its_horizon(stepwise: Atlas) -> None:
    policy = stepwise.policy("arm1.2")
    assert policy.horizon is not None
    assert policy("s0", 0) == "arm1"
    assert policy("arm1.1", 1) == "out"
    assert policy("s0", policy.horizon) is RESET
    with pytest.raises(InvalidInputError, match=re.escape("policy(state, step)")):
        policy("s0")
    with pytest.raises(InvalidInputError, match="step is -1; it must be a whole number"):
        policy("s0", -1)


def test_a_policy_that_does_not_depend_on_the_step_ignores_it(chain: Atlas) -> None:
    assert chain.policy("s1").horizon is None
    assert chain.policy("s1")("s0", 7) == "forward"


def test_a_state_outside_the_atlas_has_neither_bounds_nor_policy(chain: Atlas) -> None:
    for question in (chain.bounds, chain.policy):
        with pytest.raises(UnknownStateError, match=r"'s7' is not among the 6 states of the atlas.*describe\('s7'\)"):
            question("s7")


def test_states_left_out_are_proven_to_be_too_far(chain: Atlas) -> None:
    assert {report.state for report in chain.frontier} == CONFUSING
    for report in chain.frontier:
        assert report.status is Status.SET_ASIDE
        assert 4.5 < report.bounds.lower <= FAR
        assert report.bounds.upper == math.inf
        assert "the radius is 4.5" in report.reason
        assert chain.describe(report.state) == report


def test_the_status_says_why(chain: Atlas) -> None:
    assert str(chain.describe("s0")) == "s0: certified. It is the initial state."
    certified = chain.describe("s5")
    assert certified.status is Status.CERTIFIED
    assert f"within {rounded_up(chain.bounds('s5').upper)} expected steps" in certified.reason
    unseen = chain.describe("atlantis")
    assert unseen.status is Status.SET_ASIDE
    assert "never seen" in unseen.reason


def test_what_is_open_says_what_blocks_it(unfinished: Atlas) -> None:
    assert unfinished.stop is StopReason.STEP_LIMIT
    assert not unfinished.complete
    members = [unfinished.describe(state) for state in unfinished.states]
    (first, *_) = [report for report in members if report.status is Status.OPEN]
    assert f"may lose {rounded_up(first.bounds.regret)} against the best one" in first.reason
    assert first.bounds.regret > 0.1
    (undecided, *_) = [report for report in unfinished.frontier if report.status is Status.OPEN]
    assert undecided.bounds.lower <= 4.5
    assert "It may be within the radius of 4.5" in undecided.reason


def test_before_the_first_step_states_never_seen_are_open() -> None:
    atlas = axplore.explore(CHAIN, radius=4.5, max_steps=0)
    assert (atlas.states, atlas.frontier, atlas.steps) == (("s0",), (), 0)
    assert atlas.describe("s1").status is Status.OPEN
    assert "States never seen are not ruled out" in str(atlas)


def test_an_explorer_without_proof_gives_estimates_and_says_so(estimated: Atlas) -> None:
    assert set(estimated.states) == set(EXACT)
    assert not estimated.proven
    assert not estimated.complete
    bounds = estimated.bounds("s4")
    assert not bounds.proven
    assert (bounds.upper, bounds.regret) == (math.inf, math.inf)
    assert bounds.lower == pytest.approx(4, abs=0.8)
    assert str(bounds).endswith("not proven")
    assert {estimated.describe(state).status for state in (*estimated.states, "s7", "atlantis")} == {Status.OPEN}
    assert estimated.describe("s4").reason == "Found by disco-experiment, which proves nothing."
    assert estimated.describe("s7").reason == "Left out by disco-experiment, which proves nothing."


def test_counts_are_those_of_the_transitions_met(chain: Atlas) -> None:
    assert set(chain.successors("s0", "skip")) == CONFUSING
    assert set(chain.successors("s1", "skip")) == {"s1", "s5"}
    met = chain.successors("s1", "skip")
    assert met["s5"] / sum(met.values()) == pytest.approx(1 / 3, abs=0.1)
    assert chain.counts.counts.sum() <= chain.steps
    with pytest.raises(UnknownActionError, match="state 's0' has no action 'jump'"):
        chain.successors("s0", "jump")


def test_states_are_found_in_the_order_of_the_steps(chain: Atlas) -> None:
    assert chain.found_at[0] == 0
    assert (np.diff(chain.found_at) >= 0).all()
    assert chain.found_at[-1] <= chain.steps


def test_an_atlas_cannot_be_written_to(chain: Atlas) -> None:
    with pytest.raises(ValueError, match="read-only"):
        chain.upper[0] = 1.0
    with pytest.raises(AttributeError):
        chain.steps = 1  # type: ignore[misc]


# How it reads.


@given(st.floats(min_value=0, max_value=1e6))
def test_a_rounded_bound_is_still_a_bound(steps: float) -> None:
    assert Fraction(rounded_down(steps)) <= Fraction(steps) <= Fraction(rounded_up(steps))
    assert Fraction(rounded_up(steps)) - Fraction(rounded_down(steps)) <= Fraction(1, 1000)


def test_an_atlas_reads_as_a_table(chain: Atlas) -> None:
    assert repr(chain).startswith("Atlas(6 states for a radius of 4.5 around 's0'")
    lines = str(chain).splitlines()
    rows = [line.split() for line in lines if re.match(r"s\d ", line)]
    assert [row[0] for row in rows] == list(chain.states)
    for state, lower, upper, *_ in rows:
        assert float(lower) <= EXACT[state] <= float(upper)
    assert any(line.startswith("Nothing within the radius is missing: the 6 other states seen") for line in lines)
    assert f"{chain.steps:,} steps taken." in str(chain)


def test_an_unfinished_atlas_names_what_is_open(unfinished: Atlas) -> None:
    text = str(unfinished)
    assert "States within the radius may be missing." in text
    assert "of the atlas not fully proven: s" in text
    assert "Until they are decided" in text


def test_an_atlas_without_proof_says_so(estimated: Atlas) -> None:
    assert "Not proven: disco-experiment found 6 states" in str(estimated)
    assert "not proven" in repr(estimated)


# How it is kept.


@pytest.mark.parametrize("name", ["chain", "unfinished", "estimated", "stepwise"])
def test_an_atlas_read_back_gives_the_same_answers(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    atlas: Atlas = request.getfixturevalue(name)
    atlas.save(tmp_path)
    loaded = Atlas.load(tmp_path)
    assert str(loaded) == str(atlas)
    assert loaded.states == atlas.states
    assert loaded.frontier == atlas.frontier
    assert (loaded.stop, loaded.rounds, loaded.target) == (atlas.stop, atlas.rounds, atlas.target)
    assert loaded.found_at.tolist() == atlas.found_at.tolist()
    assert same_counts(loaded.counts, atlas.counts)
    for goal in atlas.states:
        assert loaded.bounds(goal) == atlas.bounds(goal)
        policy, other_policy = loaded.policy(goal), atlas.policy(goal)
        assert policy.horizon == other_policy.horizon
        for state in atlas.seen:
            for step in range(policy.horizon or 1):
                assert policy(state, step) == other_policy(state, step)


def test_the_same_atlas_gives_the_same_bytes(chain: Atlas, saved: Path, tmp_path: Path) -> None:
    chain.save(tmp_path)
    Atlas.load(saved).save(tmp_path / "again")
    for name in ("atlas.json", "atlas.npz", "certificate.json", "certificate.npz"):
        assert (tmp_path / name).read_bytes() == (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_an_atlas_is_read_and_verified_without_compiled_code(saved: Path) -> None:
    program = (
        "import sys, axplore\n"
        f"atlas = axplore.Atlas.load({str(saved)!r})\n"
        "print(atlas.policy('s1')('s0'), axplore.verify(atlas).holds, 'numba' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["forward", "True", "False"]


def test_labels_of_any_plain_kind_survive(tmp_path: Path) -> None:
    labels = ['a "quoted" label', "two\nlines", "</script>", ("row", 1, 2.5), 7, None, frozenset({1}), b"\x00", "größe"]
    rows: dict[Any, Any] = {"start": {("go", number): {label: 1.0} for number, label in enumerate(labels)}}
    rows |= {label: {} for label in labels}
    atlas = axplore.explore(TabularMdp.from_rows(rows, "start"), radius=1, epsilon=0.5, run=tmp_path / "run")
    loaded = Atlas.load(tmp_path / "run")
    assert set(loaded.states) == {"start", *labels}
    assert loaded.states == atlas.states
    for number, label in enumerate(labels):
        assert loaded.policy(label)("start") == ("go", number)
    assert axplore.verify(loaded).holds


def test_a_folder_without_an_atlas_is_no_atlas(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(StorageError, match="there is no atlas in"):
            Atlas.load(folder)


def test_an_atlas_cannot_be_saved_where_a_file_stands(chain: Atlas, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="the atlas cannot be written to"):
        chain.save(tmp_path / "file")


def test_an_edited_file_is_refused_by_its_digest(folder: Path) -> None:
    path = folder / "atlas.json"
    path.write_text(path.read_text().replace('"steps": ', '"steps": 1'))
    with pytest.raises(DamagedFileError, match="digest"):
        Atlas.load(folder)


@pytest.mark.parametrize("name", ["atlas.json", "atlas.npz", "certificate.json", "certificate.npz"])
def test_a_damaged_or_missing_file_is_refused(name: str, folder: Path) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamagedFileError, match=re.escape(name)):
        Atlas.load(folder)
    path.unlink()
    with pytest.raises((DamagedFileError, StorageError), match=re.escape(name)):
        Atlas.load(folder)


def test_another_format_version_is_refused_with_a_clear_word(folder: Path) -> None:
    path = folder / "atlas.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(DamagedFileError, match="version 99"):
        Atlas.load(folder)


def test_parts_that_do_not_fit_are_refused_though_the_digest_does(estimated: Atlas, tmp_path: Path) -> None:
    estimated.save(tmp_path)
    fields, arrays = storage.read_sealed(tmp_path, "atlas", "axplore atlas", VERSION)
    run, estimate = fields["run"], fields["estimate"]
    counts = estimate["counts"]

    def other(**changes: Any) -> dict[str, Any]:
        return {"estimate": {**estimate, **changes}}

    forgeries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"estimate.states": arrays["estimate.states"][:-1]}),
        ({}, {"estimate.states": arrays["estimate.states"] + 100}),
        ({}, {"estimate.policies.1": arrays["estimate.policies.1"] + 2}),
        ({}, {"run.found_at": arrays["run.found_at"][::-1].copy()}),
        (other(counts={**counts, "order": ["s0"] * len(counts["order"])}), {}),
        (other(counts={**counts, "actions": counts["actions"][:-1]}), {}),
        (other(counts=3), {}),
        (other(radius=-1.0), {}),
        ({}, {"estimate.counts.successors": arrays["estimate.counts.successors"] + 100}),
        ({"run": {**run, "stop": "BOREDOM"}}, {}),
        ({"run": {**run, "steps": True}}, {}),
        ({"certificate": "0"}, {}),
        ({"estimate": None}, {}),
    ]
    for other_fields, other_arrays in forgeries:
        storage.write_sealed(tmp_path, "atlas", {**fields, **other_fields}, {**arrays, **other_arrays})
        with pytest.raises(InvalidInputError):
            Atlas.load(tmp_path)


def test_a_part_of_an_atlas_is_not_saved_as_if_it_were_proven(chain: Atlas, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="save the atlas it was taken from"):
        chain.within(3).save(tmp_path)


# What is verified.


@pytest.mark.parametrize("name", ["chain", "unfinished"])
def test_a_proven_atlas_is_verified(name: str, request: pytest.FixtureRequest) -> None:
    atlas: Atlas = request.getfixturevalue(name)
    verdict = axplore.verify(atlas)
    assert verdict.holds
    assert verdict.complete == atlas.complete


def test_a_saved_atlas_is_verified_by_its_folder(saved: Path) -> None:
    assert axplore.verify(saved).complete
    assert axplore.verify(str(saved)).complete


def test_an_atlas_without_proof_cannot_be_verified(estimated: Atlas) -> None:
    with pytest.raises(InvalidInputError, match="disco-experiment leaves no certificate"):
        axplore.verify(estimated)


def test_the_cheaper_objective_is_verified_too() -> None:
    assert axplore.verify(axplore.explore("two-branch", radius=9, epsilon=1, objective="within-radius")).complete


# As a collection and a graph.


def test_an_atlas_is_the_collection_of_its_states(chain: Atlas) -> None:
    assert len(chain) == 6
    assert list(chain) == list(chain.states)
    assert "s5" in chain
    assert "s6" not in chain  # seen, but set aside
    with pytest.raises(InvalidInputError, match="state"):
        ["s5"] in chain  # type: ignore[operator]  # noqa: B015


def test_the_graph_has_every_state_met_and_the_transitions_by_action(chain: Atlas) -> None:
    graph = chain.to_networkx()
    assert graph.graph["initial"] == "s0"
    assert set(graph) == {f"s{number}" for number in range(12)}
    assert {state for state, inside in graph.nodes(data="in_atlas") if inside} == set(chain)
    assert graph.nodes["s7"]["status"] == "set aside"
    for state, action in chain.pairs:
        met = {to: data["count"] for _, to, key, data in graph.out_edges(state, keys=True, data=True) if key == action}
        assert met == chain.successors(state, action)
    shares = [data["frequency"] for *_, key, data in graph.out_edges("s0", keys=True, data=True) if key == "skip"]
    assert sum(shares) == pytest.approx(1)
