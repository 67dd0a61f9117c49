"""A kind of assumption is one file on either side: a toy that is added here is read, used, checked and said.

The toy is what CONTRIBUTING.md describes, and takes no other change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axplore
from axplore.assumptions import Assumptions, assumptions_from, forms
from axplore.assumptions import registry as declaring
from axplore.assumptions.applied import region_given
from axplore.assumptions.kind import Draw, Examined, Loading, PairKind
from axplore.atlas import Atlas
from axplore.certificate import Certificate
from axplore.certificate import verify as verify_certificate
from axplore.certificate.assumptions import registry as verifying
from axplore.certificate.assumptions.kind import CheckedPairKind, Contradiction, Drawn
from axplore.certificate.region import confidence_region
from axplore.domains import slippery_grid
from axplore.errors import InvalidInputError, InvalidSettingError
from axplore.mdp import TabularMdp
from axplore.records.assumed import Assumed
from axplore.records.counts import Counts
from axplore.records.findings import Issue
from axplore.records.run import StopReason
from axplore.statistics.given_rows import GivenRows
from axplore.types import Action, FloatArray, IntArray, State
from axplore.worlds.assumption_tests import examined_assumptions
from axplore.worlds.probing import Draw as DoctorDraw
from edited import edited


class Coin(PairKind):
    """An action has two outcomes at most, and it never stays where it is if it has two. The number of a pair is 1."""

    name = form = "coin"

    def read(self, text: str, load: Loading | None) -> bool | None:  # noqa: ARG002
        return None if text else True

    def checked(self, value: Any) -> Any:
        if value not in (None, True):
            raise InvalidSettingError(f"coin is {value!r}; it must be True")
        return value

    def words(self, value: Any, assume: Assumptions) -> str:  # noqa: ARG002
        return "coins"

    def clause(self, number: float, *, everywhere: bool) -> str:  # noqa: ARG002
        return f"{'every action' if everywhere else 'it'} is assumed to be a coin"

    def number(self, value: Any, state: State, action: Action) -> float:  # noqa: ARG002
        return 1.0

    def most_outcomes(self, numbers: FloatArray) -> FloatArray:
        return np.where(numbers > 0.0, 2.0, np.inf)

    def contradicted(self, assumed: Assumed, rows: Counts, given: GivenRows) -> IntArray:  # noqa: ARG002
        owners = np.repeat(rows.states, np.diff(rows.state_pairs))[rows.entry_pairs]
        several = np.diff(rows.row_offsets)[rows.entry_pairs] > 1
        stays: IntArray = np.unique(rows.entry_pairs[several & (rows.successors == owners)])
        return stays

    def examined(self, value: Any, assume: Assumptions, draws: Sequence[Draw], false_alarm: float) -> Examined:  # noqa: ARG002
        outcomes: dict[Any, set[State]] = {}
        for draw in draws:
            met = outcomes.setdefault(draw.pair, set())
            met.add(draw.successor)
            if len(met) > 2:
                return Examined(f"'coin': {draw.pair} has 3 outcomes.", is_false=True)
        return Examined(f"coin: none of {len(outcomes)} actions showed a third outcome.")


class CheckedCoin(CheckedPairKind):
    """The same for the verifier."""

    name = "coin"

    def means_something(self, number: float) -> bool:
        return number == 1.0

    def most_outcomes(self, number: float) -> float:  # noqa: ARG002
        return 2.0

    def clauses(self, assumed: Assumed) -> tuple[str, ...]:
        return (f"{int(assumed.numbers[self.name].sum())} actions are coins",)

    def contradiction(self, assumed: Assumed, drawn: Drawn) -> Contradiction | None:  # noqa: ARG002
        counts = drawn.counts
        for state, (first, end) in enumerate(zip(counts.state_pairs[:-1], counts.state_pairs[1:], strict=True)):
            for pair in range(int(first), int(end)):
                row = counts.successors[counts.row_offsets[pair] : counts.row_offsets[pair + 1]].tolist()
                if len(row) > 1 and state in row:
                    return pair, " stayed where it was"
        return None


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    declaring.KINDS.append(Coin())
    verifying.KINDS.append(CheckedCoin())
    yield
    declaring.KINDS.pop()
    verifying.KINDS.pop()


COINS = TabularMdp.from_rows(
    {
        0: {"go": {1: 0.5, 2: 0.5}},
        1: {"go": {0: 0.5, 2: 0.5}},
        2: {"go": {0: 0.5, 3: 0.5}},
        3: {"go": {0: 0.5, 1: 0.5}},
    },
    0,
)


def explored(model: TabularMdp = COINS, **settings: Any) -> Atlas:
    return axplore.explore(model, radius=5, epsilon=1, assume="coin", doctor=False, **settings)


def certificate_of(atlas: Atlas) -> Certificate:
    assert atlas.certificate is not None
    return atlas.certificate


def test_it_is_read_checked_combined_and_named() -> None:
    assert assumptions_from("coin") == Assumptions(coin=True)
    assert str(assumptions_from(["coin", "deterministic"])) == "deterministic, coins"
    assert forms().endswith(", coin")
    with pytest.raises(InvalidSettingError, match=r"or of the form deterministic, .*, coin"):
        assumptions_from("coin=3")
    with pytest.raises(InvalidSettingError, match="coin is 3"):
        Assumptions(coin=3)


def test_it_is_applied_to_every_pair_and_both_sides_close_supports_by_it() -> None:
    certificate = certificate_of(explored())
    assert certificate.assumed is not None
    assert certificate.assumed.numbers["coin"].tolist() == [1.0] * len(certificate.pair_owners)
    counts, ones = certificate.counts, np.ones(certificate.n_seen)
    for assumed, is_closed in ((certificate.assumed, True), (None, False)):
        assert region_given(counts, certificate.delta, assumed).closed.tolist() == [is_closed] * len(counts.visits)
        # The mean of ones is one unless something that was never seen, with the value 0, may follow.
        n_actions = np.diff(counts.state_pairs).tolist()
        means = confidence_region(counts, n_actions, certificate.delta, assumed).least_means(ones)
        assert (means >= 1.0 - 1e-9).tolist() == [is_closed] * len(counts.visits)


def test_every_promise_says_if() -> None:
    atlas = explored()
    n_pairs = len(certificate_of(atlas).pair_owners)
    assert f"if {n_pairs} actions are coins" in atlas.verdict.headline
    verification = axplore.verify(atlas)
    assert verification.complete
    assert (
        verify_certificate(certificate_of(atlas)).conclusion[0].startswith(f"If {n_pairs} actions are coins, then with")
    )


def test_it_is_kept_in_files_and_resumed(tmp_path: Path) -> None:
    explored(run=tmp_path / "run", on_round=lambda report: StopReason.STEP_LIMIT if report.steps > 30 else None)
    resumed = axplore.resume(tmp_path / "run", COINS)
    assert certificate_of(resumed).digest == certificate_of(explored()).digest
    assert axplore.verify(tmp_path / "run").complete


@pytest.mark.parametrize(
    ("row", "says"), [({1: 0.4, 2: 0.3, 3: 0.3}, "led to"), ({0: 0.5, 1: 0.5}, "stayed where it was")]
)
def test_what_contradicts_it_ends_the_run_and_is_refuted(row: dict[State, float], says: str) -> None:
    atlas = explored(TabularMdp.from_rows({0: {"go": row}, 1: {"go": {0: 1.0}}, 2: {"go": {0: 1.0}}, 3: {}}, 0))
    assert atlas.stop is StopReason.ASSUMPTION_CONTRADICTED
    assert says in atlas.verdict.headline
    assert next(check.kind for check in axplore.verify(atlas).failures) == "assumptions"


def test_the_doctor_examines_it() -> None:
    def draws(n_outcomes: int) -> list[DoctorDraw]:
        return [DoctorDraw((0, "go"), None, None, 1, successor) for successor in range(n_outcomes)]

    assert examined_assumptions(draws(2), Assumptions(coin=True), 1e-3)[1] == [
        "coin: none of 1 actions showed a third outcome."
    ]
    (finding,), _ = examined_assumptions(draws(3), Assumptions(coin=True), 1e-3)
    assert finding.issue is Issue.ASSUMPTION_FALSE


def test_a_certificate_that_misspells_it_is_refused() -> None:
    certificate = certificate_of(explored())
    n_pairs = len(certificate.pair_owners)
    for numbers in ({"coin": np.full(n_pairs, 0.5)}, {"coin": np.ones(n_pairs - 1)}, {"coins": np.ones(n_pairs)}):
        with pytest.raises(InvalidInputError):
            edited(certificate, assumed=Assumed(numbers))


def test_explorers_that_prove_nothing_say_that_they_make_no_use_of_it() -> None:
    with pytest.raises(InvalidSettingError, match="makes no use of assumptions"):
        axplore.explore(slippery_grid(2, 2), radius=3, assume="coin", explorer="disco-experiment", doctor=False)
