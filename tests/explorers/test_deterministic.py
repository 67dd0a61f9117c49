"""Worlds that are assumed to be deterministic: shortest ways, few steps, and what if the assumption is false."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.atlas import Atlas
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import Certificate
from axplore.certificate import verify as verify_certificate
from axplore.domains import random_maze, slippery_grid, star
from axplore.errors import ExitCode, InvalidInputError, InvalidSettingError
from axplore.explorers.certified import Certified
from axplore.mdp import TabularMdp
from axplore.records.assumed import Assumed
from axplore.records.distances import Distances
from axplore.records.run import StopReason
from axplore.target import Target
from axplore.truth import check_optimal, controllable_states
from axplore.types import Status
from edited import edited

GRID = slippery_grid(rows=6, columns=6, slip=0)


def far(state: Any) -> int:
    """The steps to a cell of the grid."""
    return int(sum(state))


def survey(mdp: TabularMdp, radius: float = 8, **settings: object) -> Atlas:
    return axplore.explore(mdp, radius=radius, epsilon=1, assume="deterministic", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mdp", "radius"), [(GRID, 8), (GRID, 2.5), (star(), 6), (random_maze(7, 9, seed=1), 12)])
def test_the_answer_is_the_truth_and_every_bound_exact(mdp: TabularMdp, radius: float) -> None:
    atlas = survey(mdp, radius)
    truth = controllable_states(mdp, radius)
    assert set(atlas.states) == set(truth.states)
    assert np.array_equal(atlas.lower[: len(atlas.states)], atlas.upper[: len(atlas.states)])
    steps = {state: atlas.bounds(state).upper for state in atlas.states}
    assert check_optimal(truth, steps=steps, epsilon=1e-9).holds
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert "if every action has one outcome" in atlas.verdict.headline
    verification = axplore.verify(atlas)
    assert verification.complete
    assert verification.exit_code is ExitCode.DONE


def test_one_draw_settles_a_pair_and_states_at_the_radius_need_none() -> None:
    atlas = survey(GRID)
    assert atlas.steps == 182  # a walk to the nearest action that was never played
    visits = dict(zip(atlas.pairs, atlas.counts.visits.tolist(), strict=True))
    assert {far(state) for (state, _), times in visits.items() if times == 0} == {8}


def test_policies_are_shortest_ways_made_when_they_are_asked_for() -> None:
    atlas = survey(GRID)
    for goal in atlas.states:
        journeys = atlas.policy(goal).run(GRID)
        assert (journeys.arrivals, journeys.steps) == (1, far(goal))
    assert len(atlas.path((3, 5)).states) == 9


def test_a_smaller_radius_is_answered_and_a_larger_one_resumed(tmp_path: Path) -> None:
    atlas = survey(GRID, run=tmp_path / "run")
    small = atlas.within(3)
    assert set(small.states) == {state for state in atlas.states if far(state) <= 3}
    assert small.complete
    larger = axplore.resume(tmp_path / "run", GRID, radius=10)
    assert len(larger.states) == 36
    assert larger.complete
    assert len(axplore.resume(tmp_path / "run", GRID, radius=10).states) == 36


def test_an_interrupted_run_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    mdp = random_maze(30, 30)
    whole = survey(mdp, 500)
    survey(mdp, 500, run=tmp_path / "run", max_steps=1)
    resumed = axplore.resume(tmp_path / "run", mdp)
    assert whole.certificate is not None
    assert resumed.certificate is not None
    assert resumed.certificate.digest == whole.certificate.digest


@pytest.mark.usefixtures("_only_worker_here")
@pytest.mark.parametrize("workers", [1, 2])
def test_with_workers_the_answer_is_the_same(workers: int) -> None:
    alone, shared = survey(GRID), survey(GRID, workers=workers)
    assert set(shared.states) == set(alone.states)
    assert shared.complete


def test_what_was_not_finished_is_open() -> None:
    mdp = random_maze(40, 40)
    atlas = survey(mdp, 10_000, max_steps=100)
    assert atlas.verdict.kind is VerdictKind.UNFINISHED
    assert not atlas.complete
    assert Status.CERTIFIED in atlas.statuses
    whole = survey(mdp, 10_000)
    assert all(whole.bounds(state).upper in atlas.bounds(state) for state in atlas.states)
    assert axplore.verify(atlas).holds


class TestAFalseAssumption:
    SLIPPERY = slippery_grid(rows=4, columns=4, slip=0.2)

    def test_ends_the_run_at_once_and_names_what_was_seen(self) -> None:
        atlas = survey(self.SLIPPERY, 5)
        assert atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
        assert atlas.steps < 100
        assert atlas.verdict.kind is VerdictKind.CONTRADICTED
        assert atlas.verdict.exit_code is ExitCode.REFUTED
        assert "action 'down' of state (1, 0) led to (2, 0) and (1, 1)" in atlas.verdict.headline
        verification = axplore.verify(atlas)
        assert [check.kind for check in verification.failures] == ["assumptions"]
        assert verification.exit_code is ExitCode.REFUTED

    def test_the_run_resumes_with_every_draw_and_nothing_assumed(self, tmp_path: Path) -> None:
        before = survey(self.SLIPPERY, 5, run=tmp_path / "run")
        after = axplore.resume(tmp_path / "run", self.SLIPPERY, assume="none")
        assert after.verdict.kind is VerdictKind.PROVEN
        assert not after.assumptions
        for state, action in after.pairs:
            if state in before.indices:
                drawn = before.successors(state, action)
                assert all(after.successors(state, action)[successor] >= times for successor, times in drawn.items())
        assert axplore.verify(tmp_path / "run").complete
        assert set(controllable_states(self.SLIPPERY, 5).states) <= set(after.states)


def test_explorers_that_make_no_use_of_assumptions_say_so() -> None:
    with pytest.raises(InvalidSettingError, match="makes no use of assumptions"):
        axplore.explore(GRID, radius=3, explorer="disco-experiment", assume="deterministic")


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    certificate = survey(GRID, 4).certificate
    assert certificate is not None
    return certificate


class TestForgeries:
    def test_an_assumption_that_is_dropped_leaves_nothing_that_can_be_claimed(self, certificate: Certificate) -> None:
        with pytest.raises(InvalidInputError, match="distances need every pair to be assumed"):
            edited(certificate, assumed=None)
        assert certificate.assumed is not None
        single = certificate.assumed.numbers["deterministic"].copy()
        single[3] = 0
        with pytest.raises(InvalidInputError, match="distances need every pair to be assumed"):
            edited(certificate, assumed=Assumed({"deterministic": single}))

    def test_an_assumption_that_is_added_shows_in_the_conclusion(self) -> None:
        honest = axplore.explore(
            star(), explorer=Certified(target=Target(radius=3, epsilon=1), by_episodes=False)
        ).certificate
        assert honest is not None
        assert verify_certificate(honest).conclusion[0].startswith("With probability")
        forged = edited(honest, assumed=Assumed({"deterministic": np.ones(len(honest.pair_owners))}))
        verification = verify_certificate(forged)
        assert verification.conclusion[0].startswith("If every action has one outcome, then with probability")

    def test_steps_that_are_too_few_or_too_many_are_refused(self, certificate: Certificate) -> None:
        assert certificate.of(Distances)
        for change in (-1, 1):
            for state in range(1, certificate.n_seen):
                steps = certificate.of(Distances)[0].steps.copy()
                steps[state] += change
                forged = edited(
                    certificate, distances=(Distances(steps, certificate.of(Distances)[0].reached_by.copy()),)
                )
                failures = verify_certificate(forged).failures
                # A smaller number for a state that is not known is a weaker claim, and holds.
                expected = state < len(certificate.known) or change > 0
                assert bool(failures) == expected, (state, change)

    def test_ways_that_lead_nowhere_are_refused(self, certificate: Certificate) -> None:
        assert certificate.of(Distances)
        for state in range(1, len(certificate.known)):
            reached_by = certificate.of(Distances)[0].reached_by.copy()
            reached_by[state] = (reached_by[state] + 1) % len(certificate.pair_owners)
            forged = edited(certificate, distances=(Distances(certificate.of(Distances)[0].steps.copy(), reached_by),))
            holds = verify_certificate(forged).holds
            pair = int(reached_by[state])
            owner = int(certificate.pair_owners[pair])
            row = certificate.counts.row_offsets[pair : pair + 2]
            leads_there = row[1] > row[0] and certificate.counts.successors[row[0]] == state
            steps = certificate.of(Distances)[0].steps
            assert holds == bool(leads_there and steps[owner] + 1 == steps[state])

    def test_a_second_outcome_contradicts_the_assumption(self, certificate: Certificate, tmp_path: Path) -> None:
        certificate.save(tmp_path)
        assert verify_certificate(Certificate.load(tmp_path)).complete
        counts = certificate.counts
        offsets = counts.row_offsets.copy()
        offsets[1:] += 1
        forged = edited(
            certificate,
            counts=edited(
                counts,
                row_offsets=offsets,
                successors=np.insert(counts.successors, 1, (counts.successors[0] + 1) % certificate.n_seen),
                counts=np.insert(counts.counts, 1, 1),
                first_draws=np.insert(counts.first_draws, 1, counts.counts[0] + 1),
            ),
        )
        verification = verify_certificate(forged)
        assert "assumptions" in [check.kind for check in verification.failures]
        assert verification.conclusion[0].startswith("CONTRADICTED: it is assumed that every action has one outcome")
