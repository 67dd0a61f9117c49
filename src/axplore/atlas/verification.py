"""Whether an atlas says no more than its certificate, and whether the certificate is proven.

The certificate is verified from its counts alone (`axplore.certificate`). The atlas has to agree with it: the same
world and settings, and for every state that it calls certified or set aside a claim, with the same policy and no
tighter bounds. Lower bounds of the states of an atlas are claimed for AX* only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from axplore.atlas.atlas import Atlas
from axplore.atlas.state_report import checked_regret
from axplore.certificate import Certificate, ClaimKind, ClaimVerdict, NearOptimal, Reachable, Verdict
from axplore.certificate import verify as verify_certificate
from axplore.certificate.episode_records import EpisodeRecord
from axplore.errors import InvalidInputError
from axplore.target import Objective
from axplore.types import Status


def verify(subject: Atlas | str | Path) -> Verdict:
    """Checks from the counts alone everything that an atlas, or the folder of one, says to be certified.

    It trusts neither the explorer nor its solvers. The verdict has an item for each claim of the certificate, and one
    for the atlas.
    """
    atlas = subject if isinstance(subject, Atlas) else Atlas.load(subject)
    if atlas.certificate is None and atlas.proven:
        raise InvalidInputError("a part of an atlas has no certificate; verify the one that it was taken from")
    if atlas.certificate is None:
        raise InvalidInputError(
            f"there is nothing to verify: the explorer {atlas.explorer} leaves no certificate; explore with 'certified'"
        )
    verdict = verify_certificate(atlas.certificate)
    contradiction = next(contradictions(atlas, atlas.certificate), None)
    said = ClaimVerdict(
        kind=ClaimKind.ATLAS,
        subject="what the atlas says of states, policies and bounds",
        position=None,
        holds=contradiction is None,
        why=contradiction or "no more than what is claimed above",
    )
    return replace(verdict, claims=(*verdict.claims, said))


def contradictions(atlas: Atlas, certificate: Certificate) -> Iterator[str]:
    """What the atlas says and the certificate does not, in words."""
    if not _same_problem(atlas, certificate):
        yield "the certificate is of another run: states, actions, counts or settings differ"
        return
    too_far = {claim.goal: claim for claim in certificate.too_far}
    for place, standing in enumerate(atlas.left_out, start=len(atlas.states)):
        claim = too_far.get(place)
        if standing.status is Status.SET_ASIDE and (claim is None or standing.bounds.lower > claim.lower[0]):
            yield f"{standing.state!r} is set aside, which the certificate does not claim"
    unseen = too_far.get(len(atlas.statuses))
    if atlas.unseen_lower > atlas.target.radius and (unseen is None or atlas.unseen_lower > unseen.lower[0]):
        yield "states never seen are ruled out, which the certificate does not claim"
    if atlas.complete and len(too_far) <= len(atlas.left_out):
        yield "nothing within the radius is said to be missing, which the certificate does not claim"
    reachable = {claim.goal: claim for claim in certificate.reachable}
    optimal = {claim.goal: claim for claim in certificate.near_optimal}
    limit = certificate.radius + certificate.epsilon
    tested = {record.goal: record for record in certificate.episodes if record.bound <= limit}
    for place, state in enumerate(atlas.states):
        if atlas.statuses[place] is not Status.CERTIFIED:
            continue
        if not _follows(atlas, place, reachable.get(place) or tested.get(place), optimal.get(place)):
            yield f"{state!r} is certified, which the certificate does not claim with this policy and these bounds"


def _same_problem(atlas: Atlas, certificate: Certificate) -> bool:
    counts, target = atlas.count_arrays, atlas.target
    seen = (*atlas.states, *(standing.state for standing in atlas.left_out))
    positions = np.full(len(atlas.seen), -1)
    positions[np.concatenate((atlas.numbers, atlas.left_out_numbers))] = np.arange(len(seen))
    return (
        (target.radius, target.epsilon, target.delta) == (certificate.radius, certificate.epsilon, certificate.delta)
        and atlas.objective is certificate.objective
        and seen == (*certificate.known, *certificate.others)
        and atlas.actions == certificate.actions
        and np.array_equal(counts["row_offsets"], certificate.counts.row_offsets)
        and np.array_equal(positions[counts["successors"]], certificate.counts.successors)
        and np.array_equal(counts["counts"], certificate.counts.counts)
        and np.array_equal(counts["first_draws"], certificate.counts.first_draws)
    )


def _follows(
    atlas: Atlas, place: int, reachable: Reachable | EpisodeRecord | None, optimal: NearOptimal | None
) -> bool:
    """Whether the claims about a state of the atlas are those that its status needs."""
    bounds, policy = atlas.bounds(atlas.states[place]), atlas.policies[place]
    if place == 0:
        return bounds.lower == 0
    if reachable is None:
        return False
    if atlas.objective is Objective.WITHIN_RADIUS:
        if isinstance(reachable, EpisodeRecord):  # of the policy that restarts after so many steps
            by_step = np.tile(reachable.policy, (reachable.horizon, 1))
            return np.array_equal(policy, by_step) and bounds.upper >= reachable.bound
        return np.array_equal(policy, reachable.policy) and bounds.upper >= reachable.upper[0]
    return (
        optimal is not None
        and np.array_equal(policy, optimal.policy)
        and bounds.upper >= optimal.upper[0]
        and bounds.lower <= optimal.lower[0]
        and bounds.regret >= checked_regret(optimal.upper[0], optimal.lower[0], optimal.regret[0], atlas.target)
    )
