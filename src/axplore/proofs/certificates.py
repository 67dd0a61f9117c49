"""Certificates from evidence: the claims that the evidence proves; those still open are left out."""

from __future__ import annotations

import json

import numpy as np

from axplore.certificate import Certificate
from axplore.certificate.assumed import NEVER_DRAWN, ONE_SUCCESSOR, Apart, Assumed
from axplore.certificate.contents import AtLeast, AtMost, Counts, NearOptimal, Reachable, Sparse, TooFar
from axplore.certificate.doubts import FaultRecord, FindingRecord
from axplore.certificate.episode_records import EpisodeRecord
from axplore.certificate.tied import UNTIED, Tied
from axplore.labels import decode_label
from axplore.proofs.bounds import GoalValues, Regret
from axplore.proofs.evidence import Evidence
from axplore.proofs.shared_bounds import MOST_WHOLE
from axplore.proofs.surveys import SurveyEvidence
from axplore.statistics.assumed_rows import AssumedRows
from axplore.statistics.counts import CountedRows, rows_of
from axplore.target import Objective
from axplore.types import Action, FloatArray, IntArray, State, Status


def certificate_from(
    evidence: Evidence,
    rows: CountedRows,
    *,
    known: tuple[State, ...],
    others: tuple[State, ...],
    actions: tuple[tuple[Action, ...], ...],
    findings: tuple[FindingRecord, ...] = (),
    faults: tuple[FaultRecord, ...] = (),
    assumed: AssumedRows | None = None,
) -> Certificate:
    """Returns the certificate of everything that is proven.

    Args:
        evidence: what the counts prove.
        rows: the counts, perhaps of more states than the known ones.
        known: the labels of the known states, in order of admission, [n].
        others: the labels of the other states seen.
        actions: the labels of the actions of each known state, [n].
        findings: what was found when the system was examined.
        faults: failures of the system while it was explored.
    """
    reachable = reachable_claims(evidence)
    too_far = too_far_claims(evidence)
    near_optimal = near_optimal_claims(evidence)
    episodes = episode_records(evidence)
    limit = evidence.target.radius + evidence.target.epsilon
    tested = {record.goal for record in episodes if record.bound <= limit and len(record.policy) <= record.goal}
    reached = {claim.goal for claim in reachable} | tested
    n_known, n_seen = len(known), len(evidence.lower)
    numbers = evidence.model.numbers[:n_known]
    part = None if assumed is None else _assumed(assumed, rows, evidence.model.numbers, n_known)
    apart = None if np.array_equal(rows.states, numbers) else _apart(rows, numbers)
    rows = rows if apart is None else rows_of(rows, numbers)
    by_region = {claim.goal for claim in near_optimal}
    with_policy = by_region if evidence.regrets else reached
    required = n_known - 1 if evidence.objective is Objective.OPTIMAL else 0
    return Certificate(
        radius=float(evidence.target.radius),
        epsilon=float(evidence.target.epsilon),
        delta=float(evidence.target.delta),
        objective=evidence.objective,
        known=known,
        others=others,
        actions=actions,
        counts=Counts(
            rows.row_offsets, _positions(evidence.model.numbers, rows.successors), rows.counts, rows.first_draws
        ),
        reachable=reachable,
        too_far=too_far,
        near_optimal=near_optimal,
        complete=len(reached) == n_known - 1
        and len(too_far) == n_seen - n_known + 1
        and len(near_optimal) + len(evidence.optimal_by_test) >= required,
        findings=findings,
        faults=faults,
        at_most=at_most_claims(evidence, with_policy),
        at_least=at_least_claims(evidence, {claim.goal for claim in too_far} | by_region),
        episodes=episodes,
        assumed=part,
        apart=apart,
    )


def _positions(numbers: IntArray, states: IntArray) -> IntArray:
    """The position of each state, by number; UNTIED for one that has none."""
    positions = np.full(int(max(numbers.max(), states.max(initial=0))) + 1, UNTIED)
    positions[numbers] = np.arange(len(numbers))
    return positions[states]


def _assumed(assumed: AssumedRows, rows: CountedRows, numbers: IntArray, n_known: int) -> Assumed:
    """What is assumed of the pairs of the known states, by position."""
    known = numbers[:n_known]
    part = assumed.of_states(rows, known)
    if part.ties is None:
        return Assumed(part.single, part.least)
    others = assumed.of_states(rows, rows.states[~np.isin(rows.states, known)])
    assert others.ties is not None
    predicted = part.ties.predicted.copy()
    predicted[:, 2] = _positions(numbers, predicted[:, 2])
    names = tuple(decode_label(json.loads(name)) for name in part.ties.names)
    tied = Tied(
        names=names,  # type: ignore[arg-type]
        outcomes=part.ties.outcomes,
        predicted=predicted[predicted[:, 2] != UNTIED],
        elsewhere=part.ties.elsewhere,
        other_classes=np.where(others.single == 1, UNTIED, others.ties.pair_classes),
    )
    return Assumed(part.single, part.least, tied)


def _apart(rows: CountedRows, known: IntArray) -> Apart:
    """What a verifier needs of counted states that are not known."""
    rank_of = {number: rank for rank, number in enumerate(rows.states.tolist(), start=1)}
    others = rows.states[~np.isin(rows.states, known)]
    left = rows_of(rows, others)
    lengths = np.diff(left.row_offsets)
    second_draws = np.where(lengths == 0, NEVER_DRAWN, ONE_SUCCESSOR)
    several = lengths > 1
    second_draws[several] = left.first_draws[left.row_offsets[:-1][several] + 1]
    return Apart(
        ranks=np.array([rank_of[number] for number in known.tolist()], dtype=np.int64),
        other_ranks=np.array([rank_of[number] for number in others.tolist()], dtype=np.int64),
        n_actions=np.diff(left.state_pairs),
        second_draws=second_draws.astype(np.int64),
    )


def survey_certificate(
    evidence: SurveyEvidence,
    *,
    known: tuple[State, ...],
    others: tuple[State, ...],
    actions: tuple[tuple[Action, ...], ...],
    findings: tuple[FindingRecord, ...] = (),
    faults: tuple[FaultRecord, ...] = (),
) -> Certificate:
    """Returns the certificate of a survey, in which every action is assumed to have one outcome; see above.

    Where the draws contradict that, nothing is claimed.
    """
    target, objective = evidence.target, evidence.objective
    bounds = evidence.bounds
    statuses = bounds.statuses(evidence.n_known, target.radius, target.epsilon, objective)
    return Certificate(
        radius=float(target.radius),
        epsilon=float(target.epsilon),
        delta=float(target.delta),
        objective=objective,
        known=known,
        others=others,
        actions=actions,
        counts=evidence.counts,
        reachable=(),
        too_far=(),
        near_optimal=(),
        complete=not evidence.contradicted and Status.OPEN not in statuses and bounds.unseen > target.radius,
        findings=findings,
        faults=faults,
        assumed=Assumed(np.ones(len(evidence.rows.visits), dtype=np.int64), np.zeros(len(evidence.rows.visits))),
        distances=None if evidence.contradicted else evidence.distances,
    )


def _kept(path: GoalValues | Regret, n_known: int) -> FloatArray | Sparse:
    """The values of the known states, [n]; in large models they are shared, since a copy would need too much memory."""
    values = path.kept("values")
    if isinstance(values, Sparse):
        return values.head(n_known)
    return values[:n_known].copy() if n_known <= MOST_WHOLE else values[:n_known]


def reachable_claims(evidence: Evidence) -> tuple[Reachable, ...]:
    """The known states whose order of admission is proven."""
    n_known = evidence.model.n_known
    paths = ((goal, evidence.reachable[goal]) for goal in range(1, n_known))
    return tuple(
        Reachable(goal, evidence.kept_actions(path), _kept(path, n_known))
        for goal, path in paths
        if path.at_most <= evidence.reach
    )


def too_far_claims(evidence: Evidence) -> tuple[TooFar, ...]:
    """The other states that are set aside, and the states never seen if they are."""
    n_known, paths = evidence.model.n_known, (*evidence.lower, evidence.unseen)
    return tuple(
        TooFar(goal, _kept(paths[goal], n_known))
        for goal in range(n_known, len(paths))
        if paths[goal].at_least > evidence.target.radius
    )


def near_optimal_claims(evidence: Evidence) -> tuple[NearOptimal, ...]:
    """The known states whose final policy is proven to be near-optimal; none where that was not asked for."""
    n_known = evidence.model.n_known
    nothing = Sparse(n_known, 0.0, np.zeros(0, dtype=np.int64), np.zeros(0))
    return tuple(
        NearOptimal(
            goal,
            evidence.kept_actions(regret.upper),
            _kept(regret.upper, n_known),
            _kept(regret.lower, n_known),
            nothing if regret.kept("values").shape == (1,) else _kept(regret, n_known),
        )
        for goal, regret in enumerate(evidence.regrets)
        if goal > 0 and regret.at_most <= evidence.target.epsilon
    )


def at_most_claims(evidence: Evidence, claimed: set[int]) -> tuple[AtMost, ...]:
    """The proven bounds of the policies to the other known states, so that nothing is said that nobody can check."""
    n_known = evidence.model.n_known
    return tuple(
        AtMost(goal, evidence.kept_actions(path), _kept(path, n_known))
        for goal, path in enumerate(evidence.best_upper)
        if goal > 0 and goal not in claimed and np.isfinite(path.at_most)
    )


def at_least_claims(evidence: Evidence, claimed: set[int]) -> tuple[AtLeast, ...]:
    """The lower bounds of all other states, and of those never seen."""
    n_known, paths = evidence.model.n_known, (*evidence.lower, evidence.unseen)
    return tuple(
        AtLeast(goal, _kept(paths[goal], n_known))
        for goal in range(1, len(paths))
        if goal not in claimed and paths[goal].at_least > 0
    )


def episode_records(evidence: Evidence) -> tuple[EpisodeRecord, ...]:
    """The tests by episodes that are proven, each with the bound that was fixed before its first episode."""
    positions = {number: position for position, number in enumerate(evidence.model.numbers.tolist())}
    n_known = evidence.model.n_known
    # A test of a state that was not admitted yet is the last one of its line.
    tests = [test for test in evidence.tests if test.proven and positions[test.goal] < n_known]
    return tuple(
        EpisodeRecord(
            goal=positions[test.goal],
            policy=tuple(test.policy.tolist()),
            horizon=test.horizon,
            bound=test.bound,
            tail=test.tail,
            line=test.line,
            turn=test.turn,
            fractions=tuple(test.bets.fractions.tolist()),
            weights=tuple(test.bets.weights.tolist()),
            outcomes=tuple(test.outcomes.tolist()),
        )
        for test in tests
    )
