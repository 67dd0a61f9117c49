"""Certificates from evidence: the claims that the evidence proves; those still open are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from msgspec import structs

from axplore.assumptions.applied import listed
from axplore.certificate import Certificate
from axplore.certificate.conclusions import conclusions_of
from axplore.proofs.bounds import most_steps
from axplore.proofs.evidence import Evidence, KeptRegret, bounded_by
from axplore.proofs.surveys import SurveyEvidence
from axplore.records.assumed import Assumed
from axplore.records.claims import AtLeast, AtMost, Bound, NearOptimal, Reachable, TooFar
from axplore.records.codec import Record
from axplore.records.counts import Counts
from axplore.records.episodes import EpisodeRecord
from axplore.records.findings import Fault, Finding
from axplore.records.properties import PropertyClaim
from axplore.records.retired import NEVER_DRAWN, ONE_SUCCESSOR, RetiredStates
from axplore.records.vectors import Vector
from axplore.statistics.counts import in_order, rows_of
from axplore.target import NO_RADIUS, Objective, Target
from axplore.types import IntArray


def certificate_from(
    evidence: Evidence,
    counts: Counts,
    *,
    findings: tuple[Finding, ...] = (),
    faults: tuple[Fault, ...] = (),
    assumed: Assumed | None = None,
) -> Certificate:
    """Returns the certificate of everything that is proven.

    Args:
        evidence: what the counts prove.
        counts: what was drawn, perhaps from more states than the known ones.
        findings: what was found when the system was examined.
        faults: failures of the system while it was explored.
        assumed: what is assumed of each counted pair.
    """
    n_known, numbers = evidence.model.n_known, evidence.model.numbers
    known = numbers[:n_known]
    return Certificate(
        radius=float(evidence.target.radius),
        epsilon=float(evidence.target.epsilon),
        delta=float(evidence.target.delta),
        objective=evidence.objective,
        complete=evidence.complete,
        counts=in_order(rows_of(counts, known), numbers),
        claims=tuple(claim for claims_of in PRODUCERS for claim in claims_of(evidence)),
        findings=findings,
        faults=faults,
        assumed=None if assumed is None else listed(assumed, counts, numbers, n_known),
        retired=None if np.array_equal(counts.states, known) else _retired(counts, known),
    )


def _retired(rows: Counts, known: IntArray) -> RetiredStates:
    """What a verifier needs of counted states that are not known."""
    rank_of = {number: rank for rank, number in enumerate(rows.states.tolist(), start=1)}
    others = rows.states[~np.isin(rows.states, known)]
    left = rows_of(rows, others)
    lengths = np.diff(left.row_offsets)
    second_draws = np.where(lengths == 0, NEVER_DRAWN, ONE_SUCCESSOR)
    several = lengths > 1
    second_draws[several] = left.first_draws[left.row_offsets[:-1][several] + 1]
    return RetiredStates(
        ranks=np.array([rank_of[number] for number in known.tolist()], dtype=np.int64),
        other_ranks=np.array([rank_of[number] for number in others.tolist()], dtype=np.int64),
        n_actions=np.diff(left.state_pairs),
        second_draws=second_draws.astype(np.int64),
    )


def survey_certificate(
    evidence: SurveyEvidence,
    *,
    findings: tuple[Finding, ...] = (),
    faults: tuple[Fault, ...] = (),
) -> Certificate:
    """Returns the certificate of a survey, in which every action is assumed to have one outcome; see above.

    Where the draws contradict that, nothing is claimed.
    """
    target, n_pairs = evidence.target, len(evidence.rows.visits)
    return Certificate(
        radius=float(target.radius),
        epsilon=float(target.epsilon),
        delta=float(target.delta),
        objective=evidence.objective,
        complete=evidence.complete,
        counts=evidence.counts,
        claims=() if evidence.contradicted else (evidence.distances,),
        findings=findings,
        faults=faults,
        assumed=Assumed({"deterministic": np.ones(n_pairs)}),
    )


def question_certificate(
    counts: Counts,
    target: Target,
    properties: tuple[PropertyClaim, ...],
    *,
    findings: tuple[Finding, ...] = (),
    faults: tuple[Fault, ...] = (),
    assumed: Assumed | None = None,
) -> Certificate:
    """Returns the certificate of properties alone: it says nothing of steps, and every counted state is known.

    Args:
        counts: what was drawn.
        target: ε is the precision that was asked for; there is no radius.
        properties: what is claimed, by index in the order of counting, known states first.
        findings: what was found when the system was examined.
        faults: failures of the system while it was explored.
        assumed: what is assumed of each counted pair.
    """
    known = counts.states
    numbers = np.concatenate((known, np.setdiff1d(counts.successors, known)))
    certificate = Certificate(
        radius=NO_RADIUS,
        epsilon=float(target.epsilon),
        delta=float(target.delta),
        objective=Objective.QUESTION,
        complete=False,
        counts=in_order(counts, numbers),
        claims=properties,
        findings=findings,
        faults=faults,
        assumed=None if assumed is None else listed(assumed, counts, numbers, len(known)),
    )
    return structs.replace(certificate, complete=not conclusions_of(certificate).open_parts)


def reachable_claims(evidence: Evidence) -> tuple[Reachable, ...]:
    """The known states whose order of admission is proven."""
    return tuple(
        Reachable(way.goal, way.policy, way.upper)
        for way, steps in zip(evidence.reachable[1:], evidence.most_steps[1:], strict=True)
        if steps <= evidence.reach
    )


def too_far_claims(evidence: Evidence) -> tuple[TooFar, ...]:
    """The other states that are set aside, and the states never seen if they are."""
    bounds, radius = _with_steps(evidence)[evidence.model.n_known :], evidence.target.radius
    return tuple(TooFar(bound.goal, bound.lower, bound.deduction) for bound, steps in bounds if steps > radius)


def near_optimal_claims(evidence: Evidence) -> tuple[NearOptimal, ...]:
    """The known states whose final policy is proven to be near-optimal; none where that was not asked for."""
    nothing = Vector.of(np.zeros(evidence.model.n_known), 0.0)
    return tuple(
        NearOptimal(
            regret.upper.goal,
            regret.upper.policy,
            regret.upper.upper,
            regret.lower.lower,
            nothing if regret.values is None else regret.values,
            regret.lower.deduction,
        )
        for regret in _proven_optimal(evidence)
    )


def _proven_optimal(evidence: Evidence) -> list[KeptRegret]:
    return [regret for regret in evidence.regrets[1:] if regret.at_most <= evidence.target.epsilon]


def at_most_claims(evidence: Evidence) -> tuple[AtMost, ...]:
    """The proven bounds of the other policies to known states, so that nothing is said that nobody can check."""
    known = range(evidence.model.n_known)
    claimed = {goal for goal in known if evidence.is_reached(goal)}
    if evidence.regrets:
        claimed = {regret.upper.goal for regret in _proven_optimal(evidence)}
    return tuple(
        AtMost(way.goal, way.policy, way.upper)
        for way in evidence.best_upper[1:]
        if way.goal not in claimed and np.isfinite(most_steps(way.upper))
    )


def at_least_claims(evidence: Evidence) -> tuple[AtLeast, ...]:
    """The lower bounds of all other states, and of those never seen."""
    claimed = {claim.goal for claim in too_far_claims(evidence)}
    claimed |= {regret.upper.goal for regret in _proven_optimal(evidence)}
    open_bounds = (bound for bound, steps in _with_steps(evidence)[1:] if bound.goal not in claimed and steps > 0)
    return tuple(AtLeast(bound.goal, bound.lower, bound.deduction) for bound in open_bounds)


def _with_steps(evidence: Evidence) -> list[tuple[Bound, float]]:
    """The lower bounds, that of the unseen last, and what they decide by."""
    unseen = evidence.unseen
    return [*zip(evidence.lower, evidence.least_steps, strict=True), (unseen, bounded_by(unseen))]


def episode_records(evidence: Evidence) -> tuple[EpisodeRecord, ...]:
    """The tests by episodes that prove a bound of a known state, and those before them in their lines."""
    indices = {number: index for index, number in enumerate(evidence.model.numbers.tolist())}
    n_known, last_turns = evidence.model.n_known, dict[int, int]()
    for test in evidence.tests:
        if test.proves_any and indices[test.goal] < n_known:
            last_turns[test.line] = max(last_turns.get(test.line, 0), test.turn)
    needed = [test for test in evidence.tests if test.turn <= last_turns.get(test.line, 0)]
    return tuple(test.record(indices[test.goal], indices[test.goal] < n_known) for test in needed)


PRODUCERS: Final[tuple[Callable[[Evidence], tuple[Record, ...]], ...]] = (
    reachable_claims,
    too_far_claims,
    at_most_claims,
    at_least_claims,
    near_optimal_claims,
    episode_records,
)
"""How each kind of claims follows from evidence."""
