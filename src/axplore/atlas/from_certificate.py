"""How a certificate becomes an atlas: everything that is said to be proven follows from it."""

from __future__ import annotations

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.certificate import Certificate
from axplore.certificate.conclusions import conclusions_of
from axplore.explorers.base import StopReason
from axplore.target import Target
from axplore.types import IntArray, State


def atlas_from_certificate(
    certificate: Certificate,
    *,
    world: str,
    explorer: str,
    found_at: IntArray,
    uncounted: tuple[State, ...],
    steps: int,
    rounds: int,
    stop: StopReason,
) -> Atlas:
    """The atlas of a certificate. What else it is given is a record of the run, from which nothing is concluded.

    States are numbered as in the certificate: the known ones in order of admission, the others seen, and then those
    that the world has met and to which no transition was counted.
    """
    n_known, n_seen = len(certificate.known), certificate.n_seen
    concluded = conclusions_of(certificate)
    counts = certificate.counts
    drawn = np.concatenate(([0], np.cumsum(counts.counts)))
    return Atlas(
        world=world,
        explorer=explorer,
        target=Target(radius=certificate.radius, epsilon=certificate.epsilon, delta=certificate.delta),
        objective=certificate.objective,
        seen=(*certificate.known, *certificate.others, *uncounted),
        numbers=np.arange(n_known),
        found_at=found_at,
        actions=certificate.actions,
        policies=concluded.policies,
        left_out_numbers=np.arange(n_known, n_seen),
        lower=concluded.lower,
        upper=concluded.upper,
        regret=concluded.regret,
        statuses=concluded.statuses,
        unseen_lower=concluded.unseen_lower,
        proven=True,
        complete=certificate.complete,
        count_arrays={
            "states": np.arange(n_known),
            "state_pairs": certificate.state_pairs,
            "visits": np.diff(drawn[counts.row_offsets]),
            "row_offsets": counts.row_offsets,
            "successors": counts.successors,
            "counts": counts.counts,
            "first_draws": counts.first_draws,
        },
        steps=steps,
        rounds=rounds,
        stop=stop,
        findings=certificate.findings,
        faults=certificate.faults,
        certificate=certificate,
    )
