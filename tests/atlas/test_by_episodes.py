"""What episodes prove of states stays true where labels hide something, and is shown there."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import axplore
from altered import altered
from axplore import Atlas
from axplore.atlas.state_report import headings_of, legend_of, rows_of, state_rows
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import verify
from axplore.cli.explore_commands import atlas_as_json
from axplore.domains import slippery_grid
from axplore.errors import InvalidInputError
from axplore.proofs.episode_tests import EpisodeTest
from axplore.records.episodes import EpisodeRecord
from axplore.records.findings import Finding, Issue, Level
from axplore.report.page import page_of
from axplore.runs.history import history_of
from axplore.statistics.episodes import focused_bets
from axplore.worlds.contract import Visit
from axplore.worlds.stepped import SteppedWorld
from axplore_studies.hidden import true_steps
from axplore_studies.systems.aliased import AliasedModel, random_model
from commands import run
from edited import edited


def planted(number: int) -> AliasedModel:
    """One of the systems of the study `hidden`."""
    rng = np.random.default_rng([17, number, True])
    n_states = int(rng.integers(4, 8))
    n_labels = max(3, n_states - int(rng.integers(1, 4)))
    return random_model(rng, n_states, n_labels, successors=2 + number % 2, evenness=0.25)


TESTED = (1, 4)
"""The states of this atlas for which episodes prove something."""


@cache
def misled(folder: Path | None = None) -> tuple[AliasedModel, Atlas]:
    """A system whose labels hide something, as if nothing had been noticed."""
    model = planted(4680)
    atlas = axplore.explore(
        model.system(4680), 4, 1, delta=0.5, seed=4680, objective="within-radius", doctor=False, run=folder
    )
    return model, altered(atlas, findings=())


def steps_by_episodes(model: AliasedModel, atlas: Atlas, goal: int) -> float:
    """The exact steps of the policy that was tested."""
    proof = atlas.by_episodes(goal)
    assert proof is not None
    return model.restarted_steps(partial(proof.policy, step=0), goal, proof.horizon)


def found(atlas: Atlas, issue: Issue) -> Atlas:
    """The atlas as if this had been found before."""
    finding = Finding(issue, "Something was seen.", "It matters.", "Mend it.", Level.DOUBT)
    return altered(atlas, findings=(finding,))


def test_where_the_bound_from_the_rows_is_false_the_one_by_episodes_is_true() -> None:
    model, atlas = misled()
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert true_steps(model, atlas.policy(4), 4) > 1.02 * atlas.bounds(4).upper
    proofs = [proof for goal in atlas.states[1:] if (proof := atlas.by_episodes(goal)) is not None]
    assert sorted(int(str(proof.state)) for proof in proofs) == sorted(TESTED)
    assert all(steps_by_episodes(model, atlas, int(str(proof.state))) <= proof.within for proof in proofs)


def test_it_is_shown_beside_the_bounds_and_in_every_form() -> None:
    _, atlas = misled()
    proof = atlas.by_episodes(4)
    assert proof is not None
    assert (proof.within, proof.horizon) == (5.0, proof.policy.horizon)
    assert 0 < proof.arrivals <= proof.episodes
    assert atlas.by_episodes(0) is None
    assert "by episodes" in headings_of(atlas)
    assert "whatever the labels hide" in legend_of(atlas)
    column = headings_of(atlas).index("by episodes")
    assert [row[column] for row in rows_of(atlas)] == ["5.000" if state in TESTED else "" for state in atlas.states]
    shown = [row.as_json()["by_episodes"] for row in state_rows(atlas)][: len(atlas.states)]
    assert shown == [5.0 if state in TESTED else None for state in atlas.states]
    report = atlas.describe(4)
    assert report.by_episodes is not None
    assert f"{proof.episodes} episodes from RESET prove it" in str(report)


def test_commands_and_the_page_show_it(tmp_path: Path) -> None:
    _, atlas = misled(tmp_path / "run")
    shown = run("state", str(tmp_path / "run"), "4")
    assert "Whatever the labels hide, a policy that restarts after" in shown.replace("\n", " ")
    proof = json.loads(run("state", str(tmp_path / "run"), "4", "--json"))["by_episodes"]
    assert (proof["within"], proof["episodes"] >= proof["arrivals"] > 0) == (5.0, True)
    assert json.loads(run("state", str(tmp_path / "run"), "2", "--json"))["by_episodes"] is None
    in_json = [state["by_episodes"] for state in atlas_as_json(atlas)["states"]]
    assert in_json == [5.0 if state in TESTED else None for state in atlas.states]
    page = page_of(atlas, history_of(tmp_path / "run"), tmp_path / "run")
    assert ">by episodes<" in page
    assert "a policy that restarts after" in page


def test_what_certify_has_decided_is_shown_with_the_state_unless_it_was_forged(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run("explore", "confusing-chain", "--radius", "2", "--epsilon", "1", "--out", folder)
    run("certify", folder, "s2", "--within", "4")
    assert "Proven: the policy to s2 of the atlas" in run("state", folder, "s2")
    (certified,) = json.loads(run("state", folder, "s2", "--json"))["certified"]
    assert (certified["decision"], certified["within"]) == ("proven", 4.0)
    assert json.loads(run("state", folder, "s1", "--json"))["certified"] == []
    forged = edited(axplore.EpisodeCertificate.load(folder / "certified-s2.json"), within=1.5)
    forged.save(folder / "certified-s2.json")
    with pytest.raises(InvalidInputError, match="does not follow from its episodes"):
        run("state", folder, "s2")


def test_a_finding_leaves_it_true_and_the_verdict_says_so() -> None:
    _, atlas = misled()
    sentence = "Whatever the labels hide, 2 states are reached within 5.000 expected steps from RESET"
    assert sentence not in str(atlas.verdict)
    doubtful = found(atlas, Issue.HISTORY_MATTERS)
    assert doubtful.verdict.kind is VerdictKind.PROVEN_UNDER_DOUBT
    assert sentence in str(doubtful.verdict)
    assert sentence not in str(
        found(atlas, Issue.NOISE_PINNED).verdict
    )  # episodes that repeat each other prove nothing


def test_counts_that_refute_each_other_leave_it_true() -> None:
    model = planted(61)
    atlas = axplore.explore(model.system(61), 4, 1, seed=1, doctor=False)
    assert atlas.verdict.kind is VerdictKind.CONTRADICTED
    assert "Whatever the labels hide, 1 state is reached" in str(atlas.verdict)
    proof = atlas.by_episodes(2)
    assert proof is not None
    assert steps_by_episodes(model, atlas, 2) <= proof.within


def test_what_an_atlas_says_by_episodes_is_verified_with_it() -> None:
    _, atlas = misled()
    assert axplore.verify(atlas).complete
    certificate = atlas.certificate
    assert certificate is not None
    tighter = edited(
        certificate, episodes=tuple(edited(test, bound=1.5, at_most=1.5) for test in certificate.of(EpisodeRecord))
    )
    assert any("nats" in failure.why for failure in verify(tighter).failures)


def test_a_part_of_an_atlas_keeps_what_was_proven_by_policies_through_its_states() -> None:
    atlas = axplore.explore(slippery_grid(4, 4), 5, 1, objective="within-radius", seed=1)
    part = atlas.within(4.2)
    kept = [state for state in part.states if part.by_episodes(state) is not None]
    assert kept
    for state in kept:
        old, new = atlas.by_episodes(state), part.by_episodes(state)
        assert old is not None
        assert new is not None
        assert old.within == new.within
        assert [old.policy(label, 0) for label in part.states] == [new.policy(label, 0) for label in part.states]


def half_open(rng: np.random.Generator) -> AliasedModel:
    """The goal, seen as 1, is nearer from a hidden state that looks like the start than from the start."""
    rarely, often = rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.9)
    row = np.array([[0.0, 1.0 - rarely, rarely], [0.0, 1.0 - often, often], [0.0, 0.0, 1.0]])
    return AliasedModel(np.array([row, row]), (0, 0, 1))


def test_at_most_a_share_of_false_bounds_is_ever_proven_though_the_start_shares_its_label() -> None:
    """Bounds are missed by a thousandth, where errors are likeliest, and the label of the start hides another state.

    With 500 tests at the level 0.1 there are more errors than allowed for with a probability of 1e-6. If episodes began
    without a RESET where the label of the start is shown, nearly half of the bounds would be proven.
    """
    level, repeats, wrong = 0.1, 500, 0
    rng = np.random.default_rng(8)
    for number in range(repeats):
        model, horizon = half_open(rng), 1 + number % 3
        world = SteppedWorld(model.system(number))
        world.carry_out([Visit(0, 0, 20, np.zeros(0, dtype=np.int64), 1)])
        bound = 0.999 * model.restarted_steps(lambda _: "left", 1, horizon)
        test = EpisodeTest(
            goal=1,
            states=np.array([0]),
            actions=np.array([0]),
            horizon=horizon,
            bound=bound,
            tail=1.0 + bound,
            line=1,
            turn=1,
            level=level,
            bets=focused_bets(0.4),
            outcomes=np.zeros(horizon + 2, dtype=np.int64),
        )
        for _ in range(10):
            (answer,) = world.carry_out([test.order((0, 1), 20)])
            test = test.after(answer)
            if test.proves_any:
                break
        wrong += test.proves_any
    assert wrong <= binom.isf(1e-6, repeats, level)
