"""Forgeries whose digest fits are rejected, by the name of the claim that they leave unproven.

Not every edit is a forgery: a looser vector may still be a proof. So each test makes an edit that breaks a claim for
sure, or asks the explorer's own planning, which shares no code with the verifier, whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explored import LARGE_ENOUGH, certificate_of, exploration_of, failed, only, rows_of, with_rows

from axplore.certificate import Certificate, ClaimKind, NearOptimal, Reachable, TooFar, Verification
from axplore.certificate import verify as verify_in_memory
from axplore.certificate.bellman import bounds_along_way
from axplore.certificate.checker import KINDS
from axplore.certificate.contents import RESET_ACTION, Claim, Counts
from axplore.proofs.bound_kernels import least_mean
from axplore.proofs.bounds import interval_model, upper_path
from axplore.proofs.claims import TooFar as TooFarInPlanning
from axplore.statistics.confidence import confidence_region
from axplore.statistics.counts import CountedRows
from axplore.target import Objective
from axplore.types import FloatArray

CLEARLY = 1e-6
"""Inequalities nearer than this are not asked about: there the two implementations may differ by rounding."""


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Certificate], Verification]:
    """Verifies what is read back from files, so that every forgery here has a digest that fits."""
    monkeypatch.setattr("os.fsync", lambda _: None)  # these files need not survive a power cut

    def saved_and_verified(certificate: Certificate) -> Verification:
        certificate.save(tmp_path)
        return verify_in_memory(Certificate.load(tmp_path))

    return saved_and_verified


everywhere = pytest.mark.parametrize("name", LARGE_ENOUGH)


def kind_of(claim: Claim) -> ClaimKind:
    return KINDS[type(claim)]


def with_claim(certificate: Certificate, old: Claim, new: Claim) -> Certificate:
    return replace(
        certificate,
        reachable=tuple(new if claim is old else claim for claim in certificate.reachable),  # type: ignore[misc]
        too_far=tuple(new if claim is old else claim for claim in certificate.too_far),  # type: ignore[misc]
        near_optimal=tuple(new if claim is old else claim for claim in certificate.near_optimal),  # type: ignore[misc]
    )


# Draws removed


@everywhere
def test_without_the_draws_of_a_pair_every_claim_that_plays_it_fails(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    rows = rows_of(certificate)
    owners = np.repeat(np.arange(len(certificate.known)), [*map(len, certificate.actions)])
    for pair in np.unique(np.linspace(0, len(owners) - 1, 12).astype(int)):
        state, action = owners[pair], pair - certificate.state_pairs[owners[pair]]
        verdict = verify(with_rows(certificate, [row if place != pair else [] for place, row in enumerate(rows)]))
        played = {
            (ClaimKind.REACHABLE, claim.goal)
            for claim in certificate.reachable
            if claim.policy[state] == action and claim.goal != state
        }
        # All that is known of the pair is that it takes one step.
        needed = {(ClaimKind.TOO_FAR, claim.goal) for claim in certificate.too_far if claim.lower[state] > 1 + CLEARLY}
        found = failed(verdict)
        assert {failure for failure in found if failure[0] in (ClaimKind.REACHABLE, ClaimKind.TOO_FAR)} == (
            played | needed
        )
        assert (ClaimKind.COMPLETE, None) in found


@everywhere
def test_with_a_quarter_of_the_draws_the_certificate_is_rejected_claim_by_claim(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    thinned = [
        [(successor, max(count // 4, 1), place + 1) for place, (successor, count, _) in enumerate(row)]
        for row in rows_of(certificate)
    ]
    found = failed(verify(with_rows(certificate, thinned)))
    assert (ClaimKind.COUNTS, None) not in found
    assert {kind for kind, _ in found} & {ClaimKind.REACHABLE, ClaimKind.TOO_FAR, ClaimKind.NEAR_OPTIMAL}


@everywhere
def test_counts_that_no_draws_can_give_prove_nothing(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    everything = {(kind_of(claim), claim.goal) for claim in certificate.claims}
    for change in impossible_counts(certificate.counts):
        found = failed(verify(replace(certificate, counts=change)))
        assert found == everything | {(ClaimKind.COUNTS, None), (ClaimKind.COMPLETE, None)}


def impossible_counts(counts: Counts) -> Iterator[Counts]:
    """Each with one number changed so that the row contradicts itself."""

    def changed(name: str, entry: int, value: int) -> Counts:
        array = getattr(counts, name).copy()
        array[entry] = value
        return replace(counts, **{name: array})

    firsts = counts.row_offsets[:-1][np.diff(counts.row_offsets) > 0]
    yield changed("counts", firsts[0], 0)
    yield changed("counts", firsts[-1], -5)
    yield changed("first_draws", firsts[0], 2)  # what was seen at the first draw?
    yield changed("first_draws", firsts[-1], 0)
    for first in counts.row_offsets[:-1][np.diff(counts.row_offsets) > 1][:1]:
        yield changed("successors", first + 1, counts.successors[first])
        yield changed("first_draws", first + 1, 1)
        yield changed("first_draws", first + 1, counts.counts[first] + 2)  # more draws before it than were counted


# A policy's action that breaks its bound


def next_step(exploration: Any, claim: Reachable | NearOptimal, state: int, action: int) -> float:
    """One plus the greatest mean of the upper bound after this action, by the explorer's planning."""
    model = exploration.evidence.model
    values = np.full(len(model.numbers), 1.0 + claim.upper[0])
    values[: model.n_known] = claim.upper
    values[claim.goal] = 0.0
    if action == RESET_ACTION:
        return float(1.0 + values[0])
    pair = int(model.rows.state_pairs[state]) + action
    free = float(values.max())
    return float(1.0 + free - least_mean(model.rows, pair, values, free, 1.0, model.rows.slack[pair])[0])


def follows_certain_way(certificate: Certificate, claim: Reachable | NearOptimal) -> bool:
    along = bounds_along_way(certificate.counts, certificate.state_pairs, claim.goal, claim.policy, 1.0)
    return along is not None


@everywhere
def test_an_edited_action_is_rejected_exactly_where_it_breaks_the_bound(name: str) -> None:
    certificate, exploration = certificate_of(name), exploration_of(name)
    rejected = 0
    for claim in certificate.reachable:
        for state in range(claim.goal):
            for action in range(RESET_ACTION, len(certificate.actions[state])):
                excess = next_step(exploration, claim, state, action) - claim.upper[state]
                if action == claim.policy[state] or abs(excess) < CLEARLY:
                    continue
                policy = claim.policy.copy()
                policy[state] = action
                verdict = verify_in_memory(only(certificate, replace(claim, policy=policy)))
                # Along a certain way the policy must reset beside it, even where another action would do no harm.
                if excess > 0 or not follows_certain_way(certificate, claim):
                    assert failed(verdict) == ({(ClaimKind.REACHABLE, claim.goal)} if excess > 0 else set())
                rejected += not verdict.holds
    assert rejected > 0


@everywhere
def test_a_final_policy_with_a_bad_action_is_not_near_optimal(name: str, verify: Any) -> None:
    certificate, exploration = certificate_of(name), exploration_of(name)
    for claim in certificate.near_optimal:
        excess = {
            (state, action): next_step(exploration, claim, state, action) - claim.upper[state]
            for state in range(len(certificate.known))
            for action in range(RESET_ACTION, len(certificate.actions[state]))
            if state != claim.goal
        }
        state, action = max(excess, key=lambda edit, excess=excess: excess[edit])  # type: ignore[misc]
        assert excess[state, action] > CLEARLY
        policy = claim.policy.copy()
        policy[state] = action
        verdict = verify(with_claim(certificate, claim, replace(claim, policy=policy)))
        assert failed(verdict) == {(ClaimKind.NEAR_OPTIMAL, claim.goal), (ClaimKind.COMPLETE, None)}
        # What was proven by a certain way, and no longer is, fails its sweep in some state of the way.
        if not follows_certain_way(certificate, claim):
            assert repr(certificate.known[state]) in verdict.failures[0].why


@everywhere
def test_a_policy_that_uses_states_admitted_later_does_not_show_the_order(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    for claim in certificate.reachable:
        for state in {claim.goal, len(certificate.known) - 1}:
            if certificate.actions[state]:
                policy = claim.policy.copy()
                policy[state] = 0
                verdict = verify(with_claim(certificate, claim, replace(claim, policy=policy)))
                assert failed(verdict) == {(ClaimKind.REACHABLE, claim.goal), (ClaimKind.COMPLETE, None)}


# A bound tightened beyond what the counts prove


@everywhere
def test_an_upper_bound_tightened_by_a_thousandth_is_rejected(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    claims: list[Reachable | NearOptimal] = [*certificate.reachable, *certificate.near_optimal]
    for claim in claims:
        verdict = verify(with_claim(certificate, claim, replace(claim, upper=claim.upper * 0.999)))
        assert failed(verdict) == {(kind_of(claim), claim.goal), (ClaimKind.COMPLETE, None)}


def follows_the_limit(certificate: Certificate, vector: FloatArray) -> bool:
    """Whether the solver cut the vector at its limit, so that the counts prove more than it says."""
    return bool(vector.max() > 3 * (certificate.radius + certificate.epsilon) + 19)


@everywhere
def test_a_lower_bound_raised_beyond_the_counts_is_rejected(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    claims: list[TooFar | NearOptimal] = [*certificate.too_far, *certificate.near_optimal]
    for claim in claims:
        factor = 1e6 if follows_the_limit(certificate, claim.lower) else 1.001
        verdict = verify(with_claim(certificate, claim, replace(claim, lower=claim.lower * factor)))
        assert failed(verdict) == {(kind_of(claim), claim.goal), (ClaimKind.COMPLETE, None)}


@everywhere
def test_regret_denied_is_rejected_where_the_gap_of_the_bounds_is_too_wide(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    for claim in certificate.near_optimal:
        wide = claim.upper[0] - claim.lower[0] > certificate.epsilon + CLEARLY
        if abs(claim.upper[0] - claim.lower[0] - certificate.epsilon) < CLEARLY or 0 < claim.regret.max() < CLEARLY:
            continue
        verdict = verify(with_claim(certificate, claim, replace(claim, regret=np.zeros_like(claim.regret))))
        assert (not verdict.holds) == (wide and claim.regret.max() > 0)
        if not verdict.holds:
            assert failed(verdict) == {(ClaimKind.NEAR_OPTIMAL, claim.goal), (ClaimKind.COMPLETE, None)}


def test_regret_is_what_proves_the_far_states_of_the_chain() -> None:
    certificate = certificate_of("chain")
    wide = [claim for claim in certificate.near_optimal if claim.upper[0] - claim.lower[0] > certificate.epsilon]
    assert any(claim.regret.max() > 0 for claim in wide)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, 1e300])
@pytest.mark.parametrize("vector", ["upper", "lower", "regret"])
@pytest.mark.parametrize("state", [0, -1])
def test_a_number_that_no_bound_can_be_is_rejected(value: float, vector: str, state: int, verify: Any) -> None:
    certificate = certificate_of("chain")
    for claim in certificate.claims:
        if not hasattr(claim, vector):
            continue
        edited = getattr(claim, vector).copy()
        edited[state if claim.goal != len(edited) - 1 else 0] = value
        needed = vector != "regret" or claim.upper[0] - claim.lower[0] > certificate.epsilon  # type: ignore[union-attr]
        if needed:
            verdict = verify(with_claim(certificate, claim, replace(claim, **{vector: edited})))
            assert failed(verdict) == {(kind_of(claim), claim.goal), (ClaimKind.COMPLETE, None)}
            assert verdict.failures[0].why == "a bound is not a number between 0 and 1e+09"


def test_a_goal_that_is_some_steps_from_itself_is_rejected(verify: Any) -> None:
    certificate = certificate_of("chain")
    claims: list[Reachable | NearOptimal] = [*certificate.reachable, *certificate.near_optimal]
    for claim in claims:
        upper = claim.upper.copy()
        upper[claim.goal] = 1e-3
        verdict = verify(with_claim(certificate, claim, replace(claim, upper=upper)))
        assert failed(verdict) == {(kind_of(claim), claim.goal), (ClaimKind.COMPLETE, None)}


@everywhere
def test_more_than_was_explored_for_is_not_proven(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    beyond = 3 * (certificate.radius + certificate.epsilon) + 21  # where the solver's limit is
    assert (ClaimKind.TOO_FAR, certificate.n_seen) in failed(verify(replace(certificate, radius=beyond)))
    assert failed(verify(replace(certificate, delta=1e-30)))
    if len(certificate.known) > 1:
        narrow = failed(verify(replace(certificate, radius=1.0, epsilon=1e-9)))
        assert {(ClaimKind.REACHABLE, claim.goal) for claim in certificate.reachable} <= narrow


# A controllable state left out


def without_last_known(certificate: Certificate) -> Certificate:
    """The state admitted last becomes one that was merely seen; every other claim is kept as well as it can be."""
    n_known = len(certificate.known) - 1
    n_pairs = sum(map(len, certificate.actions[:n_known]))
    kept = with_rows(
        replace(certificate, reachable=(), too_far=(), near_optimal=(), at_most=(), at_least=()),
        rows_of(certificate)[:n_pairs],
        known=certificate.known[:n_known],
        others=(certificate.known[n_known], *certificate.others),
        actions=certificate.actions[:n_known],
        objective=Objective.WITHIN_RADIUS,
    )
    return replace(
        kept,
        reachable=tuple(
            replace(claim, policy=claim.policy[:n_known], upper=claim.upper[:n_known])
            for claim in certificate.reachable[:-1]
        ),
        too_far=tuple(replace(claim, lower=claim.lower[:n_known]) for claim in certificate.too_far),
    )


def planning_model(certificate: Certificate) -> Any:
    """The explorer's model of the counts of a certificate, by position."""
    counts = certificate.counts
    visits = np.add.reduceat(np.append(counts.counts, 0), counts.row_offsets[:-1])
    visits[np.diff(counts.row_offsets) == 0] = 0
    rows = CountedRows(
        np.arange(len(certificate.known)),
        certificate.state_pairs,
        visits,
        counts.row_offsets,
        counts.successors,
        counts.counts,
        counts.first_draws,
    )
    limit = 3 * (certificate.radius + certificate.epsilon) + 20
    return interval_model(rows, confidence_region(rows, certificate.delta), limit)


@everywhere
def test_a_controllable_state_left_out_is_missed(name: str, verify: Any) -> None:
    forged = without_last_known(certificate_of(name))
    verdict = verify(forged)
    assert failed(verdict) == {(ClaimKind.COMPLETE, None)}
    assert repr(forged.others[0]) in verdict.failures[0].why


@everywhere
def test_a_controllable_state_called_too_far_is_refused_its_claim(name: str, verify: Any) -> None:
    forged = without_last_known(certificate_of(name))
    goal = len(forged.known)
    best = TooFarInPlanning(goal, forged.radius).path(planning_model(forged)).values[:goal]
    assert best[0] <= forged.radius  # the state is within reach, so nothing true says more
    for lower in (best, best * (forged.radius + 0.01) / best[0], np.full(goal, forged.radius + 0.01)):
        claimed = replace(forged, too_far=(TooFar(goal, lower.copy()), *forged.too_far))
        assert failed(verify(claimed)) == {(ClaimKind.TOO_FAR, goal), (ClaimKind.COMPLETE, None)}


def test_a_state_erased_with_the_draws_that_led_to_it_leaves_room_for_the_unseen(verify: Any) -> None:
    certificate = certificate_of("deterministic grid")
    erased = certificate.reachable[-1].goal
    rows = [[entry for entry in row if entry[0] != erased] for row in rows_of(without_last_known(certificate))]
    assert any(not row for row in rows)
    shifted = [[(successor - (successor > erased), count, draw) for successor, count, draw in row] for row in rows]
    known, others = certificate.known[:-1], certificate.others
    forged = without_last_known(certificate)
    forged = with_rows(
        replace(forged, too_far=()),
        shifted,
        known=known,
        others=others,
        too_far=tuple(replace(claim, goal=claim.goal - 1) for claim in forged.too_far),
    )
    assert (ClaimKind.TOO_FAR, forged.n_seen) in failed(verify(forged))


# A far state slipped in


def with_known(certificate: Certificate, position: int) -> Certificate:
    """A state that was set aside becomes the last known one, without actions; the other claims still hold."""
    n_known = len(certificate.known)

    def moved(old: int) -> int:
        return n_known if old == position else old + (n_known <= old < position)

    def longer(vector: FloatArray, last: float) -> Any:
        return np.append(vector, np.array(last, dtype=vector.dtype))

    others = list(certificate.others)
    rows = [[(moved(successor), count, draw) for successor, count, draw in row] for row in rows_of(certificate)]
    return replace(
        with_rows(
            replace(certificate, reachable=(), too_far=(), near_optimal=(), at_most=(), at_least=()),
            rows,
            known=(*certificate.known, others.pop(position - n_known)),
            others=tuple(others),
            actions=(*certificate.actions, ()),
            objective=Objective.WITHIN_RADIUS,
        ),
        reachable=tuple(
            replace(
                claim,
                policy=np.append(claim.policy, RESET_ACTION),
                upper=longer(claim.upper, (1 + claim.upper[0]) * (1 + 1e-12)),
            )
            for claim in certificate.reachable
        ),
        too_far=tuple(
            TooFar(moved(claim.goal), longer(claim.lower, 1 + claim.lower[0]))
            for claim in certificate.too_far
            if claim.goal != position
        ),
    )


@everywhere
def test_a_far_state_slipped_in_is_rejected_by_its_name(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    limit = certificate.radius + certificate.epsilon
    far = [claim.goal for claim in certificate.too_far if claim.lower[0] > limit and claim.goal < certificate.n_seen]
    for position in far:
        forged = with_known(certificate, position)
        goal = len(certificate.known)
        verdict = verify(forged)
        assert failed(verdict) == {(ClaimKind.COMPLETE, None)}
        assert repr(forged.known[goal]) in verdict.failures[0].why
        for claim in fabricated(forged, goal, limit):
            verdict = verify(replace(forged, reachable=(*forged.reachable, claim)))
            assert failed(verdict) == {(ClaimKind.REACHABLE, goal), (ClaimKind.COMPLETE, None)}
            assert repr(forged.known[goal]) in verdict.failures[0].subject


def fabricated(certificate: Certificate, goal: int, limit: float) -> Iterator[Reachable]:
    """Claims that a state is within reach, as well made as can be."""
    n_known = len(certificate.known)
    copied = certificate.reachable[-1] if certificate.reachable else None
    if copied is not None:
        yield replace(copied, goal=goal)
    path = upper_path(planning_model(certificate), goal, n_allowed=goal)
    policy = np.where(path.policy == -1, RESET_ACTION, path.policy - certificate.state_pairs[:-1])
    upper = np.full(n_known, limit)
    upper[goal] = 0
    yield Reachable(goal, policy, upper)
    if path.proven:
        yield Reachable(goal, policy, path.values[:n_known].copy())
        yield Reachable(goal, policy, path.values[:n_known] * limit / path.steps)


def test_far_states_were_slipped_in_somewhere() -> None:
    some = [
        name
        for name in LARGE_ENOUGH
        for claim in certificate_of(name).too_far
        if claim.lower[0] > certificate_of(name).radius + certificate_of(name).epsilon
        and claim.goal < certificate_of(name).n_seen
    ]
    assert "chain" in some
    assert any(name.startswith("random") for name in some)


# Claims missing, repeated, or about another state


@everywhere
def test_every_claim_is_needed_and_needed_once(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    for kind in ("reachable", "too_far", "near_optimal"):
        claims = getattr(certificate, kind)
        for place in {0, len(claims) // 2, len(claims) - 1} if claims else ():
            for changed in (claims[:place] + claims[place + 1 :], (*claims, claims[place])):
                change: dict[str, Any] = {kind: changed}
                verdict = verify(replace(certificate, **change))
                assert failed(verdict) == {(ClaimKind.COMPLETE, None)}


@pytest.mark.parametrize("name", ["chain", "slippery grid", "random 0"])
def test_a_state_or_an_action_that_stands_twice_is_refused(name: str, verify: Any) -> None:
    certificate = certificate_of(name)
    twice = replace(certificate, known=(*certificate.known[:-1], certificate.known[0]))
    assert repr(certificate.known[0]) in verify(twice).failures[0].why
    actions = ((certificate.actions[0][0],) * len(certificate.actions[0]), *certificate.actions[1:])
    for forged in (twice, replace(certificate, actions=actions)):
        assert (ClaimKind.COUNTS, None) in failed(verify(forged))


def test_the_claim_of_another_state_is_rejected(verify: Any) -> None:
    certificate = certificate_of("chain")
    near, far = certificate.reachable[0], certificate.reachable[-1]
    forged = with_claim(certificate, far, replace(near, goal=far.goal))
    assert failed(verify(forged)) == {(ClaimKind.REACHABLE, far.goal), (ClaimKind.COMPLETE, None)}


def test_a_certificate_cut_short_cannot_call_itself_complete(verify: Any) -> None:
    certificate = certificate_of("chain cut short")
    assert failed(verify(replace(certificate, complete=True))) == {(ClaimKind.COMPLETE, None)}
