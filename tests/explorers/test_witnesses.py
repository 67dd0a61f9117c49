"""Bounds by episodes of one policy: they hold, are verified, and forged ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from axplore import check, verify
from axplore.records.properties import PropertyClaim

FORGED: list[dict[str, Any]] = [{"successes": 10**9, "episodes": 10**9}, {"line": 10**6}, {"horizon": 3}]


@pytest.fixture(scope="module", params=["max", "min"])
def found(request: pytest.FixtureRequest) -> Any:
    """A question with a number of steps, for which a policy was tested."""
    return check("grid:4x4,slip=0.3", reach=(3, 3), within=12, best=request.param, precision=0.1, seed=3)


def test_witness_is_verified_and_forgeries_are_refused(found: Any) -> None:
    certificate = found.atlas.certificate
    (claim,) = certificate.of(PropertyClaim)
    assert found.upper - found.lower <= 0.1
    assert verify(certificate).ok
    if claim.witness is None:
        pytest.skip("the region was as sharp")
    for forged in FORGED:
        witness = structs.replace(claim.witness, **forged)
        assert not verify(structs.replace(certificate, claims=(structs.replace(claim, witness=witness),))).ok
