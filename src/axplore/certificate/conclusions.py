"""What follows from the claims of a certificate, if they hold: bounds, policies and a status for every state.

The vectors come from floating-point solvers. So what is concluded is not U, W and R but the weaker U (1 + η),
W / (1 + η) and R + 3 η U, and these are what the verifier checks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from axplore.certificate.contents import (
    RESET_ACTION,
    AtLeast,
    AtMost,
    KeptPolicies,
    NearOptimal,
    Reachable,
    Sparse,
    TooFar,
)
from axplore.certificate.distances import Distances, ShortestWays, exact_bounds
from axplore.certificate.document import Certificate
from axplore.certificate.episode_records import EpisodeRecord
from axplore.target import Objective
from axplore.types import FloatArray, IntArray, Status

ROUNDING: Final = 1e-9
"""η, by which vectors are corrected before they are checked."""

MARGIN: Final = 1e-13
"""By how much inequalities must hold, relative to the largest value: far above the rounding of one sweep."""

MOST_MADE: Final = 1000
"""Policies to more states than this are made when they are asked for."""

NEAREST: Final = 1.0
"""No other state is nearer to the initial one than a step."""

Kind = TypeVar("Kind", Reachable, TooFar, NearOptimal, AtMost, AtLeast)


def margin(vector: FloatArray | Sparse) -> float:
    """By how much an inequality about a vector must hold."""
    return MARGIN * (1.0 + float(vector.max()))


def correction(vector: FloatArray | Sparse) -> float:
    """η, of which a step is enough to keep the margin."""
    return max(ROUNDING, 10.0 * margin(vector))


def corrected_upper(upper: FloatArray) -> FloatArray:
    """What is concluded from an upper bound, [n]."""
    return upper * (1.0 + correction(upper))


def corrected_lower(lower: FloatArray) -> FloatArray:
    """What is concluded from a lower bound, [n]."""
    return lower / (1.0 + correction(lower))


def upper_steps(claim: Reachable | NearOptimal | AtMost) -> float:
    """What is concluded from the upper bound of a claim for the initial state."""
    upper = claim.kept("upper")
    return float(upper[0]) * (1.0 + correction(upper))


def lower_steps(claim: TooFar | NearOptimal | AtLeast) -> float:
    """What is concluded from the lower bound of a claim for the initial state."""
    lower = claim.kept("lower")
    return float(lower[0]) / (1.0 + correction(lower))


def corrected_regret(regret: FloatArray, upper: FloatArray) -> FloatArray:
    """What is concluded from a bound of the loss of a policy with this corrected upper bound, [n]."""
    # Three times, because U and W were corrected before, each by up to η U(s).
    return regret + 3.0 * correction(upper) * upper


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What a certificate says of every state: the known ones, then the others seen, by position.

    Attributes:
        lower: no policy restricted to the known states takes fewer expected steps, [n + others].
        upper: the policy takes no more; infinite without a claim, and for states that are not known, [n + others].
        regret: the policy loses no more against the best one; likewise, [n + others].
        statuses: of each state, [n + others].
        policies: to each known state, by state, [n], or by step and state if it restarts after H steps, [H, n]; it
            resets everywhere if no policy is claimed to arrive, [n].
        unseen_lower: no state never seen can be reached in fewer expected steps.
    """

    lower: FloatArray
    upper: FloatArray
    regret: FloatArray
    statuses: tuple[Status, ...]
    policies: Sequence[IntArray]
    unseen_lower: float


def conclusions_of(certificate: Certificate) -> Conclusions:
    """What follows from the claims of a certificate, if they hold; whether they do is for `verify` to say."""
    if certificate.distances is not None:
        return _exact(certificate, certificate.distances)
    n_known, n_seen = len(certificate.known), certificate.n_seen
    lower = np.full(n_seen + 1, NEAREST)
    upper, regret = np.full(n_seen, math.inf), np.full(n_seen, math.inf)
    for claims in (certificate.too_far, certificate.near_optimal, certificate.at_least):
        for bound in claims:
            lower[bound.goal] = max(lower[bound.goal], lower_steps(bound))
    set_aside = _goals(certificate.too_far)
    for goal in range(n_known, n_seen + 1):
        if goal not in set_aside:  # then nothing is said that would set it aside, however close the bound is
            lower[goal] = min(lower[goal], certificate.radius)
    lower[0] = upper[0] = regret[0] = 0.0
    resetting = np.full(n_known, RESET_ACTION, dtype=np.int64)
    policies: list[IntArray | Sparse] = [resetting] * n_known
    for record in _admitting(certificate):
        policies[record.goal] = _by_step(record)
        upper[record.goal] = record.bound
    for ways in (certificate.reachable, certificate.at_most, certificate.near_optimal):  # the last one counts
        for way in ways:
            policies[way.goal] = way.kept("policy")
            upper[way.goal] = upper_steps(way)
    for goal, tested in optimal_by_test(certificate).items():
        policies[goal] = tested.way.policy
        upper[goal] = tested.upper
    regret[1:n_known] = upper[1:n_known] - lower[1:n_known]
    for claim in certificate.near_optimal:
        regret[claim.goal] = loss_of(claim, certificate.epsilon)
    made: Sequence[IntArray] = KeptPolicies(policies)
    if n_known <= MOST_MADE:
        made = tuple(made)
    return Conclusions(lower[:-1], upper, regret, _statuses(certificate), made, float(lower[-1]))


def tested_goals(certificate: Certificate) -> set[int]:
    """The known states that tests by episodes claim to be within reach."""
    return {record.goal for record in _admitting(certificate)}


@dataclass(frozen=True, eq=False)
class OptimalByTest:
    """Three claims about one goal from which it follows that a policy is near-optimal.

    Attributes:
        record: the policy, cut after the horizon of its test and charged with its tail then, keeps the bound.
        way: the policy never needs more than that tail, so it keeps the bound without being cut.
        at_least: no policy takes fewer steps than this one is allowed to take, less ε.
    """

    record: EpisodeRecord
    way: AtMost
    at_least: AtLeast

    @property
    def upper(self) -> float:
        """The most expected steps of the policy."""
        return min(self.record.bound, upper_steps(self.way))

    @property
    def lower(self) -> float:
        """The fewest expected steps of any policy."""
        return lower_steps(self.at_least)


def optimal_by_test(certificate: Certificate) -> dict[int, OptimalByTest]:
    """For each known state of which no other claim says so, why its policy is near-optimal by a test, if it is.

    There is one claim of each kind for a goal at most: where there are more, nothing is concluded.
    """
    if certificate.objective is not Objective.OPTIMAL:
        return {}
    others = _goals(certificate.near_optimal)
    ways, bounds = _single(certificate.at_most), _single(certificate.at_least)
    best: dict[int, OptimalByTest] = {}
    for record in sorted(certificate.episodes, key=lambda record: record.bound, reverse=True):  # the least one counts
        goal = record.goal
        if goal in ways and goal in bounds and goal not in others and goal < len(certificate.known):
            tested = OptimalByTest(record, ways[goal], bounds[goal])
            if _closes_tail(tested) and record.bound - tested.lower <= certificate.epsilon:
                best[goal] = tested
    return best


def _closes_tail(tested: OptimalByTest) -> bool:
    """Whether the way is that of the test, and takes at most its tail from every state, known or not."""
    record, way = tested.record, tested.way
    policy = np.full(len(way.policy), RESET_ACTION, dtype=np.int64)
    if len(record.policy) > len(policy):
        return False
    policy[: len(record.policy)] = record.policy
    differs = policy != way.policy
    differs[record.goal] = False  # nothing is played there
    upper = corrected_upper(way.upper)
    return not differs.any() and max(1.0 + upper[0], upper.max()) <= record.tail


def _single(claims: Sequence[Kind]) -> dict[int, Kind]:
    """The claims about goals of which there is one only, by goal."""
    times = Counter(claim.goal for claim in claims)
    return {claim.goal: claim for claim in claims if times[claim.goal] == 1}


def _by_step(record: EpisodeRecord) -> IntArray:
    """The policy of a test by step and state, with a RESET after its last step, [H, n]."""
    policy = np.array(record.policy, dtype=np.int64)
    # A view, which takes no memory: nothing has been checked yet, and a forged horizon may be huge.
    return np.broadcast_to(policy, (record.horizon, len(policy)))


def _admitting(certificate: Certificate) -> list[EpisodeRecord]:
    """The tests by episodes that claim a state to be within reach by states admitted before it, and within L + ε."""
    limit = certificate.radius + certificate.epsilon
    return [record for record in certificate.episodes if record.bound <= limit and record.plays_before_goal]


def _exact(certificate: Certificate, distances: Distances) -> Conclusions:
    """What follows from the fewest steps to every state."""
    bounds = exact_bounds(distances, certificate.counts, certificate.pair_owners)
    return Conclusions(
        lower=bounds.lower,
        upper=bounds.upper,
        regret=bounds.regret,
        statuses=bounds.statuses(
            len(certificate.known), certificate.radius, certificate.epsilon, certificate.objective
        ),
        policies=ShortestWays(distances.reached_by, certificate.state_pairs),
        unseen_lower=bounds.unseen,
    )


def refuted_goals(certificate: Certificate) -> list[int]:
    """The known states that were admitted as within reach and are proven to be beyond it."""
    limit = certificate.radius + certificate.epsilon
    bounds: list[AtLeast | NearOptimal] = [*certificate.at_least, *certificate.near_optimal]
    known = (bound for bound in bounds if bound.goal < len(certificate.known))
    return [bound.goal for bound in known if lower_steps(bound) > limit]


def loss_of(claim: NearOptimal, epsilon: float) -> float:
    """What a near-optimal policy loses: the gap between its bounds, or its regret where the gap is too wide."""
    gap = upper_steps(claim) - lower_steps(claim)
    if gap <= epsilon:
        return gap
    return min(float(corrected_regret(claim.regret, corrected_upper(claim.upper))[0]), gap)


def _statuses(certificate: Certificate) -> tuple[Status, ...]:
    n_known = len(certificate.known)
    reachable = _goals(certificate.reachable) | tested_goals(certificate)
    optimal = _goals(certificate.near_optimal) | optimal_by_test(certificate).keys()
    if certificate.objective is not Objective.OPTIMAL:
        optimal = reachable
    certified = {0, *(reachable & optimal)}
    known = (Status.CERTIFIED if goal in certified else Status.OPEN for goal in range(n_known))
    too_far = _goals(certificate.too_far)
    others = (Status.SET_ASIDE if goal in too_far else Status.OPEN for goal in range(n_known, certificate.n_seen))
    return (*known, *others)


def _goals(claims: Sequence[Kind]) -> set[int]:
    return {claim.goal for claim in claims}
