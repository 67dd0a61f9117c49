"""Forgeries whose digest fits are rejected, by the name of the claim that they leave unproven.

Not every edit is a forgery: a looser vector may still be a proof. So each test makes an edit that breaks a claim for
sure, or asks the explorer's own planning, which shares no code with the verifier, whether it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from explored import (
    LARGE_ENOUGH,
    certificate_of,
    exploration_of,
    failed,
    only,
    read_again,
    rows_of,
    with_rows,
    with_vectors,
)

from axplore.atlas.construction import certificate_from_exploration
from axplore.certificate import Certificate, NearOptimal, Reachable, TooFar, Verification
from axplore.certificate import verify as verify_in_memory
from axplore.certificate.bellman import bounds_along_way
from axplore.certificate.kinds import KINDS
from axplore.domains import confusing_chain
from axplore.errors import InvalidInputError
from axplore.explorers.base import run
from axplore.explorers.certified import Certified
from axplore.memory import Memory
from axplore.proofs.bounds import interval_model, upper_path
from axplore.proofs.claims import ToSetAside
from axplore.proofs.row_kernels import least_mean
from axplore.records.assumed import Assumed, Ties
from axplore.records.claims import Claim
from axplore.records.counts import Counts
from axplore.records.episodes import EpisodeRecord
from axplore.records.order import Labels
from axplore.records.retired import RetiredStates
from axplore.records.vectors import Vector
from axplore.statistics.confidence import confidence_region
from axplore.target import Objective, Target
from axplore.truth import policy_steps_on
from axplore.types import RESET_ACTION, FloatArray
from axplore.worlds.simulated import SimulatedWorld
from edited import edited
from made_counts import made_counts
from tested_policies import with_play

CLEARLY = 1e-6
"""Inequalities nearer than this are not asked about: there the two implementations may differ by rounding."""


def verify(certificate: Certificate) -> Verification:
    """Verifies what is read again, so that every forgery here has a digest that fits."""
    return verify_in_memory(read_again(certificate))


everywhere = pytest.mark.parametrize("name", LARGE_ENOUGH)


def kind_of(claim: Claim) -> str:
    return next(kind.words for kind in KINDS if kind.record is type(claim))


def with_claim(certificate: Certificate, old: Claim, new: Claim) -> Certificate:
    return edited(certificate, claims=tuple(new if claim is old else claim for claim in certificate.claims))


# Draws removed


@everywhere
def test_without_the_draws_of_a_pair_every_claim_that_plays_it_fails(name: str) -> None:
    certificate = certificate_of(name)
    rows = rows_of(certificate)
    owners = np.repeat(np.arange(len(certificate.known)), [*map(len, certificate.actions)])
    for pair in np.unique(np.linspace(0, len(owners) - 1, 12).astype(int)):
        state, action = owners[pair], pair - certificate.state_pairs[owners[pair]]
        verdict = verify(with_rows(certificate, [row if place != pair else [] for place, row in enumerate(rows)]))
        played = {
            ("reachable", claim.goal)
            for claim in certificate.of(Reachable)
            if claim.policy[state] == action and claim.goal != state
        }
        # All that is known of the pair is that it takes one step.
        needed = {("too far", claim.goal) for claim in certificate.of(TooFar) if claim.lower[state] > 1 + CLEARLY}
        found = failed(verdict)
        assert {failure for failure in found if failure[0] in ("reachable", "too far")} == (played | needed)
        assert ("complete", None) in found


@everywhere
def test_with_a_quarter_of_the_draws_the_certificate_is_rejected_claim_by_claim(name: str) -> None:
    certificate = certificate_of(name)
    thinned = [
        [(successor, max(count // 4, 1), place + 1) for place, (successor, count, _) in enumerate(row)]
        for row in rows_of(certificate)
    ]
    found = failed(verify(with_rows(certificate, thinned)))
    assert ("counts", None) not in found
    assert {kind for kind, _ in found} & {"reachable", "too far", "near-optimal"}


@everywhere
def test_counts_that_no_draws_can_give_prove_nothing(name: str) -> None:
    certificate = certificate_of(name)
    everything = {(kind_of(claim), claim.goal) for claim in certificate.claims}
    for change in impossible_counts(certificate.counts):
        found = failed(verify(edited(certificate, counts=change)))
        assert found == everything | {("counts", None), ("complete", None)}


def impossible_counts(counts: Counts) -> Iterator[Counts]:
    """Each with one number changed so that the row contradicts itself."""

    def changed(name: str, entry: int, value: int) -> Counts:
        array = getattr(counts, name).copy()
        array[entry] = value
        return edited(counts, **{name: array})

    firsts = counts.row_offsets[:-1][np.diff(counts.row_offsets) > 0]
    yield changed("first_draws", firsts[0], 2)  # what was seen at the first draw?
    for first in counts.row_offsets[:-1][np.diff(counts.row_offsets) > 1][:1]:
        yield changed("successors", first + 1, counts.successors[first])
        yield changed("first_draws", first + 1, 1)
        yield changed("first_draws", first + 1, counts.counts[first] + 2)  # more draws before it than were counted


# A policy's action that breaks its bound


def next_step(exploration: Any, claim: Reachable | NearOptimal, state: int, action: int) -> float:
    """One plus the greatest mean of the upper bound after this action, by the explorer's planning."""
    model = exploration.evidence.model
    values = np.full(len(model.numbers), 1.0 + claim.upper[0])
    values[: model.n_known] = claim.upper.whole
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
    for claim in certificate.of(Reachable):
        for state in range(claim.goal):
            for action in range(RESET_ACTION, len(certificate.actions[state])):
                excess = next_step(exploration, claim, state, action) - claim.upper[state]
                if action == claim.policy[state] or abs(excess) < CLEARLY:
                    continue
                policy = claim.policy.whole.copy()
                policy[state] = action
                verdict = verify_in_memory(only(certificate, with_vectors(claim, policy=policy)))
                # Along a certain way the policy must reset beside it, even where another action would do no harm.
                if excess > 0 or not follows_certain_way(certificate, claim):
                    assert failed(verdict) == ({("reachable", claim.goal)} if excess > 0 else set())
                rejected += not verdict.holds
    assert rejected > 0


@everywhere
def test_a_final_policy_with_a_bad_action_is_not_near_optimal(name: str) -> None:
    certificate, exploration = certificate_of(name), exploration_of(name)
    for claim in certificate.of(NearOptimal):
        excess = {
            (state, action): next_step(exploration, claim, state, action) - claim.upper[state]
            for state in range(len(certificate.known))
            for action in range(RESET_ACTION, len(certificate.actions[state]))
            if state != claim.goal
        }
        state, action = max(excess, key=lambda edit, excess=excess: excess[edit])  # type: ignore[misc]
        assert excess[state, action] > CLEARLY
        policy = claim.policy.whole.copy()
        policy[state] = action
        verdict = verify(with_claim(certificate, claim, with_vectors(claim, policy=policy)))
        assert failed(verdict) == {("near-optimal", claim.goal), ("complete", None)}
        # What was proven by a certain way, and no longer is, fails its sweep in some state of the way.
        if not follows_certain_way(certificate, claim):
            assert repr(certificate.known[state]) in verdict.failures[0].why


@everywhere
def test_a_policy_that_uses_states_admitted_later_does_not_show_the_order(name: str) -> None:
    certificate = certificate_of(name)
    for claim in certificate.of(Reachable):
        for state in {claim.goal, len(certificate.known) - 1}:
            if certificate.actions[state]:
                policy = claim.policy.whole.copy()
                policy[state] = 0
                verdict = verify(with_claim(certificate, claim, with_vectors(claim, policy=policy)))
                assert failed(verdict) == {("reachable", claim.goal), ("complete", None)}


# A bound tightened beyond what the counts prove


@everywhere
def test_an_upper_bound_tightened_by_a_thousandth_is_rejected(name: str) -> None:
    certificate = certificate_of(name)
    claims: list[Reachable | NearOptimal] = [*certificate.of(Reachable), *certificate.of(NearOptimal)]
    for claim in claims:
        verdict = verify(with_claim(certificate, claim, with_vectors(claim, upper=claim.upper.whole * 0.999)))
        assert failed(verdict) == {(kind_of(claim), claim.goal), ("complete", None)}


def follows_the_limit(certificate: Certificate, vector: FloatArray) -> bool:
    """Whether the solver cut the vector at its limit, so that the counts prove more than it says."""
    return bool(vector.max() > 3 * (certificate.radius + certificate.epsilon) + 19)


@everywhere
def test_a_lower_bound_raised_beyond_the_counts_is_rejected(name: str) -> None:
    certificate = certificate_of(name)
    claims: list[TooFar | NearOptimal] = [*certificate.of(TooFar), *certificate.of(NearOptimal)]
    for claim in claims:
        factor = 1e6 if follows_the_limit(certificate, claim.lower.whole) else 1.001
        verdict = verify(with_claim(certificate, claim, with_vectors(claim, lower=claim.lower.whole * factor)))
        assert failed(verdict) == {(kind_of(claim), claim.goal), ("complete", None)}


@everywhere
def test_regret_denied_is_rejected_where_the_gap_of_the_bounds_is_too_wide(name: str) -> None:
    certificate = certificate_of(name)
    for claim in certificate.of(NearOptimal):
        wide = claim.upper[0] - claim.lower[0] > certificate.epsilon + CLEARLY
        if abs(claim.upper[0] - claim.lower[0] - certificate.epsilon) < CLEARLY or 0 < claim.regret.max() < CLEARLY:
            continue
        verdict = verify(with_claim(certificate, claim, with_vectors(claim, regret=np.zeros(claim.regret.length))))
        assert (not verdict.holds) == (wide and claim.regret.max() > 0)
        if not verdict.holds:
            assert failed(verdict) == {("near-optimal", claim.goal), ("complete", None)}


def test_regret_is_what_proves_the_far_states_of_the_chain() -> None:
    certificate = certificate_of("chain")
    wide = [claim for claim in certificate.of(NearOptimal) if claim.upper[0] - claim.lower[0] > certificate.epsilon]
    assert any(claim.regret.max() > 0 for claim in wide)


@pytest.mark.parametrize(("name", "value"), [("counts", 0), ("counts", -5), ("counts", 2**60), ("first_draws", 0)])
def test_a_number_of_draws_that_cannot_be_is_refused(name: str, value: int) -> None:
    certificate = certificate_of("chain")
    array = getattr(certificate.counts, name).copy()
    array[0] = value
    with pytest.raises(InvalidInputError, match=rf"counts\.{name} holds something that is not a whole number from 1"):
        edited(certificate, counts=edited(certificate.counts, **{name: array}))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, 1e300])
@pytest.mark.parametrize("vector", ["upper", "lower", "regret"])
@pytest.mark.parametrize("state", [0, -1])
def test_what_is_no_number_of_steps_is_refused(value: float, vector: str, state: int) -> None:
    certificate = certificate_of("chain")
    for claim in certificate.claims:
        if hasattr(claim, vector):
            edited = getattr(claim, vector).whole.copy()
            edited[state] = value
            with pytest.raises(InvalidInputError, match=rf"{vector} holds something that is not a number from 0"):
                with_claim(certificate, claim, with_vectors(claim, **{vector: edited}))


@pytest.mark.parametrize("vector", ["upper", "lower", "regret"])
@pytest.mark.parametrize("state", [0, -1])
def test_a_number_that_is_too_large_for_a_bound_is_rejected(vector: str, state: int) -> None:
    certificate = certificate_of("chain")
    for claim in certificate.claims:
        if not hasattr(claim, vector):
            continue
        edited = getattr(claim, vector).whole.copy()
        edited[state if claim.goal != len(edited) - 1 else 0] = 1e20
        needed = vector != "regret" or claim.upper[0] - claim.lower[0] > certificate.epsilon
        if needed:
            verdict = verify(only(certificate, with_vectors(claim, **{vector: edited})))
            assert failed(verdict) == {(kind_of(claim), claim.goal)}
            assert verdict.failures[0].why == "a bound is not a number between 0 and 1e+09"


def test_a_goal_that_is_some_steps_from_itself_is_rejected() -> None:
    certificate = certificate_of("chain")
    claims: list[Reachable | NearOptimal] = [*certificate.of(Reachable), *certificate.of(NearOptimal)]
    for claim in claims:
        upper = claim.upper.whole.copy()
        upper[claim.goal] = 1e-3
        verdict = verify(with_claim(certificate, claim, with_vectors(claim, upper=upper)))
        assert failed(verdict) == {(kind_of(claim), claim.goal), ("complete", None)}


@everywhere
def test_more_than_was_explored_for_is_not_proven(name: str) -> None:
    certificate = certificate_of(name)
    beyond = 3 * (certificate.radius + certificate.epsilon) + 21  # where the solver's limit is
    assert ("too far", certificate.n_seen) in failed(verify(edited(certificate, radius=beyond)))
    assert failed(verify(edited(certificate, delta=1e-30)))
    if len(certificate.known) > 1:
        narrow = failed(verify(edited(certificate, radius=1.0, epsilon=1e-9)))
        assert {("reachable", claim.goal) for claim in certificate.of(Reachable)} <= narrow


# A controllable state left out


def without_last_known(certificate: Certificate) -> Certificate:
    """The state admitted last becomes one that was merely seen; every other claim is kept as well as it can be."""
    n_known = len(certificate.known) - 1
    n_pairs = sum(map(len, certificate.actions[:n_known]))
    kept = with_rows(
        edited(certificate, reachable=(), too_far=(), near_optimal=(), at_most=(), at_least=()),
        rows_of(certificate)[:n_pairs],
        known=certificate.known[:n_known],
        others=(certificate.known[n_known], *certificate.others),
        actions=certificate.actions[:n_known],
        objective=Objective.WITHIN_RADIUS,
    )
    return edited(
        kept,
        reachable=tuple(
            with_vectors(claim, policy=claim.policy.whole[:n_known], upper=claim.upper.whole[:n_known])
            for claim in certificate.of(Reachable)[:-1]
        ),
        too_far=tuple(with_vectors(claim, lower=claim.lower.whole[:n_known]) for claim in certificate.of(TooFar)),
    )


def planning_model(certificate: Certificate) -> Any:
    """The explorer's model of the counts of a certificate, by position."""
    limit = 3 * (certificate.radius + certificate.epsilon) + 20
    return interval_model(certificate.counts, confidence_region(certificate.counts, certificate.delta), limit)


@everywhere
def test_a_controllable_state_left_out_is_missed(name: str) -> None:
    forged = without_last_known(certificate_of(name))
    verdict = verify(forged)
    assert failed(verdict) == {("complete", None)}
    assert repr(forged.others[0]) in verdict.failures[0].why


@everywhere
def test_a_controllable_state_called_too_far_is_refused_its_claim(name: str) -> None:
    forged = without_last_known(certificate_of(name))
    goal = len(forged.known)
    best = ToSetAside(goal, forged.radius).path(planning_model(forged)).values[:goal]
    assert best[0] <= forged.radius  # the state is within reach, so nothing true says more
    for lower in (best, best * (forged.radius + 0.01) / best[0], np.full(goal, forged.radius + 0.01)):
        claimed = edited(forged, too_far=(TooFar(goal, Vector.complete(lower.copy())), *forged.of(TooFar)))
        assert failed(verify(claimed)) == {("too far", goal), ("complete", None)}


def test_a_state_erased_with_the_draws_that_led_to_it_leaves_room_for_the_unseen() -> None:
    certificate = certificate_of("deterministic grid")
    erased = certificate.of(Reachable)[-1].goal
    rows = [[entry for entry in row if entry[0] != erased] for row in rows_of(without_last_known(certificate))]
    assert any(not row for row in rows)
    shifted = [[(successor - (successor > erased), count, draw) for successor, count, draw in row] for row in rows]
    known, others = certificate.known[:-1], certificate.others
    forged = without_last_known(certificate)
    forged = with_rows(
        edited(forged, too_far=()),
        shifted,
        known=known,
        others=others,
        too_far=tuple(edited(claim, goal=claim.goal - 1) for claim in forged.of(TooFar)),
    )
    assert ("too far", forged.n_seen) in failed(verify(forged))


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
    return edited(
        with_rows(
            edited(certificate, reachable=(), too_far=(), near_optimal=(), at_most=(), at_least=()),
            rows,
            known=(*certificate.known, others.pop(position - n_known)),
            others=tuple(others),
            actions=(*certificate.actions, ()),
            objective=Objective.WITHIN_RADIUS,
        ),
        reachable=tuple(
            with_vectors(
                claim,
                policy=np.append(claim.policy.whole, RESET_ACTION),
                upper=longer(claim.upper.whole, (1 + claim.upper[0]) * (1 + 1e-12)),
            )
            for claim in certificate.of(Reachable)
        ),
        too_far=tuple(
            TooFar(moved(claim.goal), Vector.complete(longer(claim.lower.whole, 1 + claim.lower[0])))
            for claim in certificate.of(TooFar)
            if claim.goal != position
        ),
    )


@everywhere
def test_a_far_state_slipped_in_is_rejected_by_its_name(name: str) -> None:
    certificate = certificate_of(name)
    limit = certificate.radius + certificate.epsilon
    far = [claim.goal for claim in certificate.of(TooFar) if claim.lower[0] > limit and claim.goal < certificate.n_seen]
    for position in far:
        forged = with_known(certificate, position)
        goal = len(certificate.known)
        verdict = verify(forged)
        assert failed(verdict) == {("complete", None)}
        assert repr(forged.known[goal]) in verdict.failures[0].why
        for claim in fabricated(forged, goal, limit):
            verdict = verify(edited(forged, reachable=(*forged.of(Reachable), claim)))
            assert failed(verdict) == {("reachable", goal), ("complete", None)}
            assert repr(forged.known[goal]) in verdict.failures[0].subject


def fabricated(certificate: Certificate, goal: int, limit: float) -> Iterator[Reachable]:
    """Claims that a state is within reach, as well made as can be."""
    n_known = len(certificate.known)
    copied = certificate.of(Reachable)[-1] if certificate.of(Reachable) else None
    if copied is not None:
        yield edited(copied, goal=goal)
    path = upper_path(planning_model(certificate), goal, n_allowed=goal)
    policy = Vector.complete(np.where(path.policy == -1, RESET_ACTION, path.policy - certificate.state_pairs[:-1]))
    upper = np.full(n_known, limit)
    upper[goal] = 0
    yield Reachable(goal, policy, Vector.complete(upper))
    if path.proven:
        yield Reachable(goal, policy, Vector.complete(path.values[:n_known].copy()))
        yield Reachable(goal, policy, Vector.complete(path.values[:n_known] * limit / path.steps))


def test_far_states_were_slipped_in_somewhere() -> None:
    some = [
        name
        for name in LARGE_ENOUGH
        for claim in certificate_of(name).of(TooFar)
        if claim.lower[0] > certificate_of(name).radius + certificate_of(name).epsilon
        and claim.goal < certificate_of(name).n_seen
    ]
    assert "chain" in some
    assert any(name.startswith("random") for name in some)


# Claims missing, repeated, or about another state


@everywhere
def test_every_claim_is_needed_and_needed_once(name: str) -> None:
    certificate = certificate_of(name)
    for kind in KINDS:
        claims = certificate.of(kind.record) if kind.once else ()
        for place in {0, len(claims) // 2, len(claims) - 1} if claims else ():
            for changed in (claims[:place] + claims[place + 1 :], (*claims, claims[place])):
                change: dict[str, Any] = {kind.name: changed}
                verdict = verify(edited(certificate, **change))
                assert failed(verdict) == {("complete", None)}


@pytest.mark.parametrize("name", ["chain", "slippery grid", "random 0"])
def test_a_state_or_an_action_that_stands_twice_is_refused(name: str) -> None:
    certificate = certificate_of(name)
    twice = with_rows(certificate, rows_of(certificate), known=(*certificate.known[:-1], certificate.known[0]))
    assert repr(certificate.known[0]) in verify(twice).failures[0].why
    actions = ((certificate.actions[0][0],) * len(certificate.actions[0]), *certificate.actions[1:])
    for forged in (twice, with_rows(certificate, rows_of(certificate), actions=actions)):
        assert ("counts", None) in failed(verify(forged))


def test_the_claim_of_another_state_is_rejected() -> None:
    certificate = certificate_of("chain")
    near, far = certificate.of(Reachable)[0], certificate.of(Reachable)[-1]
    forged = with_claim(certificate, far, edited(near, goal=far.goal))
    assert failed(verify(forged)) == {("reachable", far.goal), ("complete", None)}


def test_a_certificate_cut_short_cannot_call_itself_complete() -> None:
    certificate = certificate_of("chain cut short")
    assert failed(verify(edited(certificate, complete=True))) == {("complete", None)}


# Parts that have to fit each other


@cache
def by_episodes() -> Certificate:
    """A certificate in which tests by episodes prove states to be within reach."""
    explorer = Certified(target=Target(radius=4.5, epsilon=1.0, delta=0.1), objective=Objective.WITHIN_RADIUS)
    certificate = certificate_from_exploration(run(explorer, SimulatedWorld(confusing_chain(), 0)))
    assert len(certificate.of(EpisodeRecord)) > 1
    assert verify_in_memory(certificate).complete
    return certificate


def with_record(old: EpisodeRecord, **changes: Any) -> Certificate:
    records = by_episodes().of(EpisodeRecord)
    return edited(by_episodes(), episodes=tuple(edited(old, **changes) if old is each else each for each in records))


def test_a_record_with_another_goal_or_another_action_is_true_or_rejected() -> None:
    """Its episodes were of one policy towards one goal, and the rows hold every draw of them."""
    chain, accepted = confusing_chain(), 0
    for record in by_episodes().of(EpisodeRecord):
        goals = [{"goal": goal} for goal in range(1, len(by_episodes().known)) if goal != record.goal]
        actions: list[dict[str, Any]] = [
            with_play(record, state, other)
            for state in range(record.goal)
            for other in range(-1, len(by_episodes().actions[state]))
            if with_play(record, state, other) != {"states": record.states, "actions": record.actions}
        ]
        for change in (*goals, *actions):
            forged, changed = with_record(record, **change), edited(record, **change)
            verdict = verify(forged)
            if any(check.index == changed.goal and not check.holds for check in verdict.claims):
                continue
            policy = np.tile(changed.policy(len(forged.known)).whole, (changed.horizon, 1))
            label = forged.known[changed.goal]
            assert policy_steps_on(chain, list(forged.known), policy, label) <= changed.bound + CLEARLY, change
            accepted += 1
    assert accepted < sum(len(record.states) for record in by_episodes().of(EpisodeRecord))


def test_episodes_that_no_draws_can_have_given_are_rejected() -> None:
    record = next(record for record in by_episodes().of(EpisodeRecord) if record.outcomes[1] == 0)
    sooner = (0, record.n_arrivals, *(0 for _ in record.outcomes[2:-1]), record.outcomes[-1])
    verdict = verify(with_record(record, outcomes=sooner))
    assert "lead its policy to the goal in 1 steps" in next(c.why for c in verdict.failures if c.index == record.goal)


def test_a_bound_below_what_the_rows_prove_of_the_policy_is_rejected() -> None:
    """Outcomes alone may say anything: here they say that a chance of one half is a certainty."""
    rows = [[(0, 5000, 2), (1, 5000, 1)][::-1], []]
    counts = made_counts(rows, [1, 1])
    record = EpisodeRecord(1, (0,), (0,), 3, 1.2, 1.2, 2.2, 1, 1, (0.5,), (1.0,), (0, 4000, 0, 0, 0))
    basis = {"radius": 2.0, "epsilon": 1.0, "delta": 0.1, "objective": Objective.WITHIN_RADIUS, "complete": False}
    forged = Certificate(counts=counts, claims=(record,), **basis)  # type: ignore[arg-type]
    (failure,) = verify_in_memory(forged).failures
    assert "by the rows, of 1.2 claimed" in failure.why
    assert verify_in_memory(edited(forged, claims=(edited(record, bound=2.1, at_most=2.1, tail=3.1),))).holds


def test_a_record_of_ties_that_names_no_outcome_is_refused() -> None:
    certificate = certificate_of("chain")
    nothing = np.zeros(0, dtype=np.int64)
    untied = np.full(len(certificate.counts.counts), -1)
    tied = Ties(Labels(), untied, nothing.reshape(0, 3), nothing, nothing)
    with pytest.raises(InvalidInputError, match="ties list no outcome"):
        edited(certificate, assumed=Assumed({}, tied))


def test_ranks_are_those_of_an_order_in_which_states_can_have_been_met() -> None:
    certificate, nothing = certificate_of("slippery grid"), np.zeros(0, dtype=np.int64)
    n_known = len(certificate.known)

    def with_ranks(*ranks: int) -> Certificate:
        return edited(certificate, retired=RetiredStates(np.array(ranks), nothing, nothing, nothing))

    others = range(4, n_known + 1)
    for ranks, why in (
        ((1, 2, 3, *others), "no other order than that of admission"),
        ((2, 1, 3, *others), "begins with the initial state"),
        ((1, 2, 4, *(rank + 1 for rank in others)), "begins with the initial state"),
        ((1, 2, 2, *others), "a rank of its own"),
        ((1, *range(n_known, 1, -1)), "before any draw in another one led to it"),
    ):
        with pytest.raises(InvalidInputError, match=why):
            with_ranks(*ranks)
    assert verify_in_memory(with_ranks(1, 3, 2, *others)).claims[0].holds


def test_situations_that_a_memory_does_not_lead_to_are_rejected() -> None:
    certificate = certificate_of("deterministic grid")
    labels = tuple(certificate.counts.order)
    pairs = [(s, a) for s, actions in enumerate(certificate.actions) for a in actions]
    entries = zip(certificate.counts.entry_pairs.tolist(), certificate.counts.successors.tolist(), strict=True)
    moves = {(*pairs[pair], "seen"): successor for pair, successor in entries}
    outputs = ("seen",) * len(labels)
    assert verify(edited(certificate, memory=Memory(outputs, labels, moves))).complete
    move = next(move for move in moves if moves[move] == 2)
    forgeries = {
        "a move elsewhere": Memory(outputs, labels, moves | {move: 1}),
        "a move left out": Memory(outputs, labels, {kept: to for kept, to in moves.items() if kept != move}),
        "another initial state": Memory(outputs, (labels[1], labels[0], *labels[2:]), moves),
        "an output that is a state": Memory((labels[-1],) * (len(labels) - 1), labels[:-1], {}),
    }
    for name, memory in forgeries.items():
        assert ("counts", None) in failed(verify(edited(certificate, memory=memory))), name
