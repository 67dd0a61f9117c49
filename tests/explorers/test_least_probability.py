"""Outcomes with a least probability: few draws close a support, and what is proven holds if the assumption does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.assumptions import Assumptions
from axplore.atlas import Atlas
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import Certificate
from axplore.certificate import verify as verify_certificate
from axplore.certificate.bellman import Sweeper
from axplore.domains import slippery_grid
from axplore.errors import InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.proofs.row_kernels import least_mean
from axplore.proofs.sharpening import _sharpen
from axplore.records.assumed import Assumed
from axplore.records.episodes import EpisodeRecord
from axplore.records.run import StopReason
from edited import edited

THIRDS = TabularMdp.from_rows(
    {
        0: {"go": {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, "wait": {0: 1.0}},
        1: {"go": {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}},
        2: {"go": {0: 1 / 3, 1: 2 / 3}},
        3: {"go": {3: 1.0}},
    },
    initial_state=0,
)


def explore(mdp: TabularMdp, assume: Any, radius: float = 7, epsilon: float = 0.5, **settings: Any) -> Atlas:
    return axplore.explore(mdp, radius=radius, epsilon=epsilon, assume=assume, **settings)


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return explore(THIRDS, "min-probability=0.33")


def test_the_two_accounts_of_the_region_agree(atlas: Atlas) -> None:
    assert atlas.certificate is not None
    sweeper, model = Sweeper.of(atlas.certificate), atlas.model
    assert model.counts is not None
    assert model.log_levels is not None
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.uniform(0, 5, size=len(model.numbers))
        theirs = sweeper.region.least_means(values)
        sharp, row = model.rows._replace(shares=model.rows.shares.copy(), slack=model.rows.slack.copy()), np.zeros(99)
        for pair in range(model.n_pairs):
            for _ in range(3):
                found = least_mean(sharp, pair, values, 0.0, -1.0, sharp.slack[pair])
                _sharpen(sharp, model.counts, model.log_levels, pair, values, 0.0, -1.0, found, row)
        ours = [least_mean(sharp, pair, values, 0.0, -1.0, sharp.slack[pair])[0] for pair in range(len(theirs))]
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        assert (np.array(ours) <= theirs + 1e-9).all()  # whoever takes tangents at a better point finds no less


def test_means_over_the_region_lie_between_those_of_floors_and_of_frequencies(atlas: Atlas) -> None:
    model = atlas.model
    values = np.arange(len(model.numbers), dtype=np.float64)
    for pair in range(model.n_pairs):
        entries = slice(*model.rows.row_offsets[pair : pair + 2])
        seen = values[model.rows.successors[entries]]
        mean = least_mean(model.rows, pair, values, 0.0, -1.0, model.rows.slack[pair])[0]
        floors = 0.33 * seen.sum() + (1 - 0.33 * len(seen)) * seen.min()
        by_shares = model.rows.shares[entries] @ seen
        assert floors - 1e-9 <= mean <= max(by_shares, floors) + 1e-9


def test_assumptions_may_hold_for_some_pairs_only() -> None:
    partly = Assumptions(
        deterministic=lambda state, _: state == 3,
        min_probability=lambda state, _: 0.3 if state in (0, 1) else 0.0,
    )
    atlas = explore(THIRDS, partly, epsilon=1)
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert atlas.assumptions == (
        "1 of the 5 actions have one outcome, as declared",
        "no outcome of 3 of the 5 actions is rarer than 0.3",
    )
    assert axplore.verify(atlas).complete
    assert atlas.within(3).verdict.kind is VerdictKind.PROVEN


def test_tests_by_episodes_serve_where_outcomes_have_a_least_probability(tmp_path: Path) -> None:
    """They admit states, the certificate holds them, and the run may assume less later: their lines are then spent."""
    grid = slippery_grid(rows=3, columns=3, slip=0.2)
    atlas = explore(grid, "min-probability=0.1", radius=4, epsilon=1, run=tmp_path / "run", objective="within-radius")
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert axplore.verify(tmp_path / "run").complete
    assert atlas.certificate is not None
    before = [record.line for record in atlas.certificate.of(EpisodeRecord)]
    assert before
    after = axplore.resume(tmp_path / "run", grid, assume="none")
    assert after.verdict.kind is VerdictKind.PROVEN
    assert not after.assumptions
    assert axplore.verify(tmp_path / "run").complete
    assert after.certificate is not None
    assert all(record.line > max(before) for record in after.certificate.of(EpisodeRecord))


class TestAFalseAssumption:
    def test_more_outcomes_than_there_can_be_end_the_run(self) -> None:
        atlas = explore(slippery_grid(rows=3, columns=3, slip=0.4, start=(1, 1)), "min-probability=0.4")
        assert atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
        assert "is rarer than 0.4, but action" in atlas.verdict.headline
        assert next(check.kind for check in axplore.verify(atlas).failures) == "assumptions"

    def test_an_outcome_that_is_rarer_than_assumed_ends_the_run(self) -> None:
        uneven = TabularMdp.from_rows(
            {0: {"go": {0: 0.5, 1: 0.4, 2: 0.1}}, 1: {"go": {0: 1.0}}, 2: {"go": {2: 1.0}}}, 0
        )
        atlas = explore(uneven, "min-probability=0.3", epsilon=0.01)
        assert atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
        assert "which one as likely as 0.3 has with a probability of at most" in atlas.verdict.headline
        assert next(check.kind for check in axplore.verify(atlas).failures) == "assumptions"

    def test_an_outcome_that_comes_late_ends_the_run(self, tmp_path: Path) -> None:
        rare = TabularMdp.from_rows(
            {0: {"go": {0: 0.5, 1: 0.49, 2: 0.01}}, 1: {"go": {0: 1.0}}, 2: {"go": {2: 1.0}}}, initial_state=0
        )
        atlas = explore(rare, "min-probability=0.3", epsilon=0.05, run=tmp_path / "run")
        assert atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
        assert "for the first time, when no other outcome should have been left" in atlas.verdict.headline
        after = axplore.resume(tmp_path / "run", rare, assume="min-probability=0.005", epsilon=2)
        assert after.verdict.kind is VerdictKind.PROVEN
        assert axplore.verify(tmp_path / "run").complete


def test_functions_of_the_user_have_to_be_passed_again(tmp_path: Path) -> None:
    assumed = Assumptions(min_probability=least_of)
    explore(THIRDS, assumed, run=tmp_path / "run", on_round=lambda _: StopReason.STEP_LIMIT)  # between two rounds
    with pytest.raises(InvalidSettingError, match="pass them again"):
        axplore.resume(tmp_path / "run", THIRDS)
    resumed = axplore.resume(tmp_path / "run", THIRDS, assume=assumed)
    whole = explore(THIRDS, assumed)
    assert resumed.certificate is not None
    assert whole.certificate is not None
    assert resumed.certificate.digest == whole.certificate.digest


def least_of(state: object, action: object) -> float:
    del state, action
    return 0.33


class TestForgeries:
    @pytest.fixture
    def certificate(self, atlas: Atlas) -> Certificate:
        assert atlas.certificate is not None
        return atlas.certificate

    def test_a_smaller_probability_proves_less_and_a_larger_one_shows(self, certificate: Certificate) -> None:
        assert certificate.assumed is not None
        ((name, least),) = certificate.assumed.numbers.items()
        smaller = Assumed({name: least / 3})
        assert verify_certificate(edited(certificate, assumed=smaller)).failures
        larger = Assumed({name: least * 1.005})
        conclusion = verify_certificate(edited(certificate, assumed=larger)).conclusion[0]
        assert conclusion.startswith("If no outcome of an action is rarer than 0.33165")
