"""Certificates from evidence: the claims that the evidence proves; those still open are left out."""

from __future__ import annotations

from axplore.certificate import Certificate
from axplore.certificate.contents import Counts, NearOptimal, Reachable, TooFar
from axplore.proofs.evidence import Evidence
from axplore.statistics.counts import CountedRows
from axplore.target import Objective
from axplore.types import Action, State


def certificate_from(
    evidence: Evidence,
    rows: CountedRows,
    *,
    known: tuple[State, ...],
    others: tuple[State, ...],
    actions: tuple[tuple[Action, ...], ...],
) -> Certificate:
    """Returns the certificate of everything that is proven.

    Args:
        evidence: what the counts prove.
        rows: the counts.
        known: the labels of the known states, in order of admission, [n].
        others: the labels of the other states seen.
        actions: the labels of the actions of each known state, [n].
    """
    reachable = reachable_claims(evidence)
    too_far = too_far_claims(evidence)
    near_optimal = near_optimal_claims(evidence)
    n_known, n_seen = len(known), len(evidence.lower)
    required = n_known - 1 if evidence.objective is Objective.OPTIMAL else 0
    return Certificate(
        radius=float(evidence.target.radius),
        epsilon=float(evidence.target.epsilon),
        delta=float(evidence.target.delta),
        objective=evidence.objective,
        known=known,
        others=others,
        actions=actions,
        counts=Counts(rows.row_offsets, evidence.model.rows.successors, rows.counts, rows.first_draws),
        reachable=reachable,
        too_far=too_far,
        near_optimal=near_optimal,
        complete=len(reachable) == n_known - 1
        and len(too_far) == n_seen - n_known + 1
        and len(near_optimal) >= required,
    )


def reachable_claims(evidence: Evidence) -> tuple[Reachable, ...]:
    """The known states whose order of admission is proven."""
    n_known = evidence.model.n_known
    paths = ((goal, evidence.reachable[goal]) for goal in range(1, n_known))
    return tuple(
        Reachable(goal, evidence.actions(path.policy), path.values[:n_known].copy())
        for goal, path in paths
        if evidence.reaches(goal)
    )


def too_far_claims(evidence: Evidence) -> tuple[TooFar, ...]:
    """The other states that are set aside, and the states never seen if they are."""
    n_known, paths = evidence.model.n_known, (*evidence.lower, evidence.unseen)
    return tuple(
        TooFar(goal, paths[goal].values[:n_known].copy())
        for goal in range(n_known, len(paths))
        if evidence.sets_aside(goal)
    )


def near_optimal_claims(evidence: Evidence) -> tuple[NearOptimal, ...]:
    """The known states whose final policy is proven to be near-optimal; none where that was not asked for."""
    n_known = evidence.model.n_known
    return tuple(
        NearOptimal(
            goal,
            evidence.actions(regret.upper.policy),
            regret.upper.values[:n_known].copy(),
            regret.lower.values[:n_known].copy(),
            regret.values[:n_known].copy(),
        )
        for goal, regret in enumerate(evidence.regrets)
        if goal > 0 and evidence.is_near_optimal(goal)
    )
