"""The verifier: recomputes the confidence region from the counts and asks each kind of claims what it proves.

The kinds are in `kinds`, and what a vector proves is in `bounds`. Nothing here knows one kind from another.
"""

from __future__ import annotations

from axplore.certificate import kinds
from axplore.certificate.claim_checks import ClaimCheck, Verification
from axplore.certificate.conclusions import Conclusions, conclusions_of
from axplore.certificate.count_checks import contradicted_assumption, contradiction
from axplore.certificate.document import Certificate
from axplore.certificate.doubts import doubts_in
from axplore.certificate.kinds.kind import Checking, subject_of
from axplore.certificate.promise import goal_beyond, goal_promise, promise
from axplore.certificate.situations import misplaced_situation
from axplore.errors import ExitCode
from axplore.target import Objective, confidence_text


def verify(certificate: Certificate) -> Verification:
    """Checks every claim of a certificate against its counts, and says of each whether it is proven."""
    checks = [_check_counts(certificate)]
    if checks[0].holds and certificate.assumptions:
        checks.append(_check_assumptions(certificate))
    checks += _check_claims(certificate, draws_can_be=all(check.holds for check in checks))
    concluded = conclusions_of(certificate)
    if certificate.complete:
        checks.append(_check_completeness(certificate, concluded.open_parts, all(check.holds for check in checks)))
    return Verification(tuple(checks), concluded.open_parts, *_conclusion(certificate, concluded))


def _check_counts(certificate: Certificate) -> ClaimCheck:
    problem = contradiction(certificate.counts) or misplaced_situation(certificate.memory, certificate.counts)
    total = int(certificate.counts.counts.sum())
    why = f"{total} draws of {certificate.state_pairs[-1]} actions in {len(certificate.known)} states"
    return ClaimCheck("counts", "all draws", None, problem is None, problem or why)


def _check_assumptions(certificate: Certificate) -> ClaimCheck:
    """That no draw contradicts what is assumed; that it is true is for the user to know."""
    contradicted = contradicted_assumption(certificate)
    why = contradicted or "no draw contradicts what is assumed"
    return ClaimCheck("assumptions", "; ".join(certificate.assumptions), None, contradicted is None, why)


def _check_claims(certificate: Certificate, *, draws_can_be: bool) -> list[ClaimCheck]:
    checks: list[ClaimCheck] = []
    checking = Checking(certificate, set())
    for kind in kinds.KINDS:
        claims = certificate.of(kind.record)
        if not draws_can_be:
            checks += [kind.checked(claim, certificate, False, "the recorded draws are impossible") for claim in claims]
            continue
        for check in kind.checks(claims, checking):
            checks.append(check)
            if not check.holds:
                checking.failed.add(check.index)
    return checks


def _check_completeness(certificate: Certificate, missing: tuple[str, ...], all_hold: bool) -> ClaimCheck:
    why = f"all {certificate.n_seen} states seen, and those never seen, are accounted for"
    if certificate.objective is Objective.QUESTION:
        why = "the property that was asked for is answered"
    elif certificate.goal is not None:
        why = "what was asked of the goal is answered"
    if missing:
        why = missing[0] if len(missing) == 1 else f"{missing[0]}, and {len(missing) - 1} more are missing"
    elif not all_hold:
        why = "it rests on a claim that is not proven"
    return ClaimCheck("complete", certificate.objective.value, None, all_hold and not missing, why)


def _conclusion(certificate: Certificate, concluded: Conclusions) -> tuple[tuple[str, ...], ExitCode]:
    """What may be said if every claim is proven, and the exit code that goes with it."""
    doubts = doubts_in(certificate.findings, certificate.faults)
    why = _what_contradicts(certificate, concluded)
    if why is not None:
        return (f"CONTRADICTED: {why}, so that nothing here can be relied on.",), ExitCode.REFUTED
    missing = concluded.open_parts
    conditions = [*certificate.assumptions, *(["the assumptions of every proof hold"] if doubts else [])]
    condition = f"If {' and if '.join(conditions)}, then with" if conditions else "With"
    sure = confidence_text(certificate.delta)
    is_map = certificate.objective is not Objective.QUESTION
    promised = f": {_promised(certificate, concluded)}" if is_map and not missing else ", all these claims are true"
    lines = [f"{condition} probability at least {sure} over the draws{promised}."]
    lines += [f"{bounds.in_full}: {bounds}." for bounds in concluded.properties]
    if missing:
        more = len(missing) - 1
        lines.append(f"NOT COMPLETE: {missing[0]}{f', and {more} more are open' if more else ''}.")
    if certificate.memory is not None:
        lines.append(f"{certificate.memory.summary}.")
    if certificate.examined is not None:
        lines.append(str(certificate.examined))
    lines += [f"IN DOUBT: {doubt}" for doubt in doubts]
    code = ExitCode.UNFINISHED if missing else ExitCode.IN_DOUBT if doubts else ExitCode.DONE
    return tuple(lines), code


def _promised(certificate: Certificate, concluded: Conclusions) -> str:
    """What is promised once nothing that was asked for is missing, as a clause."""
    n_states, radius, epsilon = len(certificate.known), certificate.radius, certificate.epsilon
    if certificate.goal is None:
        return promise(n_states, radius, epsilon, certificate.objective)
    goal = concluded.reached_goal
    if goal is None:
        return goal_beyond(certificate.goal.name, n_states, radius, epsilon)
    return goal_promise(subject_of(certificate, goal), float(concluded.upper[goal]), epsilon, certificate.objective)


def _what_contradicts(certificate: Certificate, concluded: Conclusions) -> str | None:
    """What was drawn or proven although it is assumed or was proven to be otherwise, as a clause; None if nothing."""
    contradicted = contradicted_assumption(certificate)
    if contradicted is not None:
        return f"it is assumed that {' and that '.join(certificate.assumptions)}, but {contradicted}"
    for finding in certificate.findings:
        if finding.refutes:
            return finding.seen.rstrip(".")
    for goal in concluded.refuted:
        return f"{subject_of(certificate, goal)} was admitted as within reach and is proven to be beyond it"
    return None
