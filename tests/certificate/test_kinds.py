"""A kind of claims is one file and one line of a list: shown with a toy that is written, read, verified and forged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from explored import certificate_of

from axplore import storage
from axplore.certificate import Certificate, ClaimCheck, kinds, verify
from axplore.certificate.conclusions import Draft, conclusions_of
from axplore.certificate.kinds.kind import Checking, Kind
from axplore.certificate.ranges import check_whole
from axplore.errors import DamagedFileError, InvalidInputError
from axplore.records.codec import Record
from edited import edited


class Entered(Record, frozen=True):
    """Draws led to a state at least a number of times.

    Attributes:
        goal: the index of a state.
        times: the number.
    """

    goal: int
    times: int


class EnteredKind(Kind[Entered]):
    """A toy: it is proven by counting, and a state that was never entered would be beyond the radius."""

    record, name, words = Entered, "entered", "entered"

    def check_shape(self, claim: Entered, certificate: Certificate) -> None:
        check_whole("the goal of a claim of entries", claim.goal, 0, certificate.n_seen - 1)
        check_whole("the number of entries", claim.times, 0)

    def checks(self, claims: Sequence[Entered], checking: Checking) -> Iterator[ClaimCheck]:
        counts = checking.certificate.counts
        for claim in claims:
            entered = int(counts.counts[counts.successors == claim.goal].sum())
            yield self.checked(claim, checking.certificate, entered >= claim.times, f"{entered} draws led there")

    def conclude(self, claims: Sequence[Entered], draft: Draft) -> None:
        for claim in claims:
            draft.raise_lower(claim.goal, 1.5)


@pytest.fixture
def with_toy(monkeypatch: pytest.MonkeyPatch) -> Certificate:
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, EnteredKind()))
    return edited(certificate_of("chain"), entered=(Entered(1, 3), Entered(2, 1)))


def test_claims_of_a_new_kind_are_written_and_read(with_toy: Certificate, tmp_path: Path) -> None:
    with_toy.save(tmp_path)
    loaded = Certificate.load(tmp_path)
    assert [(claim.goal, claim.times) for claim in loaded.of(Entered)] == [(1, 3), (2, 1)]
    assert loaded.digest == with_toy.digest != certificate_of("chain").digest


def test_they_are_verified_and_forgeries_are_rejected_by_their_name(with_toy: Certificate) -> None:
    lines = str(verify(with_toy)).splitlines()
    assert verify(with_toy).complete
    assert any(line.startswith("ok") and "entered" in line and "draws led there" in line for line in lines)
    forged = verify(edited(with_toy, entered=(Entered(1, 10**9),)))
    assert {(check.kind, check.index) for check in forged.failures} == {("entered", 1), ("complete", None)}


def test_they_are_refused_where_the_draws_cannot_be(with_toy: Certificate) -> None:
    draws = edited(with_toy.counts, first_draws=with_toy.counts.first_draws + 10**6)
    failures = verify(edited(with_toy, counts=draws)).failures
    assert ("entered", "the recorded draws are impossible") in {(check.kind, check.why) for check in failures}


def test_what_follows_from_them_is_concluded(with_toy: Certificate) -> None:
    without = edited(with_toy, claims=(Entered(1, 3),), complete=False)
    assert conclusions_of(without).lower[1] == 1.5


@pytest.mark.parametrize("claim", [Entered(-1, 3), Entered(10**6, 3), Entered(1, -1), Entered(1, 10**40)])
def test_what_is_out_of_range_is_refused(with_toy: Certificate, claim: Entered) -> None:
    with pytest.raises(InvalidInputError):
        edited(with_toy, entered=(claim,))


def test_a_file_with_a_kind_that_is_not_listed_is_refused(
    with_toy: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_toy.save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(DamagedFileError, match="unknown field `entered`"):
        Certificate.load(tmp_path)
    with pytest.raises(InvalidInputError, match="of no kind"):
        edited(certificate_of("chain"), claims=(Entered(1, 3),))


def test_a_kind_without_claims_is_not_listed(tmp_path: Path) -> None:
    body, arrays = certificate_of("chain").content
    storage.write_sealed(tmp_path, "certificate", {**body, "claims": {**body["claims"], "episodes": []}}, arrays)
    with pytest.raises(DamagedFileError, match="of which it has none"):
        Certificate.load(tmp_path)
