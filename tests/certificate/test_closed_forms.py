"""Certificates small enough to be worked out by hand: each bound is accepted just above its value, not just below.

In all of them every row that was drawn is certain. Of a certain row with n draws the region says only that its
probability is at least q = exp(-slack), and slack is the budget that all such rows share, by their repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pytest

from axplore.certificate import Certificate, NearOptimal, Reachable, TooFar, verify
from axplore.records.vectors import Vector
from axplore.target import Objective
from axplore.types import RESET_ACTION
from edited import edited
from made_counts import made_counts

DELTA = 0.1
A_LITTLE = 1e-6
MANY = 10**6

Rows: TypeAlias = Sequence[Sequence[tuple[int, int] | None]]
"""The pairs of each known state, each as (successor, draws), or None where nothing was drawn."""


def certificate(rows: Rows, n_others: int = 0, epsilon: float = 0.5) -> Certificate:
    """The counts of these rows, without claims."""
    pairs = [pair for state in rows for pair in state]
    entries = [[] if pair is None else [(*pair, 1)] for pair in pairs]
    labels = [*(f"s{state}" for state in range(len(rows))), *(f"other {state}" for state in range(n_others))]
    return Certificate(
        radius=2.0,
        epsilon=epsilon,
        delta=DELTA,
        objective=Objective.OPTIMAL,
        counts=made_counts(entries, [len(state) for state in rows], labels=labels),
        complete=False,
    )


def least_probability(rows: Rows, state: int, action: int) -> float:
    """q of a pair by the first budget that all certain pairs share; with so few of them its own level gives less."""
    weights = {
        (place, number): 10 / ((place + 11) * (place + 10)) / len(pairs)
        for place, pairs in enumerate(rows)
        for number in range(len(pairs))
    }
    budget = -math.log(0.75 * 0.2 * DELTA) - sum(
        math.log(1 - weight / 2) for (place, number), weight in weights.items() if rows[place][number] is not None
    )
    pair = rows[state][action]
    return math.exp(-budget / (pair[1] - 1)) if pair is not None else 0.0


def floats(*values: float) -> Vector[np.float64]:
    return Vector.complete(np.array(values, dtype=np.float64))


def actions(*values: int) -> Vector[np.int64]:
    return Vector.complete(np.array(values, dtype=np.int64))


def holds(subject: Certificate, claim: Reachable | TooFar | NearOptimal) -> bool:
    if isinstance(claim, Reachable):
        return verify(edited(subject, reachable=(claim,))).holds
    if isinstance(claim, TooFar):
        return verify(edited(subject, too_far=(claim,))).holds
    return verify(edited(subject, near_optimal=(claim,))).holds


@pytest.mark.parametrize("draws", [30, 300, 3000])
def test_a_certain_step_is_reachable_within_its_bound(draws: int) -> None:
    rows: Rows = [[(1, draws)], []]
    q = least_probability(rows, 0, 0)
    exact = (2 - q) / q  # U = 1 + (1 - q)(1 + U): what is not the goal resets
    for upper, proven in ((exact + A_LITTLE, True), (exact - A_LITTLE, False)):
        claim = Reachable(1, actions(0, RESET_ACTION), floats(upper, 0))
        assert holds(certificate(rows), claim) == (proven and upper <= 2.5)


def test_the_limit_of_reach_is_the_radius_and_epsilon() -> None:
    rows: Rows = [[(1, MANY)], []]
    for upper in (2.5 - A_LITTLE, 2.5 + A_LITTLE):
        assert holds(certificate(rows), Reachable(1, actions(0, RESET_ACTION), floats(upper, 0))) == (upper < 2.5)


def test_states_admitted_with_the_goal_or_later_reset() -> None:
    rows: Rows = [[(1, MANY), (2, MANY)], [(2, MANY)], [(1, MANY)]]
    through = Reachable(1, actions(1, RESET_ACTION, 0), floats(2.02, 0, 1.01))
    assert not holds(certificate(rows), through)
    assert holds(certificate(rows), Reachable(2, actions(0, 0, RESET_ACTION), floats(2.02, 1.01, 0)))
    assert holds(certificate(rows), Reachable(1, actions(0, RESET_ACTION, RESET_ACTION), floats(1.01, 0, 2.01)))
    early = Reachable(1, actions(0, RESET_ACTION, RESET_ACTION), floats(1.01, 0, 2.0))  # a step more than no bound
    assert not holds(certificate(rows), early)


@pytest.mark.parametrize("draws", [30, 300, 3000])
def test_the_unseen_is_as_far_as_the_missing_mass_is_small(draws: int) -> None:
    rows: Rows = [[(1, draws)]]
    q = least_probability(rows, 0, 0)
    exact = (1 + q) / (1 - q)  # W = 1 + q (1 + W): either the state outside, which resets, or the goal
    for lower, proven in ((exact * (1 - A_LITTLE), True), (exact * (1 + A_LITTLE), False)):
        assert holds(certificate(rows, n_others=1), TooFar(2, floats(lower))) == (proven and lower > 2)


def test_a_state_too_far_is_beyond_the_radius_itself() -> None:
    rows: Rows = [[(1, MANY)]]
    for lower in (2 - A_LITTLE, 2.0, 2 + A_LITTLE):
        assert holds(certificate(rows, n_others=1), TooFar(2, floats(lower))) == (lower > 2)


def test_an_action_never_drawn_may_reach_anything_at_once() -> None:
    assert not holds(certificate([[(1, MANY), None]], n_others=1), TooFar(2, floats(2.1)))
    assert not holds(certificate([[(1, MANY), (1, 1)]], n_others=1), TooFar(2, floats(2.1)))


def test_no_lower_bound_is_above_that_of_resetting() -> None:
    rows: Rows = [[(1, MANY)], [(1, MANY)]]  # s1 stays put: far from everything, if it could not reset
    assert holds(certificate(rows), TooFar(2, floats(100, 101)))
    assert not holds(certificate(rows), TooFar(2, floats(100, 101 + A_LITTLE)))


def test_a_start_that_only_resets_is_far_from_everything() -> None:
    assert holds(certificate([[]]), TooFar(1, floats(1e6)))


def test_one_action_everywhere_leaves_nothing_to_lose() -> None:
    rows: Rows = [[(1, 100)], [(2, 100)], []]
    claim = NearOptimal(2, actions(0, 0, RESET_ACTION), floats(3, 1.4, 0), floats(1.5, 0.9, 0), floats(0, 0, 0))
    assert holds(certificate(rows, epsilon=1e-6), claim)


def test_a_wide_gap_needs_the_regret_and_a_narrow_one_does_not() -> None:
    rows: Rows = [[(1, MANY), None], []]
    wrong = floats(0, 0)  # the other action might be as good
    claim = NearOptimal(1, actions(0, RESET_ACTION), floats(1.2, 0), floats(0.9, 0), wrong)
    assert holds(certificate(rows, epsilon=0.3 + A_LITTLE), claim)
    assert not holds(certificate(rows, epsilon=0.3 - A_LITTLE), claim)


def test_an_action_is_doubted_by_what_another_might_save() -> None:
    # In s0 the other action may lead to the goal at once, in one step; U - 1 is what the policy may lose.
    rows: Rows = [[(1, MANY), None], []]
    for regret in (0.2 + A_LITTLE, 0.2 - A_LITTLE):
        claim = NearOptimal(1, actions(0, RESET_ACTION), floats(1.2, 0), floats(0, 0), floats(regret, 0))
        assert holds(certificate(rows), claim) == (regret > 0.2)


def test_a_policy_that_may_lose_more_than_epsilon_is_not_near_optimal() -> None:
    rows: Rows = [[(1, MANY), None], []]
    claim = NearOptimal(1, actions(0, RESET_ACTION), floats(1.2, 0), floats(0, 0), floats(0.201, 0))
    for epsilon in (0.201 + A_LITTLE, 0.201 - A_LITTLE):
        assert holds(certificate(rows, epsilon=epsilon), claim) == (epsilon > 0.201)


def test_doubt_on_the_way_is_doubt_from_the_start() -> None:
    # Only in s1 is there another action; the policy gets there from s0, and so may lose as much from s0.
    rows: Rows = [[(1, MANY)], [(2, MANY), None], []]
    for regret in (0.2 + A_LITTLE, 0.2 - A_LITTLE):
        claim = NearOptimal(
            2, actions(0, 0, RESET_ACTION), floats(2.3, 1.2, 0), floats(0, 0, 0), floats(regret, 0.21, 0)
        )
        q = least_probability(rows, 0, 0)
        assert holds(certificate(rows), claim) == (regret >= 0.21 * q)
    enough = NearOptimal(2, actions(0, 0, RESET_ACTION), floats(2.3, 1.2, 0), floats(0, 0, 0), floats(0.21, 0.21, 0))
    assert holds(certificate(rows), enough)


def test_resetting_is_an_action_that_may_be_better() -> None:
    # s1 leads on in one step, but the counts allow for U(s1) = 3.4; resetting and going by s2 takes 1 + W(s0).
    rows: Rows = [[(1, MANY), (2, MANY)], [(3, 13)], [(3, MANY)], []]
    upper, lower = floats(3.45, 2.4, 1.01, 0), floats(0.2, 0.1, 0.1, 0)
    for regret in (1.3, 1.1):
        # D(s1) = U(s1) - (1 + W(s0)) = 1.2; D(s0) = U(s0) - (1 + W(s2)) is at most 2.35.
        claim = NearOptimal(3, actions(0, 0, 0, RESET_ACTION), upper, lower, floats(2.4, regret, 2.4, 0))
        assert holds(certificate(rows, epsilon=2.5), claim) == (regret > 1.2)


def test_resetting_in_the_start_saves_nothing() -> None:
    rows: Rows = [[(1, MANY)], []]
    claim = NearOptimal(1, actions(0, RESET_ACTION), floats(1.9, 0), floats(0, 0), floats(0, 0))
    assert holds(certificate(rows), claim)


def test_a_policy_that_resets_is_doubted_by_the_actions_that_it_leaves_out() -> None:
    # In s1 the policy resets; the action there was never drawn and might reach the goal in one step.
    rows: Rows = [[(2, MANY)], [None], []]
    upper = floats(1.1, 2.1, 0)
    for regret in (1.1 + A_LITTLE, 1.1 - A_LITTLE):
        claim = NearOptimal(2, actions(0, RESET_ACTION, RESET_ACTION), upper, floats(0, 0, 0), floats(0.1, regret, 0))
        assert holds(certificate(rows), claim) == (regret > 1.1)


def test_a_policy_that_resets_loses_what_it_loses_from_the_start() -> None:
    # s0 is in doubt, and s1, which is terminal, leads there by RESET.
    rows: Rows = [[(2, MANY), None], [], []]
    for regret in (0.2 + A_LITTLE, 0.2 - A_LITTLE):
        claim = NearOptimal(
            2, actions(0, RESET_ACTION, RESET_ACTION), floats(1.2, 2.2, 0), floats(0.99, 1.9, 0), floats(0.2, regret, 0)
        )
        assert holds(certificate(rows, epsilon=0.205), claim) == (regret > 0.2)


def test_two_certain_steps_share_their_budget() -> None:
    # All of the budget in the last pair: U = 2 + 3 (exp(B / k) - 1), less than with half of the doubt in each pair.
    rows: Rows = [[(1, 200)], [(2, 100)], []]
    factors = [1 / least_probability(rows, state, 0) for state in (0, 1)]
    exact = 2 + max(2 * (factors[0] - 1), 3 * (factors[1] - 1))
    from_second = 1 + (2 * factors[0] + 1) * (factors[1] - 1)
    swept = (1 + (1 + 1) * factors[0]) * factors[1] - 1  # with the whole budget in each: y_0 = 1, y_i+1 = (1 + y_i) / p
    assert exact < swept
    policy = actions(0, 0, RESET_ACTION)
    for scale, proven in ((1 + A_LITTLE, True), (1 - A_LITTLE, False)):
        upper = floats(exact * scale, from_second * scale, 0.0)
        assert holds(certificate(rows), Reachable(2, policy, upper)) == proven


def test_a_way_is_no_proof_for_a_policy_that_does_not_reset_beside_it() -> None:
    rows: Rows = [[(2, 200)], [(1, 100)], []]
    factor = 1 / least_probability(rows, 0, 0)
    bound = (1 + 2 * (factor - 1)) * (1 + A_LITTLE)
    upper = floats(bound, 1 + bound, 0.0)
    assert holds(certificate(rows), Reachable(2, actions(0, RESET_ACTION, RESET_ACTION), upper))
    assert not holds(certificate(rows), Reachable(2, actions(0, 0, RESET_ACTION), upper))
