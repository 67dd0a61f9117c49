"""The claims that the evidence of the certified explorer proves; those still open are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axplore.certificate.claims import NearOptimal, Reachable, TooFar

if TYPE_CHECKING:
    from axplore.explorers.evidence import Evidence


def reachable_claims(evidence: Evidence) -> tuple[Reachable, ...]:
    """The known states whose order of admission is proven."""
    n_known, limit = evidence.model.n_known, evidence.precision.radius + evidence.precision.epsilon
    paths = ((goal, evidence.reachable[goal]) for goal in range(1, n_known))
    return tuple(
        Reachable(goal, evidence.actions(path.policy), path.values[:n_known].copy())
        for goal, path in paths
        if path.steps <= limit
    )


def too_far_claims(evidence: Evidence) -> tuple[TooFar, ...]:
    """The other states that are set aside, and the states never seen if they are."""
    n_known, paths = evidence.model.n_known, (*evidence.lower, evidence.unseen)
    return tuple(
        TooFar(goal, paths[goal].values[:n_known].copy())
        for goal in range(n_known, len(paths))
        if paths[goal].steps > evidence.precision.radius
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
        if goal > 0 and regret.steps <= evidence.precision.epsilon
    )
