"""What the vector of a claim proves: a corrected bound, checked with one Bellman sweep over the region.

The verifier trusts no solver. A vector proves its bound if one application of the operator moves it to the right side:

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

from typing import Final

import numpy as np

from axplore.certificate.bellman import Sweeper, bounds_along_way
from axplore.records.claims import Bound, NearOptimal, Way
from axplore.records.vectors import Vector
from axplore.types import RESET_ACTION, FloatArray

ROUNDING: Final = 1e-9
"""η, by which vectors are corrected before they are checked."""

MARGIN: Final = 1e-13
"""By how much inequalities must hold, relative to the largest value: far above the rounding of one sweep."""

LARGEST: Final = 1e9
"""Bounds beyond it are refused: their rounding would be that of whole steps."""


class UnprovenError(Exception):
    """A claim that does not follow; the message says why."""


def margin(vector: FloatArray | Vector[np.float64]) -> float:
    """By how much an inequality about a vector must hold."""
    return MARGIN * (1.0 + float(vector.max()))


def correction(vector: FloatArray | Vector[np.float64]) -> float:
    """η, of which a step is enough to keep the margin."""
    return max(ROUNDING, 10.0 * margin(vector))


def corrected_upper(upper: Vector[np.float64]) -> FloatArray:
    """What is concluded from an upper bound, [n]."""
    return upper.whole * (1.0 + correction(upper))


def corrected_lower(lower: Vector[np.float64]) -> FloatArray:
    """What is concluded from a lower bound, [n]."""
    return lower.whole / (1.0 + correction(lower))


def corrected_regret(regret: FloatArray, upper: FloatArray) -> FloatArray:
    """What is concluded from a bound of the loss of a policy with this corrected upper bound, [n]."""
    # Three times, because U and W were corrected before, each by up to η U(s).
    return regret + 3.0 * correction(upper) * upper


def upper_steps(claim: Way) -> float:
    """What is concluded from the upper bound of a claim for the initial state."""
    return float(claim.upper[0]) * (1.0 + correction(claim.upper))


def lower_steps(claim: Bound | NearOptimal) -> float:
    """What is concluded from the lower bound of a claim for the initial state."""
    return max(0.0, float(claim.lower[0]) / (1.0 + correction(claim.lower)) - claim.deduction)


def follows_along_way(sweeper: Sweeper, claim: Way) -> bool:
    """Whether the upper bound of a claim follows from the closed form for ways, by any of the shared budgets."""
    budgets, of_pairs = sweeper.region.shared_budgets, (sweeper.counts, sweeper.state_pairs)
    ways = (bounds_along_way(*of_pairs, claim.goal, claim.policy, budget, after) for after, budget in budgets.items())
    return any(along is not None and _is_above(claim, along) for along in ways)


def _is_above(claim: Way, along: dict[int, float]) -> bool:
    """Whether the corrected upper bound is at least that of a way, and one step more than its first elsewhere."""
    elsewhere = 1.0 + along[0]
    states, numbers = claim.upper.other_than(claim.upper.rest)
    needed = [0.0 if state == claim.goal else along.get(state, elsewhere) for state in states.tolist()]
    own = set(states.tolist())
    others = [bound for state, bound in along.items() if state not in own]
    if len(own | along.keys() | {claim.goal}) < claim.upper.length:
        others.append(elsewhere)
    factor = 1.0 + correction(claim.upper)
    return bool((numbers * factor >= needed).all()) and claim.upper.rest * factor >= max(others, default=0.0)


def loss_steps(claim: NearOptimal) -> float:
    """What is concluded from the bound of the loss of a claim for the initial state."""
    largest = float(claim.upper.max()) * (1.0 + correction(claim.upper))
    return float(claim.regret[0]) + 3.0 * max(ROUNDING, 10.0 * MARGIN * (1.0 + largest)) * upper_steps(claim)


def proven_upper(sweeper: Sweeper, claim: Way) -> FloatArray:
    """A bound of the expected steps of the policy in every model of the region, [n]."""
    check_numbers(claim.upper, claim.goal)
    upper = corrected_upper(claim.upper)
    if not follows_along_way(sweeper, claim):
        enough = upper - 1.0 - margin(upper)
        needed = 1.0 + sweeper.greatest_means(upper, claim.goal, 1.0 + upper[0], claim.policy.whole, enough)
        _require(sweeper, claim.goal, "upper bound", upper, needed + margin(upper))
    return upper


def proven_lower(sweeper: Sweeper, claim: Bound | NearOptimal) -> FloatArray:
    """A lower bound of the expected steps of every policy in every model of the region, [n]."""
    check_numbers(claim.lower, claim.goal)
    lower = corrected_lower(claim.lower)
    allowed = np.full(len(lower), 1.0 + lower[0])  # RESET; from the initial state it leads nowhere
    means = sweeper.least_means(lower, claim.goal, lower - 1.0 + margin(lower))
    np.minimum.at(allowed, sweeper.owners, 1.0 + means)
    _require(sweeper, claim.goal, "lower bound", lower, allowed - margin(lower), at_most=True)
    return lower


def proven_regret(sweeper: Sweeper, claim: NearOptimal, upper: FloatArray, lower: FloatArray) -> FloatArray:
    """A bound of what the policy loses against the best one in every model of the region, [n]."""
    check_numbers(claim.regret, claim.goal)
    regret = corrected_regret(claim.regret.whole, upper)
    policy = claim.policy.whole
    plays = policy != RESET_ACTION
    rival = np.where(plays, 1.0 + lower[0], np.inf)
    rival[0] = np.inf  # RESET in the initial state is never the best
    is_rival = np.ones(sweeper.region.n_pairs, dtype=bool)
    is_rival[(sweeper.state_pairs[:-1] + policy)[plays]] = False
    enough = regret - margin(upper) - margin(regret)
    rival_means = sweeper.least_means(lower, claim.goal, upper - enough - 1.0)
    np.minimum.at(rival, sweeper.owners[is_rival], 1.0 + rival_means[is_rival])
    means = sweeper.greatest_means(regret, claim.goal, regret[0], policy, enough)
    needed = np.maximum(means, upper - rival)
    _require(sweeper, claim.goal, "bound of the loss", regret, needed + margin(upper) + margin(regret))
    return regret


def check_numbers(vector: Vector[np.float64], goal: int) -> None:
    """Refuses what is too large for a number of steps, and anything but 0 at the goal; none is below 0."""
    if not vector.max() <= LARGEST:
        raise UnprovenError(f"a bound is not a number between 0 and {LARGEST:g}")
    if goal < vector.length and vector[goal] != 0.0:
        raise UnprovenError("the bound at the goal itself is not 0")


def _require(
    sweeper: Sweeper, goal: int, name: str, vector: FloatArray, limit: FloatArray, *, at_most: bool = False
) -> None:
    """Refuses a vector that is not at least (at most) the limit in every known state but the goal."""
    holds = vector <= limit if at_most else vector >= limit
    if goal < len(vector):
        holds[goal] = True
    if not holds.all():
        state = int(np.argmin(holds))
        raise UnprovenError(
            f"the {name} {vector[state]:.6g} in state {sweeper.counts.order[state]!r} does not follow: one sweep gives "
            f"{limit[state]:.6g}"
        )
