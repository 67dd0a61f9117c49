"""The digest of draws by label does not depend on the order of states, and notices labels that change places."""

from __future__ import annotations

import numpy as np
import pytest
from explored import certificate_of, rows_of, with_rows

from axplore.certificate import verify
from axplore.certificate.binding import draws_by_label
from axplore.statistics.counts import in_order
from edited import edited


@pytest.mark.parametrize("name", ["chain", "slippery grid", "random 0"])
def test_labels_that_change_places_are_noticed(name: str) -> None:
    """Draws under other names are as possible as these, so that nothing else can notice it."""
    certificate = certificate_of(name)
    initial, first, second, *rest = certificate.known
    actions = certificate.actions
    permuted = with_rows(certificate, rows_of(certificate), known=(initial, second, first, *rest), actions=actions)
    assert verify(permuted).complete
    assert draws_by_label(permuted.counts, permuted.known) != draws_by_label(certificate.counts, certificate.known)


@pytest.mark.parametrize("name", ["chain", "slippery grid", "random 0"])
def test_the_order_of_states_does_not_matter_and_every_draw_does(name: str) -> None:
    certificate = certificate_of(name)
    counts, known = certificate.counts, certificate.known
    turned = in_order(counts, np.arange(len(counts.order))[::-1].copy())
    assert draws_by_label(turned, known) == draws_by_label(counts, known)
    for array in ("counts", "first_draws"):
        more = getattr(counts, array).copy()
        more[-1] += 1
        assert draws_by_label(edited(counts, **{array: more}), known) != draws_by_label(counts, known)
    assert draws_by_label(counts, known[:-1]) != draws_by_label(counts, known)
