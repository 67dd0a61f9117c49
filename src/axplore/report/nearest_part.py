"""What the page shows of an atlas with more states than a browser can hold: those nearest to the initial one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from axplore.atlas import Atlas
from axplore.target import Target

if TYPE_CHECKING:
    from axplore.types import IntArray

MOST_STATES: Final = 60_000
"""The most states of a page, which takes some 400 bytes for each."""


def nearest_part(atlas: Atlas) -> Atlas:
    """Returns the atlas itself if a page has room for it, or that of the largest radius for which it has.

    Only where every action is assumed to have one outcome there may be so many states. There the part is what exploring
    with the smaller radius would have proven: its states are the same, and so are the ways to them.
    """
    from axplore.records.distances import Distances

    certificate = atlas.certificate
    if len(atlas.statuses) <= MOST_STATES or certificate is None or not certificate.of(Distances):
        return atlas
    from axplore.proofs.certificates import survey_certificate
    from axplore.proofs.surveys import survey_evidence
    from axplore.statistics.counts import rows_of

    steps = np.sort(atlas.lower)
    # The states one step beyond the radius are on the page, too: as those that were met and left out.
    radius = max(1.0, float(np.floor(steps[MOST_STATES])) - 2)
    kept: IntArray = np.flatnonzero(atlas.upper[: len(atlas.numbers)] <= radius)
    target = Target(radius=radius, epsilon=atlas.target.epsilon, delta=atlas.target.delta)
    survey = survey_evidence(rows_of(certificate.counts, kept), target, certificate.objective)
    source = survey_certificate(survey, findings=certificate.findings, faults=certificate.faults)
    run = structs.replace(atlas.run, found_at=atlas.run.found_at[kept], uncounted=atlas.run.uncounted[:0], draws="")
    return Atlas(source=structs.replace(source, examined=certificate.examined), run=run)
