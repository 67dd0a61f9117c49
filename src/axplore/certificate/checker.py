"""The verifier: recomputes the confidence region from the counts and checks every claim with one Bellman sweep.

It trusts no solver. A vector proves its bound if one application of the operator moves it to the right side:

- *upper*: U >= 1 + greatest mean of U under the policy bounds the expected steps of the policy from above; or else the
  policy plays along a way on which every action has shown one successor, and its bound has a closed form (`bellman`);
- *lower*: W <= 1 + least mean of W under every action bounds the expected steps of every policy from below;
- *regret*: let D(s) be what the policy may lose by its action in s: U(s) - (1 + least mean of W under another action),
  or 0. Then R >= D and R >= greatest mean of R under the policy bound what it loses against the best policy.

Means are over every model of the region. docs/algorithms/certified.md has the proofs.

Rounding. The vectors come from floating-point solvers, so what is checked is not U, W and R but the weaker U (1 + η),
W / (1 + η) and R + 3 η U: these pass where the vectors miss by about η of a step, and everything is concluded from
them, never from the vectors as given. The rounding of the sweep itself is allowed for by a margin in every inequality.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Final

import numpy as np

from axplore.certificate.bellman import Sweeper, bounds_along_way
from axplore.certificate.claim_checks import ClaimCheck, ClaimKind, Verification
from axplore.certificate.conclusions import (
    corrected_lower,
    corrected_regret,
    corrected_upper,
    margin,
    optimal_by_test,
    refuted_goals,
    tested_goals,
)
from axplore.certificate.contents import RESET_ACTION, AtLeast, AtMost, Claim, NearOptimal, Reachable, TooFar
from axplore.certificate.count_checks import contradicted_assumption, contradiction
from axplore.certificate.distances import Distances, exact_bounds, mistake_in
from axplore.certificate.document import Certificate
from axplore.certificate.doubts import doubts_in
from axplore.certificate.episode_records import EpisodeRecord, EpisodeSetting, check_records
from axplore.certificate.region import EPISODES
from axplore.errors import ExitCode
from axplore.target import Objective, confidence_text
from axplore.types import FloatArray, Status

LARGEST: Final = 1e9
"""Bounds beyond it are refused: their rounding would be that of whole steps."""

KINDS: Final = {
    Reachable: ClaimKind.REACHABLE,
    TooFar: ClaimKind.TOO_FAR,
    NearOptimal: ClaimKind.NEAR_OPTIMAL,
    AtMost: ClaimKind.AT_MOST,
    AtLeast: ClaimKind.AT_LEAST,
    EpisodeRecord: ClaimKind.REACHABLE,
}


class UnprovenError(Exception):
    """A claim that does not follow; the message says why."""


def verify(certificate: Certificate) -> Verification:
    """Checks every claim of a certificate against its counts, and says of each whether it is proven."""
    checks = [_check_counts(certificate)]
    if checks[0].holds and certificate.assumptions:
        checks.append(_check_assumptions(certificate))
    if certificate.distances is not None:
        checks.append(_check_distances(certificate, certificate.distances, all(check.holds for check in checks)))
    elif all(check.holds for check in checks):
        sweeper = Sweeper.of(certificate)
        checks += [_check_claim(certificate, sweeper, claim) for claim in certificate.claims]
        checks += _check_episodes(certificate)
        checks += _check_tested(certificate, checks)
    else:
        claims = (*certificate.claims, *certificate.episodes)
        checks += [_named(certificate, claim, False, "the draws cannot be") for claim in claims]
    missing = _missing_claims(certificate)
    if certificate.complete:
        checks.append(_check_completeness(certificate, missing, all(check.holds for check in checks)))
    return Verification(tuple(checks), missing, *_conclusion(certificate, missing))


def _check_counts(certificate: Certificate) -> ClaimCheck:
    problem = contradiction(certificate)
    total = int(certificate.counts.counts.sum())
    why = f"{total} draws of {certificate.state_pairs[-1]} actions in {len(certificate.known)} states"
    return ClaimCheck(ClaimKind.COUNTS, "all draws", None, problem is None, problem or why)


def _check_assumptions(certificate: Certificate) -> ClaimCheck:
    contradicted = contradicted_assumption(certificate)
    why = contradicted or "no draw contradicts what is assumed"
    return ClaimCheck(ClaimKind.ASSUMPTIONS, "; ".join(certificate.assumptions), None, contradicted is None, why)


def _check_distances(certificate: Certificate, distances: Distances, draws_can_be: bool) -> ClaimCheck:
    mistake = "the draws cannot be"
    if draws_can_be:
        mistake = mistake_in(distances, certificate.counts, certificate.pair_owners) or ""
    why = mistake or "no action leads nearer than claimed, and every known state is reached as claimed"
    return ClaimCheck(ClaimKind.DISTANCES, f"the fewest steps to {certificate.n_seen} states", None, not mistake, why)


def _check_claim(certificate: Certificate, sweeper: Sweeper, claim: Claim) -> ClaimCheck:
    try:
        if isinstance(claim, Reachable):
            why = _check_reachable(certificate, sweeper, claim)
        elif isinstance(claim, TooFar):
            why = _check_too_far(certificate, sweeper, claim)
        elif isinstance(claim, NearOptimal):
            why = _check_near_optimal(certificate, sweeper, claim)
        elif isinstance(claim, AtMost):
            why = f"its policy takes up to {_proven_upper(certificate, sweeper, claim)[0]:.6g} expected steps"
        else:
            why = f"every policy needs at least {_proven_lower(certificate, sweeper, claim)[0]:.6g} expected steps"
    except UnprovenError as reason:
        return _named(certificate, claim, False, str(reason))
    return _named(certificate, claim, True, why)


def _check_episodes(certificate: Certificate) -> list[ClaimCheck]:
    """Checks of each test by episodes whether it proves its bound."""
    refusals = check_records(certificate.episodes, _episode_setting(certificate))
    limit = certificate.radius + certificate.epsilon
    checks = []
    for record, refusal in zip(certificate.episodes, refusals, strict=True):
        by = "by states admitted before it" if record.plays_before_goal else "by all known states"
        why = f"{record.n_episodes} episodes {by}: within {record.bound:.6g} expected steps"
        why += f", of {limit:.6g}, whatever the labels hide"
        kind = ClaimKind.REACHABLE if record.plays_before_goal else ClaimKind.AT_MOST
        subject = _subject(certificate, record.goal)
        checks.append(ClaimCheck(kind, subject, record.goal, refusal is None, refusal or why))
    return checks


def _check_tested(certificate: Certificate, checks: list[ClaimCheck]) -> list[ClaimCheck]:
    """Checks of each policy that is near-optimal by its test whether all claims that this rests on are proven."""
    failed = {check.position for check in checks if not check.holds}
    results = []
    for goal, tested in optimal_by_test(certificate).items():
        lower, upper = tested.lower, tested.upper
        why = f"between {lower:.6g} and {upper:.6g} expected steps, at most {upper - lower:.6g} from the best"
        if goal in failed:
            why = "it rests on a claim that is not proven"
        subject = _subject(certificate, goal)
        results.append(ClaimCheck(ClaimKind.NEAR_OPTIMAL, subject, goal, goal not in failed, why))
    return results


def _episode_setting(certificate: Certificate) -> EpisodeSetting:
    counts, pairs = certificate.counts, certificate.state_pairs
    totals = np.concatenate(([0], np.cumsum(counts.counts)))
    draws = np.diff(totals[counts.row_offsets])
    entries = np.bincount(counts.successors, counts.counts, minlength=certificate.n_seen)
    return EpisodeSetting(
        share=EPISODES * certificate.delta,
        n_actions=[len(actions) for actions in certificate.actions],
        draws=[draws[first:end].tolist() for first, end in pairwise(pairs.tolist())],
        entries=entries[: len(certificate.known)].astype(np.int64).tolist(),
    )


def _check_reachable(certificate: Certificate, sweeper: Sweeper, claim: Reachable) -> str:
    if (claim.policy[claim.goal :] != RESET_ACTION).any():
        raise UnprovenError("its policy does not reset in every state that was admitted with it or later")
    steps = _proven_upper(certificate, sweeper, claim)[0]
    limit = certificate.radius + certificate.epsilon
    if not steps <= limit:
        raise UnprovenError(f"its policy takes up to {steps:.6g} expected steps, more than {limit:.6g}")
    return f"by states admitted before it within {steps:.6g} expected steps, of {limit:.6g}"


def _check_too_far(certificate: Certificate, sweeper: Sweeper, claim: TooFar) -> str:
    steps = _proven_lower(certificate, sweeper, claim)[0]
    if not steps > certificate.radius:
        raise UnprovenError(
            f"some policy may need only {steps:.6g} expected steps, not more than {certificate.radius:.6g}"
        )
    return f"every policy needs at least {steps:.6g} expected steps, of {certificate.radius:.6g}"


def _check_near_optimal(certificate: Certificate, sweeper: Sweeper, claim: NearOptimal) -> str:
    upper = _proven_upper(certificate, sweeper, claim)
    lower = _proven_lower(certificate, sweeper, claim)
    loss = upper[0] - lower[0]
    if loss > certificate.epsilon:
        loss = _proven_regret(certificate, sweeper, claim, upper, lower)[0]
    if not loss <= certificate.epsilon:
        raise UnprovenError(f"its policy may lose {loss:.6g} expected steps, more than {certificate.epsilon:.6g}")
    return f"between {lower[0]:.6g} and {upper[0]:.6g} expected steps, at most {loss:.6g} from the best"


def _proven_upper(certificate: Certificate, sweeper: Sweeper, claim: Reachable | NearOptimal | AtMost) -> FloatArray:
    """A bound of the expected steps of the policy in every model of the region, [n]."""
    upper = corrected_upper(_numbers(claim.upper, claim.goal))
    along = bounds_along_way(
        certificate.counts, sweeper.state_pairs, claim.goal, claim.policy, sweeper.region.shared_budget
    )
    if along is None or not (upper >= along).all():
        enough = upper - 1.0 - margin(upper)
        needed = 1.0 + sweeper.greatest_means(upper, claim.goal, 1.0 + upper[0], claim.policy, enough)
        _require(certificate, claim.goal, "upper bound", upper, needed + margin(upper))
    return upper


def _proven_lower(certificate: Certificate, sweeper: Sweeper, claim: TooFar | NearOptimal | AtLeast) -> FloatArray:
    """A lower bound of the expected steps of every policy in every model of the region, [n]."""
    lower = corrected_lower(_numbers(claim.lower, claim.goal))
    allowed = np.full(len(lower), 1.0 + lower[0])  # RESET; from the initial state it leads nowhere
    means = sweeper.least_means(lower, claim.goal, lower - 1.0 + margin(lower))
    np.minimum.at(allowed, sweeper.owners, 1.0 + means)
    _require(certificate, claim.goal, "lower bound", lower, allowed - margin(lower), at_most=True)
    return lower


def _proven_regret(
    certificate: Certificate, sweeper: Sweeper, claim: NearOptimal, upper: FloatArray, lower: FloatArray
) -> FloatArray:
    """A bound of what the policy loses against the best one in every model of the region, [n]."""
    regret = corrected_regret(_numbers(claim.regret, claim.goal), upper)
    plays = claim.policy != RESET_ACTION
    rival = np.where(plays, 1.0 + lower[0], np.inf)
    rival[0] = np.inf  # RESET in the initial state is never the best
    is_rival = np.ones(sweeper.region.n_pairs, dtype=bool)
    is_rival[(sweeper.state_pairs[:-1] + claim.policy)[plays]] = False
    enough = regret - margin(upper) - margin(regret)
    rival_means = sweeper.least_means(lower, claim.goal, upper - enough - 1.0)
    np.minimum.at(rival, sweeper.owners[is_rival], 1.0 + rival_means[is_rival])
    means = sweeper.greatest_means(regret, claim.goal, regret[0], claim.policy, enough)
    needed = np.maximum(means, upper - rival)
    _require(certificate, claim.goal, "bound of the loss", regret, needed + margin(upper) + margin(regret))
    return regret


def _numbers(vector: FloatArray, goal: int) -> FloatArray:
    """The vector; refuses what is no number of steps, and anything but 0 at the goal."""
    if not ((vector >= 0.0) & (vector <= LARGEST)).all():
        raise UnprovenError(f"a bound is not a number between 0 and {LARGEST:g}")
    if goal < len(vector) and vector[goal] != 0.0:
        raise UnprovenError("the bound at the goal itself is not 0")
    return vector


def _require(
    certificate: Certificate, goal: int, name: str, vector: FloatArray, limit: FloatArray, *, at_most: bool = False
) -> None:
    """Refuses a vector that is not at least (at most) the limit in every known state but the goal."""
    holds = vector <= limit if at_most else vector >= limit
    if goal < len(vector):
        holds[goal] = True
    if not holds.all():
        state = int(np.argmin(holds))
        raise UnprovenError(
            f"the {name} {vector[state]:.6g} in state {certificate.known[state]!r} does not follow: one sweep gives "
            f"{limit[state]:.6g}"
        )


def _named(certificate: Certificate, claim: Claim | EpisodeRecord, holds: bool, why: str) -> ClaimCheck:
    return ClaimCheck(KINDS[type(claim)], _subject(certificate, claim.goal), claim.goal, holds, why)


def _subject(certificate: Certificate, position: int) -> str:
    if position == certificate.n_seen:
        return "every state never seen"
    n_known = len(certificate.known)
    label = certificate.known[position] if position < n_known else certificate.others[position - n_known]
    return f"state {label!r}"


def _missing_claims(certificate: Certificate) -> tuple[str, ...]:
    """What would have to be claimed besides, or only once, for the objective to be reached."""
    if certificate.distances is not None:
        return _open_distances(certificate, certificate.distances)
    n_known, n_seen = len(certificate.known), certificate.n_seen
    wanted: list[tuple[ClaimKind, tuple[Claim, ...], range]] = [
        (ClaimKind.REACHABLE, certificate.reachable, range(1, n_known)),
        (ClaimKind.TOO_FAR, certificate.too_far, range(n_known, n_seen + 1)),
    ]
    if certificate.objective is Objective.OPTIMAL:
        wanted.append((ClaimKind.NEAR_OPTIMAL, certificate.near_optimal, range(1, n_known)))
    tested = {ClaimKind.REACHABLE: tested_goals(certificate), ClaimKind.NEAR_OPTIMAL: set(optimal_by_test(certificate))}
    missing = []
    for kind, claims, goals in wanted:
        times = Counter(claim.goal for claim in claims)
        missing += [
            f"{_subject(certificate, goal)} is {'twice' if times[goal] else 'not'} claimed to be {kind.value}"
            for goal in goals
            if times[goal] > 1 or (times[goal] == 0 and goal not in tested.get(kind, ()))
        ]
    return tuple(missing)


def _open_distances(certificate: Certificate, distances: Distances) -> tuple[str, ...]:
    """What distances leave open."""
    bounds = exact_bounds(distances, certificate.counts, certificate.pair_owners)
    radius, epsilon, n_known = certificate.radius, certificate.epsilon, len(certificate.known)
    statuses = bounds.statuses(n_known, radius, epsilon, certificate.objective)
    unsettled = [position for position, status in enumerate(statuses) if status is Status.OPEN]
    if not bounds.unseen > radius:
        unsettled.append(certificate.n_seen)
    return tuple(f"{_subject(certificate, position)} is open" for position in unsettled)


def _check_completeness(certificate: Certificate, missing: tuple[str, ...], all_hold: bool) -> ClaimCheck:
    why = f"all {certificate.n_seen} states seen, and those never seen, are accounted for"
    if missing:
        why = missing[0] if len(missing) == 1 else f"{missing[0]}, and {len(missing) - 1} more are missing"
    elif not all_hold:
        why = "it rests on a claim that is not proven"
    return ClaimCheck(ClaimKind.COMPLETE, certificate.objective.value, None, all_hold and not missing, why)


def _conclusion(certificate: Certificate, missing: tuple[str, ...]) -> tuple[tuple[str, ...], ExitCode]:
    """What may be said if every claim is proven, and the exit code that goes with it."""
    doubts = doubts_in(certificate.findings, certificate.faults)
    contradicted = contradicted_assumption(certificate)
    if contradicted is not None:
        why = f"it is assumed that {' and that '.join(certificate.assumptions)}, but {contradicted}"
        return (f"CONTRADICTED: {why}, so that nothing here can be relied on.",), ExitCode.REFUTED
    for goal in refuted_goals(certificate):
        why = f"{_subject(certificate, goal)} was admitted as within reach and is proven to be beyond it"
        return (f"CONTRADICTED: {why}, so that nothing here can be relied on.",), ExitCode.REFUTED
    conditions = [*certificate.assumptions, *(["the assumptions of every proof hold"] if doubts else [])]
    condition = f"If {' and if '.join(conditions)}, then with" if conditions else "With"
    sure = confidence_text(certificate.delta)
    lines = [f"{condition} probability at least {sure} over the draws{_promise(certificate, missing)}"]
    if missing:
        more = len(missing) - 1
        lines.append(f"NOT COMPLETE: {missing[0]}{f', and {more} more are open' if more else ''}.")
    if certificate.memory is not None:
        lines.append(f"{certificate.memory.summary}.")
    lines += [f"IN DOUBT: {doubt}" for doubt in doubts]
    code = ExitCode.UNFINISHED if missing else ExitCode.IN_DOUBT if doubts else ExitCode.DONE
    return tuple(lines), code


def _promise(certificate: Certificate, missing: tuple[str, ...]) -> str:
    """What is true with that probability."""
    if missing:
        return ", all these claims are true."
    n_known, radius, epsilon = len(certificate.known), certificate.radius, certificate.epsilon
    promise = (
        f": no state outside these {n_known} can be reached reliably within {radius:g} expected steps, and each of "
        f"them can within {radius + epsilon:g}, by a policy that uses only states listed before it"
    )
    if certificate.objective is Objective.OPTIMAL:
        promise += f"; and its final policy takes at most {epsilon:g} more than the best policy that uses only these"
    return f"{promise}."
