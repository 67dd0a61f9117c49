"""Pairs that share a law: their draws count together, and what is proven holds if they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import axplore
from axplore.assumptions import Assumptions
from axplore.atlas import Atlas
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import Certificate
from axplore.certificate import verify as verify_certificate
from axplore.certificate.bellman import Sweeper
from axplore.domains import GridTies, slippery_grid
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.proofs.row_kernels import least_mean
from axplore.records.assumed import UNTIED, Assumed, Ties
from axplore.records.order import Labels
from axplore.records.run import StopReason
from axplore.types import Action, State
from edited import edited

FLOOR = GridTies(rows=3, columns=3)
SEEN = Assumptions(tied=FLOOR.outcome_of)
PREDICTED = Assumptions(tied=FLOOR.outcome_of, leads_to=FLOOR.leads_to)
GRID = slippery_grid(rows=3, columns=3, slip=0.2)


def explore(mdp: TabularMdp, assume: Any, radius: float = 4, epsilon: float = 1, **settings: Any) -> Atlas:
    return axplore.explore(mdp, radius=radius, epsilon=epsilon, assume=assume, **settings)


@pytest.fixture(scope="module", params=[SEEN, PREDICTED], ids=["seen", "predicted"])
def atlas(request: pytest.FixtureRequest) -> Atlas:
    return explore(GRID, request.param)


@pytest.fixture
def certificate(atlas: Atlas) -> Certificate:
    assert atlas.certificate is not None
    return atlas.certificate


def test_the_two_accounts_of_the_region_agree(atlas: Atlas, certificate: Certificate) -> None:
    sweeper, model = Sweeper.of(certificate), atlas.model
    rng = np.random.default_rng(0)
    for _ in range(5):
        values = rng.uniform(0, 5, size=len(model.numbers))
        theirs = sweeper.region.least_means(values)
        ours = [
            least_mean(model.rows, pair, values, 0.0, -1.0, model.rows.slack[pair])[0] for pair in range(len(theirs))
        ]
        assert (theirs >= np.array(ours) - 1e-6).all()  # the verifier's are as sharp as the values allow
        assert np.allclose(ours, theirs, atol=0.1)


def test_an_outcome_that_was_not_seen_in_a_pair_may_lead_anywhere() -> None:
    short = explore(GRID, SEEN, max_steps=300)
    rest = short.model.rows.rest
    assert rest.max() > 0.0
    assert explore(GRID, PREDICTED, max_steps=300).model.rows.rest.sum() < rest.sum()
    assert axplore.verify(short).holds


def test_ties_combine_with_other_assumptions() -> None:
    both = Assumptions(tied=FLOOR.outcome_of, min_probability=0.1)
    atlas = explore(GRID, both)
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert axplore.verify(atlas).complete
    assert len(atlas.assumptions) == 2
    certain = slippery_grid(rows=3, columns=3, slip=0)
    partly = Assumptions(tied=FLOOR.outcome_of, deterministic=lambda _, action: action == "up")
    assert axplore.verify(explore(certain, partly)).complete


def test_pairs_may_be_tied_in_part() -> None:
    def only_sideways(state: State, action: Action, successor: State) -> tuple[Hashable, Hashable] | None:
        return FLOOR.outcome_of(state, action, successor) if action in ("left", "right") else None

    atlas = explore(slippery_grid(rows=1, columns=4, slip=0.2), Assumptions(tied=only_sideways), radius=3)
    assert atlas.verdict.kind is VerdictKind.PROVEN
    assert axplore.verify(atlas).complete


class TestAFalseAssumption:
    def contradicted(self, atlas: Atlas) -> str:
        assert atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
        assert next(check.kind for check in axplore.verify(atlas).failures) == "assumptions"
        return atlas.verdict.headline

    def test_an_outcome_that_leads_to_two_states_ends_the_run(self) -> None:
        atlas = explore(GRID, Assumptions(tied=lambda *_: ("move", "moved")))
        assert "leads to two states by the outcome 'moved'" in self.contradicted(atlas)

    def test_a_pair_with_two_classes_ends_the_run(self) -> None:
        atlas = explore(GRID, Assumptions(tied=lambda state, _, successor: (state == successor, successor)))
        assert "was given two classes" in self.contradicted(atlas)

    def test_a_wrong_prediction_ends_the_run(self) -> None:
        wrong = Assumptions(tied=FLOOR.outcome_of, leads_to=lambda state, *_: state)
        assert "cannot be told apart" in self.contradicted(explore(GRID, wrong))

    def test_more_outcomes_than_there_can_be_end_the_run(self) -> None:
        atlas = explore(GRID, Assumptions(tied=FLOOR.outcome_of, min_probability=0.4))
        assert "is rarer than 0.4" in self.contradicted(atlas)

    def test_all_draws_serve_without_the_assumption(self, tmp_path: Path) -> None:
        def merged(state: State, action: Action, successor: State) -> tuple[Hashable, Hashable]:
            return action, "away" if successor != state else "stay"

        before = explore(GRID, Assumptions(tied=merged), run=tmp_path / "run", epsilon=3)
        assert before.stop is StopReason.ASSUMPTION_CONTRADICTED
        tied = axplore.resume(tmp_path / "run", GRID, assume=SEEN)
        assert tied.verdict.kind is VerdictKind.PROVEN
        assert axplore.verify(tmp_path / "run").complete
        free = axplore.resume(tmp_path / "run", GRID, assume="none")
        assert free.verdict.kind is VerdictKind.PROVEN
        assert free.assumptions == ()
        assert free.steps > tied.steps > before.steps


def test_a_run_is_resumed_with_the_same_function(tmp_path: Path) -> None:
    explore(GRID, SEEN, run=tmp_path / "run", on_round=lambda _: StopReason.STEP_LIMIT)  # between two rounds
    with pytest.raises(InvalidSettingError, match="pass them again"):
        axplore.resume(tmp_path / "run", GRID)
    resumed = axplore.resume(tmp_path / "run", GRID, assume=SEEN)
    whole = explore(GRID, SEEN)
    assert resumed.certificate is not None
    assert whole.certificate is not None
    assert resumed.certificate.digest == whole.certificate.digest


def test_what_the_function_gives_is_checked() -> None:
    with pytest.raises(InvalidSettingError, match="a class and the name of an outcome"):
        explore(GRID, Assumptions(tied=lambda *_: "class"))


class TestForgeries:
    @staticmethod
    def ties(certificate: Certificate) -> Ties:
        assert certificate.assumed is not None
        assert certificate.assumed.ties is not None
        return certificate.assumed.ties

    def names(self, certificate: Certificate) -> list[tuple[Hashable, Hashable]]:
        return [cast(tuple[Hashable, Hashable], name) for name in self.ties(certificate).names]

    def tied(self, certificate: Certificate, **changes: Any) -> Certificate:
        return edited(certificate, assumed=Assumed({}, edited(self.ties(certificate), **changes)))

    def test_a_list_of_nothing_is_refused_for_it_would_change_levels_without_an_if(self) -> None:
        free = explore(GRID, None, max_steps=2000).certificate
        assert free is not None
        untied, nothing = np.full(len(free.counts.counts), UNTIED), np.zeros(0, dtype=np.int64)
        no_predictions = np.zeros((0, 3), dtype=np.int64)
        with pytest.raises(InvalidInputError, match="ties list no outcome"):
            edited(free, assumed=Assumed({}, Ties(Labels(), untied, no_predictions, nothing, nothing)))
        name, never = Labels([("class", "outcome")]), np.zeros(1, dtype=np.int64)
        with pytest.raises(InvalidInputError, match="never drawn"):
            edited(free, assumed=Assumed({}, Ties(name, untied, no_predictions, never, nothing)))
        with pytest.raises(InvalidInputError, match="there are none"):
            edited(free, assumed=Assumed({}))

    def test_whoever_adds_ties_says_if(self) -> None:
        free = explore(GRID, None, max_steps=2000).certificate
        tied = explore(GRID, SEEN, max_steps=2000).certificate
        assert free is not None
        assert tied is not None
        assert free.assumptions == ()
        assert verify_certificate(tied).conclusion[0].startswith("If the actions of each of the 6 classes listed")

    def test_another_class_contradicts_the_others_or_shows_in_the_list(self, certificate: Certificate) -> None:
        names = tuple(
            (("other",), name) if place == 0 else (kind, name)
            for place, (kind, name) in enumerate(self.names(certificate))
        )
        forged = verify_certificate(self.tied(certificate, names=Labels(names)))
        assert forged.failures[0].kind == "assumptions"

    def test_one_class_for_all_shows_in_the_conclusion(self, certificate: Certificate) -> None:
        names = tuple(("all", (kind, name)) for kind, name in self.names(certificate))
        forged = verify_certificate(self.tied(certificate, names=Labels(names)))
        assert forged.failures or "the class listed" in forged.conclusion[0]

    def test_another_outcome_of_a_draw_contradicts_the_list(self, certificate: Certificate) -> None:
        outcomes, offsets = self.ties(certificate).outcomes.copy(), certificate.counts.row_offsets
        times = Counter(outcomes.tolist())
        first = next(a for a, b in pairwise(offsets.tolist()) if b - a > 1 and times[int(outcomes[a + 1])] > 1)
        outcomes[first + 1] = outcomes[first]
        assert verify_certificate(self.tied(certificate, outcomes=outcomes)).failures[0].kind == "assumptions"

    def test_another_place_for_an_outcome_contradicts_the_list(self, certificate: Certificate) -> None:
        wrong = np.array([[0, self.ties(certificate).outcomes[0], certificate.n_seen - 1]])
        predicted = np.concatenate((self.ties(certificate).predicted, wrong))
        forged = verify_certificate(self.tied(certificate, predicted=predicted))
        assert forged.failures[0].kind == "assumptions"

    def test_fewer_draws_prove_less(self, certificate: Certificate) -> None:
        counts = certificate.counts
        fewer = np.maximum(counts.counts // 3, counts.first_draws)
        assert verify_certificate(edited(certificate, counts=edited(counts, counts=fewer))).failures

    @pytest.mark.parametrize(
        "changes",
        [
            {"elsewhere": np.full(16, 1000)},
            {"outcomes": np.zeros(3, dtype=np.int64)},
            {"predicted": np.array([[0, 0, 1000]])},
            {"names": Labels([("a", "b")] * 16)},
        ],
    )
    def test_what_fits_no_counts_is_refused(self, certificate: Certificate, changes: dict[str, Any]) -> None:
        with pytest.raises(axplore.errors.InvalidInputError):
            self.tied(certificate, **changes)
